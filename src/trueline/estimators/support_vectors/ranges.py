"""Prices and weights of any size: what double precision can hold, or a sentence that helps."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from trueline.kernels import KernelSource
from trueline.solvers.smo.progress import largest_score

__all__ = ["normalised", "priced", "require_range"]

Array = NDArray[np.float64]

# Squares of sums of multipliers must stay within doubles, with room for sums over rows.
_LARGEST, _SMALLEST = 1e290, 1e-290


def priced(C: float, class_weight: Array, weights: Array) -> Array:
    """C times the weights of the rows; infinite only if C is."""
    if math.isinf(C):
        return np.full(len(weights), np.inf)
    with np.errstate(over="ignore", under="ignore"):
        box = C * class_weight * weights
    if not np.isfinite(box).all() or (box == 0)[class_weight > 0].any():
        raise ValueError(
            f"C={C:.3g} times weights from {weights.min():.3g} to {weights.max():.3g} leaves the "
            "range of double precision. Divide the weights by their mean, and multiply C by it."
        )
    return box


def normalised(weights: Array, source: KernelSource) -> tuple[Array, float]:
    """Weights divided by the largest, up to a power of two, and that power."""
    power = int(np.frexp(weights.max())[1]) - 1
    units = np.ldexp(weights, -power)
    total = float(units.sum())
    require_range(np.ldexp(1.0, power) * total, largest_score(source.diagonal()))
    return units, float(np.ldexp(1.0, power))


def require_range(total: float, reach: float) -> None:
    """Raise if ||f||^2 for multipliers of this sum leaves the range of double precision."""
    with np.errstate(over="ignore", under="ignore"):
        square = np.square(np.float64(total)) * reach
    if total > 0 and reach > 0 and not _SMALLEST < square < _LARGEST:
        raise ValueError(
            f"The sample weights add up to {total:.3g} and kernel values reach {reach:.3g}: the "
            "objective leaves the range of double precision. Divide the weights by their mean, "
            "and scale the columns."
        )
