r"""Half the deviances of Poisson, gamma and Tweedie distributions, with the logarithm as link.

The score is the logarithm of the mean, m = exp(z). The variance is proportional to m^p, and with

    a = 2 - p,   c = p - 1,   r = z - log(y),   phi(t) = exp(t) - 1 - t

half of the deviance between y and m is, for powers 1 <= p <= 2 (where it is convex),

    l(z)   = y^a (phi(a r) / a + phi(-c r) / c)        (y = 0: exp(a z) / a)
    l'(z)  = exp(a z) - y exp(-c z)
    l''(z) = a exp(a z) + c y exp(-c z)

The terms divided by zero vanish in the limit:

    Poisson, p = 1     l     = m - y - y log(m / y)
                       l*(u) = (y + u) log(1 + u / y) - u + u log(y)       for u >= -y
    gamma,   p = 2     l     = y / m - 1 - log(y / m)
                       l*(u) = (1 - u) log(1 - u) + u + u log(y)           for u <= 1

For powers in between l*(u) = u z - l(z) where l'(z) = u, which is found by Newton's method. Every
term of the sums above is positive: near y = m nothing cancels.

Curvature changes slowly, abs(l''') <= l'', as that of the logistic loss does. An exposure e_i is no
part of a loss: d(y, e m) = e^a d(y / e, m), so that it divides the target and multiplies the
weight.

P. McCullagh, J. A. Nelder, "Generalized Linear Models", 2nd ed. (1989), chapters 6 and 8;
B. Jorgensen, "The Theory of Dispersion Models" (1997), chapter 4.

Identity links and powers beyond 1 to 2 have a deviance that is not convex (:class:`LocalDeviance`).
With the mean m (m = exp(z) for the logarithm as link, m = z for the identity), a = 2 - p and
q = 1 - p,

    l(m)  = max(y, 0)^a / (q a) - y m^q / q + m^a / a        (y > 0, r = log(m / y):
                                                               y^a (phi(a r) / a - phi(q r) / q))
    dl/dm = m^q - y m^-p

    logarithm:   l' = m^a - y m^q        l'' = a m^a - q y m^q
    identity:    l' = m^q - y m^-p       l'' = q m^-p + p y m^(-p-1)

with limits of the terms divided by zero. Every such curve has its least value, zero, at m = y, but
may be concave far from there: minima of sums are local ones as far as anybody can prove.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import xlog1py, xlogy

from trueline.losses.base import Array, Loss
from trueline.losses.noise import GAMMA, INVERSE_GAUSSIAN, NORMAL, POISSON, Noise

# Where the power series of phi is taken, and to which order: its rest is below rounding there.
_NEAR, _ORDER = 0.5, 16
_SERIES = [1.0 / math.factorial(k) for k in range(2, _ORDER + 1)]
_SLACK = 1e-12
_STEPS = 60


def phi(t: Array) -> Array:
    """exp(t) - 1 - t, to a few units in the last place."""
    t = np.asarray(t)
    # In place and for all: gathering those near zero would cost more than it saves.
    near = np.clip(t, -_NEAR, _NEAR)
    series = np.full_like(near, _SERIES[-1])
    for factor in _SERIES[-2::-1]:
        series *= near
        series += factor
    series *= near
    series *= near
    with np.errstate(over="ignore"):
        return np.where(near == t, series, np.expm1(t) - t)


def _or_infinite(values: Array) -> Array:
    """Sums whose terms left the range of doubles: conjugates grow faster than lines."""
    return np.where(np.isfinite(values), values, np.inf)


def refused(wrong: NDArray[np.bool_], y: Array, wanted: str) -> str:
    """What is wrong with targets, and what to do about it."""
    rows = np.flatnonzero(np.asarray(wrong).reshape(len(y), -1).any(axis=1))
    where = ", ".join(str(row) for row in rows[:3]) + (", ..." if len(rows) > 3 else "")
    advice = "for targets of any sign take least squares, for example Ridge"
    if float(np.min(y)) >= 0:
        advice = "for targets that may be zero take PoissonRegressor, or TweedieRegressor with a "
        advice += "power between 1 and 2"
    return (
        f"the least of y is {np.min(y):g}. Some value(s) of y are out of the valid range of the "
        f"loss: row(s) {where}. Correct those rows or leave them out, so that y is {wanted}; "
        f"{advice}."
    )


class LogDeviance(Loss):
    """Half a deviance as a function of the logarithm of the mean, variance ~ mean^power."""

    capabilities: ClassVar[frozenset[str]] = frozenset(
        {"curvature", "hessian", "conjugate", "log_link", "self_concordant", "strictly_convex"}
    )

    @property
    @abstractmethod
    def _power(self) -> float:
        """The exponent p of the variance, from 1 to 2."""

    @property
    def _a(self) -> float:
        return 2.0 - self._power

    @property
    def _c(self) -> float:
        return self._power - 1.0

    @property
    def score_limit(self) -> float:
        return 80.0

    def target_size(self, y: Array) -> Array:
        # Derivatives round relative to their two terms, as if the score were off by a few units.
        return np.abs(np.log(np.where(y > 0, y, 1.0))) + 2.0

    def check_target(self, y: Array) -> None:
        """Targets are positive, or zero if the power is below two."""
        if self._a > 0:
            if not (y >= 0).all():
                raise ValueError(
                    f"The {self.name} loss is about targets that are not negative; "
                    + refused(y < 0, y, "zero or more")
                )
        elif not (y > 0).all():
            raise ValueError(
                f"The {self.name} loss is about positive targets; " + refused(y <= 0, y, "positive")
            )

    def _rising(self, z: Array) -> Array:
        """exp(a z)."""
        a = self._a
        with np.errstate(over="ignore"):
            return np.exp(z if a == 1 else a * z) if a > 0 else np.ones_like(z)

    def _falling(self, y: Array, z: Array) -> Array:
        """y exp(-c z); zero times infinity is zero."""
        c = self._c
        if c == 0:
            return y + np.zeros_like(z)
        with np.errstate(over="ignore", invalid="ignore"):
            falling = y * np.exp(-z if c == 1 else -c * z)
        return falling if (y > 0).all() else np.where(y > 0, falling, np.zeros_like(y))

    def _curvature(self, rising: Array, falling: Array) -> Array:
        """a exp(a z) + c y exp(-c z), from the two terms."""
        a, c = self._a, self._c
        if a > 0 and c > 0:
            return a * rising + c * falling
        one = rising if c == 0 else falling
        shape = np.broadcast_shapes(rising.shape, falling.shape)
        return one if one.shape == shape else np.broadcast_to(one, shape).copy()

    def value(self, y: Array, z: Array) -> Array:
        a, c = self._a, self._c
        present = y > 0
        own = np.where(present, y, np.ones_like(y))
        r = z - np.log(own)
        with np.errstate(over="ignore", invalid="ignore"):
            total = np.zeros_like(r)
            if a > 0:
                total = total + phi(a * r) / a
            if c > 0:
                total = total + phi(-c * r) / c
            at_zero = np.exp(a * z) / a if a > 0 else np.zeros_like(r)
            return np.where(present, own**a * total, at_zero)

    def gradient(self, y: Array, z: Array) -> Array:
        return self._rising(z) - self._falling(y, z)

    def curvature(self, y: Array, z: Array) -> Array:
        return self.derivatives(y, z)[1]

    def derivatives(self, y: Array, z: Array) -> tuple[Array, Array]:
        rising, falling = self._rising(z), self._falling(y, z)
        return rising - falling, self._curvature(rising, falling)

    def least_curvature(self, y: Array, z: Array, reach: Array) -> Array:
        return self._curvature(self._rising(z - reach), self._falling(y, z + reach)) / (1 + _SLACK)

    def most_curvature(self, y: Array, z: Array, reach: Array) -> Array:
        return self._curvature(self._rising(z + reach), self._falling(y, z - reach)) * (1 + _SLACK)

    def constant(self, y: Array, weights: Array) -> Array:
        # Half a unit where there is nothing: a place to start from.
        total = weights @ y
        return np.log(np.where(total > 0, total, 0.5 * weights.max()) / weights.sum())

    def conjugate_magnitude(self, y: Array, u: Array) -> Array:
        with np.errstate(divide="ignore", invalid="ignore"):
            shift = np.abs(xlogy(u, np.where(y > 0, y, 1.0)))
        return np.abs(self.conjugate(y, u)) + 2 * (shift + np.abs(u))


@dataclass(frozen=True)
class Poisson(LogDeviance):
    """Half the Poisson deviance, for counts and the logarithm of their mean.

    Examples
    --------
    >>> import numpy as np
    >>> from trueline.losses import Poisson
    >>> Poisson().value(np.array([0.0, 1.0, 3.0]), np.log([0.5, 1.0, 1.0])).round(4)
    array([0.5   , 0.    , 1.2958])
    """

    name: ClassVar[str] = "poisson"
    noise_model: ClassVar[Noise | None] = POISSON
    formula: ClassVar[str] = "exp(z_i) - y_i - y_i (z_i - log(y_i))"

    @property
    def _power(self) -> float:
        return 1.0

    def conjugate(self, y: Array, u: Array) -> Array:
        mean = y + u
        inside = mean >= 0
        mean = np.where(inside, mean, 1.0)
        present = y > 0
        own = np.where(present, y, 1.0)
        ratio = np.where(inside & present, u / own, 0.0)
        with np.errstate(over="ignore", invalid="ignore"):
            some = _or_infinite(xlog1py(mean, ratio) - u + u * np.log(own))
            none = xlogy(mean, np.where(present, 1.0, mean)) - mean
        return np.where(inside, np.where(present, some, none), np.inf)

    def project_dual(self, y: Array, u: Array) -> Array:
        return np.maximum(u, -y)


@dataclass(frozen=True)
class Gamma(LogDeviance):
    """Half the gamma deviance, for positive targets and the logarithm of their mean.

    Examples
    --------
    >>> import numpy as np
    >>> from trueline.losses import Gamma
    >>> Gamma().value(np.array([1.0, 3.0]), np.log([1.0, 1.0])).round(4)
    array([0.    , 0.9014])
    """

    name: ClassVar[str] = "gamma"
    noise_model: ClassVar[Noise | None] = GAMMA
    formula: ClassVar[str] = "y_i exp(-z_i) - 1 + z_i - log(y_i)"

    @property
    def _power(self) -> float:
        return 2.0

    def conjugate(self, y: Array, u: Array) -> Array:
        inside = u <= 1
        u = np.where(inside, u, 0.0) + np.zeros_like(y)
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
            value = _or_infinite(xlog1py(1 - u, -u) + u + u * np.log(y))
        return np.where(inside, value, np.inf)

    def project_dual(self, y: Array, u: Array) -> Array:
        return np.minimum(u, 1.0) + np.zeros_like(y)


@dataclass(frozen=True)
class Tweedie(LogDeviance):
    """Half the deviance of a compound Poisson-gamma distribution and the logarithm of its mean.

    Parameters
    ----------
    power : float, default=1.5
        The variance is proportional to mean^power; strictly between 1 (:class:`Poisson`) and 2
        (:class:`Gamma`).

    Examples
    --------
    >>> import numpy as np
    >>> from trueline.losses import Tweedie
    >>> Tweedie(1.5).value(np.array([0.0, 1.0, 4.0]), np.log([1.0, 1.0, 1.0])).round(4)
    array([2., 0., 2.])
    """

    power: float = 1.5

    name: ClassVar[str] = "tweedie"
    formula: ClassVar[str] = (
        "y^(2-p)/((1-p)(2-p)) - y_i exp((1-p) z_i)/(1-p) + exp((2-p) z_i)/(2-p), p = power"
    )

    def __post_init__(self) -> None:
        if not 1 < self.power < 2:
            raise ValueError(
                f"power must lie strictly between 1 and 2, got {self.power!r}: the Poisson loss is "
                "that of power 1, the gamma loss that of power 2."
            )

    @property
    def _power(self) -> float:
        return self.power

    def _position(self, y: Array, u: Array) -> Array:
        """r = z - log(y) with l'(z) = u, for positive y: exp(a r) - exp(-c r) = v."""
        a, c = self._a, self._c
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            v = u / y**a
            # One of the exponentials is at most one: the other is between abs(v) and one more.
            high = np.where(v >= 0, np.log1p(np.maximum(v, 0)) / a, 0.0)
            low = np.where(v >= 0, 0.0, -np.log1p(np.maximum(-v, 0)) / c)
            r = np.where(v >= 0, high, low)
            for _ in range(_STEPS):
                rising, falling = np.exp(a * r), np.exp(-c * r)
                off = rising - falling - v
                low, high = np.where(off < 0, r, low), np.where(off < 0, high, r)
                ahead = r - off / (a * rising + c * falling)
                ahead = np.where((ahead >= low) & (ahead <= high), ahead, 0.5 * (low + high))
                if np.array_equal(ahead, r, equal_nan=True):
                    break
                r = ahead
        return r

    def conjugate(self, y: Array, u: Array) -> Array:
        a, c = self._a, self._c
        present = y > 0
        own = np.where(present, y, 1.0)
        r = self._position(own, u)
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            lost = own**a * (phi(a * r) / a + phi(-c * r) / c)
            some = _or_infinite(u * np.log(own) + (u * r - lost))
            positive = np.where(u >= 0, u, 0.0)
            none = np.where(u >= 0, (xlogy(positive, positive) - positive) / a, np.inf)
        return np.where(present, some, none)

    def project_dual(self, y: Array, u: Array) -> Array:
        return np.where(y > 0, u, np.maximum(u, 0.0))


@dataclass(frozen=True)
class LocalDeviance(Loss):
    """Half the deviance of a power and a link for which it is not convex.

    Parameters
    ----------
    power : float, default=3.0
        The variance is proportional to mean^power; at most 0 or at least 1.
    link : {"log", "identity"}, default="log"

    Examples
    --------
    >>> import numpy as np
    >>> from trueline.losses import LocalDeviance
    >>> LocalDeviance(3.0).value(np.array([1.0, 2.0]), np.log([1.0, 1.0]))
    array([0.  , 0.25])
    """

    power: float = 3.0
    link: str = "log"

    name: ClassVar[str] = "deviance"
    formula: ClassVar[str] = "half the unit deviance of (y_i, mean_i), variance ~ mean^power"
    capabilities: ClassVar[frozenset[str]] = frozenset({"curvature", "nonconvex"})

    def __post_init__(self) -> None:
        if self.link not in ("log", "identity"):
            raise ValueError(f"link must be 'log' or 'identity', got {self.link!r}.")
        if not np.isfinite(self.power) or 0 < self.power < 1:
            raise ValueError(f"no distribution has power {self.power!r}.")

    @property
    def noise_model(self) -> Noise | None:  # type: ignore[override]
        return {0.0: NORMAL, 3.0: INVERSE_GAUSSIAN}.get(float(self.power))

    def check_target(self, y: Array) -> None:
        """Powers from 2 on are about positive targets, from 1 on about those not negative."""
        least = float(np.min(y, initial=np.inf))
        if (self.power >= 2 and least <= 0) or (self.power >= 1 and least < 0):
            is_positive = self.power >= 2
            kind = "positive" if is_positive else "nonnegative"
            wrong = y <= 0 if is_positive else y < 0
            raise ValueError(
                f"Power {self.power:g} is about {kind} targets; "
                + refused(wrong, y, "positive" if is_positive else "zero or more")
            )

    def mean(self, z: Array) -> Array:
        """The inverse of the link; NaN where the identity leaves the domain m > 0."""
        with np.errstate(over="ignore"):
            return np.exp(z) if self.link == "log" else np.where(z > 0, z, np.nan)

    def value(self, y: Array, z: Array) -> Array:
        p, a, q = self.power, 2.0 - self.power, 1.0 - self.power
        m = self.mean(z)
        present = y > 0
        own = np.where(present, y, 1.0)
        with np.errstate(all="ignore"):
            r = np.log(m / own) if self.link == "identity" else z - np.log(own)
            first = phi(a * r) / a if a != 0 else np.zeros_like(r)
            second = phi(q * r) / q if q != 0 else np.zeros_like(r)
            some = own**a * (first - second)
            # Without a positive target every term is positive.
            none = m**a / a - xlogy(y, m) if q == 0 else m**a / a - y * m**q / q
            none = none + (0.5 * y**2 if p == 0 else 0.0)
            total = np.where(present, some, none)
        return np.where(np.isnan(total), np.inf, total)

    def _slopes(self, m: Array) -> tuple[Array, Array]:
        """Factors f and g of l' = f - y g."""
        with np.errstate(all="ignore"):
            if self.link == "log":
                return m ** (2.0 - self.power), m ** (1.0 - self.power)
            return m ** (1.0 - self.power), m**-self.power

    def _curvatures(self, y: Array, m: Array) -> tuple[Array, Array]:
        """The two terms of l'', each monotone in z."""
        p, a, q = self.power, 2.0 - self.power, 1.0 - self.power
        with np.errstate(all="ignore"):
            if self.link == "log":
                return a * m**a, -q * y * m**q
            return q * m**-p, p * y * m ** (-p - 1.0)

    def gradient(self, y: Array, z: Array) -> Array:
        rising, falling = self._slopes(self.mean(z))
        return rising - y * falling

    def curvature(self, y: Array, z: Array) -> Array:
        first, second = self._curvatures(y, self.mean(z))
        return first + second

    def expected_curvature(self, z: Array) -> Array:
        """The mean of l'' if the model holds: never negative."""
        m = self.mean(z)
        with np.errstate(all="ignore"):
            return np.asarray(m ** ((2.0 if self.link == "log" else 0.0) - self.power))

    def least_curvature(self, y: Array, z: Array, reach: Array) -> Array:
        ends = [self._curvatures(y, self.mean(z + side * reach)) for side in (-1.0, 1.0)]
        least = sum(np.minimum(ends[0][i], ends[1][i]) for i in (0, 1))
        size = sum(np.maximum(np.abs(ends[0][i]), np.abs(ends[1][i])) for i in (0, 1))
        found = np.asarray(least - _SLACK * size)
        return np.where(np.isnan(found), -np.inf, found)

    def most_curvature(self, y: Array, z: Array, reach: Array) -> Array:
        ends = [self._curvatures(y, self.mean(z + side * reach)) for side in (-1.0, 1.0)]
        size = sum(np.maximum(np.abs(ends[0][i]), np.abs(ends[1][i])) for i in (0, 1))
        found = np.asarray((1 + _SLACK) * size)
        return np.where(np.isnan(found), np.inf, found)

    def constant(self, y: Array, weights: Array) -> Array:
        mean = weights @ y / weights.sum()
        if self.link == "identity":
            return np.asarray(mean)
        size = weights @ np.abs(y) / weights.sum()
        return np.log(np.where(mean > 0, mean, np.where(size > 0, 0.1 * size, 1.0)))
