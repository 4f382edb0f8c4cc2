r"""Products with the rows [x_i, 1] of a design, for several targets at once.

A gradient, or a Hessian-vector product, is one pass over the rows: what the losses of a block of
rows give, and back.

    (V, f)  ->  X^T T,  sum_i T_i      with   T_i = s_i l''(z_i) [X V + f]_i

Where that is done block by block, scores and slopes are kept target by target (column-major): sums
over the targets of a row, as those of the softmax, then run along vectors.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from trueline.design import DenseDesign, Design
from trueline.losses import Loss
from trueline.numerics.blas import run_strands
from trueline.numerics.gram import SMALL_WORK, fold, row_strands, rows_per_block

Array = NDArray[np.float64]

# From so many numbers on Hessian-vector products read a copy in single precision.
_LARGE = 10_000_000
# Up to so many multiplications OpenBLAS multiplies matrices as they are, without packing them
# first, which pays for a few targets; blocks should not be much smaller than that.
_UNPACKED, _LEAST_ROWS = 900_000, 48
# What the loss of a score costs, in multiplications.
_WORK_EACH = 20


class Rows:
    """The rows and their weights; coefficients are of shape (d + 1, k), intercepts last.

    Parameters
    ----------
    design : Design
    weights : array of shape (n,)
    fit_intercept : bool
        Without one the last row of coefficients is zero, and so is that of gradients.

    Attributes
    ----------
    is_large : bool
        Whether the rows are dense, and so many that products use single precision.
    """

    def __init__(self, design: Design, weights: Array, fit_intercept: bool) -> None:
        self.design, self.weights, self.fit_intercept = design, weights, fit_intercept
        self.is_large = isinstance(design, DenseDesign) and design.X.size >= _LARGE
        self._copy: NDArray[np.floating] | None = None

    def scores(self, V: Array) -> Array:
        """X V + f of all rows."""
        X = self._blocks_of(V.shape[1])
        if X is None:
            return self.design.matvec(V[:-1]) + V[-1]
        along, rows = np.ascontiguousarray(V[:-1].T), self._block_rows(V.shape[1])
        out = np.empty((V.shape[1], len(X)))

        def work(strand: tuple[int, int]) -> None:
            for start in range(*strand, rows):
                where = slice(start, min(start + rows, strand[1]))
                out[:, where] = along @ X[where].T.astype(np.float64, copy=False)
            out[:, slice(*strand)] += V[-1][:, None]

        run_strands(work, self._strands(V.shape[1]))
        return out.T

    def total(self, T: Array) -> Array:
        """sum_i T_i [x_i, 1]."""
        X = self._blocks_of(T.shape[1])
        if X is None:
            out = np.empty((self.design.shape[1] + 1, T.shape[1]))
            out[:-1] = self.design.rmatvec(T)
            out[-1] = T.sum(axis=0) if self.fit_intercept else 0.0
            return out
        rows = rows_per_block(*self.design.shape)
        return self._added(X, T.shape[1], rows, lambda where, block: T[where])

    def arranged(self, T: Array) -> Array:
        """A copy of what belongs to the rows and targets, in the order of the scores."""
        return np.array(T, order="C" if self._blocks_of(T.shape[1]) is None else "F")

    def over_rows(self, k: int, work: Callable[[slice], Array]) -> Array:
        """The sum of what is made of each stretch of the rows, by several threads."""
        n = len(self.weights)
        strands = row_strands(n, k, _WORK_EACH * n * k)
        if len(strands) == 1:
            return work(slice(None))
        return fold(run_strands(lambda strand: work(slice(*strand)), strands))

    def hessian(self, loss: Loss, hessian_terms: Array) -> Callable[[Array], Array]:
        """The Hessian of the losses at a point: it is applied to coefficients."""
        k, blocks = hessian_terms.shape[1], self._blocks_of(hessian_terms.shape[1])
        if blocks is None:
            return lambda V: self.total(
                self.weights[:, None] * loss.hessian_product(hessian_terms, self.scores(V))
            )
        X, rows = self._single(blocks), self._block_rows(k)
        s, at = self.weights.astype(X.dtype), np.asfortranarray(hessian_terms, dtype=X.dtype)

        def product(V: Array) -> Array:
            along, level = np.ascontiguousarray(V[:-1].T, dtype=X.dtype), V[-1].astype(X.dtype)

            def curved(where: slice, block: NDArray[Any]) -> Array:
                return s[where, None] * loss.hessian_product(at[where], (along @ block.T).T + level)

            return self._added(X, k, rows, curved)

        return product

    def dense(self, where: NDArray[np.intp], dtype: DTypeLike = np.float64) -> Array:
        """Some of the rows [x_i, 1]; in single precision of the copy."""
        if isinstance(self.design, DenseDesign):
            is_single = dtype == np.float32
            X = (self._single(self.design.X) if is_single else self.design.X)[where]
        else:
            X = self.design.take(where).toarray()
        out = np.empty((X.shape[0], X.shape[1] + 1), dtype)
        out[:, :-1], out[:, -1] = X, float(self.fit_intercept)
        return out

    def _blocks_of(self, k: int) -> NDArray[np.floating] | None:
        """The rows, if they are worth to be taken in blocks."""
        design = self.design
        if not isinstance(design, DenseDesign) or design.X.size * k < SMALL_WORK:
            return None
        return design.X

    def _block_rows(self, k: int) -> int:
        n, d = self.design.shape
        rows, unpacked = rows_per_block(n, d), _UNPACKED // (d * k) // 16 * 16
        return min(rows, unpacked) if unpacked >= _LEAST_ROWS else rows

    def _strands(self, k: int) -> list[tuple[int, int]]:
        n, d = self.design.shape
        return row_strands(n, d, n * d * k)

    def _single(self, X: NDArray[np.floating]) -> NDArray[np.floating]:
        """Large data in single precision: steps need few digits, and gradients are exact anyway."""
        if self._copy is None:
            self._copy = X.astype(np.float32 if self.is_large else np.float64, copy=False)
        return self._copy

    def _added(
        self, X: NDArray[Any], k: int, rows: int, made: Callable[[slice, NDArray[Any]], Array]
    ) -> Array:
        """sum_i T_i [x_i, 1], of shape (d + 1, k), where T is made block by block."""
        d = X.shape[1]

        def work(strand: tuple[int, int]) -> Array:
            out = np.zeros((k, d + 1))
            for start in range(*strand, rows):
                where = slice(start, min(start + rows, strand[1]))
                block = X[where]
                T = made(where, block)
                out[:, :-1] += T.T @ block
                out[:, -1] += T.sum(axis=0)
            return out

        out = np.ascontiguousarray(fold(run_strands(work, self._strands(k))).T)
        if not self.fit_intercept:
            out[-1] = 0.0
        return out
