r"""The lasso and the elastic net along a path, on sparse columns, one compiled call per point.

    minimise over w   1/2 ||y - V w||^2 + l ||w||_1 + a/2 ||w||^2,      v_j = sqrt(s) (x_j - m_j)

Columns of text have few entries and little in common: sweeps of coordinate steps (J. Friedman, T.
Hastie, R. Tibshirani, "Regularization paths for generalized linear models via coordinate descent",
J. Stat. Softw. 33 (2010) 1, section 2.2: naive updates) settle within a few rounds, and what is done
between two of them would take longer than they do. Columns are let in by the sequential strong rule

    abs(v_j.r) >= 2 l - l_before

(R. Tibshirani et al., "Strong rules for discarding predictors in lasso-type problems", J. R. Stat.
Soc. B 74 (2012) 245-266); a reading of all columns then tells which were missed, and what the
duality gap is. Where the sweeps do not settle, the walk ends: who called it knows other ways.
Centring is implicit, as in :mod:`~trueline.solvers.coordinate.residual`.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from trueline._jit import kernel
from trueline.design.columns import SparseColumns
from trueline.design.sparse_columns import Indices, column_dot
from trueline.solvers.coordinate.kernels import column_minimiser, conjugate
from trueline.solvers.coordinate.point import PathPoint

__all__ = ["SparseWalk"]

Array = NDArray[np.float64]
Integers = NDArray[np.intp]

# So many points are solved one after the other and confirmed by one reading of all columns.
_AT_ONCE = 4
# Levels below this share of the last one are too far away for the strong rule to leave much out.
_REACH = 0.75
# What the strong rule can ask for after that: 2 _REACH - 1, with room for rounding.
_FLOOR = 0.499
# A point that needs more sweeps than this is left to others.
_MOST_SWEEPS = 40
# Sweeps end when no coordinate step is worth more than this share of the gap that is asked for.
_SHARE = 0.5


@kernel
def _sweep(
    data: Array,
    indices: Indices,
    indptr: Indices,
    which: Integers,
    squares: Array,
    pulls: Array,
    p: Array,
    shift: float,
    w: Array,
    level: float,
    bend: float,
    only_free: bool,
) -> tuple[float, float]:
    """One step for each coordinate, or for each that is not zero; the new shift, the worst pull.

    ``pulls`` holds S m_j and m_j.
    """
    worst = 0.0
    for j in which:
        before = w[j]
        if only_free and before == 0.0:
            continue
        square = squares[j]
        dot = column_dot(data, indices, indptr[j], indptr[j + 1], p) + shift * pulls[0, j]
        after = column_minimiser(
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
    data: Array,
    indices: Indices,
    indptr: Indices,
    which: Integers,
    squares: Array,
    pulls: Array,
    root: Array,
    r: Array,
    w: Array,
    level: float,
    bend: float,
    target: float,
) -> int:
    """Sweep until the steps are worth no more than the target, or too many were made; how many."""
    size = 0.0
    for j in which:
        size += level * abs(w[j])
    shift, only_free, sweeps = 0.0, False, 0
    while sweeps < _MOST_SWEEPS:
        shift, worst = _sweep(
            data, indices, indptr, which, squares, pulls, r, shift, w, level, bend, only_free
        )
        sweeps += 1
        # A pull of this share of the level is worth as much as the gap that is asked for.
        is_small = worst * size <= _SHARE * target * level
        if is_small and not only_free:
            break
        only_free = not is_small
    for i in range(len(r)):
        r[i] += shift * root[i]
    return sweeps


@kernel
def _residual(
    data: Array,
    indices: Indices,
    indptr: Indices,
    which: Integers,
    mean: Array,
    root: Array,
    y: Array,
    w: Array,
    r: Array,
) -> None:
    """r = y - V w afresh, so that no rounding adds up."""
    r[:] = y
    lift = 0.0
    for j in which:
        value = w[j]
        if value != 0.0:
            lift += value * mean[j]
            for e in range(np.uint64(indptr[j]), np.uint64(indptr[j + 1])):
                r[np.uint64(indices[e])] -= value * data[e]
    for i in range(len(r)):
        r[i] += lift * root[i]


@kernel
def _correlate(
    data: Array,
    indices: Indices,
    indptr: Indices,
    mean: Array,
    root: Array,
    sizes: Array,
    floor: float,
    R: Array,
    Q: Array,
    most: Array,
) -> None:
    """Q = V^T R for four residuals, with which one reading of a column is shared; max_j abs.

    Columns whose norm or sum of absolute values says that they stay below the floor are not read:
    zeros stand for them.
    """
    totals, squares, largest = np.zeros(4), np.zeros(4), 0.0
    for i in range(len(root)):
        for b in range(4):
            totals[b] += root[i] * R[i, b]
            squares[b] += R[i, b] * R[i, b]
            largest = max(largest, abs(R[i, b]))
    length = np.sqrt(squares.max())
    most[:] = 0.0
    for j in range(len(mean)):
        if min(sizes[0, j] * length, sizes[1, j] * largest) < floor:
            Q[j] = 0.0
            continue
        sum_a = sum_b = sum_c = sum_d = 0.0
        for e in range(np.uint64(indptr[j]), np.uint64(indptr[j + 1])):
            i, x = np.uint64(indices[e]), data[e]
            sum_a += x * R[i, 0]
            sum_b += x * R[i, 1]
            sum_c += x * R[i, 2]
            sum_d += x * R[i, 3]
        Q[j, 0], Q[j, 1] = sum_a - mean[j] * totals[0], sum_b - mean[j] * totals[1]
        Q[j, 2], Q[j, 3] = sum_c - mean[j] * totals[2], sum_d - mean[j] * totals[3]
        for b in range(4):
            most[b] = max(most[b], abs(Q[j, b]))


@kernel
def _enter(
    Q: Array, at: int, level: float, is_in: NDArray[np.bool_], inside: Integers, count: int
) -> int:
    """Let the columns in whose correlation reaches a level; how many there are then."""
    for j in range(len(Q)):
        if abs(Q[j, at]) >= level and not is_in[j]:
            is_in[j] = True
            inside[count] = j
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
def _go(
    data: Array,
    indices: Indices,
    indptr: Indices,
    squares: Array,
    sizes: Array,
    mean: Array,
    pulls: Array,
    root: Array,
    y: Array,
    w: Array,
    last: Array,
    r: Array,
    is_in: NDArray[np.bool_],
    inside: Integers,
    count: int,
    levels: Array,
    bends: Array,
    ways: Array,
    target: float,
    slack: float,
    R: Array,
    Q: Array,
    W: Array,
    facts: Array,
) -> tuple[int, int]:
    """Solve for the levels and confirm what can be; how many were, and how many columns are in.

    The rows of ``facts`` are the gaps, the objectives, the squares of the residuals, the sweeps and
    the largest correlations. The walk stands at the last point that was confirmed, or at the first
    one that was not, with what it had missed let in. From one to the next it goes by ``ways``, or
    not at all if that is negative. Row b of W holds the coefficients before the point b.
    """
    which = inside[:count]
    m = len(levels)
    for b in range(m):
        if ways[b] >= 0.0:
            _go_on(which, ways[b], w, last)
        for k in range(count):
            W[b, k] = last[inside[k]]
        _residual(data, indices, indptr, which, mean, root, y, w, r)
        facts[3, b] = _settle(
            data, indices, indptr, which, squares, pulls, root, r, w, levels[b], bends[b], target
        )
        facts[2, b] = 0.0
        for i in range(len(r)):
            R[i, b] = r[i]
            facts[2, b] += r[i] * r[i]
    for k in range(count):
        W[m, k] = w[inside[k]]
    floor = _FLOOR * levels[-1]
    _correlate(data, indices, indptr, mean, root, sizes, floor, R, Q, facts[4])
    done, known = m, count
    for b in range(m):
        facts[0, b], facts[1, b] = _gap(
            W[b + 1], Q, b, facts[4, b], levels[b], bends[b], which, facts[2, b]
        )
        if facts[4, b] > (1.0 + slack) * levels[b]:
            count = _enter(Q, b, (1.0 + slack) * levels[b], is_in, inside, count)
        if count > known or not facts[0, b] <= target:
            done = b
            break
    at = min(done, m - 1)
    for k in range(known):
        last[inside[k]], w[inside[k]] = W[at, k], W[at + 1, k]
    return done, count


class SparseWalk:
    """A walk along decreasing levels, from where all coefficients rest.

    Parameters
    ----------
    columns : SparseColumns
    y : array of shape (n,)
        The target, weighted and centred as the columns are.
    correlation : array of shape (d,)
        Of all columns with it.

    Attributes
    ----------
    is_stuck : bool
        Whether other ways are needed from here.
    largest_square : float
        Of the columns' squares.
    """

    def __init__(self, columns: SparseColumns, y: Array, correlation: Array) -> None:
        n, d, mean = columns.n, columns.d, columns.mean
        root = np.ones(n) if columns.root is None else columns.root
        squares = columns.store.squares(np.arange(d)) - columns.total * mean**2
        squares = np.maximum(squares, 0.0)
        self.largest_square = float(squares.max(initial=0.0))
        self.is_stuck = False
        pulls = np.array([columns.total * mean, mean])
        sizes = np.array(columns.store.sizes)
        self._entries, self._fixed = columns.store.entries, (squares, sizes, mean, pulls, root, y)
        self._w, self._last, self._r = np.zeros(d), np.zeros(d), np.empty(n)
        self._is_in, self._inside, self._count = np.zeros(d, bool), np.empty(d, dtype=np.intp), 0
        self._R, self._Q = np.zeros((n, _AT_ONCE)), np.zeros((d, _AT_ONCE))
        self._Q[:, 0] = correlation
        self._facts = np.zeros((5, _AT_ONCE))
        # The levels of the last two points, and which column of Q belongs to the last one
        self._levels, self._at = [math.inf, float(np.abs(correlation).max(initial=0.0))], 0

    def go(self, levels: Array, bends: Array, target: float, slack: float) -> list[PathPoint]:
        """The solutions at the first of the next levels, to a gap of at most ``target``.

        ``slack`` is the share of a level by which a correlation may exceed it.
        """
        before = max(self._levels[1], levels[0])
        ahead = int(np.count_nonzero(levels[:_AT_ONCE] >= _REACH * before))
        if not ahead:
            self.is_stuck = True
            return []
        levels, bends = levels[:ahead], bends[:ahead]
        at = np.array([*self._levels, *levels])
        with np.errstate(divide="ignore", invalid="ignore"):
            ways = (at[1:-1] - at[2:]) / (at[:-2] - at[1:-1])
        if self._at >= 0:
            strong = 2.0 * levels[-1] - before
            self._count = _enter(self._Q, self._at, strong, self._is_in, self._inside, self._count)
        else:
            ways[0] = -1.0  # it stands at the first point already
        known = self._count
        W = np.empty((len(levels) + 1, known))
        moving = (self._w, self._last, self._r, self._is_in, self._inside, known)
        out = (self._R, self._Q, W, self._facts)
        done, self._count = _go(
            *self._entries, *self._fixed, *moving, levels, bends, ways, target, slack, *out
        )
        self._at, self._levels = done - 1, at[done : done + 2].tolist()
        self.is_stuck = done == 0 and self._count == known
        return [self._arrived(W[i + 1], i) for i in range(done)]

    def _arrived(self, row: Array, i: int) -> PathPoint:
        places = np.flatnonzero(row)
        columns = self._inside[places]
        order = np.argsort(columns)
        gap, objective, square, sweeps, _ = self._facts[:, i].tolist()
        return PathPoint(columns[order], row[places][order], objective, gap, square, int(sweeps))
