r"""The rows near their kinks one by one, and one slope for all others.

Most rows are far from their kinks and stay there: all that counts is the sum of their slopes.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from trueline.solvers.piecewise_linear.interior_point.kernels import (
    of_piece,
    pieces,
    slopes_of,
    within,
)
from trueline.solvers.piecewise_linear.interior_point.program import Program
from trueline.solvers.piecewise_linear.interior_point.source import Source

__all__ = ["Band", "Cut"]

Array = NDArray[np.float64]
Indices = NDArray[np.intp]

# Rows by which is judged how far the nearest ones reach, and how many times more than asked for
# may be within that.
_JUDGED, _ABOUT = 16384, 1.5


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
        piece, distance, there = pieces(z, source.target, np.array(source.loss.kinks))
        rows = _nearest(piece, distance, there, count)
        slopes = source.weigh(_slopes(source, z, piece))
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
        piece, _, _ = pieces(z, self.source.target, np.array(self.source.loss.kinks))
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


def _slopes(source: Source, z: Array, piece: NDArray[np.int8]) -> Array:
    """Derivatives of the losses of all rows."""
    loss = source.loss
    if "margins" in loss.capabilities:
        return loss.gradient(source.target, z)
    return slopes_of(piece, loss.first_slope + np.cumsum([0.0, *loss.jumps]))


def _nearest(
    piece: NDArray[np.int8], distance: Array, there: NDArray[np.intp], count: int
) -> Indices:
    """The rows nearest to their kinks, about as many as asked for, in order.

    As many from each straight piece as there are: on the rare side of an extreme quantile all rows
    matter, however far they are.
    """
    there = there[: np.flatnonzero(there)[-1] + 1]
    share = count // len(there)
    most = share + count - int(np.minimum(there, share).sum())
    rows = within(piece, distance, _reaches(piece, distance, there, most))
    if len(rows) <= _ABOUT * count:
        return rows
    # Many rows at one distance.
    chosen = []
    for number in range(len(there)):
        own = np.flatnonzero(piece == number)
        if len(own) > most:
            own = own[np.argpartition(distance[own], most)[:most]]
        chosen.append(own)
    return np.sort(np.concatenate(chosen))


def _reaches(piece: NDArray[np.int8], distance: Array, there: NDArray[np.intp], most: int) -> Array:
    """For each piece the distance within which so many of its rows are, judged by some of them."""
    reaches = np.full(len(there), np.inf)
    step = max(1, len(piece) // _JUDGED)
    for number in np.flatnonzero(there > most):
        own = of_piece(piece, distance, int(number), step)
        place = len(own) * most // int(there[number])
        if place < len(own):
            reaches[number] = np.partition(own, place)[place]
    return reaches
