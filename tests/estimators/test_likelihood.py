"""Least squares as maximum likelihood, ridge as the most probable answer: checked from outside.

y = X w + b + noise,    noise ~ N(0, sigma^2),    w ~ N(0, tau^2),    alpha = sigma^2 / tau^2
"""

import numpy as np
import pytest
import scipy.sparse as sp
import statsmodels.api as sm
from numpy.testing import assert_allclose
from scipy.optimize import minimize
from scipy.stats import multivariate_normal, norm

from trueline import LinearRegression, Ridge, RidgeCV


def data(targets=1, n=40, d=4, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) + 2.0
    Y = X @ rng.standard_normal((d, targets)) + rng.standard_normal((n, targets)) - 1.0
    return X, Y[:, 0] if targets == 1 else Y


def with_ones(X, fit_intercept):
    return sm.add_constant(X) if fit_intercept else X


def hat_matrix(X, weights, alpha, fit_intercept):
    """Fitted values as a matrix times the target, of the rows as they are repeated by weights."""
    root = np.sqrt(weights)[:, None]
    A = root * with_ones(X, fit_intercept)
    penalty = alpha * np.eye(A.shape[1])
    if fit_intercept:
        penalty[0, 0] = 0.0
    return A @ np.linalg.solve(A.T @ A + penalty, A.T)


# --- noise --------------------------------------------------------------------------------------


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("solver", ["auto", "cholesky", "qr", "svd"])
def test_noise_variance_is_that_of_statsmodels(fit_intercept, solver):
    X, y = data()
    theirs = sm.OLS(y, with_ones(X, fit_intercept)).fit()
    ours = LinearRegression(fit_intercept=fit_intercept, solver=solver).fit(X, y)
    assert ours.noise_variance_ == pytest.approx(theirs.mse_resid, rel=1e-11)
    assert ours.noise_variance() == ours.noise_variance_
    assert ours.noise_variance(unbiased=False) == pytest.approx(theirs.ssr / len(y), rel=1e-11)
    assert ours.degrees_of_freedom_ == theirs.df_model + theirs.k_constant
    assert isinstance(ours.noise_variance_, float)
    assert isinstance(ours.degrees_of_freedom_, float)


def test_dependent_columns_do_not_use_up_degrees_of_freedom():
    X, y = data()
    doubled = np.hstack([X, X[:, :2]])
    theirs = sm.OLS(y, sm.add_constant(X)).fit()
    ours = LinearRegression().fit(doubled, y)
    assert ours.degrees_of_freedom_ == theirs.df_model + 1 == 5.0
    assert ours.noise_variance_ == pytest.approx(theirs.mse_resid, rel=1e-11)


def test_every_target_has_a_variance_of_its_own():
    X, Y = data(targets=3)
    ours = LinearRegression().fit(X, Y)
    each = [LinearRegression().fit(X, y) for y in Y.T]
    assert_allclose(ours.noise_variance_, [model.noise_variance_ for model in each], rtol=1e-12)
    assert ours.noise_variance_.shape == (3,)
    assert ours.degrees_of_freedom_.tolist() == [5.0, 5.0, 5.0]


@pytest.mark.parametrize("model", [LinearRegression(), Ridge(3.0)], ids=repr)
def test_weights_count_rows(model):
    X, y = data()
    counts = np.random.default_rng(1).integers(0, 4, len(y))
    weighted = model.fit(X, y, sample_weight=counts)
    freedom, unbiased = weighted.degrees_of_freedom_, weighted.noise_variance_
    likely = weighted.noise_variance(unbiased=False)
    repeated = model.fit(np.repeat(X, counts, axis=0), np.repeat(y, counts))
    assert freedom == pytest.approx(repeated.degrees_of_freedom_, rel=1e-12)
    assert unbiased == pytest.approx(repeated.noise_variance_, rel=1e-12)
    assert likely == pytest.approx(repeated.noise_variance(unbiased=False), rel=1e-12)


def test_the_unbiased_estimate_is_unbiased_and_the_likely_one_is_the_most_likely():
    X, y = data()
    rng = np.random.default_rng(2)
    Y = (X @ np.ones(4))[:, None] + 2.0 * rng.standard_normal((len(X), 20_000))
    model = LinearRegression().fit(X, Y)
    assert model.noise_variance_.mean() == pytest.approx(4.0, rel=0.01)
    assert model.noise_variance(unbiased=False).mean() == pytest.approx(4.0 * 35 / 40, rel=0.01)

    model = LinearRegression().fit(X, y)
    errors = y - model.predict(X)
    variance = model.noise_variance(unbiased=False)
    best = norm(scale=np.sqrt(variance)).logpdf(errors).sum()
    for other in (0.99 * variance, 1.01 * variance):
        assert norm(scale=np.sqrt(other)).logpdf(errors).sum() < best


def test_no_rows_to_spare_leave_the_variance_unknown():
    X, y = data(n=5, d=4)
    assert np.isnan(LinearRegression().fit(X, y).noise_variance_)


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_sparse_and_dense_agree(form):
    X, y = data()
    X[X < 1.5] = 0.0
    ours = LinearRegression().fit(form(X), y)
    theirs = sm.OLS(y, sm.add_constant(X)).fit()
    assert ours.noise_variance_ == pytest.approx(theirs.mse_resid, rel=1e-11)


def test_batches_and_merged_models_estimate_from_all_rows():
    X, y = data()
    whole = LinearRegression().fit(X, y)
    batches = LinearRegression().partial_fit(X[:15], y[:15]).partial_fit(X[15:], y[15:])
    merged = LinearRegression().fit(X[:15], y[:15]) + LinearRegression().fit(X[15:], y[15:])
    for model in (batches, merged):
        assert model.noise_variance_ == pytest.approx(whole.noise_variance_, rel=1e-10)
        assert model.degrees_of_freedom_ == whole.degrees_of_freedom_


def test_a_solver_that_keeps_no_moments_says_what_to_do():
    X, y = data()
    model = Ridge(solver="lsqr").fit(X, y)
    with pytest.raises(AttributeError, match="fit with solver='cholesky'"):
        model.degrees_of_freedom_
    assert not hasattr(model, "noise_variance_")


# --- shrinkage ----------------------------------------------------------------------------------


@pytest.mark.parametrize("alpha", [1e-6, 0.5, 10.0, 1e6])
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("weighted", [True, False])
def test_degrees_of_freedom_are_the_trace_of_the_hat_matrix(alpha, fit_intercept, weighted):
    X, y = data()
    weights = np.random.default_rng(1).uniform(0.5, 2.0, len(y)) if weighted else np.ones(len(y))
    H = hat_matrix(X, weights, alpha, fit_intercept)
    model = Ridge(alpha, fit_intercept=fit_intercept).fit(X, y, sample_weight=weights)
    assert model.degrees_of_freedom_ == pytest.approx(np.trace(H), rel=1e-9)
    target = np.sqrt(weights) * y
    square = np.sum((target - H @ target) ** 2)
    rows = weights.sum()
    assert model.noise_variance_ == pytest.approx(square / (rows - np.trace(H)), rel=1e-9)
    assert model.noise_variance(unbiased=False) == pytest.approx(square / rows, rel=1e-9)


def test_each_strength_has_its_degrees_of_freedom():
    X, Y = data(targets=2)
    both = Ridge([0.5, 50.0]).fit(X, Y)
    each = [Ridge(alpha).fit(X, y) for alpha, y in zip([0.5, 50.0], Y.T)]
    assert_allclose(both.degrees_of_freedom_, [m.degrees_of_freedom_ for m in each], rtol=1e-12)
    assert_allclose(both.noise_variance_, [m.noise_variance_ for m in each], rtol=1e-12)
    assert_allclose(both.prior_variance_, [m.prior_variance_ for m in each], rtol=1e-12)


def test_the_chosen_strength_decides_in_ridge_cv():
    X, y = data()
    chosen = RidgeCV([0.5, 5.0, 50.0]).fit(X, y)
    same = Ridge(chosen.alpha_).fit(X, y)
    assert chosen.degrees_of_freedom_ == pytest.approx(same.degrees_of_freedom_, rel=1e-12)
    assert chosen.noise_variance_ == pytest.approx(same.noise_variance_, rel=1e-12)


# --- prior --------------------------------------------------------------------------------------


def test_a_prior_is_a_strength():
    model = Ridge.from_prior(noise_variance=2.0, prior_variance=0.5, fit_intercept=False)
    assert isinstance(model, Ridge)
    assert model.alpha == 4.0
    assert model.fit_intercept is False


@pytest.mark.parametrize(("noise", "prior"), [(-1.0, 1.0), (1.0, 0.0), (1.0, -1.0), (np.nan, 1.0)])
def test_a_variance_that_cannot_be_is_refused(noise, prior):
    with pytest.raises(ValueError, match="must not be negative .* must be positive"):
        Ridge.from_prior(noise, prior)


def test_the_prior_variance_leads_back_to_the_strength():
    X, y = data()
    model = Ridge(3.0).fit(X, y)
    again = Ridge.from_prior(model.noise_variance_, model.prior_variance_)
    assert again.alpha == pytest.approx(3.0, rel=1e-15)
    assert isinstance(model.prior_variance_, float)


def test_no_penalty_is_a_prior_of_infinite_width():
    X, y = data()
    assert Ridge(0.0).fit(X, y).prior_variance_ == np.inf


def test_ridge_is_the_mean_of_the_posterior():
    X, y = data()
    noise, prior = 0.7, 0.2
    precision = X.T @ X / noise + np.eye(4) / prior
    mean = np.linalg.solve(precision, X.T @ y / noise)
    model = Ridge.from_prior(noise, prior, fit_intercept=False).fit(X, y)
    assert_allclose(model.coef_, mean, rtol=1e-12)


@pytest.mark.parametrize("weighted", [True, False])
def test_ridge_is_the_most_probable_answer_found_by_search(weighted):
    X, y = data()
    noise, prior = 0.7, 0.2
    weights = np.random.default_rng(1).uniform(0.5, 2.0, len(y)) if weighted else np.ones(len(y))

    def surprise(parameters):
        b, w = parameters[0], parameters[1:]
        likelihood = norm(scale=np.sqrt(noise / weights)).logpdf(y - X @ w - b).sum()
        return -likelihood - multivariate_normal(np.zeros(4), prior).logpdf(w)

    found = minimize(surprise, np.zeros(5), method="BFGS", options={"gtol": 1e-4})
    model = Ridge.from_prior(noise, prior).fit(X, y, sample_weight=weights)
    answer = np.array([model.intercept_, *model.coef_])
    assert surprise(answer) <= found.fun + 1e-12 * abs(found.fun)
    assert_allclose(answer, found.x, rtol=0, atol=1e-5)
