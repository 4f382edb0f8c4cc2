"""Rows that repeat others: equations too many without noise, contradictions with little of it."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

__all__ = ["repeated_rows", "warn_of_contradictions"]

# Squared differences of targets of equal rows, relative to the noise, that no noise explains.
_BEYOND_NOISE = 1e6


def repeated_rows(X: Any) -> str:
    """A hint, if rows of X are repeated."""
    if not _are_numbers(X):
        return ""
    different = len(np.unique(X, axis=0))
    if different == len(X):
        return ""
    return (
        f" {len(X) - different} of {len(X)} rows of X repeat others, which without noise is "
        "one equation too many each: add a WhiteKernel, or average their targets."
    )


def _are_numbers(X: Any) -> bool:
    return isinstance(X, np.ndarray) and X.ndim == 2 and X.dtype.kind in "fiu"


def warn_of_contradictions(
    X: Any, Y: NDArray[np.float64], kernel: Any, noise: NDArray[np.float64], unit: float
) -> None:
    """Equal rows with different targets, and no noise that could explain them.

    Parameters
    ----------
    X : array of shape (n, d), or a list of what the kernel compares
    Y : array of shape (n, k)
        In units of ``unit``.
    kernel : Kernel
    noise : array of shape (n,)
        Variances beside those of the kernel.
    unit : float
    """
    if not _are_numbers(X):
        return
    order = np.lexsort([*Y.T[:1], *X.T])
    first, second = order[:-1], order[1:]
    apart = np.abs(Y[second] - Y[first]).max(axis=1) * (X[first] == X[second]).all(axis=1)
    if not apart.any():
        return
    worst = int(apart.argmax())
    i, j = sorted((int(first[worst]), int(second[worst])))
    own, shared = kernel.diag(X[[i]])[0], kernel(X[[i]], X[[j]])[0, 0]
    variance = float(own - shared + max(noise[i], noise[j]))
    difference = float(apart[worst])
    if difference**2 > _BEYOND_NOISE * max(variance, 0.0):
        warnings.warn(
            f"Rows {i} and {j} of X are equal, and their targets differ by "
            f"{difference * unit:.3g}, which noise of variance {variance * unit**2:.3g} does not "
            "explain: the fit means little. Add a WhiteKernel() to the kernel, or raise alpha.",
            ConvergenceWarning,
            stacklevel=3,
        )
