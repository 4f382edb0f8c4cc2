r"""The lasso and the elastic net along their path, from one change of the support to the next.

With the free coefficients F, their signs s, the strength l of the absolute values and the curvature
a of the squares, H = G + a I, q = c - H w is s_F l on F and

    w_F(l - h) = w_F + h u,      q(l - h) = q - h H_.F u,      u = H_FF^-1 s,

until the correlation of a resting coefficient reaches the strength, or a free one reaches zero (M.
R. Osborne, B. Presnell, B. A. Turlach, "A new approach to variable selection in least squares
problems", IMA J. Numer. Anal. 20 (2000) 389-403; B. Efron, T. Hastie, I. Johnstone, R. Tibshirani,
"Least angle regression", Ann. Statist. 32 (2004) 407-499, section 3.1). The Cholesky factor of H_FF
is extended by a row or loses one: a change costs about as much as one sweep.

Between two strengths whose curvatures differ by e = a - a' the way is straight for the new matrix
with a target that moves: v, the present solution, solves G + a' I with the target c - e v, which
goes back to c at the rate r = e v / (l - l'). Then u = H_FF^-1 (s + r_F), and q falls by
h (H_.F u - r).

A column that depends on the free ones cannot change its correlation relative to the strength before
one of them comes to rest: so long it stays out.

Nothing is proven here, and ties may end the path early: what is found are proposals, whose gaps
are computed like those of any other point.

To compile the loop takes seconds. Until then whole arrays do the steps.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.blas import dtrsv
from scipy.linalg.lapack import dpotrf

from trueline.numerics.jit import kernel

Array = NDArray[np.float64]
Integers = NDArray[np.intp]
Bools = NDArray[np.bool_]

# Of a column that adds less than this to those that are in, nothing is left but rounding.
_DEPENDENT = 1e-9
# A strength this close to the first one at which something is freed is that one.
_SLACK = 1e-10
# Multiplications after which sweeps and blocked factorisations are the better way.
_MOST_WORK = 1e9
# Free columns that there is room for at first.
_FEW = 64
# Changes of the support per column: more of them are ties that go round in a circle.
_MOST_CHANGES = 8


def _let_in_whole(
    G: Array, curvature: float, free: Integers, k: int, column: int, L: Array, row: Array
) -> bool:
    diagonal = G[column, column] + curvature
    if k:
        row[:k] = dtrsv(L[:k, :k], G[column, free[:k]], lower=1)
    left = diagonal - row[:k] @ row[:k]
    if left > 0.0:
        L[k, :k], L[k, k] = row[:k], np.sqrt(left)
    return bool(left > _DEPENDENT * diagonal)


@kernel(reassociate=True, whole=_let_in_whole)
def _let_in(
    G: Array, curvature: float, free: Integers, k: int, column: int, L: Array, row: Array
) -> bool:
    """Extend the factor of H_FF by a column; False if it depends on the k columns that are free."""
    diagonal = left = G[column, column] + curvature
    for i in range(k):
        total, known = G[column, free[i]], L[i]
        for j in range(i):
            total -= known[j] * row[j]
        row[i] = total / known[i]
        left -= row[i] * row[i]
    if left > 0.0:
        for i in range(k):
            L[k, i] = row[i]
        L[k, k] = np.sqrt(left)
    return left > _DEPENDENT * diagonal


def _remove_whole(L: Array, k: int, at: int, cosines: Array, sines: Array) -> None:
    R = np.asarray(np.linalg.qr(np.delete(np.tril(L[:k, :k]), at, axis=0).T, mode="r"))
    L[: k - 1, : k - 1] = (R * np.sign(R.diagonal())[:, None]).T


@kernel(whole=_remove_whole)
def _remove(L: Array, k: int, at: int, cosines: Array, sines: Array) -> None:
    """Let one of k columns go: rotations bring the rows behind it to triangular form again."""
    for r in range(at + 1, k):
        row, up = L[r], L[r - 1]
        for j in range(at, r):
            x, y = row[j], row[j + 1]
            if j < r - 1:
                row[j], row[j + 1] = cosines[j] * x + sines[j] * y, cosines[j] * y - sines[j] * x
            else:
                size = np.hypot(x, y)
                cosines[j], sines[j] = x / size, y / size
                row[j] = size
        for j in range(r):
            up[j] = row[j]


def _solve_whole(L: Array, k: int, x: Array) -> None:
    if k:
        x[:k] = dtrsv(L[:k, :k], dtrsv(L[:k, :k], x[:k], lower=1), lower=1, trans=1)


@kernel(reassociate=True, whole=_solve_whole)
def _solve(L: Array, k: int, x: Array) -> None:
    """Replace x by the solution of L L^T x = x."""
    for i in range(k):
        total, row = x[i], L[i]
        for j in range(i):
            total -= row[j] * x[j]
        x[i] = total / row[i]
    for i in range(k - 1, -1, -1):
        row = L[i]
        x[i] /= row[i]
        value = x[i]
        for j in range(i):
            x[j] -= value * row[j]


def _combine_whole(G: Array, free: Integers, k: int, u: Array, out: Array) -> None:
    out[:] = u[:k] @ G[free[:k]]


@kernel(reassociate=True, whole=_combine_whole)
def _combine(G: Array, free: Integers, k: int, u: Array, out: Array) -> None:
    """out = G_.F u."""
    out[:] = 0.0
    for i in range(k):
        row, value = G[free[i]], u[i]
        for j in range(len(out)):
            out[j] += value * row[j]


def _go_whole(x: Array, way: float, u: Array, size: int) -> None:
    x[:size] += way * u[:size]


@kernel(whole=_go_whole)
def _go(x: Array, way: float, u: Array, size: int) -> None:
    """x += way u, as far as that size."""
    for i in range(size):
        x[i] += way * u[i]


def _next_to_enter_whole(
    q: Array, a: Array, strength: float, is_in: Bools, just_left: int
) -> tuple[int, float]:
    ways = np.full((2, len(q)), np.inf)
    for own, sign in zip(ways, (1.0, -1.0)):
        rate = 1.0 - sign * a
        np.divide(strength - sign * q, rate, out=own, where=~is_in & (rate > 0.0))
        if just_left >= 0 and sign * q[just_left] > 0.0:
            own[just_left] = np.inf
    first = int(ways.min(axis=0).argmin())
    best = float(ways[:, first].min())
    return (first, max(best, 0.0)) if best < np.inf else (-1, np.inf)


@kernel(whole=_next_to_enter_whole)
def _next_to_enter(
    q: Array, a: Array, strength: float, is_in: Bools, just_left: int
) -> tuple[int, float]:
    """Which resting coefficient is the first to be freed, and after which way.

    The correlation of one that has just come to rest stands at the strength and falls faster than
    it: only at the other end can it be freed again.
    """
    best, first = np.inf, -1
    for j in range(len(q)):
        if is_in[j]:
            continue
        up, down = 1.0 - a[j], 1.0 + a[j]
        if up > 0.0 and strength - q[j] < best * up and not (j == just_left and q[j] > 0.0):
            best, first = max((strength - q[j]) / up, 0.0), j
        if down > 0.0 and strength + q[j] < best * down and not (j == just_left and q[j] < 0.0):
            best, first = max((strength + q[j]) / down, 0.0), j
    return first, best


def _first_to_leave_whole(w: Array, u: Array, s: Array, k: int, way: float) -> tuple[int, float]:
    falls = u[:k] * s[:k] < 0.0
    ways = np.divide(-w[:k], u[:k], out=np.full(k, np.inf), where=falls)
    leaves = int(ways.argmin()) if k else -1
    return (leaves, float(ways[leaves])) if k and ways[leaves] < way else (-1, way)


@kernel(whole=_first_to_leave_whole)
def _first_to_leave(w: Array, u: Array, s: Array, k: int, way: float) -> tuple[int, float]:
    """Which free coefficient reaches zero before that way is gone, and where; -1 if none does."""
    leaves = -1
    for i in range(k):
        ahead = w[i] + way * u[i]
        if (ahead < 0.0 if s[i] > 0.0 else ahead > 0.0) or (way == np.inf and u[i] * s[i] < 0):
            leaves, way = i, -w[i] / u[i]
    return leaves, way


def _factor_whole(G: Array, curvature: float, free: Integers, k: int, L: Array, row: Array) -> bool:
    H = G[np.ix_(free[:k], free[:k])] + curvature * np.eye(k)
    factor, failed = dpotrf(H, lower=1)
    L[:k, :k] = factor
    return not failed and bool((factor.diagonal() ** 2 > _DEPENDENT * H.diagonal()).all())


@kernel(whole=_factor_whole)
def _factor(G: Array, curvature: float, free: Integers, k: int, L: Array, row: Array) -> bool:
    """The Cholesky factor of H_FF for k free columns; False if they are dependent."""
    is_regular = True
    for m in range(k):
        is_regular = is_regular and _let_in(G, curvature, free, m, free[m], L, row)
    return is_regular


def _rates_whole(
    G: Array,
    L: Array,
    free: Integers,
    k: int,
    s: Array,
    drift: Array,
    curvature: float,
    u: Array,
    a: Array,
) -> None:
    u[:k] = s[:k] + drift[free[:k]]
    _solve_whole(L, k, u)
    _combine_whole(G, free, k, u, a)
    a -= drift
    a[free[:k]] += curvature * u[:k]


@kernel(whole=_rates_whole)
def _rates(
    G: Array,
    L: Array,
    free: Integers,
    k: int,
    s: Array,
    drift: Array,
    curvature: float,
    u: Array,
    a: Array,
) -> None:
    """How fast the coefficients u and the correlations a change as the strength falls."""
    for i in range(k):
        u[i] = s[i] + drift[free[i]]
    _solve(L, k, u)
    _combine(G, free, k, u, a)
    for j in range(len(drift)):
        a[j] -= drift[j]
    for i in range(k):
        a[free[i]] += curvature * u[i]


def _arrive_whole(
    G: Array,
    c: Array,
    L: Array,
    free: Integers,
    k: int,
    s: Array,
    strength: float,
    w: Array,
    q: Array,
) -> None:
    w[:k] = c[free[:k]] - strength * s[:k]
    _solve_whole(L, k, w)
    w[:k] *= w[:k] * s[:k] > 0.0
    _combine_whole(G, free, k, w, q)
    q[:] = c - q
    q[free[:k]] = strength * s[:k]


@kernel(whole=_arrive_whole)
def _arrive(
    G: Array,
    c: Array,
    L: Array,
    free: Integers,
    k: int,
    s: Array,
    strength: float,
    w: Array,
    q: Array,
) -> None:
    """The coefficients at a strength, and their correlations, without the rounding of the way.

    They are solved for afresh: G_FF w_F = c_F - l s_F.
    """
    for i in range(k):
        w[i] = c[free[i]] - strength * s[i]
    _solve(L, k, w)
    for i in range(k):
        w[i] = w[i] if w[i] * s[i] > 0.0 else 0.0
    _combine(G, free, k, w, q)
    for j in range(len(c)):
        q[j] = c[j] - q[j]
    for i in range(k):
        q[free[i]] = strength * s[i]


def _let_go_whole(place: int, free: Integers, k: int, s: Array, w: Array, is_in: Bools) -> None:
    for values in (free, s, w):
        values[place : k - 1] = values[place + 1 : k].copy()
    is_in[:] = False
    is_in[free[: k - 1]] = True


@kernel(whole=_let_go_whole)
def _let_go(place: int, free: Integers, k: int, s: Array, w: Array, is_in: Bools) -> None:
    """The free column at a place rests; those that wait for it may enter."""
    for i in range(place, k - 1):
        free[i], s[i], w[i] = free[i + 1], s[i + 1], w[i + 1]
    for j in range(len(is_in)):
        is_in[j] = False
    for i in range(k - 1):
        is_in[free[i]] = True


@kernel
def _enlarged(L: Array, room: int) -> Array:
    """The factor with room for more rows."""
    larger = np.empty((room, room))
    for i in range(len(L)):
        for j in range(i + 1):
            larger[i, j] = L[i, j]
    return larger


@kernel
def _follow(
    G: Array,
    c: Array,
    strengths: Array,
    curvatures: Array,
    W: Array,
    most_work: float,
    L: Array,
    free: Integers,
    is_in: Bools,
    spare: Array,
) -> int:
    """Write the solution at each of the strengths into the rows of W; how many were found.

    L has room for a few rows; ``free`` and ``is_in`` are zero, as are the rows of ``spare``.
    """
    d, room = len(c), len(L)
    q, w, s, u, a = spare[0], spare[1], spare[2], spare[3], spare[4]
    row, drift, cosines, sines = spare[5], spare[6], spare[7], spare[8]
    strength, curvature = 0.0, curvatures[0]
    for j in range(d):
        q[j] = c[j]
        strength = max(strength, abs(c[j]))
    k, work, just_left, found, changes = 0, 0.0, -1, 0, 0
    while found < len(strengths) and strengths[found] >= (1.0 - _SLACK) * strength:
        found += 1  # all coefficients rest
    if found < len(strengths):
        curvature = curvatures[found]
    while found < len(strengths) and work <= most_work and changes <= _MOST_CHANGES * (d + 10):
        _rates(G, L, free, k, s, drift, curvature, u, a)
        work += k * (k + d) + d
        enters, way = _next_to_enter(q, a, strength, is_in, just_left)
        leaves, way = _first_to_leave(w, u, s, k, way)
        if strength - way <= strengths[found]:
            strength = strengths[found]
            _arrive(G, c, L, free, k, s, strength, w, q)
            drift[:] = 0.0
            for i in range(k):
                W[found, free[i]] = w[i]
            work += k * (k + d)
            found, just_left = found + 1, -1
            if found < len(strengths) and curvatures[found] != curvature:
                rate = (curvature - curvatures[found]) / (strength - strengths[found])
                curvature = curvatures[found]
                for i in range(k):
                    drift[free[i]] = rate * w[i]
                work += k * k * k / 6
                if not _factor(G, curvature, free, k, L, row):
                    break
            continue
        changes += 1
        _go(w, way, u, k)
        _go(q, -way, a, d)
        strength -= way
        if leaves >= 0:
            _remove(L, k, leaves, cosines, sines)
            just_left = free[leaves]
            _let_go(leaves, free, k, s, w, is_in)
            k -= 1
            continue
        if k == room:
            room = min(2 * room, d)
            L = _enlarged(L, room)
        is_in[enters] = True
        if _let_in(G, curvature, free, k, enters, L, row):
            free[k], s[k], w[k] = enters, 1.0 if q[enters] > 0.0 else -1.0, 0.0
            just_left = -1
            k += 1
    return found


def propose(G: Array, c: Array, strengths: Array, curvatures: Array) -> Array:
    """Solutions of  minimise 1/2 w^T G w - c^T w + l ||w||_1 + a/2 ||w||^2.

    Parameters
    ----------
    G : array of shape (d, d)
    c : array of shape (d,)
    strengths, curvatures : arrays of shape (m,)
        Of each solution: l > 0, decreasing, and a >= 0.

    Returns
    -------
    array of shape (found, d)
        As many rows as were found, from the first strength on.

    Examples
    --------
    >>> import numpy as np
    >>> from trueline.solvers.coordinate_descent.homotopy import propose
    >>> propose(np.eye(2), np.array([3.0, -1.0]), np.array([2.0, 0.5]), np.array([1.0, 0.0]))
    array([[ 0.5,  0. ],
           [ 2.5, -0.5]])
    """
    d, room = len(c), min(len(c), _FEW)
    W = np.zeros((len(strengths), d))
    # Memory is Python's matter: to compile its allocation takes as long as a loop.
    spare = np.empty((room, room)), np.zeros(d, np.intp), np.zeros(d, np.bool_), np.zeros((9, d))
    G = np.ascontiguousarray(G)
    return W[: _follow(G, c, strengths, curvatures, W, _MOST_WORK, *spare)]
