r"""The multiclass hinge, by an interior-point method for few columns and classes.

With the level t_i of a row and slacks sigma_im = t_i - [m is not y_i] - z_im >= 0 the problem is

    minimise  sum_i s_i (t_i - z_i,y_i) + penalty(W).

Its multipliers are weights p_i of the classes of each row, p_im >= 0 with sum 1, and at the optimum

    sigma_im p_im = 0,      X^T S (p - y) + penalty'(W) = 0,      sum_i s_i (p_i - y_i) = 0,

which says that u = p - y is the dual point. Newton's method is applied to these equations with mu
in place of the first zero (S. Mehrotra, "On the implementation of a primal-dual interior point
method", SIAM J. Optim. 2 (1992) 575-601). With g = p / sigma, G_i = sum_m g_im, levels and
multipliers are eliminated row by row, and what is left for the coefficients is

    sum_i s_i a_i a_i^T (x) (diag(g_i) - g_i g_i^T / G_i) + A,

the Hessian of a softmax regression with other weights. Its blocks are formed from products that do
not cancel: on the diagonal g_im sum_{l is not m} g_il / G_i.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack

from trueline.certificates.duality import certify_dual
from trueline.problem import Problem
from trueline.solution import Solution, Status
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
from trueline.solvers.iterative import target_gap
from trueline.solvers.newton.dense.rows import StandardRows

Array = NDArray[np.float64]

# Systems of more coefficients, and matrices of more entries, are left to methods that form none.
_MOST_COEFFICIENTS, _MOST_ENTRIES = 2000, 2e7
_STEPS, _MAX_ITER = 22.0, 100
# Steps end this share of the way to the boundary.
_SHORT = 0.995
# The last steps gain many digits each: this much is asked for in any case.
_FINE = 1e-7


class ClassInteriorPoint(Solver):
    """Predictor and corrector, all coefficients of all classes in one system."""

    name = "class_interior_point"
    title = "interior point, one linear system for all classes per step"
    needs_loss = frozenset({"dual_classes"})
    needs_penalty = frozenset({"quadratic"})
    is_direct = False
    proof = "duality"

    def refuses(self, facts: Facts) -> str | None:
        if not facts.has_one_strength:
            return "needs one positive strength"
        unknowns = facts.k * (facts.d + facts.fit_intercept)
        if unknowns > _MOST_COEFFICIENTS:
            return f"solves systems of all {unknowns} coefficients"
        if float(facts.n) * facts.d > _MOST_ENTRIES:
            return f"takes dense copies of {facts.n} x {facts.d} numbers"
        return None

    def cost(self, facts: Facts) -> Cost:
        n, p, k = facts.n, facts.d + facts.fit_intercept, facts.k
        pairs = k * (k + 1) / 2
        flops = _STEPS * (pairs * 2.0 * n * p * p + (p * k) ** 3 / 3.0)
        each = pairs * (3e-9 * n * p + 2e-5) + 1e-7 * n * k + 5e-4
        seconds = CALL + flops / 3e10 + _STEPS * each
        memory = 8.0 * (2.0 * n * p + 10.0 * n * k + 2.0 * (p * k) ** 2)
        return Cost(flops, _STEPS * pairs, memory, seconds)

    def solve(self, problem: Problem, options: Options, monitor: Monitor) -> Solution:
        rows = StandardRows.of(problem.design, problem.weights, problem.fit_intercept)
        target = target_gap(problem, options.tol)
        iteration = _Iteration(problem, rows, min(target, _FINE * target / options.tol))
        status, n_iter, _ = run(
            iteration,
            monitor,
            max_iter=options.max_iter or _MAX_ITER,
            target_gap=iteration.target,
        )
        W, b = iteration.coef, iteration.intercept
        scale = rows.scale * np.sqrt(rows.total_weight) * (1 + 1e-6)
        certificate = certify_dual(problem, W, b, iteration.dual(), rows.mean, scale)
        if certificate.gap <= target:
            status = Status.CONVERGED
        return monitor.solution(certificate, status, self.name, n_iter)


class _Iteration(Iteration):
    """Coefficients V in standard coordinates, levels t, slacks sigma and multipliers p."""

    def __init__(self, problem: Problem, rows: StandardRows, target: float) -> None:
        self.problem, self.rows, self.target = problem, rows, target
        n, k = problem.target.shape
        self._A, self._s = rows.gather(slice(None)), rows.weights[:, None]
        curvature = float(np.max(problem.penalty.curvature))
        self._quad = rows.strength(np.full(problem.n_features, curvature), 2)[:, None]
        self._y, self._required = problem.target, 1.0 - problem.target
        self.V = np.zeros((rows.count, k))
        self.p = np.full((n, k), 1.0 / k)
        self._scores = np.zeros((n, k))
        self.level = np.full((n, 1), 2.0)
        self.sigma = self.level - self._required
        self._expose()

    def _expose(self) -> None:
        found = [self.rows.coefficients(v) for v in self.V.T]
        self.coef = np.stack([w for w, _ in found], axis=1)
        self.intercept = np.array([b for _, b in found])

    def dual(self) -> Array:
        """The derivatives u of the losses."""
        return np.asarray(self.p / self.p.sum(axis=1, keepdims=True) - self._y)

    # --- a step ---------------------------------------------------------------------------------

    def step(self) -> None:
        self._form()
        mu = float((self.sigma * self.p).mean())
        moves = self._direction(0.0, 0.0)
        length = self._length(moves)
        ahead = float(((self.sigma + length * moves[2]) * (self.p + length * moves[3])).mean())
        moves = self._direction(mu * (ahead / mu) ** 3, moves[2] * moves[3])
        length = _SHORT * self._length(moves)
        dV, dt, dsigma, dp = moves
        self.V = self.V + length * dV
        self.level = self.level + length * dt
        self.sigma, self.p = self.sigma + length * dsigma, self.p + length * dp
        self._scores = self._A @ self.V
        self.is_stalled = length < 1e-8 or not np.isfinite(length)
        self._expose()

    def _form(self) -> None:
        """g, G and the factor of the system."""
        (_, q), k, s = self._A.shape, self.p.shape[1], self._s[:, 0]
        g = self.p / self.sigma
        G = g.sum(axis=1)
        H = np.zeros((k * q, k * q))
        for m in range(k):
            others = g[:, :m].sum(axis=1) + g[:, m + 1 :].sum(axis=1)
            for other in range(m + 1):
                h = g[:, m] * (others if other == m else -g[:, other]) / G
                block = self._A.T @ ((s * h)[:, None] * self._A)
                H[m * q : (m + 1) * q, other * q : (other + 1) * q] = block
        held = np.tile(self._quad[:, 0], k)
        if self.rows.fit_intercept:
            # Nothing changes if all intercepts do by as much: that direction is closed.
            last = np.arange(k) * q + q - 1
            H[np.ix_(last, last)] += H[last, last].max() / k
        H[np.arange(k * q), np.arange(k * q)] += held
        root = np.sqrt(H.diagonal())
        H /= np.outer(root, root)
        # Rounding may leave nothing of directions that only rows near no boundary hold.
        for trace in (0.0, 1e-14, 1e-12, 1e-10):
            factor, info = lapack.dpotrf(H + trace * np.eye(k * q), lower=1)
            if info == 0:
                break
        self._factor, self._root, self._g, self._G = factor, root, g, G[:, None]

    def _direction(self, mu: float, corrected: float | Array) -> tuple[Array, Array, Array, Array]:
        """Moves of V, t, sigma and p towards sigma p = mu."""
        g, G, A = self._g, self._G, self._A
        c = (mu - corrected) / self.sigma - self.p
        total = c.sum(axis=1, keepdims=True)
        u = self.p - self._y + c - g * (total / G)
        right = -(A.T @ (self._s * u)) - self._quad * self.V
        flat = right.T.ravel() / self._root
        solved = lapack.dpotrs(self._factor, flat, lower=1)[0] / self._root
        dV = np.ascontiguousarray(solved.reshape(right.T.shape).T)
        dz = A @ dV
        dt = ((g * dz).sum(axis=1, keepdims=True) + total) / G
        dsigma = dt - dz
        return dV, dt, dsigma, c - g * dsigma

    def _length(self, moves: tuple[Array, Array, Array, Array]) -> float:
        """How far slacks and multipliers stay positive, at most 1."""
        most = 1.0
        for at, move in ((self.sigma, moves[2]), (self.p, moves[3])):
            with np.errstate(divide="ignore", invalid="ignore"):
                most = min(most, float(np.where(move < 0, -at / move, np.inf).min()))
        return most

    def progress(self) -> Progress:
        problem = self.problem
        loss = problem.loss.value(self._y, self._scores)
        penalty = 0.5 * float((self._quad * self.V**2).sum())
        objective = float((self._s * loss).sum()) + penalty
        u = self.dual()
        correlation = self._A.T @ (self._s * u)
        held = self._quad[:, 0] > 0
        lower = -float((self._s * np.where(self._y != 0, u, 0.0)).sum())
        lower -= 0.5 * float((correlation[held] ** 2 / self._quad[held]).sum())
        lower -= float(np.abs(correlation[~held] * self.V[~held]).sum())
        return Progress(objective, max(objective - lower, 0.0))
