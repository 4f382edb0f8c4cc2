r"""A problem evaluated at a point, with bounds on the rounding of every number.

With scores z = X w + b, derivatives u = l'(z), weights s and a_ij the magnitudes that the products
handle (:class:`~trueline.design.Accuracy`), writing ||v||_s for sqrt(sum_i s_i v_i^2) and c_j for
||a_j||_s:

    ||error of z||_s          <=  rho
                                  = (row_terms + 4) eps (sum_j c_j |w_j| + sqrt(S) |b| + ||y||_s)
    ||error of u||_s          <=  L rho                      L the loss's curvature bound, or the
                                                             most that rows bend around z
    |error of sum_i s_i l_i|  <=  ||u||_s rho + L/2 rho^2 + (log2 n + 40) eps sum_i s_i |l_i|
                                  (sqrt(S) K rho in place of the first two terms and
                                  2 K sqrt(S) for u if slopes have a bound K, but no curvature)
    |error of (X^T S u)_j|    <=  c_j (L rho + (column_terms + 4) eps ||u||_s)
    |error of sum_i s_i u_i|  <=  sqrt(S) (L rho + (log2 n + 40) eps ||u||_s)

by the Cauchy-Schwarz inequality and the bounds of N. J. Higham, "Accuracy and Stability of
Numerical Algorithms", 2nd ed., sections 3.1 (products) and 4.2 (pairwise sums); S = sum_i s_i.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from trueline.certificates.base import Certificate
from trueline.design import Accuracy
from trueline.losses import Loss
from trueline.numerics.blas import run_strands
from trueline.problem import Problem

__all__ = [
    "Evaluation",
    "GapProof",
    "Rounding",
    "confirmable_terms",
    "evaluate",
    "evaluate_objective",
    "sum_by_blocks",
    "sum_rows",
    "through_the_loss",
]

Array = NDArray[np.float64]

_EPS = float(np.finfo(np.float64).eps)
# Squares below the range of doubles vanish without a trace: claims stay above them.
_UNDERFLOW = 1e-290
# The checker of certificates works on dense blocks of so many rows.
_CHECKER_ROWS = 2048
# Rows of which losses and multipliers are formed at a time.
_BLOCK_ROWS = 8192
# Strands of blocks for the threads, and how many blocks are not worth any.
_STRANDS, _FEW_BLOCKS = 8, 4


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
    """

    accuracy: Accuracy
    mean: Array
    weight: float
    target_size: Array
    rows: int

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

    def evaluate(self, W: Array, b: Array) -> Evaluation:
        """Objective and derivatives at a point: two products."""
        return evaluate(self.problem, self.rounding, W, b)

    def gap(self, at: Evaluation, W: Array, b: Array) -> float:
        """The proven gap at an evaluated point, summed over the targets."""
        return self.certify(W, b, at).gap

    def certify(self, W: Array, b: Array, at: Evaluation | None = None) -> Certificate:
        """The certificate of a point, which is evaluated if it is not known."""
        raise NotImplementedError


def evaluate(problem: Problem, rounding: Rounding, W: Array, b: Array) -> Evaluation:
    """Two products: scores, and the correlation of the columns with the derivatives."""
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
        correlation=problem.design.rmatvec(weighted),
        correlation_rounding=rounding.products(size, row_error),
        slope=slope,
        slope_rounding=np.sqrt(rounding.weight) * (row_error + rounding.sums * size),
        scores=z,
    )


def _passed_on(
    problem: Problem, rounding: Rounding, z: Array, size: Array, score_error: Array
) -> tuple[Array, Array]:
    """What the rounding of the scores does to the sum of the losses, and to the derivatives."""
    curvature = _steepest_bend(problem, z, score_error)
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


def _steepest_bend(problem: Problem, z: Array, score_error: Array) -> Array | float:
    """The largest curvature that the losses take within the errors of the scores."""
    loss = problem.loss
    if not {"log_link", "nonconvex"} & loss.capabilities:
        return loss.curvature_bound
    least = 1.0 if problem.weights is None else float(problem.weights.min())
    reach = score_error / np.sqrt(least) if least > 0 else np.full_like(score_error, np.inf)
    most = loss.most_curvature(problem.target, z, np.broadcast_to(reach, z.shape))
    return np.asarray(most.max(axis=0, initial=0.0))


def through_the_loss(
    loss: Loss, bend: Array | float, weight: Array | float, size: Array, score_error: Array
) -> tuple[Array, Array]:
    """What an error of the scores does to the sum of the losses, and to the derivatives."""
    steepest = loss.slope_bound * np.sqrt(weight)
    if "coupled" in loss.capabilities:  # an error of one score is felt by all of its row
        size, score_error = (np.full_like(v, np.sqrt((v**2).sum())) for v in (size, score_error))
    if not np.isfinite(bend).all():
        return steepest * score_error, np.full_like(score_error, 2 * steepest)
    return size * score_error + 0.5 * bend * score_error**2, bend * score_error
