"""Sums over rows for certificates, in the order in which they lose little."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from trueline._jit import kernel

__all__ = ["add_stretches"]

Array = NDArray[np.float64]


@kernel
def add_stretches(block: Array, centre: Array, weighted: Array, length: int, sums: Array) -> None:
    """Add (x_i - centre) weighted_i over stretches of so many rows, each to its own sum.

    Parameters
    ----------
    block : array of shape (m, d)
    centre : array of shape (d,)
    weighted : array of shape (m, k)
    length : int
    sums : array of shape (ceil(m / length), k, d)
    """
    m, d = block.shape
    for s in range(sums.shape[0]):
        for t in range(weighted.shape[1]):
            for i in range(s * length, min(m, (s + 1) * length)):
                weight = weighted[i, t]
                for j in range(d):
                    sums[s, t, j] += (block[i, j] - centre[j]) * weight
