"""Huber regression with its scale: scikit-learn's answers, only closer, and proven."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.optimize
import scipy.sparse as sp
from hypothesis import example, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn import linear_model
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.estimator_checks import parametrize_with_checks

from trueline import HuberRegressor, load, save
from trueline.design import as_design
from trueline.losses import Huber
from trueline.penalties import L2
from trueline.problem import ConcomitantProblem, Problem
from trueline.solvers.newton.dense.scale import best_scale
from trueline.solvers.piecewise_linear.interior_point.solver import InteriorPoint


@pytest.mark.slow  # the defaults are in the fast run
@parametrize_with_checks([HuberRegressor(fit_intercept=False, alpha=1.0)])
def test_sklearn_contract(estimator, check):
    check(estimator)


def table(n=200, d=5, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * rng.uniform(0.5, 3, d) + rng.normal(size=d)
    return X, X @ rng.normal(size=d) + rng.standard_t(2, size=n) + 3


def objective(model, X, y, weights=None):
    """The objective as the docstring writes it."""
    s = np.ones(len(y)) if weights is None else weights
    r, sigma, epsilon = X @ model.coef_ + model.intercept_ - y, model.scale_, model.epsilon
    if sigma == 0:
        values = 2 * epsilon * np.abs(r)
    else:
        t = np.abs(r / sigma)
        values = sigma * np.where(t <= epsilon, t**2, 2 * epsilon * t - epsilon**2)
    return float(s @ (sigma + values) + model.alpha * model.coef_ @ model.coef_)


def fitted(X, y, weights=None, **parameters):
    model = HuberRegressor(**parameters).fit(X, y, sample_weight=weights)
    check = model.verify(X, y, sample_weight=weights)
    assert check, str(check)
    return model


# --- the same answers -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "parameters",
    [
        {},
        {"alpha": 0.0},
        {"alpha": 50.0},
        {"epsilon": 1.1},
        {"epsilon": 3.0},
        {"fit_intercept": False},
    ],
    ids=str,
)
def test_agrees_with_sklearn(parameters):
    X, y = table()
    ours = fitted(X, y, **parameters)
    theirs = linear_model.HuberRegressor(**parameters, max_iter=10_000, tol=1e-10).fit(X, y)
    assert_allclose(ours.coef_, theirs.coef_, atol=2e-4)
    assert_allclose(ours.intercept_, theirs.intercept_, atol=2e-4)
    assert_allclose(ours.scale_, theirs.scale_, rtol=2e-4)
    assert objective(ours, X, y) <= objective(theirs, X, y) * (1 + 1e-13)
    assert_allclose(ours.certificate_.objective, objective(ours, X, y), rtol=1e-12)
    assert ours.certificate_.relative_gap <= 1e-9


def test_no_minimiser_finds_less():
    X, y = table(n=80, d=3)
    model = fitted(X, y, alpha=0.1)
    parts = Problem(as_design(X), y[:, None], Huber(1.35), L2(0.2))
    problem = ConcomitantProblem(parts)
    start = np.r_[model.coef_, model.intercept_, model.scale_]
    for seed in range(3):
        moved = start + 0.05 * np.random.default_rng(seed).normal(size=5)
        found = scipy.optimize.minimize(
            lambda p: problem.objective(p[:3], p[3], abs(p[4])), moved, method="Nelder-Mead"
        )
        assert model.certificate_.objective <= found.fun * (1 + 1e-12)


def test_weight_two_is_a_row_twice_and_weight_zero_none():
    X, y = table()
    weights = np.random.default_rng(0).integers(0, 3, len(y)).astype(float)
    repeat = weights.astype(int)
    weighted = fitted(X, y, weights)
    repeated = fitted(np.repeat(X, repeat, axis=0), np.repeat(y, repeat))
    assert_allclose(weighted.coef_, repeated.coef_, rtol=1e-8)
    assert_allclose(weighted.scale_, repeated.scale_, rtol=1e-10)
    assert len(weighted.outliers_) == len(y)


@pytest.mark.parametrize("form", [sp.csr_array, sp.csc_array, sp.coo_matrix])
def test_sparse_is_dense(form):
    X, y = table()
    X = np.where(np.abs(X) > 1, X, 0.0)
    dense, sparse = fitted(X, y), fitted(form(X), y)
    assert_allclose(sparse.coef_, dense.coef_, rtol=1e-7)
    assert_array_equal(sparse.outliers_, dense.outliers_)


def test_single_precision():
    X, y = table()
    model = fitted(X.astype(np.float32), y.astype(np.float32))
    assert model.coef_.dtype == np.float32
    assert_allclose(model.coef_, fitted(X, y).coef_, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("factor", [1e-8, 1e8])
def test_the_scale_follows_the_target(factor):
    X, y = table()
    model, scaled = fitted(X, y, alpha=0.0), fitted(X, factor * y, alpha=0.0)
    assert_allclose(scaled.coef_, factor * model.coef_, rtol=1e-7)
    assert_allclose(scaled.scale_, factor * model.scale_, rtol=1e-9)
    assert_array_equal(scaled.outliers_, model.outliers_)


def test_warm_start_is_where_the_last_fit_ended():
    X, y = table()
    model = HuberRegressor(warm_start=True).fit(X, y)
    coef = model.coef_.copy()
    model.fit(X, y)
    assert model.n_iter_ == 0
    assert_allclose(model.coef_, coef, rtol=1e-10)


def test_too_few_iterations_say_how_far_the_answer_is():
    X, y = table()
    with pytest.warns(ConvergenceWarning, match="proven within"):
        model = HuberRegressor(max_iter=1).fit(X, y)
    assert model.n_iter_ == 1
    assert model.verify(X, y)


# --- hostile data ---------------------------------------------------------------------------------


def test_milliseconds_since_1970():
    """scikit-learn's slope here is off by eight powers of ten."""
    minutes = np.arange(500.0)
    milliseconds = (1.7e12 + 60_000 * minutes)[:, None]
    y = 120 * minutes + 10 * np.random.default_rng(0).normal(size=500)
    model = fitted(milliseconds, y)
    assert_allclose(model.coef_ * 60_000, fitted(minutes[:, None], y, alpha=0).coef_, rtol=1e-9)


def test_a_target_far_from_zero():
    X, y = table()
    model, far = fitted(X, y), fitted(X, y + 1e6)
    assert_allclose(far.coef_, model.coef_, atol=1e-7)
    assert_allclose(far.intercept_ - 1e6, model.intercept_, atol=1e-6)


def test_absolute_errors_are_solved_once(monkeypatch):
    random, solved = np.random.default_rng(0), []
    X = random.standard_normal((2000, 20))
    score = X[:, 0] + 0.5 * X[:, 1] + 0.7 * random.standard_normal(2000)
    y = np.round(np.exp(0.3 * score))  # more than half are 1: the scale falls to zero
    solve = InteriorPoint.solve

    def count(self, *arguments):
        solved.append(self)
        return solve(self, *arguments)

    monkeypatch.setattr(InteriorPoint, "solve", count)
    model = fitted(X, y)
    assert model.scale_ == 0
    assert model.certificate_.relative_gap <= 1e-8
    assert len(solved) == 1


@pytest.mark.parametrize("alpha", [0.0, 1e-4])
def test_rows_that_fit_exactly_bring_the_scale_to_zero(alpha):
    X, y = table()
    w = np.arange(1.0, 6.0)
    y = X @ w + 1
    y[:50] += 10 * np.random.default_rng(0).normal(size=50)
    model = fitted(X, y, alpha=alpha)
    assert model.scale_ == 0
    assert_allclose(model.coef_, w, rtol=1e-10)
    assert_array_equal(np.flatnonzero(model.outliers_), np.arange(50))
    assert model.certificate_.relative_gap <= 1e-8


@pytest.mark.parametrize("alpha", [0.0, 1e-4, 1.0])
def test_data_that_leave_no_room(alpha):
    X, y = table(n=40, d=3)
    half = np.where(np.arange(40) < 30, 2.0, y)
    cases = {
        "perfect fit": (X, X @ np.ones(3)),
        "constant target": (X, np.full(40, 7.0)),
        "zero target": (X, np.zeros(40)),
        "most targets the same": (X, half),
        "copied column": (np.c_[X, X[:, 0]], y),
        "constant column": (np.c_[X, np.full(40, 5.0)], y),
        "more columns than rows": (np.c_[X, X**2, X**3][:4], y[:4]),
        "two rows": (X[:2], y[:2]),
        "one row": (X[:1], y[:1]),
        "rows many times": (np.repeat(X[:6], 7, axis=0), np.repeat(y[:6], 7)),
        "only zeros": (np.zeros((10, 2)), y[:10]),
        "far out in X": (np.r_[X, 1e6 * X[:2]], np.r_[y, y[:2]]),
    }
    for case, (A, b) in cases.items():
        model = fitted(A, b, alpha=alpha)
        size = np.abs(b).sum()
        gap = model.certificate_.gap
        assert gap <= 1e-7 * model.certificate_.objective + 1e-11 * size + 1e-280, case


def test_no_coefficient_at_all():
    y = np.array([1.0, -1.0, 2.0])
    model = fitted(np.zeros((3, 1)), y, fit_intercept=False)
    assert_allclose(model.scale_, best_scale(y, np.ones(3), 1.35))


@settings(max_examples=30, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    n=st.integers(1, 30),
    d=st.integers(1, 4),
    epsilon=st.sampled_from([1.0, 1.35, 5.0]),
    alpha=st.sampled_from([0.0, 1e-4, 1.0]),
    fit_intercept=st.booleans(),
)
# Least squares fits two of the four rows: their best scale is zero, that of the best fit is not.
@example(seed=128, n=4, d=2, epsilon=1.35, alpha=0.0, fit_intercept=False)
def test_every_answer_is_proven(seed, n, d, epsilon, alpha, fit_intercept):
    """Tables of small integers: ties, copies, constant columns and exact fits are common."""
    rng = np.random.default_rng(seed)
    X = rng.integers(-2, 3, (n, d)).astype(float)
    y = rng.integers(-3, 4, n).astype(float)
    model = fitted(X, y, epsilon=epsilon, alpha=alpha, fit_intercept=fit_intercept)
    certificate = model.certificate_
    assert certificate.gap <= 1e-6 * certificate.objective + 1e-10 * np.abs(y).sum() + 1e-280


@given(
    seed=st.integers(0, 1000),
    n=st.integers(1, 50),
    epsilon=st.floats(1.0, 5.0),
    near=st.sampled_from([0.0, 1e-3, 1.0, 1e3]),
)
def test_the_best_scale_is_best(seed, n, epsilon, near):
    rng = np.random.default_rng(seed)
    r, s = rng.standard_cauchy(n), rng.uniform(0.1, 2, n)
    parts = Problem(as_design(np.zeros((n, 1))), -r[:, None], Huber(epsilon), L2(1.0), False, s)
    problem = ConcomitantProblem(parts)
    scale = best_scale(r, s, epsilon, near)
    values = [problem.objective(np.zeros(1), 0.0, scale * t) for t in (0.9, 1.0, 1.1)]
    assert values[1] <= min(values) * (1 + 1e-12)
    assert values[1] <= problem.objective(np.zeros(1), 0.0, 1e-6) * (1 + 1e-12)


@pytest.mark.parametrize("bad", [np.nan, np.inf, 1e200])
def test_numbers_out_of_range_are_an_error(bad):
    X, y = table()
    X[3, 1] = bad
    with pytest.raises(ValueError, match=r"NaN|infinity|double precision"):
        HuberRegressor().fit(X, y)


@pytest.mark.parametrize("parameters", [{"epsilon": 0.9}, {"alpha": -1.0}, {"max_iter": -1}])
def test_parameters_out_of_range_are_an_error(parameters):
    with pytest.raises(ValueError, match=next(iter(parameters))):
        HuberRegressor(**parameters).fit(*table())


# --- the proof ------------------------------------------------------------------------------------


def test_tampering_is_rejected():
    X, y = table()
    model = fitted(X, y, alpha=1.0)
    certificate, witness = model.certificate_, model.certificate_.witness
    assert certificate.kind == "concomitant"
    wrong = {
        "gap": replace(certificate, gap=0.0),
        "objective": replace(certificate, objective=certificate.objective * (1 - 1e-9)),
        "dual": replace(certificate, witness={**witness, "dual": 0.5 * witness["dual"]}),
        "one-sided dual": replace(certificate, witness={**witness, "dual": witness["dual"] + 0.1}),
        "not finite": replace(certificate, witness={**witness, "dual": witness["dual"] + np.nan}),
        "radius": replace(certificate, witness={**witness, "radius": np.zeros(1)}),
        "short": replace(certificate, witness={**witness, "dual": witness["dual"][1:]}),
        "strength": replace(certificate, penalty=L2(3.0)),
        "epsilon": replace(certificate, loss=Huber(2.0)),
    }
    for what, claim in wrong.items():
        assert not claim.verify(X, y), what
    assert not certificate.verify(X, y + 1e-3)
    for attribute, change in (("coef_", 1e-4), ("intercept_", 1e-4), ("scale_", 1e-4)):
        model = fitted(X, y, alpha=1.0)
        setattr(model, attribute, getattr(model, attribute) + change)
        assert not model.verify(X, y), attribute
    model.scale_ = -1.0
    assert not model.verify(X, y)


def test_explain_save_and_load(tmp_path):
    X, y = table()
    assert "sigma" in str(HuberRegressor().explain(X, y))
    model = fitted(X, y)
    assert "newton" in str(model.explain())
    save(model, tmp_path / "huber.tl")
    again = load(tmp_path / "huber.tl")
    assert_array_equal(again.predict(X), model.predict(X))
    assert again.scale_ == model.scale_
    assert again.verify(X, y)


def test_a_sample_of_long_data_is_only_the_start():
    X, y = table(n=30_000, d=4)
    whole = fitted(X, y)
    halves = linear_model.HuberRegressor(max_iter=1000, tol=1e-8).fit(X, y)
    assert_allclose(whole.coef_, halves.coef_, atol=1e-4)
    assert whole.certificate_.relative_gap <= 1e-9
