r"""The largest error, approached by a smooth function: the textbook's way round the maximum.

    F_mu(w, b) = mu log sum_i 2 cosh(r_i / mu)
    max_i abs(r_i) <= F_mu <= max_i abs(r_i) + mu log(2n)

Its gradient is - sum_i u_i (x_i, 1) with u_i = sinh(r_i / mu) / sum_k cosh(r_k / mu), in which the
rows that err most have nearly all the weight; its curvature is at most max_i ||(x_i, 1)||^2 / mu
(Y. Nesterov, "Smooth minimization of non-smooth functions", Math. Program. 103 (2005) 127-152).
Gradient descent with Nesterov's momentum (restarted when it points uphill: B. O'Donoghue and
E. Candes, Found. Comput. Math. 15 (2015) 715-732) minimises it, mu shrinks, and so on.

The u are multipliers with sum_i abs(u_i) <= 1. Projected so that sum_i u_i (x_i, 1) vanishes, and
divided by the sum of their magnitudes where that exceeds one, they prove a lower bound.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from trueline.certificates.maximum import certify_maximum
from trueline.problem import Problem
from trueline.solution import Solution
from trueline.solvers.base import Cost, Facts, Options, Solver
from trueline.solvers.exchange.rows import Rows, counted
from trueline.solvers.iterative import iteration_cost
from trueline.solvers.loop import Iteration, Monitor, Progress, run
from trueline.wording import counted as number_of

__all__ = ["SmoothedMaximum", "smooth_multipliers"]

Array = NDArray[np.float64]

# How much of mu is left after each stage, and of the first one at the end by default.
_SHRINK = 0.25
_LAST = 1e-3
# The gap, in units of mu log(2n), at which a stage is over.
_STAGE_OVER = 1.5
_CHECK_EVERY = 10
_MAX_ITER = 20_000
_MOST_COLUMNS = 2000


class SmoothedMaximum(Solver):
    """Gradient descent on the logarithm of a sum of exponentials that approaches the maximum."""

    name = "smoothed_maximum"
    title = "gradient descent on a smooth maximum, which approaches the sharp one"
    needs_loss = frozenset({"maximum"})
    needs_penalty = frozenset({"none"})
    is_direct = False
    is_textbook = True
    proof = "maximum error"

    def refuses(self, facts: Facts) -> str | None:
        if facts.k > 1:
            return f"takes one target, not {facts.k}"
        if facts.d > _MOST_COLUMNS:
            return f"factors a Gram matrix, too large for {facts.d} columns"
        return None

    def cost(self, facts: Facts) -> Cost:
        return iteration_cost(facts, 1000.0)

    def solve(self, problem: Problem, options: Options, monitor: Monitor) -> Solution:
        design, target, places = counted(problem)
        source = Rows.of(design, np.ascontiguousarray(target[:, 0]), problem.fit_intercept)
        iteration = _Iteration(source, options.smoothing)
        status, n_iter, _ = run(
            iteration,
            monitor,
            max_iter=options.max_iter or _MAX_ITER,
            target_gap=iteration.last * iteration.log_rows,
            check_every=_CHECK_EVERY,
        )
        W, b = iteration.coef, iteration.intercept
        u = iteration.dual
        rows = np.flatnonzero(u)
        spread = (source.mean, source.scale)
        certificate = certify_maximum(problem, W, b, places[rows], u[rows, None], spread)
        return Solution(
            W,
            b,
            status,
            self.name,
            n_iter=max(1, n_iter),
            proof=certificate,
            trace=monitor.trace,
            tolerance=iteration.last * iteration.log_rows,
            notes=[
                f"smoothing from {iteration.first:.3g} to {iteration.mu:.3g} in "
                f"{number_of(iteration.stages, 'stage')}"
            ],
            extra={"rows": places[rows], "dual": u[rows, None]},
        )


def smooth_multipliers(error: Array, mu: float) -> Array:
    """sinh(r_i / mu) / sum_k cosh(r_k / mu), without overflow.

    Examples
    --------
    >>> import numpy as np
    >>> from trueline.solvers.exchange.smoothed import smooth_multipliers
    >>> smooth_multipliers(np.array([-2.0, 1.0, 2.0]), 0.01).round(6)
    array([-0.5,  0. ,  0.5])
    """
    size = np.abs(error) / mu
    top = size.max(initial=0.0)
    up, down = np.exp(size - top), np.exp(-size - top)
    return np.sign(error) * (up - down) / (up + down).sum()


class _Iteration(Iteration):
    """A point, its momentum and mu, in the coordinates in which least squares is trivial.

    The best point so far is the answer: steps on a smooth maximum may raise the sharp one.
    """

    def __init__(self, source: Rows, smoothing: float | None) -> None:
        self.source = source
        self.log_rows = float(np.log(2 * len(source.residual)))
        self.v = _start(source)
        self.error = source.errors(self.v)
        largest = float(np.abs(self.error).max()) or 1.0
        self.last = smoothing or _LAST * largest / self.log_rows
        self.mu = self.first = max(largest / self.log_rows, self.last)
        self.before, self.momentum = self.v, 1.0
        self.stages, self.is_stage_over = 1, False
        # max_i ||q_i||^2, the curvature without its mu.
        self.stiffness = float(_row_squares(source).max(initial=0.0)) or 1.0
        self.best, self.lower = np.inf, 0.0
        self.dual = np.zeros(len(source.residual))

    def step(self) -> None:
        """From a point ahead, along the gradient there."""
        if self.is_stage_over:
            self.mu = max(_SHRINK * self.mu, self.last)
            self.stages += 1
            self.before, self.momentum, self.is_stage_over = self.v, 1.0, False
        following = 0.5 * (1 + np.sqrt(1 + 4 * self.momentum**2))
        v = self.v + (self.momentum - 1) / following * (self.v - self.before)
        u = smooth_multipliers(self.source.errors(v), self.mu)
        gradient = -_transposed(self.source, u)
        self.before, self.v = self.v, v - self.mu / self.stiffness * gradient
        self.momentum = 1.0 if gradient @ (self.v - self.before) > 0 else following

    def progress(self) -> Progress:
        error = self.source.errors(self.v)
        objective = float(np.abs(error).max(initial=0.0))
        if objective < self.best:
            self.best, self.error = objective, error
            w, b = self.source.coefficients(self.v)
            self.coef, self.intercept = w[:, None], np.array([b])
        self._raise_bound(error)
        gap = self.best - self.lower
        own = objective - self.lower
        self.is_stage_over = own <= _STAGE_OVER * self.mu * self.log_rows and self.mu > self.last
        return Progress(self.best, gap)

    def _raise_bound(self, error: Array) -> None:
        """The bound of the multipliers at this point, if it is better than those before.

        The coordinates make sum_i q_i q_i^T = n I: the projection needs no factor.
        """
        u = smooth_multipliers(error, self.mu)
        for _ in range(2):  # the second round removes the rounding of the first
            u = u - _products(self.source, _transposed(self.source, u) / len(u))
        u = u / max(1.0, float(np.abs(u).sum()))
        lower = float(u @ error)
        if lower > self.lower:
            self.lower, self.dual = lower, u


def _start(source: Rows) -> Array:
    """Least squares, or the middle of the targets where that errs less."""
    zero = np.zeros(source.size)
    w, level = source.start
    standard = np.append(w[source.kept] * source.scale[source.kept], [level] * source.fit_intercept)
    constant = -np.linalg.solve(source.transform, standard) if source.size else zero
    error = source.errors(constant)
    if source.fit_intercept:
        constant[-1] += 0.5 * (error.max() + error.min())
        error = error - 0.5 * (error.max() + error.min())
    return constant if np.abs(error).max() < np.abs(source.residual).max() else zero


def _transposed(source: Rows, u: Array) -> Array:
    """sum_i u_i q_i."""
    total = float(u.sum())
    pulled = source.design.rmatvec(u) - source.mean * total
    standard = pulled[source.kept] / source.scale[source.kept]
    return source.transform.T @ np.append(standard, [total] * source.fit_intercept)


def _products(source: Rows, v: Array) -> Array:
    """q_i.v for all rows."""
    return source.products(v[:, None])[:, 0]


def _row_squares(source: Rows) -> Array:
    """||q_i||^2 for all rows."""
    out = np.empty(len(source.residual))
    for start in range(0, len(out), 4096):
        where = slice(start, min(start + 4096, len(out)))
        out[where] = (source.gather(where) ** 2).sum(axis=1)
    return out
