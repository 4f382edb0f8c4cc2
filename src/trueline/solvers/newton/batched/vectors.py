"""Steps of conjugate gradients for many problems whose vectors lie side by side, shape (m, p, k).

Short vectors are left to NumPy; long ones are worth compiled code, which reads each of them once.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["advance", "dots", "turn"]

Array = NDArray[np.float64]

# Numbers from which on compiled code pays.
_LONG = 30_000


def dots(A: Array, B: Array) -> Array:
    """Inner products of the vectors, of shape (p, k)."""
    if A.size < _LONG:
        return np.asarray(np.einsum("dpk,dpk->pk", A, B))
    from trueline.solvers.newton.batched.kernels import dots as compiled

    return compiled(
        *(np.ascontiguousarray(part).reshape(len(part), -1) for part in (A, B))
    ).reshape(A.shape[1:])


def advance(step: Array, P: Array, image: Array, D: Array, R: Array) -> None:
    """D + step P and R - step image, in place."""
    if P.size < _LONG:
        D += step * P
        R -= step * image
        return
    from trueline.solvers.newton.batched.kernels import advance as compiled

    lengths = np.ascontiguousarray(np.broadcast_to(step, P.shape[1:])).ravel()
    compiled(lengths, *(_flat(part) for part in (P, image, D, R)))


def turn(ratio: Array, M: Array, P: Array) -> None:
    """M + ratio P, in place of P."""
    if P.size < _LONG:
        P *= ratio
        P += M
        return
    from trueline.solvers.newton.batched.kernels import turn as compiled

    lengths = np.ascontiguousarray(np.broadcast_to(ratio, P.shape[1:])).ravel()
    compiled(lengths, _flat(M), _flat(P))


def _flat(A: Array) -> Array:
    """The same memory as (m, p k)."""
    assert A.flags.c_contiguous  # what is written into a copy would be lost
    return A.reshape(len(A), -1)
