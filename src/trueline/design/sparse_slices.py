"""Columns of a matrix that is held by rows: those that are asked for, compressed.

A transposition moves every entry to a place far away. Methods that work on a few columns at a time
need the entries of these alone: one pass over the rows, each thread on its share of them, writes
behind one another what the rows have of each column. How many entries that is going to be is
counted once, for all columns.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from trueline._jit import kernel
from trueline.design.base import Array
from trueline.design.sparse_columns import Indices, cuts
from trueline.design.sparse_products import Starts
from trueline.threads import run_strands

__all__ = ["ColumnsOfRows"]

Integers = NDArray[np.int64]

_STRANDS = 2
# So many passes over all rows cost as much as a transposition.
_PASSES = 8


@kernel
def _count(indices: Indices, first: int, last: int, counts: Integers) -> None:
    """Add how many of the entries first..last-1 each column has."""
    for e in range(np.uint64(first), np.uint64(last)):
        counts[np.uint64(indices[e])] += 1


@kernel
def _collect(
    data: Array,
    indices: Indices,
    indptr: Starts,
    place: Indices,
    ahead: Integers,
    values: Array,
    rows: Indices,
    first: int,
    last: int,
) -> None:
    """The entries of rows first..last-1 to their columns, each to where the column goes on.

    ``place`` is the position of a column among those that are asked for, -1 for the others;
    ``ahead`` is where these go on.
    """
    for i in range(first, last):
        for e in range(np.uint64(indptr[i]), np.uint64(indptr[i + 1])):
            column = place[np.uint64(indices[e])]
            if column >= 0:
                to = np.uint64(ahead[np.uint64(column)])
                values[to] = data[e]
                rows[to] = i
                ahead[np.uint64(column)] += 1


class ColumnsOfRows:
    """The columns of a compressed-row matrix of doubles.

    Parameters
    ----------
    rows : csr_array
        Without duplicate entries.

    Examples
    --------
    >>> import numpy as np, scipy.sparse as sp
    >>> from trueline.design.sparse_slices import ColumnsOfRows
    >>> X = sp.csr_array(np.array([[1.0, 0.0, 2.0], [0.0, 3.0, 4.0]]))
    >>> ColumnsOfRows(X).take(np.array([0, 2])).toarray()
    array([[1., 2.],
           [0., 4.]])
    """

    def __init__(self, rows: sp.csr_array) -> None:
        self.rows, self.shape = rows, rows.shape
        self._strands = cuts(rows.indptr, _STRANDS)
        self._counts = run_strands(self._count, self._strands)
        self._taken = 0
        self._whole: sp.csc_array | None = None

    def _count(self, strand: tuple[int, int]) -> Integers:
        X, counts = self.rows, np.zeros(self.shape[1], dtype=np.int64)
        _count(X.indices, X.indptr[strand[0]], X.indptr[strand[1]], counts)
        return counts

    def take(self, chosen: NDArray[np.intp]) -> sp.csc_array:
        """Some columns, in the given order."""
        self._taken += 1
        if self._whole is None and self._taken > _PASSES:
            self._whole = self._collected(np.arange(self.shape[1]))
        return self._collected(chosen) if self._whole is None else self._whole[:, chosen]

    def _collected(self, chosen: NDArray[np.intp]) -> sp.csc_array:
        X, counts = self.rows, [own[chosen] for own in self._counts]
        indptr = np.concatenate([[0], np.cumsum(np.sum(counts, axis=0))])
        place = np.full(self.shape[1], -1, dtype=np.int32)
        place[chosen] = np.arange(len(chosen), dtype=np.int32)
        values, rows = np.empty(indptr[-1]), np.empty(indptr[-1], dtype=np.int32)
        before = np.cumsum([np.zeros_like(counts[0]), *counts[:-1]], axis=0)

        def work(number: int) -> None:
            ahead = indptr[:-1] + before[number]
            strand = self._strands[number]
            _collect(X.data, X.indices, X.indptr, place, ahead, values, rows, *strand)

        run_strands(work, range(len(self._strands)))
        return sp.csc_array((values, rows, indptr), shape=(self.shape[0], len(chosen)))
