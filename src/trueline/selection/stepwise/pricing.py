"""From rows to what prices models: moments, tableaux, a criterion."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trueline.moments import Moments
from trueline.problem import Problem
from trueline.selection.criteria import Criterion
from trueline.selection.stepwise.folds import about, fold_tableaux
from trueline.selection.stepwise.forward import PartialCholesky, gram_columns
from trueline.selection.stepwise.search import FitScorer, HeldOutScorer
from trueline.selection.stepwise.tableau import Tableau

__all__ = ["Pricing"]

Array = NDArray[np.float64]

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
        raise ValueError(
            "The squares of these values overflow or vanish in double precision: multiply the "
            "columns or the target by a power of ten."
        )


def _check_memory(d: int) -> None:
    size = 16 * d * d
    if size > _MOST_BYTES:
        raise ValueError(
            f"The Gram matrices of {d} columns would take {size / 2**30:.0f} GiB. "
            "direction='forward' without groups and with criterion 'aic', 'aicc', 'bic' or "
            "'adjusted_r2' needs none; or choose among fewer columns first."
        )
