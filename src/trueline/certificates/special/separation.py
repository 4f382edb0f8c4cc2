r"""What is proven about the separability of classes, with integers for witnesses.

With the rows of data x_i, or (x_i, 1) if there is an intercept, and g_c the unknowns of class c,
an *inequality* (i, c) is that of row i against a class c other than its own::

    d_ic(g) = (g_own - g_c).x_i

- *separable*: some g has d_ic(g) > 0 for all inequalities.
- *quasi-separable*: not separable, but some g has d_ic(g) >= 0 for all and > 0 for at least one.
- *not separable*: neither.

For two classes d_ic is y_i (x_i.w + b) with w, b the difference of both classes' unknowns, and
these are complete separation, quasi-complete separation and overlap of A. Albert and
J. A. Anderson, Biometrika 71 (1984) 1-10 (K. Konis, thesis, Oxford, 2007, for columns that depend
on each other).

What proves each of them:

- a direction g, for separable and quasi-separable;
- multipliers t_ic >= 0, not all zero, with ``sum t_ic d_ic = 0`` for every g: they exclude g with
  d > 0 for all inequalities (P. Gordan 1873). For two classes they are the weights of a point that
  both convex hulls share;
- such multipliers, all positive, on inequalities that span others: these others are zero for every
  g with d >= 0 (E. Stiemke 1915).

What is proven about the largest margin of classes.

With signs y_i (or, for several classes, scores of which the own one is the largest) a hyperplane
proves ``gamma >= min_i y_i (x_i.w + b) / ||w||``, and weights of rows prove an upper bound: half
the distance of two points of the convex hulls of both classes, or, without an intercept, the norm
of a point of the convex hull of the ``y_i x_i``.

Proof of a hard margin: the hyperplane from one side, points of the hulls from the other.

Minimised is 1/2 ||w||^2 under y_i (x_i.w + b) >= 1. With weights a_i >= 0 of sum one in each class
and p = sum_{+} a_i x_i - sum_{-} a_i x_i, no w that is allowed has 1/2 ||w||^2 < 2 / ||p||^2;
without an intercept, with weights of sum one over all rows and p = sum_i a_i y_i x_i, none has
1/2 ||w||^2 < 1 / (2 ||p||^2).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trueline.certificates.base import Certificate, Proof
from trueline.problem import Problem
from trueline.wording import Readable

_STATEMENTS = {
    "separable": "every row is strictly on its own side of the stated hyperplanes",
    "quasi-separable": (
        "no hyperplanes have every row strictly on its own side, since a combination of rows "
        "vanishes; the stated ones have no row on a wrong side, and only rows on them that are on "
        "all such hyperplanes"
    ),
    "not separable": (
        "no hyperplanes have every row strictly on its own side, since a combination of rows "
        "vanishes, nor any row on its own side and no row on a wrong one, since a combination of "
        "rows that span all others vanishes"
    ),
    "margin": (
        "no row is nearer to the hyperplane than the margin, and no hyperplane has a margin above "
        "the upper bound"
    ),
}


@dataclass(frozen=True, repr=False)
class Combination(Readable):
    """sum_k multipliers_k d(rows_k, against_k) = 0.

    Attributes
    ----------
    rows : array of int
        Rows of the data, counted from 0.
    against : array of int
        The class, as a position in ``classes``, that each is held against.
    multipliers : tuple of int
        Positive.
    """

    rows: NDArray[np.integer]
    against: NDArray[np.integer]
    multipliers: tuple[int, ...]


@dataclass(frozen=True, repr=False)
class SeparationCertificate(Proof):
    """A verdict on separability, and the witnesses that prove it.

    Attributes
    ----------
    kind : {"separable", "quasi-separable", "not separable"}
    classes : array of shape (k,)
        The labels, sorted.
    fit_intercept : bool
    n_features : int
    direction : tuple of k tuples of int
        g, a positive multiple of it; without one if not separable.
    margin : float
        For separable: ``d_ic(g) >= margin ||g||`` for all inequalities, where the norm is without
        intercepts; for two classes that of the difference, which makes the margin a distance.
    boundary_rows, boundary_against : arrays of int
        For quasi-separable: the inequalities that are zero for every g with d >= 0. For not
        separable these are all.
    common : Combination
        Multipliers on few inequalities that exclude a strict separation.
    spanning : Combination
        Multipliers on inequalities that span those of the boundary.
    """

    kind: str
    classes: NDArray[Any]
    fit_intercept: bool
    n_features: int
    direction: tuple[tuple[int, ...], ...]
    margin: float
    boundary_rows: NDArray[np.integer]
    boundary_against: NDArray[np.integer]
    common: Combination
    spanning: Combination

    _statements = _STATEMENTS

    def __str__(self) -> str:
        parts = [self.kind]
        if self.kind == "separable":
            parts.append(f"margin at least {self.margin:.6g}")
        if len(self.common.rows):
            parts.append(f"{len(self.common.rows)} inequalities exclude a strict separation")
        return "; ".join(parts)


Array = NDArray[np.float64]


@dataclass(frozen=True, repr=False)
class MarginCertificate(Proof):
    """Bounds on the largest margin from both sides, with witnesses.

    Attributes
    ----------
    classes : array of shape (k,)
    fit_intercept : bool
    coef : array of shape (1, d), or (k, d) for more than two classes
    intercept : float
    margin : float
        No row is nearer to the hyperplane.
    upper_bound : float
        No hyperplane has a larger margin.
    rows, against : arrays of int
        Rows, and the classes, as positions, that they are held against.
    weights : array
        Their weights; only their ratios matter (with an intercept, those within each class).
    radius : float
        No row has a larger norm.
    """

    classes: Any
    fit_intercept: bool
    coef: Array
    intercept: float
    margin: float
    upper_bound: float
    rows: NDArray[np.integer]
    against: NDArray[np.integer]
    weights: Array
    radius: float

    kind = "margin"
    _statements = _STATEMENTS


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
