"""Proofs from sums over the rows of many problems: no further pass over them for each.

What :mod:`trueline.certificates.tangent` needs to know of the rows of a problem of two classes are
sums of weights, columns and squares over either class, and sums of the losses and their derivatives
at the point. All of them are products with the rows that problems share.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from trueline.certificates.base import Certificate
from trueline.certificates.evaluation import Rounding
from trueline.certificates.tangent import RowSums, certify_sums
from trueline.design import Accuracy
from trueline.penalties import Penalty
from trueline.solvers.newton.batched.descent import Points
from trueline.solvers.newton.batched.rows import Batch

__all__ = ["SumsOfRows"]

Array = NDArray[np.float64]
Integers = NDArray[np.intp]
Proof = Callable[[], Certificate] | None

_EPS = float(np.finfo(np.float64).eps)
# Bounds on bounds are a little larger than what they rest on.
_SAFE = 1 + 1e-6


@dataclass(frozen=True)
class SumsOfRows:
    """What is known of the rows of each problem, whatever the point; first -1, then +1.

    Attributes
    ----------
    middle : array of shape (d,)
        What was subtracted from the rows.
    shares, means : arrays of shape (problems, 2) and (problems, 2, d)
        Weights of the classes, and at least the sizes of their means about the centre.
    centre, size, spread : arrays of shape (problems, d)
        Means of the columns (zero without an intercept); at least sqrt(sum_i s_i x_ij^2) about the
        middle, and about the centre.
    farthest : array of shape (problems,)
        At least the largest distance of a row from the centre.
    count : array of shape (problems,)
        Rows.
    """

    middle: Array
    shares: Array
    means: Array
    centre: Array
    size: Array
    spread: Array
    farthest: Array
    count: Integers

    @classmethod
    def of(cls, batch: Batch, middle: Array) -> SumsOfRows | None:
        """None where this proof does not apply."""
        if "margins" not in batch.loss.capabilities or batch.Y.shape[2] > 1:
            return None
        squares = batch.rows.squares(batch.S)
        if squares is None:
            return None
        each = [batch.S * side for side in (batch.Y[:, :, 0] < 0, batch.Y[:, :, 0] > 0)]
        shares = np.stack([side.sum(axis=0) for side in each], axis=1)
        totals = np.stack([batch.rows.totals(side[:, :, None])[:-1, :, 0].T for side in each], 1)
        count, weight = np.count_nonzero(batch.S, axis=0), shares.sum(axis=1)[:, None]
        centre, means = np.zeros_like(squares), np.zeros_like(totals)
        if batch.fit_intercept and (shares > 0).all():
            centre = totals.sum(axis=1) / weight
            # A thousandth more, and what centring may have lost.
            apart = np.abs(totals - shares[:, :, None] * centre[:, None])
            lost = 8 * (count[:, None] + 16) * _EPS * np.sqrt(squares)
            means = apart * 1.001 / shares[:, :, None]
            means = means + lost[:, None] / np.sqrt(shares)[:, :, None]
        about = np.maximum(squares - weight * centre**2, 0.0)
        spread, size = np.sqrt(about + 1e-9 * squares) * _SAFE, np.sqrt(squares) * _SAFE
        farthest = (batch.rows.farthest + np.sqrt((centre**2).sum(axis=1))) * _SAFE
        return cls(middle, shares, means, centre, size, spread, farthest, count)

    def proofs(
        self, which: Integers, batch: Batch, at: Points, penalties: Sequence[Penalty]
    ) -> list[Proof]:
        """How to prove the answers to some of the problems, those of the batch."""
        Z, U, s = at.Z[:, :, 0], at.U[:, :, 0], batch.S
        losses, slope, curvature = (
            batch.losses(at.Z)[:, 0],
            U.sum(axis=0),
            batch.curvature(at.B).sum(axis=(0, 2)),
        )
        with np.errstate(divide="ignore", invalid="ignore"):
            squares = np.where(s > 0, U * (U / s), 0.0).sum(axis=0)
        correlation = (at.G[:-1] - batch.strength[:, None] * at.V[:-1])[:, :, 0].T
        terms = batch.rows.terms(len(Z))
        out: list[Proof] = []
        for j, f in enumerate(which.tolist()):
            if not (self.shares[f] > 0).all():
                out.append(None)
                continue
            W = at.V[:-1, j].copy()
            b = at.V[-1, j] - self.middle @ W if batch.fit_intercept else np.zeros(1)
            sums = RowSums(
                losses=float(losses[j]),
                squares=float(squares[j]),
                slope=float(slope[j]),
                curvature=float(curvature[j]),
                correlation=correlation[j].copy(),
                size=self.size[f],
                origin=self.middle,
                centre=self.centre[f],
                spread=self.spread[f],
                farthest=float(self.farthest[f]),
                shares=self.shares[f] * (1 - (int(self.count[f]) + 4) * _EPS),
                means=self.means[f],
            )
            rest = (terms, batch.loss, penalties[j], batch.fit_intercept, W, b)
            out.append(partial(certify_sums, sums, self._rounding(f, terms), *rest))
        return out

    def _rounding(self, f: int, terms: float) -> Rounding:
        """With m the middle, scores are sums of w_j (x_ij - m_j) and a level c, b + m.w but for
        rounding: errors of d + 4 units of |x_ij| + |m_j| and of |c| <= |b| + |m|.|w|, twice.
        """
        total, d = float(self.shares[f].sum()), len(self.middle)
        most = self.size[f] + 5 * math.sqrt(total) * np.abs(self.middle)
        return Rounding(
            accuracy=Accuracy(2 * d + 8, terms, most),
            mean=self.centre[f],
            weight=total,
            target_size=np.array([math.sqrt(total) * _SAFE]),
            rows=int(self.count[f]),
        )
