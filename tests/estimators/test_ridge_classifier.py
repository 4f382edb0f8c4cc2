"""The ridge classifier: scikit-learn's answers, as a proven regression on signs."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn import linear_model
from sklearn.datasets import load_breast_cancer, load_iris, make_multilabel_classification
from sklearn.metrics import accuracy_score, make_scorer
from sklearn.model_selection import KFold, LeaveOneOut, cross_val_predict

from trueline import Ridge, RidgeClassifier, RidgeClassifierCV, RidgeCV

IRIS = load_iris(return_X_y=True)
CANCER = load_breast_cancer(return_X_y=True)
LABELS = make_multilabel_classification(n_samples=80, n_features=6, random_state=0)
DATA = {"two classes": CANCER, "three classes": IRIS, "sets of labels": LABELS}
WEIGHTS = {name: np.random.default_rng(0).uniform(0.1, 3, len(X)) for name, (X, _) in DATA.items()}


def agrees(ours, theirs, X, rtol=1e-8):
    assert ours.coef_.shape == theirs.coef_.shape
    assert np.shape(ours.intercept_) == np.shape(theirs.intercept_)
    assert_allclose(ours.coef_, theirs.coef_, rtol=rtol, atol=1e-12)
    assert_allclose(ours.intercept_, theirs.intercept_, rtol=rtol, atol=1e-10)
    assert_allclose(ours.decision_function(X), theirs.decision_function(X), rtol=1e-6, atol=1e-8)
    assert_array_equal(ours.predict(X), theirs.predict(X))
    assert ours.predict(X).dtype == theirs.predict(X).dtype
    assert_array_equal(ours.classes_, theirs.classes_)


@pytest.mark.grid(2)
@pytest.mark.parametrize("weighted", [False, True], ids=["", "weighted"])
@pytest.mark.parametrize("class_weight", [None, "balanced", {1: 0.3}], ids=str)
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("name", DATA)
def test_the_answers_are_those_of_scikit_learn(name, fit_intercept, class_weight, weighted):
    if name == "sets of labels" and isinstance(class_weight, dict):
        pytest.skip("class weights of sets of labels are one dictionary per label")
    X, y = DATA[name]
    weights = WEIGHTS[name] if weighted else None
    parameters = {"alpha": 0.7, "fit_intercept": fit_intercept, "class_weight": class_weight}
    ours = RidgeClassifier(**parameters).fit(X, y, weights)
    theirs = linear_model.RidgeClassifier(solver="svd", **parameters).fit(X, y, weights)
    agrees(ours, theirs, X)
    assert ours.verify(X, y, weights)


@pytest.mark.parametrize("solver", ["cholesky", "svd", "lsqr", "sparse_cg", "sag", "saga"])
def test_every_name_of_a_solver_is_understood(solver):
    X, y = IRIS
    ours = RidgeClassifier(solver=solver, tol=1e-8, random_state=0).fit(X, y)
    assert_allclose(ours.coef_, RidgeClassifier().fit(X, y).coef_, rtol=1e-6)
    assert ours.verify(X, y)


def test_coefficients_can_be_kept_positive():
    X, y = IRIS
    ours = RidgeClassifier(positive=True).fit(X, y)
    theirs = linear_model.RidgeClassifier(positive=True, tol=1e-10, max_iter=10**5).fit(X, y)
    assert (ours.coef_ >= 0).all()
    assert_allclose(ours.coef_, theirs.coef_, atol=1e-5)
    assert ours.verify(X, y)


def test_classes_may_have_strengths_of_their_own():
    X, y = IRIS
    alpha = np.array([0.1, 1.0, 50.0])
    ours = RidgeClassifier(alpha=alpha).fit(X, y)
    for c in range(3):
        alone = Ridge(alpha[c]).fit(X, np.where(y == c, 1.0, -1.0))
        assert_allclose(ours.coef_[c], alone.coef_, rtol=1e-10)
    assert ours.verify(X, y)


def test_it_is_ridge_regression_on_signs():
    X, y = CANCER
    ours, regression = RidgeClassifier().fit(X, y), Ridge().fit(X, 2.0 * y[:, None] - 1)
    assert_array_equal(ours.coef_, regression.coef_)
    assert_array_equal(ours.intercept_, regression.intercept_)


@pytest.mark.parametrize("container", [sp.csr_array, sp.csc_matrix, sp.coo_array])
def test_sparse_rows_and_sparse_labels(container):
    X, Y = LABELS
    dense = RidgeClassifier().fit(X, Y)
    ours = RidgeClassifier().fit(container(X), container(Y))
    assert_allclose(ours.coef_, dense.coef_, rtol=1e-9, atol=1e-13)
    assert_array_equal(ours.predict(container(X)), dense.predict(X))
    assert ours.verify(container(X), container(Y))


def test_single_precision_stays_single():
    X, y = IRIS
    model = RidgeClassifier().fit(X.astype(np.float32), y)
    assert model.coef_.dtype == np.float32
    assert model.verify(X.astype(np.float32), y)


def test_any_labels_that_can_be_sorted():
    X, y = IRIS
    names = np.array(["setosa", "versicolor", "virginica"])
    model = RidgeClassifier().fit(X, names[y])
    assert_array_equal(model.predict(X), names[RidgeClassifier().fit(X, y).predict(X)])
    assert model.verify(X, names[y])


# --- the strength chosen by cross-validation ------------------------------------------------------

ALPHAS = [1e-2, 0.1, 1.0, 10.0, 100.0]


@pytest.mark.parametrize("class_weight", [None, "balanced"])
@pytest.mark.parametrize("name", ["two classes", "three classes"])
def test_leave_one_out_chooses_as_scikit_learn_does(name, class_weight):
    X, y = DATA[name]
    ours = RidgeClassifierCV(ALPHAS, class_weight=class_weight, store_cv_results=True).fit(X, y)
    theirs = linear_model.RidgeClassifierCV(
        ALPHAS, class_weight=class_weight, store_cv_results=True
    ).fit(X, y)
    assert ours.alpha_ == theirs.alpha_
    assert_allclose(ours.best_score_, theirs.best_score_, rtol=1e-6)
    assert_allclose(ours.cv_results_, theirs.cv_results_, rtol=1e-4, atol=1e-6)
    agrees(ours, theirs, X, rtol=1e-5)
    assert ours.verify(X, y)


@pytest.mark.grid(2)
@pytest.mark.parametrize("cv", [3, KFold(4, shuffle=True, random_state=1)], ids=str)
@pytest.mark.parametrize("scoring", [None, "f1_macro", make_scorer(accuracy_score)], ids=str)
@pytest.mark.parametrize("name", DATA)
def test_folds_choose_as_scikit_learn_does(name, scoring, cv):
    X, y = DATA[name]
    ours = RidgeClassifierCV(ALPHAS, scoring=scoring, cv=cv).fit(X, y)
    theirs = linear_model.RidgeClassifierCV(ALPHAS, scoring=scoring, cv=cv).fit(X, y)
    assert ours.alpha_ == theirs.alpha_
    assert_allclose(ours.best_score_, theirs.best_score_, rtol=1e-10)
    assert ours.fold_scores_.shape[1] == len(ALPHAS)
    agrees(ours, theirs, X, rtol=1e-6)


@pytest.mark.parametrize("name", ["two classes", "three classes"])
def test_scorers_of_leave_one_out_are_given_labels(name):
    X, y = DATA[name]
    X, y = X[::4], y[::4]
    model = RidgeClassifierCV([1.0], scoring="accuracy").fit(X, y)
    left_out = cross_val_predict(RidgeClassifier(1.0), X, y, cv=LeaveOneOut())
    assert_allclose(model.best_score_, accuracy_score(y, left_out))


def test_scorers_may_ask_for_scores():
    X, y = CANCER
    model = RidgeClassifierCV([0.1, 1.0], scoring="roc_auc").fit(X, y)
    assert 0.98 < model.best_score_ < 1


# --- what is refused ------------------------------------------------------------------------------


@pytest.mark.parametrize("model", [RidgeClassifier(), RidgeClassifierCV()], ids=str)
def test_bad_labels_are_refused(model):
    X, y = IRIS
    with pytest.raises(ValueError, match="at least two classes, but y holds one class only: 'a'"):
        model.fit(X, np.full(len(y), "a"))
    with pytest.raises(ValueError, match="Unknown label type"):
        model.fit(X, X[:, 0])
    with pytest.raises(ValueError, match="several columns of classes"):
        model.fit(X, np.column_stack([y, y]))
    with pytest.raises(ValueError, match="requires y to be passed"):
        model.fit(X, None)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        model.fit(X, y[1:])


def test_other_data_are_not_verified():
    X, y = IRIS
    model = RidgeClassifier().fit(X, y)
    assert not model.verify(X, np.roll(y, 1))
    with pytest.raises(ValueError, match="Verify with the data that were fitted"):
        model.verify(X, y + 1)
    model.coef_ = model.coef_ * 1.001
    assert not model.verify(X, y)


def test_a_class_without_weight_has_no_say():
    X, y = IRIS
    with_it = RidgeClassifier(class_weight={0: 0.0}).fit(X, y)
    without = Ridge().fit(X[y > 0], np.where(y[y > 0] == 1, 1.0, -1.0))
    assert_allclose(with_it.coef_[1], without.coef_, rtol=1e-9)
    assert with_it.verify(X, y)


def test_explanations_before_and_after():
    X, y = IRIS
    assert "1/2 (z - y)^2" in str(RidgeClassifier().explain(X, y))
    assert "alpha the best of 0.1, 1, 10" in str(RidgeClassifierCV().explain(X, y))
    assert "quadratic proof" in str(RidgeClassifier().fit(X, y).explain())


def test_callbacks_watch_the_regression():
    pytest.importorskip("sklearn.callback")
    from sklearn.callback import ProgressBar

    X, y = IRIS
    model = RidgeClassifier(solver="sparse_cg").set_callbacks(ProgressBar())
    assert_allclose(model.fit(X, y).coef_, RidgeClassifier().fit(X, y).coef_, rtol=1e-3)


def test_the_search_is_that_of_the_regression():
    X, y = IRIS
    signs = np.where(y[:, None] == np.arange(3), 1.0, -1.0)
    ours, regression = RidgeClassifierCV(ALPHAS).fit(X, y), RidgeCV(ALPHAS).fit(X, signs)
    assert ours.alpha_ == regression.alpha_
    assert_array_equal(ours.coef_, regression.coef_)
