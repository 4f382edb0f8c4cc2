"""Conflicts that share no row: each of them costs an error.

Any hyperplane misclassifies at least one row of every conflict, so that disjoint conflicts bound
the number of errors from below; with weights, a conflict counts the smallest weight that is left
on its rows, and takes as much from each of them. The errors of a good hyperplane are brought in
one at a time, those next to the boundary first: all other rows are right together, so that each
conflict holds one error, and a packing with a conflict for each error proves that there is no
better hyperplane. Conflicts whose rows are required to be right cost nothing but their free rows.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from trueline.numerics.jit import kernel
from trueline.separation.zero_one.simplex import (
    CONFLICT,
    DOUBTFUL,
    FEASIBLE,
    FREE,
    OUT,
    REQUIRED,
    STUCK,
    solve,
)

Array = NDArray[np.float64]
Indices = NDArray[np.int64]


@kernel
def sort_order(keys: Array, count: int, order: Indices, spare: Indices) -> None:
    """``order[:count]`` sorts ``keys[:count]``: merges of ever longer runs."""
    for i in range(count):
        order[i] = i
    width = 1
    while width < count:
        start = 0
        while start < count:
            middle, end = min(start + width, count), min(start + 2 * width, count)
            a, b = start, middle
            for c in range(start, end):
                if b >= end or (a < middle and keys[order[a]] <= keys[order[b]]):
                    spare[c] = order[a]
                    a += 1
                else:
                    spare[c] = order[b]
                    b += 1
            start = end
        for i in range(count):
            order[i] = spare[i]
        width *= 2


@kernel
def orthogonalise(Q: Array, place: int, upto: int) -> float:
    """Make a row of Q orthogonal to its first ``upto`` rows, twice for rounding; its length."""
    m = Q.shape[1]
    for _ in range(2):
        for h in range(upto):
            product = 0.0
            for c in range(m):
                product += Q[place, c] * Q[h, c]
            for c in range(m):
                Q[place, c] -= product * Q[h, c]
    total = 0.0
    for c in range(m):
        total += Q[place, c] * Q[place, c]
    return float(np.sqrt(total))


@kernel
def normalise(v: Array) -> float:
    """Divide by the length, which is returned; zero stays zero."""
    total = 0.0
    for c in range(len(v)):
        total += v[c] * v[c]
    length = np.sqrt(total)
    if length > 0.0:
        for c in range(len(v)):
            v[c] /= length
    return float(length)


Status = NDArray[np.int8]

_EPS = float(np.finfo(np.float64).eps)
_UNDERFLOW = 1e-290
# Required rows are kept in the basis as long as possible: conflicts with them have few free rows.
_KEPT = 1e4


class Rows(NamedTuple):
    """Signed rows, their lengths and weights, and the least alpha that is not zero.

    As in :func:`~trueline.separation.zero_one.simplex.solve`.
    """

    A: Array
    norms: Array
    separation: float
    weights: Array


class Basis(NamedTuple):
    """Where the simplex is; as in its ``solve``."""

    rows: Indices
    alive: NDArray[np.bool_]
    inverse: Array
    price: Array
    v: Array


class Conflicts(NamedTuple):
    """Rows of the conflicts, one after the other; where each ends; and what it counts."""

    rows: Indices
    ends: Indices
    charges: Array


class Doubts(NamedTuple):
    """Conflicts in doubt: their rows, the bound that holds without each, a hash table, a count."""

    claims: Indices
    floors: Array
    slots: Indices
    counter: Indices


@kernel
def fresh_basis(m: int) -> Basis:
    """The unit vectors."""
    rows = -1 - np.arange(m)
    return Basis(rows, np.zeros(m, dtype=np.bool_), np.eye(m), np.ones(m), np.zeros(m))


@kernel
def fresh_conflicts(n: int, m: int) -> Conflicts:
    """Room for as many conflicts as there can be."""
    rows = np.empty((m + 2) * (n + 1), dtype=np.int64)
    return Conflicts(rows, np.empty(n + 1, dtype=np.int64), np.empty(n + 1))


@kernel
def evaluate(A: Array, v: Array, s: Array, z: Array) -> float:
    """Weight of the rows that v does not certainly get right; ``z`` becomes their scores."""
    n, m = A.shape
    total = 0.0
    for i in range(n):
        score, size = 0.0, 0.0
        for c in range(m):
            term = A[i, c] * v[c]
            score += term
            size += abs(term)
        z[i] = score
        if not score > (m + 2) * _EPS * size + _UNDERFLOW:
            z[i] = min(score, 0.0)
            total += s[i]
    return total


@kernel
def arrange(A: Array, v: Array, norms: Array, s: Array, order: Indices) -> int:
    """The errors of v, those next to the boundary first; returns their number."""
    n = len(A)
    z = np.empty(n)
    evaluate(A, v, s, z)
    count = 0
    for i in range(n):
        if z[i] <= 0.0:
            order[count] = i
            count += 1
    key = np.empty(count)
    for q in range(count):
        key[q] = -z[order[q]] / norms[order[q]]
    place, spare = np.empty(count, dtype=np.int64), np.empty(count, dtype=np.int64)
    sort_order(key, count, place, spare)
    for q in range(count):
        spare[q] = order[place[q]]
    for q in range(count):
        order[q] = spare[q]
    return count


@kernel
def _record(found: Indices, floor: float, doubts: Doubts) -> None:
    """Write down a doubtful conflict and the bound that holds even without it."""
    claims, floors, slots, counter = doubts
    width = claims.shape[1]
    rows = np.empty(width, dtype=np.int64)
    count = 0
    while found[count] >= 0:
        place = count
        while place > 0 and rows[place - 1] > found[count]:
            rows[place] = rows[place - 1]
            place -= 1
        rows[place] = found[count]
        count += 1
    for q in range(count, width):
        rows[q] = -1
    code = 1469598103
    for q in range(count):
        code = ((code ^ rows[q]) * 1099511) % 2147483647
    place = code % len(slots)
    while slots[place] >= 0:
        number = slots[place]
        same = True
        for q in range(width):
            if claims[number, q] != rows[q]:
                same = False
                break
        if same:
            floors[number] = min(floors[number], floor)
            return
        place = (place + 1) % len(slots)
    number = counter[0]
    slots[place] = number
    for q in range(width):
        claims[number, q] = rows[q]
    floors[number] = floor
    counter[0] += 1


@kernel
def pack(
    data: Rows,
    status: Status,
    cost: float,
    target: float,
    order: Indices,
    errors: int,
    in_full: bool,
    most_pivots: int,
    basis: Basis,
    conflicts: Conflicts,
    doubts: Doubts,
) -> tuple[float, int, int, int, int]:
    """Pack conflicts until the bound reaches ``target`` or none is left.

    Parameters
    ----------
    data : Rows
    status : array of shape (n,)
        What is decided.
    cost : float
        Weight of the rows that are decided to be errors.
    target : float
        The bound to reach.
    order : array
        Errors of a good hyperplane; those that fit to what is left are moved to the front.
    errors : int
        Their number.
    in_full : bool
        Whether to go on where the target can no longer be reached.
    most_pivots : int
        Where to stop, with the bound that is reached by then.
    basis, conflicts, doubts
        Changed.

    Returns
    -------
    bound : float
        Infinity if the decisions contradict each other.
    count : int
        Number of conflicts.
    outcome : int
        Of the last solve.
    loose : int
        A row of ``order`` that fits to what is left; -1 if there is none.
    pivots : int
    """
    A, norms, separation, s = data
    members, alive, inverse, price, v = basis
    work, left, found = status.copy(), s.copy(), np.empty(A.shape[1] + 2, dtype=np.int64)
    waiting = _set_aside(order, errors, s, work)
    bound, count, loose, start, steps, upto = cost, 0, -1, 0, 0, 0
    position, newest = 0, -1
    while True:
        _prefer_required(work, members, alive, price)
        outcome, start, pivots = solve(
            A, norms, separation, work, members, alive, inverse, price, v, start, found
        )
        steps += pivots
        if outcome == STUCK or steps > most_pivots:
            return bound, count, STUCK, loose, steps
        if outcome != FEASIBLE:
            if outcome == DOUBTFUL:
                _record(found, bound, doubts)
            charge = _charge(found, work, left)
            bound += charge
            if bound == np.inf:
                return bound, count, CONFLICT, loose, steps
            upto = _spend(found, charge, work, left, conflicts.rows, upto)
            conflicts.ends[count], conflicts.charges[count] = upto, charge
            count += 1
            if bound >= target:
                return bound, count, CONFLICT, loose, steps
            if newest < 0 or work[newest] != OUT:
                continue
        elif newest >= 0:
            loose = newest
            for place in range(position - 1, 0, -1):
                order[place] = order[place - 1]
            order[0] = loose
        # All that are in are right together: bring in the next.
        if not in_full and bound + waiting < target:
            return bound, count, outcome, loose, steps
        while position < errors and status[order[position]] != FREE:
            position += 1
        if position == errors:
            return bound, count, outcome, loose, steps
        newest = order[position]
        position += 1
        waiting -= s[newest]
        work[newest] = FREE


@kernel
def _set_aside(order: Indices, errors: int, s: Array, work: Status) -> float:
    """Take the errors that are not decided out of the work; their weight."""
    waiting = 0.0
    for q in range(errors):
        if work[order[q]] == FREE:
            work[order[q]] = OUT
            waiting += s[order[q]]
    return waiting


@kernel
def _prefer_required(
    work: Status, members: Indices, alive: NDArray[np.bool_], price: Array
) -> None:
    """Rows that are out leave the basis first, required ones last."""
    for j in range(len(members)):
        if alive[j]:
            if work[members[j]] == OUT:
                alive[j] = False
            price[j] = _KEPT if work[members[j]] == REQUIRED else 1.0


@kernel
def _charge(found: Indices, work: Status, left: Array) -> float:
    """What a conflict counts: the least weight that is left on its free rows."""
    charge, q = np.inf, 0
    while found[q] >= 0:
        if work[found[q]] == FREE:
            charge = min(charge, left[found[q]])
        q += 1
    return charge


@kernel
def _spend(
    found: Indices, charge: float, work: Status, left: Array, rows: Indices, upto: int
) -> int:
    """Take the charge from the free rows of a conflict, and write all its rows down; where to."""
    q = 0
    while found[q] >= 0:
        i = found[q]
        rows[upto + q] = i
        if work[i] == FREE:
            left[i] -= charge
            if left[i] <= 0.0:
                work[i] = OUT
        q += 1
    return upto + q
