"""Paths of logistic regression: every fit is the one of its own C, and proven."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_breast_cancer, load_iris

from trueline import LogisticRegression, LogisticRegressionCV, logistic_path

CANCER = load_breast_cancer()
X2 = (CANCER.data - CANCER.data.mean(axis=0)) / CANCER.data.std(axis=0)
Y2 = CANCER.target
X3, Y3 = load_iris(return_X_y=True)


@pytest.mark.grid(2)
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
@pytest.mark.parametrize("l1_ratio", [0.0, 0.5, 1.0])
@pytest.mark.parametrize(("X", "y"), [(X2[:, :10], Y2), (X3, Y3)], ids=["two", "three"])
def test_every_fit_is_that_of_its_own_strength(X, y, l1_ratio, form):
    rows, weights = form(X), np.tile([1.0, 2.0], len(y))[: len(y)]
    path = logistic_path(rows, y, Cs=[1.0, 0.01, 0.1], l1_ratio=l1_ratio, sample_weight=weights)
    np.testing.assert_array_equal(path.Cs, [0.01, 0.1, 1.0])
    for C, model in zip(path.Cs, path.models):
        alone = LogisticRegression(C=C, l1_ratio=l1_ratio).fit(rows, y, weights)
        assert (model.C, model.warm_start) == (C, False)
        np.testing.assert_allclose(model.predict_proba(rows), alone.predict_proba(rows), atol=2e-4)
        assert model.verify(rows, y, weights)
    assert (path.gaps <= 1e-6 * path.objectives).all()


def test_the_grid_starts_where_the_first_column_enters():
    path = logistic_path(X2, Y2, Cs=8)
    assert path.n_nonzero[0] == 0
    assert path.n_nonzero[1] > 0
    assert path.Cs[-1] == pytest.approx(1000 * path.Cs[0])
    assert (np.diff(path.deviances) < 0).all()
    just = logistic_path(X2, Y2, Cs=[1.01 * path.Cs[0]], tol=1e-5)
    assert just.n_nonzero[0] == 1
    assert path.coefs.shape == (8, 1, 30)
    assert len(path) == 8


@pytest.mark.parametrize("wrong", [{"Cs": []}, {"Cs": [0.0]}, {"Cs": 0}, {"eps": 1.0}], ids=str)
def test_grids_that_are_none(wrong):
    with pytest.raises(ValueError, match="Cs must be"):
        logistic_path(X2, Y2, **wrong)


def test_dummies_with_hardly_a_penalty_take_few_newton_steps():
    """The columns depend on each other, and hyperplanes separate most of the classes narrowly."""
    rng = np.random.default_rng(1)
    n, places, letters = 800, 50, 5
    columns = rng.integers(letters, size=(n, places)) + letters * np.arange(places)
    X = sp.csr_array((np.ones(n * places), (np.repeat(np.arange(n), places), columns.ravel())))
    scores = X @ (
        rng.standard_normal((X.shape[1], 3)) / (1 + np.arange(X.shape[1]) // letters)[:, None]
    )
    y = (scores + rng.standard_normal((n, 3))).argmax(axis=1)
    options = {"l1_ratios": (0,), "scoring": "accuracy", "use_legacy_attributes": False}
    model = LogisticRegressionCV(Cs=[1e-2, 1.0, 1e2, 1e4], cv=3, **options).fit(X, y)
    # Newton's method doubles the digits; steps that are not solved for are many more (73 here).
    assert model.n_iter_.max() <= 20
