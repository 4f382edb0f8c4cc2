"""StepwiseRegression walks the path that refitting every candidate would walk."""

import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import statsmodels.api as sm
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.model_selection import KFold, PredefinedSplit, ShuffleSplit, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks
from statsmodels.tools.eval_measures import aicc

import trueline
from trueline import LinearRegression, StepwiseRegression
from trueline.checks.estimators import EstimatorPoints
from trueline.selection.stepwise import search as search_module
from trueline.table import Table, encode

CRITERIA = ["aic", "aicc", "bic", "adjusted_r2", "cp", "cv"]
DIRECTIONS = ["forward", "backward", "both"]


@parametrize_with_checks([StepwiseRegression()])
def test_contract(estimator, check):
    check(estimator)


@pytest.mark.slow
@parametrize_with_checks(
    [
        StepwiseRegression("forward", "cv", cv=KFold(2)),
        StepwiseRegression("forward", n_features_to_select=1),
        StepwiseRegression("both", "bic", fit_intercept=False),
        StepwiseRegression("forward", "aicc", max_features=1),
        StepwiseRegression("both", "adjusted_r2"),
    ]
)
def test_contract_with_more_settings(estimator, check):
    check(estimator)


def data(n=40, d=6, seed=3):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) + rng.standard_normal((n, 1)) + 2.0
    w = rng.standard_normal(d) * rng.integers(0, 2, d)
    return X, X @ w + 0.5 * rng.standard_normal(n) - 1.0


# --- the path, by refits ------------------------------------------------------------------------


def design(X, columns, fit_intercept):
    parts = [np.ones((len(X), 1))] if fit_intercept else []
    return np.hstack([*parts, X[:, sorted(columns)]])


def fit_of(X, y, columns, fit_intercept):
    A = design(X, columns, fit_intercept)
    if A.shape[1] == 0:
        return None
    return sm.OLS(y, A).fit()


def square_of(X, y, columns, fit_intercept):
    fit = fit_of(X, y, columns, fit_intercept)
    return float(y @ y) if fit is None else fit.ssr


def reference_cost(criterion, X, y, columns, fit_intercept):
    """The criterion of one model, fitted on its own; smaller is better."""
    n, p = len(y), len(columns) + fit_intercept
    if criterion == "cv":
        errors = 0.0
        for train, test in KFold(5).split(X):
            A = design(X, columns, fit_intercept)
            w = np.linalg.lstsq(A[train], y[train], rcond=None)[0]
            errors += np.sum((y[test] - A[test] @ w) ** 2)
        return errors / n
    ssr = square_of(X, y, columns, fit_intercept)
    llf = -n / 2 * (np.log(2 * np.pi * ssr / n) + 1)
    if criterion == "adjusted_r2":
        total = np.sum((y - y.mean() * fit_intercept) ** 2)
        return -(1 - ssr / (n - p) / (total / (n - fit_intercept)))
    if criterion == "cp":
        every = range(X.shape[1])
        whole = square_of(X, y, every, fit_intercept) / (n - X.shape[1] - fit_intercept)
        return ssr / whole - n + 2 * p
    if criterion == "aicc":
        return aicc(llf, n, p)
    return -2 * llf + p * {"aic": 2.0, "bic": np.log(n)}[criterion]


def reference_path(X, y, direction, criterion, fit_intercept=True, exactly=None, at_most=None):
    """The sets of columns that a greedy search with refits visits, and their costs."""
    d = X.shape[1]

    def cost(columns):
        return reference_cost(criterion, X, y, columns, fit_intercept)

    inside = set(range(d)) if direction == "backward" else set()
    path = [(inside, cost(inside))]
    while True:
        may_enter = direction != "backward" and len(inside) < (d if at_most is None else at_most)
        moves = [j for j in range(d) if (direction != "forward" if j in inside else may_enter)]
        if not moves or (exactly is not None and len(inside) == exactly):
            return path
        best = min(moves, key=lambda j: cost(inside ^ {j}))
        if exactly is None and not cost(inside ^ {best}) < path[-1][1] - 1e-9:
            return path
        inside = inside ^ {best}
        path.append((inside, cost(inside)))


def path_of(model):
    inside, path = set(), []
    for step in model.history_:
        inside = (inside | set(step["entered"])) - set(step["left"])
        path.append(inside)
    return path


def assert_same_path(model, path):
    assert path_of(model) == [columns for columns, _ in path]
    sign = -1 if model.criterion == "adjusted_r2" else 1
    costs = [sign * step["criterion"] for step in model.history_]
    assert_allclose(costs, [cost for _, cost in path], rtol=1e-9, atol=1e-9)
    assert set(model.get_support(indices=True)) == path[-1][0]


@pytest.mark.grid(2)
@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize("criterion", CRITERIA)
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_the_path_is_that_of_refitting_every_candidate(direction, criterion, fit_intercept):
    X, y = data()
    model = StepwiseRegression(direction, criterion, fit_intercept=fit_intercept).fit(X, y)
    assert_same_path(model, reference_path(X, y, direction, criterion, fit_intercept))
    assert model.finished_


@settings(max_examples=25, deadline=None)
@given(
    st.integers(0, 10_000),
    st.sampled_from(DIRECTIONS),
    st.sampled_from(CRITERIA),
    st.integers(1, 5),
)
def test_the_path_is_right_for_any_data(seed, direction, criterion, d):
    X, y = data(n=20, d=d, seed=seed)
    model = StepwiseRegression(direction, criterion).fit(X, y)
    assert_same_path(model, reference_path(X, y, direction, criterion))


@pytest.mark.parametrize("direction", ["forward", "backward"])
@pytest.mark.parametrize("count", [0, 2, 6])
def test_a_number_of_columns_is_reached_whatever_the_criterion(direction, count):
    X, y = data()
    model = StepwiseRegression(direction, "bic", n_features_to_select=count).fit(X, y)
    assert model.n_features_ == model.get_support().sum() == count
    assert_same_path(model, reference_path(X, y, direction, "bic", exactly=count))


@pytest.mark.parametrize("direction", ["forward", "both"])
def test_no_more_columns_than_allowed(direction):
    X, y = data()
    assert StepwiseRegression(direction).fit(X, y).n_features_ > 2
    model = StepwiseRegression(direction, max_features=2).fit(X, y)
    assert_same_path(model, reference_path(X, y, direction, "aic", at_most=2))
    assert model.n_features_ == 2


def test_the_charge_per_parameter_makes_aic_any_criterion_of_its_kind():
    X, y = data()
    own = StepwiseRegression(criterion="bic").fit(X, y)
    same = StepwiseRegression(criterion="aic", k=np.log(len(y))).fit(X, y)
    assert path_of(own) == path_of(same)
    assert StepwiseRegression(k=1e9).fit(X, y).n_features_ == 0
    assert StepwiseRegression(k=0.0).fit(X, y).n_features_ == 6


@pytest.mark.parametrize("direction", DIRECTIONS)
def test_the_books_hold_every_criterion(direction):
    X, y = data()
    model = StepwiseRegression(direction, "cp").fit(X, y)
    for step, columns in zip(model.history_, path_of(model)):
        for name in ["aic", "aicc", "bic", "cp"]:
            expected = reference_cost(name, X, y, columns, True)
            assert step[name] == pytest.approx(expected, rel=1e-9)
        expected = -reference_cost("adjusted_r2", X, y, columns, True)
        assert step["adjusted_r2"] == pytest.approx(expected, rel=1e-9, abs=1e-9)
        assert step["rss"] == pytest.approx(square_of(X, y, columns, True), rel=1e-10)
        assert step["n_parameters"] == len(columns) + 1
        assert step["n_features"] == step["n_terms"] == len(columns)
    table = pd.DataFrame(model.history_)
    assert table["step"].tolist() == list(range(len(table)))


def test_the_standard_error_is_over_folds():
    X, y = data()
    model = StepwiseRegression("forward", "cv", cv=4).fit(X, y)
    columns = np.flatnonzero(model.support_)
    predicted = cross_val_predict(LinearRegression(), X[:, columns], y, cv=4)
    each = [np.mean((y - predicted)[test] ** 2) for _, test in KFold(4).split(X)]
    assert model.history_[-1]["criterion"] == pytest.approx(np.mean(each), rel=1e-9)
    expected = np.std(each, ddof=1) / 2
    assert model.history_[-1]["standard_error"] == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize(
    "split", [ShuffleSplit(1, test_size=0.3, random_state=0), PredefinedSplit([-1] * 30 + [0] * 10)]
)
def test_a_hold_out_set_is_one_split(split):
    X, y = data()
    model = StepwiseRegression("forward", "cv", cv=split).fit(X, y)
    train, test = next(split.split(X))
    fit = LinearRegression().fit(X[train][:, model.support_], y[train])
    expected = np.mean((y[test] - fit.predict(X[test][:, model.support_])) ** 2)
    assert model.history_[-1]["criterion"] == pytest.approx(expected, rel=1e-9)
    assert np.isnan(model.history_[-1]["standard_error"])


# --- the fit ------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array, sp.csc_matrix, np.float32])
@pytest.mark.parametrize("weighted", [True, False])
def test_the_fit_is_least_squares_on_the_chosen_columns_and_proven(form, weighted):
    X, y = data()
    X[X < 1.5] = 0.0
    X, y = X.astype(np.float32).astype(float), y.astype(np.float32).astype(float)
    weights = np.random.default_rng(1).uniform(0.5, 2.0, len(y)) if weighted else None
    model = StepwiseRegression(max_features=3).fit(form(X), y, sample_weight=weights)
    assert 0 < model.n_features_ < 6
    plain = LinearRegression().fit(X[:, model.support_], y, sample_weight=weights)
    rtol = 1e-5 if form is np.float32 else 1e-10
    assert_allclose(model.coef_[model.support_], plain.coef_, rtol=rtol)
    assert not model.coef_[~model.support_].any()
    assert model.coef_.dtype == (np.float32 if form is np.float32 else float)
    assert_allclose(model.predict(form(X)), plain.predict(X[:, model.support_]), rtol=10 * rtol)
    assert model.verify(form(X), y, sample_weight=weights)
    assert model.certificate_.relative_gap < 1e-9
    for name in ["aic", "aicc", "bic"]:
        assert getattr(model, name)() == pytest.approx(getattr(plain, name)(), rel=1e-9)
    assert model.noise_variance_ == pytest.approx(plain.noise_variance_, rel=1e-9)


def test_weights_count_rows():
    X, y = data()
    counts = np.random.default_rng(1).integers(0, 4, len(y))
    for criterion in ["aic", "aicc", "bic", "adjusted_r2", "cp"]:
        for direction in DIRECTIONS:
            model = StepwiseRegression(direction, criterion)
            weighted = clone(model).fit(X, y, sample_weight=counts)
            repeated = clone(model).fit(np.repeat(X, counts, axis=0), np.repeat(y, counts))
            assert path_of(weighted) == path_of(repeated)
            assert weighted.history_[-1]["criterion"] == pytest.approx(
                repeated.history_[-1]["criterion"], rel=1e-9
            )
            assert_allclose(weighted.coef_, repeated.coef_, rtol=1e-9)


def test_the_certificate_refuses_other_data_and_other_coefficients():
    X, y = data()
    model = StepwiseRegression().fit(X, y)
    assert not model.verify(X, y[::-1].copy())
    assert not model.verify(X[:, ::-1], y)
    with pytest.raises(ValueError, match="X has 5 features"):
        model.verify(X[:, :5], y)
    chosen = model.get_support(indices=True)[0]
    model.coef_[chosen] *= 1.01
    assert not model.verify(X, y)
    model.coef_[~model.support_] = 1.0
    with pytest.raises(ValueError, match="coef_ was changed for columns that were not chosen"):
        model.certificate_


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_no_column_at_all_is_a_model_too(fit_intercept):
    X, y = data()
    model = StepwiseRegression("forward", n_features_to_select=0, fit_intercept=fit_intercept)
    model.fit(X, y)
    level = y.mean() if fit_intercept else 0.0
    assert_allclose(model.predict(X), level, rtol=1e-12, atol=0)
    assert model.verify(X, y)
    assert model.transform(X).shape == (40, 0)
    assert model.degrees_of_freedom_ == float(fit_intercept)


def test_it_selects_columns_for_others():
    X, y = data()
    frame = pd.DataFrame(X, columns=list("abcdef"))
    model = StepwiseRegression().fit(frame, y)
    chosen = [name for name, inside in zip("abcdef", model.support_) if inside]
    assert model.get_feature_names_out().tolist() == chosen
    assert_array_equal(model.transform(frame), X[:, model.support_])
    assert model.set_output(transform="pandas").transform(frame).columns.tolist() == chosen
    pipeline = make_pipeline(StandardScaler(), StepwiseRegression(), LinearRegression()).fit(X, y)
    assert_allclose(pipeline.predict(X), model.predict(frame), rtol=1e-9)


def test_before_a_fit_there_is_nothing_to_tell():
    for method in ["get_support", "get_feature_names_out", "explain", "aic"]:
        with pytest.raises(NotFittedError):
            getattr(StepwiseRegression(), method)()


# --- ties and dependent columns -----------------------------------------------------------------


@pytest.mark.grid(2)
@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize("criterion", CRITERIA)
@pytest.mark.parametrize("d", [3, 7, 40])
def test_of_equal_columns_the_lowest_is_taken(direction, criterion, d):
    X, y = data(n=200, d=d)
    order = np.random.default_rng(3).permutation(d)
    doubled = np.hstack([X, X[:, order], X])
    model = StepwiseRegression(direction, criterion).fit(doubled, y)
    plain = StepwiseRegression(direction, criterion).fit(X, y)
    assert model.get_support(indices=True).tolist() == plain.get_support(indices=True).tolist()
    assert max(model.get_support(indices=True)) < d
    assert [step["entered"] for step in model.history_] == [
        step["entered"] for step in plain.history_
    ]


def test_dependent_columns_never_enter():
    X, y = data(d=3)
    X = np.column_stack([X, X @ [1.0, 2.0, -1.0], np.full(len(X), 7.0), np.zeros(len(X))])
    model = StepwiseRegression("forward", k=0.0).fit(X, y)
    assert model.n_features_ == 3
    assert not model.support_[[4, 5]].any()
    with pytest.raises(ValueError, match="only 3 are linearly independent"):
        StepwiseRegression("forward", n_features_to_select=4).fit(X, y)


def test_a_perfect_fit_ends_the_search():
    X, _ = data(n=60, d=20)
    y = X[:, 3] - 2 * X[:, 7] + 1.0
    for criterion in CRITERIA:
        model = StepwiseRegression("both", criterion).fit(X, y)
        assert {3, 7} <= set(model.get_support(indices=True))
        assert model.n_features_ <= 4
        assert_allclose(model.predict(X), y, rtol=1e-9)
        assert model.verify(X, y)


def test_a_constant_target_needs_no_column():
    X, _ = data()
    for criterion in CRITERIA:
        model = StepwiseRegression("forward", criterion).fit(X, np.full(len(X), 3.0))
        assert model.n_features_ == 0
        assert_allclose(model.predict(X), 3.0)


@pytest.mark.parametrize("criterion", ["aic", "aicc", "bic", "adjusted_r2", "cv"])
def test_more_columns_than_rows(criterion):
    X, y = data(n=15, d=40)
    model = StepwiseRegression("forward", criterion, max_features=4).fit(X, y)
    assert_same_path(model, reference_path(X, y, "forward", criterion, at_most=4))
    assert model.verify(X, y)


@pytest.mark.parametrize("scale", [1e-60, 1e60])
def test_units_do_not_matter(scale):
    X, y = data()
    model = StepwiseRegression().fit(X * scale, y / scale)
    assert path_of(model) == path_of(StepwiseRegression().fit(X, y))


# --- factors ------------------------------------------------------------------------------------


def factor_data(n=80, seed=0):
    rng = np.random.default_rng(seed)
    city, size = rng.integers(0, 4, n), rng.standard_normal(n)
    kind = rng.integers(0, 3, n)
    y = np.array([0.0, 2.0, 2.0, -1.0])[city] + size + 0.5 * rng.standard_normal(n)
    names = [f"city={c}" for c in "bcd"] + ["size"] + [f"kind={k}" for k in "yz"]
    columns = [city == 1, city == 2, city == 3, size, kind == 1, kind == 2]
    return pd.DataFrame(np.column_stack(columns).astype(float), columns=names), y


@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize("criterion", CRITERIA)
def test_columns_of_a_factor_go_together(direction, criterion):
    X, y = factor_data()
    model = StepwiseRegression(direction, criterion, groups="factors").fit(X, y)
    for step in model.history_[1:]:
        assert step["entered"] + step["left"] in ([0, 1, 2], [3], [4, 5])
    assert model.support_[:4].all()
    assert model.history_[-1]["n_terms"] == 2 + model.support_[4]
    labels = StepwiseRegression(direction, criterion, groups=list("aaabcc")).fit(X.to_numpy(), y)
    assert path_of(labels) == path_of(model)


def test_the_path_of_terms_is_that_of_refits():
    X, y = factor_data(seed=4)
    terms = [{0, 1, 2}, {3}, {4, 5}]
    model = StepwiseRegression("both", "aic", groups=[[0, 1, 2], [4, 5]]).fit(X, y)
    inside, expected = set(), [set()]
    while True:
        costs = [reference_cost("aic", X.to_numpy(), y, inside ^ term, True) for term in terms]
        if min(costs) >= reference_cost("aic", X.to_numpy(), y, inside, True):
            break
        inside = inside ^ terms[int(np.argmin(costs))]
        expected.append(inside)
    assert path_of(model) == expected


def test_a_full_set_of_indicators_enters_without_the_dependent_one():
    X, y = factor_data()
    full = np.column_stack([1 - X.iloc[:, :3].sum(axis=1), X])
    model = StepwiseRegression("forward", groups=list("aaaabcc")).fit(full, y)
    assert model.support_[:5].tolist() == [True, True, True, False, True]
    assert model.history_[-1]["n_parameters"] == model.n_features_ + 1
    reduced = StepwiseRegression("forward", groups=list("aaabcc")).fit(X, y)
    assert_allclose(model.predict(full), reduced.predict(X), rtol=1e-9)


def test_factors_of_a_table_are_known_by_their_names():
    X, y = factor_data()
    city = np.where(X["city=b"] == 1, "Rome", np.where(X["city=c"] == 1, "Oslo", "Bonn"))
    columns = {"city": city.tolist(), "size": X["size"].astype(str).tolist()}
    table = Table.from_columns({**columns, "y": y.astype(str).tolist()})
    encoded = encode(table, "y")
    frame = pd.DataFrame(encoded.X, columns=encoded.names)
    by_name = StepwiseRegression(groups="factors").fit(frame, encoded.y)
    groups = {source.name: source.names for source in encoded.encoding.sources}
    by_source = StepwiseRegression(groups=groups).fit(frame, encoded.y)
    assert by_name.history_ == by_source.history_
    assert sorted(by_name.history_[1]["entered"] + by_name.history_[2]["entered"]) == [0, 1, 2]


# --- watching, stopping, explaining -------------------------------------------------------------


def test_ctrl_c_keeps_what_was_found(monkeypatch):
    X, y = data(n=100, d=10)
    whole = StepwiseRegression("forward", k=0.0).fit(X, y)
    price, calls = search_module.FitScorer.costs, []

    def interrupted(self, candidates):
        calls.append(1)
        if len(calls) == 4:
            raise KeyboardInterrupt
        return price(self, candidates)

    monkeypatch.setattr(search_module.FitScorer, "costs", interrupted)
    model = StepwiseRegression("forward", k=0.0)
    with pytest.warns(ConvergenceWarning, match="stopped after step 3"):
        model.fit(X, y)
    assert not model.finished_
    assert model.history_ == whole.history_[:4]
    assert model.n_features_ == 3
    assert model.verify(X, y)


def test_a_callback_sees_every_step_and_may_stop(monkeypatch):
    from trueline.estimators.column_selection import stepwise

    X, y = data(n=100, d=10)
    seen = []

    def stop_at_two(event):
        seen.append((event.iteration, event.coef.copy(), event.intercept.copy()))
        return event.iteration == 2

    original = stepwise.watch

    class Watching:
        def __init__(self, *arguments):
            self.inner = original(*arguments)

        def __enter__(self):
            monitor = self.inner.__enter__()
            monitor.callbacks.append(stop_at_two)
            return monitor

        def __exit__(self, *error):
            return self.inner.__exit__(*error)

    monkeypatch.setattr(stepwise, "watch", Watching)
    with pytest.warns(ConvergenceWarning, match="stopped after step 2"):
        model = StepwiseRegression("forward", k=0.0).fit(X, y)
    assert [number for number, *_ in seen] == [1, 2]
    assert_allclose(seen[-1][1][:, 0], model.coef_, rtol=1e-9)
    assert_allclose(seen[-1][2], model.intercept_, rtol=1e-9)


def test_explain_tells_the_steps_by_name():
    X, y = factor_data()
    model = StepwiseRegression(criterion="bic", groups="factors")
    before = str(model.explain(X, y))
    assert "both: lets columns in or out" in before
    assert "6 in 3 terms, 80 rows" in before
    text = str(model.fit(X, y).explain())
    for word in ["bic, Schwarz", "+ city=b city=c city=d", "+ size", "proof", "cholesky"]:
        assert word in text
    rows = model.explain().table()
    assert [row["entered"] for row in rows] == [
        [X.columns[j] for j in step["entered"]] for step in model.history_
    ]
    with pytest.raises(ValueError, match="needs the target y"):
        model.explain(X)


def test_the_model_survives_a_copy():
    X, y = data()
    model = StepwiseRegression().fit(X, y)
    again = clone(model).fit(X, y)
    assert again.history_ == model.history_
    assert_array_equal(again.coef_, model.coef_)


def test_threads_do_not_change_the_answer():
    from threadpoolctl import threadpool_limits

    points = EstimatorPoints.of(None)
    models = []
    for threads in (1, 2):
        with threadpool_limits(threads, user_api="blas"):
            models.append(StepwiseRegression(criterion="cv").fit(points.X, points.y))
    assert models[0].history_ == models[1].history_
    assert_array_equal(models[0].coef_, models[1].coef_)


# --- wrong input --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"direction": "sideways"}, "direction"),
        ({"criterion": "r2"}, "criterion"),
        ({"direction": "forward", "n_features_to_select": 7}, "more than the 6 columns"),
        ({"direction": "forward", "n_features_to_select": -1}, "n_features_to_select"),
        ({"direction": "forward", "n_features_to_select": 1.5}, "n_features_to_select"),
        ({"max_features": 7}, "more than the 6 columns"),
        ({"direction": "both", "n_features_to_select": 2}, "needs direction='forward'"),
        ({"direction": "backward", "max_features": 2}, "use n_features_to_select"),
        (
            {"direction": "forward", "max_features": 1, "n_features_to_select": 2},
            "max_features=1 is less than",
        ),
        ({"k": -1.0}, "k"),
        ({"k": np.nan}, "k"),
        ({"k": 3.0, "criterion": "bic"}, "k=3.0 is the charge"),
        ({"groups": []}, "0 labels for 6 columns"),
        ({"groups": [[0], []]}, "Group 1 is empty"),
        ({"groups": "factors"}, "Give X as a DataFrame"),
        ({"groups": [[0, 1], [2, 3, 4, 5]], "max_features": 3}, "more than the 2 terms"),
        ({"criterion": "cv", "cv": 1}, "'cv' parameter"),
        ({"criterion": "cv", "cv": [(np.arange(40), np.arange(0))]}, "fold 0 are empty"),
    ],
)
def test_parameters_that_cannot_be_are_refused(parameters, message):
    X, y = data()
    with pytest.raises(ValueError, match=message):
        StepwiseRegression(**parameters).fit(X, y)


@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_numbers_that_are_none_are_refused(direction, bad):
    X, y = data()
    for where in ("X", "y"):
        X_bad, y_bad = X.copy(), y.copy()
        (X_bad if where == "X" else y_bad)[3] = bad
        with pytest.raises(ValueError, match=r"contains (NaN|infinity)"):
            StepwiseRegression(direction).fit(X_bad, y_bad)


def test_weights_that_cannot_be_are_refused():
    X, y = data()
    with pytest.raises(ValueError, match="all zero|at least one non-zero"):
        StepwiseRegression().fit(X, y, sample_weight=np.zeros(len(y)))
    with pytest.raises(ValueError, match="[Nn]egative"):
        StepwiseRegression().fit(X, y, sample_weight=-np.ones(len(y)))
    weights = np.ones(len(y))
    weights[:8] = 0.0
    with pytest.raises(ValueError, match="fold 0 are empty or have no weight"):
        StepwiseRegression(criterion="cv").fit(X, y, sample_weight=weights)


def test_too_few_rows_for_all_columns_are_said():
    X, y = data(n=7, d=6)
    for model in (StepwiseRegression("backward"), StepwiseRegression("forward", "cp")):
        with pytest.raises(ValueError, match="7 parameters leave nothing of 7 rows"):
            model.fit(X, y)


def test_squares_out_of_range_are_said():
    X, y = data()
    with pytest.raises(ValueError, match="multiply the columns or the target by a power of ten"):
        StepwiseRegression().fit(X * 1e200, y)


def test_several_targets_are_refused():
    X, y = data()
    with pytest.raises(ValueError, match="1d array"):
        StepwiseRegression().fit(X, np.column_stack([y, y]))


def test_nothing_warns():
    X, y = data()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for direction in DIRECTIONS:
            StepwiseRegression(direction, "cv").fit(X, y)
    assert trueline.StepwiseRegression is StepwiseRegression


# --- categories of DataFrames -------------------------------------------------------------------


def flats(n=200, seed=0):
    """Rents by size, city and floor; the colour of the door does not matter."""
    pandas = pytest.importorskip("pandas")
    rng = np.random.default_rng(seed)
    city = rng.choice(["Rome", "Oslo", "Lima"], n)
    frame = pandas.DataFrame(
        {
            "size": rng.uniform(20, 90, n),
            "city": pandas.Categorical(city, categories=["Rome", "Lima", "Oslo", "Paris"]),
            "door": rng.choice(["red", "blue", "green"], n),
            "lift": rng.random(n) < 0.5,
        }
    )
    level = np.select([city == "Rome", city == "Oslo"], [0.0, 40.0], 10.0)
    y = 5 * frame["size"].to_numpy() + level + 3.0 * frame["lift"] + rng.standard_normal(n)
    return frame, y.to_numpy()


def by_hand(frame):
    """The same columns with zeros and ones, as the model should see them."""
    return np.column_stack(
        [
            frame["size"],
            frame["city"] == "Lima",
            frame["city"] == "Oslo",
            frame["door"] == "green",
            frame["door"] == "red",
            frame["lift"],
        ]
    ).astype(float)


@pytest.mark.parametrize("direction", ["forward", "backward", "both"])
@pytest.mark.parametrize("criterion", ["bic", "cv"])
def test_levels_of_a_category_enter_together(direction, criterion):
    frame, y = flats()
    model = StepwiseRegression(direction, criterion).fit(frame, y)
    groups = [[0], [1, 2], [3, 4], [5]]
    same = StepwiseRegression(direction, criterion, groups=groups).fit(by_hand(frame), y)
    assert model.history_ == same.history_
    assert model.coef_.tobytes() == same.coef_.tobytes()
    assert model.predict(frame).tobytes() == same.predict(by_hand(frame)).tobytes()
    assert_allclose(model.transform(frame), same.transform(by_hand(frame)))
    assert model.verify(frame, y)
    assert model.get_feature_names_out().tolist() == ["size", "city=Lima", "city=Oslo", "lift"]
    assert model.feature_names_in_.tolist() == ["size", "city", "door", "lift"]
    assert model.n_features_in_ == 4
    assert model.encoded_names_.tolist()[3:5] == ["door=green", "door=red"]
    assert "+ city=Lima city=Oslo" in str(model.explain()) or direction == "backward"


def test_the_plan_counts_the_terms_of_categories():
    frame, y = flats()
    assert "6 in 4 terms, 200 rows" in str(StepwiseRegression().explain(frame, y))


def test_groups_name_columns_of_the_frame():
    frame, y = flats()
    model = StepwiseRegression("forward", "bic", groups=[["city", "lift"]]).fit(frame, y)
    assert [1, 2, 5] in [step["entered"] for step in model.history_]
    limited = StepwiseRegression("forward", n_features_to_select=2).fit(frame, y)
    assert limited.history_[-1]["n_terms"] == 2
    with pytest.raises(ValueError, match="5 is more than the 4 terms"):
        StepwiseRegression("forward", n_features_to_select=5).fit(frame, y)


def test_categories_without_a_declared_order_are_sorted():
    polars = pytest.importorskip("polars")
    frame, y = flats()
    other = polars.DataFrame({name: frame[name].tolist() for name in frame})
    model = StepwiseRegression("both", "bic").fit(other, y)
    assert model.get_feature_names_out().tolist() == ["size", "city=Oslo", "city=Rome", "lift"]
    same = StepwiseRegression("both", "bic").fit(frame, y)
    assert_allclose(model.predict(other), same.predict(frame), rtol=1e-9)


def test_a_model_file_keeps_categories(tmp_path):
    from trueline import load, save

    frame, y = flats()
    model = StepwiseRegression("both", "bic").fit(frame, y)
    again = load(save(model, tmp_path / "m.trueline"))
    assert again.predict(frame).tobytes() == model.predict(frame).tobytes()
    assert again.verify(frame, y)


def test_new_rows_must_have_the_columns_and_levels_of_the_old_ones():
    frame, y = flats()
    model = StepwiseRegression("both", "bic").fit(frame, y)
    with pytest.raises(ValueError, match=r"Column 'door' holds 'pink' \(row 2\).*has not seen"):
        model.predict(frame.assign(door=["red", "pink", *frame["door"][2:]]))
    with pytest.raises(ValueError, match="no column 'city'"):
        model.predict(frame.drop(columns="city"))
    with pytest.raises(ValueError, match="in disorder"):
        model.predict(frame[["city", "size", "door", "lift"]])
    with pytest.raises(ValueError, match="give one with the columns size, city"):
        model.predict(by_hand(frame))
    missing = frame.assign(door=["red", None, *frame["door"][2:]])
    with pytest.raises(ValueError, match="'door' has no value in row 2"):
        StepwiseRegression().fit(missing, y)
    with pytest.raises(ValueError, match="NaN"):
        model.predict(frame.assign(size=[np.nan, *frame["size"][1:]]))


def test_a_fit_without_categories_forgets_those_of_the_last():
    frame, y = flats()
    model = StepwiseRegression("both", "bic").fit(frame, y)
    model.fit(by_hand(frame), y)
    assert model.n_features_in_ == 6
    assert not hasattr(model, "feature_names_in_")
    assert len(model.predict(by_hand(frame))) == 200
