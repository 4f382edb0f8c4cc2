"""The models that are compared if none are named, each with its grid."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.model_selection import ParameterGrid
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler

from trueline.estimators.bayesian.evidence import BayesianRidge
from trueline.estimators.classification.logistic import LogisticRegression
from trueline.estimators.classification.ridge_classifier import RidgeClassifier
from trueline.estimators.regression.linear_regression import LinearRegression
from trueline.estimators.regression.ridge import Ridge
from trueline.estimators.robust.huber import HuberRegressor
from trueline.estimators.robust.quantile import LeastAbsoluteDeviations
from trueline.estimators.shared.validation import no_number
from trueline.estimators.sparse.elastic_net import ElasticNet, Lasso
from trueline.estimators.svm.linear import LinearSVC
from trueline.evaluation.grids.axes import (
    Axis,
    Values,
    absolute_alphas,
    absolute_costs,
    squared_alphas,
    squared_costs,
)
from trueline.evaluation.grids.fits import Setting
from trueline.evaluation.task import Task

__all__ = ["Candidate", "candidates_for", "known_candidates", "simplest_first"]


@dataclass(frozen=True)
class Candidate:
    """A model with the settings to choose from.

    ``axis`` says how the grid goes on beyond its ends; None for a grid that somebody gave.
    """

    name: str
    model: Any
    settings: list[Setting]
    axis: Axis | None = None


@dataclass(frozen=True)
class _Known:
    """How to make a candidate for a task, and when it suits."""

    make: Callable[[], Any]
    grid: Callable[[Task, Any], Values] | None = None
    suits: Callable[[Task], bool] = lambda task: True


def _is_tall(task: Task) -> bool:
    n, d = task.matrix.shape
    return bool(n > d and not sp.issparse(task.matrix))


_REGRESSION: dict[str, _Known] = {
    "mean": _Known(DummyRegressor),
    "least squares": _Known(
        LinearRegression, suits=lambda t: t.matrix.shape[0] > t.matrix.shape[1]
    ),
    "ridge": _Known(Ridge, squared_alphas),
    "lasso": _Known(Lasso, absolute_alphas),
    "elastic net": _Known(lambda: ElasticNet(l1_ratio=0.5), absolute_alphas),
    "bayesian ridge": _Known(BayesianRidge, suits=lambda t: not sp.issparse(t.matrix)),
    "huber": _Known(HuberRegressor, suits=_is_tall),
    "least absolute deviations": _Known(LeastAbsoluteDeviations, suits=_is_tall),
}
_CLASSIFICATION: dict[str, _Known] = {
    "majority": _Known(DummyClassifier),
    "ridge classifier": _Known(RidgeClassifier, squared_alphas),
    "logistic, L2": _Known(LogisticRegression, squared_costs),
    "logistic, L1": _Known(lambda: LogisticRegression(l1_ratio=1.0), absolute_costs),
    "linear SVM": _Known(LinearSVC, squared_costs),
}


def known_candidates(is_classifier: bool) -> list[str]:
    """The names by which :func:`~trueline.compare` knows models."""
    return list(_CLASSIFICATION if is_classifier else _REGRESSION)


def candidates_for(models: Any, task: Task, scale: bool = False) -> list[Candidate]:
    """The candidates that ``models`` stands for.

    Parameters
    ----------
    models : None, or list or dict of models
        None: all that suit. Entries are names, estimators, or pairs (estimator, grid); a dict names
        them.
    task : Task
    scale : bool, default=False
        Put models that are known by name behind a ``StandardScaler``.
    """
    if models is None:
        book = _CLASSIFICATION if task.is_classifier else _REGRESSION
        _check_numbers(task)
        names = [name for name, known in book.items() if known.suits(task)]
        return [_known(name, task, scale) for name in names]
    if isinstance(models, Mapping):
        found = [_candidate(entry, task, str(name), scale) for name, entry in models.items()]
    elif isinstance(models, Sequence) and not isinstance(models, str):
        found = [_candidate(entry, task, None, scale) for entry in models]
    else:
        raise ValueError(f"models must be a list or a dict of models, got {models!r}.")
    if not found:
        raise ValueError("models is empty: there is nothing to compare.")
    return _with_own_names(found)


def _known(name: str, task: Task, scale: bool) -> Candidate:
    book = _CLASSIFICATION if task.is_classifier else _REGRESSION
    if name not in book:
        kind = "classification" if task.is_classifier else "regression"
        raise ValueError(f"{name!r} is not known for {kind}. Known: {', '.join(book)}.")
    _check_numbers(task)
    known = book[name]
    model = known.make()
    if not scale or isinstance(model, DummyClassifier | DummyRegressor):
        return _along(name, model, known.grid and known.grid(task, model))
    scaler = StandardScaler(with_mean=not sp.issparse(task.matrix))
    scaled = task.shared("scaled", lambda: replace(task, matrix=scaler.fit_transform(task.matrix)))
    values = known.grid and known.grid(scaled, model).behind("model__")
    return _along(name, Pipeline([("scale", scaler), ("model", model)]), values)


def _check_numbers(task: Task) -> None:
    """Linear models that are known by name take finite numbers."""
    if task.matrix is not None:
        return
    said = no_number(task.X) or "X holds more than finite numbers (missing or infinite values)"
    raise ValueError(
        f"{said}, which linear models do not take. TableFeatures makes numbers of texts, "
        "categories, dates and missing values: models=[make_pipeline(TableFeatures(), Ridge())]."
    )


def _along(name: str, model: Any, values: Values | None) -> Candidate:
    if values is None:
        return Candidate(name, model, [{}])
    return Candidate(name, model, values.settings, values.axis)


def _candidate(entry: Any, task: Task, name: str | None, scale: bool) -> Candidate:
    """A name, an estimator, or an estimator with its grid."""
    if isinstance(entry, str):
        known = _known(entry, task, scale)
        return replace(known, name=name or known.name)
    if isinstance(entry, tuple):
        if len(entry) != 2 or not hasattr(entry[0], "fit"):
            raise ValueError(f"A pair must be (estimator, grid), got {entry!r}.")
        model, grid = entry
        settings = [dict(setting) for setting in ParameterGrid(grid)]
        return Candidate(name or type(model).__name__, model, simplest_first(settings))
    if not hasattr(entry, "fit"):
        raise ValueError(f"{entry!r} is neither a model, a name of one, nor (model, grid).")
    last = entry.steps[-1][1] if hasattr(entry, "steps") else entry
    return Candidate(name or type(last).__name__, entry, [{}])


def _with_own_names(candidates: list[Candidate]) -> list[Candidate]:
    """Names made different by numbers."""
    seen: dict[str, int] = {}
    out = []
    for candidate in candidates:
        count = seen[candidate.name] = seen.get(candidate.name, 0) + 1
        name = candidate.name if count == 1 else f"{candidate.name} ({count})"
        out.append(replace(candidate, name=name))
    return out


def simplest_first(settings: list[Setting]) -> list[Setting]:
    """Settings in order of complexity: large strengths ``alpha`` and small costs ``C`` first."""

    def complexity(setting: Setting) -> tuple[float, ...]:
        key = []
        for name, value in sorted(setting.items()):
            if isinstance(value, int | float | np.number):
                sign = -1.0 if name.rpartition("__")[2] in ("alpha", "lambda_", "l1_ratio") else 1.0
                key.append(sign * float(value))
        return tuple(key)

    return sorted(settings, key=complexity)
