r"""No row inside the margin: the loss of a support vector machine that forgives nothing.

    l(z) = 0 if y z >= 1, infinity otherwise        y in {-1, +1}

What is minimised with it is 1/2 ||w||^2, over the hyperplanes that keep every row on its margin or
beyond: the limit of the hinge for C to infinity.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from trueline.losses.base import Array, Loss

__all__ = ["HardMargin"]


@dataclass(frozen=True)
class HardMargin(Loss):
    """Infinite for rows with ``y z < 1``, else zero.

    Examples
    --------
    >>> import numpy as np
    >>> from trueline.losses import HardMargin
    >>> HardMargin().value(np.array([1.0, -1.0]), np.array([1.0, -0.5]))
    array([ 0., inf])
    """

    name: ClassVar[str] = "hard_margin"
    formula: ClassVar[str] = "0 if y_i z_i >= 1, else infinity"
    capabilities: ClassVar[frozenset[str]] = frozenset()

    @property
    def curvature_bound(self) -> float:
        return np.inf

    def check_target(self, y: Array) -> None:
        if not (np.abs(y) == 1).all():
            raise ValueError("The hard margin is about labels -1 and +1.")

    def value(self, y: Array, z: Array) -> Array:
        return np.where(y * z >= 1.0, 0.0, np.inf)

    def gradient(self, y: Array, z: Array) -> Array:
        return np.zeros_like(z - y)

    def curvature(self, y: Array, z: Array) -> Array:
        return np.zeros_like(z - y)

    def conjugate(self, y: Array, u: Array) -> Array:
        return np.where(y * u <= 0.0, y * u, np.inf)

    def project_dual(self, y: Array, u: Array) -> Array:
        return np.where(y > 0, np.minimum(u, 0.0), np.maximum(u, 0.0))
