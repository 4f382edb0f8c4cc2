r"""Gradient steps with all rows: FISTA, and gradient descent as the textbook writes it.

FISTA takes accelerated proximal gradient steps, restarted when momentum points the wrong way.

    minimise  f(w, b) + p(w),      f smooth, p with an exact proximal step

    w_new = prox(v - g / L, 1 / L),      g the gradient of f at v
    t_new = (1 + sqrt(1 + 4 t^2)) / 2
    v     = w_new + (t - 1) / t_new (w_new - w)

(A. Beck, M. Teboulle, "A fast iterative shrinkage-thresholding algorithm for linear inverse
problems", SIAM J. Imaging Sci. 2 (2009) 183-202, eqs. 4.1-4.3). Momentum is dropped, t = 1, when
(v - w_new).(w_new - w) > 0 (B. O'Donoghue, E. Candes, "Adaptive restart for accelerated gradient
schemes", Found. Comput. Math. 15 (2015) 715-732, eq. 12); each target does so on its own.

The intercept is a coordinate of its own: about the column means, scores are X_c w + b', and since
X_c^T S 1 = 0 the majorising Hessian c [X_c 1]^T S [X_c 1] (c the loss's curvature bound) is block
diagonal. So b' takes steps 1 / (c sum_i s_i) while w takes steps 1 / L, L = c lambda_max(X_c^T S
X_c). The eigenvalue is estimated from below; a step that breaks

    c || change of scores ||_S^2  <=  L || change of v ||^2 + c sum_i s_i (change of b')^2,

which implies the descent inequality of any such loss, is repeated with a larger L.

Batch gradient descent takes the steps

    w  <-  w - eta (X^T S l'(X w + b) + grad penalty(w))
    b  <-  b - eta sum_i s_i l'(x_i.w + b)

from w = 0, b = 0 unless a start is given. With eta <= 1 / L, L a bound on the curvature of the
objective, each step lowers the objective, and after t steps from zero P - P* <= L ||w*||^2 / (2 t)
(Y. Nesterov, "Introductory Lectures on Convex Optimization", 2004, corollary 2.1.2). For smooth
losses

    L = curvature_bound * largest eigenvalue of [X 1]^T S [X 1] + largest penalty curvature.

Every step computes the whole gradient, so that objective and proven gap come with it.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from trueline.certificates.choose import Prover
from trueline.problem import Problem
from trueline.solution import Solution
from trueline.solvers.base import Cost, Facts, Iteration, Monitor, Options, Progress, Solver, run
from trueline.solvers.iterative import (
    best_constant,
    centred_design,
    finish,
    iteration_cost,
    krylov_steps,
    largest_eigenvalue,
    make_prover,
    starting_point,
    target_gap,
)

Array = NDArray[np.float64]

# A proof costs as much as a step; every tenth keeps it to a tenth of the time.
_CHECK_EVERY = 10
_GROWTH = 1.5
_EPS = float(np.finfo(np.float64).eps)
# Rounding of the two sides of the inequality above.
_SLACK = 1.0 + 1e-9


class ProximalGradient(Solver):
    """FISTA with adaptive restart, for smooth losses with any penalty that has a proximal step."""

    name = "proximal_gradient"
    title = "accelerated proximal gradient (FISTA) with restarts"
    needs_loss = frozenset({"smooth"})
    needs_penalty = frozenset({"prox"})
    accepts_penalty = frozenset({"nonnegative"})
    is_direct = False
    proof = "quadratic, duality or bounded"

    def cost(self, facts: Facts) -> Cost:
        # First order: what Krylov methods do in hundreds of steps takes thousands here.
        return iteration_cost(facts, max(2000.0, 4.0 * krylov_steps(facts)))

    def solve(self, problem: Problem, options: Options, monitor: Monitor) -> Solution:
        prover = make_prover(problem)
        iteration = _Iteration(problem, prover, options.eta0)
        with np.errstate(over="ignore", invalid="ignore"):
            outcome = run(
                iteration,
                monitor,
                max_iter=options.max_iter or 10_000,
                target_gap=target_gap(problem, options.tol),
                check_every=_CHECK_EVERY,
                patience=1000,
            )
        notes = [f"step size {1.0 / iteration.lipschitz:.6g}, {iteration.restarts} restarts"]
        return finish(problem, prover, iteration, outcome, monitor, self.name, notes)


class _Iteration(Iteration):
    """w, v and their scores; the intercept b' is about the column means."""

    def __init__(self, problem: Problem, prover: Prover, eta0: float | None) -> None:
        self.problem, self.prover = problem, prover
        self.design = centred_design(problem, prover.mean)
        bound = problem.loss.curvature_bound
        largest = largest_eigenvalue(self.design, problem.weights)
        self.lipschitz = 1.0 / eta0 if eta0 else (bound * largest or 1.0)
        self.intercept_curvature = bound * problem.total_weight
        self.coef = np.zeros((problem.n_features, problem.n_targets))
        self.centre = best_constant(problem)
        self.intercept = self.centre.copy()
        self.scores = np.broadcast_to(self.centre, problem.target.shape)
        # v, its b' and its scores; momentum t per target.
        self.ahead = self.coef, self.centre, self.scores
        self.momentum = np.ones(problem.n_targets)
        self.restarts = 0

    def step(self) -> None:
        v, level, scores = self.ahead
        problem = self.problem
        weighted = problem.weigh(problem.loss.gradient(problem.target, scores))
        gradient = self.design.rmatvec(weighted)
        new_level = level
        if problem.fit_intercept:
            new_level = level - weighted.sum(axis=0) / self.intercept_curvature
        while True:
            w = problem.penalty.prox(v - gradient / self.lipschitz, 1.0 / self.lipschitz)
            new_scores = self.design.matvec(w) + new_level
            if self._is_majorised(w - v, new_level - level, new_scores - scores):
                break
            self.lipschitz *= _GROWTH
        self._move(w, new_level, new_scores, v)

    def _is_majorised(self, change: Array, level_change: Array, score_change: Array) -> bool:
        problem = self.problem
        moved = problem.loss.curvature_bound * problem.weigh(score_change**2).sum(axis=0)
        allowed = self.lipschitz * np.sum(change**2, axis=0)
        allowed = allowed + self.intercept_curvature * level_change**2
        # Scores of almost equal points differ by rounding: no step size would mend that.
        noise = 1e-24 * problem.weigh(self.scores**2 + problem.target**2).sum(axis=0)
        return not bool(np.any(moved > allowed * _SLACK + noise))

    def _move(self, w: Array, level: Array, scores: Array, v: Array) -> None:
        """Take the step; extrapolate, except where momentum points uphill."""
        step = w - self.coef
        # Changes in the last bits alone: this is where double precision ends.
        moved = np.abs(w - v) + np.abs(step) > _EPS * np.abs(w)
        self.is_stalled = not (moved.any() or (level != self.centre).any())
        uphill = np.sum((v - w) * step, axis=0) > 0
        self.restarts += int(np.count_nonzero(uphill))
        t = np.where(uphill, 1.0, self.momentum)
        self.momentum = 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * t * t))
        beta = (t - 1.0) / self.momentum
        self.ahead = (
            w + beta * step,
            level + beta * (level - self.centre),
            scores + beta * (scores - self.scores),
        )
        self.coef, self.centre, self.scores = w, level, scores

    def progress(self) -> Progress:
        self.intercept = self.centre - self.prover.mean @ self.coef
        at = self.prover.evaluate(self.coef, self.intercept)
        return Progress(float(at.objective.sum()), self.prover.gap(at, self.coef, self.intercept))


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
        iteration = _PlainIteration(problem, prover, eta, starting_point(problem, options))
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


class _PlainIteration(Iteration):
    """The current point, and its evaluation: made once, used for progress and for the step."""

    def __init__(
        self, problem: Problem, prover: Prover, eta: float, start: tuple[Array, Array]
    ) -> None:
        self.problem, self.prover, self.eta = problem, prover, eta
        self.coef, self.intercept = start
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
