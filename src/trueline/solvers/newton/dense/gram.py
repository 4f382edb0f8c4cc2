r"""A weighted Gram matrix that follows its weights.

After a few steps of Newton's method few rows still change the piece of their loss that they are on.
H(h') = H(h) + sum_i (h'_i - h_i) a_i a_i^T needs these rows only. Rows taken out leave rounding
behind, relative to the largest H there was: when too little is left above it, H is formed afresh.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from trueline.solvers.newton.dense.rows import StandardRows

__all__ = ["FollowingGram"]

Array = NDArray[np.float64]

# Changed rows are gathered and summed twice as slowly as all rows in their place.
_FEW = 0.4
# Rows with weight are gathered if they are fewer than this share of all.
_SPARSE = 0.5
# H is formed afresh when its diagonal fell below this share of what it was.
_LOST = 1e-5


class FollowingGram:
    """H = sum_i h_i a_i a_i^T for the present h; first h_i = bound s_i, known from the start."""

    def __init__(self, rows: StandardRows, bound: float) -> None:
        self._rows = rows
        self.h = bound * rows.weights
        self.whole = bound * rows.gram
        self.matrix = self.whole
        self._largest = self.matrix.diagonal().copy()
        self.formed = self.updated = 0

    def follow(self, h: Array) -> Array:
        """H for other h."""
        changed = np.flatnonzero(h != self.h)
        present = int(np.count_nonzero(h))
        if len(changed) == 0:
            return self.matrix
        if len(changed) > _FEW * present or not self._update(h, changed):
            self._form(h, present)
        self.h = h
        return self.matrix

    def _update(self, h: Array, changed: NDArray[np.intp]) -> bool:
        difference = h[changed] - self.h[changed]
        matrix = self.matrix
        for sign in (1.0, -1.0):
            some = sign * difference > 0
            if some.any():
                part = self._rows.gram_of(sign * difference[some], changed[some])
                matrix = matrix + sign * part
        if (matrix.diagonal() <= _LOST * self._largest).any():
            return False
        self.updated += 1
        self.matrix = matrix
        self._largest = np.maximum(self._largest, matrix.diagonal())
        return True

    def _form(self, h: Array, present: int) -> None:
        if present < _SPARSE * len(h):
            some = np.flatnonzero(h)
            self.matrix = self._rows.gram_of(h[some], some)
        else:
            self.matrix = self._rows.gram_of(h)
        self.formed += 1
        self._largest = self.matrix.diagonal().copy()
