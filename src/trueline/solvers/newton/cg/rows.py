r"""Products with the rows [x_i, 1] of a design, for several targets at once.

A gradient, or a Hessian-vector product, is one pass over the rows: what the losses of a block of
rows give, and back.

    (V, f)  ->  X^T T,  sum_i T_i      with   T_i = s_i l''(z_i) [X V + f]_i

Where that is done block by block, scores and slopes are kept target by target (column-major): sums
over the targets of a row, as those of the softmax, then run along vectors.

Hessian-vector products with dense rows read a copy about the means m of the columns,

    [x_i, 1].(w, b) = (x_i - m).w + (b + m.w),

which is in single precision where the rows are many: steps need few digits, means that are far from
zero cost none of them, and gradients are exact anyway.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from trueline.certificates.evaluation import Rounding
from trueline.design import DenseDesign, Design
from trueline.losses import Loss
from trueline.numerics.blas import run_strands
from trueline.numerics.gram import SMALL_WORK, fold, row_strands, rows_per_block
from trueline.problem import Problem

Array = NDArray[np.float64]

# From so many numbers on, and for columns of no more than such sizes, the copy is in single
# precision: from memory it is read in half the time, and from a cache in a quarter.
_LARGE, _MOST_SIZE = 500_000, 1e12
# Up to so many multiplications and rows OpenBLAS multiplies matrices as they are, without packing
# them first, in less than half the time for a few targets; fewer rows or columns lose that again.
_UNPACKED, _MOST_ROWS, _LEAST_ROWS, _MANY_COLUMNS = 900_000, 112, 48, 128
# What the loss of a score costs, in multiplications.
_WORK_EACH = 20
# Bounds are a little larger than the sums that they are made of.
_MORE = 1 + 1e-6


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
    mean, squares : arrays of shape (d,)
        The columns' weighted means (zero for sparse rows, and without an intercept), and their
        weighted sums of squares about these; of sparse rows None.
    farthest : float
        The largest distance of a row from the means.
    """

    def __init__(self, design: Design, weights: Array, fit_intercept: bool) -> None:
        self.design, self.weights, self.fit_intercept = design, weights, fit_intercept
        self.mean, self.farthest = np.zeros(design.shape[1]), np.inf
        self.squares: Array | None = None
        self._copy: NDArray[np.floating] | None = None
        if isinstance(design, DenseDesign):
            self._centre(design)
        elif not design.is_sparse:  # the same steps without a copy
            self.mean = design.column_means(weights) if fit_intercept else self.mean
            self.squares = design.column_squares(weights, self.mean)

    def _centre(self, design: DenseDesign) -> None:
        """One pass for the means, one for the copy and the sums of squares."""
        (n, d), s = design.shape, self.weights
        if self.fit_intercept:
            self.mean = design.column_means(s)
        is_large = design.X.size >= _LARGE
        copy = np.empty((n, d), np.float32 if is_large else np.float64)

        rows = rows_per_block(n, d)

        def work(strand: tuple[int, int]) -> tuple[Array, float]:
            squares, farthest, ones = np.zeros(d), 0.0, np.ones(d)
            for start in range(strand[0], strand[1], rows):
                where = slice(start, min(start + rows, strand[1]))
                block = design.X[where] - self.mean
                copy[where] = block
                block *= block
                squares += s[where] @ block
                farthest = max(farthest, float((block @ ones).max()))
            return squares, farthest

        with np.errstate(over="ignore"):
            parts = run_strands(work, self._strands(1))
        self.squares = squares = fold([part[0] for part in parts])
        self.farthest = float(np.sqrt(max(part[1] for part in parts)))
        sizes = np.sqrt(squares[squares > 0] / s.sum())
        is_ordinary = self.farthest < _MOST_SIZE and sizes.min(initial=1.0) > 1 / _MOST_SIZE
        if is_large and not is_ordinary:
            copy = np.asarray(design.X - self.mean, dtype=np.float64)
        self._copy = copy

    def rounding(self, problem: Problem) -> Rounding:
        """What proofs need to know of the columns, as far as the pass over dense rows tells it."""
        if self.squares is None or self._copy is None:
            return Rounding.of(problem)
        whole = np.sqrt(self.squares + self.weights.sum() * self.mean**2) * _MORE
        known = Rounding.of(problem, self.mean, whole)
        return replace(known, spread=np.sqrt(self.squares) * _MORE, farthest=self.farthest * _MORE)

    def scores(self, V: Array) -> Array:
        """X V + f of all rows."""
        X = self._dense
        if X is None:
            return self.design.matvec(V[:-1]) + V[-1]
        along, rows = np.ascontiguousarray(V[:-1].T), self._block_rows(V.shape[1])
        out = np.empty((V.shape[1], len(X)))

        def work(strand: tuple[int, int]) -> None:
            for start in range(*strand, rows):
                where = slice(start, min(start + rows, strand[1]))
                _forth(along, X[where].astype(np.float64, copy=False), out[:, where])
            out[:, slice(*strand)] += V[-1][:, None]

        run_strands(work, self._strands(V.shape[1]))
        return out.T

    def total(self, T: Array) -> Array:
        """sum_i T_i [x_i, 1]."""
        X = self._dense
        if X is None:
            out = np.empty((self.design.shape[1] + 1, T.shape[1]))
            out[:-1] = self.design.rmatvec(T)
            out[-1] = T.sum(axis=0) if self.fit_intercept else 0.0
            return out
        return self._added(X, T.shape[1], lambda where, block: T[where])

    def arranged(self, T: Array) -> Array:
        """A copy of what belongs to the rows and targets, in the order of the scores."""
        return np.array(T, order="C" if self._dense is None else "F")

    def over_rows(self, k: int, work: Callable[[slice], Array]) -> Array:
        """The sum of what is made of each stretch of the rows, by several threads."""
        n = len(self.weights)
        strands = row_strands(n, k, _WORK_EACH * n * k)
        if len(strands) == 1:
            return work(slice(None))
        return fold(run_strands(lambda strand: work(slice(*strand)), strands))

    def along(self, D: Array) -> Array:
        """X D + f of all rows, as exact as the copy."""
        if self._copy is None:
            return self.scores(D)
        level = (D[-1] + self.mean @ D[:-1]).astype(self._copy.dtype)
        W = D[:-1].astype(self._copy.dtype)
        return self.arranged(self._copy @ W + level)

    def hessian(self, loss: Loss, hessian_terms: Array) -> Callable[[Array], Array]:
        """The Hessian of the losses at a point: it is applied to coefficients."""
        k = hessian_terms.shape[1]
        if self._copy is None:
            return lambda V: self.total(
                self.weights[:, None] * loss.hessian_product(hessian_terms, self.scores(V))
            )
        X, is_even = self._copy, bool((self.weights == 1).all())
        s, at = self.weights.astype(X.dtype), np.asfortranarray(hessian_terms, dtype=X.dtype)

        def product(V: Array) -> Array:
            W = np.ascontiguousarray(V[:-1].T, dtype=X.dtype)
            level = (V[-1] + self.mean @ V[:-1]).astype(X.dtype)

            def curved(where: slice, block: NDArray[Any]) -> Array:
                Z = _forth(W, block).T
                Z += level
                T = loss.hessian_product(at[where], Z)
                return T if is_even else s[where, None] * T

            out = self._added(X, k, curved, X.dtype)
            out[:-1] += np.multiply.outer(self.mean, out[-1])
            return out

        return product

    def centred(
        self, where: NDArray[np.intp], weights: Array, is_single: bool
    ) -> NDArray[np.floating]:
        """Some of the rows [x_i - m, 1], times weights, in single precision if the copy is."""
        dtype: DTypeLike = np.float64
        if self._copy is None:
            X: Any = self.design.take(where).toarray() - self.mean
        elif is_single or self._copy.dtype == np.float64:
            X, dtype = self._copy, self._copy.dtype
            X = X if len(where) == len(X) else X[where]
        else:
            X = self.design.take(where).toarray() - self.mean
        out, own = np.empty((X.shape[0], X.shape[1] + 1), dtype), weights.astype(dtype)
        np.multiply(X, own[:, None], out=out[:, :-1])
        out[:, -1] = own * float(self.fit_intercept)
        return out

    @property
    def _dense(self) -> NDArray[np.floating] | None:
        return self.design.X if isinstance(self.design, DenseDesign) else None

    def _block_rows(self, k: int) -> int:
        n, d = self.design.shape
        return n if n * d * k < SMALL_WORK else rows_per_block(n, d)

    def _strands(self, k: int) -> list[tuple[int, int]]:
        n, d = self.design.shape
        return row_strands(n, d, n * d * k)

    def _added(
        self,
        X: NDArray[Any],
        k: int,
        made: Callable[[slice, NDArray[Any]], Array],
        dtype: DTypeLike = np.float64,
    ) -> Array:
        """sum_i T_i [x_i, 1], of shape (d + 1, k), where T is made block by block."""
        d, rows, each = X.shape[1], self._block_rows(k), _rows_at_once(X.shape[1], k)

        def work(strand: tuple[int, int]) -> Array:
            out = np.zeros((k, d + 1), dtype)
            for start in range(*strand, rows):
                where = slice(start, min(start + rows, strand[1]))
                block = X[where]
                T = made(where, block).T
                for first in range(0, len(block), each):
                    some = slice(first, first + each)
                    out[:, :-1] += T[:, some] @ block[some]
                out[:, -1] += T.sum(axis=1)
            return out

        parts = run_strands(work, self._strands(k))
        out = np.ascontiguousarray(fold(parts).T, dtype=np.float64)
        if not self.fit_intercept:
            out[-1] = 0.0
        return out


def _forth(W: NDArray[Any], block: NDArray[Any], out: Array | None = None) -> NDArray[Any]:
    """W block^T for few rows W."""
    out = np.empty((len(W), len(block)), W.dtype) if out is None else out
    rows = _rows_at_once(block.shape[1], len(W))
    for start in range(0, len(block), rows):
        some = slice(start, start + rows)
        out[:, some] = W @ block[some].T
    return out


def _rows_at_once(d: int, k: int) -> int:
    unpacked = _UNPACKED // (d * k) // 16 * 16
    is_worth = k > 1 and unpacked >= _LEAST_ROWS and d >= _MANY_COLUMNS
    return min(_MOST_ROWS, unpacked) if is_worth else 1 << 30
