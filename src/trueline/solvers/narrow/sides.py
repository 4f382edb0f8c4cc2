"""What the sums of the classes say of problems of two classes, without a look at the rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from trueline.solvers.narrow.classes import ClassRows

__all__ = ["Sides"]

Array = NDArray[np.float64]

_EPS = float(np.finfo(np.float64).eps)


@dataclass(frozen=True)
class Sides:
    """What the sums of the classes say of each problem; first -1, then +1.

    Attributes
    ----------
    shares : array of shape (problems, 2)
        Weights.
    centre : array of shape (problems, d)
        Means of the columns, less the middle of all rows (zero without an intercept).
    size, spread : arrays of shape (problems, d)
        sqrt(sum_i s_i x_ij^2) about the middle, and about the centre.
    means : array of shape (problems, 2, d)
        At least the sizes of the classes' means about the centre.
    farthest : array of shape (problems,)
        At least the largest distance of a row from the centre.
    count : array of shape (problems,)
        Rows.
    """

    shares: Array
    centre: Array
    size: Array
    spread: Array
    means: Array
    farthest: Array
    count: NDArray[np.intp]

    @classmethod
    def of(cls, rows: ClassRows, book: Array, sides: Array, fit_intercept: bool) -> Sides:
        d = len(rows.middle)
        each = np.stack([(book < 0) * sides[:, :1], (book > 0) * sides[:, 1:]], axis=1)
        shares, totals = each @ rows.shares, each @ rows.totals[:, :d]
        square = each.sum(axis=1) @ rows.grams.diagonal(axis1=1, axis2=2)[:, :d]
        count = (book != 0) @ np.diff(rows.bounds)
        centre, means = np.zeros_like(square), np.zeros_like(totals)
        if fit_intercept:
            centre = totals.sum(axis=1) / shares.sum(axis=1)[:, None]
            # Bounds on bounds: a thousandth more, and what centring may have lost.
            apart = np.abs(totals - shares[:, :, None] * centre[:, None])
            lost = 8 * (count[:, None] + 16) * _EPS * np.sqrt(square)
            means = apart * 1.001 / shares[:, :, None]
            means = means + lost[:, None] / np.sqrt(shares)[:, :, None]
        about = np.maximum(square - shares.sum(axis=1)[:, None] * centre**2, 0.0)
        spread = np.sqrt(about + 1e-9 * square)
        off = np.sqrt((centre**2).sum(axis=1))
        farthest = np.where(book != 0, rows.farthest, 0.0).max(axis=1) + off
        safe = 1 + 1e-6
        size = np.sqrt(square)
        return cls(shares, centre, size * safe, spread * safe, means, farthest * safe, count)
