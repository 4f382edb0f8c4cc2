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
from collections.abc import Iterator
from functools import partial
from itertools import combinations, islice

import numpy as np
from numpy.typing import NDArray

from trueline.numerics.blas import run_strands
from trueline.separation.zero_one.problem import Task

Array = NDArray[np.float64]
Indices = NDArray[np.int64]

_EPS = float(np.finfo(np.float64).eps)
# Seconds per angle that is sorted, measured.
_PER_ROW = 2e-7
# Rows whose independence is less certain than this are not relied upon.
_DEPENDENT = 1e-8
# Scores that are computed at once, and how often that is done between looks at the clock.
_AT_ONCE, _STRANDS = 100_000, 8


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
    work = partial(_least_on_circles, unit, task.s, is_integer)
    choices = _choices(k, m - 2)
    while some := list(islice(choices, _STRANDS)):
        if time.perf_counter() > deadline:
            return None
        for value, found in run_strands(work, some):
            if value < least:
                least, point = value, found
    return (least, point) if math.isfinite(least) else None


def _choices(k: int, depth: int) -> Iterator[Indices]:
    """The ways to choose rows, many at a time."""
    every = combinations(range(k), depth)
    while some := list(islice(every, max(_AT_ONCE // k, 1))):
        yield np.array(some, dtype=np.int64).reshape(len(some), depth)


def _least_on_circles(
    unit: Array, s: Array, is_integer: bool, chosen: Indices
) -> tuple[float, Array]:
    """The least weight of errors on the circles on which chosen rows vanish, and where it is.

    Minus infinity if that is not certain.
    """
    m, depth = unit.shape[1], chosen.shape[1]
    if depth:
        Q, R = np.linalg.qr(unit[chosen].transpose(0, 2, 1), mode="complete")
        volume = np.abs(np.diagonal(R, axis1=1, axis2=2)).prod(axis=1)
    else:
        Q, volume = np.eye(m)[None], np.ones(1)
    is_certain = volume >= _DEPENDENT
    if not is_certain.all():
        if not is_integer:
            return -math.inf, Q[0, :, 0]
        # Other rows vanish on the same circles.
        Q, volume, chosen = Q[is_certain], volume[is_certain], chosen[is_certain]
        if not len(Q):
            return math.inf, unit[0]
    x, y = np.moveaxis(np.swapaxes(unit @ Q[:, :, m - 2 :], 1, 2), 1, 0)
    # The smallest singular value of unit rows is at least their volume over sqrt(depth)^(depth-1).
    smallest = volume / math.sqrt(max(depth, 1)) ** max(depth - 1, 0)
    noise = (100.0 * m * m * _EPS / smallest)[:, None]
    size = np.sqrt(x * x + y * y)
    weights = np.where(size > 8.0 * noise, s, 0.0)  # else nothing is certain of this row
    np.put_along_axis(weights, chosen, 0.0, axis=1)
    wider = 2.0 * noise / np.maximum(size, 8.0 * noise) + 1e-14
    middle = np.arctan2(y, x)
    first, last = middle - 0.5 * np.pi - wider, middle + 0.5 * np.pi + wider
    # All angles from -pi to pi; a row that is right at -pi comes in again later.
    early, late = first <= -np.pi, last > np.pi
    first[early] += 2 * np.pi
    last[late] -= 2 * np.pi
    angles = np.concatenate([first, last], axis=1)
    order = np.argsort(angles, axis=1)
    errors = np.take_along_axis(np.concatenate([-weights, weights], axis=1), order, axis=1)
    errors[:, 0] += np.where(early | late, 0.0, weights).sum(axis=1)
    np.cumsum(errors, axis=1, out=errors)
    circle, place = np.unravel_index(errors.argmin(), errors.shape)
    here, after = angles[circle, np.take(order[circle], (place, place + 1), mode="wrap")]
    theta = 0.5 * (here + after + (2 * np.pi if after < here else 0.0))
    u, v = Q[circle, :, m - 2], Q[circle, :, m - 1]
    return float(errors[circle, place]), u * np.cos(theta) + v * np.sin(theta)
