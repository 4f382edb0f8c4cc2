"""What is compiled of faces: kinds of variables; conjugate gradients on few compressed rows."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from trueline._jit import kernel
from trueline.design.sparse_columns import column_dot
from trueline.solvers.dual.kernels import add_row

__all__ = ["conjugate_gradients_sparse", "kinds_of"]

Array = NDArray[np.float64]
Indices = NDArray[np.int32]
Integers = NDArray[np.int64]


@kernel
def kinds_of(beta: Array, terms: Array, has_kink: bool) -> NDArray[np.int8]:
    """Of each variable: 2 or -2 at a bound, 1 or -1 on a side of the kink, 0 at it."""
    out = np.empty(len(beta), np.int8)
    for i in range(len(beta)):
        at = beta[i]
        if at >= terms[i, 4]:
            out[i] = 2
        elif at <= terms[i, 3]:
            out[i] = -2
        elif not has_kink or at > 0.0:
            out[i] = 1
        else:
            out[i] = -1 if at < 0.0 else 0
    return out


@kernel
def bent(
    data: Array,
    indices: Indices,
    indptr: Integers,
    constant: float,
    free: Integers,
    h: Array,
    v: Array,
    pulled: Array,
    out: Array,
) -> None:
    """H v of the face: products with the rows there and back, and what the losses bend."""
    pulled[:] = 0.0
    level = 0.0
    for k in range(len(free)):
        i = free[k]
        add_row(data, indices, indptr[i], indptr[i + 1], v[k], pulled)
        level += v[k]
    level *= constant * constant
    for k in range(len(free)):
        i = free[k]
        product = column_dot(data, indices, indptr[i], indptr[i + 1], pulled)
        out[k] = product + level + h[k] * v[k]


@kernel
def conjugate_gradients_sparse(
    data: Array,
    indices: Indices,
    indptr: Integers,
    constant: float,
    size: int,
    free: Integers,
    g: Array,
    h: Array,
    bend: Array,
    enough: float,
    steps: int,
    flat: float,
) -> Array:
    """About -H^-1 g, as :mod:`trueline.solvers.dual.face` says it: level first, then steps."""
    count = len(free)
    pulled, level, total = np.empty(size), np.ones(count), 0.0
    ones, product = np.ones(count), np.empty(count)
    if constant != 0.0:
        bent(data, indices, indptr, constant, free, h, ones, pulled, level)
        total = level.sum()
    shift = -g.sum() / total if total > 0.0 else 0.0
    x, r = shift * ones, -g - shift * level
    z = conditioned(r, bend, level, total)
    direction, left = z, (r * z).sum()
    enough *= left
    for _ in range(steps):
        if not left > enough:
            break
        bent(data, indices, indptr, constant, free, h, direction, pulled, product)
        curvature = (direction * product).sum()
        if not curvature > flat * (direction * bend * direction).sum():
            break
        length = left / curvature
        x += length * direction
        r -= length * product
        z = conditioned(r, bend, level, total)
        before, left = left, (r * z).sum()
        direction = z + (left / before) * direction
    return x


@kernel
def conditioned(r: Array, bend: Array, level: Array, total: float) -> Array:
    """Divided by the diagonal, and conjugate to the direction of ones if that bends."""
    z = r / bend
    if total > 0.0:
        z -= (level * z).sum() / total
    return z
