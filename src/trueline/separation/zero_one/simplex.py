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

from typing import NamedTuple

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
# Required rows are kept in the basis as long as possible: conflicts with them have few free rows.
_KEPT = 1e4
# Pivots after which the inverse is formed anew.
_REFRESH = 64


class Basis(NamedTuple):
    """Where the search is.

    Attributes
    ----------
    rows : array of shape (m,)
        Rows of the basis; -1 - c is the unit vector c.
    alive : array of bool, shape (m,)
        Whether the row takes part; the others leave the basis first.
    inverse : array of shape (m, m)
        Row j is column j of the inverse of the basis.
    price : array of shape (m,)
        Positive multipliers that make up the objective.
    v : array of shape (m,)
        The point.
    """

    rows: Indices
    alive: NDArray[np.bool_]
    inverse: Array
    price: Array
    v: Array

    @classmethod
    def fresh(cls, m: int) -> Basis:
        """The unit vectors, none of which takes part."""
        rows = -1 - np.arange(m)
        return cls(rows, np.zeros(m, dtype=np.bool_), np.eye(m), np.ones(m), np.zeros(m))

    def restart(self) -> None:
        """Back to the unit vectors."""
        for mine, fresh in zip(self, Basis.fresh(len(self.v)), strict=True):
            mine[...] = fresh

    def refresh(self, A: Array) -> None:
        """The inverse from the beginning; where it cannot be formed, back to the unit vectors."""
        is_row = self.rows >= 0
        B = np.eye(len(self.v))[np.where(is_row, 0, -1 - self.rows)]
        B[is_row] = A[self.rows[is_row]]
        try:
            self.inverse[...] = np.linalg.inv(B).T
        except np.linalg.LinAlgError:
            self.restart()
        if not np.isfinite(self.inverse).all():
            self.restart()


def solve(
    A: Array, norms: Array, separation: float, status: Status, basis: Basis, start: int
) -> tuple[int, list[int], int, int]:
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
    basis : Basis
        Changed.
    start : int
        Where to begin looking for violated rows.

    Returns
    -------
    outcome : int
    conflict : list of int
    start, pivots : int
    """
    m = A.shape[1]
    alpha, found = np.empty(m), np.empty(m + 1, dtype=np.int64)
    rows, alive, inverse, price, v = basis
    pivots, most, is_fresh = 0, 200 + 60 * m, False
    while pivots < most:
        k, start, done = _pivots(
            A, norms, status, rows, alive, inverse, price, v, alpha, start, _REFRESH
        )
        pivots += done
        if k == _NONE:
            return FEASIBLE, [], start, pivots
        if k >= 0:
            outcome, count = _assess(A, norms, separation, rows, alive, inverse, alpha, k, found)
            if outcome != STUCK:
                return outcome, found[:count].tolist(), start, pivots
            if is_fresh:
                return STUCK, [], start, pivots
            is_fresh = True
        basis.refresh(A)
    return STUCK, [], start, pivots


# What stands for a row: none is violated, or there were enough pivots.
_NONE, _ENOUGH = -1, -2


@kernel
def _pivots(
    A: Array,
    norms: Array,
    status: Status,
    basis: Indices,
    alive: NDArray[np.bool_],
    inverse: Array,
    price: Array,
    v: Array,
    alpha: Array,
    start: int,
    most: int,
) -> tuple[int, int, int]:
    """Pivot until no row is violated, or nothing can leave for one: that row, and its alpha."""
    m = len(v)
    for j in range(m):  # rows that are out leave the basis first, required ones last
        if alive[j]:
            alive[j] = status[basis[j]] != OUT
            price[j] = _KEPT if status[basis[j]] == REQUIRED else 1.0
    for pivots in range(most):
        k, start = _violated(A, norms, status, inverse, alive, v, start)
        if k < 0:
            return _NONE, start, pivots
        leaving = _leaving(A[k], inverse, norms, basis, alive, price, alpha, norms[k])
        if leaving < 0:
            return k, start, pivots
        step = price[leaving] / alpha[leaving] if alive[leaving] else 0.0
        for j in range(m):
            price[j] = max(price[j] - step * alpha[j], 1e-12)
        price[leaving] = max(step, 1e-12) if alive[leaving] else 1.0
        factor = 1.0 / alpha[leaving]
        for c in range(m):
            inverse[leaving, c] *= factor
        for j in range(m):
            if j != leaving and alpha[j] != 0.0:
                for c in range(m):
                    inverse[j, c] -= alpha[j] * inverse[leaving, c]
        basis[leaving], alive[leaving] = k, True
    return _ENOUGH, start, most


@kernel
def _violated(
    A: Array,
    norms: Array,
    status: Status,
    inverse: Array,
    alive: NDArray[np.bool_],
    v: Array,
    start: int,
) -> tuple[int, int]:
    """The worst row of the first block that has a violated one.

    Before, v with B_j.v = 1 for the rows of the basis that are alive, 0 for the others.
    """
    n, m = A.shape
    size = 0.0
    for c in range(m):
        v[c] = 0.0
        for j in range(m):
            if alive[j]:
                v[c] += inverse[j, c]
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
def _leaving(
    row: Array,
    inverse: Array,
    norms: Array,
    basis: Indices,
    alive: NDArray[np.bool_],
    price: Array,
    alpha: Array,
    norm: float,
) -> int:
    """Which place of the basis the entering row takes; -1 if there is none.

    ``alpha`` becomes the row as a combination of the rows of the basis.
    """
    m = len(alpha)
    for j in range(m):
        alpha[j] = 0.0
        for c in range(m):
            alpha[j] += row[c] * inverse[j, c]
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
) -> tuple[int, int]:
    """Whether the signs of alpha are certain; the rows of the conflict go to ``found``; how many.

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
        return STUCK, 0
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
    return outcome, count
