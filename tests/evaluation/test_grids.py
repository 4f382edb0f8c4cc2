"""Grids come from the data, go on beyond their ends, and a choice at an end is said."""

import io

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.linear_model import ElasticNetCV
from sklearn.model_selection import cross_val_score
from sklearn.preprocessing import scale

import trueline as tl
from trueline.evaluation.candidates import candidates_for
from trueline.evaluation.task import make_task


def low_noise(unit=3000.0, n=777, d=17):
    """Standardised columns that depend on each other, and a target in units of thousands."""
    rng = np.random.default_rng(0)
    X = scale(rng.standard_normal((n, d)) + rng.standard_normal((n, 1)))
    w = rng.standard_normal(d)
    signal = X @ w
    return X, unit * (signal / signal.std() + 0.3 * rng.standard_normal(n))


@pytest.mark.parametrize("unit", [1e-6, 1.0, 3000.0, 1e9])
def test_the_elastic_net_is_as_good_as_the_lasso_where_little_penalty_is_best(unit):
    X, y = low_noise(unit)
    compared = tl.compare(X, y, ["least squares", "ridge", "lasso", "elastic net"])
    assert compared["elastic net"].score > compared["lasso"].score - 0.01
    best = cross_val_score(tl.LinearRegression(), X, y).mean()
    for entry in compared.entries:
        assert entry.score > best - 1e-3


def test_as_good_as_a_search_that_knows_which_strengths_matter():
    X, y = low_noise()
    theirs = ElasticNetCV(alphas=np.logspace(1, -6, 30), cv=5).fit(X, y)
    ours = tl.compare(X, y, ["elastic net"]).best
    expected = cross_val_score(
        tl.ElasticNet(theirs.alpha_, l1_ratio=0.5), X, y, scoring="neg_mean_squared_error"
    ).mean()
    found = cross_val_score(ours.model, X, y, scoring="neg_mean_squared_error").mean()
    assert found >= expected * (1 + 1e-3)  # errors are negative


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("weighted", [False, True])
def test_grids_of_absolute_values_begin_where_no_column_is_left(kind, weighted):
    X, y = low_noise()
    s = np.random.default_rng(1).integers(0, 3, len(y)).astype(float) if weighted else None
    task = make_task(kind(X), y, cv=5, sample_weight=s, is_classifier=False)
    for candidate in candidates_for(["lasso", "elastic net"], task):
        top = candidate.settings[0]["alpha"]
        for share, is_empty in ((1 + 1e-9, True), (0.99, False)):
            model = candidate.model.set_params(alpha=top * share).fit(task.matrix, y, s)
            assert (np.count_nonzero(model.coef_) == 0) == is_empty


@pytest.mark.parametrize("load", [load_iris, load_breast_cancer])
def test_grids_of_costs_begin_where_no_column_is_left(load):
    X, y = load(return_X_y=True)
    task = make_task(scale(X), y, cv=5, is_classifier=True)
    (candidate,) = candidates_for(["logistic, L1"], task)
    first = candidate.settings[0]["C"]
    for share, is_empty in ((1 - 1e-9, True), (1.01, False)):
        model = candidate.model.set_params(C=first * share).fit(task.matrix, y)
        assert (np.count_nonzero(model.coef_) == 0) == is_empty


@pytest.mark.grid(1)
@pytest.mark.parametrize("unit", [1e-4, 1.0, 1e4])
@pytest.mark.parametrize("name", ["ridge", "logistic, L2", "linear SVM"])
def test_grids_of_squares_follow_the_units_of_the_columns(unit, name):
    """Columns in other units are fitted as well: alpha and 1/C go with the square of the unit."""
    X, y = load_breast_cancer(return_X_y=True)
    X = scale(X)
    task = "regression" if name == "ridge" else "classification"
    one, other = (tl.compare(X * u, y, [name], task=task, cv=3).best for u in (1.0, unit))
    assert_allclose(other.score, one.score, atol=0.01)


def test_a_grid_is_continued_until_the_best_is_inside():
    """Noise alone: the best ridge regression is the strongest, as far as the score changes."""
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((60, 40)), rng.standard_normal(60)
    entry = tl.compare(X, y, ["ridge"]).best
    values = [setting["alpha"] for setting in entry.grid.settings]
    assert values == sorted(values, reverse=True)
    assert entry.grid.test["score"].shape == (5, len(values))
    ratios = np.array(values[:-1]) / np.array(values[1:])
    assert_allclose(ratios, np.sqrt(10.0))


def test_a_choice_at_an_end_is_always_said():
    rng = np.random.default_rng(0)
    X, noise = rng.standard_normal((60, 5)), rng.standard_normal(60)
    nothing = tl.compare(X, noise, ["lasso"])
    assert nothing.best.nonzeros == 0
    assert "leaves no column" in nothing.best.edge
    given = tl.compare(X, X.sum(axis=1) + 0.1 * noise, [(tl.Ridge(), {"alpha": [1.0, 100.0]})])
    assert given.best.edge.startswith("alpha=1 is the smallest of the grid that was given")
    for compared in (nothing, given):
        assert "(edge)" in str(compared)
        assert f"{compared.best.name}: {compared.best.edge}" in str(compared)
        assert compared.rows()[0]["edge"] == compared.best.edge


def test_the_end_of_what_a_parameter_can_be_is_no_edge():
    X, y = low_noise(n=100)
    best = tl.compare(X, y, [(tl.ElasticNet(), {"alpha": [1.0], "l1_ratio": [1.0, 0.5]})]).best
    assert best.setting["l1_ratio"] == 1.0
    assert best.edge == ""


def test_nested_folds_continue_their_grids_too():
    X, y = low_noise(n=200)
    net, lasso = (tl.nested_cross_validate(name, X, y) for name in ("elastic net", "lasso"))
    assert net.mean > lasso.mean - 0.01
    given = tl.nested_cross_validate(tl.Ridge(), X, y, grid={"alpha": [1e3, 1e5]})
    assert "note: alpha=1000 is the smallest of the grid" in str(given)


class Interrupted(tl.Ridge):
    """A fit during which somebody presses Ctrl-C."""

    def fit(self, X, y, sample_weight=None):
        raise KeyboardInterrupt


def test_what_is_finished_is_returned_when_somebody_stops_it():
    X, y = low_noise(n=60)
    compared = tl.compare(X, y, {"first": "ridge", "slow": Interrupted(), "last": "lasso"})
    assert [entry.name for entry in compared.entries] == ["first"]
    assert compared.unfinished == ["slow", "last"]
    assert "stopped before these were finished: slow, last" in str(compared)
    with pytest.raises(KeyboardInterrupt):
        tl.compare(X, y, [Interrupted(), "lasso"])


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.mark.parametrize(
    ("stream", "progress", "is_shown"),
    [
        (io.StringIO, None, False),
        (Terminal, None, True),
        (io.StringIO, True, True),
        (Terminal, False, False),
    ],
)
def test_progress_is_shown_to_those_who_watch(stream, progress, is_shown, monkeypatch):
    X, y = low_noise(n=60)
    err = stream()
    monkeypatch.setattr("sys.stderr", err)
    tl.compare(X, y, ["ridge", "lasso"], progress=progress)
    text = err.getvalue()
    assert ("0 of 2  ridge" in text and "1 of 2  lasso" in text) == is_shown
    assert "\n" not in text
    if is_shown:
        assert text.rsplit("\r", 2)[1].strip() == ""  # nothing is left on the line
    else:
        assert text == ""
