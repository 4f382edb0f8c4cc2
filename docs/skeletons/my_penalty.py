r"""Squared near zero, absolute beyond one: Huber's function as a penalty.

p(w)          = alpha/2 w^2               where abs(w) <= 1
              = alpha (abs(w) - 1/2)      beyond
prox(v, step) = v / (1 + t)               where abs(v) <= 1 + t,      t = step alpha
              = v - t sign(v)             beyond
p*(v)         = v^2 / (2 alpha)           for abs(v) <= alpha
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from trueline.penalties.base import Array, Penalty, check_strength

__all__ = ["HuberPenalty"]


@dataclass(frozen=True)
class HuberPenalty(Penalty):
    """Shrinks small coefficients like ridge and spares large ones like the lasso."""

    alpha: float | Array = 1.0
    name: ClassVar[str] = "huber"

    def __post_init__(self) -> None:
        check_strength(self.alpha)

    @property
    def formula(self) -> str:
        return "alpha sum_j (1/2 w_j^2 if |w_j| <= 1 else |w_j| - 1/2)"

    @property
    def capabilities(self) -> frozenset[str]:
        return frozenset({"smooth", "prox", "conjugate"})

    @property
    def curvature(self) -> float:
        return 0.0  # no parabola stays below a straight line

    def value(self, W: Array) -> float:
        return float(np.sum(self.value_per_target(W)))

    def value_per_target(self, W: Array) -> Array:
        size = np.abs(W)
        near = np.minimum(size, 1.0)
        return np.sum(self.alpha * near * (size - 0.5 * near), axis=0)

    def gradient(self, W: Array) -> Array:
        return self.alpha * np.clip(W, -1.0, 1.0)

    def prox(self, V: Array, step: float) -> Array:
        t = np.multiply(step, self.alpha)
        return np.where(np.abs(V) <= 1.0 + t, V / (1.0 + t), V - t * np.sign(V))

    def conjugate_per_target(self, V: Array) -> Array:
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            inside = np.abs(V) * (0.5 * (np.abs(V) / self.alpha))
        terms = np.where(np.abs(V) <= self.alpha, inside, np.inf)
        return np.sum(np.where(V == 0, 0.0, terms), axis=0)

    def dual_scale(self, V: Array) -> Array:
        with np.errstate(divide="ignore", invalid="ignore"):
            room = np.where(np.abs(V) > self.alpha, self.alpha / np.abs(V), 1.0)
        return np.min(room, axis=0, initial=1.0)
