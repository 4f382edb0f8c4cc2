"""The kernel functions: a name, its parameters, and what is known about it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["KernelFunction"]


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
