"""Certificates of hard margins; see :mod:`trueline.certificates.hard_margin_check`."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from trueline.certificates.base import Certificate
from trueline.certificates.hard_margin_check import KIND, least_margins, lowest_squares
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
    least = least_margins(blocks, problem.target, W, b)
    # A little longer than they need be, for what rounding takes off the margins of the longer ones.
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
