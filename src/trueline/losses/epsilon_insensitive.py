r"""Losses that forgive errors up to epsilon: those of support vector regression.

    epsilon insensitive            l(z)  = e,      e = max(0, abs(z - y) - epsilon)
                                   l*(u) = u y + epsilon abs(u)             for abs(u) <= 1
    squared epsilon insensitive    l(z)  = e^2
                                   l*(u) = u y + epsilon abs(u) + u^2 / 4

V. N. Vapnik, "The Nature of Statistical Learning Theory" (1995), section 6.1.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from trueline.losses.base import Array, Loss


@dataclass(frozen=True)
class _Insensitive(Loss):
    """What both have in common: the width, and where the loss has its kinks."""

    epsilon: float = 0.1

    def __post_init__(self) -> None:
        if not (np.isfinite(self.epsilon) and self.epsilon >= 0):
            raise ValueError(f"epsilon must be finite and not negative, got {self.epsilon!r}.")

    @property
    def kinks(self) -> tuple[float, ...]:
        return (-self.epsilon, self.epsilon) if self.epsilon > 0 else (0.0,)

    def _excess(self, y: Array, z: Array) -> Array:
        """By how much z is outside of [y - epsilon, y + epsilon], with its sign."""
        residual = z - y
        return residual - np.clip(residual, -self.epsilon, self.epsilon)


@dataclass(frozen=True)
class EpsilonInsensitive(_Insensitive):
    """The absolute error beyond epsilon.

    Parameters
    ----------
    epsilon : float, default=0.1
        Errors up to this size cost nothing, in units of the target.

    Examples
    --------
    >>> import numpy as np
    >>> from trueline.losses import EpsilonInsensitive
    >>> EpsilonInsensitive(epsilon=0.5).value(np.zeros(2), np.array([0.25, -2.0]))
    array([0. , 1.5])
    """

    name: ClassVar[str] = "epsilon_insensitive"
    formula: ClassVar[str] = "max(0, |z - y| - epsilon)"
    capabilities: ClassVar[frozenset[str]] = frozenset(
        {"conjugate", "piecewise_linear", "dual_box"}
    )

    @property
    def first_slope(self) -> float:
        return -1.0

    @property
    def jumps(self) -> tuple[float, ...]:
        return (1.0, 1.0) if self.epsilon > 0 else (2.0,)

    @property
    def slope_bound(self) -> float:
        return 1.0

    @property
    def dual_box(self) -> tuple[float, float, float, float]:
        return self.epsilon, 0.0, -1.0, 1.0

    def value(self, y: Array, z: Array) -> Array:
        return np.abs(self._excess(y, z))

    def gradient(self, y: Array, z: Array) -> Array:
        return np.sign(self._excess(y, z))

    def conjugate(self, y: Array, u: Array) -> Array:
        return np.where(np.abs(u) <= 1.0, u * y + self.epsilon * np.abs(u), np.inf)


@dataclass(frozen=True)
class SquaredEpsilonInsensitive(_Insensitive):
    """The squared error beyond epsilon (without a factor 1/2).

    Parameters
    ----------
    epsilon : float, default=0.1
        Errors up to this size cost nothing, in units of the target.

    Examples
    --------
    >>> import numpy as np
    >>> from trueline.losses import SquaredEpsilonInsensitive
    >>> SquaredEpsilonInsensitive(epsilon=0.5).value(np.zeros(2), np.array([0.25, -2.0]))
    array([0.  , 2.25])
    """

    name: ClassVar[str] = "squared_epsilon_insensitive"
    formula: ClassVar[str] = "max(0, |z - y| - epsilon)^2"
    capabilities: ClassVar[frozenset[str]] = frozenset(
        {"smooth", "curvature", "conjugate", "dual_box"}
    )

    @property
    def curvature_bound(self) -> float:
        return 2.0

    @property
    def dual_box(self) -> tuple[float, float, float, float]:
        return self.epsilon, 0.5, -np.inf, np.inf

    def value(self, y: Array, z: Array) -> Array:
        return self._excess(y, z) ** 2

    def gradient(self, y: Array, z: Array) -> Array:
        return 2.0 * self._excess(y, z)

    def curvature(self, y: Array, z: Array) -> Array:
        return np.where(np.abs(z - y) > self.epsilon, 2.0, 0.0).astype(np.result_type(y, z))

    def least_curvature(self, y: Array, z: Array, reach: Array) -> Array:
        return np.where(np.abs(z - y) - reach > self.epsilon, 2.0, 0.0)

    def most_residual(self, losses: float, weight: float, norm: float, largest: float) -> float:
        return norm * float(np.sqrt(losses) + self.epsilon * np.sqrt(weight))

    def conjugate(self, y: Array, u: Array) -> Array:
        # One product: two of them could be infinite with opposite signs.
        return u * (y + self.epsilon * np.sign(u) + 0.25 * u)
