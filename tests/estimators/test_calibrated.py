"""Calibrated probabilities: they agree with predictions, and with frequencies."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import minimize_scalar
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.linear_model import LogisticRegression as Theirs
from sklearn.metrics import log_loss
from sklearn.model_selection import StratifiedKFold, cross_val_predict
from sklearn.naive_bayes import GaussianNB

import trueline
from trueline import CalibratedClassifier, LinearSVC, RidgeClassifier

IRIS = load_iris(return_X_y=True)
CANCER = load_breast_cancer(return_X_y=True)
METHODS = ["sigmoid", "isotonic"]


def noisy(n=2000, seed=0):
    """Two classes whose true probabilities are known."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    p = 1 / (1 + np.exp(-2 * X @ [1.0, -0.5, 0.2]))
    return X, (rng.random(n) < p).astype(int), p


@pytest.mark.grid(2)
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("data", [IRIS, CANCER], ids=["three classes", "two classes"])
@pytest.mark.parametrize("base", [LinearSVC(C=0.01), RidgeClassifier()], ids=str)
def test_the_most_likely_class_is_the_predicted_one(base, data, method):
    X, y = data
    model = CalibratedClassifier(base, method=method).fit(X, y)
    P = model.predict_proba(X)
    np.testing.assert_allclose(P.sum(axis=1), 1.0)
    assert (P > 0).all()
    np.testing.assert_array_equal(model.classes_[P.argmax(axis=1)], model.predict(X))
    np.testing.assert_array_equal(model.predict(X), model.estimator_.predict(X))
    assert model.verify(X, y)


@pytest.mark.parametrize("method", METHODS)
def test_probabilities_are_close_to_the_true_ones(method):
    X, y, _ = noisy()
    model = CalibratedClassifier(LinearSVC(), method=method).fit(X, y)
    new, labels, truth = noisy(seed=1)
    found = model.predict_proba(new)[:, 1]
    assert np.abs(found - truth).mean() < 0.04
    assert log_loss(labels, found) < log_loss(labels, truth) + 0.02


def test_slopes_are_those_of_greatest_likelihood_out_of_fold():
    X, y, _ = noisy(400)
    cv = StratifiedKFold(5, shuffle=True, random_state=0)
    model = CalibratedClassifier(LinearSVC(), cv=cv).fit(X, y)
    scores = cross_val_predict(LinearSVC(), X, y, cv=cv, method="decision_function")
    counts = np.bincount(y)
    target = np.where(y == 1, (counts[1] + 1) / (counts[1] + 2), 1 / (counts[0] + 2))
    for side, name in ((scores > 0, "above"), (scores < 0, "below")):
        s, t = scores[side], target[side]

        def loss(slope, s=s, t=t):
            return np.logaddexp(0, -slope * s) @ t + np.logaddexp(0, slope * s) @ (1 - t)

        best = minimize_scalar(loss, bounds=(0, 100), method="bounded", options={"xatol": 1e-9}).x
        assert model.calibrators_[0][name] == pytest.approx(best, rel=1e-5)


def test_isotonic_steps_rise_and_pass_one_half_at_the_boundary():
    X, y, _ = noisy()
    steps = CalibratedClassifier(LinearSVC(), method="isotonic").fit(X, y).calibrators_[0]
    assert (np.diff(steps["at"]) >= 0).all()
    assert (np.diff(steps["values"]) >= 0).all()
    assert (steps["values"][steps["at"] < 0] <= 0.5).all()
    assert (steps["values"][steps["at"] > 0] >= 0.5).all()


@pytest.mark.parametrize("method", METHODS)
def test_sparse_rows_weights_and_labels(method):
    X, y = IRIS
    names = np.array(["setosa", "versicolor", "virginica"])[y]
    weights = np.tile([1.0, 2.0], 75)
    dense = CalibratedClassifier(method=method).fit(X, names, weights)
    sparse = CalibratedClassifier(method=method).fit(sp.csr_array(X), names, weights)
    np.testing.assert_allclose(
        dense.predict_proba(X), sparse.predict_proba(sp.csr_array(X)), atol=1e-4
    )
    assert dense.verify(X, names, weights)
    assert "proof" in str(dense.explain())


def test_models_are_saved_and_loaded(tmp_path):
    X, y = IRIS
    for method in METHODS:
        model = CalibratedClassifier(LinearSVC(), method=method).fit(X, y)
        trueline.save(model, tmp_path / method)
        again = trueline.load(tmp_path / method)
        np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))


def test_classifiers_of_others_are_calibrated_too():
    X, y = CANCER
    model = CalibratedClassifier(Theirs(max_iter=10_000)).fit(X, y)
    assert (model.predict_proba(X).argmax(axis=1) == model.predict(X)).all()


def test_what_cannot_be_calibrated_is_said():
    X, y = IRIS
    with pytest.raises(ValueError, match="no decision_function"):
        CalibratedClassifier(GaussianNB()).fit(X, y)
    with pytest.raises(ValueError, match="at least two"):
        CalibratedClassifier().fit(X[:51], y[:51])
    with pytest.raises(ValueError, match="all rows of a class"):
        CalibratedClassifier(cv=[(np.arange(100), np.arange(100, 150))]).fit(X, y)
