r"""Scorers: scikit-learn's, and the same numbers for many models at once where that is cheap.

Every fit of a grid is linear, so that one product of the rows with all coefficients gives all
scores. Of these follow, with weights s_i (one by default) and for every model,

    r2         1 - sum_i s_i (y_i - f_i)^2 / sum_i s_i (y_i - mean of y)^2
    mse, mae   sum_i s_i (y_i - f_i)^2 / sum_i s_i,   sum_i s_i abs(y_i - f_i) / sum_i s_i
    accuracy   sum_i s_i [prediction is the label] / sum_i s_i

All other scorers are called model by model.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.metrics import (
    accuracy_score,
    check_scoring,
    get_scorer,
    mean_absolute_error,
    mean_squared_error,
    r2_score,
    root_mean_squared_error,
)
from sklearn.utils.validation import has_fit_parameter

__all__ = ["Scorers", "as_scorers", "fast_metric", "scorer_name", "takes_weights"]

Array = NDArray[np.float64]
Scorers = dict[str, Any]


def as_scorers(model: Any, scoring: Any) -> Scorers:
    """The scorers by name; a single one is called "score", as scikit-learn does.

    Parameters
    ----------
    model : estimator
    scoring : str, callable, list, dict or None
        None means what the model itself calls its score: R^2 or accuracy for most.
    """
    if scoring is None:
        own = type(model).score if hasattr(type(model), "score") else None
        if own is RegressorMixin.score:
            return {"score": get_scorer("r2")}
        if own is ClassifierMixin.score:
            return {"score": get_scorer("accuracy")}
        return {"score": check_scoring(model, scoring=None)}
    if isinstance(scoring, str):
        return {"score": get_scorer(scoring)}
    if callable(scoring):
        return {"score": check_scoring(model, scoring=scoring)}
    if isinstance(scoring, Mapping):
        return {name: check_scoring(model, scoring=value) for name, value in scoring.items()}
    names = list(scoring)
    if not names or not all(isinstance(name, str) for name in names):
        raise ValueError(
            "scoring must be the name of a scorer, a callable, several names, or a dict of "
            f"scorers; got {scoring!r}."
        )
    return {name: get_scorer(name) for name in names}


def scorer_name(scorer: Any) -> str:
    """What a scorer measures, in a word or two."""
    function = getattr(scorer, "_score_func", None)
    if function is None:
        return getattr(scorer, "__name__", "score")
    sign = "" if getattr(scorer, "_sign", 1) == 1 else "neg "
    name = function.__name__.removesuffix("_score").replace("_", " ")
    return sign + {"r2": "R2"}.get(name, name)


def takes_weights(scorer: Any) -> bool:
    """Whether a scorer can weigh the rows."""
    accepts = getattr(scorer, "_accept_sample_weight", None)
    return bool(accepts()) if accepts is not None else False


def can_weigh(model: Any) -> bool:
    """Whether the model can be fitted to weighted rows."""
    last = model.steps[-1][1] if hasattr(model, "steps") else model
    return has_fit_parameter(last, "sample_weight")


Metric = Callable[[NDArray[Any], NDArray[Any], "Array | None"], Array]


def fast_metric(scorer: Any, is_classifier: bool) -> Metric | None:
    """A function of (truth, predictions of all models, weights), if there is one.

    Classes are given by their positions, of which only equality means something.
    """
    function = getattr(scorer, "_score_func", None)
    if function not in _METRICS or getattr(scorer, "_kwargs", None):
        return None
    if (function is accuracy_score) != is_classifier:
        return None
    return _METRICS[function]


def _mean(values: Array, weights: Array | None) -> Array:
    if weights is None:
        return values.mean(axis=0)
    return weights @ values / weights.sum()


def _r2(y: Array, predicted: Array, weights: Array | None) -> Array:
    if len(y) < 2:
        return np.full(predicted.shape[1], np.nan)
    centre = y.mean() if weights is None else weights @ y / weights.sum()
    s = np.ones(len(y)) if weights is None else weights
    spread = float(s @ (y - centre) ** 2)
    square = s @ (y[:, None] - predicted) ** 2
    if spread == 0:
        return np.where(square == 0, 1.0, 0.0)
    return 1.0 - square / spread


def _accuracy(y: NDArray[Any], predicted: NDArray[Any], weights: Array | None) -> Array:
    return _mean((y[:, None] == predicted).astype(float), weights)


def _square(y: Array, predicted: Array, weights: Array | None) -> Array:
    return -_mean((y[:, None] - predicted) ** 2, weights)


_METRICS: dict[Any, Metric] = {
    r2_score: _r2,
    accuracy_score: _accuracy,
    mean_squared_error: _square,
    root_mean_squared_error: lambda y, f, s: -np.sqrt(-_square(y, f, s)),
    mean_absolute_error: lambda y, f, s: -_mean(np.abs(y[:, None] - f), s),
}
