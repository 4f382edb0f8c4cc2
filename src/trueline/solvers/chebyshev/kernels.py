"""Exchanges of rows of a reference, one after the other without leaving compiled code."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from trueline.numerics.jit import kernel
from trueline.solvers.dual_coordinate_ascent.kernels import random_below

__all__ = ["ZERO", "exchange_rows"]

Array = NDArray[np.float64]
Indices = NDArray[np.intp]

# Multipliers sum to one: below this they are rounding.
ZERO = 1e-13
# By how much delta (between 0.5 and 1 at first) may be missed for the sake of a large pivot.
_SLACK = 1e-3
# Entries of a column of the tableau below this, relative to the largest, are no pivots.
_PIVOT = 1e-7
_FINENESS = 1 << 30


@kernel(reassociate=True)
def exchange_rows(
    Q: Array,
    r: Array,
    ease: Array,
    noise: float,
    inverse: Array,
    rows: Indices,
    signs: Array,
    multipliers: Array,
    delta: Array,
    state: NDArray[np.uint64],
    most: int,
) -> int:
    """Up to so many exchanges, fewer if no working row errs more than the reference.

    The arrays are those of :class:`~trueline.solvers.chebyshev.reference.Reference`; what describes
    the reference is changed in place.

    Returns
    -------
    exchanges : int
    """
    p = Q.shape[1]
    solution, column = np.empty(p + 1), np.empty(p + 1)
    for count in range(most):
        _solve(inverse, rows, signs, r, solution)
        level = float(solution[p])
        enters, sign = _enters(Q, r, ease, solution, level + noise)
        if enters < 0 or (rows == enters).any():
            return count
        for i in range(p + 1):
            total = inverse[i, p]
            for j in range(p):
                total += inverse[i, j] * (sign * Q[enters, j])
            column[i] = total
        leaves = _leaves(column, multipliers, delta)
        _move(column, leaves, multipliers, delta, state)
        pivot = column[leaves]
        for j in range(p + 1):
            inverse[leaves, j] /= pivot
        for i in range(p + 1):
            if i != leaves and column[i] != 0.0:
                for j in range(p + 1):
                    inverse[i, j] -= column[i] * inverse[leaves, j]
        rows[leaves], signs[leaves] = enters, sign
    return most


@kernel(reassociate=True)
def _solve(inverse: Array, rows: Indices, signs: Array, r: Array, solution: Array) -> None:
    """v and the level: (sigma_i r_i) times the inverse."""
    solution[:] = 0.0
    for i in range(len(rows)):
        target = signs[i] * r[rows[i]]
        for j in range(len(solution)):
            solution[j] += target * inverse[i, j]


@kernel(reassociate=True)
def _enters(Q: Array, r: Array, ease: Array, solution: Array, level: float) -> tuple[int, float]:
    """The row that errs by more than the level, most easily mended, and its sign; -1 for none.

    A long row errs much for little: what counts is how far v is from where it does not.
    """
    enters, sign, largest = -1, 1.0, 0.0
    for i in range(Q.shape[0]):
        error = r[i]
        for j in range(Q.shape[1]):
            error -= Q[i, j] * solution[j]
        gain = (abs(error) - level) * ease[i]
        if gain > largest:
            enters, largest, sign = i, gain, 1.0 if error > 0.0 else -1.0
    return enters, sign


@kernel
def _leaves(column: Array, multipliers: Array, delta: Array) -> int:
    """The ratio test: multipliers - share column >= 0, ties by delta.

    Both tests allow for a little too much, and of those that then come into question the largest
    pivot is taken (P. M. J. Harris, Math. Program. 5 (1973) 1-28).
    """
    least = _PIVOT * np.abs(column).max()
    nearest, reach = np.inf, np.inf
    for i in range(len(column)):
        if column[i] > least:
            nearest = min(nearest, multipliers[i] / column[i])
            reach = min(reach, (multipliers[i] + ZERO) / column[i])
    if nearest == np.inf:
        return int(column.argmax())
    first = max(nearest, reach)
    nearest, reach = np.inf, np.inf
    for i in range(len(column)):
        if column[i] > least and multipliers[i] / column[i] <= first:
            own = max(delta[i], 0.0)
            nearest = min(nearest, own / column[i])
            reach = min(reach, (own + _SLACK) / column[i])
    second = max(nearest, reach)
    found, largest = -1, 0.0
    for i in range(len(column)):
        if column[i] > max(least, largest) and multipliers[i] / column[i] <= first:
            own = max(delta[i], 0.0)
            if own / column[i] <= second:
                found, largest = i, column[i]
    return found


@kernel
def _move(
    column: Array, leaves: int, multipliers: Array, delta: Array, state: NDArray[np.uint64]
) -> None:
    """Multipliers and deltas after the exchange; deltas that rounding led astray are drawn anew."""
    share = multipliers[leaves] / column[leaves]
    tiny = max(delta[leaves], 0.0) / column[leaves]
    for i in range(len(column)):
        multipliers[i] -= share * column[i]
        if multipliers[i] <= ZERO:
            multipliers[i] = 0.0
        delta[i] -= tiny * column[i]
    multipliers[leaves], delta[leaves] = share, tiny
    for i in range(len(column)):
        if multipliers[i] == 0.0 and delta[i] <= 0.0:
            delta[i] = 0.5 + 0.5 * random_below(state, _FINENESS) / _FINENESS
