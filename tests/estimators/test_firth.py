"""Firth's correction: the stationary point of the penalised likelihood, finite, and said so."""

import warnings
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import root
from sklearn.exceptions import ConvergenceWarning

from trueline import LogisticRegression, OneVsRestClassifier


def quasi_separated(n=79, seed=0):
    """A rare condition that is only ever seen with the outcome, beside two ordinary columns."""
    rng = np.random.default_rng(seed)
    X = np.column_stack([rng.random(n) < 0.16, rng.normal(17, 10, n), rng.normal(1.6, 0.6, n)])
    y = -0.05 * X[:, 1] - 2.5 * X[:, 2] + 4 + rng.logistic(size=n) > 0
    return X, (y | (X[:, 0] > 0)).astype(int), rng.integers(1, 4, size=n).astype(float)


def reference(X, y, weights, fit_intercept):
    """The root of Firth's modified score, in the form that his paper writes."""
    A = np.hstack([X, np.ones((len(X), 1))]) if fit_intercept else X

    def score(v):
        p = 1 / (1 + np.exp(-A @ v))
        W = weights * p * (1 - p)
        hat = W * np.einsum("ij,jk,ik->i", A, np.linalg.inv((A.T * W) @ A), A)
        return A.T @ (weights * (y - p) + hat * (0.5 - p))

    found = root(score, np.zeros(A.shape[1]), method="hybr", tol=1e-14)
    assert np.abs(score(found.x)).max() < 1e-9
    return (found.x[:-1], found.x[-1]) if fit_intercept else (found.x, 0.0)


@pytest.mark.parametrize("form", ["dense", "sparse"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_the_modified_score_vanishes(fit_intercept, weighted, form):
    X, y, weights = quasi_separated()
    given = weights if weighted else None
    rows = sp.csr_array(X) if form == "sparse" else X
    model = LogisticRegression(penalty="firth", fit_intercept=fit_intercept)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.fit(rows, y, sample_weight=given)
    coef, level = reference(X, y, weights if weighted else np.ones(len(y)), fit_intercept)
    np.testing.assert_allclose(model.coef_[0], coef, rtol=1e-9)
    np.testing.assert_allclose(model.intercept_, level, rtol=1e-9, atol=1e-300)
    certificate = model.certificate_
    assert certificate.kind == "stationary"
    assert "not convex" in certificate.statement
    assert model.verify(rows, y, given)
    assert not model.verify(rows, 1 - y, given)


def test_one_column_of_zeros_and_ones_adds_half_to_every_cell():
    """Of a table of two by two the corrected log-odds ratio is that of counts plus one half."""
    counts = np.array([[7, 3], [0, 9]])  # rows by column, columns by outcome: one cell is empty
    X = np.repeat([0.0, 0.0, 1.0, 1.0], counts.ravel())[:, None]
    y = np.repeat([0, 1, 0, 1], counts.ravel())
    model = LogisticRegression(penalty="firth").fit(X, y)
    a, b, c, d = counts.ravel() + 0.5
    np.testing.assert_allclose(model.coef_[0, 0], np.log(a * d / (b * c)), rtol=1e-10)
    np.testing.assert_allclose(model.intercept_[0], np.log(b / a), rtol=1e-10)


def test_separated_classes_have_finite_answers_and_the_warning_offers_them():
    X, y = np.arange(10.0)[:, None], np.arange(10) > 4
    with pytest.warns(ConvergenceWarning, match="penalty='firth'"):
        LogisticRegression(C=np.inf).fit(X, y)
    model = LogisticRegression(penalty="firth").fit(X, y)
    assert 0 < model.coef_[0, 0] < 3
    assert not hasattr(model, "separability_")
    assert "firth" in str(model.explain())
    assert "log det" in str(LogisticRegression(penalty="firth").explain(X, y))


def test_bias_is_smaller_than_that_of_maximum_likelihood():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    plain, corrected = [], []
    for _ in range(60):
        y = rng.random(60) < 1 / (1 + np.exp(-(X @ [1.0, -1.0])))
        plain.append(LogisticRegression(C=np.inf).fit(X, y).coef_[0])
        corrected.append(LogisticRegression(penalty="firth").fit(X, y).coef_[0])
    off = [np.abs(np.mean(found, axis=0) - [1, -1]).max() for found in (plain, corrected)]
    assert off[1] < 0.5 * off[0]


def test_columns_far_from_zero_and_dependent_ones():
    X, y, _ = quasi_separated()
    plain = LogisticRegression(penalty="firth").fit(X, y)
    far = X * [1e6, 1.0, 1e-6] + [0.0, 1e5, 0.0]
    moved = LogisticRegression(penalty="firth").fit(far, y)
    np.testing.assert_allclose(moved.coef_ * [1e6, 1.0, 1e-6], plain.coef_, rtol=1e-6)
    assert moved.verify(far, y)
    twice = np.hstack([X, X[:, :1]])
    double = LogisticRegression(penalty="firth").fit(twice, y)
    np.testing.assert_allclose(double.decision_function(twice), plain.decision_function(X))
    assert double.verify(twice, y)


def test_single_precision():
    X, y, _ = quasi_separated()
    single = LogisticRegression(penalty="firth").fit(X.astype(np.float32), y)
    double = LogisticRegression(penalty="firth").fit(X, y)
    assert single.coef_.dtype == np.float32
    np.testing.assert_allclose(single.coef_, double.coef_, rtol=1e-4)
    assert single.verify(X.astype(np.float32), y)


def test_a_false_slope_is_refused():
    X, y, _ = quasi_separated()
    certificate = LogisticRegression(penalty="firth").fit(X, y).certificate_
    moved = replace(certificate, coef=certificate.coef + 1e-4)
    assert certificate.verify(X, y)
    assert not moved.verify(X, y)


def test_standard_errors_are_those_of_the_information():
    X, y, weights = quasi_separated()
    model = LogisticRegression(penalty="firth").fit(X, y, weights)
    A = np.hstack([np.ones((len(X), 1)), X])
    p = model.predict_proba(X)[:, 1]
    covariance = np.linalg.inv((A.T * (weights * p * (1 - p))) @ A)
    table = model.standard_errors(X, y, weights)
    np.testing.assert_allclose(table.covariance, covariance, rtol=1e-8)
    assert "normal distribution" in str(table)


def test_standard_errors_of_maximum_likelihood_are_those_of_statsmodels():
    api = pytest.importorskip("statsmodels.api")
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3))
    y = (X @ [1.0, -1.0, 0.5] + rng.logistic(size=200) > 0).astype(int)
    model = LogisticRegression(C=np.inf, tol=1e-7).fit(X, y)
    peer = api.Logit(y, api.add_constant(X)).fit(disp=0, tol=1e-12)
    table = model.standard_errors(X, y)
    np.testing.assert_allclose(table.coefficients, peer.params, rtol=1e-7)
    np.testing.assert_allclose(table.standard_errors, peer.bse, rtol=1e-7)


def test_what_is_not_offered_is_said():
    X, y, _ = quasi_separated()
    three = np.arange(len(y)) % 3
    with pytest.raises(ValueError, match="OneVsRestClassifier"):
        LogisticRegression(penalty="firth").fit(X, three)
    wrapped = OneVsRestClassifier(LogisticRegression(penalty="firth")).fit(X, three)
    assert wrapped.predict(X).shape == y.shape
    with pytest.raises(ValueError, match="liblinear"):
        LogisticRegression(penalty="firth", solver="liblinear").fit(X, y)
    with pytest.warns(UserWarning, match="ignores C"):
        LogisticRegression(penalty="firth", C=2.0).fit(X, y)
    with pytest.raises(ValueError, match="without a penalty"):
        LogisticRegression().fit(X, y).standard_errors(X, y)
    with pytest.raises(ValueError, match="two classes"):
        LogisticRegression().fit(X, three).standard_errors(X, three)
