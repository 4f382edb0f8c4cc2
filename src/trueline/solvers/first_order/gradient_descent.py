r"""Batch gradient descent, as the textbook writes it.

    w  <-  w - eta (X^T S l'(X w + b) + grad penalty(w))
    b  <-  b - eta sum_i s_i l'(x_i.w + b)

from w = 0, b = 0. With eta <= 1 / L, L a bound on the curvature of the objective, each step lowers
the objective, and after t steps P - P* <= L ||w*||^2 / (2 t) (Y. Nesterov, "Introductory Lectures
on Convex Optimization", 2004, corollary 2.1.2). For smooth losses

    L = curvature_bound * largest eigenvalue of [X 1]^T S [X 1] + largest penalty curvature.

Every step computes the whole gradient, so that objective and proven gap come with it.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from trueline.certificates.choose import Prover
from trueline.problem import Problem
from trueline.solution import Solution
from trueline.solvers.base import Cost, Facts, Options, Solver
from trueline.solvers.iterative import (
    finish,
    iteration_cost,
    largest_eigenvalue,
    make_prover,
    target_gap,
)
from trueline.solvers.loop import Iteration, Monitor, Progress, run

__all__ = ["GradientDescent"]

Array = NDArray[np.float64]

# The eigenvalue is found from below: a percent more keeps the step on the safe side.
_SAFETY = 1.01


class GradientDescent(Solver):
    """Batch gradient descent with a constant step, for any smooth loss and penalty."""

    name = "gradient_descent"
    title = "batch gradient descent, constant step"
    needs_loss = frozenset({"smooth"})
    needs_penalty = frozenset({"smooth"})
    is_direct = False
    is_textbook = True
    proof = "quadratic, duality or bounded"

    def cost(self, facts: Facts) -> Cost:
        return iteration_cost(facts, 1000.0)

    def solve(self, problem: Problem, options: Options, monitor: Monitor) -> Solution:
        eta = options.eta0 or 1.0 / objective_curvature(problem)
        prover = make_prover(problem)
        iteration = _Iteration(problem, prover, eta)
        with np.errstate(over="ignore", invalid="ignore"):  # divergence is a status here
            outcome = run(
                iteration,
                monitor,
                max_iter=options.max_iter or 10_000,
                target_gap=target_gap(problem, options.tol),
                patience=1000,
            )
        notes = [f"step size {eta:.6g}"]
        return finish(problem, prover, iteration, outcome, monitor, self.name, notes)


def objective_curvature(problem: Problem) -> float:
    """L of the module's text (one for an objective without any curvature)."""
    largest = largest_eigenvalue(problem.design, problem.weights, problem.fit_intercept)
    curvature = float(np.max(problem.penalty.curvature, initial=0.0))
    return _SAFETY * (problem.loss.curvature_bound * largest + curvature) or 1.0


class _Iteration(Iteration):
    """The current point, and its evaluation: made once, used for progress and for the step."""

    def __init__(self, problem: Problem, prover: Prover, eta: float) -> None:
        self.problem, self.prover, self.eta = problem, prover, eta
        self.coef = np.zeros((problem.n_features, problem.n_targets))
        self.intercept = np.zeros(problem.n_targets)
        self.at = prover.evaluate(self.coef, self.intercept)

    def step(self) -> None:
        gradient = self.at.correlation + self.problem.penalty.gradient(self.coef)
        before = self.coef, self.intercept
        self.coef = self.coef - self.eta * gradient
        if self.problem.fit_intercept:
            self.intercept = self.intercept - self.eta * self.at.slope
        self.is_stalled = np.array_equal(before[0], self.coef) and np.array_equal(
            before[1], self.intercept
        )
        self.at = self.prover.evaluate(self.coef, self.intercept)

    def progress(self) -> Progress:
        gap = self.prover.gap(self.at, self.coef, self.intercept)
        return Progress(float(self.at.objective.sum()), gap)
