r"""A design rotated so that ridge regression of any strength is one division per direction.

With V = S^{1/2} (X - m) = U diag(sqrt(e)) R^T and t = S^{1/2} (y - q), q_k = u_k.t,

    w(r) = R [ sqrt(e_k) q_k / (e_k + r) ],
    |V w - t|^2 = outside + sum_k (q_k r / (e_k + r))^2,       outside = |t|^2 - |q|^2.

Tall data are rotated by the eigenvectors of the Gram matrix, wide ones by those of the kernel
matrix; where the squares of these matrices would cost digits that matter, by the singular vectors
of the rows themselves.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from trueline.moments import Moments
from trueline.numerics.blas import svd
from trueline.problem import Problem

__all__ = ["Spectrum", "outside_square"]

Array = NDArray[np.float64]

_EPS = float(np.finfo(np.float64).eps)
# Below this share of |t|^2 the squared residual is read from the rows: it cancels in the moments.
_CANCELS = 1e-6


@dataclass(frozen=True)
class Spectrum:
    """Directions of a centred, weighted design, and one target seen along them.

    Attributes
    ----------
    values : array of shape (r,)
        e: squared singular values, all positive.
    along : array of shape (r,)
        q: the target along the left singular vectors.
    outside : float
        Squared length of the target that no coefficients can reach.
    vectors : array of shape (d, r)
        R: right singular vectors.
    floor : float
        Strengths below this are not told from zero: eigenvalues err by about as much.
    moments : Moments, optional
        If they were formed.
    """

    values: Array
    along: Array
    outside: float
    vectors: Array
    floor: float
    moments: Moments | None = None

    def coefficients(self, strength: float) -> Array:
        """w(r) for a strength r."""
        return self.vectors @ (np.sqrt(self.values) * self.along / (self.values + strength))

    def squares(self, strength: float) -> tuple[float, float]:
        """|w(r)|^2 and |V w(r) - t|^2."""
        shrunk = self.along / (self.values + strength)
        return (
            float(shrunk @ (self.values * shrunk)),
            self.outside + float(((strength * shrunk) ** 2).sum()),
        )

    @classmethod
    def of(cls, problem: Problem, moments: Moments | None = None) -> Spectrum:
        """Rotate, by the smaller of the two square matrices."""
        n, d = problem.design.shape
        return _tall(problem, moments) if n > d else _wide(problem)

    @classmethod
    def of_rows(cls, problem: Problem) -> Spectrum:
        """Rotate by the singular vectors of the rows: slower, to the last digits."""
        mean, level, root = _centre(problem)
        rows = root[:, None] * (problem.design.toarray() - mean)
        target = root * (problem.target[:, 0] - level)
        U, s, Vt = svd(rows)
        keep = s > max(rows.shape) * _EPS * s.max(initial=0.0)
        along = U[:, keep].T @ target
        rest = target - U[:, keep] @ along
        return cls(s[keep] ** 2, along, float(rest @ rest), Vt[keep].T, 0.0)


def _centre(problem: Problem) -> tuple[Array, float, Array]:
    """Means of columns and target (zero without an intercept), and the roots of the weights."""
    n, d = problem.design.shape
    weights = problem.weights
    root = np.ones(n) if weights is None else np.sqrt(weights)
    if not problem.fit_intercept:
        return np.zeros(d), 0.0, root
    level = float(problem.weigh(problem.target).sum() / problem.total_weight)
    return problem.design.column_means(weights), level, root


def _tall(problem: Problem, moments: Moments | None) -> Spectrum:
    if moments is None:
        moments = Moments.from_rows(problem.design, problem.target, problem.weights)
    if not moments.is_finite():
        raise FloatingPointError("the sums of squares of the data are not finite")
    about = moments if problem.fit_intercept else moments.about_zero()
    e, R = linalg.eigh(about.gram, check_finite=False)
    largest = max(float(e[-1]), 0.0) if len(e) else 0.0
    unit = (about.unit + len(e) * _EPS) * largest
    keep = e > unit
    e, R = e[keep], R[:, keep]
    along = (R.T @ about.cross[:, 0]) / np.sqrt(e)
    outside = outside_square(problem, about, R @ (along / np.sqrt(e)))
    return Spectrum(e, along, outside, R, 1e3 * unit, moments)


def outside_square(problem: Problem, about: Moments, w: Array) -> float:
    """The squared residual of least squares, from the rows where it cancels in the moments.

    It is flat around the minimum: the rounding of w enters by its square.
    """
    value, rounding = (float(part[0]) for part in about.residual_square(w[:, None]))
    if value > _CANCELS * float(about.y_square[0]) and rounding < 1e-9 * value:
        return value
    b = float(about.y_mean[0] - about.x_mean @ w) if problem.fit_intercept else 0.0
    residual = problem.scores(w[:, None], np.array([b])) - problem.target
    if problem.fit_intercept:  # the best intercept, to all digits
        residual = residual - problem.weigh(residual).sum() / problem.total_weight
    return float((problem.weigh(residual) * residual).sum())


def _wide(problem: Problem) -> Spectrum:
    mean, level, root = _centre(problem)
    design = problem.design
    kernel = design.kernel(problem.weights, mean if problem.fit_intercept else None)
    e, U = linalg.eigh(kernel, check_finite=False)
    largest = max(float(e[-1]), 0.0) if len(e) else 0.0
    unit = (design.shape[1] / 2 + len(e)) * _EPS * largest
    keep = e > unit
    e, U = e[keep], U[:, keep]
    target = root * (problem.target[:, 0] - level)
    along = U.T @ target
    rest = target - U @ along
    weighted = root[:, None] * U
    R = design.rmatvec(weighted) - np.outer(mean, weighted.sum(axis=0))
    return Spectrum(e, along, float(rest @ rest), R / np.sqrt(e), 1e3 * unit)
