"""Branch and bound: a row is an error, or it is right; the bound is known at any time.

Depth first; the bound of a node is a packing of conflicts (:mod:`.conflicts`). A search that is cut
off leaves its path behind: the node at its end and the other halves of its decisions are open. What
is to be compiled is compiled before the clock of a search starts.

The same by mixed integer programming, by HiGHS, is an independent answer to compare with:

    minimise sum_i s_i z_i    subject to    a_i.v >= eps - M_i z_i,   abs(v_j) <= 1,   z_i in {0, 1}

with M_i = sum_j abs(a_ij) + eps, which no v in the box can need more of. Only hyperplanes whose
right rows have scores of at least eps in that box are compared, and HiGHS decides with tolerances:
its bound is reported, not proven.
"""

from __future__ import annotations

import heapq
import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from trueline.numerics.jit import kernel
from trueline.separation.zero_one.conflicts import (
    Conflicts,
    Doubts,
    Rows,
    arrange,
    evaluate,
    fresh_basis,
    fresh_conflicts,
    pack,
)
from trueline.separation.zero_one.enumeration import enumerate_circles, enumeration_seconds
from trueline.separation.zero_one.exact import exact_search, integer_rows
from trueline.separation.zero_one.local_search import improve
from trueline.separation.zero_one.problem import Task
from trueline.separation.zero_one.proof import Claims, Packing, pack_root
from trueline.separation.zero_one.simplex import FEASIBLE, FREE, OUT, REQUIRED

Array = NDArray[np.float64]
Indices = NDArray[np.int64]
Status = NDArray[np.int8]


class Path(NamedTuple):
    """Decisions, of length n + 1 each: the row, whether its second half (the row is right) was
    begun, and a bound on both halves.
    """

    rows: Indices
    halves: Indices
    bounds: Array


class Limits(NamedTuple):
    """Where a search stops: numbers of nodes and pivots, and pivots in the middle of a node."""

    nodes: int
    pivots: int
    node_pivots: int


@kernel
def explore(
    data: Rows,
    slack: float,
    status: Status,
    cost: float,
    best: float,
    v_best: Array,
    limits: Limits,
    path: Path,
    doubts: Doubts,
) -> tuple[float, int, int, int]:
    """Search below a node.

    Parameters
    ----------
    data : Rows
    slack : float
        Nodes that cannot improve the best weight by more than this are closed.
    status, cost
        The node: what is decided of each row, and the weight of the rows that are errors.
    best, v_best
        The least weight of errors known, and its hyperplane. ``v_best`` is changed.
    limits : Limits
    path : Path
        The decisions when it stopped. Changed.
    doubts : Doubts
        Changed.

    Returns
    -------
    best : float
    depth : int
        Length of the path; -1 if the search is finished.
    nodes, pivots : int
    """
    A, s = data.A, data.weights
    n, m = A.shape
    status, basis, conflicts = status.copy(), fresh_basis(m), fresh_conflicts(n, m)
    z, score, order = np.empty(n), np.zeros(n), np.empty(n, dtype=np.int64)
    errors = arrange(A, v_best, data.norms, s, order)
    depth, nodes, pivots = 0, 0, 0
    room = len(doubts.claims) - 2 * n
    while True:
        if nodes >= limits.nodes or pivots >= limits.pivots or doubts.counter[0] > room:
            return best, depth, nodes, pivots
        nodes += 1
        bound, count, outcome, loose, steps = pack(
            data, status, cost, best - slack, order, errors,
            depth == 0, limits.node_pivots, basis, conflicts, doubts,
        )  # fmt: skip
        pivots += steps + 1
        if bound < best - slack and outcome == FEASIBLE:
            total = evaluate(A, basis.v, s, z)
            if total < best:
                best = total
                for j in range(len(v_best)):
                    v_best[j] = basis.v[j]
                errors = arrange(A, v_best, data.norms, s, order)
            if count == 0 and total <= cost:
                bound = np.inf  # nothing is left to decide
        if bound < best - slack:
            i = _branching_row(status, conflicts, count, score, loose)
            if i < 0:
                i = _any_free(status, s)
            if i < 0:
                # All is decided, and double precision cannot tell whether that can be.
                doubts.floors[-1] = min(doubts.floors[-1], cost)
            else:
                path.rows[depth], path.halves[depth], path.bounds[depth] = i, 0, bound
                depth += 1
                status[i] = OUT
                cost += s[i]
                continue
        depth, cost = _backtrack(path, depth, status, cost, s, best - slack)
        if depth == 0:
            return best, -1, nodes, pivots


@kernel
def _backtrack(
    path: Path, depth: int, status: Status, cost: float, s: Array, least: float
) -> tuple[int, float]:
    """Go back to the last decision whose second half is worth a search, and begin that half."""
    while depth > 0:
        i = path.rows[depth - 1]
        if path.halves[depth - 1] == 0:
            path.halves[depth - 1] = 1
            status[i] = REQUIRED
            cost -= s[i]
            if path.bounds[depth - 1] < least:
                break
        status[i] = FREE
        depth -= 1
    return depth, cost


@kernel
def _branching_row(
    status: Status, conflicts: Conflicts, count: int, score: Array, loose: int
) -> int:
    """A row that fits to what is left; or, of the conflict with the fewest free rows, the one that
    was in most conflicts.
    """
    rows, ends, _ = conflicts
    fewest, chosen, first = 1 << 60, -1, 0
    for number in range(count):
        free = 0
        for q in range(first, ends[number]):
            if status[rows[q]] == FREE:
                free += 1
                score[rows[q]] += 1.0
        if free < fewest:
            fewest, chosen = free, number
        first = ends[number]
    if loose >= 0 or chosen < 0:
        return loose
    row, highest = -1, -1.0
    for q in range(ends[chosen - 1] if chosen else 0, ends[chosen]):
        i = rows[q]
        if status[i] == FREE and score[i] > highest:
            row, highest = i, score[i]
    return row


@kernel
def _any_free(status: Status, s: Array) -> int:
    """The heaviest row that is not decided; -1 if there is none."""
    row = -1
    for i in range(len(s)):
        if status[i] == FREE and (row < 0 or s[i] > s[row]):
            row = i
    return row


Watch = Callable[[int, float, float, Array], bool]

# Seconds between looks at the clock, and pivots of the first slice.
_SLICE = 0.1
_LEAST = 0.02
_FIRST = 2000
# Branch and bound has this part of the time of an enumeration before that is tried instead.
_PATIENCE = 0.3
_MOST_SECONDS = 1e4
# Seconds of a pivot: for a call, and for each number of the rows (estimates, so that the choice
# between the two does not depend on the speed of the moment).
_PIVOT, _NUMBER = 1e-6, 1.2e-9


@dataclass
class Found:
    """The best hyperplane, and what is proven about all others.

    Attributes
    ----------
    v : array of shape (m,)
    value : float
        Weight of the errors, without the constant.
    lower_bound : float
        No hyperplane has less.
    is_proven : bool
    nodes : int
    reason : str
        Why the search ended: "proven", "time limit", "interrupted", "stopped" or "precision".
    in_fractions : bool
        Whether the search was repeated in exact arithmetic.
    packing : Packing
        The conflicts that bound it at the root.
    """

    v: Array
    value: float
    lower_bound: float
    is_proven: bool
    nodes: int
    reason: str = "proven"
    in_fractions: bool = False
    packing: Packing = field(default_factory=Packing)


@dataclass(order=True)
class _Node:
    """Rows that are decided, and a bound on what that leaves."""

    bound: float
    number: int
    rows: NDArray[np.int64] = field(compare=False)
    decided: NDArray[np.int8] = field(compare=False)


def search(
    task: Task,
    v: Array,
    deadline: float = math.inf,
    watch: Watch | None = None,
) -> Found:
    """Prove that a hyperplane is the best one, or find a better one.

    Parameters
    ----------
    task : Task
    v : array of shape (m,)
        The best hyperplane known so far.
    deadline : float
        Of ``time.perf_counter``.
    watch : callable, optional
        Receives the number of nodes, the best weight, the bound and v; True stops.
    """
    state = _State(task, v)
    reason = "proven"
    packing = Packing()
    try:
        # A bound there must be, also if all the time is gone.
        seconds = max(deadline - time.perf_counter(), _LEAST)
        packing = pack_root(task, v, min(seconds / state.rate, 1e15))
        state.heap[0].bound = packing.bound
        while state.is_open:
            if time.perf_counter() >= deadline:
                reason = "time limit"
                break
            if state.should_enumerate(deadline):
                state.enumerate(deadline)
            else:
                state.advance(deadline)
            if watch is not None and watch(state.nodes, state.value, state.bound, state.v):
                reason = "stopped"
                break
        if state.nodes and task.s.size * state.rate < _SLICE:
            # The conflicts around better errors are mostly more.
            packing = max(packing, pack_root(task, state.v), key=lambda found: found.bound)
    except KeyboardInterrupt:
        reason = "interrupted"
    bound = min(state.bound, state.claims.floor())
    bound = max(bound, state.least)
    if reason == "proven" and bound < state.value - task.slack:
        return _in_fractions(task, state, bound, deadline, packing)
    is_proven = bound >= state.value - task.slack
    return Found(
        v=state.v,
        value=state.value,
        lower_bound=_honest(task, bound, state.value),
        is_proven=is_proven,
        nodes=state.nodes,
        reason="proven" if is_proven else reason,
        packing=packing,
    )


def _honest(task: Task, bound: float, value: float) -> float:
    """The bound, minus what rounded sums of weights may have added to it."""
    if task.is_exact:
        # Weights are multiples of a unit: half a unit less is none less.
        return value if bound >= value - task.slack else max(bound, 0.0)
    return max(min(bound, value) - 2 * task.slack, 0.0)


def _in_fractions(
    task: Task, state: _State, bound: float, deadline: float, packing: Packing
) -> Found:
    """Where doubles cannot tell whether rows conflict: the whole search without rounding."""
    reason, found = "precision", None
    try:
        found = exact_search(integer_rows(task.A), task.s.tolist(), deadline)
    except KeyboardInterrupt:
        reason = "interrupted"
    v, value = state.v, state.value
    if found is None:
        if time.perf_counter() > deadline:
            reason = "time limit"
        lower = _honest(task, bound, value)
        return Found(v, value, lower, False, state.nodes, reason, True, packing)
    least, exact = found
    largest = max(abs(c) for c in exact)
    rounded = np.array([float(c / largest) for c in exact])
    attained = float(evaluate(task.A, rounded, task.s, np.empty(len(task.A))))
    if attained < value:
        v, value = rounded, attained
    lower = _honest(task, float(least), value)
    is_proven = lower >= value - (1 if task.is_exact else 3) * task.slack
    reason = "proven" if is_proven else "precision"
    return Found(v, value, lower, is_proven, state.nodes, reason, True, packing)


class _State:
    """The best hyperplane, the open nodes, and the conflicts that are in doubt."""

    def __init__(self, task: Task, v: Array) -> None:
        n, m = task.A.shape
        self.task, self.v = task, v.copy()
        self.value = float(evaluate(task.A, v, task.s, np.empty(n)))
        self.claims = Claims(task)
        none = np.empty(0, dtype=np.int64)
        self.heap = [_Node(0.0, 0, none, none.astype(np.int8))]
        self.nodes, self.count = 0, 0
        begun = np.zeros(n + 1, dtype=np.int64)
        self.path = Path(begun, begun.copy(), np.zeros(n + 1))
        self.slice = _FIRST
        self.rate = 1e-6 + 1e-9 * n * m
        self.pivots = 0
        # Enumeration is tried once; what it has proven.
        self.is_enumerated, self.least = False, 0.0

    @property
    def bound(self) -> float:
        """No hyperplane has less, as far as conflicts in doubt are conflicts."""
        return min(self.value, max(self.heap[0].bound, self.least)) if self.heap else self.value

    @property
    def is_open(self) -> bool:
        return bool(self.heap) and self.bound < self.value - self.task.slack

    def should_enumerate(self, deadline: float) -> bool:
        """Whether branch and bound has had its chance, and there is time for all circles."""
        if self.is_enumerated:
            return False
        n, m = self.task.A.shape
        needed = enumeration_seconds(self.task)
        spent = self.pivots * (_PIVOT + _NUMBER * n * m)
        in_time = needed < min(deadline - time.perf_counter(), _MOST_SECONDS)
        return in_time and spent > _PATIENCE * needed

    def enumerate(self, deadline: float) -> None:
        """Look at all circles."""
        self.is_enumerated = True
        found = enumerate_circles(self.task, deadline)
        if found is None:
            return
        self.least, v = found
        if self.least < self.value - self.task.slack:
            value = float(evaluate(self.task.A, v, self.task.s, np.empty(len(self.task.s))))
            value, v = improve(self.task.A, self.task.s, value, v, seed=1)
            if value < self.value:
                self.value, self.v = value, v

    def advance(self, deadline: float) -> None:
        """Search below the node with the least bound, for a slice of time."""
        task, node = self.task, self.heap[0]
        status = np.zeros(len(task.s), dtype=np.int8)
        status[node.rows] = node.decided
        cost = float(task.s[status == OUT].sum())
        began, before = time.perf_counter(), self.value
        enough = min((deadline - began) / self.rate, 1e15)
        limits = Limits(1 << 60, int(min(self.slice, enough)) + 1, int(enough) + 1)
        v = self.v.copy()
        value, depth, nodes, pivots = explore(
            task.rows, task.slack, status, cost, before, v, limits, self.path, self.claims.arrays()
        )
        heapq.heappop(self.heap)
        self.nodes += nodes
        self.pivots += pivots
        self.value, self.v = float(value), v
        self._reopen(node, depth)
        self.claims.decide()
        seconds = max(time.perf_counter() - began, 1e-6)
        self.rate = seconds / max(pivots, 1)
        self.slice = max(_FIRST, int(min(2.0, _SLICE / seconds) * self.slice))
        if value < before:
            self.value, self.v = improve(task.A, task.s, self.value, self.v, seed=self.nodes)

    def _reopen(self, node: _Node, depth: int) -> None:
        """What a search that was cut off left open."""
        if depth < 0:
            return
        path, halves = self.path.rows[:depth].copy(), self.path.halves[:depth].copy()
        chosen = np.where(halves == 1, REQUIRED, OUT).astype(np.int8)
        for place in range(depth):
            if halves[place] == 0:
                decided = np.append(chosen[:place], np.int8(REQUIRED))
                self._push(node, self.path.bounds[place], path[: place + 1], decided)
        bound = self.path.bounds[depth - 1] if depth else node.bound
        self._push(node, bound, path, chosen)

    def _push(
        self, node: _Node, bound: float, rows: NDArray[np.int64], decided: NDArray[np.int8]
    ) -> None:
        bound = max(float(bound), node.bound)
        if bound >= self.value - self.task.slack:
            return
        self.count += 1
        rows, decided = np.append(node.rows, rows), np.append(node.decided, decided)
        heapq.heappush(self.heap, _Node(bound, self.count, rows, decided))


#: The least score of a row that is right.
MARGIN = 1e-3


def by_highs(task: Task, seconds: float = math.inf) -> tuple[Array | None, float, str]:
    """The hyperplane (None if there is none in time), the bound and the message of HiGHS."""
    from scipy.optimize import Bounds, LinearConstraint, milp

    k, m = task.A.shape
    M = np.abs(task.A).sum(axis=1) + MARGIN
    options: dict[str, float] = {"mip_rel_gap": 0.0}
    if math.isfinite(seconds):
        options["time_limit"] = max(seconds, 0.0)
    found = milp(
        np.append(np.zeros(m), task.s),
        integrality=np.append(np.zeros(m), np.ones(k)),
        bounds=Bounds(np.append(-np.ones(m), np.zeros(k)), np.ones(m + k)),
        constraints=LinearConstraint(np.hstack([task.A, np.diag(M)]), lb=MARGIN),
        options=options,
    )
    bound = found.mip_dual_bound
    v = None if found.x is None else np.ascontiguousarray(found.x[:m])
    return v, 0.0 if bound is None else float(bound), str(found.message)


@cache
def make_ready() -> None:
    """Run everything once on a few rows, so that no time limit pays for compilation."""
    from trueline.separation.zero_one.enumeration import enumerate_circles
    from trueline.separation.zero_one.local_search import local_search
    from trueline.separation.zero_one.margin import widest
    from trueline.separation.zero_one.problem import state

    X = np.array([[0.0, 0.1], [0.2, 1.0], [1.0, 0.3], [1.1, 1.0], [0.5, 0.6], [0.4, 2.0]])
    task = state(X, np.array([1.0, -1.0, -1.0, 1.0, 1.0, -1.0]), None, True)
    local_search(task.A, task.s)
    widest(task, search(task, np.array([1.0, 0.0, 0.0])).v)
    enumerate_circles(task)
