"""Quantile regression and least absolute deviations: exact and proven, for all kinds of data."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import linprog
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import QuantileRegressor as TheirQuantileRegressor

from trueline import LeastAbsoluteDeviations, QuantileRegressor, load, save
from trueline.errors import PairingError

QUANTILES = (0.03, 0.25, 0.5, 0.9)


def noisy(n=80, d=4, seed=0):
    """Heavy tails, a spread that depends on the first column, columns of different sizes."""
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, d)) * 10.0 ** random.uniform(-2, 2, size=d) + random.normal(size=d)
    noise = random.standard_t(2, size=n) * (1 + np.abs(X[:, 0] / X[:, 0].std()))
    return X, X @ random.normal(size=d) + noise


def pinball(y, z, q, weights=None):
    """The sum that scikit-learn divides by the weight of the rows."""
    residual = np.asarray(y) - z
    losses = np.maximum(q * residual, (q - 1) * residual)
    return float(losses.sum() if weights is None else weights @ losses)


def objective(model, X, y, weights=None):
    """What QuantileRegressor minimises for one quantile, times the weight of the rows."""
    total = len(y) if weights is None else weights.sum()
    w = model.coef_
    size = model.l1_ratio * np.abs(w).sum() + 0.5 * (1 - model.l1_ratio) * w @ w
    return pinball(y, model.predict(X), model.quantile, weights) + total * model.alpha * size


def is_proven(model, X, y):
    """Whether the gap is what rounding leaves: it is relative to the terms of the scores."""
    terms = np.abs(X) @ np.abs(model.coef_) + np.abs(model.intercept_) + np.abs(y)
    return bool(model.certificate_.gap <= 1e-9 * terms.sum())


# --- the same answers ---------------------------------------------------------------------------


@pytest.mark.grid(2)
@pytest.mark.parametrize("q", QUANTILES)
@pytest.mark.parametrize("alpha", [0.0, 1e-3, 0.1, 1.0])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_coefficients_are_those_of_scikit_learn(q, alpha, fit_intercept):
    X, y = noisy()
    settings = {"quantile": q, "alpha": alpha, "fit_intercept": fit_intercept}
    ours = QuantileRegressor(**settings).fit(X, y)
    theirs = TheirQuantileRegressor(**settings).fit(X, y)
    assert_allclose(ours.coef_, theirs.coef_, rtol=1e-7, atol=1e-9)
    assert ours.intercept_ == pytest.approx(theirs.intercept_, rel=1e-7, abs=1e-8)
    assert is_proven(ours, X, y)


def test_the_defaults_are_those_of_scikit_learn():
    theirs = TheirQuantileRegressor().get_params()
    ours = QuantileRegressor().get_params()
    assert {name: ours[name] for name in theirs} == {**theirs, "solver": "auto"}


@pytest.mark.parametrize("solver", ["highs", "highs-ds", "highs-ipm"])
def test_an_independent_solver_agrees(solver):
    X, y = noisy(60, 3, seed=5)
    ours = QuantileRegressor(quantile=0.7, alpha=0.01).fit(X, y)
    other = QuantileRegressor(quantile=0.7, alpha=0.01, solver=solver).fit(X, y)
    assert_allclose(ours.coef_, other.coef_, rtol=1e-6, atol=1e-8)
    assert other.verify(X, y)


def full_program(X, y, quantiles, alpha=0.0, fit_intercept=True, weights=None, ordered=False):
    """The least objective, of all quantiles together, as one linear program for HiGHS."""
    (n, d), k = X.shape, len(quantiles)
    s = np.ones(n) if weights is None else weights
    level = np.ones((n, int(fit_intercept)))
    rows = np.hstack([X, -X, level])
    p = rows.shape[1]
    price = np.concatenate([np.full(2 * d, alpha * s.sum()), np.zeros(p - 2 * d)])
    cost = np.concatenate(
        [np.tile(price, k), *(q * s for q in quantiles), *((1 - q) * s for q in quantiles)]
    )
    equal = sp.hstack([sp.kron(sp.eye_array(k), rows), sp.eye_array(k * n), -sp.eye_array(k * n)])
    one = [(0, None)] * (2 * d) + [(None, None)] * (p - 2 * d)
    below = {}
    if ordered:
        apart = np.eye(k)[np.argsort(quantiles)]
        order = sp.kron(apart[:-1] - apart[1:], rows)
        nothing = sp.csr_array((order.shape[0], 2 * k * n))
        below = {"A_ub": sp.hstack([order, nothing]), "b_ub": np.zeros(order.shape[0])}
    found = linprog(
        cost, A_eq=equal, b_eq=np.tile(y, k), bounds=one * k + [(0, None)] * (2 * k * n), **below
    )
    assert found.status == 0
    return found.fun


small_integers = st.integers(-3, 3)


@st.composite
def grids(draw, rows=12, columns=3):
    """Integer data: ties, repeated rows, dependent columns and perfect fits."""
    n, d = draw(st.integers(1, rows)), draw(st.integers(1, columns))
    X = np.array(draw(st.lists(small_integers, min_size=n * d, max_size=n * d)), dtype=float)
    y = np.array(draw(st.lists(small_integers, min_size=n, max_size=n)), dtype=float)
    return X.reshape(n, d), y


@settings(max_examples=100, deadline=None)
@given(
    grids(),
    st.sampled_from([0.1, 0.25, 0.5, 0.8]),
    st.sampled_from([0.0, 0.05, 0.5]),
    st.booleans(),
)
def test_ties_and_perfect_fits_reach_the_least_objective(data, q, alpha, fit_intercept):
    X, y = data
    model = QuantileRegressor(quantile=q, alpha=alpha, fit_intercept=fit_intercept).fit(X, y)
    least = full_program(X, y, [q], alpha, fit_intercept)
    assert objective(model, X, y) == pytest.approx(least, rel=1e-9, abs=1e-9)
    assert model.verify(X, y)


@pytest.mark.parametrize("q", [1e-4, 0.001, 0.999, 1 - 1e-4])
def test_quantiles_near_the_ends(q):
    X, y = noisy(300, 2, seed=1)
    model = QuantileRegressor(quantile=q, alpha=0.0).fit(X, y)
    assert objective(model, X, y) == pytest.approx(full_program(X, y, [q]), rel=1e-9)
    below = np.mean(y <= model.predict(X) + 1e-9)
    assert abs(below - q) <= 4 / 300
    assert model.verify(X, y)


@pytest.mark.parametrize("q", QUANTILES)
def test_the_share_of_rows_below_is_the_quantile(q):
    """With an intercept at most n q rows are strictly below, at least n q below or on the line."""
    X, y = noisy(500, 3, seed=2)
    residual = y - QuantileRegressor(quantile=q, alpha=0.0).fit(X, y).predict(X)
    tiny = 1e-9 * np.abs(y).max()
    assert np.sum(residual < -tiny) <= 500 * q <= np.sum(residual <= tiny)
    assert np.sum(np.abs(residual) <= tiny) == 4


# --- weights, kinds of data ---------------------------------------------------------------------


@pytest.mark.parametrize("alpha", [0.0, 0.02])
def test_a_weight_counts_a_row_several_times(alpha):
    X, y = noisy(50, 3, seed=3)
    weights = np.random.default_rng(0).integers(0, 4, size=50).astype(float)
    weighted = QuantileRegressor(quantile=0.3, alpha=alpha).fit(X, y, sample_weight=weights)
    times = weights.astype(int)
    repeated = QuantileRegressor(quantile=0.3, alpha=alpha).fit(
        np.repeat(X, times, axis=0), np.repeat(y, times)
    )
    assert_allclose(weighted.coef_, repeated.coef_, rtol=1e-9)
    assert weighted.certificate_.objective == pytest.approx(repeated.certificate_.objective)
    assert weighted.verify(X, y, weights)


@pytest.mark.parametrize("kind", [sp.csr_array, sp.csc_array, sp.coo_array])
def test_sparse_data_give_the_same(kind):
    X, y = noisy(60, 4, seed=4)
    X[np.random.default_rng(0).uniform(size=X.shape) < 0.6] = 0.0
    dense = QuantileRegressor(quantile=0.6, alpha=0.0).fit(X, y)
    sparse = QuantileRegressor(quantile=0.6, alpha=0.0).fit(kind(X), y)
    assert_allclose(sparse.coef_, dense.coef_, rtol=1e-9, atol=1e-12)
    assert sparse.verify(kind(X), y)


@pytest.mark.parametrize("quantile", [0.4, [0.2, 0.8]])
def test_single_precision_in_and_out(quantile):
    X, y = noisy(60, 2, seed=5)
    X = X.astype(np.float32)
    model = QuantileRegressor(quantile=quantile, alpha=0.0).fit(X, y)
    assert model.coef_.dtype == np.float32
    exact = QuantileRegressor(quantile=quantile, alpha=0.0).fit(X.astype(np.float64), y)
    assert_allclose(model.coef_, exact.coef_, rtol=1e-5)
    assert model.verify(X, y)


def test_names_of_columns_are_kept():
    X, y = noisy(100, 2)
    frame = pd.DataFrame(X, columns=["income", "age"])
    model = QuantileRegressor(quantile=[0.1, 0.9], alpha=0.0).fit(frame, y)
    assert_array_equal(model.feature_names_in_, ["income", "age"])
    assert_allclose(
        model.predict(frame), QuantileRegressor(quantile=[0.1, 0.9], alpha=0).fit(X, y).predict(X)
    )
    assert model.standard_errors(frame, y).names == ("intercept", "income", "age")


@pytest.mark.parametrize("rows", [30_000])
def test_many_rows_are_treated_a_few_at_a_time(rows):
    X, y = noisy(rows, 5, seed=6)
    model = QuantileRegressor(quantile=0.2, alpha=0.0).fit(X, y)
    assert "of 30000 treated one by one" in str(model.explain())
    assert model.certificate_.relative_gap < 1e-7
    assert model.verify(X, y)


# --- hostile data -------------------------------------------------------------------------------


def _hostile():
    random = np.random.default_rng(7)
    X, y = noisy(40, 3, seed=7)
    moments = 1.7e12 + 1000.0 * np.arange(40.0)[:, None]
    yield (
        "millisecond timestamps",
        moments,
        1e-9 * (moments[:, 0] - 1.7e12) + random.normal(size=40),
    )
    yield "a perfect fit", X, X @ [1.0, 2.0, 3.0] + 1
    yield "a constant target", X, np.full(40, 7.25)
    yield "repeated rows", np.repeat(X, 5, axis=0), np.repeat(y, 5)
    yield "a copied column", np.column_stack([X, X[:, 0]]), y
    yield "a constant column", np.column_stack([X, np.full(40, 3.0)]), y
    yield "columns of zeros only", np.zeros((40, 2)), y
    yield "more columns than rows", random.normal(size=(6, 9)), random.normal(size=6)
    yield "one row", np.array([[2.0, 3.0]]), np.array([5.0])
    yield "two values", random.integers(0, 2, size=(40, 2)).astype(float), y.round()
    yield "wild scales", X * [1e-12, 1.0, 1e12], y
    yield "large targets", X, 1e12 * y


HOSTILE = {name: (X, y) for name, X, y in _hostile()}


@pytest.mark.parametrize("name", list(HOSTILE))
@pytest.mark.parametrize("alpha", [0.0, 0.01])
def test_hostile_data_get_a_proven_answer(name, alpha):
    X, y = HOSTILE[name]
    model = QuantileRegressor(quantile=0.3, alpha=alpha).fit(X, y)
    assert np.isfinite(model.coef_).all()
    assert model.verify(X, y)
    assert is_proven(model, X, y)
    if alpha == 0 and name != "millisecond timestamps":
        unit = np.abs(X).max(axis=0)
        least = full_program(X / np.where(unit > 0, unit, 1.0), y, [0.3])
        assert objective(model, X, y) == pytest.approx(least, rel=1e-8, abs=1e-9 * np.abs(y).sum())


@pytest.mark.parametrize("exponent", [12, 16, 20, 30, 60])
def test_a_column_too_small_for_its_penalty_does_not_disturb_the_others(exponent):
    X, y = noisy(40, 3, seed=7)
    tiny = X * [10.0**-exponent, 1.0, 1.0]
    model = QuantileRegressor(quantile=0.3, alpha=0.01).fit(tiny, y)
    without = QuantileRegressor(quantile=0.3, alpha=0.01).fit(X[:, 1:], y)
    assert model.coef_[0] == 0
    assert_allclose(model.coef_[1:], without.coef_, rtol=1e-9)
    assert is_proven(model, tiny, y)


@pytest.mark.parametrize("bad", [0.0, 1.0, -0.1, 1.5, np.nan, [], [0.5, 1.0], [[0.5]]])
def test_what_is_no_quantile_is_refused(bad):
    X, y = noisy(10, 2)
    with pytest.raises(ValueError, match="quantile"):
        QuantileRegressor(quantile=bad, alpha=0).fit(X, y)


def test_nan_is_refused():
    X, y = noisy(10, 2)
    X[3, 1] = np.nan
    with pytest.raises(ValueError, match="Input X contains NaN"):
        QuantileRegressor(alpha=0).fit(X, y)


# --- the proof ----------------------------------------------------------------------------------


@pytest.mark.parametrize("quantile", [0.3, [0.1, 0.5, 0.9]])
@pytest.mark.parametrize("non_crossing", [False, True])
def test_what_was_changed_is_rejected(quantile, non_crossing):
    X, y = noisy(40, 2, seed=8)
    model = QuantileRegressor(quantile=quantile, alpha=0.0, non_crossing=non_crossing).fit(X, y)
    certificate = model.certificate_
    assert certificate.verify(X, y)
    witness = certificate.witness
    forged = [
        replace(certificate, coef=certificate.coef * 1.001),
        replace(certificate, intercept=certificate.intercept + 0.01),
        replace(certificate, objective=certificate.objective * 0.999),
        replace(certificate, gap=-certificate.objective_rounding),
        replace(certificate, witness={**witness, "dual": witness["dual"] * 0.999}),
        replace(certificate, witness={**witness, "dual": witness["dual"] * 1.001}),
    ]
    if "order" in witness:
        forged.append(replace(certificate, witness={**witness, "order": witness["order"] + 0.01}))
        forged.append(replace(certificate, witness={**witness, "order": witness["order"] - 0.01}))
    for one in forged:
        assert not one.verify(X, y)
    assert not certificate.verify(X, y + 0.01)
    model.coef_ = model.coef_ + 0.01
    assert not model.verify(X, y)


@pytest.mark.parametrize(
    "model",
    [
        QuantileRegressor(quantile=0.3, alpha=0.01),
        QuantileRegressor(quantile=[0.2, 0.6], alpha=0.0),
        QuantileRegressor(quantile=[0.4, 0.5, 0.6], alpha=0.0, non_crossing=True),
        LeastAbsoluteDeviations(),
    ],
    ids=str,
)
def test_a_saved_model_is_the_same_and_still_proven(model, tmp_path):
    X, y = noisy(30, 2, seed=9)
    model.fit(X, y)
    save(model, tmp_path / "model.trueline")
    again = load(tmp_path / "model.trueline")
    assert_array_equal(again.predict(X), model.predict(X))
    assert again.verify(X, y)


# --- several quantiles --------------------------------------------------------------------------


def test_several_quantiles_are_those_fitted_one_by_one():
    X, y = noisy(70, 3, seed=10)
    together = QuantileRegressor(quantile=QUANTILES, alpha=0.01).fit(X, y)
    for j, q in enumerate(QUANTILES):
        alone = QuantileRegressor(quantile=q, alpha=0.01).fit(X, y)
        assert_allclose(together.coef_[j], alone.coef_, rtol=1e-9, atol=1e-12)
        assert together.intercept_[j] == pytest.approx(alone.intercept_, rel=1e-9)
    assert together.predict(X).shape == (70, 4)
    assert together.verify(X, y)


def test_an_interval_is_made_of_the_outermost_quantiles():
    X, y = noisy(200, 2, seed=11)
    model = QuantileRegressor(quantile=[0.5, 0.95, 0.05], alpha=0.0).fit(X, y)
    assert_array_equal(model.predict_interval(X), model.predict(X)[:, [2, 1]])
    inside = (y >= model.predict_interval(X)[:, 0]) & (y <= model.predict_interval(X)[:, 1])
    assert 0.88 <= inside.mean() <= 0.94
    with pytest.raises(ValueError, match="two quantiles"):
        QuantileRegressor(alpha=0.0).fit(X, y).predict_interval(X)


# --- quantiles that do not cross ----------------------------------------------------------------


def crossing_data(n, d, seed):
    random = np.random.default_rng(seed)
    X = random.standard_t(3, size=(n, d))
    return X, X @ random.normal(size=d) + random.standard_t(2, size=n) * (1 + 0.3 * np.abs(X[:, 0]))


@pytest.mark.grid(2)
@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("alpha", [0.0, 0.01])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_ordered_quantiles_reach_the_least_objective_of_the_full_program(
    seed, alpha, fit_intercept
):
    X, y = crossing_data(30, 3, seed)
    quantiles = [0.6, 0.3, 0.45, 0.5, 0.35]
    model = QuantileRegressor(
        quantile=quantiles, alpha=alpha, fit_intercept=fit_intercept, non_crossing=True
    ).fit(X, y)
    least = full_program(X, y, quantiles, alpha, fit_intercept, ordered=True)
    assert model.certificate_.objective == pytest.approx(least, rel=1e-8)
    assert model.certificate_.relative_gap < 1e-7
    assert model.verify(X, y)
    apart = np.diff(model.predict(X)[:, np.argsort(quantiles)], axis=1)
    # Without an intercept there is nothing to lift by what rounding leaves.
    assert apart.min() >= (0.0 if fit_intercept else -1e-12 * np.abs(y).max())


@pytest.mark.grid(1)
@pytest.mark.parametrize("name", list(HOSTILE))
@pytest.mark.parametrize("alpha", [0.0, 0.01])
def test_ordered_quantiles_of_hostile_data_are_proven(name, alpha):
    X, y = HOSTILE[name]
    settings = {"quantile": [0.3, 0.31, 0.5], "alpha": alpha}
    model = QuantileRegressor(**settings, non_crossing=True).fit(X, y)
    assert np.diff(model.predict(X), axis=1).min() >= 0
    terms = np.abs(X) @ np.abs(model.coef_.T) + np.abs(model.intercept_) + np.abs(y)[:, None]
    assert model.certificate_.gap <= 1e-9 * terms.sum()
    assert model.verify(X, y)
    free = QuantileRegressor(**settings).fit(X, y)
    assert model.certificate_.objective >= free.certificate_.lower_bound


def test_separate_fits_of_such_data_do_cross():
    """Or the tests above would test nothing."""
    for seed in range(8):
        X, y = crossing_data(30, 3, seed)
        apart = QuantileRegressor(quantile=[0.3, 0.35, 0.45, 0.5, 0.6], alpha=0.0).fit(X, y)
        assert np.diff(apart.predict(X), axis=1).min() < -1e-3


@settings(max_examples=50, deadline=None)
@given(
    grids(rows=10, columns=2),
    st.lists(st.sampled_from([0.1, 0.3, 0.5, 0.7]), min_size=2, max_size=4),
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")  # targets of zero
def test_ordered_quantiles_of_ties(data, quantiles):
    X, y = data
    model = QuantileRegressor(quantile=quantiles, alpha=0.0, non_crossing=True).fit(X, y)
    least = full_program(X, y, quantiles, ordered=True)
    assert model.certificate_.objective == pytest.approx(least, rel=1e-8, abs=1e-8)
    assert np.diff(model.predict(X)[:, np.argsort(quantiles, kind="stable")], axis=1).min() >= 0
    assert model.verify(X, y)


@pytest.mark.parametrize("l1_ratio", [0.0, 0.5])
def test_ordered_quantiles_with_a_square_in_the_penalty(l1_ratio):
    X, y = crossing_data(40, 3, seed=2)
    settings = {"quantile": [0.4, 0.45, 0.5], "alpha": 1e-3, "l1_ratio": l1_ratio}
    model = QuantileRegressor(**settings, non_crossing=True).fit(X, y)
    free = QuantileRegressor(**settings).fit(X, y)
    assert np.diff(model.predict(X), axis=1).min() >= 0
    assert model.certificate_.objective >= free.certificate_.lower_bound
    assert model.certificate_.relative_gap < 1e-7
    assert model.verify(X, y)


def test_quantiles_that_do_not_cross_by_themselves_are_left_as_they_are():
    X = np.arange(60.0)[:, None]
    y = X[:, 0] + np.random.default_rng(0).normal(size=60)
    apart = QuantileRegressor(quantile=[0.1, 0.5, 0.9], alpha=0.0).fit(X, y)
    ordered = QuantileRegressor(quantile=[0.1, 0.5, 0.9], alpha=0.0, non_crossing=True).fit(X, y)
    assert np.diff(apart.predict(X), axis=1).min() > 0
    assert_array_equal(ordered.coef_, apart.coef_)
    assert_array_equal(ordered.intercept_, apart.intercept_)
    assert "do not cross when they are fitted one by one" in str(ordered.explain())


def test_ordered_quantiles_of_many_rows_look_at_few_of_them():
    X, y = crossing_data(20_000, 3, seed=3)
    quantiles = [0.48, 0.49, 0.5, 0.51, 0.52]
    assert (
        np.diff(QuantileRegressor(quantile=quantiles, alpha=0).fit(X, y).predict(X), axis=1).min()
        < 0
    )
    model = QuantileRegressor(quantile=quantiles, alpha=0, non_crossing=True).fit(X, y)
    assert np.diff(model.predict(X), axis=1).min() >= 0
    assert model.certificate_.relative_gap < 1e-7
    assert model.verify(X, y)


def test_weights_of_ordered_quantiles_count_rows():
    X, y = crossing_data(30, 2, seed=5)
    weights = np.random.default_rng(1).integers(0, 3, size=30).astype(float)
    settings = {"quantile": [0.4, 0.45, 0.5, 0.55], "alpha": 0.0, "non_crossing": True}
    model = QuantileRegressor(**settings).fit(X, y, weights)
    times = weights.astype(int)
    repeated = QuantileRegressor(**settings).fit(np.repeat(X, times, axis=0), np.repeat(y, times))
    assert model.certificate_.objective == pytest.approx(repeated.certificate_.objective, rel=1e-9)
    assert model.verify(X, y, weights)


def test_sparse_and_single_precision_ordered_quantiles():
    X, y = crossing_data(30, 2, seed=6)
    settings = {"quantile": [0.4, 0.45, 0.5, 0.55], "alpha": 0.0, "non_crossing": True}
    exact = QuantileRegressor(**settings).fit(X, y)
    sparse = QuantileRegressor(**settings).fit(sp.csr_array(X), y)
    assert sparse.certificate_.objective == pytest.approx(exact.certificate_.objective, rel=1e-10)
    assert sparse.verify(sp.csr_array(X), y)
    single = QuantileRegressor(**settings).fit(X.astype(np.float32), y)
    assert single.coef_.dtype == np.float32
    assert single.verify(X.astype(np.float32), y)
    assert float(single.certificate_.witness["slack"]) < 1e-4


def test_order_needs_a_solver_that_keeps_it():
    X, y = noisy(20, 2)
    with pytest.raises(ValueError, match="non_crossing=True is solved by solver='auto'"):
        QuantileRegressor(quantile=[0.4, 0.6], non_crossing=True, solver="highs").fit(X, y)


# --- least absolute deviations, and the smoothed form -------------------------------------------


def test_absolute_deviations_are_twice_the_median():
    X, y = noisy(70, 3, seed=12)
    absolute = LeastAbsoluteDeviations().fit(X, y)
    median = QuantileRegressor(quantile=0.5, alpha=0.0).fit(X, y)
    assert_allclose(absolute.coef_, median.coef_, rtol=1e-9)
    assert absolute.certificate_.objective == pytest.approx(2 * median.certificate_.objective)
    assert absolute.certificate_.objective == pytest.approx(np.abs(y - absolute.predict(X)).sum())
    assert absolute.verify(X, y)


def test_a_few_rows_cannot_move_the_line_whatever_they_hold():
    X = np.arange(21.0)[:, None]
    y = 2 * X[:, 0] + 1
    y[[3, 6, 9, 12, 15]] = [1e6, -1e9, 1e12, 7.0, -1e3]
    model = LeastAbsoluteDeviations().fit(X, y)
    assert_allclose([model.coef_[0], model.intercept_], [2.0, 1.0], rtol=1e-9)


@pytest.mark.parametrize("q", [None, 0.2, [0.2, 0.7]])
def test_the_smoothed_form_approaches_the_exact_answer(q):
    X, y = noisy(300, 3, seed=13)
    y = y / np.abs(y).mean()

    def fit(**settings):
        if q is None:
            return LeastAbsoluteDeviations(**settings).fit(X, y)
        return QuantileRegressor(quantile=q, alpha=0.0, **settings).fit(X, y)

    exact = fit().certificate_.objective
    excess = []
    for smoothing in (1e-1, 1e-2, 1e-3):
        model = fit(solver="smoothed", smoothing=smoothing)
        certificate = model.certificate_
        assert 0 <= certificate.objective - exact <= certificate.gap
        # Nesterov's bound: half the zone for each row of each quantile.
        assert certificate.gap <= 0.5 * smoothing * 300 * certificate.coef.shape[1]
        assert model.verify(X, y)
        excess.append(certificate.objective - exact)
    assert excess[2] < 0.1 * excess[0]


@pytest.mark.grid(2)
@pytest.mark.parametrize("alpha", [0.0, 3.0])
@pytest.mark.parametrize("q", [0.5, 0.2])
@pytest.mark.parametrize("smoothing", [1e-3, 1e-2, 0.1, 0.3, 1.0, 10.0])
def test_the_rounded_loss_is_minimised_at_the_smoothing_given(smoothing, q, alpha):
    """The slope of sum_i s_i max_u (u r_i - delta/2 u^2) + alpha/2 ||w||^2 vanishes: Huber's."""
    rng = np.random.default_rng(5)
    X, y = rng.standard_normal((60, 3)) * [1e-2, 1.0, 100.0], rng.standard_t(2, size=60)
    weights = rng.uniform(0.5, 2.0, size=60)
    settings = {"solver": "smoothed", "smoothing": smoothing, "alpha": alpha, "l1_ratio": 0.0}
    if q == 0.5:
        model, low, high = LeastAbsoluteDeviations(**settings), -1.0, 1.0
    else:
        model, low, high = QuantileRegressor(quantile=q, **settings), -q, 1 - q
    model.fit(X, y, sample_weight=weights)
    u = weights * np.clip((model.predict(X) - y) / smoothing, low, high)
    # The penalty is stated relative to the sum of the losses or to their mean.
    strength = model.certificate_.penalty.curvature
    slope = X.T @ u + np.ravel(strength) * model.coef_
    assert_allclose(slope / np.linalg.norm(X, axis=0), 0.0, atol=1e-9)
    assert_allclose(u.sum(), 0.0, atol=1e-9)
    bound = 0.5 * smoothing * max(-low, high) ** 2 * weights.sum()
    assert model.certificate_.gap <= bound * (1 + 1e-9)
    assert model.verify(X, y, sample_weight=weights)


@pytest.mark.grid(1)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("seed", range(40))
def test_fits_of_several_quantiles_verify(seed, dtype):
    """Also where more columns than rows leave nothing but rounding, which sums up in any order."""
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(3, 9)), int(rng.integers(1, 10))
    X = (rng.standard_normal((n, d)) + 10.0 ** rng.uniform(0, 4)).astype(dtype)
    y = (10.0 ** rng.uniform(-4, 6) * rng.standard_normal(n)).astype(dtype)
    model = QuantileRegressor(quantile=[0.9, 0.1, 0.5], alpha=0.0).fit(X, y)
    assert model.verify(X, y)


def test_the_trace_shows_how_the_gap_shrinks():
    X, y = noisy(300, 3, seed=13)
    model = LeastAbsoluteDeviations(solver="smoothed", trace=True).fit(X, y)
    gaps = model.trace_["gap"]
    assert len(gaps) == model.n_iter_ + 1
    assert gaps[-1] == model.certificate_.gap < 1e-2 * gaps[0]
    least = LeastAbsoluteDeviations().fit(X, y).certificate_.objective
    assert (model.trace_["objective"] - gaps <= least).all()


def test_the_smoothed_form_with_a_squared_penalty():
    X, y = noisy(200, 3, seed=14)
    exact = LeastAbsoluteDeviations(alpha=5.0, l1_ratio=0.0).fit(X, y)
    model = LeastAbsoluteDeviations(alpha=5.0, l1_ratio=0.0, solver="smoothed").fit(X, y)
    certificate = model.certificate_
    assert 0 <= certificate.objective - exact.certificate_.objective <= certificate.gap
    assert model.verify(X, y)


def test_the_smoothed_form_refuses_absolute_values_in_the_penalty():
    X, y = noisy(20, 2)
    with pytest.raises(PairingError, match="smooth penalty"):
        LeastAbsoluteDeviations(alpha=1.0, solver="smoothed").fit(X, y)


@pytest.mark.parametrize("quantile", [0.001, 0.01, 0.999])
def test_extreme_quantiles_of_many_rows_look_at_few_of_them(quantile):
    draw = np.random.default_rng(11)
    X = draw.normal(size=(30_000, 6))
    y = X @ draw.normal(size=6) + (1 + 0.3 * np.abs(X[:, 0])) * draw.standard_t(3, size=30_000)
    model = QuantileRegressor(quantile=quantile, alpha=0).fit(X, y)
    assert model.certificate_.relative_gap < 1e-7
    assert model.verify(X, y)
    share = np.mean(y < model.predict(X) - 1e-9)
    assert abs(share - quantile) <= 7 / 30_000


@pytest.mark.parametrize("seed", [0, 1, 2, 4, 8])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_powers_of_one_column_are_verified(seed):
    # Multipliers that do not quite add up to zero cost more where columns are in the billions.
    rng = np.random.default_rng(seed)
    x = rng.uniform(-9.0, -3.0, 82)
    X = np.vander(x, 11, increasing=True)[:, 1:]
    y = 0.85 + 0.05 * np.sin(x) + 0.003 * rng.standard_normal(82)
    model = QuantileRegressor().fit(X, y)
    assert model.verify(X, y), str(model.verify(X, y))
    their = TheirQuantileRegressor().fit(X, y)
    value = pinball(y, their.predict(X), 0.5) + len(y) * np.abs(their.coef_).sum()
    assert objective(model, X, y) <= value + model.certificate_.gap


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("quantile", [0.5, 0.23, [0.1, 0.7]])
def test_sparse_columns_that_are_not_worth_their_penalty_leave_the_best_constant(
    quantile, weighted
):
    # As tf-idf of texts at the default strength; a Gram matrix of the columns would take minutes.
    rng = np.random.default_rng(7)
    X = sp.random_array((301, 20_000), density=1e-3, rng=rng, format="csr")
    y = np.round(rng.exponential(1.0, 301), 2)  # with ties
    weights = rng.uniform(0.5, 2.0, 301) if weighted else None
    model = QuantileRegressor(quantile=quantile).fit(X, y, weights)
    assert not model.coef_.any()
    order = np.argsort(y)
    total = np.cumsum(np.ones(301) if weights is None else weights[order])
    levels = [y[order[np.searchsorted(total, q * total[-1])]] for q in np.atleast_1d(quantile)]
    assert_allclose(np.atleast_1d(model.intercept_), levels, rtol=1e-12)
    assert "no column is worth its penalty" in str(model.explain())
    assert model.verify(X, y, weights)


@pytest.mark.parametrize("share", [0.999, 1.001])
def test_the_strength_at_which_the_first_column_enters_is_told_apart(share):
    rng = np.random.default_rng(3)
    X, y = rng.standard_normal((101, 4)), rng.standard_normal(101)
    level = np.median(y)
    slopes = np.where(y < level, 0.5, np.where(y > level, -0.5, 0.0))
    alpha = share * np.abs(X.T @ slopes).max() / 101
    model = QuantileRegressor(alpha=alpha).fit(X, y)
    assert model.coef_.any() == (share < 1)
    their = TheirQuantileRegressor(alpha=alpha).fit(X, y)
    assert_allclose(model.coef_, their.coef_, atol=1e-12)
    assert_allclose(model.intercept_, their.intercept_, rtol=1e-12)


# --- columns that are nearly copies ---------------------------------------------------------------


@pytest.mark.grid(2)
@pytest.mark.parametrize("apart", [1e-3, 1e-6, 1e-9, 1e-12])
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array], ids=["dense", "csr"])
@pytest.mark.parametrize("shape", [(6, 6), (10, 4), (40, 5)], ids=str)
def test_a_gap_bounds_what_near_copies_hide(apart, form, shape):
    """Coefficients of near copies may be huge: the best fit is far away, and the gap says so."""
    random = np.random.default_rng(3)
    X = random.normal(size=shape)
    X[:, -1] = 100.0 + apart * random.normal(size=shape[0])
    y = random.normal(size=shape[0])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = QuantileRegressor(alpha=0.0, quantile=0.7).fit(form(X), y)
    centred = X - X.mean(axis=0)
    centred = centred / np.linalg.norm(centred, axis=0)
    best = QuantileRegressor(alpha=0.0, quantile=0.7, solver="highs").fit(centred, y)
    distance = objective(model, X, y) - objective(best, centred, y)
    assert distance <= model.certificate_.gap + 1e-9 * np.abs(y).sum()


@pytest.mark.parametrize("seed", [0, 3])
def test_near_copies_of_few_rows_are_proven_to_the_tolerance(seed):
    """Sums of few rows round little, which a proof for coefficients of thousands has to know."""
    random = np.random.default_rng(seed)
    x = random.integers(0, 2, 13) + 10.0 * (random.random() < 2)
    X = np.column_stack([x, -0.5 * (x + 1.1e-5 * random.standard_normal(13))])
    y = random.standard_normal(13)
    model = QuantileRegressor(alpha=0.0).fit(X, y)
    assert np.abs(model.coef_).max() > 1e3
    assert model.certificate_.gap <= 1e-6 * 0.5 * np.abs(y - np.median(y)).sum()
    assert model.verify(X, y)
