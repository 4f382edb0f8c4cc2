r"""Losses with kinks, and the maximum, replaced by smooth functions near them.

Every kink of a loss made of straight lines is rounded off over a zone of width proportional to mu:

    l_mu(z)   = max_u (u z - l*(u) - mu/2 u^2),      l - mu/2 max u^2 <= l_mu <= l
    l_mu*(u)  = l*(u) + mu/2 u^2

For the absolute error that is Huber's function of r = z - y, divided by mu:

    l_mu(z)   = r^2 / (2 mu)       where abs(r) <= mu, else abs(r) - mu/2
    l_mu'(z)  = clip(r / mu, -1, 1)

The maximum of the absolute errors becomes the logarithm of a sum of exponentials:

    F_mu      = mu log sum_i 2 cosh(r_i / mu),       max_i abs(r_i) <= F_mu
                                                     F_mu <= max_i abs(r_i) + mu log(2n)
    dF/dz_i   = sinh(r_i / mu) / sum_k cosh(r_k / mu)

Row by row it is l(z) = mu log(2 cosh(r / mu)), and F_mu = mu log sum_i exp(l_i / mu).

Y. Nesterov, "Smooth minimization of non-smooth functions", Math. Program. 103 (2005) 127-152.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import entr, logsumexp, softmax

from trueline.losses.base import Array, Loss


@dataclass(frozen=True)
class Smoothed(Loss):
    """Straight lines with rounded kinks: of the absolute error, Huber's function divided by mu.

    Parameters
    ----------
    base : Loss
        Absolute, quantile or epsilon-insensitive.
    mu : float, default=1.0
        The smoothing, in units of the target.

    Examples
    --------
    >>> import numpy as np
    >>> from trueline.losses import Absolute, Smoothed
    >>> loss = Smoothed(Absolute(), mu=0.5)
    >>> loss.value(np.zeros(3), np.array([0.0, 0.25, 2.0]))
    array([0.    , 0.0625, 1.75  ])
    >>> loss.gradient(np.zeros(3), np.array([0.0, 0.25, 2.0]))
    array([0. , 0.5, 1. ])
    """

    base: Loss
    mu: float = 1.0

    name: ClassVar[str] = "smoothed"
    capabilities: ClassVar[frozenset[str]] = frozenset({"smooth", "curvature", "conjugate"})

    def __post_init__(self) -> None:
        _check(self.mu)
        if "piecewise_linear" not in self.base.capabilities:
            raise ValueError(f"The {self.base.name} loss is not made of straight lines.")

    @property
    def formula(self) -> str:  # type: ignore[override]
        """The loss in plain text."""
        if self.base.name == "absolute":
            return "r^2/(2 mu) if |r| <= mu else |r| - mu/2, r = z - y"
        return f"max_u (u z - l*(u) - mu/2 u^2), l = {self.base.formula}"

    @property
    def kinks(self) -> tuple[float, ...]:
        """Where the curvature jumps: both ends of every zone."""
        left, ends = np.ravel(self.base.first_slope), list[float]()
        for kink, jump in zip(self.base.kinks, self.base.jumps, strict=True):
            ends += [float(kink + self.mu * slope) for slope in (*left, *(left + jump))]
            left = left + jump
        return tuple(ends)

    @property
    def curvature_bound(self) -> float:
        return 1.0 / self.mu

    @property
    def slope_bound(self) -> float:
        return self.base.slope_bound

    def of_target(self, number: int) -> Loss:
        return Smoothed(self.base.of_target(number), self.mu)

    def check_target(self, y: Array) -> None:
        self.base.check_target(y)

    def value(self, y: Array, z: Array) -> Array:
        # min_v l(v) + (z - v)^2 / (2 mu), whose v is the kink itself on a ramp.
        u, place, is_ramp = self._ramps(y, z)
        nearest = np.where(is_ramp, y + place, z - self.mu * u)
        return np.asarray(self.base.value(y, nearest) + 0.5 * self.mu * u**2)

    def gradient(self, y: Array, z: Array) -> Array:
        return self._ramps(y, z)[0]

    def curvature(self, y: Array, z: Array) -> Array:
        return self._ramps(y, z)[2] / self.mu

    def _ramps(self, y: Array, z: Array) -> tuple[Array, Array, NDArray[np.bool_]]:
        """The slope, the kink to whose ramp a score belongs, and whether it is on one."""
        r = z - y
        left = self.base.first_slopes(np.broadcast_to(y, r.shape))
        u, place, is_ramp = left.copy(), np.zeros_like(r), np.zeros(r.shape, dtype=bool)
        for kink, jump in zip(self.base.kinks, self.base.jumps, strict=True):
            t, right = (r - kink) / self.mu, left + jump
            inside = (t > left) & (t < right)
            u = np.where(t > left, np.minimum(t, right), u)
            place[inside], is_ramp = kink, is_ramp | inside
            left = right
        return u, place, is_ramp

    def conjugate(self, y: Array, u: Array) -> Array:
        return self.base.conjugate(y, u) + 0.5 * self.mu * u**2

    def project_dual(self, y: Array, u: Array) -> Array:
        return self.base.project_dual(y, u)


@dataclass(frozen=True)
class LogSumExp(Loss):
    """The smooth maximum of the absolute errors: the logarithm of a sum of exponentials.

    Parameters
    ----------
    mu : float, default=1.0
        The smoothing, in units of the target: the total is above the largest error by at most
        mu log(2n).

    Examples
    --------
    >>> import numpy as np
    >>> from trueline.losses import LogSumExp
    >>> loss = LogSumExp(mu=0.1)
    >>> y, z = np.zeros((2, 1)), np.array([[1.0], [-2.0]])
    >>> loss.total(loss.value(y, z), None).round(5)
    array([2.])
    >>> loss.total_gradient(y, z, None).round(4).ravel()
    array([ 0., -1.])
    """

    mu: float = 1.0

    name: ClassVar[str] = "log_sum_exp"
    formula: ClassVar[str] = "mu log(2 cosh((z - y) / mu))"
    capabilities: ClassVar[frozenset[str]] = frozenset({"joined", "strictly_convex"})

    def __post_init__(self) -> None:
        _check(self.mu)

    @property
    def curvature_bound(self) -> float:
        return 1.0 / self.mu

    @property
    def slope_bound(self) -> float:
        return 1.0

    def value(self, y: Array, z: Array) -> Array:
        size = np.abs(z - y)
        return size + self.mu * np.log1p(np.exp(-2.0 * size / self.mu))

    def gradient(self, y: Array, z: Array) -> Array:
        return np.tanh((z - y) / self.mu)

    def curvature(self, y: Array, z: Array) -> Array:
        return (1.0 - self.gradient(y, z) ** 2) / self.mu

    def conjugate(self, y: Array, u: Array) -> Array:
        inside = np.abs(u) <= 1
        share = 0.5 * (1.0 + np.where(inside, u, 0.0))
        return np.where(inside, u * y - self.mu * (entr(share) + entr(1.0 - share)), np.inf)

    def project_dual(self, y: Array, u: Array) -> Array:
        return np.clip(u, -1.0, 1.0)

    def total(self, values: Array, weights: Array | None) -> Array:
        """mu log sum_i exp(l_i / mu) over the rows that count."""
        counted = values if weights is None else values[weights > 0]
        return np.asarray(self.mu * logsumexp(counted / self.mu, axis=0))

    def total_gradient(self, y: Array, z: Array, weights: Array | None) -> Array:
        counted = np.ones(len(z), bool) if weights is None else weights > 0
        values = np.where(counted[:, None], self.value(y, z), -np.inf)
        return softmax(values / self.mu, axis=0) * self.gradient(y, z)

    def total_formula(self, is_weighted: bool) -> str:
        return "mu log sum_i 2 cosh((z_i - y_i) / mu)" + (" where s_i > 0" if is_weighted else "")


def smoothed(loss: Loss, mu: float) -> Loss:
    """The smooth loss near a given one that the solvers named "smoothed" minimise.

    Parameters
    ----------
    loss : Loss
        The maximum error, or a loss made of straight lines.
    mu : float
        The smoothing, in units of the target.

    Examples
    --------
    >>> from trueline.losses import MaximumError, smoothed
    >>> smoothed(MaximumError(), 0.1)
    LogSumExp(mu=0.1)
    """
    return LogSumExp(mu) if "maximum" in loss.capabilities else Smoothed(loss, mu)


def _check(mu: float) -> None:
    if not (np.isfinite(mu) and mu > 0):
        raise ValueError(f"mu must be a positive finite number, got {mu!r}.")
