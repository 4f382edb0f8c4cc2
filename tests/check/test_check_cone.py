"""Coefficients that are not negative, with more columns than rows, or with copies of columns."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import minimize, nnls

from trueline import LinearRegression, LinearRegressor, Ridge
from trueline.check import verify
from trueline.losses import Huber, SquaredEpsilonInsensitive
from trueline.penalties import L2, NonNegative, NoPenalty

FORMS = {"dense": np.asarray, "csr": sp.csr_array}


def _tables(rng):
    spectra = rng.uniform(0.1, 1.0, size=(20, 50))
    return {
        "wide and positive": spectra,
        "wide, of either sign": rng.normal(size=(12, 14)) + 1.0,
        "copies": np.hstack([spectra[:, :5], spectra[:, :5], np.ones((20, 1))]),
        "far from zero": spectra + 1e4,
        "scales": spectra * np.logspace(-4, 4, 50),
    }


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("intercept", [False, True], ids=["no intercept", "intercept"])
@pytest.mark.parametrize("table", _tables(np.random.default_rng(0)))
def test_the_answer_is_that_of_lawson_and_hanson_and_proven(table, intercept, form):
    rng = np.random.default_rng(1)
    X = _tables(np.random.default_rng(0))[table]
    y = X @ np.maximum(rng.normal(size=X.shape[1]), 0.0) + 0.3 * rng.normal(size=len(X))
    weight = rng.uniform(0.5, 2.0, size=len(X))
    model = LinearRegression(positive=True, fit_intercept=intercept)
    model.fit(FORMS[form](X), y, sample_weight=weight)
    certificate = model.certificate_
    root = np.sqrt(weight)
    A, target = X, y
    if intercept:
        A, target = X - np.average(X, 0, weight), y - np.average(y, weights=weight)
    best = 0.5 * nnls(root[:, None] * A, root * target)[1] ** 2
    around = 0.5 * float(root**2 @ (y - np.average(y, weights=weight)) ** 2)
    assert certificate.objective <= best + 1e-9 * around
    assert certificate.gap <= 1e-6 * around
    assert model.verify(FORMS[form](X), y, weight)


def test_a_tiny_penalty_changes_nothing():
    rng = np.random.default_rng(2)
    X, y = rng.uniform(0.1, 1.0, size=(10, 20)), rng.normal(size=10) + 2.0
    assert Ridge(alpha=1e-100, positive=True).fit(X, y).verify(X, y)


def test_a_mixture_that_vanishes_leaves_the_coefficients_without_bound():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(8, 3)) @ rng.normal(size=(3, 9))
    X[:, 1] = -X[:, 0]
    y = rng.normal(size=8)
    model = LinearRegression(positive=True, fit_intercept=False)
    with pytest.warns(match="stopped short of the optimum"):
        model.fit(X, y)
    assert model.certificate_.gap >= 0.5 * model.certificate_.objective


@pytest.mark.parametrize(
    "cone", [np.zeros(50), np.ones(50), np.full(50, np.nan), -np.ones(50), np.ones(49)], ids=str
)
def test_another_cone_proves_no_smaller_gap(cone):
    rng = np.random.default_rng(4)
    X, y = rng.uniform(0.1, 1.0, size=(20, 50)), rng.normal(size=20)
    model = LinearRegression(positive=True).fit(X, y)
    certificate = model.certificate_
    plain = {name: getattr(certificate, name) for name in vars(certificate)}
    coef = certificate.coef + 1e-3
    residual = X @ coef + certificate.intercept - y[:, None]
    plain |= {"coef": coef, "objective": 0.5 * float((residual**2).sum())}
    plain |= {"objective_rounding": 1e-9, "witness": {"cone": cone}}
    true = plain["objective"] - certificate.objective
    assert not verify({**plain, "gap": 0.5 * true}, X, y)


def test_columns_that_seem_constant_are_not_left_out():
    """Sparse columns around 1e8 vary by less than the rounding of their squares shows."""
    X = sp.csr_array(np.array([[0.0, 1.0], [1.0, 0.0], [2.0, 3.0]]) + 1e8)
    y = np.array([0.1, 0.5, 1.3])
    model = Ridge(alpha=0.0, positive=True).fit(X, y)
    best = nnls(X.toarray() - X.toarray().mean(axis=0), y - y.mean())[1] ** 2 / 2
    certificate = model.certificate_
    assert certificate.objective <= best + 1e-7
    assert certificate.gap >= certificate.objective - best - 1e-7
    assert model.verify(X, y)


LOSSES = {
    "huber": Huber(0.3),
    "squared epsilon insensitive": SquaredEpsilonInsensitive(0.05),
}


@pytest.mark.grid(2)
@pytest.mark.parametrize("intercept", [False, True], ids=["no intercept", "intercept"])
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("table", ["wide and positive", "copies"])
def test_losses_of_residuals_are_proven_without_a_penalty(table, loss, intercept):
    """Many coefficients have the same scores; those of least norm may be negative."""
    rng = np.random.default_rng(5)
    X = _tables(np.random.default_rng(0))[table]
    y = X @ np.maximum(rng.normal(size=X.shape[1]), 0.0) + 2.0 * rng.normal(size=len(X))
    model = LinearRegressor(
        loss=LOSSES[loss],
        penalty=NonNegative(NoPenalty()),
        fit_intercept=intercept,
        tol=1e-8,
        max_iter=100_000,
    ).fit(X, y)
    assert (model.coef_ >= 0).all()
    assert model.verify(X, y)
    certificate = model.certificate_
    A = np.column_stack([X, np.full(len(X), float(intercept))])

    def objective(v):
        z = A @ v
        return LOSSES[loss].value(y, z).sum(), A.T @ LOSSES[loss].gradient(y, z)

    bounds = [(0.0, None)] * X.shape[1] + [(None, None)]
    start = np.append(model.coef_, model.intercept_)
    best = minimize(objective, start, jac=True, method="L-BFGS-B", bounds=bounds,
                    options={"maxiter": 10_000, "ftol": 1e-15, "gtol": 1e-12})  # fmt: skip
    assert certificate.objective - best.fun <= certificate.gap * (1 + 1e-9)
    assert certificate.gap <= 1e-5 * objective(np.zeros(len(start)))[0]


def test_rounded_coefficients_are_proven_by_those_they_were_rounded_from():
    """Weights of many orders make a bound at the rounded coefficients worthless."""
    rng = np.random.default_rng(6)
    X = rng.integers(-4, 5, size=(16, 14)).astype(np.float32)
    y = (1e3 * rng.normal(size=16)).astype(np.float32)
    weight = 10.0 ** rng.uniform(-5, 5, size=16)
    model = LinearRegression(positive=True).fit(X, y, sample_weight=weight)
    certificate = model.certificate_
    A = X - np.average(X.astype(float), axis=0, weights=weight)
    target = y - np.average(y.astype(float), weights=weight)
    root = np.sqrt(weight)
    best = 0.5 * nnls(root[:, None] * A, root * target)[1] ** 2
    true = certificate.objective - best
    assert 0.99 * true <= certificate.gap <= 1.01 * true + 1e-7 * best
    assert model.verify(X, y, weight)


def test_huge_columns_whose_coefficients_stay_at_zero_cost_nothing():
    """Rounding of their slopes cannot move coefficients away from a bound."""
    rng = np.random.default_rng(7)
    X = rng.normal(size=(10, 3)) * np.array([1e13, 1e11, 1e2])
    y = -X @ (1.0 / np.abs(X).max(axis=0)) + 0.1 * rng.normal(size=10)
    model = LinearRegressor(loss=Huber(0.4), penalty=NonNegative(L2(0.5))).fit(X, y)
    assert not model.coef_.any()
    assert model.verify(X, y)


@pytest.mark.parametrize("intercept", [False, True], ids=["no intercept", "intercept"])
def test_near_copies_far_from_zero_leave_a_gap_of_rounding(intercept):
    """Columns that differ from others by 1e-9 of themselves, all far from zero."""
    rng = np.random.default_rng(8)
    X = rng.normal(size=(200, 3))
    X = np.hstack([X, X * (1 + 1e-9)]) + 3e4
    y = 100 * (X[:, 0] - X[:, 0].mean() + rng.normal(size=200))
    model = LinearRegression(positive=True, fit_intercept=intercept).fit(X, y)
    certificate, A = model.certificate_, X - X.mean(axis=0) * intercept
    best = 0.5 * nnls(A, y - y.mean() * intercept)[1] ** 2
    assert abs(certificate.objective - best) <= 1e-9 * best
    assert certificate.gap <= 1e-7 * best
    assert model.verify(X, y)
