"""Models that state their problem: settings and folds as one set of problems on the same rows."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray
from sklearn.base import clone

from trueline.estimators.fold_sets import FoldFit, fold_weights, predicted_codes, solve_folds
from trueline.evaluation.task import FoldRows, Task
from trueline.evaluation.walks.base import Fits, Setting, Walk
from trueline.problem import Problem

__all__ = ["SetWalk", "can_be_in_a_set"]

# Gaps relative to the objective of the best constant. Fits of a grid are there to be compared: less
# than the first moves hardly a label in a thousand test rows. The scores of one model alone are to
# keep their digits.
_COARSE, _FINE = 1e-6, 1e-12


def can_be_in_a_set(model: Any, settings: Sequence[Setting], task: Task) -> bool:
    """Whether the model states its problem for all of these settings, and every fold can be fitted.

    Where a fold lacks a class, it is a problem of other classes.
    """
    if not (task.is_classifier and task.all_classes_everywhere and task.y.ndim == 1):
        return False
    ask = getattr(model, "_can_be_in_a_set", None)
    return ask is not None and all(
        one._can_be_in_a_set() for one in _with_settings(model, settings)
    )


def _with_settings(model: Any, settings: Sequence[Setting]) -> list[Any]:
    """The model with the parameters of each setting."""
    base = clone(model)
    known = base.get_params(deep=False)
    models = []
    for setting in settings:
        own = copy(base)
        if setting.keys() <= known.keys():
            own.__dict__.update(setting)
        else:
            own.set_params(**setting)
        models.append(own)
    return models


@dataclass
class SetFits(Fits):
    """The fits of all settings to the training rows of a fold."""

    fits: list[FoldFit]

    def __post_init__(self) -> None:
        self.verdicts = [fit.verdict for fit in self.fits]

    def estimator(self, number: int) -> Any:
        return self.fits[number].estimator()

    def predictions(self, fold: FoldRows, part: str) -> NDArray[Any]:
        return predicted_codes([fit.scored() for fit in self.fits], fold.matrix(part))


class SetWalk(Walk):
    """All settings and all folds are planned and solved together, once."""

    route = "all folds and settings at once, as problems on the same rows that share their work"

    def __init__(self, model: Any, settings: Sequence[Setting]) -> None:
        super().__init__(model, settings)
        # Kept here and not with the task, where the next walk could be taken for this one.
        self._solved: tuple[Task, list[list[FoldFit]]] | None = None

    def solved(self, task: Task) -> list[list[FoldFit]]:
        """The fits of all settings for all folds, made once."""
        if self._solved is None or self._solved[0] is not task:
            models = _with_settings(self.model, self.settings)
            for model in models:
                model._check_parameters()
                if task.names is not None:
                    model.feature_names_in_ = task.names
            rows = fold_weights(task.n_samples, [s.train for s in task.splits], task.weights)
            tol = _coarse if len(models) > 1 else _fine
            self._solved = task, solve_folds(models, task.matrix, *task.labels, rows, tol)
        return self._solved[1]

    def fit(self, fold: FoldRows) -> Fits:
        return SetFits(self.solved(fold.task)[fold.number])


def _coarse(problem: Problem, tol: float) -> float:
    return max(tol, _COARSE)


def _fine(problem: Problem, tol: float) -> float:
    """Of squared penalties; where coefficients are zero, proofs do not reach that far."""
    return min(tol, _FINE) if "quadratic" in problem.penalty.capabilities else tol
