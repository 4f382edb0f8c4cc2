"""The models: a class that both libraries have, its parameters, and the data that it suits."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp

from benchmarks.field.files import DataSet

__all__ = ["MODELS", "Model"]


@dataclass(frozen=True)
class Model:
    """A class of both libraries.

    Attributes
    ----------
    home : str
        Where scikit-learn has the class.
    kind : str
        Name of the class.
    parameters : dict
        What differs from the defaults, in both libraries.
    theirs : dict
        What scikit-learn has to be told besides, for example a solver that can do it.
    suits : callable
        Whether a data set can be fitted by it.
    """

    home: str
    kind: str
    parameters: dict[str, Any] = field(default_factory=dict)
    theirs: dict[str, Any] = field(default_factory=dict)
    suits: Callable[[DataSet], bool] = lambda data: True


def _numbers(data: DataSet) -> bool:
    return not data.is_classes and data.y.ndim == 1


def _targets(data: DataSet) -> bool:
    return data.y.ndim == 2


def _dense(data: DataSet) -> bool:
    return _numbers(data) and not sp.issparse(data.X)


def _counts(data: DataSet) -> bool:
    return _numbers(data) and bool((data.y >= 0).all())


def _positive(data: DataSet) -> bool:
    return _numbers(data) and bool((data.y > 0).all())


def _classes(data: DataSet) -> bool:
    return data.is_classes


def _two(data: DataSet) -> bool:
    return data.is_classes and len(np.unique(data.y)) == 2


def _few_rows(suits: Callable[[DataSet], bool], most: int) -> Callable[[DataSet], bool]:
    """For methods whose cost grows with the square of the rows, or faster."""
    return lambda data: suits(data) and data.X.shape[0] <= most


_LINEAR, _SVM = "sklearn.linear_model", "sklearn.svm"
_SAGA = {"solver": "saga"}

MODELS: dict[str, Model] = {
    "LinearRegression": Model(_LINEAR, "LinearRegression", suits=_numbers),
    "Ridge": Model(_LINEAR, "Ridge", suits=_numbers),
    "RidgeCV": Model(_LINEAR, "RidgeCV", suits=_numbers),
    "Lasso": Model(_LINEAR, "Lasso", suits=_numbers),
    "Lasso, alpha 0.01": Model(_LINEAR, "Lasso", {"alpha": 0.01}, suits=_numbers),
    "LassoCV": Model(_LINEAR, "LassoCV", suits=_numbers),
    "ElasticNet": Model(_LINEAR, "ElasticNet", suits=_numbers),
    "ElasticNetCV": Model(_LINEAR, "ElasticNetCV", suits=_numbers),
    "BayesianRidge": Model(_LINEAR, "BayesianRidge", suits=_dense),
    "ARDRegression": Model(_LINEAR, "ARDRegression", suits=_few_rows(_dense, 5000)),
    "HuberRegressor": Model(_LINEAR, "HuberRegressor", suits=_numbers),
    "QuantileRegressor": Model(_LINEAR, "QuantileRegressor", suits=_few_rows(_numbers, 5000)),
    "PoissonRegressor": Model(_LINEAR, "PoissonRegressor", suits=_counts),
    "GammaRegressor": Model(_LINEAR, "GammaRegressor", suits=_positive),
    "TweedieRegressor": Model(_LINEAR, "TweedieRegressor", {"power": 1.5}, suits=_counts),
    "MultiTaskLasso": Model(_LINEAR, "MultiTaskLasso", suits=_targets),
    "MultiTaskLassoCV": Model(_LINEAR, "MultiTaskLassoCV", suits=_targets),
    "MultiTaskElasticNet": Model(_LINEAR, "MultiTaskElasticNet", suits=_targets),
    "MultiTaskElasticNetCV": Model(_LINEAR, "MultiTaskElasticNetCV", suits=_targets),
    "GaussianProcessRegressor": Model(
        "sklearn.gaussian_process", "GaussianProcessRegressor", suits=_few_rows(_dense, 2000)
    ),
    "NuSVR": Model(_SVM, "NuSVR", suits=_few_rows(_numbers, 10_000)),
    "LinearSVR": Model(_SVM, "LinearSVR", suits=_numbers),
    "SVR": Model(_SVM, "SVR", suits=_few_rows(_numbers, 10_000)),
    "KernelRidge": Model("sklearn.kernel_ridge", "KernelRidge", suits=_few_rows(_dense, 5000)),
    "LogisticRegression": Model(_LINEAR, "LogisticRegression", suits=_classes),
    "LogisticRegression, C=inf": Model(
        _LINEAR, "LogisticRegression", {"C": np.inf}, suits=_few_rows(_two, 1000)
    ),
    "LogisticRegression, L1": Model(
        _LINEAR, "LogisticRegression", {"l1_ratio": 1.0}, _SAGA, _few_rows(_classes, 10_000)
    ),
    "LogisticRegressionCV": Model(_LINEAR, "LogisticRegressionCV", suits=_few_rows(_classes, 7000)),
    "LinearSVC": Model(_SVM, "LinearSVC", suits=_classes),
    "LinearSVC, hinge": Model(_SVM, "LinearSVC", {"loss": "hinge"}, suits=_classes),
    "LinearSVC, L1": Model(_SVM, "LinearSVC", {"penalty": "l1", "dual": False}, suits=_classes),
    "SVC": Model(_SVM, "SVC", suits=_few_rows(_classes, 10_000)),
    "NuSVC": Model(_SVM, "NuSVC", suits=_few_rows(_two, 10_000)),
    "OneClassSVM": Model(_SVM, "OneClassSVM", suits=_few_rows(_two, 10_000)),
    "PassiveAggressiveClassifier": Model(_LINEAR, "PassiveAggressiveClassifier", suits=_classes),
    "RidgeClassifier": Model(_LINEAR, "RidgeClassifier", suits=_classes),
    "RidgeClassifierCV": Model(_LINEAR, "RidgeClassifierCV", suits=_classes),
    "Perceptron": Model(_LINEAR, "Perceptron", suits=_classes),
}
