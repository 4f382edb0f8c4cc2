"""Rows as features whose inner products are what a kernel is a function of.

For the RBF kernel the exponent itself is made an inner product,

    -g ||x - z||^2 = [sqrt(2 g) x, -g ||x||^2, 1] . [sqrt(2 g) z, 1, -g ||z||^2],   g = gamma,

so that a block of the kernel is one matrix product and one exponential. Rows are centred first:
distances stay, and far from the origin the squares would swallow them.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from trueline.kernels.function import KernelFunction

__all__ = ["Features", "features_of", "largest_exponent"]

Array = NDArray[np.float64]

# Exponents that are off by more than this come from differences of rows instead.
_CANCELLATION = 1e-9


class Features(NamedTuple):
    """``left @ right.T`` is what the kernel is a function of; None where it must be differences."""

    left: NDArray[Any]
    right: NDArray[Any]


def largest_exponent(X: Any, kernel: KernelFunction) -> float:
    """A bound on gamma ||x - c||^2 over the rows, with c their centre (the origin if sparse)."""
    if sp.issparse(X):
        squares = np.asarray(X.multiply(X).sum(axis=1)).ravel()
    else:
        away = X - X.mean(axis=0)
        squares = np.einsum("ij,ij->i", away, away)
    return float(kernel.gamma * squares.max(initial=0.0))


def is_cancelling(exponent: float) -> bool:
    """Whether squares of such a size leave too few digits to their differences."""
    return not exponent * np.finfo(np.float64).eps < _CANCELLATION


def features_of(X: Array, kernel: KernelFunction, centre: Array | None, dtype: Any) -> Features:
    """Features of dense rows; ``centre`` is that of the training rows."""
    if kernel.name != "rbf":
        plain = np.ascontiguousarray(X, dtype=dtype)
        return Features(plain, plain)
    assert centre is not None
    away = X - centre
    scaled = away * np.sqrt(2.0 * kernel.gamma)
    half = -0.5 * np.einsum("ij,ij->i", scaled, scaled)
    n, d = X.shape
    left = np.empty((n, d + 2), dtype=dtype)
    left[:, :d], left[:, d], left[:, d + 1] = scaled, half, 1.0
    right = np.empty((n, d + 2), dtype=dtype)
    right[:, :d], right[:, d], right[:, d + 1] = scaled, 1.0, half
    return Features(left, right)
