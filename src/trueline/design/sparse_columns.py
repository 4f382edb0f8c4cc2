r"""The columns of a sparse design: what coordinate methods need of them.

Everything works on the compressed columns as they are: columns that were chosen are a list of
their numbers, not a copy. Centring is implicit, v_i.v_j = x_i^T S x_j - W m_i m_j.

Which correlations can have become large (:class:`Reach`): a column need not be read to know that
its correlation has not. A column x whose correlation with a residual r_0 is known has, with any
other residual r,

    abs(x.r) <= abs(x.r_0) + min(||x|| ||r - r_0||, ||x||_1 max_i abs(r_i - r_0i)).

How far the residual has gone is kept as the length of its way, which is at least ||r - r_0||
whenever the column was read: one number instead of all former residuals, as the odometer of a car.
The bound with r_0 = 0 holds besides. (A static bound of this kind is the sphere test of L. El
Ghaoui, V. Viallon, T. Rabbani, "Safe feature elimination for the lasso", Pac. J. Optim. 8 (2012)
667-698; here it is renewed for each column on its own when that is read.)
"""

from __future__ import annotations

from functools import cached_property
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from trueline.design.base import Array
from trueline.design.sparse import SparseDesign
from trueline.numerics.blas import run_strands
from trueline.numerics.jit import kernel

Integers = NDArray[np.intp]
Indices = NDArray[np.int32]

# Below so many entries threads cost more than they save. The cuts depend on the data alone, so
# that sums do not change with the number of threads.
_SMALL_WORK = 100_000
_STRANDS, _SCATTERING, _WORK_OF_STRAND = 32, 4, 20_000
# So many residuals share a reading.
_AT_ONCE = 4


class Entries(NamedTuple):
    """Compressed columns sqrt(s) x_j, not centred."""

    data: Array
    indices: Indices
    indptr: Indices


# Four sums in flight hide the time an addition takes; unsigned places spare the test for negative
# ones. As one short loop the compiler puts it into its callers: written as four additions in a row
# it was called, which takes as long as ten entries.
@kernel
def column_dot(data: Array, indices: Indices, begin: int, end: int, r: Array) -> float:
    """sum_e data_e r[indices_e] over the entries begin..end-1."""
    a = b = c = d = 0.0
    for e in range(np.uint64(begin), np.uint64(end)):
        a, b, c, d = b, c, d, a + data[e] * r[np.uint64(indices[e])]
    return (a + b) + (c + d)


@kernel
def four_dots(
    data: Array, indices: Indices, begin: int, end: int, R: Array
) -> tuple[float, float, float, float]:
    """The same with the first four columns of R, which share the reading."""
    a = b = c = d = 0.0
    for e in range(np.uint64(begin), np.uint64(end)):
        row, x = np.uint64(indices[e]), data[e]
        a += x * R[row, 0]
        b += x * R[row, 1]
        c += x * R[row, 2]
        d += x * R[row, 3]
    return a, b, c, d


@kernel
def _correlate(
    data: Array,
    indices: Indices,
    indptr: Indices,
    chosen: Integers,
    r: Array,
    mean: Array,
    total: float,
    known: Array,
    out: Array,
    first: int,
    last: int,
) -> None:
    """out[j] = x_j.r - mean_j total for j = chosen[k], k = first..last-1; x_j.r is known then."""
    for k in range(first, last):
        j = chosen[k]
        known[j] = column_dot(data, indices, indptr[j], indptr[j + 1], r)
        out[j] = known[j] - mean[j] * total


@kernel
def _correlate_four(
    data: Array,
    indices: Indices,
    indptr: Indices,
    chosen: Integers,
    R: Array,
    mean: Array,
    totals: Array,
    known: Array,
    out: Array,
    first: int,
    last: int,
) -> None:
    """The same for as many residuals as ``out`` has rows, columns of R, which has four.

    They share the reading; the product with the last one is known then.
    """
    m = len(out)
    for k in range(first, last):
        j = chosen[k]
        sum_a, sum_b, sum_c, sum_d = four_dots(data, indices, indptr[j], indptr[j + 1], R)
        known[j] = sum_d
        out[0, j] = sum_a - mean[j] * totals[0]
        if m > 1:
            out[1, j] = sum_b - mean[j] * totals[1]
        if m > 2:
            out[2, j] = sum_c - mean[j] * totals[2]
        if m > 3:
            out[3, j] = sum_d - mean[j] * totals[3]


@kernel
def _sizes(data: Array, indptr: Indices, norms: Array, sums: Array) -> None:
    """The Euclidean norm of each column and the sum of its absolute values."""
    for j in range(len(norms)):
        square = total = 0.0
        for e in range(indptr[j], indptr[j + 1]):
            square += data[e] * data[e]
            total += abs(data[e])
        norms[j], sums[j] = np.sqrt(square), total


@kernel
def _scatter(
    data: Array,
    indices: Indices,
    indptr: Indices,
    chosen: Integers,
    w: Array,
    out: Array,
    first: int,
    last: int,
) -> None:
    """Add sum_k w_k x_j, j = chosen[k], k = first..last-1, to ``out``."""
    for k in range(first, last):
        factor = w[k]
        if factor == 0.0:
            continue
        j = chosen[k]
        for e in range(np.uint64(indptr[j]), np.uint64(indptr[j + 1])):
            out[np.uint64(indices[e])] += factor * data[e]


@kernel
def _products(
    data: Array,
    indices: Indices,
    indptr: Indices,
    chosen: Integers,
    new_data: Array,
    new_columns: Indices,
    new_indptr: Indices,
    out: Array,
    first: int,
    last: int,
) -> None:
    """out[k, e] += x_j.x_e with j = chosen[k], and new columns e given by rows."""
    for k in range(first, last):
        sums, j = out[k], chosen[k]
        for p in range(np.uint64(indptr[j]), np.uint64(indptr[j + 1])):
            i, x = np.uint64(indices[p]), data[p]
            for e in range(np.uint64(new_indptr[i]), np.uint64(new_indptr[i + np.uint64(1)])):
                sums[np.uint64(new_columns[e])] += x * new_data[e]


@kernel
def _squares(data: Array, indptr: Indices, chosen: Integers, out: Array) -> None:
    """out[k] = ||x_j||^2 with j = chosen[k]."""
    for k in range(len(chosen)):
        j, total = chosen[k], 0.0
        for e in range(indptr[j], indptr[j + 1]):
            total += data[e] * data[e]
        out[k] = total


def cuts(
    indptr: NDArray[np.integer], parts: int, small: int = _SMALL_WORK
) -> list[tuple[int, int]]:
    """Ranges of lines with about as many entries each; ``indptr`` counts the entries.

    Fewer entries than ``small`` are not cut.
    """
    if indptr[-1] - indptr[0] < small:
        return [(0, len(indptr) - 1)]
    parts = min(parts, (indptr[-1] - indptr[0]) // _WORK_OF_STRAND + 1)
    marks = np.linspace(indptr[0], indptr[-1], parts + 1)[1:-1]
    inner = np.searchsorted(indptr, marks)
    cuts = [0, *inner.tolist(), len(indptr) - 1]
    return [(a, b) for a, b in pairwise(cuts) if a < b]


class SparseStore:
    """Compressed columns, with the roots of weights in them or not.

    Parameters
    ----------
    design : SparseDesign
    root : array of shape (n,), optional
        Square roots of the weights; all columns are multiplied by them.
    """

    def __init__(self, design: SparseDesign, root: Array | None) -> None:
        X = design.by_columns
        self.shape = X.shape
        data = X.data if root is None else X.data * root[X.indices]
        self.entries = Entries(data, X.indices, X.indptr)

    @cached_property
    def sizes(self) -> tuple[Array, Array]:
        """The Euclidean norm of each column, and the sum of its absolute values."""
        norms, sums = np.empty(self.shape[1]), np.empty(self.shape[1])
        _sizes(self.entries.data, self.entries.indptr, norms, sums)
        return norms, sums

    def reach(self) -> Reach:
        """To be given to :meth:`correlate` by who asks for one residual after the other."""
        return Reach(*self.sizes)

    def correlate(self, R: Array, mean: Array, totals: Array, level: float, reach: Reach) -> Array:
        """x_j.r - mean_j total for all columns and each row r of R, which has a total of its own.

        It is given as zero if x_j.r is below the level for certain, as ``reach`` knows.
        """
        out = np.zeros((len(R), self.shape[1]))
        for start in range(0, len(R), _AT_ONCE):
            few = slice(start, start + _AT_ONCE)
            self._correlate_few(R[few], mean, totals[few], level, reach, out[few])
        return out

    def _correlate_few(
        self, R: Array, mean: Array, totals: Array, level: float, reach: Reach, out: Array
    ) -> None:
        """The same for at most four residuals, by one reading."""
        chosen = reach.may_matter_to(R.T, level)
        correlate: Any = _correlate
        arguments: tuple[Any, ...] = (R[0], mean, totals[0], reach.known, out[0])
        if len(R) > 1:
            side_by_side = np.empty((R.shape[1], _AT_ONCE))
            side_by_side[:, : len(R)], side_by_side[:, len(R) :] = R.T, R[-1:].T
            arguments, correlate = (side_by_side, mean, totals, reach.known, out), _correlate_four
        ends = np.linspace(0, len(chosen), 1 + self._parts(len(chosen))).astype(int).tolist()
        run_strands(
            lambda strand: correlate(*self.entries, chosen, *arguments, *strand),
            list(pairwise(ends)),
        )

    def _parts(self, count: int) -> int:
        """Into how many strands so many columns are cut."""
        entries = len(self.entries.data) * (count / max(self.shape[1], 1))
        return 1 if entries < _SMALL_WORK else _STRANDS

    def count(self, chosen: Integers) -> int:
        """How many entries chosen columns have."""
        indptr = self.entries.indptr
        return int((indptr[chosen + 1] - indptr[chosen]).sum())

    def _strands(self, chosen: Integers, parts: int) -> list[tuple[int, int]]:
        indptr = self.entries.indptr
        counts = indptr[chosen + 1] - indptr[chosen]
        return cuts(np.concatenate([[0], np.cumsum(counts)]), parts)

    def combine(self, chosen: Integers, w: Array) -> Array:
        """sum_k w_k x_j over chosen columns j."""
        strands = self._strands(chosen, _SCATTERING)
        out = np.zeros((len(strands), self.shape[0]))
        run_strands(
            lambda i: _scatter(*self.entries, chosen, w, out[i], *strands[i]), range(len(strands))
        )
        return out[0] if len(strands) == 1 else out.sum(axis=0)

    def products(self, chosen: Integers, new: Integers) -> Array:
        """x_j.x_e for chosen columns j and new columns e, of shape (chosen, new)."""
        data, indices, indptr = self.entries
        counts = indptr[new + 1] - indptr[new]
        start = np.concatenate([[0], np.cumsum(counts)])
        where = np.repeat(indptr[new] - start[:-1], counts) + np.arange(start[-1])
        parts = (data[where], indices[where], start)
        rows = sp.csc_array(parts, shape=(self.shape[0], len(new))).tocsr()
        out = np.zeros((len(chosen), len(new)))
        fresh = (rows.data, rows.indices, rows.indptr)
        run_strands(
            lambda strand: _products(*self.entries, chosen, *fresh, out, *strand),
            self._strands(chosen, _STRANDS),
        )
        return out

    def squares(self, chosen: Integers) -> Array:
        """||x_j||^2 for chosen columns."""
        out = np.empty(len(chosen))
        _squares(self.entries.data, self.entries.indptr, chosen, out)
        return out


# Room for rounding: of the level, and of a correlation that is remembered.
_ROOM = 1e-9
_ROUNDING = 1e-12


@kernel
def _travel(r: Array, last: Array, ways: Array) -> tuple[float, float]:
    """Go from ``last`` to r: both ways grow, and r is written down. Returns two norms of r."""
    step = most_step = length = largest = 0.0
    for i in range(len(r)):
        change, value = abs(r[i] - last[i]), abs(r[i])
        step += change * change
        length += value * value
        most_step, largest = max(most_step, change), max(largest, value)
        last[i] = r[i]
    ways[0] += np.sqrt(step)
    ways[1] += most_step
    return np.sqrt(length), largest


@kernel
def _within_reach(
    norms: Array,
    sums: Array,
    length: float,
    largest: float,
    known: Array,
    read_at: Array,
    ways: Array,
    rounding: float,
    level: float,
    out: Integers,
) -> int:
    """Write down the columns whose correlation may be as large as the level; how many.

    They are going to be read.
    """
    count = 0
    for j in range(len(norms)):
        norm, total = norms[j], sums[j]
        moved = min(norm * (ways[0] - read_at[0, j]), total * (ways[1] - read_at[1, j]))
        bound = abs(known[j]) + moved + rounding * norm
        out[count] = j  # written always, kept if it may matter: no branch to foresee
        count += int(not min(norm * length, total * largest, bound) < level)
    for k in range(count):
        read_at[0, out[k]], read_at[1, out[k]] = ways[0], ways[1]
    return count


class Reach:
    """The correlations of all columns with a residual that moves, as far as they are known.

    Parameters
    ----------
    norms, sums : arrays of shape (d,)
        The Euclidean norm of each column, and the sum of its absolute values.

    Attributes
    ----------
    known : array of shape (d,)
        The correlation with the residual at which the column was last read; who reads a column
        writes it down here.

    Examples
    --------
    >>> import numpy as np
    >>> from trueline.design.sparse_columns import Reach
    >>> reach = Reach(norms=np.array([1.0, 0.1]), sums=np.array([1.0, 0.1]))
    >>> reach.may_matter(np.array([2.0, 0.0]), level=0.5)
    array([0])
    """

    def __init__(self, norms: Array, sums: Array) -> None:
        d = len(norms)
        self._norms, self._sums = norms, sums
        # Before anything is read: the correlations with a residual of zero.
        self.known = np.zeros(d)
        self._read_at = np.zeros((2, d))
        self._ways = np.zeros(2)
        self._last = np.empty(0)
        self._longest = 0.0

    def may_matter(self, r: Array, level: float) -> Integers:
        """The columns whose correlation with r may be as large as the level: they are to be read.

        All others are smaller for certain.
        """
        return self.may_matter_to(r[:, None], level)

    def may_matter_to(self, R: Array, level: float) -> Integers:
        """The same for several residuals, the columns of R, which are passed one after another.

        Who reads a column writes down its correlation with the last of them.
        """
        if not len(self._last):
            self._last = np.zeros(len(R))
        length = largest = 0.0
        for r in R.T:
            norms = _travel(np.ascontiguousarray(r), self._last, self._ways)
            length, largest = max(length, norms[0]), max(largest, norms[1])
        self._longest = max(self._longest, length)
        out = np.empty(len(self._norms), dtype=np.intp)
        count = _within_reach(
            self._norms,
            self._sums,
            length,
            largest,
            self.known,
            self._read_at,
            self._ways,
            _ROUNDING * self._longest,
            level * (1 - _ROOM),
            out,
        )
        return out[:count]

    def leave_out(self, columns: Integers) -> None:
        """Somebody else keeps the correlations of these columns from now on."""
        self.known[columns] = 0.0
        self._read_at[:, columns] = np.inf
