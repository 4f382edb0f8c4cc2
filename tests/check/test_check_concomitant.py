"""Huber's regression with its scale, against a solver of the same objective in higher precision."""

from dataclasses import replace

import mpmath
import numpy as np
import pytest
import scipy.sparse as sp
from malformed import assert_refused
from scipy.optimize import minimize

import trueline.certificates.special.concomitant as prover
from trueline import HuberRegressor
from trueline.check import Verdict
from trueline.losses import Huber, Logistic
from trueline.penalties import L1, L2


def objective(v, X, y, s, epsilon, alpha, fit_intercept=True):
    """F at (w, b, sigma)."""
    w, b, sigma = v[:-2], v[-2] * fit_intercept, abs(v[-1]) + 1e-300
    r = np.abs(X @ w + b - y)
    inner = np.minimum(r / sigma, epsilon)
    values = sigma + inner * (2 * r - inner * sigma)
    return float(s @ values + alpha * w @ w)


def table(seed=0, n=60, d=3, scale=1.0, offset=0.0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) + offset
    y = X @ rng.normal(size=d) + rng.standard_t(2, size=n)
    return X * scale, y


@pytest.mark.grid(2)
@pytest.mark.parametrize("scale", [1e-8, 1.0, 1e8])
@pytest.mark.parametrize("offset", [0.0, 1e3])
@pytest.mark.parametrize("alpha", [0.0, 1e-4, 1.0])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_honest_fits_are_proven_for_all_coefficients(scale, offset, alpha, fit_intercept):
    X, y = table(scale=scale, offset=offset)
    s = np.random.default_rng(1).uniform(0.0, 2.0, len(y))
    s[:5] = 0.0
    model = HuberRegressor(alpha=alpha, fit_intercept=fit_intercept, max_iter=500)
    for rows, weights in ((X, None), (sp.csr_array(X), s)):
        found = model.fit(rows, y, weights).verify(rows, y, weights)
        assert found.verdict is Verdict.PROVEN, str(found)
        assert model.certificate_.relative_gap < 1e-6


def test_copies_and_constant_columns_without_a_penalty():
    X, y = table()
    X = np.c_[X, X[:, 0], np.full(len(y), 5.0), np.zeros(len(y))]
    assert HuberRegressor(alpha=0.0).fit(X, y).verify(X, y)


@pytest.mark.filterwarnings("ignore:HuberRegressor stopped short")
@pytest.mark.parametrize("seed", range(1, 5))
def test_near_copies_in_small_units_claim_no_more_than_the_penalty_lets_them(seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(9, 3))
    X[:, 2] = X[:, 0] * (1 + 1e-7 * rng.normal(size=9))
    y = X[:, 0] + 0.5 * rng.normal(size=9)
    assert HuberRegressor(alpha=1e-4).fit(1e6 * X, y).verify(1e6 * X, y)


@pytest.mark.grid(1)
@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("alpha", [0.0, 0.1])
def test_a_false_gap_never_verifies(seed, alpha):
    X, y = table(seed, n=20, d=2)
    model = HuberRegressor(alpha=alpha, max_iter=500).fit(X, y)
    certificate, s = model.certificate_, np.ones(20)
    start = np.append(model.coef_, [model.intercept_, model.scale_])
    arguments = (X, y, s, 1.35, alpha)
    truth = min(
        objective(start, *arguments),
        minimize(objective, start, arguments, method="Nelder-Mead", tol=1e-12).fun,
    )
    rng = np.random.default_rng(seed)
    for _ in range(10):
        coef = certificate.coef + rng.normal(size=(2, 1)) * 10.0 ** rng.uniform(-4, 0)
        value = objective(np.append(coef, start[-2:]), *arguments)
        dual = (
            rng.uniform(-2.7, 2.7, (20, 1)) if rng.random() < 0.3 else certificate.witness["dual"]
        )
        claim = replace(
            certificate,
            coef=coef,
            objective=value,
            objective_rounding=1e-9 * value,
            gap=(value - truth) * rng.uniform(0.0, 0.99),
            witness={"scale": certificate.witness["scale"], "dual": dual * rng.choice([1.0, 3.0])},
        )
        assert claim.verify(X, y).verdict is Verdict.NOT_PROVEN


@pytest.mark.grid(1)
@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("alpha", [0.0, 0.1])
def test_what_another_scale_gains_is_part_of_the_gap(seed, alpha):
    X, y = table(seed, n=20, d=2)
    model = HuberRegressor(alpha=alpha, max_iter=500).fit(X, y)
    certificate, s = model.certificate_, np.ones(20)
    least = certificate.objective
    dual = certificate.witness["dual"]
    for factor in (0.0, 0.2, 0.9, 0.999, 1.001, 1.1, 3.0):
        sigma = factor * model.scale_
        v = np.concatenate([model.coef_, [model.intercept_, sigma]])
        value, r = objective(v, X, y, s, 1.35, alpha), X @ model.coef_ + model.intercept_ - y
        own = np.clip(2 * r / sigma, -2.7, 2.7) if sigma else 2.7 * np.sign(r)
        for u in (dual, own[:, None]):
            claim = replace(
                certificate,
                objective=value,
                objective_rounding=1e-12 * value,
                witness={"scale": np.array([sigma]), "dual": u},
            )
            assert not replace(claim, gap=0.99 * (value - least)).verify(X, y)
        enough = 1.01 * (value - least) + 2 * certificate.gap
        assert replace(claim, gap=enough, witness={**claim.witness, "dual": dual}).verify(X, y)


def test_the_objective_is_that_of_higher_precision():
    X, y = table(n=20)
    model = HuberRegressor().fit(X, y)
    with mpmath.workdps(50):
        sigma, epsilon, total = mpmath.mpf(model.scale_), mpmath.mpf(1.35), mpmath.mpf(0)
        for x, target in zip(X, y, strict=True):
            r = abs(mpmath.fdot(x, model.coef_) + mpmath.mpf(model.intercept_) - target)
            t = r / sigma
            total += sigma + sigma * (t**2 if t <= epsilon else 2 * epsilon * t - epsilon**2)
        total += mpmath.mpf(0.0001) * mpmath.fsum(mpmath.mpf(v) ** 2 for v in model.coef_)
        off = abs(total - model.certificate_.objective)
        assert off <= model.certificate_.objective_rounding


def test_malformed_certificates_are_refused():
    X, y = table()
    certificate = HuberRegressor().fit(X, y).certificate_
    assert_refused(certificate, X, y, ("gap: infinite",))
    for loss in (Logistic(), Huber(2.0), {"name": "huber"}, {"name": "huber", "delta": -1.35}):
        assert not replace(certificate, loss=loss).verify(X, y)
    for penalty in (L1(2e-4), L2(1e-3), L2(np.array([2e-4])), {"name": "l2", "alpha": np.nan}):
        assert not replace(certificate, penalty=penalty).verify(X, y)


def test_faults_of_the_prover_are_seen(monkeypatch):
    X, y = table()
    original = prover._balanced
    with monkeypatch.context() as patch:  # a skipped column
        patch.setattr(
            prover,
            "pull_rows",
            lambda *a: original_sums(*a) * np.array([[1.0], [1.0], [0.0]]),
        )
        wrong = HuberRegressor(alpha=100.0).fit(X, y)
        assert not wrong.verify(X, y)
    monkeypatch.setattr(prover, "_balanced", lambda *a: 0.999 * original(*a))
    monkeypatch.setattr(prover, "_cost", lambda *a: 0.0)
    assert not HuberRegressor(alpha=1.0).fit(X, y).verify(X, y)


original_sums = prover.pull_rows
