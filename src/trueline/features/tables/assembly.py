"""Blocks of columns into one matrix, without copies in between.

A block is what one column of a table becomes. Rows of the sparse matrix are counted first; every
block then writes its entries where they belong, so that the largest arrays are those of the result.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse


class Block(ABC):
    """Some columns of the design.

    Attributes
    ----------
    width : int
        How many columns.
    """

    width: int

    @abstractmethod
    def per_row(self) -> int | NDArray[np.int32]:
        """How many entries a row has: one number, or one per row."""

    @abstractmethod
    def put_sparse(self, into: _Rows, first: int) -> None:
        """Write the entries of the columns from number ``first`` on."""

    @abstractmethod
    def put_dense(self, out: NDArray[Any]) -> None:
        """Write the columns into ``out``, which is zero and as wide as the block."""


@dataclass
class _Rows:
    """The arrays of the sparse matrix, and where the next entry of each row goes."""

    indices: NDArray[Any]
    data: NDArray[Any]
    next: NDArray[Any]

    def put(self, columns: Any, values: Any, rows: NDArray[np.intp] | None = None) -> None:
        """One more entry for all rows or for some."""
        places = self.next if rows is None else self.next[rows]
        self.indices[places] = columns
        self.data[places] = values
        if rows is None:
            self.next += 1
        else:
            self.next[rows] += 1


@dataclass
class Values(Block):
    """One column with a value in every row, made when it is needed."""

    make: Callable[[], NDArray[np.float64]]
    width: int = 1

    def per_row(self) -> int:
        return 1

    def put_sparse(self, into: _Rows, first: int) -> None:
        into.put(first, self.make())

    def put_dense(self, out: NDArray[Any]) -> None:
        out[:, 0] = self.make()


@dataclass
class Codes(Block):
    """Columns of which each row has at most one, with the value one; -1 stands for none."""

    codes: NDArray[np.int32]
    width: int

    def per_row(self) -> int | NDArray[np.int32]:
        present = self.codes >= 0
        return 1 if present.all() else present.astype(np.int32)

    def put_sparse(self, into: _Rows, first: int) -> None:
        rows = np.flatnonzero(self.codes >= 0)
        if len(rows) == len(self.codes):
            into.put(self.codes + np.int32(first), 1.0)
        else:
            into.put(self.codes[rows] + np.int32(first), 1.0, rows)

    def put_dense(self, out: NDArray[Any]) -> None:
        rows = np.flatnonzero(self.codes >= 0)
        out[rows, self.codes[rows]] = 1.0


@dataclass
class Entries(Block):
    """Columns that come as a sparse matrix."""

    matrix: Any

    def __post_init__(self) -> None:
        self.width = self.matrix.shape[1]

    def per_row(self) -> NDArray[np.int32]:
        return np.diff(self.matrix.indptr).astype(np.int32)

    def put_sparse(self, into: _Rows, first: int) -> None:
        counts = np.diff(self.matrix.indptr)
        starts = np.repeat(into.next - self.matrix.indptr[:-1], counts)
        places = starts + np.arange(len(starts))
        into.indices[places] = self.matrix.indices + first
        into.data[places] = self.matrix.data
        into.next += counts

    def put_dense(self, out: NDArray[Any]) -> None:
        out[:] = self.matrix.toarray()


def assemble(blocks: Sequence[Block], n: int, as_sparse: bool, dtype: Any) -> Any:
    """The blocks side by side."""
    width = sum(block.width for block in blocks)
    if not as_sparse:
        out = np.zeros((n, width), dtype=dtype)
        first = 0
        for block in blocks:
            block.put_dense(out[:, first : first + block.width])
            first += block.width
        return out
    # Indices are 32 bit wherever they can be: a third of the memory of the result.
    counts = np.zeros(n, dtype=np.int64)
    for block in blocks:
        counts += block.per_row()
    total = int(counts.sum())
    integer = np.int32 if max(total, width) <= np.iinfo(np.int32).max else np.int64
    pointers = np.zeros(n + 1, dtype=integer)
    np.cumsum(counts, out=pointers[1:])
    del counts
    indices = np.empty(total, dtype=integer)
    rows = _Rows(indices, np.empty(total, dtype=dtype), pointers[:-1].copy())
    first = 0
    for block in blocks:
        block.put_sparse(rows, first)
        first += block.width
    matrix = sparse.csr_matrix((rows.data, indices, pointers), shape=(n, width), copy=False)
    matrix.has_sorted_indices = True  # blocks come in order, and so do the entries of each
    return matrix
