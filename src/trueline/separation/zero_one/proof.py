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
from trueline.separation.zero_one.conflicts import (
    Conflicts,
    Doubts,
    arrange,
    evaluate,
    fresh_basis,
    fresh_conflicts,
    pack,
)
from trueline.separation.zero_one.exact import integer_rows, is_conflict
from trueline.separation.zero_one.problem import Task
from trueline.separation.zero_one.simplex import FEASIBLE

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
    none = np.empty(0, dtype=np.int64)
    outcome, _, _, v = _packed(task, none, 1e-300, 1e15, Claims(task))
    if outcome == FEASIBLE and evaluate(task.A, v, task.s, np.empty(len(task.s))) == 0:
        return v
    return None


def _packed(
    task: Task, order: Indices, target: float, most_pivots: float, claims: Claims
) -> tuple[int, Conflicts, int, Array]:
    """Pack conflicts with nothing decided: the outcome, conflicts, their number, the point."""
    n, m = task.A.shape
    nothing = np.zeros(n, dtype=np.int8)
    basis, conflicts = fresh_basis(m), fresh_conflicts(n, m)
    _, count, outcome, _, _ = pack(
        *(task.rows, nothing, 0.0, target, order, len(order), True, int(most_pivots)),
        *(basis, conflicts, claims.arrays()),
    )
    return outcome, conflicts, count, basis.v


def pack_root(task: Task, v: Array, most_pivots: float = 1e15) -> Packing:
    """Conflicts around the errors of a hyperplane; those in doubt are decided."""
    order = np.empty(len(task.A), dtype=np.int64)
    order = order[: arrange(task.A, v, task.norms, task.s, order)]
    claims = Claims(task)
    _, (rows, ends, charges), count, _ = _packed(task, order, np.inf, most_pivots, claims)
    claims.decide()
    sets = np.split(rows[: ends[count - 1]] if count else rows[:0], ends[: max(count - 1, 0)])
    wrong = {frozenset(claims.rows[number].tolist()) - {-1} for number in claims.wrong}
    kept = [q for q in range(count) if frozenset(sets[q].tolist()) not in wrong]
    chosen = [sets[q] for q in kept]
    return Packing(
        members=np.concatenate([np.empty(0, dtype=np.int64), *chosen]),
        ends=np.cumsum([len(members) for members in chosen]).astype(np.int64),
        charges=charges[kept].copy(),
    )


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
    """A table of sets of rows, each with the bound that holds even if it is no conflict."""

    def __init__(self, task: Task) -> None:
        self.task = task
        self.decided = 0
        self.wrong: list[int] = []
        self.counter = np.zeros(2, dtype=np.int64)
        self._allocate(4 * len(task.s) + 1024)

    def _allocate(self, size: int) -> None:
        self.rows = np.full((size, self.task.A.shape[1] + 1), -1, dtype=np.int64)
        # One more, for nodes in which all is decided and nothing is known.
        self.floors = np.full(size + 1, np.inf)
        self.slots = np.full(4 * size, -1, dtype=np.int64)

    def arrays(self) -> Doubts:
        """What the search writes to; there is room for the claims of a few nodes."""
        count = int(self.counter[0])
        if count + 3 * len(self.task.s) > len(self.rows):
            rows, floors = self.rows, self.floors
            self._allocate(2 * len(rows))
            self.rows[:count], self.floors[:count] = rows[:count], floors[:count]
            self.floors[-1] = floors[-1]
            # Places depend on the size of the table.
            for number in range(count):
                self._place(number)
        return Doubts(self.rows, self.floors, self.slots, self.counter)

    def _place(self, number: int) -> None:
        code = 1469598103
        for row in self.rows[number]:
            if row >= 0:
                code = ((code ^ int(row)) * 1099511) % 2147483647
        place = code % len(self.slots)
        while self.slots[place] >= 0:
            place = (place + 1) % len(self.slots)
        self.slots[place] = number

    def decide(self) -> None:
        """Decide the claims that are new."""
        count = int(self.counter[0])
        for number in range(self.decided, count):
            rows = self.rows[number]
            if not is_conflict(integer_rows(self.task.A[rows[rows >= 0]])):
                self.wrong.append(number)
        self.decided = count

    def floor(self) -> float:
        """The bound that holds without the claims that turned out to be wrong."""
        return float(min([self.floors[-1], *self.floors[self.wrong]]))
