"""Rows of a kernel matrix that are kept, the least recently used ones making room."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from trueline.kernels.source import KernelSource, MatrixSource
from trueline.solvers.smo.inner import add_rows
from trueline.threads import run_strands

__all__ = ["BLOCK_ROWS", "RowCache"]

Array = NDArray[np.float64]
Index = NDArray[np.intp]

#: Rows that are computed at a time.
BLOCK_ROWS = 256


class RowCache:
    """At most ``capacity`` rows of length n, in one table, and a block for those beyond.

    Attributes
    ----------
    capacity : int
    computed : int
        Rows computed so far; more than n means that some were computed again.
    """

    def __init__(self, source: KernelSource, capacity: int) -> None:
        self.source = source
        self.capacity = max(0, min(capacity, source.n))
        n = source.n
        # The system hands out pages when they are first written: rows that are never needed cost
        # nothing.
        self.table: NDArray[Any] = np.empty((self.capacity, n), dtype=source.dtype)
        self.block: NDArray[Any] = np.empty((0, n), dtype=source.dtype)
        self.slot = np.full(n, -1, dtype=np.intp)
        self.holds = np.full(self.capacity, -1, dtype=np.intp)
        self.used = np.zeros(self.capacity, dtype=np.int64)
        self.clock = 0
        self.filled = 0
        self.computed = 0
        half = (n + 1) // 2
        self.strips = [(0, n)] if n < 4096 else [(0, half), (half, n)]

    def add(self, rows: Index, weight: Array, scores: Array) -> None:
        """scores += sum_r weight_r K[r] over distinct rows, computed where they are missing."""
        if isinstance(self.source, MatrixSource) and self.source.is_whole:
            self._sum(self.source.K, rows, weight, scores)
            return
        self.clock += 1
        places = self.slot[rows]
        kept = places >= 0
        self.used[places[kept]] = self.clock
        self._sum(self.table, places[kept], weight[kept], scores)
        missing, own = rows[~kept], weight[~kept]
        for start in range(0, len(missing), BLOCK_ROWS):
            some = slice(start, start + BLOCK_ROWS)
            self._add_missing(missing[some], own[some], scores)

    def _add_missing(self, rows: Index, weight: Array, scores: Array) -> None:
        self.computed += len(rows)
        if self.filled + len(rows) <= self.capacity:
            places = np.arange(self.filled, self.filled + len(rows))
            self.source.rows(rows, self.table[self.filled : self.filled + len(rows)])
            self.filled += len(rows)
            self._keep(rows, places)
            self._sum(self.table, places, weight, scores)
            return
        if not len(self.block):
            self.block = np.empty((BLOCK_ROWS, self.source.n), dtype=self.source.dtype)
        block = self.block[: len(rows)]
        self.source.rows(rows, block)
        self._sum(block, np.arange(len(rows)), weight, scores)
        # Rows of this request have the present time: they are not the ones to go.
        old = np.flatnonzero((self.used < self.clock) & (self.holds >= 0))
        take = min(len(old), len(rows))
        if take:
            places = old[np.argpartition(self.used[old], take - 1)[:take]]
            self.slot[self.holds[places]] = -1
            self.table[places] = block[:take]
            self._keep(rows[:take], places)

    def _keep(self, rows: Index, places: Index) -> None:
        self.slot[rows] = places
        self.holds[places] = rows
        self.used[places] = self.clock

    def _sum(self, table: NDArray[Any], places: Index, weight: Array, scores: Array) -> None:
        if len(places):
            run_strands(lambda strip: add_rows(table, places, weight, scores, *strip), self.strips)
