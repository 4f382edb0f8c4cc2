"""A dense design: row blocks that fit a cache, single-threaded BLAS on each, a few threads."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trueline.blas import add_gram, symmetrised
from trueline.design.base import Accuracy, Array, Design, SecondMoments
from trueline.threads import run_strands

__all__ = ["DenseDesign"]

# Below this many multiplications no BLAS starts threads, and limiting it would cost more.
_TINY_WORK = 8_000
# Below this many multiplications one thread does it all: a thread pool would cost more.
_SMALL_WORK = 2_000_000
# A block, read once from memory, must stay in a level-2 cache of one megabyte.
_BLOCK_BYTES = 3 << 18
# Up to so many columns, blocks of so many rows are best read where they are.
_READ_IN_PLACE = 256
_READ_ROWS = 2048
_KERNEL_ROWS = 512


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

    def _block_rows(self) -> int:
        n, d = self.shape
        return int(max(1, min(n, max(512, _BLOCK_BYTES // (8 * max(1, d))))))

    def _strands(self, work: int) -> list[tuple[int, int]]:
        """Contiguous row ranges: their number depends on the shape alone."""
        n, d = self.shape
        count = 1 if work < _SMALL_WORK else (8 if d <= 400 else 4)
        count = max(1, min(count, n // self._block_rows()))
        if count == 1:
            return [(0, n)]
        cuts = np.linspace(0, n, count + 1).astype(int)
        return [(int(a), int(b)) for a, b in pairwise(cuts)]

    def matvec(self, W: Array) -> Array:
        n = self.shape[0]
        if self.dtype == np.float64 and self.X.size * _columns(W) < _TINY_WORK:
            return self.X @ W
        out = np.empty((n, *W.shape[1:]))
        rows = self._block_rows()

        def work(strand: tuple[int, int]) -> None:
            for start in range(*strand, rows):
                stop = min(start + rows, strand[1])
                np.matmul(self.X[start:stop].astype(np.float64, copy=False), W, out=out[start:stop])

        run_strands(work, self._strands(self.X.size * _columns(W)))
        return out

    def rmatvec(self, U: Array) -> Array:
        d = self.shape[1]
        if self.dtype == np.float64 and self.X.size * _columns(U) < _TINY_WORK:
            return self.X.T @ U
        rows = self._block_rows()

        def work(strand: tuple[int, int]) -> Array:
            total = np.zeros((d, *U.shape[1:]))
            for start in range(*strand, rows):
                stop = min(start + rows, strand[1])
                total += self.X[start:stop].astype(np.float64, copy=False).T @ U[start:stop]
            return total

        return _fold(run_strands(work, self._strands(self.X.size * _columns(U))))

    def second_moments(self, Y: Array, weights: Array | None, shift: Array | None) -> SecondMoments:
        n, d = self.shape
        k = Y.shape[1]
        # Rows that need no change are read where they are. Otherwise a block is copied, and a few
        # targets ride along as columns of it, with the sums as a column of ones: one product
        # instead of two. Many targets would cost more than they save; wide blocks are worth a copy.
        plain = weights is None and shift is None and self.dtype == np.float64
        in_place = plain and d <= _READ_IN_PLACE and self.X.flags.c_contiguous
        rides = not in_place and k <= max(4, d // 8)
        width = d + k + 1 if rides else d
        rows = _READ_ROWS if in_place else max(256, _BLOCK_BYTES // (8 * width))
        rows = max(1, min(n, rows))

        def work(strand: tuple[int, int]) -> tuple[Array, Array]:
            gram, cross = np.zeros((width, width)), np.zeros((d, k + 1))
            buffer = np.empty((0 if in_place else rows, width))
            side = np.empty((rows, k + 1))
            for start in range(*strand, rows):
                where = slice(start, min(start + rows, strand[1]))
                m = where.stop - start
                block: Any = self.X[where] if in_place else buffer[:m]
                beside = block[:, d:] if rides else side[:m]
                if shift is not None:
                    np.subtract(self.X[where], shift, out=block[:, :d])
                elif not in_place:
                    block[:, :d] = self.X[where]
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

        multiplications = n * d * (d + k)
        strands = self._strands(multiplications)
        if multiplications <= _TINY_WORK:  # no BLAS uses threads here: save the set-up
            parts = [work(strands[0])]
        else:
            parts = run_strands(work, strands)
        whole = symmetrised(_fold([part[0] for part in parts]))
        gram = np.ascontiguousarray(whole[:d, :d])
        cross = whole[:d, d:] if rides else _fold([part[1] for part in parts])
        longest = max(stop - start for start, stop in strands)
        terms = min(rows, longest) + -(-longest // rows) + len(strands)
        return SecondMoments(
            cross[:, k].copy(), gram, cross[:, :k].copy(), gram.diagonal().copy(), terms
        )

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
            return np.mean(self.X, axis=0, dtype=np.float64)
        return self.rmatvec(weights) / weights.sum()

    def column_largest(self) -> Array:
        largest = np.zeros(self.shape[1])
        for _, block in self.blocks(self._block_rows()):
            np.maximum(largest, np.max(np.abs(block), axis=0, initial=0.0), out=largest)
        return largest

    def column_squares(self, weights: Array | None, shift: Array | None) -> Array:
        total = np.zeros(self.shape[1])
        for rows, block in self.blocks(self._block_rows()):
            centred = block if shift is None else block - shift
            factor = np.ones(len(block)) if weights is None else weights[rows]
            total += np.einsum("i,ij,ij->j", factor, centred, centred)
        return total

    def row_squares(self, shift: Array | None) -> Array:
        out = np.empty(self.shape[0])
        for rows, block in self.blocks(self._block_rows()):
            centred = block if shift is None else block - shift
            out[rows] = np.einsum("ij,ij->i", centred, centred)
        return out

    def accuracy(self, weights: Array | None) -> Accuracy:
        n, d = self.shape
        block = self._block_rows()
        whole = self.dtype == np.float64 and self.X.size < _SMALL_WORK
        terms = n if whole else block + n / block + 8
        magnitude = np.sqrt(self.column_squares(weights, None)) * (1 + 1e-8)
        return Accuracy(d, terms, magnitude)

    def blocks(self, rows: int) -> Iterator[tuple[slice, Array]]:
        for start in range(0, self.shape[0], rows):
            where = slice(start, min(start + rows, self.shape[0]))
            yield where, self.X[where].astype(np.float64, copy=False)

    def take(self, rows: NDArray[np.intp] | slice) -> DenseDesign:
        return DenseDesign(self.X[rows])

    def row(self, i: int) -> Array:
        return self.X[i].astype(np.float64, copy=False)


def _columns(W: Array) -> int:
    return 1 if W.ndim == 1 else W.shape[1]


def _fold(parts: list[Array]) -> Array:
    """Add the strands' results in their order."""
    total = parts[0]
    for part in parts[1:]:
        total += part
    return total
