"""Weighted sums over rows of products of columns, from which every squared loss starts.

Two ways lead there: tiles in registers (:mod:`trueline.numerics.gram_tiles`), compiled by Numba and
worth its import for large data on machines with wide vectors, and everywhere else BLAS: row blocks
that fit a cache, single-threaded syrk on each. Which one is taken depends on the shape, the machine
and whether the tiles are compiled yet when the process begins, not on the number of threads, the
layout in memory or what ran before. How the rows are cut for the threads is decided here too.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import cache
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from trueline.numerics.blas import FEW_COLUMNS, add_gram, run_strands, symmetrised
from trueline.numerics.jit import has_code

Array = NDArray[np.float64]

# The first call of the kernel costs a process some tenths of a second, half of it the import of
# Numba: from so many multiplications on, a few passes earn that back. Weights change from one
# iteration to the next, so that a weighted Gram matrix is one of a dozen or more.
_LARGE_WORK, _LARGE_REPEATED_WORK = 4_000_000_000, 30_000_000
# Where compiled kernels are at work anyway.
_ANY_WORK = 1_000_000
# Where the kernel is not on disk yet: it takes seconds to compile, and makes a pass half as long.
_WORTH_COMPILING = 20_000_000_000
# So many numbers are copied with their weights, which is one operation.
_COPIED = 50_000
# Narrower matrices would leave most of a tile empty; on wider ones BLAS was measured to be as fast,
# and from 1000 columns on faster.
_NARROW, _WIDE = 4, 640


def second_sums(
    X: NDArray[np.floating],
    Y: Array,
    weights: Array | None,
    shift: Array | None,
) -> Sums:
    """sum s v, sum s v v^T and sum s v y^T over the rows v = x - shift, y of X and Y.

    Parameters
    ----------
    X : array of shape (n, d)
        float64 or float32, in any memory order.
    Y : array of shape (n, k)
    weights : array of shape (n,), optional
        Not negative.
    shift : array of shape (d,), optional

    Examples
    --------
    >>> import numpy as np
    >>> from trueline.numerics.gram import second_sums
    >>> X, Y = np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([[1.0], [-1.0]])
    >>> sums = second_sums(X, Y, weights=np.array([1.0, 2.0]), shift=None)
    >>> sums.gram
    array([[19., 26.],
           [26., 36.]])
    >>> sums.cross.ravel(), sums.total
    (array([-5., -6.]), array([ 7., 10.]))
    """
    return _sums(X, Y, weights, shift, _LARGE_WORK)


def weighted_gram(X: NDArray[np.floating], s: Array, *, compiled: bool = False) -> Array:
    """sum_i s_i x_i x_i^T, exactly symmetric, without a weighted copy of X.

    Parameters
    ----------
    X : array of shape (n, d)
        float64 or float32, in any memory order.
    s : array of shape (n,)
        Weights, not negative: their square roots are taken.
    compiled : bool, default=False
        Whether the caller runs compiled kernels anyway.

    Examples
    --------
    >>> import numpy as np
    >>> from trueline.numerics.gram import weighted_gram
    >>> weighted_gram(np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([1.0, 2.0]))
    array([[19., 26.],
           [26., 36.]])
    """
    if X.size <= _COPIED and X.shape[1] <= FEW_COLUMNS:
        V = X * np.sqrt(s)[:, None]
        return V.T @ V
    least = _ANY_WORK if compiled else _LARGE_REPEATED_WORK
    return _sums(X, np.empty((len(X), 0)), s, None, least, totals=False).gram


def weighted_sums(X: NDArray[np.floating], s: Array) -> tuple[Array, Array]:
    """sum_i s_i x_i x_i^T and sum_i s_i x_i, in one pass over X; s is not negative.

    Examples
    --------
    >>> import numpy as np
    >>> from trueline.numerics.gram import weighted_sums
    >>> gram, total = weighted_sums(np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([1.0, 2.0]))
    >>> total
    array([ 7., 10.])
    """
    sums = _sums(X, np.empty((len(X), 0)), s, None, _LARGE_REPEATED_WORK)
    return sums.gram, sums.total


def _sums(
    X: NDArray[np.floating],
    Y: Array,
    weights: Array | None,
    shift: Array | None,
    least: int,
    totals: bool = True,
) -> Sums:
    """The sums of one pass, by tiles from so many multiplications on."""
    (n, d), k = X.shape, Y.shape[1]
    work = n * d * (d + k)
    strands = row_strands(n, d, work)
    ready = work >= _WORTH_COMPILING or _tiles_are_compiled()
    if _tiles_pay(d, work, least) and ready and _tiles_run_here():
        from trueline.numerics.gram_tiles import sums_by_tiles

        return sums_by_tiles(X, Y, weights, shift, strands, totals=totals)
    return sums_by_blocks(X, Y, weights, shift, strands)


def _tiles_pay(d: int, work: int, least: int) -> bool:
    return _NARROW <= d <= _WIDE and work >= least


@cache
def _tiles_are_compiled() -> bool:
    """Whether their code was on disk when first asked for; what runs later changes no sums."""
    return has_code("trueline.numerics.gram_tiles._add_products")


@cache
def _tiles_run_here() -> bool:
    """Whether Numba compiles, for the vectors of this very processor, and these are wide enough."""
    if os.environ.get("TRUELINE_PURE_PYTHON", "0") not in ("", "0"):
        return False
    try:
        import numba

        from trueline.numerics.gram_tiles import host_lanes
    except ImportError:
        return False
    config = numba.config
    return host_lanes() > 0 and not config.DISABLE_JIT and config.CPU_NAME is None


# Up to so many columns, blocks of so many rows are best read where they are.
_READ_IN_PLACE = 256
_READ_ROWS = 2048


def sums_by_blocks(
    X: NDArray[np.floating],
    Y: Array,
    weights: Array | None,
    shift: Array | None,
    strands: Sequence[tuple[int, int]],
) -> Sums:
    """The sums of :func:`trueline.numerics.gram.second_sums`, whatever the machine."""
    (n, d), k = X.shape, Y.shape[1]
    # Rows that need no change are read where they are. Otherwise a block is copied, and a few
    # targets ride along as columns of it, with the sums as a column of ones: one product
    # instead of two. Many targets would cost more than they save; wide blocks are worth a copy.
    plain = weights is None and shift is None and X.dtype == np.float64
    in_place = plain and d <= _READ_IN_PLACE and X.flags.c_contiguous
    rides = not in_place and k <= max(4, d // 8)
    width = d + k + 1 if rides else d
    rows = _READ_ROWS if in_place else max(256, BLOCK_BYTES // (8 * width))
    rows = max(1, min(n, rows))
    # Columns are copied as columns, and BLAS multiplies them in two thirds of the time.
    order: Any = "F" if abs(X.strides[0]) < abs(X.strides[1]) else "C"

    def work(strand: tuple[int, int]) -> tuple[Array, Array]:
        gram, cross = np.zeros((width, width)), np.zeros((d, k + 1))
        buffer = np.empty((0 if in_place else rows, width), order=order)
        side = np.empty((rows, k + 1))
        for start in range(*strand, rows):
            where = slice(start, min(start + rows, strand[1]))
            m = where.stop - start
            block: Any = X[where] if in_place else buffer[:m]
            beside = block[:, d:] if rides else side[:m]
            if shift is not None:
                np.subtract(X[where], shift, out=block[:, :d])
            elif not in_place:
                block[:, :d] = X[where]
            beside[:, :k] = Y[where]
            beside[:, k] = 1.0
            if weights is not None:
                root = np.sqrt(weights[where])[:, None]
                block *= root
                if not rides:
                    beside *= root
            add_gram(block, gram)
            if not rides:
                cross += block.T @ beside
        return gram, cross

    if n * d * (d + k) <= TINY_WORK:  # no BLAS uses threads here: save the set-up
        parts = [work(strand) for strand in strands]
    else:
        parts = run_strands(work, strands)
    whole = fold([part[0] for part in parts])
    if width > FEW_COLUMNS:  # of fewer, NumPy has filled both triangles alike
        whole = symmetrised(whole)
    gram = np.ascontiguousarray(whole[:d, :d])
    cross = whole[:d, d:] if rides else fold([part[1] for part in parts])
    longest = max(stop - start for start, stop in strands)
    terms = min(rows, longest) + -(-longest // rows) + len(strands)
    return Sums(cross[:, k].copy(), gram, cross[:, :k].copy(), terms)


# Below this many multiplications no BLAS starts threads, and limiting it would cost more.
TINY_WORK = 8_000
# Below this many multiplications one thread does it all: a thread pool would cost more.
SMALL_WORK = 2_000_000
# Strands for many threads, none of them so short that taking it would be felt.
_STRANDS, _WORK_OF_STRAND = 32, SMALL_WORK // 8
# A block, read once from memory, must stay in a level-2 cache of one megabyte.
BLOCK_BYTES = 3 << 18


class Sums(NamedTuple):
    """``total`` sum s v, ``gram`` sum s v v^T, ``cross`` sum s v y^T, over rows v = x - shift.

    ``terms`` is the largest number of terms that were added one after the other.
    """

    total: Array
    gram: Array
    cross: Array
    terms: int


def rows_per_block(n: int, d: int) -> int:
    """Rows that are handled together."""
    return int(max(1, min(n, max(512, BLOCK_BYTES // (8 * max(1, d))))))


def row_strands(n: int, d: int, work: int) -> list[tuple[int, int]]:
    """Contiguous row ranges for so many multiplications: they depend on the shape alone."""
    # Sums of squares of so many parts take no more memory than the rows, nor four times d^2.
    count = 1 if work < SMALL_WORK else min(_STRANDS, work // _WORK_OF_STRAND, max(4, n // d))
    count = max(1, min(count, n // rows_per_block(n, d)))
    if count == 1:
        return [(0, n)]
    cuts = np.linspace(0, n, count + 1).astype(int)
    return [(int(a), int(b)) for a, b in pairwise(cuts)]


def fold(parts: list[Array]) -> Array:
    """Add the strands' results in their order."""
    total = parts[0]
    for part in parts[1:]:
        total += part
    return total
