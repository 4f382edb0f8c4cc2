"""Many sweeps over sparse rows in one call, until the gap is proven or will not be for long.

A sweep over a few hundred rows takes microseconds, less than the call of a function: where nobody
watches, sweeps, shrinking and the gap are one kernel. Everything is divided by the strength of the
penalty, as the dual is in :mod:`trueline.solvers.dual_coordinate_descent.kernels`.

What sweeps see of the gap falls by about the same factor from 8 to 16 sweeps as from 16 to 24, and
by no larger one: the forecast is where that leads.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from trueline.numerics.jit import kernel
from trueline.solvers.dual_coordinate_descent.kernels import both_values, score_sparse, sweep_sparse

Array = NDArray[np.float64]
Integers = NDArray[np.int64]
Indices = NDArray[np.int32]

# Rows are left out of sweeps (shrinking) if their gradient holds them at a bound or at the kink by
# more than this share of the worst violation. All are visited once the gap of those left is such a
# share of that of all, as more digits would be of the wrong rows, and every so many sweeps.
SHRINKING, _OF_ALL, _FULL_EVERY = 0.1, 0.03, 16
# The first forecast, and then whenever the sweeps have doubled.
_FIRST_FORECAST = 16
# The tolerance is relative to the objective, but to no less than this share of a constant model's.
LEAST_SHARE = 1e-3


@kernel
def descend(
    rows: tuple[Array, Indices, Integers],
    constant: float,
    terms: Array,
    beta: Array,
    w: Array,
    scores: Array,
    state: NDArray[np.uint64],
    tol: float,
    ceiling: float,
    most: int,
    patience: int,
) -> tuple[int, float, float]:
    """Sweeps, at most so many; how many there were, the gap, and what it was to be.

    They end early where the forecast asks for more than ``patience`` in all. An unknown gap is
    infinite; it is to be at most ``tol`` of the minimum, and no more than ``ceiling``. Where it is,
    ``scores`` are x_i.w.
    """
    data, indices, indptr = rows
    every, order, active = np.arange(len(beta)), np.arange(len(beta)), len(beta)
    threshold, last_full, next_forecast = np.inf, 0, _FIRST_FORECAST
    gap, target, seen_of_all, seen_before = np.inf, ceiling, np.inf, np.inf
    for sweep in range(1, most + 1):
        is_full = active == len(beta)
        active, worst, seen = sweep_sparse(
            data, indices, indptr, constant, 0.0, terms, beta, w, order, active, threshold, state
        )
        threshold = SHRINKING * worst if worst > 0.0 else np.inf
        is_near = seen <= target
        if is_full:
            last_full, seen_of_all = sweep, seen
        if is_near:
            score_sparse(data, indices, indptr, every, w, constant, scores)
            losses, own = both_values(scores, beta, terms, 0.0)
            square = (w * w).sum()
            gap = max(losses + own + square, 0.0)
            least = max(losses + 0.5 * square - gap, 0.0)
            target = min(ceiling, max(tol * least, LEAST_SHARE * ceiling))
            if gap <= target:
                return sweep, gap, target
        if is_near or seen <= _OF_ALL * seen_of_all or sweep - last_full >= _FULL_EVERY:
            active = len(beta)
        if 2 * sweep == next_forecast:
            seen_before = seen
        elif sweep == next_forecast:
            left = sweeps_left(seen, seen_before, target, sweep)
            # Rows that came back since have raised what is seen.
            is_known = seen < seen_before or 2 * last_full <= sweep
            if is_known and left > patience - sweep:
                return sweep, np.inf, target
            seen_before, next_forecast = seen, 2 * sweep
    return most, np.inf, target


@kernel
def sweeps_left(seen: float, before: float, target: float, sweeps: int) -> float:
    """How many sweeps are left, given the gap seen now and half as many sweeps before."""
    if seen <= target:
        return 0.0
    if not seen < before:
        return np.inf
    return 0.5 * sweeps * math.log(seen / target) / math.log(before / seen)
