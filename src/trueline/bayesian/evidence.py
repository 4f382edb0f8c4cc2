"""The evidence of ridge regression, and the precisions that maximise it.

The design is rotated so that ridge regression of any strength is one division per direction.

With V = S^{1/2} (X - m) = U diag(sqrt(e)) R^T and t = S^{1/2} (y - q), q_k = u_k.t,

    w(r) = R [ sqrt(e_k) q_k / (e_k + r) ],
    |V w - t|^2 = outside + sum_k (q_k r / (e_k + r))^2,       outside = |t|^2 - |q|^2.

Tall data are rotated by the eigenvectors of the Gram matrix, wide ones by those of the kernel
matrix; where the squares of these matrices would cost digits that matter, by the singular vectors
of the rows themselves.

With noise of precision alpha and coefficients of precision lambda, both with gamma priors (shapes
a1, l1 and rates a2, l2), the log evidence of n rows with the spectrum e is

    l1 log(lambda) - l2 lambda + a1 log(alpha) - a2 alpha
    + 1/2 [ d log(lambda) + n log(alpha) - alpha |y - X w|^2 - lambda |w|^2
            - sum_j log(lambda + alpha e_j) - n log(2 pi) ]

at w = w(lambda / alpha). Setting its derivatives to zero gives the fixed point that is iterated,
with gamma the number of coefficients that the data determine
(D. J. C. MacKay, "Bayesian interpolation", Neural Comput. 4 (1992) 415-447;
M. E. Tipping, J. Mach. Learn. Res. 1 (2001) 211-244):

    gamma  = sum_k alpha e_k / (lambda + alpha e_k)
    lambda = (gamma + 2 l1) / (|w|^2 + 2 l2),      alpha = (n - gamma + 2 a1) / (|y - X w|^2 + 2 a2)

Every round costs the number of columns squared at most; the rows are not read again.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from trueline.moments import Moments
from trueline.numerics.blas import svd
from trueline.problem import Problem

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
    def of(cls, problem: Problem) -> Spectrum:
        """Rotate, by the smaller of the two square matrices."""
        n, d = problem.design.shape
        return _tall(problem) if n > d else _wide(problem)

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


def _tall(problem: Problem) -> Spectrum:
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


@dataclass(frozen=True)
class Hyperprior:
    """Shapes and rates of the gamma priors of the noise's and the coefficients' precision."""

    noise_shape: float
    noise_rate: float
    coef_shape: float
    coef_rate: float


@dataclass(frozen=True)
class Maximum:
    """Where the fixed point came to rest.

    Attributes
    ----------
    alpha, lambda_ : float
        Precisions of noise and coefficients.
    coef : array of shape (d,)
        The posterior mean for them.
    n_iter : int
    scores : list of float
        The log evidence before every round and at the end, if asked for.
    settled : bool
        Whether the coefficients moved by less than the tolerance in the last round.
    """

    alpha: float
    lambda_: float
    coef: Array
    n_iter: int
    scores: list[float]
    settled: bool


def maximise_evidence(
    spectrum: Spectrum,
    rows: float,
    alpha: float,
    lambda_: float,
    prior: Hyperprior,
    max_iter: int,
    tol: float,
    with_scores: bool,
) -> Maximum:
    """Iterate the fixed point until the coefficients move by less than tol, summed up.

    Parameters
    ----------
    spectrum : Spectrum
    rows : float
        n, the sum of the weights.
    alpha, lambda_ : float
        Where to start.
    prior : Hyperprior
    max_iter : int
    tol : float
    with_scores : bool
    """
    e = spectrum.values
    before = None
    scores: list[float] = []
    settled = False
    n_iter = 0
    while n_iter < max_iter:
        n_iter += 1
        strength = lambda_ / alpha
        coef = spectrum.coefficients(strength)
        norm, error = spectrum.squares(strength)
        if with_scores:
            scores.append(log_evidence(spectrum, rows, alpha, lambda_, prior))
        gamma = float((alpha * e / (lambda_ + alpha * e)).sum())
        lambda_ = (gamma + 2 * prior.coef_shape) / (norm + 2 * prior.coef_rate)
        alpha = (rows - gamma + 2 * prior.noise_shape) / (error + 2 * prior.noise_rate)
        if not (0 < alpha < math.inf and 0 < lambda_ < math.inf):
            raise ValueError(
                f"The precisions of noise and coefficients became {alpha:.3g} and {lambda_:.3g}: "
                "the target is fitted without any error, or is constant. Give the gamma priors "
                "positive rates (alpha_2, lambda_2) and shapes (alpha_1, lambda_1)."
            )
        if before is not None and float(np.abs(before - coef).sum()) < tol:
            settled = True
            break
        before = coef
    if with_scores:
        scores.append(log_evidence(spectrum, rows, alpha, lambda_, prior))
    coef = spectrum.coefficients(lambda_ / alpha)
    return Maximum(alpha, lambda_, coef, n_iter, scores, settled)


def log_evidence(
    spectrum: Spectrum, rows: float, alpha: float, lambda_: float, prior: Hyperprior
) -> float:
    """The log evidence of the module's text."""
    norm, error = spectrum.squares(lambda_ / alpha)
    determined = spectrum.values
    flat = len(spectrum.vectors) - len(determined)  # directions of which the rows say nothing
    determinant = np.log(lambda_ + alpha * determined).sum() + flat * math.log(lambda_)
    value = prior.coef_shape * math.log(lambda_) - prior.coef_rate * lambda_
    value += prior.noise_shape * math.log(alpha) - prior.noise_rate * alpha
    value += 0.5 * (
        len(spectrum.vectors) * math.log(lambda_)
        + rows * math.log(alpha)
        - alpha * error
        - lambda_ * norm
        - float(determinant)
        - rows * math.log(2 * math.pi)
    )
    return value


def log_evidence_gradient(
    spectrum: Spectrum, rows: float, alpha: float, lambda_: float, prior: Hyperprior
) -> Array:
    """Derivatives of the log evidence in log(alpha) and log(lambda)."""
    norm, error = spectrum.squares(lambda_ / alpha)
    e = spectrum.values
    gamma = float((alpha * e / (lambda_ + alpha * e)).sum())
    in_alpha = 0.5 * (rows - gamma - alpha * error) + prior.noise_shape - prior.noise_rate * alpha
    in_lambda = 0.5 * (gamma - lambda_ * norm) + prior.coef_shape - prior.coef_rate * lambda_
    return np.array([in_alpha, in_lambda])
