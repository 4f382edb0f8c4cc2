r"""The rows near their kinks one by one, and one slope for all others.

Most rows are far from their kinks and stay there: all that counts is the sum of their slopes.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from trueline.solvers.piecewise.program import Program
from trueline.solvers.piecewise.source import Source

__all__ = ["Band", "Cut"]

Array = NDArray[np.float64]
Indices = NDArray[np.intp]


class Cut(NamedTuple):
    """Which rows are near their kinks.

    Attributes
    ----------
    rows : array of int
    slopes : array of shape (n,)
        Derivatives of the losses of all other rows, times their weights.
    piece : array of shape (n,)
        The straight piece that each row is on.
    width : float
        Distance of the last of the rows from its kink.
    """

    rows: Indices
    slopes: Array
    piece: NDArray[np.int8]
    width: float

    @classmethod
    def around(cls, source: Source, z: Array, count: int) -> Cut:
        """The rows whose kinks are nearest to their scores."""
        piece, distance = _piece(source, z), _distance(source, z)
        rows = np.sort(_nearest(piece, distance, count))
        slopes = source.row_weights * source.loss.gradient(source.target, z)
        slopes[rows] = 0.0
        return cls(rows, slopes, piece, float(distance[rows].max()))


class Band:
    """The rows of a cut, and the function that they and all others make.

    Parameters
    ----------
    source : Source
    cut : Cut
    beside : array of shape (p,)
        The sum of a_i times the slopes of the cut.

    Attributes
    ----------
    rows, slopes
        As in the cut.
    width : float
    program : Program
    """

    def __init__(self, source: Source, cut: Cut, beside: Array) -> None:
        self.source, self._beside = source, beside
        self.rows, self.slopes, self._piece = cut.rows, cut.slopes, cut.piece
        self.width, self._most = max(cut.width, 1e-300), max(len(cut.rows), 1000)
        self.program: Program = source.program(source.gather(cut.rows), cut.rows, beside)

    def around(self, z: Array, count: int) -> Band:
        """The band at other scores, from the few rows whose slopes are not the same."""
        cut = Cut.around(self.source, z, count)
        change = cut.slopes - self.slopes
        beside = self._beside + self.program.A.T @ change[self.rows]
        change[self.rows] = 0.0
        others = np.flatnonzero(change)
        if len(others):
            beside = beside + self.source.gather(others).T @ change[others]
        return Band(self.source, cut, beside)

    def changed(self, z: Array) -> Indices:
        """Rows beside that are on another piece than the one their slope is of."""
        piece = _piece(self.source, z)
        piece[self.rows] = self._piece[self.rows]
        moved = np.flatnonzero(piece != self._piece)
        # By rounding a row may be on either side of its kink.
        y, z, piece = self.source.target[moved], z[moved], self._piece[moved]
        kinks = np.array([-np.inf, *self.source.loss.kinks, np.inf])
        noise = 1e-13 * (np.abs(z) + np.abs(y))
        low, high = kinks[piece] - noise, kinks[piece + 1] + noise
        return moved[(z - y < low) | (z - y > high)]

    def join(self, more: Indices) -> bool:
        """Treat more rows one by one; False if there are too many for this band to be right."""
        if len(more) > self._most:
            return False
        A = self.source.gather(more)
        self._beside = self._beside - A.T @ self.slopes[more]
        self.slopes[more] = 0.0
        self.rows = np.concatenate([self.rows, more])
        A = np.concatenate([self.program.A, A])
        self.program = self.source.program(A, self.rows, self._beside)
        return True


def _piece(source: Source, z: Array) -> NDArray[np.int8]:
    """On which straight piece each row is."""
    residual = z - source.target
    piece = np.zeros(len(z), dtype=np.int8)
    for kink in source.loss.kinks:
        piece += residual > kink
    return piece


def _distance(source: Source, z: Array) -> Array:
    """How far the nearest kink of each row is."""
    residual = z - source.target
    return np.min([np.abs(residual - kink) for kink in source.loss.kinks], axis=0)


def _nearest(piece: NDArray[np.int8], distance: Array, count: int) -> Indices:
    """The rows nearest to their kinks, as many from each straight piece as there are.

    On the rare side of an extreme quantile all rows matter, however far they are.
    """
    pieces = [np.flatnonzero(piece == number) for number in range(int(piece.max()) + 1)]
    share = count // len(pieces)
    left = count - sum(min(len(own), share) for own in pieces)
    chosen = []
    for own in pieces:
        most = share + left
        if len(own) > most:
            own = own[np.argpartition(distance[own], most)[:most]]
        chosen.append(own)
    return np.concatenate(chosen)
