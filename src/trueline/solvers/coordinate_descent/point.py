"""One solution of a path."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["PathPoint"]

Array = NDArray[np.float64]
Integers = NDArray[np.intp]


@dataclass(frozen=True)
class PathPoint:
    """One solution: its support with the coefficients there, the gap, and how it was found."""

    columns: Integers
    values: Array
    objective: float
    gap: float
    residual_square: float
    sweeps: int

    def coef(self, n_features: int) -> Array:
        """The coefficients as a dense vector."""
        w = np.zeros(n_features)
        w[self.columns] = self.values
        return w
