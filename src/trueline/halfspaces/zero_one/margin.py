r"""Of all hyperplanes with the same errors, the one that is returned.

    maximise t    subject to    a_i.v >= t  for the rows that are right,    abs(v_j) <= 1

in columns of about unit size: rounding and small changes of the data then change as little as
possible. Few rows matter; they are found by solving again with those that are violated.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from trueline.halfspaces.zero_one.packing import evaluate
from trueline.halfspaces.zero_one.problem import Task

__all__ = ["widest"]

Array = NDArray[np.float64]

_ROUNDS = 12


def widest(task: Task, v: Array) -> Array:
    """A hyperplane with the errors of v, and with the rows that are right as far off as possible."""
    z = np.empty(len(task.s))
    value = evaluate(task.A, v, task.s, z)
    right = task.A[z > 0]
    if len(right) == 0:
        return v
    found = _largest_margin(right, np.argsort(z[z > 0]))
    if found is None or evaluate(task.A, found, task.s, z) > value:
        return v
    return found


def _largest_margin(rows: Array, nearest: NDArray[np.intp]) -> Array | None:
    from scipy.optimize import linprog

    m = rows.shape[1]
    chosen = nearest[: 20 * m]
    cost = np.append(np.zeros(m), -1.0)
    bounds = [(-1.0, 1.0)] * m + [(0.0, None)]
    v = None
    for _ in range(_ROUNDS):
        table = np.column_stack([-rows[chosen], np.ones(len(chosen))])
        found = linprog(cost, A_ub=table, b_ub=np.zeros(len(chosen)), bounds=bounds)
        if found.x is None or not found.x[m] > 0:
            return None
        v, scores = found.x[:m], rows @ found.x[:m]
        beyond = np.flatnonzero(scores < found.x[m] * (1 - 1e-9))
        beyond = np.setdiff1d(beyond, chosen)
        if len(beyond) == 0:
            return np.ascontiguousarray(v)
        worst = beyond[np.argsort(scores[beyond])][: 20 * m]
        chosen = np.append(chosen, worst)
    return None if v is None else np.ascontiguousarray(v)
