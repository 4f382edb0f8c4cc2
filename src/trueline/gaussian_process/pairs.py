r"""Loops over pairs of rows: covariances, and sums of their derivatives, without keeping those.

With rows already divided by their length scales and s = |a_i - b_j|^2, every kernel here is a
function f of s; with g = -2 f'(s) its derivative in the logarithm of length scale k is
g(s) (a_ik - b_jk)^2:

======  =====================  ==================================  ===============================
family  kernel                 f(s), r = sqrt(s)                   g(s)
======  =====================  ==================================  ===============================
0       squared exponential    exp(-s/2)                           f
1       Matern, nu = 1/2       exp(-r)                             f / r
2       Matern, nu = 3/2       (1 + v) exp(-v),  v = sqrt(3) r     3 exp(-v)
3       Matern, nu = 5/2       (1 + v + v^2/3) exp(-v), v=sqrt(5)r 5/3 (1 + v) exp(-v)
4       rational quadratic     (1 + s/(2 p))^-p                    (1 + s/(2 p))^(-p-1)
======  =====================  ==================================  ===============================

(C. E. Rasmussen, C. K. I. Williams, "Gaussian Processes for Machine Learning", MIT Press 2006,
chapter 4.) The derivative of the last one in log(p) is f (s / (2 + s/p) - p log(1 + s/(2 p))).

The second set of rows is passed transposed, so that the inner loops run along memory.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from trueline.numerics.jit import kernel

__all__ = ["add_covariance", "contract"]

Array = NDArray[np.float64]


@kernel
def value(family: int, shape: float, s: float) -> float:
    """f(s)."""
    if family == 0:
        return math.exp(-0.5 * s)
    if family == 4:
        return math.exp(-shape * math.log1p(s / (2.0 * shape)))
    r = math.sqrt(s)
    if family == 1:
        return math.exp(-r)
    if family == 2:
        v = math.sqrt(3.0) * r
        return (1.0 + v) * math.exp(-v)
    v = math.sqrt(5.0) * r
    return (1.0 + v + v * v / 3.0) * math.exp(-v)


@kernel
def slope(family: int, shape: float, s: float, f: float) -> float:
    """g(s), given f(s); zero where rows coincide, for it is multiplied by zero there."""
    if family == 0:
        return f
    if family == 4:
        return f / (1.0 + s / (2.0 * shape))
    if s == 0.0:
        return 0.0
    r = math.sqrt(s)
    if family == 1:
        return f / r
    if family == 2:
        return 3.0 * math.exp(-math.sqrt(3.0) * r)
    v = math.sqrt(5.0) * r
    return (5.0 / 3.0) * (1.0 + v) * math.exp(-v)


@kernel(reassociate=True)
def square_distances(row: Array, others: Array, end: int, out: Array) -> None:
    """out_j = |row - others_j|^2 for j < end; the others are columns."""
    for j in range(end):
        out[j] = 0.0
    for k in range(len(row)):
        at = row[k]
        along = others[k]
        for j in range(end):
            t = at - along[j]
            out[j] += t * t


@kernel
def add_covariance(
    A: Array,
    B: Array,
    family: int,
    shape: float,
    amplitude: float,
    triangle: bool,
    first: int,
    last: int,
    out: Array,
) -> None:
    """Add amplitude f to the rows first..last of out, on and below the diagonal if triangle."""
    n = B.shape[1]
    buffer = np.empty(n)
    for i in range(first, last):
        end = i + 1 if triangle else n
        square_distances(A[i], B, end, buffer)
        row = out[i]
        if family == 0:
            for j in range(end):
                row[j] += amplitude * math.exp(-0.5 * buffer[j])
        else:
            for j in range(end):
                row[j] += amplitude * value(family, shape, buffer[j])


@kernel(reassociate=True)
def _contract_shape(
    squares: Array,
    f: Array,
    shape: float,
    row: Array,
    vector: Array,
    i: int,
    end: int,
    product: Array,
) -> float:
    """The same for the derivative in log(p) of a rational quadratic kernel, of one row."""
    total = 0.0
    for j in range(end):
        s = squares[j]
        f_shape = f[j] * (s / (2.0 + s / shape) - shape * math.log1p(s / (2.0 * shape)))
        total += row[j] * f_shape
        if product.shape[0] > 0:
            product[1, i] += f_shape * vector[j]
            product[1, j] += f_shape * vector[i]
    return total


@kernel(reassociate=True)
def contract(
    A: Array,
    B: Array,
    family: int,
    shape: float,
    by_column: bool,
    weight: Array,
    vector: Array,
    triangle: bool,
    first: int,
    last: int,
    total: Array,
    product: Array,
) -> None:
    """Sums of weights times derivatives, and products of derivatives with a vector.

    ``total[0]`` grows by sum_ij weight_ij f_ij, ``total[1]`` by the same of the derivative in
    log(p), ``total[2 + k]`` by that in length scale k (one for all unless ``by_column``). With
    ``triangle`` rows and columns are the same, weights are read on and below the diagonal and
    count for both sides. If ``product`` is not empty, row m of it grows by derivative m times
    ``vector``.
    """
    d, n = B.shape
    squares, f, g = np.empty(n), np.empty(n), np.empty(n)
    lengths = d if by_column else 1
    multiply = product.shape[0] > 0
    for i in range(first, last):
        end = i if triangle else n
        row = weight[i]
        twice = 2.0 if triangle else 1.0
        square_distances(A[i], B, end, squares)
        in_value, in_shape = 0.0, 0.0
        for j in range(end):
            s = squares[j]
            at = value(family, shape, s)
            f[j] = at
            g[j] = slope(family, shape, s, at)
            in_value += row[j] * at
        if family == 4:
            in_shape = _contract_shape(squares, f, shape, row, vector, i, end, product)
        total[0] += twice * in_value
        total[1] += twice * in_shape
        if triangle:
            total[0] += row[i]
        if multiply:
            mine, along = vector[i], 0.0
            for j in range(end):
                along += f[j] * vector[j]
                product[0, j] += f[j] * mine
            product[0, i] += along + mine
        for k in range(lengths):
            along, in_length = 0.0, 0.0
            if by_column:
                at = A[i, k]
                column = B[k]
                for j in range(end):
                    t = at - column[j]
                    squares[j] = t * t
            for j in range(end):
                squares[j] *= g[j]
                in_length += row[j] * squares[j]
            total[2 + k] += twice * in_length
            if multiply:
                mine = vector[i]
                for j in range(end):
                    along += squares[j] * vector[j]
                    product[2 + k, j] += squares[j] * mine
                product[2 + k, i] += along
