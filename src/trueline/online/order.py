"""In which order rows are visited.

The order of rows in shuffled passes.

A Fisher-Yates shuffle by a 32-bit xorshift generator (Marsaglia, "Xorshift RNGs", Journal of
Statistical Software 8(14), 2003; shifts 13, 17, 5), begun with the same seed before every pass and
applied to the order of the pass before: the orders that scikit-learn visits rows in.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trueline.numerics.jit import kernel
from trueline.online.kernels.rows import prefetch

__all__ = ["Order", "seed_of", "shuffle"]


@dataclass
class Order:
    """The rows of each pass: as they come, or shuffled before every pass.

    Parameters
    ----------
    n : int
    seed : int, optional
        Without one, rows come as they are.
    keep : array of bool, of shape (n,), optional
        Rows that are visited at all.
    drawn : bool
        Whether each visit draws any of the rows anew, instead of shuffling them.

    Examples
    --------
    >>> from trueline.online.order import Order
    >>> order = Order(5, seed=3)
    >>> order.next_pass().tolist() == order.next_pass().tolist()
    False
    """

    n: int
    seed: int | None = None
    keep: NDArray[np.bool_] | None = None
    drawn: bool = False

    def __post_init__(self) -> None:
        self._rows = np.arange(self.n, dtype=np.int32 if self.n < 2**31 else np.int64)
        if self.drawn:
            self._random = np.random.default_rng(self.seed)

    def next_pass(self) -> NDArray[Any]:
        """The rows of the next pass, in order."""
        if self.seed is not None and self.drawn:
            self._rows = self._random.integers(0, self.n, self.n, dtype=self._rows.dtype)
        elif self.seed is not None:
            shuffle(self._rows, self.seed)
        return self._rows if self.keep is None else self._rows[self.keep[self._rows]]


def seed_of(random: np.random.RandomState) -> int:
    """The seed of the shuffles that scikit-learn takes from this generator, by its second draw."""
    largest = np.iinfo(np.int32).max
    random.randint(1, largest)
    return int(random.randint(largest))


_AT_ONCE = 64


@kernel
def shuffle(order: Any, seed: int) -> None:
    """Shuffle in place; ``seed`` in [0, 2^32)."""
    # Unsigned numbers below 2^32: the compiler then divides 32 bits, several times as fast as 64.
    mask, half = np.uint64(0xFFFFFFFF), np.uint64(0x7FFFFFFF)
    one, five, thirteen, seventeen = np.uint64(1), np.uint64(5), np.uint64(13), np.uint64(17)
    state = np.uint64(seed)
    if state == 0:
        state = one
    n, i = np.uint64(order.shape[0]), np.uint64(0)
    places = np.empty(_AT_ONCE, dtype=np.uint64)
    while i + one < n:
        count = min(np.uint64(_AT_ONCE), n - one - i)
        # Where each goes depends on no other: all are asked for before any is needed.
        for q in range(count):
            state ^= (state << thirteen) & mask
            state ^= state >> seventeen
            state ^= (state << five) & mask
            at = i + np.uint64(q)
            place = at + (state & half) % ((n - at) & mask)
            places[q] = place
            prefetch(order, place)
        for q in range(count):
            at, place = i + np.uint64(q), places[q]
            kept = order[at]
            order[at] = order[place]
            order[place] = kept
        i += count
