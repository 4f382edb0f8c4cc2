r"""The one quadratic program behind all support vector machines.

In signed multipliers beta (the dual coefficients), with the kernel matrix K:

    minimise    1/2 beta'K beta - sum_v t_v beta_v + eps sum_v |beta_v|
    subject to  low_v <= beta_v <= high_v,   the sum of beta over each group is what it was.

=============  =====================  ======  ==========================================
machine        box                    eps     equalities
=============  =====================  ======  ==========================================
SVC            between 0 and y_i C_i  0       sum beta = 0           (t = y)
SVR            -C_i .. C_i            eps     sum beta = 0
OneClassSVM    0 .. s_i               0       sum beta = nu sum s    (t = 0)
NuSVC          between 0 and y_i s_i  0       +- nu sum(s) / 2 in each class (t = 0)
NuSVR          two variables per row  0       +- C nu sum(s) / 2 for each sign
=============  =====================  ======  ==========================================

Increasing beta_v gains u_v = t_v - f_v - eps (+ eps if beta_v < 0), decreasing it costs
l_v = t_v - f_v - eps sign of the side below, where f = K beta. The point is optimal if no u exceeds
an l of its group; the largest excess is the violation that the solvers bring below tol, as LIBSVM
does (Fan, Chen, Lin, "Working set selection using second order information for training support
vector machines", JMLR 6, 2005).

From a tolerance to rounding the free multipliers are the solution of linear equations. Once it is
known which multipliers rest at a bound, the others solve, with a threshold b per group,

    K_FF delta + b = t - f - eps sign(beta)   on the free ones,     sum delta = 0,

where delta is what they lack. A step that would leave a box stops there, and the multiplier at that
bound is left out of the next equations: an active-set method, started next to its end.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dposv

from trueline.solvers.smo.inner import add_rows, bounds
from trueline.trace import Trace

Array = NDArray[np.float64]
Index = NDArray[np.intp]


@dataclass(frozen=True)
class DualProgram:
    """Data of the program; variables of the first group come first.

    Attributes
    ----------
    target : array of shape (m,)
    low, high : arrays of shape (m,)
    start : array of shape (m,)
        A feasible point; its sums over the groups are kept.
    epsilon : float
    split : int
        Variables ``[0, split)`` are the first group, the others the second.
    row : array of int of shape (m,)
        The row of the kernel matrix that a variable belongs to.
    """

    target: Array
    low: Array
    high: Array
    start: Array
    epsilon: float = 0.0
    split: int = -1
    row: Index = field(default_factory=lambda: np.empty(0, dtype=np.intp))

    def __post_init__(self) -> None:
        if self.split < 0:
            object.__setattr__(self, "split", len(self.target))
        if not len(self.row):
            object.__setattr__(self, "row", np.arange(len(self.target)))

    @property
    def size(self) -> int:
        """The number of variables."""
        return len(self.target)

    @property
    def groups(self) -> list[slice]:
        """The variables of each group."""
        parts = [slice(0, self.split), slice(self.split, self.size)]
        return [part for part in parts if part.start < part.stop]

    @property
    def box(self) -> tuple[Array, Array, float, int]:
        """What steps with two multipliers keep to."""
        return self.low, self.high, self.epsilon, self.split

    def offsets(self, beta: Array) -> tuple[Array, Array]:
        """What t - f is lowered by to give u and l; infinite where beta cannot move that way."""
        up = np.where(beta < 0, -self.epsilon, self.epsilon)
        down = np.where(beta > 0, self.epsilon, -self.epsilon)
        up[beta >= self.high] = np.inf
        down[beta <= self.low] = -np.inf
        return up, down

    def value(self, beta: Array, scores: Array) -> float:
        """The objective at beta, with f = K beta given for the rows."""
        return float(
            0.5 * beta @ scores[self.row] - self.target @ beta + self.epsilon * np.abs(beta).sum()
        )


@dataclass
class DualSolution:
    """Multipliers, scores, thresholds, and how the solver ended.

    Attributes
    ----------
    beta : array of shape (m,)
    scores : array of shape (n,)
        f = K beta at the rows, without an intercept.
    level : array of shape (1,) or (2,)
        The threshold of each group: the intercept of machines with one.
    violation : float
    n_iter : int
        Steps with two multipliers.
    is_solved : bool
        Whether the violation is below the tolerance.
    """

    beta: Array
    scores: Array
    level: Array
    violation: float
    n_iter: int
    is_solved: bool
    trace: Trace = field(default_factory=Trace)
    notes: list[str] = field(default_factory=list)

    def times(self, size: float) -> DualSolution:
        """For weights that are larger by a factor, in programs without targets."""
        return replace(
            self,
            beta=size * self.beta,
            scores=size * self.scores,
            level=size * self.level,
            violation=size * self.violation,
        )


def levels(program: DualProgram, beta: Array, scores: Array) -> tuple[Array, float]:
    """The threshold of each group and the largest violation.

    The threshold is the mean of t - f -+ eps over the multipliers that are free to move both ways,
    and where there are none the middle between the largest u and the smallest l.
    """
    room = program.target - scores[program.row]
    low, high, epsilon, _ = program.box
    found, worst = [], -math.inf
    for g in program.groups:
        highest, lowest, total, free = bounds(room[g], beta[g], low[g], high[g], epsilon)
        worst = max(worst, highest - lowest)
        if free:
            found.append(total / free)
        elif math.isfinite(highest) and math.isfinite(lowest):
            found.append(0.5 * (highest + lowest))
        else:
            found.append(highest if math.isfinite(highest) else lowest)
    return np.array(found), worst


def filled(box: Array, total: float) -> Array:
    """Multipliers that add up to total: the first ones as large as they may be, the rest zero.

    Examples
    --------
    >>> import numpy as np
    >>> from trueline.solvers.smo.program import filled
    >>> filled(np.ones(4), 2.5)
    array([1. , 1. , 0.5, 0. ])
    """
    before = np.concatenate([[0.0], np.cumsum(box)[:-1]])
    return np.minimum(np.maximum(total - before, 0.0), box)


def by_row(program: DualProgram, beta: Array, n: int) -> Array:
    """Multipliers added up by the row they belong to."""
    return beta if program.size == n else added_up(program.row, beta, n)


def added_up(rows: Index, values: Array, n: int) -> Array:
    """Values added up by row."""
    return np.bincount(rows, values, minlength=n).astype(np.float64, copy=False)


def weighted_rows(program: DualProgram, K: NDArray[Any], beta: Array) -> Array:
    """f = K beta at the rows, summed in float64 over the rows of a symmetric K that count."""
    weight = by_row(program, beta, len(K))
    scores = np.zeros(len(K))
    used = np.flatnonzero(weight)
    if len(used):
        add_rows(K, used, weight[used], scores, 0, len(K))
    return scores


# Equations of more multipliers would take longer than the steps that led to them.
_LARGEST = 600
_ROUNDS = 12
_EPS = float(np.finfo(np.float64).eps)


class Matrix(Protocol):
    """The kernel matrix, as far as the last digits need it."""

    def sums(self, beta: Array) -> Array:
        """f = K beta at the rows, summed afresh."""

    def block(self, rows: Index) -> Array:
        """The matrix of some rows."""

    def mend(self, beta: Array, scores: Array, tol: float) -> None:
        """Some steps with two multipliers, in place; the scores may lose their meaning."""


def polished(
    program: DualProgram, matrix: Matrix, beta: Array, scores: Array, violation: float
) -> tuple[Array, Array]:
    """Multipliers as good as double precision allows, or as they were; and their scores.

    The matrix of each step's equations is positive definite, so that a step cannot lead uphill.
    """
    best = None
    reach = 1.0 + float(np.abs(program.target).max(initial=0.0)) + float(np.abs(scores).max())
    goal = 64 * _EPS * reach
    for _ in range(_ROUNDS):
        if violation <= goal:
            break
        moved = _to_equations(program, matrix, beta, scores)
        if moved is None:
            break
        found = matrix.sums(moved)
        left = levels(program, moved, found)[1]
        if left > goal:
            # Rows that the step has put on the wrong side of their bound come back by some steps.
            matrix.mend(moved, found, max(goal, 0.1 * min(left, violation)))
            found = matrix.sums(moved)
            left = levels(program, moved, found)[1]
        if not left < 0.5 * violation:
            break
        best = beta, scores = moved, found
        violation = left
    return best or (beta, matrix.sums(beta))


def _to_equations(program: DualProgram, matrix: Matrix, beta: Array, scores: Array) -> Array | None:
    """The multipliers after steps to the solution of the equations of the free ones."""
    low, high, epsilon, split = program.box
    is_free = (beta > low) & (beta < high)
    if epsilon > 0:
        is_free &= beta != 0
    F = np.flatnonzero(is_free)
    if not 2 <= len(F) <= _LARGEST:
        return None
    start, rows, low, high = beta[F], program.row[F], low[F], high[F]
    room = program.target[F] - scores[rows]
    if epsilon > 0:  # zero is an end where eps |beta| has its kink
        room -= epsilon * np.sign(start)
        low = np.where(start > 0, np.maximum(low, 0.0), low)
        high = np.where(start < 0, np.minimum(high, 0.0), high)
    Q = matrix.block(rows)
    point, first = _stepped(Q, room, start, low, high, int((F < split).sum()))
    G = np.arange(len(F))
    for _ in range(_ROUNDS):
        if first < 0 or len(G) <= 2:
            break
        # The multiplier at its bound is left out.
        G = np.delete(G, first)
        lacking = (room - Q @ (point - start))[G]
        some = Q[G][:, G], lacking, point[G], low[G], high[G], int((F[G] < split).sum())
        point[G], first = _stepped(*some)
    moved = beta.copy()
    moved[F] = point
    return moved if np.isfinite(point).all() else None


def _stepped(
    Q: Array, lacking: Array, point: Array, low: Array, high: Array, split: int
) -> tuple[Array, int]:
    """The solution, or the first end of a box on the way to it, and whose: -1 for the solution."""
    delta = _solution(Q, lacking, split)
    goal = point + delta
    if not ((goal < low) | (goal > high)).any():
        return goal, -1
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        ends = (np.where(delta > 0, high, low) - point) / delta
    ends[delta == 0] = np.inf
    first = int(np.argmin(ends))
    reached = np.clip(point + ends[first] * delta, low, high)
    reached[first] = high[first] if delta[first] > 0 else low[first]
    return reached, first


def _solution(Q: Array, right: Array, split: int) -> Array:
    """delta of the equations; about the shortest one if they do not determine it.

    The last multiplier of each group takes what the others of it give: with its equation taken from
    theirs the thresholds are gone, and what is left is positive semi-definite. It is not a number
    where the kernel is not.
    """
    m = len(right)
    M, right = Q.copy(), right.copy()
    groups = [g for g in (slice(0, split), slice(split, m)) if g.start < g.stop]
    for group in groups:
        last = group.stop - 1
        M[group] -= M[last]
        M[:, group] -= M[:, last : last + 1]
        right[group] -= right[last]
    top = float(M.diagonal().max())
    # The ridge settles what equations leave open.
    M.flat[:: m + 1] += m * _EPS * top
    for group in groups:  # rows and columns of zeros
        M[group.stop - 1, group.stop - 1] = 1.0
    delta, info = dposv(M.T, right, overwrite_a=True)[1:]
    if info != 0:
        return np.full(m, np.nan)
    for group in groups:
        delta[group.stop - 1] = -delta[group][:-1].sum()
    return delta
