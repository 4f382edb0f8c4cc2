r"""Products of sparse rows with the vectors of several problems, in one pass over the entries.

    image_t = sum_i h_it z_it x_i,      total_t = sum_i h_it z_it,      z_it = x_i.v_t + level_t

What such a pass costs is the way to the entries, not the arithmetic, so that it serves five
problems at a time (the usual number of folds). Vectors lie side by side, entry j of all problems
together: a row's indices are read once, and the sums of the problems do not wait for each other.
Rows that have no curvature in any of the problems are not read.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from trueline.design.base import Array
from trueline.design.sparse_columns import Indices
from trueline.design.sparse_products import Starts
from trueline.numerics.jit import kernel

__all__ = ["LANES", "curved_product"]

Integers = NDArray[np.intp]

LANES = 5


def curved_product(X: sp.csr_array, H: Array, V: Array, level: Array) -> tuple[Array, Array]:
    """Images of shape (d, k) and totals of shape (k,) for H of shape (n, k)."""
    k, found = H.shape[1], []
    for start in range(0, k, LANES):
        own = slice(start, min(start + LANES, k))
        h, v, shift = (_padded(part[..., own]) for part in (H, V, level))
        rows = np.flatnonzero(h.any(axis=1))
        image, total = np.zeros(v.shape), np.zeros(LANES)
        _product(X.data, X.indices, X.indptr, rows, h, v, shift, image, total)
        found.append((image[:, : own.stop - start], total[: own.stop - start]))
    if len(found) == 1:
        return found[0]
    images, totals = zip(*found)
    return np.concatenate(images, axis=1), np.concatenate(totals)


def _padded(part: Array) -> Array:
    """With zeros for the lanes that are not used."""
    missing = LANES - part.shape[-1]
    if not missing:
        return np.ascontiguousarray(part)
    return np.concatenate([part, np.zeros((*part.shape[:-1], missing))], axis=-1)


@kernel
def _product(
    data: Array,
    indices: Indices,
    indptr: Starts,
    rows: Integers,
    H: Array,
    V: Array,
    level: Array,
    image: Array,
    total: Array,
) -> None:
    """Five lanes. Scalars, not arrays, hold the sums: they stay in registers."""
    level0, level1, level2, level3, level4 = level
    total0 = total1 = total2 = total3 = total4 = 0.0
    for place in range(len(rows)):
        i = rows[place]
        z0, z1, z2, z3, z4 = level0, level1, level2, level3, level4
        for e in range(indptr[i], indptr[i + 1]):
            j, x = np.uint64(indices[e]), data[e]
            z0 += x * V[j, 0]
            z1 += x * V[j, 1]
            z2 += x * V[j, 2]
            z3 += x * V[j, 3]
            z4 += x * V[j, 4]
        z0 *= H[i, 0]
        z1 *= H[i, 1]
        z2 *= H[i, 2]
        z3 *= H[i, 3]
        z4 *= H[i, 4]
        total0 += z0
        total1 += z1
        total2 += z2
        total3 += z3
        total4 += z4
        for e in range(indptr[i], indptr[i + 1]):
            j, x = np.uint64(indices[e]), data[e]
            image[j, 0] += x * z0
            image[j, 1] += x * z1
            image[j, 2] += x * z2
            image[j, 3] += x * z3
            image[j, 4] += x * z4
    total[0], total[1], total[2], total[3], total[4] = total0, total1, total2, total3, total4
