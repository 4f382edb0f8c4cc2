"""Cholesky factors of a few rows and columns, compiled where calls of LAPACK would take longer."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from trueline._jit import kernel

__all__ = ["factor", "solve"]

Array = NDArray[np.float64]

# The smallest pivot of a Hessian whose diagonal is one.
_LEAST_PIVOT = 1e-13


@kernel
def factor(H: Array, root: Array) -> bool:
    """Overwrite the lower triangle of H by its Cholesky factor, the diagonal brought to one."""
    p = len(H)
    for j in range(p):
        if not H[j, j] > 0.0:
            return False
        root[j] = math.sqrt(H[j, j])
    for j in range(p):
        for k in range(j + 1):
            own = H[j, k] / (root[j] * root[k])
            for m in range(k):
                own -= H[j, m] * H[k, m]
            if k < j:
                H[j, k] = own / H[k, k]
            elif own > _LEAST_PIVOT:
                H[j, j] = math.sqrt(own)
            else:
                return False
    return True


@kernel
def solve(L: Array, root: Array, right: Array, out: Array) -> None:
    """H^-1 right, from the factor."""
    p = len(L)
    for j in range(p):
        own = right[j] / root[j]
        for m in range(j):
            own -= L[j, m] * out[m]
        out[j] = own / L[j, j]
    for j in range(p - 1, -1, -1):
        own = out[j]
        for m in range(j + 1, p):
            own -= L[m, j] * out[m]
        out[j] = own / L[j, j]
    for j in range(p):
        out[j] /= root[j]
