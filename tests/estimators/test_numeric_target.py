"""Words in a regressor's target: the message names the estimator, the value and the way out."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from trueline import (
    SVR,
    BestSubset,
    GaussianProcessRegressor,
    HuberRegressor,
    LassoCV,
    LinearRegression,
    LinearSVR,
    QuantileRegressor,
    Ridge,
)

X = np.arange(8.0).reshape(4, 2)
WORDS = ["1.5", "2", "high", "low"]


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
    with pytest.raises(ValueError, match="could not convert string to float"):
        LinearRegression().fit([["a"], ["b"]], [1.0, 2.0])


def test_numbers_written_as_text_are_numbers():
    model = LinearRegression().fit([[1.0], [2.0], [3.0]], ["1", "2", "3"])
    assert model.coef_ == pytest.approx(1.0)
