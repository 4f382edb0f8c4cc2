"""Likelihood, posterior, AIC and BIC against statsmodels and SciPy's densities.

log L + log prior    is largest at the coefficients of the fit
AIC = -2 log L + 2 p,    BIC = -2 log L + p log n,    p without the scale of the noise
"""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
import statsmodels.api as sm
from numpy.testing import assert_allclose
from scipy import stats
from scipy.integrate import quad
from scipy.optimize import minimize
from scipy.special import psi

import trueline as tl
from trueline.losses import LOSSES, Absolute, Gamma, Hinge, LocalDeviance, Quantile, Squared
from trueline.losses.noise import noise_of
from trueline.penalties import L1, L2, Bounded, ElasticNet, NonNegative, NoPenalty
from trueline.penalties.prior import log_prior

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 3))
A = sm.add_constant(X)
Y = X @ [1.0, -2.0, 0.5] + RNG.normal(size=60)
POSITIVE = np.abs(Y) + 0.1
LABELS = (Y + RNG.normal(size=60) > 0).astype(int)
CLASSES = np.digitize(Y, [-1.0, 1.0])
COUNTS = RNG.poisson(np.exp(0.3 * X[:, 0] + 0.5))
NEW = RNG.normal(size=(20, 3))


def reference_cases():
    links = sm.families.links
    gamma = sm.GLM(POSITIVE, A, sm.families.Gamma(links.Log())).fit(tol=1e-14)
    return {
        "squared": (tl.LinearRegression(), Y, sm.OLS(Y, A).fit(), {}),
        "logistic": (tl.LogisticRegression(C=np.inf), LABELS, sm.Logit(LABELS, A).fit(disp=0), {}),
        "softmax": (
            tl.LogisticRegression(C=np.inf),
            CLASSES,
            sm.MNLogit(CLASSES, A).fit(disp=0),
            {},
        ),
        "poisson": (
            tl.PoissonRegressor(alpha=0.0),
            COUNTS,
            sm.GLM(COUNTS, A, sm.families.Poisson()).fit(),
            {},
        ),
        # statsmodels estimates the scale by Pearson's statistic.
        "gamma": (tl.GammaRegressor(alpha=0.0), POSITIVE, gamma, {"dispersion": gamma.scale}),
    }


@pytest.mark.parametrize("name", ["squared", "logistic", "softmax", "poisson", "gamma"])
def test_values_and_conventions_are_those_of_statsmodels(name):
    model, y, reference, scale = reference_cases()[name]
    model.fit(X, y)
    for rows in ((), (X, y), (sp.csr_array(X), y)):
        assert_allclose(model.log_likelihood(*rows, **scale), reference.llf, rtol=1e-7)
        if not scale:
            assert_allclose(model.aic(*rows), reference.aic, rtol=1e-7)
            bic = getattr(reference, "bic_llf", None) or reference.bic
            assert_allclose(model.bic(*rows), bic, rtol=1e-7)
            # A flat prior leaves the likelihood.
            assert_allclose(model.log_posterior(*rows), reference.llf, rtol=1e-7)


def densities():
    """Model, targets, and SciPy's log density of a target at a prediction and a scale."""

    def gamma(y, m, phi):
        return stats.gamma.logpdf(y, 1 / phi, scale=m * phi)

    def skewed(y, m, phi):  # asymmetric Laplace, q = 0.3
        k = np.sqrt(0.3 / 0.7)
        return stats.laplace_asymmetric.logpdf(y, k, loc=m, scale=phi / np.sqrt(0.3 * 0.7))

    def inverse(y, m, phi):
        return stats.invgauss.logpdf(y, m * phi, scale=1 / phi)

    return {
        "absolute": (
            tl.LeastAbsoluteDeviations(),
            Y,
            lambda y, m, phi: stats.laplace.logpdf(y, m, phi),
        ),
        "quantile": (tl.QuantileRegressor(quantile=0.3, alpha=0.0), Y, skewed),
        "maximum": (
            tl.ChebyshevRegressor(),
            Y,
            lambda y, m, phi: stats.uniform.logpdf(y, m - phi - 1e-9, 2 * phi + 2e-9),
        ),
        "gamma": (tl.GammaRegressor(alpha=0.0), POSITIVE, gamma),
        "inverse Gaussian": (tl.TweedieRegressor(power=3, alpha=0.0), POSITIVE, inverse),
        "normal": (
            tl.Ridge(3.0),
            Y,
            lambda y, m, phi: stats.norm.logpdf(y, m, np.sqrt(phi)),
        ),
        "evidence": (
            tl.BayesianRidge(),
            Y,
            lambda y, m, phi: stats.norm.logpdf(y, m, np.sqrt(phi)),
        ),
    }


@pytest.mark.parametrize("name", densities())
def test_other_noises_are_the_densities_of_scipy_at_their_most_likely_scale(name):
    model, y, density = densities()[name]
    s = np.where(np.arange(60) % 5 == 0, 2.0, 1.0)
    for weights, counted in ((None, np.ones(60)), (s, s)):
        model.fit(X, y, sample_weight=weights)
        phi = model._dispersion()
        m = model.predict(X)
        assert_allclose(model.log_likelihood(), counted @ density(y, m, phi), rtol=1e-8)
        assert_allclose(model.log_likelihood(X, y, weights), model.log_likelihood(), rtol=1e-8)
        if name != "evidence":
            others = [counted @ density(y, m, phi * factor) for factor in (0.99, 1.01)]
            assert model.log_likelihood() > max(others)
    new = np.exp(NEW[:, 0]) if y.min() > 0 else NEW[:, 0]
    expected = density(new, model.predict(NEW), phi).sum()
    assert_allclose(model.log_likelihood(NEW, new), expected, rtol=1e-8)
    given = density(new, model.predict(NEW), 3.0).sum()
    assert_allclose(model.log_likelihood(NEW, new, dispersion=3.0), given, rtol=1e-8)


def test_exposures_are_those_of_statsmodels():
    exposure = RNG.uniform(0.5, 4.0, size=60)
    model = tl.PoissonRegressor(alpha=0.0).fit(X, COUNTS, exposure=exposure)
    family = sm.families.Poisson()
    reference = sm.GLM(COUNTS, A, family, exposure=exposure).fit(tol=1e-14)
    assert_allclose(model.log_likelihood(), reference.llf)
    assert_allclose(model.log_likelihood(X, COUNTS, exposure=exposure), reference.llf)
    assert_allclose(model.bic(), reference.bic_llf)


@pytest.mark.parametrize(
    "model",
    [
        tl.Ridge(2.0),
        tl.Lasso(0.05),
        tl.ElasticNet(0.05, l1_ratio=0.3),
        tl.LogisticRegression(C=0.7),
        tl.LogisticRegression(C=0.7, l1_ratio=1.0, solver="saga"),
        tl.PoissonRegressor(alpha=0.1),
        tl.LeastAbsoluteDeviations(alpha=2.0),
    ],
    ids=repr,
)
def test_the_fit_is_the_mode_of_the_posterior(model):
    """Against an optimiser that does without slopes, on the posterior itself."""
    y = {"LogisticRegression": LABELS, "PoissonRegressor": COUNTS}.get(type(model).__name__, Y)
    model.fit(X, y)
    phi, shape = model._dispersion(), model.coef_.shape
    best = model.log_posterior(X, y)
    assert_allclose(best, model.log_posterior(), rtol=1e-9)
    changed = type(model)(**model.get_params()).fit(X, y)

    def negative(v):
        changed.coef_ = v[:3].reshape(shape)
        changed.intercept_ = v[3:].reshape(np.shape(model.intercept_))
        return -changed.log_posterior(X, y, dispersion=phi)

    start = np.concatenate([model.coef_.ravel(), np.ravel(model.intercept_)]) + 0.02
    options = {"xatol": 1e-7, "fatol": 1e-10, "maxfev": 4000}
    found = minimize(negative, start, method="Nelder-Mead", options=options)
    assert_allclose(-found.fun, best, atol=1e-5)
    assert -found.fun <= best + 1e-7


def test_the_lasso_from_its_prior_is_the_mode_under_it():
    model = tl.Lasso.from_prior(1.5, 0.2, 60, fit_intercept=False)
    assert model.alpha == pytest.approx(1.5 / (60 * 0.2))
    model.fit(X, Y)
    value = (
        stats.norm.logpdf(Y, X @ model.coef_, np.sqrt(1.5)).sum()
        + stats.laplace.logpdf(model.coef_, scale=0.2).sum()
    )
    assert_allclose(model.log_posterior(dispersion=1.5), value)
    for step in 1e-3 * np.vstack([np.eye(3), -np.eye(3)]):
        w = model.coef_ + step
        other = stats.norm.logpdf(Y, X @ w, np.sqrt(1.5)).sum()
        assert other + stats.laplace.logpdf(w, scale=0.2).sum() < value
    with pytest.raises(ValueError, match="prior_scale"):
        tl.Lasso.from_prior(1.0, 0.0, 10)


@pytest.mark.parametrize(
    "penalty",
    [L2(2.0), L1(0.7), ElasticNet(1.5, 0.4), NonNegative(L2(2.0)), NonNegative(L1(0.7))],
    ids=repr,
)
def test_priors_are_densities_that_are_proportional_to_the_penalty(penalty):
    for phi in (1.0, 0.3):

        def density(w, phi=phi):
            return np.exp(log_prior(penalty, np.array([[w]]), phi))

        low = 0.0 if "nonnegative" in penalty.capabilities else -np.inf
        area = quad(density, low, 0)[0] + quad(density, 0, np.inf)[0]
        assert area == pytest.approx(1.0, rel=1e-7)
        drop = np.log(density(0.0) / density(0.5))
        assert drop == pytest.approx(penalty.value(np.array([[0.5]])) / phi)
    assert penalty.prior


def test_degrees_of_freedom_of_shrunken_logistic_coefficients():
    """tr (H + P)^-1 H by hand, for two classes and for three."""
    model = tl.LogisticRegression(C=0.5).fit(X, LABELS)
    p = model.predict_proba(X)[:, 1]
    H = A.T @ ((p * (1 - p))[:, None] * A)
    freedom = np.trace(np.linalg.solve(H + np.diag([0.0, 2.0, 2.0, 2.0]), H))
    likelihood = model.log_likelihood()
    assert_allclose(model.aic(X, LABELS), -2 * likelihood + 2 * freedom)
    assert_allclose(model.bic(X, LABELS), -2 * likelihood + np.log(60) * freedom)
    model = tl.LogisticRegression(C=0.5).fit(X, CLASSES)
    P = model.predict_proba(X)
    H = sum(np.kron(np.diag(q) - np.outer(q, q), np.outer(a, a)) for q, a in zip(P, A))
    ridge = np.diag(np.tile([0.0, 2.0, 2.0, 2.0], 3))
    freedom = np.trace(np.linalg.lstsq(H + ridge, H, rcond=1e-10)[0])
    assert_allclose(model.aic(X, CLASSES), -2 * model.log_likelihood() + 2 * freedom)
    with pytest.raises(ValueError, match="give the rows"):
        model.aic()


def test_coefficients_that_are_zero_or_dependent_do_not_count():
    sparse = tl.LogisticRegression(C=0.1, l1_ratio=1.0, solver="saga").fit(X, LABELS)
    used = np.count_nonzero(sparse.coef_)
    assert used < 3
    assert_allclose(sparse.aic(), -2 * sparse.log_likelihood() + 2 * (used + 1))
    twice = tl.LogisticRegression(C=np.inf).fit(np.hstack([X, X[:, :1]]), LABELS)
    assert_allclose(twice.aic(), tl.LogisticRegression(C=np.inf).fit(X, LABELS).aic(), rtol=1e-9)


def test_noise_and_prior_are_said_in_words():
    assert Squared().noise == "normal noise of variance phi"
    assert Quantile((0.2, 0.8)).noise is None
    assert Hinge().noise is None
    assert (NoPenalty().prior, Bounded(L1()).prior) == ("flat", None)
    assert {name for name, loss in LOSSES.items() if loss().noise} == {
        "squared", "absolute", "quantile", "maximum_error", "logistic", "poisson", "gamma",
    }  # fmt: skip
    assert noise_of(LocalDeviance(0.0)).text == Squared().noise
    # The most likely shape of the gamma distribution, for large and for small scatter.
    for k in (1e-2, 0.5, 20.0, 1e4):
        assert noise_of(Gamma()).scale(np.log(k) - psi(k)) == pytest.approx(1 / k, rel=1e-6)
    assert Absolute().noise == "Laplace noise of scale phi"


def test_a_fit_of_a_fold_takes_the_rows_that_it_is_asked_about():
    found = tl.cross_validate(tl.LogisticRegression(), X, LABELS, return_estimator=True, cv=3)
    model = found["estimator"][0]
    alone = tl.LogisticRegression().fit(X, LABELS)
    alone.coef_, alone.intercept_ = model.coef_, model.intercept_
    value = alone.log_likelihood(X, LABELS)
    assert_allclose(model.log_likelihood(X, LABELS), value)
    assert np.isfinite(model.aic(X, LABELS))
    with pytest.raises(ValueError, match="fit it by itself"):
        model.bic()


def test_what_has_no_likelihood_says_so():
    with pytest.raises(AttributeError, match="tweedie loss"):
        tl.TweedieRegressor(power=1.5).fit(X, POSITIVE).log_likelihood()
    with pytest.raises(AttributeError, match="quantile loss"):
        tl.QuantileRegressor(quantile=[0.2, 0.8], alpha=0.0).fit(X, Y).aic()
    with pytest.raises(ValueError, match="Firth"):
        tl.LogisticRegression(penalty="firth").fit(X, LABELS).log_likelihood()
    with pytest.raises(ValueError, match="known density"):
        tl.GroupLasso().fit(X, Y).log_posterior()
    with pytest.raises(ValueError, match="one target"):
        tl.Ridge().fit(X, np.c_[Y, Y]).log_posterior()
