"""Words or gaps in a target: the message names the estimator, the value and the way out."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from trueline import (
    SVC,
    SVR,
    BestSubset,
    ChainedClassifiers,
    GaussianProcessRegressor,
    HuberRegressor,
    KernelRidge,
    LassoCV,
    LinearRegression,
    LinearSVC,
    LinearSVR,
    LogisticRegression,
    OneVsOneClassifier,
    OneVsRestClassifier,
    Perceptron,
    PoissonRegressor,
    PolynomialRegression,
    QuantileRegressor,
    Ridge,
    RidgeClassifier,
    RidgeClassifierCV,
    SparseGaussianProcessRegressor,
)

X = np.arange(8.0).reshape(4, 2)
WORDS = ["1.5", "2", "high", "low"]


@pytest.mark.grid(1)
@pytest.mark.parametrize(
    "estimator",
    [
        LinearRegression(),
        Ridge(),
        QuantileRegressor(alpha=0),
        HuberRegressor(),
        LinearSVR(),
        BestSubset(),
        LassoCV(),
        SVR(),
        GaussianProcessRegressor(),
        KernelRidge(),
        PoissonRegressor(),
        PolynomialRegression(),
        SparseGaussianProcessRegressor(),
    ],
    ids=lambda estimator: type(estimator).__name__,
)
@pytest.mark.parametrize(
    "target",
    [list, np.array, lambda y: np.array(y, dtype=object), pd.Series, pd.Categorical],
    ids=["list", "array", "objects", "series", "categories"],
)
def test_the_first_word_is_named(estimator, target):
    name = type(estimator).__name__
    expected = rf"{name} predicts numbers, but y\[2\] is 'high'. Give y as numbers"
    with pytest.raises(ValueError, match=expected):
        estimator.fit(X, target(WORDS))


def test_a_word_among_several_targets_has_two_places():
    with pytest.raises(ValueError, match=r"y\[1, 0\] is 'none'"):
        LinearRegression().fit(X, [[1, 2], ["none", 3], [4, 5], [6, 7]])


def test_words_in_the_rows_are_not_blamed_on_the_target():
    with pytest.raises(ValueError, match="Column 0 of X holds text"):
        LinearRegression().fit([["a"], ["b"]], [1.0, 2.0])


def test_numbers_written_as_text_are_numbers():
    model = LinearRegression().fit([[1.0], [2.0], [3.0]], ["1", "2", "3"])
    assert model.coef_ == pytest.approx(1.0)


@pytest.mark.parametrize(
    "estimator",
    [
        BestSubset(),
        GaussianProcessRegressor(),
        KernelRidge(),
        LinearRegression(),
        PoissonRegressor(),
        PolynomialRegression(),
        QuantileRegressor(alpha=0),
        Ridge(),
        SVR(),
        SparseGaussianProcessRegressor(),
    ],
    ids=lambda estimator: type(estimator).__name__,
)
@pytest.mark.parametrize("target", [list, lambda y: np.array(y, dtype=object)])
def test_a_missing_number_is_refused_before_it_becomes_nan(estimator, target):
    expected = rf"y\[2\] is missing. {type(estimator).__name__} needs a target for every row"
    with pytest.raises(ValueError, match=expected):
        estimator.fit(X, target([1.0, 2.0, None, 3.0]))


@pytest.mark.parametrize(
    "estimator",
    [
        ChainedClassifiers(),
        LinearSVC(),
        LogisticRegression(),
        OneVsOneClassifier(LinearSVC()),
        OneVsRestClassifier(LinearSVC()),
        Perceptron(),
        RidgeClassifier(),
        SVC(),
    ],
    ids=lambda estimator: type(estimator).__name__,
)
@pytest.mark.parametrize("labels", [["no", "yes", None, "no"], [0, 1, None, 0]])
def test_a_missing_label_is_refused_by_its_place(estimator, labels):
    with pytest.raises(ValueError, match=r"y\[2\] is missing"):
        estimator.fit(X, np.array(labels, dtype=object))


@pytest.mark.parametrize("estimator", [RidgeClassifier(), RidgeClassifierCV()])
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_the_classifier_that_was_called_is_named(estimator, value):
    rows = X.copy()
    rows[1, 0] = value
    with pytest.raises(ValueError) as raised:
        estimator.fit(rows, [0, 1, 0, 1])
    message = str(raised.value)
    assert "Input X contains" in message
    if np.isnan(value):
        assert f"make_pipeline(TableFeatures(), {type(estimator).__name__}())" in message


@pytest.mark.parametrize("estimator", [Ridge(), LassoCV(), HuberRegressor(), SVR(), KernelRidge()])
def test_a_sparse_target_is_refused_in_words(estimator):
    with pytest.raises(TypeError, match="Sparse data was passed for y"):
        estimator.fit(X, sp.csr_matrix([[1.0], [0.0], [2.0], [0.0]]))
