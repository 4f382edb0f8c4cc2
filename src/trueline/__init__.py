"""trueline: every linear model in one library, fast, and each fit with a proof.

Names are imported when they are first used, so that ``import trueline`` stays light.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0.dev0"

#: Public name -> module that defines it.
_HOMES = {
    "ARDRegression": "trueline.estimators.bayesian.evidence",
    "AdaptiveLasso": "trueline.estimators.sparse.elastic_net",
    "BayesianLinearRegression": "trueline.estimators.bayesian.bayesian_linear",
    "BayesianRidge": "trueline.estimators.bayesian.evidence",
    "BestSubset": "trueline.estimators.column_selection.best_subset",
    "CalibratedClassifier": "trueline.estimators.classification.calibrated",
    "Certificate": "trueline.certificates",
    "ChainedClassifiers": "trueline.features.chained",
    "ChebyshevRegressor": "trueline.estimators.robust.chebyshev",
    "Comparison": "trueline.evaluation.report",
    "ComplexityCurve": "trueline.evaluation.complexity",
    "ConstantFeature": "trueline.features.base",
    "CrossValidation": "trueline.evaluation.cross_validation",
    "ElasticNet": "trueline.estimators.sparse.elastic_net",
    "ElasticNetCV": "trueline.estimators.sparse.elastic_net_cv",
    "FormulaFeatures": "trueline.features.formula",
    "FourierFeatures": "trueline.features.fourier",
    "GammaRegressor": "trueline.estimators.regression.glm",
    "GaussianProcessRegressor": "trueline.estimators.kernel.gaussian_process",
    "GroupLasso": "trueline.estimators.sparse.group_lasso",
    "HuberRegressor": "trueline.estimators.robust.huber",
    "Interactions": "trueline.features.polynomials",
    "KernelPerceptron": "trueline.estimators.online.kernel_perceptron",
    "KernelRidge": "trueline.estimators.kernel.kernel_ridge",
    "L0Regression": "trueline.estimators.column_selection.best_subset",
    "Lasso": "trueline.estimators.sparse.elastic_net",
    "LassoCV": "trueline.estimators.sparse.elastic_net_cv",
    "LeakageWarning": "trueline.evaluation.leakage",
    "LearningCurve": "trueline.evaluation.complexity",
    "LeastAbsoluteDeviations": "trueline.estimators.robust.quantile",
    "LeastSquaresClassifier": "trueline.estimators.classification.ridge_classifier",
    "LinearRegression": "trueline.estimators.regression.linear_regression",
    "LinearRegressor": "trueline.estimators.regression.linear_regression",
    "LinearSVC": "trueline.estimators.svm.linear",
    "LinearSVR": "trueline.estimators.svm.linear",
    "LogisticPath": "trueline.estimators.classification.logistic_path",
    "LogisticRegression": "trueline.estimators.classification.logistic",
    "LogisticRegressionCV": "trueline.estimators.classification.logistic_cv",
    "MaximumMargin": "trueline.separation.margin",
    "MultiTaskElasticNet": "trueline.estimators.sparse.group_lasso",
    "MultiTaskElasticNetCV": "trueline.estimators.sparse.group_lasso",
    "MultiTaskLasso": "trueline.estimators.sparse.group_lasso",
    "MultiTaskLassoCV": "trueline.estimators.sparse.group_lasso",
    "NestedCrossValidation": "trueline.evaluation.cross_validation",
    "NuSVC": "trueline.estimators.svm.svc",
    "NuSVR": "trueline.estimators.svm.svr",
    "OneClassSVM": "trueline.estimators.svm.svr",
    "OneVsOneClassifier": "trueline.estimators.multiclass",
    "OneVsRestClassifier": "trueline.estimators.multiclass",
    "OnlineLogisticRegression": "trueline.estimators.online.logistic",
    "OrthogonalPolynomialFeatures": "trueline.features.polynomials",
    "OutputCodeClassifier": "trueline.estimators.multiclass",
    "PassiveAggressiveClassifier": "trueline.estimators.online.passive_aggressive",
    "Perceptron": "trueline.estimators.online.perceptron",
    "PoissonRegressor": "trueline.estimators.regression.glm",
    "PolynomialRegression": "trueline.estimators.regression.polynomial",
    "QuantileRegressor": "trueline.estimators.robust.quantile",
    "RadialBasisFeatures": "trueline.features.radial",
    "RandomFourierFeatures": "trueline.features.fourier",
    "RegularizationPath": "trueline.estimators.sparse.paths",
    "Ridge": "trueline.estimators.regression.ridge",
    "RidgeCV": "trueline.estimators.regression.ridge_cv",
    "RidgeClassifier": "trueline.estimators.classification.ridge_classifier",
    "RidgeClassifierCV": "trueline.estimators.classification.ridge_classifier",
    "SVC": "trueline.estimators.svm.svc",
    "SVR": "trueline.estimators.svm.svr",
    "Separability": "trueline.separation.separate",
    "SequentialFeatureSelector": "trueline.estimators.column_selection.sequential",
    "SparseGaussianProcessRegressor": "trueline.estimators.kernel.sparse_process",
    "StepwiseRegression": "trueline.estimators.column_selection.stepwise",
    "TableFeatures": "trueline.features.tables.transformer",
    "TextFeatures": "trueline.features.text",
    "TranslationFeatures": "trueline.features.translation",
    "TweedieRegressor": "trueline.estimators.regression.glm",
    "ZeroOneHalfspace": "trueline.estimators.classification.zero_one",
    "compare": "trueline.evaluation.comparison",
    "complexity_curve": "trueline.evaluation.complexity",
    "cross_validate": "trueline.evaluation.cross_validation",
    "design_matrix": "trueline.features.tables.transformer",
    "enet_path": "trueline.estimators.sparse.paths",
    "formula": "trueline.features.formula",
    "glossary": "trueline.terms",
    "lasso_path": "trueline.estimators.sparse.paths",
    "learning_curve": "trueline.evaluation.complexity",
    "load": "trueline.persistence",
    "logistic_path": "trueline.estimators.classification.logistic_path",
    "maximum_margin": "trueline.estimators.classification.separability",
    "nested_cross_validate": "trueline.evaluation.cross_validation",
    "open": "trueline.streams",
    "pseudo_inverse": "trueline.solvers.least_squares.pseudo_inverse",
    "regularization_path": "trueline.estimators.sparse.paths",
    "save": "trueline.persistence",
    "separability": "trueline.estimators.classification.separability",
    "verify": "trueline.estimators.shared.report",
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
    "glossary",
    "lasso_path",
    "learning_curve",
    "load",
    "logistic_path",
    "maximum_margin",
    "nested_cross_validate",
    "pseudo_inverse",
    "regularization_path",
    "save",
    "separability",
    "verify",
]

if TYPE_CHECKING:
    from trueline.certificates import Certificate
    from trueline.estimators.bayesian.bayesian_linear import BayesianLinearRegression
    from trueline.estimators.bayesian.evidence import ARDRegression, BayesianRidge
    from trueline.estimators.classification.calibrated import CalibratedClassifier
    from trueline.estimators.classification.logistic import LogisticRegression
    from trueline.estimators.classification.logistic_cv import LogisticRegressionCV
    from trueline.estimators.classification.logistic_path import LogisticPath, logistic_path
    from trueline.estimators.classification.ridge_classifier import (
        LeastSquaresClassifier,
        RidgeClassifier,
        RidgeClassifierCV,
    )
    from trueline.estimators.classification.separability import maximum_margin, separability
    from trueline.estimators.classification.zero_one import ZeroOneHalfspace
    from trueline.estimators.column_selection.best_subset import BestSubset, L0Regression
    from trueline.estimators.column_selection.sequential import SequentialFeatureSelector
    from trueline.estimators.column_selection.stepwise import StepwiseRegression
    from trueline.estimators.kernel.gaussian_process import GaussianProcessRegressor
    from trueline.estimators.kernel.kernel_ridge import KernelRidge
    from trueline.estimators.kernel.sparse_process import SparseGaussianProcessRegressor
    from trueline.estimators.multiclass import (
        OneVsOneClassifier,
        OneVsRestClassifier,
        OutputCodeClassifier,
    )
    from trueline.estimators.online.kernel_perceptron import KernelPerceptron
    from trueline.estimators.online.logistic import OnlineLogisticRegression
    from trueline.estimators.online.passive_aggressive import PassiveAggressiveClassifier
    from trueline.estimators.online.perceptron import Perceptron
    from trueline.estimators.regression.glm import (
        GammaRegressor,
        PoissonRegressor,
        TweedieRegressor,
    )
    from trueline.estimators.regression.linear_regression import LinearRegression, LinearRegressor
    from trueline.estimators.regression.polynomial import PolynomialRegression
    from trueline.estimators.regression.ridge import Ridge
    from trueline.estimators.regression.ridge_cv import RidgeCV
    from trueline.estimators.robust.chebyshev import ChebyshevRegressor
    from trueline.estimators.robust.huber import HuberRegressor
    from trueline.estimators.robust.quantile import LeastAbsoluteDeviations, QuantileRegressor
    from trueline.estimators.shared.report import verify
    from trueline.estimators.sparse.elastic_net import AdaptiveLasso, ElasticNet, Lasso
    from trueline.estimators.sparse.elastic_net_cv import ElasticNetCV, LassoCV
    from trueline.estimators.sparse.group_lasso import (
        GroupLasso,
        MultiTaskElasticNet,
        MultiTaskElasticNetCV,
        MultiTaskLasso,
        MultiTaskLassoCV,
    )
    from trueline.estimators.sparse.paths import (
        RegularizationPath,
        enet_path,
        lasso_path,
        regularization_path,
    )
    from trueline.estimators.svm.linear import LinearSVC, LinearSVR
    from trueline.estimators.svm.svc import SVC, NuSVC
    from trueline.estimators.svm.svr import SVR, NuSVR, OneClassSVM
    from trueline.evaluation.comparison import compare
    from trueline.evaluation.complexity import (
        ComplexityCurve,
        LearningCurve,
        complexity_curve,
        learning_curve,
    )
    from trueline.evaluation.cross_validation import (
        CrossValidation,
        NestedCrossValidation,
        cross_validate,
        nested_cross_validate,
    )
    from trueline.evaluation.leakage import LeakageWarning
    from trueline.evaluation.report import Comparison
    from trueline.features.base import ConstantFeature
    from trueline.features.chained import ChainedClassifiers
    from trueline.features.formula import FormulaFeatures, formula
    from trueline.features.fourier import FourierFeatures, RandomFourierFeatures
    from trueline.features.polynomials import Interactions, OrthogonalPolynomialFeatures
    from trueline.features.radial import RadialBasisFeatures
    from trueline.features.tables.transformer import TableFeatures, design_matrix
    from trueline.features.text import TextFeatures
    from trueline.features.translation import TranslationFeatures
    from trueline.persistence import load, save
    from trueline.separation.margin import MaximumMargin
    from trueline.separation.separate import Separability
    from trueline.terms import glossary


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        value = getattr(importlib.import_module(_HOMES[name]), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module 'trueline' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
