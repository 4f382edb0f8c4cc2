"""The loops over rows and kinks: near their kinks, on their ramps, independent."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from trueline.numerics.jit import kernel

__all__ = [
    "extend_basis",
    "of_piece",
    "pieces",
    "ramped",
    "rooted_rows",
    "slopes_of",
    "standardised",
    "step_length",
    "within",
]

Array = NDArray[np.float64]
Indices = NDArray[np.intp]

# The slope along a direction counts as zero at this part of where it began.
_FLAT = 0.1
_TRIALS, _FARTHEST = 60, 1e6


@kernel
def standardised(X: Array, rows: Indices, mean: Array, scale: Array, out: Array) -> None:
    """(x_i - mean) / scale for some rows, into the first columns of ``out``; the others are 1."""
    d = X.shape[1]
    for k in range(len(rows)):
        for j in range(d):
            out[k, j] = (X[rows[k], j] - mean[j]) / scale[j]
        for j in range(d, out.shape[1]):
            out[k, j] = 1.0


@kernel
def pieces(z: Array, y: Array, kinks: Array) -> tuple[NDArray[np.int8], Array, Indices]:
    """On which straight piece each row is, how far its nearest kink is, and each piece's rows."""
    piece, distance = np.empty(len(z), dtype=np.int8), np.empty(len(z))
    there = np.zeros(len(kinks) + 1, dtype=np.intp)
    for i in range(len(z)):
        residual, passed, nearest = z[i] - y[i], 0, np.inf
        for kink in kinks:
            passed += residual > kink
            nearest = min(nearest, abs(residual - kink))
        piece[i], distance[i] = passed, nearest
        there[passed] += 1
    return piece, distance, there


@kernel
def within(piece: NDArray[np.int8], distance: Array, reaches: Array) -> Indices:
    """Rows whose kinks are no farther than their piece's reach."""
    count = 0
    for i in range(len(piece)):
        count += distance[i] <= reaches[piece[i]]
    rows, count = np.empty(count + 1, dtype=np.intp), 0
    for i in range(len(piece)):
        rows[count] = i  # no branch that nobody could foretell
        count += distance[i] <= reaches[piece[i]]
    return rows[:count]


@kernel
def of_piece(piece: NDArray[np.int8], distance: Array, number: int, step: int) -> Array:
    """The distances of every ``step``-th row, of those that are on one piece."""
    out, count = np.empty(len(piece) // step + 2), 0
    for i in range(0, len(piece), step):
        out[count] = distance[i]
        count += piece[i] == number
    return out[:count]


@kernel
def slopes_of(piece: NDArray[np.int8], slopes: Array) -> Array:
    """The slope of every row, from those of the pieces."""
    out = np.empty(len(piece))
    for i in range(len(piece)):
        out[i] = slopes[piece[i]]
    return out


@kernel
def rooted_rows(A: Array, rows: Indices, weights: Array) -> Array:
    """sqrt(weights_i) a_i for some rows: the Gram matrix of these is the weighted one."""
    out = np.empty((len(rows), A.shape[1]))
    for k in range(len(rows)):
        root = np.sqrt(weights[rows[k]])
        for j in range(A.shape[1]):
            out[k, j] = root * A[rows[k], j]
    return out


@kernel
def ramped(share: Array, offset: Array, c: Array, gamma: float) -> tuple[Array, Array, int]:
    """Multipliers of rounded kinks, how fast they rise, and how many are on their ramps.

    pi_e = c_e clip(share_e + offset_e / gamma, 0, 1) rises by c_e / gamma on its ramp, else by 0.
    """
    pi, rise, count = np.zeros(len(c)), np.zeros(len(c)), 0
    for e in range(len(c)):
        part = share[e] + offset[e] / gamma
        if part >= 1.0:
            pi[e] = c[e]
        elif part > 0.0:
            pi[e] = c[e] * part
            rise[e] = c[e] / gamma
            count += 1
    return pi, rise, count


@kernel
def step_length(
    share: Array,
    offset: Array,
    moved: Array,
    c: Array,
    gamma: float,
    line: float,
    bend: float,
    first: float,
) -> float:
    """Where the function of rounded kinks stops falling along a direction, roughly.

    Its slope line + t bend + sum_e pi_e moved_e only rises. Zero if it does not fall at first, or
    without end.

    Parameters
    ----------
    share, offset, moved, c : arrays
        Of the kinks: as in the program, at the start, and how the offsets change with t.
    gamma : float
    line, bend : float
        What everything but the kinks adds to the slope.
    first : float
        The slope at t = 0.
    """
    if not first < 0:
        return 0.0
    low, low_slope, high = 0.0, first, 1.0
    high_slope = line + bend + _slope_along(share, offset, moved, c, gamma, high)
    while high_slope < _FLAT * first:
        if high > _FARTHEST:
            return 0.0
        low, low_slope, high = high, high_slope, 2 * high
        high_slope = line + high * bend + _slope_along(share, offset, moved, c, gamma, high)
    for _ in range(_TRIALS):
        if high_slope <= -_FLAT * first:
            return high
        middle = low + (high - low) * low_slope / (low_slope - high_slope)
        middle = min(max(middle, low + 0.1 * (high - low)), high - 0.1 * (high - low))
        value = line + middle * bend + _slope_along(share, offset, moved, c, gamma, middle)
        if abs(value) <= -_FLAT * first:
            return middle
        if value < 0:
            low, low_slope = middle, value
        else:
            high, high_slope = middle, value
    return low if low > 0.0 else high


@kernel(reassociate=True)
def _slope_along(
    share: Array, offset: Array, moved: Array, c: Array, gamma: float, t: float
) -> float:
    """sum_e pi_e moved_e, with the multipliers of rounded kinks at offset + t moved."""
    total = 0.0
    for e in range(len(c)):
        part = share[e] + (offset[e] + t * moved[e]) / gamma
        total += c[e] * moved[e] * min(max(part, 0.0), 1.0)
    return total


@kernel(reassociate=True)
def extend_basis(rows: Array, least: float, basis: Array, count: int, chosen: Indices) -> int:
    """Orthonormal rows of ``basis`` from those given rows that do not depend on earlier ones.

    Gram-Schmidt, repeated where much cancels. The places of rows taken go into ``chosen``.

    Parameters
    ----------
    rows : array of shape (m, p)
    least : float
        A row depends on others if what is outside of their span is shorter than this part of it.
    basis : array of shape (p, p)
        Whose first ``count`` rows are there already.
    count : int
    chosen : array of int of shape (m,)

    Returns
    -------
    taken : int
    """
    p, taken = basis.shape[1], 0
    rest = np.empty(p)
    for place in range(rows.shape[0]):
        if count + taken == p:
            break
        whole = 0.0
        for j in range(p):
            rest[j] = rows[place, j]
            whole += rest[j] * rest[j]
        before, left = np.inf, whole
        while left < 0.5 * before:  # once more where much cancelled
            for i in range(count + taken):
                along = 0.0
                for j in range(p):
                    along += basis[i, j] * rest[j]
                for j in range(p):
                    rest[j] -= along * basis[i, j]
            before, left = left, 0.0
            for j in range(p):
                left += rest[j] * rest[j]
            if left <= least * least * whole:
                break
        if left > 0.0 and left > least * least * whole:
            left = np.sqrt(left)
            for j in range(p):
                basis[count + taken, j] = rest[j] / left
            chosen[taken] = place
            taken += 1
    return taken
