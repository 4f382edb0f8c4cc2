"""The lasso and its relatives for all members of a set: warm-started paths of strengths.

Members on the same rows whose penalties are multiples of each other are one path. From moments, the
rows are read once for all paths; otherwise a path reads the rows where they are, and those that do
not count have weight zero.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trueline.moments import Moments
from trueline.numerics.blas import available_threads, run_strands
from trueline.penalties import Penalty
from trueline.problem_set import ProblemSet
from trueline.solution import PathSolution
from trueline.solvers.coordinate_descent.path import PathPoint, follow_path
from trueline.solvers.coordinate_descent.source import MomentsSource, RowsSource, Source
from trueline.solvers.coordinate_descent.terms import Terms, penalty_terms

__all__ = ["dense_coefficients", "solve_paths"]

Array = NDArray[np.float64]

# Gaps of this share of the target's square are rounding.
_ROUNDING, _UNDERFLOW = 1e-13, 1e-280
_FREE = ((-np.inf, np.inf), (-np.inf, np.inf))


def solve_paths(
    problems: ProblemSet, tol: float, name: str, from_moments: bool
) -> list[PathSolution]:
    """Solutions of all members, which have one target each.

    Parameters
    ----------
    problems : ProblemSet
    tol : float
        The gap asked for, relative to half the squared norm of the target.
    name : str
        The solver's, for the solutions.
    from_moments : bool
    """
    paths = [mixture for path in problems.paths() for mixture in _mixtures(problems, path)]
    moments = [problems.moments(path[0]) if from_moments else None for path in paths]
    terms: dict[tuple[int, ...], tuple[list[Terms], list[np.float64]]] = {}
    for path in paths:  # folds of the same weight have the same penalties
        key = tuple(id(problems.members[number].penalty) for number in path)
        terms[key] = terms[tuple(path)] = terms.get(key) or _terms(problems, path)
    work = [(path, own, *terms[tuple(path)]) for path, own in zip(paths, moments)]

    def follow(path: list[int], own: Moments | None, penalties: Any, at: Any) -> PathSolution:
        source, near = _source(problems, path[0], own), problems.members[path[0]].start
        start = None if near is None else near[0][:, 0]
        points: list[PathPoint] = []
        try:
            points.extend(follow_path(source, penalties, at, tol, start))
        except KeyboardInterrupt:  # what was found of a single path is an answer
            if len(work) > 1 or not points:
                raise
        allowed = (tol + _ROUNDING) * source.scale + _UNDERFLOW
        coefs = dense_coefficients(points, source.n_features)
        # Both means are zero where there is no intercept.
        b = source.y_mean - np.array([source.x_mean[p.columns] @ p.values for p in points])
        gaps, steps = np.array([p.gap for p in points]), [max(1, p.sweeps) for p in points]
        parts = coefs[:, None], b[None], gaps, allowed, name, steps, own
        return PathSolution(path[: len(points)], *parts)

    # One path that is left over has all threads to itself instead of keeping one busy.
    together = len(work) - (not from_moments and len(work) % available_threads() == 1)
    found = run_strands(lambda one: follow(*one), work[:together])
    return found + run_strands(lambda one: follow(*one), work[together:])


def _source(problems: ProblemSet, number: int, moments: Moments | None) -> Source:
    """Where the correlations of a member come from."""
    problem = problems.on_all_rows(number)
    if moments is None:
        y = problem.target[:, 0]
        return RowsSource(problem.design, y, problem.weights, problem.fit_intercept)
    if not moments.is_finite():
        raise FloatingPointError("the sums of squares of the data are not finite")
    return MomentsSource(moments, problem.fit_intercept)


def dense_coefficients(points: Sequence[PathPoint], n_features: int) -> Array:
    """Coefficients of all points as an array of shape (d, points).

    One point after the other in memory: pages without a coefficient are never written.
    """
    out = np.zeros((len(points), n_features))
    for row, point in zip(out, points, strict=True):
        row[point.columns] = point.values
    return out.T


def _mixtures(problems: ProblemSet, path: list[int]) -> list[list[int]]:
    """The members of a path, by the ratio of the two parts of their penalties."""
    found: dict[str, list[int]] = {}
    for number in path:
        linear, curvature = _sizes(problems.members[number].penalty)
        found.setdefault(f"{curvature / linear:.10g}" if linear else "", []).append(number)
    return list(found.values())


def _sizes(penalty: Penalty) -> tuple[float, float]:
    """The largest factors of the absolute values and of the squares."""
    linear, curvature = penalty.linear, penalty.curvature
    if isinstance(linear, float) and isinstance(curvature, float):
        return linear, curvature
    return float(np.max(linear)), float(np.max(curvature))


def _terms(problems: ProblemSet, path: list[int]) -> tuple[list[Terms], list[np.float64]]:
    """The penalties of a path, and their strengths: that of the first is one."""
    d = problems.design.shape[1]
    first, *others = [problems.members[number].penalty for number in path]
    unit, (top_linear, top_bend) = penalty_terms(first, d, 1), _sizes(first)
    terms, strengths = [unit], [np.float64(1.0)]
    for penalty in others:
        linear, curvature = _sizes(penalty)
        linear = linear / top_linear if top_linear else 1.0
        curvature = curvature / top_bend if top_bend else 1.0
        is_scaled = _is_scaled(penalty, first)
        terms.append(unit.scaled(linear, curvature) if is_scaled else penalty_terms(penalty, d, 1))
        strengths.append(np.float64(linear if top_linear else curvature))
    return terms, strengths


def _is_scaled(penalty: Penalty, first: Penalty) -> bool:
    """Whether both are numbers, and the bounds are the same."""
    if not (isinstance(penalty.linear, float) and isinstance(first.linear, float)):
        return False
    bounds = (penalty.lower, penalty.upper), (first.lower, first.upper)
    return bounds == _FREE or all(map(np.array_equal, *bounds))
