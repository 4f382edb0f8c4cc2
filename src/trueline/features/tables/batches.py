"""Tables that are read in batches: learned column by column, encoded batch by batch."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp

from trueline.design import DenseDesign, Design
from trueline.design.sparse import SparseDesign
from trueline.design.stacked import StackedDesign
from trueline.errors import require
from trueline.streams import Batches
from trueline.wording import Readable, counted


class BatchedColumn:
    """One column of batches, read when it is asked for: files by columns give it alone."""

    def __init__(self, rows: Batches, name: str) -> None:
        self._rows, self._name = rows, name

    def __len__(self) -> int:
        return self._rows.shape[0]

    def to_arrow(self) -> Any:
        """All values as one Arrow array."""
        pa = require("pyarrow", "tables")
        parts = [pa.array(part, from_pandas=True) for part in self._rows.column(self._name)]
        if any(pa.types.is_string(part.type) for part in parts):
            # Texts of more than 2 GB need longer offsets.
            parts = [part.cast(pa.large_string()) for part in parts]
        return pa.chunked_array(parts)


class EncodedRows(StackedDesign, Readable):
    """Batches of a table as a design, encoded anew in every pass.

    Parameters
    ----------
    rows : Batches
    encode : callable
        From the columns of a batch by name to a matrix.
    width : int
        How many columns the design has; like an array it does not know their names.
    dtype : numpy.float64 or numpy.float32
    """

    def __init__(
        self, rows: Batches, encode: Callable[[dict[str, Any]], Any], width: int, dtype: Any
    ) -> None:
        super().__init__((rows.shape[0], width), np.dtype(dtype))
        self._rows, self._encode = rows, encode
        self.target, self.weights = rows.target, rows.weights

    def parts(self) -> Iterator[tuple[slice, Design]]:
        for where, table in self._rows.tables():
            X = self._encode(table)
            yield where, SparseDesign(X) if sp.issparse(X) else DenseDesign(X)

    def __str__(self) -> str:
        made = counted(self.shape[1], "column")
        return f"{made} made of {self._rows}"
