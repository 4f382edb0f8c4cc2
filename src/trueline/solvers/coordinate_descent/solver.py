r"""The lasso and its relatives as solvers: at one penalty, and for all members of a set.

From far away most columns look as if they were needed. The penalty is therefore approached from
above, l_j tau with tau falling geometrically to one, starting where all coefficients are zero; the
points on the way need little accuracy and show which columns matter.

A set of problems is solved along warm-started paths of strengths. Members on the same rows whose
penalties are multiples of each other are one path. From moments, the rows are read once for all
paths; otherwise a path reads the rows where they are, and those that do not count have weight zero.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from trueline.certificates.choose import Prover
from trueline.certificates.evaluation import Rounding
from trueline.certificates.fenchel import is_fenchel
from trueline.moments import Moments
from trueline.numerics.blas import run_strands
from trueline.penalties import Penalty
from trueline.problem import MomentsProblem, Problem
from trueline.problem_set import ProblemSet
from trueline.solution import PathSolution, Solution, Status
from trueline.solvers.base import (
    CALL,
    Cost,
    Facts,
    Iteration,
    Monitor,
    Options,
    Progress,
    Solver,
    gram_seconds,
    run,
)
from trueline.solvers.coordinate_descent.path import PathPoint, WorkingSetPath, follow_path
from trueline.solvers.coordinate_descent.source import (
    MomentsSource,
    RowsSource,
    Source,
    Terms,
    penalty_terms,
)
from trueline.solvers.pending import PendingFromMoments

Array = NDArray[np.float64]

# How the penalty is approached: the factor between two points, and the accuracy asked of them.
# With 0.9 there are twice as many points and as many columns are missed; below 0.7 more are.
_FACTOR = 0.8
_INTERMEDIATE_TOL = 1e-3
# Of many strengths on the same rows each takes this share of the work of one alone.
_OF_A_PATH = 0.1
_MOST_COLUMNS = 5000


class _Descent(Iteration):
    """The way to one penalty; one iteration is one reading of the data."""

    gap: float  # at the end

    def __init__(self, source: Source, terms: Terms, tol: float, start: Array | None) -> None:
        self._source = source
        taus = [1.0] if start is not None else _approach(source, terms)
        steps = [terms.scaled(tau, 1.0) for tau in taus]
        tolerances = [max(tol, _INTERMEDIATE_TOL)] * (len(taus) - 1) + [tol]
        self._path = WorkingSetPath(source, steps, taus, tolerances, start, is_one_answer=True)

    @property
    def method(self) -> str:
        """What found the answer."""
        path = self._path
        if not path.proposed:
            return "coordinate descent"
        is_all = path.proposed == len(path.points)
        return "the LARS homotopy" if is_all else "the LARS homotopy, then coordinate descent"

    def step(self) -> None:
        if self._path.is_done:
            self.is_stalled = True
        else:
            self._path.advance()

    def progress(self) -> Progress:
        path, point = self._path, self._path.current
        w = point.coef(self._source.n_features)
        self.coef = w[:, None]
        self.intercept = self._source.y_mean - self._source.x_mean @ w
        self.gap = point.gap if path.is_done else math.inf
        return Progress(point.objective, self.gap)


def _approach(source: Source, terms: Terms) -> list[float]:
    """The factors tau, from where all coefficients are zero down to one."""
    if source.takes_all_columns or not terms.linear.any():
        return [1.0]
    if np.clip(0.0, terms.lower, terms.upper).any():
        return [1.0]
    q = np.abs(source.at(np.zeros((1, 0))).correlation[0])
    with np.errstate(divide="ignore", invalid="ignore"):
        top = float(np.max(np.where(terms.linear > 0, q / terms.linear, 0.0), initial=0.0))
    if not top > 1.0:
        return [1.0]
    count = math.ceil(math.log(top) / -math.log(_FACTOR))
    return list(np.geomspace(top, 1.0, count + 1)[1:])


def solve_from_source(
    source: Source, terms: Terms, options: Options, monitor: Monitor, start: Array | None = None
) -> tuple[_Descent, Status, int]:
    """Minimise for one target; the iteration holds coefficients and intercept."""
    descent = _Descent(source, terms, options.tol, start)
    target = options.tol * source.scale
    limit = options.max_iter or 1000
    status, count, _ = run(descent, monitor, max_iter=limit, target_gap=target)
    return descent, status, max(count, 1)


class _CoordinateSolver(Solver):
    """Both solvers: the targets one after the other."""

    needs_loss = frozenset({"quadratic"})
    needs_penalty = frozenset({"coordinates"})
    accepts_penalty = frozenset({"nonnegative"})
    is_direct = False
    proof = "fenchel"

    #: Whether the rows are read once, for their moments.
    from_moments: ClassVar[bool]

    def reads_once(self, facts: Facts) -> bool:
        return self.from_moments

    def solve(self, problem: Problem, options: Options, monitor: Monitor) -> Solution:
        moments = None
        if self.from_moments:
            moments = Moments.from_rows(problem.design, problem.target, problem.weights)
        return self._solve(problem, moments, options, monitor)

    def set_cost(self, facts: Facts, count: int) -> Cost:
        # Each starts at the solution of its neighbour.
        one = self.cost(facts)
        passes, share = count * one.passes, _OF_A_PATH * count
        return Cost(share * one.flops, share * passes, one.memory, share * one.seconds)

    def solve_paths(self, problems: ProblemSet, options: Options) -> list[PathSolution] | None:
        if any(member.target.shape[1] > 1 for member in problems.members):
            return None
        return solve_paths(problems, options.tol, self.name, self.from_moments)

    def _solve(
        self, problem: Problem, moments: Moments | None, options: Options, monitor: Monitor
    ) -> Solution:
        if moments is not None and not moments.is_finite():
            raise FloatingPointError("the sums of squares of the data are not finite")
        d, k = problem.n_features, problem.n_targets
        W, b = np.zeros((d, k)), np.zeros(k)
        worst, iterations, gap = Status.CONVERGED, 0, 0.0
        rounding: Rounding | None = None
        methods: dict[str, None] = {}
        for t in range(k):
            source: Source
            if moments is None:
                y = problem.target[:, t]
                source = RowsSource(problem.design, y, problem.weights, problem.fit_intercept)
                if rounding is None:
                    norms = source.column_norms() * (1 + 1e-8)
                    rounding = Rounding.of(problem, source.x_mean, norms)
            else:
                source = MomentsSource(moments, problem.fit_intercept, slice(t, t + 1))
            terms = penalty_terms(problem.penalty, d, k, t)
            start = None if options.start is None else options.start[:, t]
            descent, status, count = solve_from_source(source, terms, options, monitor, start)
            W[:, t], b[t] = descent.coef[:, 0], descent.intercept[0]
            worst = worst if status.is_final else status
            iterations, gap = max(iterations, count), gap + descent.gap
            methods[descent.method] = None
        if not problem.fit_intercept:
            b[:] = 0.0
        notes = [f"found by {' and '.join(methods)}"] if moments is not None else []
        solution = Solution(
            W, b, worst, self.name, n_iter=iterations, trace=monitor.trace, notes=notes
        )
        if moments is not None and is_fenchel(problem):
            solution.moments = moments
            solution.proof = PendingFromMoments(MomentsProblem.of(problem, moments), W, b, gap)
        else:
            solution.moments = moments
            solution.proof = Prover(problem, rounding=rounding).certify(W, b)
        return solution


class CoordinateDescent(_CoordinateSolver):
    """From the rows, on the columns that matter."""

    name = "coordinate_descent"
    shows_nonfinite = True
    title = "coordinate descent on a working set of columns, with exact steps"
    from_moments = False

    def cost(self, facts: Facts) -> Cost:
        n, d, k = facts.n, facts.d, facts.k
        passes = 10.0
        chosen = min(n, d, 300)
        reading = (4e-9 if facts.is_sparse else 0.8e-9) * facts.nonzeros
        flops = (passes * 2.0 * facts.nonzeros + 2.0 * n * facts.density * chosen**2) * k
        seconds = k * (20 * CALL + (passes + 2) * reading + 2e-10 * n * facts.density * chosen**2)
        memory = 8.0 * (n * chosen * facts.density + chosen**2 + 6 * (n + d))
        return Cost(flops, passes * k, memory, seconds)


class GramDescent(_CoordinateSolver):
    """From the moments: one pass over the rows, and nothing else depends on their number."""

    name = "gram_descent"
    shows_nonfinite = True
    title = "LARS homotopy and coordinate descent on the Gram matrix"
    from_moments = True

    def refuses(self, facts: Facts) -> str | None:
        if facts.d > _MOST_COLUMNS:
            return f"a Gram matrix of more than {_MOST_COLUMNS} columns"
        return None

    def cost(self, facts: Facts) -> Cost:
        d, k = facts.d, facts.k
        work = 5.0 * d * d * k
        # The working set is all columns, and each change of the free ones touches a row of d.
        seconds = 5 * CALL + gram_seconds(facts) + 5e-9 * work
        return Cost(facts.n * d * (d + 2.0 * k) + work, 1.0, 8.0 * 3 * d * d, seconds)

    def solve_from_moments(
        self, problem: Problem, moments: Moments, options: Options, monitor: Monitor
    ) -> Solution:
        return self._solve(problem, moments, options, monitor)


# Gaps of this share of the target's squared norm are rounding.
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

    return run_strands(lambda one: follow(*one), work)


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
    unit, (top_linear, top_curvature) = penalty_terms(first, d, 1), _sizes(first)
    terms, strengths = [unit], [np.float64(1.0)]
    for penalty in others:
        linear, curvature = _sizes(penalty)
        linear = linear / top_linear if top_linear else 1.0
        curvature = curvature / top_curvature if top_curvature else 1.0
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
