"""Linear classifiers of two classes on many columns: fitted together, the same as one by one."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn import config_context
from sklearn.linear_model import LogisticRegression as TheirLogisticRegression

from trueline import (
    LinearSVC,
    LogisticRegression,
    OneVsOneClassifier,
    OneVsRestClassifier,
    OutputCodeClassifier,
)
from trueline.estimators.multiclass import joint_fits
from trueline.solvers.newton.batched import few_columns, precondition, rows

SCHEMES = {
    "rest": OneVsRestClassifier,
    "one": OneVsOneClassifier,
    "sparse code": lambda base: OutputCodeClassifier(base, code="sparse", random_state=0),
}
BASES = [
    LogisticRegression(),
    LogisticRegression(fit_intercept=False, C=0.1),
    LogisticRegression(C=10.0, class_weight="balanced"),
    LinearSVC(),
    LinearSVC(fit_intercept=False, C=0.1, class_weight="balanced"),
]


def pictures(n=400, d=70, classes=4, seed=0):
    """Neighbouring columns are alike, as pixels are, and some have nothing in them."""
    random = np.random.default_rng(seed)
    y = random.integers(0, classes, n)
    smooth = np.exp(-0.5 * ((np.arange(d)[:, None] - np.arange(d)) / 4.0) ** 2)
    X = random.standard_normal((classes, d))[y] + 2.0 * random.standard_normal((n, d))
    X = np.maximum(X @ smooth / 3.0 + 0.5, 0.0)
    X[:, :3] = 0.0
    return X, np.array(["a", "b", "c", "d"])[y]


def one_by_one(monkeypatch):
    monkeypatch.setattr(joint_fits, "_is_suited", lambda *_: False)


def assert_same_parts(together, alone):
    assert len(together.estimators_) == len(alone.estimators_)
    for part, own in zip(together.estimators_, alone.estimators_, strict=True):
        one, other = part.certificate_, own.certificate_
        unsure = one.objective_rounding + other.objective_rounding + one.gap + other.gap
        assert abs(one.objective - other.objective) <= unsure
        assert_allclose(part.coef_, own.coef_, atol=2e-4 * np.abs(own.coef_).max())
        assert_array_equal(part.classes_, own.classes_)
        assert part.get_params() == own.get_params()
        assert set(vars(part)) == set(vars(own))


@pytest.mark.grid(1)
@pytest.mark.parametrize("base", BASES, ids=str)
@pytest.mark.parametrize("scheme", SCHEMES)
def test_parts_are_those_of_separate_fits_and_proven(monkeypatch, scheme, base):
    X, y = pictures()
    model = SCHEMES[scheme](base).fit(X, y)
    assert "one set" in model._shared
    assert {part.solver_ for part in model.estimators_} == {"newton_cg"}
    assert model.certificate_.relative_gap < 1e-6
    assert model.verify(X, y), model.verify(X, y)
    one_by_one(monkeypatch)
    alone = SCHEMES[scheme](base).fit(X, y)
    assert alone._shared == ""
    assert_same_parts(model, alone)
    assert_array_equal(model.predict(X), alone.predict(X))


@pytest.mark.parametrize("scheme", ["rest", "one"])
def test_probabilities_agree_with_scikit_learn(scheme):
    X, y = pictures()
    model = SCHEMES[scheme](LogisticRegression()).fit(X, y)
    for binary, part in zip(model._binaries(y), model.estimators_, strict=True):
        rows = np.arange(len(y)) if binary.rows is None else binary.rows
        theirs = TheirLogisticRegression(solver="newton-cholesky", tol=1e-10, max_iter=500)
        theirs.fit(X[rows], binary.labels)
        expected = theirs.predict_proba(X[rows])
        assert_allclose(part.predict_proba(X[rows]), expected, atol=1e-4)


@pytest.mark.parametrize("base", [BASES[0], BASES[3]], ids=str)
def test_smaller_tolerances_give_more_digits(base):
    X, y = pictures()
    exact = type(base)(tol=1e-6 if base is BASES[0] else 1e-8)
    for scheme in ("rest", "one"):
        model = SCHEMES[scheme](exact).fit(X, y)
        assert model.certificate_.relative_gap < 1e-9
        assert model.verify(X, y)


@pytest.mark.parametrize("base", [BASES[2], BASES[4]], ids=str)
def test_weights_count_rows(base):
    X, y = pictures()
    weights = np.random.default_rng(1).integers(1, 4, len(y)).astype(float)
    often = np.repeat(np.arange(len(y)), weights.astype(int))
    with config_context(enable_metadata_routing=True):
        own = type(base)(**base.get_params()).set_fit_request(sample_weight=True)
        model = OneVsOneClassifier(own).fit(X, y, sample_weight=weights)
        assert "one set" in model._shared
        assert model.verify(X, y, weights)
        repeated = OneVsOneClassifier(own).fit(X[often], y[often])
    for part, other in zip(model.estimators_, repeated.estimators_, strict=True):
        assert_allclose(part.coef_, other.coef_, atol=2e-4 * np.abs(other.coef_).max())


WAYS = {
    "diagonal preconditioner": (precondition, "_MOST_COLUMNS", 0),
    "single precision": (rows, "_MANY_NUMBERS", 0),
    "a Hessian for each problem": (few_columns, "_MOST_COLUMNS", 100),
}


@pytest.mark.parametrize("base", [BASES[0], BASES[3]], ids=str)
@pytest.mark.parametrize("way", WAYS)
def test_other_steps_change_nothing_but_the_way(monkeypatch, base, way):
    X, y = pictures(n=600, d=90)
    expected = OneVsRestClassifier(base).fit(X, y)
    monkeypatch.setattr(few_columns, "_LARGE_WORK", 0)
    monkeypatch.setattr(*WAYS[way])
    model = OneVsRestClassifier(base).fit(X, y)
    assert model.verify(X, y)
    assert_same_parts(model, expected)


def test_support_vectors_are_those_of_separate_fits(monkeypatch):
    X, y = pictures()
    model = OneVsOneClassifier(LinearSVC(tol=1e-8)).fit(X, y)
    one_by_one(monkeypatch)
    alone = OneVsOneClassifier(LinearSVC(tol=1e-8)).fit(X, y)
    for part, own in zip(model.estimators_, alone.estimators_, strict=True):
        assert_array_equal(part.support_, own.support_)
        assert_allclose(part.margin_, own.margin_, rtol=1e-5)


def test_columns_far_from_zero_and_other_orders_of_memory():
    X, y = pictures()
    X[:, 5] += 1e6
    model = OneVsOneClassifier(LogisticRegression()).fit(np.asfortranarray(X), y)
    assert model.verify(X, y)


def test_the_proof_does_not_hold_for_other_rows():
    X, y = pictures()
    model = OneVsRestClassifier(LogisticRegression()).fit(X, y)
    moved = X.copy()
    moved[:100] += 0.5
    assert not model.verify(moved, y)
    assert "one set" in str(model.explain())
    said = str(model.estimators_[0].explain())
    assert "conjugate gradient steps, together with 3 other problems" in said


@pytest.mark.parametrize("base", [LogisticRegression(solver="newton"), LinearSVC(loss="hinge")])
def test_what_is_asked_for_by_name_is_fitted_one_by_one(base):
    X, y = pictures()
    model = OneVsOneClassifier(base).fit(X, y)
    assert model._shared == ""


def test_missing_numbers_are_told():
    X, y = pictures()
    X[3, 9] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        OneVsOneClassifier(LogisticRegression()).fit(X, y)
