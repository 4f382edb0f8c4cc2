"""What the sums over classes say of problems of two classes, and what they prove of an answer."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from trueline.certificates.base import Certificate
from trueline.certificates.evaluation import Rounding
from trueline.certificates.tangent import RowSums, certify_sums
from trueline.design import Accuracy
from trueline.losses import Loss
from trueline.penalties import L2

__all__ = ["ClassSums", "Sides", "Sums", "certify_side", "constants_of", "is_far"]

Array = NDArray[np.float64]

_EPS = float(np.finfo(np.float64).eps)
# What is left of columns whose means are so many spreads away from zero may be rounding.
_FAR = 1e6


class ClassSums(Protocol):
    """Sums over the rows of each class, about a middle of all rows."""

    @property
    def bounds(self) -> NDArray[np.int64]:
        """Where the rows of each class begin."""

    @property
    def shares(self) -> Array:
        """Sums of the weights, of shape (classes,)."""

    @property
    def totals(self) -> Array:
        """sum_i s_i x_i, of shape (classes, d) or with what follows the columns of X."""

    @property
    def squares(self) -> Array:
        """sum_i s_i x_i^2, of shape (classes, d)."""

    @property
    def middle(self) -> Array:
        """The mean of all rows; zero without an intercept."""

    @property
    def farthest(self) -> Array:
        """The largest distance of a row of each class from there."""


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
    def of(cls, rows: ClassSums, book: Array, sides: Array, fit_intercept: bool) -> Sides:
        d = len(rows.middle)
        each = np.stack([(book < 0) * sides[:, :1], (book > 0) * sides[:, 1:]], axis=1)
        shares, totals = each @ rows.shares, each @ rows.totals[:, :d]
        square = each.sum(axis=1) @ rows.squares
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


@dataclass(frozen=True)
class Sums:
    """An answer, and sums over its rows there.

    Attributes
    ----------
    point : array of shape (d + 1,)
        Coefficients and the level of the middle, which is left out without an intercept.
    correlation : array of shape (d,)
        sum_i s_i u_i x_i, of rows about the middle.
    losses, squares, slope, curvature : float
        sum_i s_i l_i, sum_i s_i u_i^2, sum_i s_i u_i and sum_i s_i l_i''.
    chain : float
        Most additions one after the other in any of them.
    """

    point: Array
    correlation: Array
    losses: float
    squares: float
    slope: float
    curvature: float
    chain: float


def is_far(middle: Array, about: Sides) -> NDArray[np.bool_]:
    """Problems of which some column is so far from zero that its spread may be rounding."""
    level = np.sqrt(about.shares.sum(axis=1))[:, None] * np.abs(middle)
    return ((level > _FAR * about.size) & (about.size > 0)).any(axis=1)


def certify_side(
    k: int,
    middle: Array,
    about: Sides,
    found: Sums,
    loss: Loss,
    penalty: L2,
    fit_intercept: bool,
) -> Certificate:
    """What is proven of the answer to problem k."""
    d, count = about.centre.shape[1], int(about.count[k])
    W, b = found.point[:d, None].copy(), np.zeros(1)
    if fit_intercept:
        b = found.point[d:] - middle @ W
    total = float(about.shares[k].sum())
    # With m the middle, scores are sums of w_j (x_ij - m_j) and a level c that is b + m.w but for
    # rounding: errors of d + 4 units of |x_ij| + |m_j| and of |c| <= |b| + |m|.|w|, twice.
    most = about.size[k] + 5 * math.sqrt(total) * np.abs(middle)
    rounding = Rounding(
        accuracy=Accuracy(2 * d + 8, found.chain, most),
        mean=about.centre[k],
        weight=total,
        target_size=np.array([math.sqrt(total) * (1 + 1e-6)]),
        rows=count,
    )
    sums = RowSums(
        losses=found.losses,
        squares=found.squares,
        slope=found.slope,
        curvature=found.curvature,
        correlation=found.correlation,
        size=about.size[k],
        origin=middle,
        centre=about.centre[k],
        spread=about.spread[k],
        farthest=float(about.farthest[k]),
        shares=about.shares[k] * (1 - (count + 4) * _EPS),
        means=about.means[k],
    )
    return certify_sums(sums, rounding, found.chain, loss, penalty, fit_intercept, W, b)


def constants_of(loss: Loss, shares: Array, fit_intercept: bool) -> tuple[Array, Array]:
    """The best constants, where the slopes of both classes cancel, and the losses there."""
    if not fit_intercept:
        levels = np.zeros(len(shares))
    elif loss.name == "logistic":
        levels = np.log(shares[:, 1]) - np.log(shares[:, 0])
    else:
        levels = (shares[:, 1] - shares[:, 0]) / shares.sum(axis=1)
    each = [loss.value(np.full(len(levels), y), levels) for y in (-1.0, 1.0)]
    return levels, (shares * np.stack(each, axis=1)).sum(axis=1)
