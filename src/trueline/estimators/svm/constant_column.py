"""An intercept that is the coefficient of a constant column; and prices that can be squared."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from trueline.design import AugmentedDesign, Design, as_design

__all__ = ["apart", "require_price", "together", "with_constant", "with_constant_column"]

Array = NDArray[np.float64]


def with_constant(X: Any, size: float) -> Design:
    """The design of [X, size 1], without a copy of X."""
    return AugmentedDesign(as_design(X), float(size))


def with_constant_column(X: Any, size: float) -> Any:
    """[X, size 1] as an array or a sparse matrix, for whoever checks a certificate about it."""
    X = X if sp.issparse(X) else np.asarray(X, dtype=np.float64)
    constant = np.full((X.shape[0], 1), float(size))
    return sp.hstack([X, constant], format="csr") if sp.issparse(X) else np.hstack([X, constant])


def apart(W: NDArray[Any], size: float) -> tuple[NDArray[Any], NDArray[Any]]:
    """Coefficients of shape (d, k) and intercepts of shape (k,), from those with the constant."""
    return W[:-1], (W[-1] * size).astype(W.dtype)


def together(W: Array, b: Array, size: float) -> tuple[Array, Array]:
    """The other way round; no intercept beside them is left."""
    return np.vstack([W, b / size]), np.zeros(W.shape[1])


_SMALLEST, _LARGEST = 1e-90, 1e90


def require_price(C: float, largest: float) -> None:
    """Raise if C, or C times the largest sample weight, cannot be squared.

    Parameters
    ----------
    C : float
    largest : float
        C times the largest sample weight.
    """
    if not _SMALLEST <= largest <= _LARGEST:
        raise ValueError(
            f"C={C:.3g} times the largest sample weight is {largest:.3g}: its square leaves the "
            "range of double precision. Bring C, or the weights, nearer to one."
        )
