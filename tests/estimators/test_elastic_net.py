"""The lasso and the elastic net: scikit-learn's answers, proven, with weights and bounds."""

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn.linear_model
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.optimize import lsq_linear, minimize

from trueline import ElasticNet, Lasso, LassoCV, LinearRegression
from trueline.design import as_design
from trueline.losses import Squared
from trueline.penalties import L1
from trueline.problem_set import Member, ProblemSet
from trueline.selection.cross_validation import squared_errors
from trueline.solution import PathSolution

SHAPES = {"tall": (80, 12), "wide": (30, 90)}
FORMS = {
    "rows": np.ascontiguousarray,
    "columns": np.asfortranarray,
    "csr": sp.csr_array,
    "csc": sp.csc_matrix,
}


def data(shape="tall", seed=0, density=1.0):
    n, d = SHAPES[shape]
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) + rng.standard_normal(d)
    X[rng.random((n, d)) > density] = 0.0
    w = np.zeros(d)
    w[:5] = [3.0, -2.0, 1.0, 0.5, -0.25]
    return X, X @ w + 1.5 + 0.3 * rng.standard_normal(n), rng.integers(0, 3, n).astype(float)


def reference(model, X, y, weights=None):
    """scikit-learn's answer, as tight as it gets."""
    names = ("alpha", "fit_intercept", "positive")
    parameters = {name: getattr(model, name) for name in names}
    twin = sklearn.linear_model.ElasticNet(
        l1_ratio=model.l1_ratio, tol=1e-14, max_iter=1_000_000, **parameters
    )
    return twin.fit(X, y, sample_weight=weights)


def assert_proven(model, X, y, weights=None, share=1e-6):
    certificate = model.certificate_
    assert certificate.gap <= share * max(certificate.objective, 1e-12)
    verification = model.verify(X, y, weights)
    assert verification, str(verification)


@pytest.mark.grid(2)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(
    "model",
    [
        Lasso(0.05),
        Lasso(0.3, positive=True),
        Lasso(0.1, fit_intercept=False),
        ElasticNet(0.05, l1_ratio=0.5),
        ElasticNet(0.01, l1_ratio=0.9, positive=True),
    ],
    ids=repr,
)
def test_the_answer_is_that_of_scikit_learn(shape, form, weighted, model):
    X, y, s = data(shape, density=0.6)
    weights = s if weighted else None
    model.fit(FORMS[form](X), y, weights)
    twin = reference(model, X, y, weights)
    np.testing.assert_allclose(model.coef_, twin.coef_, atol=2e-7)
    np.testing.assert_allclose(model.intercept_, twin.intercept_, atol=1e-6)
    assert_proven(model, FORMS[form](X), y, weights)


@pytest.mark.parametrize("shape", SHAPES)
def test_several_targets_are_fitted_one_by_one(shape):
    X, y, _ = data(shape)
    Y = np.column_stack([y, -2 * y + 1, np.arange(len(y)) % 3])
    model = Lasso(0.1).fit(X, Y)
    for t in range(3):
        np.testing.assert_allclose(model.coef_[t], Lasso(0.1).fit(X, Y[:, t]).coef_, atol=1e-12)
    assert model.coef_.shape == (3, X.shape[1])
    assert len(model.n_iter_) == 3
    assert_proven(model, X, Y)


@pytest.mark.parametrize("shape", SHAPES)
def test_single_precision_in_and_out(shape):
    X, y, _ = data(shape)
    X, y = X.astype(np.float32), y.astype(np.float32)
    model = Lasso(0.1).fit(X, y)
    assert model.coef_.dtype == np.float32
    double = Lasso(0.1).fit(X.astype(float), y.astype(float))
    np.testing.assert_allclose(model.coef_, double.coef_, atol=1e-5)
    assert_proven(model, X, y, share=1e-4)


@pytest.mark.parametrize("shape", SHAPES)
def test_a_weight_on_a_feature_is_a_change_of_its_unit(shape):
    X, y, _ = data(shape)
    v = np.random.default_rng(1).uniform(0.5, 2.0, X.shape[1])
    weighted = Lasso(0.1, feature_weights=v).fit(X, y)
    rescaled = Lasso(0.1).fit(X / v, y)
    np.testing.assert_allclose(weighted.coef_, rescaled.coef_ / v, atol=1e-10)
    assert_proven(weighted, X, y)


@pytest.mark.parametrize("shape", SHAPES)
def test_a_weight_of_zero_leaves_a_feature_unpenalised(shape):
    X, y, _ = data(shape)
    v = np.ones(X.shape[1])
    v[[3, 7]] = 0.0
    model = Lasso(0.2, feature_weights=v).fit(X, y)
    # The gradient vanishes there, and with every other feature too strong to enter only they fit.
    residual = y - model.predict(X)
    assert np.abs(X[:, [3, 7]].T @ residual).max() < 1e-9 * len(y)
    assert_proven(model, X, y)
    alone = Lasso(1e6, feature_weights=v).fit(X, y)
    np.testing.assert_allclose(alone.coef_[[3, 7]], LinearRegression().fit(X[:, [3, 7]], y).coef_)
    assert np.count_nonzero(alone.coef_) == 2


@pytest.mark.parametrize("shape", SHAPES)
def test_bounds_hold_and_the_answer_is_optimal_between_them(shape):
    X, y, _ = data(shape)
    d = X.shape[1]
    lower, upper = np.full(d, -0.4), np.full(d, np.inf)
    upper[0] = 1.0
    model = Lasso(0.05, bounds=(lower, upper)).fit(X, y)
    assert (model.coef_ >= lower).all()
    assert (model.coef_ <= upper).all()
    assert_proven(model, X, y)
    # Positive and negative parts make a smooth problem of it.
    Xc, yc = X - X.mean(axis=0), y - y.mean()

    def smooth(z):
        r = yc - Xc @ (z[:d] - z[d:])
        g = -(Xc.T @ r) / len(y)
        return 0.5 * r @ r / len(y) + 0.05 * z.sum(), np.concatenate([g + 0.05, 0.05 - g])

    box = [(0, u) for u in upper] + [(0, -low) for low in lower]
    found = minimize(smooth, np.zeros(2 * d), jac=True, bounds=box, method="L-BFGS-B", tol=1e-15)
    mine = smooth(np.concatenate([np.maximum(model.coef_, 0), np.maximum(-model.coef_, 0)]))[0]
    assert mine <= found.fun * (1 + 1e-9)


def test_bounds_that_exclude_zero():
    X, y, _ = data()
    model = Lasso(1e-9, bounds=(0.1, 2.0)).fit(X, y)
    Xc, yc = X - X.mean(axis=0), y - y.mean()
    found = lsq_linear(Xc, yc, bounds=(0.1, 2.0), tol=1e-14)
    np.testing.assert_allclose(model.coef_, found.x, atol=1e-5)
    assert model.verify(X, y)


def test_a_duplicated_column_leaves_the_first_one_in():
    X, y, _ = data()
    twice = np.column_stack([X, X[:, 0]])
    model = Lasso(0.05).fit(twice, y)
    once = Lasso(0.05).fit(X, y)
    np.testing.assert_allclose(model.coef_[:-1], once.coef_, atol=1e-9)
    assert model.coef_[-1] == 0.0
    assert_proven(model, twice, y)


@pytest.mark.parametrize("shape", SHAPES)
def test_trivial_data_have_trivial_answers(shape):
    X, y, _ = data(shape)
    assert not Lasso(0.1).fit(X, np.zeros(len(X))).coef_.any()
    constant = Lasso(0.1).fit(X, np.full(len(X), 3.0))
    assert not constant.coef_.any()
    assert constant.intercept_ == pytest.approx(3.0)
    flat = Lasso(0.1).fit(np.column_stack([X, np.ones(len(X))]), y)
    assert flat.coef_[-1] == 0.0
    huge = Lasso(1e6).fit(X, y)
    assert not huge.coef_.any()
    assert_proven(huge, X, y)


@pytest.mark.parametrize("shape", SHAPES)
def test_weight_two_is_a_row_twice_and_weight_zero_is_no_row(shape):
    X, y, s = data(shape)
    rows = np.repeat(np.arange(len(y)), s.astype(int))
    np.testing.assert_allclose(
        ElasticNet(0.1).fit(X, y, s).coef_, ElasticNet(0.1).fit(X[rows], y[rows]).coef_, atol=1e-9
    )


def test_a_warm_start_begins_where_the_last_fit_ended():
    X, y, _ = data("wide")
    model = Lasso(0.05, warm_start=True).fit(X, y)
    before, first = model.coef_.copy(), model.n_iter_
    model.fit(X, y)
    assert model.n_iter_ <= first
    np.testing.assert_allclose(model.coef_, before, atol=1e-9)
    assert_proven(model, X, y)


def test_one_weight_for_all_rows_changes_no_gap():
    X, y, _ = data()
    gaps = [ElasticNet(alpha=0.1).fit(X, y, sample_weight=s).dual_gap_ for s in (None, 2.0)]
    assert gaps[0] == gaps[1] > 0


def test_tampering_is_found_out():
    X, y, _ = data("wide")
    model = Lasso(0.05).fit(X, y)
    model.coef_ = model.coef_.copy()
    model.coef_[0] += 0.01
    assert not model.verify(X, y)


@pytest.mark.parametrize("wrong", [-1.0, float("nan"), "much", None])
def test_a_strength_out_of_range_is_refused(wrong):
    X, y, _ = data()
    with pytest.raises(ValueError, match="alpha"):
        Lasso(wrong).fit(X, y)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"bounds": (1.0, 0.0)}, "no room"),
        ({"bounds": (np.nan, 1.0)}, "NaN"),
        ({"bounds": (0.0, 1.0, 2.0)}, "pair"),
        ({"bounds": (np.zeros(3), 1.0)}, "shape"),
        ({"feature_weights": np.ones(3)}, "feature_weights"),
        ({"feature_weights": -np.ones(12)}, "feature_weights"),
    ],
)
def test_constraints_that_make_no_sense_are_refused(parameters, message):
    X, y, _ = data()
    with pytest.raises(ValueError, match=message):
        Lasso(0.1, **parameters).fit(X, y)


def test_rows_of_no_weight_at_all_are_refused():
    X, y, _ = data()
    with pytest.raises(ValueError, match="zero"):
        Lasso().fit(X, y, np.zeros(len(y)))


@settings(max_examples=60, deadline=None)
@given(
    n=st.integers(2, 25),
    d=st.integers(1, 40),
    seed=st.integers(0, 10**6),
    alpha=st.floats(1e-4, 3.0),
    l1_ratio=st.sampled_from([0.05, 0.5, 1.0]),
    positive=st.booleans(),
    intercept=st.booleans(),
    is_sparse=st.booleans(),
)
def test_every_fit_is_proven(n, d, seed, alpha, l1_ratio, positive, intercept, is_sparse):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) * 10.0 ** rng.integers(-2, 3, d)
    X[:, rng.random(d) < 0.2] = X[:, [0]]
    X[rng.random((n, d)) < 0.3] = 0.0
    y = X[:, 0] + rng.standard_normal(n)
    s = rng.integers(0, 4, n).astype(float)
    s[0] = 1.0
    X = sp.csc_array(X) if is_sparse else X
    options = {"l1_ratio": l1_ratio, "positive": positive, "fit_intercept": intercept}
    model = ElasticNet(alpha, **options).fit(X, y, s)
    assert model.verify(X, y, s), str(model.verify(X, y, s))
    scale = 0.5 * s @ (y - intercept * np.average(y, weights=s)) ** 2
    assert model.certificate_.gap <= 1e-5 * scale + 1e-9


@pytest.mark.parametrize("l1_ratio", [0.3, 0.7, 1.0])
def test_hundreds_of_free_coefficients_have_all_their_digits(l1_ratio):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((600, 400))
    y = X @ (rng.standard_normal(400) * (rng.random(400) < 0.6)) + rng.standard_normal(600)
    w = ElasticNet(alpha=0.05, l1_ratio=l1_ratio).fit(X, y).coef_
    assert np.count_nonzero(w) > 128
    V = X - X.mean(axis=0)
    pull = V.T @ (y - y.mean() - V @ w) / 600 - 0.05 * (1 - l1_ratio) * w
    np.testing.assert_allclose(pull[w != 0], 0.05 * l1_ratio * np.sign(w[w != 0]), atol=1e-12)
    assert (np.abs(pull) <= 0.05 * l1_ratio + 1e-12).all()


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
@pytest.mark.parametrize("shape", [(40, 100), (200, 5)], ids=["wide", "tall"])
def test_a_search_in_which_every_coefficient_is_zero(form, shape):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=shape), rng.normal(size=shape[0])
    ours = LassoCV(alphas=[1e6]).fit(form(X), y)
    theirs = sklearn.linear_model.LassoCV(alphas=[1e6]).fit(X, y)
    assert not ours.coef_.any()
    assert_allclose(ours.mse_path_, theirs.mse_path_)


def test_the_errors_of_a_path_without_coefficients():
    """Not even a column is read: the intercepts alone predict."""
    rng = np.random.default_rng(1)
    design, y = as_design(rng.normal(size=(12, 30))), rng.normal(size=(12, 1))
    problems = ProblemSet(design, Squared(), (Member(y, L1(1e6)),))
    path = PathSolution([0], np.zeros((30, 1, 1)), np.array([[0.5]]), np.zeros(1), 1.0, "any", [0])
    errors = squared_errors(problems, path, np.arange(6), None)
    assert_allclose(errors, [np.mean((y[:6] - 0.5) ** 2)])
