"""Whether a column gives the target away."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.multiclass import type_of_target

from trueline.features.tables.columns import TableColumn

__all__ = ["gives_away"]

# Rows looked at first: columns that do not give the target away there, and that is nearly all of
# them, need no look at the rest.
_FIRST = 2_000
# A level per few rows tells classes apart by chance; so many rows per level do not.
_ROWS_PER_LEVEL = 3
_CORRELATION = 1.0 - 1e-9
_CLASSES = ("binary", "multiclass")
# With fewer rows agreement is no surprise: a column splits ten rows of one class from ten others
# by chance once in 92,378 tables, but four from four once in 35.
_ROWS = 8
_ROWS_FOR_ORDER = 20


def gives_away(column: TableColumn, kind: str, y: NDArray[np.generic]) -> str:
    """How a column determines the target on all rows; empty if it does not.

    Looks for a copy of the target up to a monotone transformation, for a number that splits two
    classes without a mistake, and for categories within which the target never varies.
    """
    if y.ndim != 1 or len(y) < _ROWS or len(np.unique(y[:_FIRST])) < 2:
        return ""
    if kind == "number":
        return _number(column, y)
    if kind in ("category", "boolean", "date"):
        return _levels(column, y)
    return ""


def _number(column: TableColumn, y: NDArray[np.generic]) -> str:
    with np.errstate(invalid="ignore"):  # numbers too large to be whole ones
        is_class = y.dtype.kind not in "fiub" or type_of_target(y[:_FIRST]) in _CLASSES
    if is_class:
        codes = np.unique(y, return_inverse=True)[1].astype(np.float64)
    else:
        codes = y.astype(np.float64)
    said = ""
    for rows in (slice(_FIRST), slice(None)):
        x, t = column.numbers[rows], codes[rows]
        present = ~np.isnan(x)
        x, t = x[present], t[present]
        if len(x) < _ROWS or x.min() == x.max() or t.min() == t.max():
            return ""
        said = _same_order(x, t)
        if not said:
            return ""
    return said


def _same_order(x: NDArray[np.float64], t: NDArray[np.float64]) -> str:
    # Large numbers are brought to one, whose squares do not overflow.
    if abs(np.corrcoef(_scaled(x), _scaled(t))[0, 1]) > _CORRELATION:
        return "it is the target, or a multiple of it"
    order = np.argsort(x, kind="stable")
    values, sorted_t = x[order], t[order]
    starts = np.flatnonzero(np.r_[True, values[1:] > values[:-1]])
    low, high = np.minimum.reduceat(sorted_t, starts), np.maximum.reduceat(sorted_t, starts)
    rising, falling = (low[1:] >= high[:-1]).all(), (high[1:] <= low[:-1]).all()
    # Equal values must have equal targets, or the column is a coarse cousin and no copy.
    if not (rising or falling) or not (low == high).all() or len(t) < _ROWS_FOR_ORDER:
        return ""
    if len(np.unique(t)) == 2:
        return "it splits the classes without a mistake"
    return "it has the order of the target"


def _scaled(values: NDArray[np.float64]) -> NDArray[np.float64]:
    largest = float(np.abs(values).max())
    return values / largest if 1.0 < largest < np.inf else values


def _levels(column: TableColumn, y: NDArray[np.generic]) -> str:
    codes, _ = column.coded
    classes = np.unique(y, return_inverse=True)[1]
    for rows in (slice(_FIRST), slice(None)):
        c, t = codes[rows] + 1, classes[rows]
        used = len(np.unique(c))
        if used < 2 or len(c) < _ROWS_PER_LEVEL * used:
            return ""
        first = np.full(int(c.max()) + 1, -1)
        first[c[::-1]] = t[::-1]
        if (first[c] != t).any():
            return ""
    return "within each of its values the target never varies"
