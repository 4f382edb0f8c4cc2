"""Covariance matrices of known kernels, and sums of their derivatives, on all threads.

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
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trueline.gaussian_process.structure import CONSTANT, NOISE, Structure, Term, parsed
from trueline.numerics.blas import run_strands
from trueline.numerics.jit import kernel

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


def _whole_values(family: int, shape: float, S: Array) -> tuple[Array, Array]:
    """f and g of a whole matrix of s."""
    if family == 0:
        f = np.exp(-0.5 * S)
        return f, f
    if family == 4:
        f = np.exp(-shape * np.log1p(S / (2.0 * shape)))
        return f, f / (1.0 + S / (2.0 * shape))
    r = np.sqrt(S)
    if family == 1:
        f = np.exp(-r)
        return f, np.where(r > 0, f / np.where(r > 0, r, 1.0), 0.0)
    if family == 2:
        v = math.sqrt(3.0) * r
        return (1.0 + v) * np.exp(-v), np.where(r > 0, 3.0 * np.exp(-v), 0.0)
    v = math.sqrt(5.0) * r
    e = np.exp(-v)
    return (1.0 + v + v * v / 3.0) * e, np.where(r > 0, (5.0 / 3.0) * (1.0 + v) * e, 0.0)


def _whole_squares(A: Array, B: Array) -> Array:
    """|a_i - b_j|^2, column by column, as the kernel adds them up."""
    S = np.zeros((len(A), B.shape[1]))
    for k in range(A.shape[1]):
        S += (A[:, k, None] - B[k]) ** 2
    return S


def _add_whole(
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
    """:func:`add_covariance` with whole arrays."""
    f = amplitude * _whole_values(family, shape, _whole_squares(A[first:last], B))[0]
    out[first:last] += np.tril(f, first) if triangle else f


def _contract_whole(
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
    """:func:`contract` with whole arrays."""
    rows, W = A[first:last], weight[first:last]
    W = np.tril(W, first - 1) if triangle else W  # what stands above is undefined
    S = _whole_squares(rows, B)
    f, g = _whole_values(family, shape, S)
    parts = [f, np.zeros(0)]
    if family == 4:
        parts[1] = f * (S / (2.0 + S / shape) - shape * np.log1p(S / (2.0 * shape)))
    parts += [(rows[:, k, None] - B[k]) ** 2 * g for k in range(len(B))] if by_column else [S * g]
    twice, mine = (2.0 if triangle else 1.0), vector[first:last]
    for number, part in enumerate(parts):
        if not part.size:
            continue
        part = np.tril(part, first - 1) if triangle else part
        total[number] += twice * float(np.einsum("ij,ij->", part, W))
        if len(product):
            product[number] += mine @ part
            product[number, first:last] += part @ vector
    if triangle:
        at = np.arange(first, last)
        total[0] += weight[at, at].sum()
        if len(product):
            product[0, first:last] += mine


@kernel(whole=_add_whole)
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


@kernel(reassociate=True, whole=_contract_whole)
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


# Values below this part of the diagonal are zero, the square of its rounding: products of smaller
# ones have no exponent left, and take processors ten times as long as others.
_NOTHING = 1e-32
# Strands of this many pairs take about a millisecond each.
_PAIRS = 50_000
_MOST_STRANDS = 32


def _strands(n: int, m: int, triangle: bool) -> list[tuple[int, int]]:
    """Ranges of rows with about equally many pairs; they depend on the sizes alone."""
    pairs = n * m / (2 if triangle else 1)
    count = int(min(max(1, round(pairs / _PAIRS)), _MOST_STRANDS, max(n, 1)))
    share = np.linspace(0.0, 1.0, count + 1)
    edges = np.round(n * (np.sqrt(share) if triangle else share)).astype(int)
    return [(a, b) for a, b in pairwise(edges.tolist()) if b > a]


def _scaled(X: Array, term: Term, theta: Array) -> Array:
    return np.ascontiguousarray(X / term.length_scales(theta))


def _fill(
    structure: Structure, theta: Array, A: Array, B: Array | None, bias: float, out: Array
) -> None:
    triangle = B is None
    known = [term for term in structure.terms if term.family >= 0]
    least = _NOTHING * diagonal(structure, theta, noise=False)
    scaled = [
        (
            term,
            _scaled(A, term, theta),
            np.ascontiguousarray(_scaled(A if B is None else B, term, theta).T),
        )
        for term in known
    ]

    def work(bounds: tuple[int, int]) -> None:
        first, last = bounds
        if triangle:
            out[first:last, :last] = bias
        else:
            out[first:last] = bias
        for term, rows, columns in scaled:
            amplitude, shape = term.amplitude(theta), term.exponent(theta)
            add_covariance(rows, columns, term.family, shape, amplitude, triangle, first, last, out)
        part = out[first:last, :last] if triangle else out[first:last]
        part[part < least] = 0.0

    run_strands(work, _strands(len(out), out.shape[1], triangle))


def _constants(structure: Structure, theta: Array, family: int) -> float:
    return sum(term.amplitude(theta) for term in structure.terms if term.family == family)


def covariance(structure: Structure, theta: Array, X: Array, noise: Array, out: Array) -> None:
    """K(X, X) + diag(noise) on and below the diagonal of ``out``; what is above is undefined."""
    _fill(structure, theta, X, None, _constants(structure, theta, CONSTANT), out)
    out.flat[:: len(out) + 1] += noise + _constants(structure, theta, NOISE)


# A formula that disagrees with the kernel on this many rows is not that of the kernel.
_LOOK = 4


def recognise(kernel: Any, X: Array) -> Structure | None:
    """The structure of a kernel, or None.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.gaussian_process.kernels import RBF, DotProduct, WhiteKernel
    >>> from trueline.gaussian_process.covariance import recognise
    >>> X = np.arange(6.0).reshape(3, 2)
    >>> [term.family for term in recognise(2.0 * RBF([1.0, 2.0]) + WhiteKernel(), X).terms]
    [0, -2]
    >>> recognise(DotProduct() + WhiteKernel(), X) is None
    True
    """
    structure = parsed(kernel)
    if structure is None:
        return None
    look = np.ascontiguousarray(X[:_LOOK], dtype=np.float64)
    expected = kernel(look)  # also says what is wrong with a kernel that does not fit the columns
    K = np.zeros_like(expected)
    covariance(structure, kernel.theta, look, np.zeros(len(look)), K)
    nothing = 2 * _NOTHING * np.abs(expected).max(initial=0.0) + 1e-290
    is_same = np.allclose(np.tril(K), np.tril(expected), rtol=1e-9, atol=nothing)
    return structure if is_same else None


def cross_covariance(structure: Structure, theta: Array, A: Array, B: Array) -> Array:
    """K(A, B): noise is not shared between different sets of rows."""
    out = np.empty((len(A), len(B)))
    _fill(structure, theta, A, B, _constants(structure, theta, CONSTANT), out)
    return out


def diagonal(structure: Structure, theta: Array, noise: bool = True) -> float:
    """The variance of every row, with or without the noise of the kernel."""
    return sum(term.amplitude(theta) for term in structure.terms if noise or term.family != NOISE)


def gradients(
    structure: Structure,
    theta: Array,
    A: Array,
    B: Array | None,
    weight: Array,
    vector: Array | None = None,
) -> tuple[Array, Array]:
    """sum_ij weight_ij dK_ij / d theta for every place in theta, and dK / d theta times a vector.

    Parameters
    ----------
    structure : Structure
    theta : array of shape (p,)
    A, B : arrays of rows
        Without B, rows and columns are A, and weights are symmetric, on and below the diagonal.
    weight : array of shape (len(A), len(B))
    vector : array of shape (len(A),), optional

    Returns
    -------
    sums : array of shape (p,)
    products : array of shape (p, len(A))
        Empty without a vector.
    """
    triangle = B is None
    n, m = weight.shape
    p = structure.size
    sums = np.zeros(p)
    products = np.zeros((p if vector is not None else 0, n))
    given = np.zeros(0) if vector is None else vector

    def add(places: Any, amplitude: float, total: Any, product: Any) -> None:
        sums[places] += amplitude * total
        if vector is not None:
            products[places] += amplitude * product

    for term in structure.terms:
        amplitude = term.amplitude(theta)
        if term.family == NOISE:
            if triangle:
                add(term.factors, amplitude, float(np.einsum("ii->", weight)), given)
            continue
        if term.family == CONSTANT:
            whole = float(weight.sum()) if not triangle else _sum_below(weight)
            add(term.factors, amplitude, whole, given.sum())
            continue
        by_column = len(term.length_places) > 1
        rows = _scaled(A, term, theta)
        columns = np.ascontiguousarray(_scaled(A if B is None else B, term, theta).T)
        kind = (term.family, term.exponent(theta), by_column)
        fixed = (rows, columns, *kind, weight, given, triangle)
        work = partial(_contracted, fixed, 2 + (len(columns) if by_column else 1))
        results = run_strands(work, _strands(n, m, triangle))
        total = np.sum([result[0] for result in results], axis=0)
        product = np.sum([result[1] for result in results], axis=0)
        add(term.factors, amplitude, total[0], product[:1])
        if term.shape_place >= 0:
            add(term.shape_place, amplitude, total[1], product[1:2].sum(axis=0))
        if len(term.length_places):
            add(term.length_places, amplitude, total[2:], product[2:])
    return sums, products


def _contracted(fixed: Any, parts: int, bounds: tuple[int, int]) -> tuple[Array, Array]:
    """The sums and products of :func:`contract` for some rows."""
    rows, vector = fixed[0], fixed[6]
    total, product = np.zeros(parts), np.zeros((parts if len(vector) else 0, len(rows)))
    contract(*fixed, *bounds, total, product)  # type: ignore[call-arg]
    return total, product


def _sum_below(weight: Array) -> float:
    """The sum of a symmetric matrix of which the lower triangle is given."""
    lower = np.tril(weight)
    return 2 * float(lower.sum()) - float(np.einsum("ii->", weight))
