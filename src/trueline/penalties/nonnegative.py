"""A penalty restricted to nonnegative coefficients.

    q(w)          = p(w) where w >= 0, infinite elsewhere
    prox_q(v)     = prox_p(max(0, v))
    q*(v)         = p*(max(0, v))

The last two hold because every p here is separable, even, and increasing on w >= 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from trueline.penalties.base import Array, Penalty
from trueline.penalties.none import NoPenalty

__all__ = ["NonNegative"]


@dataclass(frozen=True, eq=False)
class NonNegative(Penalty):
    """Another penalty, with the coefficients kept at or above zero.

    Parameters
    ----------
    base : Penalty, default=NoPenalty()
        The penalty that applies on the nonnegative side.

    Examples
    --------
    >>> import numpy as np
    >>> from trueline.penalties import L2, NonNegative
    >>> NonNegative(L2(1.0)).prox(np.array([[2.0], [-2.0]]), step=1.0).ravel()
    array([1., 0.])
    """

    base: Penalty = NoPenalty()
    name: ClassVar[str] = "nonnegative"

    def __post_init__(self) -> None:
        if isinstance(self.base, NonNegative) or self.base.name == "bounded":
            raise ValueError(
                f"The {self.base.name} penalty has bounds of its own: give it lower=0 in place of "
                "positive=True."
            )

    @property
    def formula(self) -> str:
        return f"{self.base.formula}, w >= 0"

    @property
    def capabilities(self) -> frozenset[str]:
        # With a bound on them, coefficients of equal scores are no longer equally good.
        lost = {"none", "smooth", "elastic", "polyhedral"}
        return (self.base.capabilities - lost) | {"nonnegative"}

    @property
    def curvature(self) -> float | Array:
        return self.base.curvature

    @property
    def linear(self) -> float | Array:
        return self.base.linear

    @property
    def lower(self) -> float:
        return 0.0

    def value(self, W: Array) -> float:
        return float(np.sum(self.value_per_target(W)))

    def value_per_target(self, W: Array) -> Array:
        outside = np.any(W < 0, axis=0)
        return np.where(outside, np.inf, self.base.value_per_target(W))

    def gradient(self, W: Array) -> Array:
        return self.base.gradient(W)

    def prox(self, V: Array, step: float) -> Array:
        return self.base.prox(np.maximum(V, 0.0), step)

    def conjugate_per_target(self, V: Array) -> Array:
        return self.base.conjugate_per_target(np.maximum(V, 0.0))

    def dual_scale(self, V: Array) -> Array:
        return self.base.dual_scale(np.maximum(V, 0.0))
