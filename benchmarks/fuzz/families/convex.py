"""Losses and penalties beside the quadratic ones, each against a solver that is not ours.

Objectives are written down once more here, as sums over the rows of exact scores, in extended
precision where the machine has it. References are points: the best objective of those that others
return counts.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import sklearn.linear_model as peers
from numpy.typing import NDArray
from sklearn.svm import SVC

import trueline
from benchmarks.fuzz import data, exact
from benchmarks.fuzz.frame import Case
from benchmarks.fuzz.reference import least_linear, newton

__all__ = ["absolute", "chebyshev", "counts", "lasso", "logistic", "margins"]

Array = NDArray[np.float64]
Rng = np.random.Generator
Objective = Callable[[Array, float], float]
Point = tuple[Array, float]


class _Drawn:
    """Mild random data with weights."""

    def __init__(self, rng: Rng, is_tall: bool = False) -> None:
        n, d = data.shape(rng, 20, 8)
        n = max(n, 2 * d + 4) if is_tall else max(n, 4)
        is_sparse = rng.random() < 0.2
        X, about = data.design(rng, n, d, is_sparse, is_mild=True)
        self.held, self.X, how = data.as_given(rng, X, is_sparse)
        self.s, weighing = data.weights(rng, n)
        if self.s is not None and "orders" in weighing:
            self.s, weighing = rng.uniform(0.1, 3.0, n), "weights: ordinary"
        self.weight = np.ones(n) if self.s is None else self.s
        self.note = ", ".join(text for text in (about, how, weighing) if text)
        self.mean = self.weight @ self.X / self.weight.sum()
        spread = np.sqrt(self.weight @ (self.X - self.mean) ** 2 / self.weight.sum())
        self.spread = np.where(spread > 1e-12 * np.abs(self.mean), spread, 1.0)
        self.V = (self.X - self.mean) / self.spread

    def scores(self, w: Array, b: float) -> Any:
        return exact.scores(self.X, w, b)

    def point(self, v: Array) -> Point:
        """Coefficients and intercept of those of the standardised columns (intercept last)."""
        w = v[:-1] / self.spread
        return w, float(v[-1] - self.mean @ w)

    def case(
        self,
        model: Any,
        y: Any,
        objective: Objective,
        found: Callable[[], list[Point]],
        zero: Point,
        least: float = 0.0,
    ) -> Case:
        """A case whose scale is the objective at a point without coefficients.

        Objectives below the least one are made of rounding.
        """

        def value(fitted: Any) -> float:
            w = np.asarray(fitted.coef_, dtype=np.float64).ravel()
            return objective(w, float(np.ravel(fitted.intercept_)[0]))

        def reference(_: Any) -> float:
            points = [zero, *found()]
            return min(objective(w, b) for w, b in points if np.isfinite(w).all())

        scale = max(objective(*zero), least)
        note = f"{model}; {self.note}"
        return Case(model, self.held, y, self.s, value, reference, scale, note)


def _line(rng: Rng, drawn: _Drawn) -> Array:
    """A numeric target."""
    w = rng.standard_normal(drawn.X.shape[1]) * (rng.random(drawn.X.shape[1]) < 0.6)
    noise = rng.standard_normal(len(drawn.V)) * rng.choice([0.1, 1.0])
    return drawn.V @ w + noise + rng.choice([0.0, 5.0])


def _labels(rng: Rng, drawn: _Drawn) -> Array:
    """Two classes, each with a row that counts, not separable by chance alone."""
    score = drawn.V @ rng.standard_normal(drawn.V.shape[1]) + 2 * rng.standard_normal(len(drawn.V))
    labels = (score > np.median(score)).astype(int)
    present = np.flatnonzero(drawn.weight)
    labels[present[0]], labels[present[-1]] = 0, 1
    if len(present) < 2:
        drawn.s = None
        drawn.weight = np.ones(len(labels))
        labels[0] = 1 - labels[-1]
    return labels


def lasso(rng: Rng) -> Case:
    """1/2 sum s (y - x.w - b)^2 + S alpha (r |w|_1 + (1 - r)/2 |w|^2)."""
    drawn = _Drawn(rng)
    y, s, total = _line(rng, drawn), drawn.weight, drawn.weight.sum()
    level = float(s @ y / total)
    most = np.abs((s * (y - level)) @ (drawn.X - drawn.mean)).max(initial=1e-3) / total
    alpha = float(most * 10.0 ** rng.uniform(-4, 0.3))
    ratio = float(rng.choice([1.0, 1.0, 0.9, 0.3]))
    is_positive = bool(rng.random() < 0.2)
    model = trueline.ElasticNet(alpha, l1_ratio=ratio, tol=1e-9, positive=is_positive)

    def objective(w: Array, b: float) -> float:
        rest = y - drawn.scores(w, b)
        if is_positive and (w < 0).any():
            return np.inf
        penalty = ratio * np.abs(w).sum() + 0.5 * (1 - ratio) * (w @ w)
        return float(0.5 * (s * rest) @ rest + total * alpha * penalty)

    def found() -> list[Point]:
        present = s > 0
        peer = peers.ElasticNet(
            alpha,
            l1_ratio=ratio,
            fit_intercept=False,
            tol=1e-14,
            max_iter=20_000,
            positive=is_positive,
        )
        peer.fit((drawn.X - drawn.mean)[present], y[present] - level, sample_weight=s[present])
        return [(peer.coef_, level - float(drawn.mean @ peer.coef_))]

    return drawn.case(model, y, objective, found, (np.zeros(len(drawn.mean)), level))


def logistic(rng: Rng) -> Case:
    """sum s log(1 + exp(-y z)) + |w|^2 / (2 C)."""
    drawn = _Drawn(rng)
    labels = _labels(rng, drawn)
    sign, s = 2.0 * labels - 1, drawn.weight
    C = float(10.0 ** rng.uniform(-3, 3))
    model = trueline.LogisticRegression(C=C, tol=1e-9, max_iter=10_000)

    def objective(w: Array, b: float) -> float:
        loss = np.logaddexp(np.longdouble(0), -sign * drawn.scores(w, b))
        return float(s @ loss + 0.5 * (w @ w) / C)

    def derivatives(v: Array) -> tuple[float, Array, Array]:
        V = np.column_stack([drawn.V, np.ones(len(sign))])
        z = V @ v
        p = 1 / (1 + np.exp(np.clip(sign * z, -500, 500)))
        curvature = np.append(1 / (C * drawn.spread**2), 0.0)
        value = s @ np.logaddexp(0, -sign * z) + 0.5 * curvature @ v**2
        hessian = V.T @ ((s * p * (1 - p))[:, None] * V) + np.diag(curvature)
        return float(value), V.T @ (-s * sign * p) + curvature * v, hessian

    share = np.clip(float(s @ labels / s.sum()), 1e-9, 1 - 1e-9)
    level = float(np.log(share / (1 - share)))
    start = np.append(np.zeros(len(drawn.mean)), level)

    def found() -> list[Point]:
        return [drawn.point(newton(derivatives, start))]

    return drawn.case(model, labels, objective, found, (np.zeros(len(drawn.mean)), level))


def margins(rng: Rng) -> Case:
    """sum s hinge(y z) + |w|^2 / (2 C), or with squared hinges; the intercept is free."""
    drawn = _Drawn(rng)
    labels = _labels(rng, drawn)
    sign, s = 2.0 * labels - 1, drawn.weight
    C = float(10.0 ** rng.uniform(-3, 2))
    power = int(rng.choice([1, 2]))
    loss = {1: "hinge", 2: "squared_hinge"}[power]
    model = trueline.LinearSVC(loss=loss, C=C, tol=1e-9, max_iter=100_000, intercept_scaling=None)

    def objective(w: Array, b: float) -> float:
        short = np.maximum(1 - sign * drawn.scores(w, b), 0.0)
        return float(s @ short**power + 0.5 * (w @ w) / C)

    def derivatives(v: Array) -> tuple[float, Array, Array]:
        V = np.column_stack([drawn.V, np.ones(len(sign))])
        short = np.maximum(1 - sign * (V @ v), 0.0)
        curvature = np.append(1 / (C * drawn.spread**2), 0.0)
        value = s @ short**2 + 0.5 * curvature @ v**2
        hessian = 2 * V.T @ ((s * (short > 0))[:, None] * V) + np.diag(curvature)
        return float(value), -2 * V.T @ (s * sign * short) + curvature * v, hessian

    def found() -> list[Point]:
        if power == 2:
            return [drawn.point(newton(derivatives, np.zeros(len(drawn.mean) + 1)))]
        present = s > 0
        peer = SVC(C=C, kernel="linear", tol=1e-10, max_iter=200_000)
        peer.fit((drawn.X - drawn.mean)[present], labels[present], sample_weight=s[present])
        w = np.ravel(peer.coef_)
        return [(w, float(peer.intercept_[0] - drawn.mean @ w))]

    zero = np.zeros(len(drawn.mean))
    level = 1.0 if s @ sign > 0 else -1.0
    return drawn.case(model, labels, objective, found, (zero, level))


def _phi(t: Any) -> Any:
    """exp(t) - 1 - t to nearly all digits, by its series near zero."""
    near = np.clip(t, -0.5, 0.5)
    term, series = near, 0 * near
    for k in range(2, 20):
        term = term * near / k
        series = series + term
    return np.where(near == t, series, np.expm1(t) - t)


def absolute(rng: Rng) -> Case:
    """sum s (q (y - z)_+ + (1 - q) (z - y)_+) + S alpha |w|_1, against HiGHS."""
    drawn = _Drawn(rng)
    y, s, total = _line(rng, drawn), drawn.weight, drawn.weight.sum()
    q = float(rng.choice([0.5, 0.5, 0.1, 0.9]))
    alpha = float(rng.choice([0.0, 1e-3, 0.1]))
    model = trueline.QuantileRegressor(quantile=q, alpha=alpha)
    n, d = drawn.X.shape

    def objective(w: Array, b: float) -> float:
        rest = y - drawn.scores(w, b)
        loss = q * np.maximum(rest, 0) + (1 - q) * np.maximum(-rest, 0)
        return float(s @ loss + total * alpha * np.abs(w).sum())

    def found() -> list[Point]:
        # v = up - down for the standardised columns, level, and the losses of the rows.
        cost = np.concatenate([total * alpha / np.tile(drawn.spread, 2), [0.0], s])
        V = np.hstack([drawn.V, -drawn.V, np.ones((n, 1))])
        A = np.vstack([np.hstack([-q * V, -np.eye(n)]), np.hstack([(1 - q) * V, -np.eye(n)])])
        bound = np.concatenate([-q * y, (1 - q) * y])
        lower = np.concatenate([np.zeros(2 * d), [-np.inf], np.zeros(n)])
        x = least_linear(cost, A, bound, lower)
        return [] if x is None else [drawn.point(np.append(x[:d] - x[d : 2 * d], x[2 * d]))]

    order = np.argsort(y)
    middle = order[np.searchsorted(np.cumsum(s[order]), q * total * (1 - 1e-12))]
    return drawn.case(model, y, objective, found, (np.zeros(d), float(y[middle])))


def chebyshev(rng: Rng) -> Case:
    """max over the rows of |y - z|, against HiGHS."""
    drawn = _Drawn(rng, is_tall=True)
    y, present = _line(rng, drawn), drawn.weight > 0
    model = trueline.ChebyshevRegressor()
    d = drawn.X.shape[1]

    def objective(w: Array, b: float) -> float:
        return float(np.abs(y - drawn.scores(w, b))[present].max())

    def found() -> list[Point]:
        V = np.column_stack([drawn.V, np.ones(len(y))])[present]
        t = np.ones((len(V), 1))
        A = np.vstack([np.hstack([V, -t]), np.hstack([-V, -t])])
        bound = np.concatenate([y[present], -y[present]])
        lower = np.append(np.full(d + 1, -np.inf), 0.0)
        x = least_linear(np.append(np.zeros(d + 1), 1.0), A, bound, lower)
        return [] if x is None else [drawn.point(x[:-1])]

    level = 0.5 * float(y[present].max() + y[present].min())
    return drawn.case(model, y, objective, found, (np.zeros(d), level))


def counts(rng: Rng) -> Case:
    """Half the deviance of Poisson or gamma targets, summed, + S alpha/2 |w|^2."""
    drawn = _Drawn(rng)
    s, total = drawn.weight, drawn.weight.sum()
    is_poisson = bool(rng.random() < 0.5)
    rate = np.exp(np.clip(0.5 * drawn.V @ rng.standard_normal(drawn.V.shape[1]), -4, 4))
    y = rng.poisson(rate).astype(float) if is_poisson else rate * rng.gamma(2.0, 0.5, len(rate))
    if not (s @ y > 0):
        y = y + 1.0
    alpha = float(rng.choice([1e-6, 1e-3, 1.0]))
    kind = trueline.PoissonRegressor if is_poisson else trueline.GammaRegressor
    model = kind(alpha=alpha, tol=1e-10, max_iter=10_000)

    logs = np.log(np.where(y > 0, y, 1.0).astype(np.longdouble))

    def objective(w: Array, b: float) -> float:
        # y phi(z - log y), or phi(log y - z): terms of the size of one that cancel are never made.
        z = drawn.scores(w, b)
        with np.errstate(over="ignore", invalid="ignore"):
            loss = np.where(y > 0, y * _phi(z - logs), np.exp(z)) if is_poisson else _phi(logs - z)
        return float(s @ loss + 0.5 * total * alpha * (w @ w))

    def derivatives(v: Array) -> tuple[float, Array, Array]:
        V = np.column_stack([drawn.V, np.ones(len(y))])
        z = np.clip(V @ v, -300, 300)
        curvature = total * alpha * np.append(1 / drawn.spread**2, 0.0)
        if is_poisson:
            loss, slope, curve = np.exp(z) - y * z, np.exp(z) - y, np.exp(z)
        else:
            loss, slope, curve = y * np.exp(-z) + z, 1 - y * np.exp(-z), y * np.exp(-z)
        hessian = V.T @ ((s * curve)[:, None] * V) + np.diag(curvature)
        return float(s @ loss + 0.5 * curvature @ v**2), V.T @ (s * slope) + curvature * v, hessian

    level = float(np.log(s @ y / total))
    start = np.append(np.zeros(len(drawn.mean)), level)

    def found() -> list[Point]:
        return [drawn.point(newton(derivatives, start))]

    # A fit made of terms of the size of one or of the target, which cancel, is known no better.
    least = 1e-15 * float(s @ (1.0 + y))
    return drawn.case(model, y, objective, found, (np.zeros(len(drawn.mean)), level), least)
