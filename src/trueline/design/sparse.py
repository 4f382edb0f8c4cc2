"""A sparse design: SciPy's CSR products, with implicit centring; never densified."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from trueline.design.base import Accuracy, Array, Design, SecondMoments

if TYPE_CHECKING:
    from trueline.design.sparse_products import Stretches

# From so many entries on products take all threads.
LARGE = 1_000_000
# From so many on passes over them are compiled, which those over fewer are not worth. Entries in
# any order are left in it then: sorting them takes longer than to see that none is there twice,
# and LARGE numbers of them are read the faster for being sorted.
_MANY = 20_000
# Where each of several sums takes a smaller share of the rows than this, it takes less time to read
# those of each than to add all rows to all sums.
_FEW_ROWS = 0.3
# Pairs of entries in the rows from which on compiled Gram matrices pay, and the widest of them.
_COMPILED_WORK, _WIDE = 100_000, 3000


class SparseDesign(Design):
    """A SciPy sparse matrix or array, held by rows or by columns, as it comes.

    The entries of ``X`` and :attr:`rows_as_given` may be in any order within a row; those of
    :attr:`by_rows` and :attr:`by_columns` ascend.

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
        if not (self.X.has_canonical_format or _has_each_once(self.X)):
            # Entries stored in several pieces are one number; the caller's arrays stay as they are.
            self.X = self.X.copy()
            self.X.sum_duplicates()
        self.dtype = self.X.dtype
        self.shape = (self.X.shape[0], self.X.shape[1])
        self.nonzeros = int(self.X.nnz)
        self._double = self.X.astype(np.float64, copy=False)

    @cached_property
    def _transposed(self) -> sp.csr_array | sp.csc_array:
        """The transpose of CSR is CSC of the same memory: no copy, fast products both ways."""
        return self._double.T

    @cached_property
    def _stretches(self) -> Stretches:
        from trueline.design.sparse_products import Stretches

        return Stretches(self._double)

    @cached_property
    def rows_as_given(self) -> sp.csr_array:
        """Compressed rows, in double precision, each in any order."""
        return self._double.tocsr()

    @cached_property
    def by_rows(self) -> sp.csr_array:
        """Compressed rows, in double precision."""
        X = self.rows_as_given
        return X if X.has_sorted_indices else X.sorted_indices()

    @cached_property
    def by_columns(self) -> sp.csc_array:
        """Compressed columns, in double precision."""
        X = self._double.tocsc()
        return X if X.has_sorted_indices else X.sorted_indices()

    def matvec(self, W: Array) -> Array:
        return self._product(W, is_transposed=False)

    def rmatvec(self, U: Array) -> Array:
        return self._product(U, is_transposed=True)

    def curved_product(self, H: Array, V: Array, level: Array) -> tuple[Array, Array]:
        from trueline.design.sparse_products import curved_product

        return curved_product(self.rows_as_given, H, V, level)

    def _product(self, W: Array, is_transposed: bool) -> Array:
        if W.ndim == 2 and W.shape[1] == 1:  # one vector takes half the time of a matrix of one
            return self._product(W[:, 0], is_transposed)[:, None]
        if is_transposed and self.X.format == "csr" and self.nonzeros >= _MANY:
            from trueline.design.sparse_products import scattered

            if W.ndim == 1:
                return scattered(self._double, np.ascontiguousarray(W, dtype=np.float64))
            if np.count_nonzero(W) < _FEW_ROWS * W.size:
                return np.stack([self._product(w, is_transposed) for w in W.T], axis=1)
        if self.nonzeros * W.size < LARGE * max(1, len(W)):
            return (self._transposed if is_transposed else self._double) @ W
        if W.ndim == 2:
            return self._stretches.product(W, is_transposed)
        from trueline.design.sparse_products import threaded_product

        return threaded_product(self._double, W, is_transposed)

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
        if self.nonzeros < _MANY:
            sizes = np.abs(data)
            least = sizes.min(initial=np.inf, where=sizes > 0)
            return float(sizes.max(initial=0.0)), float(least)
        from trueline.design.sparse_products import extent

        return extent(data)

    def column_squares(self, weights: Array | None, shift: Array | None) -> Array:
        factor = np.ones(self.shape[0]) if weights is None else weights
        is_along = self.X.format == "csc"
        total = self._along(factor) if is_along else self._across(factor)[0]
        if shift is not None:
            total = total - 2 * shift * self.rmatvec(factor) + factor.sum() * shift**2
        return np.maximum(total, 0.0)

    @cached_property
    def _row_squares(self) -> Array:
        if self.X.format == "csc":
            return self._across(np.ones(self.shape[1]))[0]
        if self.nonzeros < _MANY:
            return _sums_of_lines(self._double.data**2, self._double.indptr)
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

    def _along(self, factor: Array) -> Array:
        """Weighted squares of the columns of a matrix held by columns."""
        X = self._double
        return _sums_of_lines(X.data**2 * factor[X.indices], X.indptr)

    def _across(self, factor: Array) -> tuple[Array, NDArray[Any]]:
        """Weighted squares of the columns and how many entries they have; of the rows by columns.

        ``factor`` weighs the other lines, which are those that are compressed.
        """
        X = self._double
        if self.nonzeros < _MANY:
            size, places = self.shape[1 if X.format == "csr" else 0], X.indices.astype(np.intp)
            squares = X.data**2
            if (factor != 1.0).any():
                squares *= np.repeat(factor, np.diff(X.indptr))
            total = np.bincount(places, squares, size).astype(np.float64, copy=False)
            return total, np.bincount(places, minlength=size)
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


def _has_each_once(X: sp.csr_array | sp.csc_array) -> bool:
    """Whether no entry is stored in pieces, where there are enough for that to be looked at."""
    if not _MANY <= X.nnz < LARGE:
        return False
    from trueline.design.sparse_products import has_each_once

    return bool(has_each_once(X.indices, X.indptr, X.shape[1 if X.format == "csr" else 0]))


def _sums_of_lines(values: Array, starts: NDArray[Any]) -> Array:
    """The sums of the values of each compressed line."""
    out = np.zeros(len(starts) - 1)
    filled = np.flatnonzero(starts[1:] > starts[:-1])
    if len(filled):
        # Lines without entries in between take nothing from the sums of those before them.
        out[filled] = np.add.reduceat(values[: starts[-1]], starts[filled])
    return out
