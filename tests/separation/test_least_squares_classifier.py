"""Classification by least squares: exact, proven, and with its known faults."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.linear_model import RidgeClassifier

from trueline import LeastSquaresClassifier, ZeroOneHalfspace

RNG = np.random.default_rng(0)
X = RNG.standard_normal((90, 4))
Y = np.digitize(X @ [1.0, -1.0, 0.5, 0.0] + 0.5 * RNG.standard_normal(90), [-0.5, 0.5])
TWO = np.where(Y > 0, "yes", "no")


@pytest.mark.parametrize("labels", [TWO, Y], ids=["two", "three"])
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("weight", [None, "balanced"])
def test_agrees_with_ridge_classifier(labels, fit_intercept, weight):
    # Balanced classes are those of the weighted rows here, of the rows alone there.
    s = RNG.uniform(0.5, 2.0, 90) if weight is None else np.ones(90)
    ours = LeastSquaresClassifier(2.0, fit_intercept=fit_intercept, class_weight=weight)
    theirs = RidgeClassifier(2.0, fit_intercept=fit_intercept, class_weight=weight, solver="svd")
    ours.fit(X, labels, sample_weight=s)
    theirs.fit(X, labels, sample_weight=s)
    np.testing.assert_allclose(ours.coef_, np.atleast_2d(theirs.coef_), rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, rtol=1e-9, atol=1e-12)
    assert np.array_equal(ours.predict(X), theirs.predict(X))
    assert ours.verify(X, labels, sample_weight=s)
    assert ours.certificate_.relative_gap < 1e-12


def test_it_is_least_squares_on_signs():
    design = np.column_stack([X, np.ones(90)])
    w = np.linalg.lstsq(design, np.where(TWO == "yes", 1.0, -1.0), rcond=None)[0]
    model = LeastSquaresClassifier().fit(sp.csr_array(X), TWO)
    np.testing.assert_allclose(np.append(model.coef_[0], model.intercept_), w, rtol=1e-9)
    assert model.verify(X, TWO)
    assert not model.verify(X, np.where(TWO == "yes", "no", "yes"))
    assert "squared" in str(model.explain()) or "1/2" in str(model.explain())


def test_zero_weight_leaves_a_row_out():
    s = (np.arange(90) % 3).astype(float)
    left = LeastSquaresClassifier().fit(X, TWO, sample_weight=s)
    kept = LeastSquaresClassifier().fit(X[s > 0], TWO[s > 0], sample_weight=s[s > 0])
    np.testing.assert_allclose(left.coef_, kept.coef_, rtol=1e-10)
    assert left.verify(X, TWO, sample_weight=s)


def test_rows_that_are_right_and_far_pull_the_boundary():
    rows = np.append(np.array([-2.0, -1.0, 1.0, 2.0]), np.full(3, 40.0))[:, None]
    labels = [0, 0, 1, 1, 1, 1, 1]
    squares = LeastSquaresClassifier().fit(rows, labels)
    assert np.sum(squares.predict(rows) != labels) > 0
    assert ZeroOneHalfspace().fit(rows, labels).n_errors_ == 0


def test_the_middle_of_three_classes_may_never_win():
    rows = np.linspace(-1.0, 1.0, 30)[:, None]
    labels = np.repeat([0, 1, 2], 10)
    assert 1 not in LeastSquaresClassifier().fit(rows, labels).predict(rows)
