"""SequentialFeatureSelector chooses what scikit-learn's chooses, and refits only where it must."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn import config_context
from sklearn import linear_model as sklearn_models
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.feature_selection import SequentialFeatureSelector as Refitting
from sklearn.model_selection import (
    GroupKFold,
    KFold,
    LeaveOneOut,
    PredefinedSplit,
    RepeatedKFold,
    ShuffleSplit,
    TimeSeriesSplit,
    cross_val_score,
)
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from trueline import LinearRegression, Ridge, SequentialFeatureSelector
from trueline.estimators.column_selection import sequential

SCORINGS = [None, "r2", "neg_mean_squared_error", "neg_root_mean_squared_error"]
MODELS = [
    sklearn_models.LinearRegression(),
    sklearn_models.LinearRegression(fit_intercept=False),
    sklearn_models.Ridge(2.0),
    sklearn_models.Ridge(0.5, fit_intercept=False, solver="svd"),
    LinearRegression(),
    Ridge(2.0),
]


@parametrize_with_checks([SequentialFeatureSelector(LinearRegression(), cv=2)])
def test_contract(estimator, check):
    check(estimator)


@pytest.mark.slow
@parametrize_with_checks(
    [SequentialFeatureSelector(sklearn_models.Ridge(), cv=2, direction="backward")]
)
def test_contract_around_a_model_of_others(estimator, check):
    check(estimator)


def data(n=30, d=4, targets=1, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) + rng.standard_normal((n, 1)) + 2.0
    Y = X @ rng.standard_normal((d, targets)) + rng.standard_normal((n, targets)) - 1.0
    return X, Y[:, 0] if targets == 1 else Y


class Counter:
    """Counts refits of candidates."""

    def __init__(self, monkeypatch):
        self.count = 0

        def counted(*arguments, **options):
            self.count += 1
            return cross_val_score(*arguments, **options)

        monkeypatch.setattr(sequential, "cross_val_score", counted)


@pytest.fixture
def refits(monkeypatch):
    return Counter(monkeypatch)


def both(model, X, y, **options):
    ours = SequentialFeatureSelector(model, **options).fit(X, y)
    theirs = Refitting(model, **options).fit(X, y)
    assert_array_equal(ours.support_, theirs.support_)
    assert ours.n_features_to_select_ == theirs.n_features_to_select_
    return ours


# --- the same features --------------------------------------------------------------------------


@pytest.mark.grid(1)
@pytest.mark.parametrize("model", MODELS, ids=repr)
@pytest.mark.parametrize("direction", ["forward", "backward"])
def test_least_squares_from_moments_chooses_the_same_features(model, direction, refits):
    for targets in (1, 2):
        X, y = data(targets=targets)
        both(model, X, y, direction=direction, cv=2)
    assert refits.count == 0


@pytest.mark.grid(1)
@pytest.mark.parametrize("scoring", SCORINGS)
@pytest.mark.parametrize("options", [{"n_features_to_select": 2}, {"tol": 0.01}, {"tol": 0.5}])
def test_every_score_and_every_way_to_stop(scoring, options, refits):
    X, y = data()
    both(LinearRegression(), X, y, scoring=scoring, cv=2, **options)
    assert refits.count == 0


@pytest.mark.parametrize("tol", [-1.0, -0.01, 0.0, 0.01])
def test_backward_may_stop_by_a_tolerance(tol):
    X, y = data()
    both(sklearn_models.LinearRegression(), X, y, direction="backward", tol=tol, cv=2)


@pytest.mark.parametrize(
    "cv",
    [
        None,
        KFold(4, shuffle=True, random_state=0),
        RepeatedKFold(n_splits=3, n_repeats=2, random_state=0),
        ShuffleSplit(3, test_size=0.3, random_state=0),
        TimeSeriesSplit(3),
        PredefinedSplit(np.arange(30) % 3 - 1),
        [(np.arange(20), np.arange(15, 30)), (np.arange(10, 30), np.arange(12))],
    ],
    ids=lambda cv: type(cv).__name__,
)
def test_any_splitter(cv, refits):
    X, y = data()
    both(sklearn_models.LinearRegression(), X, y, cv=cv)
    assert refits.count == 0


def test_a_generator_of_splits_is_used_once():
    X, y = data()
    splits = KFold(3).split(X)
    ours = SequentialFeatureSelector(LinearRegression(), cv=splits).fit(X, y)
    assert_array_equal(ours.support_, Refitting(LinearRegression(), cv=3).fit(X, y).support_)


def test_a_splitter_with_a_generator_is_asked_as_often_as_scikit_learn_does():
    X, y = data()

    def draws():
        return KFold(3, shuffle=True, random_state=np.random.RandomState(0))

    ours = SequentialFeatureSelector(LinearRegression(), cv=draws()).fit(X, y)
    theirs = Refitting(LinearRegression(), cv=draws()).fit(X, y)
    assert_array_equal(ours.support_, theirs.support_)
    assert "refits: the splitter draws new folds" in ours.explain()


def test_groups_reach_the_splitter(refits):
    X, y = data()
    groups = np.arange(30) // 5
    with config_context(enable_metadata_routing=True):
        model = SequentialFeatureSelector(LinearRegression(), cv=GroupKFold(3))
        ours = model.fit(X, y, groups=groups)
        theirs = Refitting(LinearRegression(), cv=GroupKFold(3)).fit(X, y, groups=groups)
    assert_array_equal(ours.support_, theirs.support_)
    assert refits.count == 0


@settings(max_examples=8, deadline=None)
@given(
    st.integers(0, 10_000),
    st.sampled_from(["forward", "backward"]),
    st.sampled_from(SCORINGS),
    st.booleans(),
    st.sampled_from([0.0, 1e-6, 1.0]),
)
def test_any_data(seed, direction, scoring, fit_intercept, alpha):
    X, y = data(n=12, d=3, seed=seed)
    model = sklearn_models.Ridge(alpha, fit_intercept=fit_intercept)
    both(model, X, y, direction=direction, scoring=scoring, cv=2)


@pytest.mark.grid(2)
@pytest.mark.parametrize("direction", ["forward", "backward"])
@pytest.mark.parametrize("kind", ["copy", "sum", "constant", "rare"])
@pytest.mark.parametrize("model", [MODELS[0], MODELS[2]], ids=repr)
def test_dependent_columns_are_decided_by_refits(direction, kind, model):
    X, y = data()
    X[:, 3] = {
        "copy": X[:, 1],
        "sum": X[:, 0] - X[:, 2],
        "constant": np.full(30, 3.0),
        "rare": np.arange(30) == 2,  # constant where the fold of row 2 is held out
    }[kind]
    both(model, X, y, direction=direction, cv=3)


def test_a_perfect_fit_is_decided_by_refits(refits):
    X, _ = data()
    y = X[:, 1] - X[:, 3]
    both(sklearn_models.LinearRegression(), X, y, cv=3, n_features_to_select=3)
    assert refits.count == 2  # which of the two useless columns is third


@pytest.mark.parametrize("form", [np.float32, np.int64, pd.DataFrame, lambda X: X.tolist()])
def test_any_dense_form(form):
    X, y = data()
    both(sklearn_models.LinearRegression(), form(10 * X), y, cv=3)


@pytest.mark.parametrize("direction", ["forward", "backward"])
def test_more_columns_than_rows(direction):
    X, y = data(n=9, d=10)
    both(sklearn_models.Ridge(), X, y, direction=direction, cv=2, n_features_to_select=2)
    if direction == "forward":
        both(sklearn_models.LinearRegression(), X, y, cv=2, n_features_to_select=2)


# --- everything else is scikit-learn's ----------------------------------------------------------


@pytest.mark.parametrize(
    ("model", "options", "reason"),
    [
        (KNeighborsRegressor(3), {}, "KNeighborsRegressor is not least squares"),
        (make_pipeline(StandardScaler(), LinearRegression()), {}, "Pipeline is not least"),
        (LinearRegression(positive=True), {}, "coefficients are bounded"),
        (sklearn_models.Ridge(solver="lsqr"), {}, "a solver stops at a tolerance"),
        (LinearRegression(), {"scoring": "neg_mean_absolute_error"}, "not a function of squared"),
        (LinearRegression(), {"scoring": lambda m, X, y: m.score(X, y)}, "not a function"),
    ],
    ids=lambda part: str(part)[:30],
)
def test_other_models_and_scores_are_refitted(model, options, reason):
    X, y = data()
    ours = both(model, X, y, cv=2, **options)
    assert reason in ours.explain()


def test_a_strength_per_target_is_refitted():
    X, y = data(targets=2)
    ours = both(sklearn_models.Ridge([1.0, 2.0]), X, y, cv=2)
    assert "is not one strength" in ours.explain()


def test_sparse_data_are_refitted():
    X, y = data()
    ours = both(LinearRegression(), sp.csr_array(X), y, cv=2)
    assert "X is not a dense array" in ours.explain()


def test_classifiers_and_models_without_target():
    X, y = data()
    both(KNeighborsClassifier(3), X, y > y.mean(), cv=2)


def test_a_subclass_may_do_anything_and_is_refitted():
    class Mine(LinearRegression):
        """Predicts nothing but the mean."""

        def predict(self, X):
            return np.full(len(X), self.intercept_)

    X, y = data()
    assert "Mine is not least squares" in both(Mine(), X, y, cv=2).explain()


def test_weights_are_routed_to_refits():
    X, y = data()
    weights = np.random.default_rng(0).uniform(0.1, 5.0, 30)
    with config_context(enable_metadata_routing=True):
        model = sklearn_models.LinearRegression().set_fit_request(sample_weight=True)
        model.set_score_request(sample_weight=True)
        ours = SequentialFeatureSelector(model, cv=3).fit(X, y, sample_weight=weights)
        theirs = Refitting(model, cv=3).fit(X, y, sample_weight=weights)
    assert_array_equal(ours.support_, theirs.support_)
    assert "metadata are routed" in ours.explain()


def test_folds_that_cannot_be_scored_are_left_to_scikit_learn():
    X, y = data(d=3, n=8)
    ours = SequentialFeatureSelector(
        LinearRegression(), cv=LeaveOneOut(), scoring="neg_mean_squared_error"
    ).fit(X, y)
    assert "moments of 8 folds" in ours.explain()
    y[:4] = 1.0  # a fold without variation has no R^2
    assert "does not vary" in both(LinearRegression(), X, y, cv=KFold(2)).explain()


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"n_features_to_select": 4}, "must be < n_features"),
        ({"n_features_to_select": 0}, "n_features_to_select"),
        ({"n_features_to_select": 1.5}, "n_features_to_select"),
        ({"tol": -0.1}, "tol must be strictly positive"),
        ({"direction": "sideways"}, "direction"),
        ({"cv": 31}, "Cannot have number of splits"),
        ({"scoring": "beauty"}, "scoring"),
    ],
)
def test_errors_are_those_of_scikit_learn(options, error):
    X, y = data()
    for cls in (SequentialFeatureSelector, Refitting):
        with pytest.raises(ValueError, match=error):
            cls(LinearRegression(), **options).fit(X, y)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_numbers_that_are_none_are_refused(bad):
    X, y = data()
    X_bad, y_bad = X.copy(), y.copy()
    X_bad[3, 1], y_bad[4] = bad, bad
    for model in (LinearRegression(), sklearn_models.Ridge()):
        with pytest.raises(ValueError, match="Input X contains"):
            SequentialFeatureSelector(model).fit(X_bad, y)
        with pytest.raises(ValueError, match="Input y contains"):
            SequentialFeatureSelector(model).fit(X, y_bad)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        SequentialFeatureSelector(LinearRegression()).fit(X, y[:-1])


# --- books --------------------------------------------------------------------------------------


@pytest.mark.grid(2)
@pytest.mark.parametrize("direction", ["forward", "backward"])
@pytest.mark.parametrize("scoring", SCORINGS)
@pytest.mark.parametrize("model", [LinearRegression(), KNeighborsRegressor(3)], ids=repr)
def test_the_history_holds_the_scores_of_cross_validation(direction, scoring, model):
    X, y = data()
    ours = SequentialFeatureSelector(model, direction=direction, scoring=scoring, cv=3).fit(X, y)
    inside = np.full(4, direction == "backward")
    for step in ours.history_:
        inside[step["feature"]] = direction == "forward"
        expected = cross_val_score(model, X[:, inside], y, scoring=scoring, cv=3).mean()
        assert step["score"] == pytest.approx(expected, rel=1e-9)
        assert step["n_features"] == inside.sum()
    assert_array_equal(inside, ours.support_)
    assert len(ours.explain().splitlines()) == 2 + len(ours.history_)


def test_a_step_that_was_not_worth_it_is_not_in_the_books():
    X, y = data()
    ours = both(LinearRegression(), X, y, tol=0.5, cv=3)
    assert len(ours.history_) == ours.support_.sum()


def test_scores_of_several_targets_are_means():
    X, Y = data(targets=3)
    ours = SequentialFeatureSelector(LinearRegression(), cv=3).fit(X, Y)
    expected = cross_val_score(LinearRegression(), X[:, ours.support_], Y, cv=3).mean()
    assert_allclose(ours.history_[-1]["score"], expected, rtol=1e-9)


@pytest.mark.parametrize("direction", ["forward", "backward"])
def test_ctrl_c_keeps_what_was_found(direction, monkeypatch):
    X, y = data()
    options = {"direction": direction, "n_features_to_select": 3 if direction == "forward" else 1}
    whole = SequentialFeatureSelector(LinearRegression(), cv=3, **options).fit(X, y)
    score, calls = sequential.FoldScores.exchanges, []

    def interrupted(self):
        calls.append(1)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return score(self)

    monkeypatch.setattr(sequential.FoldScores, "exchanges", interrupted)
    model = SequentialFeatureSelector(LinearRegression(), cv=3, **options)
    with pytest.warns(ConvergenceWarning, match="interrupted after step 2"):
        model.fit(X, y)
    assert model.history_ == whole.history_[:2]
    assert model.transform(X).shape[1] == model.n_features_to_select_ == model.support_.sum()
    assert abs(model.support_.sum() - (0 if direction == "forward" else 4)) == 2


def test_ctrl_c_before_anything_was_found_is_passed_on(monkeypatch):
    def interrupted(self):
        raise KeyboardInterrupt

    monkeypatch.setattr(sequential.FoldScores, "exchanges", interrupted)
    with pytest.raises(KeyboardInterrupt):
        SequentialFeatureSelector(LinearRegression(), cv=3).fit(*data())


def test_before_a_fit_there_is_nothing_to_tell():
    with pytest.raises(NotFittedError):
        SequentialFeatureSelector(LinearRegression()).explain()


# --- the plan before a fit ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (
            {"n_features_to_select": 2},
            ["forward, from none of 4 features: 2 steps", "7 candidates", "moments of 5 folds"],
        ),
        (
            {"n_features_to_select": 0.5, "direction": "backward", "cv": 3, "scoring": "r2"},
            ["backward, from all of 4 features: 2 steps", "r2; 7 candidates", "moments of 3 folds"],
        ),
        ({}, ["2 steps", "7 candidates"]),
        ({"tol": 0.01}, ["at most 3 steps, ending when", "less than 0.01", "at most 9 candidates"]),
        ({"scoring": "neg_max_error"}, ["refits: scoring='neg_max_error' is not a"]),
        ({"cv": iter([([0, 1, 2, 3], [4, 5])])}, ["reading the folds would use them up"]),
    ],
    ids=["forward", "backward", "auto", "tol", "refits", "iterator"],
)
def test_the_search_is_told_before_it_is_made(options, words):
    X, y = data()
    selector = SequentialFeatureSelector(LinearRegression(), **options)
    text = selector.explain(X, y)
    for word in words:
        assert word in text
    assert not hasattr(selector, "support_")
    if "cv" not in options or isinstance(options["cv"], int):
        way = text.splitlines()[-1].split(maxsplit=1)[1]
        assert way in selector.fit(X, y).explain()
    with pytest.raises(ValueError, match="needs the target"):
        selector.explain(X)


def test_the_books_count_refits():
    X, y = data()
    plain = both(LinearRegression(), X, y, n_features_to_select=2, cv=3)
    assert [step["refits"] for step in plain.history_] == [0, 0]
    twice = both(LinearRegression(), np.column_stack([X, X]), y, n_features_to_select=2, cv=3)
    assert twice.history_[0]["refits"] == 2  # a column and its copy score the same
    refitted = both(sklearn_models.Lasso(0.1), X, y, n_features_to_select=2, cv=3)
    assert [step["refits"] for step in refitted.history_] == [4, 3]
