"""Which walk a model and its settings can take."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.pipeline import Pipeline

from trueline.evaluation.task import Task
from trueline.evaluation.walks.base import Setting, Walk
from trueline.evaluation.walks.elastic import ElasticWalk
from trueline.evaluation.walks.pipeline import PipelineWalk
from trueline.evaluation.walks.refit import Refit
from trueline.evaluation.walks.sets import SetWalk, can_be_in_a_set
from trueline.evaluation.walks.shifted import SparseRidgeWalk
from trueline.evaluation.walks.squared import LeastSquaresWalk, RidgeWalk

__all__ = ["choose_walk"]


def choose_walk(model: Any, settings: Sequence[Setting], task: Task) -> Walk:
    """The walk that fits this model for these settings; one fit at a time if there is none."""
    if isinstance(model, Pipeline) and _only_last_varies(model, settings):
        return PipelineWalk(model, settings, choose_walk)
    if task.matrix is None or task.y.ndim != 1 or task.matrix.dtype != np.float64:
        return Refit(model, settings)
    if can_be_in_a_set(model, settings, task):
        return SetWalk(model, settings)
    if getattr(model, "_skl_callbacks", None):
        return Refit(model, settings)
    make = _WALKS.get(_name(model))
    if make is None or getattr(model, "class_weight", None) is not None:
        return Refit(model, settings)
    if task.is_classifier and not task.all_classes_everywhere:
        return Refit(model, settings)
    return make(model, settings, task) or Refit(model, settings)


def _only_last_varies(model: Pipeline, settings: Sequence[Setting]) -> bool:
    """Whether the first steps are transformers that every setting leaves as they are."""
    before, (name, last) = model.steps[:-1], model.steps[-1]
    simple = all(hasattr(step, "transform") for _, step in before) and hasattr(last, "fit")
    return (
        bool(before) and simple and all(key.startswith(f"{name}__") for s in settings for key in s)
    )


def _name(model: Any) -> str:
    """The class, if it is ours and not derived from."""
    cls = type(model)
    return cls.__name__ if cls.__module__.startswith("trueline.estimators") else ""


def _has_only(settings: Sequence[Setting], *names: str) -> bool:
    return all(set(setting) <= set(names) for setting in settings)


def _is_plain(model: Any) -> bool:
    """Whether nothing was asked for that changes the answer or the way to it."""
    solver = getattr(model, "solver", "auto")
    return solver in ("auto", "cholesky") and not getattr(model, "positive", False)


def _ridge(model: Any, settings: Sequence[Setting], task: Task) -> Walk | None:
    alphas = [setting.get("alpha", model.alpha) for setting in settings]
    positive = all(np.ndim(alpha) == 0 and float(alpha) > 0 for alpha in alphas)
    if not (_has_only(settings, "alpha") and _is_plain(model) and positive):
        return None
    if task.is_classifier and sp.issparse(task.matrix):
        # A Gram matrix of that many columns would be dense.
        return SparseRidgeWalk(model, settings)
    return RidgeWalk(model, settings)


def _least_squares(model: Any, settings: Sequence[Setting], task: Task) -> Walk | None:
    return LeastSquaresWalk(model, settings) if not any(settings) and _is_plain(model) else None


def _elastic(model: Any, settings: Sequence[Setting], task: Task) -> Walk | None:
    alphas = [setting.get("alpha", model.alpha) for setting in settings]
    if not (_has_only(settings, "alpha", "l1_ratio") and all(alpha > 0 for alpha in alphas)):
        return None
    return None if model.warm_start else ElasticWalk(model, settings)


_WALKS: dict[str, Any] = {
    "ElasticNet": _elastic,
    "Lasso": _elastic,
    "LeastSquaresClassifier": _ridge,
    "LinearRegression": _least_squares,
    "Ridge": _ridge,
    "RidgeClassifier": _ridge,
}
