"""What a model says of rows that it cannot take: with missing values, or read in batches."""

import inspect

import numpy as np
import pandas as pd
import pytest

import trueline
from trueline import Ridge


def _made(name):
    estimator = getattr(trueline, name)
    required = [
        one.name
        for one in inspect.signature(estimator).parameters.values()
        if one.default is inspect.Parameter.empty
    ]
    return estimator(**dict.fromkeys(required, Ridge()))


REGRESSORS_AND_CLASSIFIERS = [
    name
    for name in trueline.__all__
    if inspect.isclass(getattr(trueline, name))
    and hasattr(getattr(trueline, name), "fit")
    and hasattr(getattr(trueline, name), "predict")
]


@pytest.mark.parametrize("name", REGRESSORS_AND_CLASSIFIERS)
def test_fit_of_rows_in_batches_is_taken_or_says_what_to_do(name, tmp_path):
    pd.DataFrame({"a": range(8), "y": [1, 2] * 4}).to_csv(tmp_path / "t.csv", index=False)
    rows = trueline.open(tmp_path / "t.csv", target="y")
    model = _made(name)
    if hasattr(type(model).fit, "takes_batches"):
        return
    with pytest.raises(TypeError, match=rf"{name} needs its rows in memory.*toarray"):
        model.fit(rows)


@pytest.mark.parametrize("model", [Ridge(), trueline.SVC()], ids=str)
def test_missing_values_are_placed_and_told_what_fills_them(model):
    X = pd.DataFrame({"size": [1.0, 2.0, np.nan, 4.0], "rooms": [1.0, 2.0, 3.0, 5.0]})
    for rows, column in ((X, "'size'"), (X.to_numpy(), "0")):
        with pytest.raises(ValueError, match=rf"NaN: column {column} in 1 row.*TableFeatures"):
            model.fit(rows, [0, 1, 0, 1])
