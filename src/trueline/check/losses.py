r"""The losses, restated: value, slope, curvature, and how far a dual point is from being a slope.

The *excess* of a dual point u over the scores z is, by Fenchel and Young, never negative:

    x(z, u) = l(z) + l*(u) - u z >= 0,      and zero where u is a slope of l at z.

Every formula below is a sum of terms that are not negative, so that nothing cancels. Losses of the
residual r = z - y are given r in place of z.

| loss                | l                            | domain of u        | excess                 |
| ------------------- | -----------------------------| ------------------ | ---------------------- |
| squared             | r^2 / 2                      | all                | (r - u)^2 / 2          |
| absolute, quantile  | max(a r, b r), a < 0 < b     | a <= u <= b        | r (b - u), -r (u - a)  |
| huber, s = clip(r)  | s^2/2 + d abs(r - s)         | abs(u) <= d        | (s-u)^2/2 + (r-s)(s-u) |
| epsilon insensitive | e = max(0, abs(r) - eps)     | abs(u) <= 1        | e (1 -+ u) + slack     |
| its square          | e^2                          | all                | (e -+ u/2)^2 + slack   |
| hinge, h = 1 - y z  | c max(0, h)                  | 0 <= p = -y u <= c | h (c - p), -h p        |
| its square          | c max(0, h)^2                | p >= 0             | c (h - p/2c)^2, or     |
|                     |                              |                    | -h p + p^2/4c          |
| logistic            | log(1 + exp(-y z))           | 0 <= p = -y u <= 1 | relative entropy       |
| multiclass hinge    | max_k h_k                    | p = u + y, simplex | sum p_k (max h - h_k)  |

with slack = |u| (eps - m) or |u| (eps + m), m = min(|r|, eps). Softmax and the deviances are used
through their slopes alone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

from trueline.check.arithmetic import EPS, Array
from trueline.check.schema import Field, is_builtin, parameters, read
from trueline.check.verdict import Refused


class Loss:
    """What the theorems ask of a loss.

    Attributes
    ----------
    is_residual : bool
        Whether it is a function of z - y alone; it is given that in place of z.
    is_squared : bool
        Whether it is half the square of that.
    is_smooth : bool
        Whether the slope is continuous, with curvature at most :meth:`most_curvature`.
    is_coupled : bool
        Whether the scores of a row are one vector.
    is_convex : bool
    has_conjugate : bool
        Whether :meth:`excess` has a formula; the slopes of a smooth loss serve without one.
    room : float
        How far from zero every u is in the domain of l*; 0 if zero is on its boundary.
    steepest : float or array
        The largest magnitude of a slope.
    width : float
        How far a score with slope zero may be from the target.
    score_units : float
        Scores are read up to so many units in their last place, where a value is computed.
    note : str
        What the statement must add, for losses of others.
    """

    is_residual = is_squared = is_smooth = is_coupled = False
    is_convex = has_conjugate = True
    room = width = score_units = 0.0
    steepest: Any = np.inf
    curvature = np.inf
    note = ""

    def check_target(self, y: Array) -> None:
        """Raise ``Refused`` for targets that the loss is not about."""

    def value(self, y: Array, z: Array) -> Array:
        raise NotImplementedError

    def slope(self, y: Array, z: Array) -> Array:
        raise NotImplementedError

    def excess(self, y: Array, z: Array, u: Array) -> Array:
        raise Refused("a dual point is no witness for this loss")

    def slope_error(self, y: Array, z: Array) -> Array:
        """A bound on the rounding of :meth:`slope`."""
        return 8 * EPS * np.abs(self.slope(y, z))

    def most_curvature(self, y: Array, z: Array, reach: Any) -> Array:
        """The largest curvature between z - reach and z + reach."""
        return np.full(np.shape(z), self.curvature)

    def least_curvature(self, y: Array, z: Array, reach: Any) -> Array:
        """The smallest one."""
        return np.zeros(np.shape(z))

    def most_residual(self, losses: Any, weight: float, norm: float, largest: float) -> Any:
        """The most that sum s t r can be, r residuals of at most these losses in total.

        ``norm`` and ``largest`` are those of t, the norm weighted by s.
        """
        return np.inf

    def of_target(self, t: int) -> Loss:
        """The loss of one target."""
        return self


#: A piece up to its end, and level, curvature and zero of its slope, level + curvature (t - zero).
Piece = tuple[Any, ...]


class PiecewiseQuadratic(Loss):
    """Convex, least at zero, with a slope that is a line on each of a few pieces.

    The excess of u at t is the area between the slope and the level u, from t to where they meet:
    the part before t where the slope is above u, and the part behind it where it is below.

    Parameters
    ----------
    pieces : tuples (end, level, curvature, zero), in order
    positive : float or array, optional
        For labels: the loss is a function of y z, and counts so many times where y = 1.
    """

    def __init__(self, *pieces: Piece, positive: Any = None) -> None:
        self.pieces, self.positive, self.is_residual = pieces, positive, positive is None
        most = 1.0 if self.is_residual else float(np.maximum(positive, 1.0).max())
        first, last = pieces[0], pieces[-1]
        down, up = (np.inf if end[2] else side * end[1] for side, end in ((-1, first), (1, last)))
        self.room = float(np.minimum(down, up).min())
        self.steepest = most * np.maximum(down, up)
        self.is_smooth = all(
            np.all(a[1] + a[2] * (a[0] - a[3]) == b[1] + b[2] * (a[0] - b[3]))
            for a, b in pairwise(pieces)
        )
        self.curvature = (
            most * max(curvature for _, _, curvature, _ in pieces) if self.is_smooth else np.inf
        )
        self.width = max((abs(piece[0]) for piece in pieces[:-1]), default=0.0)
        self.is_squared = pieces == _SQUARE

    def check_target(self, y: Array) -> None:
        if not self.is_residual:
            _require_labels(y)

    def _turned(self, y: Array, z: Any) -> Any:
        return z if self.is_residual else y * z

    def _weight(self, y: Array) -> Any:
        return 1.0 if self.is_residual else np.where(y > 0, self.positive, 1.0)

    def value(self, y: Array, z: Array) -> Array:
        return self.excess(y, z, np.zeros(np.shape(z)))

    def slope(self, y: Array, z: Array) -> Array:
        t, low, out = self._turned(y, z), -np.inf, np.zeros(np.shape(z))
        for high, level, curvature, zero in self.pieces:
            out = np.where(t > low, level + curvature * (t - zero), out)
            low = high
        return self._turned(y, self._weight(y) * out)

    def slope_error(self, y: Array, z: Array) -> Array:
        return np.zeros(np.shape(z)) if self.is_squared else super().slope_error(y, z)

    def excess(self, y: Any, z: Any, u: Any) -> Array:
        t, u, c = self._turned(y, z), self._turned(y, u), self._weight(y)
        out, low = np.zeros(np.shape(z)), -np.inf
        for high, level, curvature, zero in self.pieces:
            near, far = np.minimum(t, high), np.maximum(t, low)
            above, below = (c * (level + curvature * (at - zero)) for at in (near, far))
            out = out + _area(near - low, above - u, c * curvature)
            out = out + _area(high - far, u - below, c * curvature)
            low = high
        return out

    def least_curvature(self, y: Array, z: Array, reach: Any) -> Array:
        t, low, out = self._turned(y, z), -np.inf, np.full(np.shape(z), np.inf)
        for high, _, curvature, _ in self.pieces:
            out = np.where(
                (low <= t + reach) & (high >= t - reach), np.minimum(out, curvature), out
            )
            low = high
        return self._weight(y) * out

    def most_residual(self, losses: Any, weight: float, norm: float, largest: float) -> Any:
        if np.isinf(self.room):  # abs(r) <= width + sqrt(2 l / curvature)
            curvature = min(self.pieces[0][2], self.pieces[-1][2])
            return norm * (np.sqrt(2 * losses / curvature) + self.width * np.sqrt(weight))
        if self.room == 0:
            return np.inf
        # room abs(r) <= l(r) + l*(+- room), by Fenchel and Young.
        most = max(float(np.max(self.excess(0.0, 0.0, u))) for u in (-self.room, self.room))
        return largest * (losses + most * weight) / self.room

    def of_target(self, t: int) -> Loss:
        def one(value: Any) -> Any:
            return value[t] if np.ndim(value) else value

        pieces = (tuple(map(one, piece)) for piece in self.pieces)
        return PiecewiseQuadratic(*pieces, positive=one(self.positive))


_SQUARE: tuple[Piece, ...] = ((np.inf, 0.0, 1.0, 0.0),)


def _area(width: Any, height: Any, curvature: Any) -> Any:
    """What lies below a line from a height that falls by the curvature, within the width."""
    width, height = np.maximum(width, 0.0), np.maximum(height, 0.0)
    if np.any(curvature):
        width = np.minimum(width, height / curvature)
        return width * (height - 0.5 * curvature * width)
    return np.where(height > 0, width * height, 0.0)


def _lines(q: Any, times: float = 1.0) -> PiecewiseQuadratic:
    """Two lines that meet at zero, with slopes times (-q) and times (1 - q)."""
    below, above = times * np.asarray(q), times * (1.0 - np.asarray(q))
    return PiecewiseQuadratic((0.0, -below, 0.0, 0.0), (np.inf, above, 0.0, 0.0))


def _huber(delta: float) -> PiecewiseQuadratic:
    ends = (-delta, -delta, 0.0, 0.0), (np.inf, delta, 0.0, 0.0)
    return PiecewiseQuadratic(ends[0], (delta, 0.0, 1.0, 0.0), ends[1])


def _insensitive(level: float, curvature: float, epsilon: float) -> PiecewiseQuadratic:
    ends = (-epsilon, -level, curvature, -epsilon), (np.inf, level, curvature, epsilon)
    return PiecewiseQuadratic(ends[0], (epsilon, 0.0, 0.0, 0.0), ends[1])


def _hinge(level: float, curvature: float, positive: Any) -> PiecewiseQuadratic:
    return PiecewiseQuadratic(
        (1.0, -level, curvature, 1.0), (np.inf, 0.0, 0.0, 0.0), positive=positive
    )


def _require_labels(y: Array) -> None:
    if not (np.abs(y) == 1).all():
        raise Refused("this loss is about labels -1 and +1")


class _Logistic(Loss):
    is_smooth = True
    steepest, curvature = 1.0, 0.25

    def check_target(self, y: Array) -> None:
        _require_labels(y)

    def value(self, y: Array, z: Array) -> Array:
        margin = y * z
        return np.maximum(-margin, 0.0) + np.log1p(np.exp(-np.abs(margin)))

    def slope(self, y: Array, z: Array) -> Array:
        small = np.exp(-np.abs(z))
        return -y * np.where(y * z >= 0, small, 1.0) / (1.0 + small)

    def excess(self, y: Array, z: Array, u: Array) -> Array:
        # Relative entropy of p to q, by terms a (t - 1 - log t) >= 0 with t the ratio to a.
        small, p = np.exp(-np.abs(z)), -y * u
        right = y * z >= 0
        q, rest = (
            np.where(right, small, 1.0) / (1 + small),
            np.where(right, 1.0, small) / (1 + small),
        )
        inside = (p >= 0) & (p <= 1)
        p = np.where(inside, p, 0.5)
        return np.where(inside, _entropy_term(p, q) + _entropy_term(1 - p, rest), np.inf)

    def most_curvature(self, y: Array, z: Array, reach: Any) -> Array:
        small = np.exp(-np.maximum(np.abs(z) - reach, 0.0))
        return small / (1 + small) ** 2 * (1 + 1e-12)

    def least_curvature(self, y: Array, z: Array, reach: Any) -> Array:
        small = np.exp(-(np.abs(z) + reach))
        return small / (1 + small) ** 2 * (1 - 1e-12)


def _entropy_term(p: Array, q: Array) -> Array:
    """p log(p / q) - p + q, which is not negative."""
    positive = np.where(p > 0, p, 1.0)
    away = (q - positive) / positive
    return np.where(p > 0, positive * (away - np.log1p(np.maximum(away, -1.0))), q)


class _Classes(Loss):
    is_coupled = True
    steepest = 1.0

    def check_target(self, y: Array) -> None:
        if not (((y == 0) | (y == 1)).all() and (y.sum(axis=1) == 1).all()):
            raise Refused("this loss is about one-hot targets")


class _Softmax(_Classes):
    is_smooth, curvature = True, 0.5

    def value(self, y: Array, z: Array) -> Array:
        place = z.argmax(axis=1)[:, None]
        below = z - np.take_along_axis(z, place, axis=1)
        small = np.exp(below)
        np.put_along_axis(small, place, 0.0, axis=1)
        return np.where(y != 0, np.log1p(small.sum(axis=1, keepdims=True)) - below, 0.0)

    def slope(self, y: Array, z: Array) -> Array:
        small = np.exp(z - z.max(axis=1, keepdims=True))
        others = np.where(y != 0, 0.0, small)
        mine = np.where(y != 0, -others.sum(axis=1, keepdims=True), others)
        return mine / small.sum(axis=1, keepdims=True)

    def most_curvature(self, y: Array, z: Array, reach: Any) -> Array:
        # The trace 1 - sum p^2 <= 2 (1 - max p) bounds the curvature; 1 - max p grows by exp(2 r).
        small = np.exp(z - z.max(axis=1, keepdims=True))
        total = small.sum(axis=1, keepdims=True)
        rest = (total - 1.0) / total * np.exp(np.minimum(2 * np.max(reach, initial=0.0), 700.0))
        return np.minimum(self.curvature, 2.0 * np.broadcast_to(rest, z.shape) + 1e-15)

    def slope_error(self, y: Array, z: Array) -> Array:
        far = np.ptp(z, axis=1, keepdims=True)  # differences of scores round before exp
        return (8 + z.shape[1] + 2 * far) * EPS * np.abs(self.slope(y, z))


class _MulticlassHinge(_Classes):
    def _shortfall(self, y: Array, z: Array) -> Array:
        return np.where(y != 0, 0.0, z + 1.0 - (y * z).sum(axis=1, keepdims=True))

    def value(self, y: Array, z: Array) -> Array:
        return np.where(y != 0, self._shortfall(y, z).max(axis=1, keepdims=True), 0.0)

    def slope(self, y: Array, z: Array) -> Array:
        h = self._shortfall(y, z)
        return np.eye(z.shape[1])[h.argmax(axis=1)] - y

    def excess(self, y: Array, z: Array, u: Array) -> Array:
        # The entry of the own class is taken to be minus the sum of the others.
        h = self._shortfall(y, z)
        p = np.where(y != 0, 0.0, u)
        total = p.sum(axis=1, keepdims=True)
        inside = (p >= 0).all(axis=1, keepdims=True) & (total <= 1)
        top = h.max(axis=1, keepdims=True)
        terms = np.where(y != 0, np.maximum(1 - total, 0.0) * top, p * (top - h))
        return np.where(inside, terms, np.inf)


class _Deviance(Loss):
    """Half the deviance of a power p of the variance, for the logarithm or the identity as link.

    With the mean m, a = 2 - p and q = 1 - p: logarithm, l' = m^a - y m^q, l'' = a m^a - q y m^q;
    identity, l' = m^q - y m^-p, l'' = q m^-p + p y m^(-p-1). Each term is monotone in m. It is
    convex for the logarithm and 1 <= p <= 2. The conjugate of u is found at the scores v with
    l'(v) = u.
    """

    is_smooth = True
    score_units = 4.0  # of z and log y, whose difference may be small

    def __init__(self, power: float, link: str = "log") -> None:
        if link not in ("log", "identity") or 0 < power < 1:
            raise Refused("no distribution has this power and link")
        self.p, self.a, self.q, self.is_log = power, 2.0 - power, 1.0 - power, link == "log"
        self.is_convex = self.has_conjugate = self.is_log and 1 <= power <= 2

    def check_target(self, y: Array) -> None:
        if (self.p >= 2 and (y <= 0).any()) or (self.p >= 1 and (y < 0).any()):
            raise Refused("this loss is about positive targets")

    def _mean(self, z: Array) -> Array:
        return np.exp(z) if self.is_log else np.where(z > 0, z, np.nan)

    def value(self, y: Array, z: Array) -> Array:
        a, q, m, own = self.a, self.q, self._mean(z), np.where(y > 0, y, 1.0)
        r = z - np.log(own) if self.is_log else np.log(m / own)
        terms = (_phi(a * r) / a if a else 0.0 * r) - (_phi(q * r) / q if q else 0.0 * r)
        logs = np.where(y == 0, 0.0, y * np.log(m)) if q == 0 else 0.0
        rest = (m**a / a if a else np.inf) - (y * m**q / q if q else logs)
        total = np.where(y > 0, own**a * terms, rest + (0.5 * y * y if self.p == 0 else 0.0))
        return np.where(np.isnan(total), np.inf, total)

    def _terms(self, y: Array, z: Array) -> tuple[Array, Array]:
        m = self._mean(z)
        return (m**self.a, y * m**self.q) if self.is_log else (m**self.q, y * m**-self.p)

    def slope(self, y: Array, z: Array) -> Array:
        first, second = self._terms(y, z)
        return first - second

    def slope_error(self, y: Array, z: Array) -> Array:
        first, second = self._terms(y, z)
        # A mean is off by eight units, its power by as many times the exponent, and eight more.
        units = 8 * (1 + max(abs(self.q), abs(self.a if self.is_log else self.p)))
        return units * EPS * (np.abs(first) + np.abs(second))

    def excess(self, y: Array, z: Array, u: Array) -> Array:
        # l(z) - l(v) - u (z - v) where l'(v) = u, and what v is off by.
        v, floor = z, np.full(np.shape(z), 1e-300)
        for _ in range(60):
            step = (self.slope(y, v) - u) / np.maximum(self.least_curvature(y, v, 0.0), floor)
            v = v - np.clip(step, -1.0, 1.0)
            if not (np.abs(step) > 1e-14).any():
                break
        off = np.abs(self.slope(y, v) - u) + self.slope_error(y, v)
        off = 2 * off / np.maximum(self.least_curvature(y, v, 0.0), floor)
        # A curvature changes by a factor of two at most within 0.5.
        (rising, falling), r = self._terms(y, v), z - v
        found = rising * _phi(self.a * r) / (self.a or 1.0)
        found = found - falling * _phi(self.q * r) / (self.q or 1.0)
        found = found + self.most_curvature(y, v, off) * (np.abs(r) + off) * off
        return np.where(off < 0.5, found, np.inf)

    def _curvatures(self, y: Array, z: Array, reach: Any) -> tuple[Array, Array]:
        """Bounds on the curvature from below and above."""
        low, high = np.zeros(np.shape(z)), np.zeros(np.shape(z))
        ends = self._mean(z - reach), self._mean(z + reach)
        terms: list[tuple[Any, float]] = [(self.a, self.a), (-self.q * y, self.q)]
        if not self.is_log:
            terms = [(self.q, -self.p), (self.p * y, -self.p - 1)]
        for factor, power in terms:
            both = [factor * m**power for m in ends]
            least, most = np.minimum(*both), np.maximum(*both)
            low, high = low + least - 1e-12 * np.abs(least), high + most + 1e-12 * np.abs(most)
        return np.where(np.isnan(low), -np.inf, low), np.where(np.isnan(high), np.inf, high)

    def most_curvature(self, y: Array, z: Array, reach: Any) -> Array:
        low, high = self._curvatures(y, z, reach)
        return np.maximum(np.abs(low), np.abs(high))

    def least_curvature(self, y: Array, z: Array, reach: Any) -> Array:
        return self._curvatures(y, z, reach)[0]


def _phi(t: Array) -> Array:
    """exp(t) - 1 - t, by its series near zero."""
    near = np.clip(t, -0.5, 0.5)
    series, term = np.zeros_like(near), np.ones_like(near)
    for k in range(1, 18):
        term = term * near / k
        series = series + (term if k > 1 else 0.0)
    return np.where(near == t, series, np.expm1(t) - t)


class _Foreign(Loss):
    """A loss that is not built in: its own formulas are used."""

    def __init__(self, loss: Any) -> None:
        self.loss = loss
        has: frozenset[str] = getattr(loss, "capabilities", frozenset())
        self.is_smooth, self.is_coupled = "smooth" in has or "log_link" in has, "coupled" in has
        self.is_convex = "nonconvex" not in has
        self.steepest = getattr(loss, "slope_bound", np.inf)
        self.note = f"with the loss as {type(loss).__qualname__} itself computes it"

    def check_target(self, y: Array) -> None:
        try:
            self.loss.check_target(y)
        except ValueError as error:
            raise Refused(str(error)) from None

    def value(self, y: Array, z: Array) -> Array:
        return self.loss.value(y, z)

    def slope(self, y: Array, z: Array) -> Array:
        return self.loss.gradient(y, z)

    def excess(self, y: Array, z: Array, u: Array) -> Array:
        value, conjugate = self.loss.value(y, z), self.loss.conjugate(y, u)
        size = np.abs(value) + self.loss.conjugate_magnitude(y, u) + np.abs(u * z)
        return np.maximum(value + conjugate - u * z, 0.0) + 16 * EPS * size

    def most_curvature(self, y: Array, z: Array, reach: Any) -> Array:
        return self.loss.most_curvature(y, z, np.broadcast_to(reach, np.shape(z)))

    def least_curvature(self, y: Array, z: Array, reach: Any) -> Array:
        return self.loss.least_curvature(y, z, np.broadcast_to(reach, np.shape(z)))

    def of_target(self, t: int) -> Loss:
        return _Foreign(self.loss.of_target(t))


_LISTS = (tuple, list, np.ndarray)
_POSITIVE, _WIDTH = Field(low=5e-324, high=1e300), Field(low=0.0, high=1e300)
_SHARE, _POWER = Field(low=5e-324, high=np.nextafter(1.0, 0.0)), Field(low=-1e6, high=1e6)


def _smoothed(base: Any, mu: float) -> PiecewiseQuadratic:
    """A loss of one kink at zero, where the slope rises from a to b: it is t / mu between them."""
    given = parameters(base)
    if given["name"] not in ("absolute", "quantile") or isinstance(given.get("q"), _LISTS):
        raise Refused(f"the smoothed {given['name']!r} loss is not known")
    own = {"q": _SHARE} if given["name"] == "quantile" else {}
    q = read(given, own, {}, {})
    a, b = (-q.q, 1.0 - q.q) if own else (-1.0, 1.0)
    return PiecewiseQuadratic(
        (mu * a, a, 0.0, 0.0), (mu * b, 0.0, 1.0 / mu, 0.0), (np.inf, b, 0.0, 0.0)
    )


#: What each loss is, and its parameters; q and positive may be one number for each target.
_LOSSES: dict[str, tuple[Callable[..., Loss], dict[str, Field]]] = {
    "squared": (lambda: PiecewiseQuadratic(*_SQUARE), {}),
    "absolute": (lambda: _lines(0.5, 2.0), {}),
    "quantile": (_lines, {"q": _SHARE}),
    "ordered_quantiles": (_lines, {"q": _SHARE}),
    "huber": (_huber, {"delta": _POSITIVE}),
    "epsilon_insensitive": (partial(_insensitive, 1.0, 0.0), {"epsilon": _WIDTH}),
    "squared_epsilon_insensitive": (partial(_insensitive, 0.0, 2.0), {"epsilon": _WIDTH}),
    "hinge": (partial(_hinge, 1.0, 0.0), {"positive": _POSITIVE}),
    "squared_hinge": (partial(_hinge, 0.0, 2.0), {"positive": _POSITIVE}),
    "logistic": (_Logistic, {}),
    "softmax": (_Softmax, {}),
    "crammer_singer": (_MulticlassHinge, {}),
    "poisson": (lambda: _Deviance(1.0), {}),
    "gamma": (lambda: _Deviance(2.0), {}),
    "tweedie": (_Deviance, {"power": Field(low=1.0, high=2.0)}),
    "smoothed": (_smoothed, {"base": Field(kind="any"), "mu": _POSITIVE}),
    "deviance": (_Deviance, {"power": _POWER, "link": Field(kind="text")}),
}


def loss_of(loss: Any, k: int) -> Loss:
    """The checker's own formulas for a built-in loss, given by its name and parameters.

    Parameters
    ----------
    loss : loss, or mapping with its name and parameters
    k : int
        Number of targets.
    """
    if not is_builtin(loss, "losses"):
        if not (hasattr(loss, "gradient") and hasattr(loss, "check_target")):
            raise Refused("the loss is none")
        return _Foreign(loss)
    given = parameters(loss)
    if given["name"] not in _LOSSES:
        raise Refused(f"the loss {given['name']!r} is not known")
    make, fields = _LOSSES[given["name"]]
    each = {name for name in ("q", "positive") if isinstance(given.get(name), _LISTS)}
    own = {name: replace(field, shape=(k,) * (name in each)) for name, field in fields.items()}
    return make(**vars(read(given, own, {}, {})))
