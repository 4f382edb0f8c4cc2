r"""Branch and bound: a row is an error, or it is right.

Depth first; the bound of a node is a packing of conflicts (:mod:`.packing`). A search that is cut
off leaves its path behind: the node at its end and the other halves of its decisions are open.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from trueline.numerics.jit import kernel
from trueline.separation.zero_one.branch_and_bound.packing import (
    Conflicts,
    Doubts,
    Rows,
    arrange,
    evaluate,
    fresh_basis,
    fresh_conflicts,
    pack,
)
from trueline.separation.zero_one.branch_and_bound.simplex import FEASIBLE, FREE, OUT, REQUIRED

__all__ = ["Limits", "Path", "explore"]

Array = NDArray[np.float64]
Indices = NDArray[np.int64]
Status = NDArray[np.int8]


class Path(NamedTuple):
    """Decisions, of length n + 1 each: the row, whether its second half (the row is right) was
    begun, and a bound on both halves.
    """

    rows: Indices
    halves: Indices
    bounds: Array


class Limits(NamedTuple):
    """Where a search stops: numbers of nodes and pivots, and pivots in the middle of a node."""

    nodes: int
    pivots: int
    node_pivots: int


@kernel
def explore(
    data: Rows,
    slack: float,
    status: Status,
    cost: float,
    best: float,
    v_best: Array,
    limits: Limits,
    path: Path,
    doubts: Doubts,
) -> tuple[float, int, int, int]:
    """Search below a node.

    Parameters
    ----------
    data : Rows
    slack : float
        Nodes that cannot improve the best weight by more than this are closed.
    status, cost
        The node: what is decided of each row, and the weight of the rows that are errors.
    best, v_best
        The least weight of errors known, and its hyperplane. ``v_best`` is changed.
    limits : Limits
    path : Path
        The decisions when it stopped. Changed.
    doubts : Doubts
        Changed.

    Returns
    -------
    best : float
    depth : int
        Length of the path; -1 if the search is finished.
    nodes, pivots : int
    """
    A, s = data.A, data.weights
    n, m = A.shape
    status, basis, conflicts = status.copy(), fresh_basis(m), fresh_conflicts(n, m)
    z, score, order = np.empty(n), np.zeros(n), np.empty(n, dtype=np.int64)
    errors = arrange(A, v_best, data.norms, s, order)
    depth, nodes, pivots = 0, 0, 0
    room = len(doubts.claims) - 2 * n
    while True:
        if nodes >= limits.nodes or pivots >= limits.pivots or doubts.counter[0] > room:
            return best, depth, nodes, pivots
        nodes += 1
        bound, count, outcome, loose, steps = pack(
            data, status, cost, best - slack, order, errors,
            depth == 0, limits.node_pivots, basis, conflicts, doubts,
        )  # fmt: skip
        pivots += steps + 1
        if bound < best - slack and outcome == FEASIBLE:
            total = evaluate(A, basis.v, s, z)
            if total < best:
                best = total
                v_best[:] = basis.v
                errors = arrange(A, v_best, data.norms, s, order)
            if count == 0 and total <= cost:
                bound = np.inf  # nothing is left to decide
        if bound < best - slack:
            i = _branching_row(status, conflicts, count, score, loose)
            if i < 0:
                i = _any_free(status, s)
            if i < 0:
                # All is decided, and double precision cannot tell whether that can be.
                doubts.floors[-1] = min(doubts.floors[-1], cost)
            else:
                path.rows[depth], path.halves[depth], path.bounds[depth] = i, 0, bound
                depth += 1
                status[i] = OUT
                cost += s[i]
                continue
        depth, cost = _backtrack(path, depth, status, cost, s, best - slack)
        if depth == 0:
            return best, -1, nodes, pivots


@kernel
def _backtrack(
    path: Path, depth: int, status: Status, cost: float, s: Array, least: float
) -> tuple[int, float]:
    """Go back to the last decision whose second half is worth a search, and begin that half."""
    while depth > 0:
        i = path.rows[depth - 1]
        if path.halves[depth - 1] == 0:
            path.halves[depth - 1] = 1
            status[i] = REQUIRED
            cost -= s[i]
            if path.bounds[depth - 1] < least:
                break
        status[i] = FREE
        depth -= 1
    return depth, cost


@kernel
def _branching_row(
    status: Status, conflicts: Conflicts, count: int, score: Array, loose: int
) -> int:
    """A row that fits to what is left; or, of the conflict with the fewest free rows, the one that
    was in most conflicts.
    """
    rows, ends, _ = conflicts
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
