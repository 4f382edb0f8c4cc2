"""Degrees of freedom are the divergence of the fitted values, here by differences of fits."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose

from trueline import (
    ElasticNet,
    GroupLasso,
    Lasso,
    MultiTaskElasticNet,
    MultiTaskElasticNetCV,
    MultiTaskLasso,
    load,
    save,
)

TALL, WIDE = (300, 6), (15, 40)
GROUPS = [0, 0, 1, 1, 1, 2]


def data(shape, targets=1, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal(shape) + 1.0
    W = np.zeros((shape[1], targets))
    W[:4] = rng.standard_normal((4, targets)) + 1.0
    Y = X @ W + 0.5 * rng.standard_normal((shape[0], targets))
    weights = rng.integers(1, 4, shape[0]) + 0.0
    return X, Y[:, 0] if targets == 1 else Y, weights


def divergence(fit, y, step=1e-4):
    """sum_i d(fit of row i) / d(y_i), of each target's own rows."""
    Y = y.reshape(len(y), -1)
    total = np.zeros(Y.shape[1])
    for t in range(Y.shape[1]):
        for i in range(len(Y)):
            moved = []
            for sign in (1, -1):
                shifted = Y.copy()
                shifted[i, t] += sign * step
                moved.append(fit(shifted.reshape(y.shape)).reshape(Y.shape)[i, t])
            total[t] += (moved[0] - moved[1]) / (2 * step)
    return total[0] if y.ndim == 1 else total


SINGLE = [
    ElasticNet(0.2, l1_ratio=0.6, tol=1e-12),
    ElasticNet(0.05, l1_ratio=0.3, tol=1e-12, fit_intercept=False),
    ElasticNet(0.2, l1_ratio=0.6, tol=1e-12, positive=True),
    Lasso(0.1, tol=1e-12),
    GroupLasso(0.2, tol=1e-10, groups=GROUPS),
    GroupLasso(0.1, tol=1e-10, groups=GROUPS, l2=0.3, weights=[0.0, 1.0, 2.0]),
]
COUPLED = [
    MultiTaskLasso(0.4, tol=1e-8),
    MultiTaskElasticNet(0.4, l1_ratio=0.5, tol=1e-8, fit_intercept=False),
]


def prepared(model, shape):
    """The model for that many columns."""
    if isinstance(model, GroupLasso):
        groups = GROUPS if shape == TALL else np.arange(shape[1]) // 4
        weights = model.weights
        if weights is not None:
            weights = np.append(weights, np.full(len(np.unique(groups)) - 3, 1.5))
        return GroupLasso(**{**model.get_params(), "groups": groups, "weights": weights})
    return model


@pytest.mark.grid(1)
@pytest.mark.parametrize("form", [np.asarray, sp.csc_array], ids=["dense", "sparse"])
@pytest.mark.parametrize("model", SINGLE, ids=repr)
def test_one_target(model, form):
    X, y, weights = data(WIDE)
    model = prepared(model, WIDE)
    found = model.fit(form(X), y, weights).degrees_of_freedom_
    known = divergence(lambda y: model.fit(X, y, weights).predict(X), y)
    assert isinstance(found, float)
    assert_allclose(found, known, rtol=1e-6)
    assert found > 2


@pytest.mark.parametrize("form", [np.asarray, sp.csc_array], ids=["dense", "sparse"])
@pytest.mark.parametrize("model", COUPLED, ids=repr)
def test_coupled_targets(model, form):
    X, Y, weights = data(WIDE, targets=2)
    found = model.fit(form(X), Y, weights).degrees_of_freedom_
    known = divergence(lambda Y: model.fit(X, Y, weights).predict(X), Y)
    assert_allclose(found, known, rtol=1e-6)


@pytest.mark.parametrize("model", [*SINGLE, *COUPLED], ids=repr)
def test_from_moments_and_from_columns_they_are_the_same(model):
    X, Y, _ = data(TALL, targets=2)
    y = Y if model in COUPLED else Y[:, 0]
    model = prepared(model, TALL).fit(X, y)
    assert hasattr(model, "moments_")
    tall = model.degrees_of_freedom_
    # The same problem with many columns that are never used: these are no case for moments.
    idle = 1e-9 * np.random.default_rng(1).standard_normal((len(X), 3000))
    wide = type(model)(**model.get_params())
    if isinstance(wide, GroupLasso):
        wide.groups = np.append(GROUPS, np.full(3000, 3))
        wide.weights = np.append(np.sqrt([2, 3, 1]) if wide.weights is None else wide.weights, 9.0)
    wide.fit(np.column_stack([X, idle]), y)
    assert not hasattr(wide, "moments_")
    assert_allclose(wide.degrees_of_freedom_, tall, rtol=1e-6)
    assert_allclose(wide.bic(), model.bic(), rtol=1e-6)


def test_without_a_squared_penalty_on_some_columns():
    X, y, _ = data(WIDE)
    weights = np.where(np.arange(40) < 2, 0.0, 1.0)
    model = ElasticNet(0.3, l1_ratio=0.5, tol=1e-12, feature_weights=weights)
    found = model.fit(X, y).degrees_of_freedom_
    assert_allclose(found, divergence(lambda y: model.fit(X, y).predict(X), y), rtol=1e-6)


def test_several_targets_fitted_one_by_one():
    X, Y, _ = data(WIDE, targets=2)
    for model in (ElasticNet(0.2), prepared(GroupLasso(0.2), WIDE), Lasso(0.1)):
        both = model.fit(X, Y)
        freedom, bic, noise = both.degrees_of_freedom_, both.bic(), both.noise_variance_
        for t in range(2):
            alone = type(model)(**model.get_params()).fit(X, Y[:, t])
            assert_allclose(freedom[t], alone.degrees_of_freedom_, rtol=1e-6)
            assert_allclose(bic[t], alone.bic(), rtol=1e-6)
            assert_allclose(noise[t], alone.noise_variance_, rtol=1e-6)


@pytest.mark.parametrize("model", [MultiTaskLasso(0.3), GroupLasso(0.3)], ids=repr)
def test_criteria_are_those_of_the_residuals(model):
    X, Y, _ = data(WIDE, targets=2)
    model.fit(X, Y)
    n, square = len(X), np.sum((Y - model.predict(X)) ** 2, axis=0)
    surprise = n * (np.log(2 * np.pi * square / n) + 1)
    assert_allclose(model.aic(), surprise + 2 * model.degrees_of_freedom_, rtol=1e-9)
    assert_allclose(model.noise_variance_, square / (n - model.degrees_of_freedom_), rtol=1e-9)


@pytest.mark.parametrize("model", [ElasticNet(1e9), GroupLasso(1e9), MultiTaskLasso(1e9)])
def test_nothing_but_the_intercept(model):
    X, Y, _ = data(WIDE, targets=2)
    assert_allclose(model.fit(X, Y).degrees_of_freedom_, [1.0, 1.0])


@pytest.mark.parametrize("model", [ElasticNet(0.2), GroupLasso(0.2), MultiTaskLasso(0.2)])
def test_model_files_keep_them(model, tmp_path):
    X, Y, _ = data(WIDE, targets=2)
    again = load(save(model.fit(X, Y), tmp_path / "m.trueline"))
    assert again.degrees_of_freedom_.tobytes() == model.degrees_of_freedom_.tobytes()
    assert again.bic().tobytes() == model.bic().tobytes()


def test_a_search_has_those_of_its_final_fit():
    X, Y, _ = data(WIDE, targets=2)
    chosen = MultiTaskElasticNetCV(alphas=[0.3, 0.2], cv=3).fit(X, Y)
    same = MultiTaskElasticNet(chosen.alpha_, l1_ratio=chosen.l1_ratio_).fit(X, Y)
    assert_allclose(chosen.degrees_of_freedom_, same.degrees_of_freedom_, rtol=1e-9)
