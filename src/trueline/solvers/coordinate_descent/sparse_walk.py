r"""The lasso and the elastic net along a path, on sparse columns, in compiled calls.

    minimise over w   1/2 ||y - V w||^2 + l ||w||_1 + a/2 ||w||^2,      v_j = sqrt(s) (x_j - m_j)

Columns of text have few entries and little in common: sweeps of coordinate steps (J. Friedman, T.
Hastie, R. Tibshirani, "Regularization paths for generalized linear models via coordinate descent",
J. Stat. Softw. 33 (2010) 1, section 2.2: naive updates) settle within a few rounds, and what is
done between two of them would take longer than they do. Columns are let in by the sequential
strong rule

    abs(v_j.r) >= 2 l - l_before

(R. Tibshirani et al., "Strong rules for discarding predictors in lasso-type problems", J. R. Stat.
Soc. B 74 (2012) 245-266); a reading of all columns then tells which were missed, and what the
duality gap is. Where the sweeps do not settle, the walk ends: who called it knows other ways.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from trueline.design.columns import SparseColumns
from trueline.solvers.coordinate_descent.point import PathPoint
from trueline.solvers.coordinate_descent.sparse_sweeps import (
    MOST_SWEEPS,
    Point,
    SweptColumns,
    WorkingSet,
    confirm,
    correlate,
    enter,
    solve,
)

__all__ = ["SparseWalk"]

Array = NDArray[np.float64]
Integers = NDArray[np.intp]

# So many points are solved one after the other and confirmed by one reading of all columns.
_AT_ONCE = 4
# Levels below this share of the last one are too far away for the strong rule to leave much out.
_REACH = 0.75
# What the strong rule can ask for after that: 2 _REACH - 1, with room for rounding.
_FLOOR = 0.499
# Sweeps end when no coordinate step is worth more than this share of the gap that is asked for;
# where that was not enough, a smaller one is tried.
_SHARE, _TIGHTER, _TIGHTEST = 0.5, 0.3, 0.01
# So few columns are solved for exactly in less time than so many sweeps over them take.
_FEW, _MANY_SWEEPS = 100, 20
# A level this close to the first one at which something is freed is that one.
_TIE = 1e-10


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
        self._columns = SweptColumns(*columns.store.entries, squares, mean, pulls, root, y)
        self._point = Point(np.zeros(d), np.zeros(d), np.empty(n))
        self._set, self._count = WorkingSet(np.zeros(d, bool), np.empty(d, dtype=np.intp)), 0
        self._R, self._Q = np.empty((n, _AT_ONCE)), np.zeros((d, _AT_ONCE))
        self._Q[:, 0], self._chosen = correlation, np.arange(d)
        self._reach = columns.store.reach()
        self._facts, self._share = np.zeros((5, _AT_ONCE)), _SHARE
        # The levels of the last two points, and which column of Q belongs to the last one
        self._top = float(np.abs(correlation).max(initial=0.0))
        self._levels, self._at = [math.inf, self._top], 0

    def go(self, levels: Array, curvatures: Array, target: float, slack: float) -> list[PathPoint]:
        """The solutions at the first of the next levels, to a gap of at most ``target``.

        ``slack`` is the share of a level by which a correlation may exceed it.
        """
        resting = levels[levels >= (1 - _TIE) * self._top]
        if len(resting):
            return [self._at_rest(level) for level in resting.tolist()]
        before = self._levels[1]
        ahead = int(np.count_nonzero(levels[:_AT_ONCE] >= _REACH * before))
        if not ahead:
            self.is_stuck = True
            return []
        levels, curvatures = levels[:ahead], curvatures[:ahead]
        at = np.array([*self._levels, *levels])
        ways = (at[1:-1] - at[2:]) / (at[:-2] - at[1:-1])
        if self._at >= 0:  # the columns that the strong rule asks for
            strong = 2.0 * levels[-1] - before
            self._count = enter(self._Q, self._at, strong, self._chosen, self._set, self._count)
        else:
            ways[0] = -1.0  # it stands at the first point already
        known, W = self._count, np.empty((ahead + 1, self._count))
        enough, which = self._share * target, self._set.inside[:known]
        solve(
            self._columns,
            self._point,
            which,
            levels,
            curvatures,
            ways,
            enough,
            self._R,
            W,
            self._facts,
        )
        self._read(_FLOOR * levels[-1], ahead - 1)
        done, self._count = confirm(
            W,
            self._Q,
            self._chosen,
            self._set,
            known,
            levels,
            curvatures,
            target,
            slack,
            self._point,
            self._facts,
        )
        self._at, self._levels = done - 1, at[done : done + 2].tolist()
        if done == 0 and self._count == known:
            # The steps were small, but not all that is left is.
            self._share *= _TIGHTER
            self.is_stuck = bool(self._share < _TIGHTEST or self._facts[3, 0] >= MOST_SWEEPS)
        if done and known <= _FEW and self._facts[3, :done].mean() > _MANY_SWEEPS:
            self.is_stuck = True
        return [self._arrived(W[i + 1], i) for i in range(done)]

    def _read(self, floor: float, last: int) -> None:
        """The correlations of all columns that may reach the floor."""
        self._chosen = self._reach.may_matter_to(self._R, floor)
        self._Q[self._set.inside[: self._count]] = 0.0
        known, most = self._reach.known, self._facts[4]
        correlate(self._columns, self._chosen, self._R, self._Q, known, last, most)

    def _at_rest(self, level: float) -> PathPoint:
        y = self._columns.y
        square, t = float(y @ y), min(1.0, level / self._top) if self._top else 1.0
        gap = 0.5 * (1 - t) ** 2 * square
        return PathPoint(self._set.inside[:0], self._point.w[:0], 0.5 * square, gap, square, 0)

    def _arrived(self, row: Array, i: int) -> PathPoint:
        places = np.flatnonzero(row)
        columns = self._set.inside[places]
        order = np.argsort(columns)
        gap, objective, square, sweeps, _ = self._facts[:, i].tolist()
        return PathPoint(columns[order], row[places][order], objective, gap, square, int(sweeps))
