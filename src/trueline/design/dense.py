"""A dense design: row blocks that fit a cache, single-threaded BLAS on each, a few threads."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from trueline.design.base import Accuracy, Array, Design, SecondMoments
from trueline.numerics.blas import run_strands, single_threaded_blas
from trueline.numerics.gram import (
    SMALL_WORK,
    TINY_WORK,
    fold,
    row_strands,
    rows_per_block,
    second_sums,
)

_KERNEL_ROWS = 512
# Bytes and rows of a piece that several products read in turn.
_PIECE_BYTES, _LEAST_PIECE = 3 << 20, 1024
# Where coefficients use less than this share of the columns, these are gathered for a product.
_FEW_USED = 1 / 16
# Entries of a row that are enough for vectors to pay.
_LONG_ROW = 2048


class DenseDesign(Design):
    """A NumPy array of float64 or float32, in any memory order, never copied as a whole.

    Examples
    --------
    >>> import numpy as np
    >>> from trueline.design import DenseDesign
    >>> DenseDesign(np.eye(2)).matvec(np.array([3.0, 4.0]))
    array([3., 4.])
    """

    is_sparse = False

    def __init__(self, X: NDArray[np.floating]) -> None:
        self.X = X
        self.shape = (X.shape[0], X.shape[1])
        self.dtype = X.dtype
        self.nonzeros = X.size
        #: Whether products are formed of all rows at once.
        self._is_whole = X.dtype == np.float64 and X.size < SMALL_WORK

    def _block_rows(self) -> int:
        return rows_per_block(*self.shape)

    def _strands(self, work: int) -> list[tuple[int, int]]:
        return row_strands(*self.shape, work)

    def matvec(self, W: Array) -> Array:
        n = self.shape[0]
        if self.dtype == np.float64 and self.X.size * _columns(W) < TINY_WORK:
            return self.X @ W
        used = np.flatnonzero(W if W.ndim == 1 else W.any(axis=1))
        if len(used) < _FEW_USED * len(W):  # a sparse model: no need to read what it leaves out
            with single_threaded_blas():
                return self.X[:, used].astype(np.float64, copy=False) @ W[used]
        if self._is_whole:
            with single_threaded_blas():
                return self.X @ W
        out = np.empty((n, *W.shape[1:]))

        def work(strand: tuple[int, int]) -> None:
            for rows, block in self._blocks_of(strand):
                np.matmul(block, W, out=out[rows])

        run_strands(work, self._strands(self.X.size * _columns(W)))
        return out

    def rmatvec(self, U: Array) -> Array:
        d = self.shape[1]
        if self.dtype == np.float64 and self.X.size * _columns(U) < TINY_WORK:
            return self.X.T @ U
        if self._is_whole:
            with single_threaded_blas():
                return self.X.T @ U

        def work(strand: tuple[int, int]) -> Array:
            total = np.zeros((d, *U.shape[1:]))
            for rows, block in self._blocks_of(strand):
                total += block.T @ U[rows]
            return total

        return fold(run_strands(work, self._strands(self.X.size * _columns(U))))

    def second_moments(self, Y: Array, weights: Array | None, shift: Array | None) -> SecondMoments:
        total, gram, cross, terms = second_sums(self.X, Y, weights, shift)
        return SecondMoments(total, gram, cross, gram.diagonal().copy(), terms)

    def kernel(self, weights: Array | None, shift: Array | None) -> Array:
        V = self.X.astype(np.float64, copy=False)
        V = V if shift is None else V - shift
        if weights is not None:
            V = V * np.sqrt(weights)[:, None]
        n = len(V)
        out = np.empty((n, n))
        cuts = range(0, n, _KERNEL_ROWS)

        def work(corner: tuple[int, int]) -> None:
            above, left = (slice(start, start + _KERNEL_ROWS) for start in corner)
            np.matmul(V[above], V[left].T, out=out[above, left])
            if above != left:
                out[left, above] = out[above, left].T

        run_strands(work, [(i, j) for i in cuts for j in cuts if j <= i])
        return out

    def column_means(self, weights: Array | None) -> Array:
        if weights is None:
            # NumPy adds short rows one by one, in five times the time of a product.
            if self.X.size >= 10 * TINY_WORK and self.X.flags.c_contiguous:
                return self.rmatvec(np.ones(len(self.X))) / len(self.X)
            return np.mean(self.X, axis=0, dtype=np.float64)
        return self.rmatvec(weights) / weights.sum()

    def column_largest(self) -> Array:
        rows = self._block_rows()

        def work(strand: tuple[int, int]) -> Array:
            largest = np.zeros(self.shape[1])
            for start in range(*strand, rows):
                block = self.X[start : min(start + rows, strand[1])]
                for part in _lengthened(block):
                    ends = np.maximum(np.max(part, axis=0), -np.min(part, axis=0))
                    np.maximum(largest, ends.reshape(-1, self.shape[1]).max(axis=0), out=largest)
            return largest

        found = run_strands(work, self._strands(self.X.size))
        return np.max(found, axis=0, initial=0.0)

    def column_squares(self, weights: Array | None, shift: Array | None) -> Array:
        def work(strand: tuple[int, int]) -> Array:
            total = np.zeros(self.shape[1])
            for rows, block in self._blocks_of(strand):
                centred = block if shift is None else block - shift
                if weights is None:
                    total += np.einsum("ij,ij->j", centred, centred)
                else:
                    total += np.einsum("i,ij,ij->j", weights[rows], centred, centred)
            return total

        return fold(run_strands(work, self._strands(self.X.size)))

    def row_squares(self, shift: Array | None) -> Array:
        out = np.empty(self.shape[0])

        def work(strand: tuple[int, int]) -> None:
            for rows, block in self._blocks_of(strand):
                centred = block if shift is None else block - shift
                out[rows] = np.einsum("ij,ij->i", centred, centred)

        run_strands(work, self._strands(self.X.size))
        return out

    def accuracy(self, weights: Array | None, magnitude: Array | None = None) -> Accuracy:
        n, d = self.shape
        block = self._block_rows()
        terms = n if self._is_whole else block + n / block + 8
        if magnitude is None:
            magnitude = np.sqrt(self.column_squares(weights, None)) * (1 + 1e-8)
        return Accuracy(d, terms, magnitude)

    def blocks(self, rows: int) -> Iterator[tuple[slice, Array]]:
        return self._blocks_of((0, self.shape[0]), rows)

    def _blocks_of(
        self, strand: tuple[int, int], rows: int | None = None
    ) -> Iterator[tuple[slice, Array]]:
        """The blocks of a range of rows; so many rows stay in a cache unless they are given."""
        first, last = strand
        size = rows or self._block_rows()
        for start in range(first, last, size):
            where = slice(start, min(start + size, last))
            yield where, self.X[where].astype(np.float64, copy=False)

    def pieces(self) -> Iterator[tuple[slice, DenseDesign]]:
        """The rows in double precision, in pieces that stay in a cache.

        For several products with the same rows, which are converted once then.
        """
        rows = max(_LEAST_PIECE, _PIECE_BYTES // (8 * max(1, self.shape[1])))
        if self.shape[0] <= rows:
            yield slice(None), self
            return
        for where, piece in self.blocks(rows):
            yield where, DenseDesign(piece)

    def take(self, rows: NDArray[np.intp] | slice) -> DenseDesign:
        # Indices in any order are gathered row by row; by take, columns would be copied first.
        if isinstance(rows, slice) or not self.X.flags.c_contiguous:
            return DenseDesign(self.X[rows])
        return DenseDesign(self.X.take(rows, axis=0))

    def row(self, i: int) -> Array:
        return self.X[i].astype(np.float64, copy=False)


def _lengthened(block: NDArray[np.floating]) -> list[NDArray[np.floating]]:
    """The entries of a block as rows of several rows each: long rows are compared by vectors."""
    m, d = block.shape
    count = max(1, _LONG_ROW // max(1, d))
    if count == 1 or m < count or not block.flags.c_contiguous:
        return [block] if block.size else []
    whole = m - m % count
    parts = [block[:whole].reshape(-1, count * d), block[whole:]]
    return [part for part in parts if part.size]


def _columns(W: Array) -> int:
    return 1 if W.ndim == 1 else W.shape[1]
