r"""Coordinate descent on the dual: rows are visited one by one, and each costs its non-zeros.

The dual is written with the opposite sign, as a function to be minimised.

With the penalty a/2 ||w||^2 the optimal coefficients are w = sum_i beta_i x_i with
beta_i = -s_i u_i / a for the derivatives u of the loss, and with l*(u) = u y + e abs(u) + h/2 u^2
on [lo, hi] (:mod:`trueline.solvers.dual_coordinate_descent.box`; the entropies of logistic
regression are in :mod:`trueline.solvers.dual_coordinate_descent.logistic`) the dual is

    minimise  1/2 || sum_i beta_i x_i ||^2
              + sum_i (e abs(beta_i) + a h / (2 s_i) beta_i^2 - y_i beta_i)
    over      -s_i hi / a <= beta_i <= -s_i lo / a.

An intercept asks for sum_i beta_i = 0. It is found by the method of multipliers (M. J. D. Powell,
1969; M. R. Hestenes, J. Optim. Theory Appl. 4 (1969) 303-320): a constant column of size k stands
for its distance from a centre, b = centre + k w_last, and the centre follows after each sweep.
Where it does not change any more, w_last = k sum_i beta_i is zero. Dense columns are centred: with
an intercept that changes nothing but the number of sweeps.

Of the multiclass hinge all classes of a row are moved at once. With the penalty a/2 ||W||^2 the
optimal coefficients are W = sum_i x_i beta_i^T with beta_i = -s_i u_i / a for the derivatives u_i
of the loss. Intercepts are found by multipliers too.
"""

from __future__ import annotations

import math
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from trueline.certificates.duality import certify_dual, certify_duality
from trueline.design import AugmentedDesign
from trueline.numerics.blas import run_strands
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
    run,
)
from trueline.solvers.dual_coordinate_descent.box import (
    SMALL,
    BoxIteration,
    trial_sweeps,
)
from trueline.solvers.dual_coordinate_descent.logistic import LogisticIteration
from trueline.solvers.dual_coordinate_descent.rows import (
    DualIteration,
    Rows,
    SharedRows,
    random_start,
    with_constant,
)
from trueline.solvers.iterative import target_gap
from trueline.solvers.transformed import only, options_for

# Several targets are taken one after the other where Gram matrices, which keep more digits, would
# be larger than this, and losses have corners, so that Newton's method has no derivatives.
_MANY_COLUMNS = 4000
# One trial in so many finds the answer, and the others come on top.
_TRIALS = 3


class DualCoordinateDescent(Solver):
    """One dual variable at a time, in random order, with shrinking."""

    name = "dual_coordinate_descent"
    title = "coordinate descent on the dual, row by row"
    needs_loss = frozenset({"dual_box"})
    needs_penalty = frozenset({"quadratic"})
    is_direct = False
    hands_over = True
    proof = "duality"
    # Of a step beside the products with its row; and what the last digits of small data cost.
    row_seconds: ClassVar[float] = 2e-8
    last_sweeps: ClassVar[float] = 40.0
    iterates: ClassVar[type[DualIteration]] = BoxIteration

    def refuses(self, facts: Facts) -> str | None:
        if facts.fit_intercept:
            return "needs every coefficient penalised, the intercept too"
        return self._refuses_penalty(facts)

    def _refuses_penalty(self, facts: Facts) -> str | None:
        if not facts.has_one_strength:
            return "needs one positive strength"
        if facts.k > 1 and not facts.is_sparse and (facts.is_smooth or facts.d <= _MANY_COLUMNS):
            return "needs one target or sparse rows"
        return None

    def cost(self, facts: Facts) -> Cost:
        sweeps = facts.k * self._sweeps(facts)
        each = 2e-5 + 4e-9 * facts.nonzeros + self.row_seconds * facts.n
        seconds = CALL + sweeps * each
        if math.isfinite(facts.heaviness):
            seconds += 20 * CALL
            if facts.nonzeros <= SMALL:
                seconds += self.last_sweeps * (each + 1e-7 * facts.n)
        memory = 80.0 * facts.n + (0 if facts.itemsize == 8 else 8.0 * facts.nonzeros)
        return Cost(4 * sweeps * facts.nonzeros, sweeps, memory, seconds)

    def _sweeps(self, facts: Facts) -> float:
        """How many sweeps one target takes."""
        if math.isfinite(facts.heaviness):
            # What the losses add to the curvature of the penalty, on average over the columns.
            stiffness = facts.heaviness * facts.n / max(1, facts.d)
            sweeps = 6.0 + 3.5 * math.sqrt(stiffness) + 0.2 * stiffness
            return sweeps if facts.d <= facts.n else min(sweeps, 100.0)
        if facts.d > facts.n:
            return 100.0 if facts.is_sparse else 500.0
        # With fewer columns than rows the dual is singular, and the last digits come slowly, but
        # for targets far apart: this is soon seen, and handed over.
        trial = 0.0 if facts.is_smooth else trial_sweeps(facts.n, facts.d, facts.nonzeros)
        return _TRIALS * trial or 3000.0

    def solve(self, problem: Problem, options: Options, monitor: Monitor) -> Solution:
        shared = SharedRows.of(problem)

        def solve_for(t: int) -> tuple[DualIteration, Status, int]:
            own = problem if problem.n_targets == 1 else only(problem, t)
            return self._descend(own, options_for(options, t), monitor, shared)

        strand = map if monitor.is_watching or problem.n_targets == 1 else run_strands
        found = list(strand(solve_for, range(problem.n_targets)))
        iterations = [iteration for iteration, _, _ in found]
        statuses = [status for _, status, _ in found]
        columns = [iteration.known_scores() for iteration in iterations]
        known = [column for column in columns if column is not None]
        scores = np.hstack(known) if len(known) == len(columns) else None
        if len(found) == 1:
            certificate = iterations[0].certify()
        else:
            W = np.hstack([iteration.coef for iteration in iterations])
            b = np.concatenate([iteration.intercept for iteration in iterations])
            u = np.hstack([iteration.dual() for iteration in iterations])
            target = sum(iteration.target for iteration in iterations)
            certificate = certify_duality(problem, W, b, u, target, scores)
        status = next((status for status in statuses if not status.is_final), statuses[0])
        if certificate.gap <= sum(iteration.target for iteration in iterations):
            status = Status.CONVERGED
        extra = {} if scores is None else {"scores": scores}
        notes = [f"{problem.n_targets} targets, each by itself"] if len(found) > 1 else []
        steps = max(n_iter for _, _, n_iter in found)
        return monitor.solution(certificate, status, self.name, steps, notes=notes, extra=extra)

    def _descend(
        self, problem: Problem, options: Options, monitor: Monitor, shared: SharedRows
    ) -> tuple[DualIteration, Status, int]:
        """The multipliers of one target."""
        iteration = self.iterates(problem, options, monitor.is_watching, shared)
        most = options.max_iter or 10_000
        is_alone = not (monitor.is_watching or math.isfinite(monitor.time_limit))
        n_iter = iteration.begin(most) if is_alone else 0
        if iteration.is_settled:
            iteration.expose()
            return iteration, Status.SETTLED, n_iter
        status, steps, _ = run(
            iteration,
            monitor,
            max_iter=most - n_iter,
            target_gap=iteration.enough,
            patience=1000,
        )
        n_iter += steps
        if status in (Status.CONVERGED, Status.SETTLED):
            iteration.refine()
        elif status is not Status.HANDED_OVER:
            iteration.choose()
        iteration.expose()
        return iteration, status, n_iter


class BalancedDualDescent(DualCoordinateDescent):
    """The same with an intercept, for losses of margins: the multipliers of both classes balance.

    With targets of all sizes the multipliers would take their time.
    """

    name = "balanced_dual_descent"
    title = "coordinate descent on the dual, row by row, and multipliers for the intercept"
    needs_loss = frozenset({"dual_box", "margins"})

    def refuses(self, facts: Facts) -> str | None:
        if not facts.fit_intercept:
            return "is for fits with an intercept"
        return self._refuses_penalty(facts)


class EntropyDualDescent(DualCoordinateDescent):
    """The same where the conjugate of the loss is an entropy: logistic regression.

    With or without an intercept. Sweeps that have become slow hand over to the next solver of the
    plan, which starts where they end.
    """

    name = "entropy_dual_descent"
    title = "coordinate descent on the dual, row by row, one probability at a time"
    needs_loss = frozenset({"dual_entropy"})
    row_seconds, last_sweeps = 2e-7, 0.0
    iterates = LogisticIteration

    def refuses(self, facts: Facts) -> str | None:
        if not facts.is_sparse:
            return "needs sparse rows"
        return self._refuses_penalty(facts)


Array = NDArray[np.float64]

# Rows of many columns have little to do with each other; those of few need many rounds.
_SWEEPS, _NARROW_SWEEPS = 300.0, 3000.0
_CHECK_EVERY = 5


class DualClassDescent(Solver):
    """The multipliers of one row at a time, in random order, with shrinking."""

    name = "dual_class_descent"
    title = "coordinate descent on the dual, all classes of a row at once"
    needs_loss = frozenset({"dual_classes"})
    needs_penalty = frozenset({"quadratic"})
    is_direct = False
    proof = "duality"

    def refuses(self, facts: Facts) -> str | None:
        if not facts.has_one_strength:
            return "needs one positive strength"
        return None

    def cost(self, facts: Facts) -> Cost:
        each = 2e-5 + facts.k * (2e-9 * facts.nonzeros + 4e-8 * facts.n)
        sweeps = _NARROW_SWEEPS if facts.d < facts.n and not facts.is_sparse else _SWEEPS
        flops = 4 * sweeps * facts.nonzeros * facts.k
        return Cost(flops, sweeps, 8.0 * facts.n * (2 * facts.k + 4), CALL + sweeps * each)

    def solve(self, problem: Problem, options: Options, monitor: Monitor) -> Solution:
        iteration = _ClassIteration(problem, options)
        status, n_iter, _ = run(
            iteration,
            monitor,
            max_iter=options.max_iter or 10_000,
            target_gap=iteration.target,
            check_every=_CHECK_EVERY,
            patience=1000,
        )
        W, b = iteration.coef, iteration.intercept
        certificate = certify_dual(problem, W, b, iteration.dual())
        if status is not Status.CONVERGED and certificate.gap <= iteration.target:
            status = Status.CONVERGED
        return monitor.solution(certificate, status, self.name, n_iter)


class _ClassIteration(Iteration):
    """beta and W; a step is a sweep over the rows that are still active."""

    def __init__(self, problem: Problem, options: Options) -> None:
        self.problem, self.target = problem, target_gap(problem, options.tol)
        n, k = problem.target.shape
        self.strength = float(np.max(problem.penalty.curvature))
        self.weights = np.ones(n) if problem.weights is None else problem.weights
        design, self.mean = with_constant(problem)
        self.rows = Rows(design)
        self.own = problem.target.argmax(axis=1).astype(np.int64)
        self.bounds = self.weights / self.strength
        self.beta, self.W = np.zeros((n, k)), np.zeros((self.rows.size, k))
        self.centre = np.zeros(k)
        self.order, self.active = np.arange(n), n
        self.state = random_start(options)
        self.threshold, self.first, self.inner = np.inf, 0.0, 0.1
        self._expose()

    def _expose(self) -> None:
        problem = self.problem
        has_constant = isinstance(problem.design, AugmentedDesign)
        self.coef = self.W.copy() if has_constant else self.W[:-1].copy()
        self.intercept = np.zeros(self.W.shape[1])
        if problem.fit_intercept:
            intercept = self.centre + self.rows.constant * self.W[-1]
            self.intercept = intercept - self.mean @ self.coef

    def step(self) -> None:
        self.active, worst = self.rows.class_sweep(
            self.own,
            self.bounds,
            self.rows.squares,
            self.centre,
            self.beta,
            self.W,
            self.order,
            self.active,
            self.threshold,
            self.state,
        )
        self.first = max(self.first, worst)
        self.threshold = worst if worst > 0 else np.inf
        if worst <= self.inner * self.first:
            # Good on the active rows: all rows become active again, to a smaller violation.
            self.active, self.threshold = len(self.beta), np.inf
            self.inner *= 0.3
        if self.problem.fit_intercept:
            self.centre += self.rows.constant * self.W[-1]

    def dual(self) -> Array:
        """The derivatives u of the losses."""
        return -self.strength * self.beta / self.weights[:, None]

    def progress(self) -> Progress:
        self._expose()
        objective = self.problem.objective(self.coef, self.intercept)
        square = (self.W**2).sum()
        if self.problem.fit_intercept:
            # Without the constant; what the sums of beta miss costs the intercepts they stand for.
            square -= (self.W[-1] ** 2).sum()
        gain = float(self.beta[np.arange(len(self.own)), self.own].sum())
        lower = self.strength * (gain - 0.5 * float(square))
        if self.problem.fit_intercept:
            sums = np.abs(self.W[-1] / self.rows.constant)
            lower -= 1e3 * self.strength * float(sums @ (1 + np.abs(self.intercept)))
        return Progress(objective, max(objective - lower, 0.0))
