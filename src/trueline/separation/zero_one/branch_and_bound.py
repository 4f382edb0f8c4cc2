"""Branch and bound: a row is an error, or it is right; the bound is known at any time.

Depth first; the bound of a node is a packing of conflicts (:mod:`.conflicts`). A search that is cut
off leaves its path behind: the node at its end and the other halves of its decisions are open.

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

import numpy as np
from numpy.typing import NDArray

from trueline.separation.zero_one.conflicts import Packed, arrange, evaluate, pack
from trueline.separation.zero_one.enumeration import enumerate_circles, enumeration_seconds
from trueline.separation.zero_one.exact import exact_search
from trueline.separation.zero_one.local_search import improve
from trueline.separation.zero_one.problem import Task
from trueline.separation.zero_one.proof import Claims, Packing, pack_root
from trueline.separation.zero_one.simplex import FEASIBLE, FREE, OUT, REQUIRED, Basis

Array = NDArray[np.float64]
Status = NDArray[np.int8]


@dataclass
class Decision:
    """A row is an error first, then, in the second half of the search, right; a bound on both."""

    row: int
    bound: float
    is_second: bool = False


@dataclass
class Explored:
    """What a search below a node found: a hyperplane, and the decisions when it stopped, if any."""

    best: float
    v: Array
    path: list[Decision] = field(default_factory=list)
    is_finished: bool = False
    nodes: int = 0
    pivots: int = 0


def explore(
    task: Task, status: Status, cost: float, best: float, v: Array, claims: Claims,
    most: float, most_in_node: float,
) -> Explored:  # fmt: skip
    """Search below a node.

    Parameters
    ----------
    task : Task
    status, cost
        The node: what is decided of each row, and the weight of the rows that are errors.
    best, v
        The least weight of errors known, and its hyperplane.
    claims : Claims
        Changed.
    most, most_in_node : float
        Numbers of pivots after which to stop: after a node, and in the middle of one.
    """
    A, s, found = task.A, task.s, Explored(best, v)
    status, basis = status.copy(), Basis.fresh(A.shape[1])
    z, score = np.empty(len(s)), [0.0] * len(s)
    errors = arrange(A, v, task.norms, s)
    while found.pivots < most:
        found.nodes += 1
        target, is_root = found.best - task.slack, not found.path
        packed = pack(
            task, status, cost, target, errors, basis, claims.floors, most_in_node, is_root
        )
        found.pivots += packed.pivots + 1
        bound = packed.bound
        if bound < target and packed.outcome == FEASIBLE:
            total = evaluate(A, basis.v, s, z)
            if total < found.best:
                found.best, found.v, target = total, basis.v.copy(), total - task.slack
                errors = arrange(A, found.v, task.norms, s)
            if not packed.conflicts and total <= cost:
                bound = math.inf  # nothing is left to decide
        row = _branching_row(status, s, packed, score) if bound < target else -1
        if row >= 0:
            found.path.append(Decision(row, bound))
            status[row] = OUT
            cost += float(s[row])
            continue
        if bound < target:
            # All is decided, and double precision cannot tell whether that can be.
            claims.undecided = min(claims.undecided, cost)
        cost = _backtrack(found.path, status, cost, s, target)
        if not found.path:
            found.is_finished = True
            break
    return found


def _backtrack(path: list[Decision], status: Status, cost: float, s: Array, least: float) -> float:
    """Go back to the last decision whose second half is worth a search, and begin that half."""
    while path:
        last = path[-1]
        if not last.is_second:
            last.is_second = True
            status[last.row] = REQUIRED
            cost -= float(s[last.row])
            if last.bound < least:
                break
        status[last.row] = FREE
        path.pop()
    return cost


def _branching_row(status: Status, s: Array, packed: Packed, score: list[float]) -> int:
    """A row that fits to what is left; or, of the conflict with the fewest free rows, the one that
    was in most conflicts; or the heaviest that is not decided. -1 if there is none.
    """
    fewest: list[int] = []
    for rows, _ in packed.conflicts:
        free = [i for i in rows if status[i] == FREE]
        for i in free:
            score[i] += 1.0
        if not fewest or len(free) < len(fewest):
            fewest = free
    if packed.loose >= 0:
        return packed.loose
    if fewest:
        return max(fewest, key=score.__getitem__)
    free_rows = np.flatnonzero(status == FREE)
    return int(free_rows[s[free_rows].argmax()]) if len(free_rows) else -1


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
        found = exact_search(task.A, task.s.tolist(), deadline)
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
        most, v = min(self.slice, enough), self.v
        found = explore(task, status, cost, before, v, self.claims, most + 1, enough + 1)
        heapq.heappop(self.heap)
        self.nodes += found.nodes
        self.pivots += found.pivots
        self.value, self.v = float(found.best), found.v
        if not found.is_finished:
            self._reopen(node, found.path)
        self.claims.decide()
        seconds = max(time.perf_counter() - began, 1e-6)
        self.rate = seconds / max(found.pivots, 1)
        self.slice = max(_FIRST, int(min(2.0, _SLICE / seconds) * self.slice))
        if found.best < before:
            self.value, self.v = improve(task.A, task.s, self.value, self.v, seed=self.nodes)

    def _reopen(self, node: _Node, path: list[Decision]) -> None:
        """What a search that was cut off left open."""
        rows = np.array([step.row for step in path], dtype=np.int64)
        chosen = np.where([step.is_second for step in path], REQUIRED, OUT).astype(np.int8)
        for place, step in enumerate(path):
            if not step.is_second:
                decided = np.append(chosen[:place], np.int8(REQUIRED))
                self._push(node, step.bound, rows[: place + 1], decided)
        self._push(node, path[-1].bound if path else node.bound, rows, chosen)

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
