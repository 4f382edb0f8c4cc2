"""Named features in a fixed number of columns: the hashing trick.

A name is hashed to a column and to a sign, so that names which share a column cancel on average
(Weinberger et al., "Feature hashing for large scale multitask learning", ICML 2009). The hash is
the CRC-32 of the name in UTF-8, mixed by multiplications and shifts: the same on every machine and
in every run, unlike Python's own.

A value that is a string stands for the feature ``name=value`` with the value 1.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any
from zlib import crc32

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

__all__ = ["column_of", "hashed_row", "hashed_rows"]


@lru_cache(maxsize=2**20)
def column_of(name: str, width: int) -> tuple[int, float]:
    """Column and sign of a name.

    Examples
    --------
    >>> from trueline.online.hashing import column_of
    >>> column, sign = column_of("word", 1000)
    >>> 0 <= column < 1000, sign in (-1.0, 1.0)
    (True, True)
    """
    h = crc32(name.encode())
    h = ((h ^ (h >> 16)) * 0x45D9F3B) & 0xFFFFFFFF
    h = ((h ^ (h >> 16)) * 0x45D9F3B) & 0xFFFFFFFF
    h ^= h >> 16
    return (h >> 1) % width, 1.0 if h & 1 else -1.0


def hashed_row(x: Mapping[Any, Any], width: int) -> tuple[NDArray[np.uint32], NDArray[np.float64]]:
    """Columns and values of one row; names that share a column appear twice.

    Parameters
    ----------
    x : mapping of names to numbers or strings
        Names that are not strings are written out (``str``).
    width : int
        Number of columns.
    """
    columns, values = [], []
    for name, value in x.items():
        key = name if type(name) is str else str(name)
        if type(value) is str:
            key, value = f"{key}={value}", 1.0
        column, sign = column_of(key, width)
        columns.append(column)
        values.append(sign * value)
    return np.array(columns, dtype=np.uint32), np.array(values, dtype=np.float64)


def hashed_rows(rows: Sequence[Mapping[Any, Any]], width: int) -> Any:
    """Several rows as a CSR matrix.

    Examples
    --------
    >>> from trueline.online.hashing import hashed_rows
    >>> X = hashed_rows([{"a": 1.0, "colour": "red"}, {}], 16)
    >>> X.shape, X.nnz
    ((2, 16), 2)
    """
    parts = [hashed_row(x, width) for x in rows]
    indptr = np.cumsum([0, *(len(values) for _, values in parts)]).astype(np.int32)
    indices = np.concatenate([columns for columns, _ in parts]).astype(np.int32)
    data = np.concatenate([values for _, values in parts])
    return sp.csr_array((data, indices, indptr), shape=(len(parts), width))
