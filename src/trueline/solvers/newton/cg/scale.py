r"""Huber regression with its scale on sparse rows with thousands of columns: no Gram matrix.

Words of texts are such rows: most of them can be fitted exactly, the scale is zero or next to it,
and thousands of products with the rows take less time than one factor of a matrix as wide as they
are. The method of multipliers (R. T. Rockafellar, "Augmented Lagrangians and applications of the
proximal point algorithm in convex programming", Math. Oper. Res. 1 (1976) 97-116) maximises the
dual D(u) of :mod:`trueline.certificates.special.concomitant`, less what a step from the last u
costs,

    u_k+1 = argmax over u of  D(u) - f/4 sum_i s_i (u_i - u_ki)^2.

Over v this is the profile with a floor f of the scale, of residuals r_i + f u_ki / 2: the largest
of D's terms u_i r_i - sigma u_i^2 / 4, sigma >= 0, and the new one is at u_i = clip(2 (r_i + f u_ki
/ 2) / sigma, -2 epsilon, 2 epsilon), sigma >= f. It is smooth; Newton's method minimises it, with
steps by conjugate gradients (X. Li, D. Sun, K.-C. Toh, "A highly efficient semismooth Newton
augmented Lagrangian method for solving lasso problems", SIAM J. Optim. 28 (2018) 433-458). The
lower the floor, the fewer such maxima are needed, and the more products each takes.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from trueline.certificates.base import Certificate
from trueline.certificates.special.concomitant import Columns, certify_concomitant
from trueline.problem import ConcomitantProblem
from trueline.solution import Solution
from trueline.solvers.base import CALL, Cost, Facts, Iteration, Monitor, Progress, run
from trueline.solvers.conjugate_gradients import conjugate_gradients
from trueline.solvers.newton.dense.rows import StandardRows
from trueline.solvers.newton.dense.scale import Profile, best_scale
from trueline.wording import counted

Array = NDArray[np.float64]

# The first floor, in units of the target's spread, and by how much it falls.
_FIRST_FLOOR, _SHARE = 1.0, 0.2
# Of the last gap and of the one asked for, what a gradient may leave of the next one.
_LEFT_OF_LAST, _LEFT = 0.01, 0.1
# The residual of the equations, relative to the first one; products of one step, and of all.
_COARSE, _FINEST, _MOST_INNER, _MOST_PRODUCTS = 0.1, 1e-6, 5000, 100_000
# A proof that is no better by this than the last one shows rounding.
_IDLE = 0.5
# Scales below this share of the target's spread may be zero as well.
_NEXT_TO_ZERO = 1e-6
# Columns that vary by less than this share of their size are constant.
_CONSTANT = 1e-8
# Multiplications of Gram matrices take less time than those of the products, up to so many each.
_GRAMS_EACH = 2e4
# Products that are expected where a scale is left, and where most rows are fitted exactly.
_FEW_PRODUCTS, _MANY_PRODUCTS, _SPARSE_SECONDS = 150.0, 2e4, 6e-9


def takes_products(facts: Facts) -> bool:
    """Whether products with sparse rows take less time than Gram matrices of them."""
    m = min(facts.n, facts.d)
    is_ready = facts.is_sparse and not facts.is_read and not facts.unpenalised
    return is_ready and float(facts.n) * m * m > _GRAMS_EACH * facts.nonzeros


def products_cost(facts: Facts) -> Cost:
    """What that is expected to cost."""
    products = _FEW_PRODUCTS if facts.n > 2 * facts.d else _MANY_PRODUCTS
    each = _SPARSE_SECONDS * (2.0 * facts.nonzeros + 4.0 * (facts.n + facts.d))
    memory = 24.0 * facts.nonzeros + 80.0 * (facts.n + facts.d)
    return Cost(4.0 * products * facts.nonzeros, 2 * products, memory, products * each + 8 * CALL)


class ProductEquations:
    """The equations of a step by conjugate gradients: nothing is formed of the rows."""

    def __init__(self, rows: StandardRows, quad: Array) -> None:
        self.quad, self.products, self.enough = quad, 0, 0.0
        self._largest = 0.0
        self._pays = np.divide(1.0, quad, out=np.zeros_like(quad), where=quad > 0)
        inverse = 1.0 / rows.scale[rows.kept]
        self._A = sparse.csr_array(rows.design.by_columns[:, rows.kept] * inverse)
        self._back = sparse.csr_array(self._A.T)  # twice as fast as by columns
        self._centre = rows.mean[rows.kept] * inverse

    def left(self, g: Array) -> float:
        """What a gradient leaves of the gap, by strong convexity, but for the intercept."""
        return 0.5 * float((g * g) @ self._pays)

    def solve(self, h: Array, half: float, across: tuple[Array, float] | None, g: Array) -> Array:
        A, back, centre, count = self._A, self._back, self._centre, len(self._centre)
        diagonal = half * self.quad

        def product(p: Array) -> Array:
            t = h * (A @ p[:count] + (p[count:].sum() - centre @ p[:count]))
            out, overall = diagonal * p, t.sum()
            out[:count] += back @ t - overall * centre
            out[count:] += overall
            return out if across is None else out - across[0] * (float(across[0] @ p) / across[1])

        conditioned = 1.0 / ((float(h.sum()) or 1.0) + diagonal)
        most = self.enough * half**2
        size = float(np.linalg.norm(g)) / half
        self._largest = max(self._largest, size)
        share = max(min(_COARSE, math.sqrt(size / (self._largest or 1.0))), _FINEST)
        step, taken = conjugate_gradients(
            product,
            -g,
            lambda r: r * conditioned,
            most=_MOST_INNER,
            enough=share**2,
            is_enough=lambda r: self.left(r) <= most,
        )
        self.products += taken
        return step

    def moved(self, t: float) -> None:
        """Directions are never damped."""


class _Multipliers(Iteration):
    """A step of the loop is a step of Newton's method; where none is left, multipliers follow."""

    def __init__(
        self, problem: ConcomitantProblem, tol: float, start: tuple[Array, float] | None
    ) -> None:
        parts = problem.parts
        self.problem, self.columns = problem, Columns.of(parts)
        self.rows = rows = _standard(problem, self.columns)
        quad = rows.strength(np.full(parts.n_features, 2 * problem.alpha), 2)
        level = float(rows.weights @ parts.target[:, 0]) / rows.total_weight
        self._level = level if parts.fit_intercept else 0.0
        y = parts.target[:, 0] - self._level
        v = np.zeros(rows.count)
        if start is not None:
            v = rows.standard(start[0], start[1] - self._level)
        self.equations = ProductEquations(rows, quad)
        self.profile = Profile(rows, y, problem.epsilon, quad, v, self.equations, _FIRST_FLOOR)
        self.target = tol * self.profile.objective
        self.equations.enough = _LEFT_OF_LAST * self.profile.objective
        self.certificate: Certificate | None = None
        self._proven_at: Array | None = None
        self._expose()

    def _expose(self) -> None:
        w, b = self.rows.coefficients(self.profile.v)
        self.coef, self.intercept = w[:, None], np.array([b + self._level])

    def step(self) -> None:
        before = math.inf if self.certificate is None else self.certificate.gap
        length = self.profile.step()
        self._expose()
        if length == 0.0:
            gap = self.prove().gap
            self.equations.enough = max(_LEFT_OF_LAST * gap, _LEFT * self.target)
            is_idle = gap > max(_IDLE * before, self.target)
            self.is_stalled = is_idle or self.equations.products > _MOST_PRODUCTS
            if gap > self.target and not self.is_stalled:
                self.profile.multiply(_SHARE)
                self.is_stalled = self.profile.is_collapsed

    def prove(self) -> Certificate:
        """The certificate of the present point."""
        if self.certificate is not None and self._proven_at is self.profile.v:
            return self.certificate
        profile = self.profile
        residual = profile.residual - profile.shift
        scale = best_scale(residual, self.rows.weights, profile.epsilon)
        self.certificate, self._proven_at = self._proven(scale), profile.v
        return self.certificate

    def _proven(self, scale: float) -> Certificate:
        w, b = self.coef[:, 0], float(self.intercept[0])
        return certify_concomitant(self.problem, w, b, scale, self.profile.u, self.columns)

    def at_the_end(self) -> Certificate:
        """The certificate of the answer, with a scale of zero where that is as good."""
        found = self.prove()
        if float(found.witness["scale"][0]) > _NEXT_TO_ZERO * self.profile.size:
            return found
        at_zero = self._proven(0.0)
        return at_zero if at_zero.gap <= max(self.target, found.gap) else found

    def progress(self) -> Progress:
        known = self.certificate
        if known is None:
            return Progress(self.profile.objective, math.inf)
        return Progress(known.objective, known.gap)


def solve_by_products(
    problem: ConcomitantProblem,
    tol: float,
    max_iter: int,
    monitor: Monitor,
    start: tuple[Array, float] | None,
) -> Solution:
    """The solution by multipliers, in which no matrix is formed of the rows."""
    iteration = _Multipliers(problem, tol, start)
    status, count, _ = run(iteration, monitor, max_iter=max_iter, target_gap=iteration.target)
    certificate = iteration.at_the_end()
    products = counted(iteration.equations.products, "product")
    return monitor.solution(
        certificate,
        status,
        "newton",
        count,
        notes=[f"steps by conjugate gradients, {products} with the rows and back"],
        extra={"scale": float(certificate.witness["scale"][0])},
    )


def _standard(problem: ConcomitantProblem, columns: Columns) -> StandardRows:
    """Rows in standard coordinates, by means and sums of squares alone."""
    parts = problem.parts
    s = np.ones(parts.n_samples) if parts.weights is None else parts.weights
    kept = np.flatnonzero(columns.spread > _CONSTANT * columns.magnitude)
    scale, nothing = columns.spread / math.sqrt(float(s.sum())), np.zeros((0, 0))
    size = columns.magnitude**2
    if not np.isfinite(size.sum()):
        raise FloatingPointError("the sums of squares of the data are not finite")
    return StandardRows(
        parts.design, s, parts.fit_intercept, columns.mean, scale, kept, False, nothing, size
    )
