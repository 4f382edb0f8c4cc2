"""Functions of rows, evaluated in pieces that stay in a cache, a few threads at a time."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from trueline.losses import Loss
from trueline.threads import run_strands

__all__ = ["derivatives", "derivatives_along", "rowwise"]

Array = NDArray[np.float64]
Result = TypeVar("Result")

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
    if len(arrays[0]) < _LONG:
        return function(*arrays)
    out = np.empty(len(arrays[0]))

    def work(piece: slice) -> None:
        out[piece] = function(*(array[piece] for array in arrays))

    _piecewise(work, len(out))
    return out


def derivatives(loss: Loss, y: Array, z: Array) -> tuple[Array, Array]:
    """The first and second derivatives of a loss at all scores."""
    if len(y) < _LONG:
        return loss.derivatives(y, z)
    u, bends = np.empty(len(y)), np.empty(len(y))

    def work(piece: slice) -> None:
        u[piece], bends[piece] = loss.derivatives(y[piece], z[piece])

    _piecewise(work, len(y))
    return u, bends


def derivatives_along(
    loss: Loss, y: Array, z: Array, change: Array, t: float, s: Array
) -> tuple[Array, Array, float, float]:
    """The derivatives at the scores z + t change, and those of sum_i s_i l_i by t."""
    n = len(y)
    u, bends = np.empty(n), np.empty(n)

    def work(piece: slice) -> Array:
        own = change[piece]
        u[piece], bends[piece] = loss.derivatives(y[piece], z[piece] + t * own)
        weighted = s[piece] * own
        return np.array([weighted @ u[piece], (weighted * own) @ bends[piece]])

    parts = [work(slice(None))] if n < _LONG else _piecewise(work, n)
    slope, bend = np.sum(parts, axis=0)
    return u, bends, float(slope), float(bend)


def _piecewise(work: Callable[[slice], Result], n: int) -> list[Result]:
    """Apply ``work`` to pieces of n rows; the results in their order."""
    cuts = np.linspace(0, n, _STRANDS + 1).astype(int)

    def strand(number: int) -> list[Result]:
        starts = range(cuts[number], cuts[number + 1], _PIECE)
        return [work(slice(start, min(start + _PIECE, cuts[number + 1]))) for start in starts]

    return [result for part in run_strands(strand, range(_STRANDS)) for result in part]
