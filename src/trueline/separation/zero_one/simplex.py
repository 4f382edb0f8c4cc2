"""Is there a v with a_i.v > 0 for all rows of a set? If not, which few rows say so?

A dual simplex on ``a_i.v >= 1``. The objective is free to choose, since only feasibility is asked:
it is the sum of the rows of the basis, so that any basis is dual feasible and the search goes on
from wherever the last one ended. With B the rows of the basis and k a row that is violated,

    a_k = sum_j alpha_j B_j,

and if no alpha_j is positive, the row k and those with negative alpha_j cannot all be right: a
*conflict*, of at most m + 1 rows (Farkas; Caratheodory). No other statement of this module is used
in a proof, and this one is made only if the signs of alpha are certain: the inverse of the basis is
multiplied out with all roundings accounted for (Higham, "Accuracy and Stability of Numerical
Algorithms", 2nd ed., section 14.1). Where a sign is in doubt, the conflict is called doubtful, and
is decided later in exact arithmetic.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from trueline.numerics.jit import kernel

Array = NDArray[np.float64]
Indices = NDArray[np.int64]
Status = NDArray[np.int8]

# What is decided of a row.
FREE, REQUIRED, OUT = 0, 1, 2
# How a solve ends.
FEASIBLE, CONFLICT, DOUBTFUL, STUCK = 0, 1, 2, 3

_TINY = 1e-9
_EPS = float(np.finfo(np.float64).eps)
_UNDERFLOW = 1e-290
_BLOCK = 512


@kernel
def solve(
    A: Array,
    norms: Array,
    separation: float,
    status: Status,
    basis: Indices,
    alive: NDArray[np.bool_],
    inverse: Array,
    price: Array,
    v: Array,
    start: int,
    found: Indices,
) -> tuple[int, int, int]:
    """Find v, or a conflict among the rows that are not out.

    Parameters
    ----------
    A : array of shape (n, m)
        Signed rows.
    norms : array of shape (n,)
        Their lengths.
    separation : float
        An alpha (of exact rows) that is smaller than this in magnitude is zero; 0 if not known.
    status : array of shape (n,)
    basis : array of shape (m,)
        Rows of the basis; -1 - c is the unit vector c. Changed.
    alive : array of bool, shape (m,)
        Whether the row takes part; the others leave the basis first. Changed.
    inverse : array of shape (m, m)
        Row j is column j of the inverse of the basis. Changed.
    price : array of shape (m,)
        Positive multipliers that make up the objective. Changed.
    v : array of shape (m,)
        The point. Changed.
    start : int
        Where to begin looking for violated rows.
    found : array of shape (m + 2,)
        The rows of the conflict, ended by -1.

    Returns
    -------
    outcome, start, pivots : int
    """
    m = A.shape[1]
    alpha = np.empty(m)
    refreshed = False
    most = 200 + 60 * m
    for pivots in range(most):
        _point(inverse, alive, v)
        k, start = _violated(A, norms, status, v, start)
        if k < 0:
            return FEASIBLE, start, pivots
        _combination(A, inverse, k, alpha)
        leaving = _leaving(norms, basis, alive, price, alpha, norms[k])
        if leaving < 0:
            outcome = _assess(A, norms, separation, basis, alive, inverse, alpha, k, found)
            if outcome != STUCK:
                return outcome, start, pivots
            if refreshed:
                return STUCK, start, pivots
            refreshed = True
            if not _refresh(A, basis, inverse):
                _restart(basis, alive, inverse, price)
            continue
        _pivot(inverse, price, alpha, leaving, alive)
        basis[leaving], alive[leaving] = k, True
        if pivots % 64 == 63 and not _refresh(A, basis, inverse):
            _restart(basis, alive, inverse, price)
    return STUCK, start, most


@kernel
def _point(inverse: Array, alive: NDArray[np.bool_], v: Array) -> None:
    """v with B_j.v = 1 for the rows of the basis that are alive, 0 for the others."""
    m = len(v)
    for c in range(m):
        v[c] = 0.0
    for j in range(m):
        if alive[j]:
            for c in range(m):
                v[c] += inverse[j, c]


@kernel
def _violated(A: Array, norms: Array, status: Status, v: Array, start: int) -> tuple[int, int]:
    """The worst row of the first block that has a violated one."""
    n, m = A.shape
    size = 0.0
    for c in range(m):
        size += abs(v[c])
    least = _TINY * size
    blocks = (n + _BLOCK - 1) // _BLOCK
    for turn in range(blocks):
        block = (start + turn) % blocks
        k, worst = -1, least
        for i in range(block * _BLOCK, min(n, (block + 1) * _BLOCK)):
            if status[i] == OUT:
                continue
            z = 0.0
            for c in range(m):
                z += A[i, c] * v[c]
            z /= norms[i]
            if z <= worst:
                k, worst = i, z
        if k >= 0:
            return k, block
    return -1, start


@kernel
def _combination(A: Array, inverse: Array, k: int, alpha: Array) -> None:
    """a_k as a combination of the rows of the basis."""
    m = len(alpha)
    for j in range(m):
        z = 0.0
        for c in range(m):
            z += A[k, c] * inverse[j, c]
        alpha[j] = z


@kernel
def _leaving(
    norms: Array,
    basis: Indices,
    alive: NDArray[np.bool_],
    price: Array,
    alpha: Array,
    norm: float,
) -> int:
    """Which place of the basis the entering row takes; -1 if there is none."""
    m = len(alpha)
    place, best = -1, _TINY
    for j in range(m):
        if not alive[j]:
            length = norms[basis[j]] if basis[j] >= 0 else 1.0
            if abs(alpha[j]) * length / norm > best:
                place, best = j, abs(alpha[j]) * length / norm
    if place >= 0:
        return place
    ratio = np.inf
    for j in range(m):
        if alive[j] and alpha[j] * norms[basis[j]] > _TINY * norm and price[j] < ratio * alpha[j]:
            place, ratio = j, price[j] / alpha[j]
    return place


@kernel
def _pivot(
    inverse: Array, price: Array, alpha: Array, leaving: int, alive: NDArray[np.bool_]
) -> None:
    m = len(alpha)
    if alive[leaving]:
        step = price[leaving] / alpha[leaving]
        for j in range(m):
            price[j] = max(price[j] - step * alpha[j], 1e-12)
        price[leaving] = max(step, 1e-12)
    else:
        price[leaving] = 1.0
    factor = 1.0 / alpha[leaving]
    for c in range(m):
        inverse[leaving, c] *= factor
    for j in range(m):
        if j != leaving and alpha[j] != 0.0:
            for c in range(m):
                inverse[j, c] -= alpha[j] * inverse[leaving, c]


@kernel
def _refresh(A: Array, basis: Indices, inverse: Array) -> bool:
    """The inverse from the beginning, by Gauss-Jordan steps; False if it cannot be formed."""
    m = len(basis)
    work = np.zeros((m, 2 * m))
    for j in range(m):
        work[j, m + j] = 1.0
        if basis[j] >= 0:
            for c in range(m):
                work[j, c] = A[basis[j], c]
        else:
            work[j, -1 - basis[j]] = 1.0
    for c in range(m):
        best = c
        for r in range(c + 1, m):
            if abs(work[r, c]) > abs(work[best, c]):
                best = r
        if not abs(work[best, c]) > 0.0:
            return False
        if best != c:
            for q in range(2 * m):
                work[c, q], work[best, q] = work[best, q], work[c, q]
        factor = 1.0 / work[c, c]
        for q in range(2 * m):
            work[c, q] *= factor
        for r in range(m):
            if r != c and work[r, c] != 0.0:
                factor = work[r, c]
                for q in range(2 * m):
                    work[r, q] -= factor * work[c, q]
    for j in range(m):
        for c in range(m):
            inverse[j, c] = work[c, m + j]
            if not np.isfinite(inverse[j, c]):
                return False
    return True


@kernel
def _restart(basis: Indices, alive: NDArray[np.bool_], inverse: Array, price: Array) -> None:
    """A basis of unit vectors, none of which takes part."""
    m = len(basis)
    for j in range(m):
        for c in range(m):
            inverse[j, c] = 0.0
        basis[j], alive[j], price[j], inverse[j, j] = -1 - j, False, 1.0, 1.0


@kernel
def _assess(
    A: Array,
    norms: Array,
    separation: float,
    basis: Indices,
    alive: NDArray[np.bool_],
    inverse: Array,
    alpha: Array,
    k: int,
    found: Indices,
) -> int:
    """Whether the signs of alpha are certain; the rows of the conflict go to ``found``.

    With R the inverse as it is known and B R = I + E, the exact combination is
    alpha (I + E)^-1, which differs from alpha by at most ||alpha|| eta / (1 - eta), eta the norm
    of E. All in units in which rows have length one.
    """
    m = len(alpha)
    eta, largest, rounding = 0.0, 0.0, 0.0
    for j in range(m):
        of_j = norms[basis[j]] if basis[j] >= 0 else 1.0
        total = 0.0
        for i in range(m):
            z, size = 0.0, 0.0
            if basis[i] >= 0:
                of_i = norms[basis[i]]
                for c in range(m):
                    term = A[basis[i], c] * inverse[j, c]
                    z += term
                    size += abs(term)
            else:
                of_i = 1.0
                z = inverse[j, -1 - basis[i]]
                size = abs(z)
            if i == j:
                z -= 1.0
                size += 1.0
            total += (abs(z) + (m + 4) * _EPS * size + _UNDERFLOW) * of_j / of_i
        eta = max(eta, total)
        size = 0.0
        for c in range(m):
            size += abs(A[k, c] * inverse[j, c])
        largest = max(largest, (abs(alpha[j]) + 2 * m * _EPS * size) * of_j)
        rounding = max(rounding, ((m + 4) * _EPS * size + _UNDERFLOW) * of_j)
    if not eta < 1e-3:
        return STUCK
    unsure = 1.01 * (largest * eta + rounding)
    outcome, count = CONFLICT, 1
    found[0] = k
    for j in range(m):
        of_j = norms[basis[j]] if basis[j] >= 0 else 1.0
        here = alpha[j] * of_j
        if alive[j] and here < -unsure:
            found[count] = basis[j]
            count += 1
        elif abs(alpha[j]) + unsure / of_j >= separation:
            outcome = DOUBTFUL  # zero, or merely small?
    found[count] = -1
    return outcome
