r"""Between the data and the rows that are exchanged.

The residuals r of least squares take the place of the targets, and the rows are written in
coordinates in which least squares is trivial:

    y_i - x_i.w - b = r_i - q_i.v,     q_i = T^T a_i,     a_ij = (x_ij - mean_j) / scale_j

where the last of a_i is 1 (with an intercept) and T makes sum_i q_i q_i^T equal to n I. Neither
milliseconds since 1970 nor nearly dependent columns disturb anything then, and what is exchanged
is of the size of the errors. Where columns depend on each other, some of them suffice; of all
coefficients with the same predictions those of least norm are taken at the end.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cholesky, lapack, qr, solve_triangular

from trueline.design import Design
from trueline.moments import Moments
from trueline.numerics.precision import two_product
from trueline.problem import Problem

__all__ = ["Rows", "counted"]

Array = NDArray[np.float64]
Indices = NDArray[np.intp]

_EPS = float(np.finfo(np.float64).eps)
# Pivots of a Gram matrix below this may be rounding: an orthogonal factorisation decides.
_DOUBTFUL, _DEPENDENT = 1e-10, 1e-11
# Means so many spreads away cost that many units of rounding unless they are subtracted first.
_FAR = 1e3
_BLOCK_ROWS = 4096


def counted(problem: Problem) -> tuple[Design, Array, Indices]:
    """Design and targets of the rows with positive weight, and their places."""
    weights = problem.weights
    if weights is None or weights.all():
        return problem.design, problem.target, np.arange(problem.n_samples)
    present = np.flatnonzero(weights)
    return problem.design.take(present), problem.target[present], present


@dataclass(frozen=True)
class Rows:
    """One target in the coordinates of the module's text.

    Attributes
    ----------
    design : Design
    residual : array of shape (n,)
        r, of least squares.
    mean, scale : arrays of shape (d,)
        The means are zero without an intercept.
    kept : array of int
        Columns that vary and do not depend on others.
    transform : array of shape (p, p)
        T.
    fit_intercept : bool
    start : tuple of array and float
        Coefficients and level of least squares, in terms of x - mean.
    row_space : array of shape (rank, d), optional
        Rows that span those of x - mean, where columns depend on each other.
    """

    design: Design
    residual: Array
    mean: Array
    scale: Array
    kept: Indices
    transform: Array
    fit_intercept: bool
    start: tuple[Array, float]
    row_space: Array | None = None

    @classmethod
    def of(cls, design: Design, y: Array, fit_intercept: bool) -> Rows:
        """Least squares, and the coordinates in which it is trivial: a few passes."""
        n, d = design.shape
        moments = Moments.from_rows(design, y[:, None])
        moments = moments if fit_intercept else moments.about_zero()
        mean = moments.x_mean if fit_intercept else np.zeros(d)
        scale = np.sqrt(moments.gram.diagonal() / n)
        # Sums of sparse columns are centred afterwards: far from zero that leaves but noise.
        is_noisy = design.is_sparse and bool((_FAR * scale < np.abs(mean)).any())
        scale = _spread(design, mean) if is_noisy else scale
        varying = np.flatnonzero(scale > 64 * _EPS * np.abs(mean))
        gram = None
        if not is_noisy and 0 < len(varying) < n:
            size = scale[varying] * np.sqrt(n)
            gram = moments.gram[np.ix_(varying, varying)] / np.outer(size, size)
        # Rows about their mean add up to zero: one of them depends on the others.
        most = max(n - int(fit_intercept), 0)
        kept, R, row_space = _factor(design, mean, scale, varying, gram, most)
        p = len(kept) + fit_intercept
        transform = np.eye(p)
        m = len(kept)
        transform[:m, :m] = solve_triangular(R, np.eye(m)) if m else 0.0
        nothing = (np.zeros(d), 0.0)
        of_means = cls(design, y, mean, scale, kept, transform, fit_intercept, nothing, row_space)
        level = float(moments.y_mean[0]) if fit_intercept else 0.0
        cross = moments.cross[kept, 0] / scale[kept] / n
        v = np.append(transform[:m, :m].T @ cross, [level] * fit_intercept)
        return replace(of_means, residual=of_means.errors(v), start=of_means.centred(v))

    @property
    def size(self) -> int:
        """Number of coordinates v."""
        return len(self.transform)

    def centred(self, v: Array) -> tuple[Array, float]:
        """Coefficients and level of v, in terms of x - mean."""
        standard = self.transform @ v
        w = np.zeros(len(self.mean))
        w[self.kept] = standard[: len(self.kept)] / self.scale[self.kept]
        return w, float(standard[-1]) if self.fit_intercept else 0.0

    def coefficients(self, v: Array) -> tuple[Array, float]:
        """w and b of the model whose errors are r - q.v; the intercept is rounded once."""
        w, level = self.centred(v)
        w = self._of_least_norm(self.start[0] + w)
        if not self.fit_intercept:
            return w, 0.0
        products, rest = two_product(self.mean, -w)
        return w, math.fsum([self.start[1], level, *products.tolist(), *rest.tolist()])

    def _of_least_norm(self, w: Array) -> Array:
        """The smallest coefficients with the same predictions.

        With X_c = Q R that is min ||w|| such that R w = g. R^T is factored with pivoting, its rows
        in descending order, which keeps units of very different sizes apart (A. J. Cox and
        N. J. Higham, "Stability of Householder QR factorization for weighted least squares
        problems", 1998).
        """
        R = self.row_space
        if R is None:
            return w
        order = np.argsort(-self.scale, kind="stable")
        Q, T, pivots = qr(R[:, order].T, mode="economic", pivoting=True, check_finite=False)
        goal, least = R @ w, np.zeros_like(w)
        for _ in range(3):  # later rounds remove the rounding of the first
            missed = solve_triangular(T, (goal - R @ least)[pivots], trans="T")
            least[order] += Q @ missed
        unit = 64 * _EPS * float((np.abs(R) @ np.abs(w)).max())
        return least if (np.abs(goal - R @ least) <= unit).all() else w

    def errors(self, v: Array) -> Array:
        """r_i - q_i.v for all rows: one pass."""
        w, level = self.centred(v)
        far = np.abs(self.mean[self.kept]) > _FAR * self.scale[self.kept]
        if far.any():
            out = np.empty(self.design.shape[0])
            for where, block in self.design.blocks(_BLOCK_ROWS):
                out[where] = (block - self.mean) @ w
        else:
            out = self.design.matvec(w)
            level = level - float(self.mean @ w)
        np.subtract(self.residual, out, out=out)
        out -= level
        return out

    def gather(self, rows: Indices | slice) -> Array:
        """Some of the rows q_i, dense."""
        X = self.design.take(rows).toarray()
        A = np.ones((len(X), self.size))
        m = len(self.kept)
        A[:, :m] = (X[:, self.kept] - self.mean[self.kept]) / self.scale[self.kept]
        return A @ self.transform

    def products(self, directions: Array) -> Array:
        """q_i.direction for all rows and several directions: one pass."""
        standard = self.transform @ directions
        W = np.zeros((len(self.mean), directions.shape[1]))
        W[self.kept] = standard[: len(self.kept)] / self.scale[self.kept, None]
        level = standard[-1] if self.fit_intercept else 0.0
        return self.design.matvec(W) - self.mean @ W + level


def _spread(design: Design, mean: Array) -> Array:
    """Standard deviations of the columns, centred before they are squared."""
    total = np.zeros(design.shape[1])
    for _, block in design.blocks(_BLOCK_ROWS):
        total += ((block - mean) ** 2).sum(axis=0)
    return np.sqrt(total / design.shape[0])


def _factor(
    design: Design, mean: Array, scale: Array, varying: Indices, gram: Array | None, most: int
) -> tuple[Indices, Array, Array | None]:
    """Independent columns, ``most`` at most, R upper triangular with R^T R their Gram over n.

    And, if these are not all columns, a basis of the rows.
    """
    if gram is not None and lapack.dpstrf(gram, tol=_DOUBTFUL)[2] == len(varying):
        return varying, cholesky(gram, check_finite=False), None
    R = _triangle(design, mean, scale, varying)
    if not R.size or most == 0:
        return varying[:0], np.zeros((0, 0)), None
    reduced, order = qr(R, mode="r", pivoting=True, check_finite=False)
    size = np.abs(reduced.diagonal())
    rank = min(int(np.count_nonzero(size > _DEPENDENT * size.max(initial=0.0))), most)
    own = np.sort(order[:rank])
    R_own = qr(R[:, own], mode="r", check_finite=False)[0][:rank] / np.sqrt(design.shape[0])
    if rank == len(varying):
        return varying, R_own, None
    rows = np.zeros((rank, design.shape[1]))
    rows[:, varying[order]] = reduced[:rank] * scale[varying[order]]
    return varying[own], R_own, rows


def _triangle(design: Design, mean: Array, scale: Array, columns: Indices) -> Array:
    """The triangular factor of the standardised columns, block by block."""
    R = np.zeros((0, len(columns)))
    for _, block in design.blocks(max(_BLOCK_ROWS, 4 * len(columns))):
        A = (block[:, columns] - mean[columns]) / scale[columns]
        whole = qr(np.concatenate([R, A]), mode="r", overwrite_a=True, check_finite=False)[0]
        R = whole[: len(columns)]
    return R
