"""Who may watch a fit: scikit-learn's callbacks, a progress bar, a trace, a clock."""

import io
import sys
import warnings

import numpy as np
import pytest
import rich
from rich.console import Console
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.linear_model import Ridge as TheirRidge

import trueline
from trueline import (
    BestSubset,
    LinearRegressor,
    PolynomialRegression,
    RidgeCV,
    ZeroOneHalfspace,
)

callback = pytest.importorskip("sklearn.callback", reason="scikit-learn 1.9 brings callbacks")

ITERATIVE = ["conjugate_gradient", "gradient_descent", "proximal_gradient"]
SLOW = {"solver": "gradient_descent", "tol": 1e-12}


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 5)) * [1.0, 2.0, 3.0, 4.0, 5.0]
    return X, X @ rng.standard_normal(5) + rng.standard_normal(60)


class Recorder:
    """Writes down what it hears; may ask to stop, or fail, at the end of an iteration."""

    def __init__(self, stop_at=None, fail_at=None):
        self.heard, self.stop_at, self.fail_at = [], stop_at, fail_at

    def setup(self, estimator, context):
        self.heard.append("setup")

    def on_fit_task_begin(self, estimator, context):
        self.heard.append(f"begin {context.task_name}")

    def on_fit_task_end(self, estimator, context):
        self.heard.append(f"end {context.task_name}")
        count = self.heard.count("end iteration")
        if context.task_name == "iteration" and count == self.fail_at:
            raise ZeroDivisionError("the callback is broken")
        return count == self.stop_at

    def teardown(self, estimator, context):
        self.heard.append("teardown")


@pytest.mark.parametrize("solver", ITERATIVE)
def test_a_callback_hears_every_iteration(solver, rows):
    recorder = Recorder()
    model = LinearRegressor(solver=solver).set_callbacks(recorder).fit(*rows)
    iteration = ["begin iteration", "end iteration"]
    assert model.n_iter_ > 0
    assert recorder.heard == [
        *["setup", "begin fit"],
        *iteration * model.n_iter_,
        *["end fit", "teardown"],
    ]


@pytest.mark.parametrize(
    "model",
    [
        LinearRegressor(solver="cholesky"),
        trueline.LinearRegression(),
        trueline.Ridge(),
        RidgeCV(),
        RidgeCV(cv=3),
        PolynomialRegression(),
    ],
    ids=repr,
)
def test_a_direct_solver_has_no_iterations_to_tell(model, rows):
    recorder = Recorder()
    model.set_callbacks(recorder).fit(*rows)
    model.set_callbacks()
    assert recorder.heard == ["setup", "begin fit", "end fit", "teardown"]


def test_watching_does_not_change_the_answer(rows):
    alone = LinearRegressor(solver="conjugate_gradient").fit(*rows)
    watched = LinearRegressor(solver="conjugate_gradient", trace=True)
    watched.set_callbacks(Recorder()).fit(*rows)
    np.testing.assert_allclose(watched.coef_, alone.coef_, rtol=1e-5)


def test_a_callback_can_stop_the_fit(rows):
    recorder = Recorder(stop_at=3)
    model = LinearRegressor(**SLOW).set_callbacks(recorder)
    with pytest.warns(ConvergenceWarning, match="a callback asked to stop"):
        model.fit(*rows)
    assert model.n_iter_ == recorder.heard.count("end iteration") == 3
    assert recorder.heard[-2:] == ["end fit", "teardown"]
    assert model.certificate_.gap > 0
    assert model.verify(*rows)


def test_all_callbacks_hear_of_the_iteration_that_was_the_last(rows):
    first, second = Recorder(stop_at=2), Recorder()
    with pytest.warns(ConvergenceWarning):
        LinearRegressor(**SLOW).set_callbacks(first, second).fit(*rows)
    assert first.heard == second.heard


def test_a_callback_that_fails_is_torn_down(rows):
    broken, bystander = Recorder(fail_at=2), Recorder()
    model = LinearRegressor(**SLOW).set_callbacks(broken, bystander)
    with pytest.raises(ZeroDivisionError, match="the callback is broken"):
        model.fit(*rows)
    for recorder in (broken, bystander):
        assert recorder.heard.count("teardown") == 1
        assert recorder.heard[-1] == "teardown"


@pytest.mark.parametrize("name", ["LinearRegressor", "RidgeCV", "PolynomialRegression", "Ridge"])
def test_data_that_cannot_be_fitted_leave_nothing_set_up(name, rows):
    X, y = rows
    recorder = Recorder()
    model = getattr(trueline, name)().set_callbacks(recorder)
    with pytest.raises(ValueError, match="NaN"):
        model.fit(np.where(X > 8, np.nan, X), y)
    assert recorder.heard.count("setup") == recorder.heard.count("teardown")


def test_the_model_can_be_fitted_again_after_a_failure(rows):
    model = LinearRegressor(**SLOW).set_callbacks(Recorder(fail_at=1))
    with pytest.raises(ZeroDivisionError):
        model.fit(*rows)
    recorder = Recorder()
    model.set_params(tol=1e-6).set_callbacks(recorder).fit(*rows)
    assert recorder.heard[0] == "setup"
    assert recorder.heard[-1] == "teardown"


def test_callbacks_can_be_taken_off_again(rows):
    recorder = Recorder()
    LinearRegressor(solver="conjugate_gradient").set_callbacks(recorder).set_callbacks().fit(*rows)
    assert recorder.heard == []


def test_what_is_no_callback_is_refused():
    with pytest.raises(TypeError, match="FitCallback"):
        LinearRegressor().set_callbacks(print)


# --- what callbacks are shown of the model -------------------------------------------------------


def scores(model, X, y, *weights, scoring="r2"):
    """What scikit-learn's monitor logs, as (name of the task, score) in the order of the tasks."""
    monitor = callback.ScoringMonitor(scoring=scoring)
    model.set_callbacks(monitor).fit(X, y, *weights)
    model.set_callbacks()
    log = sorted(
        monitor.get_logs().data, key=lambda row: (-len(row["task_id_path"]), row["task_id"])
    )
    return [(row["task_name"], row[scoring]) for row in log]


@pytest.mark.grid(1)
@pytest.mark.parametrize("shape", [(60,), (60, 1), (60, 2)], ids=str)
@pytest.mark.parametrize("solver", ITERATIVE)
def test_a_monitor_scores_the_model_of_every_iteration(solver, shape, rows):
    X, y = rows[0], np.resize(rows[1], shape)
    model = LinearRegressor(solver=solver)
    logged = scores(model, X, y)
    names = [name for name, _ in logged]
    assert names == ["iteration"] * model.n_iter_ + ["fit"]
    values = [value for _, value in logged]
    assert values[-1] == model.score(X, y)
    assert values[-2] == pytest.approx(values[-1], rel=1e-12)
    assert values[0] < values[-1]


@pytest.mark.parametrize(
    "model",
    [
        LinearRegressor(solver="cholesky"),
        trueline.LinearRegression(),
        trueline.Ridge(),
        RidgeCV(),
        RidgeCV(cv=3),
        PolynomialRegression(),
    ],
    ids=repr,
)
def test_a_monitor_scores_a_direct_fit_once(model, rows):
    assert scores(model, *rows) == [("fit", model.score(*rows))]


@pytest.mark.parametrize("solver", ["cholesky", "conjugate_gradient"])
def test_a_monitor_scores_with_the_weights_of_the_fit(solver, rows):
    X, y = rows
    weights = np.arange(60.0)  # the first row does not count
    model = LinearRegressor(solver=solver)
    name, value = scores(model, X, y, weights)[-1]
    assert (name, value) == ("fit", model.score(X, y, weights))
    name, value = scores(model, X, y, 2.0)[-1]
    assert (name, value) == ("fit", pytest.approx(model.score(X, y), rel=1e-12))


def test_a_monitor_logs_as_it_does_for_models_of_scikit_learn(rows):
    """One row per iteration and one for the fit, with the same columns."""
    X, y = rows
    ours, theirs = (
        callback.ScoringMonitor(scoring="r2"),
        callback.ScoringMonitor(scoring="accuracy"),
    )
    LinearRegressor(solver="conjugate_gradient").set_callbacks(ours).fit(X, y)
    LogisticRegression().set_callbacks(theirs).fit(X, y > 0)
    columns = [set(monitor.get_logs().data[0]) for monitor in (ours, theirs)]
    assert columns[0] - {"r2"} == columns[1] - {"accuracy"}


@pytest.mark.parametrize("scale", [1e-200, 1e200])
def test_models_of_iterations_are_in_the_units_of_the_data(scale, rows):
    X, y = rows
    model = LinearRegressor(solver="conjugate_gradient", penalty=None, tol=1e-12)
    logged = scores(model, X * scale, y)
    assert logged[-2][1] == pytest.approx(logged[-1][1], rel=1e-9)
    assert logged[-1][1] == pytest.approx(scores(model, X, y)[-1][1], rel=1e-9)


def test_models_of_iterations_have_the_precision_of_the_data(rows):
    X, y = rows
    seen = []

    class Keeper(Recorder):
        def on_fit_task_end(self, estimator, context, *, fitted_estimator=None):
            seen.append(fitted_estimator)

    LinearRegressor(solver="conjugate_gradient").set_callbacks(Keeper()).fit(
        X.astype(np.float32), y
    )
    assert {model.coef_.dtype for model in seen} == {np.dtype(np.float32)}
    assert len({id(model.coef_) for model in seen}) == len(seen)


@pytest.fixture
def screen(monkeypatch):
    """What rich draws."""
    console = Console(file=io.StringIO(), force_terminal=True, width=120)
    monkeypatch.setattr(rich, "get_console", lambda: console)
    monkeypatch.setattr("rich.progress.get_console", lambda: console)
    return console.file


@pytest.mark.parametrize("solver", ["conjugate_gradient", "cholesky"])
def test_the_progress_bar_of_scikit_learn(solver, rows, screen):
    model = LinearRegressor(solver=solver).set_callbacks(callback.ProgressBar()).fit(*rows)
    assert "LinearRegressor" in screen.getvalue()
    assert model.verify(*rows)


@pytest.mark.parametrize("solver", ITERATIVE)
def test_progress_draws_objective_and_gap(solver, rows, screen):
    model = LinearRegressor(solver=solver, progress=True).fit(*rows)
    assert f"iteration {model.n_iter_}  objective" in screen.getvalue()
    assert "gap" in screen.getvalue()


def test_progress_is_put_away_after_a_failure(rows, screen):
    model = LinearRegressor(**SLOW, progress=True).set_callbacks(Recorder(fail_at=1))
    with pytest.raises(ZeroDivisionError):
        model.fit(*rows)
    LinearRegressor(solver="conjugate_gradient", progress=True).fit(
        *rows
    )  # only one bar can live at a time


def test_nothing_is_drawn_unless_asked_for(rows, screen, capfd):
    LinearRegressor(solver="conjugate_gradient").fit(*rows)
    assert screen.getvalue() == ""
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("solver", ITERATIVE)
def test_a_trace_holds_every_iteration_from_the_start(solver, rows):
    model = LinearRegressor(solver=solver, trace=True).fit(*rows)
    trace = model.trace_
    np.testing.assert_array_equal(trace["iteration"], np.arange(model.n_iter_ + 1))
    assert np.isfinite(trace["objective"]).all()
    assert (np.diff(trace["seconds"]) >= 0).all()
    assert trace["gap"][-1] < trace["gap"][0]
    objective = model.certificate_.objective
    assert (trace["objective"] >= objective * (1 - 1e-12)).all()
    assert trace["objective"][-1] == pytest.approx(objective, rel=1e-6)


@pytest.mark.parametrize("solver", ITERATIVE)
def test_there_is_no_trace_unless_asked_for(solver, rows):
    assert len(LinearRegressor(solver=solver).fit(*rows).trace_) == 0


def test_no_time_at_all_is_one_iteration(rows):
    model = LinearRegressor(**SLOW, time_limit=0.0)
    with pytest.warns(ConvergenceWarning, match="the time limit was reached"):
        model.fit(*rows)
    assert model.n_iter_ == 1
    assert model.verify(*rows)


def test_a_limit_that_is_not_reached_changes_nothing(rows):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        limited = LinearRegressor(solver="conjugate_gradient", time_limit=600.0).fit(*rows)
    free = LinearRegressor(solver="conjugate_gradient").fit(*rows)
    np.testing.assert_array_equal(limited.coef_, free.coef_)


def test_callbacks_of_a_grid_search_reach_the_models_in_it(rows):
    from sklearn.model_selection import GridSearchCV

    class Everywhere(Recorder):
        max_propagation_depth = None

    search = GridSearchCV(LinearRegressor(solver="conjugate_gradient"), {"alpha": [1.0, 2.0]}, cv=2)
    theirs = GridSearchCV(TheirRidge(), {"alpha": [1.0, 2.0]}, cv=2).fit(*rows)
    recorder = Everywhere()
    search.set_callbacks(recorder).fit(*rows)
    assert search.best_params_ == theirs.best_params_
    assert "end iteration" in recorder.heard
    assert recorder.heard.count("setup") == recorder.heard.count("teardown") == 1


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.mark.parametrize("verbose", [None, False])
@pytest.mark.parametrize("Model", [BestSubset, ZeroOneHalfspace])
def test_a_long_search_shows_on_a_terminal_how_far_it_is(monkeypatch, Model, verbose):
    monkeypatch.setattr("trueline.estimators.shared.base._PATIENCE", 1e-9)  # anything is long
    monkeypatch.setattr(sys, "stderr", terminal := Terminal())
    rng = np.random.default_rng(5)
    X, y = rng.standard_normal((40, 3)), rng.integers(2, size=40)
    Model(verbose=verbose).fit(X, y)
    assert ("gap" in terminal.getvalue()) == (verbose is None)


def test_a_short_search_shows_nothing(monkeypatch):
    monkeypatch.setattr(sys, "stderr", terminal := Terminal())
    ZeroOneHalfspace().fit([[0.0], [1.0], [2.0]], [0, 1, 0])
    assert terminal.getvalue() == ""
