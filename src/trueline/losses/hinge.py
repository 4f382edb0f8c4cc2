r"""The losses of support vector classification, for labels y in {-1, +1}.

With y y = 1 the margin's shortfall is 1 - y z = y (y - z): a hinge is a quantile loss whose side
depends on the label, max(0, y - z) for y = 1 and max(0, z - y) for y = -1. So

    hinge            l(z)  = max(0, 1 - y z)
                     l*(u) = u y              for -1 <= y u <= 0
    squared hinge    l(z)  = max(0, 1 - y z)^2
                     l*(u) = u y + u^2 / 4    for y u <= 0

C. Cortes and V. Vapnik, "Support-vector networks", Mach. Learn. 20 (1995) 273-297.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from trueline.losses.base import Array, Loss

__all__ = ["Hinge", "SquaredHinge"]


@dataclass(frozen=True)
class _HingeLike(Loss):
    """What both have in common: labels, and where the loss bends."""

    @property
    def kinks(self) -> tuple[float, ...]:
        return (0.0,)

    def check_target(self, y: Array) -> None:
        """Labels are -1 and +1."""
        if not (np.abs(y) == 1).all():
            raise ValueError(
                f"The {self.name.replace('_', ' ')} loss is about labels -1 and +1; "
                f"y holds {np.unique(y[np.abs(y) != 1])[:3].tolist()}."
            )

    def _shortfall(self, y: Array, z: Array) -> Array:
        """By how much the margin y z is short of 1."""
        return np.maximum(0.0, 1.0 - y * z)


@dataclass(frozen=True)
class Hinge(_HingeLike):
    """The hinge: ``max(0, 1 - y z)`` for labels y in {-1, +1}.

    Examples
    --------
    >>> import numpy as np
    >>> from trueline.losses import Hinge
    >>> Hinge().value(np.array([1.0, 1.0, -1.0]), np.array([0.25, 2.0, 2.0]))
    array([0.75, 0.  , 3.  ])
    """

    name: ClassVar[str] = "hinge"
    formula: ClassVar[str] = "max(0, 1 - y_i z_i)"
    capabilities: ClassVar[frozenset[str]] = frozenset(
        {"conjugate", "piecewise_linear", "dual_box", "margins"}
    )

    @property
    def jumps(self) -> tuple[float, ...]:
        return (1.0,)

    def first_slopes(self, y: Array) -> Array:
        return np.where(y > 0, -1.0, 0.0)

    @property
    def dual_box(self) -> tuple[float, float, float, float]:
        return 0.0, 0.0, -1.0, 1.0

    def dual_interval(self, y: Array) -> tuple[Array, Array]:
        return np.where(y > 0, -1.0, 0.0), np.where(y > 0, 0.0, 1.0)

    @property
    def curvature_bound(self) -> float:
        return np.inf

    @property
    def slope_bound(self) -> float:
        return 1.0

    def value(self, y: Array, z: Array) -> Array:
        return self._shortfall(y, z)

    def gradient(self, y: Array, z: Array) -> Array:
        return np.where(y * z < 1.0, -y, 0.0)

    def curvature(self, y: Array, z: Array) -> Array:
        return np.zeros_like(z - y)

    def conjugate(self, y: Array, u: Array) -> Array:
        along = y * u
        return np.where((along <= 0.0) & (along >= -1.0), along, np.inf)

    def project_dual(self, y: Array, u: Array) -> Array:
        return np.clip(u, *self.dual_interval(y))

    def least_margin(self, level: float) -> float:
        return 1.0 - level


@dataclass(frozen=True)
class SquaredHinge(_HingeLike):
    """The squared hinge: ``max(0, 1 - y z)^2`` for labels y in {-1, +1} (without a factor 1/2).

    Examples
    --------
    >>> import numpy as np
    >>> from trueline.losses import SquaredHinge
    >>> SquaredHinge().value(np.array([1.0, 1.0, -1.0]), np.array([0.25, 2.0, 2.0]))
    array([0.5625, 0.    , 9.    ])
    """

    name: ClassVar[str] = "squared_hinge"
    formula: ClassVar[str] = "max(0, 1 - y_i z_i)^2"
    capabilities: ClassVar[frozenset[str]] = frozenset(
        {"smooth", "curvature", "conjugate", "dual_box", "margins"}
    )

    @property
    def dual_box(self) -> tuple[float, float, float, float]:
        return 0.0, 0.5, -np.inf, np.inf

    def dual_interval(self, y: Array) -> tuple[Array, Array]:
        return np.where(y > 0, -np.inf, 0.0), np.where(y > 0, 0.0, np.inf)

    @property
    def curvature_bound(self) -> float:
        return 2.0

    def value(self, y: Array, z: Array) -> Array:
        return self._shortfall(y, z) ** 2

    def gradient(self, y: Array, z: Array) -> Array:
        return -2.0 * y * self._shortfall(y, z)

    def curvature(self, y: Array, z: Array) -> Array:
        return np.where(y * z < 1.0, 2.0, 0.0).astype(np.result_type(y, z))

    def least_curvature(self, y: Array, z: Array, reach: Array) -> Array:
        return np.where(y * z + reach < 1.0, 2.0, 0.0)

    def conjugate(self, y: Array, u: Array) -> Array:
        # One product: two of them could be infinite with opposite signs.
        return np.where(y * u <= 0.0, u * (y + 0.25 * u), np.inf)

    def project_dual(self, y: Array, u: Array) -> Array:
        return np.clip(u, *self.dual_interval(y))

    def least_margin(self, level: float) -> float:
        return 1.0 - float(np.sqrt(level))
