r"""Columns projected out of a Gram matrix, and nodes so small that they are solved by looking.

With I the columns that are in and F those that are free,

    P = G_FF - G_FI G_II^{-1} G_IF,    r = c_F - G_FI G_II^{-1} c_I,    gain = 1/2 c_I'G_II^{-1}c_I

leave a problem in the free columns alone. One column j gains r_j^2 / (2 P_jj), a pair

    (r_i^2 P_jj - 2 r_i r_j P_ij + r_j^2 P_ii) / (2 (P_ii P_jj - P_ij^2)).

A column of which less than ``DEPENDENT`` of its square is left counts as dependent on the others:
it can add nothing.
"""

from __future__ import annotations

import numpy as np

from trueline.numerics.jit import kernel

__all__ = ["DEPENDENT", "best_few", "eliminate", "gain_of", "solve_support"]

#: Relative square below which what is left of a column is taken for rounding.
DEPENDENT = 1e-10


@kernel(reassociate=True)
def eliminate(G, c, inside, free):  # type: ignore[no-untyped-def]
    """P, r, the gain of the columns that are in, and whether these are independent."""
    t, m = len(inside), len(free)
    P, r = np.empty((m, m)), np.empty(m)
    Y, u, L = np.empty((t, m)), np.empty(t), np.empty((t, t))
    gain, independent = 0.0, True
    for a in range(t):
        i = inside[a]
        for b in range(a + 1):
            total = G[i, inside[b]]
            for e in range(b):
                total -= L[a, e] * L[b, e]
            if a == b:
                if total <= DEPENDENT * G[i, i]:
                    independent = False
                    total = np.inf  # a dependent column adds nothing
                L[a, a] = np.sqrt(total)
            else:
                L[a, b] = total / L[b, b]
        total = c[i]
        for e in range(a):
            total -= L[a, e] * u[e]
        u[a] = total / L[a, a]
        gain += 0.5 * u[a] * u[a]
        for k in range(m):
            Y[a, k] = G[i, free[k]]
        for e in range(a):
            factor = L[a, e]
            for k in range(m):
                Y[a, k] -= factor * Y[e, k]
        for k in range(m):
            Y[a, k] /= L[a, a]
    for k in range(m):
        row = G[free[k]]
        for i in range(m):
            P[k, i] = row[free[i]]
        total = c[free[k]]
        for a in range(t):
            total -= Y[a, k] * u[a]
            factor = Y[a, k]
            for i in range(m):
                P[k, i] -= factor * Y[a, i]
        r[k] = total
    return P, r, gain, independent


@kernel
def gain_of(G, c, support):  # type: ignore[no-untyped-def]
    """1/2 c_S'G_SS^{-1}c_S."""
    return eliminate(G, c, support, np.empty(0, dtype=np.int64))[2]


@kernel(reassociate=True)
def solve_support(G, c, support):  # type: ignore[no-untyped-def]
    """G_SS^{-1} and the coefficients of a support of independent columns, by sweeps."""
    t = len(support)
    A, w = np.empty((t, t)), np.zeros(t)
    for a in range(t):
        for b in range(t):
            A[a, b] = G[support[a], support[b]]
    for k in range(t):
        pivot = A[k, k]
        for i in range(t):
            if i != k:
                factor = A[i, k] / pivot
                for j in range(t):
                    if j != k:
                        A[i, j] -= factor * A[k, j]
                A[i, k] = factor
        for j in range(t):
            A[k, j] /= pivot
        A[k, k] = -1.0 / pivot
    for a in range(t):
        for b in range(t):
            A[a, b] = -A[a, b]
            w[a] += A[a, b] * c[support[b]]
    return A, w


@kernel(reassociate=True)
def _best_pair(P, r, least, start, alpha, q):  # type: ignore[no-untyped-def]
    """The one or two columns from ``start`` on that gain most, net of alpha each; -1 for none."""
    m = len(r)
    best, first, second = 0.0, -1, -1
    for i in range(start, m):
        if P[i, i] <= least[i]:
            continue
        own = 0.5 * r[i] * r[i] / P[i, i]
        if own - alpha > best:
            best, first, second = own - alpha, i, -1
        if q < 2:
            continue
        for j in range(i + 1, m):
            rest = P[j, j] - P[i, j] * P[i, j] / P[i, i]
            if rest <= least[j]:
                continue
            left = r[j] - P[i, j] * r[i] / P[i, i]
            net = own + 0.5 * left * left / rest - 2.0 * alpha
            if net > best:
                best, first, second = net, i, j
    return best, first, second


@kernel(reassociate=True)
def best_few(P, r, least, q, alpha):  # type: ignore[no-untyped-def]
    """The best of all choices of at most q columns: what they gain, and which (-1: none).

    Columns are projected out one after the other, in rising order; the last two are a pair.
    """
    m, depth = len(r), max(q - 2, 0)
    best, first, second = _best_pair(P, r, least, 0, alpha, q)
    chosen = np.empty(max(q, 2), dtype=np.int64)
    for a in range(len(chosen)):
        chosen[a] = -1
    chosen[0], chosen[1] = first, second
    Ps, rs, net = np.empty((depth + 1, m, m)), np.empty((depth + 1, m)), np.zeros(depth + 1)
    place, following = np.zeros(depth + 1, dtype=np.int64), np.zeros(depth + 1, dtype=np.int64)
    for a in range(m):
        rs[0, a] = r[a]
        for b in range(m):
            Ps[0, a, b] = P[a, b]
    t = 0 if depth > 0 else -1
    while t >= 0:
        i = following[t]
        if i >= m - 1:
            t -= 1
            continue
        following[t] += 1
        above, left = Ps[t], rs[t]
        if above[i, i] <= least[i]:
            continue
        place[t] = i
        below, rest = Ps[t + 1], rs[t + 1]
        net[t + 1] = net[t] + 0.5 * left[i] * left[i] / above[i, i] - alpha
        for a in range(i + 1, m):
            factor = above[i, a] / above[i, i]
            rest[a] = left[a] - factor * left[i]
            for b in range(a, m):
                below[a, b] = above[a, b] - factor * above[i, b]
        more, first, second = _best_pair(below, rest, least, i + 1, alpha, 2)
        if net[t + 1] + more > best:
            best = net[t + 1] + more
            for a in range(q):
                chosen[a] = place[a] if a <= t else -1
            chosen[t + 1], chosen[t + 2] = first, second
        if t + 1 < depth:
            t += 1
            following[t] = i + 1
    return best, chosen
