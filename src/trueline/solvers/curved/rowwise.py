"""Functions of rows, evaluated in pieces that stay in a cache, a few threads at a time."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from trueline.threads import run_strands

__all__ = ["rowwise"]

Array = NDArray[np.float64]

_LONG, _PIECE, _STRANDS = 100_000, 8192, 8


def rowwise(function: Callable[..., Array], *arrays: Array) -> Array:
    """An elementwise function of arrays of shape (n,).

    Temporaries of long arrays would go through memory half a dozen times.

    Examples
    --------
    >>> import numpy as np
    >>> from trueline.solvers.curved.rowwise import rowwise
    >>> rowwise(np.add, np.ones(3), np.ones(3))
    array([2., 2., 2.])
    """
    n = len(arrays[0])
    if n < _LONG:
        return function(*arrays)
    out = np.empty(n)
    cuts = np.linspace(0, n, _STRANDS + 1).astype(int)

    def work(number: int) -> None:
        for start in range(cuts[number], cuts[number + 1], _PIECE):
            piece = slice(start, min(start + _PIECE, cuts[number + 1]))
            out[piece] = function(*(array[piece] for array in arrays))

    run_strands(work, range(_STRANDS))
    return out
