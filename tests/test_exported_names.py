"""The public names: these and no others, cheap to import, and described in the documentation."""

import pkgutil
import re
import subprocess
import sys
from pathlib import Path

import pytest
from sklearn.base import BaseEstimator

import trueline

DOCS = Path(__file__).parents[1] / "docs"
ESTIMATORS = [
    "ARDRegression",
    "AdaptiveLasso",
    "BayesianLinearRegression",
    "BayesianRidge",
    "BestSubset",
    "CalibratedClassifier",
    "ChebyshevRegressor",
    "ElasticNet",
    "ElasticNetCV",
    "GammaRegressor",
    "GaussianProcessRegressor",
    "GroupLasso",
    "HuberRegressor",
    "KernelPerceptron",
    "KernelRidge",
    "L0Regression",
    "Lasso",
    "LassoCV",
    "LeastAbsoluteDeviations",
    "LeastSquaresClassifier",
    "LinearRegression",
    "LinearRegressor",
    "LinearSVC",
    "LinearSVR",
    "LogisticRegression",
    "LogisticRegressionCV",
    "MultiTaskElasticNet",
    "MultiTaskElasticNetCV",
    "MultiTaskLasso",
    "MultiTaskLassoCV",
    "NuSVC",
    "NuSVR",
    "OneClassSVM",
    "OneVsOneClassifier",
    "OneVsRestClassifier",
    "OnlineLogisticRegression",
    "OutputCodeClassifier",
    "PassiveAggressiveClassifier",
    "Perceptron",
    "PoissonRegressor",
    "PolynomialRegression",
    "QuantileRegressor",
    "Ridge",
    "RidgeCV",
    "RidgeClassifier",
    "RidgeClassifierCV",
    "SVC",
    "SVR",
    "SequentialFeatureSelector",
    "SparseGaussianProcessRegressor",
    "StepwiseRegression",
    "TweedieRegressor",
    "ZeroOneHalfspace",
]
FEATURE_MAPS = [
    "ChainedClassifiers",
    "ConstantFeature",
    "FormulaFeatures",
    "FourierFeatures",
    "Interactions",
    "OrthogonalPolynomialFeatures",
    "RadialBasisFeatures",
    "RandomFourierFeatures",
    "TableFeatures",
    "TextFeatures",
    "TranslationFeatures",
]
FEATURES = [*FEATURE_MAPS, "design_matrix", "formula"]
SEPARABILITY = ["MaximumMargin", "Separability", "maximum_margin", "separability"]
EVALUATION = [
    "Comparison",
    "ComplexityCurve",
    "CrossValidation",
    "LeakageWarning",
    "LearningCurve",
    "NestedCrossValidation",
    "compare",
    "complexity_curve",
    "cross_validate",
    "learning_curve",
    "nested_cross_validate",
]
PATHS = [
    "LogisticPath",
    "RegularizationPath",
    "enet_path",
    "lasso_path",
    "logistic_path",
    "regularization_path",
]
HEAVY = ["numba", "matplotlib", "polars", "typer", "sklearn.linear_model"]


def modules_after(statement):
    """Names of the modules that a fresh interpreter has loaded after a statement."""
    code = f"{statement}\nimport sys\nsys.stdout.write(' '.join(sys.modules))"
    finished = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=True
    )
    return set(finished.stdout.split())


def test_the_public_names_are_these():
    names = [*ESTIMATORS, *FEATURES, *PATHS, *SEPARABILITY, *EVALUATION]
    names += ["Certificate", "__version__", "glossary", "load", "pseudo_inverse", "save", "verify"]
    assert sorted(trueline.__all__) == sorted(names)
    assert dir(trueline) == sorted(names)


@pytest.mark.parametrize("name", trueline.__all__)
def test_every_public_name_is_there(name):
    assert getattr(trueline, name) is not None


def test_the_estimators_are_all_there_are():
    found = [name for name in trueline.__all__ if isinstance(getattr(trueline, name), type)]
    found = [name for name in found if issubclass(getattr(trueline, name), BaseEstimator)]
    assert sorted(found) == sorted([*ESTIMATORS, *FEATURE_MAPS])


def test_a_name_that_does_not_exist_is_an_attribute_error():
    with pytest.raises(AttributeError, match="module 'trueline' has no attribute 'Lasso2'"):
        trueline.Lasso2


def test_a_star_import_brings_every_public_name():
    namespace = {}
    exec("from trueline import *", namespace)
    assert set(trueline.__all__) <= set(namespace)


def test_importing_the_package_imports_nothing_heavy():
    modules = modules_after("import trueline")
    assert modules.isdisjoint([*HEAVY, "pandas", "numpy", "scipy", "sklearn"])


def test_the_estimators_import_nothing_heavy_until_they_are_used():
    # pandas is left out: scikit-learn itself imports it where it is installed. So is the selector
    # that extends scikit-learn's: with sklearn.feature_selection come all of its linear models.
    names = [name for name in trueline.__all__ if name != "SequentialFeatureSelector"]
    assert modules_after(f"from trueline import {', '.join(names)}").isdisjoint(HEAVY)


def test_every_entry_of_the_reference_exists():
    module = "trueline"
    missing = []
    for line in (DOCS / "api.rst").read_text().splitlines():
        module = line.removeprefix(".. currentmodule:: ") if "currentmodule" in line else module
        entry = re.fullmatch(r" {3}([A-Za-z_][\w.]*)", line)
        try:
            pkgutil.resolve_name(f"{module}.{entry[1]}" if entry else module)
        except (AttributeError, ImportError):
            missing.append(entry[1])
    assert not missing


@pytest.mark.parametrize("name", ESTIMATORS)
def test_every_estimator_has_an_entry_in_the_reference(name):
    reference = (DOCS / "api.rst").read_text()
    section = reference.partition("\nEstimators\n")[2].partition("\nPaths of solutions\n")[0]
    assert f"\n   {name}\n" in section


@pytest.mark.parametrize("name", PATHS)
def test_paths_have_an_entry_in_the_reference(name):
    reference = (DOCS / "api.rst").read_text()
    section = reference.partition("\nPaths of solutions\n")[2].partition("\nCertificates\n")[0]
    assert f"\n   {name}\n" in section


@pytest.mark.parametrize("name", FEATURES)
def test_feature_maps_have_an_entry_in_the_reference(name):
    reference = (DOCS / "api.rst").read_text()
    section = reference.partition("\nFeature maps\n")[2].partition("\nPaths of solutions\n")[0]
    assert f"\n   {name}\n" in section
    assert name in (DOCS / "features.rst").read_text()


@pytest.mark.parametrize("name", ESTIMATORS)
def test_every_estimator_has_a_row_in_every_table_of_features(name):
    features = (DOCS / "features.rst").read_text()
    section = features.partition("\nEvery estimator\n")[2].partition("\nAfter a fit\n")[0]
    tables = section.split(".. list-table::")[1:]
    assert len(tables) == 3
    for table in tables:
        rows = re.findall(r"^   \* - :class:`~trueline\.(\w+)`$", table, flags=re.MULTILINE)
        assert rows.count(name) == 1


def documented_parameters(documentation):
    """The names that the section of parameters explains; several may share a line."""
    section = documentation.partition("    Parameters\n")[2].partition("    Attributes\n")[0]
    lines = re.findall(r"^    (\w+(?:, \w+)*)(?: : .*)?$", section, flags=re.MULTILINE)
    return {name for line in lines for name in line.split(", ")}


@pytest.mark.parametrize("name", FEATURE_MAPS)
def test_every_feature_map_documents_its_parameters(name):
    documentation = getattr(trueline, name).__doc__
    assert ">>> " in documentation
    parameters = set(getattr(trueline, name)._get_param_names())
    assert parameters <= documented_parameters(documentation)


@pytest.mark.parametrize("name", ESTIMATORS)
def test_every_estimator_states_its_objective_and_shows_an_example(name):
    documentation = getattr(trueline, name).__doc__
    assert re.search(r"sum_i s_i|max_i", documentation)
    assert ">>> " in documentation
    parameters = set(getattr(trueline, name)._get_param_names())
    assert parameters <= documented_parameters(documentation)
