"""The lasso and its relatives for all members of a set: warm-started paths of strengths.

Members on the same rows whose penalties are multiples of each other are one path. From moments, the
rows are read once for all paths; otherwise a path reads the rows where they are, and those that do
not count have weight zero.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from trueline.penalties import Penalty
from trueline.problem_set import ProblemSet
from trueline.solution import Solution, Status
from trueline.solvers.coordinate.path import PathPoint, follow_path
from trueline.solvers.coordinate.source import MomentsSource, RowsSource, Source
from trueline.solvers.coordinate.terms import Terms, penalty_terms
from trueline.solvers.pending import PendingMember
from trueline.threads import available_threads, run_strands

__all__ = ["solve_paths"]

Array = NDArray[np.float64]

# Gaps of this share of the target's square are rounding.
_ROUNDING, _UNDERFLOW = 1e-13, 1e-280


def solve_paths(problems: ProblemSet, tol: float, name: str, from_moments: bool) -> list[Solution]:
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
    found: dict[int, Solution] = {}
    paths = [mixture for path in problems.paths() for mixture in _mixtures(problems, path)]
    all_moments = [problems.moments(path[0]) if from_moments else None for path in paths]

    def work(which: int) -> None:
        path, moments = paths[which], all_moments[which]
        problem = problems.on_all_rows(path[0])
        source: Source
        if moments is not None:
            if not moments.is_finite():
                raise FloatingPointError("the sums of squares of the data are not finite")
            source = MomentsSource(moments, problem.fit_intercept)
        else:
            y = problem.target[:, 0]
            source = RowsSource(problem.design, y, problem.weights, problem.fit_intercept)
        terms, strengths = _terms(problems, path)
        near = problems.members[path[0]].start
        start = None if near is None else near[0][:, 0]
        points = follow_path(source, terms, strengths, tol, start)
        allowed = (tol + _ROUNDING) * source.scale + _UNDERFLOW
        for number, point in zip(path, points):
            solution = _solution(problems, number, source, point, allowed, name)
            solution.moments = moments
            found[number] = solution

    # One path that is left over has all threads to itself instead of keeping one busy.
    together = len(paths) - (not from_moments and len(paths) % available_threads() == 1)
    run_strands(work, list(range(together)))
    run_strands(work, list(range(together, len(paths))))
    return [found[number] for number in range(len(problems))]


def _solution(
    problems: ProblemSet, number: int, source: Source, point: PathPoint, allowed: float, name: str
) -> Solution:
    coef = point.coef(source.n_features)[:, None]
    # Both means are zero where there is no intercept.
    intercept = np.array([source.y_mean - source.x_mean[point.columns] @ point.values])
    return Solution(
        coef,
        intercept,
        Status.CONVERGED if point.gap <= allowed else Status.STALLED,
        name,
        n_iter=max(1, point.sweeps),
        proof=PendingMember(problems, number, coef, intercept, point.gap),
        tolerance=allowed,
        residual_square=np.array([point.residual_square]),
    )


def _mixtures(problems: ProblemSet, path: list[int]) -> list[list[int]]:
    """The members of a path, by the ratio of the two parts of their penalties."""
    found: dict[str, list[int]] = {}
    for number in path:
        linear, bend = _sizes(problems.members[number].penalty)
        found.setdefault(f"{bend / linear:.10g}" if linear else "", []).append(number)
    return list(found.values())


def _sizes(penalty: Penalty) -> tuple[float, float]:
    """The largest factors of the absolute values and of the squares."""
    linear, bend = (
        part if isinstance(part, float) else float(np.max(part))
        for part in (penalty.linear, penalty.curvature)
    )
    return linear, bend


def _terms(problems: ProblemSet, path: list[int]) -> tuple[list[Terms], list[np.float64]]:
    """The penalties of a path, and their strengths: that of the first is one."""
    d = problems.design.shape[1]
    first, *others = [problems.members[number].penalty for number in path]
    unit, top = penalty_terms(first, d, 1), _sizes(first)
    terms, strengths = [unit], [np.float64(1.0)]
    for penalty in others:
        linear, bend = (size / most if most else 1.0 for size, most in zip(_sizes(penalty), top))
        scaled = unit.scaled(linear, bend)
        terms.append(scaled if _is_scaled(penalty, first) else penalty_terms(penalty, d, 1))
        strengths.append(np.float64(linear if top[0] else bend))
    return terms, strengths


def _is_scaled(penalty: Penalty, first: Penalty) -> bool:
    """Whether both are numbers, and the bounds are the same."""
    parts = (penalty.linear, penalty.curvature, first.linear, first.curvature)
    return all(isinstance(part, float) for part in parts) and (
        np.array_equal(penalty.lower, first.lower) and np.array_equal(penalty.upper, first.upper)
    )
