r"""Newton's method for smooth losses and penalties with a known curvature.

    (X^T S D X + A) step = gradient,      D = diag(l''(z)),  A the penalty's curvature

X is centred at its means m, and the intercept takes part as a column of ones: its own step is
then the one found minus m.(step of w). Steps are halved until the objective falls.
"""

import numpy as np

from trueline.certificates.choose import Prover
from trueline.problem import Problem
from trueline.solution import Solution
from trueline.solvers.base import (
    GRAM_RATE,
    Cost,
    Facts,
    Iteration,
    Monitor,
    Options,
    Progress,
    Solver,
    run,
)
from trueline.solvers.iterative import best_constant, finish, make_prover, target_gap

__all__ = ["Newton"]


class Newton(Solver):
    """Newton steps with halving, for few columns."""

    name = "newton"
    title = "Newton's method on the normal equations"
    needs_loss = frozenset({"smooth", "curvature"})
    needs_penalty = frozenset({"smooth", "quadratic"})
    is_direct = False
    proof = "quadratic, duality or bounded"

    def refuses(self, facts: Facts) -> str | None:
        """Every step makes one matrix of d x d per target."""
        return "more than 2000 columns" if facts.d > 2000 else None

    def cost(self, facts: Facts) -> Cost:
        flops = 20.0 * facts.k * facts.n * facts.d**2  # about ten steps
        return Cost(flops, 20.0, 8.0 * facts.d**2, flops / GRAM_RATE)

    def solve(self, problem: Problem, options: Options, monitor: Monitor) -> Solution:
        prover = make_prover(problem)
        iteration = _Iteration(problem, prover)
        outcome = run(
            iteration,
            monitor,
            max_iter=options.max_iter or 100,
            target_gap=target_gap(problem, options.tol),
            patience=10,
        )
        return finish(problem, prover, iteration, outcome, monitor, self.name)


class _Iteration(Iteration):
    def __init__(self, problem: Problem, prover: Prover) -> None:
        self.problem, self.prover = problem, prover
        self.coef = np.zeros((problem.n_features, problem.n_targets))
        self.intercept = best_constant(problem)

    def step(self) -> None:
        problem, W, b = self.problem, self.coef, self.intercept
        z = problem.scores(W, b)
        u = problem.weigh(problem.loss.gradient(problem.target, z))
        own_curvature = problem.weigh(problem.loss.curvature(problem.target, z))
        mean = self.prover.mean  # zero without an intercept
        X = np.hstack([problem.design.toarray() - mean, np.ones((len(z), 1))])
        gradient = X.T @ u
        gradient[:-1] += problem.penalty.gradient(W)
        curvature = np.broadcast_to(problem.penalty.curvature, W.shape)
        move = np.zeros_like(gradient)
        free = slice(None) if problem.fit_intercept else slice(-1)
        for t in range(problem.n_targets):
            H = (X * own_curvature[:, [t]]).T @ X + np.diag(np.append(curvature[:, t], 0.0))
            move[free, t] = np.linalg.lstsq(H[free, free], gradient[free, t], rcond=1e-13)[0]
        move[-1] -= mean @ move[:-1]
        before, share = problem.objective(W, b), 1.0
        for _ in range(40):
            self.coef, self.intercept = W - share * move[:-1], b - share * move[-1]
            if problem.objective(self.coef, self.intercept) <= before:
                return
            share /= 2
        self.coef, self.intercept, self.is_stalled = W, b, True

    def progress(self) -> Progress:
        at = self.prover.evaluate(self.coef, self.intercept)
        return Progress(float(at.objective.sum()), self.prover.gap(at, self.coef, self.intercept))
