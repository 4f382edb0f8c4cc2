"""Least squares on columns that depend on each other: proven without a condition if exactly so."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning

import trueline as tl
from trueline import LinearRegression, Ridge
from trueline.check import verify
from trueline.losses import SquaredEpsilonInsensitive
from trueline.penalties import NonNegative, NoPenalty

FORMS = {"dense": np.asarray, "csr": sp.csr_array, "csc": sp.csc_array}


def _tables(rng):
    """Tables whose columns depend on each other exactly, as users have them."""
    group = rng.integers(0, 4, size=40)
    dummies = np.eye(4)[group]
    numbers = rng.normal(size=(40, 3))
    levels = rng.integers(0, 3, size=(20, 8)).astype(float)
    levels[:, 3] = 1.0
    return {
        "a dummy for every level": np.hstack([dummies, numbers]),
        "a constant column": np.hstack([numbers, np.ones((40, 1))]),
        "a column of zeros": np.hstack([numbers, np.zeros((40, 1))]),
        "a copy": np.hstack([numbers, numbers[:, :1], dummies]),
        "a sum of others": np.hstack([dummies, (dummies[:, :1] + 2 * dummies[:, 1:2])]),
        "levels": levels,
        "fewer rows than columns": rng.normal(size=(5, 9)),
    }


@pytest.mark.grid(2)
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("table", _tables(np.random.default_rng(0)))
@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weights"])
def test_exact_dependence_needs_no_condition(table, form, weighted):
    rng = np.random.default_rng(1)
    X = _tables(np.random.default_rng(0))[table]
    y = rng.normal(size=(len(X), 2)) + 3.0
    weight = rng.uniform(0.5, 2.0, size=len(X)) if weighted else None
    model = LinearRegression().fit(FORMS[form](X), y, sample_weight=weight)
    assert model.verify(FORMS[form](X), y, weight)


@pytest.mark.parametrize("form", FORMS)
def test_each_target_may_have_a_tiny_penalty_of_its_own(form):
    rng = np.random.default_rng(2)
    X = FORMS[form](np.hstack([rng.integers(0, 9, size=(12, 4)), np.ones((12, 1))]).astype(float))
    y = rng.normal(size=(12, 3))
    model = Ridge(alpha=[1e-300, 1e3, 1e-20]).fit(X, y)
    assert model.verify(X, y)


def test_a_gap_below_the_true_one_is_refused_on_dependent_columns():
    rng = np.random.default_rng(3)
    X = sp.csr_array(np.hstack([np.eye(4)[rng.integers(0, 4, size=40)], np.ones((40, 1))]))
    y = rng.normal(size=40)
    certificate = LinearRegression().fit(X, y).certificate_
    coef = certificate.coef.copy()
    coef[0] += 1e-3  # the true gap is then about 10 * 1e-6 / 2
    moved = {name: getattr(certificate, name) for name in vars(certificate)}
    residual = X @ coef + certificate.intercept - y[:, None]
    moved |= {"coef": coef, "objective": 0.5 * float((residual**2).sum())}
    moved |= {"objective_rounding": 1e-9, "gap": 1e-7}
    from trueline.check import verify

    assert not verify(moved, X, y)
    assert verify({**moved, "gap": 1e-4}, X, y)


@pytest.mark.parametrize("seed", range(12))
def test_copies_that_differ_by_a_rounded_constant_are_followed_up_to_a_radius(seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(4, 3))
    X[:, 2] = X[:, 0]
    X = X + np.array([17180.3, -5755.9, -42161.1])  # rounding leaves 1e-12 between the two
    y = X[:, :2] @ rng.normal(size=2) + 1e-3 * rng.normal(size=4)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        model = LinearRegression().fit(X, y)
    assert said or model.verify(X, y).holds


UNPENALISED = {
    "quantile": lambda: tl.QuantileRegressor(alpha=0.0, quantile=0.7),
    "logistic": lambda: tl.LogisticRegression(C=np.inf),
    "poisson": lambda: tl.PoissonRegressor(alpha=0.0),
}


@pytest.mark.grid(2)
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("table", ["a dummy for every level", "a constant column", "a copy"])
@pytest.mark.parametrize("name", UNPENALISED)
def test_other_losses_without_a_penalty(name, table, form):
    rng = np.random.default_rng(4)
    X = _tables(np.random.default_rng(0))[table]
    y = {
        "quantile": rng.normal(size=len(X)) + 3.0,
        "logistic": rng.integers(0, 2, size=len(X)),
        "poisson": rng.poisson(2.0, size=len(X)),
    }[name]
    model = UNPENALISED[name]().fit(FORMS[form](X), y)
    assert model.verify(FORMS[form](X), y)


@pytest.mark.parametrize("apart", [1e-2, 1e-5, 1e-8])
@pytest.mark.parametrize("estimator", [tl.PoissonRegressor, tl.GammaRegressor])
def test_near_copies_without_a_penalty_claim_no_more_than_can_be_checked(estimator, apart):
    rng = np.random.default_rng(5)
    X = rng.normal(size=(9, 3))
    X = np.column_stack([X, X[:, 0] + apart * rng.normal(size=9)])
    y = rng.poisson(3.0, size=9) + 1.0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = estimator(alpha=0.0).fit(X, y)
    assert all(one.holds for one in model.verify(X, y).checks)


def test_a_perfect_fit_of_one_row_verifies():
    X, y = np.array([[100.3, 1.0], [2.0, 3.0]]), np.array([0.7, 2.0])
    model = tl.GammaRegressor(alpha=1e-3, max_iter=10_000, tol=1e-10)
    weight = np.array([1.0, 0.0])
    assert model.fit(X, y, sample_weight=weight).verify(X, y, weight)


def test_a_power_of_the_variance_beyond_two_far_from_the_origin():
    rng = np.random.default_rng(2)
    X, y = -18300.0 + rng.normal(size=(7, 1)), 5e-5 * np.exp(0.1 * rng.normal(size=7))
    model = tl.TweedieRegressor(power=3, alpha=0.1, fit_intercept=False).fit(X, y)
    assert all(one.holds for one in model.verify(X, y).checks)


def test_targets_of_which_one_leaves_a_coefficient_at_its_bound():
    """What holds a coefficient in one target says nothing about the same column in another."""
    rng = np.random.default_rng(0)
    X = np.abs(rng.normal(size=(12, 2)))
    y = np.column_stack([X @ [1.0, 2.0], -X @ [1.0, 2.0]]) + 0.1 * rng.normal(size=(12, 2))
    loss, penalty = SquaredEpsilonInsensitive(0.05), NonNegative(NoPenalty())
    model = tl.LinearRegressor(loss=loss, penalty=penalty).fit(X, y)
    assert model.coef_[0].all()
    assert not model.coef_[1].any()
    assert model.verify(X, y)
    forged = replace(model.certificate_, coef=0.9 * model.certificate_.coef)
    assert not forged.verify(X, y)


def test_dependence_up_to_rounding_holds_under_a_condition_that_lets_coefficients_move():
    """Nearly perfect fits: what rounding hides grows with the residuals, not with their squares."""
    X = np.array([[1, 2, -3, 2], [3, 1, 3, 1], [-1, -1, -1, 1], [3, 3, -1, 2]]) * 460.9622241360876
    y = np.array([-1.7326312897433636e-4, 1.2274113890603129e-4, 3.690698894328907e-5, -1.3046e-4])
    rng = np.random.default_rng(0)
    for _ in range(60):
        moved = y * (1 + 1e-3 * rng.normal(size=4))
        model = LinearRegression(fit_intercept=False).fit(X, moved)
        assert all(one.holds for one in model.verify(X, moved).checks)


@pytest.mark.parametrize("degree", [6, 8, 10, 12])
@pytest.mark.parametrize("weighted", [False, True])
def test_a_column_of_ones_costs_an_ill_conditioned_proof_nothing(degree, weighted):
    """What scikit-learn's PolynomialFeatures puts beside powers is left out without error."""
    rng = np.random.default_rng(1)
    x = np.sort(rng.uniform(0, 1, 15))
    y = np.sin(2 * np.pi * x) + 0.2 * rng.normal(size=15)
    X = np.vander(x, degree + 1, increasing=True)
    weights = rng.uniform(0.5, 2.0, 15) if weighted else None
    model = LinearRegression().fit(X, y, sample_weight=weights)
    assert model.certificate_.relative_gap < 1e-10
    outcome = model.verify(X, y, weights)
    assert outcome
    assert not outcome.conditions
    assert model.coef_[0] == 0


def test_rounding_of_means_far_from_zero_is_no_direction():
    """Two rows about their mean depend on each other; each target has a strength of its own."""
    X = np.array([[1.24999996e7, 1.99999994e8], [1.25000004e7, 1.99999992e8]])
    Y, weight = np.array([[-2.1, -1.0, 1.8], [4.1, 3.0, 0.2]]), np.array([0.86, 2.86])
    model = Ridge(alpha=np.array([1e-14, 1e3, 1e-300])).fit(X, Y, sample_weight=weight)
    assert model.verify(X, Y, weight)


def test_near_dependences_beside_an_exact_one():
    """Rounded coefficients leave a gradient along the near ones; the exact one gains nothing."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(200, 3))
    near = x[:, :2].sum(axis=1) + 1e-8 * rng.normal(size=200)
    X = np.column_stack([x, near, np.eye(4)[rng.integers(4, size=200)]])
    y = x[:, 0] + rng.normal(size=200)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = LinearRegression().fit(X, y)
    assert model.rank_ == X.shape[1] - 1
    assert model.certificate_.gap <= 1e-6 * model.certificate_.objective
    assert model.verify(X, y)


@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("seed", range(5))
def test_dependent_columns_are_held_only_where_those_are_that_they_are_made_of(seed, fit_intercept):
    """In one target all coefficients are inside their bounds, in the other some are at them."""
    rng = np.random.default_rng(seed)
    base = rng.integers(0, 5, (40, 2)).astype(float)
    X = np.column_stack([base, base @ rng.integers(1, 3, 2), base[:, 0]])
    Y = X @ np.column_stack([rng.integers(1, 3, 4), [0, 0, rng.uniform(0.1, 0.9), 0]])
    fit = LinearRegression(positive=True, fit_intercept=fit_intercept).fit(X, Y)
    honest = fit.certificate_
    inside = np.maximum(np.linalg.lstsq(X, Y[:, 0], rcond=None)[0], 0.0)
    W = np.column_stack([inside, [0.0, 0.0, 1.0, 0.0]])
    b = (Y - X @ W).mean(axis=0) * fit_intercept
    objective = 0.5 * float(((Y - X @ W - b) ** 2).sum())
    distance = objective - honest.objective
    for kind in ("bounded", "duality", "fenchel"):
        for gap in (1e-9, 0.5 * distance):
            claim = replace(
                honest, kind=kind, coef=W, intercept=b, objective=objective, gap=gap,
                objective_rounding=1e-9,
            )  # fmt: skip
            assert gap >= 0.99 * distance or not verify(claim, X, Y)
