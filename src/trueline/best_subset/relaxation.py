r"""The perspective relaxation of a node, and lower bounds that hold at any accuracy.

A node asks for at most q of m free columns, with Gram matrix P and cross products c (columns
already chosen are projected out of both):

    minimise over w     1/2 w'Pw - c'w + alpha ||w||_0,      ||w||_0 <= q.

Let P = Q + diag(D) with Q positive semidefinite and D > 0. For every v, Q being convex,

    1/2 w'Qw  >=  w'Qv - 1/2 v'Qv,

and what is left separates by columns. With r = c - Qv and h_j = r_j^2 / (2 D_j),

    bound(v)  =  - 1/2 v'Qv  -  sum of the q largest max(h_j - alpha, 0).

The best v is the minimiser of the perspective relaxation

    1/2 v'Qv - c'v + sum_j ( D_j v_j^2 / (2 z_j) + alpha z_j ),    0 <= z <= 1,  sum_j z_j <= q,

(M. Pilanci, M. J. Wainwright, L. El Ghaoui, "Sparse learning via Boolean relaxations", Math.
Program. 151 (2015) 63-87). With a price ``level`` per column in place of the limit q, minimising
over z leaves the reverse Huber function of each v_j, and coordinate descent has closed steps
(H. Hazimeh, R. Mazumder, A. Saab, "Sparse regression at scale: branch-and-bound rooted in
first-order optimization", Math. Program. 196 (2022) 347-388). The price is found by bisection.

How much of a Gram matrix can be moved to the diagonal.

Any D >= 0 with P - diag(D) positive semidefinite gives a perspective relaxation, and so a lower
bound; the best D gives that of a semidefinite program (H. Dong, K. Chen, J. Linderoth,
"Regularization vs. relaxation: a conic optimization perspective of statistical variable
selection", arXiv:1510.06083 (2015)). The bound f(D) is concave, being a minimum over (w, z) of
functions linear in D, and at the minimiser

    df/dD_j  =  g_j  =  1/2 w_j^2 (1/z_j - 1).

It is climbed with a logarithmic barrier, f(D) + mu (log det(P - D) + e sum_j log D_j), by damped
Newton steps in which the curvature of f is taken to be g_j / D_j.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from trueline.numerics.jit import kernel

EPS = float(np.finfo(np.float64).eps)
_ROUNDS = 40
_SWEEPS = 200


@kernel(reassociate=True)
def sweep(Q, D, c, v, s, level):  # type: ignore[no-untyped-def]
    """One exact minimisation per coordinate at a fixed price; s = Qv is kept up to date.

    Returns the largest step, squared, in the units of the objective.
    """
    largest = 0.0
    for j in range(len(c)):
        pull = c[j] - s[j] + Q[j, j] * v[j]
        size = abs(pull)
        slope = np.sqrt(2.0 * level * D[j])
        if size <= slope:
            if v[j] == 0.0:
                continue
            new = 0.0
        else:
            new = size / (Q[j, j] + D[j])
            if new * D[j] < slope:  # below the kink, where z = 1
                new = (size - slope) / Q[j, j]
        if pull < 0:
            new = -new
        step = new - v[j]
        if step != 0.0:
            v[j] = new
            largest = max(largest, step * step * (Q[j, j] + D[j]))
            row = Q[j]
            for i in range(len(c)):
                s[i] += row[i] * step
    return largest


@kernel
def sum_of_largest(h, q, alpha):  # type: ignore[no-untyped-def]
    """The sum of the q largest max(h_j - alpha, 0), from above.

    It is the least of q t + sum_j max(h_j - alpha - t, 0) over t >= 0, and every t gives at least
    that: bisection errs on the safe side, and takes no sorting.
    """
    low, high = 0.0, 0.0
    for j in range(len(h)):
        high = max(high, h[j] - alpha)
    for _ in range(60):
        t = 0.5 * (low + high)
        count = 0
        for j in range(len(h)):
            if h[j] - alpha > t:
                count += 1
        if count > q:
            low = t
        else:
            high = t
        if count == q:
            break
    total = q * high
    for j in range(len(h)):
        total += max(h[j] - alpha - high, 0.0)
    return total


@kernel(reassociate=True)
def bound_at(Q, D, c, q, alpha, v, s, h):  # type: ignore[no-untyped-def]
    """bound(v), for s = Qv; fills h."""
    square = 0.0
    for j in range(len(c)):
        square += v[j] * s[j]
        h[j] = (c[j] - s[j]) ** 2 / (2.0 * D[j])
    return -0.5 * square - sum_of_largest(h, q, alpha)


@kernel(reassociate=True)
def proven_bound(Q, D, c, q, alpha, v, h):  # type: ignore[no-untyped-def]
    """bound(v) on the safe side of the rounding of its sums; fills h, from above.

    Qv is summed anew: the one that coordinate descent keeps has taken on the rounding of every
    step. An entry of it errs by (m + 2) eps ||v||_1 max_ij |Q_ij| at most.
    """
    m = len(c)
    terms = (m + q + 8) * EPS
    size, largest = 0.0, 0.0
    for j in range(m):
        size += abs(v[j])
        largest = max(largest, Q[j, j])  # Q is positive semidefinite
    square, magnitude = 0.0, 0.0
    for j in range(m):
        s, row = 0.0, Q[j]
        for i in range(m):
            s += row[i] * v[i]
        error = terms * (size * largest + abs(c[j]))
        square += v[j] * s
        magnitude += abs(v[j]) * (abs(s) + size * largest)
        h[j] = (abs(c[j] - s) + error) ** 2 / (2.0 * D[j])
    total = sum_of_largest(h, q, alpha)
    return -0.5 * square - total - terms * (magnitude + total)


@kernel(reassociate=True)
def relax(Q, D, c, q, alpha, v, level, enough, tol):  # type: ignore[no-untyped-def]
    """Maximise bound(v); stop early once it exceeds ``enough``.

    Returns the bound, v, h and z there, and the price, from which a similar problem may start.
    """
    m = len(c)
    v = v.copy()
    s = np.zeros(m)
    for j in range(m):
        if v[j] != 0.0:
            for i in range(m):
                s[i] += Q[j, i] * v[j]
    h, z = np.empty(m), np.zeros(m)
    best, best_v, best_h = -np.inf, v.copy(), np.zeros(m)
    low, high = alpha, np.inf
    primal, least = np.inf, tol
    level = max(level, alpha, 1e-300)
    for _ in range(_ROUNDS):
        # A bound that is far from ``enough`` need not be sharp.
        if best > -np.inf and enough < np.inf:
            tol = max(least, 0.02 * (enough - best))
        for _ in range(_SWEEPS):
            if sweep(Q, D, c, v, s, level) <= 1e-2 * tol:
                break
        value = bound_at(Q, D, c, q, alpha, v, s, h)
        if value > best:
            best = value
            for j in range(m):
                best_v[j] = v[j]
        if best > enough + 1e-5 * least:  # a little more than rounding will take back
            break
        count, cost = 0.0, 0.0
        for j in range(m):
            z[j] = min(1.0, abs(v[j]) * np.sqrt(D[j] / (2.0 * level)))
            count += z[j]
            cost += (0.5 * s[j] - c[j]) * v[j]
            if z[j] > 0.0:
                cost += 0.5 * D[j] * v[j] ** 2 / z[j] + alpha * z[j]
        if count <= q:
            primal = min(primal, cost)
        if primal - best <= tol:
            break
        if count > q:
            low = level
        else:
            high = level
            if level <= alpha:
                break
        if high == np.inf:
            level *= max(1.05, min(4.0, (count / q) ** 2))
        elif low <= alpha:
            level = max(level * min(0.95, max(0.25, (max(count, 0.1) / q) ** 2)), alpha, 1e-300)
        else:
            level = np.sqrt(low * high)
            if high <= low * (1.0 + 1e-7):
                break
    return proven_bound(Q, D, c, q, alpha, best_v, best_h), best_v, best_h, z, level


Array = NDArray[np.float64]

# The weight e of the barrier that keeps D away from zero.
_FLOOR = 0.01
# P - D stays positive by this part of the diagonal of P, far above the rounding of P.
_MARGIN = 1e-9
#: Columns with less of themselves outside the span of the others count as dependent.
DEPENDENT_COLUMNS = 1e-7


class Relaxed(NamedTuple):
    """A lower bound: its value, the diagonal D, v, h and z of the relaxation, and the price."""

    bound: float
    D: Array
    v: Array
    h: Array
    z: Array
    level: float


def _is_positive(P: Array, D: Array) -> bool:
    """Whether P - diag(D) is positive definite, with a margin."""
    try:
        np.linalg.cholesky(P - np.diag(D + _MARGIN * P.diagonal()))
    except np.linalg.LinAlgError:
        return False
    return True


def uniform_diagonal(P: Array) -> Array | None:
    """Half of what can be moved to the diagonal in equal parts; None if P is singular."""
    size = P.diagonal()
    if not _is_positive(P, DEPENDENT_COLUMNS * size):
        return None
    scale = 1.0 / np.sqrt(size)
    least = float(np.linalg.eigvalsh(P * scale[:, None] * scale)[0])
    D: Array = max(0.5 * least, DEPENDENT_COLUMNS) * size
    return D


def climb(
    P: Array,
    D: Array,
    c: Array,
    q: int,
    alpha: float,
    v: Array,
    level: float,
    enough: float,
    tol: float,
    steps: int,
    mu: float,
) -> Relaxed:
    """Improve D by Newton steps, until the bound exceeds ``enough`` or they are used up."""
    best: Relaxed | None = None
    for turn in range(steps + 1):
        Q = P - np.diag(D)
        bound, v, h, z, level = relax(Q, D, c, q, alpha, v, level, enough, tol)
        found = Relaxed(bound, D, v, h, z, level)
        if best is None or found.bound > best.bound:
            best = found
        if found.bound > enough or turn == steps:
            break
        further = _newton(P, Q, D, v, level, mu)
        if further is None:
            break
        D = further
    assert best is not None
    return best


def _newton(P: Array, Q: Array, D: Array, v: Array, level: float, mu: float) -> Array | None:
    """The diagonal after one damped step; None if there is none."""
    try:
        inverse = np.linalg.inv(Q)
        share = np.minimum(1.0, np.abs(v) * np.sqrt(D / (2.0 * level)))
        g = np.divide(0.5 * v**2 * (1.0 - share), share, out=np.zeros_like(v), where=share > 0)
        slope = g - mu * inverse.diagonal() + _FLOOR * mu / D
        curvature = mu * inverse**2
        curvature[np.diag_indices(len(D))] += _FLOOR * mu / D**2 + g / D
        return _advanced(P, D, np.linalg.solve(curvature, slope))
    except np.linalg.LinAlgError:
        return None


def _advanced(P: Array, D: Array, step: Array) -> Array | None:
    """D + t step, for the largest t = 1, 1/2, 1/4 ... that stays well inside."""
    for halvings in range(12):
        move = 0.5**halvings * step
        # Beyond the step by a tenth: the next one needs room.
        if _is_positive(P, np.maximum(D + 1.1 * move, 0.2 * D)):
            further: Array = np.maximum(D + move, 0.2 * D)
            return further
    return None
