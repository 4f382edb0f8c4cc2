"""Fits of one model, for all settings of its parameters, to the training rows of a fold.

=============  =================================================================================
class          models
=============  =================================================================================
``SetFits``    those that state their problem: one set of problems on the same rows
``Pipelines``  pipelines whose last step alone varies: the others are fitted once for each fold
``Refits``     every other model, one fit at a time
=============  =================================================================================
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import clone, is_classifier
from sklearn.pipeline import Pipeline

from trueline.estimators.shared.fold_sets import FoldFit, predicted, solve_folds
from trueline.evaluation.task import FoldRows, Split, Task
from trueline.guard import Verdict
from trueline.problem import Problem

Setting = dict[str, Any]

# Gaps relative to the objective of the best constant. Fits of a grid are there to be compared: less
# than the first moves hardly a label in a thousand test rows. The scores of one model alone are to
# keep their digits. Least squares is solved directly, or to the third.
_COARSE, _FINE, _SQUARES = 1e-6, 1e-12, 1e-9


@dataclass
class Fits:
    """The fits of all settings to the training rows of one fold.

    Attributes
    ----------
    verdicts : sequence of Verdict
        Whether each fit got as near to its minimum as was asked for, as far as that is known.
    estimator : function of the number of a setting
        Gives the fitted estimator.
    scored : function of the number of a setting
        The same, which may lack what scorers do not look at.
    predictions : function of the rows of the fold, and of "train" or "test"
        Predictions of all settings, of shape (n, settings), if they are cheaper together; positions
        of classes for classifiers.
    """

    verdicts: Sequence[Verdict]
    estimator: Callable[[int], Any]
    scored: Callable[[int], Any]
    predictions: Callable[[FoldRows, str], NDArray[Any] | None] = lambda fold, part: None


class GridFits(ABC):
    """One model, many settings.

    Attributes
    ----------
    route : str
        How the fits are found, for people.
    """

    route: str

    def __init__(self, model: Any, settings: Sequence[Setting]) -> None:
        self.model, self.settings = model, list(settings)

    @abstractmethod
    def fit(self, fold: FoldRows) -> Fits:
        """All settings, fitted to the training rows."""


def choose_fits(model: Any, settings: Sequence[Setting], task: Task) -> GridFits:
    """How this model is fitted for these settings; one fit at a time if work cannot be shared."""
    if isinstance(model, Pipeline) and _only_last_varies(model, settings):
        return Pipelines(model, settings)
    if _can_be_in_a_set(model, settings, task):
        return SetFits(model, settings)
    return Refits(model, settings)


# --- one at a time --------------------------------------------------------------------------------


def _verdicts_of(model: Any) -> list[Verdict]:
    """What a fitted estimator of this package says of its fit; nothing of others."""
    last = model.steps[-1][1] if hasattr(model, "steps") else model
    facts = getattr(last, "_solution_facts", None)
    if facts is None or "allowed" not in facts:
        return []
    if facts["is_final"]:
        return [Verdict(True, 0.0, facts["allowed"])]
    return [Verdict(False, float(last.certificate_.gap), facts["allowed"])]


class Refits(GridFits):
    """Clone, set the parameters, fit: what scikit-learn does."""

    route = "refitted for every fold"

    def fit(self, fold: FoldRows) -> Fits:
        X, y, weights = fold.part("train")
        fitted = []
        for setting in self.settings:
            own = clone(self.model).set_params(**{k: _own_value(v) for k, v in setting.items()})
            fitted.append(own.fit(X, y, **fit_weights(own, weights)))
        verdicts = [verdict for one in fitted for verdict in _verdicts_of(one)]
        return Fits(verdicts, fitted.__getitem__, fitted.__getitem__)


def _own_value(value: Any) -> Any:
    """A setting may hold estimators, which a fit must not change."""
    return clone(value, safe=False) if hasattr(value, "get_params") else value


def fit_weights(model: Any, weights: Any) -> dict[str, Any]:
    """Sample weights under the name by which ``fit`` takes them."""
    if weights is None:
        return {}
    if hasattr(model, "steps"):
        return {f"{model.steps[-1][0]}__sample_weight": weights}
    return {"sample_weight": weights}


# --- problems on the same rows --------------------------------------------------------------------


def _can_be_in_a_set(model: Any, settings: Sequence[Setting], task: Task) -> bool:
    """Whether the model states its problem for all of these settings, and every fold can be fitted.

    Where a fold lacks a class, it is a problem of other classes.
    """
    if task.matrix is None or task.y.ndim != 1 or not hasattr(model, "_can_be_in_a_set"):
        return False
    if task.matrix.dtype != np.float64 or is_classifier(model) is not task.is_classifier:
        return False
    if task.is_classifier and not task.all_classes_everywhere:
        return False
    return all(one._can_be_in_a_set() for one in _with_settings(model, settings))


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


class SetFits(GridFits):
    """All settings and all folds are planned and solved together, once."""

    route = "all folds and settings together, as problems on the same rows"

    def __init__(self, model: Any, settings: Sequence[Setting]) -> None:
        super().__init__(model, settings)
        # Kept here and not with the task, where the next grid could be taken for this one.
        self._solved: tuple[Task, list[list[FoldFit]]] | None = None

    def solved(self, task: Task) -> list[list[FoldFit]]:
        """The fits of all settings for all folds, made once."""
        if self._solved is None or self._solved[0] is not task:
            models = _with_settings(self.model, self.settings)
            for model in models:
                model._check_parameters()
                if task.names is not None:
                    model.feature_names_in_ = task.names
            classes, codes = task.labels if task.is_classifier else (None, task.targets)
            tol = _coarse if len(models) > 1 else _fine
            parts = models, task.matrix, codes, task.fold_weights, tol
            found = solve_folds(*parts, classes=classes, shared=task.moments)
            if all(fit.solution.moments is not None for fold in found for fit in fold):
                self.route = f"{type(self).route}, from fold moments"
            self._solved = task, found
        return self._solved[1]

    def fit(self, fold: FoldRows) -> Fits:
        fits = self.solved(fold.task)[fold.number]
        return Fits(
            [fit.verdict for fit in fits],
            lambda number: fits[number].estimator(),
            lambda number: fits[number].scored(),
            lambda fold, part: predicted([fit.scored() for fit in fits], fold.matrix(part)),
        )


def _coarse(problem: Problem, tol: float) -> float:
    return max(tol, _SQUARES if "quadratic" in problem.loss.capabilities else _COARSE)


def _fine(problem: Problem, tol: float) -> float:
    """Of squared penalties; where coefficients are zero, proofs do not reach that far."""
    return min(tol, _FINE) if "quadratic" in problem.penalty.capabilities else tol


# --- pipelines ------------------------------------------------------------------------------------


def _only_last_varies(model: Pipeline, settings: Sequence[Setting]) -> bool:
    """Whether the first steps are transformers that every setting leaves as they are."""
    before, (name, last) = model.steps[:-1], model.steps[-1]
    simple = all(hasattr(step, "transform") for _, step in before) and hasattr(last, "fit")
    return (
        bool(before) and simple and all(key.startswith(f"{name}__") for s in settings for key in s)
    )


class Pipelines(GridFits):
    """What comes before the last step is fitted once for each fold, not for each setting."""

    route = "the steps before the model are fitted once for each fold"

    def fit(self, fold: FoldRows) -> Fits:
        name, last = self.model.steps[-1]
        first, inner = self._transformed(fold)
        cut = len(name) + 2
        settings = [{key[cut:]: value for key, value in s.items()} for s in self.settings]
        way = choose_fits(last, settings, inner)
        fits = way.fit(inner.folds[0])
        self.route = f"{way.route}; the steps before are fitted once for each fold"

        def behind(last: Any) -> Pipeline:
            return Pipeline([*first.steps, (name, last)])

        return Fits(
            fits.verdicts,
            lambda number: behind(fits.estimator(number)),
            lambda number: behind(fits.scored(number)),
            lambda _, part: fits.predictions(inner.folds[0], part),
        )

    def _transformed(self, fold: FoldRows) -> tuple[Any, Task]:
        """The fitted transformers, and a task of one fold behind them."""
        first = Pipeline(self.model.steps[:-1])
        kept: list[tuple[Any, Any, Task]]
        kept = fold.task.shared(("rows", fold.number, "behind"), list)
        for steps, fitted, inner in kept:
            if same_settings(steps, first):
                return fitted, inner
        own = clone(first)
        X, y, _ = fold.part("train")
        train = own.fit_transform(X, y)
        inner = _one_fold(fold, train, own.transform(fold.part("test")[0]))
        kept.append((clone(first), own, inner))
        return own, inner


def same_settings(a: Any, b: Any) -> bool:
    """Whether two values, estimators among them, are certain to be the same.

    Printed forms would not do: scikit-learn and NumPy leave out the middle of what is long.
    """
    if a is b:
        return True
    if type(a) is not type(b):
        return False
    if hasattr(a, "get_params") and not isinstance(a, type):
        return same_settings(a.get_params(deep=False), b.get_params(deep=False))
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same_settings(a[key], b[key]) for key in a)
    if isinstance(a, list | tuple):
        return len(a) == len(b) and all(map(same_settings, a, b))
    if isinstance(a, np.ndarray):
        return a.dtype == b.dtype and a.dtype.kind != "O" and np.array_equal(a, b)
    if isinstance(a, str | bytes | int | float | np.generic | set | frozenset):
        return bool(a == b)
    return False


def _one_fold(fold: FoldRows, train: Any, test: Any) -> Task:
    """A task whose only fold has these rows."""
    task = fold.task
    if sp.issparse(train):
        matrix: Any = sp.csr_array(sp.vstack([train, test], format="csr"))
    else:
        matrix = np.vstack([np.asarray(train), np.asarray(test)])
    rows = np.concatenate([fold.split.train, fold.split.test])
    first = np.arange(len(fold.split.train))
    split = Split(first, np.arange(len(first), len(rows)))
    every = None if task.weights is None else task.weights[rows]
    numbers = matrix.astype(np.float64, copy=False) if matrix.dtype.kind in "fiub" else None
    inner = Task(matrix, task.y[rows], every, [split], task.is_classifier, numbers, task.watch)
    if task.is_classifier:  # classes of all rows, also where a fold lacks one
        inner.__dict__["labels"] = task.labels[0], task.labels[1][rows]
    return inner
