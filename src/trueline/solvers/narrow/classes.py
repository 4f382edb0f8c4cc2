"""Rows sorted by class, and what is known of the rows of each class."""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["ClassRows"]

Array = NDArray[np.float64]
Codes = NDArray[np.intp]


class ClassRows(NamedTuple):
    """Rows sorted by class, column by column, with the sums over each class.

    Attributes
    ----------
    columns : array of shape (p, n)
        The columns of X less their middle, and a constant one if there is an intercept.
    weights : array of shape (n,)
    order : array of shape (n,)
        Where the sorted rows were.
    bounds : array of shape (classes + 1,)
        Where the rows of each class begin.
    shares : array of shape (classes,)
        Sums of the weights.
    totals, grams : arrays of shape (classes, p) and (classes, p, p)
        sum_i s_i a_i and sum_i s_i a_i a_i^T.
    middle : array of shape (d,)
        The mean of all rows; zero without an intercept.
    farthest : array of shape (classes,)
        The largest distance of a row from there.

    Examples
    --------
    >>> import numpy as np
    >>> from trueline.solvers.narrow.classes import ClassRows
    >>> X, codes = np.array([[1.0], [2.0], [3.0]]), np.array([1, 0, 1])
    >>> rows = ClassRows.of(X, codes, 2, None, fit_intercept=True)
    >>> rows.columns.tolist(), rows.totals.tolist()
    ([[0.0, -1.0, 1.0], [1.0, 1.0, 1.0]], [[0.0, 1.0], [0.0, 2.0]])
    """

    columns: Array
    weights: Array
    order: Codes
    bounds: NDArray[np.int64]
    shares: Array
    totals: Array
    grams: Array
    middle: Array
    farthest: Array

    @classmethod
    def of(
        cls, X: Array, codes: Codes, count: int, weights: Array | None, *, fit_intercept: bool
    ) -> ClassRows:
        """Sort, and sum up."""
        (n, d), p = X.shape, X.shape[1] + fit_intercept
        order = np.argsort(codes, kind="stable")
        columns = np.empty((p, n))
        columns[:d] = X[order].T
        columns[d:] = 1.0
        middle = columns[:d].mean(axis=1) if fit_intercept else np.zeros(d)
        if fit_intercept:
            columns[:d] -= middle[:, None]
        s = np.ones(n) if weights is None else np.ascontiguousarray(weights[order])
        bounds = np.zeros(count + 1, dtype=np.int64)
        np.cumsum(np.bincount(codes, minlength=count), out=bounds[1:])
        squares = np.einsum("ji,ji->i", columns[:d], columns[:d])
        shares, farthest = np.zeros(count), np.zeros(count)
        totals, grams = np.zeros((count, p)), np.zeros((count, p, p))
        for c, (start, stop) in enumerate(pairwise(bounds)):
            block, own = columns[:, start:stop], s[start:stop]
            scaled = block if weights is None else block * own
            shares[c], totals[c], grams[c] = own.sum(), scaled.sum(axis=1), scaled @ block.T
            farthest[c] = np.sqrt(squares[start:stop].max(initial=0.0))
        return cls(columns, s, order, bounds, shares, totals, grams, middle, farthest)

    @property
    def squares(self) -> Array:
        """sum_i s_i x_i^2, of shape (classes, d)."""
        return self.grams.diagonal(axis1=1, axis2=2)[:, : len(self.middle)]

    def is_ordinary(self) -> bool:
        """Whether all numbers are finite, and no square left the range of doubles."""
        size = self.grams.diagonal(axis1=1, axis2=2).sum(axis=0)
        present = size[size != 0]
        empty = self.columns[size == 0]
        fine = np.isfinite(self.grams).all() and np.isfinite(self.farthest).all()
        fine = fine and ((present > 1e-200) & (present < 1e200)).all()
        return bool(fine and not empty.any())
