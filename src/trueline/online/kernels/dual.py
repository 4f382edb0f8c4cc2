"""One pass of the perceptron in its dual form: counts of mistakes instead of weights."""

from __future__ import annotations

import math
from typing import Any

from trueline.numerics.jit import kernel

__all__ = ["dual_pass"]


@kernel
def dual_pass(
    K: Any,
    y: Any,
    steps: Any,
    order: Any,
    threshold: float,
    constant: float,
    alpha: Any,
    scores: Any,
    counts: Any,
    tally: Any,
) -> int:
    """Visit rows in the given order; -1, or the row whose score is no number.

    Parameters
    ----------
    K : array of shape (n, n)
        Products of the rows in the space of the kernel.
    y, steps : arrays of shape (n,)
        Signs, and what a mistake adds.
    constant : float
        Step of the intercept; 0 for none.
    alpha : array of shape (n + 1,)
        Signed sum of the steps of each row; the intercept last.
    scores : array of shape (n,)
        sum_j alpha_j K_ij, kept up to date.
    """
    n = y.shape[0]
    for t in range(order.shape[0]):
        i = order[t]
        p = scores[i] + alpha[n]
        if not math.isfinite(p):
            return i
        tally[0] += 1.0
        z = p * y[i]
        if z <= 0.0:
            tally[1] -= z
            tally[3] += 1.0
        if z > threshold or steps[i] == 0.0:
            continue
        step = y[i] * steps[i]
        alpha[i] += step
        alpha[n] += step * constant
        for j in range(n):
            scores[j] += step * K[i, j]
        counts[i] += 1
        tally[2] += 1.0
    return -1
