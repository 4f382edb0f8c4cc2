"""trueline: every linear model in one library, fast, and each fit with a proof.

Names are imported when they are first used, so that ``import trueline`` stays light.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0.dev0"

#: Public name -> module that defines it.
_HOMES = {
    "AdaptiveLasso": "trueline.estimators.adaptive_lasso",
    "BestSubset": "trueline.estimators.best_subset",
    "Certificate": "trueline.certificates",
    "ChebyshevRegressor": "trueline.estimators.chebyshev",
    "ElasticNet": "trueline.estimators.elastic_net",
    "ElasticNetCV": "trueline.estimators.elastic_net_cv",
    "GroupLasso": "trueline.estimators.group_lasso",
    "HuberRegressor": "trueline.estimators.huber",
    "KernelPerceptron": "trueline.estimators.kernel_perceptron",
    "L0Regression": "trueline.estimators.best_subset",
    "Lasso": "trueline.estimators.lasso",
    "LassoCV": "trueline.estimators.lasso_cv",
    "LeastAbsoluteDeviations": "trueline.estimators.quantile",
    "LinearRegression": "trueline.estimators",
    "LinearRegressor": "trueline.estimators",
    "LinearSVR": "trueline.estimators.linear_svr",
    "MultiTaskElasticNet": "trueline.estimators.multi_task",
    "MultiTaskElasticNetCV": "trueline.estimators.multi_task_cv",
    "MultiTaskLasso": "trueline.estimators.multi_task",
    "MultiTaskLassoCV": "trueline.estimators.multi_task_cv",
    "OnlineLogisticRegression": "trueline.estimators.online_logistic",
    "PassiveAggressiveClassifier": "trueline.estimators.passive_aggressive",
    "Perceptron": "trueline.estimators.perceptron",
    "PolynomialRegression": "trueline.estimators",
    "QuantileRegressor": "trueline.estimators.quantile",
    "RegularizationPath": "trueline.estimators.paths",
    "Ridge": "trueline.estimators",
    "RidgeCV": "trueline.estimators",
    "SequentialFeatureSelector": "trueline.estimators.sequential",
    "StepwiseRegression": "trueline.estimators.stepwise",
    "enet_path": "trueline.estimators.paths",
    "lasso_path": "trueline.estimators.paths",
    "load": "trueline.persistence",
    "regularization_path": "trueline.estimators.paths",
    "save": "trueline.persistence",
}

__all__ = [
    "AdaptiveLasso",
    "BestSubset",
    "Certificate",
    "ChebyshevRegressor",
    "ElasticNet",
    "ElasticNetCV",
    "GroupLasso",
    "HuberRegressor",
    "KernelPerceptron",
    "L0Regression",
    "Lasso",
    "LassoCV",
    "LeastAbsoluteDeviations",
    "LinearRegression",
    "LinearRegressor",
    "LinearSVR",
    "MultiTaskElasticNet",
    "MultiTaskElasticNetCV",
    "MultiTaskLasso",
    "MultiTaskLassoCV",
    "OnlineLogisticRegression",
    "PassiveAggressiveClassifier",
    "Perceptron",
    "PolynomialRegression",
    "QuantileRegressor",
    "RegularizationPath",
    "Ridge",
    "RidgeCV",
    "SequentialFeatureSelector",
    "StepwiseRegression",
    "__version__",
    "enet_path",
    "lasso_path",
    "load",
    "regularization_path",
    "save",
]

if TYPE_CHECKING:
    from trueline.certificates import Certificate
    from trueline.estimators import (
        LinearRegression,
        LinearRegressor,
        PolynomialRegression,
        Ridge,
        RidgeCV,
    )
    from trueline.estimators.adaptive_lasso import AdaptiveLasso
    from trueline.estimators.best_subset import BestSubset, L0Regression
    from trueline.estimators.chebyshev import ChebyshevRegressor
    from trueline.estimators.elastic_net import ElasticNet
    from trueline.estimators.elastic_net_cv import ElasticNetCV
    from trueline.estimators.group_lasso import GroupLasso
    from trueline.estimators.huber import HuberRegressor
    from trueline.estimators.kernel_perceptron import KernelPerceptron
    from trueline.estimators.lasso import Lasso
    from trueline.estimators.lasso_cv import LassoCV
    from trueline.estimators.linear_svr import LinearSVR
    from trueline.estimators.multi_task import MultiTaskElasticNet, MultiTaskLasso
    from trueline.estimators.multi_task_cv import MultiTaskElasticNetCV, MultiTaskLassoCV
    from trueline.estimators.online_logistic import OnlineLogisticRegression
    from trueline.estimators.passive_aggressive import PassiveAggressiveClassifier
    from trueline.estimators.paths import (
        RegularizationPath,
        enet_path,
        lasso_path,
        regularization_path,
    )
    from trueline.estimators.perceptron import Perceptron
    from trueline.estimators.quantile import LeastAbsoluteDeviations, QuantileRegressor
    from trueline.estimators.sequential import SequentialFeatureSelector
    from trueline.estimators.stepwise import StepwiseRegression
    from trueline.persistence import load, save


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        value = getattr(importlib.import_module(_HOMES[name]), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module 'trueline' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
