r"""The perceptron loss: how far a row is on the wrong side.

    l(z)  = max(0, -y z)                        y in {-1, +1}
    l'(z) = -y if y z <= 0, else 0              at the corner z = 0 every -y t, 0 <= t <= 1, is one
    l*(u) = 0        for -1 <= y u <= 0

A step of length eta along minus this subgradient, row by row, is Rosenblatt's rule: add eta y x if
the score is on the wrong side or zero. The hinge is the same loss with its corner at y z = 1. Zero
weights cost nothing: the loss is learned by passes from zero (:class:`trueline.Perceptron`), and
not minimised. Nor does any multiple of it bound the number of mistakes: a row on the boundary
is one, and costs nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from trueline.losses.base import Array, Loss, labels_are_signs


@dataclass(frozen=True)
class PerceptronLoss(Loss):
    """The perceptron loss: ``max(0, -y z)`` for labels y in {-1, +1}.

    Examples
    --------
    >>> import numpy as np
    >>> from trueline.losses import PerceptronLoss
    >>> y, z = np.array([1.0, 1.0, -1.0]), np.array([0.5, -2.0, 0.0])
    >>> PerceptronLoss().value(y, z).tolist(), PerceptronLoss().gradient(y, z).tolist()
    ([0.0, 2.0, 0.0], [0.0, -1.0, 1.0])
    """

    name: ClassVar[str] = "perceptron"
    formula: ClassVar[str] = "max(0, -y_i z_i)"
    capabilities: ClassVar[frozenset[str]] = frozenset({"conjugate", "margins"})

    check_target = labels_are_signs

    @property
    def kinks(self) -> tuple[float, ...]:
        return (-1.0, 1.0)  # z = 0, for both labels

    @property
    def slope_bound(self) -> float:
        return 1.0

    def value(self, y: Array, z: Array) -> Array:
        return np.maximum(0.0, -y * z)

    def gradient(self, y: Array, z: Array) -> Array:
        return np.where(y * z <= 0.0, -y, 0.0)

    def least_margin(self, level: float) -> float:
        return -level

    def conjugate(self, y: Array, u: Array) -> Array:
        along = y * u
        return np.where((along <= 0.0) & (along >= -1.0), 0.0, np.inf)

    def project_dual(self, y: Array, u: Array) -> Array:
        return np.where(y > 0, np.clip(u, -1.0, 0.0), np.clip(u, 0.0, 1.0))
