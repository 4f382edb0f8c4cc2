"""Linear classifiers that multiclass schemes fit together: the same as fitted one by one."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import expit
from sklearn import config_context
from sklearn.exceptions import ConvergenceWarning

from trueline import (
    LinearSVC,
    LogisticRegression,
    OneVsOneClassifier,
    OneVsRestClassifier,
    OutputCodeClassifier,
)
from trueline.estimators.multiclass import joint_fits
from trueline.solvers.newton.batched import few_columns

SCHEMES = [
    OneVsRestClassifier,
    OneVsOneClassifier,
    lambda base: OutputCodeClassifier(base, code="exhaustive"),
    lambda base: OutputCodeClassifier(base, code="sparse", random_state=0),
]
BASES = [
    LogisticRegression(tol=1e-6),
    LogisticRegression(tol=1e-6, fit_intercept=False, C=0.1),
    LogisticRegression(tol=1e-6, C=100.0, class_weight="balanced"),
    LogisticRegression(tol=1e-6, class_weight={-1: 1.5, 0: 3.0, 1: 0.5}),
    LinearSVC(),
    LinearSVC(fit_intercept=False, C=0.1, class_weight="balanced"),
    LinearSVC(intercept_scaling=None, C=0.5),
    LinearSVC(intercept_scaling=3.0),
]


@pytest.fixture(autouse=True, params=[10**9, 0], ids=["conjugate gradients", "compiled"])
def _steps(request, monkeypatch):
    """Compiled steps are for large work; here both take the same problems."""
    monkeypatch.setattr(few_columns, "_LARGE_WORK", request.param)


def clouds(n=300, d=5, classes=4, seed=0):
    random = np.random.default_rng(seed)
    y = random.integers(0, classes, n)
    X = 1.5 * random.standard_normal((classes, d))[y] + random.standard_normal((n, d))
    return X * np.logspace(-1, 1, d) + 2.0, np.array(["a", "b", "c", "d", "e", "f"])[y]


def one_by_one(monkeypatch):
    """State no set of problems."""
    monkeypatch.setattr(joint_fits, "_is_suited", lambda *_: False)


def textbook(base, X, y, s):
    """Newton's method with steps that are halved until the objective falls; y = -1 or 1."""
    A = np.column_stack([X, np.ones(len(y))]) if base.fit_intercept else X
    quad = np.full(A.shape[1], 1.0 / base.C)
    is_logistic = isinstance(base, LogisticRegression)
    scaling = None if is_logistic else base.intercept_scaling
    quad[X.shape[1] :] *= 0.0 if scaling is None else 1.0 / scaling**2

    def value(v):
        m = y * (A @ v)
        losses = np.logaddexp(0.0, -m) if is_logistic else np.maximum(0.0, 1.0 - m) ** 2
        return s @ losses + 0.5 * quad @ v**2

    v = np.zeros(A.shape[1])
    for _ in range(40):
        m = y * (A @ v)
        p = expit(-m)
        short = np.maximum(0.0, 1.0 - m)
        u, h = (-y * p, p * (1 - p)) if is_logistic else (-2 * y * short, 2.0 * (short > 0))
        step = np.linalg.solve((A.T * (s * h)) @ A + np.diag(quad), A.T @ (s * u) + quad * v)
        t = 1.0
        while value(v - t * step) > value(v) + 1e-9 * abs(value(v)):
            t /= 2
        v = v - t * step
    return v[: X.shape[1]], v[X.shape[1] :].sum()


def assert_optimal(model, X, y, weights=None):
    """Coefficients to six digits, and those of losses with kinks, whose last step is exact."""
    for binary, part in zip(model._binaries(y), model.estimators_):
        rows = np.arange(len(y)) if binary.rows is None else binary.rows
        s = np.ones(len(rows)) if weights is None else weights[rows]
        codes = (binary.labels > 0).astype(int)
        s = part._with_class_weights(part.classes_, codes, s)
        w, b = textbook(part, X[rows], 2.0 * codes - 1.0, s)
        assert_allclose(part.coef_[0], w, rtol=1e-6, atol=1e-6 * np.abs(w).max())
        assert_allclose(part.intercept_[0], b, rtol=1e-6, atol=1e-6 * (1 + np.abs(w).max()))


def assert_same_parts(ours, alone):
    assert len(ours.estimators_) == len(alone.estimators_)
    for part, own in zip(ours.estimators_, alone.estimators_):
        one, other = part.certificate_, own.certificate_
        unsure = one.objective_rounding + other.objective_rounding + one.gap + other.gap
        assert abs(one.objective - other.objective) <= unsure
        assert_allclose(part.coef_, own.coef_, atol=1e-4 * np.abs(own.coef_).max())
        assert_array_equal(part.classes_, own.classes_)
        assert part.coef_.shape == own.coef_.shape
        assert set(vars(part)) == set(vars(own))
        assert part.get_params() == own.get_params()


@pytest.mark.grid(1)
@pytest.mark.parametrize("base", BASES, ids=str)
@pytest.mark.parametrize("scheme", SCHEMES, ids=["rest", "one", "code", "sparse code"])
def test_parts_are_optimal_and_proven(scheme, base):
    X, y = clouds()
    model = scheme(base).fit(X, y)
    assert "one set" in model._shared
    assert_optimal(model, X, y)
    assert model.certificate_.relative_gap < 1e-8
    assert model.verify(X, y), model.verify(X, y)


@pytest.mark.parametrize("base", BASES[::4], ids=str)
@pytest.mark.parametrize("scheme", SCHEMES[:2], ids=["rest", "one"])
def test_parts_are_those_of_separate_fits(monkeypatch, scheme, base):
    X, y = clouds()
    together = scheme(base).fit(X, y)
    one_by_one(monkeypatch)
    alone = scheme(base).fit(X, y)
    assert_same_parts(together, alone)
    assert_array_equal(together.predict(X), alone.predict(X))
    for part, own in zip(together.estimators_, alone.estimators_):
        if isinstance(base, LinearSVC):
            assert_array_equal(part.support_, own.support_)
            assert_allclose(part.margin_, own.margin_, rtol=1e-7)


@pytest.mark.parametrize("scheme", SCHEMES[:2], ids=["rest", "one"])
def test_parts_explain_themselves(scheme):
    X, y = clouds()
    model = scheme(LogisticRegression()).fit(X, y)
    moved = X.copy()
    moved[:100] += 0.5
    assert not model.verify(moved, y)
    assert "one set" in str(model.explain())
    part = model.estimators_[0]
    assert part.solver_ == "newton_cg"
    assert "steps, together with" in str(part.explain())
    assert part.explain().certificate.gap == part.certificate_.gap


@pytest.mark.parametrize("scheme", SCHEMES[:2], ids=["rest", "one"])
@pytest.mark.parametrize("base", BASES[2::2], ids=str)
def test_weights_count_rows(monkeypatch, scheme, base):
    X, y = clouds()
    weights = np.random.default_rng(1).integers(1, 4, len(y)).astype(float)
    with config_context(enable_metadata_routing=True):
        base = type(base)(**base.get_params()).set_fit_request(sample_weight=True)
        model = scheme(base).fit(X, y, sample_weight=weights)
        assert "one set" in model._shared
        assert model.verify(X, y, weights)
        assert_optimal(model, X, y, weights)
        with monkeypatch.context() as patch:
            one_by_one(patch)
            assert_same_parts(model, scheme(base).fit(X, y, sample_weight=weights))
    often = np.repeat(np.arange(len(y)), weights.astype(int))
    repeated = scheme(base).fit(X[often], y[often])
    for part, own in zip(model.estimators_, repeated.estimators_):
        assert_allclose(part.coef_, own.coef_, rtol=1e-8, atol=1e-8)


def test_columns_of_zeros_and_other_orders_of_memory(monkeypatch):
    X, y = clouds()
    X[:, 2] = 0.0
    base = LogisticRegression()
    model = OneVsOneClassifier(base).fit(np.asfortranarray(X), y)
    assert "one set" in model._shared
    assert all(part.coef_[0, 2] == 0 for part in model.estimators_)
    one_by_one(monkeypatch)
    assert_same_parts(model, OneVsOneClassifier(base).fit(X, y))


# Columns 1e9 away from zero leave a gap that the fits say.
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("shift", [1e3, 1e9])
def test_columns_may_be_far_from_zero(monkeypatch, shift):
    X, y = clouds()
    X[:, 1] = X[:, 1] + shift
    model = OneVsOneClassifier(LogisticRegression()).fit(X, y)
    assert model.verify(X, y)
    one_by_one(monkeypatch)
    alone = OneVsOneClassifier(LogisticRegression()).fit(X, y)
    for part, own in zip(model.estimators_, alone.estimators_):
        assert_allclose(part.coef_, own.coef_, atol=1e-5 * np.abs(own.coef_).max())


@pytest.mark.parametrize("scheme", SCHEMES[:2], ids=["rest", "one"])
def test_separated_classes_have_a_finite_answer(scheme):
    X, y = clouds(n=40, seed=3)
    X = X + 100.0 * (np.unique(y, return_inverse=True)[1][:, None] == np.arange(5))
    model = scheme(LogisticRegression(C=1e4)).fit(X, y)
    assert model.score(X, y) == 1.0
    assert model.verify(X, y)


@pytest.mark.parametrize(
    "base",
    [
        LogisticRegression(l1_ratio=1.0),
        LogisticRegression(solver="newton"),
        LogisticRegression(trace=True),
        LinearSVC(loss="hinge"),
    ],
    ids=str,
)
def test_what_is_another_problem_is_fitted_one_by_one(base):
    X, y = clouds()
    model = OneVsOneClassifier(base).fit(X, y)
    assert model._shared == ""
    assert model.verify(X, y)


@pytest.mark.parametrize("X_of", [sp.csr_matrix, lambda X: X.astype(np.float32)])
def test_other_kinds_of_matrices_give_the_same(X_of):
    X, y = clouds()
    given = X_of(X)
    model = OneVsRestClassifier(BASES[0]).fit(given, y)
    assert model.verify(given, y)
    dense = OneVsRestClassifier(BASES[0]).fit(X, y)
    for part, own in zip(model.estimators_, dense.estimators_):
        assert part.coef_.dtype == given.dtype
        assert_allclose(part.coef_, own.coef_, rtol=1e-4, atol=1e-4)


def test_rows_without_weight_and_missing_numbers():
    X, y = clouds()
    with config_context(enable_metadata_routing=True):
        base = LogisticRegression().set_fit_request(sample_weight=True)
        weights = np.ones(len(y))
        weights[:20] = 0.0
        model = OneVsOneClassifier(base).fit(X, y, sample_weight=weights)
        assert model.verify(X, y, weights)
    X[3, 1] = np.nan
    for scheme in SCHEMES[:2]:
        with pytest.raises(ValueError, match="NaN"):
            scheme(LogisticRegression()).fit(X, y)


def test_too_few_steps_are_reported():
    X, y = clouds()
    with pytest.warns(ConvergenceWarning):
        OneVsOneClassifier(LogisticRegression(max_iter=1)).fit(X, y)
    with pytest.raises(ValueError, match="C"):
        OneVsOneClassifier(LogisticRegression(C=-1.0)).fit(X, y)
