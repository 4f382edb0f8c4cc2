r"""The logarithm of the hyperbolic cosine, with r = z - y.

l(z)   = log cosh r
l'(z)  = tanh r
l''(z) = 1 - tanh(r)^2
l*(u)  = 1/2 [(1 + u) log(1 + u) + (1 - u) log(1 - u)] + u y      for abs(u) <= 1
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.special import xlogy

from trueline.losses.base import Array, Loss

__all__ = ["LogCosh"]


@dataclass(frozen=True)
class LogCosh(Loss):
    """Squared for small errors, absolute for large ones, smooth in between."""

    name: ClassVar[str] = "log_cosh"
    formula: ClassVar[str] = "log cosh(z - y)"
    capabilities: ClassVar[frozenset[str]] = frozenset({"smooth", "curvature", "conjugate"})

    @property
    def curvature_bound(self) -> float:
        return 1.0

    def check_target(self, y: Array) -> None:
        """Every finite target is allowed."""

    def value(self, y: Array, z: Array) -> Array:
        size = np.abs(z - y)
        # cosh overflows at 710; this form does not, and keeps its digits near zero.
        small = np.minimum(size, 1.0)
        near = 0.5 * np.log1p(np.sinh(small) ** 2)
        far = size + np.log1p(np.exp(-2.0 * size)) - np.log(2.0)
        return np.where(size < 1.0, near, far).astype(size.dtype)

    def gradient(self, y: Array, z: Array) -> Array:
        return np.tanh(z - y)

    def curvature(self, y: Array, z: Array) -> Array:
        # 1 - tanh^2 would cancel: 1 / cosh^2 with the exponential that cannot overflow.
        e = np.exp(-2.0 * np.abs(z - y))
        return 4.0 * e / (1.0 + e) ** 2

    def conjugate(self, y: Array, u: Array) -> Array:
        inside, small = np.clip(u, -1.0, 1.0), np.clip(u, -0.5, 0.5)
        # Near zero the two terms of the formula cancel; this is the same without it.
        near = 0.5 * np.log1p(-(small**2)) + small * np.arctanh(small)
        far = 0.5 * (xlogy(1.0 + inside, 1.0 + inside) + xlogy(1.0 - inside, 1.0 - inside))
        value = np.where(np.abs(u) < 0.5, near, far) + inside * y
        return np.where(np.abs(u) <= 1.0, value, np.inf)

    def project_dual(self, y: Array, u: Array) -> Array:
        return np.clip(u, -1.0, 1.0)
