"""The loops over kinks: on their ramps, independent, to leave, passed on the way."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from trueline._jit import kernel

__all__ = [
    "exchange_row",
    "extend_basis",
    "kink_to_leave",
    "kinks_met",
    "pieces",
    "ramped",
    "slope_along",
    "standardised",
    "within",
]

Array = NDArray[np.float64]
Indices = NDArray[np.intp]


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
    rows, count = np.empty(count, dtype=np.intp), 0
    for i in range(len(piece)):
        if distance[i] <= reaches[piece[i]]:
            rows[count] = i
            count += 1
    return rows


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


@kernel(reassociate=True)
def slope_along(
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


@kernel(reassociate=True)
def kink_to_leave(
    inverse: Array, rest: Array, c: Array, slack: float, rounding: float
) -> tuple[int, bool, float]:
    """The own kink of a vertex along whose edge the function falls fastest.

    Its number (-1 if none: the vertex is optimal), whether the way leads upward, and the rate at
    which the function falls for each unit of the kink's offset.

    Parameters
    ----------
    inverse : array of shape (p, p)
        Of the rows of the vertex's own kinks.
    rest : array of shape (p,)
        The slope of everything but these.
    c : array of shape (p,)
        Of these kinks.
    slack, rounding : float
        A multiplier may leave [0, c] by slack times c, and by rounding.
    """
    p = len(rest)
    own, squares = np.zeros(p), np.zeros(p)
    for i in range(p):
        for j in range(p):
            own[j] -= inverse[i, j] * rest[i]
            squares[j] += inverse[i, j] * inverse[i, j]
    best, fastest, upward, found = -1, 0.0, False, 0.0
    for j in range(p):
        beyond = own[j] - c[j]
        excess = max(-own[j], beyond)
        if excess > slack * c[j] + rounding:
            # In units of the edge: how fast the function falls per unit of length.
            rate = excess / np.sqrt(squares[j])
            if best < 0 or rate > fastest:
                best, fastest, upward, found = j, rate, beyond == excess, excess
    return best, upward, found


@kernel
def exchange_row(inverse: Array, leaving: int, row: Array) -> None:
    """The inverse of B after its row number ``leaving`` became another one, in place."""
    p = len(row)
    along = np.zeros(p)
    for i in range(p):
        for j in range(p):
            along[j] += row[i] * inverse[i, j]
    turn = along[leaving]
    along[leaving] -= 1.0
    for i in range(p):
        factor = inverse[i, leaving] / turn
        for j in range(p):
            inverse[i, j] -= factor * along[j]


@kernel
def kinks_met(
    offset: Array, moved: Array, is_above: NDArray[np.bool_], c: Array, fall: float
) -> tuple[Indices, int, float]:
    """The kinks passed, the one where the slope turns positive (-1 if none is met), and how far.

    The function falls at the rate ``fall`` at first, and by c_e abs(moved_e) less after each kink:
    a weighted median of the distances, found by splitting those that are left about one of them,
    as quickselect does.
    """
    index = np.empty(len(offset), dtype=np.intp)
    reach = np.empty(len(offset))
    count = 0
    for e in range(len(offset)):
        if (moved[e] < 0.0) if is_above[e] else (moved[e] > 0.0):
            index[count] = e
            reach[count] = max(-offset[e] / moved[e], 0.0)
            count += 1
    if count == 0:
        return index[:0], -1, 0.0
    low, high = 0, count
    while True:
        pivot = _middle(reach[low], reach[(low + high) // 2], reach[high - 1])
        less, more, k = low, high, low  # nearer ones are moved before less, farther from more on
        before, there = 0.0, 0.0
        while k < more:
            gain = c[index[k]] * abs(moved[index[k]])
            if reach[k] < pivot:
                before += gain
                _swap(index, reach, less, k)
                less += 1
                k += 1
            elif reach[k] > pivot:
                more -= 1
                _swap(index, reach, more, k)
            else:
                there += gain
                k += 1
        if before >= fall and less > low:
            high = less
        elif before + there >= fall or more == high == count:
            fall -= before
            last = less
            while last < more - 1:
                fall -= c[index[last]] * abs(moved[index[last]])
                if fall <= 0.0:
                    break
                last += 1
            return index[:last], index[last], pivot
        else:
            fall -= before + there
            low = more
        if low == high:  # rounding of the sums: the farthest of those before
            return index[: low - 1], index[low - 1], reach[low - 1]


@kernel
def _middle(a: float, b: float, c: float) -> float:
    return max(min(a, b), min(max(a, b), c))


@kernel
def _swap(index: Indices, reach: Array, i: int, k: int) -> None:
    index[i], index[k] = index[k], index[i]
    reach[i], reach[k] = reach[k], reach[i]
