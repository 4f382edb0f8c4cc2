"""trueline: every linear model in one library, fast, and each fit with a proof.

Names are imported when they are first used, so that ``import trueline`` stays light.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0.dev0"

#: Public name -> module that defines it.
_HOMES = {
    "ARDRegression": "trueline.estimators.relevance",
    "AdaptiveLasso": "trueline.estimators.adaptive_lasso",
    "BayesianLinearRegression": "trueline.estimators.bayesian_linear",
    "BayesianRidge": "trueline.estimators.bayesian_ridge",
    "BestSubset": "trueline.estimators.best_subset",
    "CalibratedClassifier": "trueline.estimators.calibrated",
    "Certificate": "trueline.certificates",
    "ChainedClassifiers": "trueline.features.chained",
    "ChebyshevRegressor": "trueline.estimators.chebyshev",
    "Comparison": "trueline.evaluation.report",
    "ComplexityCurve": "trueline.evaluation.complexity",
    "ConstantFeature": "trueline.features.base",
    "CrossValidation": "trueline.evaluation.cross_validation",
    "ElasticNet": "trueline.estimators.elastic_net",
    "ElasticNetCV": "trueline.estimators.elastic_net_cv",
    "FormulaFeatures": "trueline.features.formula",
    "FourierFeatures": "trueline.features.fourier",
    "GammaRegressor": "trueline.estimators.glm_models",
    "GaussianProcessRegressor": "trueline.estimators.gaussian_process",
    "GroupLasso": "trueline.estimators.group_lasso",
    "HuberRegressor": "trueline.estimators.huber",
    "Interactions": "trueline.features.interactions",
    "KernelPerceptron": "trueline.estimators.kernel_perceptron",
    "KernelRidge": "trueline.estimators.kernel_ridge",
    "L0Regression": "trueline.estimators.best_subset",
    "Lasso": "trueline.estimators.lasso",
    "LassoCV": "trueline.estimators.lasso_cv",
    "LeakageWarning": "trueline.evaluation.leakage",
    "LearningCurve": "trueline.evaluation.complexity",
    "LeastAbsoluteDeviations": "trueline.estimators.quantile",
    "LeastSquaresClassifier": "trueline.estimators.least_squares_classifier",
    "LinearRegression": "trueline.estimators",
    "LinearRegressor": "trueline.estimators",
    "LinearSVC": "trueline.estimators.linear_svc",
    "LinearSVR": "trueline.estimators.linear_svr",
    "LogisticPath": "trueline.estimators.logistic_sequence",
    "LogisticRegression": "trueline.estimators.logistic",
    "LogisticRegressionCV": "trueline.estimators.logistic_cv",
    "MaximumMargin": "trueline.halfspaces.margin",
    "MultiTaskElasticNet": "trueline.estimators.multi_task",
    "MultiTaskElasticNetCV": "trueline.estimators.multi_task_cv",
    "MultiTaskLasso": "trueline.estimators.multi_task",
    "MultiTaskLassoCV": "trueline.estimators.multi_task_cv",
    "NestedCrossValidation": "trueline.evaluation.nested",
    "NuSVC": "trueline.estimators.support_vectors",
    "NuSVR": "trueline.estimators.support_vectors",
    "OneClassSVM": "trueline.estimators.support_vectors",
    "OneVsOneClassifier": "trueline.estimators.multiclass",
    "OneVsRestClassifier": "trueline.estimators.multiclass",
    "OnlineLogisticRegression": "trueline.estimators.online_logistic",
    "OrthogonalPolynomialFeatures": "trueline.features.orthogonal",
    "OutputCodeClassifier": "trueline.estimators.multiclass",
    "PassiveAggressiveClassifier": "trueline.estimators.passive_aggressive",
    "Perceptron": "trueline.estimators.perceptron",
    "PoissonRegressor": "trueline.estimators.glm_models",
    "PolynomialRegression": "trueline.estimators",
    "QuantileRegressor": "trueline.estimators.quantile",
    "RadialBasisFeatures": "trueline.features.radial",
    "RandomFourierFeatures": "trueline.features.random_fourier",
    "RegularizationPath": "trueline.estimators.paths",
    "Ridge": "trueline.estimators",
    "RidgeCV": "trueline.estimators",
    "RidgeClassifier": "trueline.estimators.ridge_classifier",
    "RidgeClassifierCV": "trueline.estimators.ridge_classifier_cv",
    "SVC": "trueline.estimators.support_vectors",
    "SVR": "trueline.estimators.support_vectors",
    "Separability": "trueline.halfspaces.result",
    "SequentialFeatureSelector": "trueline.estimators.sequential",
    "SparseGaussianProcessRegressor": "trueline.estimators.sparse_process",
    "StepwiseRegression": "trueline.estimators.stepwise",
    "TableFeatures": "trueline.features.tables.transformer",
    "TextFeatures": "trueline.features.text",
    "TranslationFeatures": "trueline.features.translation.transformer",
    "TweedieRegressor": "trueline.estimators.glm_models",
    "ZeroOneHalfspace": "trueline.estimators.zero_one",
    "compare": "trueline.evaluation.comparison",
    "complexity_curve": "trueline.evaluation.complexity",
    "cross_validate": "trueline.evaluation.cross_validation",
    "design_matrix": "trueline.features.tables.design",
    "enet_path": "trueline.estimators.paths",
    "formula": "trueline.features.formula",
    "lasso_path": "trueline.estimators.paths",
    "learning_curve": "trueline.evaluation.complexity",
    "load": "trueline.persistence",
    "logistic_path": "trueline.estimators.logistic_sequence",
    "maximum_margin": "trueline.estimators.separability",
    "nested_cross_validate": "trueline.evaluation.nested",
    "regularization_path": "trueline.estimators.paths",
    "save": "trueline.persistence",
    "separability": "trueline.estimators.separability",
    "verify": "trueline.estimators.certified",
}

__all__ = [
    "ARDRegression",
    "AdaptiveLasso",
    "BayesianLinearRegression",
    "BayesianRidge",
    "BestSubset",
    "CalibratedClassifier",
    "Certificate",
    "ChainedClassifiers",
    "ChebyshevRegressor",
    "Comparison",
    "ComplexityCurve",
    "ConstantFeature",
    "CrossValidation",
    "ElasticNet",
    "ElasticNetCV",
    "FormulaFeatures",
    "FourierFeatures",
    "GammaRegressor",
    "GaussianProcessRegressor",
    "GroupLasso",
    "HuberRegressor",
    "Interactions",
    "KernelPerceptron",
    "KernelRidge",
    "L0Regression",
    "Lasso",
    "LassoCV",
    "LeakageWarning",
    "LearningCurve",
    "LeastAbsoluteDeviations",
    "LeastSquaresClassifier",
    "LinearRegression",
    "LinearRegressor",
    "LinearSVC",
    "LinearSVR",
    "LogisticPath",
    "LogisticRegression",
    "LogisticRegressionCV",
    "MaximumMargin",
    "MultiTaskElasticNet",
    "MultiTaskElasticNetCV",
    "MultiTaskLasso",
    "MultiTaskLassoCV",
    "NestedCrossValidation",
    "NuSVC",
    "NuSVR",
    "OneClassSVM",
    "OneVsOneClassifier",
    "OneVsRestClassifier",
    "OnlineLogisticRegression",
    "OrthogonalPolynomialFeatures",
    "OutputCodeClassifier",
    "PassiveAggressiveClassifier",
    "Perceptron",
    "PoissonRegressor",
    "PolynomialRegression",
    "QuantileRegressor",
    "RadialBasisFeatures",
    "RandomFourierFeatures",
    "RegularizationPath",
    "Ridge",
    "RidgeCV",
    "RidgeClassifier",
    "RidgeClassifierCV",
    "SVC",
    "SVR",
    "Separability",
    "SequentialFeatureSelector",
    "SparseGaussianProcessRegressor",
    "StepwiseRegression",
    "TableFeatures",
    "TextFeatures",
    "TranslationFeatures",
    "TweedieRegressor",
    "ZeroOneHalfspace",
    "__version__",
    "compare",
    "complexity_curve",
    "cross_validate",
    "design_matrix",
    "enet_path",
    "formula",
    "lasso_path",
    "learning_curve",
    "load",
    "logistic_path",
    "maximum_margin",
    "nested_cross_validate",
    "regularization_path",
    "save",
    "separability",
    "verify",
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
    from trueline.estimators.bayesian_linear import BayesianLinearRegression
    from trueline.estimators.bayesian_ridge import BayesianRidge
    from trueline.estimators.best_subset import BestSubset, L0Regression
    from trueline.estimators.calibrated import CalibratedClassifier
    from trueline.estimators.certified import verify
    from trueline.estimators.chebyshev import ChebyshevRegressor
    from trueline.estimators.elastic_net import ElasticNet
    from trueline.estimators.elastic_net_cv import ElasticNetCV
    from trueline.estimators.gaussian_process import GaussianProcessRegressor
    from trueline.estimators.glm_models import (
        GammaRegressor,
        PoissonRegressor,
        TweedieRegressor,
    )
    from trueline.estimators.group_lasso import GroupLasso
    from trueline.estimators.huber import HuberRegressor
    from trueline.estimators.kernel_perceptron import KernelPerceptron
    from trueline.estimators.kernel_ridge import KernelRidge
    from trueline.estimators.lasso import Lasso
    from trueline.estimators.lasso_cv import LassoCV
    from trueline.estimators.least_squares_classifier import LeastSquaresClassifier
    from trueline.estimators.linear_svc import LinearSVC
    from trueline.estimators.linear_svr import LinearSVR
    from trueline.estimators.logistic import LogisticRegression
    from trueline.estimators.logistic_cv import LogisticRegressionCV
    from trueline.estimators.logistic_sequence import LogisticPath, logistic_path
    from trueline.estimators.multi_task import MultiTaskElasticNet, MultiTaskLasso
    from trueline.estimators.multi_task_cv import MultiTaskElasticNetCV, MultiTaskLassoCV
    from trueline.estimators.multiclass import (
        OneVsOneClassifier,
        OneVsRestClassifier,
        OutputCodeClassifier,
    )
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
    from trueline.estimators.relevance import ARDRegression
    from trueline.estimators.ridge_classifier import RidgeClassifier
    from trueline.estimators.ridge_classifier_cv import RidgeClassifierCV
    from trueline.estimators.separability import maximum_margin, separability
    from trueline.estimators.sequential import SequentialFeatureSelector
    from trueline.estimators.sparse_process import SparseGaussianProcessRegressor
    from trueline.estimators.stepwise import StepwiseRegression
    from trueline.estimators.support_vectors import SVC, SVR, NuSVC, NuSVR, OneClassSVM
    from trueline.estimators.zero_one import ZeroOneHalfspace
    from trueline.evaluation.comparison import compare
    from trueline.evaluation.complexity import (
        ComplexityCurve,
        LearningCurve,
        complexity_curve,
        learning_curve,
    )
    from trueline.evaluation.cross_validation import CrossValidation, cross_validate
    from trueline.evaluation.leakage import LeakageWarning
    from trueline.evaluation.nested import NestedCrossValidation, nested_cross_validate
    from trueline.evaluation.report import Comparison
    from trueline.features.base import ConstantFeature
    from trueline.features.chained import ChainedClassifiers
    from trueline.features.formula import FormulaFeatures, formula
    from trueline.features.fourier import FourierFeatures
    from trueline.features.interactions import Interactions
    from trueline.features.orthogonal import OrthogonalPolynomialFeatures
    from trueline.features.radial import RadialBasisFeatures
    from trueline.features.random_fourier import RandomFourierFeatures
    from trueline.features.tables.design import design_matrix
    from trueline.features.tables.transformer import TableFeatures
    from trueline.features.text import TextFeatures
    from trueline.features.translation.transformer import TranslationFeatures
    from trueline.halfspaces.margin import MaximumMargin
    from trueline.halfspaces.result import Separability
    from trueline.persistence import load, save


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        value = getattr(importlib.import_module(_HOMES[name]), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module 'trueline' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
