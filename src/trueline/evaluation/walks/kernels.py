r"""Newton's equations of one problem on sparse rows, by conjugate gradients in compiled code.

    (sum_i h_i a_i a_i^T + diag(q)) d = -g,          a_i = [x_i, 1]

One pass over the rows gives the product with a vector. Rows whose loss does not bend, h_i = 0, are
not read: test rows, and for support vector machines all rows beyond their margin, which are most.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from trueline._jit import kernel

__all__ = ["newton_direction"]

Array = NDArray[np.float64]
Indices = NDArray[np.int32]


@kernel
def _bent(
    data: Array,
    indices: Indices,
    indptr: Indices,
    bending: NDArray[np.int64],
    h: Array,
    level: float,
    p: Array,
    image: Array,
) -> float:
    """Add the losses' part of the product with p to ``image``; that of the intercept."""
    total = 0.0
    for place in range(len(bending)):
        i = bending[place]
        score = level
        for k in range(indptr[i], indptr[i + 1]):
            score += data[k] * p[np.uint64(indices[k])]
        score *= h[i]
        total += score
        for k in range(indptr[i], indptr[i + 1]):
            image[np.uint64(indices[k])] += score * data[k]
    return total


@kernel(reassociate=True)
def _dot(a: Array, b: Array) -> float:
    total = 0.0
    for j in range(len(a)):
        total += a[j] * b[j]
    return total


@kernel(reassociate=True)
def _advance(
    step: float, P: Array, image: Array, inverse: Array, D: Array, R: Array, M: Array
) -> float:
    """D + step P, the residual R there, M = R / diagonal, and R.M."""
    size = 0.0
    for j in range(len(P)):
        D[j] += step * P[j]
        R[j] -= step * image[j]
        M[j] = R[j] * inverse[j]
        size += R[j] * M[j]
    return size


@kernel
def newton_direction(
    data: Array,
    indices: Indices,
    indptr: Indices,
    h: Array,
    quad: Array,
    inverse: Array,
    g: Array,
    has_intercept: bool,
    share: float,
    most: int,
    D: Array,
) -> int:
    """D of shape (d + 1,), until the residual is down to a share of g; how many steps it took.

    Norms are squared, and those of the inverse of the diagonal, ``inverse``.
    """
    d = len(g) - 1
    bending = np.flatnonzero(h)
    R, M, image = -g, np.empty(d + 1), np.empty(d + 1)
    P = R * inverse
    size = first = _dot(R, P)
    for number in range(most):
        if size <= share * first or size <= 0.0:
            return number
        image[:] = quad * P
        total = _bent(data, indices, indptr, bending, h, P[d] if has_intercept else 0.0, P, image)
        if has_intercept:
            image[d] += total
        bend = _dot(P, image)
        if not bend > 0.0:
            return number
        before = size
        size = _advance(size / bend, P, image, inverse, D, R, M)
        P *= size / before
        P += M
    return most
