r"""Newton's method for several folds on sparse rows, with conjugate gradients, in compiled code.

    (sum_i h_i a_i a_i^T + diag(q)) d = -g,          a_i = [x_i, 1]

One pass over the rows gives the product with a vector; the inverse of the diagonal preconditions.
Rows whose loss does not bend, h_i = 0, are not read: test rows, and for support vector machines all
rows beyond their margin, which are most. The same pass serves ridge regression for all strengths
at once (:mod:`trueline.evaluation.walks.shifted`).

Folds go in step with each other, so that a pass serves up to five of them
(:mod:`trueline.evaluation.walks.lanes`): what it costs is the way to the rows, not the arithmetic.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from trueline._jit import kernel
from trueline.evaluation.walks.lanes import bent_products, make_lanes

__all__ = ["newton_paths", "shifted_solutions"]

Array = NDArray[np.float64]
Indices = NDArray[np.int32]
Integers = NDArray[np.int64]
Bools = NDArray[np.bool_]


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
def newton_directions(
    data: Array,
    indices: Indices,
    indptr: Indices,
    H: Array,
    quad: Array,
    inverse: Array,
    G: Array,
    has_intercept: bool,
    shares: Array,
    live: Bools,
    most: int,
    D: Array,
) -> int:
    """D of shape (p, d + 1) until the residuals are down to shares of G; how many steps it took.

    Norms are squared, and those of the inverse of the diagonal, ``inverse``. Problems that are not
    ``live`` are left alone.
    """
    p, d = len(G), G.shape[1] - 1
    R, P, images, M = -G, -G * inverse, np.empty((p, d + 1)), np.empty(d + 1)
    goes, levels, totals = live.copy(), np.zeros(p), np.zeros(p)
    sizes = np.zeros(p)
    for f in range(p):
        if goes[f]:
            sizes[f] = _dot(R[f], P[f])
    first = sizes.copy()
    count = 0
    rows, H_lanes, P_lanes, image_lanes = make_lanes(H, d)
    for _ in range(most):
        for f in range(p):
            goes[f] = goes[f] and sizes[f] > shares[f] * first[f] and sizes[f] > 0.0
            if goes[f]:
                images[f] = quad * P[f]
                levels[f] = P[f, d] if has_intercept else 0.0
        if not goes.any():
            break
        bent_products(
            data,
            indices,
            indptr,
            rows,
            goes,
            H,
            H_lanes,
            levels,
            P,
            P_lanes,
            image_lanes,
            images,
            totals,
        )
        for f in range(p):
            if not goes[f]:
                continue
            count += 1
            if has_intercept:
                images[f, d] += totals[f]
            bend = _dot(P[f], images[f])
            if not bend > 0.0:
                goes[f] = False
                continue
            before = sizes[f]
            sizes[f] = _advance(before / bend, P[f], images[f], inverse[f], D[f], R[f], M)
            P[f] *= sizes[f] / before
            P[f] += M
    return count


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
def newton_paths(
    data: Array,
    indices: Indices,
    indptr: Indices,
    kind: int,
    Y: Array,
    S: Array,
    strengths: Array,
    constants: Array,
    has_intercept: bool,
    tol: float,
    limits: tuple[int, int, int],
    W: Array,
    Z: Array,
) -> int:
    """Problems for decreasing strengths, each starting at the one before; steps of all of them.

    Targets Y and weights S are of shape (p, n), ``constants`` are the strengths of the intercept.
    Coefficients go to W of shape (p, m, d + 1), the scores of all rows to Z of shape (p, m, n).
    ``limits`` are the most Newton steps, steps of conjugate gradients and halvings.
    """
    p, m, n = Z.shape
    d = W.shape[2] - 1
    every, zero = np.arange(n), np.zeros(d + 1)
    V, z, q = np.zeros((p, d + 1)), np.zeros((p, n)), np.zeros(n)
    u, H = np.zeros(n), np.zeros((p, n))
    G, bends = np.empty((p, d + 1)), np.empty((p, d + 1))
    objectives, shares, count = np.empty(p), np.empty(p), 0
    for number in range(m):
        quad = np.full(d + 1, strengths[number])
        quad[d] = constants[number]
        live = np.ones(p, np.bool_)
        for f in range(p):
            used = np.flatnonzero(S[f])
            losses = _losses(kind, used, Y[f], S[f], z[f], 0.0, q)
            objectives[f] = losses + _squares(quad, V[f], 0.0, zero)
        for _ in range(limits[0]):
            for f in range(p):
                if not live[f]:
                    continue
                used = np.flatnonzero(S[f])
                _slopes(kind, used, Y[f], S[f], z[f], u, H[f])
                G[f], bends[f] = quad * V[f], quad
                _gradient(data, indices, indptr, used, u, H[f], has_intercept, G[f], bends[f])
                promise = 0.0
                for j in range(d + 1):
                    bends[f, j] = 1.0 / bends[f, j] if bends[f, j] > 0.0 else 1.0
                    promise += 0.5 * G[f, j] * G[f, j] * bends[f, j]
                live[f] = promise > tol * objectives[f]
                # Close to the minimum more of the equations is solved: Newton's steps get quick
                # there. What is left of the promise need not be smaller than a tenth of what ends
                # the descent.
                share = promise / objectives[f] if objectives[f] > 0.0 else 0.0
                shares[f] = min(max(share, 0.1 * tol / max(share, 1e-300), 1e-8), 1e-2)
            if not live.any():
                break
            D = np.zeros((p, d + 1))
            count += newton_directions(
                data, indices, indptr, H, quad, bends, G, has_intercept, shares, live, limits[1], D
            )
            for f in range(p):
                if not live[f]:
                    continue
                used = np.flatnonzero(S[f])
                _scores(data, indices, indptr, used, D[f], q)
                slope, objective = _dot(G[f], D[f]), objectives[f]
                t, now, is_lower = 1.0, objective, False
                for _ in range(limits[2]):
                    now = _losses(kind, used, Y[f], S[f], z[f], t, q) + _squares(
                        quad, V[f], t, D[f]
                    )
                    is_lower = now <= objective + 1e-4 * t * slope + 1e-13 * objective
                    if is_lower:
                        break
                    t *= 0.5
                live[f] = is_lower
                if is_lower:
                    objectives[f] = now
                    V[f] += t * D[f]
                    for place in range(len(used)):
                        z[f, used[place]] += t * q[used[place]]
        for f in range(p):
            W[f, number] = V[f]
            _scores(data, indices, indptr, every, V[f], Z[f, number])
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
    S: Array,
    means: Array,
    rights: Array,
    alphas: Array,
    tol: float,
    most: int,
    X: Array,
) -> int:
    """(C_f + alpha I) x = right_f for increasing strengths and all f; how many steps it took.

    C_f = sum_i s_fi (x_i - mean_f) (x_i - mean_f)^T, X of shape (p, m, d). Residuals are left at
    ``tol`` of the right-hand sides.
    """
    p, m, d = X.shape
    R, seeds, images, P = rights.copy(), rights.copy(), np.empty((p, d)), np.empty((p, m, d))
    zeta, zeta_before = np.ones((p, m)), np.ones((p, m))
    sizes, levels, totals = np.empty(p), np.empty(p), np.empty(p)
    a_before, ratio_before, live = np.ones(p), np.zeros(p), np.full(p, m)
    for f in range(p):
        P[f] = rights[f]
        sizes[f] = _dot(rights[f], rights[f])
    first, goes = sizes.copy(), sizes > 0.0
    rows, S_lanes, seed_lanes, image_lanes = make_lanes(S, d)
    for number in range(most):
        if not goes.any():
            return number
        for f in range(p):
            if goes[f]:
                images[f] = alphas[0] * seeds[f]
                levels[f] = -_dot(means[f], seeds[f])
        bent_products(
            data,
            indices,
            indptr,
            rows,
            goes,
            S,
            S_lanes,
            levels,
            seeds,
            seed_lanes,
            image_lanes,
            images,
            totals,
        )
        for f in range(p):
            if not goes[f]:
                continue
            images[f] -= totals[f] * means[f]
            bend = _dot(seeds[f], images[f])
            if not bend > 0.0:
                goes[f] = False
                continue
            a = sizes[f] / bend
            R[f] -= a * images[f]
            now = _dot(R[f], R[f])
            ratio = now / sizes[f]
            for i in range(live[f]):
                z, before = zeta[f, i], zeta_before[f, i]
                shift = 1.0 + (alphas[i] - alphas[0]) * a
                below = a * ratio_before[f] * (before - z) + before * a_before[f] * shift
                new = z * before * a_before[f] / below if below != 0.0 else 0.0
                share = new / z if z != 0.0 else 0.0
                _turn(a * share, ratio * share * share, new, R[f], X[f, i], P[f, i])
                zeta_before[f, i], zeta[f, i] = z, new
            seeds[f] *= ratio
            seeds[f] += R[f]
            a_before[f], ratio_before[f], sizes[f] = a, ratio, now
            # Large strengths end early.
            while live[f] and zeta[f, live[f] - 1] ** 2 * now <= tol * tol * first[f]:
                live[f] -= 1
            goes[f] = live[f] > 0 and now > 0.0
    return most
