"""Which kinks a step along an edge passes, and where it ends."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from trueline._jit import kernel

__all__ = ["kinks_met"]

Array = NDArray[np.float64]
Indices = NDArray[np.intp]


@kernel
def kinks_met(
    offset: Array, moved: Array, is_above: NDArray[np.bool_], c: Array, fall: float
) -> tuple[Indices, int, float]:
    """The kinks passed, the one where the slope turns positive (-1 if none is met), and how far.

    The function falls at the rate ``fall`` at first, and by c_e abs(moved_e) less after each kink:
    a weighted median of the distances, found by splitting those that are left about one of them,
    as quickselect does.
    """
    index = np.empty(len(offset), dtype=np.intp)
    reach = np.empty(len(offset))
    count = 0
    for e in range(len(offset)):
        if (moved[e] < 0.0) if is_above[e] else (moved[e] > 0.0):
            index[count] = e
            reach[count] = max(-offset[e] / moved[e], 0.0)
            count += 1
    if count == 0:
        return index[:0], -1, 0.0
    low, high = 0, count
    while True:
        pivot = _middle(reach[low], reach[(low + high) // 2], reach[high - 1])
        less, more, k = low, high, low  # nearer ones are moved before less, farther from more on
        before, there = 0.0, 0.0
        while k < more:
            gain = c[index[k]] * abs(moved[index[k]])
            if reach[k] < pivot:
                before += gain
                _swap(index, reach, less, k)
                less += 1
                k += 1
            elif reach[k] > pivot:
                more -= 1
                _swap(index, reach, more, k)
            else:
                there += gain
                k += 1
        if before >= fall and less > low:
            high = less
        elif before + there >= fall or more == high == count:
            fall -= before
            last = less
            while last < more - 1:
                fall -= c[index[last]] * abs(moved[index[last]])
                if fall <= 0.0:
                    break
                last += 1
            return index[:last], index[last], pivot
        else:
            fall -= before + there
            low = more
        if low == high:  # rounding of the sums: the farthest of those before
            return index[: low - 1], index[low - 1], reach[low - 1]


@kernel
def _middle(a: float, b: float, c: float) -> float:
    return max(min(a, b), min(max(a, b), c))


@kernel
def _swap(index: Indices, reach: Array, i: int, k: int) -> None:
    index[i], index[k] = index[k], index[i]
    reach[i], reach[k] = reach[k], reach[i]
