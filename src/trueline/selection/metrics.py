r"""Scores of many models at once, from the predictions of all of them.

With weights s_i (one by default) and for every model, f_i its predictions,

    r2         1 - sum_i s_i (y_i - f_i)^2 / sum_i s_i (y_i - mean of y)^2
    mse, mae   sum_i s_i (y_i - f_i)^2 / sum_i s_i,   sum_i s_i abs(y_i - f_i) / sum_i s_i
    accuracy   sum_i s_i [prediction is the label] / sum_i s_i

All other scorers are called model by model.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import (
    accuracy_score,
    mean_absolute_error,
    mean_squared_error,
    r2_score,
    root_mean_squared_error,
)

__all__ = ["fast_metric"]

Array = NDArray[np.float64]
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
