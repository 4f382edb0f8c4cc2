r"""Conjugate gradients on the normal equations, which are never formed.

    minimise  1/2 || S^(1/2) (y_c - X_c w) ||^2 + 1/2 || A^(1/2) w ||^2

With r = y_c - X_c w and g = X_c^T S r - A w (minus the gradient), preconditioned by
D = diag(X_c^T S X_c + A) (Jacobi: columns of equal norm):

    q = X_c p,  step = g.D^{-1}g / (q.S q + p.A p)
    w += step p,  r -= step q,  g = X_c^T S r - A w
    p = D^{-1} g + (g.D^{-1}g / old g.D^{-1}g) p

This is CGLS (M. R. Hestenes, E. Stiefel, "Methods of conjugate gradients for solving linear
systems", J. Res. Nat. Bur. Standards 49 (1952) 409-436, section 10; A. Bjorck, "Numerical Methods
for Least Squares Problems", 1996, algorithm 7.4.1): the residual of the rows is carried along, so
that accuracy does not suffer from the squared condition number of X^T X.

All targets iterate together, each with steps of its own. X_c = X - 1 m^T is applied implicitly.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from trueline.certificates.choose import Prover
from trueline.problem import Problem
from trueline.problem_set import ProblemSet
from trueline.solution import Solution
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
from trueline.solvers.iterative import (
    ProofSchedule,
    best_constant,
    centred_design,
    finish,
    iteration_cost,
    krylov_steps,
    make_prover,
    target_gap,
)
from trueline.solvers.least_squares.quadratic import curvature_matrix
from trueline.solvers.least_squares.shifted import can_shift, solve_shifted

__all__ = ["ConjugateGradient"]

Array = NDArray[np.float64]

_EPS = float(np.finfo(np.float64).eps)
# Of many strengths on the same rows each takes this share of the products that one alone takes, and
# so many seconds for each coefficient and step.
_OF_A_PATH, _VECTORS = 0.1, 2e-9


class ConjugateGradient(Solver):
    """Conjugate gradients for least squares and ridge, on dense or sparse data.

    Starting from zero without a penalty, the iterates stay in the row space. With at least as many
    columns as rows that count no preconditioner is used then: the answer is the one of least norm.
    """

    name = "conjugate_gradient"
    title = "conjugate gradients on the rows, Jacobi preconditioner"
    needs_loss = frozenset({"quadratic"})
    needs_penalty = frozenset({"quadratic"})
    is_direct = False
    proof = "quadratic"

    def cost(self, facts: Facts) -> Cost:
        # Without a penalty LSMR finds the answer of least norm, which Jacobi scaling here spoils.
        doubt = 1.5 if facts.unpenalised else 1.0
        return iteration_cost(facts, doubt * krylov_steps(facts))

    def solve(self, problem: Problem, options: Options, monitor: Monitor) -> Solution:
        prover = make_prover(problem)
        target = target_gap(problem, options.tol)
        schedule = ProofSchedule(prover, target, options.tol, monitor.is_watching)
        iteration = _Iteration(problem, prover, schedule)
        # In exact arithmetic d steps suffice; rounding delays them.
        max_iter = options.max_iter or max(1000, 4 * problem.n_features)
        outcome = run(iteration, monitor, max_iter=max_iter, target_gap=target)
        return finish(problem, prover, iteration, outcome, monitor, self.name)

    def set_cost(self, facts: Facts, count: int) -> Cost:
        if not facts.has_one_strength:
            return super().set_cost(facts, count)
        # The steps of one problem serve all strengths of a path.
        one, steps = self.cost(facts), krylov_steps(facts)
        vectors = _VECTORS * steps * facts.d * facts.k
        seconds = CALL + count * (_OF_A_PATH * one.seconds + vectors)
        return Cost(count * one.flops, count * one.passes, count * one.memory, seconds)

    def solve_set(self, problems: ProblemSet, options: Options) -> list[Solution]:
        if not can_shift(problems):
            return super().solve_set(problems, options)
        return solve_shifted(problems, options.tol, self.name)


class _Iteration(Iteration):
    """w, r, g, p of the module's text; arrays have one column per target."""

    def __init__(self, problem: Problem, prover: Prover, schedule: ProofSchedule) -> None:
        d, k = problem.n_features, problem.n_targets
        self.problem, self.prover, self.schedule = problem, prover, schedule
        self.design = centred_design(problem, prover.mean)
        self.curvature = curvature_matrix(problem)
        self.centre = best_constant(problem)
        self.inverse = _inverse_diagonal(problem, prover, self.curvature)
        self.coef = np.zeros((d, k))
        self.intercept = self.centre.copy()
        self._start()
        # A gradient this much smaller than the first is zero; its ratios would be noise.
        self.nothing = 1e-100 * self.square

    def _start(self) -> None:
        """r, g and p from the coefficients alone."""
        self.residual = self.problem.target - self.centre - self.design.matvec(self.coef)
        self._correlate()
        self.direction = self.inverse * self.descent

    def _correlate(self) -> None:
        weighted = self.problem.weigh(self.residual)
        self.descent = self.design.rmatvec(weighted) - self.curvature * self.coef
        self.square = np.sum(self.descent * self.inverse * self.descent, axis=0)

    def step(self) -> None:
        p = self.direction
        q = self.design.matvec(p)
        curvature = np.sum(self.problem.weigh(q * q), axis=0) + np.sum(
            self.curvature * p * p, axis=0
        )
        before = self.square
        # The book writes g.M g for g.p, which it equals in exact arithmetic. With g.p the objective
        # cannot rise, not even when rounding has spoilt the directions.
        along = np.sum(self.descent * p, axis=0)
        with np.errstate(divide="ignore", invalid="ignore"):
            length = np.where((curvature > 0) & (before > self.nothing), along / curvature, 0.0)
        self.coef = self.coef + length * p
        self.residual -= length * q
        self._correlate()
        with np.errstate(divide="ignore", invalid="ignore"):
            keep = np.where(before > self.nothing, self.square / before, 0.0)
        self.direction = self.inverse * self.descent + keep * p

    def progress(self) -> Progress:
        self.intercept = self.centre - self.prover.mean @ self.coef
        squares = self.problem.weigh(self.residual**2).sum()
        objective = 0.5 * float(squares) + self.problem.penalty.value(self.coef)
        norm = float(np.sqrt(self.square.sum()))
        progress = self.schedule.progress(self.coef, self.intercept, norm, objective)
        if self.schedule.wants_restart:
            self._start()
        self.is_stalled = self.schedule.is_stalled
        self.is_settled = self.schedule.is_settled
        return progress


def _inverse_diagonal(problem: Problem, prover: Prover, curvature: Array) -> Array:
    """D^{-1}, or ones where a preconditioner would change which answer has the least norm."""
    rows = problem.n_samples
    if problem.weights is not None:
        rows = int(np.count_nonzero(problem.weights))
    if problem.n_features > rows - problem.fit_intercept and not curvature.all():
        return np.ones_like(curvature)
    shift = prover.mean if problem.fit_intercept else None
    squares = problem.design.column_squares(problem.weights, shift)
    # Centred squares of a constant column are rounding noise: its inverse would amplify it.
    noise = problem.n_samples * _EPS * prover.column_norms**2
    diagonal = np.where(squares > noise, squares, 0.0)[:, None] + curvature
    # Nor does a penalty below that noise hold a coefficient.
    diagonal = np.where(diagonal > (64 * _EPS * prover.column_norms[:, None]) ** 2, diagonal, 0.0)
    with np.errstate(divide="ignore"):
        return np.where(diagonal > 0, 1.0 / diagonal, 0.0)
