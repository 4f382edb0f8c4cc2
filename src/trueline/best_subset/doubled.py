r"""Gram matrices in doubled precision, for columns that nearly depend on each other.

Of a column that agrees with another one to d digits, its square keeps 2 d digits fewer: in double
precision nothing is left for columns that agree to 8. Numbers here are unevaluated sums of two
doubles (T. J. Dekker, "A floating-point technique for extending the available precision", Numer.
Math. 18 (1971) 224-242), about 32 digits: columns may agree to 10. The rows are centred, multiplied
and summed in that precision; columns are projected out as in
:mod:`trueline.best_subset.elimination`.

Sums and products of two such numbers err by less than 2^-100 of the sums of magnitudes (J.-M.
Muller et al., "Handbook of Floating-Point Arithmetic", 2nd ed. (2018), section 14.1).
"""

from __future__ import annotations

import numpy as np

from trueline.numerics.jit import kernel

__all__ = [
    "DEPENDENT_DOUBLED",
    "UNIT",
    "best_few_doubled",
    "centred_products",
    "divided",
    "eliminate_doubled",
    "is_positive",
]

#: Rounding of one operation, relative to the magnitudes that enter it.
UNIT = 2.0**-100
#: Relative square below which what is left of a column is taken for rounding.
DEPENDENT_DOUBLED = 1e-21

_SPLITTER = 134217729.0  # 2^27 + 1


@kernel
def _two_sum(a, b):  # type: ignore[no-untyped-def]
    s = a + b
    t = s - a
    return s, (a - (s - t)) + (b - t)


@kernel
def _two_product(a, b):  # type: ignore[no-untyped-def]
    p = a * b
    c = _SPLITTER * a
    a_high = c - (c - a)
    a_low = a - a_high
    c = _SPLITTER * b
    b_high = c - (c - b)
    b_low = b - b_high
    return p, a_low * b_low - (((p - a_high * b_high) - a_low * b_high) - a_high * b_low)


@kernel
def _add(a, a_low, b, b_low):  # type: ignore[no-untyped-def]
    s, e = _two_sum(a, b)
    e += a_low + b_low
    return _two_sum(s, e)


@kernel
def _times(a, a_low, b, b_low):  # type: ignore[no-untyped-def]
    p, e = _two_product(a, b)
    e += a * b_low + a_low * b
    return _two_sum(p, e)


@kernel
def _over(a, a_low, b, b_low):  # type: ignore[no-untyped-def]
    first = a / b
    p, e = _times(first, 0.0, b, b_low)
    rest, rest_low = _add(a, a_low, -p, -e)
    second = rest / b
    p, e = _times(second, 0.0, b, b_low)
    rest, rest_low = _add(rest, rest_low, -p, -e)
    q, e = _two_sum(first, second)
    return _two_sum(q, e + rest / b)


@kernel
def centred_products(X, s, shift, is_centred):  # type: ignore[no-untyped-def]
    """Weighted means of the columns less a shift, and sums of products of the centred ones.

    A number close to the mean is subtracted exactly first, so that offsets cost no digits. Returns
    the means (zero without centring) and the products, each with its low part.
    """
    n, d = X.shape
    mean, mean_low = np.zeros(d), np.zeros(d)
    G, G_low = np.zeros((d, d)), np.zeros((d, d))
    if is_centred:
        weight, weight_low = 0.0, 0.0
        for i in range(n):
            weight, weight_low = _add(weight, weight_low, s[i], 0.0)
            for j in range(d):
                a, a_low = _two_sum(X[i, j], -shift[j])
                p, e = _times(a, a_low, s[i], 0.0)
                mean[j], mean_low[j] = _add(mean[j], mean_low[j], p, e)
        for j in range(d):
            mean[j], mean_low[j] = _over(mean[j], mean_low[j], weight, weight_low)
    row, row_low = np.empty(d), np.empty(d)
    for i in range(n):
        for j in range(d):
            a, a_low = _two_sum(X[i, j], -shift[j])
            row[j], row_low[j] = _add(a, a_low, -mean[j], -mean_low[j])
        for j in range(d):
            a, a_low = _times(row[j], row_low[j], s[i], 0.0)
            for k in range(j + 1):
                p, e = _times(a, a_low, row[k], row_low[k])
                G[j, k], G_low[j, k] = _add(G[j, k], G_low[j, k], p, e)
    for j in range(d):
        for k in range(j):
            G[k, j], G_low[k, j] = G[j, k], G_low[j, k]
    return mean, mean_low, G, G_low


@kernel
def divided(G, G_low, scale):  # type: ignore[no-untyped-def]
    """G_ij / (scale_i scale_j)."""
    d = len(scale)
    out, low = np.empty((d, d)), np.empty((d, d))
    for i in range(d):
        for j in range(d):
            a, a_low = _over(G[i, j], G_low[i, j], scale[i], 0.0)
            out[i, j], low[i, j] = _over(a, a_low, scale[j], 0.0)
    return out, low


@kernel
def _part(G, G_low, columns):  # type: ignore[no-untyped-def]
    t = len(columns)
    A, A_low = np.empty((t, t)), np.empty((t, t))
    for a in range(t):
        for b in range(t):
            A[a, b], A_low[a, b] = G[columns[a], columns[b]], G_low[columns[a], columns[b]]
    return A, A_low


@kernel
def _sweep(A, A_low, r, r_low, i):  # type: ignore[no-untyped-def]
    """Project column i out of those that follow; what it gains."""
    t = len(r)
    for a in range(i + 1, t):
        f, f_low = _over(A[i, a], A_low[i, a], A[i, i], A_low[i, i])
        p, e = _times(f, f_low, r[i], r_low[i])
        r[a], r_low[a] = _add(r[a], r_low[a], -p, -e)
        for b in range(a, t):
            p, e = _times(f, f_low, A[i, b], A_low[i, b])
            A[a, b], A_low[a, b] = _add(A[a, b], A_low[a, b], -p, -e)
    return 0.5 * r[i] * r[i] / A[i, i]


@kernel
def eliminate_doubled(G, G_low, c, c_low, inside, free):  # type: ignore[no-untyped-def]
    """P and r with their low parts, the gain of the columns that are in, and which of them count.

    A column that depends on those before it adds nothing.
    """
    t, m = len(inside), len(free)
    order = np.concatenate((inside, free))
    A, A_low = _part(G, G_low, order)
    r, r_low = c[order], c_low[order]
    counts = np.zeros(t, dtype=np.bool_)
    gain = 0.0
    for i in range(t):
        counts[i] = A[i, i] > DEPENDENT_DOUBLED * G[order[i], order[i]]
        if counts[i]:
            gain += _sweep(A, A_low, r, r_low, i)
    P, P_low = np.empty((m, m)), np.empty((m, m))
    for a in range(m):
        for b in range(a, m):
            P[a, b] = P[b, a] = A[t + a, t + b]
            P_low[a, b] = P_low[b, a] = A_low[t + a, t + b]
    return P, P_low, r[t:], r_low[t:], gain, counts


@kernel
def is_positive(G, G_low, shift):  # type: ignore[no-untyped-def]
    """Whether G - shift is positive definite, for a diagonal of about one.

    All pivots are positive with room for rounding, that of d sums of d terms.
    """
    t = len(G)
    A, A_low = G.copy(), G_low.copy()
    r, r_low = np.zeros(t), np.zeros(t)
    for i in range(t):
        A[i, i], A_low[i, i] = _add(A[i, i], A_low[i, i], -shift, 0.0)
    for i in range(t):
        if A[i, i] <= 8.0 * t * t * UNIT:
            return False
        _sweep(A, A_low, r, r_low, i)
    return True


@kernel
def best_few_doubled(P, P_low, r, r_low, least, q, alpha):  # type: ignore[no-untyped-def]
    """The best of all choices of at most q columns: what they gain, which (-1: none), and a bound.

    The bound: no determinant of a choice, its diagonal brought to that of P, is below it; zero if
    choices were left out because a column depends on the others.
    """
    m = len(r)
    q = min(q, m)
    best, lowest = 0.0, 1.0
    chosen = np.full(max(q, 1), -1, dtype=np.int64)
    A, A_low = np.empty((q + 1, m, m)), np.empty((q + 1, m, m))
    v, v_low = np.empty((q + 1, m)), np.empty((q + 1, m))
    A[0], A_low[0], v[0], v_low[0] = P, P_low, r, r_low
    net, volume = np.zeros(q + 1), np.ones(q + 1)
    place, following = np.full(q + 1, -1, dtype=np.int64), np.zeros(q + 1, dtype=np.int64)
    t = 0
    while t >= 0:
        i = following[t]
        if i >= m or t == q:
            t -= 1
            continue
        following[t] += 1
        if A[t, i, i] <= least[i]:
            lowest = 0.0
            continue
        place[t] = i
        volume[t + 1] = volume[t] * A[t, i, i] / P[i, i]
        lowest = min(lowest, volume[t + 1])
        net[t + 1] = net[t] + 0.5 * v[t, i] * v[t, i] / A[t, i, i] - alpha
        if net[t + 1] > best:
            best = net[t + 1]
            chosen[:] = -1
            chosen[: t + 1] = place[: t + 1]
        if t + 1 < q:
            for a in range(i + 1, m):
                f, f_low = _over(A[t, i, a], A_low[t, i, a], A[t, i, i], A_low[t, i, i])
                p, e = _times(f, f_low, v[t, i], v_low[t, i])
                v[t + 1, a], v_low[t + 1, a] = _add(v[t, a], v_low[t, a], -p, -e)
                # Of the last column nothing but its own square is asked for.
                for b in range(a, m if t + 2 < q else a + 1):
                    p, e = _times(f, f_low, A[t, i, b], A_low[t, i, b])
                    A[t + 1, a, b], A_low[t + 1, a, b] = _add(A[t, a, b], A_low[t, a, b], -p, -e)
            following[t + 1] = i + 1
            t += 1
    return best, chosen, lowest
