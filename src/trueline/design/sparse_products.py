"""Products of a large sparse matrix with vectors and sums of its squares, on all threads.

The compressed axis is cut into strands of about as many entries each. The cuts depend on the data
alone, so that sums do not change with the number of threads.

Products of sparse rows with the vectors of several problems take one pass over the entries:

    image_t = sum_i h_it z_it x_i,      total_t = sum_i h_it z_it,      z_it = x_i.v_t + level_t

What such a pass costs is the way to the entries, not the arithmetic, so that it serves five
problems at a time (the usual number of folds). Vectors lie side by side, entry j of all problems
together: a row's indices are read once, and the sums of the problems do not wait for each other.
Rows that have no curvature in any of the problems are not read.
"""

from __future__ import annotations

from functools import cached_property, reduce
from itertools import pairwise
from operator import iadd

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from trueline.design.base import Array
from trueline.design.sparse_columns import _SMALL_WORK, Indices, column_dot, cuts
from trueline.numerics.blas import run_strands
from trueline.numerics.jit import kernel

#: Where the entries of each line begin.
Starts = NDArray[np.int32] | NDArray[np.int64]

# Strands that each need sums of their own are few: to clear and add them, an entry for each column.
_STRANDS, _SCATTERED = 32, 4
# Fewer entries are looked at in less time than strands take to be cut, called and added up.
_ONE_STRAND = 1_000_000
# Additions for every entry of a Gram matrix from which on a second one of it pays.
_MUCH = 50
# Gram matrices of all strands together have so many numbers at most (128 MB).
_GRAM_NUMBERS = 1 << 24


@kernel
def has_each_once(indices: Indices, indptr: Starts, size: int) -> bool:
    """Whether no line has two entries in one place."""
    last = np.full(size, -1)
    for i in range(len(indptr) - 1):
        for e in range(indptr[i], indptr[i + 1]):
            if last[indices[e]] == i:
                return False
            last[indices[e]] = i
    return True


@kernel
def gather(
    data: Array, indices: Indices, indptr: Starts, x: Array, out: Array, first: int, last: int
) -> None:
    """out[i] = x . line i, for lines first..last-1."""
    for i in range(first, last):
        out[i] = column_dot(data, indices, indptr[i], indptr[i + 1], x)


@kernel
def scatter(
    data: Array, indices: Indices, indptr: Starts, r: Array, out: Array, first: int, last: int
) -> None:
    """Add sum_i r_i line_i, i = first..last-1, to ``out``."""
    for i in range(first, last):
        factor = r[i]
        if factor == 0.0:  # the image of a few sparse columns
            continue
        for e in range(np.uint64(indptr[i]), np.uint64(indptr[i + 1])):
            out[np.uint64(indices[e])] += factor * data[e]


@kernel
def add_squares(
    data: Array,
    indices: Indices,
    indptr: Starts,
    r: Array,
    out: Array,
    first: int,
    last: int,
) -> None:
    """Add sum_i r_i (line_i)^2, i = first..last-1, to out[:, 0], and count entries in out[:, 1]."""
    for i in range(first, last):
        for e in range(np.uint64(indptr[i]), np.uint64(indptr[i + 1])):
            place = np.uint64(indices[e])
            out[place, 0] += r[i] * (data[e] * data[e])
            out[place, 1] += 1.0


@kernel(reassociate=True)
def sum_squares(data: Array, indptr: Starts, out: Array, first: int, last: int) -> None:
    """out[i] = line i . line i, for lines first..last-1."""
    for i in range(first, last):
        total = 0.0
        for e in range(np.uint64(indptr[i]), np.uint64(indptr[i + 1])):
            total += data[e] * data[e]
        out[i] = total


@kernel
def _add_gram(
    data: Array, indices: Indices, indptr: Starts, s: Array, out: Array, first: int, last: int
) -> None:
    """Add sum_i s_i x_i x_i^T, i = first..last-1, to the lower triangle of ``out``.

    The entries of a row are in the order of the columns.
    """
    for i in range(first, last):
        begin, end = np.uint64(indptr[i]), np.uint64(indptr[i + 1])
        for e in range(begin, end):
            value, row = s[i] * data[e], np.uint64(indices[e])
            for other in range(begin, e + np.uint64(1)):
                out[row, np.uint64(indices[other])] += value * data[other]


def gram_of_rows(X: sp.csr_array, weights: Array | None) -> Array:
    """X^T S X as a dense matrix, row by row: as many additions as pairs of entries in a row.

    Rows are cut into strands where that is much work, whatever the number of threads.
    """
    n, d = X.shape
    s = np.ones(n) if weights is None else np.ascontiguousarray(weights)
    counts = np.diff(X.indptr).astype(np.float64)

    def work(strand: tuple[int, int]) -> Array:
        out = np.zeros((d, d))
        _add_gram(X.data, X.indices, X.indptr, s, out, *strand)
        return out

    each = max(1, min(_STRANDS, 2 * int(counts @ counts / (_MUCH * d * d)), _GRAM_NUMBERS // d**2))
    whole = reduce(iadd, run_strands(work, cuts(X.indptr, each)))
    return whole + np.tril(whole, -1).T


@kernel
def _extent(data: NDArray[np.floating], first: int, last: int) -> tuple[float, float]:
    """The largest magnitude, and the least that is not zero, of some entries."""
    largest, least = 0.0, np.inf
    for e in range(first, last):
        size = abs(data[e])
        largest = max(largest, size)
        least = min(least, size if size > 0.0 else np.inf)
    return largest, least


def extent(data: NDArray[np.floating]) -> tuple[float, float]:
    """The largest magnitude, and the least that is not zero; 0 and inf if there is none."""
    if len(data) and (least := float(data.min())) > 0.0:  # counts and tf-idf: both in no time
        return float(data.max()), least
    ends = np.linspace(0, len(data), _STRANDS + 1).astype(int).tolist()
    found = run_strands(lambda strand: _extent(data, *strand), list(pairwise(ends)))
    return max(size for size, _ in found), min(size for _, size in found)


def threaded_product(
    X: sp.csr_array | sp.csc_array, x: Array, is_transposed: bool = False
) -> Array:
    """X x, or X^T x."""
    x = np.ascontiguousarray(x, dtype=np.float64)
    if is_transposed == (X.format == "csc"):
        return _gathered(X, x)
    return scattered(X, x)


def _gathered(X: sp.csr_array | sp.csc_array, x: Array) -> Array:
    """The products of x with the compressed lines of X: rows of CSR, columns of CSC."""
    out = np.empty(len(X.indptr) - 1)

    def work(strand: tuple[int, int]) -> None:
        gather(X.data, X.indices, X.indptr, x, out, *strand)

    run_strands(work, cuts(X.indptr, _STRANDS))
    return out


def scattered(X: sp.csr_array | sp.csc_array, r: Array) -> Array:
    """The sum of the compressed lines of X, each r_i times; those of zero are not read."""
    size = X.shape[1 if X.format == "csr" else 0]

    def work(strand: tuple[int, int]) -> Array:
        out = np.zeros(size)
        scatter(X.data, X.indices, X.indptr, r, out, *strand)
        return out

    return reduce(iadd, run_strands(work, _scattering(X, size, _ONE_STRAND)))


def _scattering(X: sp.csr_array | sp.csc_array, size: int, small: int) -> list[tuple[int, int]]:
    """Strands of compressed lines that each add to sums of their own, of so many columns.

    Fewer entries than ``small`` are not cut.
    """
    each = int(X.indptr[-1]) // (_SCATTERED * max(1, size))
    return cuts(X.indptr, max(2, min(_STRANDS, each)), small)


class Stretches:
    """Stretches of the compressed lines of X, for products with several columns by SciPy.

    They are kept: to make a sparse matrix takes longer than a product of a short one.
    """

    def __init__(self, X: sp.csr_array | sp.csc_array) -> None:
        self._X, self._size = X, X.shape[1 if X.format == "csr" else 0]

    def product(self, W: Array, is_transposed: bool = False) -> Array:
        """X W, or X^T W."""
        if is_transposed == (self._X.format == "csc"):
            return np.concatenate(run_strands(lambda lines: lines @ W, self._gathered))
        found = run_strands(lambda own: own[1] @ W[own[0]], self._scattered)
        return np.asarray(reduce(iadd, found))

    @cached_property
    def _gathered(self) -> list[sp.csr_array]:
        return [self._lines(*strand) for strand in cuts(self._X.indptr, _STRANDS)]

    @cached_property
    def _scattered(self) -> list[tuple[slice, sp.csc_array]]:
        strands = _scattering(self._X, self._size, _SMALL_WORK)
        return [(slice(*strand), self._lines(*strand).T) for strand in strands]

    def _lines(self, first: int, last: int) -> sp.csr_array:
        ends = self._X.indptr[first : last + 1]
        entries = slice(ends[0], ends[-1])
        parts = self._X.data[entries], self._X.indices[entries], ends - ends[0]
        return sp.csr_array(parts, shape=(last - first, self._size))


def squares_along(X: sp.csr_array | sp.csc_array) -> Array:
    """Sums of squares of the compressed lines."""
    out = np.empty(len(X.indptr) - 1)

    def work(strand: tuple[int, int]) -> None:
        sum_squares(X.data, X.indptr, out, *strand)

    run_strands(work, cuts(X.indptr, _STRANDS, _ONE_STRAND))
    return out


def squares_across(X: sp.csr_array | sp.csc_array, r: Array) -> tuple[Array, Array]:
    """Sums of squares of the compressed lines, each r_i times, and how many entries they have."""
    size = X.shape[1 if X.format == "csr" else 0]

    def work(strand: tuple[int, int]) -> Array:
        out = np.zeros((size, 2))
        add_squares(X.data, X.indices, X.indptr, r, out, *strand)
        return out

    sums = reduce(iadd, run_strands(work, _scattering(X, size, _ONE_STRAND)))
    return sums[:, 0], sums[:, 1]


Integers = NDArray[np.intp]

LANES = 5


def curved_product(X: sp.csr_array, H: Array, V: Array, level: Array) -> tuple[Array, Array]:
    """Images of shape (d, k) and totals of shape (k,) for H of shape (n, k)."""
    k, found = H.shape[1], []
    for start in range(0, k, LANES):
        own = slice(start, min(start + LANES, k))
        h, v, shift = (_padded(part[..., own]) for part in (H, V, level))
        rows = np.flatnonzero(h.any(axis=1))
        image, total = np.zeros(v.shape), np.zeros(LANES)
        _product(X.data, X.indices, X.indptr, rows, h, v, shift, image, total)
        found.append((image[:, : own.stop - start], total[: own.stop - start]))
    if len(found) == 1:
        return found[0]
    images, totals = zip(*found)
    return np.concatenate(images, axis=1), np.concatenate(totals)


def _padded(part: Array) -> Array:
    """With zeros for the lanes that are not used."""
    missing = LANES - part.shape[-1]
    if not missing:
        return np.ascontiguousarray(part)
    return np.concatenate([part, np.zeros((*part.shape[:-1], missing))], axis=-1)


@kernel
def _product(
    data: Array,
    indices: Indices,
    indptr: Starts,
    rows: Integers,
    H: Array,
    V: Array,
    level: Array,
    image: Array,
    total: Array,
) -> None:
    """Five lanes. Scalars, not arrays, hold the sums: they stay in registers."""
    level0, level1, level2, level3, level4 = level
    total0 = total1 = total2 = total3 = total4 = 0.0
    for place in range(len(rows)):
        i = rows[place]
        z0, z1, z2, z3, z4 = level0, level1, level2, level3, level4
        for e in range(indptr[i], indptr[i + 1]):
            j, x = np.uint64(indices[e]), data[e]
            z0 += x * V[j, 0]
            z1 += x * V[j, 1]
            z2 += x * V[j, 2]
            z3 += x * V[j, 3]
            z4 += x * V[j, 4]
        z0 *= H[i, 0]
        z1 *= H[i, 1]
        z2 *= H[i, 2]
        z3 *= H[i, 3]
        z4 *= H[i, 4]
        total0 += z0
        total1 += z1
        total2 += z2
        total3 += z3
        total4 += z4
        for e in range(indptr[i], indptr[i + 1]):
            j, x = np.uint64(indices[e]), data[e]
            image[j, 0] += x * z0
            image[j, 1] += x * z1
            image[j, 2] += x * z2
            image[j, 3] += x * z3
            image[j, 4] += x * z4
    total[0], total[1], total[2], total[3], total[4] = total0, total1, total2, total3, total4
