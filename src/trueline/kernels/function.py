"""The kernel functions: a name, its parameters, and what is known about it.

Rows as features whose inner products are what a kernel is a function of.

For the RBF kernel the exponent itself is made an inner product,

    -g ||x - z||^2 = [sqrt(2 g) x, -g ||x||^2, 1] . [sqrt(2 g) z, 1, -g ||z||^2],   g = gamma,

so that a block of the kernel is one matrix product and one exponential. Rows are centred first:
distances stay, and far from the origin the squares would swallow them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

__all__ = ["Features", "KernelFunction", "features_of", "largest_exponent"]


@dataclass(frozen=True)
class KernelFunction:
    """One of the kernels of support vector machines.

    ========== =================================
    linear     x.z
    poly       (gamma x.z + coef0)^degree
    rbf        exp(-gamma ||x - z||^2)
    sigmoid    tanh(gamma x.z + coef0)
    precomputed the matrix itself is given
    ========== =================================

    Examples
    --------
    >>> from trueline.kernels import KernelFunction
    >>> KernelFunction("rbf", gamma=0.5).is_semidefinite
    True
    >>> KernelFunction("sigmoid", gamma=0.5).is_semidefinite
    False
    """

    name: str
    gamma: float = 0.0
    degree: int = 3
    coef0: float = 0.0

    @property
    def is_semidefinite(self) -> bool:
        """Whether every matrix of this kernel is known to be positive semi-definite.

        A product of x.z and non-negative constants with itself is (Schur's theorem); tanh is not,
        and nothing is known of matrices and functions that are given.
        """
        if self.name == "poly":
            return self.gamma >= 0 and self.coef0 >= 0
        return self.name in ("linear", "rbf")

    def of_products(self, products: NDArray[Any]) -> None:
        """Turn inner products x.z into kernel values, in place; for rbf they are exponents."""
        if self.name == "rbf":
            if products.dtype == np.float64:
                # Single precision leaves 1 + 1e-6 here and there, which is as good as 1 - 1e-6.
                np.minimum(products, 0.0, out=products)
            np.exp(products, out=products)
        elif self.name in ("poly", "sigmoid"):
            products *= self.gamma
            products += self.coef0
            if self.name == "sigmoid":
                np.tanh(products, out=products)
            else:
                raise_to(products, self.degree)


def raise_to(values: NDArray[Any], degree: int) -> None:
    """values^degree in place, by repeated squaring: far cheaper than the general power."""
    if degree == 0:
        values[...] = 1.0
        return
    base = values.copy() if degree > 1 and degree & (degree - 1) else None
    for bit in bin(degree)[3:]:
        np.multiply(values, values, out=values)
        if bit == "1":
            assert base is not None
            values *= base


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
