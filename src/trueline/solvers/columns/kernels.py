r"""Coordinate descent on the model of a proximal Newton step, column by column.

    minimise over D     G.D + 1/2 D.H D + sum_jt ( l_j abs(V + D)_jt + a_j/2 (V + D)_jt^2 )

with H = X^T S l''(z) X, of which only Q = X D is kept, one row for each row of X. Along one entry,
with g its slope without the absolute value and h its curvature, the best V + D is
soft(h (V + D) - g, l) / h. Columns are compressed.

(G.-X. Yuan, C.-H. Ho, C.-J. Lin, "An improved GLMNET for L1-regularized logistic regression",
J. Mach. Learn. Res. 13 (2012) 1999-2030; for coupled scores the whole curvature of a row,
diag(p) - p p^T, is kept, by M_i = sum_t p_it Q_it beside Q.)
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from trueline._jit import kernel

__all__ = ["diagonal", "sweep_coupled", "sweep_single"]

Array = NDArray[np.float64]
Indices = NDArray[np.int32]
Integers = NDArray[np.int64]


@kernel
def _moved(at: float, slope: float, bend: float, linear: float) -> float:
    """The best place of one entry, from its slope at the present one."""
    pull = bend * at - slope
    if pull > linear:
        return (pull - linear) / bend
    if pull < -linear:
        return (pull + linear) / bend
    return 0.0


@kernel
def _violation(at: float, slope: float, linear: float) -> float:
    """The distance of zero from the slopes that are possible at a point."""
    if at > 0.0:
        return abs(slope + linear)
    if at < 0.0:
        return abs(slope - linear)
    return max(abs(slope) - linear, 0.0)


@kernel
def diagonal(data: Array, indices: Indices, indptr: Integers, h: Array, out: Array) -> None:
    """sum_i h_it x_ij^2 for all columns j and targets t."""
    for j in range(len(indptr) - 1):
        for t in range(h.shape[1]):
            out[j, t] = 0.0
        for place in range(indptr[j], indptr[j + 1]):
            i = np.uint64(indices[place])
            square = data[place] * data[place]
            for t in range(h.shape[1]):
                out[j, t] += square * h[i, t]


@kernel
def sweep_single(
    data: Array,
    indices: Indices,
    indptr: Integers,
    columns: Integers,
    count: int,
    h: Array,
    Q: Array,
    V: Array,
    D: Array,
    G: Array,
    bends: Array,
    linear: Array,
    quad: Array,
) -> tuple[int, float]:
    """One sweep for one target.

    Columns that stay in play are put first; their number is returned, and the sum of violations.
    """
    total, kept = 0.0, 0
    for place in range(count):
        j = columns[place]
        slope = G[j, 0] + quad[j] * D[j, 0]
        for k in range(indptr[j], indptr[j + 1]):
            i = np.uint64(indices[k])
            slope += data[k] * (h[i] * Q[i])
        at = V[j, 0] + D[j, 0]
        total += _violation(at, slope, linear[j])
        best = _moved(at, slope, bends[j, 0], linear[j])
        change = best - at
        if change != 0.0 or best != 0.0:
            columns[kept], columns[place] = j, columns[kept]
            kept += 1
        if change != 0.0:
            D[j, 0] += change
            for k in range(indptr[j], indptr[j + 1]):
                Q[np.uint64(indices[k])] += change * data[k]
    return kept, total


@kernel
def sweep_coupled(
    data: Array,
    indices: Indices,
    indptr: Integers,
    columns: Integers,
    count: int,
    s: Array,
    P: Array,
    Q: Array,
    M: Array,
    V: Array,
    D: Array,
    G: Array,
    bends: Array,
    linear: Array,
    quad: Array,
) -> tuple[int, float]:
    """One sweep for coupled scores with probabilities P."""
    total, kept = 0.0, 0
    for place in range(count):
        j = columns[place]
        stays = False
        for t in range(P.shape[1]):
            slope = G[j, t] + quad[j] * D[j, t]
            for k in range(indptr[j], indptr[j + 1]):
                i = np.uint64(indices[k])
                slope += data[k] * (s[i] * P[i, t] * (Q[i, t] - M[i]))
            at = V[j, t] + D[j, t]
            total += _violation(at, slope, linear[j])
            best = _moved(at, slope, bends[j, t], linear[j])
            change = best - at
            if change != 0.0 or best != 0.0:
                stays = True
            if change != 0.0:
                D[j, t] += change
                for k in range(indptr[j], indptr[j + 1]):
                    i = np.uint64(indices[k])
                    step = change * data[k]
                    Q[i, t] += step
                    M[i] += P[i, t] * step
        if stays:
            columns[kept], columns[place] = j, columns[kept]
            kept += 1
    return kept, total
