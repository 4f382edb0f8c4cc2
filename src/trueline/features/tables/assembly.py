"""What columns of a table become, side by side in one matrix.

A block is an array for one column with a value in every row, :class:`Levels`, or a sparse matrix.
Entries are counted first; every block is then written where it belongs, so that the largest arrays
are those of the result: ``scipy.sparse.hstack`` takes three times its memory on the way.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse


class Levels(NamedTuple):
    """Columns of which each row has at most one, with the value one; -1 stands for none."""

    codes: NDArray[np.int32]
    width: int

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.codes), self.width


def marks(mask: NDArray[np.bool_]) -> Levels:
    """A column that is one where the mask is."""
    return Levels(mask.astype(np.int32) - 1, 1)


def _rows(block: Any) -> Any:
    """A block as compressed rows."""
    if isinstance(block, Levels):
        present = block.codes >= 0
        ends = np.concatenate([[0], np.cumsum(present)])
        chosen = block.codes[present]
        return sparse.csr_matrix((np.ones(len(chosen)), chosen, ends), shape=block.shape)
    if isinstance(block, np.ndarray):  # zeros are entries as well
        n = len(block)
        return sparse.csr_matrix((block, np.zeros(n, np.int32), np.arange(n + 1)), shape=(n, 1))
    return block


def assemble(blocks: Sequence[Any], n: int, as_sparse: bool, dtype: Any) -> Any:
    """The blocks, of n rows, side by side."""
    widths = [one.shape[1] if len(one.shape) == 2 else 1 for one in blocks]
    starts = np.concatenate([[0], np.cumsum(widths)])
    width = int(starts[-1])
    if not as_sparse:
        out = np.empty((n, width), dtype=dtype)
        for one, first, stop in zip(blocks, starts, starts[1:]):
            out[:, first:stop] = (
                one[:, None] if isinstance(one, np.ndarray) else _rows(one).toarray()
            )
        return out
    counts = np.zeros(n, dtype=np.int64)
    for one in blocks:
        counts += np.diff(_rows(one).indptr)
    # Indices are 32 bit wherever they can be: a third of the memory of the result.
    total = int(counts.sum())
    integer = np.int32 if max(total, width) <= np.iinfo(np.int32).max else np.int64
    pointers = np.concatenate([[0], np.cumsum(counts)]).astype(integer)
    indices, data = np.empty(total, integer), np.empty(total, dtype)
    ends: Any = pointers[:-1].copy()
    for one, first in zip(blocks, starts):
        part = _rows(one)
        own = np.diff(part.indptr)
        places = np.repeat(ends - part.indptr[:-1], own) + np.arange(part.nnz)
        indices[places], data[places] = part.indices + first, part.data
        ends = ends + own
    matrix = sparse.csr_matrix((data, indices, pointers), shape=(n, width), copy=False)
    matrix.has_sorted_indices = True  # blocks come in order, and so do the entries of each
    return matrix
