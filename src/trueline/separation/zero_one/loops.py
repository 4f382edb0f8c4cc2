"""Small loops that several kernels share; written out, they compile in a fraction of a second."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from trueline.numerics.jit import kernel

__all__ = ["normalise", "orthogonalise", "sort_order"]

Array = NDArray[np.float64]
Indices = NDArray[np.int64]


@kernel
def sort_order(keys: Array, count: int, order: Indices, spare: Indices) -> None:
    """``order[:count]`` sorts ``keys[:count]``: merges of ever longer runs."""
    for i in range(count):
        order[i] = i
    width = 1
    while width < count:
        start = 0
        while start < count:
            middle, end = min(start + width, count), min(start + 2 * width, count)
            a, b = start, middle
            for c in range(start, end):
                if b >= end or (a < middle and keys[order[a]] <= keys[order[b]]):
                    spare[c] = order[a]
                    a += 1
                else:
                    spare[c] = order[b]
                    b += 1
            start = end
        for i in range(count):
            order[i] = spare[i]
        width *= 2


@kernel
def orthogonalise(Q: Array, place: int, upto: int) -> float:
    """Make a row of Q orthogonal to its first ``upto`` rows, twice for rounding; its length."""
    m = Q.shape[1]
    for _ in range(2):
        for h in range(upto):
            product = 0.0
            for c in range(m):
                product += Q[place, c] * Q[h, c]
            for c in range(m):
                Q[place, c] -= product * Q[h, c]
    total = 0.0
    for c in range(m):
        total += Q[place, c] * Q[place, c]
    return float(np.sqrt(total))


@kernel
def normalise(v: Array) -> float:
    """Divide by the length, which is returned; zero stays zero."""
    total = 0.0
    for c in range(len(v)):
        total += v[c] * v[c]
    length = np.sqrt(total)
    if length > 0.0:
        for c in range(len(v)):
            v[c] /= length
    return float(length)
