"""Products of rows with the vectors of several problems, without the interpreter.

Blocks of few vectors are so small that calls from the interpreter cost as much as the products.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from trueline._jit import kernel

__all__ = ["curved_product", "scores_of_rows", "sums_of_rows"]


@kernel(reassociate=True)
def curved_product(
    X: NDArray[np.float32],
    H: NDArray[np.float32],
    at: NDArray[np.intp],
    V: NDArray[np.float32],
    level: NDArray[np.float32],
    first: int,
    last: int,
    rows: int,
) -> NDArray[np.float64]:
    """sum_i h_ti (v_t.x_i + f_t) [x_i, 1] over rows first to last, of shape (k, d + 1).

    ``V`` is of shape (k, d), ``level`` holds f, and row ``at[t]`` of ``H`` the h_ti; ``rows`` are
    taken at a time.
    """
    k, d = V.shape
    out, part = np.zeros((k, d + 1)), np.empty((k, d), np.float32)
    T = np.empty((k, rows), np.float32)
    for start in range(first, last, rows):
        m = min(rows, last - start)
        if m < rows:
            T = np.empty((k, m), np.float32)
        block = X[start : start + m]
        np.dot(V, block.T, T)
        for t in range(k):
            total, h = np.float32(0.0), H[at[t]]
            for i in range(m):
                T[t, i] = h[start + i] * (T[t, i] + level[t])
                total += T[t, i]
            out[t, d] += total
        np.dot(T, block, part)
        for t in range(k):
            for j in range(d):
                out[t, j] += part[t, j]
    return out


@kernel
def scores_of_rows(
    X: Any, at: Any, V: Any, level: Any, Z: Any, first: int, last: int, rows: int
) -> None:
    """v_t.x_i + f_t of rows first to last, into row ``at[t]`` of ``Z``."""
    k = len(V)
    T = np.empty((k, rows))
    for start in range(first, last, rows):
        m = min(rows, last - start)
        if m < rows:
            T = np.empty((k, m))
        np.dot(V, X[start : start + m].T, T)
        for t in range(k):
            for i in range(m):
                Z[at[t], start + i] = T[t, i] + level[t]


@kernel
def sums_of_rows(X: Any, at: Any, U: Any, first: int, last: int, rows: int) -> Any:
    """sum_i u_ti [x_i, 1] over rows first to last, of shape (k, d + 1); u_t is U's row at[t]."""
    k, d = len(at), X.shape[1]
    out, part, T = np.zeros((k, d + 1)), np.empty((k, d)), np.empty((k, rows))
    for start in range(first, last, rows):
        m = min(rows, last - start)
        if m < rows:
            T = np.empty((k, m))
        for t in range(k):
            total = 0.0
            for i in range(m):
                T[t, i] = U[at[t], start + i]
                total += T[t, i]
            out[t, d] += total
        np.dot(T, X[start : start + m], part)
        for t in range(k):
            for j in range(d):
                out[t, j] += part[t, j]
    return out
