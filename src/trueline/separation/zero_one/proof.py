"""The certificate: the errors, counted; the conflicts of the root; the bound of the search.

Conflicts that doubles are not sure of: collected by the search, decided in exact arithmetic.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from trueline.certificates.base import Certificate
from trueline.losses import ZeroOne
from trueline.penalties import NoPenalty
from trueline.separation.zero_one.conflicts import arrange, evaluate, pack
from trueline.separation.zero_one.exact import is_conflict
from trueline.separation.zero_one.problem import Task
from trueline.separation.zero_one.simplex import FEASIBLE, Basis

Array = NDArray[np.float64]
Indices = NDArray[np.int64]

_EPS = float(np.finfo(np.float64).eps)


@dataclass(frozen=True)
class Packing:
    """Conflicts and what each counts: signed rows one after the other, and where each ends."""

    members: Indices = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    ends: Indices = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    charges: Array = field(default_factory=lambda: np.empty(0))

    @property
    def bound(self) -> float:
        """No hyperplane has errors of less weight (without the constant of the task)."""
        return math.fsum(self.charges)


def separating(task: Task) -> Array | None:
    """A hyperplane without errors; None if there is none, or none that doubles are sure of."""
    basis, nothing = Basis.fresh(task.A.shape[1]), np.zeros(len(task.s), dtype=np.int8)
    packed = pack(task, nothing, 0.0, 1e-300, [], basis, {}, math.inf)
    v = basis.v
    if packed.outcome == FEASIBLE and evaluate(task.A, v, task.s, np.empty(len(task.s))) == 0:
        return v
    return None


def pack_root(task: Task, v: Array, most_pivots: float = math.inf) -> Packing:
    """Conflicts around the errors of a hyperplane; those in doubt are decided."""
    order = arrange(task.A, v, task.norms, task.s)
    basis, nothing = Basis.fresh(task.A.shape[1]), np.zeros(len(task.s), dtype=np.int8)
    claims = Claims(task)
    packed = pack(task, nothing, 0.0, math.inf, order, basis, claims.floors, most_pivots)
    claims.decide()
    chosen = [pair for pair in packed.conflicts if frozenset(pair[0]) not in claims.wrong]
    members = [row for rows, _ in chosen for row in rows]
    ends = np.cumsum([len(rows) for rows, _ in chosen])
    charges = np.array([charge for _, charge in chosen], dtype=np.float64)
    return Packing(np.array(members, dtype=np.int64), ends.astype(np.int64), charges)


def errors_of(X: Array, y: Array, w: Array, b: float) -> NDArray[np.bool_]:
    """Rows with y (x.w + b) <= 0, decided in exact arithmetic where rounding could matter."""
    z = y * (X @ w + b)
    unsure = (X.shape[1] + 4) * _EPS * (np.abs(X) @ np.abs(w) + abs(b)) + 1e-290
    wrong = np.asarray(z <= 0)
    for i in np.flatnonzero(~(np.abs(z) > unsure)):
        terms = (Fraction(x) * Fraction(c) for x, c in zip(X[i].tolist(), w.tolist()))
        wrong[i] = (sum(terms) + Fraction(b)) * int(y[i]) <= 0
    return wrong


def certify(
    task: Task, wrong: NDArray[np.bool_], s: Array, w: Array, b: float, bound: float,
    packing: Packing,
) -> Certificate:  # fmt: skip
    """The certificate of (w, b), whose errors are ``wrong`` and cannot weigh less than ``bound``.

    The bound includes the constant of the task.
    """
    objective = math.fsum(s[wrong])
    rounding = 0.0 if task.is_exact else 4 * _EPS * (objective + 1e-300)
    packed = task.constant + packing.bound
    if not task.is_exact:
        packed *= 1 - 4 * _EPS * (len(s) + 16)
    bound = min(max(bound, packed), objective)
    is_closed = packed >= bound
    return Certificate(
        kind="zero-one packing" if is_closed else "zero-one search",
        objective=objective,
        objective_rounding=rounding,
        # A difference of doubles may be rounded down.
        gap=max(objective + 2 * rounding - bound, 0.0),
        loss=ZeroOne(),
        penalty=NoPenalty(),
        fit_intercept=task.fit_intercept,
        coef=w.reshape(-1, 1),
        intercept=np.array([b]),
        witness={
            "members": np.asarray(task.row[packing.members], dtype=np.float64),
            "ends": np.asarray(packing.ends, dtype=np.float64),
            "charges": packing.charges,
        },
    )


class Claims:
    """Conflicts in doubt, each with the bound that holds even if it is none."""

    def __init__(self, task: Task) -> None:
        self.task = task
        self.floors: dict[frozenset[int], float] = {}
        #: Those that are conflicts, and those that are none.
        self.right: set[frozenset[int]] = set()
        self.wrong: set[frozenset[int]] = set()
        #: The bound without nodes in which all is decided and nothing is known.
        self.undecided = math.inf

    def decide(self) -> None:
        """Decide the claims that are new, in exact arithmetic."""
        for rows in self.floors.keys() - self.right - self.wrong:
            is_right = is_conflict(self.task.A[sorted(rows)])
            (self.right if is_right else self.wrong).add(rows)

    def floor(self) -> float:
        """The bound that holds without the claims that turned out to be wrong."""
        return min([self.undecided, *(self.floors[rows] for rows in self.wrong)])
