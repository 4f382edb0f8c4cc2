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

from typing import Any

import numpy as np
from numpy.typing import NDArray

from trueline.check.arithmetic import EPS
from trueline.check.schema import Field, is_builtin, parameters, read
from trueline.check.verdict import Refused

__all__ = ["Loss", "loss_of"]

Array = NDArray[np.float64]


class Loss:
    """What the theorems ask of a loss.

    Attributes
    ----------
    is_residual : bool
        Whether it is a function of z - y alone; it is given that in place of z.
    is_squared : bool
        Whether it is half the square of that.
    is_smooth : bool
        Whether the slope is continuous, with curvature at most :meth:`most_bend`.
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
    bend = np.inf
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

    def most_bend(self, y: Array, z: Array, reach: Any) -> Array:
        """The largest curvature between z - reach and z + reach."""
        return np.full(np.shape(z), self.bend)

    def least_bend(self, y: Array, z: Array, reach: Any) -> Array:
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


class _Squared(Loss):
    is_residual = is_squared = is_smooth = True
    room, bend = np.inf, 1.0

    def value(self, y: Array, z: Array) -> Array:
        return 0.5 * z * z

    def slope(self, y: Array, z: Array) -> Array:
        return z

    def slope_error(self, y: Array, z: Array) -> Array:
        return np.zeros(np.shape(z))

    def excess(self, y: Array, z: Array, u: Array) -> Array:
        return 0.5 * (z - u) ** 2

    def least_bend(self, y: Array, z: Array, reach: Any) -> Array:
        return np.ones(np.shape(z))

    def most_residual(self, losses: Any, weight: float, norm: float, largest: float) -> Any:
        return norm * np.sqrt(2 * losses)


class _Lines(Loss):
    """Two lines that meet at zero: absolute errors and quantiles."""

    is_residual = True

    def __init__(self, below: Any, above: Any) -> None:
        self.below, self.above = np.asarray(below, float), np.asarray(above, float)
        self.room = float(np.minimum(self.below, self.above).min())
        self.steepest = np.maximum(self.below, self.above)

    def value(self, y: Array, z: Array) -> Array:
        return np.where(z > 0, self.above * z, -self.below * z)

    def slope(self, y: Array, z: Array) -> Array:
        return np.where(z > 0, self.above, -self.below)

    def excess(self, y: Array, z: Array, u: Array) -> Array:
        inside = (u >= -self.below) & (u <= self.above)
        return np.where(
            inside, np.where(z > 0, z * (self.above - u), -z * (u + self.below)), np.inf
        )

    def of_target(self, t: int) -> Loss:
        if self.below.ndim == 0:
            return self
        return _Lines(self.below[t], self.above[t])


class _Huber(Loss):
    is_residual = is_smooth = True
    bend = 1.0

    def __init__(self, delta: float) -> None:
        self.delta = self.room = self.steepest = self.width = delta

    def value(self, y: Array, z: Array) -> Array:
        near = np.clip(z, -self.delta, self.delta)
        return 0.5 * near * near + self.delta * np.abs(z - near)

    def slope(self, y: Array, z: Array) -> Array:
        return np.clip(z, -self.delta, self.delta)

    def excess(self, y: Array, z: Array, u: Array) -> Array:
        near = np.clip(z, -self.delta, self.delta)
        found = 0.5 * (near - u) ** 2 + (z - near) * (near - u)
        return np.where(np.abs(u) <= self.delta, found, np.inf)

    def least_bend(self, y: Array, z: Array, reach: Any) -> Array:
        return np.where(np.abs(z) + reach < self.delta, 1.0, 0.0)

    def most_residual(self, losses: Any, weight: float, norm: float, largest: float) -> Any:
        # abs(r) <= l(r) / delta + delta / 2, a tangent of the square.
        return largest * (losses / self.delta + self.delta / 2 * weight)


class _Insensitive(Loss):
    is_residual = True

    def __init__(self, epsilon: float, squared: bool) -> None:
        self.epsilon = self.width = epsilon
        self.is_smooth = squared
        self.room, self.bend = (np.inf, 2.0) if squared else (1.0, np.inf)
        self.steepest = np.inf if squared else 1.0

    def _beyond(self, z: Array) -> Array:
        return np.maximum(np.abs(z) - self.epsilon, 0.0)

    def value(self, y: Array, z: Array) -> Array:
        beyond = self._beyond(z)
        return beyond * beyond if self.is_smooth else beyond

    def slope(self, y: Array, z: Array) -> Array:
        beyond = self._beyond(z)
        return np.sign(z) * np.where(self.is_smooth, 2 * beyond, beyond > 0)

    def excess(self, y: Array, z: Array, u: Array) -> Array:
        beyond, along = self._beyond(z), u * np.where(z < 0, -1.0, 1.0)
        within = np.minimum(np.abs(z), self.epsilon)
        slack = np.abs(u) * np.where(along > 0, self.epsilon - within, self.epsilon + within)
        if self.is_smooth:
            return (beyond - 0.5 * along) ** 2 + slack
        return np.where(np.abs(u) <= 1, beyond * (1 - along) + slack, np.inf)

    def least_bend(self, y: Array, z: Array, reach: Any) -> Array:
        return np.where(np.abs(z) - reach > self.epsilon, self.bend if self.is_smooth else 0.0, 0.0)

    def most_residual(self, losses: Any, weight: float, norm: float, largest: float) -> Any:
        if self.is_smooth:
            return norm * (np.sqrt(losses) + self.epsilon * np.sqrt(weight))
        return largest * (losses + self.epsilon * weight)


class _Labels(Loss):
    def check_target(self, y: Array) -> None:
        if not (np.abs(y) == 1).all():
            raise Refused("this loss is about labels -1 and +1")


class _Hinge(_Labels):
    def __init__(self, positive: Any, squared: bool) -> None:
        self.positive, self.is_smooth = np.asarray(positive, float), squared
        most = float(np.maximum(self.positive, 1.0).max())
        self.bend, self.steepest = (2 * most, np.inf) if squared else (np.inf, most)

    def _parts(self, y: Array, z: Array) -> tuple[Array, Array]:
        """The weight c of each row, and the shortfall 1 - y z."""
        return np.where(y > 0, self.positive, 1.0), 1.0 - y * z

    def value(self, y: Array, z: Array) -> Array:
        c, h = self._parts(y, z)
        h = np.maximum(h, 0.0)
        return c * h * h if self.is_smooth else c * h

    def slope(self, y: Array, z: Array) -> Array:
        c, h = self._parts(y, z)
        return -y * c * (2 * np.maximum(h, 0.0) if self.is_smooth else (h > 0))

    def excess(self, y: Array, z: Array, u: Array) -> Array:
        (c, h), p = self._parts(y, z), -y * u
        if self.is_smooth:
            found = np.where(h > 0, c * (h - p / (2 * c)) ** 2, p * (np.abs(h) + p / (4 * c)))
            return np.where(p >= 0, found, np.inf)
        inside = (p >= 0) & (p <= c)
        return np.where(inside, np.where(h > 0, h * (c - p), -h * p), np.inf)

    def least_bend(self, y: Array, z: Array, reach: Any) -> Array:
        c, h = self._parts(y, z)
        return np.where(h - reach > 0, 2.0 * c if self.is_smooth else 0.0, 0.0)

    def of_target(self, t: int) -> Loss:
        return self if self.positive.ndim == 0 else _Hinge(self.positive[t], self.is_smooth)


class _Logistic(_Labels):
    is_smooth = True
    steepest, bend = 1.0, 0.25

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

    def most_bend(self, y: Array, z: Array, reach: Any) -> Array:
        small = np.exp(-np.maximum(np.abs(z) - reach, 0.0))
        return small / (1 + small) ** 2 * (1 + 1e-12)

    def least_bend(self, y: Array, z: Array, reach: Any) -> Array:
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
    is_smooth, bend = True, 0.5

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

    def most_bend(self, y: Array, z: Array, reach: Any) -> Array:
        # The trace 1 - sum p^2 <= 2 (1 - max p) bounds the curvature; 1 - max p grows by exp(2 r).
        small = np.exp(z - z.max(axis=1, keepdims=True))
        total = small.sum(axis=1, keepdims=True)
        rest = (total - 1.0) / total * np.exp(np.minimum(2 * np.max(reach, initial=0.0), 700.0))
        return np.minimum(self.bend, 2.0 * np.broadcast_to(rest, z.shape) + 1e-15)

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
    """Half the deviance for a power p of the variance, as a function of the logarithm of the mean.

    With a = 2 - p and c = p - 1 the slope is exp(a z) - y exp(-c z); for 1 <= p <= 2 it is convex.
    """

    is_smooth = True
    score_units = 4.0  # of z and log y, whose difference may be small

    def __init__(self, power: float) -> None:
        self.a, self.c = 2.0 - power, power - 1.0
        self.has_conjugate = self.a == 0 or self.c == 0

    def check_target(self, y: Array) -> None:
        if not ((y >= 0) if self.a > 0 else (y > 0)).all():
            raise Refused("this loss is about positive targets")

    def value(self, y: Array, z: Array) -> Array:
        a, c, own = self.a, self.c, np.where(y > 0, y, 1.0)
        r = z - np.log(own)
        terms = (_phi(a * r) / a if a > 0 else 0.0) + (_phi(-c * r) / c if c > 0 else 0.0)
        return np.where(y > 0, own**a * terms, np.exp(a * z) / a if a > 0 else np.inf)

    def _terms(self, y: Array, up: Array, down: Array) -> tuple[Array, Array]:
        falling = np.where(y > 0, y * np.exp(-self.c * down), 0.0)
        return np.exp(self.a * up), falling

    def slope(self, y: Array, z: Array) -> Array:
        rising, falling = self._terms(y, z, z)
        return rising - falling

    def slope_error(self, y: Array, z: Array) -> Array:
        rising, falling = self._terms(y, z, z)
        return 16 * EPS * (rising + falling)

    def excess(self, y: Array, z: Array, u: Array) -> Array:
        if not self.has_conjugate:
            return super().excess(y, z, u)
        # Poisson: the means y + u against exp(z); gamma: 1 - u against y exp(-z).
        own, other = (y + u, np.exp(z)) if self.c == 0 else (1.0 - u, y * np.exp(-z))
        slack = (
            4 * EPS * (np.abs(y) + np.abs(u) + 1) * (1 + np.abs(z) + np.abs(np.log(own + 1e-300)))
        )
        return np.where(own >= 0, _entropy_term(np.maximum(own, 0.0), other) + slack, np.inf)

    def most_bend(self, y: Array, z: Array, reach: Any) -> Array:
        rising, falling = self._terms(y, z + reach, z - reach)
        return (self.a * rising + self.c * falling) * (1 + 1e-12)

    def least_bend(self, y: Array, z: Array, reach: Any) -> Array:
        rising, falling = self._terms(y, z - reach, z + reach)
        return (self.a * rising + self.c * falling) * (1 - 1e-12)


def _phi(t: Array) -> Array:
    """exp(t) - 1 - t, by its series near zero."""
    near = np.clip(t, -0.5, 0.5)
    series, term = np.zeros_like(near), np.ones_like(near)
    for k in range(1, 18):
        term = term * near / k
        series = series + (term if k > 1 else 0.0)
    return np.where(near == t, series, np.expm1(t) - t)


class _LocalDeviance(Loss):
    """Half the deviance of a power p and a link for which it is not convex; m is the mean.

    With a = 2 - p and q = 1 - p: logarithm, l' = m^a - y m^q, l'' = a m^a - q y m^q; identity,
    l' = m^q - y m^-p, l'' = q m^-p + p y m^(-p-1). Each term is monotone in m.
    """

    is_smooth, is_convex = True, False
    score_units = 4.0

    def __init__(self, power: float, link: str) -> None:
        if link not in ("log", "identity") or 0 < power < 1:
            raise Refused("no distribution has this power and link")
        self.p, self.a, self.q, self.is_log = power, 2.0 - power, 1.0 - power, link == "log"

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

    def slope(self, y: Array, z: Array) -> Array:
        first, second = self._terms(y, z)
        return first - second

    def _terms(self, y: Array, z: Array) -> tuple[Array, Array]:
        m = self._mean(z)
        return (m**self.a, y * m**self.q) if self.is_log else (m**self.q, y * m**-self.p)

    def slope_error(self, y: Array, z: Array) -> Array:
        first, second = self._terms(y, z)
        # A mean is off by a few units, and its power by as many times the exponent.
        units = 4 * (2 + abs(self.p) + abs(self.a) + abs(self.q))
        return units * EPS * (np.abs(first) + np.abs(second))

    def _bends(self, y: Array, z: Array, reach: Any) -> tuple[Array, Array]:
        """Bounds on the curvature from below and above."""
        low, high = np.zeros(np.shape(z)), np.zeros(np.shape(z))
        ends = self._mean(z - reach), self._mean(z + reach)
        terms: list[tuple[Any, float]] = [(self.a, self.a), (-self.q * y, self.q)]
        if not self.is_log:
            terms = [(self.q, -self.p), (self.p * y, -self.p - 1)]
        for factor, power in terms:
            both = [factor * m**power for m in ends]
            slack = 1e-12 * np.maximum(*np.abs(both))
            low, high = low + np.minimum(*both) - slack, high + np.maximum(*both) + slack
        return np.where(np.isnan(low), -np.inf, low), np.where(np.isnan(high), np.inf, high)

    def most_bend(self, y: Array, z: Array, reach: Any) -> Array:
        low, high = self._bends(y, z, reach)
        return np.maximum(np.abs(low), np.abs(high))

    def least_bend(self, y: Array, z: Array, reach: Any) -> Array:
        return self._bends(y, z, reach)[0]


class _Foreign(Loss):
    """A loss of somebody else: its own formulas are used."""

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

    def most_bend(self, y: Array, z: Array, reach: Any) -> Array:
        return self.loss.most_curvature(y, z, np.broadcast_to(reach, np.shape(z)))

    def least_bend(self, y: Array, z: Array, reach: Any) -> Array:
        return self.loss.least_curvature(y, z, np.broadcast_to(reach, np.shape(z)))

    def of_target(self, t: int) -> Loss:
        return _Foreign(self.loss.of_target(t))


def loss_of(loss: Any, k: int) -> Loss:
    """The checker's own formulas for a built-in loss, given by its name and parameters.

    Parameters
    ----------
    loss : loss, or mapping with its name and parameters
    k : int
        Number of targets.
    """
    if not is_builtin(loss, "losses"):
        if not hasattr(loss, "gradient"):
            raise Refused("the loss is none")
        return _Foreign(loss)
    given = parameters(loss)
    name = given.pop("name", None)
    sizes = {"k": k}

    def one(field: str, low: float, high: float = 1e300) -> float:
        return getattr(read(given, {field: Field(low=low, high=high)}, {}, sizes), field)

    def each(field: str) -> Any:
        """One number, or one for each target."""
        shape = ("k",) if isinstance(given.get(field), tuple | list | np.ndarray) else ()
        return getattr(read(given, {field: Field(shape, low=5e-324, high=1e300)}, {}, sizes), field)

    plain = {
        "squared": _Squared, "logistic": _Logistic, "softmax": _Softmax,
        "crammer_singer": _MulticlassHinge,
        "poisson": lambda: _Deviance(1.0), "gamma": lambda: _Deviance(2.0),
        "absolute": lambda: _Lines(1.0, 1.0),
    }  # fmt: skip
    if name in plain:
        return plain[name]()
    if name in ("quantile", "ordered_quantiles"):
        q = each("q")
        if not (np.asarray(q) < 1).all():
            raise Refused("q is not between 0 and 1")
        return _Lines(q, 1.0 - np.asarray(q))
    if name == "huber":
        return _Huber(one("delta", 5e-324))
    if name in ("epsilon_insensitive", "squared_epsilon_insensitive"):
        return _Insensitive(one("epsilon", 0.0), name.startswith("squared"))
    if name in ("hinge", "squared_hinge"):
        return _Hinge(each("positive"), name.startswith("squared"))
    if name == "tweedie":
        return _Deviance(one("power", 1.0, 2.0))
    if name == "deviance":
        return _LocalDeviance(one("power", -1e6, 1e6), str(given.get("link")))
    raise Refused(f"the loss {name!r} is not known")
