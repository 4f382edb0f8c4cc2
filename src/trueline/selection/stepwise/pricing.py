"""What models cost: from rows to moments, tableaux and a criterion; and cross-validated scores.

Every set of columns that differs from the present one by one column is scored at once.

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
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from trueline.errors import squares_out_of_range
from trueline.moments import Moments
from trueline.problem import Problem
from trueline.selection.criteria import Criterion
from trueline.selection.stepwise.forward import PartialCholesky, gram_columns
from trueline.selection.stepwise.search import FitScorer, HeldOutScorer
from trueline.selection.stepwise.tableau import Tableau, about, fold_tableaux

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
    >>> from trueline.selection.stepwise.pricing import FoldScores
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


# Criteria that need nothing but the residual squares of the models compared.
_OF_THE_SQUARE = ("aic", "aicc", "bic", "adjusted_r2")
_MOST_BYTES = 16 << 30


@dataclass(frozen=True)
class Pricing:
    """How models are to be compared.

    Parameters
    ----------
    criterion : str
        One of :data:`trueline.selection.criteria.CRITERIA`, or "cv".
    direction : {"forward", "backward", "both"}
    k : float
        What AIC charges for a parameter.
    grouped : bool
        Whether terms may be several columns.
    steps : int, optional
        How many columns will enter at most, if that is known.
    """

    criterion: str
    direction: str
    k: float = 2.0
    grouped: bool = False
    steps: int | None = None

    def scorer(
        self, problem: Problem, splits: Sequence[tuple[Any, Any]] | None = None
    ) -> FitScorer | HeldOutScorer:
        """What prices the models on these rows; ``splits`` are the folds of "cv"."""
        with np.errstate(over="ignore", invalid="ignore"):  # what is not finite is refused
            plain = not self.grouped and self.criterion in _OF_THE_SQUARE
            if self.direction == "forward" and plain:
                return self._forward(problem)
            _check_memory(problem.n_features)
            if splits is None:
                moments = Moments.from_rows(problem.design, problem.target, problem.weights)
                return self._fit(moments, problem.fit_intercept)
            folds, helds, moments = fold_tableaux(problem, splits)
            _check_folds(helds)
            return HeldOutScorer(self._fit(moments, problem.fit_intercept), folds)

    def _forward(self, problem: Problem) -> FitScorer:
        """Single columns that only enter: no tableau, and no Gram matrix of very many columns."""
        columns = gram_columns(problem, self.steps)
        _check_range(columns.diagonal, columns.y_square)
        criterion = self._criterion(columns.weight, columns.y_square, problem.fit_intercept)
        return FitScorer(PartialCholesky(columns), criterion)

    def _fit(self, moments: Moments, fit_intercept: bool) -> FitScorer:
        _check_range(moments.x_size, float(moments.y_size[0]))
        tableau = Tableau(about(moments, fit_intercept))
        variance = self._whole_variance(tableau, fit_intercept)
        criterion = self._criterion(moments.weight, tableau.y_square, fit_intercept, variance)
        return FitScorer(tableau, criterion)

    def _criterion(
        self, rows: float, total: float, fit_intercept: bool, variance: float = np.nan
    ) -> Criterion:
        name = "aic" if self.criterion == "cv" else self.criterion
        return Criterion(name, rows, total, fit_intercept, variance, self.k)

    def _whole_variance(self, tableau: Tableau, fit_intercept: bool) -> float:
        """The noise variance of the model with all columns, where it is needed; else NaN."""
        if self.criterion != "cp" and self.direction != "backward":
            return float("nan")
        whole = tableau.only(np.arange(tableau.n_features))
        parameters = int(whole.inside.sum()) + fit_intercept
        rows = tableau.moments.weight
        if rows <= parameters:
            raise ValueError(
                f"{'Cp' if self.criterion == 'cp' else 'Backward selection'} needs the model with "
                f"all columns, whose {parameters} parameters leave nothing of {rows:g} rows to "
                "estimate the noise from (at least 1 sample more is needed). Use "
                "direction='forward' or 'both' with another criterion, or more rows."
            )
        if self.criterion != "cp":
            return float("nan")
        return max(float(whole.square()[0]), tableau.floor) / (rows - parameters)


def _check_folds(helds: Sequence[Moments]) -> None:
    for number, held in enumerate(helds):
        if held.weight <= 0:
            raise ValueError(
                f"The test rows of fold {number} are empty or have no weight: nothing can be "
                "judged by them."
            )


def _check_range(sizes: Array, y_size: float) -> None:
    """Refuse squares that are lost or infinite; columns of zeros are fine."""
    fine = (sizes == 0) | ((sizes > 1e-200) & (sizes < 1e200))
    if not (fine.all() and y_size < 1e200):
        raise squares_out_of_range()


def _check_memory(d: int) -> None:
    size = 16 * d * d
    if size > _MOST_BYTES:
        raise ValueError(
            f"The Gram matrices of {d} columns would take {size / 2**30:.0f} GiB. "
            "direction='forward' without groups and with criterion 'aic', 'aicc', 'bic' or "
            "'adjusted_r2' needs none; or choose among fewer columns first."
        )
