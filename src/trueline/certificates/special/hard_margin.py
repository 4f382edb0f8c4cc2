r"""Proof of a hard margin: the hyperplane from one side, points of the hulls from the other.

Minimised is 1/2 ||w||^2 under y_i (x_i.w + b) >= 1. With weights a_i >= 0 of sum one in each class
and p = sum_{+} a_i x_i - sum_{-} a_i x_i, no w that is allowed has 1/2 ||w||^2 < 2 / ||p||^2;
without an intercept, with weights of sum one over all rows and p = sum_i a_i y_i x_i, none has
1/2 ||w||^2 < 1 / (2 ||p||^2).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trueline.certificates.base import Certificate
from trueline.problem import Problem

__all__ = ["certify_hard_margin"]

Array = NDArray[np.float64]
Blocks = Iterable[tuple[Any, Array]]

_EPS = float(np.finfo(np.float64).eps)


def certify_hard_margin(problem: Problem, W: Array, b: Array, shares: Array) -> Certificate:
    """Coefficients moved onto their margins, and what is proven about them.

    Parameters
    ----------
    problem : Problem
        With the loss :class:`~trueline.losses.HardMargin`.
    W, b : arrays of shape (d, k) and (k,)
        That have every row on its side.
    shares : array of shape (n, k)
        Weights of the rows whose hulls come nearest to each other.
    """
    blocks = list(problem.design.blocks(2048))
    least = _least_margins(blocks, problem.target, W, b)
    # A little longer than they need be, for what rounding takes off the margins of the longer ones.
    factor = np.where(least > 0, (1 + 16 * _EPS) / least, np.nan)
    W, b = W * factor, b * factor
    lower = _lowest_squares(blocks, problem.target, shares, problem.fit_intercept)
    squares = 0.5 * np.square(W).sum(axis=0)
    rounding = (len(W) + 8) * _EPS * float(squares.sum())
    gap = float(squares.sum() - lower.sum()) + 3 * rounding
    return Certificate.about(
        problem, "hard margin", W, b, squares, rounding, gap, {"shares": shares}
    )


def _least_margins(blocks: Blocks, y: Array, W: Array, b: Array) -> Array:
    """min_i y_i (x_i.w + b) of each target, less what any order of summation may take off it.

    The sums here err by one reach, those of whoever checks them by another one, and so do those of
    coefficients that are longer by a factor; a check takes a reach off once more.
    """
    least = np.full(W.shape[1], np.inf)
    for where, block in blocks:
        reach = (len(W) + 4) * _EPS * (np.abs(block) @ np.abs(W) + np.abs(b))
        least = np.minimum(least, (y[where] * (block @ W + b) - 4 * reach).min(axis=0))
    return least


def _lowest_squares(blocks: Blocks, y: Array, shares: Array, fit_intercept: bool) -> Array:
    """What 1/2 ||w||^2 is at least, for each target."""
    sides = (y > 0, y < 0) if fit_intercept else (np.ones(y.shape, dtype=bool),)
    # The sums are known up to rounding: weights divided by less than their sum give a longer p.
    units = (len(y) + 8) * _EPS
    scaled = np.zeros(y.shape)
    for side in sides:
        sums = np.where(side, shares, 0.0).sum(axis=0) * (1 - units)
        scaled += np.where(side, shares, 0.0) / np.where(sums > 0, sums, np.nan)
    total = size = np.zeros((1, y.shape[1]))
    for where, block in blocks:
        total = total + block.T @ (y[where] * scaled[where])
        size = size + np.abs(block).T @ scaled[where]
    # A row that weighs too much by a share of units moves p by that share of its size.
    length = np.square(np.abs(total) + 3 * units * size).sum(axis=0) * (1 + (len(size) + 4) * _EPS)
    return (2.0 if fit_intercept else 0.5) / length * (1 - 4 * _EPS)
