r"""Few columns: the fewest errors on every circle of the arrangement.

Each cell of the arrangement has an edge: an arc of the circle on which m - 2 independent rows
vanish. Next to the arc these rows can all be right, so that the least weight of errors of the
*other* rows over all arcs of all such circles is the minimum (in general position; a lower bound
in any case). That takes n^(m-2) circles, each of which sorts 2 n angles: much for clean data, which
branch and bound closes at once, and the way out where labels are mere noise. It is the
combinatorial algorithm for halfspace depth (P. J. Rousseeuw and A. Struyf, Stat. Comput. 8 (1998)
193-203; R. Dyckerhoff and P. Mozharovskyi, Comput. Stat. Data Anal. 98 (2016) 19-30).

The bound is safe from rounding: the half circle on which a row is right is widened by more than the
angle can be wrong, and rows of which nothing is certain count as right.
"""

from __future__ import annotations

import math
import time
from functools import partial

import numpy as np
from numpy.typing import NDArray

from trueline.numerics.blas import run_strands
from trueline.numerics.jit import kernel
from trueline.separation.zero_one.conflicts import orthogonalise, sort_order
from trueline.separation.zero_one.problem import Task

Array = NDArray[np.float64]

_EPS = float(np.finfo(np.float64).eps)
# Seconds per angle that is sorted, measured.
_PER_ROW = 2e-7
# Rows whose independence is less certain than this are not relied upon.
_DEPENDENT = 1e-8
_STRANDS = 16


def enumeration_seconds(task: Task) -> float:
    """About how long it takes."""
    k, m = task.A.shape
    if m < 2:
        return math.inf
    return math.comb(k, m - 2) * (k + 4.0 * m * m) * _PER_ROW


def enumerate_circles(task: Task, deadline: float = math.inf) -> tuple[float, Array] | None:
    """A lower bound on the weight of errors, and a point of the arc that has it.

    None if there was not enough time, or if rows are too nearly dependent.
    """
    k, m = task.A.shape
    lengths = np.sqrt(np.sum(task.A**2, axis=1))
    unit = np.ascontiguousarray(task.A / lengths[:, None])
    is_integer = task.separation > 1e-6
    least, point = math.inf, np.zeros(m)
    firsts = range(k - (m - 2) + 1) if m > 2 else range(1)
    work = partial(_circles_of, unit, task.s, is_integer)
    for start in range(0, len(firsts), _STRANDS):
        if time.perf_counter() > deadline:
            return None
        for value, found in run_strands(work, list(firsts[start : start + _STRANDS])):
            if value < least:
                least, point = value, found
    return (least, point) if math.isfinite(least) else None


def _circles_of(unit: Array, s: Array, is_integer: bool, first: int) -> tuple[float, Array]:
    point = np.zeros(unit.shape[1])
    return float(_circles(unit, s, is_integer, first, point)), point


@kernel
def _circles(unit: Array, s: Array, is_integer: bool, first: int, point: Array) -> float:
    """The least weight on the circles whose first row is given; minus infinity if not certain."""
    n, m = unit.shape
    depth = m - 2
    Q = np.zeros((m, m))
    volume = np.ones(depth + 1)
    chosen = np.zeros(depth + 1, dtype=np.int64)
    angles, changes = np.empty(2 * n), np.empty(2 * n)
    order, spare = np.empty(2 * n, dtype=np.int64), np.empty(2 * n, dtype=np.int64)
    least = np.inf
    if depth == 0:
        return _least_on_circle(
            unit, s, Q, 0, 1.0, chosen, angles, changes, order, spare, least, point
        )
    at = 0
    chosen[0] = first
    while at >= 0:
        # Rows up to ``at`` are chosen; the last one is made orthogonal to those before.
        i = chosen[at]
        if i > n - depth + at or (at == 0 and i != first):
            at -= 1
            if at >= 0:
                chosen[at] += 1
            continue
        for c in range(m):
            Q[at, c] = unit[i, c]
        length = orthogonalise(Q, at, at)
        volume[at + 1] = volume[at] * length
        if volume[at + 1] < _DEPENDENT:
            if not is_integer:
                return -np.inf
            chosen[at] += 1  # dependent: other rows vanish on the same circle
            continue
        for c in range(m):
            Q[at, c] /= length
        if at + 1 < depth:
            chosen[at + 1] = i + 1
            at += 1
            continue
        least = _least_on_circle(
            unit, s, Q, depth, volume[depth], chosen, angles, changes, order, spare, least, point
        )
        chosen[at] += 1
    return least


@kernel
def _least_on_circle(
    unit: Array,
    s: Array,
    Q: Array,
    depth: int,
    volume: float,
    chosen: NDArray[np.int64],
    angles: Array,
    changes: Array,
    order: NDArray[np.int64],
    spare: NDArray[np.int64],
    least: float,
    point: Array,
) -> float:
    """The least weight of errors on a circle if below ``least``; ``point`` becomes where it is."""
    n, m = unit.shape
    _complete(Q, depth)
    # The smallest singular value of unit rows is at least their volume over sqrt(depth)^(depth-1).
    smallest = volume / np.sqrt(float(max(depth, 1))) ** max(depth - 1, 0)
    noise = 100.0 * m * m * _EPS / smallest
    errors, count, q = 0.0, 0, 0
    for i in range(n):
        while q < depth and chosen[q] < i:
            q += 1
        if q < depth and chosen[q] == i:
            continue
        x, y = 0.0, 0.0
        for c in range(m):
            x += unit[i, c] * Q[depth, c]
            y += unit[i, c] * Q[depth + 1, c]
        size = np.sqrt(x * x + y * y)
        if not size > 8.0 * noise:
            continue  # nothing is certain of this row
        wider = 2.0 * noise / size + 1e-14
        middle = np.arctan2(y, x)
        first, last = middle - 0.5 * np.pi - wider, middle + 0.5 * np.pi + wider
        right = last > np.pi or first <= -np.pi
        if first <= -np.pi:
            first += 2 * np.pi
        if last > np.pi:
            last -= 2 * np.pi
        angles[count], changes[count] = first, -s[i]
        angles[count + 1], changes[count + 1] = last, s[i]
        count += 2
        if not right:
            errors += s[i]
    if count == 0:
        for c in range(m):
            point[c] = Q[depth, c]
        return min(least, 0.0)
    sort_order(angles, count, order, spare)
    for e in range(count):
        errors += changes[order[e]]
        if errors < least:
            least = errors
            here = angles[order[e]]
            after = angles[order[e + 1]] if e + 1 < count else angles[order[0]] + 2 * np.pi
            theta = 0.5 * (here + after)
            for c in range(m):
                point[c] = Q[depth, c] * np.cos(theta) + Q[depth + 1, c] * np.sin(theta)
    return least


@kernel
def _complete(Q: Array, depth: int) -> None:
    """Two more directions make the orthonormal rows of Q complete."""
    m = Q.shape[1]
    for place in range(depth, m):
        best, axis = -1.0, 0
        for c in range(m):
            left = 1.0
            for h in range(place):
                left -= Q[h, c] * Q[h, c]
            if left > best:
                best, axis = left, c
        for c in range(m):
            Q[place, c] = 1.0 if c == axis else 0.0
        length = orthogonalise(Q, place, place)
        for c in range(m):
            Q[place, c] /= length
