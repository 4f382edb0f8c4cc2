r"""What is proven about the largest margin of classes.

With signs y_i (or, for several classes, scores of which the own one is the largest) a hyperplane
proves ``gamma >= min_i y_i (x_i.w + b) / ||w||``, and weights of rows prove an upper bound: half
the distance of two points of the convex hulls of both classes, or, without an intercept, the norm
of a point of the convex hull of the ``y_i x_i``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from trueline.wording import Readable

if TYPE_CHECKING:
    from trueline.check import Verification

__all__ = ["MarginCertificate"]

Array = NDArray[np.float64]


@dataclass(frozen=True, repr=False)
class MarginCertificate(Readable):
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

    @property
    def kind(self) -> str:
        """The kind of proof."""
        return "margin"

    @property
    def statement(self) -> str:
        """What is proven, in a sentence."""
        return (
            "no row is nearer to the hyperplane than the margin, and no hyperplane has a margin "
            "above the upper bound"
        )

    def verify(self, X: Any, y: Any) -> Verification:
        """Check every claim against the data, in exact arithmetic where doubles do not tell.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)
        y : array-like of shape (n,)

        Returns
        -------
        verification : Verification
            True in a boolean context if everything holds; prints as a table of checks.
        """
        from trueline.check import verify

        return verify(self, X, y)
