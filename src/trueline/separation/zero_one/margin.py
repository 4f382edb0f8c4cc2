"""Of all hyperplanes with the same errors, the one that is returned.

    maximise t    subject to    a_i.v >= t g_i  for the rows that are right,    abs(w_j) <= 1

in columns of about unit size, with g_i the weight of a row relative to the largest one: rounding
and small changes of the data then change as little as possible, least of all rows that weigh much.

This small linear program, with coefficients in a box h, is solved by the revised simplex method on
its dual,

    minimise sum_j h_j (p_j + q_j)    subject to    sum_i l_i a_i - p + q = 0,    g.l = 1,

with l, p, q >= 0, in which any single row makes a feasible basis of m + 1 columns and (-v, t) are
the multipliers: each step looks at all rows for the one that v gets least right, and most rows
never enter (G. B. Dantzig, "Linear Programming and Extensions", 1963, chapters 8 and 9). Programs
of this size take a general solver longer to read than to solve.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from trueline.numerics.jit import kernel
from trueline.separation.zero_one.conflicts import evaluate
from trueline.separation.zero_one.local_search import improve
from trueline.separation.zero_one.problem import Task

__all__ = ["largest_least_score", "widest"]

Array = NDArray[np.float64]
Indices = NDArray[np.int64]

# Scores that fall short by less than this part count as reached, and what rounding may add.
_SHORT, _ROUNDING = 1e-10, 1e-15
_TINY = 1e-11
_MOST_PIVOTS = 50


@kernel
def largest_least_score(A: Array, g: Array, h: Array, v: Array) -> float:
    """The least score per g of the best v, which is written to ``v``; -1 if pivots did not end.

    Parameters
    ----------
    A : array of shape (n, m)
    g : array of shape (n,)
        Positive: what is wanted of each row.
    h : array of shape (m,)
        Bounds of the coefficients.
    v : array of shape (m,)
        In: any v; the row that it gets least right is the first of the basis. Out: the best.
    """
    n, m = A.shape
    first, worst = 0, np.inf
    for i in range(n):
        z = _score(A, i, v) / g[i]
        if z < worst:
            first, worst = i, z
    # Columns of the basis: rows by their numbers, p_j as -1 - 2 j and q_j as -2 - 2 j.
    basis, x = np.empty(m + 1, dtype=np.int64), np.empty(m + 1)
    inverse, price = np.zeros((m + 1, m + 1)), np.empty(m + 1)
    _begin(A, g, first, basis, x, inverse)
    entering = np.empty(m + 1)
    objective, idle = float(np.inf), 0
    for _ in range(_MOST_PIVOTS * (m + 10)):
        _multipliers(basis, h, inverse, price)
        if price[m] < objective * (1 - 1e-12):
            objective, idle = float(price[m]), 0
        else:
            idle += 1
        # Where steps of no length go round in circles, the first column is taken (R. G. Bland,
        # Math. Oper. Res. 2 (1977) 103-107).
        in_turn = idle > 2 * m + 20
        column = _cheapest(A, g, h, price, in_turn)
        if column == -1 - 2 * m:
            return _finish(A, g, h, price, v)
        _column(A, g, column, inverse, entering)
        place = _leaving(basis, x, entering, in_turn)
        if place < 0:
            return -1.0
        _exchange(x, inverse, entering, place)
        basis[place] = column
    return -1.0


@kernel
def _score(A: Array, i: int, v: Array) -> float:
    total = 0.0
    for c in range(A.shape[1]):
        total += A[i, c] * v[c]
    return total


@kernel
def _begin(A: Array, g: Array, first: int, basis: Indices, x: Array, inverse: Array) -> None:
    """The basis of one row, and p_j or q_j by the signs of its numbers."""
    m = A.shape[1]
    for j in range(m):
        sign = -1.0 if A[first, j] > 0.0 else 1.0
        basis[j] = -1 - 2 * j if sign < 0.0 else -2 - 2 * j
        inverse[j, j], inverse[j, m] = sign, -sign * A[first, j] / g[first]
        x[j] = abs(A[first, j]) / g[first]
    basis[m], x[m], inverse[m, m] = first, 1.0 / g[first], 1.0 / g[first]


@kernel
def _multipliers(basis: Indices, h: Array, inverse: Array, price: Array) -> None:
    """Of the equations: (-v, t)."""
    for c in range(len(basis)):
        price[c] = 0.0
    for q in range(len(basis)):
        if basis[q] < 0:
            cost = h[(-1 - basis[q]) // 2]
            for c in range(len(basis)):
                price[c] += cost * inverse[q, c]


@kernel
def _cheapest(A: Array, g: Array, h: Array, price: Array, in_turn: bool) -> int:
    """The column that falls short the most, or the first that does; -1 - 2 m if none does."""
    n, m = A.shape
    t, size = price[m], 0.0
    for c in range(m):
        size += abs(price[c])
    slack = _ROUNDING * size
    chosen, least = -1 - 2 * m, 0.0
    for c in range(m):
        short = h[c] - abs(price[c])
        if short < min(least, -_SHORT * h[c]):
            # v_c = -price[c]: above the box p_c enters, below it q_c.
            chosen, least = (-1 - 2 * c if price[c] < 0.0 else -2 - 2 * c), short
            if in_turn:
                return chosen
    for i in range(n):
        z = -t * g[i]
        for c in range(m):
            z -= A[i, c] * price[c]
        if z < least and z < -(_SHORT * abs(t) * g[i] + slack):
            chosen, least = i, z
            if in_turn:
                return chosen
    return chosen


@kernel
def _column(A: Array, g: Array, column: int, inverse: Array, entering: Array) -> None:
    """A column in terms of the basis."""
    m = A.shape[1]
    for q in range(m + 1):
        if column >= 0:
            total = inverse[q, m] * g[column]
            for c in range(m):
                total += inverse[q, c] * A[column, c]
            entering[q] = total
        else:
            place = (-1 - column) // 2
            entering[q] = -inverse[q, place] if (-1 - column) % 2 == 0 else inverse[q, place]


@kernel
def _leaving(basis: Indices, x: Array, entering: Array, in_turn: bool) -> int:
    """Which column becomes zero first; of several, the one with the safest pivot."""
    place, ratio = -1, np.inf
    for q in range(len(basis)):
        if entering[q] <= _TINY:
            continue
        step = x[q] / entering[q]
        better = step < ratio * (1 - 1e-12)
        if not better and step <= ratio * (1 + 1e-12) and place >= 0:
            if in_turn:
                better = _turn(basis[q], len(x)) < _turn(basis[place], len(x))
            else:
                better = entering[q] > entering[place]
        if better:
            place, ratio = q, step
    return place


@kernel
def _turn(column: int, size: int) -> int:
    """The order in which columns are looked at."""
    return -1 - column if column < 0 else 2 * size + column


@kernel
def _exchange(x: Array, inverse: Array, entering: Array, place: int) -> None:
    size = len(x)
    factor = 1.0 / entering[place]
    x[place] *= factor
    for c in range(size):
        inverse[place, c] *= factor
    for q in range(size):
        if q != place and entering[q] != 0.0:
            x[q] = max(x[q] - entering[q] * x[place], 0.0)
            for c in range(size):
                inverse[q, c] -= entering[q] * inverse[place, c]


@kernel
def _finish(A: Array, g: Array, h: Array, price: Array, v: Array) -> float:
    """v inside the box, and its least score as it is, whatever rounding did before."""
    n, m = A.shape
    for c in range(m):
        v[c] = min(max(-price[c], -h[c]), h[c])
    least = np.inf
    for i in range(n):
        least = min(least, _score(A, i, v) / g[i])
    return least


_LEAST = 1e-6
# Hyperplanes with as few errors that are compared, if sorting their angles takes no time.
_OTHERS = 4
_FEW = 20_000


def widest(task: Task, v: Array) -> Array:
    """A hyperplane with errors of no more weight than v has, its right rows as far off as possible.

    A few other cells with as few errors are compared.
    """
    z = np.empty(len(task.s))
    value = evaluate(task.A, v, task.s, z)
    best, margin = v, 0.0
    seen: set[bytes] = set()
    # Without errors there is one cell.
    for seed in range(_OTHERS if len(task.s) <= _FEW and value > 0 else 1):
        other = v if seed == 0 else improve(task.A, task.s, value, v, seed=seed)[1]
        if evaluate(task.A, other, task.s, z) > value or (z > 0).tobytes() in seen:
            continue
        seen.add((z > 0).tobytes())
        right = z > 0
        if not right.any():
            continue
        wanted = np.maximum(task.s[right] / task.s[right].max(), _LEAST)
        wide = other.copy()
        least = largest_least_score(task.A[right], wanted, _box(task), wide)
        if least > margin and evaluate(task.A, wide, task.s, z) <= value:
            best, margin = wide, least
    return best


def _box(task: Task) -> Array:
    """Bounds of v; an intercept beyond all scores has the sign of all rows."""
    largest = np.ones(len(task.columns))
    if task.fit_intercept and len(largest) and task.columns[-1] == task.n_features:
        largest[-1] = 2.0 * len(largest)
    return largest
