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
    with np.errstate(under="ignore"):
        units = np.ldexp(weights, -power)
    size, reach = np.ldexp(1.0, power), largest_score(source.diagonal())
    require_range(size * units, reach)
    if 0 < np.square(size * units.sum()) * reach < _SMALLEST:
        raise ValueError(
            f"Sample weights of {weights.max():.3g} make the objective smaller than double "
            "precision can hold. Divide them by their mean."
        )
    return units, float(size)


def require_range(beta: Array, reach: float) -> None:
    """Raise if ||f||^2 leaves the range of double precision, for kernel values up to ``reach``."""
    with np.errstate(over="ignore", invalid="ignore"):
        square = np.square(np.abs(beta).sum()) * reach
    if not square < _LARGEST:
        raise ValueError(
            f"Multipliers up to {np.abs(beta).max():.3g} and kernel values up to {reach:.3g} make "
            "an objective beyond the range of double precision. Lower C, divide the sample weights "
            "by their mean, or scale the columns."
        )
