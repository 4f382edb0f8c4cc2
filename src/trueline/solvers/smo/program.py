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
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trueline.trace import Trace

__all__ = ["DualProgram", "DualSolution", "added_up", "by_row", "filled", "levels"]

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
    extra: dict[str, Any] = field(default_factory=dict)

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
    up, down = program.offsets(beta)
    found, worst = [], -np.inf
    for group in program.groups:
        u, l = room[group] - up[group], room[group] - down[group]
        free = np.isfinite(u) & np.isfinite(l) & (u == l)
        highest, lowest = float(u.max()), float(l.min())
        worst = max(worst, highest - lowest)
        if free.any():
            found.append(float(u[free].mean()))
        elif np.isfinite(highest) and np.isfinite(lowest):
            found.append(0.5 * (highest + lowest))
        else:
            found.append(highest if np.isfinite(highest) else lowest)
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
    return np.clip(total - before, 0.0, box)


def by_row(program: DualProgram, beta: Array, n: int) -> Array:
    """Multipliers added up by the row they belong to."""
    return beta if program.size == n else added_up(program.row, beta, n)


def added_up(rows: Index, values: Array, n: int) -> Array:
    """Values added up by row."""
    return np.bincount(rows, values, minlength=n).astype(np.float64, copy=False)
