"""Kernels k(x, z) of support vector machines, and blocks of their matrices by matrix products.

Blocks come from dense rows, sparse rows, or the matrix itself; sums sum_j c_j k(x_j, z) for many z
are made of tiles of the kernel, each times its part of c. In: rows and the parameters of a kernel.
Out: blocks of its matrix, with their rounding.

For the RBF kernel the exponent itself is made an inner product,

    -g ||x - z||^2 = [sqrt(2 g) x, -g ||x||^2, 1] . [sqrt(2 g) z, 1, -g ||z||^2],   g = gamma,

so that a block of the kernel is one matrix product and one exponential. Rows are centred first:
distances stay, and far from the origin the squares would swallow them.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple, Protocol

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.spatial.distance import cdist

from trueline.numerics.blas import run_strands
from trueline.numerics.jit import kernel


@dataclass(frozen=True)
class KernelFunction:
    """One of the kernels of support vector machines.

    ========== =================================
    linear     x.z
    poly       (gamma x.z + coef0)^degree
    rbf        exp(-gamma ||x - z||^2)
    sigmoid    tanh(gamma x.z + coef0)
    precomputed the matrix itself is given
    ========== =================================

    Examples
    --------
    >>> from trueline.kernels import KernelFunction
    >>> KernelFunction("rbf", gamma=0.5).is_semidefinite
    True
    >>> KernelFunction("sigmoid", gamma=0.5).is_semidefinite
    False
    """

    name: str
    gamma: float = 0.0
    degree: int = 3
    coef0: float = 0.0

    @property
    def is_semidefinite(self) -> bool:
        """Whether every matrix of this kernel is known to be positive semi-definite.

        A product of x.z and non-negative constants with itself is (Schur's theorem); tanh is not,
        and nothing is known of matrices and functions that are given.
        """
        if self.name == "poly":
            return self.gamma >= 0 and self.coef0 >= 0
        return self.name in ("linear", "rbf")

    def of_products(self, products: NDArray[Any]) -> None:
        """Turn inner products x.z into kernel values, in place; for rbf they are exponents."""
        if self.name == "rbf":
            if products.dtype == np.float64:
                # Single precision leaves 1 + 1e-6 here and there, which is as good as 1 - 1e-6.
                np.minimum(products, 0.0, out=products)
            np.exp(products, out=products)
        elif self.name in ("poly", "sigmoid"):
            products *= self.gamma
            products += self.coef0
            if self.name == "sigmoid":
                np.tanh(products, out=products)
            else:
                raise_to(products, self.degree)


def raise_to(values: NDArray[Any], degree: int) -> None:
    """values^degree in place, by repeated squaring: far cheaper than the general power."""
    if degree == 0:
        values[...] = 1.0
        return
    base = values.copy() if degree > 1 and degree & (degree - 1) else None
    for bit in bin(degree)[3:]:
        np.multiply(values, values, out=values)
        if bit == "1":
            assert base is not None
            values *= base


Array = NDArray[np.float64]

# Exponents that are off by more than this come from differences of rows instead.
_CANCELLATION = 1e-9


class Features(NamedTuple):
    """``left @ right.T`` is what the kernel is a function of; None where it must be differences."""

    left: NDArray[Any]
    right: NDArray[Any]


def largest_exponent(X: Any, kernel: KernelFunction) -> float:
    """A bound on gamma ||x - c||^2 over the rows, with c their centre (the origin if sparse)."""
    if sp.issparse(X):
        squares = np.asarray(X.multiply(X).sum(axis=1)).ravel()
    else:
        away = X - X.mean(axis=0)
        squares = np.einsum("ij,ij->i", away, away)
    return float(kernel.gamma * squares.max(initial=0.0))


def is_cancelling(exponent: float) -> bool:
    """Whether squares of such a size leave too few digits to their differences."""
    return not exponent * np.finfo(np.float64).eps < _CANCELLATION


def features_of(X: Array, kernel: KernelFunction, centre: Array | None, dtype: Any) -> Features:
    """Features of dense rows; ``centre`` is that of the training rows."""
    if kernel.name != "rbf":
        plain = np.ascontiguousarray(X, dtype=dtype)
        return Features(plain, plain)
    assert centre is not None
    away = X - centre
    scaled = away * np.sqrt(2.0 * kernel.gamma)
    half = -0.5 * np.einsum("ij,ij->i", scaled, scaled)
    n, d = X.shape
    left = np.empty((n, d + 2), dtype=dtype)
    left[:, :d], left[:, d], left[:, d + 1] = scaled, half, 1.0
    right = np.empty((n, d + 2), dtype=dtype)
    right[:, :d], right[:, d], right[:, d + 1] = scaled, 1.0, half
    return Features(left, right)


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

    def fill(start: int) -> None:
        some = slice(start, min(start + rows, m))
        tile = kernel_of(some)
        for first in range(0, n, width):
            others = slice(first, first + width)
            out[some] += tile(others) @ coef[others]

    run_strands(fill, range(0, m, rows))
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


Index = NDArray[np.intp]

# Rows that are looked at together, and how far two values for one pair may be apart.
_BLOCK = 256
_ASYMMETRY = 1e-5

# A tile of products stays in the second-level cache until the exponential has passed over it.
_CACHE_COLUMNS = 2048
# So many columns of a few rows are worth a thread's while.
_STRIP = 128
_CACHE_ROWS = 64


# Products of sparse rows visit the square of this share of what dense ones do, and take some
# fifty times as long for each.
_HARDLY_SPARSE = 0.14


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
    """Columns in strips, whatever the number of threads."""
    cuts = np.linspace(0, n, max(1, min(32, n // _STRIP)) + 1).astype(int)
    return [slice(int(first), int(last)) for first, last in pairwise(cuts)]


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
            for start in range(strip.start, strip.stop, _CACHE_COLUMNS):
                columns = slice(start, min(start + _CACHE_COLUMNS, strip.stop))
                others = np.ascontiguousarray(right[columns].T)
                for first in range(0, len(left), _CACHE_ROWS):
                    some = slice(first, first + _CACHE_ROWS)
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
        self.index = np.arange(len(K)) if index is None else index
        self.is_whole = index is None or np.array_equal(index, np.arange(len(K)))
        self.n, self.dtype, self.nbytes = len(self.index), K.dtype, 0

    def rows(self, index: Index, out: NDArray[Any]) -> None:
        if self.is_whole:
            out[...] = self.K[index]
        else:
            gather(self.K, self.index[index], self.index, out)

    def block(self, index: Index, columns: Index, out: NDArray[Any]) -> None:
        gather(self.K, self.index[index], self.index[columns], out)

    def diagonal(self) -> Array:
        return self.K.diagonal()[self.index].astype(np.float64, copy=False)

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
    if not sp.issparse(X):
        return DenseSource(np.asarray(X, dtype=np.float64), kernel, dtype)
    if X.nnz > _HARDLY_SPARSE * X.shape[0] * X.shape[1]:
        return DenseSource(X.toarray(), kernel, dtype)
    return SparseSource(X, kernel, dtype)
