r"""Block steps on a quadratic function whose matrix is at hand.

    minimise over W   1/2 <W, W G> - <C, W> + sum_b l_b ||W_b|| + a/2 ||W||^2

W has one row per target and one column per coefficient; a block W_b is all rows of the columns
start_b .. start_{b+1} - 1. The state is W and Q = C - W G. The block of G that belongs to W_b is
diagonal, with entries s_j: for one column it is so by itself, for several their eigenvectors made
it so. With V_j = Q_j + s_j W_j the step is exact,

    W_j = V_j nu / ((s_j + a) nu + l_b),     nu = ||W_b|| the root of
    sum_j ||V_j||^2 / ((s_j + a) nu + l_b)^2 = 1,

or W_b = 0 where ||V_b|| <= l_b (Z. Qin, K. Scheinberg, D. Goldfarb, "Efficient block-coordinate
descent algorithms for the group lasso", Math. Program. Comput. 5 (2013) 143-169, section 3). For
one column the root is (||V_b|| - l_b) / (s + a).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from trueline.numerics.jit import kernel

__all__ = ["block_norms", "block_root", "descend"]

Array = NDArray[np.float64]
Integers = NDArray[np.intp]

_MAX_STEPS = 100
_LAST_DIGITS = 1e-15


@kernel
def block_norms(V: Array, start: Integers) -> Array:
    """||V_b|| for each block."""
    blocks = len(start) - 1
    norms = np.zeros(blocks)
    for b in range(blocks):
        total = 0.0
        for t in range(V.shape[0]):
            for j in range(start[b], start[b + 1]):
                total += V[t, j] * V[t, j]
        norms[b] = np.sqrt(total)
    return norms


@kernel
def block_root(squares: Array, curvature: Array, size: int, linear: float) -> float:
    """nu > 0 with sum_j squares_j / (curvature_j nu + linear)^2 = 1, where there is one.

    Newton's method on 1 / sqrt(sum) = 1, which is concave and increasing in nu (as the secular
    equation of trust regions is; J. J. More, D. C. Sorensen, "Computing a trust region step", SIAM
    J. Sci. Stat. Comput. 4 (1983) 553-572): from the left it climbs to the root and never beyond.
    """
    nu = 0.0
    for _ in range(_MAX_STEPS):
        total = slope = 0.0
        for j in range(size):
            below = curvature[j] * nu + linear
            term = squares[j] / (below * below)
            total += term
            slope += term * curvature[j] / below
        if slope <= 0.0:
            break
        # h = total^(-1/2), h' = total^(-3/2) slope, step = (1 - h) / h'
        step = (np.sqrt(total) - 1.0) * total / slope
        nu += step
        if step <= _LAST_DIGITS * nu:
            break
    return nu


@kernel(reassociate=True)
def descend(
    G: Array, start: Integers, linear: Array, bend: float, W: Array, Q: Array, sweeps: int
) -> None:
    """Sweep over the blocks, each brought to its minimum in turn."""
    k, m = W.shape
    blocks = len(start) - 1
    widest = 1
    for b in range(blocks):
        widest = max(widest, start[b + 1] - start[b])
    squares, curvature, change = np.empty(widest), np.empty(widest), np.empty(k)
    for _ in range(sweeps):
        for b in range(blocks):
            first, size, threshold = start[b], start[b + 1] - start[b], linear[b]
            total = 0.0
            for i in range(size):
                j = first + i
                square = 0.0
                for t in range(k):
                    v = Q[t, j] + G[j, j] * W[t, j]
                    square += v * v
                squares[i], curvature[i] = square, G[j, j] + bend
                total += square
            if total <= threshold * threshold:
                nu = 0.0
            elif size == 1:
                nu = (np.sqrt(total) - threshold) / curvature[0] if curvature[0] > 0.0 else 0.0
            elif threshold > 0.0:
                nu = block_root(squares, curvature, size, threshold)
            else:
                nu = 1.0  # any number: without a norm the fraction does not depend on it
            for i in range(size):
                j = first + i
                below = curvature[i] * nu + threshold
                factor = nu / below if curvature[i] > 0.0 and below > 0.0 else 0.0
                moved = False
                for t in range(k):
                    new = (Q[t, j] + G[j, j] * W[t, j]) * factor
                    change[t] = new - W[t, j]
                    moved = moved or change[t] != 0.0
                if not moved:
                    continue
                row = G[j]
                for t in range(k):
                    step, line = change[t], Q[t]
                    W[t, j] += step
                    for c in range(m):
                        line[c] -= step * row[c]
