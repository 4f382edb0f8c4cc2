"""Derivatives of losses of margins, l(y, z) = phi(y z), for compiled loops over rows.

A loss that is here says so by its number, :attr:`trueline.losses.Loss.compiled`.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from trueline.numerics.jit import kernel

__all__ = ["LOGISTIC", "SQUARED_HINGE", "derivatives"]

Array = NDArray[np.float64]

LOGISTIC, SQUARED_HINGE = 1, 2


@kernel(reassociate=True)
def derivatives(loss: int, y: Array, z: Array, s: Array, u: Array, h: Array) -> None:
    """s l' and s l'' of some rows."""
    if loss == LOGISTIC:
        for i in range(len(z)):
            h[i] = math.exp(-abs(z[i]))
        for i in range(len(z)):
            small = h[i]
            share = 1.0 / (1.0 + small)
            # The probability of the other class, each branch without cancellation.
            u[i] = -y[i] * s[i] * (small if y[i] * z[i] >= 0.0 else 1.0) * share
            h[i] = s[i] * small * share * share
    else:
        for i in range(len(z)):
            short = max(0.0, 1.0 - y[i] * z[i])
            u[i] = -2.0 * y[i] * s[i] * short
            h[i] = 2.0 * s[i] if short > 0.0 else 0.0
