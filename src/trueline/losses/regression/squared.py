r"""Half the squared error.

l(z)   = 1/2 (z - y)^2
l'(z)  = z - y
l''(z) = 1
l*(u)  = 1/2 u^2 + u y          for every u
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from trueline.losses.base import Array, Loss

__all__ = ["Squared"]


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
    formula: ClassVar[str] = "1/2 (z - y)^2"
    capabilities: ClassVar[frozenset[str]] = frozenset(
        {"smooth", "curvature", "quadratic", "conjugate", "dual_box"}
    )

    @property
    def curvature_bound(self) -> float:
        return 1.0

    @property
    def dual_box(self) -> tuple[float, float, float, float]:
        return 0.0, 1.0, -np.inf, np.inf

    def check_target(self, y: Array) -> None:
        """Every finite target is allowed."""

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

    def project_dual(self, y: Array, u: Array) -> Array:
        return u
