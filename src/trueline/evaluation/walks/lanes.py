r"""Products of sparse rows with the vectors of up to five problems, in one pass.

    image_f += sum_i h_fi (x_i.p_f + level_f) x_i,      total_f = sum_i h_fi (x_i.p_f + level_f)

Vectors lie side by side for the pass, entry j of all problems together: a row's indices are read
once, the sums of the problems do not wait for each other, and what a column needs is in one place
of the memory. Five is the usual number of folds.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from trueline._jit import kernel

__all__ = ["LANES", "bent_products", "make_lanes"]

Array = NDArray[np.float64]
Indices = NDArray[np.int32]
Integers = NDArray[np.int64]
Bools = NDArray[np.bool_]

LANES = 5
# So many problems or fewer are cheaper one by one.
_FEW = 1


@kernel
def make_lanes(H: Array, d: int) -> tuple[Integers, Array, Array, Array]:
    """Rows that bend in any problem, curvatures (n, 5) of H (p, n), room for vectors and images."""
    p, n = H.shape
    turned, bends = np.zeros((n, LANES)), np.zeros(n, np.bool_)
    for f in range(p):
        for i in range(n):
            turned[i, f] = H[f, i]
            bends[i] |= H[f, i] != 0.0
    return np.flatnonzero(bends), turned, np.zeros((d, LANES)), np.zeros((d, LANES))


@kernel
def _one(
    data: Array,
    indices: Indices,
    indptr: Indices,
    h: Array,
    level: float,
    p: Array,
    image: Array,
) -> float:
    """One problem alone."""
    total = 0.0
    for i in range(len(h)):
        if h[i] == 0.0:
            continue
        score = level
        for k in range(indptr[i], indptr[i + 1]):
            score += data[k] * p[np.uint64(indices[k])]
        score *= h[i]
        total += score
        for k in range(indptr[i], indptr[i + 1]):
            image[np.uint64(indices[k])] += score * data[k]
    return total


@kernel
def _five(
    data: Array,
    indices: Indices,
    indptr: Indices,
    rows: Integers,
    H: Array,
    levels: Array,
    P: Array,
    images: Array,
    totals: Array,
) -> None:
    """All lanes. Scalars, not arrays, hold the sums: they stay in registers."""
    level0, level1, level2, level3, level4 = levels
    total0 = total1 = total2 = total3 = total4 = 0.0
    for place in range(len(rows)):
        i = rows[place]
        s0, s1, s2, s3, s4 = level0, level1, level2, level3, level4
        for k in range(indptr[i], indptr[i + 1]):
            j, x = np.uint64(indices[k]), data[k]
            s0 += x * P[j, 0]
            s1 += x * P[j, 1]
            s2 += x * P[j, 2]
            s3 += x * P[j, 3]
            s4 += x * P[j, 4]
        s0 *= H[i, 0]
        s1 *= H[i, 1]
        s2 *= H[i, 2]
        s3 *= H[i, 3]
        s4 *= H[i, 4]
        total0 += s0
        total1 += s1
        total2 += s2
        total3 += s3
        total4 += s4
        for k in range(indptr[i], indptr[i + 1]):
            j, x = np.uint64(indices[k]), data[k]
            images[j, 0] += x * s0
            images[j, 1] += x * s1
            images[j, 2] += x * s2
            images[j, 3] += x * s3
            images[j, 4] += x * s4
    totals[0], totals[1], totals[2], totals[3], totals[4] = total0, total1, total2, total3, total4


@kernel
def bent_products(
    data: Array,
    indices: Indices,
    indptr: Indices,
    rows: Integers,
    goes: Bools,
    H: Array,
    H_lanes: Array,
    levels: Array,
    P: Array,
    P_lanes: Array,
    image_lanes: Array,
    images: Array,
    totals: Array,
) -> None:
    """Add to the images of all problems that go on; ``totals`` are set.

    H of shape (p, n), P and ``images`` of shape (p, d) or wider; the lanes are those of
    :func:`make_lanes`.
    """
    p, d = len(goes), len(P_lanes)
    if goes.sum() <= _FEW:
        for f in range(p):
            if goes[f]:
                totals[f] = _one(data, indices, indptr, H[f], levels[f], P[f], images[f])
        return
    level_lanes, total_lanes = np.zeros(LANES), np.zeros(LANES)
    for f in range(p):
        if not goes[f]:
            continue
        level_lanes[f] = levels[f]
        for j in range(d):
            P_lanes[j, f] = P[f, j]
    image_lanes[:] = 0.0
    _five(data, indices, indptr, rows, H_lanes, level_lanes, P_lanes, image_lanes, total_lanes)
    for f in range(p):
        if goes[f]:
            totals[f] = total_lanes[f]
            for j in range(d):
                images[f, j] += image_lanes[j, f]
