"""Points of low objective, found in high precision: what a claim about the optimum must survive.

From a given point, Newton's method on the piece of the objective that it lies on: rows next to a
kink are kept on it, coefficients next to zero or to a bound stay there. Whatever comes out is an
upper bound on the optimum, since its objective is evaluated from the formulas.
"""

from __future__ import annotations

from mpmath import mp, mpf

from .exactly import _blocks, _strengths, objective, piece

__all__ = ["lower"]

NEAR = (mpf(10) ** -12, mpf(10) ** -7, mpf(10) ** -4)
STEPS = 6


def lower(loss, penalty, data, W, b, fit_intercept):
    """The lowest objective that Newton's method finds from a point, and where."""
    best = objective(loss, penalty, data, W, b), W, b
    if not mp.isfinite(best[0]):
        return best
    for near in NEAR:
        found = _newton(loss, penalty, data, best, near, fit_intercept)
        if found is None:
            break
        best = min(best, found, key=lambda point: point[0])
    return best


def _newton(loss, penalty, data, best, near, fit_intercept):
    _value, W, b = best
    d, k = data.d, data.k
    coupled = loss["name"] in ("softmax",)
    if loss["name"] in ("crammer_singer", "maximum_error"):
        return None
    size = d * k + (k if fit_intercept else 0)
    out = best
    for _ in range(STEPS):
        Z = data.scores(W, b)
        H = mp.zeros(size, size)
        g = mp.zeros(size, 1)
        rows, gaps = [], []
        for i in range(data.n):
            x, s = data.X[i], data.s[i]
            if coupled:
                _add_softmax(H, g, x, s, data.y[i], Z[i], d, k, fit_intercept)
                continue
            for t in range(k):
                _, slope, curvature, kink = piece(loss, t, data.y[i][t], Z[i][t])
                scale = (
                    1
                    + abs(data.y[i][t])
                    + mp.fsum(abs(x[j] * W[j][t]) for j in range(d))
                    + abs(b[t])
                )
                if kink is not None and abs(Z[i][t] - kink) <= near * scale:
                    rows.append((i, t))
                    gaps.append(kink - Z[i][t])
                    continue
                along = [(j * k + t, x[j]) for j in range(d) if x[j] != 0]
                if fit_intercept:
                    along.append((d * k + t, mpf(1)))
                for p, v in along:
                    g[p] += s * slope * v
                    if curvature != 0:
                        for q, u in along:
                            H[p, q] += s * curvature * v * u
        fixed = _add_penalty(H, g, penalty, W, d, k, near)
        step = _step(H, g, rows, gaps, fixed, data, size, fit_intercept)
        if step is None:
            return out
        moved = False
        for t in (mpf(1), mpf("0.5"), mpf("0.1"), mpf("0.01"), mpf("0.0001")):
            W_new = [[W[j][c] + t * step[j * k + c] for c in range(k)] for j in range(d)]
            b_new = [b[c] + (t * step[d * k + c] if fit_intercept else 0) for c in range(k)]
            new = objective(loss, penalty, data, W_new, b_new)
            if new < out[0]:
                moved = (out[0] - new) > abs(out[0]) * mpf(10) ** -45
                out = new, W_new, b_new
                W, b = W_new, b_new
                break
        if not moved:
            return out
    return out


def _add_softmax(H, g, x, s, y, z, d, k, fit_intercept):
    top = max(z)
    e = [mp.exp(v - top) for v in z]
    total = mp.fsum(e)
    p = [v / total for v in e]
    places = [(j, x[j]) for j in range(d) if x[j] != 0] + ([(d, mpf(1))] if fit_intercept else [])
    for t in range(k):
        for j, v in places:
            g[j * k + t] += s * (p[t] - y[t]) * v
        for u in range(k):
            curvature = s * (p[t] * ((t == u) - p[u]))
            for j, v in places:
                for m, w in places:
                    H[j * k + t, m * k + u] += curvature * v * w


def _add_penalty(H, g, penalty, W, d, k, near):
    """Slope and curvature of the penalty, and the places that stay (with where they go)."""
    fixed = {}
    top = max((abs(v) for row in W for v in row), default=mpf(0))
    if penalty["name"] in ("group", "multi_task"):
        blocks, l2 = _blocks(penalty, d, k)
        for j in range(d):
            for t in range(k):
                g[j * k + t] += l2 * W[j][t]
                H[j * k + t, j * k + t] += l2
        for places, factor in blocks:
            norm = mp.sqrt(mp.fsum(W[j][t] ** 2 for j, t in places))
            if factor == 0:
                continue
            if norm <= near * top or norm == 0:
                fixed.update({j * k + t: -W[j][t] for j, t in places})
                continue
            for j, t in places:
                g[j * k + t] += factor * W[j][t] / norm
                for m, u in places:
                    own = mpf((j, t) == (m, u))
                    H[j * k + t, m * k + u] += factor * (own - W[j][t] * W[m][u] / norm**2) / norm
        return fixed
    linear, curvature, low, high = _strengths(penalty, d, k)
    for j in range(d):
        for t in range(k):
            p, w = j * k + t, W[j][t]
            H[p, p] += curvature[j][t]
            g[p] += curvature[j][t] * w
            if linear[j][t] != 0 and abs(w) <= near * top:
                fixed[p] = -w
            else:
                g[p] += linear[j][t] * mp.sign(w)
            for end in (low[j][t], high[j][t]):
                if mp.isfinite(end) and abs(w - end) <= near * (1 + abs(end)):
                    fixed[p] = end - w
    return fixed


def _step(H, g, rows, gaps, fixed, data, size, fit_intercept):
    """Newton's step with rows kept on their kinks and places kept where they are."""
    d, k = data.d, data.k
    free = [p for p in range(size) if p not in fixed]
    A = []
    right = []
    for (i, t), gap in zip(rows, gaps):
        row = {j * k + t: data.X[i][j] for j in range(d)}
        if fit_intercept:
            row[d * k + t] = mpf(1)
        A.append([row.get(p, mpf(0)) for p in free])
        right.append(gap - mp.fsum(row.get(p, mpf(0)) * v for p, v in fixed.items()))
    # Lengths of columns make all unknowns of one order; a little curvature makes steps finite.
    lengths = []
    for q, p in enumerate(free):
        own = H[p, p] + mp.fsum(line[q] ** 2 for line in A)
        lengths.append(1 / mp.sqrt(own) if own > 0 else mpf(1))
    m, c = len(free), len(A)
    if m == 0:
        return [fixed.get(p, mpf(0)) for p in range(size)]
    K = mp.zeros(m + c, m + c)
    r = mp.zeros(m + c, 1)
    small = mpf(10) ** -30
    for a in range(m):
        for e in range(m):
            K[a, e] = H[free[a], free[e]] * lengths[a] * lengths[e]
        K[a, a] += small
        known = mp.fsum(H[free[a], p] * v for p, v in fixed.items())
        r[a] = -(g[free[a]] + known) * lengths[a]
    for e in range(c):
        top = max((abs(v * s) for v, s in zip(A[e], lengths)), default=mpf(0)) or mpf(1)
        for a in range(m):
            K[m + e, a] = K[a, m + e] = A[e][a] * lengths[a] / top
        K[m + e, m + e] = -small
        r[m + e] = right[e] / top
    try:
        u = mp.lu_solve(K, r)
    except ZeroDivisionError:
        return None
    step = [fixed.get(p, mpf(0)) for p in range(size)]
    for a, p in enumerate(free):
        step[p] = u[a] * lengths[a]
    return step
