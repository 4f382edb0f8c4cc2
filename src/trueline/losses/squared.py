r"""Half the squared error, and Huber's loss, which is straight beyond a threshold.

    l(z)   = 1/2 (z - y)^2
    l'(z)  = z - y
    l''(z) = 1
    l*(u)  = 1/2 u^2 + u y          for every u

Huber's loss with a fixed threshold delta:

    l(z)   = 1/2 r^2                     where abs(r) <= delta,    r = z - y
           = delta (abs(r) - delta/2)    beyond
    l'(z)  = clip(r, -delta, delta)
    l''(z) = 1 where abs(r) <= delta, 0 beyond
    l*(u)  = 1/2 u^2 + u y               for abs(u) <= delta

P. J. Huber, "Robust estimation of a location parameter", Ann. Math. Statist. 35 (1964) 73-101.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from trueline.losses.base import Array, Loss
from trueline.losses.noise import NORMAL, Noise


@dataclass(frozen=True)
class Squared(Loss):
    """Half the squared error, ``1/2 (z - y)^2``: the loss of least squares.

    Minimising its sum is maximum likelihood under Gaussian noise of equal variance.

    Examples
    --------
    >>> import numpy as np
    >>> from trueline.losses import Squared
    >>> Squared().value(np.array([1.0]), np.array([3.0]))
    array([2.])
    """

    name: ClassVar[str] = "squared"
    noise_model: ClassVar[Noise | None] = NORMAL
    formula: ClassVar[str] = "1/2 (z - y)^2"
    capabilities: ClassVar[frozenset[str]] = frozenset(
        {"smooth", "curvature", "quadratic", "conjugate", "dual_box", "strictly_convex"}
    )

    @property
    def curvature_bound(self) -> float:
        return 1.0

    @property
    def dual_box(self) -> tuple[float, float, float, float]:
        return 0.0, 1.0, -np.inf, np.inf

    def value(self, y: Array, z: Array) -> Array:
        return 0.5 * (z - y) ** 2

    def gradient(self, y: Array, z: Array) -> Array:
        return z - y

    def curvature(self, y: Array, z: Array) -> Array:
        return np.ones_like(z - y)  # the difference has the shape of both together

    def least_curvature(self, y: Array, z: Array, reach: Array) -> Array:
        return np.ones_like(z - y)

    def most_residual(self, losses: float, weight: float, norm: float, largest: float) -> float:
        return norm * float(np.sqrt(2 * losses))

    def conjugate(self, y: Array, u: Array) -> Array:
        return u * (0.5 * u + y)  # the square alone could overflow


@dataclass(frozen=True)
class Huber(Loss):
    """Huber's loss: squared near zero, linear beyond ``delta``.

    Parameters
    ----------
    delta : float, default=1.35
        Where the loss turns from squared to linear, in units of the target.

    Examples
    --------
    >>> import numpy as np
    >>> from trueline.losses import Huber
    >>> Huber(delta=1.0).value(np.array([0.0, 0.0]), np.array([1.0, 3.0]))
    array([0.5, 2.5])
    """

    delta: float = 1.35

    name: ClassVar[str] = "huber"
    formula: ClassVar[str] = "1/2 r^2 if |r| <= delta else delta (|r| - delta/2), r = z - y"
    capabilities: ClassVar[frozenset[str]] = frozenset(
        {"smooth", "curvature", "conjugate", "dual_box"}
    )

    def __post_init__(self) -> None:
        if not (np.isfinite(self.delta) and self.delta > 0):
            raise ValueError(f"delta must be a positive finite number, got {self.delta!r}.")

    @property
    def kinks(self) -> tuple[float, ...]:
        return (-self.delta, self.delta)

    @property
    def curvature_bound(self) -> float:
        return 1.0

    @property
    def slope_bound(self) -> float:
        return self.delta

    @property
    def dual_box(self) -> tuple[float, float, float, float]:
        return 0.0, 1.0, -self.delta, self.delta

    def value(self, y: Array, z: Array) -> Array:
        size = np.abs(z - y)
        near = np.minimum(size, self.delta)
        # One formula for both branches, continuous to the last bit at the threshold.
        return near * (size - 0.5 * near)

    def gradient(self, y: Array, z: Array) -> Array:
        return np.clip(z - y, -self.delta, self.delta)

    def curvature(self, y: Array, z: Array) -> Array:
        return (np.abs(z - y) <= self.delta).astype(np.result_type(y, z))

    def eased(self, size: float) -> Huber:
        return Huber(max(self.delta, size))

    def least_curvature(self, y: Array, z: Array, reach: Array) -> Array:
        return np.where(np.abs(z - y) + reach <= self.delta, 1.0, 0.0)

    def most_residual(self, losses: float, weight: float, norm: float, largest: float) -> float:
        # abs(r) <= l / delta + delta / 2: the square lies above its tangents.
        return largest * (losses / self.delta + self.delta / 2 * weight)

    def conjugate(self, y: Array, u: Array) -> Array:
        return np.where(np.abs(u) <= self.delta, u * (0.5 * u + y), np.inf)
