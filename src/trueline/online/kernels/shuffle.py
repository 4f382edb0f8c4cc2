"""The order of rows in shuffled passes.

A Fisher-Yates shuffle by a 32-bit xorshift generator (Marsaglia, "Xorshift RNGs", Journal of
Statistical Software 8(14), 2003; shifts 13, 17, 5), begun with the same seed before every pass and
applied to the order of the pass before: the orders that scikit-learn visits rows in.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from trueline._jit import kernel

__all__ = ["shuffle"]


@kernel
def shuffle(order: Any, seed: int) -> None:
    """Shuffle in place; ``seed`` in [0, 2^32)."""
    n = order.shape[0]
    state = np.int64(seed)
    if state == 0:
        state = np.int64(1)
    for i in range(n - 1):
        state ^= (state << 13) & 0xFFFFFFFF
        state ^= state >> 17
        state ^= (state << 5) & 0xFFFFFFFF
        j = i + (state & 0x7FFFFFFF) % (n - i)
        kept = order[i]
        order[i] = order[j]
        order[j] = kept
