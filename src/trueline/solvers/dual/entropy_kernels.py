"""Compiled sweeps over the dual of logistic regression; the formulas are in ``entropy``."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from trueline._jit import kernel
from trueline.design.sparse_columns import column_dot
from trueline.solvers.dual.kernels import add_row, visiting_order

__all__ = ["FARTHEST", "best_logit", "sweep_entropy"]

Array = NDArray[np.float64]
Integers = NDArray[np.int64]

# Where q is as close to 0 or 1 as this, doubles hardly tell it apart from them.
FARTHEST = 34.0
_MOST_STEPS = 30
# After a step of length h the slope is off by less than bend h^2 / 20; this may be (1 + bend) h^2.
_CLOSE = 1e-5


@kernel
def best_logit(margin: float, q: float, bend: float, start: float) -> float:
    """Where bend (q(t) - q) + margin + t = 0."""
    low, high = -margin - bend * (1.0 - q), -margin + bend * q
    t = min(max(start, low), high)
    for _ in range(_MOST_STEPS):
        other = 1.0 / (1.0 + math.exp(-t))
        off = bend * (other - q) + margin + t
        if off > 0.0:
            high = t
        else:
            low = t
        step = off / (1.0 + bend * other * (1.0 - other))
        t -= step
        if not low <= t <= high:
            t = 0.5 * (low + high)
        if (1.0 + bend) * step * step <= _CLOSE:
            break
    return min(max(t, -FARTHEST), FARTHEST)


@kernel
def sweep_entropy(
    data: Array,
    indices: NDArray[np.int32],
    indptr: Integers,
    constant: float,
    centre: float,
    terms: Array,
    logits: Array,
    shares: Array,
    w: Array,
    state: NDArray[np.uint64],
) -> float:
    """One sweep over compressed rows in random order; the gap as it was seen on the way.

    ``terms`` has the columns y, c and x_i.x_i; ``shares`` are q, ``logits`` log(q / (1 - q)).
    """
    n, d = len(logits), len(w) - 1
    seen = 0.0
    for i in visiting_order(n, 0.0, state):
        y, c, square = terms[i, 0], terms[i, 1], terms[i, 2]
        product = column_dot(data, indices, indptr[i], indptr[i + 1], w) + constant * w[d]
        margin, before, q = y * (product + centre), logits[i], shares[i]
        seen += 0.5 * c * (q - 1.0 / (1.0 + math.exp(margin))) * (before + margin)
        t = best_logit(margin, q, c * square, before)
        new = 1.0 / (1.0 + math.exp(-t))
        change = y * c * (new - q)
        if change != 0.0:
            logits[i], shares[i] = t, new
            add_row(data, indices, indptr[i], indptr[i + 1], change, w)
            w[d] += change * constant
    return seen
