"""The Hessian of the softmax, one block of rows after the other, without the interpreter.

Blocks of few targets are so small that calls from the interpreter cost as much as the products, and
make threads wait for each other: this takes half the time.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from trueline.numerics.jit import kernel

__all__ = ["softmax_product"]

Single = NDArray[np.float32]


@kernel(reassociate=True)
def softmax_product(
    X: Single, P: Single, s: Single, V: Single, level: Single, first: int, last: int, rows: int
) -> NDArray[np.float64]:
    """sum_i s_i (p_i t_i - p_i (p_i.t_i)) [x_i, 1] with t_i = V x_i + f, over rows first to last.

    ``V`` is of shape (k, d) and ``P``, the probabilities, of shape (k, n), as is all that follows
    from them; ``rows`` are taken at a time.
    """
    k, d = V.shape
    out, part = np.zeros((k, d + 1)), np.empty((k, d), np.float32)
    T, mean = np.empty((k, rows), np.float32), np.empty(rows, np.float32)
    for start in range(first, last, rows):
        m = min(rows, last - start)
        if m < rows:
            T = np.empty((k, m), np.float32)
        block = X[start : start + m]
        np.dot(V, block.T, T)
        mean[:] = 0.0
        for t in range(k):
            for i in range(m):
                T[t, i] += level[t]
                mean[i] += P[t, start + i] * T[t, i]
        for t in range(k):
            total = np.float32(0.0)
            for i in range(m):
                T[t, i] = s[start + i] * P[t, start + i] * (T[t, i] - mean[i])
                total += T[t, i]
            out[t, d] += total
        np.dot(T, block, part)
        for t in range(k):
            for j in range(d):
                out[t, j] += part[t, j]
    return out
