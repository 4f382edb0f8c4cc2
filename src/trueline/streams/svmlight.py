"""Files in the format of SVMlight and LIBSVM as sparse batches."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from trueline.errors import TableError
from trueline.streams.sources import Columns, Source
from trueline.streams.svmlight_rows import Rows, parsed

ENDINGS = (".svm", ".svmlight", ".libsvm")
# Of an entry: its value, its column, and the text that it is read from.
_BYTES_EACH = 16


class Svmlight(Source):
    """A file in the format of SVMlight and LIBSVM, ``label column:value ...`` line by line.

    Batches are sparse, and cut by bytes. Columns count from 1, or from 0 if column 0 occurs. Rows
    that take little memory are kept, since reading text takes longer than most passes over rows.

    Parameters
    ----------
    path : str or Path
    memory : float
        Bytes for a batch.
    kept : float
        Bytes that rows may take to be kept.
    """

    is_sparse = True

    def __init__(self, path: str | Path, memory: float, kept: float) -> None:
        self.name = str(path)
        self._size = int(max(memory / _BYTES_EACH, 1 << 16))
        #: Where each block that has rows begins, and the number of its first line.
        self._starts: list[tuple[int, int]] = []
        #: Of the first look, for the first pass over the targets.
        self._targets: list[NDArray[np.float64]] = []
        self._kept: list[Rows] | None = []
        first, last, nbytes = 1, -1, 0
        for rows in self._parts(0):
            self._targets.append(rows.labels)
            first = min(first, rows.indices.min(initial=first))
            last = max(last, rows.indices.max(initial=last))
            nbytes += rows.data.nbytes + rows.indices.nbytes + rows.indptr.nbytes
            if self._kept is not None:
                self._kept = [*self._kept, rows] if nbytes <= kept else None
        if not self._targets:
            raise TableError(f"{self.name} has no rows.")
        #: The number of the first column.
        self._base = int(first)
        count = max(int(last) + 1 - self._base, 0)
        self.columns = (*(f"x{j}" for j in range(count)), "target")

    def _parts(self, first: int) -> Iterator[Rows]:
        """The blocks that have rows, from one of them on."""
        start, line = self._starts[first] if self._starts else (0, 1)
        with open(self.name, "rb") as file:
            file.seek(start)
            while text := file.read(self._size):
                text += file.readline()
                try:
                    rows = parsed(text, line)
                except ValueError as error:
                    raise TableError(f"{self.name} cannot be read: {error}") from error
                if len(rows.labels):
                    if first == len(self._starts):
                        self._starts.append((start, line))
                    first += 1
                    yield rows
                start, line = start + len(text), line + rows.lines

    def has(self, name: str) -> bool:
        """Columns behind the last one that is written are zero in every row."""
        return name in self.columns or re.fullmatch(r"x\d+", name) is not None

    def read(self, names: Sequence[str], rows: int) -> Iterator[Columns]:
        known, self._targets = self._targets, []
        for labels in known or (part.labels for part in self._parts(0)):
            yield [labels]

    def blocks(self, names: Sequence[str], first: int) -> Iterator[Any]:
        """The named columns as compressed rows, in the batches of :meth:`read` from one on."""
        places = [int(name[1:]) for name in names]
        width = max(len(self.columns) - 1, 1 + max(places, default=-1))
        for rows in self._parts(first) if self._kept is None else self._kept[first:]:
            shape = len(rows.labels), width
            X = sp.csr_array((rows.data, rows.indices - self._base, rows.indptr), shape=shape)
            yield X if places == list(range(width)) else X[:, places]
