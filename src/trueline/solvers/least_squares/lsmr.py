r"""LSMR: least squares by Golub-Kahan bidiagonalisation of the rows.

    minimise  || B v - c ||,     B = [S^(1/2) X_c T; A^(1/2) T],  c = [S^(1/2) y_c; 0],  w = T v

LSMR is MINRES on the normal equations B^T B v = B^T c, so that ||B^T r||, the norm of the (scaled)
gradient, falls with every step (D. C.-L. Fong, M. A. Saunders, "LSMR: an iterative algorithm for
sparse least-squares problems", SIAM J. Sci. Comput. 33 (2011) 2950-2971, section 2.8; the names
below are theirs). The penalty's rows are part of B, hence no damping parameter.

From zero, and restarted from where it stands, LSMR stays in the row space of B: without a penalty
T = I and the answer is the one of least norm (Moore-Penrose). With a penalty on every coefficient
the answer is unique and T makes all columns of B unit vectors.

All targets iterate together, each with a bidiagonalisation of its own.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from trueline.certificates.choose import Prover
from trueline.problem import Problem
from trueline.solution import Solution
from trueline.solvers.base import Cost, Facts, Iteration, Monitor, Options, Progress, Solver, run
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

__all__ = ["LSMR"]

Array = NDArray[np.float64]

_EPS = float(np.finfo(np.float64).eps)


class LSMR(Solver):
    """LSMR for least squares and ridge, on dense or sparse data; least norm without a penalty."""

    name = "lsmr"
    title = "LSMR: Golub-Kahan bidiagonalisation of the rows"
    needs_loss = frozenset({"quadratic"})
    needs_penalty = frozenset({"quadratic"})
    is_direct = False
    proof = "quadratic"

    def cost(self, facts: Facts) -> Cost:
        # The same products as conjugate gradients and more vectors.
        return iteration_cost(facts, 1.1 * krylov_steps(facts), vectors=8.0)

    def solve(self, problem: Problem, options: Options, monitor: Monitor) -> Solution:
        prover = make_prover(problem)
        target = target_gap(problem, options.tol)
        schedule = ProofSchedule(prover, target, options.tol, monitor.is_watching)
        iteration = _Iteration(problem, prover, schedule)
        max_iter = options.max_iter or max(1000, 4 * problem.n_features)
        outcome = run(iteration, monitor, max_iter=max_iter, target_gap=target)
        return finish(problem, prover, iteration, outcome, monitor, self.name)


class _Operator:
    """B and B^T on pairs (rows, penalty rows), one column per target."""

    def __init__(self, problem: Problem, mean: Array) -> None:
        self.design = centred_design(problem, mean)
        curvature = curvature_matrix(problem)
        weights = problem.weights
        self.root_weight = 1.0 if weights is None else np.sqrt(weights)[:, None]
        if curvature.all():
            shift = mean if problem.fit_intercept else None
            squares = problem.design.column_squares(weights, shift)[:, None]
            # What is left of a constant column is the rounding of its mean: it stays as small.
            noise = (64 * _EPS) ** 2 * problem.design.column_squares(weights, None)[:, None]
            squares = np.where(squares + curvature > noise, squares + curvature, 1.0)
            self.scale = 1.0 / np.sqrt(squares)
        else:
            self.scale = np.ones_like(curvature)
        self.root_curvature = np.sqrt(curvature) * self.scale

    def forward(self, v: Array) -> tuple[Array, Array]:
        rows = self.root_weight * self.design.matvec(self.scale * v)
        return rows, self.root_curvature * v

    def backward(self, u: tuple[Array, Array]) -> Array:
        rows, curvature = u
        return self.scale * self.design.rmatvec(self.root_weight * rows) + (
            self.root_curvature * curvature
        )


def _normalise(*parts: Array) -> Array:
    """Scale the columns of the stacked parts to unit norm, in place; return the norms."""
    norm = np.sqrt(sum(np.sum(part * part, axis=0) for part in parts))
    inverse = np.divide(1.0, norm, out=np.zeros_like(norm), where=norm > 0)
    for part in parts:
        part *= inverse
    return norm


def _ratio(a: Array, b: Array) -> Array:
    """a / b, and zero where the bidiagonalisation has ended."""
    return np.divide(a, b, out=np.zeros_like(a), where=b != 0)


class _Iteration(Iteration):
    """The recurrences of section 2.8 without damping, each scalar an array over targets."""

    def __init__(self, problem: Problem, prover: Prover, schedule: ProofSchedule) -> None:
        self.problem, self.prover, self.schedule = problem, prover, schedule
        self.operator = _Operator(problem, prover.mean)
        self.centre = best_constant(problem)
        self.coef = np.zeros((problem.n_features, problem.n_targets))
        self.intercept = self.centre.copy()
        self._start()

    def _start(self) -> None:
        """Begin with the residual of the coefficients reached so far."""
        op = self.operator
        self.base = self.coef
        v = self.base / op.scale
        rows, curvature = op.forward(v)
        rows = op.root_weight * (self.problem.target - self.centre) - rows
        curvature = -curvature
        beta = _normalise(rows, curvature)
        self.u = rows, curvature
        self.v = op.backward(self.u)
        self.alpha = _normalise(self.v)
        ones = np.ones_like(beta)
        self.alpha_bar, self.zeta_bar = self.alpha.copy(), self.alpha * beta
        self.rho, self.rho_bar, self.c_bar, self.s_bar = ones, ones, ones, np.zeros_like(beta)
        self.h, self.h_bar = self.v.copy(), np.zeros_like(self.v)
        self.x = np.zeros_like(self.v)

    def step(self) -> None:
        op = self.operator
        rows, curvature = op.forward(self.v)
        rows -= self.alpha * self.u[0]
        curvature -= self.alpha * self.u[1]
        beta = _normalise(rows, curvature)
        self.u = rows, curvature
        v = op.backward(self.u) - beta * self.v
        alpha = _normalise(v)
        # Rotation P_k makes the bidiagonal matrix upper bidiagonal, bar P_k its transpose.
        rho_before, rho_bar_before = self.rho, self.rho_bar
        rho = np.hypot(self.alpha_bar, beta)
        c, s = _ratio(self.alpha_bar, rho), _ratio(beta, rho)
        theta = s * alpha
        self.alpha_bar = c * alpha
        theta_bar = self.s_bar * rho
        rho_bar = np.hypot(self.c_bar * rho, theta)
        c_bar, s_bar = _ratio(self.c_bar * rho, rho_bar), _ratio(theta, rho_bar)
        zeta = c_bar * self.zeta_bar
        self.zeta_bar = -s_bar * self.zeta_bar
        self.h_bar = self.h - _ratio(theta_bar * rho, rho_before * rho_bar_before) * self.h_bar
        self.x = self.x + _ratio(zeta, rho * rho_bar) * self.h_bar
        self.h = v - _ratio(theta, rho) * self.h
        self.v, self.alpha, self.rho, self.rho_bar = v, alpha, rho, rho_bar
        self.c_bar, self.s_bar = c_bar, s_bar

    def progress(self) -> Progress:
        self.coef = self.base + self.operator.scale * self.x
        self.intercept = self.centre - self.prover.mean @ self.coef
        # |zeta_bar| is ||B^T r||: the gradient's norm costs nothing. The objective is not known
        # between proofs; the loop asks only whether it is finite.
        norm = float(np.sqrt(np.sum(self.zeta_bar**2)))
        progress = self.schedule.progress(self.coef, self.intercept, norm, norm)
        if self.schedule.wants_restart:
            self._start()
        self.is_stalled = self.schedule.is_stalled
        self.is_settled = self.schedule.is_settled
        return progress
