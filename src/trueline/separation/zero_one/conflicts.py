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
from trueline.separation.zero_one.problem import Task
from trueline.separation.zero_one.simplex import (
    CONFLICT,
    DOUBTFUL,
    FEASIBLE,
    FREE,
    OUT,
    STUCK,
    Basis,
    solve,
)

Array = NDArray[np.float64]
Status = NDArray[np.int8]

_EPS = float(np.finfo(np.float64).eps)
_UNDERFLOW = 1e-290


class Packed(NamedTuple):
    """What a packing found.

    Attributes
    ----------
    bound : float
        Infinity if the decisions contradict each other.
    conflicts : list of tuple
        The rows of each, and what it counts.
    outcome : int
        Of the last solve.
    loose : int
        A row that fits to what is left; -1 if there is none.
    pivots : int
    """

    bound: float
    conflicts: list[tuple[list[int], float]]
    outcome: int
    loose: int
    pivots: int


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


def arrange(A: Array, v: Array, norms: Array, s: Array) -> list[int]:
    """The errors of v, those next to the boundary first."""
    z = np.empty(len(A))
    evaluate(A, v, s, z)
    wrong = np.flatnonzero(z <= 0.0)
    errors: list[int] = wrong[np.argsort(-z[wrong] / norms[wrong], kind="stable")].tolist()
    return errors


def pack(
    task: Task,
    status: Status,
    cost: float,
    target: float,
    order: list[int],
    basis: Basis,
    doubts: dict[frozenset[int], float],
    most_pivots: float,
    in_full: bool = True,
) -> Packed:
    """Pack conflicts until the bound reaches ``target`` or none is left.

    Parameters
    ----------
    task : Task
    status : array of shape (n,)
        What is decided.
    cost : float
        Weight of the rows that are decided to be errors.
    target : float
        The bound to reach.
    order : list of int
        Errors of a good hyperplane; those that fit to what is left are moved to the front.
    basis : Basis
        Changed.
    doubts : dict
        Conflicts in doubt, and the bounds that hold without them. Changed.
    most_pivots : float
        Where to stop, with the bound that is reached by then.
    in_full : bool
        Whether to go on where the target can no longer be reached.
    """
    s = task.s
    work, left = status.copy(), s.tolist()
    waiting = [i for i in order if work[i] == FREE]
    work[waiting] = OUT
    weight, turn = float(s[waiting].sum()), iter(waiting)
    bound, loose, newest, start, steps = cost, -1, -1, 0, 0
    conflicts: list[tuple[list[int], float]] = []
    while True:
        outcome, found, start, pivots = solve(
            task.A, task.norms, task.separation, work, basis, start
        )
        steps += pivots
        if outcome == STUCK or steps > most_pivots:
            return Packed(bound, conflicts, STUCK, loose, steps)
        if outcome != FEASIBLE:
            if outcome == DOUBTFUL:
                rows = frozenset(found)
                doubts[rows] = min(doubts.get(rows, bound), bound)
            charge = _take(found, work, left)
            bound += charge
            if bound < np.inf:
                conflicts.append((found, charge))
            if bound >= target:
                return Packed(bound, conflicts, CONFLICT, loose, steps)
            if newest < 0 or work[newest] != OUT:
                continue
        elif newest >= 0:
            loose = newest
            order.remove(loose)
            order.insert(0, loose)
        # All that are in are right together: bring in the next.
        newest = -1 if not in_full and bound + weight < target else next(turn, -1)
        if newest < 0:
            return Packed(bound, conflicts, outcome, loose, steps)
        weight -= float(s[newest])
        work[newest] = FREE


def _take(found: list[int], work: Status, left: list[float]) -> float:
    """What a conflict counts, the least weight that is left on its free rows: taken from them."""
    free = [i for i in found if work[i] == FREE]
    charge = min([left[i] for i in free], default=np.inf)
    for i in free:
        left[i] -= charge
        if left[i] <= 0.0:
            work[i] = OUT
    return charge
