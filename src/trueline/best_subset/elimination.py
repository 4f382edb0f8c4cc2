r"""Columns projected out of a Gram matrix, and nodes so small that they are solved by looking.

With I the columns that are in and F those that are free,

    P = G_FF - G_FI G_II^{-1} G_IF,    r = c_F - G_FI G_II^{-1} c_I,    gain = 1/2 c_I'G_II^{-1}c_I

leave a problem in the free columns alone. One column j gains r_j^2 / (2 P_jj), a pair

    (r_i^2 P_jj - 2 r_i r_j P_ij + r_j^2 P_ii) / (2 (P_ii P_jj - P_ij^2)).

A column of which less than ``DEPENDENT`` of its square is left counts as dependent on the others:
it can add nothing.

For columns that nearly depend on each other Gram matrices are in doubled precision. Of a column
that agrees with another one to d digits, its square keeps 2 d digits fewer: in double precision
nothing is left for columns that agree to 8. Numbers here are unevaluated sums of two doubles (T. J.
Dekker, "A floating-point technique for extending the available precision", Numer. Math. 18 (1971)
224-242), about 32 digits: columns may agree to 10. The rows are centred, multiplied and summed in
that precision; columns are projected out as above.

Sums and products of two such numbers err by less than 2^-100 of the sums of magnitudes (J.-M.
Muller et al., "Handbook of Floating-Point Arithmetic", 2nd ed. (2018), section 14.1).
"""

from __future__ import annotations

import numpy as np

from trueline.numerics.jit import kernel

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


def gain_of(G, c, support):  # type: ignore[no-untyped-def]
    """1/2 c_S'G_SS^{-1}c_S; no kernel, as the one it calls would be compiled once more in it."""
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
    for a in range(m):
        v[0, a], v_low[0, a] = r[a], r_low[a]
        for b in range(m):
            A[0, a, b], A_low[0, a, b] = P[a, b], P_low[a, b]
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
            for a in range(len(chosen)):
                chosen[a] = place[a] if a <= t else -1
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
