r"""The hinge of several classes: by how much another class's score comes too near.

The target of a row is one-hot, y_k = 1 for its class; its k scores are coupled:

    l(z)  = max_k (z_k + 1 - y_k) - y.z
    l*(u) = y.u            for u = p - y with p in the simplex

and l(z) = 0 where the own score exceeds all others by at least 1. For two classes it is the hinge
of the difference z_y - z_other.

K. Crammer and Y. Singer, "On the algorithmic implementation of multiclass kernel-based vector
machines", J. Mach. Learn. Res. 2 (2001) 265-292.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from trueline.losses.base import Array, Loss

__all__ = ["CrammerSinger"]

# Dual points are rounded to multiples of this: so many of them add up without rounding.
_GRID = 2.0**40


@dataclass(frozen=True)
class CrammerSinger(Loss):
    """The multiclass hinge: ``max_k (z_k + [k is not y]) - z_y`` for the row's class y, one-hot.

    Examples
    --------
    >>> import numpy as np
    >>> from trueline.losses import CrammerSinger
    >>> y = np.array([[1.0, 0.0, 0.0], [1.0, 0.0, 0.0]])
    >>> CrammerSinger().value(y, np.array([[2.0, 0.0, 1.5], [2.0, 0.0, 1.0]])).sum(axis=1)
    array([0.5, 0. ])
    """

    name: ClassVar[str] = "crammer_singer"
    formula: ClassVar[str] = "max_k (z_ik + [k is not y_i]) - z_i,y_i"
    capabilities: ClassVar[frozenset[str]] = frozenset({"conjugate", "coupled", "dual_classes"})

    @property
    def curvature_bound(self) -> float:
        return np.inf

    @property
    def slope_bound(self) -> float:
        return 1.0

    def check_target(self, y: Array) -> None:
        """Rows are one-hot."""
        one_hot = ((y == 0) | (y == 1)).all() and (y.sum(axis=1) == 1).all()
        if not one_hot:
            raise ValueError(
                "Targets of the multiclass hinge are one-hot: one 1 in every row, else 0."
            )

    def value(self, y: Array, z: Array) -> Array:
        own = (y * z).sum(axis=1, keepdims=True)
        short = np.where(y != 0, 0.0, z + 1.0 - own).max(axis=1, keepdims=True)
        return np.where(y != 0, short, 0.0)

    def gradient(self, y: Array, z: Array) -> Array:
        own = (y * z).sum(axis=1, keepdims=True)
        short = np.where(y != 0, 0.0, z + 1.0 - own)
        worst = np.eye(z.shape[1])[short.argmax(axis=1)]
        return np.where(short.max(axis=1, keepdims=True) > 0, worst - y, 0.0)

    def curvature(self, y: Array, z: Array) -> Array:
        return np.zeros_like(z - y)

    def conjugate(self, y: Array, u: Array) -> Array:
        inside = (u.sum(axis=1) == 0) & ((u + y) >= 0).all(axis=1) & ((u + y) <= 1).all(axis=1)
        return np.where(inside[:, None], np.where(y != 0, u, 0.0), np.inf)

    def project_dual(self, y: Array, u: Array) -> Array:
        """A point of the domain next to u, whose entries add up to zero without rounding."""
        others = np.floor(np.where(y != 0, 0.0, np.clip(u, 0.0, 1.0)) * _GRID)
        total = others.sum(axis=1, keepdims=True)
        with np.errstate(divide="ignore", invalid="ignore"):
            room = np.where(total > _GRID, _GRID / total, 1.0)
        others = np.floor(others * room) / _GRID
        return np.where(y != 0, -others.sum(axis=1, keepdims=True), others)
