"""Weighted sums over rows of products of columns, from which every squared loss starts.

Two ways lead there: tiles in registers (:mod:`trueline.numerics.gram.tiles`), compiled by Numba and
worth its import for large data on machines with wide vectors, and BLAS on row blocks
(:mod:`trueline.numerics.gram.blocks`) everywhere else. Which one is taken depends on the shape and
the machine alone, not on the number of threads, the layout in memory or what ran before.
"""

from __future__ import annotations

import os
from functools import cache

import numpy as np
from numpy.typing import NDArray

from trueline.numerics.gram.blocks import Sums, row_strands, sums_by_blocks

__all__ = ["Sums", "second_sums", "weighted_gram", "weighted_sums"]

Array = NDArray[np.float64]

# The first call of the kernel costs a process some tenths of a second, half of it the import of
# Numba: from so many multiplications on, a few passes earn that back. Weights change from one
# iteration to the next, so that a weighted Gram matrix is one of a dozen or more.
_LARGE_WORK, _LARGE_REPEATED_WORK = 4_000_000_000, 30_000_000
# Where compiled kernels are at work anyway.
_ANY_WORK = 1_000_000
# Narrower matrices would leave most of a tile empty; on wider ones BLAS was measured to be as fast,
# and from 1000 columns on faster.
_NARROW, _WIDE = 4, 640


def second_sums(
    X: NDArray[np.floating],
    Y: Array,
    weights: Array | None,
    shift: Array | None,
    *,
    compiled: bool = False,
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
    compiled : bool, default=False
        Whether the caller runs compiled kernels anyway, so that loading them costs nothing more.

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
    return _sums(X, Y, weights, shift, _ANY_WORK if compiled else _LARGE_WORK)


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
    if _tiles_pay(d, work, least) and _tiles_run_here():
        from trueline.numerics.gram.tiles import sums_by_tiles

        return sums_by_tiles(X, Y, weights, shift, strands, totals=totals)
    return sums_by_blocks(X, Y, weights, shift, strands)


def _tiles_pay(d: int, work: int, least: int) -> bool:
    return _NARROW <= d <= _WIDE and work >= least


@cache
def _tiles_run_here() -> bool:
    """Whether Numba compiles, for a processor with vectors wide enough."""
    if os.environ.get("TRUELINE_PURE_PYTHON", "0") not in ("", "0"):
        return False
    try:
        import numba

        from trueline.numerics.gram.tiles import host_lanes
    except ImportError:
        return False
    return host_lanes() > 0 and not numba.config.DISABLE_JIT
