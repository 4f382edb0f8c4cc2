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
_OTHERS = 4
_FEW = 20_000


def widest(task: Task, v: Array) -> Array:
    """A hyperplane with errors of no more weight than v has, its right rows as far off as possible.

    A few other cells with as few errors are compared.
    """
    z = np.empty(len(task.s))
    value = evaluate(task.A, v, task.s, z)
    best, margin = v, 0.0
    seen: set[bytes] = set()
    # Without errors there is one cell.
    for seed in range(_OTHERS if len(task.s) <= _FEW and value > 0 else 1):
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


def _box(task: Task) -> tuple[Array, Array]:
    """Bounds of v and t; an intercept beyond all scores has the sign of all rows."""
    m = len(task.columns)
    largest = np.append(np.ones(m), np.inf)
    if task.fit_intercept and m and task.columns[-1] == task.n_features:
        largest[m - 1] = 2.0 * m
    return np.append(-largest[:m], 0.0), largest


def _largest_margin(
    rows: Array, wanted: Array, nearest: NDArray[np.intp], box: tuple[Array, Array]
) -> tuple[Array, float] | None:
    """v and t; None if double precision finds no positive t."""
    from scipy.optimize import Bounds, LinearConstraint, milp

    m = rows.shape[1]
    chosen = nearest[: 20 * m]
    cost = np.append(np.zeros(m), -1.0)
    limits = Bounds(*box)
    for _ in range(_ROUNDS):
        table = np.column_stack([-rows[chosen], wanted[chosen]])
        # Without integers, the linear program; with less ado than linprog makes.
        found = milp(cost, bounds=limits, constraints=LinearConstraint(table, ub=0.0))
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
