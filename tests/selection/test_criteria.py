"""AIC, AICc, BIC, adjusted R^2 and Cp, compared with statsmodels and with plain algebra."""

import numpy as np
import pytest
import scipy.sparse as sp
import statsmodels.api as sm
from numpy.testing import assert_allclose
from scipy.stats import norm
from statsmodels.tools.eval_measures import aicc as statsmodels_aicc

from trueline import LinearRegression, LinearRegressor, PolynomialRegression, Ridge, RidgeCV
from trueline.selection.criteria import CRITERIA, Criterion, adjusted_r2, aicc, mallows_cp

NAMES = ["aic", "aicc", "bic"]


def data(n=40, d=4, targets=1, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) + 2.0
    Y = X @ rng.standard_normal((d, targets)) + rng.standard_normal((n, targets)) - 1.0
    return X, Y[:, 0] if targets == 1 else Y


def with_ones(X, fit_intercept):
    return sm.add_constant(X, has_constant="add") if fit_intercept else X


def of_statsmodels(fit):
    p = fit.df_model + fit.k_constant
    return {"aic": fit.aic, "aicc": statsmodels_aicc(fit.llf, fit.nobs, p), "bic": fit.bic}


def of_model(model, **options):
    return {name: getattr(model, name)(**options) for name in NAMES}


def hat_matrix(X, weights, alpha, fit_intercept):
    root = np.sqrt(weights)[:, None]
    A = root * with_ones(X, fit_intercept)
    penalty = alpha * np.eye(A.shape[1])
    if fit_intercept:
        penalty[0, 0] = 0.0
    return A @ np.linalg.solve(A.T @ A + penalty, A.T)


@pytest.mark.grid(2)
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("solver", ["auto", "cholesky", "qr", "svd"])
@pytest.mark.parametrize("n", [7, 40, 500])
def test_least_squares_has_the_criteria_of_statsmodels(fit_intercept, solver, n):
    X, y = data(n)
    theirs = sm.OLS(y, with_ones(X, fit_intercept)).fit()
    ours = LinearRegression(fit_intercept=fit_intercept, solver=solver).fit(X, y)
    expected = of_statsmodels(theirs)
    for name, value in of_model(ours).items():
        assert isinstance(value, float)
        if name == "aicc" and n <= theirs.df_model + theirs.k_constant + 1:
            assert value == np.inf
        else:
            assert value == pytest.approx(expected[name], rel=1e-10)
    assert ours.log_likelihood() == pytest.approx(theirs.llf, rel=1e-10)


def test_a_solver_that_determines_no_rank_says_what_to_do():
    """Of large data the rank would cost more than the fit."""
    X = np.random.default_rng(0).standard_normal((1200, 100))
    model = LinearRegression(solver="conjugate_gradient").fit(X, X[:, 0])
    with pytest.raises(AttributeError, match="fit with solver='cholesky'"):
        model.aic()


@pytest.mark.parametrize("model", [LinearRegression(), Ridge(3.0), Ridge(0.0)], ids=repr)
def test_weights_count_rows(model):
    X, y = data()
    counts = np.random.default_rng(1).integers(0, 4, len(y))
    weighted = of_model(model.fit(X, y, sample_weight=counts))
    repeated = of_model(model.fit(np.repeat(X, counts, axis=0), np.repeat(y, counts)))
    assert weighted == pytest.approx(repeated, rel=1e-11)


@pytest.mark.parametrize("alpha", [1e-6, 0.5, 10.0, 1e6])
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("weighted", [True, False])
def test_shrunken_parameters_count_in_part(alpha, fit_intercept, weighted):
    X, y = data()
    weights = np.random.default_rng(1).uniform(0.5, 2.0, len(y)) if weighted else np.ones(len(y))
    H = hat_matrix(X, weights, alpha, fit_intercept)
    residual = np.sqrt(weights) * y - H @ (np.sqrt(weights) * y)
    n, p = weights.sum(), np.trace(H)
    surprise = n * (np.log(2 * np.pi * (residual @ residual) / n) + 1)
    model = Ridge(alpha, fit_intercept=fit_intercept).fit(X, y, sample_weight=weights)
    assert model.aic() == pytest.approx(surprise + 2 * p, rel=1e-10)
    assert model.aicc() == pytest.approx(surprise + 2 * p * n / (n - p - 1), rel=1e-10)
    assert model.bic() == pytest.approx(surprise + np.log(n) * p, rel=1e-10)


def test_the_chosen_strength_counts_in_ridge_cv():
    X, y = data()
    chosen = RidgeCV([0.5, 5.0, 50.0]).fit(X, y)
    assert of_model(chosen) == pytest.approx(of_model(Ridge(chosen.alpha_).fit(X, y)), rel=1e-12)


def test_coefficients_held_at_zero_do_not_count():
    X, y = data()
    X = np.column_stack([X, -X[:, 0] + 0.1 * data(seed=5)[0][:, 0]])
    model = LinearRegression(positive=True).fit(X, y)
    used = model.coef_ > 0
    assert 0 < used.sum() < 5
    free = LinearRegression().fit(X[:, used], y)
    assert of_model(model) == pytest.approx(of_model(free), rel=1e-10)


def test_every_target_has_criteria_of_its_own():
    X, Y = data(targets=3)
    ours = LinearRegression().fit(X, Y)
    each = [LinearRegression().fit(X, y) for y in Y.T]
    for name in NAMES:
        expected = [getattr(model, name)() for model in each]
        assert_allclose(getattr(ours, name)(), expected, rtol=1e-12)


def test_the_likelihood_is_that_of_normal_errors():
    X, y = data()
    model = LinearRegression().fit(X, y)
    sigma = np.sqrt(model.noise_variance(unbiased=False))
    expected = norm(scale=sigma).logpdf(y - model.predict(X)).sum()
    assert model.log_likelihood() == pytest.approx(expected, rel=1e-12)


def test_the_variance_counts_if_asked():
    X, y = data()
    model = LinearRegression().fit(X, y)
    assert model.aic(count_variance=True) == pytest.approx(model.aic() + 2, rel=1e-13)
    assert model.bic(count_variance=True) == pytest.approx(model.bic() + np.log(40), rel=1e-13)
    with_variance = -2 * model.log_likelihood() + 2 * 6 * 40 / (40 - 6 - 1)
    assert model.aicc(count_variance=True) == pytest.approx(with_variance, rel=1e-13)


def test_sparse_and_batched_fits_have_the_same_criteria():
    X, y = data()
    X[X < 1.5] = 0.0
    expected = of_model(LinearRegression().fit(X, y))
    assert of_model(LinearRegression().fit(sp.csr_array(X), y)) == pytest.approx(expected, rel=1e-9)
    batches = LinearRegression().partial_fit(X[:15], y[:15]).partial_fit(X[15:], y[15:])
    assert of_model(batches) == pytest.approx(expected, rel=1e-10)


def test_a_perfect_fit_is_infinitely_likely():
    X, _ = data()
    model = LinearRegression().fit(X, np.zeros(len(X)))
    assert model.aic() == model.bic() == -np.inf


# --- the formulas alone -------------------------------------------------------------------------


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_adjusted_r2_is_that_of_statsmodels(fit_intercept):
    X, y = data()
    theirs = sm.OLS(y, with_ones(X, fit_intercept)).fit()
    total = np.sum((y - y.mean() * fit_intercept) ** 2)
    p = theirs.df_model + theirs.k_constant
    ours = adjusted_r2(len(y), theirs.ssr, p, total, fit_intercept)
    assert ours == pytest.approx(theirs.rsquared_adj, rel=1e-12)


def test_cp_of_the_whole_model_is_its_number_of_parameters():
    X, y = data()
    fit = sm.OLS(y, sm.add_constant(X)).fit()
    assert mallows_cp(len(y), fit.ssr, 5, fit.mse_resid) == pytest.approx(5.0, rel=1e-12)


def test_no_rows_to_spare_rule_a_model_out():
    assert aicc(6.0, 1.0, 5.0) == np.inf
    assert adjusted_r2(5.0, 0.0, 5.0, 1.0, True) == -np.inf


@pytest.mark.parametrize("name", CRITERIA)
def test_a_criterion_prefers_fewer_errors_and_fewer_parameters(name):
    criterion = Criterion(name, rows=50.0, total=40.0, constant=True, variance=0.5)
    assert criterion.cost(10.0, 4) < criterion.cost(11.0, 4)
    assert criterion.cost(10.0, 4) < criterion.cost(10.0, 5)
    assert criterion.table(10.0, 4)[name] == criterion.value(10.0, 4)


# --- every estimator of squared loss ------------------------------------------------------------


def test_polynomials_have_the_criteria_of_their_powers():
    X, y = data(d=1)
    powers = np.hstack([X, X**2, X**3])
    theirs = sm.OLS(y, sm.add_constant(powers)).fit()
    ours = PolynomialRegression(degree=3).fit(X, y)
    assert of_model(ours) == pytest.approx(of_statsmodels(theirs), rel=1e-10)


@pytest.mark.parametrize("penalty", [None, "l2"])
def test_the_general_regressor_has_those_of_squared_loss(penalty):
    X, y = data()
    ours = LinearRegressor("squared", penalty, alpha=3.0).fit(X, y)
    same = LinearRegression().fit(X, y) if penalty is None else Ridge(3.0).fit(X, y)
    assert of_model(ours) == pytest.approx(of_model(same), rel=1e-10)


def test_the_lasso_counts_its_nonzero_coefficients():
    X, y = data()
    model = LinearRegressor("squared", "l1", alpha=10.0, tol=1e-10).fit(X, y)
    used = np.count_nonzero(model.coef_)
    assert 0 < used < 4
    residual = y - model.predict(X)
    surprise = 40 * (np.log(2 * np.pi * (residual @ residual) / 40) + 1)
    assert model.degrees_of_freedom_ == used + 1
    assert model.aic() == pytest.approx(surprise + 2 * (used + 1), rel=1e-9)


def test_other_losses_have_no_gaussian_criteria():
    X, y = data()
    model = LinearRegressor("huber", alpha=1.0).fit(X, y)
    with pytest.raises(AttributeError, match="fitted with loss='huber'"):
        model.aic()
