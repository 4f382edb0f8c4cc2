"""Targets that have nothing to do with each other, one after the other."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from trueline.certificates.choose import certify
from trueline.certificates.duality import certify_duality
from trueline.problem import Problem
from trueline.solution import Solution
from trueline.solvers.base import Options, Solver
from trueline.solvers.loop import Monitor

__all__ = ["is_separable", "solve_one_by_one"]

Array = NDArray[np.float64]


def is_separable(problem: Problem) -> bool:
    """Whether a problem is several problems of one target each."""
    return problem.n_targets > 1 and "coupled" not in problem.loss.capabilities


def solve_one_by_one(
    solver: Solver, problem: Problem, options: Options, monitor: Monitor
) -> Solution:
    """Solve for each target alone, and prove all of it together."""
    found = [
        solver.solve(_only(problem, t), _options(options, t), monitor)
        for t in range(problem.n_targets)
    ]
    W = np.hstack([solution.coef for solution in found])
    b = np.concatenate([solution.intercept for solution in found])
    statuses = [solution.status for solution in found]
    worst = next((status for status in statuses if not status.is_final), statuses[0])
    # Multipliers that the targets were proven with prove them together.
    parts = [solution.certificate for solution in found]
    duals = [part.witness.get("dual") for part in parts if part is not None]
    known = [dual for dual in duals if dual is not None]
    if len(known) == problem.n_targets:
        proof = certify_duality(problem, W, b, np.hstack(known))
    else:
        proof = certify(problem, W, b)
    return Solution(
        W,
        b,
        worst,
        solver.name,
        n_iter=max(solution.n_iter for solution in found),
        proof=proof,
        trace=monitor.trace,
        notes=[
            f"{problem.n_targets} targets, one after the other",
            *(f"target {t}: {note}" for t, s in enumerate(found) for note in s.notes),
        ],
    )


def _only(problem: Problem, t: int) -> Problem:
    target = np.ascontiguousarray(problem.target[:, [t]])
    return replace(problem, target=target, loss=problem.loss.of_target(t))


def _options(options: Options, t: int) -> Options:
    start, level = options.start, options.start_intercept
    return replace(
        options,
        start=None if start is None else np.ascontiguousarray(start[:, [t]]),
        start_intercept=None if level is None else level[[t]],
    )
