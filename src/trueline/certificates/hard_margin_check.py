r"""Proof of a hard margin: the hyperplane from one side, points of the hulls from the other.

Minimised is 1/2 ||w||^2 under y_i (x_i.w + b) >= 1. With weights a_i >= 0 of sum one in each class,
p = sum_{+} a_i x_i - sum_{-} a_i x_i joins a point of one hull to a point of the other, and any w
that is allowed has

    w.p = sum_{+} a_i (x_i.w + b) - sum_{-} a_i (x_i.w + b) >= 2,    so  1/2 ||w||^2 >= 2 / ||p||^2.

Without an intercept the weights are of sum one over all rows, p = sum_i a_i y_i x_i has w.p >= 1,
and 1/2 ||w||^2 >= 1 / (2 ||p||^2).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trueline.certificates.base import Certificate
from trueline.certificates.checking import EPS, Check, Rows

__all__ = ["KIND", "WITNESS", "check_hard_margin", "least_margins", "lowest_squares"]

Array = NDArray[np.float64]
Blocks = Iterable[tuple[Any, Array]]

KIND = "hard margin"
WITNESS = ("shares",)


def least_margins(blocks: Blocks, y: Array, W: Array, b: Array) -> Array:
    """min_i y_i (x_i.w + b) of each target, from below."""
    least = np.full(W.shape[1], np.inf)
    for where, block in blocks:
        reach = (len(W) + 4) * EPS * (np.abs(block) @ np.abs(W) + np.abs(b))
        least = np.minimum(least, (y[where] * (block @ W + b) - reach).min(axis=0))
    return least


def lowest_squares(blocks: Blocks, y: Array, shares: Array, fit_intercept: bool) -> Array:
    """What 1/2 ||w||^2 is at least, for each target."""
    sides = (y > 0, y < 0) if fit_intercept else (np.ones(y.shape, dtype=bool),)
    # The sums are known up to rounding: weights divided by less than their sum give a longer p.
    units = (len(y) + 8) * EPS
    scaled = np.zeros(y.shape)
    for side in sides:
        sums = np.where(side, shares, 0.0).sum(axis=0) * (1 - units)
        scaled += np.where(side, shares, 0.0) / np.where(sums > 0, sums, np.nan)
    total = size = np.zeros((1, y.shape[1]))
    for where, block in blocks:
        total = total + block.T @ (y[where] * scaled[where])
        size = size + np.abs(block).T @ scaled[where]
    # A row that weighs too much by a share of units moves p by that share of its size.
    length = np.square(np.abs(total) + 3 * units * size).sum(axis=0) * (1 + (len(size) + 4) * EPS)
    return (2.0 if fit_intercept else 0.5) / length * (1 - 4 * EPS)


def check_hard_margin(certificate: Certificate, rows: Rows) -> list[Check]:
    """Every row is on its margin or beyond, and the hulls are as near as claimed."""
    W, b, y = certificate.coef, certificate.intercept, rows.y
    if not (np.abs(y) == 1).all():
        return [Check("targets", "-1 and +1", "others", False)]
    shares = np.asarray(certificate.witness["shares"], dtype=np.float64)
    shares = shares[rows.keep] if shares.ndim == 2 and len(shares) == rows.given else shares
    if shares.shape != y.shape or not (np.isfinite(shares).all() and (shares >= 0).all()):
        return [Check("weights of rows", f"shape {y.shape}, >= 0", f"{shares.shape}", False)]
    blocks = list(rows)
    least = float(least_margins(blocks, y, W, b).min())
    square = 0.5 * float(np.square(W).sum())
    off = abs(square - certificate.objective)
    lower = float(lowest_squares(blocks, y, shares, certificate.fit_intercept).sum())
    gap = certificate.objective + certificate.objective_rounding - lower
    return [
        Check("margins", ">= 1", f"{least:.12g}", least >= 1.0),
        Check(
            "objective",
            f"{certificate.objective:.10g}",
            f"{square:.10g}",
            off <= certificate.objective_rounding,
        ),
        Check("gap", f"<= {certificate.gap:.4g}", f"{gap:.4g}", gap <= certificate.gap),
    ]
