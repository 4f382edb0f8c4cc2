"""The best supports of several sizes, one search after the other, each helped by the others."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from trueline.best_subset.exchange import descend, forward, lowest_indices, many_starts
from trueline.best_subset.node import (
    Quadratic,
    Start,
    correlation,
    is_small,
    least_eigenvalue,
    relaxed,
)
from trueline.best_subset.path import carried_down
from trueline.best_subset.rounding import least_of_all, lowered
from trueline.best_subset.search import Found, search

__all__ = ["Answer", "best_subsets"]

Array = NDArray[np.float64]
Support = NDArray[np.int64]
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
