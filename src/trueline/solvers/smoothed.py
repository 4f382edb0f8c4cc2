r"""Losses made of straight lines, approached by smooth ones: the textbook's way round the kinks.

Every kink is rounded off over a zone of width proportional to delta:

    l_delta(z) = max_u (u z - l*(u) - delta/2 u^2),        l_delta <= l <= l_delta + delta/2 max u^2

(Y. Nesterov, "Smooth minimization of non-smooth functions", Math. Program. 103 (2005) 127-152). For
the absolute loss this is Huber's with threshold delta, divided by delta; its derivative is
clip((z - y) / delta, -1, 1), and for a quantile clip((z - y) / delta, -q, 1 - q). Gradient descent
with Nesterov's momentum (restarted when it points uphill: B. O'Donoghue and E. Candes, Found.
Comput. Math. 15 (2015) 715-732) minimises it, delta shrinks, and so on: the coefficients approach
those of the exact solution, which lies on the kinks.

The derivatives u of the smooth loss are a dual point. They are projected so that X^T (s u) vanishes
for columns without a penalty, and shrunken into the domain of l* where that left it.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from trueline.certificates.base import Certificate
from trueline.certificates.duality import certify_dual
from trueline.design import StandardizedDesign
from trueline.losses import Loss
from trueline.problem import Problem
from trueline.solution import Solution
from trueline.solvers.base import Cost, Facts, Options, Solver
from trueline.solvers.iterative import best_constant, iteration_cost, largest_eigenvalue
from trueline.solvers.loop import Iteration, Monitor, Progress, run
from trueline.wording import counted

__all__ = ["Smoothed", "smooth_derivative"]

Array = NDArray[np.float64]

# How much of the zone is left after each stage, and of the first one at the end by default.
_SHRINK = 0.25
_LAST = 1e-3
# The gap, in units of what the smoothing alone would leave, at which a stage is over.
_STAGE_OVER = 3.0
_CHECK_EVERY = 10
_MAX_ITER = 20_000
_MOST_COLUMNS = 2000
_SAFETY = 1.01


class Smoothed(Solver):
    """Gradient descent on smooth losses that approach the one with kinks."""

    name = "smoothed"
    title = "gradient descent on a smooth loss, which approaches the one with kinks"
    needs_loss = frozenset({"piecewise_linear"})
    needs_penalty = frozenset({"smooth"})
    is_direct = False
    is_textbook = True
    proof = "duality"

    def refuses(self, facts: Facts) -> str | None:
        if facts.d > _MOST_COLUMNS:
            return f"forms a Gram matrix for its proof, too large for {facts.d} columns"
        return None

    def cost(self, facts: Facts) -> Cost:
        return iteration_cost(facts, 1000.0)

    def solve(self, problem: Problem, options: Options, monitor: Monitor) -> Solution:
        start = best_constant(problem)
        deviations = problem.weigh(np.abs(problem.target - start)).sum()
        spread = float(deviations) / (problem.total_weight * problem.n_targets) or 1.0
        last = options.smoothing or _LAST * spread
        iteration = _Iteration(problem, start, max(spread, last), last)
        # Nesterov's bound on what smoothing costs, for all rows: the gap to reach at the end.
        bound = problem.n_targets * problem.total_weight * problem.loss.slope_bound**2
        target = 0.5 * last * bound
        outcome = run(
            iteration,
            monitor,
            max_iter=options.max_iter or _MAX_ITER,
            target_gap=target,
            check_every=_CHECK_EVERY,
        )
        status, n_iter, _ = outcome
        return Solution(
            iteration.coef,
            iteration.intercept,
            status,
            self.name,
            n_iter=max(1, n_iter),
            proof=iteration.certificate,
            trace=monitor.trace,
            tolerance=target,
            notes=[
                f"smoothing from {max(spread, last):.3g} to {iteration.delta:.3g} in "
                f"{counted(iteration.stages, 'stage')}"
            ],
        )


def smooth_derivative(loss: Loss, y: Array, z: Array, delta: float) -> Array:
    """l_delta'(z): each kink is a ramp from the slope on its left to that on its right.

    Examples
    --------
    >>> import numpy as np
    >>> from trueline.losses import Absolute
    >>> from trueline.solvers.smoothed import smooth_derivative
    >>> smooth_derivative(Absolute(), np.zeros(3), np.array([-1.0, 0.05, 0.2]), 0.1)
    array([-1. ,  0.5,  1. ])
    """
    left = loss.first_slopes(np.broadcast_to(y, z.shape))
    u = left.copy()
    for kink, jump in zip(loss.kinks, loss.jumps, strict=True):
        u = u + np.clip((z - y - kink) / delta, left, left + jump) - left
        left = left + jump
    return u


class _Iteration(Iteration):
    """A point, its momentum and the width of the zone, on columns of mean 0 and spread 1."""

    certificate: Certificate

    def __init__(self, problem: Problem, start: Array, delta: float, last: float) -> None:
        design, weights = problem.design, problem.weights
        self.problem, self.delta, self.last = problem, delta, last
        self.stages, self.is_stage_over = 1, False
        self.mean = np.zeros(problem.n_features)
        if problem.fit_intercept:
            self.mean = design.column_means(weights)
        shift = self.mean if problem.fit_intercept else None
        scale = np.sqrt(design.column_squares(weights, shift) / problem.total_weight)
        self.scale = np.where(scale > 1e-14 * np.abs(self.mean), scale, np.inf)
        unit = np.where(np.isfinite(self.scale), 1 / self.scale, 1.0)
        self.design = StandardizedDesign(design, self.mean, unit)
        self.bend = (
            np.broadcast_to(problem.penalty.curvature, self._shape()) / self.scale[:, None] ** 2
        )
        self.stiffness = _SAFETY * largest_eigenvalue(self.design, weights, problem.fit_intercept)
        self.inverse = self._inverse_gram()
        self.V, self.level = np.zeros(self._shape()), start.copy()
        self.before = self.V, self.level
        self.momentum = 1.0
        self.u = self._derivatives(self._scores(self.V, self.level))
        self._publish()

    def _shape(self) -> tuple[int, int]:
        return self.problem.n_features, self.problem.n_targets

    def _scores(self, V: Array, level: Array) -> Array:
        return self.design.matvec(V) + level

    def _derivatives(self, z: Array) -> Array:
        return smooth_derivative(self.problem.loss, self.problem.target, z, self.delta)

    def step(self) -> None:
        """From a point ahead, along the gradient there."""
        if self.is_stage_over:
            self._shrink()
        following = 0.5 * (1 + np.sqrt(1 + 4 * self.momentum**2))
        ahead = (self.momentum - 1) / following
        V = self.V + ahead * (self.V - self.before[0])
        level = self.level + ahead * (self.level - self.before[1])
        weighted = self.problem.weigh(self._derivatives(self._scores(V, level)))
        eta = 1.0 / (self.stiffness / self.delta + float(self.bend.max(initial=0.0)) or 1.0)
        gradient = self.design.rmatvec(weighted) + self.bend * V
        gradient[~np.isfinite(self.scale)] = 0.0
        slope = weighted.sum(axis=0) * self.problem.fit_intercept
        self.before = self.V, self.level
        self.V, self.level = V - eta * gradient, level - eta * slope
        moved = np.sum(gradient * (self.V - self.before[0])) + slope @ (self.level - self.before[1])
        self.momentum = 1.0 if moved > 0 else following

    def _shrink(self) -> None:
        """A narrower zone, without momentum."""
        self.delta = max(_SHRINK * self.delta, self.last)
        self.stages += 1
        self.before, self.momentum = (self.V, self.level), 1.0
        self.is_stage_over = False

    def progress(self) -> Progress:
        z = self._scores(self.V, self.level)
        self.u = self._derivatives(z)
        self._publish()
        self.certificate = certify_dual(self.problem, self.coef, self.intercept, self._dual_point())
        loss, y = self.problem.loss, self.problem.target
        # What would be left at the minimum of the smooth problem: the rows inside the zones.
        conjugates = loss.conjugate(y, self.u)
        zone = float(self.problem.weigh(loss.value(y, z) + conjugates - self.u * z).sum())
        gap = self.certificate.gap
        self.is_stage_over = gap <= _STAGE_OVER * zone and self.delta > self.last
        return Progress(self.certificate.objective, gap)

    def _publish(self) -> None:
        self.coef = self.V / self.scale[:, None]
        self.intercept = np.zeros_like(self.level)
        if self.problem.fit_intercept:
            self.intercept = self.level - self.mean @ self.coef

    # --- the proof ------------------------------------------------------------------------------

    def _inverse_gram(self) -> Array:
        """Of the columns that no penalty holds, and the constant."""
        weights = self.problem.weights
        self.free = np.flatnonzero(~self.bend.any(axis=1) & np.isfinite(self.scale))
        p = len(self.free) + self.problem.fit_intercept
        gram = np.zeros((p, p))
        s = np.ones(self.problem.n_samples) if weights is None else weights
        for rows, block in self.problem.design.blocks(4096):
            A = np.ones((len(block), p))
            A[:, : len(self.free)] = ((block - self.mean) / self.scale)[:, self.free]
            gram += (A * s[rows, None]).T @ A
        return np.asarray(np.linalg.pinv(gram, hermitian=True), dtype=np.float64)

    def _dual_point(self) -> Array:
        """u - A (A^T S A)^+ A^T S u, and as much of it as is inside of the domain."""
        u, loss, y = self.u, self.problem.loss, self.problem.target
        for _ in range(2):  # the second round removes the rounding of the first
            weighted = self.problem.weigh(u)
            pulled = self.design.rmatvec(weighted)[self.free]
            if self.problem.fit_intercept:
                pulled = np.vstack([pulled, weighted.sum(axis=0)])
            back = self.inverse @ pulled
            V = np.zeros(self._shape())
            V[self.free] = back[: len(self.free)]
            shift = self.design.matvec(V)
            if self.problem.fit_intercept:
                shift = shift + back[-1]
            u = u - shift
        inside = loss.project_dual(y, u)
        with np.errstate(divide="ignore", invalid="ignore"):
            share = np.where(u != inside, inside / u, 1.0).min(axis=0, initial=1.0)
        return u * np.clip(share, 0.0, 1.0)
