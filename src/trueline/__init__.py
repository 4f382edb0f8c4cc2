"""trueline: every linear model in one library, fast, and each fit with a proof.

Names are imported when they are first used, so that ``import trueline`` stays light.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0.dev0"

#: Modules of the package, and the public names that each defines.
_HOMES = {
    "certificates": "Certificate",
    "estimators.bayesian.bayesian_linear": "BayesianLinearRegression",
    "estimators.bayesian.evidence": "ARDRegression BayesianRidge",
    "estimators.classification.calibrated": "CalibratedClassifier",
    "estimators.classification.logistic": "LogisticRegression",
    "estimators.classification.logistic_cv": "LogisticRegressionCV",
    "estimators.classification.logistic_path": "LogisticPath logistic_path",
    "estimators.classification.ridge_classifier": (
        "LeastSquaresClassifier RidgeClassifier RidgeClassifierCV"
    ),
    "estimators.classification.separability": "maximum_margin separability",
    "estimators.classification.zero_one": "ZeroOneHalfspace",
    "estimators.column_selection.best_subset": "BestSubset L0Regression",
    "estimators.column_selection.sequential": "SequentialFeatureSelector",
    "estimators.column_selection.stepwise": "StepwiseRegression",
    "estimators.kernel.gaussian_process": "GaussianProcessRegressor",
    "estimators.kernel.kernel_ridge": "KernelRidge",
    "estimators.kernel.sparse_process": "SparseGaussianProcessRegressor",
    "estimators.multiclass": "OneVsOneClassifier OneVsRestClassifier OutputCodeClassifier",
    "estimators.online.kernel_perceptron": "KernelPerceptron",
    "estimators.online.logistic": "OnlineLogisticRegression",
    "estimators.online.passive_aggressive": "PassiveAggressiveClassifier",
    "estimators.online.perceptron": "Perceptron",
    "estimators.regression.glm": "GammaRegressor PoissonRegressor TweedieRegressor",
    "estimators.regression.linear_regression": "LinearRegression LinearRegressor",
    "estimators.regression.polynomial": "PolynomialRegression",
    "estimators.regression.ridge": "Ridge",
    "estimators.regression.ridge_cv": "RidgeCV",
    "estimators.robust.chebyshev": "ChebyshevRegressor",
    "estimators.robust.huber": "HuberRegressor",
    "estimators.robust.quantile": "LeastAbsoluteDeviations QuantileRegressor",
    "estimators.shared.report": "verify",
    "estimators.sparse.elastic_net": "AdaptiveLasso ElasticNet Lasso",
    "estimators.sparse.elastic_net_cv": "ElasticNetCV LassoCV",
    "estimators.sparse.group_lasso": (
        "GroupLasso MultiTaskElasticNet MultiTaskElasticNetCV MultiTaskLasso MultiTaskLassoCV"
    ),
    "estimators.sparse.paths": "RegularizationPath enet_path lasso_path regularization_path",
    "estimators.svm.linear": "LinearSVC LinearSVR",
    "estimators.svm.svc": "NuSVC SVC",
    "estimators.svm.svr": "NuSVR OneClassSVM SVR",
    "evaluation.comparison": "compare",
    "evaluation.complexity": "ComplexityCurve LearningCurve complexity_curve learning_curve",
    "evaluation.cross_validation": (
        "CrossValidation NestedCrossValidation cross_validate nested_cross_validate"
    ),
    "evaluation.leakage": "LeakageWarning",
    "evaluation.report": "Comparison",
    "features.base": "ConstantFeature",
    "features.chained": "ChainedClassifiers",
    "features.formula": "FormulaFeatures formula",
    "features.fourier": "FourierFeatures RandomFourierFeatures",
    "features.polynomials": "Interactions OrthogonalPolynomialFeatures",
    "features.radial": "RadialBasisFeatures",
    "features.tables.transformer": "TableFeatures design_matrix",
    "features.text": "TextFeatures",
    "features.translation": "TranslationFeatures",
    "persistence": "load save",
    "separation.margin": "MaximumMargin",
    "separation.separate": "Separability",
    "solvers.least_squares.pseudo_inverse": "pseudo_inverse",
    "streams": "open",
    "terms": "glossary",
}
_MODULES = {name: module for module, names in _HOMES.items() for name in names.split()}

# A star import leaves Python's own ``open`` as it is.
__all__ = ["__version__", *sorted(_MODULES.keys() - {"open"})]

if TYPE_CHECKING:  # the names once more, for type checkers and editors
    from trueline.certificates import Certificate as Certificate
    from trueline.estimators.bayesian.bayesian_linear import (
        BayesianLinearRegression as BayesianLinearRegression,
    )
    from trueline.estimators.bayesian.evidence import ARDRegression as ARDRegression
    from trueline.estimators.bayesian.evidence import BayesianRidge as BayesianRidge
    from trueline.estimators.classification.calibrated import (
        CalibratedClassifier as CalibratedClassifier,
    )
    from trueline.estimators.classification.logistic import LogisticRegression as LogisticRegression
    from trueline.estimators.classification.logistic_cv import (
        LogisticRegressionCV as LogisticRegressionCV,
    )
    from trueline.estimators.classification.logistic_path import LogisticPath as LogisticPath
    from trueline.estimators.classification.logistic_path import logistic_path as logistic_path
    from trueline.estimators.classification.ridge_classifier import (
        LeastSquaresClassifier as LeastSquaresClassifier,
    )
    from trueline.estimators.classification.ridge_classifier import (
        RidgeClassifier as RidgeClassifier,
    )
    from trueline.estimators.classification.ridge_classifier import (
        RidgeClassifierCV as RidgeClassifierCV,
    )
    from trueline.estimators.classification.separability import maximum_margin as maximum_margin
    from trueline.estimators.classification.separability import separability as separability
    from trueline.estimators.classification.zero_one import ZeroOneHalfspace as ZeroOneHalfspace
    from trueline.estimators.column_selection.best_subset import BestSubset as BestSubset
    from trueline.estimators.column_selection.best_subset import L0Regression as L0Regression
    from trueline.estimators.column_selection.sequential import (
        SequentialFeatureSelector as SequentialFeatureSelector,
    )
    from trueline.estimators.column_selection.stepwise import (
        StepwiseRegression as StepwiseRegression,
    )
    from trueline.estimators.kernel.gaussian_process import (
        GaussianProcessRegressor as GaussianProcessRegressor,
    )
    from trueline.estimators.kernel.kernel_ridge import KernelRidge as KernelRidge
    from trueline.estimators.kernel.sparse_process import (
        SparseGaussianProcessRegressor as SparseGaussianProcessRegressor,
    )
    from trueline.estimators.multiclass import OneVsOneClassifier as OneVsOneClassifier
    from trueline.estimators.multiclass import OneVsRestClassifier as OneVsRestClassifier
    from trueline.estimators.multiclass import OutputCodeClassifier as OutputCodeClassifier
    from trueline.estimators.online.kernel_perceptron import KernelPerceptron as KernelPerceptron
    from trueline.estimators.online.logistic import (
        OnlineLogisticRegression as OnlineLogisticRegression,
    )
    from trueline.estimators.online.passive_aggressive import (
        PassiveAggressiveClassifier as PassiveAggressiveClassifier,
    )
    from trueline.estimators.online.perceptron import Perceptron as Perceptron
    from trueline.estimators.regression.glm import GammaRegressor as GammaRegressor
    from trueline.estimators.regression.glm import PoissonRegressor as PoissonRegressor
    from trueline.estimators.regression.glm import TweedieRegressor as TweedieRegressor
    from trueline.estimators.regression.linear_regression import (
        LinearRegression as LinearRegression,
    )
    from trueline.estimators.regression.linear_regression import LinearRegressor as LinearRegressor
    from trueline.estimators.regression.polynomial import (
        PolynomialRegression as PolynomialRegression,
    )
    from trueline.estimators.regression.ridge import Ridge as Ridge
    from trueline.estimators.regression.ridge_cv import RidgeCV as RidgeCV
    from trueline.estimators.robust.chebyshev import ChebyshevRegressor as ChebyshevRegressor
    from trueline.estimators.robust.huber import HuberRegressor as HuberRegressor
    from trueline.estimators.robust.quantile import (
        LeastAbsoluteDeviations as LeastAbsoluteDeviations,
    )
    from trueline.estimators.robust.quantile import QuantileRegressor as QuantileRegressor
    from trueline.estimators.shared.report import verify as verify
    from trueline.estimators.sparse.elastic_net import AdaptiveLasso as AdaptiveLasso
    from trueline.estimators.sparse.elastic_net import ElasticNet as ElasticNet
    from trueline.estimators.sparse.elastic_net import Lasso as Lasso
    from trueline.estimators.sparse.elastic_net_cv import ElasticNetCV as ElasticNetCV
    from trueline.estimators.sparse.elastic_net_cv import LassoCV as LassoCV
    from trueline.estimators.sparse.group_lasso import GroupLasso as GroupLasso
    from trueline.estimators.sparse.group_lasso import MultiTaskElasticNet as MultiTaskElasticNet
    from trueline.estimators.sparse.group_lasso import (
        MultiTaskElasticNetCV as MultiTaskElasticNetCV,
    )
    from trueline.estimators.sparse.group_lasso import MultiTaskLasso as MultiTaskLasso
    from trueline.estimators.sparse.group_lasso import MultiTaskLassoCV as MultiTaskLassoCV
    from trueline.estimators.sparse.paths import RegularizationPath as RegularizationPath
    from trueline.estimators.sparse.paths import enet_path as enet_path
    from trueline.estimators.sparse.paths import lasso_path as lasso_path
    from trueline.estimators.sparse.paths import regularization_path as regularization_path
    from trueline.estimators.svm.linear import LinearSVC as LinearSVC
    from trueline.estimators.svm.linear import LinearSVR as LinearSVR
    from trueline.estimators.svm.svc import SVC as SVC
    from trueline.estimators.svm.svc import NuSVC as NuSVC
    from trueline.estimators.svm.svr import SVR as SVR
    from trueline.estimators.svm.svr import NuSVR as NuSVR
    from trueline.estimators.svm.svr import OneClassSVM as OneClassSVM
    from trueline.evaluation.comparison import compare as compare
    from trueline.evaluation.complexity import ComplexityCurve as ComplexityCurve
    from trueline.evaluation.complexity import LearningCurve as LearningCurve
    from trueline.evaluation.complexity import complexity_curve as complexity_curve
    from trueline.evaluation.complexity import learning_curve as learning_curve
    from trueline.evaluation.cross_validation import CrossValidation as CrossValidation
    from trueline.evaluation.cross_validation import NestedCrossValidation as NestedCrossValidation
    from trueline.evaluation.cross_validation import cross_validate as cross_validate
    from trueline.evaluation.cross_validation import nested_cross_validate as nested_cross_validate
    from trueline.evaluation.leakage import LeakageWarning as LeakageWarning
    from trueline.evaluation.report import Comparison as Comparison
    from trueline.features.base import ConstantFeature as ConstantFeature
    from trueline.features.chained import ChainedClassifiers as ChainedClassifiers
    from trueline.features.formula import FormulaFeatures as FormulaFeatures
    from trueline.features.formula import formula as formula
    from trueline.features.fourier import FourierFeatures as FourierFeatures
    from trueline.features.fourier import RandomFourierFeatures as RandomFourierFeatures
    from trueline.features.polynomials import Interactions as Interactions
    from trueline.features.polynomials import (
        OrthogonalPolynomialFeatures as OrthogonalPolynomialFeatures,
    )
    from trueline.features.radial import RadialBasisFeatures as RadialBasisFeatures
    from trueline.features.tables.transformer import TableFeatures as TableFeatures
    from trueline.features.tables.transformer import design_matrix as design_matrix
    from trueline.features.text import TextFeatures as TextFeatures
    from trueline.features.translation import TranslationFeatures as TranslationFeatures
    from trueline.persistence import load as load
    from trueline.persistence import save as save
    from trueline.separation.margin import MaximumMargin as MaximumMargin
    from trueline.separation.separate import Separability as Separability
    from trueline.terms import glossary as glossary


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        value = getattr(importlib.import_module(f"trueline.{_MODULES[name]}"), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module 'trueline' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
