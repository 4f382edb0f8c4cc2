r"""Cross-validated scores of every set of columns that differs from the present one by one column.

With E the squared error of the test rows of a fold, n their number and h the square of their target
about its mean, a fold scores

    R^2                  1 - E / h
    mean squared error   -E / n
    its root             -sqrt(E / n)

averaged over targets and then over folds, as scikit-learn does. E comes from the tableau of the
fold, with a bound on its rounding, so that a caller can tell which comparisons are safe.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from trueline.moments import Moments
from trueline.selection.stepwise.tableau import Tableau

__all__ = ["SCORES", "FoldScores", "Scores"]

Array = NDArray[np.float64]

#: The names of the scores that squared errors give.
SCORES = ("r2", "neg_mean_squared_error", "neg_root_mean_squared_error")

# A column of which less is left (relative to its square) is not told from a dependent one here.
_DOUBTFUL = 1e-8
# How far rounding may be amplified beyond the bounds of the moments.
_SAFETY = 16.0


class Scores(NamedTuple):
    """Scores of exchanges, one per column; NaN where the moments cannot tell.

    ``rounding`` bounds what rounding may have done to each.
    """

    values: Array
    rounding: Array


class FoldScores:
    """Scores by cross-validation, of models that differ by one column, from fold tableaux.

    Parameters
    ----------
    tableaux : sequence of Tableau
        One per fold, with held-out rows.
    helds : sequence of Moments
        Of the held-out rows, about their own means.
    name : str
        One of :data:`SCORES`.
    unit : float, default=0.0
        Relative rounding of the answers this one is compared with (of single precision, say).

    Examples
    --------
    >>> import numpy as np
    >>> from trueline.design import as_design
    >>> from trueline.moments import Moments
    >>> from trueline.selection.stepwise.scores import FoldScores
    >>> from trueline.selection.stepwise.tableau import Tableau
    >>> X, y = np.array([[0.0, 1.0], [1.0, 0.0], [2.0, 2.0]]), np.array([[0.0], [1.0], [2.0]])
    >>> rows = Moments.from_rows(as_design(X), y)
    >>> FoldScores([Tableau(rows, rows)], [rows], "r2").exchanges().values
    array([1.  , 0.25])
    """

    def __init__(
        self, tableaux: Sequence[Tableau], helds: Sequence[Moments], name: str, unit: float = 0.0
    ) -> None:
        self.tableaux, self.helds, self.name = tableaux, helds, name
        self.unit = unit
        self.least = np.ones(len(tableaux))

    @property
    def is_usable(self) -> bool:
        """Whether every fold can be scored: enough rows, and a target that varies where needed."""
        rows = [held.count for held in self.helds]
        if self.name != "r2":
            return min(rows) >= 1
        varies = [(held.y_square > 16 * held.unit * held.y_size).all() for held in self.helds]
        return min(rows) >= 2 and all(varies)

    @property
    def is_determined(self) -> bool:
        """Whether all columns asked for are inside, in every fold."""
        return not any(tableau.stranded().any() for tableau in self.tableaux)

    def follow(self, inside: NDArray[np.bool_]) -> None:
        """Exchange columns until these are inside."""
        for number, tableau in enumerate(self.tableaux):
            leaving = np.flatnonzero(tableau.wanted & ~inside)
            entering = np.flatnonzero(inside & ~tableau.wanted)
            if len(leaving):
                tableau.leave(leaving)
            if len(entering):
                tableau.enter(entering)
            self.least[number] = _least_pivot(tableau)

    def exchanges(self) -> Scores:
        """The score of each model that differs from the present one by one column."""
        total: Array | float = 0.0
        rounding: Array | float = 0.0
        for tableau, held, least in zip(self.tableaux, self.helds, self.least):
            outlook = tableau.outlook()
            pivot = np.abs(tableau.M.diagonal()[: tableau.n_features])
            with np.errstate(divide="ignore", invalid="ignore"):
                left = np.where(tableau.inside, 1.0, pivot / tableau.size)
            square = np.where((outlook.change != 0)[:, None], outlook.held_square, np.nan)
            square[left < _DOUBTFUL] = np.nan
            amplified = np.minimum(np.maximum(left, _DOUBTFUL), least)
            unit = self.unit + _SAFETY * (tableau.moments.unit + held.unit)
            value, slope = self._score(square, held)
            # Rounding enters relative to what is added up, of which h and E are the largest.
            size = tableau.held_square() + square + held.y_square
            total = total + value
            rounding = rounding + (slope * size).mean(axis=1) * (unit / amplified)
        count = len(self.tableaux)
        return Scores(np.asarray(total) / count, np.asarray(rounding) / count)

    def _score(self, square: Array, held: Moments) -> tuple[Array, Array]:
        """The score of squared errors, mean over targets, and how fast it changes with them."""
        if self.name == "r2":
            return (1 - square / held.y_square).mean(axis=1), 1 / np.broadcast_to(
                held.y_square, square.shape
            )
        if self.name == "neg_mean_squared_error":
            return -(square / held.weight).mean(axis=1), np.full_like(square, 1 / held.weight)
        root = np.sqrt(square / held.weight)
        with np.errstate(divide="ignore"):
            return -root.mean(axis=1), 0.5 / (np.maximum(root, 1e-300) * held.weight)


def _least_pivot(tableau: Tableau) -> float:
    """The least part of a column inside that the other columns inside leave, relative to it."""
    inside = tableau.inside
    if not inside.any():
        return 1.0
    left = -1.0 / tableau.M.diagonal()[: tableau.n_features][inside]
    return float(np.min(left / tableau.size[inside]))
