"""Some columns of a sparse design held by rows: products with V^T V in one reading.

A row is read once for its score and, while it is still at hand, once more for its share of the
result. The vectors that it is combined with have one number per chosen column: they stay in the
nearest cache, which those with one number per row of the design do not.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from trueline.design.base import Array
from trueline.design.sparse_columns import Entries, Indices, column_dot, cuts
from trueline.design.sparse_products import gather, scatter
from trueline.numerics.blas import run_strands
from trueline.numerics.jit import kernel

Integers = NDArray[np.intp]
Starts = NDArray[np.int64]

# The cuts depend on the data alone, so that sums do not change with the number of threads.
_STRANDS = 4
# Rows of so few entries are read in less time than two threads need to find each other.
_SMALL_WORK = 400_000


@kernel
def _count(indices: Indices, indptr: Indices, chosen: Integers, counts: Starts) -> None:
    """counts[i + 1] = how many entries row i has in the chosen columns."""
    for j in chosen:
        for e in range(np.uint64(indptr[j]), np.uint64(indptr[j + 1])):
            counts[np.uint64(indices[e]) + np.uint64(1)] += 1


@kernel
def _fill(
    data: Array,
    indices: Indices,
    indptr: Indices,
    chosen: Integers,
    following: Starts,
    out_data: Array,
    out_places: Indices,
) -> None:
    """Hand the entries of the chosen columns out to their rows, column by column."""
    for k in range(len(chosen)):
        j = chosen[k]
        for e in range(np.uint64(indptr[j]), np.uint64(indptr[j + 1])):
            i = np.uint64(indices[e])
            p = np.uint64(following[i])
            out_data[p], out_places[p] = data[e], k
            following[i] += 1


@kernel
def _merge(
    data: Array,
    places: Indices,
    indptr: Starts,
    new_data: Array,
    new_places: Indices,
    new_indptr: Starts,
    first_place: int,
    out_data: Array,
    out_places: Indices,
) -> None:
    """The rows of both one behind the other; places of the new ones start at ``first_place``."""
    p = np.uint64(0)
    for i in range(len(indptr) - 1):
        for e in range(np.uint64(indptr[i]), np.uint64(indptr[i + 1])):
            out_data[p], out_places[p] = data[e], places[e]
            p += np.uint64(1)
        for e in range(np.uint64(new_indptr[i]), np.uint64(new_indptr[i + 1])):
            out_data[p], out_places[p] = new_data[e], first_place + new_places[e]
            p += np.uint64(1)


@kernel
def _both(
    data: Array,
    places: Indices,
    indptr: Starts,
    x: Array,
    scores: Array,
    out: Array,
    first: int,
    last: int,
) -> None:
    """Scores of rows first..last-1, and their share of V^T V x added to ``out``."""
    for i in range(first, last):
        score = column_dot(data, places, indptr[i], indptr[i + 1], x)
        scores[i] = score
        for e in range(np.uint64(indptr[i]), np.uint64(indptr[i + 1])):
            out[np.uint64(places[e])] += score * data[e]


class ChosenRows:
    """Chosen columns of a sparse matrix by rows.

    Parameters
    ----------
    entries : Entries
        The columns of the design.
    n_rows : int
    """

    def __init__(self, entries: Entries, n_rows: int) -> None:
        self._columns, self._n_rows = entries, n_rows
        self.size = 0
        indptr = np.zeros(n_rows + 1, dtype=np.int64)
        self._entries = np.empty(0), np.empty(0, dtype=np.int32), indptr
        self._cuts = [(0, n_rows)]

    def extend(self, new: Integers) -> None:
        """Take in further columns.

        Only their entries are handed out row by row, in a small piece of memory; the rest is copied
        as it lies.
        """
        _, indices, starts = self._columns
        indptr = np.zeros(self._n_rows + 1, dtype=np.int64)
        _count(indices, starts, new, indptr)
        np.cumsum(indptr, out=indptr)
        data, places = np.empty(indptr[-1]), np.empty(indptr[-1], dtype=np.int32)
        _fill(*self._columns, new, indptr[:-1].copy(), data, places)
        if self.size:
            old, fresh = self._entries, (data, places, indptr)
            indptr = old[2] + indptr
            data, places = np.empty(indptr[-1]), np.empty(indptr[-1], dtype=np.int32)
            _merge(*old, *fresh, self.size, data, places)
        self.size += len(new)
        self._entries = data, places, indptr
        self._cuts = cuts(indptr, _STRANDS, _SMALL_WORK)

    def _added(self, work: Callable[[Array, tuple[int, int]], None]) -> Array:
        """The sum over the strands of what each adds to a vector of its own."""
        out = np.zeros((len(self._cuts), self.size))
        if len(out) == 1:
            work(out[0], self._cuts[0])
            return out[0]
        run_strands(lambda i: work(out[i], self._cuts[i]), range(len(self._cuts)))
        return np.asarray(out.sum(axis=0))

    def scores(self, x: Array) -> Array:
        """V x."""
        out = np.empty(len(self._entries[2]) - 1)
        run_strands(lambda strand: gather(*self._entries, x, out, *strand), self._cuts)
        return out

    def sums(self, r: Array) -> Array:
        """V^T r."""
        return self._added(lambda out, strand: scatter(*self._entries, r, out, *strand))

    def both(self, x: Array) -> tuple[Array, Array]:
        """V x and V^T V x."""
        scores = np.empty(len(self._entries[2]) - 1)
        return scores, self._added(
            lambda out, strand: _both(*self._entries, x, scores, out, *strand)
        )
