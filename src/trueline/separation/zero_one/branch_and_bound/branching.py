r"""Branch and bound: a row is an error, or it is right.

Depth first; the bound of a node is a packing of conflicts (:mod:`.packing`). A search that is cut
off leaves its path behind: the node at its end and the other halves of its decisions are open.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from trueline.numerics.jit import kernel
from trueline.separation.zero_one.branch_and_bound.packing import arrange, evaluate, pack
from trueline.separation.zero_one.branch_and_bound.simplex import FEASIBLE, FREE, OUT, REQUIRED

__all__ = ["explore"]

Array = NDArray[np.float64]
Indices = NDArray[np.int64]
Status = NDArray[np.int8]


@kernel
def explore(
    A: Array,
    norms: Array,
    separation: float,
    s: Array,
    slack: float,
    status: Status,
    cost: float,
    best: float,
    v_best: Array,
    most_nodes: int,
    most_pivots: int,
    pack_pivots: int,
    path: Indices,
    halves: Indices,
    bounds: Array,
    claims: Indices,
    floors: Array,
    slots: Indices,
    counter: Indices,
) -> tuple[float, int, int, int]:
    """Search below a node.

    Parameters
    ----------
    A, norms, separation, s, claims, floors, slots, counter
        As in :func:`~trueline.separation.zero_one.branch_and_bound.packing.pack`.
    slack : float
        Nodes that cannot improve the best weight by more than this are closed.
    status, cost
        The node.
    best, v_best
        The least weight of errors known, and its hyperplane. ``v_best`` is changed.
    most_nodes, most_pivots : int
        Where to stop.
    pack_pivots : int
        Where to stop in the middle of a node.
    path, halves, bounds : arrays of length n + 1
        The path of decisions when it stopped: the row, whether its second half (the row is right)
        was begun, and a bound on both halves.

    Returns
    -------
    best : float
    depth : int
        Length of the path; -1 if the search is finished.
    nodes, pivots : int
    """
    n, m = A.shape
    status = status.copy()
    basis, alive = np.empty(m, dtype=np.int64), np.zeros(m, dtype=np.bool_)
    inverse, price, v = np.zeros((m, m)), np.ones(m), np.zeros(m)
    for j in range(m):
        basis[j], inverse[j, j] = -1 - j, 1.0
    rows, ends = np.empty((m + 2) * (n + 1), dtype=np.int64), np.empty(n + 1, dtype=np.int64)
    charges, z = np.empty(n + 1), np.empty(n)
    score = np.zeros(n)
    order = np.empty(n, dtype=np.int64)
    errors = arrange(A, v_best, norms, s, order)
    depth, nodes, pivots = 0, 0, 0
    while True:
        if nodes >= most_nodes or pivots >= most_pivots or counter[0] + 2 * n > len(claims):
            return best, depth, nodes, pivots
        nodes += 1
        bound, count, outcome, loose, steps = pack(
            A, norms, separation, s, status, cost, best - slack, order, errors,
            depth == 0, pack_pivots, basis, alive, inverse, price, v, rows, ends, charges,
            claims, floors, slots, counter,
        )  # fmt: skip
        pivots += steps + 1
        if bound < best - slack and outcome == FEASIBLE:
            total = evaluate(A, v, s, z)
            if total < best:
                best = total
                for c in range(m):
                    v_best[c] = v[c]
                errors = arrange(A, v_best, norms, s, order)
            if count == 0 and total <= cost:
                bound = np.inf  # nothing is left to decide
        if bound < best - slack:
            i = _branching_row(status, rows, ends, count, score, loose)
            if i < 0:
                i = _any_free(status, s)
            if i < 0:
                # All is decided, and double precision cannot tell whether that can be.
                floors[-1] = min(floors[-1], cost)
            else:
                path[depth], halves[depth], bounds[depth] = i, 0, bound
                depth += 1
                status[i] = OUT
                cost += s[i]
                continue
        while depth > 0:
            i = path[depth - 1]
            if halves[depth - 1] == 0:
                halves[depth - 1] = 1
                status[i] = REQUIRED
                cost -= s[i]
                if bounds[depth - 1] < best - slack:
                    break
            status[i] = FREE
            depth -= 1
        if depth == 0:
            return best, -1, nodes, pivots


@kernel
def _branching_row(
    status: Status, rows: Indices, ends: Indices, count: int, score: Array, loose: int
) -> int:
    """A row that fits to what is left; or, of the conflict with the fewest free rows, the one that
    was in most conflicts.
    """
    fewest, chosen, first = 1 << 60, -1, 0
    for number in range(count):
        free = 0
        for q in range(first, ends[number]):
            if status[rows[q]] == FREE:
                free += 1
                score[rows[q]] += 1.0
        if free < fewest:
            fewest, chosen = free, number
        first = ends[number]
    if loose >= 0 or chosen < 0:
        return loose
    row, highest = -1, -1.0
    for q in range(ends[chosen - 1] if chosen else 0, ends[chosen]):
        i = rows[q]
        if status[i] == FREE and score[i] > highest:
            row, highest = i, score[i]
    return row


@kernel
def _any_free(status: Status, s: Array) -> int:
    """The heaviest row that is not decided; -1 if there is none."""
    row = -1
    for i in range(len(s)):
        if status[i] == FREE and (row < 0 or s[i] > s[row]):
            row = i
    return row
