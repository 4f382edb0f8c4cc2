r"""A problem evaluated at a point, with bounds on the rounding of every number.

With scores z = X w + b, derivatives u = l'(z), weights s and a_ij the magnitudes that the products
handle (:class:`~trueline.design.Accuracy`), writing ||v||_s for sqrt(sum_i s_i v_i^2) and c_j for
||a_j||_s:

    ||error of z||_s          <=  rho
                                  = (row_terms + 4) eps (sum_j c_j |w_j| + sqrt(S) |b| + ||y||_s)
    ||error of u||_s          <=  L rho                      L the loss's curvature bound, or the
                                                             largest curvature around z
    |error of sum_i s_i l_i|  <=  ||u||_s rho + L/2 rho^2 + (log2 n + 40) eps sum_i s_i |l_i|
                                  (sqrt(S) K rho in place of the first two terms and
                                  2 K sqrt(S) for u if slopes have a bound K, but no curvature)
    |error of (X^T S u)_j|    <=  c_j (L rho + (column_terms + 4) eps ||u||_s)
    |error of sum_i s_i u_i|  <=  sqrt(S) (L rho + (log2 n + 40) eps ||u||_s)

by the Cauchy-Schwarz inequality and the bounds of N. J. Higham, "Accuracy and Stability of
Numerical Algorithms", 2nd ed., sections 3.1 (products) and 4.2 (pairwise sums); S = sum_i s_i.

*Coefficients without a penalty* could gain where a dual point misses their condition. They need V =
-X_c^T (s u) = 0, and rounding leaves a little. Another point w' gains at most V.(w' - w) by it.
What is nearly as good as w has scores nearby, ||X_c (w' - w)||_s <= C, so that with the singular
values X_c = U diag(sigma) R^T, columns in units of their own size,

    V.(w' - w)  <=  C || diag(1 / sigma) R^T V ||.

Columns that are nearly copies of others have a tiny sigma: there a small V may hide a large gain,
and the bound says so. Where sigma is rounding, the columns depend on each other to working
precision: moving along that direction changes no score, and gains nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from trueline.certificates.base import Certificate
from trueline.design import Accuracy
from trueline.design.stacked import sums_at
from trueline.losses import Loss
from trueline.moments import Moments
from trueline.numerics.blas import run_strands
from trueline.penalties.group import BlockNorms
from trueline.problem import MomentsProblem, Problem

Array = NDArray[np.float64]

_EPS = float(np.finfo(np.float64).eps)
# Squares below the range of doubles vanish without a trace: claims stay above them.
_UNDERFLOW = 1e-290
# The checker of certificates works on dense blocks of so many rows.
_CHECKER_ROWS = 2048
# Rows of which losses and multipliers are formed at a time.
_BLOCK_ROWS = 8192
# Strands of blocks for the threads, and how many blocks are not worth any.
_STRANDS, _FEW_BLOCKS = 32, 4


def sum_rows(values: Array) -> Array:
    """Sum over the rows; NumPy sums pairwise only along contiguous memory."""
    return np.ascontiguousarray(values.T).sum(axis=1)


def sum_by_blocks(n: int, terms: Callable[[slice], Sequence[Array]]) -> list[Array]:
    """Sums over all rows of terms that are formed for some rows at a time.

    Nothing as long as the data is kept. A block is summed pairwise, and so are the blocks' sums:
    together that rounds no more than one sum over all rows.

    Parameters
    ----------
    n : int
        Number of rows.
    terms : callable
        From rows to arrays of shape (m, k).
    """
    if n <= 2 * _BLOCK_ROWS:
        return [sum_rows(term) for term in terms(slice(0, n))]

    def strand(starts: range) -> list[list[Array]]:
        return [
            [sum_rows(term) for term in terms(slice(start, min(start + _BLOCK_ROWS, n)))]
            for start in starts
        ]

    blocks = range(0, n, _BLOCK_ROWS)
    each = max(1, -(-len(blocks) // _STRANDS))
    strands = [blocks[first : first + each] for first in range(0, len(blocks), each)]
    found = run_strands(strand, strands) if len(blocks) > _FEW_BLOCKS else map(strand, strands)
    parts = [part for own in found for part in own]
    return [sum_rows(np.stack(own)) for own in zip(*parts, strict=True)]


def level_hessian(loss: Loss, hessian_terms: Array, s: Array) -> Array:
    """sum_i s_i l_i'', of shape (k, k): the second derivative by what is added to all scores."""
    k = hessian_terms.shape[1]
    if "multinomial" in loss.capabilities:  # diag(p) - p p^T, one product for all scores

        def whole(rows: slice) -> list[Array]:
            p = hessian_terms[rows]
            weighted = s[rows, None] * p
            H = -(p.T @ weighted)
            H[np.diag_indices(k)] = (weighted * (1.0 - p)).sum(axis=0)
            return [H.reshape(1, -1)]

        return sum_by_blocks(len(s), whole)[0].reshape(k, k)
    units = np.eye(k)

    def terms(rows: slice) -> list[Array]:
        own, h = s[rows], hessian_terms[rows]
        return [(own @ loss.hessian_product(h, unit[None, :]))[None] for unit in units]

    return np.stack(sum_by_blocks(len(s), terms))


@dataclass(frozen=True)
class Rounding:
    """What the bounds need and the coefficients do not change.

    Attributes
    ----------
    accuracy : Accuracy
        Of the design's products.
    mean : array of shape (d,)
        Weighted means of the columns, zero without an intercept.
    weight : float
        Sum of the weights.
    target_size : array of shape (k,)
        ||y||_s.
    rows : int
        Number of rows.
    spread : array of shape (d,), optional
        At least sqrt(sum_i s_i (x_ij - mean_j)^2), where it is known.
    farthest : float, optional
        At least the largest distance of a row from the means, where it is known.
    """

    accuracy: Accuracy
    mean: Array
    weight: float
    target_size: Array
    rows: int
    spread: Array | None = None
    farthest: float | None = None

    @classmethod
    def of(
        cls, problem: Problem, mean: Array | None = None, magnitude: Array | None = None
    ) -> Rounding:
        """One or two passes over the data, less what is known about its columns."""
        n, d = problem.design.shape
        design = problem.design
        if mean is None:
            mean = design.column_means(problem.weights) if problem.fit_intercept else np.zeros(d)
        return cls(
            accuracy=design.accuracy(problem.weights, magnitude),
            mean=mean,
            weight=problem.total_weight,
            target_size=np.sqrt(_sum_of_squares(problem)),
            rows=n,
        )

    def confirmable(self) -> Rounding:
        """Bounds no tighter than those of the checker, which knows nothing of strands.

        A claim that only our own products can support would hold and yet fail its check.
        """
        terms = float(confirmable_terms(self.accuracy.column_terms, self.rows))
        return replace(self, accuracy=self.accuracy._replace(column_terms=terms))

    @property
    def sums(self) -> float:
        """Relative rounding of a pairwise sum over the rows."""
        return float(np.log2(self.rows + 2) + 40) * _EPS

    @property
    def mean_error(self) -> Array:
        """Bound on the error of the means, whatever the order of their sums."""
        return (self.rows + 4) * _EPS * self.accuracy.magnitude / np.sqrt(self.weight)

    def scores(self, W: Array, b: Array) -> Array:
        """rho per target."""
        size = self.accuracy.magnitude @ np.abs(W) + np.sqrt(self.weight) * np.abs(b)
        return (self.accuracy.row_terms + 4) * _EPS * (size + self.target_size)

    def products(self, size: Array, row_error: Array | float = 0.0) -> Array:
        """Bound on the error of X^T S u, for ||u||_s = size and an error of u itself."""
        total = row_error + (self.accuracy.column_terms + 4) * _EPS * size
        return self.accuracy.magnitude[:, None] * total


def confirmable_terms(terms: float, rows: int | NDArray[np.intp]) -> Array:
    """So many additions one after the other in a sum over rows, or those of the checker if more."""
    return np.maximum(terms, np.minimum(rows, _CHECKER_ROWS) + rows / _CHECKER_ROWS + 8.0)


class Evaluation(NamedTuple):
    """A problem at a point: values per target, and bounds on their rounding.

    ``scores`` are X W + b, ``u`` the derivatives of the loss by row, ``size`` their weighted norms
    ||u||_s and ``row_error`` the bound on their own error; ``correlation`` is X^T S u, ``slope``
    sum_i s_i u_i.
    """

    objective: Array
    objective_rounding: Array
    u: Array
    size: Array
    row_error: Array
    correlation: Array
    correlation_rounding: Array
    slope: Array
    slope_rounding: Array
    scores: Array

    def at_best_intercept(
        self, rounding: Rounding, fit_intercept: bool
    ) -> tuple[Array, Array, Array, Array]:
        """X_c^T S u and the slope (zero without an intercept), each with a bound on its error."""
        mean, off = rounding.mean[:, None], rounding.mean_error[:, None]
        slope, slope_error = self.slope, self.slope_rounding
        if not fit_intercept:
            slope, slope_error = np.zeros_like(slope), np.zeros_like(slope)
        error = np.abs(self.correlation) + np.abs(mean * slope)
        error = self.correlation_rounding + 4 * _EPS * error
        error = error + off * np.abs(slope) + (np.abs(mean) + off) * slope_error
        return self.correlation - mean * slope, error, slope, slope_error


class GapProof:
    """A kind of proof that fits a problem: gaps at many points, and the certificate of one.

    Parameters
    ----------
    problem : Problem
    rounding : Rounding, optional
        The data's constants, if they are already known.
    """

    kind = ""
    #: Whether the proof is one for a problem.
    applies: Callable[[Problem], bool] = staticmethod(lambda problem: True)

    def __init__(self, problem: Problem, rounding: Rounding | None = None) -> None:
        self.problem = problem
        self.rounding = (rounding or Rounding.of(problem)).confirmable()

    def evaluate(self, W: Array, b: Array, scores: Array | None = None) -> Evaluation:
        """Objective and derivatives at a point: two products, one if the scores are known."""
        return evaluate(self.problem, self.rounding, W, b, scores)

    def gap(self, at: Evaluation, W: Array, b: Array) -> float:
        """The proven gap at an evaluated point, summed over the targets."""
        return self.certify(W, b, at).gap

    def certify(self, W: Array, b: Array, at: Evaluation | None = None) -> Certificate:
        """The certificate of a point, which is evaluated if it is not known."""
        raise NotImplementedError


def evaluate(
    problem: Problem, rounding: Rounding, W: Array, b: Array, scores: Array | None = None
) -> Evaluation:
    """Two products: scores, and the correlation of the columns with the derivatives.

    Of rows that are read batch by batch both come from one pass.
    """
    correlation: Array | None = None
    if scores is not None:
        z = scores
    elif problem.design.is_sequential:
        z, correlation = _in_one_pass(problem, W, b)
    else:
        z = problem.scores(W, b)
    u = np.empty(z.shape)
    weighted = u if problem.weights is None else np.empty(z.shape)

    def terms(rows: slice) -> Sequence[Array]:
        y, own = problem.target[rows], z[rows]
        losses = problem.weigh(problem.loss.value(y, own), rows)
        u[rows] = problem.loss.gradient(y, own)
        if weighted is not u:
            weighted[rows] = problem.weigh(u[rows], rows)
        return losses, np.abs(losses), weighted[rows] * u[rows], weighted[rows]

    total, magnitude, squares, slope = sum_by_blocks(problem.n_samples, terms)
    # The norm is used in bounds only; one part in a million covers its own rounding.
    size = np.sqrt(squares) * (1 + 1e-6)
    passed_on, row_error = _passed_on(problem, rounding, z, size, rounding.scores(W, b))
    objective, objective_rounding = _sum_up(problem, rounding, total, magnitude, W, passed_on)
    return Evaluation(
        objective=objective,
        objective_rounding=objective_rounding,
        u=u,
        size=size,
        row_error=row_error,
        correlation=problem.design.rmatvec(weighted) if correlation is None else correlation,
        correlation_rounding=rounding.products(size, row_error),
        slope=slope,
        slope_rounding=np.sqrt(rounding.weight) * (row_error + rounding.sums * size),
        scores=z,
    )


def _in_one_pass(problem: Problem, W: Array, b: Array) -> tuple[Array, Array]:
    """The scores, and the correlation of the columns with the weighted derivatives."""
    loss = problem.loss

    def derive(Z: Array, y: Array, s: Array | None) -> tuple[Array, None]:
        U = loss.gradient(y, Z + b)
        return U if s is None else np.where(s[:, None] > 0, s[:, None] * U, 0.0), None

    Z, correlation, _, _ = sums_at(problem.design, W, derive, problem.target, problem.weights)
    return Z + b, correlation


def _passed_on(
    problem: Problem, rounding: Rounding, z: Array, size: Array, score_error: Array
) -> tuple[Array, Array]:
    """What the rounding of the scores does to the sum of the losses, and to the derivatives."""
    curvature = _largest_curvature(problem, z, score_error)
    losses, slopes = through_the_loss(problem.loss, curvature, rounding.weight, size, score_error)
    if "log_link" in problem.loss.capabilities:
        # A slope is the difference of two terms of at most twice the curvature and the slope.
        slopes = slopes + 16 * _EPS * (2 * curvature * np.sqrt(rounding.weight) + size)
    return losses, slopes


def evaluate_objective(
    problem: Problem, rounding: Rounding, W: Array, b: Array, scores: Array | None = None
) -> tuple[Array, Array]:
    """The objective and a bound on its rounding: one product, none if the scores are known."""
    z = problem.scores(W, b) if scores is None else scores

    def losses(rows: slice) -> Sequence[Array]:
        own = problem.weigh(problem.loss.value(problem.target[rows], z[rows]), rows)
        return own, np.abs(own)

    passed_on = problem.loss.slope_bound * np.sqrt(rounding.weight) * rounding.scores(W, b)
    if not np.isfinite(problem.loss.slope_bound):
        u = problem.loss.gradient(problem.target, z)
        size = np.sqrt(sum_rows(problem.weigh(u) * u)) * (1 + 1e-6)
        passed_on, _ = _passed_on(problem, rounding, z, size, rounding.scores(W, b))
    total, magnitude = sum_by_blocks(problem.n_samples, losses)
    return _sum_up(problem, rounding, total, magnitude, W, passed_on)


def _sum_up(
    problem: Problem, rounding: Rounding, total: Array, size: Array, W: Array, passed_on: Array
) -> tuple[Array, Array]:
    """The objective from the sums of the losses and of their magnitudes, and its rounding.

    ``passed_on`` is what the rounding of the scores does to the sum.
    """
    penalty = problem.penalty.value_per_target(W)
    error = passed_on + rounding.sums * size
    error = error + (W.size + 32) * _EPS * np.abs(penalty) + _UNDERFLOW
    return total + penalty, error


def _sum_of_squares(problem: Problem) -> Array:
    """sum_i s_i y_i^2, for targets of the size that the loss takes them to have."""
    y, size = problem.target, problem.loss.target_size
    return sum_by_blocks(len(y), lambda rows: [problem.weigh(size(y[rows]) ** 2, rows)])[0]


def _largest_curvature(problem: Problem, z: Array, score_error: Array) -> Array | float:
    """The largest curvature that the losses take within the errors of the scores."""
    loss = problem.loss
    if not {"log_link", "nonconvex"} & loss.capabilities:
        return loss.curvature_bound
    least = 1.0 if problem.weights is None else float(problem.weights.min())
    reach = score_error / np.sqrt(least) if least > 0 else np.full_like(score_error, np.inf)
    most = loss.most_curvature(problem.target, z, np.broadcast_to(reach, z.shape))
    return np.asarray(most.max(axis=0, initial=0.0))


def through_the_loss(
    loss: Loss, curvature: Array | float, weight: Array | float, size: Array, score_error: Array
) -> tuple[Array, Array]:
    """What an error of the scores does to the sum of the losses, and to the derivatives."""
    steepest = loss.slope_bound * np.sqrt(weight)
    if "coupled" in loss.capabilities:  # an error of one score is felt by all of its row
        size, score_error = (np.full_like(v, np.sqrt((v**2).sum())) for v in (size, score_error))
    if not np.isfinite(curvature).all():
        return steepest * score_error, np.full_like(score_error, 2 * steepest)
    return size * score_error + 0.5 * curvature * score_error**2, curvature * score_error


# Scores whose norm differs by this many times that of the targets are still covered.
_RADIUS = 300.0
# Coefficients so many times larger are covered, where they are taken one by one.
_ONE_BY_ONE = 1000.0
# Eigenvalues of a correlation matrix above this are no rounding.
_CLEAR = 1e-9
# Singular values of the rows themselves are found for so many numbers; there is no bound otherwise.
_MOST_NUMBERS, _MOST_COLUMNS = 4_000_000, 4000


@dataclass(frozen=True)
class Directions:
    """Directions of the coefficients in which the scores change, with how much they do.

    Attributes
    ----------
    columns : array of int
        Those of m coefficients without a penalty.
    target_size, spread : arrays of shape (k,)
        Norms of the (weighted) targets, and about their means if there is an intercept.
    scale : array of shape (m,)
        Norms of the (centred, weighted) columns; one for a column that is constant.
    R : array of shape (m, r)
        The directions, in units of the columns.
    sigma : array of shape (r,)
        How much the scores change along them.
    is_known : bool
        Whether they could be told from rounding.
    """

    columns: NDArray[np.intp]
    target_size: Array
    spread: Array
    scale: Array
    R: Array
    sigma: Array
    is_known: bool = True

    @classmethod
    def of(cls, problem: Problem, free: NDArray[np.bool_]) -> Directions | None:
        """From the correlations of the columns; from the rows if columns are nearly dependent.

        None if no coefficient of shape (d, k) is free.
        """
        columns = np.flatnonzero(free.any(axis=1))
        design, m = problem.design, len(columns)
        if not m:
            return None
        sizes = columns, *_target_sizes(problem)
        nothing = cls(*sizes, np.ones(m), np.zeros((m, 0)), np.zeros(0), is_known=False)
        if m > _MOST_COLUMNS:
            return nothing
        size = design.column_squares(problem.weights, None)[columns]
        if not np.isfinite(size).all():
            return nothing
        # Fewer rows than columns have no Gram matrix of full rank.
        if design.shape[0] - problem.fit_intercept >= m:
            moments = Moments.from_rows(design, np.empty((problem.n_samples, 0)), problem.weights)
            if not problem.fit_intercept:
                moments = moments.about_zero()
            gram = moments.gram[np.ix_(columns, columns)]
            squares = gram.diagonal()
            if (squares > _CLEAR * size).all() and np.isfinite(gram).all():
                scale = np.sqrt(squares)
                values, R = np.linalg.eigh(gram / scale / scale[:, None])
                if values[0] > _CLEAR * m:
                    return cls(*sizes, scale, R, np.sqrt(values))
        if design.shape[0] * design.shape[1] > _MOST_NUMBERS:
            return nothing
        return cls._of_rows(problem, columns, np.sqrt(size))

    @classmethod
    def _of_rows(cls, problem: Problem, columns: NDArray[np.intp], size: Array) -> Directions:
        """The same from rows about the means, for columns of given norms before that."""
        X = problem.design.toarray()[:, columns]
        if problem.fit_intercept:
            X = X - X[:1]
            X = X - np.average(X, axis=0, weights=problem.weights)
        if problem.weights is not None:
            X = X * np.sqrt(problem.weights)[:, None]
        scale = np.linalg.norm(X, axis=0)
        varies = scale > 4 * _EPS * size
        scale = np.where(varies, scale, 1.0)
        # The triangular factor has the same directions, for a third of the work.
        triangle = np.linalg.qr(np.where(varies, X, 0.0) / scale, mode="r")
        _, sigma, Rt = np.linalg.svd(triangle, full_matrices=False)
        # Entries are known up to the rounding of the columns before they were centred.
        lost = float(np.max(size / scale, initial=1.0, where=varies))
        kept = sigma > 8 * max(X.shape) ** 0.5 * _EPS * lost
        return cls(columns, *_target_sizes(problem), scale, Rt[kept].T, sigma[kept])

    def gain(self, V: Array, error: Array, W: Array, farthest: float = np.inf) -> Array:
        """The bound of the module's text per target, for V up to an error; inf if unknown.

        Whoever checks it may have to take coefficients one by one: the bound allows for that, up to
        some times the present ones W and those with which a column alone would fit the target.
        ``farthest`` is what C is known not to exceed.
        """
        V, error, W = V[self.columns], error[self.columns], W[self.columns]
        if not self.is_known:
            return np.where((np.abs(V) + error).any(axis=0), np.inf, 0.0)
        unit, unsure = V / self.scale[:, None], error / self.scale[:, None]
        along = np.abs(self.R.T @ unit) + np.abs(self.R).T @ unsure
        norms = np.sqrt(np.sum((along / self.sigma[:, None]) ** 2, axis=0))
        scores = self.sigma[:, None] * (self.R.T @ (W * self.scale[:, None]))
        covered = _RADIUS * (self.spread + np.sqrt(np.sum(scores**2, axis=0)))
        reach = np.abs(W) + self.target_size / self.scale[:, None]
        one_by_one = np.sum((np.abs(V) + error) * reach, axis=0)
        covered = np.minimum(covered, farthest + norms)  # whoever checks moves u by these norms
        return np.maximum(covered * norms, _ONE_BY_ONE * one_by_one)


def _target_sizes(problem: Problem) -> tuple[Array, Array]:
    """||y||_s per target, and about the mean if there is an intercept."""
    y = problem.target
    size = np.sqrt(problem.weigh(y**2).sum(axis=0))
    if not problem.fit_intercept:
        return size, size
    mean = problem.weigh(y).sum(axis=0) / problem.total_weight
    return size, np.sqrt(problem.weigh((y - mean) ** 2).sum(axis=0))


class Free(NamedTuple):
    """Coefficients at a point, and which of them no penalty holds.

    Attributes
    ----------
    mask : array of shape (d, k)
    directions : Directions, optional
        Of their columns, if there are any.
    W : array of shape (d, k)
        All coefficients.
    farthest : float
        How far the scores of what is no worse can be from these.
    """

    mask: NDArray[np.bool_]
    directions: Directions | None
    W: Array
    farthest: float = np.inf

    @classmethod
    def of(
        cls, problem: Problem, mask: NDArray[np.bool_], W: Array, ceiling: float = np.inf
    ) -> Free:
        """With the directions, which cost a pass over the data.

        ``ceiling`` is at least the objective, where it is known. With sum_i s_i |r_i| <= R for the
        residuals r of what is no worse, their weighted norm is at most R / (min s)^1/2: twice that
        bounds the distance of two such scores. Whoever checks it moves u instead, each by at most
        (m / s_i)^1/2 times what all of them move, which costs no more than m^1/2 times as much.
        """
        s = problem.weights
        least = 1.0 if s is None else float(s[s > 0].min(initial=np.inf))
        total, farthest = problem.total_weight, np.inf
        if mask.all():
            R = problem.loss.most_residual(ceiling, total, float(np.sqrt(total)), 1.0)
            farthest = (1.1 * np.sqrt(mask.shape[0]) + 3.0) * float(R / np.sqrt(least))
        return cls(mask, Directions.of(problem, mask), W, farthest)

    def gain(self, V: Array, error: Array) -> Array:
        """What they could gain per target, as their V does not vanish."""
        if self.directions is None:
            return np.zeros(V.shape[1])
        V, error = np.where(self.mask, V, 0.0), np.where(self.mask, error, 0.0)
        return self.directions.gain(V, error, self.W, self.farthest)


def open_directions(problem: Problem) -> Directions | None:
    """The directions of all columns, if there is no penalty at all."""
    shape = (problem.n_features, problem.n_targets)
    return Directions.of(problem, np.full(shape, "none" in problem.penalty.capabilities))


def unpenalised(problem: Problem | MomentsProblem) -> NDArray[np.bool_]:
    """Which coefficients are free of any penalty, of shape (d, k): their V must vanish."""
    shape = (problem.n_features, problem.n_targets)
    penalty = problem.penalty
    if isinstance(penalty, BlockNorms):
        return penalty.unpenalised(shape)
    if "coordinates" not in penalty.capabilities:
        return np.zeros(shape, dtype=bool)
    endless = np.isinf(penalty.lower) & np.isinf(penalty.upper)
    free = (np.asarray(penalty.linear) == 0) & (np.asarray(penalty.curvature) == 0) & endless
    return np.broadcast_to(free, shape)


def is_free(problem: Problem, error: Array) -> NDArray[np.bool_]:
    """Coefficients whose condition is V = 0: no penalty holds them, or one lost in rounding.

    An absolute value of strength l keeps V within [-l, l]; where V itself is known no better than
    that, it holds nothing.
    """
    shape = (problem.n_features, problem.n_targets)
    linear = np.broadcast_to(problem.penalty.linear, shape)
    curvature = np.broadcast_to(problem.penalty.curvature, shape)
    return (curvature == 0) & (linear <= 2 * error)
