"""The order of rows in shuffled passes.

A Fisher-Yates shuffle by a 32-bit xorshift generator (Marsaglia, "Xorshift RNGs", Journal of
Statistical Software 8(14), 2003; shifts 13, 17, 5), begun with the same seed before every pass and
applied to the order of the pass before: the orders that scikit-learn visits rows in.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from trueline._jit import kernel
from trueline.online.kernels.prefetch import prefetch

__all__ = ["shuffle"]

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
