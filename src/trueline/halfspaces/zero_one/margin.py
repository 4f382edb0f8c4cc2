r"""Of all hyperplanes with the same errors, the one that is returned.

    maximise t    subject to    a_i.v >= t g_i  for the rows that are right,    abs(w_j) <= 1

in columns of about unit size, with g_i the weight of a row relative to the largest one: rounding
and small changes of the data then change as little as possible, least of all rows that weigh much.
Few rows matter; they are found by solving again with those that are violated.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from trueline.halfspaces.zero_one.local_search import improve
from trueline.halfspaces.zero_one.packing import evaluate
from trueline.halfspaces.zero_one.problem import Task

__all__ = ["widest"]

Array = NDArray[np.float64]

_ROUNDS = 12
_LEAST = 1e-6
# Hyperplanes with as few errors that are compared, if sorting their angles takes no time.
_OTHERS = 8
_FEW = 20_000


def widest(task: Task, v: Array) -> Array:
    """A hyperplane with errors of no more weight than v has, its right rows as far off as possible.

    A few other cells with as few errors are compared.
    """
    z = np.empty(len(task.s))
    value = evaluate(task.A, v, task.s, z)
    best, margin = v, 0.0
    seen: set[bytes] = set()
    for seed in range(_OTHERS if len(task.s) <= _FEW else 1):
        other = v if seed == 0 else improve(task.A, task.s, value, v, seed=seed)[1]
        if evaluate(task.A, other, task.s, z) > value or (z > 0).tobytes() in seen:
            continue
        seen.add((z > 0).tobytes())
        right = z > 0
        if not right.any():
            continue
        wanted = np.maximum(task.s[right] / task.s[right].max(), _LEAST)
        nearest = np.argsort(z[right] / wanted)
        found = _largest_margin(task.A[right], wanted, nearest, _box(task))
        if found is None or evaluate(task.A, found[0], task.s, z) > value:
            continue
        if found[1] > margin:
            best, margin = found
    return best


def _box(task: Task) -> list[tuple[float, float | None]]:
    """Bounds of v and t; an intercept beyond all scores has the sign of all rows."""
    m = len(task.columns)
    box: list[tuple[float, float | None]] = [(-1.0, 1.0)] * m + [(0.0, None)]
    if task.fit_intercept and m and task.columns[-1] == task.n_features:
        box[m - 1] = (-2.0 * m, 2.0 * m)
    return box


def _largest_margin(
    rows: Array, wanted: Array, nearest: NDArray[np.intp], box: list[tuple[float, float | None]]
) -> tuple[Array, float] | None:
    """v and t; None if double precision finds no positive t."""
    from scipy.optimize import linprog

    m = rows.shape[1]
    chosen = nearest[: 20 * m]
    cost = np.append(np.zeros(m), -1.0)
    for _ in range(_ROUNDS):
        table = np.column_stack([-rows[chosen], wanted[chosen]])
        found = linprog(cost, A_ub=table, b_ub=np.zeros(len(chosen)), bounds=box)
        if found.x is None or not found.x[m] > 0:
            return None
        v, scores = found.x[:m], rows @ found.x[:m]
        beyond = np.flatnonzero(scores < found.x[m] * wanted * (1 - 1e-9))
        beyond = np.setdiff1d(beyond, chosen)
        if len(beyond) == 0:
            return np.ascontiguousarray(v), float(found.x[m])
        worst = beyond[np.argsort(scores[beyond] / wanted[beyond])][: 20 * m]
        chosen = np.append(chosen, worst)
    return np.ascontiguousarray(v), float(found.x[m])
