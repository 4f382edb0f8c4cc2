r"""Proximal Newton on working sets of columns, for losses of margins with an elastic penalty.

The mathematics is in :mod:`trueline.solvers.proximal_newton.columns` and its models. Made for many
columns, most of which end at zero, and for the coupled scores of softmax regression.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from trueline.certificates.base import Certificate
from trueline.certificates.choose import Prover
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
from trueline.solvers.newton.dense.descent import better_by_curvature
from trueline.solvers.newton.shared_hessian import is_worth_sharing, solve_with_shared_hessian
from trueline.solvers.proximal_newton.columns import ColumnDescent
from trueline.solvers.transformed import (
    is_separable,
    is_unbalanced,
    solve_balanced,
    solve_one_by_one,
)
from trueline.wording import counted

__all__ = ["WorkingSetNewton"]

Array = NDArray[np.float64]

# Weights that differ by many powers of ten keep gaps of this share from being proven.
_UNSEEN = 1e-6
_MAX_ITER = 200
# The gap that is looked for, relative to the target: proofs add a little to it. Where more digits
# are asked for than the estimators' defaults do, one more step costs little.
_ABOUT, _FINE, _ORDINARY, _COUPLED = 0.5, 1e-4, 9e-9, 1e-7
# Violations this much smaller than the first are made of rounding, if they do not fall any more.
_ROUNDING = 1e-9
_STEPS, _LEFT = 8, 0.1
_ROUNDS, _SWEEPS = 8.0, 200.0


class WorkingSetNewton(Solver):
    """Proximal Newton steps by coordinate descent over the columns that matter."""

    name = "working_set_newton"
    title = "proximal Newton on working sets, column by column"
    needs_loss = frozenset({"smooth", "margins"})
    needs_penalty = frozenset({"coordinates", "elastic"})
    is_direct = False
    proof = "tangent or curvature"

    def refuses(self, facts: Facts) -> str | None:
        if facts.k > 1 and facts.strengths > 1:
            return "needs the same penalty for all targets"
        return None

    def cost(self, facts: Facts) -> Cost:
        sweep = 5e-9 * facts.nonzeros * facts.k + 1e-8 * facts.n * facts.k
        seconds = 10 * CALL + _SWEEPS * sweep + 3 * _ROUNDS * iteration_seconds(facts)
        memory = 8.0 * (2.0 * facts.nonzeros + 6.0 * facts.n * facts.k + 6.0 * facts.d * facts.k)
        return Cost(4 * _SWEEPS * facts.nonzeros * facts.k, _SWEEPS, memory, seconds)

    def solve_set(self, problems: ProblemSet, options: Options) -> list[Solution]:
        penalties = [member.penalty for member in problems.members]
        is_alike = all(np.ndim(p.linear) == 0 and np.ndim(p.curvature) == 0 for p in penalties)
        is_coupled = "coupled" in problems.loss.capabilities
        facts = Facts.of(problems.on_all_rows(0))
        if not (is_alike and is_coupled and is_worth_sharing(facts)):
            return super().solve_set(problems, options)
        return solve_with_shared_hessian(problems, options.tol, self.name)

    def solve(self, problem: Problem, options: Options, monitor: Monitor) -> Solution:
        if is_separable(problem):
            return solve_one_by_one(self, problem, options, monitor)
        if problem.n_targets > 1 and is_unbalanced(problem):
            return solve_balanced(self, problem, options, monitor)
        d, k = problem.n_features, problem.n_targets
        V = np.zeros((d + 1, k))
        if problem.fit_intercept:
            V[-1] = best_constant(problem)
        if options.start is not None:
            V[:-1] = options.start
            V[-1] = V[-1] if options.start_intercept is None else options.start_intercept
        target = target_gap(problem, options.tol)
        strengths = (
            _per_column(problem.penalty.linear, d),
            _per_column(problem.penalty.curvature, d),
        )
        descent = ColumnDescent(problem, *strengths, V)
        # The last steps are Newton's: where many digits are asked for, one more costs little.
        ordinary = _COUPLED if descent.is_coupled else _ORDINARY
        share = _ABOUT if options.tol >= ordinary else _FINE
        iteration = _Iteration(problem, descent, target, share, monitor.is_watching)
        limit = options.max_iter or _MAX_ITER
        status, count, _ = run(iteration, monitor, max_iter=limit, target_gap=target)
        certificate = iteration.certify()
        if certificate.gap > target:
            certificate = better_by_curvature(problem, certificate)
            status = Status.CONVERGED if certificate.gap <= target else status
        notes = []
        close = certificate.gap <= target + _UNSEEN * certificate.objective
        if status is Status.STALLED and descent.gap <= target and close:
            # Nothing is left to do: what is not proven is what rounding keeps from being proven.
            status = Status.CONVERGED
            notes = ["the gradient vanished; the remaining gap is at rounding level"]
        return Solution(
            iteration.coef,
            iteration.intercept,
            status,
            self.name,
            n_iter=count,
            proof=certificate,
            trace=monitor.trace,
            notes=[
                f"{counted(descent.steps, 'proximal Newton step')}, "
                f"{counted(descent.sweeps, 'sweep')} of coordinate descent",
                *notes,
            ],
        )


def _per_column(strength: float | Array, d: int) -> Array:
    """One strength for each column."""
    values = np.asarray(strength, dtype=np.float64)
    is_own = values.ndim == 2 and values.shape[0] == d
    return values[:, 0].copy() if is_own else np.full(d, values.max())


class _Iteration(Iteration):
    """A step of the loop is a few proximal Newton steps, until little of the violation is left."""

    def __init__(
        self,
        problem: Problem,
        descent: ColumnDescent,
        target: float,
        share: float,
        is_watched: bool,
    ) -> None:
        self._problem, self._descent, self._is_watched = problem, descent, is_watched
        self._enough, self._least = share * target, _FINE * target
        self._prover: Prover | None = None
        self._known: tuple[Array, Certificate] | None = None
        self._best, self._idle = math.inf, 0
        self._proven = math.inf
        self._first, self._lowest = descent.violation, math.inf
        self._expose()

    def _expose(self) -> None:
        self.coef, self.intercept = self._descent.coefficients()

    def step(self) -> None:
        before = self._descent.violation
        for _ in range(_STEPS):
            has_moved = self._descent.step()
            left = self._descent.violation
            if not has_moved or left <= _LEFT * before or self._descent.gap <= self._enough:
                break
        self._expose()
        falls = self._descent.objective < self._lowest * (1 - 1e-5)
        self._idle = 0 if falls or left < 0.5 * self._best else self._idle + 1
        self._best, self._lowest = min(self._best, left), min(self._lowest, self._descent.objective)
        is_rounding = left <= _ROUNDING * self._first
        self.is_stalled = self._idle > (1 if is_rounding or not has_moved else 10)

    @property
    def prover(self) -> Prover:
        """Made when it is first needed: it reads the data twice."""
        if self._prover is None:
            self._prover = Prover(self._problem)
        return self._prover

    def certify(self) -> Certificate:
        """The certificate of the present point."""
        if self._known is None or self._known[0] is not self.coef:
            self._known = self.coef, self.prover.certify(self.coef, self.intercept)
        return self._known[1]

    def progress(self) -> Progress:
        objective = self._descent.objective
        if not (self._is_watched or self.is_stalled or self._descent.gap <= self._enough):
            return Progress(objective, math.inf)
        has_level = self._problem.fit_intercept
        if not self._is_watched and has_level:
            self._descent.balance()
            self._expose()
        gap = self.certify().gap
        if not (self._is_watched or has_level) and gap > self._enough:
            self._descent.balance()  # scores afresh: rounding may be what keeps the gap open
        if self._descent.gap <= self._least:
            # As good as it gets, and the proof is not better than the last: that is rounding.
            self.is_stalled = self.is_stalled or gap > 0.5 * self._proven
            self._proven = min(gap, self._proven)
        if self._descent.gap <= self._enough:
            self._enough = self._least  # where the proof asks for more, this is what it gets
        return Progress(objective, gap)
