r"""The hard margin of a kernel machine: C is infinite, and no row may be inside the margin.

The widest margin is half the distance of the convex hulls of both classes in the kernel's space.
With multipliers a of sum one in each class, p = sum_i a_i y_i k(x_i, .) joins two points of the
hulls, and at the nearest ones the machine is f = 2 p / ||p||^2. For the linear kernel the points
are found, or excluded, with a proof in exact arithmetic
(:mod:`trueline.estimators.classification.separability`); for others by steps with two multipliers
on the bounded program

    minimise  1/2 ||sum_i a_i y_i k(x_i, .)||^2   such that   a >= 0, of sum one in each class,

which always has a solution: where its value is zero up to rounding, the hulls meet.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trueline.estimators.classification.separability import REMEDY, separated
from trueline.kernels import KernelSource
from trueline.solvers.smo.engine import solve_dual
from trueline.solvers.smo.inner import largest_score
from trueline.solvers.smo.program import DualProgram, DualSolution, levels

__all__ = ["linear_margin", "nearest_hulls", "on_margins", "program_of"]

Array = NDArray[np.float64]
Index = NDArray[np.intp]

_EPS = float(np.finfo(np.float64).eps)
# The tolerance follows the distance of the hulls, which is known better after each round.
_ROUNDS = 30


def linear_margin(
    X: Any, source: KernelSource, signs: Index, names: Any, numbers: Index, tol: float
) -> DualSolution:
    """The hard margin of rows themselves; an error proves it where there is none."""
    best = separated(X, signs > 0, names, True, numbers)
    beta = np.zeros(len(signs))
    beta[best.support] = signs[best.support] * best.weights / (2.0 * best.margin**2)
    return on_margins(beta, signs, source, tol, 1)


def nearest_hulls(
    source: KernelSource,
    signs: Index,
    names: Any,
    tol: float,
    max_iter: int,
    cache_bytes: float,
) -> DualSolution:
    """The hard margin in the kernel's space; rows of the positive class come first."""
    n, split = len(signs), int((signs > 0).sum())
    start = np.zeros(n)
    start[0], start[split] = 1.0, -1.0
    low, high = np.where(signs > 0, 0.0, -1.0), np.where(signs > 0, 1.0, 0.0)
    program = DualProgram(np.zeros(n), low, high, start, split=split)
    reach = largest_score(source.diagonal())
    goal, steps = tol * reach, 0
    for _ in range(_ROUNDS):
        left = max_iter - steps if max_iter >= 0 else -1
        found = solve_dual(program, source, goal, left, cache_bytes)
        steps += found.n_iter
        square = float(found.beta @ found.scores)
        if not square > 8 * n * _EPS * reach:
            raise ValueError(
                f"There is no hard margin between {names[0]!s} and {names[1]!s}: in the space of "
                "the kernel their convex hulls meet, as far as double precision tells. " + REMEDY
            )
        # In units of the margin, scores are these times 2 / square.
        wanted = 0.5 * tol * square
        if found.violation <= wanted or not found.is_solved or 0 <= max_iter <= steps:
            break
        program, goal = replace(program, start=found.beta), 0.5 * wanted
    done = on_margins(2.0 * found.beta / square, signs, source, tol, steps)
    return replace(done, notes=found.notes)


def on_margins(
    beta: Array, signs: Index, source: KernelSource, tol: float, n_iter: int
) -> DualSolution:
    """Multipliers scaled such that every row is on its margin or beyond, rounding included."""
    used = np.flatnonzero(beta)
    scores = np.zeros(source.n)
    if len(used):
        rows = np.empty((len(used), source.n), dtype=source.dtype)
        source.rows(used, rows)
        scores = beta[used] @ rows.astype(np.float64, copy=False)
    # What a sum of kernel values of so many rows errs by, kernel values included.
    sizes = np.sqrt(np.abs(source.diagonal()))
    error = (len(used) + 64) * _EPS * sizes * float(sizes @ np.abs(beta))
    lowest = float((scores - error)[signs > 0].min())
    highest = float((scores + error)[signs < 0].max())
    half, middle = 0.5 * (lowest - highest), 0.5 * (lowest + highest)
    if not half > 0:
        raise ValueError(
            "The hard margin is lost in the rounding of kernel values. Standardise the columns, or "
            "take LinearSVC(C=np.inf), which computes with the columns themselves."
        )
    factor = (1.0 + 16 * _EPS) / half
    level = np.array([-factor * middle])
    beta, scores = factor * beta, factor * scores
    _, violation = levels(program_of(signs), beta, scores)
    return DualSolution(beta, scores, level, violation, n_iter, bool(violation <= tol))


def program_of(signs: Index) -> DualProgram:
    """The program of an infinite C: no multiplier has an upper end."""
    y = signs.astype(np.float64)
    low, high = np.where(y > 0, 0.0, -np.inf), np.where(y > 0, np.inf, 0.0)
    return DualProgram(y, low, high, np.zeros(len(y)))
