"""Linear support vector regression: LIBLINEAR's objective, exactly, and proven."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.svm import LinearSVR as Liblinear
from sklearn.utils.estimator_checks import parametrize_with_checks

from trueline import LinearSVR, load, save

LOSSES = ("epsilon_insensitive", "squared_epsilon_insensitive")


def noisy(n: int = 200, d: int = 5, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, d))
    return X, X @ random.normal(size=d) + 2.0 + random.standard_t(3, size=n)


def objective(model, X, y, weights=1.0):
    excess = np.maximum(np.abs(y - X @ model.coef_ - model.intercept_) - model.epsilon, 0.0)
    losses = excess if model.loss == "epsilon_insensitive" else excess**2
    level = model.intercept_ / model.intercept_scaling if model.fit_intercept else 0.0
    return float(
        0.5 * model.coef_ @ model.coef_
        + 0.5 * np.sum(level) ** 2
        + model.C * np.sum(weights * losses)
    )


@pytest.mark.slow  # others of the same base are in the fast run
@parametrize_with_checks([LinearSVR(), LinearSVR(loss="squared_epsilon_insensitive", C=0.5)])
def test_contract(estimator, check):
    check(estimator)


@pytest.mark.grid(2)
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("C", [0.01, 1.0, 30.0])
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_it_reaches_the_minimum_that_liblinear_approaches(loss, C, fit_intercept, kind):
    X, y = noisy()
    options = {"C": C, "epsilon": 0.2, "loss": loss, "fit_intercept": fit_intercept}
    data = sp.csr_array(X) if kind == "sparse" else X
    ours = LinearSVR(**options, tol=1e-6).fit(data, y)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        other = Liblinear(**options, tol=1e-10, max_iter=100_000, dual=True).fit(X, y)
    best, reference = objective(ours, X, y), objective(other, X, y)
    assert best <= reference * (1 + 1e-9)
    assert best == pytest.approx(reference, rel=1e-4)
    assert ours.certificate_.objective == pytest.approx(best, rel=1e-12)
    assert ours.certificate_.relative_gap <= 1e-7
    assert ours.verify(data, y)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("scaling", [0.1, 1.0, 100.0])
def test_the_intercept_is_penalised_as_the_coefficient_of_a_constant(loss, scaling):
    X, y = noisy(n=60)
    model = LinearSVR(loss=loss, C=0.1, intercept_scaling=scaling, tol=1e-8).fit(X, y)
    constant = np.column_stack([X, np.full(len(X), scaling)])
    other = LinearSVR(loss=loss, C=0.1, fit_intercept=False, tol=1e-8).fit(constant, y)
    np.testing.assert_allclose(model.coef_, other.coef_[:-1], atol=1e-6)
    assert model.intercept_ == pytest.approx(other.coef_[-1] * scaling, abs=1e-5)


@pytest.mark.parametrize("loss", LOSSES)
def test_solvers_agree(loss):
    X, y = noisy(n=120, d=4, seed=3)
    models = [
        LinearSVR(loss=loss, C=0.3, epsilon=0.1, tol=1e-8, max_iter=100_000, solver=solver).fit(
            X, y
        )
        for solver in ("auto", "dual_coordinate_descent")
    ]
    assert models[0].solver_ != models[1].solver_
    np.testing.assert_allclose(models[0].coef_, models[1].coef_, atol=1e-4)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_more_columns_than_rows(loss, kind):
    X, y = noisy(n=40, d=300, seed=5)
    data = sp.csr_array(X) if kind == "sparse" else X
    model = LinearSVR(loss=loss, C=1.0, epsilon=0.1, tol=1e-8).fit(data, y)
    assert model.certificate_.relative_gap <= 1e-6
    assert model.verify(data, y)


@pytest.mark.parametrize("loss", LOSSES)
def test_a_weight_of_two_is_the_row_twice(loss):
    X, y = noisy(n=80)
    weights = np.random.default_rng(1).integers(0, 4, size=80).astype(float)
    repeated = np.repeat(np.arange(80), weights.astype(int))
    weighted = LinearSVR(loss=loss, C=0.5, tol=1e-8).fit(X, y, weights)
    plain = LinearSVR(loss=loss, C=0.5, tol=1e-8).fit(X[repeated], y[repeated])
    np.testing.assert_allclose(weighted.coef_, plain.coef_, atol=1e-6)
    assert weighted.verify(X, y, weights)


def test_single_precision_stays_single():
    X, y = noisy()
    model = LinearSVR(C=0.1).fit(X.astype(np.float32), y.astype(np.float32))
    assert model.coef_.dtype == np.float32
    assert model.verify(X.astype(np.float32), y.astype(np.float32))


@pytest.mark.parametrize("scaling", [0.1, 3.0, 700.0])
def test_the_proof_survives_the_scaling_of_the_intercept(scaling):
    X, y = noisy(n=60)
    model = LinearSVR(C=0.5, intercept_scaling=scaling).fit(X, y)
    assert model.verify(X, y)
    assert model.verify(X.tolist(), y.tolist())


def test_changed_coefficients_do_not_verify():
    X, y = noisy()
    model = LinearSVR(C=0.1).fit(X, y)
    assert model.verify(X, y)
    model.coef_[0] += 0.1
    assert not model.verify(X, y)


def test_a_saved_model_is_the_same(tmp_path):
    X, y = noisy()
    model = LinearSVR(C=0.1).fit(X, y)
    save(model, tmp_path / "model.trueline")
    again = load(tmp_path / "model.trueline")
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    assert again.verify(X, y)


@pytest.mark.parametrize("seed", [21, 29, 39, 61, 66])
def test_rows_that_can_all_be_fitted_exactly_are_proven_too(seed):
    """Least squares, where the search begins, leave no residual of which to take a measure."""
    rng = np.random.default_rng(seed)
    X, y = rng.standard_normal((10, 30)), rng.standard_normal(10)
    model = LinearSVR().fit(X, y)
    assert model.certificate_.relative_gap <= 1e-8
    assert model.verify(X, y)


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_the_intercept_has_the_shape_of_scikit_learn(fit_intercept):
    X, y = np.arange(12.0).reshape(6, 2), np.array([1.0, 0.0, 2.0, 1.0, 3.0, 5.0])
    ours = LinearSVR(fit_intercept=fit_intercept).fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = Liblinear(fit_intercept=fit_intercept).fit(X, y)
    assert np.shape(ours.intercept_) == np.shape(theirs.intercept_)


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_columns_whose_squares_overflow(sparse, fit_intercept):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    y = X @ [1.0, 2.0, 3.0] + 0.1 * rng.normal(size=60)
    scale = np.array([1.0, 2.0**400, 1.0])
    data = sp.csr_array(X * scale) if sparse else X * scale
    model = LinearSVR(loss="squared_epsilon_insensitive", fit_intercept=fit_intercept, tol=1e-10)
    model.fit(data, y)
    # A coefficient of that size costs no penalty: least squares with penalties of the others.
    A = np.column_stack([X, np.ones(60)])[:, : 3 + fit_intercept]
    strength = 0.5 * np.diag([1.0, 0.0, 1.0, 1.0][: A.shape[1]])
    w = np.linalg.solve(A.T @ A + strength, A.T @ y)
    np.testing.assert_allclose(model.coef_ * scale, w[:3], rtol=1e-9)
    np.testing.assert_allclose(model.intercept_, w[3:] if fit_intercept else 0.0, rtol=1e-9)
    assert model.verify(data, y)


def test_columns_too_small_for_any_penalised_weight_leave_the_intercept():
    X, y = np.arange(12.0).reshape(6, 2) * 1e-200, np.arange(6.0)
    model = LinearSVR().fit(X, y)
    # The penalty of the intercept b and all errors: b^2 / 2 + sum |y - b|, smallest at b = 2.
    np.testing.assert_allclose(model.predict(X), 2.0, rtol=1e-12)
    assert model.verify(X, y)
