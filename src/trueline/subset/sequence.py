"""The best supports of several sizes, one search after the other, each helped by the others."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from trueline.subset.conditioning import correlation, least_eigenvalue
from trueline.subset.elimination import DEPENDENT, gain_of
from trueline.subset.exchange import descend, forward, independent, lowest_indices, many_starts
from trueline.subset.node import Quadratic, is_small
from trueline.subset.search import Found, search

__all__ = ["Answer", "best_subsets"]

Array = NDArray[np.float64]
Support = NDArray[np.int64]
Watch = Callable[[int, int, float, float, Support], bool]

# Random starts of the exchange descents, for each size.
_STARTS = 40
# Of the smallest eigenvalue found, so that the supports near it are compared too.
_PART = 0.95


@dataclass(frozen=True)
class Answer:
    """The best support of one size, what is proven, and for which supports."""

    k: int
    found: Found
    delta: float
    seconds: float


def best_subsets(
    task: Quadratic,
    sizes: Sequence[int],
    allowed: NDArray[np.bool_],
    delta: float | None,
    time_limit: float = math.inf,
    watch: Watch | None = None,
) -> list[Answer]:
    """Search each size; ``delta`` None means that it is found where it is needed.

    Sizes for which no time is left are answered by exchanges. ``watch`` receives the size, the
    number of nodes, the best value, the bound and the support; True stops.
    """
    deadline = time.perf_counter() + time_limit
    supports = _first_supports(task, sizes, allowed)
    answers: dict[int, Answer] = {}
    interrupted = False
    for index, k in enumerate(sorted(sizes)):
        start = time.perf_counter()
        share = start + (deadline - start) / (len(sizes) - index)
        own = replace(task, k=k, delta=_delta(task, k, allowed, supports[k], delta))
        known = supports[k]
        if answers:  # the best support of one size less, with one more
            smaller = answers[max(answers)].found.support
            more = descend(own.gram, own.cross, smaller, k, own.alpha, allowed, own.tie)[0]
            known = max(known, more, key=lambda s: gain_of(task.gram, task.cross, s))
        until = -math.inf if interrupted else share
        heard = None if watch is None else partial(watch, k)
        found = search(own, allowed, known, until, 0.0, heard)
        interrupted = interrupted or found.reason in ("interrupted", "stopped")
        support = independent(own.gram, found.support, len(found.support), DEPENDENT)
        found = replace(found, support=_with_lowest_indices(own, support, allowed))
        answers[k] = Answer(k, found, own.delta, time.perf_counter() - start)
    return [answers[k] for k in sizes]


def _with_lowest_indices(task: Quadratic, support: Support, allowed: NDArray[np.bool_]) -> Support:
    """The same support, ties broken; as it was if that would cost more than rounding."""
    other = np.sort(lowest_indices(task.gram, task.cross, support, allowed, task.tie))
    loss = gain_of(task.gram, task.cross, support) - gain_of(task.gram, task.cross, other)
    return other if loss <= (len(support) + 1) * task.tie else support


def _delta(
    task: Quadratic,
    k: int,
    allowed: NDArray[np.bool_],
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
    task: Quadratic, sizes: Sequence[int], allowed: NDArray[np.bool_]
) -> dict[int, Support]:
    """Exchange descents from forward selection and from random supports, for every size."""
    order, gains = forward(task.gram, task.cross, min(max(sizes), int(allowed.sum())), allowed)
    if task.alpha > 0:  # how far forward selection is worth going
        net = np.append(0.0, np.cumsum(gains - task.alpha))
        order = order[: int(np.argmax(net))]
    m = int(allowed.sum())
    supports = {}
    for k in sizes:
        starts = 0 if is_small(m, k) else _STARTS  # where every choice is looked at, none is needed
        supports[k] = many_starts(
            task.gram, task.cross, k, task.alpha, allowed, task.tie, [order[:k]], starts
        )[0]
    return supports
