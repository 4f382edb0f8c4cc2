"""Branch and bound: best bound first, until nothing is left that could be better.

Nodes are explored in small batches of a fixed size (in parallel where threads are allowed), so
that the answer does not depend on the number of threads.
"""

from __future__ import annotations

import heapq
import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from trueline.best_subset.exchange import descend
from trueline.best_subset.node import Node, Quadratic, explore, is_small
from trueline.numerics.blas import run_strands

__all__ = ["Found", "search"]

Array = NDArray[np.float64]
Support = NDArray[np.int64]

_BATCH = 8
# Roundings of relaxations that are improved by exchanges; later ones seldom lead anywhere new.
_DESCENTS = 500
# A node is closed when no support in it is better by more than this part of the value without
# columns: what is closer than that to the best one counts as equal.
_SLACK = 1e-9


@dataclass
class Found:
    """The best support, and what is proven about all others.

    Attributes
    ----------
    support : array of int
    value : float
    lower_bound : float
        No support within the limits has a smaller value, as far as the numbers of the task go;
        what their rounding means is worked out in :mod:`trueline.best_subset.rounding`.
    is_proven : bool
        Whether the search was finished.
    nodes : int
        Nodes explored.
    reason : str
        Why the search ended: "proven", "time limit", "interrupted", "stopped" or "node limit".
    volume : float
        Where all supports were looked at one by one: no determinant of their correlations is below
        it. Zero if it is not known.
    """

    support: Support
    value: float
    lower_bound: float
    is_proven: bool
    nodes: int
    reason: str = "proven"
    volume: float = 0.0


def search(
    task: Quadratic,
    allowed: NDArray[np.bool_],
    support: Support,
    deadline: float = math.inf,
    floor: float = -math.inf,
    watch: Callable[[int, float, float, Support], bool] | None = None,
    max_nodes: float = math.inf,
) -> Found:
    """Prove that a support is the best one, or find a better one.

    Parameters
    ----------
    task : Quadratic
    allowed : array of bool
        Columns that may enter.
    support : array of int
        The best support known so far.
    deadline : float
        Of ``time.perf_counter``. Few choices are looked at even after it, unless it is minus
        infinity.
    floor : float
        A lower bound that is already known.
    watch : callable, optional
        Receives the number of nodes, the best value, the bound and the support; True stops.
    max_nodes : float

    Returns
    -------
    found : Found
    """
    state = _State(task, allowed, support)
    slack = _SLACK * task.constant
    free = np.flatnonzero(allowed).astype(np.int64)
    heap = [Node(floor, 0, np.empty(0, dtype=np.int64), free)]
    batch: list[Node] = []
    nodes, number, reason, volume = 0, 0, "proven", 0.0
    # Looking at all choices takes no time: compilation before it may have.
    is_quick = is_small(len(free), task.k) and deadline > -math.inf
    # Pruned nodes have bounds of at least value - slack; open ones are looked at.
    try:
        while heap and heap[0].bound < state.value - slack:
            if time.perf_counter() > deadline and not (is_quick and nodes == 0):
                reason = "time limit"
                break
            if nodes >= max_nodes:
                reason = "node limit"
                break
            batch = [heapq.heappop(heap) for _ in range(min(len(heap), _BATCH))]
            upper = state.value - slack
            outcomes = run_strands(partial(explore, task, upper), batch)
            nodes += len(batch)
            volume = outcomes[0].volume if nodes == 1 else 0.0
            for outcome in outcomes:
                for candidate in outcome.candidates:
                    state.offer(candidate)
                for child in outcome.children:
                    number += 1
                    child.number = number
                    heapq.heappush(heap, child)
            batch = []
            if watch is not None:
                least = min(state.value, heap[0].bound if heap else math.inf)
                if watch(nodes, state.value, least, state.support):
                    reason = "stopped"
                    break
    except KeyboardInterrupt:
        reason = "interrupted"
    still_open = [node.bound for node in (*heap, *batch)]
    lower = min([state.value, *still_open])
    is_proven = bool(lower >= state.value - slack)
    return Found(
        support=state.support,
        value=state.value,
        # Where every support was looked at, nothing was closed but for ties.
        lower_bound=lower - (task.tie if is_quick and is_proven else slack),
        is_proven=is_proven,
        nodes=nodes,
        reason="proven" if is_proven else reason,
        volume=volume,
    )


class _State:
    """The best support so far."""

    def __init__(self, task: Quadratic, allowed: NDArray[np.bool_], support: Support) -> None:
        self.task, self.allowed = task, allowed
        self.support = np.sort(support)
        self.value = self._value(support)
        self._seen: set[bytes] = set()

    def _value(self, support: Support) -> float:
        task = self.task
        return task.constant - task.gain(support) + task.alpha * len(support)

    def offer(self, support: Support) -> None:
        """Compare with a support; one that is new is improved by exchanges first."""
        value = self._value(support)
        if value < self.value - self.task.tie:
            self.support, self.value = np.sort(support), value
        elif value > 1.05 * self.value or len(self._seen) > _DESCENTS:
            return
        key = np.sort(support).tobytes()
        if key in self._seen:
            return
        self._seen.add(key)
        task = self.task
        better, _ = descend(
            task.gram, task.cross, support, task.k, task.alpha, self.allowed, task.tie
        )
        value = self._value(better)
        if value < self.value - task.tie:
            self.support, self.value = np.sort(better), value
