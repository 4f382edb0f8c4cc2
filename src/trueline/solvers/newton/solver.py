r"""Newton's method for losses with curvature and a quadratic penalty or none.

The mathematics of a step is in :mod:`trueline.solvers.newton.dense.descent`. Here the targets are
taken one after the other, and the answer is proven: by the curvature around it where that suffices
(:mod:`trueline.certificates.curvature`), of losses of margins by their tangent
(:mod:`trueline.certificates.tangent`), else by the dual point u_i = l'(z_i). Problems with more
columns than rows are narrowed first (:mod:`trueline.solvers.transformed`).
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from trueline.certificates.base import Certificate
from trueline.certificates.curvature import certify_curvature
from trueline.certificates.duality import certify_dual
from trueline.certificates.evaluation import Rounding
from trueline.certificates.tangent import Tangent, at_most_objective, is_tangent
from trueline.design import Accuracy
from trueline.losses import Loss
from trueline.numerics.gram import SMALL_WORK, rows_per_block
from trueline.penalties import L2
from trueline.problem import Problem
from trueline.solution import Solution, Status
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
    normal_factor_seconds,
    run,
)
from trueline.solvers.iterative import best_constant
from trueline.solvers.newton.batched import few_columns
from trueline.solvers.newton.dense.descent import (
    Descent,
    continuation,
    continuation_notes,
    curvature_basis,
    starting_point,
)
from trueline.solvers.newton.dense.rows import StandardRows, rowwise
from trueline.solvers.transformed import (
    is_wide,
    narrowed,
    narrowing_seconds,
    solve_in_row_space,
)
from trueline.wording import counted

Array = NDArray[np.float64]

_MOST_COLUMNS, _MOST_SPARSE_COLUMNS = 4000, 2000
_STEPS = 6.0
# Points that are evaluated on the way from the answer on a sample of the rows.
_EVALUATIONS = 4.0
# One step more costs little, and then only rounding is left: this much is asked for in any case,
# unless the tolerance asks for few digits and the tangent can prove them.
_FINE, _FINE_TANGENT, _COARSE = 1e-10, 1e-9, 1e-6
_MAX_ITER = 200
# A proof costs more than a step, and near the minimum steps are exact: the gap is proven when the
# predicted decrease is at most this share of it.
_NEGLIGIBLE = 1e-7
# Near the minimum of a smooth loss the gap that the tangent proves is up to so many times the bound
# on the decrease that the penalty's curvature gives.
_TANGENT_FACTOR = 4.0
# Residuals of an exact fit, relative to the target, squared.
_UNSEEN = 1e-22
# Steps after which the tolerance that was asked for is enough, and steps between two proofs then.
_MANY_STEPS, _PROOF_INTERVAL = 40, 10
# Steps without progress that are tolerated.
_IDLE = 4
# Where classes are separated, steps divide the predicted decrease by a number between these; near a
# minimum they square it. So many such steps in a row, and beyond the tolerance, are no accident.
_SLOWEST, _FASTEST, _ALIKE = 0.6, 0.01, 4
# Of the gap: losses that vanish along a direction are followed to this share of it.
_VANISHED = 1e-8
# The unit of the gap is at most this many times the objective of the first point.
_NEAR = 100.0
# Of the squares of constant targets: what rounding leaves.
_CONSTANT = 2e-28
# Tolerances need no digits: a constant model is fitted to this many rows at most.
_MANY = 4096


class Newton(Solver):
    """Newton's method with exact line searches."""

    name = "newton"
    shows_nonfinite = True
    title = "Newton's method, Gram matrices updated by the rows that change"
    needs_loss = frozenset({"curvature", "conjugate"})
    needs_penalty = frozenset({"quadratic"})
    is_direct = False
    proof = "curvature, tangent or duality"

    def refuses(self, facts: Facts) -> str | None:
        if is_wide(facts):
            return None
        if facts.d > _MOST_COLUMNS:
            return f"forms Gram matrices, too large for {facts.d} columns"
        if facts.is_sparse and facts.d > _MOST_SPARSE_COLUMNS:
            return f"forms dense Gram matrices of all {facts.d} columns of a sparse matrix"
        return None

    def cost(self, facts: Facts) -> Cost:
        if is_wide(facts):
            inner, size = self.cost(narrowed(facts)), float(facts.n) * facts.d
            return Cost(
                inner.flops + 4.0 * facts.n * size,
                inner.passes + 4.0,
                inner.memory + 24.0 * size,
                inner.seconds + narrowing_seconds(facts),
            )
        n, d = facts.n, facts.d
        # Products of sparse rows with new weights cost as much as the first ones.
        once = (8.0 if facts.is_sparse else 2.0) * gram_seconds(facts)
        each = 2.0 * iteration_seconds(facts) + 5e-8 * n + 2 * normal_factor_seconds(d, 1)
        seconds = 2 * CALL + once + facts.k * (_STEPS + 2) * each
        seconds = min(seconds, few_columns.seconds_of_targets(facts))
        flops = 2.0 * n * d * d + facts.k * _STEPS * (4.0 * facts.nonzeros + d**3 / 3)
        # For rows read from disk: the moments, a pass for each step and a proof, and the rounding.
        passes = 2 + (_EVALUATIONS + 1) * facts.k if facts.is_read else 2 + 2 * _STEPS * facts.k
        return Cost(flops, passes, 8.0 * (3.0 * d * d + 12 * n), seconds)

    def solve(self, problem: Problem, options: Options, monitor: Monitor) -> Solution:
        require_ordinary(problem)
        if is_wide(Facts.of(problem)):
            return solve_in_row_space(self, problem, options, monitor)
        if few_columns.suits(problem) and not monitor.is_watching:
            solution = few_columns.solve_targets(problem, options, min(options.tol, _FINE))
            if solution is not None:
                return solution
        given = problem.design, problem.weights, problem.fit_intercept
        rows = StandardRows.of(*given, problem.target)
        curvatures = np.broadcast_to(
            problem.penalty.curvature, (problem.n_features, problem.n_targets)
        )
        rows = rows.independent(bool((curvatures > 0).all()))
        constants, unit = constant_model(problem)
        asked, has_tangent = options.tol * unit, is_tangent(problem)
        share = unit / problem.n_targets
        target = float(gap_to_prove(problem.loss, options.tol, share, has_tangent))
        prover = _Prover(problem, rows, curvatures, target)
        descents, worst, iterations, smoothed = [], Status.CONVERGED, 0, 0
        has_classes = "margins" in problem.loss.capabilities and bool((curvatures > 0).all())
        for t in range(problem.n_targets):
            y, loss = np.ascontiguousarray(problem.target[:, t]), problem.loss.of_target(t)
            quad = rows.strength(curvatures[:, t], 2)
            if options.start is None:
                start = starting_point(rows, loss, y, quad, float(constants[t]))
            else:
                given_b = options.start_intercept
                b = float((constants if given_b is None else given_b)[t])
                start = rows.standard(options.start[:, t], b)
            descent = Descent(rows, loss, y, quad, start)
            smoothed += continuation(descent, loss)
            # For separable classes the objective of a constant may be far above the minimum.
            near = min(_NEAR * descent.objective / share, 1.0) if has_classes and share > 0 else 1.0
            prover.enough = goal = near * target
            descent.negligible = 0.1 * goal if has_tangent else 0.0
            descent.enough = max(_NEGLIGIBLE * goal, descent.negligible)
            enough = asked / problem.n_targets
            iteration = _Iteration(descent, prover, t, goal, enough, monitor.is_watching)
            iteration.has_no_start = options.start is None
            limit = options.max_iter or _MAX_ITER
            status, count, _ = run(iteration, monitor, max_iter=limit, target_gap=goal)
            if status is Status.STALLED and iteration.is_unbounded:
                status, prover.is_unbounded = Status.UNBOUNDED, True
            worst = worst if status.is_final else status
            iterations = max(iterations, count)
            descents.append(descent)
        certificate = prover.certify(list(range(problem.n_targets)), descents)
        close = asked + _rounding(problem, certificate, unit, asked)
        if not worst.is_final and certificate.gap <= close:
            worst = Status.CONVERGED
        formed = sum(descent.gram.formed for descent in descents)
        updated = sum(descent.gram.updated for descent in descents)
        notes = [
            f"Gram matrix formed {counted(1 + formed, 'time')} from all rows, "
            f"{counted(updated, 'time')} from those that changed",
            *continuation_notes(smoothed),
        ]
        return monitor.solution(certificate, worst, self.name, iterations, notes=notes)


def gap_to_prove(
    loss: Loss, tol: float, unit: Array | float, is_proven_by_tangent: bool
) -> Array | float:
    """The gap at which Newton's method stops, for a constant model that costs ``unit``."""
    # Where the tangent proves the gap, it is proven as soon as the gradient is small.
    fine = _FINE_TANGENT if is_proven_by_tangent else _FINE
    # Of losses with kinks the last step is exact: leaving it out gains nothing.
    is_coarse = is_proven_by_tangent and tol >= _COARSE and not loss.kinks
    return (tol if is_coarse else min(tol, fine)) * unit


def require_ordinary(problem: Problem) -> None:
    """Raise ``FloatingPointError`` where squares of the target leave the range of doubles."""
    largest = float(np.abs(problem.target).max(initial=0.0))
    if not (largest == 0 or 1e-100 < largest < 1e100):
        raise FloatingPointError("the squares of the target overflow or vanish")


def constant_model(problem: Problem) -> tuple[Array, float]:
    """A constant close to the best one, and what it costs: the unit of tolerances."""
    n = problem.n_samples
    some = problem
    if n > _MANY:
        rows = np.linspace(0, n - 1, _MANY).astype(np.intp)
        weights = None if problem.weights is None else problem.weights[rows]
        if weights is None or weights.any():
            design, target = problem.design.take(slice(0, 1)), problem.target[rows]
            some = replace(problem, design=design, target=target, weights=weights)
    constants = best_constant(some)
    if some is not problem and not np.isfinite(constants).all():
        # A class, or all counts but zero, that none of these rows shows: no constant from them.
        constants = best_constant(problem)
    y = problem.target
    if problem.n_targets == 1:
        values = rowwise(problem.loss.value, y[:, 0], np.full(n, constants[0]))[:, None]
    else:
        values = problem.loss.value(y, np.broadcast_to(constants, y.shape))
    return constants, float(problem.weigh(values).sum())


def _rounding(problem: Problem, certificate: Certificate, unit: float, asked: float) -> float:
    """Gaps that rounding of the data hides.

    Rounding that is larger than the gap that was asked for is no excuse: it is to be reported.
    Targets that are constant, to rounding, leave no gap to ask for.
    """
    size = float(problem.weigh(problem.loss.target_size(problem.target) ** 2).sum())
    is_constant = unit <= _CONSTANT * size
    rounding = 1.1 * certificate.objective_rounding
    return (rounding if is_constant else min(rounding, asked)) + _UNSEEN * size


class _Prover:
    """Certificates of points in standard coordinates; what depends on the data alone is kept."""

    def __init__(
        self, problem: Problem, rows: StandardRows, curvatures: Array, enough: float
    ) -> None:
        self.problem, self.rows, self.curvatures = problem, rows, curvatures
        d, sizes = problem.n_features, problem.loss.target_size(problem.target)
        n, block = problem.n_samples, rows_per_block(problem.n_samples, d)
        # As the designs say themselves, with the squares of the columns that are known already.
        is_whole = problem.design.is_sparse or n * d < SMALL_WORK
        terms = n if is_whole else block + n / block + 8
        self.rounding = Rounding(
            accuracy=Accuracy(d, float(terms), np.sqrt(rows.size) * (1 + 1e-6)),
            mean=rows.mean,
            weight=rows.total_weight,
            target_size=np.sqrt(problem.weigh(sizes**2).sum(axis=0)) * (1 + 1e-6),
            rows=problem.n_samples,
        )
        self.alone = rows.left_out
        self.enough = enough
        # Where there is no optimum, no more is said than that no objective is negative.
        self.is_unbounded = False
        self._points: list[Array] = []
        self._certificate: Certificate

    def certify(self, targets: list[int], descents: list[Descent]) -> Certificate:
        """The certificate of some targets at the current points of their descents."""
        points = [descent.v for descent in descents]
        if len(points) != len(self._points) or any(
            new is not old for new, old in zip(points, self._points)
        ):
            self._points, self._certificate = points, self._proof(targets, descents)
        return self._certificate

    def _proof(self, targets: list[int], descents: list[Descent]) -> Certificate:
        found = [self.rows.coefficients(descent.v) for descent in descents]
        W = np.stack([w for w, _ in found], axis=1)
        b = np.array([intercept for _, intercept in found])
        problem = _part(self.problem, targets)
        rounding = Rounding(
            self.rounding.accuracy,
            self.rounding.mean,
            self.rounding.weight,
            self.rounding.target_size[targets],
            self.rounding.rows,
        )
        if is_tangent(problem) or self.is_unbounded or self._has_vanished(problem, descents):
            tangent = Tangent(problem, rounding).certify(W, b)
            if tangent.gap <= self.enough or self.is_unbounded:
                return tangent
        scale = self.rows.scale * np.sqrt(self.rows.total_weight) * (1 + 1e-6)
        if (self.curvatures[self.alone] > 0).all():
            proof = self._by_curvature(problem, targets, descents, W, b, scale, rounding)
            if proof is None:  # Hessians of points that are not close enough are formed afresh
                renewed = [descent.refresh() for descent in descents]
                if any(renewed):
                    proof = self._by_curvature(problem, targets, descents, W, b, scale, rounding)
            if proof is not None:
                return proof
        u = np.stack([descent.u for descent in descents], axis=1)
        return at_most_objective(problem, certify_dual(problem, W, b, u, self.rows.mean, scale))

    def _has_vanished(self, problem: Problem, descents: list[Descent]) -> bool:
        """Whether the objective proves itself, as no loss is negative."""
        is_one = len(descents) == 1 and "margins" in problem.loss.capabilities
        return is_one and descents[0].objective <= 0.5 * self.enough

    def _by_curvature(
        self,
        problem: Problem,
        targets: list[int],
        descents: list[Descent],
        W: Array,
        b: Array,
        scale: Array,
        rounding: Rounding,
    ) -> Certificate | None:
        pairs = [
            curvature_basis(self.rows, descent.exact_factor, self.curvatures[:, t])
            for t, descent in zip(targets, descents)
        ]
        nu, basis = np.array([nu for nu, _ in pairs]), np.stack([M for _, M in pairs], axis=1)
        curvatures = np.stack([d.gram.h for d in descents], axis=1) / self.rows.weights[:, None]
        return certify_curvature(
            problem, W, b, self.rows.mean, basis, nu, scale, curvatures, rounding
        )


def _part(problem: Problem, targets: list[int]) -> Problem:
    """The problem of some of the targets."""
    if len(targets) == problem.n_targets:
        return problem
    curvatures = np.broadcast_to(problem.penalty.curvature, (problem.n_features, problem.n_targets))
    own = L2(np.ascontiguousarray(curvatures[:, targets])) if curvatures.any() else problem.penalty
    return replace(
        problem,
        target=np.ascontiguousarray(problem.target[:, targets]),
        loss=problem.loss.of_target(targets[0]) if len(targets) == 1 else problem.loss,
        penalty=own,
    )


class _Iteration(Iteration):
    """One target; a step of the loop is a step of Newton's method."""

    def __init__(
        self,
        descent: Descent,
        prover: _Prover,
        target: int,
        gap: float,
        asked: float,
        is_watched: bool,
    ) -> None:
        self._descent, self._prover, self._target = descent, prover, target
        self._gap, self._asked, self._is_watched = gap, asked, is_watched
        self._steps = 0
        self._least, self._idle, self._proven = math.inf, 0, math.inf
        self._lowest, self._flat = math.inf, 0
        # The starting point is never the answer: at least one step is made.
        self._has_moved, self._is_finished = False, False
        # Without a penalty losses of margins may have no minimum.
        self._is_free = "margins" in descent.loss.capabilities and not descent.quad.any()
        self._is_free = self._is_free and not prover.problem.design.is_sequential
        self._alike, self.is_unbounded, self.has_no_start = 0, False, True
        self._expose()

    def _expose(self) -> None:
        w, b = self._prover.rows.coefficients(self._descent.v)
        self.coef, self.intercept = w[:, None], np.array([b])

    def step(self) -> None:
        self._has_moved = True
        self._steps += 1
        before, length = self._descent.decrease, self._descent.step()
        if self._is_free:
            self._descent.stretch(_VANISHED * self._gap)
            share = self._descent.decrease / before if before > 0 else 0.0
            self._alike = self._alike + 1 if _FASTEST <= share <= _SLOWEST else 0
            is_slow = self._alike >= _ALIKE and self._descent.decrease <= self._asked
            self.is_unbounded = is_slow and self.has_no_start
        self._expose()
        # Steps whose predicted decrease does not become smaller are dominated by rounding.
        self._idle = self._idle + 1 if self._descent.decrease >= 0.5 * self._least else 0
        self._least = min(self._least, self._descent.decrease)
        is_late = (
            self._descent.is_exact and self._idle > _IDLE and self._descent.decrease <= self._gap
        )
        self.is_stalled = length == 0.0 or is_late or self._is_flat() or self.is_unbounded

    def _is_flat(self) -> bool:
        """Whether steps without progress no longer lower the objective either."""
        if self._idle <= _IDLE:
            self._lowest, self._flat = math.inf, 0
            return False
        objective = self._descent.objective
        self._flat = 0 if objective < self._lowest else self._flat + 1
        self._lowest = min(self._lowest, objective)
        return self._flat > _IDLE

    def progress(self) -> Progress:
        descent = self._descent
        small = descent.decrease <= descent.enough
        is_above_rounding = descent.decrease > _NEGLIGIBLE * self._gap
        if small and is_above_rounding and _TANGENT_FACTOR * descent.decrease_bound > self._gap:
            # The tangent cannot prove the gap yet: a step costs less than the other proofs.
            small = False
        # After many steps the tolerance that was asked for is enough.
        late = self._steps >= _MANY_STEPS and self._steps % _PROOF_INTERVAL == 0
        if not (self._is_watched or small or late or self._idle > 2) or not self._has_moved:
            # Without a trace or callbacks: the predicted decrease also shows what is not finite.
            return Progress(descent.objective if self._is_watched else descent.decrease, math.inf)
        if small and descent.decrease > 0 and not (self._is_watched or self._is_finished):
            # Of rows that are read the pass of the proof is made at the end of that step as well.
            problem = self._prover.problem
            is_near = is_tangent(problem) or problem.design.is_sequential
            self._is_finished = is_near and not descent.loss.kinks
            if self._is_finished:
                descent.finish()
                self._expose()
        proof = self._prover.certify([self._target], [descent])
        objective, gap = proof.objective, proof.gap
        # Steps are exact here: what is not proven now will not be proven after the next one.
        self.is_stalled = self.is_stalled or (small and gap > 0.5 * self._proven)
        self.is_stalled = self.is_stalled or (late and gap <= self._asked)
        self._proven = min(gap, self._proven)
        if self._is_finished and gap > self._gap:
            descent.use(descent.loss)  # the gradient there, to go on from
        # A trace or callbacks ask for more proofs, but the steps are the same.
        due = small or self._idle > 2
        return Progress(objective, gap if due else max(gap, 1.001 * self._gap))
