r"""From a tolerance to rounding: the free multipliers are the solution of linear equations.

Once it is known which multipliers rest at a bound, the others solve, with a threshold b per group,

    K_FF delta + b = t - f - eps sign(beta)   on the free ones,     sum delta = 0,

where delta is what they lack. A step that would leave a box stops there, and the multiplier at that
bound is left out of the next equations: an active-set method, started next to its end.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from trueline.solvers.smo.inner import solve_pairs
from trueline.solvers.smo.program import DualProgram, by_row, levels

__all__ = ["polished"]

Array = NDArray[np.float64]

# Equations of more multipliers would take longer than the steps that led to them.
_LARGEST = 600
_ROUNDS = 12


def polished(
    program: DualProgram, K: NDArray[Any], diagonal: Array, Q: Array, beta: Array
) -> tuple[Array, Array]:
    """Multipliers and scores that are as good as double precision allows, or as they were."""
    best, scores = beta, _scores(program, K, beta)
    _, violation = levels(program, best, scores)
    reach = 1.0 + float(np.abs(program.target).max(initial=0.0)) + float(np.abs(scores).max())
    goal = 64 * np.finfo(np.float64).eps * reach
    steps = 4 * program.size + 1000
    for _ in range(_ROUNDS):
        if violation <= goal:
            break
        moved = _to_equations(program, Q, best, scores)
        if moved is None:
            break
        # Rows that the step has put on the wrong side of their bound come back by a few steps.
        room = program.target - _scores(program, K, moved)[program.row]
        box = (program.low, program.high, program.epsilon, program.split)
        solve_pairs(Q, diagonal, room, moved, *box, goal, steps)
        found = _scores(program, K, moved)
        _, left = levels(program, moved, found)
        worth = program.value(moved, found) - program.value(best, scores)
        if not (left < 0.5 * violation and worth <= goal * reach):
            break
        best, scores, violation = moved, found, left
    return best, scores


def _scores(program: DualProgram, K: NDArray[Any], beta: Array) -> Array:
    return K @ by_row(program, beta, len(K))


def _to_equations(program: DualProgram, Q: Array, beta: Array, scores: Array) -> Array | None:
    """The multipliers after steps to the solution of the equations of the free ones."""
    moved = beta.copy()
    room = program.target - scores[program.row]
    for _ in range(_ROUNDS):
        free = (moved > program.low) & (moved < program.high)
        if program.epsilon > 0:
            free &= moved != 0
        F = np.flatnonzero(free)
        if not 2 <= len(F) <= _LARGEST:
            return moved if moved is not beta and (moved != beta).any() else None
        lacking = room - Q[:, F] @ (moved - beta)[F] if (moved != beta).any() else room
        delta = _solution(program, Q, F, lacking[F] - program.epsilon * np.sign(moved[F]))
        if delta is None:
            return None
        # To the first end of a box; zero is one where eps |beta| has its kink.
        low, high = program.low[F], program.high[F]
        if program.epsilon > 0:
            low = np.where(moved[F] > 0, np.maximum(low, 0.0), low)
            high = np.where(moved[F] < 0, np.minimum(high, 0.0), high)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            ends = np.where(delta > 0, (high - moved[F]) / delta, (low - moved[F]) / delta)
        ends = np.where(delta == 0, np.inf, ends)
        first = int(np.argmin(ends))
        if ends[first] >= 1.0:
            moved[F] += delta
            return moved
        moved[F] = np.clip(moved[F] + ends[first] * delta, low, high)
        moved[F[first]] = high[first] if delta[first] > 0 else low[first]
    return moved


def _solution(program: DualProgram, Q: Array, F: Any, right: Array) -> Array | None:
    """delta of the equations; the shortest one if they do not determine it."""
    members = np.array([(F >= g.start) & (F < g.stop) for g in program.groups], dtype=float)
    members = members[members.any(axis=1)]
    m, g = len(F), len(members)
    system = np.zeros((m + g, m + g))
    system[:m, :m] = Q[np.ix_(F, F)]
    # The equations of the sums in the units of the others.
    size = max(float(np.abs(system[:m, :m]).max()), np.finfo(np.float64).tiny)
    system[m:, :m] = size * members
    system[:m, m:] = size * members.T
    full = np.concatenate([right, np.zeros(g)])
    if not (np.isfinite(system).all() and np.isfinite(full).all()):
        return None
    with warnings.catch_warnings():
        warnings.simplefilter("error", linalg.LinAlgWarning)
        try:
            found = linalg.solve(system, full, assume_a="sym", check_finite=False)
        except (linalg.LinAlgError, linalg.LinAlgWarning):
            try:
                found = linalg.lstsq(system, full, cond=1e-13, check_finite=False)[0]
            except linalg.LinAlgError:
                return None
    delta = found[:m]
    for group in members.astype(bool):  # exactly, up to the rounding of one sum
        delta[group] -= delta[group].sum() / group.sum()
    return delta if np.isfinite(delta).all() else None
