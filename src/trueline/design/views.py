"""Designs seen through other designs, without touching the numbers: standardised, and augmented.

Centring and scaling:

V = (X - 1 c^T) diag(t)

V W   = X (t W) - 1 (c.t W)
V^T U = t (X^T U - c 1^T U)

One more column that is constant: [X, c 1], without a copy of X.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from trueline.design.base import Accuracy, Array, Design, SecondMoments
from trueline.design.dense import DenseDesign
from trueline.design.sparse import SparseDesign


class StandardizedDesign(Design):
    """Another design with an offset subtracted from and a scale multiplied to each column.

    Parameters
    ----------
    base : Design
    offset, scale : array of shape (d,)
        The scale must not be zero.

    Examples
    --------
    >>> import numpy as np
    >>> from trueline.design import DenseDesign, StandardizedDesign
    >>> X = np.array([[1.0], [3.0]])
    >>> StandardizedDesign(DenseDesign(X), np.array([2.0]), np.array([0.5])).toarray().ravel()
    array([-0.5,  0.5])
    """

    def __init__(self, base: Design, offset: Array, scale: Array) -> None:
        if not np.all(np.isfinite(scale) & (scale != 0)):
            raise ValueError("scale must be finite and not zero; leave constant columns at 1.")
        self.base, self.offset, self.scale = base, offset, scale
        self.shape, self.dtype, self.nonzeros = base.shape, base.dtype, base.nonzeros
        self.is_sparse = base.is_sparse
        self._is_scaled = bool((scale != 1).any())

    def _column(self, vector: Array, like: Array) -> Array:
        return vector if like.ndim == 1 else vector[:, None]

    def matvec(self, W: Array) -> Array:
        scaled = self._column(self.scale, W) * W if self._is_scaled else W
        # Not BLAS, whose sums depend on the number of threads.
        return self.base.matvec(scaled) - np.einsum("j,j...->...", self.offset, scaled)

    def rmatvec(self, U: Array) -> Array:
        offset = self._column(self.offset, U)
        centred = self.base.rmatvec(U) - offset * U.sum(axis=0)
        return self._column(self.scale, U) * centred if self._is_scaled else centred

    def _shift(self, shift: Array | None) -> Array:
        if shift is None:
            return self.offset
        return self.offset + shift / self.scale

    def second_moments(self, Y: Array, weights: Array | None, shift: Array | None) -> SecondMoments:
        sums = self.base.second_moments(Y, weights, self._shift(shift))
        scale, root = self.scale, np.sqrt(sums.size)
        if shift is not None:
            # offset + shift / scale has rounded: as much as a mean of that error would do.
            count = float(self.shape[0] if weights is None else weights.sum())
            root = root + np.abs(self.offset) * np.sqrt(count) * 2 / (sums.terms / 2 + 16)
        return SecondMoments(
            total=scale * sums.total,
            gram=np.outer(scale, scale) * sums.gram,
            cross=scale[:, None] * sums.cross,
            size=(scale * root) ** 2,
            terms=sums.terms,
        )

    def kernel(self, weights: Array | None, shift: Array | None) -> Array:
        return DenseDesign(self.toarray()).kernel(weights, shift)

    def column_means(self, weights: Array | None) -> Array:
        return self.scale * (self.base.column_means(weights) - self.offset)

    def column_largest(self) -> Array:
        largest = np.zeros(self.shape[1])
        for _, block in self.blocks(4096):
            np.maximum(largest, np.max(np.abs(block), axis=0, initial=0.0), out=largest)
        return largest

    def column_squares(self, weights: Array | None, shift: Array | None) -> Array:
        return self.scale**2 * self.base.column_squares(weights, self._shift(shift))

    def row_squares(self, shift: Array | None) -> Array:
        out = np.empty(self.shape[0])
        for rows, block in self.blocks(4096):
            centred = block if shift is None else block - shift
            out[rows] = np.einsum("ij,ij->i", centred, centred)
        return out

    def accuracy(self, weights: Array | None, magnitude: Array | None = None) -> Accuracy:
        # Offsets are multiplied out, so cancellation is relative to the uncentred numbers.
        base = self.base.accuracy(weights)
        n, d = self.shape
        total = n if weights is None else weights.sum()
        if magnitude is None:
            magnitude = np.abs(self.scale) * (base.magnitude + np.abs(self.offset) * np.sqrt(total))
        return Accuracy(base.row_terms + d + 4, base.column_terms + n + 4, magnitude)

    def blocks(self, rows: int) -> Iterator[tuple[slice, Array]]:
        for where, block in self.base.blocks(rows):
            yield where, (block - self.offset) * self.scale

    def take(self, rows: NDArray[np.intp] | slice) -> StandardizedDesign:
        return StandardizedDesign(self.base.take(rows), self.offset, self.scale)

    def row(self, i: int) -> Array:
        return (self.base.row(i) - self.offset) * self.scale


class AugmentedDesign(Design):
    """Another design and a last column of one number: an intercept that may be penalised.

    Parameters
    ----------
    base : Design
    constant : float

    Examples
    --------
    >>> import numpy as np
    >>> from trueline.design import AugmentedDesign, DenseDesign
    >>> AugmentedDesign(DenseDesign(np.array([[1.0], [3.0]])), 2.0).toarray()
    array([[1., 2.],
           [3., 2.]])
    """

    def __init__(self, base: Design, constant: float) -> None:
        self.base, self.constant = base, float(constant)
        n, d = base.shape
        self.shape, self.dtype, self.nonzeros = (n, d + 1), base.dtype, base.nonzeros + n
        self.is_sparse, self.is_converted = base.is_sparse, base.is_converted
        self.is_sequential = base.is_sequential

    @property
    def whereabouts(self) -> str:  # type: ignore[override]
        return self.base.whereabouts

    def sample(self, count: int) -> NDArray[np.intp]:
        return self.base.sample(count)

    def mapped(self, make: Callable[[Design], Design], columns: int) -> Design:
        constant = self.constant
        return self.base.mapped(lambda part: make(AugmentedDesign(part, constant)), columns)

    def each(self, make: Callable[..., Any], *by_row: Array | None) -> Iterator[Any]:
        constant = self.constant
        return self.base.each(
            lambda part, *own: make(AugmentedDesign(part, constant), *own), *by_row
        )

    def summed(
        self,
        make: Callable[..., Any],
        *by_row: Array | None,
        add: Callable[[Any, Any], Any] = operator.add,
    ) -> Any:
        constant = self.constant
        return self.base.summed(
            lambda part, *own: make(AugmentedDesign(part, constant), *own), *by_row, add=add
        )

    def materialised(self) -> Design:
        """The same matrix with the column written out, for whoever reads the entries themselves."""
        if isinstance(self.base, SparseDesign):
            column = sp.csr_array(np.full((self.shape[0], 1), self.constant))
            return SparseDesign(sp.hstack([self.base.X, column], format="csr"))
        return DenseDesign(self.toarray())

    def is_same(self, other: Design) -> bool:
        constant = getattr(other, "constant", None)
        return constant == self.constant and self.base.is_same(other.base)  # type: ignore[attr-defined]

    def matvec(self, W: Array) -> Array:
        return self.base.matvec(W[:-1]) + self.constant * W[-1]

    def rmatvec(self, U: Array) -> Array:
        last = self.constant * U.sum(axis=0, keepdims=True)
        return np.concatenate([self.base.rmatvec(U), last])

    def curved_product(self, H: Array, V: Array, level: Array) -> tuple[Array, Array]:
        image, total = self.base.curved_product(H, V[:-1], level + self.constant * V[-1])
        return np.concatenate([image, self.constant * total[None]]), total

    def second_moments(self, Y: Array, weights: Array | None, shift: Array | None) -> SecondMoments:
        own = None if shift is None else shift[:-1]
        centre = 0.0 if shift is None else float(shift[-1])
        level = self.constant - centre
        sums = self.base.second_moments(Y, weights, own)
        s = np.ones(self.shape[0]) if weights is None else weights
        count, of_target = float(s.sum()), s @ Y
        gram = np.empty((self.shape[1],) * 2)
        gram[:-1, :-1] = sums.gram
        gram[-1, :-1] = gram[:-1, -1] = level * sums.total
        gram[-1, -1] = level**2 * count
        return SecondMoments(
            total=np.append(sums.total, level * count),
            gram=gram,
            cross=np.vstack([sums.cross, level * of_target]),
            size=np.append(sums.size, (abs(self.constant) + abs(centre)) ** 2 * count),
            terms=max(sums.terms, self.shape[0]),
        )

    def kernel(self, weights: Array | None, shift: Array | None) -> Array:
        return DenseDesign(self.toarray()).kernel(weights, shift)

    def column_means(self, weights: Array | None) -> Array:
        return np.append(self.base.column_means(weights), self.constant)

    def column_largest(self) -> Array:
        return np.append(self.base.column_largest(), abs(self.constant))

    def extent(self) -> tuple[float, float]:
        """The largest magnitude, and the least that is not zero, of sparse rows."""
        largest, least = self.base.extent()  # type: ignore[attr-defined]
        own = abs(self.constant)
        return max(largest, own), min(least, own or np.inf)

    @property
    def by_columns(self) -> sp.csc_array:
        if not self.is_sparse:
            return super().by_columns
        column = sp.csc_array(np.full((self.shape[0], 1), self.constant))
        return sp.hstack([self.base.by_columns, column], format="csc")

    def column_squares(self, weights: Array | None, shift: Array | None) -> Array:
        count = float(self.shape[0] if weights is None else weights.sum())
        own, level = (None, 0.0) if shift is None else (shift[:-1], float(shift[-1]))
        squares = self.base.column_squares(weights, own)
        return np.append(squares, count * (self.constant - level) ** 2)

    def row_squares(self, shift: Array | None) -> Array:
        own, level = (None, 0.0) if shift is None else (shift[:-1], float(shift[-1]))
        return self.base.row_squares(own) + (self.constant - level) ** 2

    def accuracy(self, weights: Array | None, magnitude: Array | None = None) -> Accuracy:
        base = self.base.accuracy(weights, None if magnitude is None else magnitude[:-1])
        count = float(self.shape[0] if weights is None else weights.sum())
        if magnitude is None:
            magnitude = np.append(base.magnitude, abs(self.constant) * np.sqrt(count) * (1 + 1e-8))
        terms = max(base.column_terms, float(self.shape[0]))
        return Accuracy(base.row_terms + 2, terms, magnitude)

    def blocks(self, rows: int) -> Iterator[tuple[slice, Array]]:
        for where, block in self.base.blocks(rows):
            yield where, np.column_stack([block, np.full(len(block), self.constant)])

    def take(self, rows: NDArray[np.intp] | slice) -> AugmentedDesign:
        return AugmentedDesign(self.base.take(rows), self.constant)

    def row(self, i: int) -> Array:
        return np.append(self.base.row(i), self.constant)
