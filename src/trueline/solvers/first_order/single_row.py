r"""Compiled epochs of single-row steps for 1/2 (z - y)^2 with a ridge penalty, one target.

Each step shrinks all coefficients and adds a multiple of one row:

    w  <-  shrink_t w - eta_t share_i (x_i.w + b - y_i) x_i

Shrinking d numbers would cost more than a sparse row has. So w = scale * v is kept as a product:
the shrinkage multiplies the scalar, the row changes v where it is not zero (S. Shalev-Shwartz,
Y. Singer, N. Srebro, A. Cotter, "Pegasos", Math. Program. 127 (2011) 3-30, section 2.3).

The sum of the iterates follows the same way. With C the sum of the scales so far, it is C v - q,
and a change of v by e changes q by (C before the step) e (W. Xu, "Towards optimal one pass large
scale learning with averaged stochastic gradient descent", arXiv:1107.2490, section 3).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from trueline.numerics.jit import kernel

__all__ = ["dense_epoch", "sparse_epoch"]

Array = NDArray[np.float64]
Indices = NDArray[np.integer]


@kernel
def _fold(v: Array, q: Array, scale: float, scales: float) -> None:
    """Multiply the scale into v, and C v into q: afterwards scale = 1 and C = 0."""
    for j in range(len(v)):
        q[j] -= scales * v[j]
        v[j] *= scale


@kernel
def dense_epoch(
    X: NDArray[np.floating],
    y: Array,
    shares: Array,
    order: Indices,
    eta: Array,
    shrink: Array,
    w: Array,
    b: float,
    fit_intercept: bool,
) -> tuple[Array, float, float]:
    """Steps over the rows of an array; w is updated in place.

    Returns
    -------
    w_sum : array of shape (d,)
        Sum of the coefficients after each step.
    b, b_sum : float
        The intercept after the last step, and the sum of the intercepts after each.
    """
    d = len(w)
    q = np.zeros(d)
    scale, scales, b_sum = 1.0, 0.0, 0.0
    for t in range(len(order)):
        i = order[t]
        z = 0.0
        for j in range(d):
            z += X[i, j] * w[j]
        move = eta[t] * shares[i] * (scale * z + b - y[i])
        scale *= shrink[t]
        if abs(scale) < 1e-9:  # keep the quotient below far from overflow
            _fold(w, q, scale, scales)
            scale, scales = 1.0, 0.0
        change = move / scale
        for j in range(d):
            w[j] -= change * X[i, j]
            q[j] -= scales * change * X[i, j]
        scales += scale
        if fit_intercept:
            b -= move
        b_sum += b
    _fold(w, q, scale, scales)
    return -q, b, b_sum


@kernel
def sparse_epoch(
    indptr: Indices,
    indices: Indices,
    data: NDArray[np.floating],
    y: Array,
    shares: Array,
    order: Indices,
    eta: Array,
    shrink: Array,
    w: Array,
    b: float,
    fit_intercept: bool,
) -> tuple[Array, float, float]:
    """The same over the rows of a CSR matrix, touching only their non-zeros."""
    q = np.zeros(len(w))
    scale, scales, b_sum = 1.0, 0.0, 0.0
    for t in range(len(order)):
        i = order[t]
        z = 0.0
        for p in range(indptr[i], indptr[i + 1]):
            z += data[p] * w[indices[p]]
        move = eta[t] * shares[i] * (scale * z + b - y[i])
        scale *= shrink[t]
        if abs(scale) < 1e-9:
            _fold(w, q, scale, scales)
            scale, scales = 1.0, 0.0
        change = move / scale
        for p in range(indptr[i], indptr[i + 1]):
            w[indices[p]] -= change * data[p]
            q[indices[p]] -= scales * change * data[p]
        scales += scale
        if fit_intercept:
            b -= move
        b_sum += b
    _fold(w, q, scale, scales)
    return -q, b, b_sum
