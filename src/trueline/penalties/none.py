"""No penalty: p(W) = 0, and its conjugate is 0 at V = 0 and infinite elsewhere."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from trueline.penalties.base import Array, Penalty

__all__ = ["NoPenalty"]


@dataclass(frozen=True, eq=False)
class NoPenalty(Penalty):
    """No penalty at all.

    Examples
    --------
    >>> import numpy as np
    >>> from trueline.penalties import NoPenalty
    >>> NoPenalty().value(np.ones((3, 1)))
    0.0
    """

    name: ClassVar[str] = "none"

    @property
    def formula(self) -> str:
        return "0"

    @property
    def capabilities(self) -> frozenset[str]:
        return frozenset(
            {"smooth", "prox", "conjugate", "quadratic", "elastic", "polyhedral", "none"}
        )

    @property
    def curvature(self) -> float:
        return 0.0

    def value(self, W: Array) -> float:
        return 0.0

    def value_per_target(self, W: Array) -> Array:
        return np.zeros(W.shape[1])

    def gradient(self, W: Array) -> Array:
        return np.zeros_like(W)

    def prox(self, V: Array, step: float) -> Array:
        return V

    def conjugate_per_target(self, V: Array) -> Array:
        return np.where(np.any(V != 0, axis=0), np.inf, 0.0)

    def dual_scale(self, V: Array) -> Array:
        return np.where(np.any(V != 0, axis=0), 0.0, 1.0)
