"""A sparse design: SciPy's CSR products, with implicit centring; never densified."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from trueline.design.base import Accuracy, Array, Design, SecondMoments

__all__ = ["SparseDesign"]

# From so many entries on products take all threads; kernels need not be compiled for fewer.
LARGE = 1_000_000
# Pairs of entries in the rows from which on compiled Gram matrices pay, and the widest of them.
_COMPILED_WORK, _WIDE = 100_000, 3000


class SparseDesign(Design):
    """A SciPy sparse matrix or array, held by rows or by columns, as it comes.

    Examples
    --------
    >>> import numpy as np, scipy.sparse as sp
    >>> from trueline.design import SparseDesign
    >>> SparseDesign(sp.eye_array(2, format="csr")).matvec(np.array([3.0, 4.0]))
    array([3., 4.])
    """

    is_sparse = True

    def __init__(self, X: sp.spmatrix | sp.sparray) -> None:
        # Sparse arrays and matrices differ in what * means; arrays behave as NumPy does.
        self.X = sp.csc_array(X) if X.format == "csc" else sp.csr_array(X)
        if self.X.dtype not in (np.float32, np.float64):
            self.X = self.X.astype(np.float64)
        if not self.X.has_canonical_format:
            # Entries stored in several pieces are one number; the caller's arrays stay as they are.
            self.X = self.X.copy()
            self.X.sum_duplicates()
        self.dtype = self.X.dtype
        self.shape = (self.X.shape[0], self.X.shape[1])
        self.nonzeros = int(self.X.nnz)
        self._double = self.X.astype(np.float64, copy=False)
        # The transpose of CSR is CSC of the same memory: no copy, and fast products both ways.
        self._transposed = self._double.T

    @cached_property
    def by_rows(self) -> sp.csr_array:
        """Compressed rows, in double precision."""
        return self._double.tocsr()

    @cached_property
    def by_columns(self) -> sp.csc_array:
        """Compressed columns, in double precision."""
        return self._double.tocsc()

    @property
    def _squares(self) -> sp.csr_array | sp.csc_array:
        """The squares of all entries, in the same places."""
        X = self._double
        return type(X)((X.data**2, X.indices, X.indptr), shape=X.shape)

    def matvec(self, W: Array) -> Array:
        if W.ndim == 2 and W.shape[1] == 1:  # one vector takes half the time of a matrix of one
            return self._product(W[:, 0], is_transposed=False)[:, None]
        return self._double @ W

    def rmatvec(self, U: Array) -> Array:
        if U.ndim == 2 and U.shape[1] == 1:
            return self._product(U[:, 0], is_transposed=True)[:, None]
        return self._transposed @ U

    def _product(self, x: Array, is_transposed: bool) -> Array:
        if self.nonzeros < LARGE:
            return (self._transposed if is_transposed else self._double) @ x
        from trueline.design.sparse_products import threaded_product

        return threaded_product(self._double, x, is_transposed)

    def second_moments(self, Y: Array, weights: Array | None, shift: Array | None) -> SecondMoments:
        gram = self._gram(weights)
        total = self.rmatvec(np.ones(self.shape[0]) if weights is None else weights)
        cross = self.rmatvec(Y if weights is None else weights[:, None] * Y)
        size = gram.diagonal().copy()
        if shift is not None:
            count = float(self.shape[0] if weights is None else weights.sum())
            sums = (Y if weights is None else weights[:, None] * Y).sum(axis=0)
            gram -= np.outer(total, shift) + np.outer(shift, total) - count * np.outer(shift, shift)
            cross = cross - np.outer(shift, sums)
            total = total - count * shift
            # (|x| + |c|)^2 <= 2 x^2 + 2 c^2 is what the digits are lost against.
            size = 2 * size + 2 * count * shift**2
        # A compressed column is summed entry by entry.
        return SecondMoments(total, gram, cross, size, self.shape[0])

    def _gram(self, weights: Array | None) -> Array:
        """X^T S X."""
        X, (n, d) = self.by_rows, self.shape
        if self.nonzeros * self.nonzeros > _COMPILED_WORK * max(n, 1) and d <= _WIDE:
            from trueline.design.sparse_products import gram_of_rows

            return gram_of_rows(X, weights)
        # Roots on both sides keep the product symmetric to the last bit.
        rooted = X if weights is None else X.multiply(np.sqrt(weights)[:, None]).tocsr()
        return np.asarray((rooted.T @ rooted).todense())

    def kernel(self, weights: Array | None, shift: Array | None) -> Array:
        X = self._double
        product = np.asarray((X @ X.T).todense())
        if shift is not None:
            along = X @ shift
            product -= along[:, None] + along[None, :] - np.sum(shift**2)
        if weights is not None:
            root = np.sqrt(weights)
            product *= root[:, None] * root[None, :]
        return product

    def column_means(self, weights: Array | None) -> Array:
        if weights is None:
            return np.asarray(self._double.sum(axis=0)).ravel() / self.shape[0]
        return self.rmatvec(weights) / weights.sum()

    def column_largest(self) -> Array:
        largest = np.zeros(self.shape[1])
        np.maximum.at(largest, self.by_rows.indices, np.abs(self.by_rows.data))
        return largest

    def extent(self) -> tuple[float, float]:
        """The largest magnitude, and the least that is not zero; 0 and inf if there is none."""
        data = self.X.data
        if self.nonzeros < LARGE:
            sizes = np.abs(data)
            least = sizes.min(initial=np.inf, where=sizes > 0)
            return float(sizes.max(initial=0.0)), float(least)
        from trueline.design.sparse_products import extent

        return extent(data)

    def column_squares(self, weights: Array | None, shift: Array | None) -> Array:
        factor = np.ones(self.shape[0]) if weights is None else weights
        is_along = self.X.format == "csc"
        total = self._squares.T @ factor if is_along else self._across(factor)[0]
        if shift is not None:
            total = total - 2 * shift * self.rmatvec(factor) + factor.sum() * shift**2
        return np.maximum(total, 0.0)

    @cached_property
    def _row_squares(self) -> Array:
        if self.X.format == "csc" or self.nonzeros < LARGE:
            return self._squares @ np.ones(self.shape[1])
        from trueline.design.sparse_products import squares_along

        return squares_along(self._double)

    def row_squares(self, shift: Array | None) -> Array:
        total = self._row_squares
        if shift is not None:
            total = total - 2 * self.matvec(shift) + np.sum(shift**2)
        return np.maximum(total, 0.0)

    def accuracy(self, weights: Array | None, magnitude: Array | None = None) -> Accuracy:
        is_csc = self.X.format == "csc"
        factor = np.ones(self.shape[1 if is_csc else 0])
        squares, entries = self._across(factor if is_csc or weights is None else weights)
        along, across = np.diff(self._double.indptr).max(initial=0), entries.max(initial=0)
        in_rows, in_columns = (across, along) if is_csc else (along, across)
        if magnitude is None:
            squares = self.column_squares(weights, None) if is_csc else np.maximum(squares, 0.0)
            magnitude = np.sqrt(squares) * (1 + 1e-8)
        return Accuracy(int(in_rows), int(in_columns), magnitude)

    def _across(self, factor: Array) -> tuple[Array, NDArray[Any]]:
        """Weighted squares of the columns and how many entries they have; of the rows by columns.

        ``factor`` weighs the other lines, which are those that are compressed.
        """
        X = self._double
        if self.nonzeros < LARGE:
            by_rows = X.format == "csr"
            squares = (self._squares.T if by_rows else self._squares) @ factor
            return squares, np.bincount(X.indices, minlength=self.shape[1 if by_rows else 0])
        from trueline.design.sparse_products import squares_across

        return squares_across(X, factor)

    def blocks(self, rows: int) -> Iterator[tuple[slice, Array]]:
        for start in range(0, self.shape[0], rows):
            where = slice(start, min(start + rows, self.shape[0]))
            yield where, self.by_rows[where].toarray()

    def take(self, rows: NDArray[np.intp] | slice) -> SparseDesign:
        return SparseDesign(self.X.tocsr()[rows])

    def row(self, i: int) -> Array:
        return self.by_rows[[i]].toarray().ravel()
