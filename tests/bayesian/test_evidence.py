"""Regression by maximum evidence: scikit-learn's answers, the evidence by definition, proofs."""

import warnings

import mpmath
import numpy as np
import pytest
import scipy.sparse as sp
import sklearn.linear_model as peer
from scipy.stats import multivariate_normal
from sklearn.exceptions import ConvergenceWarning

from trueline import ARDRegression, BayesianRidge, Ridge, load, save
from trueline.bayesian.evidence import Hyperprior, Spectrum, log_evidence, log_evidence_gradient
from trueline.estimators.shared.base import build_problem
from trueline.losses import Squared
from trueline.penalties import NoPenalty

SHAPES = [(200, 5), (50, 80), (40, 40), (30, 29), (12, 300)]


def data(n, d, seed=0, offset=3.0):
    generator = np.random.default_rng(seed)
    X = generator.normal(size=(n, d)) + offset
    w = np.zeros(d)
    w[:3] = [2.0, -1.0, 3.0]
    return X, X @ w + generator.normal(size=n)


def problem_of(X, y, fit_intercept=False):
    return build_problem(X, y.reshape(-1, 1), None, Squared(), NoPenalty(), fit_intercept)


@pytest.mark.parametrize(("n", "d"), SHAPES)
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_bayesian_ridge_is_that_of_scikit_learn(n, d, fit_intercept):
    X, y = data(n, d)
    ours = BayesianRidge(compute_score=True, fit_intercept=fit_intercept).fit(X, y)
    theirs = peer.BayesianRidge(compute_score=True, fit_intercept=fit_intercept).fit(X, y)
    assert ours.n_iter_ == theirs.n_iter_
    for name in ("coef_", "intercept_", "alpha_", "lambda_", "sigma_", "X_offset_", "X_scale_"):
        expected = getattr(theirs, name)
        size = np.abs(expected).max()
        np.testing.assert_allclose(
            getattr(ours, name), expected, rtol=1e-8, atol=1e-9 * size, err_msg=name
        )
    # The last score of scikit-learn mixes the coefficients of two iterations.
    np.testing.assert_allclose(ours.scores_[:-1], theirs.scores_[:-1], rtol=1e-9)
    mean, std = ours.predict(X, return_std=True)
    expected_mean, expected_std = theirs.predict(X, return_std=True)
    np.testing.assert_allclose(mean, expected_mean, rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(std, expected_std, rtol=1e-7)
    assert ours.verify(X, y)


def test_a_target_that_is_a_sum_of_columns_beside_dummies_of_all_levels():
    """The rank of the rows determines lambda |w|^2 then, and the dummies are not used."""
    generator = np.random.default_rng(0)
    dummies = np.eye(5)[generator.integers(0, 5, 400)]
    parts = generator.poisson([30.0, 90.0], (400, 2)).astype(float)
    X, y = np.column_stack([dummies, parts]), parts.sum(axis=1)
    model = BayesianRidge().fit(X, y)
    np.testing.assert_allclose(model.coef_, [0, 0, 0, 0, 0, 1, 1], atol=1e-4)
    rank = np.linalg.matrix_rank(X - X.mean(axis=0))
    assert model.lambda_ * (model.coef_**2).sum() == pytest.approx(rank, rel=1e-5)
    np.testing.assert_allclose(model.predict(X), y, rtol=1e-10)
    assert model.verify(X, y)


def test_bayesian_ridge_with_weights_is_that_of_scikit_learn():
    X, y = data(60, 4)
    weights = np.random.default_rng(1).uniform(0, 2, size=60)
    weights[:5] = 0.0
    ours = BayesianRidge().fit(X, y, sample_weight=weights)
    theirs = peer.BayesianRidge().fit(X, y, sample_weight=weights)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, rtol=1e-9)
    np.testing.assert_allclose(ours.sigma_, theirs.sigma_, rtol=1e-7, atol=1e-12)
    assert ours.verify(X, y, weights)


@pytest.mark.parametrize(("n", "d"), [(20, 4), (6, 15)])
def test_the_evidence_is_a_gaussian_density(n, d):
    X, y = data(n, d)
    spectrum = Spectrum.of(problem_of(X, y))
    prior = Hyperprior(0.3, 0.2, 0.7, 0.1)
    alpha, lambda_ = 0.8, 1.7
    covariance = np.eye(n) / alpha + X @ X.T / lambda_
    expected = multivariate_normal.logpdf(y, np.zeros(n), covariance)
    expected += 0.7 * np.log(lambda_) - 0.1 * lambda_ + 0.3 * np.log(alpha) - 0.2 * alpha
    assert log_evidence(spectrum, n, alpha, lambda_, prior) == pytest.approx(expected, rel=1e-10)
    step = 1e-6
    numeric = [
        (
            log_evidence(spectrum, n, alpha * np.exp(a), lambda_ * np.exp(b), prior)
            - log_evidence(spectrum, n, alpha * np.exp(-a), lambda_ * np.exp(-b), prior)
        )
        / (2 * step)
        for a, b in ((step, 0.0), (0.0, step))
    ]
    gradient = log_evidence_gradient(spectrum, n, alpha, lambda_, prior)
    np.testing.assert_allclose(gradient, numeric, rtol=1e-6)


@pytest.mark.parametrize(("n", "d"), [(30, 6), (6, 30), (8, 8)])
def test_all_ways_to_rotate_a_design_agree(n, d):
    X, y = data(n, d)
    problem = problem_of(X, y, fit_intercept=True)
    quick, exact = Spectrum.of(problem), Spectrum.of_rows(problem)
    for strength in (0.1, 10.0):
        np.testing.assert_allclose(
            quick.coefficients(strength), exact.coefficients(strength), rtol=1e-8, atol=1e-10
        )
        np.testing.assert_allclose(quick.squares(strength), exact.squares(strength), rtol=1e-8)


def test_tight_tolerance_ends_where_the_evidence_is_level():
    X, y = data(100, 6)
    model = BayesianRidge(tol=1e-12, max_iter=1000).fit(X, y)
    np.testing.assert_allclose(model.evidence_gradient_, 0.0, atol=1e-7)


def test_the_coefficients_are_those_of_ridge_and_ill_conditioned_columns_keep_their_digits():
    x = np.linspace(0, 1, 60)
    X = np.vander(x, 9)[:, :-1]
    y = np.sin(3 * x) + 1e-4 * np.cos(40 * x)
    model = BayesianRidge(tol=1e-8, max_iter=2000).fit(X, y)
    ridge = Ridge(model.lambda_ / model.alpha_, solver="svd").fit(X, y)
    np.testing.assert_allclose(model.predict(X), ridge.predict(X), rtol=1e-7, atol=1e-10)
    assert model.verify(X, y)


def test_relevance_is_that_of_scikit_learn():
    for n, d in ((200, 5), (60, 40), (30, 29)):
        X, y = data(n, d)
        ours = ARDRegression(compute_score=True).fit(X, y)
        theirs = peer.ARDRegression(compute_score=True).fit(X, y)
        assert ours.n_iter_ == theirs.n_iter_
        for name in ("coef_", "alpha_", "lambda_", "sigma_", "scores_", "intercept_"):
            np.testing.assert_allclose(
                getattr(ours, name), getattr(theirs, name), rtol=1e-6, atol=1e-9, err_msg=name
            )
        new = data(9, d, seed=4)[0]
        for a, b in zip(ours.predict(new, return_std=True), theirs.predict(new, return_std=True)):
            np.testing.assert_allclose(a, b, rtol=1e-6, atol=1e-9)
        assert ours.verify(X, y)


def test_relevance_of_wide_data_follows_exact_arithmetic():
    """scikit-learn's covariance cancels there: alpha_ is far off after a dozen rounds."""
    generator = np.random.default_rng(0)
    X = generator.normal(size=(12, 24))
    y = 3 * X[:, 0] + generator.normal(size=12)
    rounds = 6
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = ARDRegression(max_iter=rounds, tol=0.0, fit_intercept=False).fit(X, y)
    alpha, lambda_ = _relevance_to_forty_digits(X, y, rounds)
    assert model.alpha_ == pytest.approx(alpha, rel=1e-9)
    np.testing.assert_allclose(model.lambda_, lambda_, rtol=1e-7)


def _relevance_to_forty_digits(X, y, rounds):
    with mpmath.workdps(40):
        exact = mpmath.matrix(X.tolist())
        target = mpmath.matrix(y.tolist())
        n, d = X.shape
        alpha = 1 / (mpmath.mpf(float(np.var(y))) + mpmath.mpf(float(np.finfo(float).eps)))
        lambda_ = [mpmath.mpf(1)] * d
        tiny = mpmath.mpf(2e-6)
        for _ in range(rounds):
            keep = [j for j in range(d) if lambda_[j] < 10_000]
            part = mpmath.matrix([[exact[i, j] for j in keep] for i in range(n)])
            system = alpha * (part.T * part)
            for place, j in enumerate(keep):
                system[place, place] += lambda_[j]
            sigma = mpmath.inverse(system)
            w = alpha * (sigma * (part.T * target))
            left = target - part * w
            error = sum(v * v for v in left)
            known = [1 - lambda_[j] * sigma[p, p] for p, j in enumerate(keep)]
            for place, j in enumerate(keep):
                lambda_[j] = (known[place] + tiny) / (w[place] ** 2 + tiny)
            alpha = (n - sum(known) + tiny) / (error + tiny)
        return float(alpha), np.array([float(v) for v in lambda_])


@pytest.mark.parametrize("estimator", [BayesianRidge, ARDRegression])
@pytest.mark.parametrize("kind", ["dense", "sparse", "float32"])
def test_certificates_verify_and_tampering_is_found(estimator, kind, tmp_path):
    X, y = data(50, 6)
    X = sp.csr_array(X) if kind == "sparse" else X
    X = X.astype(np.float32) if kind == "float32" else X
    model = estimator().fit(X, y)
    assert model.verify(X, y)
    again = load(save(model, tmp_path / "model.trueline"))
    assert again.verify(X, y)
    for a, b in zip(again.predict(X, return_std=True), model.predict(X, return_std=True)):
        np.testing.assert_array_equal(a, b)
    model.coef_ = model.coef_ * 1.01
    assert not model.verify(X, y)
    assert "evidence" in str(again.explain())


@pytest.mark.parametrize("estimator", [BayesianRidge, ARDRegression])
def test_constant_targets_and_constant_columns(estimator):
    X, _ = data(20, 3)
    model = estimator().fit(X, np.full(20, 7.0))
    np.testing.assert_allclose(model.predict(X), 7.0, rtol=1e-9)
    assert model.verify(X, np.full(20, 7.0))
    X[:, 1] = 4.0
    y = X[:, 0] + 0.1 * np.random.default_rng(0).normal(size=20)
    model = estimator().fit(X, y)
    assert abs(model.coef_[1]) < 1e-6
    assert model.verify(X, y)


@pytest.mark.parametrize("estimator", [BayesianRidge, ARDRegression])
def test_hostile_input(estimator):
    X, y = data(20, 3)
    bad = X.copy()
    bad[3, 1] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        estimator().fit(bad, y)
    bad[3, 1] = np.inf
    with pytest.raises(ValueError, match="infinity"):
        estimator().fit(bad, y)
    with pytest.raises(ValueError):
        estimator().fit(X, np.where(np.arange(20) == 2, np.nan, y))
    with pytest.warns(ConvergenceWarning, match="still moved"):
        estimator(max_iter=1).fit(X, y)
    with pytest.raises(ValueError, match="overflow or vanish|not finite"):
        estimator().fit(1e200 * X, y)
