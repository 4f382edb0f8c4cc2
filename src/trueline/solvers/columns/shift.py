"""The same shift of all scores, which changes no coupled loss: the one that is penalised least."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["least_penalised"]

Array = NDArray[np.float64]

_BISECTIONS = 60


def least_penalised(V: Array, linear: Array, quad: Array) -> Array:
    """Per row, the t that minimises sum_k (l abs(v_k - t) + a/2 (v_k - t)^2), of shape (m, 1).

    For absolute values alone a median, the one nearest to zero; with squares the root of the slope,
    by bisection between the median and the mean.
    """
    k = V.shape[1]
    ranked = np.sort(V, axis=1)
    median = np.clip(0.0, ranked[:, (k - 1) // 2], ranked[:, k // 2])
    low, high = np.minimum(median, V.mean(axis=1)), np.maximum(median, V.mean(axis=1))
    for _ in range(_BISECTIONS if quad.any() else 0):
        middle = 0.5 * (low + high)
        rest = V - middle[:, None]
        rises = linear * np.sign(rest).sum(axis=1) + quad * rest.sum(axis=1) > 0
        low, high = np.where(rises, middle, low), np.where(rises, high, middle)
    # Zero and the median leave entries at zero exactly: they are taken where nothing is lower.
    shifts = np.stack([np.zeros_like(median), median, 0.5 * (low + high)])
    rest = np.abs(V[None] - shifts[:, :, None])
    costs = (linear[:, None] * rest + 0.5 * quad[:, None] * rest**2).sum(axis=2)
    return shifts[costs.argmin(axis=0), np.arange(len(V))][:, None]
