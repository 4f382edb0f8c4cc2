r"""References of p + 1 rows, the exchange of one row for another, and the rows of the data.

Rows q_i of p coordinates, targets r_i. A reference is p + 1 rows of rank p; up to a factor there is
one lambda with sum_i lambda_i q_i = 0 over them. With sigma_i = sign(lambda_i) and
sum_i abs(lambda_i) = 1 the system

    sigma_i q_i.v + h = sigma_i r_i            for the rows of the reference

has one solution: errors of equal magnitude h, which no v can bring below h on all of these rows,
for sum_i lambda_i (r_i - q_i.v) = h whatever v is. If no other row errs by more than h, v is
optimal. Otherwise the row that errs most enters, and the ratio test decides which row leaves so
that the multipliers keep their signs; h rises by the share of the new row in what it errs too much
(E. Stiefel, "Ueber diskrete und lineare Tschebyscheff-Approximationen", Numer. Math. 1 (1959)
1-28). This is the simplex method on the dual linear program, whose basis matrix B has the columns
(sigma_i q_i, 1) and whose solution is B lambda = (0, ..., 0, 1) with lambda >= 0.

Where multipliers vanish h may stay as it is. A right hand side (0, ..., 0, 1) + e B delta with
random delta > 0 and infinitely small e has no such steps, so that nothing can cycle (A. Charnes,
"Optimality and degeneracy in linear programming", Econometrica 20 (1952) 160-170): ties of the
ratio test are broken by the same test on delta. Where rounding makes a delta negative it is drawn
anew.

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
from trueline.numerics.jit import kernel
from trueline.numerics.precision import two_product
from trueline.problem import Problem
from trueline.solvers.dual_coordinate_descent.kernels import random_below

Array = NDArray[np.float64]
Indices = NDArray[np.intp]

# Multipliers as negative as this are not rounding of zero.
_NEGATIVE = 1e-9
# Exchanges after which the inverse is computed afresh.
_REFACTOR = 100


class Reference:
    """A reference among working rows, exchanged until none of them errs more.

    Parameters
    ----------
    Q : array of shape (m, p)
    r : array of shape (m,)
    rows : array of int of shape (p + 1,)
        Which of the working rows, of rank p.

    Attributes
    ----------
    Q, r : arrays
        The working rows; :meth:`extend` adds more.
    rows : array of int
    signs : array of shape (p + 1,)
    multipliers : array of shape (p + 1,)
        lambda >= 0; with their signs they are ``signs * multipliers``.
    v : array of shape (p,)
    level : float
        h.
    exchanges : int
    """

    def __init__(self, Q: Array, r: Array, rows: Indices) -> None:
        self.Q, self.r, self.rows = np.ascontiguousarray(Q), r, rows.copy()
        self.exchanges = 0
        self._ease = _ease(Q)
        null = _null_vector(Q[rows])
        null[np.abs(null) <= ZERO] = 0.0
        if null @ r[rows] < 0:
            null = -null
        self.signs = np.where(null < 0, -1.0, 1.0)
        self._delta = np.random.default_rng(0).uniform(0.5, 1.0, len(rows))
        self._state = np.array([1], dtype=np.uint64)
        self._factor()

    def _basis(self) -> Array:
        """B of the module's text."""
        signed = self.signs[:, None] * self.Q[self.rows]
        return np.concatenate([signed, np.ones((len(signed), 1))], axis=1).T

    def _factor(self) -> None:
        """Inverse, multipliers and solution of the reference, without a history."""
        self._inverse = np.ascontiguousarray(np.linalg.inv(self._basis()))
        multipliers = self._inverse[:, -1].copy()
        if (multipliers < -_NEGATIVE).any():
            # Rounding has led astray; with other signs every reference is one all the same.
            null = _null_vector(self.Q[self.rows])
            null = -null if null @ self.signs < 0 else null
            self.signs = np.where(np.abs(null) <= ZERO, self.signs, np.sign(null))
            self._inverse = np.ascontiguousarray(np.linalg.inv(self._basis()))
            multipliers = np.abs(null)
        self.multipliers = np.where(multipliers <= ZERO, 0.0, multipliers)
        self._solve()

    def _solve(self) -> None:
        solution = (self.signs * self.r[self.rows]) @ self._inverse
        self.v, self.level = solution[:-1], float(solution[-1])

    def polish(self) -> None:
        """The exact level and coordinates of the reference, to rounding."""
        self._factor()
        Q, r = self.Q[self.rows], self.r[self.rows]
        for _ in range(2):
            missed = self.signs * (r - Q @ self.v) - self.level
            step = missed @ self._inverse
            self.v, self.level = self.v + step[:-1], self.level + float(step[-1])

    def extend(self, Q: Array, r: Array) -> None:
        """More working rows."""
        self.Q, self.r = np.concatenate([self.Q, Q]), np.concatenate([self.r, r])
        self._ease = _ease(self.Q)

    def optimise(self, noise: float, most: int) -> bool:
        """Exchange until no working row errs by more than the level and the noise.

        Returns False if that took more than ``most`` exchanges.
        """
        while most > 0:
            done = exchange_rows(
                self.Q,
                self.r,
                self._ease,
                noise,
                self._inverse,
                self.rows,
                self.signs,
                self.multipliers,
                self._delta,
                self._state,
                min(most, _REFACTOR),
            )
            if done == 0:
                return True
            self.exchanges += done
            most -= done
            self._factor()  # look again with an inverse without a history
        return False


def _ease(Q: Array) -> Array:
    """1 / ||(q_i, 1)||: the distance of v and h from a row per unit of its error."""
    return 1.0 / np.sqrt(1.0 + np.einsum("ij,ij->i", Q, Q))


def _null_vector(Q: Array) -> Array:
    """lambda with Q^T lambda = 0 and magnitudes that sum to one."""
    full = np.linalg.qr(Q, mode="complete")[0][:, -1]
    return full / np.abs(full).sum()


# Multipliers sum to one: below this they are rounding.
ZERO = 1e-13
# By how much delta (between 0.5 and 1 at first) may be missed for the sake of a large pivot.
_SLACK = 1e-3
# Entries of a column of the tableau below this, relative to the largest, are no pivots.
_PIVOT = 1e-7
_FINENESS = 1 << 30


@kernel(reassociate=True)
def exchange_rows(
    Q: Array,
    r: Array,
    ease: Array,
    noise: float,
    inverse: Array,
    rows: Indices,
    signs: Array,
    multipliers: Array,
    delta: Array,
    state: NDArray[np.uint64],
    most: int,
) -> int:
    """Up to so many exchanges, fewer if no working row errs more than the reference.

    The arrays are those of :class:`~trueline.solvers.chebyshev.reference.Reference`; what describes
    the reference is changed in place.

    Returns
    -------
    exchanges : int
    """
    p = Q.shape[1]
    solution, column = np.empty(p + 1), np.empty(p + 1)
    for count in range(most):
        _solve(inverse, rows, signs, r, solution)
        level = float(solution[p])
        enters, sign = _enters(Q, r, ease, solution, level + noise)
        is_in = enters < 0
        for i in range(p + 1):
            is_in = is_in or rows[i] == enters
        if is_in:
            return count
        for i in range(p + 1):
            total = inverse[i, p]
            for j in range(p):
                total += inverse[i, j] * (sign * Q[enters, j])
            column[i] = total
        leaves = _leaves(column, multipliers, delta)
        _move(column, leaves, multipliers, delta, state)
        pivot = column[leaves]
        for j in range(p + 1):
            inverse[leaves, j] /= pivot
        for i in range(p + 1):
            if i != leaves and column[i] != 0.0:
                for j in range(p + 1):
                    inverse[i, j] -= column[i] * inverse[leaves, j]
        rows[leaves], signs[leaves] = enters, sign
    return most


@kernel(reassociate=True)
def _solve(inverse: Array, rows: Indices, signs: Array, r: Array, solution: Array) -> None:
    """v and the level: (sigma_i r_i) times the inverse."""
    solution[:] = 0.0
    for i in range(len(rows)):
        target = signs[i] * r[rows[i]]
        for j in range(len(solution)):
            solution[j] += target * inverse[i, j]


@kernel(reassociate=True)
def _enters(Q: Array, r: Array, ease: Array, solution: Array, level: float) -> tuple[int, float]:
    """The row that errs by more than the level, most easily mended, and its sign; -1 for none.

    A long row errs much for little: what counts is how far v is from where it does not.
    """
    enters, sign, largest = -1, 1.0, 0.0
    for i in range(Q.shape[0]):
        error = r[i]
        for j in range(Q.shape[1]):
            error -= Q[i, j] * solution[j]
        gain = (abs(error) - level) * ease[i]
        if gain > largest:
            enters, largest, sign = i, gain, 1.0 if error > 0.0 else -1.0
    return enters, sign


@kernel
def _leaves(column: Array, multipliers: Array, delta: Array) -> int:
    """The ratio test: multipliers - share column >= 0, ties by delta.

    Both tests allow for a little too much, and of those that then come into question the largest
    pivot is taken (P. M. J. Harris, Math. Program. 5 (1973) 1-28).
    """
    # Loops: the largest entry of an array takes Numba half a second to compile.
    largest, top = 0.0, 0
    for i in range(len(column)):
        largest = max(largest, abs(column[i]))
        top = i if column[i] > column[top] else top
    least = _PIVOT * largest
    nearest, reach = np.inf, np.inf
    for i in range(len(column)):
        if column[i] > least:
            nearest = min(nearest, multipliers[i] / column[i])
            reach = min(reach, (multipliers[i] + ZERO) / column[i])
    if nearest == np.inf:
        return top
    first = max(nearest, reach)
    nearest, reach = np.inf, np.inf
    for i in range(len(column)):
        if column[i] > least and multipliers[i] / column[i] <= first:
            own = max(delta[i], 0.0)
            nearest = min(nearest, own / column[i])
            reach = min(reach, (own + _SLACK) / column[i])
    second = max(nearest, reach)
    found, largest = -1, 0.0
    for i in range(len(column)):
        if column[i] > max(least, largest) and multipliers[i] / column[i] <= first:
            own = max(delta[i], 0.0)
            if own / column[i] <= second:
                found, largest = i, column[i]
    return found


@kernel
def _move(
    column: Array, leaves: int, multipliers: Array, delta: Array, state: NDArray[np.uint64]
) -> None:
    """Multipliers and deltas after the exchange; deltas that rounding led astray are drawn anew."""
    share = multipliers[leaves] / column[leaves]
    tiny = max(delta[leaves], 0.0) / column[leaves]
    for i in range(len(column)):
        multipliers[i] -= share * column[i]
        if multipliers[i] <= ZERO:
            multipliers[i] = 0.0
        delta[i] -= tiny * column[i]
    multipliers[leaves], delta[leaves] = share, tiny
    for i in range(len(column)):
        if multipliers[i] == 0.0 and delta[i] <= 0.0:
            delta[i] = 0.5 + 0.5 * random_below(state, _FINENESS) / _FINENESS


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
