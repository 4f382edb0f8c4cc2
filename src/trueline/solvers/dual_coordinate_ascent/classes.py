r"""Coordinate descent on the dual of the multiclass hinge: all classes of a row at once.

With the penalty a/2 ||W||^2 the optimal coefficients are W = sum_i x_i beta_i^T with
beta_i = -s_i u_i / a for the derivatives u_i of the loss. Intercepts are found by multipliers, as
in :mod:`trueline.solvers.dual_coordinate_ascent.solver`.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from trueline.certificates.duality import certify_dual
from trueline.design import AugmentedDesign
from trueline.problem import Problem
from trueline.solution import Solution, Status
from trueline.solvers.base import Cost, Facts, Options, Solver
from trueline.solvers.costs import CALL
from trueline.solvers.dual_coordinate_ascent.iteration import random_start, with_constant
from trueline.solvers.dual_coordinate_ascent.rows import Rows
from trueline.solvers.iterative import target_gap
from trueline.solvers.loop import Iteration, Monitor, Progress, run

__all__ = ["DualClassDescent"]

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
        iteration = _Iteration(problem, options)
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
        return Solution(
            W, b, status, self.name, n_iter=n_iter, proof=certificate, trace=monitor.trace
        )


class _Iteration(Iteration):
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
            level = self.centre + self.rows.constant * self.W[-1]
            self.intercept = level - self.mean @ self.coef

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
            # Good on the active rows: look at all of them again, and then more closely.
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
