r"""Products with the rows [x_i, 1] of a design, for several targets at once.

A Hessian-vector product is one pass over the rows: scores, the loss's second derivative, and back.

    (V, f)  ->  X^T T,  sum_i T_i      with   T_i = s_i l''(z_i) [X V + f]_i
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from trueline.design import DenseDesign, Design
from trueline.gram.rows import SMALL_WORK, fold, row_strands, rows_per_block
from trueline.losses import Loss
from trueline.threads import run_strands

__all__ = ["Rows"]

Array = NDArray[np.float64]

# From so many numbers on Hessian-vector products read a copy in single precision.
_LARGE = 10_000_000


class Rows:
    """The rows and their weights; coefficients are of shape (d + 1, k), intercepts last.

    Parameters
    ----------
    design : Design
    weights : array of shape (n,)
    fit_intercept : bool
        Without one the last row of coefficients is zero, and so is that of gradients.
    """

    def __init__(self, design: Design, weights: Array, fit_intercept: bool) -> None:
        self.design, self.weights, self.fit_intercept = design, weights, fit_intercept
        self._copy: NDArray[np.floating] | None = None

    def scores(self, V: Array) -> Array:
        """X V + f of all rows."""
        return self.design.matvec(V[:-1]) + V[-1]

    def total(self, T: Array) -> Array:
        """sum_i T_i [x_i, 1]."""
        out = np.empty((self.design.shape[1] + 1, T.shape[1]))
        out[:-1] = self.design.rmatvec(T)
        out[-1] = T.sum(axis=0) if self.fit_intercept else 0.0
        return out

    def _single(self, design: DenseDesign) -> NDArray[np.floating]:
        """Large data in single precision: steps need few digits, and gradients are exact anyway."""
        if self._copy is None:
            is_large = design.X.size >= _LARGE
            self._copy = design.X.astype(np.float32 if is_large else np.float64, copy=False)
        return self._copy

    def bent(self, loss: Loss, bending: Array, V: Array) -> Array:
        """The Hessian of the losses, applied to V."""
        design, s = self.design, self.weights
        n, d = design.shape
        if not isinstance(design, DenseDesign) or n * d * V.shape[1] < SMALL_WORK:
            return self.total(s[:, None] * loss.bend(bending, self.scores(V)))
        X, rows = self._single(design), rows_per_block(n, d)
        along = V[:-1].astype(X.dtype)

        def work(strand: tuple[int, int]) -> Array:
            out = np.zeros((d + 1, V.shape[1]))
            for start in range(*strand, rows):
                where = slice(start, min(start + rows, strand[1]))
                block = X[where]
                T = s[where, None] * loss.bend(bending[where], block @ along + V[-1])
                out[:-1] += block.T @ T.astype(X.dtype)
                out[-1] += T.sum(axis=0)
            return out

        out = fold(run_strands(work, row_strands(n, d, n * d * V.shape[1])))
        if not self.fit_intercept:
            out[-1] = 0.0
        return out
