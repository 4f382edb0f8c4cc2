r"""Half the deviance of any power where it is not convex: identity links, and powers beyond 1 to 2.

With the mean m (m = exp(z) for the logarithm as link, m = z for the identity), a = 2 - p and
q = 1 - p,

    l(m)  = max(y, 0)^a / (q a) - y m^q / q + m^a / a        (y > 0, r = log(m / y):
                                                               y^a (phi(a r) / a - phi(q r) / q))
    dl/dm = m^q - y m^-p

    logarithm:   l' = m^a - y m^q        l'' = a m^a - q y m^q
    identity:    l' = m^q - y m^-p       l'' = q m^-p + p y m^(-p-1)

with limits of the terms divided by zero. Every such curve has its least value, zero, at m = y, but
may bend the other way far from there: minima of sums are local ones as far as anybody can prove.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.special import xlogy

from trueline.losses.base import Array, Loss
from trueline.losses.regression.deviance import phi, refused

__all__ = ["LocalDeviance"]

_SLACK = 1e-12


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
    def curvature_bound(self) -> float:
        return np.inf

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

    def _bends(self, y: Array, m: Array) -> tuple[Array, Array]:
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
        first, second = self._bends(y, self.mean(z))
        return first + second

    def expected_curvature(self, z: Array) -> Array:
        """The mean of l'' if the model holds: never negative."""
        m = self.mean(z)
        with np.errstate(all="ignore"):
            return np.asarray(m ** ((2.0 if self.link == "log" else 0.0) - self.power))

    def least_curvature(self, y: Array, z: Array, reach: Array) -> Array:
        ends = [self._bends(y, self.mean(z + side * reach)) for side in (-1.0, 1.0)]
        least = sum(np.minimum(ends[0][i], ends[1][i]) for i in (0, 1))
        size = sum(np.maximum(np.abs(ends[0][i]), np.abs(ends[1][i])) for i in (0, 1))
        found = np.asarray(least - _SLACK * size)
        return np.where(np.isnan(found), -np.inf, found)

    def most_curvature(self, y: Array, z: Array, reach: Array) -> Array:
        ends = [self._bends(y, self.mean(z + side * reach)) for side in (-1.0, 1.0)]
        size = sum(np.maximum(np.abs(ends[0][i]), np.abs(ends[1][i])) for i in (0, 1))
        found = np.asarray((1 + _SLACK) * size)
        return np.where(np.isnan(found), np.inf, found)

    def constant(self, y: Array, weights: Array) -> Array:
        mean = weights @ y / weights.sum()
        if self.link == "identity":
            return np.asarray(mean)
        size = weights @ np.abs(y) / weights.sum()
        return np.log(np.where(mean > 0, mean, np.where(size > 0, 0.1 * size, 1.0)))

    def conjugate(self, y: Array, u: Array) -> Array:
        raise NotImplementedError("this deviance is not convex: its conjugate gives no bounds.")

    def project_dual(self, y: Array, u: Array) -> Array:
        raise NotImplementedError("this deviance is not convex: it has no dual.")
