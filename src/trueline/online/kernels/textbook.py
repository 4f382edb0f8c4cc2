"""The perceptron as the textbook writes it: find the first mistake, learn, start again."""

from __future__ import annotations

import math
from typing import Any

from trueline._jit import kernel
from trueline.online.kernels.rows import add_dense, add_sparse, dot_dense, dot_sparse

__all__ = ["first_mistakes"]


@kernel
def first_mistakes(
    dense: Any,
    data: Any,
    indices: Any,
    indptr: Any,
    codes: Any,
    positive: int,
    weights: Any,
    setting: Any,
    limit: int,
    w: Any,
    b: Any,
    counts: Any,
    tally: Any,
    log: Any,
) -> int:
    """Correct the first mistake found, until there is none, or ``limit`` rows were visited.

    Parameters
    ----------
    log : array of shape (m, 3)
        Row, step and visit of each update; when it is full the kernel returns.

    Returns
    -------
    outcome : int
        -1 if a scan found no mistake, -2 at the limit, -3 if the log is full, or the row whose
        score is no number.
    """
    sparse, n = indptr.shape[0] > 0, codes.shape[0]
    stride = 1 if weights.shape[0] > 1 else 0
    rounded = w[:1].copy()
    updates = 0
    i = 0
    while i < n:
        if tally[0] >= limit:
            return -2
        if sparse:
            rounded[0] = dot_sparse(data, indices, indptr[i], indptr[i + 1], w)
        else:
            rounded[0] = dot_dense(dense, i, w)
        p = rounded[0] + b[0]
        if not math.isfinite(p):
            return i
        tally[0] += 1.0
        y = 1.0 if codes[i] == positive else -1.0
        z = p * y
        weight = (setting[3] if y > 0.0 else setting[4]) * weights[i * stride]
        if z > setting[1] or weight == 0.0:
            i += 1
            continue
        step = setting[0] * y * weight
        rounded[0] = step
        if sparse:
            add_sparse(data, indices, indptr[i], indptr[i + 1], float(rounded[0]), w)
        else:
            add_dense(dense, i, float(rounded[0]), w)
        b[0] += step * setting[5]
        counts[i] += 1
        tally[1] += setting[1] - z
        tally[2] += 1.0
        if z <= 0.0:
            tally[3] += 1.0
        log[updates, 0] = i
        log[updates, 1] = step
        log[updates, 2] = tally[0]
        updates += 1
        if updates == log.shape[0]:
            return -3
        i = 0
    return -1
