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
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trueline.certificates.base import Proof
from trueline.wording import Readable

__all__ = ["Combination", "MarginCertificate", "SeparationCertificate"]

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
