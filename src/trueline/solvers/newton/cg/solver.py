r"""Newton's method with conjugate gradients, for smooth losses and quadratic penalties.

The mathematics of a step is in :mod:`trueline.solvers.newton.cg.descent`. Losses whose scores are
coupled, as the softmax's, are minimised over all targets at once.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from trueline.certificates.base import Certificate
from trueline.certificates.choose import Prover
from trueline.certificates.evaluation import Evaluation
from trueline.certificates.tangent import at_most_objective
from trueline.problem import Problem
from trueline.problem_set import ProblemSet
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
    iteration_seconds,
    run,
)
from trueline.solvers.iterative import best_constant, target_gap
from trueline.solvers.newton.batched.solver import solve_batch
from trueline.solvers.newton.cg.descent import (
    MOST_COLUMNS,
    TruncatedDescent,
    factor_seconds,
    product_seconds,
)
from trueline.solvers.newton.cg.rows import Rows
from trueline.solvers.proximal_newton.few_classes import solve_few_classes
from trueline.solvers.transformed import (
    is_unbalanced,
    is_wide,
    narrowed,
    narrowing_seconds,
    solve_balanced,
    solve_in_row_space,
)
from trueline.wording import counted

Array = NDArray[np.float64]

# Weights that differ by many powers of ten keep gaps of this share from being proven, and so do the
# scores of hundreds of columns and many rows, where the gradient has vanished altogether.
_UNSEEN, _UNSEEN_OF_MANY = 1e-6, 1e-5
# The share of the gap asked for that is left where the gradient has vanished: another proof that
# says no more than the last one did is made of rounding then.
_VANISHED = 1e-3
# Of what is left where that is not enough, what further steps leave.
_FURTHER = 1e-2
_STEPS, _PRODUCTS, _PAST_KINKS = 9.0, 60.0, 30.0
# Of dense rows, whose preconditioner does not wait as long.
_DENSE_STEPS, _DENSE_PRODUCTS = 5.0, 25.0
# Products for each of many problems on the same rows, which share the way to the rows.
_SHARED_PRODUCTS = 8.0
_MAX_ITER = 100
# What the step promised, relative to the gap asked for, where there is no proof of a gap.
_SETTLED = 1e-6
# A fall of the objective that is progress, relative to it.
_FALL = 1e-4


class NewtonCG(Solver):
    """Newton steps by preconditioned conjugate gradients."""

    name = "newton_cg"
    title = "Newton's method, steps by preconditioned conjugate gradients"
    needs_loss = frozenset({"hessian"})
    needs_penalty = frozenset({"quadratic"})
    is_direct = False
    proof = "tangent or duality"
    takes_few_rows = True

    def cost(self, facts: Facts) -> Cost:
        n, d, k = facts.n, facts.d, facts.k
        each = iteration_seconds(facts) + 3e-8 * n * k
        is_logistic = facts.has_margins and not facts.has_kinks
        if facts.is_sparse or not is_logistic:
            blocks = k * min(d, 2000) ** 2 * (5.0 * d) / 3e10 if d <= 2000 else 0.0
            if facts.is_sparse:  # factors follow where products have taken as long
                blocks = min(blocks, _PRODUCTS * each)
            seconds = _PRODUCTS * each + 3 * _STEPS * each + 3 * blocks
        else:
            product = product_seconds(n * d, k, is_sparse=False)
            factors = factor_seconds(n, d, False) if d <= MOST_COLUMNS else 0.0
            factors = min(factors, _PRODUCTS * product) * (1 + 0.4 * (k - 1))
            seconds = 1.2e-8 * n * d + _DENSE_STEPS * (2 * each + 1e-7 * n * k)
            seconds += _DENSE_PRODUCTS * product + 1.5 * factors
        seconds += 8 * CALL
        if facts.has_kinks and facts.n < facts.d and not facts.is_sparse:
            # Every row can be fitted: the way leads past most kinks, in short steps.
            seconds *= _PAST_KINKS
        flops = 4.0 * (_PRODUCTS + 2 * _STEPS) * facts.nonzeros * facts.k
        memory = 8.0 * facts.k * (6.0 * facts.n + 8.0 * facts.d + min(facts.d, 2000) ** 2)
        return Cost(flops, 2 * _PRODUCTS, memory, seconds)

    def solve(self, problem: Problem, options: Options, monitor: Monitor) -> Solution:
        found = solve_few_classes(problem, options, monitor, self.name)
        if found is not None:
            return found
        if is_wide(Facts.of(problem)) and not np.any(problem.penalty.linear):
            return solve_in_row_space(self, problem, options, monitor)
        if problem.n_targets > 1 and problem.design.is_sparse and is_unbalanced(problem):
            return solve_balanced(self, problem, options, monitor)
        d, k = problem.n_features, problem.n_targets
        weights = np.ones(problem.n_samples) if problem.weights is None else problem.weights
        curvatures = np.zeros((d + 1, k))
        curvatures[:-1] = problem.penalty.curvature
        is_coupled = "coupled" in problem.loss.capabilities
        is_alike = is_coupled and bool((curvatures == curvatures[:, :1]).all())
        V = np.zeros((d + 1, k))
        if problem.fit_intercept:
            V[-1] = best_constant(problem)
        if options.start is not None:
            V[:-1] = options.start
            V[-1] = V[-1] if options.start_intercept is None else options.start_intercept
        target = target_gap(problem, options.tol)
        rows = Rows(problem.design, weights, problem.fit_intercept)
        descent = TruncatedDescent(rows, problem.loss, problem.target, curvatures, V, is_alike)
        descent.enough = target
        iteration = _Iteration(problem, descent, target, monitor.is_watching)
        limit = options.max_iter or _MAX_ITER
        status, count, _ = run(iteration, monitor, max_iter=limit, target_gap=target)
        certificate = iteration.certify()
        notes = [counted(descent.products, "Hessian-vector product")]
        unseen = _UNSEEN_OF_MANY if descent.about(descent.G) <= _VANISHED * target else _UNSEEN
        close = certificate.gap <= target + unseen * certificate.objective
        if status is Status.STALLED and descent.about(descent.G) <= target and close:
            # Nothing is left to do: what is not proven is what rounding keeps from being proven.
            status = Status.CONVERGED
            notes.append("the gradient is zero to rounding; the remaining gap is at rounding level")
        return monitor.solution(certificate, status, self.name, count, notes=notes)

    def set_cost(self, facts: Facts, count: int) -> Cost:
        if not facts.has_one_strength:
            return super().set_cost(facts, count)
        # The span of the rows is found once for all.
        once = narrowing_seconds(facts) if is_wide(facts) else 0.0
        one = self.cost(narrowed(facts) if is_wide(facts) else facts)
        seconds = CALL + once + count * _SHARED_PRODUCTS * (one.seconds / _PRODUCTS)
        return Cost(count * one.flops, count * one.passes, count * one.memory, seconds)

    def solve_set(self, problems: ProblemSet, options: Options) -> list[Solution]:
        strengths = [member.penalty.curvature for member in problems.members]
        if not all(np.ndim(strength) == 0 and float(strength) > 0 for strength in strengths):
            return super().solve_set(problems, options)
        return solve_batch(problems, options, self.name)


class _Iteration(Iteration):
    """A step of the loop is a step of Newton's method."""

    def __init__(
        self, problem: Problem, descent: TruncatedDescent, target: float, is_watched: bool
    ) -> None:
        self._problem, self._descent, self._target = problem, descent, target
        self._is_watched = is_watched
        self._prover: Prover | None = None
        self._evaluated: tuple[Array, Evaluation] | None = None
        self._least = float(np.min(descent.curvatures[:-1], initial=np.inf))
        self._idle, self._best, self._objective = 0, math.inf, descent.objective
        self._proven = math.inf
        self._expose()

    def _expose(self) -> None:
        V = self._descent.V
        self.coef, self.intercept = np.ascontiguousarray(V[:-1]), V[-1].copy()

    def step(self) -> None:
        length = self._descent.step()
        self._expose()
        norm, before = float(np.linalg.norm(self._descent.G)), self._objective
        self._objective = self._descent.objective
        # On the way past many kinks the gradient rises and falls while the objective falls.
        has_fallen = before - self._objective > _FALL * before
        self._idle = 0 if norm < 0.5 * self._best or has_fallen else self._idle + 1
        self._best = min(norm, self._best)
        self.is_stalled = length == 0.0 or self._idle > 6
        if self._least == 0:
            self.is_settled = self._descent.decrease <= _SETTLED * self._target

    @property
    def prover(self) -> Prover:
        """Made when it is first needed: it reads the data twice."""
        if self._prover is None:
            self._prover = Prover(
                self._problem, rounding=self._descent.rows.rounding(self._problem)
            )
        return self._prover

    def certify(self) -> Certificate:
        """The certificate of the present point."""
        known = self._evaluated
        at = known[1] if known is not None and known[0] is self.coef else None
        found = self.prover.certify(self.coef, self.intercept, at)
        return at_most_objective(self._problem, found)

    def progress(self) -> Progress:
        descent, about = self._descent, self._descent.about(self._descent.G)
        if not (self._is_watched or about <= self._target or self.is_stalled):
            return Progress(descent.objective, math.inf)
        if not self._is_watched:
            descent.balance()
            self._expose()
        # Of rows that are read one pass gives scores and gradient.
        is_known = not (self._is_watched or self._problem.design.is_sequential)
        scores = np.ascontiguousarray(descent.Z) if is_known else None
        at = self.prover.evaluate(self.coef, self.intercept, scores)
        if not self._is_watched:
            descent.know(at)
        self._evaluated = self.coef, at
        gap = self.prover.gap(at, self.coef, self.intercept)
        if not self._is_watched and about <= _VANISHED * self._target and gap > 0.5 * self._proven:
            self.is_stalled = True
        self._proven = gap
        if about <= descent.enough:  # what the proof adds becomes less where less is left
            descent.enough = _FURTHER * about
        return Progress(descent.objective, gap)
