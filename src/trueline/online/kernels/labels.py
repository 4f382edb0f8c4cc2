"""Two labels as 0 and 1, in one look at each."""

from __future__ import annotations

from typing import Any

import numpy as np

from trueline._jit import kernel

__all__ = ["split_in_two"]


@kernel
def split_in_two(y: Any, codes: Any) -> int:
    """Where the second label first occurs; 0 if there is none, -1 if there are more than two.

    Parameters
    ----------
    y : array of numbers, of shape (n,)
    codes : array of int8, of shape (n,)
        Receives 1 where y is not y[0].
    """
    n, first = y.shape[0], y[0]
    found = 0
    while found < n and y[found] == first:
        found += 1
    if found == n:
        codes[:] = 0
        return 0
    other, strange = y[found], np.int8(0)
    # No branches, and from the very first label on: the compiler then takes several at once.
    for i in range(n):
        differs = np.int8(y[i] != first)
        codes[i] = differs
        strange |= differs & np.int8(y[i] != other)
    return -1 if strange else found
