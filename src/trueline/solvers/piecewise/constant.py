r"""Losses with one kink per row, at its target: is the best constant the answer?

Let b be the best constant and u_i the slope of the loss of row i there; rows with y_i = b may have
any slope between those on both sides, and take what makes sum_i s_i u_i = 0. Then w = 0 is optimal
if |sum_i s_i u_i x_ij| is at most the strength of the penalty of each absolute value |w_j|: the
slopes are a dual point with the same value. One product with the data tells.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from trueline.certificates.duality import certify_dual
from trueline.problem import Problem
from trueline.solution import Solution, Status
from trueline.solvers.loop import Monitor

__all__ = ["solve_constant"]

Array = NDArray[np.float64]

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
