"""Some rows and columns of a matrix, compiled."""

from __future__ import annotations

from typing import Any

from trueline._jit import kernel

__all__ = ["gather", "mirror"]


@kernel
def gather(table: Any, rows: Any, columns: Any, out: Any) -> None:
    """out[a, b] = table[rows[a], columns[b]]."""
    for a in range(len(rows)):
        row = table[rows[a]]
        for b in range(len(columns)):
            out[a, b] = row[columns[b]]


@kernel
def mirror(Q: Any, k: int) -> None:
    """Q[:k, k:] = Q[k:, :k]', in tiles that stay in the first-level cache."""
    m, tile = len(Q), 32
    for first in range(k, m, tile):
        last = min(first + tile, m)
        for start in range(0, k, tile):
            stop = min(start + tile, k)
            for a in range(start, stop):
                for b in range(first, last):
                    Q[a, b] = Q[b, a]
