"""Operations on vectors that lie side by side, entry j of all problems together."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from trueline.numerics.jit import kernel

__all__ = ["advance", "dots", "turn"]

Array = NDArray[np.float64]


@kernel(reassociate=True)
def dots(A: Array, B: Array) -> Array:
    """sum_j a_jt b_jt for every t."""
    m, k = A.shape
    out = np.zeros(k)
    for j in range(m):
        for t in range(k):
            out[t] += A[j, t] * B[j, t]
    return out


@kernel(reassociate=True)
def advance(step: Array, P: Array, image: Array, D: Array, R: Array) -> None:
    """D += step P, R -= step image."""
    m, k = P.shape
    for j in range(m):
        for t in range(k):
            D[j, t] += step[t] * P[j, t]
            R[j, t] -= step[t] * image[j, t]


@kernel(reassociate=True)
def turn(ratio: Array, M: Array, P: Array) -> None:
    """P = ratio P + M."""
    m, k = P.shape
    for j in range(m):
        for t in range(k):
            P[j, t] = ratio[t] * P[j, t] + M[j, t]
