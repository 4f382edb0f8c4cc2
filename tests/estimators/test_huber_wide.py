"""Huber regression with about as many columns as rows, or more: all can be fitted exactly."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose

from trueline import HuberRegressor

KINDS = ["noise", "outliers", "binary", "unscaled"]


def table(n, d, kind, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    if kind == "unscaled":
        X *= 10 ** rng.uniform(-1, 2, d)
    if kind == "binary":
        X = (X > 1).astype(float)
    y = X[:, :5] @ np.ones(5) + rng.standard_normal(n)
    if kind == "outliers":
        y[::7] += 50
    return X, y


@pytest.mark.grid(1)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("n", "d"), [(60, 55), (60, 60), (60, 64), (120, 110), (120, 75)])
def test_about_as_many_columns_as_rows_is_proven_without_a_warning(n, d, kind):
    X, y = table(n, d, kind)
    model = HuberRegressor().fit(X, y)
    assert np.isfinite(model.coef_).all()
    assert model.certificate_.relative_gap < 1e-5
    assert model.verify(X, y)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("make", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
def test_more_columns_than_rows_is_the_interpolation_of_least_norm(make, kind):
    """The scale is zero, every row is fitted, and the penalty asks for the least norm."""
    X, y = table(40, 400, kind)
    model = HuberRegressor().fit(make(X), y)
    centred = X - X.mean(axis=0)
    w = np.linalg.lstsq(centred, y - y.mean(), rcond=None)[0]
    assert model.scale_ == 0.0
    assert_allclose(model.coef_, w, atol=1e-6 * np.abs(w).max())
    assert_allclose(model.predict(make(X)), y, atol=1e-6 * np.abs(y).max())
    assert not model.outliers_.any()
    assert model.verify(make(X), y)


def test_a_strong_penalty_in_the_span_of_the_rows_leaves_a_scale():
    """The same as with columns of zeros left out, which needs no narrowing."""
    X, y = table(80, 60, "outliers")
    narrow = HuberRegressor(alpha=10.0).fit(X, y)
    wide = HuberRegressor(alpha=10.0).fit(np.hstack([X, np.zeros((80, 60))]), y)
    assert narrow.scale_ > 0
    assert_allclose(wide.scale_, narrow.scale_, rtol=1e-6)
    assert_allclose(wide.coef_, [*narrow.coef_, *np.zeros(60)], atol=1e-7)
    assert_allclose(wide.intercept_, narrow.intercept_, rtol=1e-6)


def test_a_warm_start_with_more_columns_than_rows_begins_at_the_answer():
    X, y = table(80, 120, "noise")
    model = HuberRegressor(alpha=10.0, warm_start=True).fit(X, y)
    before = model.coef_.copy()
    model.fit(X, y)
    assert model.n_iter_ <= 1
    assert_allclose(model.coef_, before, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("weights", [None, np.linspace(0.5, 2.0, 40)], ids=["alike", "weighted"])
def test_rows_that_can_all_be_fitted_take_one_linear_system(fit_intercept, weights):
    """Words of texts are like this: no factorisation in the span of the rows is needed."""
    X, y = table(40, 400, "binary")
    model = HuberRegressor(fit_intercept=fit_intercept).fit(sp.csr_array(X), y, weights)
    assert "one linear system" in str(model.explain())
    assert model.scale_ == 0.0
    assert_allclose(model.predict(sp.csr_array(X)), y, atol=1e-10)
    assert model.verify(sp.csr_array(X), y, sample_weight=weights)


def test_the_same_row_with_two_targets_cannot_be_fitted_exactly():
    X, y = table(40, 400, "noise")
    X[1] = X[0]
    model = HuberRegressor().fit(X, y)
    assert "one linear system" not in str(model.explain())
    assert_allclose(model.predict(X[2:]), y[2:], atol=1e-6)
    assert model.verify(X, y)
