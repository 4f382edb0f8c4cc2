r"""A design seen by its columns: what coordinate methods need.

With weights s and means m (zero without an intercept), v_j = sqrt(s) (x_j - m_j) are the columns
that a weighted, centred problem is made of. Three operations suffice:

- products X^T R of all columns with a few residuals at once, each column read once;
- inner products v_i.v_j of chosen columns, which are gathered once and kept;
- combinations V w of the gathered columns.

Sparse columns are never densified: centring is implicit, v_i.v_j = x_i^T S x_j - W m_i m_j.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trueline.design.base import Array, Design
from trueline.design.dense import DenseDesign
from trueline.design.sparse import SparseDesign
from trueline.design.sparse_columns import Reach, SparseStore
from trueline.design.sparse_rows import ChosenRows

Integers = NDArray[np.intp]


class Columns(ABC):
    """The columns of a design, with weights and means.

    Attributes
    ----------
    mean : array of shape (d,)
    gathered : int
        How many columns were gathered, in the order in which they were asked for.
    """

    def __init__(self, design: Design, weights: Array | None, mean: Array) -> None:
        self.n, self.d = design.shape
        self.weights, self.mean = weights, mean
        self.root = None if weights is None else np.sqrt(weights)
        self.total = float(self.n) if weights is None else float(weights.sum())
        self.gathered = 0

    @abstractmethod
    def correlations(self, R: Array, level: float = 0.0) -> Array:
        """v_j.r for all columns j and each row r of R, of shape (m, d); r has the roots inside.

        Where it is certain to be below the level it may be given as zero.
        """

    @abstractmethod
    def gather(self, new: Integers) -> Array:
        """Gather further columns; their products (len(new), gathered) with all, old and new."""

    @abstractmethod
    def take_in(self, new: Integers) -> Array:
        """Gather further columns; only their squares."""

    @abstractmethod
    def combine(self, W: Array) -> Array:
        """(V w)^T for each row w of W, of shape (m, gathered)."""


class DenseColumns(Columns):
    """Of an array in either memory order."""

    def __init__(self, design: DenseDesign, weights: Array | None, mean: Array) -> None:
        super().__init__(design, weights, mean)
        self._design, self.X = design, design.X
        self._V = np.empty((0, self.n))

    @property
    def rows(self) -> Array:
        """The gathered columns v_j, one per row."""
        return self._V[: self.gathered]

    def correlations(self, R: Array, level: float = 0.0) -> Array:
        rooted = R if self.root is None else R * self.root
        out = np.ascontiguousarray(self._design.rmatvec(np.ascontiguousarray(rooted.T)).T)
        if self.mean.any():
            out -= np.outer(rooted.sum(axis=1), self.mean)
        return out

    def take_in(self, new: Integers) -> Array:
        rows = self._append(new)
        return np.einsum("ij,ij->i", rows, rows)

    def gather(self, new: Integers) -> Array:
        rows = self._append(new)
        return rows @ self._V[: self.gathered].T

    def _append(self, new: Integers) -> Array:
        start, stop = self.gathered, self.gathered + len(new)
        if stop > len(self._V):
            larger = np.empty((max(stop, min(2 * start, start + 1024), 64), self.n))
            larger[:start] = self._V[:start]
            self._V = larger
        rows = self._V[start:stop]
        rows[:] = self.X.T[new]
        if self.mean.any():
            rows -= self.mean[new, None]
        if self.root is not None:
            rows *= self.root
        self.gathered = stop
        return rows

    def combine(self, W: Array) -> Array:
        return W @ self._V[: self.gathered]


class SparseColumns(Columns):
    """Of compressed columns; centring is implicit."""

    def __init__(self, design: SparseDesign, weights: Array | None, mean: Array) -> None:
        super().__init__(design, weights, mean)
        self.store = SparseStore(design, self.root)
        self.chosen = np.empty(0, dtype=np.intp)
        self._by_rows: ChosenRows | None = None
        self._reach: Reach | None = None
        self._left_out = 0  # so many of the chosen columns are not asked of the store

    @property
    def by_rows(self) -> ChosenRows:
        """The gathered columns, sqrt(s) x_j, not centred, by rows."""
        if self._by_rows is None:
            self._by_rows = ChosenRows(self.store.entries, self.n)
        if self._by_rows.size < self.gathered:
            self._by_rows.extend(self.chosen[self._by_rows.size :])
        return self._by_rows

    def correlations(self, R: Array, level: float = 0.0) -> Array:
        out = self._outside(R, level)
        if self._left_out:
            known = self.chosen[: self._left_out]
            sums = np.array([self.by_rows.sums(r) for r in R])[:, : self._left_out]
            out[:, known] = sums - np.outer(self._totals(R), self.mean[known])
        return out

    def correlations_outside(self, R: Array, within: Array, level: float) -> Array:
        """v_j.r for all columns and each row r of R.

        Those of the gathered columns are given, in the order of entry.
        """
        if self._left_out < self.gathered:
            self._remembered().leave_out(self.chosen[self._left_out :])
            self._left_out = self.gathered
        out = self._outside(R, level)
        out[:, self.chosen] = within
        return out

    def _remembered(self) -> Reach:
        if self._reach is None:
            self._reach = self.store.reach()
        return self._reach

    def _totals(self, R: Array) -> Array:
        return np.asarray(R.sum(axis=1) if self.root is None else R @ self.root)

    def _outside(self, R: Array, level: float) -> Array:
        R = np.ascontiguousarray(R)
        return self.store.correlate(R, self.mean, self._totals(R), level, self._remembered())

    def _append(self, new: Integers) -> None:
        self.chosen = np.append(self.chosen, new)
        self.gathered = len(self.chosen)

    def take_in(self, new: Integers) -> Array:
        self._append(new)
        squares = self.store.squares(new)
        return np.maximum(squares - self.total * self.mean[new] ** 2, 0.0)

    def gather(self, new: Integers) -> Array:
        self._append(new)
        out = self.store.products(self.chosen, new)
        mean = self.mean[self.chosen]
        if mean.any():
            out -= self.total * np.outer(mean, self.mean[new])
        return out.T

    def combine(self, W: Array) -> Array:
        out = np.array([self.store.combine(self.chosen, w) for w in np.ascontiguousarray(W)])
        mean = self.mean[self.chosen]
        if mean.any():
            shift = (W @ mean)[:, None]
            out -= shift if self.root is None else shift * self.root
        return out


def columns_of(design: Design, weights: Array | None, mean: Array) -> Columns:
    """The columns of a design; one that only has rows is read into memory.

    Examples
    --------
    >>> import numpy as np
    >>> from trueline.design import as_design
    >>> from trueline.design.columns import columns_of
    >>> columns = columns_of(as_design(np.array([[1.0, 2.0], [3.0, 2.0]])), None, np.zeros(2))
    >>> columns.correlations(np.array([[1.0, 1.0]]))
    array([[4., 4.]])
    >>> columns.gather(np.array([1]))
    array([[8.]])
    """
    if isinstance(design, SparseDesign):
        return SparseColumns(design, weights, mean)
    if not isinstance(design, DenseDesign):
        design = DenseDesign(np.asfortranarray(design.toarray()))
    return DenseColumns(design, weights, mean)


def submatrix(design: Design, rows: Integers, columns: Integers) -> Any:
    """Some rows and columns, as an array or as a sparse array."""
    if isinstance(design, DenseDesign):
        return design.X[np.ix_(rows, columns)].astype(np.float64, copy=False)
    if isinstance(design, SparseDesign):
        return design.by_rows[rows][:, columns]
    return design.take(rows).toarray()[:, columns]
