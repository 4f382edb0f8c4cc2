r"""The profile of Huber regression over its scale, and Newton's method on it.

For given residuals the best scale is the root of sum_i s_i min(r_i^2 / sigma^2, epsilon^2) = S,
S = sum_i s_i: in q = 1 / sigma^2 the left side is concave and made of straight pieces, so that
Newton's method climbs to the root in a few steps. The profile F(v) = min over sigma of F(v, sigma)
is convex. With I the rows with |r_i| <= epsilon sigma,

    u_i = clip(2 r_i / sigma, -2 epsilon, 2 epsilon),     g = A^T S u + Q v,
    F_vv = 2/sigma A_I^T S A_I + Q,
    F_vs = -2/sigma^2 A_I^T S r_I,         F_ss = 2/sigma^3 r_I^T S r_I

and v moves by the solution of (F_vv - F_vs F_vs^T / F_ss) step = -g, along which F is minimised.

Where rows are fitted exactly the best scale of these residuals may be zero, and F has a kink in v:
no step leads on, though another v with a positive scale may be better. From there the scale is kept
above a floor, sigma >= f, with F_vs = 0 while sigma = f; the profile is smooth again, and f shrinks
until the scale is above it.

P. J. Huber, E. M. Ronchetti, "Robust Statistics", 2nd ed. (2009), section 7.7 (joint convexity);
A. B. Owen, "A robust hybrid of lasso and ridge regression", Contemp. Math. 443 (2007) 59-71.
"""

from __future__ import annotations

import math
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from trueline.solvers.iterative import minimise_along
from trueline.solvers.newton.dense.descent import Factor
from trueline.solvers.newton.dense.rows import FollowingGram, StandardRows, piecewise, rowwise

Array = NDArray[np.float64]

_EPS = float(np.finfo(np.float64).eps)
_LEAST_PIVOT = 2e-14
_FIRST_MU, _LEAST_MU = 1e-8, 1e-9
_CUT, _WHOLE = 0.3, 0.9
# A scale below this share of the target's spread is taken for zero, until proven otherwise.
_COLLAPSED = 1e-11
# The first floor of a scale that is not zero, in units of that spread, and by how much it shrinks.
_FLOOR = 0.1
_STIFF, _MULTIPLIER_STEPS = 1e4, 8


def best_scale(residual: Array, weights: Array, epsilon: float, near: float = 0.0) -> float:
    """The scale that minimises sum_i s_i (sigma + sigma H(r_i / sigma)).

    Parameters
    ----------
    residual, weights : arrays of shape (n,)
    epsilon : float
    near : float, optional
        A scale to start from.

    Examples
    --------
    >>> import numpy as np
    >>> from trueline.solvers.newton.dense.scale import best_scale
    >>> best_scale(np.array([3.0, -3.0, 3.0]), np.ones(3), epsilon=1.35)
    3.0
    """
    n = len(residual)
    ends = piecewise(lambda some: np.abs(residual[some]).max(initial=0.0), n)
    largest = float(max(ends, default=0.0))
    if largest == 0.0:
        return 0.0
    square = rowwise(lambda some: (some / largest) ** 2, residual)
    total, weighted = float(weights.sum()), rowwise(np.multiply, weights, square)

    def sums_inside(most: float) -> tuple[float, float]:
        """The curvature of those inside, and what those beyond it weigh."""

        def work(some: slice) -> Array:
            inside = square[some] <= most
            return np.array([weighted[some] @ inside, weights[some] @ inside])

        curvature, inside = np.sum(piecewise(work, n), axis=0)
        return float(curvature), epsilon**2 * (total - float(inside))

    lowest = total / float(weighted.sum())  # as if no residual were beyond
    q = lowest
    if near > 0:
        # The tangent of a concave function lies above it: from anywhere, one step leads to a point
        # before the root.
        curvature, beyond = sums_inside((epsilon * near / largest) ** 2)
        q = max((total - beyond) / curvature, lowest) if curvature > 0 else lowest
    for _ in range(100):
        curvature, beyond = sums_inside(epsilon**2 / q)
        if beyond >= total or curvature == 0.0:
            return 0.0  # no scale is too small
        ahead = (total - beyond) / curvature
        if ahead <= q * (1 + 4 * _EPS):
            break
        q = ahead
    return largest / math.sqrt(q)


class Equations(Protocol):
    """How the linear equations of a step are solved.

    With h_i = s_i inside and zero beyond, and half = sigma / 2, the matrix is

        H = A^T diag(h) A + half Q - c c^T / square
    """

    def solve(self, h: Array, half: float, across: tuple[Array, float] | None, g: Array) -> Array:
        """About -H^-1 g; ``across`` is c and its square, or None."""

    def moved(self, t: float) -> None:
        """The best step along such a direction was of length t."""


class GramEquations:
    """By a factor of the Gram matrix, which follows h; damped where steps were too long."""

    def __init__(self, rows: StandardRows, quad: Array) -> None:
        self.gram, self.quad, self.mu = FollowingGram(rows, 1.0), quad, 0.0

    def solve(self, h: Array, half: float, across: tuple[Array, float] | None, g: Array) -> Array:
        H = self.gram.follow(h) + np.diag(half * self.quad)
        if across is not None:
            H = H - np.outer(across[0], across[0] / across[1])
        B = self.gram.whole + np.diag(half * self.quad)
        while True:
            factor = Factor(H + self.mu * B if self.mu else H)
            if factor.least > _LEAST_PIVOT or self.mu >= 1.0:
                break
            self.mu = min(max(100 * self.mu, _FIRST_MU), 1.0)
        return -factor.solve(g) if factor.least > 0 else -g

    def moved(self, t: float) -> None:
        if t < _CUT:
            self.mu = min(max(self.mu, _LEAST_MU) * min(3.0 / math.sqrt(t), 1e3), 1.0)
        elif t >= _WHOLE:
            self.mu = 0.1 * self.mu / math.sqrt(t) if self.mu > _LEAST_MU else 0.0


class Profile:
    """The state of Newton's method on the profile."""

    def __init__(
        self,
        rows: StandardRows,
        y: Array,
        epsilon: float,
        quad: Array,
        v: Array,
        equations: Equations,
        floor: float = 0.0,
    ) -> None:
        self.rows, self.y, self.epsilon, self.quad = rows, y, epsilon, quad
        self.equations = equations
        self.size = math.sqrt(float(rows.weights @ y**2) / rows.total_weight)
        self.scale, self.floor = 0.0, floor * self.size
        self.v, self.residual, self.shift = v, rows.scores(v) - y, np.zeros(len(y))
        self._evaluate()

    @property
    def is_collapsed(self) -> bool:
        return self.scale <= _COLLAPSED * self.size

    @property
    def is_on_floor(self) -> bool:
        """Whether the scale would be smaller if it could."""
        return 0.0 < self.floor == self.scale

    def move_floor(self) -> bool:
        """Keep the scale above a floor, or lower the floor; False where that is next to zero."""
        self.floor = _FLOOR * (self.floor or self.size)
        self._evaluate()
        return not self.is_collapsed

    def multiply(self, share: float) -> None:
        """Lower the floor f, and take u for multipliers: residuals are counted from -f u / 2.

        Where a floor f changes u no more, u is a dual point of the problem without a floor.
        """
        self.residual = self.residual + 0.5 * (share * self.floor) * self.u - self.shift
        self.shift = 0.5 * share * self.floor * self.u
        self.floor *= share
        self._evaluate()

    def _at(self, residual: Array) -> tuple[float, Array, NDArray[np.bool_]]:
        """Scale, u and who is inside, at residuals."""
        scale = best_scale(residual, self.rows.weights, self.epsilon, self.scale)
        scale = max(scale, self.floor)
        if scale == 0.0:
            return 0.0, 2 * self.epsilon * np.sign(residual), np.zeros(len(residual), dtype=bool)
        u, inside = np.empty(len(residual)), np.empty(len(residual), dtype=bool)

        def work(some: slice) -> None:
            part = residual[some] / scale
            u[some] = 2 * np.clip(part, -self.epsilon, self.epsilon)
            inside[some] = np.abs(part) <= self.epsilon

        piecewise(work, len(residual))
        return scale, u, inside

    def _evaluate(self) -> None:
        rows, s = self.rows, self.rows.weights
        self.scale, self.u, inside = self._at(self.residual)
        weighted = s * self.u
        self.objective = float(weighted @ self.residual + 0.5 * self.quad @ self.v**2)
        # The scale is the best one: this vanishes, up to rounding, unless the scale is zero.
        self.objective += self.scale * (rows.total_weight - 0.25 * float(weighted @ self.u))
        self.decrease = math.inf
        if self.is_collapsed:
            return
        if not rows.count:
            self.decrease, self.gradient = 0.0, np.zeros(0)
            self.direction = self.gradient
            return
        inner = s * inside * self.residual
        sums = rows.total(np.stack([weighted, inner], axis=1))
        self.gradient = sums[:, 0] + self.quad * self.v
        # In units of 2 / sigma: the scale of the residuals drops out of the system.
        half = 0.5 * self.scale
        square = float(inner @ self.residual)
        across = (sums[:, 1], square) if square > 0 and not self.is_on_floor else None
        self.direction = self.equations.solve(s * inside, half, across, half * self.gradient)
        self.decrease = max(-0.5 * float(self.gradient @ self.direction), 0.0)

    def step(self) -> float:
        """Move; the length of the step, 0 if rounding allows for none."""
        s, quad = self.rows.weights, self.quad
        change = self.rows.scores(self.direction)
        first = float(self.gradient @ self.direction)
        if not first < 0 or not np.isfinite(first):
            return 0.0
        own, across = float(quad @ (self.v * self.direction)), float(quad @ self.direction**2)

        def slope(t: float) -> tuple[float, float]:
            residual = rowwise(lambda now, rise: now + t * rise, self.residual, change)
            scale, u, inside = self._at(residual)

            def work(some: slice) -> Array:
                z, rise = residual[some], change[some]
                weighted, kept = s[some] * rise, s[some] * inside[some]
                inner, outer = kept * rise, kept * z
                return np.array([weighted @ u[some], inner @ rise, inner @ z, outer @ z])

            at, curvature, mixed, square = map(float, np.sum(piecewise(work, len(s)), axis=0))
            at += own + t * across
            if scale == 0.0:
                return at, across
            if square > 0 and scale > self.floor:
                curvature -= mixed**2 / square
            return at, max(curvature, 0.0) * 2 / scale + across

        t = minimise_along(slope, first)
        self.v = self.v + t * self.direction
        self.residual = self.residual + t * change
        self.equations.moved(t)
        self._evaluate()
        return t


def least_squares(rows: StandardRows, y: Array, quad: Array) -> Array:
    """Where to start."""
    # Where nothing else determines the coefficients, a trace of a penalty does.
    curvature = np.maximum(0.5 * quad, 64 * _EPS * rows.gram.diagonal())
    return Factor(rows.gram + np.diag(curvature)).solve(rows.total(rows.weights * y))


def fit_exactly(
    profile: Profile, v: Array, residual: Array, fitted: NDArray[np.bool_]
) -> tuple[Array, Array]:
    """v and u with no residual in the rows Z that are to be fitted, by multipliers.

    Minimised is 2 epsilon sum_{not Z} s_i |r_i| + v^T Q v / 2 where r_Z = 0, by the augmented
    Lagrangian: with H = kappa A_Z^T S A_Z + Q,

        v <- v - H^-1 (A_Z^T S (u_Z + kappa r_Z) + A_N^T S u_N + Q v),      u_Z <- u_Z + kappa r_Z.

    Multipliers found so lie in the range of A_Z: of all that serve they have the least norm.
    """
    rows, s, quad = profile.rows, profile.rows.weights, profile.quad
    u = np.where(fitted, 0.0, 2 * profile.epsilon * np.sign(residual))
    if not fitted.any() or not len(v):
        return v, u
    Z = np.flatnonzero(fitted)
    others = rows.total(s * u)
    gram = rows.gram_of(s[Z], Z)
    kappa = max(_STIFF * float(quad.max()), 1e3 / (profile.size or 1.0)) / float(s[Z].mean())
    curvature = np.maximum(quad, 16 * _EPS * kappa * gram.diagonal())
    factor = Factor(kappa * gram + np.diag(curvature + (gram.diagonal() == 0)))
    A, y, weighted = rows.gather(Z), profile.y[Z], s[Z]
    own, gap = np.zeros(len(Z)), A @ v - profile.y[Z]
    for _ in range(_MULTIPLIER_STEPS):
        slope = A.T @ (weighted * (own + kappa * gap)) + others + quad * v
        v = v - factor.solve(slope)
        gap = A @ v - y
        own = own + kappa * gap
    u[Z] = own
    return v, u
