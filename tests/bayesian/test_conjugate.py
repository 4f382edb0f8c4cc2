"""The conjugate posterior is what Bayes' rule says, row by row or all at once."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import dblquad
from scipy.stats import t as student
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import ConstantKernel, DotProduct

from trueline import BayesianLinearRegression, Ridge, load, save
from trueline.bayesian import NormalInverseGamma
from trueline.design import as_design
from trueline.moments import Moments


def rows(n=40, d=3, seed=0, offset=2.0):
    generator = np.random.default_rng(seed)
    X = generator.normal(size=(n, d)) + offset
    y = X @ generator.normal(size=d) + 1.0 + 0.5 * generator.normal(size=n)
    return X, y


def moments_of(X, y, weights=None):
    return Moments.from_rows(as_design(X), np.asarray(y).reshape(-1, 1), weights)


@pytest.mark.parametrize("alpha", [1e-3, 1.0, 50.0])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_the_most_probable_coefficients_are_those_of_ridge(alpha, fit_intercept):
    X, y = rows()
    model = BayesianLinearRegression(alpha, fit_intercept=fit_intercept).fit(X, y)
    ridge = Ridge(alpha, fit_intercept=fit_intercept).fit(X, y)
    np.testing.assert_allclose(model.coef_, ridge.coef_, rtol=1e-13)
    np.testing.assert_allclose(model.intercept_, ridge.intercept_, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("precision", [0.3, 4.0])
def test_a_process_with_a_linear_kernel_is_bayesian_linear_regression(precision):
    """Mean and variance agree to rounding, in units of the noise."""
    X, y = rows()
    model = BayesianLinearRegression(precision, fit_intercept=False).fit(X, y)
    kernel = ConstantKernel(1 / precision, "fixed") * DotProduct(0.0, "fixed")
    process = GaussianProcessRegressor(kernel, alpha=1.0).fit(X, y)
    new = rows(7, seed=1)[0]
    mean, std = process.predict(new, return_std=True)
    np.testing.assert_allclose(model.predict(new), mean, rtol=1e-10)
    posterior = model.posterior_
    spread = posterior.line(new)[1] / np.sqrt(posterior.rate / posterior.shape)
    np.testing.assert_allclose(spread, std, rtol=1e-10)


def test_flat_priors_give_the_confidence_intervals_of_least_squares():
    statsmodels = pytest.importorskip("statsmodels.api")
    X, y = rows()
    model = BayesianLinearRegression(0.0, noise_shape=0.0, noise_rate=0.0).fit(X, y)
    fitted = statsmodels.OLS(y, statsmodels.add_constant(X)).fit()
    expected = fitted.conf_int(alpha=0.1)
    np.testing.assert_allclose(model.intercept_interval(0.9), expected[0], rtol=1e-10)
    np.testing.assert_allclose(model.credible_interval(0.9), expected[1:], rtol=1e-10)
    new = rows(5, seed=2)[0]
    frame = fitted.get_prediction(statsmodels.add_constant(new)).summary_frame(alpha=0.1)
    ends = np.column_stack([frame["obs_ci_lower"], frame["obs_ci_upper"]])
    np.testing.assert_allclose(model.predict_interval(new, 0.9), ends, rtol=1e-10)


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("prior_mean", [0.0, [1.0, -2.0, 0.5]])
def test_batches_give_the_posterior_of_all_rows(fit_intercept, prior_mean):
    X, y = rows()
    settings_ = {
        "prior_precision": [0.5, 1.0, 2.0],
        "prior_mean": prior_mean,
        "noise_shape": 2.0,
        "noise_rate": 1.0,
        "fit_intercept": fit_intercept,
    }
    whole = BayesianLinearRegression(**settings_).fit(X, y)
    parts = BayesianLinearRegression(**settings_)
    for start in range(0, len(y), 7):
        parts.partial_fit(X[start : start + 7], y[start : start + 7])
    np.testing.assert_allclose(parts.coef_, whole.coef_, rtol=1e-11)
    np.testing.assert_allclose(parts.covariance_, whole.covariance_, rtol=1e-10)
    np.testing.assert_allclose(parts.log_evidence_, whole.log_evidence_, rtol=1e-11)
    assert parts.verify(X, y)
    assert whole.verify(X, y)


@settings(max_examples=40, deadline=None)
@given(
    n=st.integers(2, 12),
    seed=st.integers(0, 10_000),
    intercept=st.booleans(),
    scale=st.sampled_from([1e-3, 1.0, 30.0]),
)
def test_the_evidence_is_the_product_of_predictions(n, seed, intercept, scale):
    """log p(y) = sum_i log p(y_i | y_1 .. y_{i-1}), the posterior becoming the prior."""
    generator = np.random.default_rng(seed)
    X, y = scale * generator.normal(size=(n, 2)) + scale, scale * generator.normal(size=n)
    belief = NormalInverseGamma.prior(np.zeros(2), np.array([1.0, 2.0]), 1.5, 0.7, intercept)
    first = 1 if intercept else 0
    if intercept:  # before any row the flat intercept predicts nothing
        belief = belief.update(moments_of(X[:1], y[:1]))
    total = belief.log_evidence
    for i in range(first, n):
        centre, spread = belief.predictive(X[i : i + 1])
        total += student.logpdf(y[i], belief.degrees_of_freedom, centre[0], spread[0])
        belief = belief.update(moments_of(X[i : i + 1], y[i : i + 1]))
    prior = NormalInverseGamma.prior(np.zeros(2), np.array([1.0, 2.0]), 1.5, 0.7, intercept)
    whole = prior.update(moments_of(X, y))
    assert belief.log_evidence == pytest.approx(total, rel=1e-9, abs=1e-9)
    assert whole.log_evidence == pytest.approx(total, rel=1e-9, abs=1e-9)
    np.testing.assert_allclose(whole.mean, belief.mean, rtol=1e-8, atol=1e-10)
    assert whole.rate == pytest.approx(belief.rate, rel=1e-9)


def test_the_evidence_is_an_integral():
    """By quadrature over coefficient and noise."""
    x, y = np.array([[0.5], [1.0], [-1.0]]), np.array([0.4, 1.3, -0.6])
    belief = NormalInverseGamma.prior(np.zeros(1), np.array([2.0]), 3.0, 2.0, False)

    def density(variance, w):
        normal = np.exp(-0.5 * ((y - x[:, 0] * w) ** 2).sum() / variance)
        normal *= (2 * np.pi * variance) ** -1.5
        normal *= np.exp(-0.5 * 2.0 * w**2 / variance) * np.sqrt(2.0 / (2 * np.pi * variance))
        return normal * (2.0**3 / 2.0) * variance**-4.0 * np.exp(-2.0 / variance)

    integral = dblquad(density, -12, 12, 1e-3, 200, epsabs=1e-12, epsrel=1e-8)[0]
    evidence = belief.update(moments_of(x, y)).log_evidence
    assert evidence == pytest.approx(np.log(integral), rel=1e-5)


def test_weights_count_rows():
    X, y = rows()
    weights = np.random.default_rng(3).integers(0, 4, size=len(y)).astype(float)
    weighted = BayesianLinearRegression().fit(X, y, sample_weight=weights)
    repeated = BayesianLinearRegression().fit(
        np.repeat(X, weights.astype(int), axis=0), np.repeat(y, weights.astype(int))
    )
    np.testing.assert_allclose(weighted.coef_, repeated.coef_, rtol=1e-11)
    np.testing.assert_allclose(weighted.log_evidence_, repeated.log_evidence_, rtol=1e-10)
    assert weighted.verify(X, y, weights)


def test_samples_have_the_moments_of_the_posterior():
    X, y = rows()
    model = BayesianLinearRegression(noise_shape=3.0, noise_rate=1.0).fit(X, y)
    coef, intercept, variance = model.sample_posterior(200_000)
    np.testing.assert_allclose(coef.mean(axis=0), model.coef_, atol=2e-3)
    np.testing.assert_allclose(np.cov(coef.T), model.covariance_, rtol=0.03, atol=3e-5)
    assert intercept.mean() == pytest.approx(model.intercept_, abs=5e-3)
    assert variance.mean() == pytest.approx(model.noise_variance_, rel=0.01)


def test_predictions_are_students():
    X, y = rows()
    model = BayesianLinearRegression().fit(X, y)
    new = rows(4, seed=5)[0]
    distribution = model.predictive(new)
    np.testing.assert_allclose(distribution.mean(), model.predict(new), rtol=1e-12)
    np.testing.assert_allclose(distribution.std(), model.predict(new, return_std=True)[1])
    ends = np.column_stack(distribution.interval(0.8))
    np.testing.assert_allclose(model.predict_interval(new, 0.8), ends, rtol=1e-10)
    with pytest.raises(ValueError, match="between 0 and 1"):
        model.predict_interval(new, 1.5)


@pytest.mark.parametrize("kind", ["dense", "sparse", "float32", "moved"])
def test_certificates_verify_and_tampering_is_found(kind, tmp_path):
    X, y = rows()
    X = sp.csr_array(X) if kind == "sparse" else X
    X = X.astype(np.float32) if kind == "float32" else X
    shift = [1.0, 2.0, -1.0] if kind == "moved" else 0.0
    model = BayesianLinearRegression(2.0, prior_mean=shift).fit(X, y)
    assert model.verify(X, y)
    again = load(save(model, tmp_path / "line.trueline"))
    assert again.verify(X, y)
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    np.testing.assert_array_equal(again.credible_interval(), model.credible_interval())
    model.coef_ = model.coef_ + 1e-3
    assert not model.verify(X, y)


@pytest.mark.parametrize(
    ("settings_", "message"),
    [
        ({"prior_precision": [1.0, 2.0]}, "one number for each of 3 columns"),
        ({"prior_precision": [1.0, -2.0, 0.0]}, "not negative"),
        ({"prior_mean": [np.nan, 0.0, 0.0]}, "finite"),
    ],
)
def test_bad_priors_are_refused(settings_, message):
    X, y = rows()
    with pytest.raises(ValueError, match=message):
        BayesianLinearRegression(**settings_).fit(X, y)


def test_improper_posteriors_are_refused():
    X, y = rows(2, 1)
    with pytest.raises(ValueError, match="do not determine"):
        BayesianLinearRegression(0.0, noise_shape=0.0).fit(X, y)
    X, y = rows()
    X[:, 2] = X[:, 1]
    with pytest.raises(ValueError, match="depend on each other"):
        BayesianLinearRegression(0.0).fit(X, y)
    line = np.arange(5.0).reshape(-1, 1)
    with pytest.raises(ValueError, match="without any error"):
        BayesianLinearRegression(0.0, noise_shape=0, noise_rate=0).fit(line, np.zeros(5))
