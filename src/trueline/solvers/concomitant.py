r"""Huber regression together with its scale, by Newton's method on the profile.

For given residuals the best scale is the root of sum_i s_i min(r_i^2 / sigma^2, epsilon^2) = S, with
S = sum_i s_i: in q = 1 / sigma^2 the left side is concave and made of straight pieces, so that
Newton's method climbs to the root in a few steps. The profile F(v) = min over sigma of F(v, sigma) is
convex. With I the rows with |r_i| <= epsilon sigma,

    u_i = clip(2 r_i / sigma, -2 epsilon, 2 epsilon),     g = A^T S u + Q v,
    F_vv = 2/sigma A_I^T S A_I + Q,    F_vs = -2/sigma^2 A_I^T S r_I,    F_ss = 2/sigma^3 r_I^T S r_I

and v moves by the solution of (F_vv - F_vs F_vs^T / F_ss) step = -g, along which F is minimised.

The scale falls to zero where more than a share 1 - 1/epsilon^2 of the weight can be fitted exactly.
What is left then are absolute errors, 2 epsilon sum_i s_i |r_i| + alpha ||w||^2, solved exactly by
:mod:`trueline.solvers.interior_point`, and its dual point tells whether zero is right:
sum_i s_i u_i^2 / 4 <= S.

P. J. Huber, E. M. Ronchetti, "Robust Statistics", 2nd ed. (2009), section 7.7 (joint convexity); A. B.
Owen, "A robust hybrid of lasso and ridge regression", Contemp. Math. 443 (2007) 59-71.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from trueline.certificates.base import Certificate
from trueline.certificates.concomitant import certify_concomitant
from trueline.losses import Absolute
from trueline.moments import Moments
from trueline.penalties import L2, NoPenalty
from trueline.problem import ConcomitantProblem
from trueline.solution import Solution, Status
from trueline.solvers.base import Options
from trueline.solvers.curved.descent import Factor
from trueline.solvers.curved.gram import FollowingGram
from trueline.solvers.curved.rows import StandardRows
from trueline.solvers.curved.search import minimise_along
from trueline.solvers.interior_point import InteriorPoint
from trueline.solvers.newton import require_ordinary
from trueline.solvers.loop import Iteration, Monitor, Progress, run
from trueline.trace import Trace
from trueline.wording import counted

__all__ = ["best_scale", "solve_concomitant"]

Array = NDArray[np.float64]

_EPS = float(np.finfo(np.float64).eps)
_LEAST_PIVOT = 2e-14
_FIRST_MU, _LEAST_MU = 1e-8, 1e-9
_CUT, _WHOLE = 0.3, 0.9
_SHARE, _ROWS_EACH, _LONG = 16, 8, 20_000
_SAMPLE_STEPS, _SAMPLE_DECREASE = 30, 1e-6
# A scale below this share of the target's spread is taken for zero, until proven otherwise.
_COLLAPSED = 1e-11
# Residuals below such a share of it are those of rows to be fitted exactly.
_FITTED = (1e-9, 1e-5)
_STIFF, _MULTIPLIER_STEPS = 1e4, 8
_PROVEN = 1e-8
# A proof costs more than a step, and steps are exact at the end: prove when nothing is left to do.
_NEGLIGIBLE = 1e-8


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
    >>> from trueline.solvers.concomitant import best_scale
    >>> best_scale(np.array([3.0, -3.0, 3.0]), np.ones(3), epsilon=1.35)
    3.0
    """
    largest = float(np.abs(residual).max(initial=0.0))
    if largest == 0.0:
        return 0.0
    square, total = (residual / largest) ** 2, float(weights.sum())
    weighted = weights * square
    lowest = total / float(weighted.sum())  # as if nobody were beyond
    q = lowest
    if near > 0:
        # The tangent of a concave function lies above it: from anywhere, one step leads to a point
        # before the root.
        inside = square <= (epsilon * near / largest) ** 2
        bend = float(weighted @ inside)
        beyond = epsilon**2 * (total - float(weights @ inside))
        q = max((total - beyond) / bend, lowest) if bend > 0 else lowest
    for _ in range(100):
        inside = square * q <= epsilon**2
        bend = float(weighted @ inside)
        beyond = epsilon**2 * (total - float(weights @ inside))
        if beyond >= total or bend == 0.0:
            return 0.0  # no scale is too small
        ahead = (total - beyond) / bend
        if ahead <= q * (1 + 4 * _EPS):
            break
        q = ahead
    return largest / math.sqrt(q)


class _Profile:
    """The state of Newton's method on the profile."""

    def __init__(self, rows: StandardRows, y: Array, epsilon: float, quad: Array, v: Array) -> None:
        self.rows, self.y, self.epsilon, self.quad = rows, y, epsilon, quad
        self.gram = FollowingGram(rows, 1.0)
        self.size = math.sqrt(float(rows.weights @ y**2) / rows.total_weight)
        self.mu, self.scale = 0.0, 0.0
        self.v, self.residual = v, rows.scores(v) - y
        self._look()

    @property
    def is_collapsed(self) -> bool:
        return self.scale <= _COLLAPSED * self.size

    def _at(self, residual: Array) -> tuple[float, Array, NDArray[np.bool_]]:
        """Scale, u and who is inside, at residuals."""
        scale = best_scale(residual, self.rows.weights, self.epsilon, self.scale)
        if scale == 0.0:
            return 0.0, 2 * self.epsilon * np.sign(residual), np.zeros(len(residual), dtype=bool)
        part = residual / scale
        return scale, 2 * np.clip(part, -self.epsilon, self.epsilon), np.abs(part) <= self.epsilon

    def _look(self) -> None:
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
            self.decrease = 0.0
            return
        inner = s * inside * self.residual
        sums = rows.total(np.stack([weighted, inner], axis=1))
        self.gradient = sums[:, 0] + self.quad * self.v
        # In units of 2 / sigma: the scale of the residuals drops out of the system.
        half = 0.5 * self.scale
        H = self.gram.follow(s * inside) + np.diag(half * self.quad)
        square = float(inner @ self.residual)
        if square > 0:
            H = H - np.outer(sums[:, 1], sums[:, 1] / square)
        B = self.gram.whole + np.diag(half * self.quad)
        while True:
            factor = Factor(H + self.mu * B if self.mu else H)
            if factor.least > _LEAST_PIVOT or self.mu >= 1.0:
                break
            self.mu = min(max(100 * self.mu, _FIRST_MU), 1.0)
        right = half * self.gradient
        self.direction = -factor.solve(right) if factor.least > 0 else -right
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
            residual = self.residual + t * change
            scale, u, inside = self._at(residual)
            weighted = s * change
            at = float(weighted @ u) + own + t * across
            if scale == 0.0:
                return at, across
            inner = weighted * inside
            square = float((s * inside * residual) @ residual)
            bend = float(inner @ change)
            if square > 0:
                bend -= float(inner @ residual) ** 2 / square
            return at, max(bend, 0.0) * 2 / scale + across

        t = minimise_along(slope, first)
        self.v = self.v + t * self.direction
        self.residual = self.residual + t * change
        if t < _CUT:
            self.mu = min(max(self.mu, _LEAST_MU) * min(3.0 / math.sqrt(t), 1e3), 1.0)
        elif t >= _WHOLE:
            self.mu = 0.1 * self.mu / math.sqrt(t) if self.mu > _LEAST_MU else 0.0
        self._look()
        return t


def _start(rows: StandardRows, y: Array, epsilon: float, quad: Array) -> Array:
    """The answer on a sample of the rows, or least squares."""
    n, p = len(y), rows.count
    count = max(n // _SHARE, _ROWS_EACH * p)
    if n < _LONG or 2 * count > n:
        return _least_squares(rows, y, quad)
    some = np.sort(np.random.default_rng(0).choice(n, count, replace=False, shuffle=False))
    part = rows.sample(some)
    profile = _Profile(part, y[some], epsilon, quad, _least_squares(part, y[some], quad))
    for _ in range(_SAMPLE_STEPS):
        small = profile.decrease <= _SAMPLE_DECREASE * profile.objective
        if profile.is_collapsed or small or profile.step() == 0.0:
            break
    return profile.v


def _least_squares(rows: StandardRows, y: Array, quad: Array) -> Array:
    # Where nothing else tells coefficients apart, a trace of a penalty does.
    bend = np.maximum(0.5 * quad, 64 * _EPS * rows.gram.diagonal())
    return Factor(rows.gram + np.diag(bend)).solve(rows.total(rows.weights * y))


class _Prover:
    """Certificates of points; what the data alone decide is kept.

    Targets are counted from a level, so that large ones cost no digits.
    """

    def __init__(self, problem: ConcomitantProblem, rows: StandardRows, level: float) -> None:
        self.problem, self.rows, self.level = problem, rows, level
        self.spread = rows.scale * math.sqrt(rows.total_weight) * (1 + 1e-6)
        self.magnitude = np.sqrt(rows.size) * (1 + 1e-6)

    def coefficients(self, v: Array) -> tuple[Array, float]:
        w, b = self.rows.coefficients(v)
        return w, b + self.level

    def certify(self, w: Array, b: float, scale: float, u: Array) -> Certificate:
        constants = (self.rows.mean, self.spread, self.magnitude)
        return certify_concomitant(self.problem, w, b, scale, u, *constants)


class _Iteration(Iteration):
    """A step of the loop is a step of Newton's method, or the exact answer for a scale of zero."""

    def __init__(
        self, profile: _Profile, prover: _Prover, tol: float, is_watched: bool, scale: float | None
    ) -> None:
        self.profile, self._prover, self._tol = profile, prover, tol
        self._is_watched = is_watched
        self._least, self._idle, self._proven = math.inf, 0, math.inf
        self.certificate: Certificate | None = None
        self.proven_at: Array | None = None
        self.absolute: Certificate | None = None
        self._expose(scale)

    def _expose(self, scale: float | None = None) -> None:
        w, b = self._prover.coefficients(self.profile.v)
        self.coef, self.intercept = w[:, None], np.array([b])
        self.scale = self.profile.scale if scale is None else scale

    def step(self) -> None:
        if self.profile.is_collapsed:
            self._take_absolute()
            return
        length = self.profile.step()
        self._expose()
        decrease = self.profile.decrease
        # Steps that promise no more than the ones before are made of rounding.
        self._idle = self._idle + 1 if decrease >= 0.5 * self._least else 0
        self._least = min(self._least, decrease)
        self.is_stalled = length == 0.0 or (self._is_small(1.0) and self._idle > 2)

    def _is_small(self, share: float) -> bool:
        """Whether a further step promises no more than a share of the tolerance."""
        objective = max(self.profile.objective, _EPS * self.profile.size)
        return self.profile.decrease <= share * self._tol * objective

    def _take_absolute(self) -> None:
        """Absolute errors, exactly, and a scale of zero."""
        self.absolute = solve_absolute(self._prover, self.profile)
        self.coef, self.intercept = self.absolute.coef, self.absolute.intercept
        self.scale, self.is_stalled = 0.0, True

    def progress(self) -> Progress:
        profile = self.profile
        if self.absolute is not None:
            self.certificate, self.proven_at = self.absolute, profile.v
        elif profile.is_collapsed:
            return Progress(profile.objective, math.inf)
        elif self._is_watched or self._idle or self._is_small(_NEGLIGIBLE):
            w, b = self.coef[:, 0], float(self.intercept[0])
            self.certificate = self._prover.certify(w, b, self.scale, profile.u)
            self.proven_at = profile.v
            # The step is exact: what a proof does not show now, the next one will not either.
            gap = self.certificate.gap
            self.is_stalled = self.is_stalled or (
                self._is_small(_NEGLIGIBLE) and gap > 0.5 * self._proven
            )
            self._proven = min(gap, self._proven)
        else:
            return Progress(profile.objective, math.inf)
        return Progress(self.certificate.objective, self.certificate.gap)


def solve_absolute(prover: _Prover, profile: _Profile) -> Certificate:
    """The problem with a scale of zero, and its proof.

    The rows that the profile came to fit (almost) exactly usually are those of the answer; if not,
    those of the exact solution for absolute errors are.
    """
    best = _refitted(prover, profile, profile.v)
    if best.gap <= _PROVEN * best.objective + 2 * best.objective_rounding:
        return best
    problem = prover.problem
    strength = problem.alpha / problem.epsilon
    penalty = L2(strength) if strength > 0 else NoPenalty()
    absolute = replace(problem.parts, loss=Absolute(), penalty=penalty)
    solution = InteriorPoint().solve(absolute, Options(), Monitor(Trace()))
    assert solution.certificate is not None
    w, b = solution.coef[:, 0], float(solution.intercept[0])
    u = 2 * problem.epsilon * solution.certificate.witness["dual"][:, 0]
    v = profile.rows.standard(w, b - prover.level)
    found = [best, prover.certify(w, b, 0.0, u), _refitted(prover, profile, v)]
    return min(found, key=lambda certificate: certificate.gap)


def _refitted(prover: _Prover, profile: _Profile, v: Array) -> Certificate:
    """The best certificate after fitting exactly those rows that are close to it."""
    residual = profile.rows.scores(v) - profile.y
    found = []
    for near in _FITTED:
        fitted = np.abs(residual) <= near * profile.size
        exact, u = fit_exactly(profile, v, residual, fitted)
        # Of a perfect fit without a penalty, zero is the best dual point.
        for dual in (u, np.zeros_like(u)):
            found.append(prover.certify(*prover.coefficients(exact), 0.0, dual))
    return min(found, key=lambda certificate: certificate.gap)


def fit_exactly(
    profile: _Profile, v: Array, residual: Array, fitted: NDArray[np.bool_]
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
    bend = np.maximum(quad, 16 * _EPS * kappa * gram.diagonal())
    factor = Factor(kappa * gram + np.diag(bend + (gram.diagonal() == 0)))
    A, y, weighted = rows.gather(Z), profile.y[Z], s[Z]
    own, gap = np.zeros(len(Z)), A @ v - profile.y[Z]
    for _ in range(_MULTIPLIER_STEPS):
        slope = A.T @ (weighted * (own + kappa * gap)) + others + quad * v
        v = v - factor.solve(slope)
        gap = A @ v - y
        own = own + kappa * gap
    u[Z] = own
    return v, u


def solve_concomitant(
    problem: ConcomitantProblem,
    tol: float,
    max_iter: int,
    monitor: Monitor,
    start: tuple[Array, float] | None = None,
) -> Solution:
    """Minimise over coefficients, intercept and scale.

    Parameters
    ----------
    problem : ConcomitantProblem
    tol : float
        The gap to prove, relative to the objective.
    max_iter : int
    monitor : Monitor
    start : tuple, optional
        Coefficients and intercept to start from.

    Returns
    -------
    solution : Solution
        With the scale in ``extra["scale"]``.
    """
    parts = problem.parts
    moments = Moments.from_rows(parts.design, parts.target, parts.weights)
    require_ordinary(moments)
    rows = StandardRows.of(parts.design, moments, parts.weights, parts.fit_intercept)
    rows = rows.independent(problem.alpha > 0)
    quad = rows.strength(np.full(parts.n_features, 2 * problem.alpha), 2)
    level = float(moments.y_mean[0]) if parts.fit_intercept else 0.0
    y = parts.target[:, 0] - level
    if start is None:
        v = _start(rows, y, problem.epsilon, quad)
    else:
        v = rows.standard(start[0], start[1] - level)
    profile = _Profile(rows, y, problem.epsilon, quad, v)
    prover = _Prover(problem, rows, level)
    iteration = _Iteration(profile, prover, tol, monitor.is_watching, None)
    target = tol * profile.objective
    status, count, _ = run(iteration, monitor, max_iter=max_iter, target_gap=target)
    certificate = iteration.certificate
    w, b = iteration.coef[:, 0], float(iteration.intercept[0])
    if certificate is None or iteration.proven_at is not profile.v:
        certificate = iteration.absolute or prover.certify(w, b, iteration.scale, profile.u)
    enough = max(tol, _PROVEN) * abs(certificate.objective) + 2 * certificate.objective_rounding
    if certificate.gap <= enough + _unseen(problem):
        status = Status.CONVERGED
    scale = float(certificate.witness["scale"][0])
    notes = [
        f"Gram matrix formed {counted(1 + profile.gram.formed, 'time')} from all rows, "
        f"{counted(profile.gram.updated, 'time')} from those that changed"
    ]
    if iteration.absolute is not None:
        notes.append("scale zero: absolute errors, solved exactly")
    return Solution(
        certificate.coef,
        certificate.intercept,
        status,
        "newton",
        n_iter=count,
        proof=certificate,
        trace=monitor.trace,
        notes=notes,
        extra={"scale": scale},
    )


def _unseen(problem: ConcomitantProblem) -> float:
    """Gaps that nobody could tell from zero, given the digits of the target."""
    parts = problem.parts
    size = math.sqrt(parts.total_weight * float(parts.weigh(parts.target**2).sum()))
    return 1e-12 * size + 1e-280
