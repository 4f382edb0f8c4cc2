r"""Proximal Newton steps for one target: absolute values, squares and bounds on coefficients.

    minimise over v     sum_i s_i l(y_i, a_i.v) + p(v),
                        p(v) = sum_j l_j |v_j| + q_j/2 v_j^2,      v within bounds

    step = argmin over e of    g.e + 1/2 e^T H e + p(v + e),       H = A^T S diag(l''(z)) A + mu B

(J. D. Lee, Y. Sun, M. A. Saunders, "Proximal Newton-type methods for minimizing composite
functions", SIAM J. Optim. 24 (2014) 1420-1443). The intercept, which p leaves alone, is eliminated
from the model; what remains is a lasso in terms of a Gram matrix, solved by
:class:`~trueline.solvers.coordinate_descent.gram.RestrictedGram`. Where a whole step promises too
much, the loss along the step plus the chord of p is minimised: p is convex and lies below its
chord.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from trueline.losses import Loss, Squared
from trueline.solvers.coordinate_descent.gram import RestrictedGram
from trueline.solvers.coordinate_descent.terms import Terms
from trueline.solvers.line_search import minimise_along
from trueline.solvers.newton.dense.descent import approach, run_steps, sample_tells
from trueline.solvers.newton.dense.rows import (
    FollowingGram,
    StandardRows,
    derivatives,
    derivatives_along,
    rowwise,
)

__all__ = ["ProximalDescent", "proximal_start", "standard_terms"]

Array = NDArray[np.float64]

# Models are never quite flat: of dependent columns, and where no row bends.
_LEAST_MU, _MOST_MU = 1e-8, 1.0
_CUT, _WHOLE, _SUFFICIENT = 0.3, 0.9, 0.1
_MODEL = 1e-12
_SHARE, _ROWS_EACH, _LONG = 16, 8, 20_000
_SAMPLE_DECREASE = 1e-6


def standard_terms(rows: StandardRows, terms: Terms) -> Terms:
    """The penalty in standard coordinates, of the kept columns."""
    scale = rows.scale[rows.kept]
    linear, curvature, lower, upper = terms.at(rows.kept)
    return Terms.of(linear / scale, curvature / scale**2, lower * scale, upper * scale)


class ProximalDescent:
    """The state of the method.

    Attributes
    ----------
    v, z, u, bends : arrays of shape (p,), (n,), (n,) and (n,)
        The point, its scores, and the loss's derivatives, first and second.
    decrease : float
        What the model promises of a further step.
    """

    def __init__(self, rows: StandardRows, loss: Loss, y: Array, terms: Terms, v: Array) -> None:
        self.rows, self.loss, self.y, self.terms = rows, loss, y, terms
        self.gram = FollowingGram(rows, loss.curvature_bound)
        self.mu, self.sweeps = _LEAST_MU, 0
        self.v = v.copy()
        self.v[: len(terms.linear)] = np.clip(v[: len(terms.linear)], terms.lower, terms.upper)
        self.z = rows.scores(self.v)
        self._evaluate()

    def penalty(self, v: Array) -> float:
        w = v[: len(self.terms.linear)]
        return float(self.terms.linear @ np.abs(w) + 0.5 * self.terms.bend @ w**2)

    def _losses(self, z: Array) -> float:
        return float((self.rows.weights * rowwise(self.loss.value, self.y, z)).sum())

    def _evaluate(self, losses: float | None = None) -> None:
        """What the present point says, and the next step; ``losses`` is their sum, if known."""
        rows, loss = self.rows, self.loss
        self.u, self.bends = derivatives(loss, self.y, self.z)
        weighted = rows.weights * self.u
        self.gradient = rows.total(weighted)
        H = self.gram.follow(rows.weights * self.bends)
        H = H + self.mu * self.gram.whole
        losses = self._losses(self.z) if losses is None else losses
        self.objective = losses + self.penalty(self.v)
        self.direction = self._model_step(H, float(weighted @ self.u))
        ahead = self.penalty(self.v + self.direction) - self.penalty(self.v)
        self.promise = float(self.gradient @ self.direction) + ahead
        self.decrease = max(-self.promise, 0.0)

    def use(self, loss: Loss) -> None:
        """Go on with another loss."""
        self.loss = loss
        self._evaluate()

    def _model_step(self, H: Array, size: float) -> Array:
        """The minimum of the model, from the Gram matrix of centred columns."""
        d, g = len(self.terms.linear), self.gradient
        G, q = H[:d, :d], -g[:d]
        if self.rows.fit_intercept:
            across = H[:d, d]
            G = G - np.outer(across, across / H[d, d])
            q = q + across * (g[d] / H[d, d])
        step = np.zeros(len(self.v))
        if d:
            w = self.v[:d]
            model = RestrictedGram(0.0)
            model.extend(np.arange(d), np.ascontiguousarray(G), w, q)
            model.scale = 0.5 * (float((2 * q + G @ w) @ w) + size)
            model.set_terms(self.terms)
            model.restore(w, q)
            model.solve(_MODEL * max(self.objective, 1e-300))
            step[model.columns] = model.coef - w[model.columns]
            self.sweeps += model.sweeps
        if self.rows.fit_intercept:
            step[d] = -(g[d] + H[d, :d] @ step[:d]) / H[d, d]
        return step

    def step(self) -> float:
        """Move; the length of the step, 0 if rounding allows for none."""
        if not self.promise < 0 or not np.isfinite(self.promise):
            return 0.0
        change = self.rows.scores(self.direction)
        ahead = self.v + self.direction
        chord = self.penalty(ahead) - self.penalty(self.v)

        def slope(t: float) -> tuple[float, float]:
            weights = self.rows.weights
            _, _, rise, curvature = derivatives_along(self.loss, self.y, self.z, change, t, weights)
            return rise + chord, curvature

        t, z = 1.0, self.z + change
        losses = self._losses(z)
        if losses + self.penalty(ahead) > self.objective + _SUFFICIENT * self.promise:
            t = minimise_along(slope, self.promise, 1.0)
            z = self.z + t * change
        # What the model set to zero, or on a bound, is there exactly after a whole step.
        self.v = ahead if t == 1.0 else self.v + t * self.direction
        self.z = z
        if t < _CUT:
            self.mu = min(self.mu * min(3.0 / np.sqrt(t), 1e3), _MOST_MU)
        elif t >= _WHOLE:
            self.mu = max(0.1 * self.mu, _LEAST_MU)
        self._evaluate(losses if t == 1.0 else None)
        return t


def proximal_start(
    rows: StandardRows, loss: Loss, y: Array, terms: Terms, constant: float
) -> Array:
    """The answer on a sample of the rows, or the lasso for squared errors."""
    n, p = len(y), rows.count
    count = max(n // _SHARE, _ROWS_EACH * p)
    if n < _LONG or 2 * count > n or not sample_tells(loss, y, count / n, p):
        return _crude_start(rows, loss, y, terms, constant)
    some = np.sort(np.random.default_rng(0).choice(n, count, replace=False, shuffle=False))
    part = rows.sample(some)
    crude = _crude_start(part, loss, y[some], terms, constant)
    descent = ProximalDescent(part, loss, y[some], terms, crude)
    approach(descent, loss)
    run_steps(descent, _SAMPLE_DECREASE)
    return descent.v


def _crude_start(rows: StandardRows, loss: Loss, y: Array, terms: Terms, constant: float) -> Array:
    """The lasso for squared errors, or the constant alone: what costs less."""
    v = np.zeros(rows.count)
    if rows.fit_intercept:
        v[-1] = constant
    if "margins" in loss.capabilities:  # labels are no numbers to fit: the first step is as good
        return v
    share = 1.0 / loss.curvature_bound
    squares = ProximalDescent(rows, Squared(), y, terms.scaled(share, share), v)
    squares.step()
    s = rows.weights

    def value(point: Array) -> float:
        w = point[: len(terms.linear)]
        penalty = float(terms.linear @ np.abs(w) + 0.5 * terms.bend @ w**2)
        return float((s * loss.value(y, rows.scores(point))).sum()) + penalty

    start = ProximalDescent(rows, Squared(), y, terms, v).v
    return squares.v if value(squares.v) < value(start) else start
