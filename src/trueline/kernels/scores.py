"""sum_j c_j k(x_j, z) for many z at once: tiles of the kernel, each times its part of c.

Some rows and columns of a matrix, compiled.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.spatial.distance import cdist

from trueline.kernels.function import KernelFunction, features_of, is_cancelling, largest_exponent
from trueline.numerics.blas import run_strands
from trueline.numerics.jit import kernel

__all__ = ["gather", "kernel_scores", "mirror"]

Array = NDArray[np.float64]
#: Kernel values of some rows of Z with the rows of X asked for.
Tile = Callable[[slice], Array]

# Kernel values at a time (of one strand): a few megabytes. Tiles long on one side only would
# read all of X for a few rows of Z.
_TILE_VALUES = 250_000
_TILE_ROWS, _TILE_COLUMNS = 2048, 1000


def kernel_scores(Z: Any, X: Any, coef: Array, kernel: KernelFunction) -> Array:
    """Scores of the rows of Z from coefficients of the rows of X.

    Parameters
    ----------
    Z : array or CSR matrix of shape (m, d)
    X : array or CSR matrix of shape (n, d)
    coef : array of shape (n, k)
    kernel : KernelFunction
        Not a precomputed one.

    Returns
    -------
    scores : array of shape (m, k)

    Examples
    --------
    >>> import numpy as np
    >>> from trueline.kernels import KernelFunction, kernel_scores
    >>> X = np.array([[0.0], [1.0]])
    >>> kernel_scores(X, X, np.array([[1.0], [2.0]]), KernelFunction("linear")).ravel()
    array([0., 2.])
    """
    m, n = Z.shape[0], X.shape[0]
    out = np.zeros((m, coef.shape[1]))
    if m == 0 or n == 0:
        return out
    kernel_of = _tiles(Z, X, kernel)
    # Columns of sparse products are not for cutting.
    width = n if sp.issparse(Z) or sp.issparse(X) else min(n, _TILE_COLUMNS)
    rows = max(1, min(_TILE_ROWS, _TILE_VALUES // width))

    def fill(strand: range) -> None:
        for start in strand:
            some = slice(start, min(start + rows, m))
            tile = kernel_of(some)
            for first in range(0, n, width):
                others = slice(first, first + width)
                out[some] += tile(others) @ coef[others]

    starts = range(0, m, rows)
    half = (len(starts) + 1) // 2
    run_strands(fill, [part for part in (starts[:half], starts[half:]) if part])
    return out


def _tiles(Z: Any, X: Any, kernel: KernelFunction) -> Callable[[slice], Tile]:
    """From rows of Z to what gives their kernel values with some rows of X."""
    if sp.issparse(Z) or sp.issparse(X):
        return _sparse_tiles(sp.csr_array(Z), sp.csr_array(X), kernel)
    Z, X = np.asarray(Z, dtype=np.float64), np.asarray(X, dtype=np.float64)
    if kernel.name == "linear":
        return lambda some: lambda others: Z[some] @ X[others].T
    if kernel.name == "rbf":
        reach = max(largest_exponent(X, kernel), largest_exponent(Z, kernel))
        between = X.mean(axis=0) - Z.mean(axis=0)
        if is_cancelling(reach + kernel.gamma * float(between @ between)):
            return lambda some: (
                lambda others: np.exp(-kernel.gamma * cdist(Z[some], X[others], "sqeuclidean"))
            )
    centre = X.mean(axis=0)
    right = features_of(X, kernel, centre, np.float64).right.T

    def products(some: slice) -> Tile:
        left = features_of(Z[some], kernel, centre, np.float64).left

        def tile(others: slice) -> Array:
            values = left @ right[:, others]
            kernel.of_products(values)
            return values

        return tile

    return products


def _sparse_tiles(Z: Any, X: Any, kernel: KernelFunction) -> Callable[[slice], Tile]:
    """The same for sparse rows, always with all rows of X."""
    columns = X.T.tocsr()
    mine = np.asarray(Z.multiply(Z).sum(axis=1)).ravel()
    theirs = np.asarray(X.multiply(X).sum(axis=1)).ravel()

    def products(some: slice) -> Tile:
        def tile(others: slice) -> Array:
            values = (Z[some] @ columns).toarray().astype(np.float64, copy=False)
            if kernel.name == "rbf":
                values *= 2.0
                values -= mine[some, None]
                values -= theirs
                values *= kernel.gamma
            kernel.of_products(values)
            return values

        return tile

    return products


@kernel
def gather(table: Any, rows: Any, columns: Any, out: Any) -> None:
    """out[a, b] = table[rows[a], columns[b]]."""
    for a in range(len(rows)):
        row = table[rows[a]]
        for b in range(len(columns)):
            out[a, b] = row[columns[b]]


@kernel
def mirror(Q: Any, k: int) -> None:
    """Q[:k, k:] = Q[k:, :k]', in tiles that stay in the first-level cache."""
    m, tile = len(Q), 32
    for first in range(k, m, tile):
        last = min(first + tile, m)
        for start in range(0, k, tile):
            stop = min(start + tile, k)
            for a in range(start, stop):
                for b in range(first, last):
                    Q[a, b] = Q[b, a]
