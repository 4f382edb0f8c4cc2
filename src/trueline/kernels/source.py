"""Where blocks of a kernel matrix come from: dense rows, sparse rows, or the matrix itself."""

from __future__ import annotations

from copy import copy
from typing import Any, Protocol

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.spatial.distance import cdist

from trueline.kernels.function import (
    Features,
    KernelFunction,
    features_of,
    is_cancelling,
    largest_exponent,
)
from trueline.kernels.scores import gather
from trueline.numerics.blas import run_strands

__all__ = [
    "DenseSource",
    "KernelSource",
    "MatrixSource",
    "SparseSource",
    "make_source",
    "require_symmetric",
]

Array = NDArray[np.float64]
Index = NDArray[np.intp]

# Rows that are looked at together, and how far two values for one pair may be apart.
_BLOCK = 256
_ASYMMETRY = 1e-5

# A tile of products stays in the second-level cache until the exponential has passed over it.
_TILE_COLUMNS = 2048
_TILE_ROWS = 64


class KernelSource(Protocol):
    """Rows of an n x n kernel matrix, as float32 or float64."""

    n: int
    dtype: np.dtype
    #: Bytes held beside the rows that are asked for.
    nbytes: int

    def rows(self, index: Index, out: NDArray[Any]) -> None:
        """Write the given rows of the matrix to ``out`` of shape (len(index), n)."""

    def block(self, index: Index, columns: Index, out: NDArray[Any]) -> None:
        """Write the given rows and columns of the matrix to ``out``."""

    def diagonal(self) -> Array:
        """k(x_i, x_i)."""

    def subset(self, index: Index) -> KernelSource:
        """The same for some of the rows (and columns)."""


def _strips(n: int) -> list[slice]:
    """Columns in two strips, whatever the number of threads."""
    if n < 512:
        return [slice(0, n)]
    half = (n + 1) // 2
    return [slice(0, half), slice(half, n)]


class DenseSource:
    """Kernel values of dense rows."""

    def __init__(
        self, X: Array, kernel: KernelFunction, dtype: Any = np.float64, centre: Array | None = None
    ) -> None:
        self.X, self.kernel, self.dtype = X, kernel, np.dtype(dtype)
        self.n = len(X)
        self.centre = X.mean(axis=0) if centre is None else centre
        self.by_differences = kernel.name == "rbf" and is_cancelling(largest_exponent(X, kernel))
        self.nbytes = 0
        if not self.by_differences:
            self.features = features_of(X, kernel, self.centre, self.dtype)
            self.nbytes = self.features.left.nbytes + self.features.right.nbytes

    def rows(self, index: Index, out: NDArray[Any]) -> None:
        if self.by_differences:
            exponents = cdist(self.X[index], self.X, "sqeuclidean")
            out[...] = np.exp(-self.kernel.gamma * exponents)
            return
        self._fill(self.features.left[index], self.features.right, out)

    def block(self, index: Index, columns: Index, out: NDArray[Any]) -> None:
        if self.by_differences:
            exponents = cdist(self.X[index], self.X[columns], "sqeuclidean")
            out[...] = np.exp(-self.kernel.gamma * exponents)
            return
        self._fill(self.features.left[index], self.features.right[columns], out)

    def _fill(self, left: NDArray[Any], right: NDArray[Any], out: NDArray[Any]) -> None:
        """Kernel values of features with features, tile by tile."""

        def fill(strip: slice) -> None:
            for start in range(strip.start, strip.stop, _TILE_COLUMNS):
                columns = slice(start, min(start + _TILE_COLUMNS, strip.stop))
                others = np.ascontiguousarray(right[columns].T)
                for first in range(0, len(left), _TILE_ROWS):
                    some = slice(first, first + _TILE_ROWS)
                    tile = out[some, columns]
                    np.matmul(left[some], others, out=tile)
                    self.kernel.of_products(tile)

        run_strands(fill, _strips(len(right)))

    def diagonal(self) -> Array:
        if self.kernel.name == "rbf":
            return np.ones(self.n)
        squares = np.einsum("ij,ij->i", self.X, self.X)
        self.kernel.of_products(squares)
        return squares

    def subset(self, index: Index) -> DenseSource:
        some = copy(self)
        some.X, some.n = self.X[index], len(index)
        if not self.by_differences:
            some.features = Features(self.features.left[index], self.features.right[index])
            some.nbytes = some.features.left.nbytes + some.features.right.nbytes
        return some


class SparseSource:
    """Kernel values of sparse rows; the products stay sparse until they are dense."""

    def __init__(self, X: Any, kernel: KernelFunction, dtype: Any = np.float64) -> None:
        self.X, self.kernel, self.dtype = X.tocsr(), kernel, np.dtype(dtype)
        self.n = X.shape[0]
        self.columns = self.X.T.tocsr()
        self.squares = np.asarray(self.X.multiply(self.X).sum(axis=1), dtype=np.float64).ravel()
        self.nbytes = 2 * self.X.data.nbytes + 2 * self.X.indices.nbytes + self.squares.nbytes

    def rows(self, index: Index, out: NDArray[Any]) -> None:
        self._fill(self.X[index] @ self.columns, self.squares[index], self.squares, out)

    def block(self, index: Index, columns: Index, out: NDArray[Any]) -> None:
        products = self.X[index] @ self.X[columns].T.tocsr()
        self._fill(products, self.squares[index], self.squares[columns], out)

    def _fill(self, sparse_products: Any, mine: Array, theirs: Array, out: NDArray[Any]) -> None:
        products = sparse_products.toarray()
        if self.kernel.name == "rbf":
            products *= 2.0
            products -= mine[:, None]
            products -= theirs
            products *= self.kernel.gamma
        self.kernel.of_products(products)
        out[...] = products

    def diagonal(self) -> Array:
        if self.kernel.name == "rbf":
            return np.ones(self.n)
        squares = self.squares.copy()
        self.kernel.of_products(squares)
        return squares

    def subset(self, index: Index) -> SparseSource:
        return SparseSource(self.X[index], self.kernel, self.dtype)


class MatrixSource:
    """A kernel matrix that is there already."""

    def __init__(self, K: NDArray[Any], index: Index | None = None) -> None:
        self.K = K
        everything = np.arange(len(K))
        self.index = everything if index is None else index
        self.is_whole = np.array_equal(self.index, everything)
        self.n, self.dtype, self.nbytes = len(self.index), K.dtype, 0

    def rows(self, index: Index, out: NDArray[Any]) -> None:
        if self.is_whole:
            out[...] = self.K[index]
        else:
            gather(self.K, self.index[index], self.index, out)

    def block(self, index: Index, columns: Index, out: NDArray[Any]) -> None:
        gather(self.K, self.index[index], self.index[columns], out)

    def diagonal(self) -> Array:
        return self.K[self.index, self.index].astype(np.float64)

    def subset(self, index: Index) -> MatrixSource:
        return MatrixSource(self.K, self.index[index])


def require_symmetric(K: NDArray[Any]) -> None:
    """Raise where a kernel matrix cannot be one: holes in it, or two values for one pair of rows.

    Differences that single precision makes are let through. Steps with two multipliers need not
    come to an end with a matrix that is not symmetric.
    """
    size = max(abs(float(K.max())), abs(float(K.min())))
    if not np.isfinite(size):
        raise ValueError("The kernel matrix contains NaN or infinity.")
    for start in range(0, len(K), _BLOCK):
        rows = slice(start, start + _BLOCK)
        difference = np.abs(K[rows, start:] - K[start:, rows].T)
        if difference.max() > _ASYMMETRY * size:
            row, column = divmod(int(difference.argmax()), difference.shape[1])
            i, j = start + row, start + column
            raise ValueError(
                f"The kernel matrix is not symmetric: k(x_{i}, x_{j}) is {K[i, j]:.6g} and "
                f"k(x_{j}, x_{i}) is {K[j, i]:.6g}. A kernel gives both ways the same; "
                "(K + K.T) / 2 is the nearest matrix that does."
            )


def make_source(X: Any, kernel: KernelFunction, dtype: Any) -> KernelSource:
    """The source for checked rows, or for a matrix if the kernel is precomputed."""
    if kernel.name == "precomputed":
        return MatrixSource(np.asarray(X, dtype=np.float64))
    if sp.issparse(X):
        return SparseSource(X, kernel, dtype)
    return DenseSource(np.asarray(X, dtype=np.float64), kernel, dtype)
