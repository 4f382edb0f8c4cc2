"""How the rows of a dense matrix are cut for the threads, and what is summed over them."""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "BLOCK_BYTES",
    "SMALL_WORK",
    "TINY_WORK",
    "Sums",
    "fold",
    "row_strands",
    "rows_per_block",
]

Array = NDArray[np.float64]

# Below this many multiplications no BLAS starts threads, and limiting it would cost more.
TINY_WORK = 8_000
# Below this many multiplications one thread does it all: a thread pool would cost more.
SMALL_WORK = 2_000_000
# A block, read once from memory, must stay in a level-2 cache of one megabyte.
BLOCK_BYTES = 3 << 18


class Sums(NamedTuple):
    """``total`` sum s v, ``gram`` sum s v v^T, ``cross`` sum s v y^T, over rows v = x - shift.

    ``terms`` is the largest number of terms that were added one after the other.
    """

    total: Array
    gram: Array
    cross: Array
    terms: int


def rows_per_block(n: int, d: int) -> int:
    """Rows that are handled together."""
    return int(max(1, min(n, max(512, BLOCK_BYTES // (8 * max(1, d))))))


def row_strands(n: int, d: int, work: int) -> list[tuple[int, int]]:
    """Contiguous row ranges for so many multiplications: they depend on the shape alone."""
    count = 1 if work < SMALL_WORK else (8 if d <= 400 else 4)
    count = max(1, min(count, n // rows_per_block(n, d)))
    if count == 1:
        return [(0, n)]
    cuts = np.linspace(0, n, count + 1).astype(int)
    return [(int(a), int(b)) for a, b in pairwise(cuts)]


def fold(parts: list[Array]) -> Array:
    """Add the strands' results in their order."""
    total = parts[0]
    for part in parts[1:]:
        total += part
    return total
