"""Exact arithmetic: conflicts decided beyond doubt, and the whole search where doubles fail.

Doubles are integers times powers of two. Everything here is computed with Python's integers and
fractions: slow, and right.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from fractions import Fraction
from math import inf

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Row = list[int]


def integer_rows(A: Array) -> list[Row]:
    """Rows of integers that are positive multiples of rows of doubles.

    Examples
    --------
    >>> import numpy as np
    >>> from trueline.separation.zero_one.exact import integer_rows
    >>> integer_rows(np.array([[0.5, -0.75]]))
    [[2, -3]]
    """
    rows = []
    for row in A.tolist():
        ratios = [value.as_integer_ratio() for value in row]
        most = max(denominator for _, denominator in ratios)
        rows.append([numerator * (most // denominator) for numerator, denominator in ratios])
    return rows


def signs_at(rows: Sequence[Row], v: Sequence[int]) -> list[int]:
    """The sign of each row's score at v.

    Examples
    --------
    >>> from trueline.separation.zero_one.exact import signs_at
    >>> signs_at([[1, -1], [2, 1]], [1, 1])
    [0, 1]
    """
    totals = [sum(a * c for a, c in zip(row, v)) for row in rows]
    return [(total > 0) - (total < 0) for total in totals]


def is_conflict(rows: Sequence[Row]) -> bool:
    """Whether no v has a positive score for all of these rows.

    Examples
    --------
    >>> from trueline.separation.zero_one.exact import is_conflict
    >>> is_conflict([[1, 0], [0, 1], [-1, -1]]), is_conflict([[1, 0], [0, 1]])
    (True, False)
    """
    return separate(rows, range(len(rows)))[0] is None


def separate(
    rows: Sequence[Row], members: Sequence[int]
) -> tuple[list[Fraction] | None, list[int]]:
    """v with a positive score for all members; or None, and the members of a conflict.

    The dual simplex of :mod:`trueline.separation.zero_one.simplex` with Bland's
    rule, in fractions.
    """
    m = len(rows[0])
    basis: list[int | None] = [None] * m
    inverse = [[Fraction(int(j == c)) for c in range(m)] for j in range(m)]
    price = [Fraction(1)] * m
    while True:
        alive = [j for j in range(m) if basis[j] is not None]
        v = [sum((inverse[j][c] for j in alive), Fraction(0)) for c in range(m)]
        entering = next(
            (i for i in members if sum(a * c for a, c in zip(rows[i], v)) <= 0), None
        )  # fmt: skip
        if entering is None:
            return v, []
        row = rows[entering]
        alpha = [sum((a * c for a, c in zip(row, inverse[j])), Fraction(0)) for j in range(m)]
        dead = [j for j in range(m) if basis[j] is None and alpha[j] != 0]
        if dead:
            leaving = dead[0]
            price[leaving] = Fraction(1)
        else:
            rising = [j for j in alive if alpha[j] > 0]
            if not rising:
                return None, [entering, *(_member(basis[j]) for j in alive if alpha[j] < 0)]
            leaving = min(rising, key=lambda j: (price[j] / alpha[j], _member(basis[j])))
            step = price[leaving] / alpha[leaving]
            price = [p - step * a for p, a in zip(price, alpha)]
            price[leaving] = step
        pivot = [c / alpha[leaving] for c in inverse[leaving]]
        inverse = [
            pivot if j == leaving else [c - alpha[j] * p for c, p in zip(inverse[j], pivot)]
            for j in range(m)
        ]
        basis[leaving] = entering


def _member(row: int | None) -> int:
    assert row is not None
    return row


# Decisions are nested as deep as there are rows.
_MOST_ROWS = 300


class _OutOfTime(Exception):
    """The search in fractions was cut off."""


def exact_search(
    rows: Sequence[Row], weights: Sequence[float], deadline: float = inf
) -> tuple[Fraction, list[Fraction]] | None:
    """The least weight of errors and a hyperplane that has it, in exact arithmetic.

    Parameters
    ----------
    rows : sequence of rows of integers
    weights : sequence of float
    deadline : float
        Of ``time.perf_counter``.

    Returns
    -------
    found : tuple, or None
        None if there was not enough time, or if there are too many rows.
    """
    if len(rows) > _MOST_ROWS:
        return None
    search = _ExactSearch(rows, [Fraction(s) for s in weights], deadline)
    try:
        search.explore(frozenset(range(len(rows))), frozenset(), Fraction(0))
    except _OutOfTime:
        return None
    return search.best, search.v


class _ExactSearch:
    """Branch and bound on rows, as in :mod:`.branching`, without any rounding."""

    def __init__(self, rows: Sequence[Row], weights: Sequence[Fraction], deadline: float) -> None:
        self.rows, self.weights, self.deadline = rows, weights, deadline
        self.best = sum(weights, Fraction(0)) + 1
        self.v = [Fraction(0)] * len(rows[0])

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

    def _offer(self, v: list[Fraction]) -> None:
        scores = (sum(a * c for a, c in zip(row, v)) for row in self.rows)
        total = sum(
            (s for s, score in zip(self.weights, scores) if score <= 0), Fraction(0)
        )  # fmt: skip
        if total < self.best:
            self.best, self.v = total, v
