"""Exact arithmetic: conflicts decided beyond doubt, and the whole search where doubles fail.

Doubles are integers times powers of two. Everything here is decided by the exact steps of
:mod:`trueline.separation.exact`: slow, and right.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from fractions import Fraction
from math import inf

import numpy as np
from numpy.typing import NDArray

from trueline.separation.exact import Dependence, exchange
from trueline.separation.inequalities import SignedRows
from trueline.separation.lifting import Integers, exact_products

Array = NDArray[np.float64]


def is_conflict(A: Array) -> bool:
    """Whether no v has a positive score for all of these rows.

    Examples
    --------
    >>> import numpy as np
    >>> from trueline.separation.zero_one.exact import is_conflict
    >>> rows = np.array([[1.0, 0.0], [0.0, 1.0], [-1.0, -1.0]])
    >>> is_conflict(rows), is_conflict(rows[:2])
    (True, False)
    """
    return separate(as_rows(A), range(len(A)))[0] is None


def as_rows(A: Array) -> SignedRows:
    """The inequalities a_i.v > 0."""
    return SignedRows(A, np.ones(len(A)), fit_intercept=False)


def separate(rows: SignedRows, members: Sequence[int]) -> tuple[Integers | None, list[int]]:
    """v in whole numbers with a positive score for all members; or None, and a conflict of some."""
    found = exchange(rows, np.empty(0, dtype=np.intp), np.array(members, dtype=np.intp))
    return (None, list(found.multipliers)) if isinstance(found, Dependence) else (found, [])


# Decisions are nested as deep as there are rows.
_MOST_ROWS = 300


class _OutOfTime(Exception):
    """The search in fractions was cut off."""


def exact_search(
    A: Array, weights: Sequence[float], deadline: float = inf
) -> tuple[Fraction, Integers] | None:
    """The least weight of errors and a hyperplane that has it, in exact arithmetic.

    Parameters
    ----------
    A : array of shape (n, m)
    weights : sequence of float
    deadline : float
        Of ``time.perf_counter``.

    Returns
    -------
    found : tuple, or None
        None if there was not enough time, or if there are too many rows.
    """
    if len(A) > _MOST_ROWS:
        return None
    search = _ExactSearch(as_rows(A), [Fraction(s) for s in weights], deadline)
    try:
        search.explore(frozenset(range(len(A))), frozenset(), Fraction(0))
    except _OutOfTime:
        return None
    return search.best, search.v


class _ExactSearch:
    """Branch and bound on rows, as in :mod:`.branching`, without any rounding."""

    def __init__(self, rows: SignedRows, weights: Sequence[Fraction], deadline: float) -> None:
        self.rows, self.weights, self.deadline = rows, weights, deadline
        self.whole = rows.integers(np.arange(rows.n))[0]
        self.best = sum(weights, Fraction(0)) + 1
        self.v: Integers = np.zeros(rows.size, dtype=object)

    def explore(self, free: frozenset[int], required: frozenset[int], cost: Fraction) -> None:
        if time.perf_counter() > self.deadline:
            raise _OutOfTime
        left = {i: self.weights[i] for i in free}
        bound, fewest = cost, None
        while True:
            v, conflict = separate(self.rows, [*required, *left])
            if v is not None:
                break
            charged = [i for i in conflict if i in left]
            if not charged:
                return
            charge = min(left[i] for i in charged)
            bound += charge
            if bound >= self.best:
                return
            for i in charged:
                left[i] -= charge
                if left[i] == 0:
                    del left[i]
            whole = [i for i in conflict if i in free]
            fewest = whole if fewest is None or len(whole) < len(fewest) else fewest
        self._offer(v)
        if fewest is None or bound >= self.best:
            return
        row = max(fewest, key=lambda i: self.weights[i])
        rest = free - {row}
        self.explore(rest, required, cost + self.weights[row])
        self.explore(rest, required | {row}, cost)

    def _offer(self, v: Integers) -> None:
        wrong = np.flatnonzero(exact_products(self.whole, v) <= 0)
        total = sum((self.weights[i] for i in wrong.tolist()), Fraction(0))
        if total < self.best:
            self.best, self.v = total, v
