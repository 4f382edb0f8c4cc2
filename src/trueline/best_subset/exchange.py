r"""Good supports by exchange: add, drop or swap one column while that helps.

For a support S let A = G_SS^{-1}, w = A c_S, B = A G_S: and, for every column j,

    r_j = c_j - G_jS w,       q_j = G_jj - sum_i G_ji B_ij.

Adding j gains r_j^2 / (2 q_j); dropping i costs w_i^2 / (2 A_ii); after dropping i,

    r_j <- r_j + w_i B_ij / A_ii,       q_j <- q_j + B_ij^2 / A_ii,

so that all k (d - k) swaps are judged in the time of one product.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from trueline.best_subset.elimination import DEPENDENT, solve_support
from trueline.numerics.jit import kernel

Array = NDArray[np.float64]
Support = NDArray[np.int64]

# Random starts are of columns that are clearly independent.
_CLEARLY = 1e-6


@kernel(reassociate=True)
def _judge(G, c, support, allowed):  # type: ignore[no-untyped-def]
    """A diagonal, w, B, r and q of a support; q is zero for columns that may not enter."""
    d, t = len(c), len(support)
    A, w = solve_support(G, c, support)
    B, r, q = np.zeros((t, d)), c.copy(), np.empty(d)
    for j in range(d):
        q[j] = G[j, j]
    for a in range(t):
        for b in range(t):
            row, factor = G[support[b]], A[a, b]
            for j in range(d):
                B[a, j] += factor * row[j]
    for a in range(t):
        row = G[support[a]]
        for j in range(d):
            r[j] -= w[a] * row[j]
            q[j] -= row[j] * B[a, j]
    may = allowed.copy()
    for a in range(t):
        may[support[a]] = False
    return A, w, B, r, q, may


@kernel(reassociate=True)
def descend(G, c, support, k, alpha, allowed, least_gain):  # type: ignore[no-untyped-def]
    """The steepest exchange, again and again, until none gains more than ``least_gain``.

    Returns the support and its value 1/2 c_S'w - alpha |S|.
    """
    d = len(c)
    previous, value = support, -np.inf
    while True:
        t = len(support)
        A, w, B, r, q, may = _judge(G, c, support, allowed)
        reached = -alpha * t
        for i in range(t):
            reached += 0.5 * w[i] * c[support[i]]
        # What an exchange promised, rounding may have taken back: no going in circles.
        if not reached > value + 0.5 * least_gain:
            support = previous
            break
        previous, value = support, reached
        best, out, enter = least_gain, -1, -1
        if t < k:
            for j in range(d):
                if may[j] and q[j] > DEPENDENT * G[j, j]:
                    gain = 0.5 * r[j] * r[j] / q[j] - alpha
                    if gain > best:
                        best, enter = gain, j
        for i in range(t):
            loss = 0.5 * w[i] * w[i] / A[i, i]
            if alpha - loss > best:
                best, out, enter = alpha - loss, i, -1
            for j in range(d):
                rest = q[j] + B[i, j] * B[i, j] / A[i, i]
                if may[j] and rest > DEPENDENT * G[j, j]:
                    left = r[j] + w[i] * B[i, j] / A[i, i]
                    gain = 0.5 * left * left / rest - loss
                    if gain > best:
                        best, out, enter = gain, i, j
        if out < 0 and enter < 0:
            break
        support = np.empty(t - int(out >= 0) + int(enter >= 0), dtype=np.int64)
        place = 0
        for i in range(t):
            if i != out:
                support[place] = previous[i]
                place += 1
        if enter >= 0:
            support[place] = enter
    return support, value


@kernel(reassociate=True)
def forward(G, c, k, allowed):  # type: ignore[no-untyped-def]
    """The columns that forward selection takes and what each gains; fewer if they run out."""
    d = len(c)
    r, q = c.copy(), np.empty(d)
    for j in range(d):
        q[j] = G[j, j]
    Y = np.empty((k, d))
    chosen, gains = np.empty(k, dtype=np.int64), np.empty(k)
    may = allowed.copy()
    for t in range(k):
        best, enter = -1.0, -1
        for j in range(d):
            if may[j] and q[j] > DEPENDENT * G[j, j] and r[j] * r[j] > best * q[j]:
                best, enter = r[j] * r[j] / q[j], j
        if enter < 0:
            return chosen[:t], gains[:t]
        chosen[t], gains[t] = enter, 0.5 * best
        may[enter] = False
        row, root = G[enter], np.sqrt(q[enter])
        for j in range(d):
            Y[t, j] = row[j]
        for a in range(t):
            factor = Y[a, enter]
            for j in range(d):
                Y[t, j] -= factor * Y[a, j]
        u = r[enter] / root
        for j in range(d):
            Y[t, j] /= root
            r[j] -= u * Y[t, j]
            q[j] -= Y[t, j] * Y[t, j]
    return chosen, gains


@kernel
def independent(G, order, k, least):  # type: ignore[no-untyped-def]
    """The first k columns of ``order`` with more than ``least`` of their square left over."""
    chosen = np.empty(min(k, len(order)), dtype=np.int64)
    L = np.empty((k, k))
    t = 0
    for j in order:
        if t == len(chosen):
            break
        rest = G[j, j]
        for a in range(t):
            total = G[j, chosen[a]]
            for e in range(a):
                total -= L[t, e] * L[a, e]
            L[t, a] = total / L[a, a]
            rest -= L[t, a] * L[t, a]
        if rest > least * G[j, j]:
            L[t, t] = np.sqrt(rest)
            chosen[t] = j
            t += 1
    return chosen[:t]


@kernel
def lowest_indices(G, c, support, allowed, tie):  # type: ignore[no-untyped-def]
    """The same value with lower indices: every column replaced by the first that does as well."""
    support = support.copy()
    again = True
    while again:
        again = False
        for i in range(len(support)):
            A, w, B, r, q, may = _judge(G, c, support, allowed)
            loss = 0.5 * w[i] * w[i] / A[i, i]
            for j in range(support[i]):
                rest = q[j] + B[i, j] * B[i, j] / A[i, i]
                if may[j] and rest > DEPENDENT * G[j, j]:
                    left = r[j] + w[i] * B[i, j] / A[i, i]
                    if 0.5 * left * left / rest - loss >= -tie:
                        support[i] = j
                        again = True
                        break
    return support


def many_starts(
    G: Array,
    c: Array,
    k: int,
    alpha: float,
    allowed: NDArray[np.bool_],
    least_gain: float,
    given: list[Support],
    count: int,
) -> tuple[Support, float]:
    """The best end of exchange descents from given supports, ``count`` random ones, and kicks.

    Kicks replace half of the best support by random columns (iterated local search). The random
    numbers are always the same ones.
    """
    rng = np.random.default_rng(0)
    columns = np.flatnonzero(allowed)
    best, value = np.empty(0, dtype=np.int64), 0.0

    def attempt(start: Support) -> None:
        nonlocal best, value
        start = independent(G, start, k, _CLEARLY)
        end, reached = descend(G, c, start, k, alpha, allowed, least_gain)
        if reached > value + least_gain:
            best, value = np.sort(end), reached

    for start in given:
        attempt(start)
    for turn in range(count):
        order = rng.permutation(columns)
        if turn % 2 and len(best):
            kept = rng.permutation(best)[: (len(best) + 1) // 2]
            order = np.concatenate([kept, order[~np.isin(order, kept)]])
        # With a price in place of a limit, supports of about the size of the best one.
        attempt(order[: min(k, len(best) if alpha > 0 else k) + 8])
    return best, value
