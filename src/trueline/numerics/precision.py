"""Sums and products in doubled precision (about 32 digits), in plain NumPy.

A doubled number is an unevaluated sum ``hi + lo`` of two doubles. The error of a floating-point
sum or product is itself a double and can be computed exactly:

    two_sum:      a + b = s + e      (Knuth, TAOCP 4.2.2, theorem B)
    two_product:  a * b = p + e      (Dekker, Numer. Math. 18 (1971) 224-242; Veltkamp's splitting)

Sums of many terms are taken in two exact parts (:func:`sum_doubled`), which together with the
errors of the products gives the accuracy of doubled precision (compare T. Ogita, S. M. Rump,
S. Oishi, "Accurate sum and dot product", SIAM J. Sci. Comput. 26 (2005) 1955-1988). Everything is
vectorised over blocks of rows that stay in cache; no fused multiply-add and no extended type is
assumed, so the result is the same on every machine.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

_SPLITTER = 134217729.0  # 2^27 + 1
_BLOCK_ELEMENTS = 16384  # 128 KiB of doubles: a handful of such arrays stays in a level-2 cache
_SLICED_ROWS = 2048  # longer sums would leave slices fewer bits


def two_sum(a: Array, b: Array) -> tuple[Array, Array]:
    """The sum rounded to double, and its exact error.

    Examples
    --------
    >>> from trueline.numerics.precision import two_sum
    >>> two_sum(1.0, 2.0**-60)
    (1.0, 8.673617379884035e-19)
    """
    s = a + b
    t = s - a
    return s, (a - (s - t)) + (b - t)


def _split(a: Array) -> tuple[Array, Array]:
    c = _SPLITTER * a
    hi = c - (c - a)
    return hi, a - hi


def two_product(a: Array, b: Array) -> tuple[Array, Array]:
    """The product rounded to double, and its exact error (barring over- and underflow)."""
    p = a * b
    a_hi, a_lo = _split(a)
    b_hi, b_lo = _split(b)
    return p, a_lo * b_lo - (((p - a_hi * b_hi) - a_lo * b_hi) - a_hi * b_lo)


def sum_doubled(terms: Array) -> tuple[Array, Array]:
    """Sum over the first axis: the sum rounded to double, and what it misses.

    Twice, the leading bits of all terms are cut off at a common power of two sigma, so large that
    their sum is exact; what is left over is then below the precision asked for (S. M. Rump,
    T. Ogita, S. Oishi, "Accurate floating-point summation part I: faithful rounding", SIAM J. Sci.
    Comput. 31 (2008) 189-224, algorithm 3.2).
    """
    n = len(terms)
    if n == 0:
        return np.zeros(terms.shape[1:]), np.zeros(terms.shape[1:])
    largest = np.abs(terms).max(axis=0)
    # sigma >= (n + 2) max: sums of the leading bits stay below sigma and are multiples of its ulp.
    exponent = np.frexp(largest)[1] + (n + 2).bit_length()
    sigma = np.ldexp(1.0, exponent)
    leading = (terms + sigma) - sigma
    rest = terms - leading
    high = leading.sum(axis=0)
    # The rest is at most ulp(sigma) / 2 each: the same with a sigma that much smaller.
    sigma = np.ldexp(1.0, exponent - 52 + (n + 2).bit_length())
    leading = (rest + sigma) - sigma
    rest -= leading
    total, error = two_sum(high, leading.sum(axis=0))
    return two_sum(total, error + rest.sum(axis=0))


def _row_blocks(n: int, d: int) -> list[slice]:
    rows = max(1, _BLOCK_ELEMENTS // max(1, d))
    return [slice(start, min(start + rows, n)) for start in range(0, n, rows)]


def residual_doubled(
    X: Array,
    w: Array,
    b: float,
    y: Array,
    X_low: Array | None = None,
    w_low: Array | None = None,
    b_low: float = 0.0,
) -> tuple[Array, Array]:
    """y - X w - b for one target, as doubled numbers.

    Parameters
    ----------
    X : array of shape (n, d)
    w : array of shape (d,)
    b : float
    y : array of shape (n,)
    X_low : array of shape (n, d), optional
        Low parts, if the matrix itself is given as ``X + X_low``.
    w_low : array of shape (d,), optional
    b_low : float, optional
        Low parts of the coefficients and the intercept.

    Returns
    -------
    hi, lo : arrays of shape (n,)
    """
    n, d = X.shape
    hi, lo = np.empty(n), np.empty(n)
    for rows in _row_blocks(n, d + 2):
        block = np.asarray(X[rows], dtype=np.float64)
        terms = np.empty((d + 2, block.shape[0]))
        products, errors = two_product(block.T, -w[:, None])
        terms[:d] = products
        terms[d] = -b
        terms[d + 1] = y[rows]
        total, rest = sum_doubled(terms)
        rest += errors.sum(axis=0)
        if X_low is not None:
            rest -= X_low[rows] @ w
        if w_low is not None:
            rest -= block @ w_low + b_low
        hi[rows], lo[rows] = two_sum(total, rest)
    return hi, lo


def transposed_product_doubled(
    X: Array, hi: Array, lo: Array, X_low: Array | None = None
) -> tuple[Array, Array]:
    """[X, 1]^T (hi + lo) as doubled numbers of shape (d + 1,), for vectors of shape (n,).

    The last entry is the plain sum: the derivative in the intercept comes along.
    """
    n, d = X.shape
    sums, rests = [], np.zeros(d + 1)
    for rows in _row_blocks(n, d + 1):
        block = np.asarray(X[rows], dtype=np.float64)
        high, low = hi[rows], lo[rows]
        products = np.empty((len(high), d + 1))
        products[:, :d], errors = two_product(block, high[:, None])
        products[:, d] = high
        total, rest = sum_doubled(products)
        sums.append(total)
        rests += rest
        rests[:d] += errors.sum(axis=0) + low @ block
        rests[d] += low.sum()
        if X_low is not None:
            rests[:d] += high @ X_low[rows]
    if len(sums) == 1:
        return two_sum(sums[0], rests)
    total, rest = sum_doubled(np.array(sums).reshape(-1, d + 1))
    return two_sum(total, rest + rests)


class SlicedRows:
    """[X, 1] with weights, cut into slices whose products are added without rounding.

    Columns are divided by powers of two above their norms, and rows multiplied by powers of two
    near the roots of their weights. The rest is below one, and the sum of four slices of b bits
    each; so is a vector divided by its largest entry. With 2 b + log2(m) <= 52 plain matrix
    products add m products of slices exactly, in whatever order, except for those with the last
    bits, which are 8^-b times smaller (K. Ozaki, T. Ogita, S. Oishi, S. M. Rump, "Error-free
    transformations of matrix multiplication by using fast routines of matrix multiplication and
    its applications", Numer. Algorithms 59 (2012) 95-118).

    Parameters
    ----------
    X : array of shape (n, d)
    weights : array of shape (n,), optional
    norms : array of shape (d + 1,)
        Of the weighted columns of [X, 1].
    X_low : array of shape (n, d), optional
        Low parts, if the matrix itself is given as ``X + X_low``.
    """

    def __init__(
        self, X: Any, weights: Array | None, norms: Array, X_low: Array | None = None
    ) -> None:
        n, d = X.shape
        self._X, self._X_low = X, X_low
        self._rows = max(1, min(n, _BLOCK_ELEMENTS // (d + 1), _SLICED_ROWS))
        bits = (52 - max(self._rows, d + 1).bit_length()) // 2
        self._cuts = [1.5 * 2.0 ** (52 - k * bits) for k in (1, 2, 3)]
        self._scale = np.ldexp(1.0, np.frexp(norms)[1] + 1)
        self._root: Array | None = None
        if weights is not None:
            exponent = np.frexp(weights)[1] >> 1
            self._root = np.where(weights > 0, np.ldexp(1.0, exponent), 0.0)
            self._rest = np.ldexp(weights, -2 * exponent)

    def gradient(
        self, w: Array, b: float, y: Array, rows: slice, w_low: Array | None, b_low: float
    ) -> tuple[Array, Array, float]:
        """[X, 1]^T S r as doubled numbers, and r^T S r, for r = y - X w - b over some rows."""
        d = len(w)
        root: Any = 1.0
        rest: Any = 1.0
        factors = self._factors(self._scale * np.append(w, b))
        inverse, high, low, square = 1.0 / self._scale, np.zeros(d + 1), np.zeros(d + 1), 0.0
        for start in range(rows.start, rows.stop, self._rows):
            part = slice(start, min(start + self._rows, rows.stop))
            slices = np.empty((4, part.stop - start, d + 1))
            Z = slices[3]
            np.multiply(self._X[part], inverse[:d], out=Z[:, :d])
            Z[:, d] = inverse[d]
            if self._root is not None:
                root, rest = self._root[part], self._rest[part]
                Z *= root[:, None]
            self._cut_off(slices, 1.0)
            scores = np.add.reduce(factors @ slices.transpose(0, 2, 1))
            r, missed = _added(y[part] * root, -scores)
            if w_low is not None:
                missed -= root * (self._X[part] @ w_low + b_low)
            if self._X_low is not None:
                missed -= root * (self._X_low[part] @ w)
            r, missed = two_sum(r, missed)
            weighted = r
            if self._root is not None:
                weighted, error = two_product(r, rest)
                missed = error + missed * rest
            square += float(weighted @ r)
            sums = np.add.reduce(self._factors(weighted, missed) @ slices)
            high, error = _added(high, sums)
            low += error
            if self._X_low is not None:
                low[:d] += (root * weighted) @ self._X_low[part] * inverse[:d]
        high, low = two_sum(high, low)
        return high * self._scale, low * self._scale, square

    def _cut_off(self, slices: Array, size: float) -> None:
        """Cut the last of four slices, which holds the values, into all four.

        ``size``, a power of two, is above all values.
        """
        rest = slices[3]
        for piece, cut in zip(slices, self._cuts):
            np.add(rest, cut * size, out=piece)
            piece -= cut * size
            rest -= piece

    def _factors(self, vector: Array, low: Array | float = 0.0) -> Array:
        """By which slices 0 to 3 are multiplied: rows for each order, and for all from 3 on."""
        slices, factors = np.empty((4, len(vector))), np.zeros((4, 4, len(vector)))
        slices[3] = vector
        self._cut_off(slices, 2.0 ** math.frexp(float(np.abs(vector).max()))[1])
        rest = slices[3] + low
        for k in range(4):
            factors[k, k:3] = slices[: 3 - k]
            factors[k, 3] = rest
            rest = rest + slices[2 - k]
        return factors


def _added(value: Array, orders: Array) -> tuple[Array, Array]:
    """A vector and the rows of a matrix, the largest first: the sum, and what it misses."""
    value, error = two_sum(value, orders[0])
    value, second = two_sum(value, orders[1])
    value, third = two_sum(value, orders[2])
    return value, error + second + third + orders[3]
