"""Scores equal those of scikit-learn's ``cross_validate``, whichever way they were found."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn import kernel_ridge, linear_model, svm
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris
from sklearn.gaussian_process import GaussianProcessRegressor as SkProcess
from sklearn.gaussian_process.kernels import RBF, WhiteKernel
from sklearn.metrics import log_loss, make_scorer
from sklearn.model_selection import (
    GroupKFold,
    KFold,
    LeaveOneOut,
    RepeatedKFold,
    ShuffleSplit,
    StratifiedKFold,
    TimeSeriesSplit,
)
from sklearn.model_selection import cross_validate as reference
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler, scale

import trueline as tl
from trueline.evaluation.leakage import leaking_in_table

TIGHT = {"tol": 1e-13, "max_iter": 100_000}
REGRESSORS = [
    (tl.LinearRegression(), linear_model.LinearRegression()),
    (tl.Ridge(0.1), linear_model.Ridge(0.1)),
    (tl.Ridge(0.1, fit_intercept=False), linear_model.Ridge(0.1, fit_intercept=False)),
    (tl.Lasso(0.1, **TIGHT), linear_model.Lasso(0.1, **TIGHT)),
    (
        tl.ElasticNet(0.01, l1_ratio=0.3, **TIGHT),
        linear_model.ElasticNet(0.01, l1_ratio=0.3, **TIGHT),
    ),
]
SPLITTERS = [
    5,
    KFold(3, shuffle=True, random_state=0),
    RepeatedKFold(n_splits=4, n_repeats=2, random_state=1),
    TimeSeriesSplit(4),
    ShuffleSplit(3, test_size=0.2, random_state=2),
]
SCORING = ["r2", "neg_mean_squared_error", "neg_mean_absolute_error", "neg_max_error"]


@pytest.fixture(scope="module")
def diabetes():
    return load_diabetes(return_X_y=True)


@pytest.mark.grid(1)
@pytest.mark.parametrize("cv", SPLITTERS, ids=str)
@pytest.mark.parametrize(("ours", "theirs"), REGRESSORS, ids=lambda m: type(m).__name__)
def test_every_splitter_gives_scikit_learns_scores(ours, theirs, cv, diabetes):
    X, y = diabetes
    found = tl.cross_validate(ours, X, y, cv=cv, scoring=SCORING, return_train_score=True)
    expected = reference(theirs, X, y, cv=cv, scoring=SCORING, return_train_score=True)
    assert "moments" in found.route
    for key in [key for key in expected if not key.endswith("time")]:
        assert_allclose(found[key], expected[key], rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(("ours", "theirs"), REGRESSORS[:2], ids=lambda m: type(m).__name__)
@pytest.mark.parametrize("kind", ["sparse", "weighted", "grouped", "frame"])
def test_all_kinds_of_data(ours, theirs, kind, diabetes):
    import pandas as pd

    X, y = diabetes
    rng = np.random.default_rng(0)
    weights = rng.uniform(0.5, 2.0, len(y)) if kind == "weighted" else None
    groups = rng.integers(0, 8, len(y)) if kind == "grouped" else None
    given = {"sparse": sp.csr_matrix(X), "frame": pd.DataFrame(X, columns=list("abcdefghij"))}
    cv = GroupKFold(4) if kind == "grouped" else 4
    data = given.get(kind, X)
    found = tl.cross_validate(ours, data, y, cv=cv, groups=groups, sample_weight=weights)
    params = None if weights is None else {"sample_weight": weights}
    # On sparse data scikit-learn iterates, and stops early.
    plain = X if kind == "sparse" else data
    expected = reference(theirs, plain, y, cv=cv, groups=groups, params=params)
    assert_allclose(found["test_score"], expected["test_score"], rtol=1e-9)


def test_wide_data_take_the_kernel():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((30, 80)), rng.standard_normal(30)
    found = tl.cross_validate(tl.Ridge(2.0), X, y, cv=5)
    expected = reference(linear_model.Ridge(2.0), X, y, cv=5)
    assert_allclose(found["test_score"], expected["test_score"], rtol=1e-9)


def test_columns_that_repeat_each_other_are_fitted_by_least_norm(diabetes):
    X, y = diabetes
    X = np.column_stack([X, X[:, 0] + X[:, 1]])
    found = tl.cross_validate(tl.LinearRegression(), X, y, cv=5)
    expected = reference(linear_model.LinearRegression(), X, y, cv=5)
    assert_allclose(found["test_score"], expected["test_score"], rtol=1e-9)


@pytest.mark.grid(1)
@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (tl.RidgeClassifier(), linear_model.RidgeClassifier()),
        (tl.LogisticRegression(), linear_model.LogisticRegression(tol=1e-10, max_iter=10_000)),
        (
            tl.LinearSVC(intercept_scaling=1.0),
            svm.LinearSVC(dual=False, tol=1e-10, max_iter=10_000),
        ),
    ],
    ids=lambda m: type(m).__name__,
)
@pytest.mark.parametrize("kind", ["two", "three", "three words"])
def test_classifiers(ours, theirs, kind):
    X, y = load_breast_cancer(return_X_y=True) if kind == "two" else load_iris(return_X_y=True)
    X = scale(X)
    y = np.array(["red", "green", "blue"])[y] if kind == "three words" else y
    cv = StratifiedKFold(4, shuffle=True, random_state=0)
    found = tl.cross_validate(ours, X, y, cv=cv, return_train_score=True)
    expected = reference(theirs, X, y, cv=cv, return_train_score=True)
    assert_array_equal(found["test_score"], expected["test_score"])
    assert_array_equal(found["train_score"], expected["train_score"])


def test_probabilities_are_scored_by_the_fitted_models():
    X, y = load_iris(return_X_y=True)
    cv = StratifiedKFold(3, shuffle=True, random_state=0)
    found = tl.cross_validate(tl.LogisticRegression(), X, y, cv=cv, scoring="neg_log_loss")
    model = linear_model.LogisticRegression(solver="newton-cg", tol=1e-12, max_iter=10_000)
    expected = reference(model, X, y, cv=cv, scoring="neg_log_loss")
    assert_allclose(found["test_score"], expected["test_score"], rtol=1e-7)


PROCESS = {"kernel": RBF(0.2) + WhiteKernel(0.5), "optimizer": None}
CLOSED = [
    (tl.LinearRegression(), linear_model.LinearRegression()),
    (tl.Ridge(0.1), linear_model.Ridge(0.1)),
    (tl.KernelRidge(alpha=0.5, kernel="rbf"), kernel_ridge.KernelRidge(alpha=0.5, kernel="rbf")),
    (tl.GaussianProcessRegressor(**PROCESS), SkProcess(**PROCESS)),
]


@pytest.mark.parametrize(("ours", "theirs"), CLOSED, ids=lambda m: type(m).__name__)
def test_leave_one_out_in_closed_form(ours, theirs, diabetes):
    X, y = diabetes[0][:60], diabetes[1][:60] / 100
    scoring = ["neg_mean_squared_error", "neg_median_absolute_error"]
    found = tl.cross_validate(ours, X, y, cv=LeaveOneOut(), scoring=scoring)
    expected = reference(theirs, X, y, cv=LeaveOneOut(), scoring=scoring)
    assert found.route.startswith("leave-one-out in closed form")
    for name in scoring:
        assert_allclose(found[f"test_{name}"], expected[f"test_{name}"], rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("data", [load_iris, load_breast_cancer])
def test_leave_one_out_of_classifiers_by_least_squares(data):
    X, y = data(return_X_y=True)
    X, y = X[::8], y[::8]
    for ours in (tl.RidgeClassifier(), tl.LeastSquaresClassifier(alpha=1.0)):
        found = tl.cross_validate(ours, X, y, cv=LeaveOneOut())
        expected = reference(linear_model.RidgeClassifier(), X, y, cv=LeaveOneOut())
        assert found.is_exact
        assert "closed form" in found.route
        assert_array_equal(found["test_score"], expected["test_score"])


def test_leave_one_out_of_rows_that_determine_themselves_is_refitted():
    X = np.vstack([np.eye(3), np.zeros((6, 3))])
    y = np.arange(9.0)
    found = tl.cross_validate(
        tl.LinearRegression(), X, y, cv=LeaveOneOut(), scoring="neg_mean_squared_error"
    )
    assert "closed form" not in found.route


@pytest.mark.parametrize("l1_ratio", [0.0, 1.0])
def test_approximate_leave_one_out_is_marked_and_measured(l1_ratio):
    X, y = load_breast_cancer(return_X_y=True)
    X, y = scale(X)[:90, :6], y[:90]
    model = tl.LogisticRegression(C=0.5, l1_ratio=l1_ratio)
    loss = make_scorer(
        log_loss, greater_is_better=False, response_method="predict_proba", labels=[0, 1]
    )
    found = tl.cross_validate(model, X, y, cv=LeaveOneOut(), scoring=loss)
    assert not found.is_exact
    assert "APPROXIMATE" in found.route
    assert "approximate:" in str(found)
    assert 0 < found.measured_error["mean"] <= found.measured_error["largest error of a score"]
    exact = tl.cross_validate(model, X, y, cv=LeaveOneOut(), scoring=loss, shortcuts="exact")
    assert exact.is_exact
    # A score that is off by e changes a log loss by at most e.
    limit = found.measured_error["largest error of a score"]
    assert np.abs(found["test_score"] - exact["test_score"]).max() <= limit + 1e-9
    assert_allclose(found.mean(), exact.mean(), rtol=0.05)


def test_pipelines_are_fitted_within_each_fold(diabetes):
    X, y = diabetes
    found = tl.cross_validate(make_pipeline(StandardScaler(), tl.Ridge(5.0)), X, y, cv=4)
    expected = reference(make_pipeline(StandardScaler(), linear_model.Ridge(5.0)), X, y, cv=4)
    assert "steps before" in found.route
    assert_allclose(found["test_score"], expected["test_score"], rtol=1e-9)


def test_models_of_others_are_refitted(diabetes):
    X, y = diabetes
    model = linear_model.PoissonRegressor()
    found = tl.cross_validate(model, X, y, cv=3, return_estimator=True)
    assert_allclose(found["test_score"], reference(model, X, y, cv=3)["test_score"])
    assert found.route == "refitted for every fold"
    assert len(found["estimator"]) == 3


def test_the_estimators_of_shortcuts_predict(diabetes):
    X, y = diabetes
    found = tl.cross_validate(tl.Ridge(0.1), X, y, cv=KFold(3), return_estimator=True)
    for model, (train, test) in zip(found["estimator"], KFold(3).split(X)):
        expected = linear_model.Ridge(0.1).fit(X[train], y[train]).predict(X[test])
        assert_allclose(model.predict(X[test]), expected, rtol=1e-9)


def test_shortcuts_can_be_refused(diabetes):
    X, y = diabetes
    fast, slow = (tl.cross_validate(tl.Ridge(0.1), X, y, shortcuts=s) for s in ("auto", "none"))
    assert slow.route == "refitted for every fold"
    assert_allclose(fast["test_score"], slow["test_score"], rtol=1e-9)
    with pytest.raises(ValueError, match="shortcuts='some' is not one of"):
        tl.cross_validate(tl.Ridge(), X, y, shortcuts="some")


# --- bad input ------------------------------------------------------------------------------------


def test_more_folds_than_rows():
    with pytest.raises(ValueError, match="5 folds of 4 rows: some fold would have no row"):
        tl.cross_validate(tl.Ridge(), np.ones((4, 1)), np.arange(4.0), cv=5)


def test_training_rows_of_one_class():
    X, y = np.arange(8.0)[:, None], np.array([0, 0, 0, 0, 1, 1, 1, 1])
    with pytest.raises(ValueError, match="fold 1 hold one class only, 1.*StratifiedKFold"):
        tl.cross_validate(tl.LogisticRegression(), X, y, cv=KFold(2))
    with pytest.raises(ValueError, match="y holds one class only, 0"):
        tl.cross_validate(tl.LogisticRegression(), X, np.zeros(8, dtype=int), cv=KFold(2))


def test_a_class_that_a_fold_lacks_is_said():
    X = np.random.default_rng(0).standard_normal((12, 2))
    y = np.array([0, 1] * 5 + [2, 2])
    with pytest.warns(UserWarning, match="1 fold some test rows are of a class that no training"):
        tl.cross_validate(tl.RidgeClassifier(), X, y, cv=KFold(6))


def test_a_copy_of_the_target_is_detected(diabetes):
    X, y = diabetes
    leaky = np.column_stack([X[:, :3], 2 - 3 * y])
    with pytest.warns(tl.LeakageWarning, match="Column x3 tells the target exactly"):
        found = tl.cross_validate(tl.Ridge(), leaky, y)
    assert found.leaking == ["x3"]
    assert "leakage: x3" in str(found)


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array])
def test_a_code_of_the_classes_is_detected(kind):
    X, y = load_iris(return_X_y=True)
    leaky = kind(np.column_stack([X, np.array([3.0, 0.0, 7.0])[y]]))
    with pytest.warns(tl.LeakageWarning, match="x4"):
        tl.cross_validate(tl.RidgeClassifier(), leaky, y)


def test_a_strong_feature_is_not_called_leakage(diabetes, recwarn):
    _, y = diabetes
    X = (y + 1e-3 * np.random.default_rng(0).standard_normal(len(y)))[:, None]
    tl.cross_validate(tl.Ridge(), X, y)
    assert not [w for w in recwarn if issubclass(w.category, tl.LeakageWarning)]


KINDS_OF_COPY = {
    "numbers beside missing ones": (2 * np.arange(30.0) ** 1.5 + 1, False),
    "texts of numbers": ([str(v) for v in np.arange(30.0) ** 1.5], False),
    "other words for the classes": (["yes", "no", "no"] * 10, True),
    "categories": (pd.Categorical(["x", "z", "z"] * 10), True),
    "missing at times": ([None, "no", "no"] + ["yes", "no", "no"] * 9, True),
}


@pytest.mark.parametrize("name", KINDS_OF_COPY)
def test_copies_of_the_target_in_tables_are_detected(name):
    copy, is_classifier = KINDS_OF_COPY[name]
    y = np.array(["a", "b", "b"] * 10) if is_classifier else np.arange(30.0) ** 1.5
    noise = np.random.default_rng(0).standard_normal(30)
    table = pd.DataFrame({"noise": np.where(noise > 1, np.nan, noise), "copy": copy})
    assert leaking_in_table(table, y, is_classifier) == ["copy"]


@pytest.mark.parametrize("library", ["polars", "pyarrow"])
def test_copies_are_named_in_tables_of_every_library(library, diabetes):
    X, y = diabetes
    module = pytest.importorskip(library)
    make = module.DataFrame if library == "polars" else module.table
    table = make({"first": X[:, 0], "copy": 3 * y - 1})
    with pytest.warns(tl.LeakageWarning, match="Column copy tells the target"):
        result = tl.cross_validate(tl.Ridge(), table, y, cv=3)
    assert result.leaking == ["copy"]


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (np.array([1.0, np.nan] * 5), "5 missing or infinite values"),
        (np.array([1.0, -np.inf] * 5), "5 missing or infinite values"),
        (np.array(["a", None] * 5, dtype=object), "5 missing"),
        (pd.Series(["a", None] * 5, dtype="string"), "5 missing"),
        (np.array(["a", 1] * 5, dtype=object), "y mixes values of int, str"),
        (np.array([]), "y is empty"),
    ],
)
def test_targets_that_cannot_be(y, message):
    with pytest.raises(ValueError, match=message):
        tl.compare(np.ones((len(y), 1)), y, ["ridge"])


@pytest.mark.parametrize(
    ("cv", "message"),
    [
        ([(np.arange(5), [99])], "names row 99, but there are 10 rows"),
        ([(np.ones(4, dtype=bool), np.ones(4, dtype=bool))], "marks 4 rows, but there are 10"),
        (GroupKFold(5), "greater than the number of groups: 2"),
        (12, "12 folds of 10 rows"),
    ],
)
def test_folds_that_cannot_be(cv, message):
    with pytest.raises(ValueError, match=message):
        tl.cross_validate(tl.Ridge(), np.eye(10), np.arange(10.0), cv=cv, groups=np.arange(10) % 2)


def test_rows_that_are_learned_from_and_scored_on_are_said():
    with pytest.warns(UserWarning, match="In 1 fold some rows are both learned from and scored on"):
        tl.cross_validate(
            tl.Ridge(), np.eye(10), np.arange(10.0), cv=[(np.arange(8), np.arange(7, 10))]
        )


def test_a_table_without_columns():
    with pytest.raises(ValueError, match="X has no columns"):
        tl.cross_validate(tl.Ridge(), np.empty((10, 0)), np.arange(10.0))
