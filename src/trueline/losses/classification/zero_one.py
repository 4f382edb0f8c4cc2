"""The 0-1 loss: the number of mistakes.

    loss     1 if y z <= 0, else 0        y in {-1, +1}
    minimum  0, reached where every row is on its side

It is neither convex nor continuous: no conjugate gives bounds, and what is proven about it is
proven by counting (:mod:`trueline.certificates.mistakes`) or by search.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from trueline.losses.base import Array, Loss

__all__ = ["ZeroOne"]


@dataclass(frozen=True)
class ZeroOne(Loss):
    """1 for a row on the wrong side or on the boundary, 0 for one on its side.

    Examples
    --------
    >>> import numpy as np
    >>> from trueline.losses import ZeroOne
    >>> ZeroOne().value(np.array([1.0, 1.0, -1.0]), np.array([0.5, 0.0, 2.0])).tolist()
    [0.0, 1.0, 1.0]
    """

    name: ClassVar[str] = "zero_one"
    formula: ClassVar[str] = "1 if y z <= 0"
    capabilities: ClassVar[frozenset[str]] = frozenset()

    @property
    def curvature_bound(self) -> float:
        return np.inf

    def check_target(self, y: Array) -> None:
        if not np.isin(y, (-1.0, 1.0)).all():
            raise ValueError("The 0-1 loss is for targets -1 and +1.")

    def value(self, y: Array, z: Array) -> Array:
        return np.asarray(y * z <= 0, dtype=np.float64)

    def gradient(self, y: Array, z: Array) -> Array:
        return np.zeros_like(z - y)

    def curvature(self, y: Array, z: Array) -> Array:
        return np.zeros_like(z - y)

    def conjugate(self, y: Array, u: Array) -> Array:
        raise NotImplementedError("the 0-1 loss is not convex: its conjugate gives no bounds.")

    def project_dual(self, y: Array, u: Array) -> Array:
        raise NotImplementedError("the 0-1 loss is not convex: it has no dual.")
