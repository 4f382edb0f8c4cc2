"""Rows on a Dask cluster: the coefficients and proofs of rows in memory, whoever holds the blocks."""

import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy import sparse as sp
from sklearn.base import clone

import trueline
from trueline import (
    ElasticNet,
    GammaRegressor,
    HuberRegressor,
    Lasso,
    LinearRegression,
    LinearSVC,
    LogisticRegression,
    PoissonRegressor,
    Ridge,
    RidgeClassifier,
)

da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")
distributed = pytest.importorskip("distributed")

N = 3000
FEATURES = ["a", "b", "c", "d"]
RNG = np.random.default_rng(0)
X = RNG.standard_normal((N, 4)) * [1, 2, 0.5, 1] + [0, 1, 100, -3]
SCORE = (X - X.mean(axis=0)) @ [1.0, -0.5, 2.0, 0.0]
TARGETS = {
    "y": SCORE + RNG.standard_normal(N),
    "kind": np.where(SCORE + RNG.standard_normal(N) > 0, "yes", "no"),
    "three": np.digitize(SCORE + RNG.standard_normal(N), [-1, 1]),
    "count": RNG.poisson(np.exp(0.2 * SCORE)),
    "positive": np.exp(0.2 * SCORE + 0.1 * RNG.standard_normal(N)),
}
WEIGHT = RNG.integers(0, 3, N).astype(float)
ROWS = da.from_array(X, chunks=(700, 4))
TABLE = pd.DataFrame(X, columns=FEATURES).assign(**TARGETS)
MODELS = [
    (LinearRegression(), "y"),
    (LinearRegression(solver="qr"), "y"),
    (Ridge(2.0), "y"),
    (Lasso(0.1), "y"),
    (ElasticNet(0.1), "y"),
    (HuberRegressor(), "y"),
    (PoissonRegressor(), "count"),
    (GammaRegressor(), "positive"),
    (LogisticRegression(), "kind"),
    (LogisticRegression(C=0.1, l1_ratio=1.0), "kind"),
    (LogisticRegression(), "three"),
    (LinearSVC(), "kind"),
    (RidgeClassifier(), "kind"),
]


@pytest.fixture(scope="module")
def client():
    """Two workers with two threads each, in this process."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)  # sockets of the cluster
        with (
            distributed.LocalCluster(
                n_workers=2, threads_per_worker=2, processes=False, dashboard_address=None
            ) as cluster,
            distributed.Client(cluster) as client,
        ):
            yield client


def blocks(values, size=1000):
    return da.from_array(values, chunks=size)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(("model", "target"), MODELS, ids=str)
def test_fits_are_those_of_rows_in_memory(client, model, target, weighted):
    y = TARGETS[target]
    given = {"sample_weight": WEIGHT} if weighted else {}
    sent = {name: blocks(values, 400) for name, values in given.items()}
    spread = clone(model).fit(ROWS, blocks(y), **sent)
    whole = clone(model).fit(X, y, **given)
    np.testing.assert_allclose(spread.coef_, whole.coef_, rtol=1e-9, atol=1e-11)
    np.testing.assert_allclose(spread.intercept_, whole.intercept_, rtol=1e-9)
    assert spread.certificate_.gap <= 10 * whole.certificate_.gap + 1e-9
    assert spread.verify(X, y, **given)
    if not isinstance(model, HuberRegressor):  # whose theorem reads rows in memory
        assert spread.verify(ROWS, blocks(y), **sent)
        spread.coef_ = spread.coef_ * 1.001
        assert not spread.verify(ROWS, blocks(y), **sent)
