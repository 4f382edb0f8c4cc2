r"""Losses made of straight lines, approached by smooth ones: the textbook's way round the kinks.

Every kink is rounded off over a zone of width proportional to delta:

    l_delta(z) = max_u (u z - l*(u) - delta/2 u^2),        l_delta <= l <= l_delta + delta/2 max u^2

(Y. Nesterov, "Smooth minimization of non-smooth functions", Math. Program. 103 (2005) 127-152). For
the absolute loss this is Huber's with threshold delta, divided by delta; its derivative is
clip((z - y) / delta, -1, 1), and for a quantile clip((z - y) / delta, -q, 1 - q). Damped Newton
steps minimise sum_i s_i l_delta(z_i) + penalty, delta shrinks, and so on; at the ``smoothing`` that
was asked for the minimum is found to rounding, and without one delta shrinks until the gap is below
the tolerance (K. Madsen and H. B. Nielsen, "A
finite smoothing algorithm for linear l1 estimation", SIAM J. Optim. 3 (1993) 223-235).

The derivatives u of the smooth loss are a dual point of the loss with kinks. They are projected so
that X^T (s u) vanishes for columns without a penalty, and shrunken into the domain of l* where that
left it. So the certificate says how far the smooth answer is from the minimum without smoothing.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from trueline.certificates.base import Certificate
from trueline.certificates.duality import certify_dual
from trueline.design import StandardizedDesign
from trueline.losses.smoothed import Smoothed as SmoothLoss
from trueline.problem import Problem
from trueline.solution import Solution
from trueline.solvers.base import Cost, Facts, Iteration, Monitor, Options, Progress, Solver, run
from trueline.solvers.iterative import best_constant, iteration_cost, target_gap
from trueline.solvers.newton.damped import DampedNewton, SmoothFunction, status_of
from trueline.wording import counted

Array = NDArray[np.float64]

# How much of the zone is left after each stage, and the least that can be left of the first one.
_SHRINK = 0.25
_FINEST = 1e-13
# The gap, in units of what the smoothing alone may leave, at which a stage is over.
_STAGE_OVER = 1.5
_MAX_ITER = 2000
_MOST_COLUMNS = 2000
_ROWS = 4096


class Smoothed(Solver):
    """Newton's method on smooth losses that approach the one with kinks."""

    name = "smoothed"
    title = "Newton's method on a smoothed loss, with less and less smoothing"
    needs_loss = frozenset({"piecewise_linear"})
    needs_penalty = frozenset({"smooth"})
    is_direct = False
    is_textbook = True
    proof = "duality"

    def refuses(self, facts: Facts) -> str | None:
        if facts.d > _MOST_COLUMNS:
            return f"forms a Hessian, too large for {facts.d} columns"
        return None

    def cost(self, facts: Facts) -> Cost:
        return iteration_cost(facts, 20.0 * max(facts.d, 1))

    def solve(self, problem: Problem, options: Options, monitor: Monitor) -> Solution:
        start = best_constant(problem)
        deviations = problem.weigh(np.abs(problem.target - start)).sum()
        spread = float(deviations) / (problem.total_weight * problem.n_targets) or 1.0
        last = options.smoothing or _FINEST * spread
        # Nesterov's bound on what smoothing costs, for all rows: what is left at the end.
        bound = 0.5 * problem.n_targets * problem.total_weight * problem.loss.slope_bound**2
        iteration = _Iteration(problem, start, max(spread, last), last, bound)
        limit = options.max_iter or _MAX_ITER
        # A given smoothing is minimised, whatever gap it leaves; without one, the gap is the goal.
        is_given = options.smoothing is not None
        goal = -np.inf if is_given else target_gap(problem, options.tol)
        status, n_iter, progress = run(iteration, monitor, max_iter=limit, target_gap=goal)
        status = status_of(status, progress.gap, last * bound, is_given)
        notes = [
            f"smoothing from {max(spread, last):.3g} to {iteration.delta:.3g} in "
            f"{counted(iteration.stages, 'stage')}",
            f"the smooth losses are below those with kinks by at most "
            f"{iteration.delta * bound:.4g} in all",
        ]
        tolerance = last * bound if is_given else goal
        return monitor.solution(
            iteration.certificate,
            status,
            self.name,
            max(1, n_iter),
            tolerance=tolerance,
            notes=notes,
        )


class _OneTarget(SmoothFunction):
    """The smooth objective of one target, in standardised columns and the level."""

    def __init__(self, iteration: _Iteration, target: int) -> None:
        self.iteration, self.target, self.delta = iteration, target, iteration.delta
        problem = iteration.problem
        self.y = problem.target[:, [target]]
        self.loss = SmoothLoss(problem.loss.of_target(target), self.delta)
        self.curvature = np.zeros(iteration.size)
        self.curvature[: len(iteration.kept)] = iteration.curvature[iteration.kept, target]

    @property
    def stiffness(self) -> float:
        """Standardised columns have squares of the sum of the weights."""
        return self.iteration.problem.total_weight / self.delta + float(
            self.curvature.max(initial=0.0)
        )

    def value(self, v: Array) -> tuple[float, float]:
        problem = self.iteration.problem
        losses = problem.weigh(self.loss.value(self.y, self._scores(v)))
        penalty = 0.5 * float(self.curvature @ v**2)
        return float(losses.sum()) + penalty, float(np.abs(losses).sum()) + penalty

    def derivatives(self, v: Array) -> tuple[Array, Array]:
        problem, z = self.iteration.problem, self._scores(v)
        u = problem.weigh(self.loss.gradient(self.y, z))
        curvature = problem.weigh(self.loss.curvature(self.y, z))[:, 0]
        H, g = np.diag(self.curvature), self.curvature * v
        for rows, A in self.iteration.blocks():
            on_ramp = np.flatnonzero(curvature[rows])
            g = g + A.T @ u[rows, 0]
            H = H + (A[on_ramp].T * curvature[rows][on_ramp]) @ A[on_ramp]
        return g, H

    def _scores(self, v: Array) -> Array:
        return self.iteration.scores(*self.iteration.unpacked(v[:, None]))


class _Iteration(Iteration):
    """A point and the width of the zone, on columns of mean 0 and spread 1."""

    certificate: Certificate

    def __init__(
        self, problem: Problem, start: Array, delta: float, last: float, bound: float
    ) -> None:
        design, weights = problem.design, problem.weights
        self.problem, self.delta, self.last, self.bound = problem, delta, last, bound
        self.stages = 1
        self.mean = np.zeros(problem.n_features)
        if problem.fit_intercept:
            self.mean = design.column_means(weights)
        shift = self.mean if problem.fit_intercept else None
        scale = np.sqrt(design.column_squares(weights, shift) / problem.total_weight)
        self.scale = np.where(scale > 1e-14 * np.abs(self.mean), scale, np.inf)
        self.kept = np.flatnonzero(np.isfinite(self.scale))
        unit = np.where(np.isfinite(self.scale), 1 / self.scale, 1.0)
        self.design = StandardizedDesign(design, self.mean, unit)
        self.curvature = (
            np.broadcast_to(problem.penalty.curvature, self._shape()) / self.scale[:, None] ** 2
        )
        self.inverse = self._inverse_gram()
        self.V, self.level = np.zeros(self._shape()), start.copy()
        packed = np.vstack([self.V[self.kept], self.level])[: self.size]
        self.points = [
            DampedNewton(_OneTarget(self, k), packed[:, k]) for k in range(problem.n_targets)
        ]

    @property
    def size(self) -> int:
        """Number of coordinates of a target: the columns that vary, and the level."""
        return len(self.kept) + int(self.problem.fit_intercept)

    def _shape(self) -> tuple[int, int]:
        return self.problem.n_features, self.problem.n_targets

    def blocks(self) -> Iterator[tuple[slice, Array]]:
        """Rows of the coordinates."""
        for rows, block in self.problem.design.blocks(_ROWS):
            A = np.ones((len(block), self.size))
            m = len(self.kept)
            A[:, :m] = (block[:, self.kept] - self.mean[self.kept]) / self.scale[self.kept]
            yield rows, A

    def unpacked(self, v: Array) -> tuple[Array, Array]:
        """Coefficients of the standardised columns, and levels."""
        V = np.zeros((self.problem.n_features, v.shape[1]))
        V[self.kept] = v[: len(self.kept)]
        return V, v[-1] if self.problem.fit_intercept else np.zeros(v.shape[1])

    def scores(self, V: Array, level: Array) -> Array:
        """Predictions."""
        return self.design.matvec(V) + level

    def step(self) -> None:
        """One Newton step for every target; a narrower zone where a stage is over."""
        is_over = self.gap <= _STAGE_OVER * self.delta * self.bound
        if self.delta > self.last and (is_over or all(point.is_done for point in self.points)):
            self.delta = max(_SHRINK * self.delta, self.last)
            self.stages += 1
            for k, point in enumerate(self.points):
                point.follow(_OneTarget(self, k))
        for point in self.points:
            point.step()
        self.is_settled = self.delta == self.last and all(point.is_done for point in self.points)

    def progress(self) -> Progress:
        self.V, self.level = self.unpacked(np.stack([point.v for point in self.points], axis=1))
        z = self.scores(self.V, self.level)
        self.u = SmoothLoss(self.problem.loss, self.delta).gradient(self.problem.target, z)
        self._publish()
        self.certificate = certify_dual(self.problem, self.coef, self.intercept, self._dual_point())
        self.gap = self.certificate.gap
        return Progress(self.certificate.objective, self.gap)

    def _publish(self) -> None:
        self.coef = self.V / self.scale[:, None]
        self.intercept = np.zeros_like(self.level)
        if self.problem.fit_intercept:
            self.intercept = self.level - self.mean @ self.coef

    # --- the proof ------------------------------------------------------------------------------

    def _inverse_gram(self) -> Array:
        """Of the columns that no penalty holds, and the constant."""
        weights = self.problem.weights
        self.free = np.flatnonzero(~self.curvature.any(axis=1) & np.isfinite(self.scale))
        p = len(self.free) + self.problem.fit_intercept
        gram = np.zeros((p, p))
        s = np.ones(self.problem.n_samples) if weights is None else weights
        for rows, block in self.problem.design.blocks(_ROWS):
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
