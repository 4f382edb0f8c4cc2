r"""Newton's method for one fold on sparse rows, with conjugate gradients, in compiled code.

    (sum_i h_i a_i a_i^T + diag(q)) d = -g,          a_i = [x_i, 1]

One pass over the rows gives the product with a vector; the inverse of the diagonal preconditions.
Rows whose loss does not bend, h_i = 0, are not read: test rows, and for support vector machines all
rows beyond their margin, which are most. The same pass serves ridge regression for all strengths
at once (:mod:`trueline.evaluation.walks.shifted`).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from trueline._jit import kernel

__all__ = ["newton_path", "shifted_solutions"]

Array = NDArray[np.float64]
Indices = NDArray[np.int32]
Integers = NDArray[np.int64]


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


@kernel
def _losses(
    kind: int, used: Integers, y: Array, s: Array, z: Array, step: float, q: Array
) -> float:
    """The weighted losses' sum at the scores z + step q: logistic (0) or squared hinge (1)."""
    total = 0.0
    for place in range(len(used)):
        i = used[place]
        margin = y[i] * (z[i] + step * q[i])
        if kind == 0:
            lost = np.log1p(np.exp(-abs(margin))) + max(-margin, 0.0)
        else:
            lost = max(1.0 - margin, 0.0) ** 2
        total += s[i] * lost
    return total


@kernel
def _slopes(kind: int, used: Integers, y: Array, s: Array, z: Array, u: Array, h: Array) -> None:
    """First and second derivatives of the weighted losses."""
    for place in range(len(used)):
        i = used[place]
        margin = y[i] * z[i]
        if kind == 0:
            share = 1.0 / (1.0 + np.exp(margin))
            u[i], h[i] = -s[i] * y[i] * share, s[i] * share * (1.0 - share)
        else:
            left = max(1.0 - margin, 0.0)
            u[i], h[i] = -2.0 * s[i] * y[i] * left, 2.0 * s[i] if left > 0.0 else 0.0


@kernel
def _scores(
    data: Array, indices: Indices, indptr: Indices, used: Integers, V: Array, z: Array
) -> None:
    level = V[len(V) - 1]
    for place in range(len(used)):
        i = used[place]
        score = level
        for k in range(indptr[i], indptr[i + 1]):
            score += data[k] * V[np.uint64(indices[k])]
        z[i] = score


@kernel(reassociate=True)
def _squares(quad: Array, V: Array, step: float, D: Array) -> float:
    total = 0.0
    for j in range(len(V)):
        v = V[j] + step * D[j]
        total += quad[j] * v * v
    return 0.5 * total


@kernel
def _gradient(
    data: Array,
    indices: Indices,
    indptr: Indices,
    used: Integers,
    u: Array,
    h: Array,
    has_intercept: bool,
    g: Array,
    bends: Array,
) -> None:
    """Add A^T u to g and the diagonal of A^T diag(h) A to ``bends``."""
    d = len(g) - 1
    for place in range(len(used)):
        i = used[place]
        if u[i] == 0.0 and h[i] == 0.0:
            continue
        for k in range(indptr[i], indptr[i + 1]):
            j, x = np.uint64(indices[k]), data[k]
            g[j] += u[i] * x
            bends[j] += h[i] * x * x
        if has_intercept:
            g[d] += u[i]
            bends[d] += h[i]


@kernel
def newton_path(
    data: Array,
    indices: Indices,
    indptr: Indices,
    kind: int,
    y: Array,
    s: Array,
    strengths: Array,
    constants: Array,
    has_intercept: bool,
    tol: float,
    limits: tuple[int, int, int],
    W: Array,
    Z: Array,
) -> int:
    """One fold for decreasing strengths, each starting at the one before; steps of all of them.

    ``constants`` are the strengths of the intercept. Coefficients go to W of shape (m, d + 1), the
    scores of all rows to Z of shape (m, n). ``limits`` are the most Newton steps, steps of
    conjugate gradients and halvings.
    """
    m, n = Z.shape
    d = W.shape[1] - 1
    used, every = np.flatnonzero(s), np.arange(n)
    V, z, q = np.zeros(d + 1), np.zeros(n), np.zeros(n)
    u, h = np.zeros(n), np.zeros(n)
    count = 0
    for number in range(m):
        quad = np.full(d + 1, strengths[number])
        quad[d] = constants[number]
        zero = np.zeros(d + 1)
        objective = _losses(kind, used, y, s, z, 0.0, q) + _squares(quad, V, 0.0, zero)
        for _ in range(limits[0]):
            _slopes(kind, used, y, s, z, u, h)
            g, bends = quad * V, quad.copy()
            _gradient(data, indices, indptr, used, u, h, has_intercept, g, bends)
            promise = 0.0
            for j in range(d + 1):
                bends[j] = 1.0 / bends[j] if bends[j] > 0.0 else 1.0
                promise += 0.5 * g[j] * g[j] * bends[j]
            if not promise > tol * objective:
                break
            # Close to the minimum more of the equations is solved: Newton's steps get quick there.
            # What is left of the promise need not be smaller than a tenth of what ends the descent.
            share = promise / objective
            share = min(max(share, 0.1 * tol / share, 1e-8), 1e-2)
            D = np.zeros(d + 1)
            count += newton_direction(
                data, indices, indptr, h, quad, bends, g, has_intercept, share, limits[1], D
            )
            _scores(data, indices, indptr, used, D, q)
            slope = _dot(g, D)
            t, is_lower = 1.0, False
            for _ in range(limits[2]):
                now = _losses(kind, used, y, s, z, t, q) + _squares(quad, V, t, D)
                is_lower = now <= objective + 1e-4 * t * slope + 1e-13 * objective
                if is_lower:
                    break
                t *= 0.5
            if not is_lower:
                break
            objective = now
            V += t * D
            for place in range(len(used)):
                z[used[place]] += t * q[used[place]]
        W[number] = V
        _scores(data, indices, indptr, every, V, Z[number])
    return count


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
