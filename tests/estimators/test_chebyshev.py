"""Regression by the smallest largest error: exact and proven, for all kinds of data."""

from __future__ import annotations

import warnings
from copy import deepcopy
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from numpy.polynomial import chebyshev
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import minimize
from scipy.special import logsumexp, softmax
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from trueline import ChebyshevRegressor, LinearRegressor, load, save
from trueline.check import Verdict
from trueline.checks import ESTIMATOR_LAWS
from trueline.checks.estimators import EstimatorPoints
from trueline.errors import PairingError


def noisy(n=80, d=4, seed=0):
    """Columns of different sizes and centres."""
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, d)) * 10.0 ** random.uniform(-2, 2, size=d) + random.normal(size=d)
    return X, X @ random.normal(size=d) + random.standard_t(3, size=n)


def largest_error(model, X, y):
    return float(np.abs(y - model.predict(X)).max())


# --- what approximation theory says -------------------------------------------------------------


@pytest.mark.parametrize("n", range(1, 16))
def test_the_best_approximation_of_a_power_is_a_chebyshev_polynomial(n):
    """x^n - T_n(x) / 2^(n-1) is the best of lower degree on [-1, 1], with the error 2^(1-n)."""
    extremal = np.cos(np.pi * np.arange(n + 1) / n)
    x = np.unique(np.concatenate([np.linspace(-1, 1, 801), extremal]))
    powers = np.column_stack([x**k for k in range(1, n)] or [np.zeros_like(x)])
    model = ChebyshevRegressor().fit(powers, x**n)
    assert_allclose(model.max_error_, 2.0 ** (1 - n), rtol=1e-9)
    series = chebyshev.cheb2poly(np.eye(n + 1)[n]) / 2 ** (n - 1)
    if n > 1:
        assert_allclose(model.coef_, -series[1:n], atol=1e-8)
    # The points of T_n's extrema, where the errors alternate.
    assert_allclose(x[model.alternation_], np.sort(extremal), atol=1e-7)
    assert_array_equal(np.sign(model.dual_), (-1.0) ** np.arange(n, -1, -1))


@pytest.mark.parametrize("function", [np.exp, np.sqrt, lambda x: 1 / (1 + x), np.sin])
@pytest.mark.parametrize("degree", [1, 2, 3, 5])
def test_errors_alternate_along_a_chebyshev_system(function, degree):
    """Chebyshev's theorem: degree + 2 points with errors of one size and alternating signs."""
    x = np.linspace(0, 2, 1001)
    X, y = np.column_stack([x**k for k in range(1, degree + 1)]), function(x)
    model = ChebyshevRegressor().fit(X, y)
    error = (y - model.predict(X))[model.alternation_]
    assert len(error) == degree + 2
    assert_allclose(np.abs(error), model.max_error_, rtol=1e-9)
    assert_array_equal(np.sign(error), np.sign(model.dual_))
    assert (np.sign(error)[1:] == -np.sign(error)[:-1]).all()


def test_the_multipliers_of_a_line_are_barycentric():
    """Three points carry a line; the middle one lies between the others."""
    x, y = np.array([0.0, 1.0, 4.0]), np.array([0.0, 3.0, 1.0])
    model = ChebyshevRegressor().fit(x[:, None], y)
    assert_array_equal(model.alternation_, [0, 1, 2])
    assert_allclose(model.dual_, [-3 / 8, 1 / 2, -1 / 8], rtol=1e-14)
    assert_allclose(model.max_error_, abs(model.dual_ @ y), rtol=1e-14)


# --- independent solvers ------------------------------------------------------------------------


@pytest.mark.grid(1)
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("seed", range(5))
def test_all_solvers_agree(fit_intercept, seed):
    X, y = noisy(seed=seed)
    exact, program, smooth = (
        ChebyshevRegressor(fit_intercept=fit_intercept, solver=solver).fit(X, y)
        for solver in ("exchange", "highs", "smoothed")
    )
    assert_allclose(program.coef_, exact.coef_, rtol=1e-7)
    assert_allclose(program.max_error_, exact.max_error_, rtol=1e-10)
    assert_array_equal(program.alternation_, exact.alternation_)
    assert_allclose(program.dual_, exact.dual_, atol=1e-10)
    assert 0 <= smooth.max_error_ - exact.max_error_ <= smooth.certificate_.gap
    assert smooth.certificate_.relative_gap < 2e-3
    for model in (exact, program, smooth):
        assert model.verify(X, y)
    assert exact.certificate_.relative_gap < 1e-12
    assert (exact.solver_, exact.n_iter_ > 1) == ("exchange", True)


def test_auto_is_the_exchange_and_says_so():
    X, y = noisy()
    model = ChebyshevRegressor()
    before = str(model.explain(X, y))
    assert "exchange" in str(model.fit(X, y).explain())
    assert "max_i [|z - y|]" in before
    assert model.solver_ == "exchange"


def test_the_trace_of_the_smoothed_form_shows_convergence():
    X, y = noisy()
    exact = ChebyshevRegressor().fit(X, y).max_error_
    model = ChebyshevRegressor(solver="smoothed", smoothing=1e-4, trace=True).fit(X, y)
    objective, gap = model.trace_["objective"], model.trace_["gap"]
    assert (objective >= exact - 1e-12).all()
    assert (objective - exact <= gap + 1e-12).all()
    assert gap[-1] < 0.01 * gap[0]


@pytest.mark.grid(2)
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("smoothing", [1e-3, 1e-2, 0.1, 0.3, 1.0, 10.0])
@pytest.mark.parametrize("offset", [0.0, 100.0])
def test_the_smooth_maximum_is_minimised_at_the_smoothing_given(smoothing, fit_intercept, offset):
    """Against SciPy on mu log(sum_i 2 cosh(r_i / mu)) in orthonormal columns."""
    rng = np.random.default_rng(7)
    X = rng.standard_normal((40, 3)) * [1e-2, 1.0, 1e3] + offset
    y = rng.standard_t(2, size=40)
    A = np.column_stack([X, np.ones(40)]) if fit_intercept else X
    Q = np.linalg.qr(A / np.linalg.norm(A, axis=0))[0]

    def smooth(error):
        return smoothing * logsumexp(np.concatenate([error, -error]) / smoothing)

    def slope(v):
        share = softmax(np.concatenate([y - Q @ v, Q @ v - y]) / smoothing)
        return Q.T @ (share[40:] - share[:40])

    # A descent by stages: at once, the smallest mu is too rough for a quasi-Newton method.
    v, last = np.zeros(Q.shape[1]), smoothing
    for factor in (100.0, 10.0, 1.0):
        smoothing = factor * last
        v = minimize(
            lambda v: smooth(y - Q @ v), v, jac=slope, method="BFGS", options={"gtol": 1e-10}
        ).x
    model = ChebyshevRegressor(solver="smoothed", smoothing=last, fit_intercept=fit_intercept)
    error = y - model.fit(X, y).predict(X)
    assert smooth(error) <= smooth(y - Q @ v) * (1 + 1e-10)
    exact = ChebyshevRegressor(fit_intercept=fit_intercept).fit(X, y).max_error_
    gap = model.certificate_.gap
    assert model.max_error_ - exact <= gap <= last * np.log(80) * (1 + 1e-9)
    assert model.verify(X, y)


@pytest.mark.parametrize("seed", range(20))
def test_as_many_columns_as_rows_with_offsets(seed):
    """Rows about their mean have rank n - 1: everything is fitted exactly."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(3, 8))
    X = rng.standard_normal((n, n + int(rng.integers(-1, 4)))) + 1e5 * rng.random()
    y = rng.standard_normal(n)
    model = ChebyshevRegressor().fit(X, y)
    assert model.max_error_ <= 1e-9
    assert model.verify(X, y)


def test_the_smoothed_form_says_how_far_it_came():
    X, y = noisy()
    with pytest.warns(ConvergenceWarning, match="proven within"):
        model = ChebyshevRegressor(solver="smoothed", max_iter=5).fit(X, y)
    assert model.verify(X, y)


def test_any_estimator_may_take_the_loss():
    X, y = noisy()
    model = LinearRegressor(loss="maximum_error", penalty=None).fit(X, y)
    assert_allclose(model.coef_, ChebyshevRegressor().fit(X, y).coef_, rtol=1e-12)
    assert model.verify(X, y)
    with pytest.raises(PairingError, match="no penalty"):
        LinearRegressor(loss="maximum_error", penalty="l1", solver="exchange").fit(X, y)


# --- kinds of input -----------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [sp.csr_array, sp.csc_array, sp.csr_matrix, sp.coo_array])
def test_sparse_data(kind):
    X, y = noisy(400, 6)
    X = X * (np.random.default_rng(0).random(X.shape) < 0.3)
    dense, sparse = ChebyshevRegressor().fit(X, y), ChebyshevRegressor().fit(kind(X), y)
    assert_allclose(sparse.coef_, dense.coef_, rtol=1e-9)
    assert_array_equal(sparse.alternation_, dense.alternation_)
    assert sparse.verify(kind(X), y)
    assert sparse.verify(X, y)
    assert sparse.certificate_.relative_gap < 1e-12


def test_single_precision():
    X, y = noisy()
    X, y = X.astype(np.float32), y.astype(np.float32)
    model = ChebyshevRegressor().fit(X, y)
    double = ChebyshevRegressor().fit(X.astype(float), y.astype(float))
    assert model.coef_.dtype == np.float32
    assert_allclose(model.max_error_, double.max_error_, rtol=1e-6)
    assert model.certificate_.relative_gap < 1e-5
    assert model.verify(X, y)


def test_frames_keep_their_names():
    X, y = noisy()
    frame = pd.DataFrame(X, columns=list("abcd"))
    model = ChebyshevRegressor().fit(frame, pd.Series(y))
    assert_array_equal(model.feature_names_in_, list("abcd"))
    assert model.verify(frame, y)


def test_positive_weights_are_all_alike_and_zero_leaves_a_row_out():
    X, y = noisy()
    random = np.random.default_rng(0)
    present = random.random(len(y)) < 0.6
    weights = np.where(present, random.uniform(0.1, 9.0, len(y)), 0.0)
    y = np.where(present, y, 1e6)
    weighted = ChebyshevRegressor().fit(X, y, sample_weight=weights)
    left = ChebyshevRegressor().fit(X[present], y[present])
    assert_array_equal(weighted.coef_, left.coef_)
    assert weighted.max_error_ == left.max_error_
    assert_array_equal(weighted.alternation_, np.flatnonzero(present)[left.alternation_])
    assert_array_equal(weighted.dual_, left.dual_)
    assert_allclose(
        np.sign((y - weighted.predict(X))[weighted.alternation_]), np.sign(weighted.dual_)
    )
    assert weighted.verify(X, y, weights)
    assert weighted.verify(X[present], y[present])
    assert not weighted.verify(X, y)  # without weights the other rows count


def test_one_weight_for_all():
    X, y = noisy()
    assert_array_equal(
        ChebyshevRegressor().fit(X, y, sample_weight=3.0).coef_,
        ChebyshevRegressor().fit(X, y).coef_,
    )


def test_a_repeated_row_changes_nothing():
    X, y = noisy()
    rows = np.concatenate([np.arange(80), np.arange(0, 80, 3)])
    assert_allclose(
        ChebyshevRegressor().fit(X[rows], y[rows]).coef_,
        ChebyshevRegressor().fit(X, y).coef_,
        rtol=1e-9,
    )


def test_of_all_optimal_fits_the_strict_one_is_taken():
    """Only the widest category decides; the others are fitted as well as they can be, too."""
    random = np.random.default_rng(0)
    category, y = np.arange(200) % 8, random.normal(size=200)
    model = ChebyshevRegressor().fit(np.eye(8)[category], y)
    parts = [y[category == k] for k in range(8)]
    middles = [0.5 * (part.min() + part.max()) for part in parts]
    assert_allclose(model.predict(np.eye(8)), middles, rtol=1e-12, atol=1e-12)
    assert_allclose(model.max_error_, max(np.ptp(part) for part in parts) / 2, rtol=1e-14)
    assert len(model.alternation_) == 2


@pytest.mark.parametrize("seed", range(20))
def test_the_answer_is_unique_whatever_the_order_of_the_rows(seed):
    """Small integers have many optimal fits, dependent columns have many coefficients."""
    random = np.random.default_rng(seed)
    X = random.integers(0, 3, (30, 5)).astype(float)
    X[:, 4] = X[:, 0] + X[:, 1]
    y = random.integers(0, 4, 30).astype(float)
    rows = np.concatenate([random.permutation(30), random.integers(0, 30, 20)])
    model, other = ChebyshevRegressor().fit(X, y), ChebyshevRegressor().fit(X[rows], y[rows])
    assert_allclose(other.coef_, model.coef_, atol=1e-10)
    assert_allclose(other.intercept_, model.intercept_, atol=1e-10)
    # The coefficients of least norm are orthogonal to those that predict nothing.
    assert abs(model.coef_ @ [1, 1, 0, 0, -1]) < 1e-10


# --- hostile data -------------------------------------------------------------------------------


def timestamps():
    """Milliseconds since 1970 over four months."""
    x = 1.7e12 + np.sort(np.random.default_rng(0).integers(0, 10**10, 300)).astype(float)
    return x[:, None], np.sin(x / 1e9)


@pytest.mark.parametrize("wrap", [np.asarray, sp.csr_array])
def test_timestamps_in_milliseconds(wrap):
    X, y = timestamps()
    model = ChebyshevRegressor().fit(wrap(X), y)
    hours = (X - 1.7e12) / 3.6e6
    assert_allclose(model.max_error_, ChebyshevRegressor().fit(hours, y).max_error_, rtol=1e-12)
    assert model.certificate_.relative_gap < 1e-12
    assert model.verify(X, y)


@pytest.mark.parametrize("power", [-250, -60, 60, 250])
def test_wild_scales(power):
    X, y = noisy()
    plain = ChebyshevRegressor().fit(X, y)
    scaled = ChebyshevRegressor().fit(X * 10.0**power, y)
    assert_allclose(scaled.max_error_, plain.max_error_, rtol=1e-10)
    assert scaled.verify(X * 10.0**power, y)
    scaled = ChebyshevRegressor().fit(X, y * 10.0**power)
    assert_allclose(scaled.max_error_, plain.max_error_ * 10.0**power, rtol=1e-10)
    assert_array_equal(scaled.alternation_, plain.alternation_)
    assert scaled.verify(X, y * 10.0**power)


@pytest.mark.parametrize("offset", [0.0, 1e6])
def test_a_perfect_fit_has_no_error_and_no_rows_that_carry_it(offset):
    X, _ = noisy()
    y = X @ [1.0, -2.0, 0.5, 3.0] + 4.0 + offset
    model = ChebyshevRegressor().fit(X, y)
    assert model.max_error_ <= 1e-13 * np.abs(y).max()
    assert model.certificate_.gap <= 1e-13 * np.abs(y).max()
    assert len(model.alternation_) == len(model.dual_) == 0
    assert model.verify(X, y)


def test_many_rows_that_are_fitted_perfectly():
    """More rows than anybody would evaluate in doubled precision may be the one that errs most."""
    X = np.random.default_rng(0).normal(size=(120_000, 16))
    y = X @ np.arange(16.0)
    model = ChebyshevRegressor().fit(X, y)
    assert model.certificate_.gap <= 1e-12 * np.abs(y).max()
    assert model.verify(X, y)


def test_errors_far_below_the_targets():
    X, _ = noisy()
    noise = np.random.default_rng(1).uniform(-1, 1, len(X))
    plain = ChebyshevRegressor().fit(X, noise)
    y = X @ [1.0, -2.0, 0.5, 3.0] + 1e-8 * noise
    model = ChebyshevRegressor().fit(X, y)
    assert_allclose(model.max_error_, 1e-8 * plain.max_error_, rtol=1e-4)
    assert model.certificate_.gap <= 1e-14 * np.abs(y).max()
    assert model.verify(X, y)


@pytest.mark.parametrize("value", [0.0, -3.0, 1e12])
def test_constant_targets(value):
    X, y = noisy()
    model = ChebyshevRegressor().fit(X, np.full_like(y, value))
    assert_allclose(model.predict(X), value, rtol=1e-15)
    assert model.certificate_.gap <= 1e-15 * abs(value) + 1e-280
    assert model.verify(X, np.full_like(y, value))


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize(("n", "d"), [(1, 1), (1, 3), (2, 1), (5, 5), (5, 20), (6, 5), (40, 60)])
def test_as_many_columns_as_rows(n, d, fit_intercept):
    random = np.random.default_rng(n * d)
    X, y = random.normal(size=(n, d)), random.normal(size=n)
    model = ChebyshevRegressor(fit_intercept=fit_intercept).fit(X, y)
    if n <= d + fit_intercept:
        assert model.max_error_ < 1e-13
        assert len(model.alternation_) == 0
    else:
        assert model.max_error_ > 1e-3
        assert len(model.alternation_) == n
    assert model.verify(X, y)


def test_dependent_and_constant_columns():
    X, y = noisy()
    wide = np.column_stack([X, X[:, 0] - 2 * X[:, 1], np.full(80, 7.0), np.zeros(80), X[:, 2]])
    plain, model = ChebyshevRegressor().fit(X, y), ChebyshevRegressor().fit(wide, y)
    assert_allclose(model.max_error_, plain.max_error_, rtol=1e-12)
    assert_allclose(model.predict(wide), plain.predict(X), rtol=1e-8)
    assert model.certificate_.relative_gap < 1e-10
    # Beyond the radius that it states, coefficients of 1e16 make use of the rounding of a column.
    found = model.verify(wide, y)
    assert found.verdict is Verdict.CONDITIONAL
    assert "coefficients differ from the stated ones by at most" in found.conditions[0]
    exact = np.delete(wide, 4, axis=1)
    assert ChebyshevRegressor().fit(exact, y).verify(exact, y)


def test_a_constant_column_far_from_zero_in_a_sparse_matrix():
    X, y = noisy()
    wide = np.column_stack([X, np.full(80, 1e6)])
    model = ChebyshevRegressor().fit(sp.csr_array(wide), y)
    assert_allclose(model.max_error_, ChebyshevRegressor().fit(X, y).max_error_, rtol=1e-12)
    assert model.coef_[-1] == 0
    assert model.verify(wide, y)


def test_rare_categories_among_many_rows():
    """Columns that are not zero in one row each, which no sample would show."""
    random = np.random.default_rng(0)
    X = np.zeros((3000, 6))
    X[:, :3] = random.normal(size=(3000, 3))
    X[[17, 1000, 2999], [3, 4, 5]] = 1.0
    y = random.normal(size=3000)
    model = ChebyshevRegressor().fit(sp.csr_array(X), y)
    assert_allclose(
        model.max_error_, ChebyshevRegressor(solver="highs").fit(X, y).max_error_, rtol=1e-10
    )
    assert model.certificate_.relative_gap < 1e-12


def test_nearly_dependent_columns_are_told_apart():
    X, y = noisy()
    close = np.column_stack([X, X[:, 0] + 1e-7 * np.random.default_rng(2).normal(size=80)])
    model = ChebyshevRegressor().fit(close, y)
    assert model.max_error_ < 0.999 * ChebyshevRegressor().fit(X, y).max_error_
    assert model.certificate_.relative_gap < 1e-8
    assert model.verify(close, y)


def test_one_wild_row():
    X, y = noisy()
    y[7] = 1e12
    model = ChebyshevRegressor().fit(X, y)
    assert 7 in model.alternation_
    assert model.certificate_.relative_gap < 1e-12
    assert model.verify(X, y)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_what_is_no_number_is_refused(bad):
    X, y = noisy()
    X[3, 1] = bad
    with pytest.raises(ValueError, match="NaN|infinity"):
        ChebyshevRegressor().fit(X, y)
    X, y = noisy()
    y[3] = bad
    with pytest.raises(ValueError, match="NaN|infinity"):
        ChebyshevRegressor().fit(X, y)


@pytest.mark.parametrize(
    "parameters", [{"solver": "simplex"}, {"smoothing": 0.0}, {"max_iter": 0}, {"trace": "yes"}]
)
def test_parameters_out_of_range_are_refused(parameters):
    X, y = noisy()
    with pytest.raises(ValueError, match=next(iter(parameters))):
        ChebyshevRegressor(**parameters).fit(X, y)


def test_invalid_weights_are_refused():
    X, y = noisy()
    with pytest.raises(ValueError, match="at least one non-zero"):
        ChebyshevRegressor().fit(X, y, sample_weight=np.zeros(80))
    with pytest.raises(ValueError, match="Negative"):
        ChebyshevRegressor().fit(X, y, sample_weight=-np.ones(80))


# --- the certificate ----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def proven():
    X, y = noisy()
    return ChebyshevRegressor().fit(X, y), X, y


def test_the_proof_is_tight_and_verifies(proven):
    model, X, y = proven
    certificate = model.certificate_
    assert certificate.kind == "maximum error"
    assert certificate.relative_gap < 1e-12
    assert certificate.objective == model.max_error_
    assert_allclose(model.max_error_, largest_error(model, X, y), rtol=1e-12)
    assert certificate.verify(X, y)
    assert "largest error" in certificate.statement


def test_the_lower_bound_holds_for_other_coefficients(proven):
    model, X, y = proven
    random = np.random.default_rng(0)
    for size in 10.0 ** np.arange(-9, 2):
        other = clone(model)
        other.coef_ = model.coef_ * (1 + size * random.normal(size=4))
        other.intercept_ = model.intercept_ + size * random.normal()
        other.n_features_in_ = 4
        assert largest_error(other, X, y) >= model.certificate_.lower_bound


@pytest.mark.parametrize("column", range(4))
@pytest.mark.parametrize("factor", [1 + 1e-9, 1 - 1e-9, 0.0])
def test_changed_coefficients_are_rejected(proven, column, factor):
    model, X, y = proven
    coef = model.certificate_.coef.copy()
    coef[column] *= factor
    assert not replace(model.certificate_, coef=coef).verify(X, y)


def test_changed_models_are_rejected(proven):
    model, X, y = proven
    changed = deepcopy(model)
    changed.intercept_ += 1e-9
    assert not changed.verify(X, y)
    changed = deepcopy(model)
    changed.coef_[0] *= 1 + 1e-9
    assert not changed.verify(X, y)


@pytest.mark.parametrize(
    "change",
    [
        {"objective": 0.999},
        {"objective": 1.001},
        {"gap": 0.1},
        {"gap": 0.0},
        {"gap": -1.0},
        {"objective_rounding": 0.0},
        {"objective_rounding": -1.0},
    ],
    ids=str,
)
def test_other_claims_are_rejected(proven, change):
    model, X, y = proven
    (name, factor), certificate = next(iter(change.items())), model.certificate_
    assert not replace(certificate, **{name: getattr(certificate, name) * factor}).verify(X, y)


def tampered(certificate, **changes):
    return replace(certificate, witness={**certificate.witness, **changes})


def test_other_witnesses_are_rejected(proven):
    model, X, y = proven
    certificate = model.certificate_
    rows, u = certificate.witness["rows"], certificate.witness["dual"]
    moved = rows.copy()
    moved[0] = next(i for i in range(80) if i not in rows)
    repeated = rows.copy()
    repeated[0] = rows[1]
    beyond = rows.copy()
    beyond[0] = 80
    assert not tampered(certificate, rows=moved).verify(X, y)
    assert not tampered(certificate, rows=repeated).verify(X, y)
    assert not tampered(certificate, rows=beyond).verify(X, y)
    assert not tampered(certificate, rows=-rows - 1).verify(X, y)
    assert not tampered(certificate, rows=rows + 0.5).verify(X, y)
    assert not tampered(certificate, dual=1e3 * u).verify(X, y)  # more than one
    assert not tampered(certificate, dual=u[:-1]).verify(X, y)
    assert not tampered(certificate, dual=np.full_like(u, np.nan)).verify(X, y)
    assert not tampered(certificate, dual=0 * u).verify(X, y)
    assert not tampered(certificate, radius=np.zeros(1)).verify(X, y)  # the proof has none
    lacking = {name: part for name, part in certificate.witness.items() if name != "dual"}
    assert not replace(certificate, witness=lacking).verify(X, y)


def test_other_kinds_of_proof_are_rejected(proven):
    model, X, y = proven
    for kind in ("duality", "bounded", "quadratic", "fenchel", "search", "none"):
        assert not replace(model.certificate_, kind=kind).verify(X, y)


def test_a_false_lower_bound_cannot_be_proven(proven):
    """Multipliers that are not in balance prove less than their sum of errors says."""
    model, X, y = proven
    certificate = model.certificate_
    error = y - model.predict(X)
    worse = replace(certificate, coef=certificate.coef * 1.5)
    worse = replace(
        worse, objective=float(np.abs(y - X @ worse.coef[:, 0] - worse.intercept).max())
    )
    most = int(np.abs(y - X @ worse.coef[:, 0] - worse.intercept).argmax())
    alone = tampered(
        replace(worse, objective_rounding=1e-9, gap=1e-6),
        rows=np.array([float(most)]),
        dual=np.array([[float(np.sign(error[most]))]]),
    )
    checks = {check.name: check.holds for check in alone.verify(X, y).checks}
    assert not checks["gap"]


def test_other_data_are_rejected(proven):
    model, X, y = proven
    assert not model.verify(X, y[::-1].copy())
    carried = np.arange(80) == model.alternation_[-1]
    assert not model.verify(X[~carried], y[~carried])
    changed = y.copy()
    changed[model.alternation_[0]] *= 1 + 1e-9
    assert not model.verify(X, changed)


@pytest.mark.parametrize("solver", ["exchange", "highs", "smoothed"])
def test_models_come_back_from_files(tmp_path, solver):
    X, y = noisy()
    model = ChebyshevRegressor(solver=solver).fit(X, y)
    save(model, tmp_path / "model")
    back = load(tmp_path / "model")
    assert_array_equal(back.predict(X), model.predict(X))
    assert_array_equal(back.alternation_, model.alternation_)
    assert_array_equal(back.dual_, model.dual_)
    assert back.max_error_ == model.max_error_
    assert back.verify(X, y)


# --- laws ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("law", list(ESTIMATOR_LAWS), ids=lambda law: law.name.replace(" ", "_"))
def test_law(law):
    model = ChebyshevRegressor()
    ESTIMATOR_LAWS.check_one(law, model, EstimatorPoints.of(model))


def test_units_do_not_matter():
    X, y = noisy()
    scales = np.array([1e-4, 1.0, 7.0, 1e5])
    plain, other = ChebyshevRegressor().fit(X, y), ChebyshevRegressor().fit(X * scales, 2 * y)
    assert_allclose(other.coef_ * scales, 2 * plain.coef_, rtol=1e-9)
    assert_allclose(other.max_error_, 2 * plain.max_error_, rtol=1e-12)


def test_no_warning_is_given_for_ordinary_data():
    with warnings.catch_warnings(record=True) as given:
        warnings.simplefilter("always")
        model = ChebyshevRegressor().fit(*noisy(2000, 10))
    assert not given
    assert model.verify(*noisy(2000, 10))


# --- the picture --------------------------------------------------------------------------------


@pytest.fixture
def plot_alternation():
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    from matplotlib import pyplot

    from trueline.plots import plot_alternation

    yield plot_alternation
    pyplot.close("all")


def test_the_picture_marks_the_rows_that_carry_the_fit(plot_alternation):
    x = np.linspace(0, 1, 101)
    model = ChebyshevRegressor().fit(x[:, None], x**2)
    ax = plot_alternation(model, x[:, None], x**2).ax_
    band, data, above, below = ax.collections
    assert data.get_offsets().shape == (101, 2)
    assert_allclose(above.get_offsets(), [[0, 0], [1, 1]], atol=1e-12)
    assert_allclose(below.get_offsets(), [[0.5, 0.25]], atol=1e-12)
    assert [text.get_text() for text in ax.texts] == ["+", "+", "−"]
    assert band.get_label() == "fit ± 0.125"
    lower, upper, fit = (line.get_ydata() for line in ax.lines)
    assert_allclose(fit, x - 0.125, atol=1e-12)
    assert_allclose(upper - lower, 0.25, atol=1e-12)
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("x", "target")


def test_errors_are_drawn_on_request(plot_alternation):
    X, y = noisy()
    model = ChebyshevRegressor().fit(X, y)
    ax = plot_alternation(model, X, y, over=np.arange(80), errors=True).ax_
    assert ax.get_ylabel() == "error"
    assert_allclose(np.abs(ax.lines[0].get_ydata()), model.max_error_)
    marks = np.concatenate([marks.get_offsets() for marks in ax.collections[2:]])
    assert_array_equal(np.sort(marks[:, 0]), model.alternation_)


@pytest.mark.parametrize("wrap", [sp.csr_array, lambda X: pd.DataFrame(X, columns=list("abcd"))])
def test_pictures_of_sparse_matrices_and_frames(plot_alternation, wrap):
    X, y = noisy()
    data = wrap(X)
    model = ChebyshevRegressor().fit(data, y)
    ax = plot_alternation(model, data, y, over=1).ax_
    assert ax.get_xlabel() == ("x1" if sp.issparse(data) else "b")
    assert_allclose(ax.collections[1].get_offsets()[:, 0], X[:, 1])
    assert plot_alternation(model, data, y).ax_.get_xlabel() == "predicted"


def test_pictures_of_what_does_not_fit_are_refused(plot_alternation):
    from trueline.plots import AlternationDisplay

    with pytest.raises(ValueError, match="equally long"):
        AlternationDisplay([1.0, 2.0], [1.0], [1.0], [], []).plot()
    with pytest.raises(ValueError, match="2 multipliers for 1 rows"):
        AlternationDisplay([1.0], [1.0], [1.0], [0], [0.5, -0.5]).plot()


def test_columns_that_are_dependent_by_rounding_alone_are_left_to_another_solver():
    """Two columns vary in the same row alone; far from zero, rounding hides that it is the same."""
    X = np.full((10, 3), 100.0)
    X[3, :2] = 99.64136405747857, 101.88076199354816
    X[8:, 2] = 100.57592479994625, 101.56369470570831
    y = np.array([5.083487705263073, 5.116759478118467, 5.131645470000315, 4.606221933454963,
                  4.9487197408549966, 5.109322820083746, 5.114304344460795, 5.036620383827622,
                  4.929691327910048, 4.926151074216946])  # fmt: skip
    # All but three rows are the same: no model errs less on them than half of their range.
    least = 0.5 * np.ptp(np.delete(y, [3, 8, 9]))
    # As many rows, and empty columns, as keep sparse data sparse.
    X, y = sp.csc_array(np.tile(np.hstack([X, np.zeros((10, 4))]), (1500, 1))), np.tile(y, 1500)
    model = ChebyshevRegressor().fit(X, y)
    assert "highs_maximum took over" in str(model.explain())
    assert model.verify(X, y)
    assert_allclose(model.certificate_.objective, least, rtol=1e-9)
