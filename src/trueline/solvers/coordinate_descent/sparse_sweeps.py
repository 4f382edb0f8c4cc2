r"""Sweeps of coordinate steps on sparse columns, for several penalties in one compiled call.

Centring is implicit, as in :mod:`~trueline.solvers.coordinate_descent.residual`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from trueline.design.sparse_columns import Indices, column_dot, four_dots
from trueline.numerics.jit import kernel
from trueline.solvers.coordinate_descent.kernels import conjugate, soft_threshold_step

__all__ = [
    "MOST_SWEEPS",
    "Point",
    "SweptColumns",
    "WorkingSet",
    "confirm",
    "correlate",
    "enter",
    "solve",
]

Array = NDArray[np.float64]
Integers = NDArray[np.intp]

# A point that needs more sweeps than this is left to others.
MOST_SWEEPS = 40


class SweptColumns(NamedTuple):
    """Compressed columns sqrt(s) x_j, ||v_j||^2, m_j, (S m_j, m_j), sqrt(s) and the target."""

    data: Array
    indices: Indices
    indptr: Indices
    squares: Array
    mean: Array
    pulls: Array
    root: Array
    y: Array


class Point(NamedTuple):
    """Coefficients, those of the point before, and the residual."""

    w: Array
    last: Array
    r: Array


class WorkingSet(NamedTuple):
    """Whether each column is in, and the columns in the order of entry."""

    is_in: NDArray[np.bool_]
    inside: Integers


@kernel
def _sweep(
    columns: SweptColumns,
    which: Integers,
    p: Array,
    shift: float,
    w: Array,
    level: float,
    bend: float,
    only_free: bool,
) -> tuple[float, float]:
    """One step for each coordinate, or for each that is not zero; the new shift, the worst step."""
    data, indices, indptr, pulls = columns.data, columns.indices, columns.indptr, columns.pulls
    worst = 0.0
    for j in which:
        before = w[j]
        if only_free and before == 0.0:
            continue
        square = columns.squares[j]
        dot = column_dot(data, indices, indptr[j], indptr[j + 1], p) + shift * pulls[0, j]
        after = soft_threshold_step(
            dot + square * before, level, square + bend, -np.inf, np.inf, before
        )
        change = after - before
        if change != 0.0:
            w[j] = after
            worst = max(worst, abs(change) * (square + bend))
            shift += change * pulls[1, j]
            for e in range(np.uint64(indptr[j]), np.uint64(indptr[j + 1])):
                p[np.uint64(indices[e])] -= change * data[e]
    return shift, worst


@kernel
def _go_on(which: Integers, way: float, w: Array, last: Array) -> None:
    """Go on from ``last`` to w, by ``way`` as much again; w is ``last`` then.

    Between changes of the support the path is a straight line. Coefficients that would change sign
    stop at zero, and those at zero stay there.
    """
    for j in which:
        at = w[j]
        ahead = at + way * (at - last[j])
        w[j] = ahead if ahead * at > 0.0 else 0.0
        last[j] = at


@kernel
def _settle(
    columns: SweptColumns,
    which: Integers,
    r: Array,
    w: Array,
    level: float,
    bend: float,
    enough: float,
) -> int:
    """Sweep until the steps are worth no more than is enough, or too many were made; how many."""
    size = 0.0
    for j in which:
        size += level * abs(w[j])
    shift, only_free, sweeps = 0.0, False, 0
    while sweeps < MOST_SWEEPS:
        shift, worst = _sweep(columns, which, r, shift, w, level, bend, only_free)
        sweeps += 1
        # A correlation of this share of the level is worth as much as the gap that is asked for.
        is_small = worst * size <= enough * level
        if is_small and not only_free:
            break
        only_free = not is_small
    for i in range(len(r)):
        r[i] += shift * columns.root[i]
    return sweeps


@kernel
def _residual(columns: SweptColumns, which: Integers, w: Array, r: Array) -> None:
    """r = y - V w afresh, so that no rounding adds up."""
    data, indices, indptr = columns.data, columns.indices, columns.indptr
    r[:] = columns.y
    lift = 0.0
    for j in which:
        value = w[j]
        if value != 0.0:
            lift += value * columns.mean[j]
            for e in range(np.uint64(indptr[j]), np.uint64(indptr[j + 1])):
                r[np.uint64(indices[e])] -= value * data[e]
    for i in range(len(r)):
        r[i] += lift * columns.root[i]


@kernel
def correlate(
    columns: SweptColumns,
    chosen: Integers,
    R: Array,
    Q: Array,
    known: Array,
    last: int,
    most: Array,
) -> None:
    """Q = V^T R for chosen columns and four residuals, which share the reading; max_j abs(Q_j).

    What x_j has in common with the residual ``last`` is written down as known.
    """
    data, indices, indptr = columns.data, columns.indices, columns.indptr
    totals = np.zeros(4)
    for i in range(len(columns.root)):
        for b in range(4):
            totals[b] += columns.root[i] * R[i, b]
    most[:] = 0.0
    for j in chosen:
        Q[j, 0], Q[j, 1], Q[j, 2], Q[j, 3] = four_dots(data, indices, indptr[j], indptr[j + 1], R)
        known[j] = Q[j, last]
        for b in range(4):
            Q[j, b] -= columns.mean[j] * totals[b]
            most[b] = max(most[b], abs(Q[j, b]))


@kernel
def enter(Q: Array, at: int, level: float, chosen: Integers, now: WorkingSet, count: int) -> int:
    """Let chosen columns in whose correlation reaches a level; how many there are then."""
    for j in chosen:
        if abs(Q[j, at]) >= level and not now.is_in[j]:
            now.is_in[j] = True
            now.inside[count] = j
            count += 1
    return count


@kernel
def _gap(
    w: Array,
    Q: Array,
    at: int,
    most: float,
    level: float,
    bend: float,
    which: Integers,
    square: float,
) -> tuple[float, float]:
    """The duality gap and the objective of a point whose other coefficients are zero."""
    t = 1.0 if bend > 0.0 else level / max(level, most)
    gap, objective = 0.5 * (1.0 - t) * (1.0 - t) * square, 0.5 * square
    for k in range(len(which)):
        v, value = t * Q[which[k], at], level * abs(w[k]) + 0.5 * bend * w[k] * w[k]
        dual = conjugate(v, level, bend, -np.inf, np.inf) if bend > 0.0 else 0.0
        objective += value
        gap += max(value + dual - v * w[k], 0.0)
    return gap, objective


@kernel
def solve(
    columns: SweptColumns,
    point: Point,
    which: Integers,
    levels: Array,
    curvatures: Array,
    ways: Array,
    enough: float,
    R: Array,
    W: Array,
    facts: Array,
) -> None:
    """Solve for the levels on the columns that are in, one after the other.

    From one to the next it goes by ``ways``, or not at all if that is negative. Row b of W holds
    the coefficients before the point b; residuals are the columns of R.
    """
    m, (w, last, r) = len(levels), point
    for b in range(m):
        if ways[b] >= 0.0:
            _go_on(which, ways[b], w, last)
        for k in range(len(which)):
            W[b, k] = last[which[k]]
        _residual(columns, which, w, r)
        facts[3, b] = _settle(columns, which, r, w, levels[b], curvatures[b], enough)
        facts[2, b] = 0.0
        for i in range(len(r)):
            R[i, b] = r[i]
            facts[2, b] += r[i] * r[i]
    for k in range(len(which)):
        W[m, k] = w[which[k]]
    for i in range(len(r)):
        for b in range(m, R.shape[1]):
            R[i, b] = r[i]  # no point of their own


@kernel
def confirm(
    W: Array,
    Q: Array,
    chosen: Integers,
    now: WorkingSet,
    count: int,
    levels: Array,
    curvatures: Array,
    target: float,
    slack: float,
    point: Point,
    facts: Array,
) -> tuple[int, int]:
    """How many points can be confirmed, and how many columns are in then.

    The walk stands at the last point that was confirmed, or at the first one that was not, with
    what it had missed let in.
    """
    m, known, which = len(levels), count, now.inside[:count]
    done = m
    for b in range(m):
        facts[0, b], facts[1, b] = _gap(
            W[b + 1], Q, b, facts[4, b], levels[b], curvatures[b], which, facts[2, b]
        )
        if facts[4, b] > (1.0 + slack) * levels[b]:
            count = enter(Q, b, (1.0 + slack) * levels[b], chosen, now, count)
        if count > known or not facts[0, b] <= target:
            done = b
            break
    at = min(done, m - 1)
    for k in range(known):
        point.last[which[k]], point.w[which[k]] = W[at, k], W[at + 1, k]
    return done, count
