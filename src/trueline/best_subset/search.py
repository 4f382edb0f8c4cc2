"""Branch and bound: best bound first, until nothing is left that could be better; size by size.

Nodes are explored in small batches of a fixed size (in parallel where threads are allowed), so
that the answer does not depend on the number of threads.

The best supports of several sizes are found by one search after the other, each helped by the
others.
"""

from __future__ import annotations

import heapq
import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trueline.best_subset.exchange import descend, forward, lowest_indices, many_starts
from trueline.best_subset.node import (
    Node,
    Quadratic,
    Start,
    correlation,
    explore,
    is_small,
    least_eigenvalue,
    relaxed,
)
from trueline.best_subset.statement import least_of_all, lowered
from trueline.numerics.blas import run_strands
from trueline.wording import Readable

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
        what their rounding means is worked out in :mod:`trueline.best_subset.statement`.
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


def carried_down(k: NDArray[np.int64], delta: Array, bound: Array) -> Array:
    """Bounds of all sizes, each at least that of every larger size.

    Supports of few columns are among those of at most as many as a larger size allows: what bounds
    these bounds them too, if it was not stated for fewer of them (``delta``).
    """
    bound = np.array(bound, dtype=float)
    for i in np.argsort(-np.asarray(k), kind="stable"):
        larger = (k >= k[i]) & (delta <= delta[i])
        bound[i] = bound[larger].max()
    return bound


_SHOWN = 10  # sizes, and columns of a size, that are printed


@dataclass(frozen=True, repr=False)
class SubsetPath(Readable):
    """The best supports of several sizes.

    Attributes
    ----------
    k : array of int of shape (m,)
        The sizes that were asked for.
    supports : list of m arrays of int
        Indices of the columns, in order; fewer than k if more columns add nothing.
    coef : array of shape (m, d)
    intercept : array of shape (m,)
    objective : array of shape (m,)
        What was minimised.
    lower_bound : array of shape (m,)
        No support of so many columns has a smaller objective.
    proven : array of bool of shape (m,)
        Whether the search was finished: no support is better, of those that were compared.
    nodes : array of int of shape (m,)
        Nodes of the branch and bound.
    delta : array of shape (m,)
        Zero where all supports were compared; otherwise those whose correlation matrix has no
        eigenvalue below it.
    residual_square : array of shape (m,)
        sum_i s_i (y_i - x_i.w - b)^2.
    seconds : array of shape (m,)
    criteria : dict of arrays of shape (m,)
        "aic", "aicc", "bic", "adjusted_r2" and "cp".
    """

    k: NDArray[np.int64]
    supports: list[NDArray[np.int64]]
    coef: NDArray[Any]
    intercept: NDArray[Any]
    objective: Array
    lower_bound: Array
    proven: NDArray[np.bool_]
    nodes: NDArray[np.int64]
    delta: Array
    residual_square: Array
    seconds: Array
    criteria: Mapping[str, Array]

    def __len__(self) -> int:
        return len(self.k)

    def __str__(self) -> str:
        sizes = f"{self.k.min()}" if len(self) == 1 else f"{self.k.min()} to {self.k.max()}"
        lines = [
            f"SubsetPath: best subsets of {sizes} of {self.coef.shape[1]} columns, "
            f"{int(self.proven.sum())} of {len(self)} proven to be the best"
        ]
        for i in range(min(len(self), _SHOWN)):
            proof = "proven" if self.proven[i] else f"within {self.relative_gap[i]:.2g}"
            columns = ", ".join(map(str, self.supports[i][:_SHOWN]))
            more = ", ..." if len(self.supports[i]) > _SHOWN else ""
            lines.append(f"{self.k[i]:4d}: columns {columns}{more}; {proof}")
        if len(self) > _SHOWN:
            lines.append(f"      and {len(self) - _SHOWN} more sizes")
        return "\n".join(lines)

    @property
    def relative_gap(self) -> Array:
        """(objective - lower bound) / objective, zero where both vanish."""
        gap = np.maximum(self.objective - self.lower_bound, 0.0)
        return np.divide(gap, self.objective, out=np.zeros_like(gap), where=self.objective > 0)

    def rows(self) -> Iterator[dict[str, Any]]:
        """One dictionary per size, for tables."""
        for i in range(len(self)):
            yield {
                "k": int(self.k[i]),
                "support": self.supports[i].tolist(),
                "objective": float(self.objective[i]),
                "lower_bound": float(self.lower_bound[i]),
                "proven": bool(self.proven[i]),
                "nodes": int(self.nodes[i]),
                **{name: float(values[i]) for name, values in self.criteria.items()},
            }

    def to_frame(self) -> Any:
        """The rows as a pandas DataFrame."""
        from trueline.errors import require

        return require("pandas", "tables").DataFrame(list(self.rows()))


Columns = NDArray[np.bool_]
Watch = Callable[[int, int, float, float, Support], bool]

# Random starts of the exchange descents, for each size.
_STARTS = 40
# Of the smallest eigenvalue found, so that the supports near it are compared too.
_PART = 0.95


@dataclass(frozen=True)
class Answer:
    """The best support of one size, what is proven, and for which supports.

    Attributes
    ----------
    k : int
    found : Found
        Its lower bound is on the safe side of rounding.
    delta : float
        Zero if the bound is one for all supports; otherwise for those whose correlation matrix has
        no eigenvalue below it.
    seconds : float
    """

    k: int
    found: Found
    delta: float
    seconds: float


def best_subsets(
    task: Quadratic,
    sizes: Sequence[int],
    allowed: Columns,
    delta: float | None,
    time_limit: float = math.inf,
    watch: Watch | None = None,
) -> list[Answer]:
    """Search each size; ``delta`` None means that it is found where it is needed.

    Sizes for which no time is left, also because of Ctrl-C, are answered by exchanges. ``watch``
    receives the size, the number of nodes, the best value, the bound and the support; True stops.
    """
    deadline = time.perf_counter() + time_limit
    supports, ended = _first_supports(task, sizes, allowed)
    least = least_of_all(task, allowed)
    answers: dict[int, Answer] = {}
    start_at_root = Start()
    for index, k in enumerate(sorted(sizes)):
        start = time.perf_counter()
        share = start + (deadline - start) / (len(sizes) - index)
        smaller = answers[max(answers)].found.support if answers else None
        try:
            given = delta or 0.0 if ended else delta  # to find a good one takes its time
            own = replace(task, k=k, delta=_delta(task, k, allowed, supports[k], given))
            known = _improved(own, supports[k], smaller, allowed)
        except KeyboardInterrupt:
            ended, own, known = "interrupted", replace(task, k=k), supports[k]
        until = -math.inf if ended else share
        heard = None if watch is None else partial(watch, k)
        found = search(own, allowed, known, until, 0.0, heard)
        if ended and not found.is_proven:
            found.reason = ended
        if found.reason in ("interrupted", "stopped"):
            ended = found.reason
        if found.nodes == 0 and not found.is_proven:
            found.lower_bound, start_at_root = _at_the_root(own, allowed, start_at_root)
        support = _with_lowest_indices(own, own.independent(found.support), allowed)
        by, stated = lowered(own, allowed, support, max(least, found.volume / math.e))
        found = replace(found, support=support, lower_bound=found.lower_bound - by)
        answers[k] = Answer(k, found, stated, time.perf_counter() - start)
    return _with_common_bounds([answers[k] for k in sizes])


def _with_common_bounds(answers: list[Answer]) -> list[Answer]:
    """What bounds the supports of a larger size bounds those of a smaller one."""
    bounds = carried_down(
        np.array([answer.k for answer in answers]),
        np.array([answer.delta for answer in answers]),
        np.array([answer.found.lower_bound for answer in answers]),
    )
    return [
        replace(answer, found=replace(answer.found, lower_bound=float(bound)))
        for answer, bound in zip(answers, bounds)
    ]


def _improved(
    task: Quadratic, support: Support, smaller: Support | None, allowed: Columns
) -> Support:
    """The better one of a support, and of the best one of a smaller size with one more column."""
    if smaller is None:
        return support
    more = descend(task.gram, task.cross, smaller, task.k, task.alpha, allowed, task.tie)[0]
    return max(support, more, key=task.gain)


def _at_the_root(task: Quadratic, allowed: Columns, start: Start) -> tuple[float, Start]:
    """The bound of the relaxation for a size that was not searched.

    The diagonal that is taken out of the Gram matrix is not improved for every size: that would
    take longer than there was time for.
    """
    columns = np.flatnonzero(allowed)
    G = np.ascontiguousarray(task.gram[np.ix_(columns, columns)])
    q = min(task.k, len(columns))
    if q == 0:
        return task.constant, start
    steps = 1 if start.diagonal is None else 0
    size = task.size[columns]
    found, start = relaxed(task, G, task.cross[columns], q, size, start, np.inf, steps)
    return (0.0 if found is None else task.constant + found.bound), start


def _with_lowest_indices(task: Quadratic, support: Support, allowed: Columns) -> Support:
    """The same support, ties broken; as it was if that would cost more than rounding."""
    other = np.sort(lowest_indices(task.gram, task.cross, support, allowed, task.tie))
    loss = task.gain(support) - task.gain(other)
    return other if loss <= (len(support) + 1) * task.tie else support


def _delta(
    task: Quadratic,
    k: int,
    allowed: Columns,
    support: Support,
    delta: float | None,
) -> float:
    """The smallest eigenvalue of the supports that are compared; zero where all can be."""
    columns = np.flatnonzero(allowed)
    if is_small(len(columns), k):
        return 0.0
    if delta is not None:
        return delta
    if len(columns) < task.rank or k >= task.rank:
        return 0.0
    R = correlation(task.gram)[np.ix_(columns, columns)]
    return _PART * least_eigenvalue(R, k, np.flatnonzero(np.isin(columns, support)))


def _first_supports(
    task: Quadratic, sizes: Sequence[int], allowed: Columns
) -> tuple[dict[int, Support], str]:
    """Exchange descents from forward selection and from random supports, for every size.

    After Ctrl-C, the sizes that are left have what forward selection gives, and the second value
    says "interrupted".
    """
    order, gains = forward(task.gram, task.cross, min(max(sizes), int(allowed.sum())), allowed)
    if task.alpha > 0:  # how far forward selection is worth going
        net = np.append(0.0, np.cumsum(gains - task.alpha))
        order = order[: int(np.argmax(net))]
    m = int(allowed.sum())
    supports = {k: np.sort(order[:k]) for k in sizes}
    try:
        for k in sizes:
            # Where every choice is looked at, no other start is needed.
            starts = 0 if is_small(m, k) else _STARTS
            supports[k] = many_starts(
                task.gram, task.cross, k, task.alpha, allowed, task.tie, [order[:k]], starts
            )[0]
    except KeyboardInterrupt:
        return supports, "interrupted"
    return supports, ""
