"""Standard errors of quantile regression agree with statsmodels, and cover as often as they say."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose
from scipy import stats

from trueline import LeastAbsoluteDeviations, QuantileRegressor
from trueline.design import as_design
from trueline.inference import BANDWIDTHS, KERNELS, quantile_covariance

THEIR_KERNELS = {
    "epa": "epanechnikov",
    "cos": "cosine",
    "gau": "gaussian",
    "par": "parzen",
    "biw": "biweight",
}
THEIR_BANDWIDTHS = {
    "hsheather": "hall_sheather",
    "bofinger": "bofinger",
    "chamberlain": "chamberlain",
}


def sample(n=200, seed=0):
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, 3)) * [1.0, 100.0, 0.01] + [5.0, 0.0, 3.0]
    noise = random.standard_t(3, size=n) * (1 + 0.5 * np.abs(X[:, 0] - 5))
    return X, X @ [1.0, 0.02, 300.0] + 1 + noise


@pytest.mark.grid(2)
@pytest.mark.parametrize("vcov", ["iid", "robust"])
@pytest.mark.parametrize("kernel", THEIR_KERNELS)
@pytest.mark.parametrize("bandwidth", THEIR_BANDWIDTHS)
@pytest.mark.parametrize("q", [0.25, 0.5, 0.9])
def test_covariances_are_those_of_statsmodels(vcov, kernel, bandwidth, q, monkeypatch):
    """From the same residuals."""
    regression = pytest.importorskip("statsmodels.regression.quantile_regression")
    if bandwidth == "bofinger" and q != 0.5:
        # They take the normal density at 2 z(q) there, not at z(q): see the test of bandwidths.
        monkeypatch.setattr(regression, "bofinger", BANDWIDTHS["bofinger"])
    X, y = sample()
    constant = np.column_stack([np.ones(len(y)), X])
    theirs = regression.QuantReg(y, constant).fit(
        q=q, vcov=vcov, kernel=kernel, bandwidth=bandwidth
    )
    ours = quantile_covariance(
        as_design(X),
        y,
        np.asarray(theirs.resid),
        q,
        kind=vcov,
        kernel=THEIR_KERNELS[kernel],
        bandwidth=THEIR_BANDWIDTHS[bandwidth],
    )
    size = np.sqrt(np.diag(ours.covariance))
    assert_allclose(
        ours.covariance, theirs.cov_params(), rtol=1e-8, atol=1e-8 * np.outer(size, size).min()
    )
    assert ours.bandwidth == pytest.approx(theirs.bandwidth, rel=1e-10)
    assert ours.sparsity == pytest.approx(theirs.sparsity, rel=1e-10)


@pytest.mark.parametrize("q", [0.25, 0.5])
def test_tables_are_those_of_statsmodels(q):
    """Their coefficients are iterated to six digits, and the tables agree to what that leaves."""
    regression = pytest.importorskip("statsmodels.regression.quantile_regression")
    X, y = sample()
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    theirs = regression.QuantReg(y, np.column_stack([np.ones(len(y)), X])).fit(q=q, vcov="iid")
    table = QuantileRegressor(quantile=q, alpha=0).fit(X, y).standard_errors(X, y, kind="iid")
    assert_allclose(table.coefficients, theirs.params, atol=1e-4)
    assert_allclose(table.standard_errors, theirs.bse, rtol=1e-4)
    assert_allclose(table.t_values, theirs.tvalues, rtol=1e-3, atol=1e-3)
    assert_allclose(table.p_values, theirs.pvalues, atol=1e-4)
    assert_allclose(table.confidence_intervals(0.9), theirs.conf_int(0.1), atol=1e-3)
    assert table.degrees_of_freedom == theirs.df_resid


@pytest.mark.parametrize("q", [0.1, 0.5, 0.7])
def test_bofingers_bandwidth_minimises_the_mean_squared_error(q):
    """a^5 = 4.5 s(q)^2 / (n s''(q)^2) with s = 1 / density at the quantile, for normal errors."""

    def sparsity(p):
        return 1 / stats.norm.pdf(stats.norm.ppf(p))

    step = 1e-4
    second = (sparsity(q + step) - 2 * sparsity(q) + sparsity(q - step)) / step**2
    expected = (4.5 * sparsity(q) ** 2 / (500 * second**2)) ** 0.2
    assert BANDWIDTHS["bofinger"](500, q) == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("kernel", KERNELS)
def test_kernels_are_densities(kernel):
    u = np.linspace(-9, 9, 180_001)
    values = KERNELS[kernel](u)
    assert values.min() >= 0
    assert np.trapezoid(values, u) == pytest.approx(1.0, abs=1e-6)
    assert_allclose(values, values[::-1], atol=1e-12)


def test_each_quantile_has_errors_of_its_own():
    X, y = sample()
    several = QuantileRegressor(quantile=[0.3, 0.6], alpha=0).fit(X, y).standard_errors(X, y)
    assert several.standard_errors.shape == (2, 4)
    assert several.confidence_intervals().shape == (2, 4, 2)
    for j, q in enumerate([0.3, 0.6]):
        alone = QuantileRegressor(quantile=q, alpha=0).fit(X, y).standard_errors(X, y)
        assert_allclose(several.covariance[j], alone.covariance, rtol=1e-9)
    text = str(several)
    assert "quantile 0.3" in text
    assert "intercept" in text
    assert len(several.rows()) == 8


@pytest.mark.parametrize("kind", ["iid", "robust", "kernel"])
def test_a_weight_counts_a_row_several_times(kind):
    X, y = sample(80)
    weights = np.random.default_rng(0).integers(0, 4, size=80)
    model = LeastAbsoluteDeviations().fit(X, y, weights)
    weighted = model.standard_errors(X, y, kind=kind, sample_weight=weights)
    repeated = model.standard_errors(
        np.repeat(X, weights, axis=0), np.repeat(y, weights), kind=kind
    )
    assert_allclose(weighted.covariance, repeated.covariance, rtol=1e-9)
    assert weighted.degrees_of_freedom == repeated.degrees_of_freedom


def test_sparse_data_and_no_intercept():
    X, y = sample()
    model = QuantileRegressor(quantile=0.5, alpha=0, fit_intercept=False).fit(X, y)
    dense, sparse = model.standard_errors(X, y), model.standard_errors(sp.csr_array(X), y)
    assert dense.names == ("x0", "x1", "x2")
    assert_allclose(dense.covariance, sparse.covariance, rtol=1e-9)


def test_units_do_not_matter():
    """A millisecond timestamp beside a small fraction."""
    X, y = sample()
    model = QuantileRegressor(quantile=0.5, alpha=0).fit(X, y)
    moved = X * [1e9, 1e-6, 1.0] + [1.7e12, 0.0, 0.0]
    again = QuantileRegressor(quantile=0.5, alpha=0).fit(moved, y)
    one, other = model.standard_errors(X, y), again.standard_errors(moved, y)
    assert_allclose(one.t_values[1:], other.t_values[1:], rtol=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["iid", "robust", "kernel"])
def test_intervals_cover_the_truth_as_often_as_they_say(kind):
    random = np.random.default_rng(3)
    hits, trials = 0, 300
    for _ in range(trials):
        X = random.uniform(0, 1, size=(400, 1))
        y = 1 + 2 * X[:, 0] + random.normal(size=400)
        table = LeastAbsoluteDeviations().fit(X, y).standard_errors(X, y, kind=kind)
        lower, upper = table.confidence_intervals(0.9)[1]
        hits += lower <= 2 <= upper
    assert 0.84 <= hits / trials <= 0.96


@pytest.mark.slow
def test_only_a_density_that_varies_is_right_where_the_spread_depends_on_x():
    random = np.random.default_rng(4)
    hits = {"iid": 0, "kernel": 0}
    trials = 300
    for _ in range(trials):
        x = random.exponential(size=800)
        y = x + x**2 * random.normal(size=800)
        model = LeastAbsoluteDeviations().fit(x[:, None], y)
        for kind in hits:
            lower, upper = model.standard_errors(x[:, None], y, kind=kind).confidence_intervals(
                0.9
            )[1]
            hits[kind] += lower <= 1 <= upper
    assert hits["iid"] / trials < 0.8 < 0.84 < hits["kernel"] / trials


# --- what is refused ----------------------------------------------------------------------------


def test_penalised_fits_have_none():
    X, y = sample()
    with pytest.raises(ValueError, match="without a penalty.*alpha=0"):
        QuantileRegressor(quantile=0.5, alpha=0.1).fit(X, y).standard_errors(X, y)


@pytest.mark.parametrize("name", ["kind", "kernel", "bandwidth"])
def test_unknown_names_are_refused_with_those_that_exist(name):
    X, y = sample()
    with pytest.raises(ValueError, match=f"{name}='other' is not one of"):
        LeastAbsoluteDeviations().fit(X, y).standard_errors(X, y, **{name: "other"})


@pytest.mark.parametrize("level", [0.0, 1.0, 95])
def test_levels_are_probabilities(level):
    X, y = sample()
    with pytest.raises(ValueError, match="level"):
        LeastAbsoluteDeviations().fit(X, y).standard_errors(X, y).confidence_intervals(level)


def test_dependent_columns_have_none():
    X, y = sample()
    for more in (X[:, 0], X[:, 0] + X[:, 1], np.ones(len(y))):
        wide = np.column_stack([X, more])
        with pytest.raises(ValueError, match="linearly dependent"):
            LeastAbsoluteDeviations().fit(wide, y).standard_errors(wide, y)


def test_perfect_fits_have_none():
    X, y = sample()
    y = X @ [1.0, 2.0, 3.0]
    with pytest.raises(ValueError, match="no density"):
        LeastAbsoluteDeviations().fit(X, y).standard_errors(X, y)


def test_too_few_rows_have_none():
    X, y = sample(4)
    with pytest.raises(ValueError, match="more rows than coefficients"):
        LeastAbsoluteDeviations().fit(X, y).standard_errors(X, y)


def test_quantiles_too_near_to_the_end_have_none():
    X, y = sample()
    model = QuantileRegressor(quantile=0.001, alpha=0).fit(X, y)
    with pytest.raises(ValueError, match="need more rows"):
        model.standard_errors(X, y)
