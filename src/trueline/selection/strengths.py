"""Grids of strengths: from the smallest one that leaves no coefficient down to a share of it."""

from __future__ import annotations

from collections.abc import Callable
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trueline.penalties import Penalty
from trueline.planner import execute_set, make_set_plans
from trueline.problem import Problem
from trueline.problem_set import Member, ProblemSet
from trueline.solvers.base import Options

__all__ = ["largest_correlation", "largest_strength", "strengths"]

Array = NDArray[np.float64]

_SMALLEST = float(np.finfo(np.float64).resolution)


def strengths(alphas: Any, top: float, eps: float) -> Array:
    """A decreasing grid: so many strengths from ``top`` down to ``eps top``, or those given."""
    if isinstance(alphas, Integral):
        if top <= _SMALLEST:
            return np.full(int(alphas), _SMALLEST)
        if not 0 < eps < np.inf:
            raise ValueError(
                f"eps must be positive: the last strength relative to the first; got {eps!r}."
            )
        return np.geomspace(top, top * eps, int(alphas))
    values = np.sort(np.asarray(alphas, dtype=np.float64).ravel())[::-1]
    if not len(values):
        raise ValueError("alphas is empty: give at least one strength, or their number.")
    if not (np.isfinite(values) & (values >= 0)).all():
        raise ValueError(f"alphas must be finite and not negative, got {alphas!r}.")
    return values


def largest_strength(problem: Problem, penalty: Callable[[float], Penalty]) -> float:
    """The smallest strength at which all penalised coefficients rest at zero (if they may).

    Columns without a penalty are fitted first.

    Parameters
    ----------
    problem : Problem
        With squared loss; its own penalty does not matter.
    penalty : callable
        The penalty of a strength.
    """
    unit, shape = penalty(1.0), (problem.n_features, problem.n_targets)
    parts = unit.linear, unit.curvature, unit.lower, unit.upper
    linear, curvature, lower, upper = (np.broadcast_to(part, shape) for part in parts)
    free = (linear == 0) & (curvature == 0)
    q = _correlation(problem)
    if free.any() and not free.all():
        # No correlation is larger than the product of the norms: beyond that all others are zero.
        squares = problem.design.column_squares(problem.weights, None).max()
        size = problem.weigh(problem.target**2).sum()
        far = 2 * float(np.sqrt(squares * size)) / float(linear[linear > 0].min())
        member = Member(problem.target, penalty(far), problem.weights)
        alone = ProblemSet(problem.design, problem.loss, (member,), problem.fit_intercept)
        found = execute_set(alone, make_set_plans(alone), Options(tol=1e-8))[0]
        q = np.where(free, 0.0, _correlation(problem, found.coef))
    pull = np.where((q > 0) & (upper <= 0) | (q < 0) & (lower >= 0), 0.0, np.abs(q))
    with np.errstate(divide="ignore", invalid="ignore"):
        needed = np.where(linear > 0, pull / linear, 0.0)
    return _finite(float(needed.max(initial=0.0)))


def largest_correlation(problem: Problem) -> float:
    """The largest norm of a column's correlations with all targets."""
    return _finite(float(np.linalg.norm(_correlation(problem), axis=1).max(initial=0.0)))


def _correlation(problem: Problem, W: Array | None = None) -> Array:
    """X^T of the residuals, both centred if there is an intercept."""
    residual = problem.target if W is None else problem.target - problem.design.matvec(W)
    if not problem.fit_intercept:
        return problem.design.rmatvec(problem.weigh(residual))
    residual = residual - problem.weigh(residual).sum(axis=0) / problem.total_weight
    weighted = problem.weigh(residual)
    mean = problem.design.column_means(problem.weights)
    return problem.design.rmatvec(weighted) - np.outer(mean, weighted.sum(axis=0))


def _finite(value: float) -> float:
    if not np.isfinite(value):
        raise FloatingPointError("the products of the data are not finite")
    return value
