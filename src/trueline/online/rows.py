"""Rows as the kernels read them: products with the weights, norms, additions to the weights.

Rows come as three arrays ``data, indices, indptr``: those of a CSR matrix, or an array X as
``data`` and two empty ones. How many dimensions an array has is part of its type, so that the
compiler keeps one side of each ``if data.ndim == 2`` and every loop over rows is written once.

All are small enough that the compiler puts them into the loops that call them; a call for each row
would cost more than the row. So that references to arrays are counted once a pass, which costs more
than a short row, three things are kept to: what is handed to these kernels is an argument of the
loop, not a member of a tuple; they return at their end; and a pass tests by itself whether to
prefetch.

Dense rows visited in random order are found by no hardware prefetcher; asking for one a few visits
ahead halves the time of a shuffled pass. The order is known in advance, so that this is easy.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from trueline.numerics.jit import kernel

# Below this many numbers in a dense row they are added in the order written, as a reader would do
# it by hand (exact ties between classes then are ties here too); above, in several partial sums,
# which is several times as fast.
MANY = 16
#: How many visits ahead rows are asked for.
AHEAD = 16


class Labels(NamedTuple):
    """Classes and weights of rows, as kernels read them.

    ``codes`` has shape (n,), its classes equal to ``positive`` are +1 and all others -1;
    ``weights`` has shape (n,), or (1,) for the same weight everywhere.
    """

    codes: Any
    positive: int
    weights: Any


@kernel
def span_of(data: Any, indptr: Any, i: int) -> Any:
    """Where the numbers of row i begin and end, for :func:`column_of` and :func:`value_of`."""
    if data.ndim == 2:
        return 0, data.shape[1]
    return indptr[i], indptr[i + 1]


@kernel
def column_of(data: Any, indices: Any, k: int) -> Any:
    """Column of the number at position k of a row's span."""
    if data.ndim == 2:
        return k
    return indices[k]


@kernel
def value_of(data: Any, i: int, k: int) -> Any:
    """The number of row i at position k of its span."""
    if data.ndim == 2:
        return float(data[i, k])
    return float(data[k])


@kernel
def dot(data: Any, indices: Any, indptr: Any, i: int, w: Any) -> Any:
    """x_i . w, in the precision of the weights; unsigned indices are fastest."""
    if data.ndim == 2:
        if data.shape[1] >= MANY:
            return as_weight(w, _dot_of_many(data, i, w))
        return as_weight(w, _dot_of_few(data, i, w))
    # One short loop, which the compiler puts into its callers: with partial sums it makes a call of
    # it, which takes as long as ten words and gains a tenth on rows of hundreds.
    total = 0.0
    for k in range(np.uint64(indptr[i]), np.uint64(indptr[i + 1])):
        total += w[indices[k]] * data[k]
    return as_weight(w, total)


@kernel
def _dot_of_few(X: Any, i: int, w: Any) -> Any:
    """x_i . w, added in the order written."""
    total = 0.0
    for j in range(X.shape[1]):
        total += w[j] * X[i, j]
    return total


@kernel(reassociate=True)
def _dot_of_many(X: Any, i: int, w: Any) -> Any:
    """x_i . w, in several partial sums."""
    total = 0.0
    for j in range(X.shape[1]):
        total += w[j] * X[i, j]
    return total


@kernel
def squared_norm(data: Any, indptr: Any, i: int) -> Any:
    """||x_i||^2"""
    total = 0.0
    start, stop = span_of(data, indptr, i)
    for k in range(start, stop):
        x = value_of(data, i, k)
        total += x * x
    return total


@kernel
def add(data: Any, indices: Any, indptr: Any, i: int, c: Any, w: Any) -> None:
    """w <- w + c x_i"""
    if data.ndim == 2:
        for j in range(data.shape[1]):
            w[j] += float(data[i, j]) * c
    else:
        x, columns = data[indptr[i] : indptr[i + 1]], indices[indptr[i] : indptr[i + 1]]
        for k in range(x.shape[0]):
            w[columns[k]] += float(x[k]) * c


@kernel
def finite_after(data: Any, indices: Any, indptr: Any, i: int, c: Any, w: Any) -> bool:
    """Whether w + c x_i is finite."""
    total = 0.0
    start, stop = span_of(data, indptr, i)
    for k in range(start, stop):
        total += 0.0 * (w[column_of(data, indices, k)] + value_of(data, i, k) * c)
    return total == 0.0


@kernel
def prefetch_row(X: Any, i: int) -> None:
    """Have a dense row of a later visit brought from memory.

    Of a row its beginning: the rest the processor finds by itself. Sparse rows are not asked for:
    where they lie close at hand passes took up to four times as long, elsewhere a tenth less.
    """
    d = X.shape[1]
    for k in range(0, min(d, 128), 8):
        prefetch_far(X, i * d + k)


@kernel
def as_weight(w: Any, number: Any) -> Any:
    """A number in the precision of the weights."""
    return w.dtype.type(number)


@kernel
def count_rows(changed: Any, m: int, counts: Any) -> None:
    """Add 1 for each of the first m rows named.

    After the pass rather than in it: these scattered additions wait for nothing, while a visit
    would have to wait for memory.
    """
    for k in range(m):
        counts[changed[k]] += 1


@kernel
def give_signs(columns: Any, values: Any) -> None:
    """Halve each column; where it was even, change the sign of the value."""
    for k in range(columns.shape[0]):
        if columns[k] & 1 == 0:
            values[k] = -values[k]
        columns[k] >>= 1


class _Prefetch:
    """Callable from compiled code as ``prefetch(array, position)``, the position in memory order.

    In plain Python it does nothing. Like a kernel, it imports Numba only when something that uses
    it is compiled.

    Parameters
    ----------
    locality : int
        3 for all caches; 2 for all but the first, whose few open requests then stay free.
    """

    def __init__(self, locality: int) -> None:
        self.locality = locality

    def __call__(self, array: Any, position: int) -> None:
        """Nothing: plain Python has no such instruction."""

    @cached_property
    def _intrinsic(self) -> Any:
        from llvmlite import ir
        from numba.core import cgutils, types
        from numba.extending import intrinsic

        locality = self.locality

        def read_soon(typing_context: Any, array: Any, position: Any) -> Any:
            def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
                data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
                byte, integer = ir.IntType(8).as_pointer(), ir.IntType(32)
                place = builder.bitcast(builder.gep(data, [arguments[1]]), byte)
                kind = ir.FunctionType(ir.VoidType(), [byte, integer, integer, integer])
                name = "llvm.prefetch.p0i8" if _typed_pointers(byte) else "llvm.prefetch.p0"
                function = cgutils.get_or_insert_function(builder.module, kind, name)
                # To be read, kept in so many caches, data rather than instructions.
                flags = [ir.Constant(integer, value) for value in (0, locality, 1)]
                builder.call(function, [place, *flags])
                return context.get_dummy_value()

            return types.void(array, position), generate

        return intrinsic(read_soon)

    @property
    def _numba_type_(self) -> Any:
        from numba.core.registry import cpu_target

        context = cpu_target.typing_context
        function = self._intrinsic
        context.refresh()  # has the new function entered in the tables
        return context.resolve_value_type(function)


def _typed_pointers(pointer: Any) -> bool:
    return not getattr(pointer, "is_opaque", False)


def _do_nothing(array: Any, position: int) -> None:
    """Stands for the instruction where kernels are plain functions."""


pure = os.environ.get("TRUELINE_PURE_PYTHON", "0") not in ("", "0")
#: For what is needed at the next visit.
prefetch: Any = _do_nothing if pure else _Prefetch(3)
#: For what is needed some visits later.
prefetch_far: Any = _do_nothing if pure else _Prefetch(2)


# What an array has in place of the indices and pointers of a CSR matrix.
NO_INDICES = np.empty(0, dtype=np.uint32)
NO_POINTERS = np.empty(0, dtype=np.int32)


@dataclass(frozen=True)
class Rows:
    """Rows, their classes and their weights.

    Attributes
    ----------
    X : array (C order) or CSR matrix of shape (n, d), float64 or float32
    codes : array of int, of shape (n,)
    weights : array of shape (n,), or of shape (1,) for the same weight everywhere
    """

    X: Any
    codes: NDArray[Any]
    weights: NDArray[Any]

    @property
    def n(self) -> int:
        """Number of rows."""
        return int(self.X.shape[0])

    @property
    def d(self) -> int:
        """Number of columns."""
        return int(self.X.shape[1])

    @property
    def is_sparse(self) -> bool:
        """Whether the rows are those of a CSR matrix."""
        return bool(sp.issparse(self.X))

    @cached_property
    def arrays(self) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
        """Three arrays, see :mod:`trueline.online.rows`."""
        if not self.is_sparse:
            return self.X, NO_INDICES, NO_POINTERS
        # Unsigned indices need no test for counting from the end.
        unsigned = np.uint32 if self.X.indices.dtype == np.int32 else np.uint64
        return self.X.data, self.X.indices.view(unsigned), self.X.indptr

    def take(self, chosen: Any) -> Rows:
        """Some of the rows."""
        weights = self.weights if len(self.weights) == 1 else self.weights[chosen]
        return Rows(self.X[chosen], self.codes[chosen], weights)


def normalised(X: Any) -> Any:
    """Rows divided by their Euclidean norms; rows of zeros stay.

    Norms are taken after dividing by the largest number of the row, whose square may overflow.
    """
    if sp.issparse(X):
        X = sp.csr_array(X)
        rows = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))
        peak = np.zeros(X.shape[0])
        np.maximum.at(peak, rows, np.abs(X.data))
        peak[peak == 0] = 1.0
        data = X.data / peak[rows]
        norm = np.sqrt(np.bincount(rows, data * data, minlength=X.shape[0]))
        norm[norm == 0] = 1.0
        data = (data / norm[rows]).astype(X.dtype)
        return sp.csr_array((data, X.indices, X.indptr), shape=X.shape)
    peak = np.abs(X).max(axis=1, keepdims=True)
    scaled = X / np.where(peak == 0, 1, peak)
    norm = np.sqrt(np.einsum("ij,ij->i", scaled, scaled, dtype=np.float64))[:, None]
    return (scaled / np.where(norm == 0, 1, norm)).astype(X.dtype)


def with_constant(X: Any) -> Any:
    """The columns and one of ones, so that the intercept is a weight like the others."""
    ones = np.ones((X.shape[0], 1), dtype=X.dtype)
    return sp.csr_array(sp.hstack([X, ones])) if sp.issparse(X) else np.hstack([X, ones])
