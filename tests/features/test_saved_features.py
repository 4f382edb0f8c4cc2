"""Tables and chains of classifiers in model files: what is loaded is what was saved."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal
from scipy import sparse

from trueline import ChainedClassifiers, LinearSVC, LogisticRegression, TableFeatures, load, save


def table():
    return pd.DataFrame(
        {
            "size": [1.0, 2.5, np.nan, 4.0],
            "city": ["Rome", "Oslo", "Rome", None],
            "garden": [True, False, True, True],
            "built": pd.to_datetime(["2001-01-01", "2003-06-01", "1999-12-31", "2020-02-29"]),
        }
    )


@pytest.mark.parametrize(
    "features",
    [
        TableFeatures(),
        TableFeatures(dtype=np.float32, standardize=True, drop_first=True),
        TableFeatures(n_hashed=8, max_levels=1),
    ],
    ids=["plain", "single, standardised", "hashed"],
)
def test_a_table_is_turned_the_same_way(features, tmp_path):
    model = features.fit(table())
    again = load(save(model, tmp_path / "table.trueline"))
    expected, found = model.transform(table()), again.transform(table())
    assert found.dtype == expected.dtype
    if sparse.issparse(expected):
        expected, found = expected.toarray(), found.toarray()
    assert_array_equal(found, expected)
    assert_array_equal(again.get_feature_names_out(), model.get_feature_names_out())
    assert again.dtype is model.dtype


def test_a_chain_says_the_same(tmp_path):
    X = np.random.default_rng(0).standard_normal((40, 3))
    y = np.array(["no", "yes"])[(X[:, 0] + X[:, 1] ** 2 > 0.5).astype(int)]
    stages = [("line", LinearSVC()), ("second", LogisticRegression())]
    model = ChainedClassifiers(stages, cv=2).fit(X, y)
    again = load(save(model, tmp_path / "chain.trueline"))
    assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    assert again.explain() == model.explain()
