"""Proofs by the tangent for many problems at once, from sums over their rows.

What :mod:`trueline.certificates.tangent` needs to know of the rows of a problem of two classes are
sums of weights, columns and squares over either class, and sums of the losses and their derivatives
at the point: no further pass over the rows. Penalties are squares of one strength for each problem.
All arrays begin with an axis of problems.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from trueline.certificates.base import Certificate, checkable
from trueline.certificates.evaluation import confirmable_terms, through_the_loss
from trueline.certificates.tangent import SAFE, UNDERFLOW, floor_of, nearby
from trueline.losses import Loss
from trueline.penalties import Penalty

__all__ = ["PointSums", "RowSums"]

Array = NDArray[np.float64]
Integers = NDArray[np.intp]

_EPS = float(np.finfo(np.float64).eps)
# Bounds on bounds are a little larger than what they rest on.
_MORE = 1 + 1e-6


class PointSums(NamedTuple):
    """What is known of points.

    Attributes
    ----------
    W : array of shape (p, d)
        Coefficients.
    levels : array of shape (p,)
        Scores of the middle of the rows.
    losses, squares, slope, curvature : arrays of shape (p,)
        sum_i s_i l_i, sum_i s_i u_i^2, sum_i s_i u_i and sum_i s_i l_i''.
    correlation : array of shape (p, d)
        sum_i s_i u_i x_i, of rows about the middle.
    chain : float
        Most additions one after the other in sums over rows.
    """

    W: Array
    levels: Array
    losses: Array
    squares: Array
    slope: Array
    curvature: Array
    correlation: Array
    chain: float


@dataclass(frozen=True)
class RowSums:
    """What is known of the rows of each problem, whatever the point; first label -1, then +1.

    Attributes
    ----------
    middle : array of shape (d,)
        What was subtracted from the rows of all problems.
    fit_intercept : bool
    shares, means : arrays of shape (p, 2) and (p, 2, d)
        Weights of the classes, and at least the sizes of their means about the centre.
    centre, size, spread : arrays of shape (p, d)
        Means of the columns (zero without an intercept); at least sqrt(sum_i s_i x_ij^2) about the
        middle, and about the centre.
    farthest : array of shape (p,)
        At least the largest distance of a row from the centre.
    count : array of shape (p,)
        Rows.
    """

    middle: Array
    fit_intercept: bool
    shares: Array
    means: Array
    centre: Array
    size: Array
    spread: Array
    farthest: Array
    count: Integers

    @classmethod
    def of(
        cls,
        middle: Array,
        fit_intercept: bool,
        shares: Array,
        totals: Array,
        squares: Array,
        farthest: Array,
        count: Integers,
    ) -> RowSums:
        """From sum_i s_i, sum_i s_i x_i of both classes, sum_i s_i x_i^2 and the largest |x_i|."""
        weight = shares.sum(axis=1)[:, None]
        centre, means = np.zeros_like(squares), np.zeros_like(totals)
        if fit_intercept:
            centre = totals.sum(axis=1) / weight
            # A thousandth more, and what centring may have lost.
            apart = np.abs(totals - shares[:, :, None] * centre[:, None])
            lost = 8 * (count[:, None] + 16) * _EPS * np.sqrt(squares)
            with np.errstate(divide="ignore", invalid="ignore"):  # classes without weight
                means = apart * 1.001 / shares[:, :, None]
                means = means + lost[:, None] / np.sqrt(shares)[:, :, None]
        about = np.maximum(squares - weight * centre**2, 0.0)
        spread, size = np.sqrt(about + 1e-9 * squares) * _MORE, np.sqrt(squares) * _MORE
        farthest = (farthest + np.sqrt((centre**2).sum(axis=1))) * _MORE
        shares = shares * (1 - (count[:, None] + 4) * _EPS)
        return cls(middle, fit_intercept, shares, means, centre, size, spread, farthest, count)

    def take(self, which: Integers) -> RowSums:
        """Of some of the problems."""
        arrays: Any = (self.shares, self.means, self.centre, self.size, self.spread)
        rest = (array[which] for array in (*arrays, self.farthest, self.count))
        return RowSums(self.middle, self.fit_intercept, *rest)

    def certify(self, at: PointSums, loss: Loss, penalties: Sequence[Penalty]) -> list[Certificate]:
        """The certificates of points, one for each problem."""
        W, b = at.W, at.levels - at.W @ self.middle if self.fit_intercept else 0.0 * at.levels
        a = np.array([float(penalty.curvature) for penalty in penalties])
        objective = at.losses + 0.5 * a * (W**2).sum(axis=1)
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            rounding, gaps = self._gaps(at, b, a, loss, objective)
        return [
            Certificate(
                kind="tangent",
                objective=float(objective[p]),
                objective_rounding=float(2 * rounding[p]),
                gap=checkable(
                    gaps[p] * 1.1 + UNDERFLOW * int(self.count[p]),
                    objective[p],
                    floor_of(W.shape[1]),
                ),
                loss=loss,
                penalty=penalty,
                fit_intercept=self.fit_intercept,
                coef=np.ascontiguousarray(W[p, :, None]),
                intercept=b[p : p + 1].copy(),
                witness={},
            )
            for p, penalty in enumerate(penalties)
        ]

    def _gaps(
        self, at: PointSums, b: Array, a: Array, loss: Loss, objective: Array
    ) -> tuple[Array, Array]:
        """The rounding of the objectives, and the gaps."""
        (W, middle), d = (at.W, self.middle), len(self.middle)
        total = self.shares.sum(axis=1)
        root, size = np.sqrt(total), np.sqrt(at.squares) * _MORE
        # With m the middle, scores are sums of w_j (x_ij - m_j) and a level c, b + m.w but for
        # rounding: errors of d + 4 units of |x_ij| + |m_j| and of |c| <= |b| + |m|.|w|, twice.
        most = self.size + 5 * root[:, None] * np.abs(middle)
        reach = (most * np.abs(W)).sum(axis=1) + root * (np.abs(b) + _MORE)
        score_error = (2 * d + 12) * _EPS * reach
        passed_on, row_error = through_the_loss(
            loss, loss.curvature_bound, total, size, score_error
        )
        own, terms = (at.chain + 40) * _EPS, confirmable_terms(at.chain, self.count)
        rounding = passed_on + own * at.losses + (d + 8) * _EPS * (objective - at.losses)
        rounding = rounding + UNDERFLOW
        each = row_error + (terms + 8) * _EPS * size
        slope_error = root * (row_error + own * size)
        g = at.correlation - self.centre * at.slope[:, None]
        error = self.size * each[:, None] + np.abs(self.centre) * slope_error[:, None]
        error += 4 * _EPS * (np.abs(at.correlation) + np.abs(self.centre * at.slope[:, None]))
        ceiling = (objective + 3 * rounding) * SAFE
        # Once for these sums, once for those of whoever checks them, once for what they differ by.
        bent = a[:, None] * W
        apart = np.abs(bent + g) + 3 * error + 4 * _EPS * (np.abs(bent) + np.abs(g) + 3 * error)
        gaps = (apart * (0.5 * (apart / a[:, None]))).sum(axis=1)
        gaps += 16 * _EPS * ((np.abs(g) + 3 * error) * np.abs(W)).sum(axis=1)
        if self.fit_intercept:
            steep = np.abs(at.slope) + 3 * slope_error + root * (terms + 12) * _EPS * size
            level = b + ((middle + self.centre) * W).sum(axis=1)
            gaps += steep * self._reach(loss, a, ceiling, level)
            if "self_concordant" in loss.capabilities:
                local = at.curvature * (1 - 2e-6), (self.spread**2).sum(axis=1) * _MORE
                lengths = np.sqrt((apart**2).sum(axis=1))
                gaps = np.minimum(gaps, nearby(loss, a, lengths, steep, *local, self.farthest))
        gaps = np.where(np.isfinite(gaps), np.minimum(gaps * SAFE, ceiling), ceiling)
        return rounding, gaps

    def _reach(self, loss: Loss, a: Array, ceiling: Array, level: Array) -> Array:
        """How far the intercepts may be."""
        across = np.sqrt(2 * ceiling[:, None] * (self.means**2).sum(axis=2) / a[:, None]) * SAFE
        each = (ceiling[:, None] / self.shares).tolist()
        margins = np.array([[loss.least_margin(share) for share in pair] for pair in each])
        far = across - margins + 1e-9 * np.abs(margins)
        return np.maximum(np.abs(level + far[:, 1]), np.abs(far[:, 0] - level))
