"""The multi-task lasso and elastic net: scikit-learn's answers, proven, for every form of data."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import sklearn.linear_model
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import KFold
from sklearn.utils.estimator_checks import parametrize_with_checks

import trueline
from trueline import (
    Lasso,
    MultiTaskElasticNet,
    MultiTaskElasticNetCV,
    MultiTaskLasso,
    MultiTaskLassoCV,
    enet_path,
    lasso_path,
)

SHAPES = {"tall": (90, 15), "wide": (25, 70)}
FORMS = {
    "rows": np.ascontiguousarray,
    "columns": np.asfortranarray,
    "csr": sp.csr_array,
    "csc": sp.csc_matrix,
}
MODELS = [
    MultiTaskLasso(0.3),
    MultiTaskLasso(0.05, fit_intercept=False),
    MultiTaskElasticNet(0.2, l1_ratio=0.5),
    MultiTaskElasticNet(0.02, l1_ratio=0.1),
]


def data(shape="tall", seed=0, density=0.7):
    n, d = SHAPES[shape]
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) + rng.standard_normal(d)
    X[rng.random((n, d)) > density] = 0.0
    W = np.zeros((d, 3))
    W[:5] = rng.standard_normal((5, 3))
    Y = X @ W + [1.0, -2.0, 5.0] + 0.3 * rng.standard_normal((n, 3))
    return X, Y, rng.integers(0, 3, n).astype(float)


def reference(model, X, Y, weights=None):
    """scikit-learn's answer, as tight as it gets."""
    twin = sklearn.linear_model.MultiTaskElasticNet(
        model.alpha,
        l1_ratio=model.l1_ratio,
        fit_intercept=model.fit_intercept,
        tol=1e-13,
        max_iter=100_000,
    )
    return twin.fit(X, Y, sample_weight=weights)


def assert_proven(model, X, Y, weights=None, share=1e-8):
    certificate = model.certificate_
    assert certificate.gap <= share * certificate.objective
    verification = model.verify(X, Y, weights)
    assert verification, str(verification)


@pytest.mark.grid(2)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("model", MODELS, ids=repr)
def test_the_answer_is_that_of_scikit_learn(shape, form, weighted, model):
    X, Y, s = data(shape)
    weights = s if weighted else None
    model.fit(FORMS[form](X), Y, weights)
    twin = reference(model, X, Y, weights)
    np.testing.assert_allclose(model.coef_, twin.coef_, atol=1e-7)
    np.testing.assert_allclose(model.intercept_, twin.intercept_, atol=1e-7)
    assert_proven(model, FORMS[form](X), Y, weights)


@pytest.mark.parametrize("shape", SHAPES)
def test_coefficients_and_attributes_have_the_shapes_of_scikit_learn(shape):
    X, Y, _ = data(shape)
    for name in ("MultiTaskLasso", "MultiTaskElasticNet"):
        ours = getattr(trueline, name)().fit(X, Y)
        theirs = getattr(sklearn.linear_model, name)().fit(X, Y)
        assert ours.get_params() == theirs.get_params()
        for attribute in ("coef_", "intercept_", "n_iter_", "dual_gap_", "sparse_coef_"):
            assert np.shape(getattr(ours, attribute)) == np.shape(getattr(theirs, attribute))
        assert ours.predict(X).shape == theirs.predict(X).shape


def test_the_gap_is_in_units_of_the_objective():
    X, Y, s = data()
    model = MultiTaskLasso(0.1).fit(X, Y, s)
    assert model.dual_gap_ == model.certificate_.gap / s.sum()
    residual = Y - model.predict(X)
    objective = 0.5 * s @ (residual**2).sum(axis=1) / s.sum()
    objective += 0.1 * np.linalg.norm(model.coef_, axis=0).sum()
    np.testing.assert_allclose(model.certificate_.objective / s.sum(), objective, rtol=1e-12)


def test_one_target_in_a_matrix_is_the_lasso():
    X, Y, _ = data()
    together = MultiTaskLasso(0.1).fit(X, Y[:, :1])
    alone = Lasso(0.1).fit(X, Y[:, 0])
    assert together.coef_.shape == (1, X.shape[1])
    np.testing.assert_allclose(together.coef_[0], alone.coef_, atol=1e-9)


@pytest.mark.parametrize("estimator", [MultiTaskLasso, MultiTaskElasticNetCV], ids=str)
def test_a_vector_is_refused_with_the_name_of_the_right_class(estimator):
    X, Y, _ = data()
    single = estimator.__name__.removeprefix("MultiTask")
    with pytest.raises(ValueError, match=f"use {single}$"):
        estimator().fit(X, Y[:, 0])


@pytest.mark.parametrize("shape", SHAPES)
def test_above_the_largest_strength_nothing_is_left(shape):
    X, Y, s = data(shape)
    Xc, Yc = X - np.average(X, axis=0, weights=s), Y - np.average(Y, axis=0, weights=s)
    top = np.linalg.norm(Xc.T @ (s[:, None] * Yc), axis=1).max() / s.sum()
    assert not MultiTaskLasso(1.000001 * top).fit(X, Y, s).coef_.any()
    assert MultiTaskLasso(0.999 * top).fit(X, Y, s).coef_.any()


def test_dependent_columns_and_constant_columns_are_no_obstacle():
    X, Y, _ = data()
    X = np.column_stack([X, X[:, :3], np.full(len(X), 7.0), np.zeros(len(X))])
    model = MultiTaskLasso(0.05).fit(X, Y)
    assert_proven(model, X, Y)
    assert not model.coef_[:, -2:].any()


@pytest.mark.parametrize("alpha", [1e-3, 1e-5])
def test_nearly_interpolating_fits_are_proven_too(alpha):
    X, Y, _ = data("wide", density=1.0)
    model = MultiTaskLasso(alpha, tol=1e-9).fit(X, Y)
    assert model.verify(X, Y)
    assert model.certificate_.gap <= 1e-9 * 0.5 * ((Y - Y.mean(axis=0)) ** 2).sum()


def test_single_precision_in_is_single_precision_out():
    X, Y, _ = data()
    model = MultiTaskLasso(0.1).fit(X.astype(np.float32), Y.astype(np.float32))
    assert model.coef_.dtype == model.intercept_.dtype == np.float32
    assert model.verify(X.astype(np.float32), Y.astype(np.float32))


def test_data_frames_keep_their_names():
    X, Y, _ = data()
    frame = pd.DataFrame(X, columns=[f"c{j}" for j in range(X.shape[1])])
    model = MultiTaskLasso(0.1).fit(frame, pd.DataFrame(Y))
    assert model.feature_names_in_[3] == "c3"
    np.testing.assert_allclose(model.coef_, MultiTaskLasso(0.1).fit(X, Y).coef_, atol=1e-12)


def test_a_warm_start_ends_at_the_same_point():
    X, Y, _ = data("wide")
    cold = MultiTaskLasso(0.1).fit(X, Y)
    warm = MultiTaskLasso(0.3, warm_start=True).fit(X, Y).set_params(alpha=0.1).fit(X, Y)
    np.testing.assert_allclose(warm.coef_, cold.coef_, atol=1e-8)
    assert_proven(warm, X, Y)


def test_stopping_early_warns_and_the_certificate_stays_true():
    X, Y, _ = data("wide", density=1.0)
    with pytest.warns(ConvergenceWarning, match="stopped short of the optimum"):
        model = MultiTaskLasso(0.01, tol=0.0, max_iter=1).fit(X, Y)
    assert model.verify(X, Y)


def test_the_inputs_are_not_modified():
    X, Y, s = data()
    before = [array.copy() for array in (X, Y, s)]
    MultiTaskLassoCV(alphas=5, copy_X=False).fit(X, Y, s)
    for array, copy in zip((X, Y, s), before, strict=True):
        np.testing.assert_array_equal(array, copy)


def test_explain_says_what_was_minimised_and_how():
    X, Y, _ = data()
    text = str(MultiTaskLasso(0.1).fit(X, Y).explain())
    assert "sum_j ||W_j||" in text
    assert "block_descent" in text


# --- paths and cross-validation -----------------------------------------------------------------


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("form", ["rows", "csc"])
def test_paths_are_those_of_scikit_learn(shape, form):
    X, Y, _ = data(shape)
    X = FORMS[form](X)
    for ours, theirs, options in (
        (lasso_path, sklearn.linear_model.lasso_path, {}),
        (enet_path, sklearn.linear_model.enet_path, {"l1_ratio": 0.4}),
    ):
        alphas, coefs, gaps = ours(X, Y, alphas=8, eps=1e-2, **options)
        twin = theirs(X, Y, alphas=8, eps=1e-2, tol=1e-13, max_iter=100_000, **options)
        np.testing.assert_allclose(alphas, twin[0], rtol=1e-12)
        np.testing.assert_allclose(coefs, twin[1], atol=1e-6)
        assert gaps.shape == twin[2].shape
        assert (gaps < 1e-6).all()


@pytest.mark.grid(2)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("mixture", [None, 0.6, [0.3, 0.9]])
def test_cross_validation_is_that_of_scikit_learn(shape, weighted, mixture):
    X, Y, s = data(shape)
    weights = s + 0.5 if weighted else None
    name = "MultiTaskLassoCV" if mixture is None else "MultiTaskElasticNetCV"
    options = {"cv": KFold(3, shuffle=True, random_state=0), "alphas": 10, "eps": 1e-2}
    options |= {} if mixture is None else {"l1_ratio": mixture}
    ours = getattr(trueline, name)(**options).fit(X, Y, sample_weight=weights)
    twin = getattr(sklearn.linear_model, name)(tol=1e-12, max_iter=50_000, **options)
    twin.fit(X, Y, sample_weight=weights)
    np.testing.assert_allclose(ours.alphas_, twin.alphas_, rtol=1e-12)
    np.testing.assert_allclose(ours.mse_path_, twin.mse_path_, rtol=1e-5)
    np.testing.assert_allclose(ours.alpha_, twin.alpha_, rtol=1e-12)
    np.testing.assert_allclose(ours.coef_, twin.coef_, atol=1e-6)
    assert hasattr(ours, "l1_ratio_") == hasattr(twin, "l1_ratio_")
    assert_proven(ours, X, Y, weights)


def test_given_strengths_are_tried_in_decreasing_order():
    X, Y, _ = data()
    model = MultiTaskLassoCV(alphas=[0.01, 1.0, 0.1]).fit(X, Y)
    np.testing.assert_array_equal(model.alphas_, [1.0, 0.1, 0.01])


def test_no_grid_can_be_made_for_a_pure_ridge():
    X, Y, _ = data()
    with pytest.raises(ValueError, match="l1_ratio=0"):
        MultiTaskElasticNetCV(l1_ratio=0).fit(X, Y)


@parametrize_with_checks([MultiTaskLasso()])
def test_contract(estimator, check):
    check(estimator)


@pytest.mark.slow
@parametrize_with_checks(
    [
        MultiTaskElasticNet(),
        MultiTaskLassoCV(alphas=5),
        MultiTaskElasticNetCV(alphas=5),
    ]
)
def test_contract_with_more_settings(estimator, check):
    check(estimator)
