"""Of all hyperplanes with the same errors, the one that is returned.

    maximise t    subject to    a_i.v >= t g_i  for the rows that are right,    abs(w_j) <= 1

in columns of about unit size, with g_i the weight of a row relative to the largest one: rounding
and small changes of the data then change as little as possible, least of all rows that weigh much.

This small linear program, with coefficients in a box h, is left to HiGHS.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linprog

from trueline.separation.zero_one.conflicts import evaluate
from trueline.separation.zero_one.local_search import improve
from trueline.separation.zero_one.problem import Task

Array = NDArray[np.float64]

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
        wide = _farthest(task.A[right], wanted, _box(task))
        if wide is None:
            continue
        least = float(((task.A[right] @ wide) / wanted).min())
        if least > margin and evaluate(task.A, wide, task.s, z) <= value:
            best, margin = wide, least
    return best


def _farthest(A: Array, g: Array, h: Array) -> Array | None:
    """The v in the box that maximises the least of a_i.v / g_i; None where HiGHS ends without."""
    m = len(h)
    found = linprog(
        np.append(np.zeros(m), -1.0),
        A_ub=np.column_stack([-A, g]),
        b_ub=np.zeros(len(A)),
        bounds=[*zip(-h, h), (None, None)],
        method="highs-ds",
    )
    return None if found.x is None else np.clip(found.x[:m], -h, h)


def _box(task: Task) -> Array:
    """Bounds of v; an intercept beyond all scores has the sign of all rows."""
    largest = np.ones(len(task.columns))
    if task.fit_intercept and len(largest) and task.columns[-1] == task.n_features:
        largest[-1] = 2.0 * len(largest)
    return largest
