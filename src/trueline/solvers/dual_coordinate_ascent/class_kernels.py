r"""Sweeps over rows, each of which moves the dual variables of all its classes to their best place.

    minimise over beta    1/2 sum_k || sum_i beta_ik x_i ||^2 - sum_i beta_i,y_i
    with                  sum_k beta_ik = 0,    beta_ik <= c_i [k = y_i]

with W = sum_i x_i beta_i^T kept beside. For one row, with a = x_i.x_i and B_k the slope without its
own part, the minimum is beta_k = min(c_k, (theta - B_k) / a), where theta makes the sum vanish. As
theta falls from infinity, the classes leave their bounds in the order of t_k = B_k + a c_k; with
the first r of them free, r theta = sum of their t_k - a c_i (K. Crammer and Y. Singer, J. Mach.
Learn. Res. 2 (2001), section 6; S. S. Keerthi et al., "A sequential dual method for large scale
multi-class linear SVMs", KDD 2008).

A last constant entry of every row is passed apart.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from trueline.numerics.jit import kernel
from trueline.solvers.dual_coordinate_ascent.kernels import draw

__all__ = ["class_sweep_dense", "class_sweep_sparse"]

Array = NDArray[np.float64]
Integers = NDArray[np.int64]
Indices = NDArray[np.int32]


@kernel
def share_out(slopes: Array, at: Array, square: float, own: int, most: float, best: Array) -> float:
    """The best multipliers of one row into ``best``; returns by how much the row was off."""
    k = len(slopes)
    # The largest slope of a class that could give, against the least of one that could take.
    high, low = -np.inf, np.inf
    for m in range(k):
        bound = most if m == own else 0.0
        high = max(high, slopes[m])
        if at[m] < bound:
            low = min(low, slopes[m])
    off = high - low
    if off <= 0.0 or square <= 0.0:
        best[:] = at
        return max(off, 0.0)
    levels = np.empty(k)
    for m in range(k):
        levels[m] = slopes[m] - square * at[m]
    levels[own] += square * most
    order = np.sort(levels)
    total, r = order[k - 1] - square * most, 1
    while r < k and total < r * order[k - 1 - r]:
        total += order[k - 1 - r]
        r += 1
    theta = total / r
    for m in range(k):
        bound = most if m == own else 0.0
        best[m] = min(bound, (theta - (slopes[m] - square * at[m])) / square)
    return off


@kernel
def class_sweep_dense(
    X: Array,
    constant: float,
    own: Integers,
    bounds: Array,
    squares: Array,
    centre: Array,
    beta: Array,
    W: Array,
    order: Integers,
    active: int,
    threshold: float,
    state: NDArray[np.uint64],
) -> tuple[int, float]:
    """One sweep in random order; how many rows are still active, and the worst violation.

    ``beta`` has shape (n, k), ``W`` shape (d + 1, k) with that of the constant as the last row.
    """
    d, k = X.shape[1], W.shape[1]
    slopes, best = np.empty(k), np.empty(k)
    worst, at = 0.0, 0
    while at < active:
        i = draw(order, at, active, state)
        for m in range(k):
            slopes[m] = centre[m] + constant * W[d, m] + (0.0 if m == own[i] else 1.0)
        for j in range(d):
            x = X[i, j]
            for m in range(k):
                slopes[m] += x * W[j, m]
        off = share_out(slopes, beta[i], squares[i], own[i], bounds[i], best)
        if off == 0.0 and is_at_rest(slopes, beta[i], own[i], threshold):
            active -= 1
            order[at], order[active] = order[active], order[at]
            continue
        at += 1
        worst = max(worst, off)
        moved = False
        for m in range(k):
            slopes[m] = best[m] - beta[i, m]
            moved = moved or slopes[m] != 0.0
        if moved:
            beta[i] = best
            for j in range(d):
                x = X[i, j]
                for m in range(k):
                    W[j, m] += x * slopes[m]
            for m in range(k):
                W[d, m] += constant * slopes[m]
    return active, worst


@kernel
def class_sweep_sparse(
    data: Array,
    indices: Indices,
    indptr: Integers,
    constant: float,
    own: Integers,
    bounds: Array,
    squares: Array,
    centre: Array,
    beta: Array,
    W: Array,
    order: Integers,
    active: int,
    threshold: float,
    state: NDArray[np.uint64],
) -> tuple[int, float]:
    """The same over compressed rows."""
    d, k = W.shape[0] - 1, W.shape[1]
    slopes, best = np.empty(k), np.empty(k)
    worst, at = 0.0, 0
    while at < active:
        i = draw(order, at, active, state)
        for m in range(k):
            slopes[m] = centre[m] + constant * W[d, m] + (0.0 if m == own[i] else 1.0)
        for place in range(indptr[i], indptr[i + 1]):
            x, j = data[place], np.uint64(indices[place])
            for m in range(k):
                slopes[m] += x * W[j, m]
        off = share_out(slopes, beta[i], squares[i], own[i], bounds[i], best)
        if off == 0.0 and is_at_rest(slopes, beta[i], own[i], threshold):
            active -= 1
            order[at], order[active] = order[active], order[at]
            continue
        at += 1
        worst = max(worst, off)
        moved = False
        for m in range(k):
            slopes[m] = best[m] - beta[i, m]
            moved = moved or slopes[m] != 0.0
        if moved:
            beta[i] = best
            for place in range(indptr[i], indptr[i + 1]):
                x, j = data[place], np.uint64(indices[place])
                for m in range(k):
                    W[j, m] += x * slopes[m]
            for m in range(k):
                W[d, m] += constant * slopes[m]
    return active, worst


@kernel
def is_at_rest(slopes: Array, at: Array, own: int, threshold: float) -> bool:
    """Whether all multipliers vanish and the own class leads by more than the threshold."""
    for m in range(len(slopes)):
        if at[m] != 0.0:
            return False
        if m != own and slopes[own] - slopes[m] < threshold:
            return False
    return True
