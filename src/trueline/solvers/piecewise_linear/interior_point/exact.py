r"""The exact minimum of a function made of kinks, and of a piecewise linear loss.

An interior point tells which kinks the answer lies on; the vertex (or, with a quadratic term, the
face) is then worked out exactly. With many rows only those near their kinks are treated one by
one: see :mod:`trueline.solvers.piecewise_linear.interior_point.targets`.

Losses with one kink per row, at its target: is the best constant the answer?

Let b be the best constant and u_i the slope of the loss of row i there; rows with y_i = b may have
any slope between those on both sides, and take what makes sum_i s_i u_i = 0. Then w = 0 is optimal
if |sum_i s_i u_i x_ij| is at most the strength of the penalty of each absolute value |w_j|: the
slopes are a dual point with the same value. One product with the data tells.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from trueline.certificates.duality import certify_dual
from trueline.problem import Problem
from trueline.solution import Solution, Status
from trueline.solvers.base import Monitor
from trueline.solvers.piecewise_linear.interior_point.interior import InteriorPoint, minimum_on_face
from trueline.solvers.piecewise_linear.interior_point.program import Program
from trueline.solvers.piecewise_linear.interior_point.vertex import Vertex, independent_kinks

__all__ = ["Minimum", "approach", "exactly", "improve", "minimise", "solve_constant"]

Array = NDArray[np.float64]
Indices = NDArray[np.intp]

# The gap, relative to the function's size, at which the vertex is looked for; then ever smaller.
_FIRST_TRY, _LAST_TRY = 1e-8, 1e-14
_MOST_STEPS = 100


@dataclass
class Minimum:
    """Coefficients and multipliers, and how they were found.

    Attributes
    ----------
    v : array of shape (p,)
    multipliers : array
        Of the kinks of the program.
    is_exact : bool
        Whether this is a vertex (or the minimum on a face) whose multipliers prove it.
    kinks : array of int, or None
        Those that the answer lies on.
    steps, exchanges : int
    vertex : Vertex, optional
        From which it can be improved when rows join.
    """

    v: Array
    multipliers: Array
    is_exact: bool
    kinks: Indices | None
    steps: int
    exchanges: int = 0
    vertex: Vertex | None = None


def minimise(program: Program, start: Array, size: float) -> Minimum:
    """The minimum of a program, by an interior point and then exactly.

    Parameters
    ----------
    program : Program
    start : array of shape (p,)
    size : float
        What a gap is compared with: the losses of the rows at the start.
    """
    method, goal = InteriorPoint(program, start), _FIRST_TRY
    # A perfect start would ask for a gap of nothing.
    spread = float(program.c @ np.abs(program.t - program.t.mean()))
    size = max(size, 1e-4 * spread, 1e-290)
    while approach(method, goal * size):
        found = _exactly(program, method)
        if found is not None:
            return found
        if goal <= _LAST_TRY:
            break
        goal *= 1e-3
    at = method.at
    return Minimum(at.v, at.multipliers, False, None, at.steps)


def approach(method: InteriorPoint, gap: float) -> bool:
    """Steps until the gap is so small; False if rounding or too many steps ended it before."""
    while method.gap() > gap:
        if method.at.steps >= _MOST_STEPS:
            return False
        try:
            method.step()
        except FloatingPointError:
            return False
    return True


def _exactly(program: Program, method: InteriorPoint) -> Minimum | None:
    at = method.at
    room = np.minimum(at.multipliers, program.c - at.multipliers) / program.c
    return exactly(program, at.v, at.multipliers, room / (at.above + at.below), at.steps)


def exactly(
    program: Program, v: Array, multipliers: Array, nearness: Array, steps: int
) -> Minimum | None:
    """The exact minimum near a point.

    Parameters
    ----------
    program : Program
    v, multipliers : arrays
        Where the point is.
    nearness : array
        Large for kinks that the optimum lies on.
    steps : int
        How many it took to get there.
    """
    if program.is_linear:
        kinks = independent_kinks(program, nearness)
        return None if kinks is None else improve(Vertex(program, kinks, v), steps)
    found = minimum_on_face(program, v, multipliers)
    if found is None:
        return None
    v, pi = found
    return Minimum(v, pi, True, np.flatnonzero((pi > 0) & (pi < program.c)), steps)


def improve(vertex: Vertex, steps: int) -> Minimum | None:
    """Exchange kinks until the vertex is optimal; None if it could not be done."""
    program = vertex.program
    try:
        done = vertex.improve(most=20 * len(program.ell) + 50)
    except FloatingPointError:
        return None
    if not done:
        return None
    pi = np.clip(vertex.multipliers(), 0.0, program.c)
    return Minimum(vertex.v, pi, True, vertex.kinks, steps, vertex.exchanges, vertex)


# Of the objective: a gap that is rounding.
_CLOSE = 1e-9


def solve_constant(problem: Problem, monitor: Monitor, name: str) -> Solution | None:
    """The constant, if no column is worth its penalty; None if one may be."""
    d, k = problem.n_features, problem.n_targets
    strength = np.broadcast_to(problem.penalty.linear, (d, k))
    is_free = not problem.fit_intercept or problem.loss.kinks != (0.0,)
    if is_free or d == 0 or not (strength > 0).all():
        return None
    found = [_level(problem, number) for number in range(k)]
    u = np.stack([slopes for _, slopes in found], axis=1)
    if not (np.abs(problem.design.rmatvec(problem.weigh(u))) <= strength).all():
        return None
    W, b = np.zeros((d, k)), np.array([level for level, _ in found])
    proof = certify_dual(problem, W, b, u)
    if not proof.gap <= _CLOSE * abs(proof.objective) + 1.1 * proof.objective_rounding:
        return None
    return Solution(
        W,
        b,
        Status.SOLVED,
        name,
        n_iter=1,
        proof=proof,
        trace=monitor.trace,
        notes=["no column is worth its penalty: the best constant is the answer"],
        extra={"interpolated": [np.flatnonzero(problem.target[:, t] == b[t]) for t in range(k)]},
    )


def _level(problem: Problem, number: int) -> tuple[float, Array]:
    """The best constant, and slopes there that add up to zero."""
    loss, y = problem.loss.of_target(number), problem.target[:, number]
    s = np.ones(len(y)) if problem.weights is None else problem.weights
    below, jumps = loss.first_slopes(y), loss.row_jumps(y)[0]
    order = np.argsort(y, kind="stable")
    steep = float((s * below).sum()) + np.cumsum((s * jumps)[order])
    level = float(y[order[min(int(np.argmax(steep >= 0)), len(y) - 1)]])
    slopes = below + np.where(y < level, jumps, 0.0)
    ties = (y == level) & (s > 0)
    share = -float((s * slopes).sum()) / float((s * jumps)[ties].sum() or 1.0)
    return level, np.where(ties, slopes + np.clip(share, 0.0, 1.0) * jumps, slopes)
