"""Some columns of a sparse design held by rows: products with V^T V in one reading.

A row is read once for its score and, while it is still at hand, once more for its share of the
result. The vectors that it is combined with have one number per chosen column: they stay in the
nearest cache, which those with one number per row of the design do not.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from trueline._jit import kernel
from trueline.design.base import Array
from trueline.design.sparse_columns import Indices, column_dot, cuts
from trueline.threads import run_strands

__all__ = ["ChosenRows"]

Integers = NDArray[np.intp]

# The cuts depend on the data alone, so that sums do not change with the number of threads.
_STRANDS = 4


@kernel
def _fill(
    data: Array,
    indices: Indices,
    indptr: Indices,
    place: Indices,
    out_data: Array,
    out_places: Indices,
    out_indptr: NDArray[np.int64],
) -> None:
    """Copy the entries of the columns that have a place, row by row."""
    p = np.uint64(0)
    for i in range(len(indptr) - 1):
        for e in range(np.uint64(indptr[i]), np.uint64(indptr[i + 1])):
            k = place[np.uint64(indices[e])]
            # Written always, kept if there is a place: no branch to foresee.
            out_data[p], out_places[p] = data[e], k
            p += np.uint64(k >= 0)
        out_indptr[i + 1] = p


@kernel
def _scores(
    data: Array, places: Indices, indptr: Array, x: Array, out: Array, first: int, last: int
) -> None:
    """out[i] = x . row i, for rows first..last-1."""
    for i in range(first, last):
        out[i] = column_dot(data, places, indptr[i], indptr[i + 1], x)


@kernel
def _sums(
    data: Array, places: Indices, indptr: Array, r: Array, out: Array, first: int, last: int
) -> None:
    """Add sum_i r_i row_i, i = first..last-1, to ``out``."""
    for i in range(first, last):
        factor = r[i]
        for e in range(np.uint64(indptr[i]), np.uint64(indptr[i + 1])):
            out[np.uint64(places[e])] += factor * data[e]


@kernel
def _both(
    data: Array,
    places: Indices,
    indptr: Array,
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
    X : sparse array by rows, of shape (n, d)
    chosen : array of int
        Numbers of columns, each once.
    count : int
        How many entries they have.
    root : array of shape (n,), optional
        Factors of the rows.
    """

    def __init__(self, X: sp.csr_array, chosen: Integers, count: int, root: Array | None) -> None:
        n, d = X.shape
        place = np.full(d, -1, dtype=np.int32)
        place[chosen] = np.arange(len(chosen), dtype=np.int32)
        data, places = np.empty(count + 1), np.empty(count + 1, dtype=np.int32)
        indptr = np.zeros(n + 1, dtype=np.int64)
        _fill(X.data, X.indices, X.indptr, place, data, places, indptr)
        if root is not None:
            data[:-1] *= np.repeat(root, np.diff(indptr))
        self.size = len(chosen)
        self._entries = data, places, indptr
        self._cuts = cuts(indptr, _STRANDS)

    def _added(self, work: Callable[[Array, tuple[int, int]], None]) -> Array:
        """The sum over the strands of what each adds to a vector of its own."""
        out = np.zeros((len(self._cuts), self.size))
        run_strands(lambda i: work(out[i], self._cuts[i]), range(len(self._cuts)))
        return out[0] if len(out) == 1 else out.sum(axis=0)

    def scores(self, x: Array) -> Array:
        """V x."""
        out = np.empty(len(self._entries[2]) - 1)
        run_strands(lambda strand: _scores(*self._entries, x, out, *strand), self._cuts)
        return out

    def sums(self, r: Array) -> Array:
        """V^T r."""
        return self._added(lambda out, strand: _sums(*self._entries, r, out, *strand))

    def both(self, x: Array) -> tuple[Array, Array]:
        """V x and V^T V x."""
        scores = np.empty(len(self._entries[2]) - 1)
        return scores, self._added(
            lambda out, strand: _both(*self._entries, x, scores, out, *strand)
        )
