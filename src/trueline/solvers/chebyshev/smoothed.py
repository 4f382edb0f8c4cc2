r"""The largest error, approached by a smooth function: the textbook's way round the maximum.

    F_mu(w, b) = mu log sum_i 2 cosh(r_i / mu)
    max_i abs(r_i) <= F_mu <= max_i abs(r_i) + mu log(2n)

Its gradient in r is u_i = sinh(r_i / mu) / sum_k cosh(r_k / mu), in which the rows that err most
have nearly all the weight; its Hessian is (diag(p) - u u^T) / mu with p_i = cosh(r_i / mu) / sum_k
cosh(r_k / mu) (Y. Nesterov, "Smooth minimization of non-smooth functions", Math. Program. 103
(2005) 127-152). Damped Newton steps minimise it, mu shrinks, and so on; at the ``smoothing`` that
was asked for the minimum is found to rounding, and without one mu shrinks until the gap is below
the tolerance.

The u are multipliers with sum_i abs(u_i) <= 1. Projected so that sum_i u_i (x_i, 1) vanishes, and
divided by the sum of their magnitudes where that exceeds one, they prove a lower bound. So the
certificate says how far the smooth answer is from the smallest largest error.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from trueline.certificates.special.maximum import certify_maximum
from trueline.problem import Problem
from trueline.solution import Solution, Status
from trueline.solvers.base import Cost, Facts, Iteration, Monitor, Options, Progress, Solver, run
from trueline.solvers.chebyshev.reference import Rows, counted
from trueline.solvers.iterative import iteration_cost, target_gap
from trueline.solvers.newton.damped import DampedNewton, SmoothFunction, status_of
from trueline.wording import counted as number_of

Array = NDArray[np.float64]

# How much of mu is left after each stage, and the least that can be left of the first one.
_SHRINK = 0.25
_FINEST = 1e-13
# The gap, in units of mu log(2n), at which a stage is over.
_STAGE_OVER = 1.5
_MAX_ITER = 2000
_MOST_COLUMNS = 2000
_ROWS = 4096


class SmoothedMaximum(Solver):
    """Newton's method on the logarithm of a sum of exponentials that approaches the maximum."""

    name = "smoothed_maximum"
    title = "Newton's method on a smoothed maximum, with less and less smoothing"
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
        return iteration_cost(facts, 20.0 * max(facts.d, 1))

    def solve(self, problem: Problem, options: Options, monitor: Monitor) -> Solution:
        design, target, places = counted(problem)
        source = Rows.of(design, np.ascontiguousarray(target[:, 0]), problem.fit_intercept)
        iteration = _Iteration(source, options.smoothing)
        limit = options.max_iter or _MAX_ITER
        # A given smoothing is minimised, whatever gap it leaves; without one, the gap is the goal.
        is_given = options.smoothing is not None
        goal = -np.inf if is_given else target_gap(problem, options.tol)
        status, n_iter, progress = run(iteration, monitor, max_iter=limit, target_gap=goal)
        left = iteration.last * iteration.log_rows
        status = status_of(status, progress.gap, left, is_given)
        W, b = iteration.coef, iteration.intercept
        u = iteration.dual
        rows = np.flatnonzero(u)
        spread = (source.mean, source.scale)
        certificate = certify_maximum(problem, W, b, places[rows], u[rows, None], spread)
        notes = [
            f"smoothing from {iteration.first:.3g} to {iteration.mu:.3g} in "
            f"{number_of(iteration.stages, 'stage')}",
            "above the largest error is the smooth function by at most "
            f"mu log(2n) = {iteration.mu * iteration.log_rows:.4g}",
        ]
        tolerance = max(goal, left, progress.gap if status is Status.CONVERGED else 0.0)
        extra = {"rows": places[rows], "dual": u[rows, None]}
        return monitor.solution(
            certificate,
            status,
            self.name,
            max(1, n_iter),
            tolerance=tolerance,
            notes=notes,
            extra=extra,
        )


def smooth_multipliers(error: Array, mu: float) -> Array:
    """sinh(r_i / mu) / sum_k cosh(r_k / mu), without overflow.

    Examples
    --------
    >>> import numpy as np
    >>> from trueline.solvers.chebyshev.smoothed import smooth_multipliers
    >>> smooth_multipliers(np.array([-2.0, 1.0, 2.0]), 0.01).round(6)
    array([-0.5,  0. ,  0.5])
    """
    size = np.abs(error) / mu
    top = size.max(initial=0.0)
    up, down = np.exp(size - top), np.exp(-size - top)
    return np.sign(error) * (up - down) / (up + down).sum()


class _SmoothMaximum(SmoothFunction):
    """F_mu in the coordinates in which least squares is trivial."""

    def __init__(self, source: Rows, mu: float) -> None:
        self.source, self.mu = source, mu

    @property
    def stiffness(self) -> float:
        """That at zero errors: sum_i q_i q_i^T / (n mu), which is a multiple of the identity."""
        return 1.0 / self.mu

    def value(self, v: Array) -> tuple[float, float]:
        size = np.abs(self.source.errors(v)) / self.mu
        top = float(size.max(initial=0.0))
        total = float((np.exp(size - top) + np.exp(-size - top)).sum())
        value = self.mu * (top + np.log(total))
        return value, abs(value)

    def derivatives(self, v: Array) -> tuple[Array, Array]:
        error = self.source.errors(v)
        u, p = smooth_multipliers(error, self.mu), _shares(error, self.mu)
        g, H = np.zeros(len(v)), np.zeros((len(v), len(v)))
        for start in range(0, len(u), _ROWS):
            where = slice(start, min(start + _ROWS, len(u)))
            Q = self.source.gather(where)
            g -= Q.T @ u[where]
            H += (Q.T * p[where]) @ Q
        return g, (H - np.outer(g, g)) / self.mu


def _shares(error: Array, mu: float) -> Array:
    """cosh(r_i / mu) / sum_k cosh(r_k / mu), without overflow."""
    size = np.abs(error) / mu
    top = size.max(initial=0.0)
    both = np.exp(size - top) + np.exp(-size - top)
    shares: Array = both / both.sum()
    return shares


class _Iteration(Iteration):
    """A point and mu, in the coordinates in which least squares is trivial."""

    def __init__(self, source: Rows, smoothing: float | None) -> None:
        self.source = source
        self.log_rows = float(np.log(2 * len(source.residual)))
        start = _start(source)
        largest = float(np.abs(source.errors(start)).max()) or 1.0
        self.last = smoothing or _FINEST * largest / self.log_rows
        self.mu = self.first = max(largest / self.log_rows, self.last)
        self.stages = 1
        self.point = DampedNewton(_SmoothMaximum(source, self.mu), start)
        self.lower, self.dual = 0.0, np.zeros(len(source.residual))

    def step(self) -> None:
        """One Newton step; a smaller mu where a stage is over."""
        is_over = self.gap <= _STAGE_OVER * self.mu * self.log_rows
        if self.mu > self.last and (is_over or self.point.is_done):
            self.mu = max(_SHRINK * self.mu, self.last)
            self.stages += 1
            self.point.follow(_SmoothMaximum(self.source, self.mu))
        self.point.step()
        self.is_settled = self.mu == self.last and self.point.is_done

    def progress(self) -> Progress:
        error = self.source.errors(self.point.v)
        w, b = self.source.coefficients(self.point.v)
        self.coef, self.intercept = w[:, None], np.array([b])
        self._raise_bound(error)
        objective = float(np.abs(error).max(initial=0.0))
        self.gap = objective - self.lower
        return Progress(objective, self.gap)

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
