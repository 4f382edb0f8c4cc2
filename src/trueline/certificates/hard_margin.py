"""Certificates of hard margins; see :mod:`trueline.certificates.hard_margin_check`."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from trueline.certificates.base import Certificate
from trueline.certificates.hard_margin_check import KIND, lowest_squares
from trueline.problem import Problem

__all__ = ["certify_hard_margin"]

Array = NDArray[np.float64]

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
    least = _safe_margins(blocks, problem.target, W, b)
    factor = np.where(least > 0, (1 + 16 * _EPS) / least, np.nan)
    W, b = W * factor, b * factor
    lower = lowest_squares(blocks, problem.target, shares, problem.fit_intercept)
    squares = 0.5 * np.square(W).sum(axis=0)
    rounding = (len(W) + 8) * _EPS * float(squares.sum())
    return Certificate(
        kind=KIND,
        objective=float(squares.sum()),
        objective_rounding=rounding,
        gap=float(squares.sum() - lower.sum()) + 3 * rounding,
        loss=problem.loss,
        penalty=problem.penalty,
        fit_intercept=problem.fit_intercept,
        coef=W,
        intercept=b,
        witness={"shares": shares},
    )


def _safe_margins(blocks: list[tuple[Any, Array]], y: Array, W: Array, b: Array) -> Array:
    """min_i y_i (x_i.w + b) of each target, less what any order of summation may take off it.

    The sums here err by one reach, those of whoever checks them by another one, and so do those of
    coefficients that are longer by a factor; a check takes a reach off once more.
    """
    least = np.full(W.shape[1], np.inf)
    for where, block in blocks:
        reach = (len(W) + 4) * _EPS * (np.abs(block) @ np.abs(W) + np.abs(b))
        least = np.minimum(least, (y[where] * (block @ W + b) - 4 * reach).min(axis=0))
    return least
