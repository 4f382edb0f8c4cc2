r"""Newton's equations of one problem on sparse rows, by conjugate gradients in compiled code.

    (sum_i h_i a_i a_i^T + diag(q)) d = -g,          a_i = [x_i, 1]

One pass over the rows gives the product with a vector. Rows whose loss does not bend, h_i = 0, are
not read: test rows, and for support vector machines all rows beyond their margin, which are most.
The same pass serves ridge regression for all strengths at once
(:mod:`trueline.evaluation.walks.shifted`).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from trueline._jit import kernel

__all__ = ["newton_direction", "shifted_solutions"]

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


@kernel(reassociate=True)
def _turn(step: float, turn: float, new: float, R: Array, x: Array, p: Array) -> None:
    """x + step p, and the next direction turn p + new R."""
    for j in range(len(R)):
        x[j] += step * p[j]
        p[j] = turn * p[j] + new * R[j]


@kernel
def shifted_solutions(
    data: Array,
    indices: Indices,
    indptr: Indices,
    s: Array,
    mean: Array,
    right: Array,
    alphas: Array,
    tol: float,
    most: int,
    X: Array,
) -> int:
    """(C + alpha I) x = right for increasing strengths, X of shape (m, d); how many steps it took.

    C = sum_i s_i (x_i - mean) (x_i - mean)^T. Residuals are left at ``tol`` of the right-hand side.
    """
    m, d = X.shape
    used = np.flatnonzero(s)
    P, R, seed, image = np.empty((m, d)), right.copy(), right.copy(), np.empty(d)
    for i in range(m):
        P[i] = right
    zeta, zeta_before = np.ones(m), np.ones(m)
    size = first = _dot(right, right)
    a_before, ratio_before, live = 1.0, 0.0, m
    for number in range(most):
        if not size > 0.0:
            return number
        image[:] = alphas[0] * seed
        total = _bent(data, indices, indptr, used, s, -_dot(mean, seed), seed, image)
        image -= total * mean
        bend = _dot(seed, image)
        if not bend > 0.0:
            return number
        a = size / bend
        R -= a * image
        now = _dot(R, R)
        ratio = now / size
        for i in range(live):
            z, before = zeta[i], zeta_before[i]
            shift = 1.0 + (alphas[i] - alphas[0]) * a
            below = a * ratio_before * (before - z) + before * a_before * shift
            new = z * before * a_before / below if below != 0.0 else 0.0
            share = new / z if z != 0.0 else 0.0
            _turn(a * share, ratio * share * share, new, R, X[i], P[i])
            zeta_before[i], zeta[i] = z, new
        seed *= ratio
        seed += R
        a_before, ratio_before, size = a, ratio, now
        # Large strengths end early.
        while live and zeta[live - 1] ** 2 * now <= tol * tol * first:
            live -= 1
        if not live:
            return number + 1
    return most
