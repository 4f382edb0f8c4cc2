r"""Coordinate descent on the dual: rows are visited one by one, and each costs its non-zeros.

With the penalty a/2 ||w||^2 the optimal coefficients are w = sum_i beta_i x_i with
beta_i = -s_i u_i / a for the derivatives u of the loss, and with l*(u) = u y + e abs(u) + h/2 u^2
on [lo, hi] the dual is

    minimise  1/2 || sum_i beta_i x_i ||^2
              + sum_i (e abs(beta_i) + a h / (2 s_i) beta_i^2 - y_i beta_i)
    over      -s_i hi / a <= beta_i <= -s_i lo / a.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trueline.certificates.duality import certify_duality
from trueline.design import AugmentedDesign, Design, SparseDesign
from trueline.problem import Problem
from trueline.solution import Solution, Status
from trueline.solvers.base import Cost, Facts, Options, Solver
from trueline.solvers.costs import CALL
from trueline.solvers.iterative import target_gap
from trueline.solvers.loop import Iteration, Monitor, Progress, run

__all__ = ["DualCoordinateDescent"]

Array = NDArray[np.float64]

_CHECK_EVERY = 3


class DualCoordinateDescent(Solver):
    """One dual variable at a time, in random order, with shrinking."""

    name = "dual_coordinate_descent"
    title = "coordinate descent on the dual, row by row"
    needs_loss = frozenset({"dual_box"})
    needs_penalty = frozenset({"quadratic"})
    is_direct = False
    proof = "duality"

    def refuses(self, facts: Facts) -> str | None:
        if facts.fit_intercept:
            return "needs every coefficient penalised, the intercept too"
        if facts.unpenalised or facts.strengths > 1 or facts.k > 1:
            return "needs one positive strength and one target"
        return None

    def cost(self, facts: Facts) -> Cost:
        # With fewer columns than rows the dual is singular, and the last digits come slowly.
        sweeps = 500.0 if facts.d > facts.n else 3000.0
        seconds = CALL + sweeps * (2e-5 + 4e-9 * facts.nonzeros + 2e-8 * facts.n)
        memory = 80.0 * facts.n + (0 if facts.itemsize == 8 else 8.0 * facts.nonzeros)
        return Cost(4 * sweeps * facts.nonzeros, sweeps, memory, seconds)

    def solve(self, problem: Problem, options: Options, monitor: Monitor) -> Solution:
        iteration = _Iteration(problem, options)
        status, n_iter, _ = run(
            iteration,
            monitor,
            max_iter=options.max_iter or 10_000,
            target_gap=target_gap(problem, options.tol),
            check_every=_CHECK_EVERY,
            patience=1000,
        )
        W, b = iteration.coef, iteration.intercept
        certificate = certify_duality(problem, W, b, iteration.dual())
        if status is not Status.CONVERGED and certificate.gap <= target_gap(problem, options.tol):
            status = Status.CONVERGED
        return Solution(
            W, b, status, self.name, n_iter=n_iter, proof=certificate, trace=monitor.trace
        )


class _Iteration(Iteration):
    """beta and w; a step is a sweep over the rows that are still active."""

    def __init__(self, problem: Problem, options: Options) -> None:
        self.problem = problem
        n = problem.n_samples
        self.strength = float(np.max(problem.penalty.curvature))
        s = np.ones(n) if problem.weights is None else problem.weights
        e, h, low, high = problem.loss.dual_box
        design, constant = _split(problem.design)
        squares = design.row_squares(None) + constant**2
        bend = self.strength * h / s
        self.terms = np.stack(
            [
                problem.target[:, 0],
                np.full(n, e),
                bend,
                -s * high / self.strength,
                -s * low / self.strength,
                squares + bend,
            ],
            axis=1,
        )
        self.beta, self.w = np.zeros(n), np.zeros(design.shape[1] + 1)
        self.constant = constant
        self.order, self.active = np.arange(n), n
        seed = np.random.RandomState(0) if options.random_state is None else options.random_state
        draw = seed if isinstance(seed, np.random.RandomState) else np.random.RandomState(seed)
        self.state = np.array([draw.randint(1, 2**31 - 1)], dtype=np.uint64)
        self.sweep = _sweeper(design)
        self.threshold, self.first = np.inf, 0.0
        self.inner = 0.1
        self.weights = s
        self.intercept = np.zeros(1)
        self._expose()

    def _expose(self) -> None:
        has_constant = isinstance(self.problem.design, AugmentedDesign)
        self.coef = (self.w if has_constant else self.w[:-1]).reshape(-1, 1)

    def step(self) -> None:
        self.active, worst = self.sweep(
            self.constant,
            self.terms,
            self.beta,
            self.w,
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

    def dual(self) -> Array:
        """The derivatives u of the losses."""
        return (-self.strength * self.beta / self.weights)[:, None]

    def progress(self) -> Progress:
        self._expose()
        objective = self.problem.objective(self.coef, self.intercept)
        t, e, h = self.terms[:, :3].T
        size = np.abs(self.beta)
        own = float((size * (e + 0.5 * h * size) - t * self.beta).sum())
        lower = -self.strength * (own + 0.5 * float(self.w @ self.w))
        return Progress(objective, max(objective - lower, 0.0))


def _split(design: Design) -> tuple[Design, float]:
    """The rows, and the constant that each of them ends with."""
    if isinstance(design, AugmentedDesign):
        return design.base, design.constant
    return design, 0.0


def _sweeper(design: Design) -> Callable[..., tuple[int, float]]:
    """The compiled sweep for dense or compressed rows."""
    from trueline.solvers.dual.kernels import sweep_dense, sweep_sparse

    if isinstance(design, SparseDesign):
        X = design.by_rows
        parts = X.data, X.indices.astype(np.int32, copy=False), X.indptr.astype(np.int64)

        def sparse(*arguments: Any) -> tuple[int, float]:
            return sweep_sparse(*parts, *arguments)

        return sparse
    rows = np.ascontiguousarray(design.toarray() if design.dtype != np.float64 else _array(design))

    def dense(*arguments: Any) -> tuple[int, float]:
        return sweep_dense(rows, *arguments)

    return dense


def _array(design: Design) -> Array:
    return design.X if hasattr(design, "X") else design.toarray()
