"""A design seen through centring and scaling, without touching the numbers.

V = (X - 1 c^T) diag(t)

V W   = X (t W) - 1 (c.t W)
V^T U = t (X^T U - c 1^T U)
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from trueline.design.base import Accuracy, Array, Design, SecondMoments
from trueline.design.dense import DenseDesign

__all__ = ["StandardizedDesign"]


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

    def _column(self, vector: Array, like: Array) -> Array:
        return vector if like.ndim == 1 else vector[:, None]

    def matvec(self, W: Array) -> Array:
        scaled = self._column(self.scale, W) * W
        # Not BLAS, whose sums depend on the number of threads.
        return self.base.matvec(scaled) - np.einsum("j,j...->...", self.offset, scaled)

    def rmatvec(self, U: Array) -> Array:
        offset = self._column(self.offset, U)
        return self._column(self.scale, U) * (self.base.rmatvec(U) - offset * U.sum(axis=0))

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
