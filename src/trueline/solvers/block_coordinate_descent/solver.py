r"""Block coordinate descent for penalties made of norms of blocks, with squared loss.

    minimise  1/2 sum_i s_i ||y_i - W^T x_i - b||^2 + sum_b l_b ||W_b|| + a/2 ||W||^2

A block is a group of coefficients of one target, or the coefficients of one column for all targets.
The work is done in :mod:`trueline.solvers.block_coordinate_descent`: working sets of blocks, exact
block steps on their Gram matrix, Newton steps on the blocks that are not zero. Moments of the data
stand for the rows where these are many. Targets that are not coupled are fitted one by one.

The dual point of its proof is made of the residuals (:mod:`trueline.certificates.duality`); moments
give the gap without another reading of the rows (:mod:`trueline.certificates.fenchel`).
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from trueline.certificates.base import Certificate
from trueline.certificates.choose import Prover
from trueline.certificates.evaluation import sum_rows, unpenalised
from trueline.moments import Moments
from trueline.numerics.blas import run_strands, single_threaded_blas
from trueline.numerics.jit import is_ready
from trueline.penalties.group import BlockNorms
from trueline.problem import MomentsProblem, Problem
from trueline.problem_set import ProblemSet
from trueline.solution import PathSolution, PendingCertificate, Solution, Status
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
    iteration_seconds,
    run,
)
from trueline.solvers.block_coordinate_descent.steps import descend, descend_along
from trueline.solvers.block_coordinate_descent.working_set import BlockState
from trueline.solvers.coordinate_descent.source import MomentsSource, RowsSource, Source
from trueline.solvers.iterative import target_gap
from trueline.solvers.pending import PendingFromMoments
from trueline.wording import counted

Array = NDArray[np.float64]
Integers = NDArray[np.intp]

_MAX_ITER = 1000
# The most steps for one strength of a path; of many strengths each takes this share of the work of
# one alone. Gaps of this share of the targets' square are rounding.
_MAX_STEPS, _OF_A_PATH, _ROUNDING, _UNDERFLOW = 200, 0.1, 1e-13, 1e-280
# The Gram matrix of all columns is worth its price if the rows are many times read otherwise.
_COLUMNS_PER_TARGET = 200
_SPARSE_COLUMNS = 500
# Readings of the data that a fit from the rows usually takes, the proof included.
_READINGS = 10.0
# Up to so many columns, a path is first tried by sweeps alone. They go on to this share of the gap
# that is asked for: the next digits cost little.
_MOST_SWEPT, _FINE = 128, 1e-8
# Numbers in all solutions of a path from which on interpreted sweeps would last until the kernel
# is compiled: each is visited some dozens of times, within OPERATIONS of numerics/interpreted.py.
_LONG_PATH = 15_000
# Finer tolerances need residuals from the rows: moments have squared the condition number.
_FINEST = 1e-14
# Proofs that rounding keeps above the tolerance, before giving up.
_FAILURES = 3


def prefers_moments(n: int, d: int, k: int, is_sparse: bool) -> bool:
    """Whether the Gram matrix of all columns is cheaper than reading the rows again and again."""
    limit = _SPARSE_COLUMNS if is_sparse else _COLUMNS_PER_TARGET * k
    return n >= 2 * d and d <= limit


def states_for(problem: Problem, moments: Moments | None) -> list[BlockState]:
    """One state for all targets if they are coupled, else one for each.

    Without ``moments`` the rows are read.
    """
    penalty = problem.penalty
    assert isinstance(penalty, BlockNorms)
    k = problem.n_targets
    is_coupled = "coupled" in penalty.capabilities
    parts = [slice(0, k)] if is_coupled else [slice(t, t + 1) for t in range(k)]
    labels = penalty.labels(problem.n_features)

    def source(targets: slice) -> Source:
        if moments is not None:
            return MomentsSource(moments, problem.fit_intercept, targets)
        Y = np.ascontiguousarray(problem.target[:, targets].T)
        return RowsSource(problem.design, Y, problem.weights, problem.fit_intercept)

    return [BlockState(source(targets), labels) for targets in parts]


class BlockDescent(Solver):
    """Working sets of blocks, exact block steps and Newton steps."""

    name = "block_descent"
    title = "block coordinate descent on working sets"
    needs_loss = frozenset({"quadratic"})
    needs_penalty = frozenset({"blocks"})
    is_direct = False

    def cost(self, facts: Facts) -> Cost:
        n, d, k = facts.n, facts.d, facts.k
        active = float(min(n, d)) / 2
        work = 50.0 * active * active * k
        readings = 4.0 if prefers_moments(n, d, k, facts.is_sparse) else _READINGS
        flops = work + 4.0 * readings * facts.nonzeros * k
        seconds = CALL + work / 2e9 + readings * iteration_seconds(facts)
        memory = 8.0 * (2 * n * k + active * (n + 2 * active))
        if prefers_moments(n, d, k, facts.is_sparse):
            flops += float(n) * d * (d + k)
            seconds += gram_seconds(facts)
            memory += 16.0 * d * d
        return Cost(flops, readings, memory, seconds)

    def reads_once(self, facts: Facts) -> bool:
        return prefers_moments(facts.n, facts.d, facts.k, facts.is_sparse)

    def set_cost(self, facts: Facts, count: int) -> Cost:
        # Each starts at the solution of its neighbour.
        one, share = self.cost(facts), _OF_A_PATH * count
        return Cost(share * one.flops, share * one.passes, one.memory, share * one.seconds)

    def solve_paths(self, problems: ProblemSet, options: Options) -> list[PathSolution] | None:
        first = problems.on_all_rows(0)
        if first.n_targets > 1 and "coupled" not in first.penalty.capabilities:
            return None
        from_moments = self.reads_once(Facts.of(first))
        paths = [mixture for path in problems.paths() for mixture in _mixtures(problems, path)]
        moments = [problems.moments(path[0]) if from_moments else None for path in paths]
        pairs = list(zip(paths, moments))
        return run_strands(lambda pair: _follow(problems, pair[0], pair[1], options.tol), pairs)

    def solve(self, problem: Problem, options: Options, monitor: Monitor) -> Solution:
        n, d = problem.design.shape
        moments = None
        is_fine = options.tol < _FINEST
        if prefers_moments(n, d, problem.n_targets, problem.design.is_sparse) and not is_fine:
            moments = Moments.from_rows(problem.design, problem.target, problem.weights)
            if not moments.is_finite():
                raise FloatingPointError("the sums of squares of the data are not finite")
        target = target_gap(problem, options.tol, moments)
        limit = options.max_iter or _MAX_ITER
        with single_threaded_blas():  # small factors, many of them: threads would only wait
            if moments is not None and not monitor.is_watching:
                swept = _swept(problem, moments, target, options.start, monitor)
                if swept is not None:
                    return swept
            iteration = _Iteration(problem, moments, target, options.start)
            status, n_iter, _ = run(iteration, monitor, max_iter=limit, target_gap=target)
        columns = sum(state.restricted.size for state in iteration.states)
        sweeps = sum(state.restricted.sweeps for state in iteration.states)
        notes = [
            f"{'moments' if moments is not None else 'rows'}; {columns} of "
            f"{d * len(iteration.states)} columns in the working set, {sweeps} sweeps"
        ]
        return monitor.solution(
            iteration.proof(), status, self.name, max(n_iter, 1), notes=notes, moments=moments
        )


def _mixtures(problems: ProblemSet, path: list[int]) -> list[list[int]]:
    """The members of a path, by the ratio of the two parts of their penalties."""
    shape = problems.design.shape[1], problems.members[path[0]].target.shape[1]
    found: dict[str, list[tuple[float, int]]] = {}
    for number in path:
        penalty = problems.members[number].penalty
        assert isinstance(penalty, BlockNorms)
        norms = float(penalty.strengths(*shape).max(initial=0.0))
        mixture = f"{penalty.curvature / norms:.10g}" if norms else ""
        found.setdefault(mixture, []).append((norms or penalty.curvature, number))
    return [[number for _, number in sorted(own, reverse=True)] for own in found.values()]


def _follow(
    problems: ProblemSet, path: list[int], moments: Moments | None, tol: float
) -> PathSolution:
    """The solutions along a path of strengths, each from the one before."""
    problem, start = problems.on_all_rows(path[0]), problems.members[path[0]].start
    d, k = problem.n_features, problem.n_targets
    state, linear, ridges = states_for(problem, moments)[0], [], np.empty(len(path))
    for i, number in enumerate(path):
        penalty = problems.members[number].penalty
        assert isinstance(penalty, BlockNorms)
        linear.append(penalty.strengths(d, k)[:, 0])
        ridges[i] = penalty.curvature
    coefs, gaps = np.zeros((len(path), k, d)), np.empty(len(path))
    steps = np.zeros(len(path), dtype=np.intp)
    if start is not None:
        coefs[0] = start[0].T
    target, done = tol * state.scale, 0
    if state.has_single_columns:
        done = _sweep_along(state.source, np.array(linear), ridges, target, coefs, gaps, steps)
    if done < len(path):
        state.start_at(coefs[done])
    for i in range(done, len(path)):
        state.approach(np.ascontiguousarray(linear[i]), ridges[i])
        state.step(target)  # also if the point before would do: the last digits are cheap
        steps[i] = 1
        while state.gap > target and not state.is_stuck and steps[i] < _MAX_STEPS:
            state.step(target)
            steps[i] += 1
        coefs[i], gaps[i] = state.coef(), state.gap
    source, allowed = state.source, target + _ROUNDING * state.scale + _UNDERFLOW
    intercepts = (source.y_mean - coefs @ source.x_mean).T
    counts = np.maximum(steps, 1).tolist()
    parts = coefs.transpose(2, 1, 0), intercepts, gaps, allowed, BlockDescent.name, counts, moments
    return PathSolution(path, *parts)


def _sweep_along(
    source: Source,
    linear: Array,
    ridges: Array,
    target: float,
    coefs: Array,
    gaps: Array,
    sweeps: Integers,
) -> int:
    """Write the solutions for the first penalties, as many as sweeps alone find; how many.

    Few columns that are not much alike take less time than the calls of a Newton step.
    """
    if not isinstance(source, MomentsSource):
        return 0
    k, d = source.cross.shape
    # A short run compiles nothing; a long one compiles this, and not the single sweeps before it.
    is_long = len(ridges) * k * d > _LONG_PATH
    is_at_hand = is_long or is_ready(descend_along) or is_ready(descend)
    if not is_at_hand or d > _MOST_SWEPT or not linear.all():
        return 0
    own = source.gram, source.cross, 2 * source.scale, np.arange(d + 1), linear, ridges
    goal = max(_FINE * target, 0.1 * _ROUNDING * source.scale)
    return descend_along(*own, goal, target, np.empty((k, d)), coefs, gaps, sweeps)


def _swept(
    problem: Problem, moments: Moments, target: float, start: Array | None, monitor: Monitor
) -> Solution | None:
    """The solution for targets that share columns, where sweeps alone find and prove it."""
    penalty, (d, k) = problem.penalty, (problem.n_features, problem.n_targets)
    if "coupled" not in penalty.capabilities:
        return None
    assert isinstance(penalty, BlockNorms)
    source = MomentsSource(moments, problem.fit_intercept, slice(0, k))
    linear, ridges = penalty.strengths(d, k)[:, :1].T.copy(), np.array([penalty.curvature])
    coefs, gaps, sweeps = np.zeros((1, k, d)), np.empty(1), np.zeros(1, dtype=np.intp)
    if start is not None:
        coefs[0] = start.T
    if not _sweep_along(source, linear, ridges, target, coefs, gaps, sweeps):
        return None
    b = source.y_mean - coefs[0] @ source.x_mean
    proof = _from_moments(problem, moments, np.ascontiguousarray(coefs[0].T), b, float(gaps[0]))
    if not proof.bound() <= target:
        return None
    notes = [f"moments; {counted(int(sweeps[0]), 'sweep')} over all columns"]
    return monitor.solution(
        proof, Status.CONVERGED, BlockDescent.name, notes=notes, moments=moments
    )


def _from_moments(
    problem: Problem, moments: Moments, W: Array, b: Array, gap: float
) -> PendingFromMoments:
    """A proof for later: of the rows it keeps the residuals alone."""
    slopes = problem.scores(W, b) - problem.target
    if problem.fit_intercept:
        slopes -= sum_rows(problem.weigh(slopes)) / problem.total_weight
    return PendingFromMoments(MomentsProblem.of(problem, moments), W, b, gap, slopes)


class _Iteration(Iteration):
    """The states of all targets; one step is one look at all columns."""

    def __init__(
        self, problem: Problem, moments: Moments | None, target: float, start: Array | None
    ) -> None:
        self.problem, self.moments = problem, moments
        # Made when it is needed; moments do without it, as far as they can.
        self._prover: Prover | None = None
        self._proves_from_rows = moments is None or bool(unpenalised(problem).any())
        self.states = states_for(problem, moments)
        penalty = problem.penalty
        assert isinstance(penalty, BlockNorms)
        strengths = penalty.strengths(problem.n_features, problem.n_targets)
        k = problem.n_targets // len(self.states)
        for t, state in enumerate(self.states):
            if start is not None:
                state.start_at(np.ascontiguousarray(start[:, t * k : (t + 1) * k].T))
            state.approach(np.ascontiguousarray(strengths[:, t]), penalty.curvature)
        self._target, self._aim = target, target
        self._proof: Certificate | PendingCertificate | None = None
        self._failures = 0
        self._has_begun = False
        self._place()

    def _place(self) -> None:
        W = np.vstack([state.coef() for state in self.states])
        self.coef = np.ascontiguousarray(W.T)
        pairs = zip(self.states, np.split(W, len(self.states)), strict=True)
        self.intercept = np.concatenate([state.intercept(part) for state, part in pairs])

    def step(self) -> None:
        share = self._aim / len(self.states)
        for state in self.states:
            if not self._has_begun or (state.gap > share and not state.is_stuck):
                state.step(share)
        self._proof, self._has_begun = None, True
        self._place()

    def progress(self) -> Progress:
        objective = sum(state.objective for state in self.states)
        gap = sum(state.gap for state in self.states)
        self.is_stalled = all(state.is_stuck for state in self.states)
        if not self._has_begun:
            # The start may be near enough; one look at the data gives the answer itself.
            return Progress(objective, math.inf)
        if gap > self._target and not self.is_stalled:
            return Progress(objective, gap)
        # Near enough: now with all rounding, which may ask for a little more.
        proof = self.proof()
        proven = proof.gap if isinstance(proof, Certificate) else proof.bound()
        if proven > self._target:
            self._failures += 1
            self._aim *= 0.1
            if self._failures >= _FAILURES:
                # Reached as far as double precision shows; only the proof's room for rounding
                # exceeds what was asked for.
                self.is_settled = gap <= self._target
                self.is_stalled = True
        return Progress(objective, proven)

    def proof(self) -> Certificate | PendingCertificate:
        """What is proven about the current point; later, if the moments have enough digits."""
        if self._proof is None and not self._proves_from_rows:
            assert self.moments is not None
            gap = sum(state.gap for state in self.states)
            at = self.coef, self.intercept
            pending = _from_moments(self.problem, self.moments, *at, gap)
            if pending.bound() <= self._target:
                self._proof = pending
            else:  # the rows give more digits
                self._proves_from_rows = True
        if self._proof is None:
            self._prover = self._prover or Prover(self.problem)
            self._proof = self._prover.certify(self.coef, self.intercept)
        return self._proof
