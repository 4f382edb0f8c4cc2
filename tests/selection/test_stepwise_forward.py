"""Forward selection takes the column that a refit of every candidate would take."""

from typing import NamedTuple

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from trueline import StepwiseRegression
from trueline.design import as_design
from trueline.losses import Squared
from trueline.penalties import NoPenalty
from trueline.problem import Problem
from trueline.selection.stepwise import forward as forward_module
from trueline.selection.stepwise.pricing import Pricing
from trueline.selection.stepwise.search import Search, make_terms


def data(n=40, d=7, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) + rng.standard_normal((n, 1)) + 2.0
    return X, X @ rng.standard_normal(d) + rng.standard_normal(n)


class Path(NamedTuple):
    columns: list[int]
    squares: list[float]


def forward_selection(X, y, k, sample_weight=None, fit_intercept=True):
    """The search of the estimator, without the fit."""
    weights = None if sample_weight is None else np.asarray(sample_weight, float)
    problem = Problem(as_design(X), y[:, None], Squared(), NoPenalty(), fit_intercept, weights)
    scorer = Pricing("bic", "forward", steps=k).scorer(problem)
    steps = Search(scorer, make_terms(None, X.shape[1]), "forward", k).run().history[1:]
    return Path([step["entered"][0] for step in steps], [step["rss"] for step in steps])


def square_of(X, y, columns, weights, fit_intercept):
    root = np.sqrt(np.ones(len(y)) if weights is None else weights)
    A = np.column_stack([X[:, columns], np.full(len(y), float(fit_intercept))]) * root[:, None]
    w = np.linalg.lstsq(A, root * y, rcond=None)[0]
    return np.sum((root * y - A @ w) ** 2)


def reference(X, y, k, weights, fit_intercept):
    inside, squares = [], []
    for _ in range(k):
        others = [j for j in range(X.shape[1]) if j not in inside]
        prices = [square_of(X, y, [*inside, j], weights, fit_intercept) for j in others]
        inside.append(others[int(np.argmin(prices))])
        squares.append(min(prices))
    return inside, squares


@pytest.fixture(params=["from the Gram matrix", "from the rows"])
def way(request, monkeypatch):
    """Both ways to columns of the Gram matrix, whatever the sizes."""
    monkeypatch.setattr(forward_module, "needs_rows", lambda n, d, k: "rows" in request.param)
    return request.param


@pytest.mark.grid(2)
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array, sp.csc_matrix, np.asfortranarray])
@pytest.mark.parametrize("weighted", [True, False])
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("shape", [(40, 7), (9, 25)])
def test_the_path_is_that_of_refits(way, form, weighted, fit_intercept, shape):
    X, y = data(*shape)
    weights = np.random.default_rng(1).uniform(0.2, 2.0, len(y)) if weighted else None
    columns, squares = reference(X, y, 5, weights, fit_intercept)
    path = forward_selection(form(X), y, 5, sample_weight=weights, fit_intercept=fit_intercept)
    assert path.columns == columns
    assert_allclose(path.squares, squares, rtol=1e-9)


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 10_000), st.integers(2, 12), st.integers(1, 8))
def test_any_data(seed, n, d):
    X, y = data(n, d, seed)
    k = min(n - 2, d)
    columns, squares = reference(X, y, k, None, True)
    path = forward_selection(X, y, k)
    assert path.columns == columns
    assert_allclose(path.squares, squares, rtol=1e-8, atol=1e-12 * np.sum(y**2))


def test_of_equal_columns_the_lowest_is_taken(way):
    X, y = data(200, 9)
    plain = forward_selection(X, y, 9)
    doubled = forward_selection(np.hstack([X, X[:, ::-1], X]), y, 9)
    assert doubled.columns == plain.columns


def test_dependent_columns_never_enter(way):
    X, y = data(d=3)
    constant = np.full(len(X), 0.1)
    X = np.column_stack([X[:, 0], constant, X[:, 1], X @ [1.0, 1e3, -2.0] + 5.0, X[:, 2]])
    path = forward_selection(X, y, 5)
    assert len(path.columns) == 3
    assert 1 not in path.columns


def test_weights_count_rows(way):
    X, y = data()
    counts = np.random.default_rng(1).integers(0, 4, len(y))
    weighted = forward_selection(X, y, 4, sample_weight=counts)
    repeated = forward_selection(np.repeat(X, counts, axis=0), np.repeat(y, counts), 4)
    assert weighted.columns == repeated.columns
    assert_allclose(weighted.squares, repeated.squares, rtol=1e-10)


def test_many_columns_need_no_gram_matrix(monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((50, 3000))
    y = X[:, [5, 100, 2000]] @ [3.0, -2.0, 4.0] + 0.1 * rng.standard_normal(50) + 1.0

    def refused(*arguments):
        raise AssertionError("a Gram matrix of 3000 columns")

    monkeypatch.setattr(forward_module.Moments, "from_rows", refused)
    assert sorted(forward_selection(X, y, 3).columns) == [5, 100, 2000]


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_the_estimator_takes_the_same_path_over_many_columns(form):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((50, 1200))
    y = X[:, [5, 100, 200]] @ [3.0, -2.0, 4.0] + 0.1 * rng.standard_normal(50) + 1.0
    model = StepwiseRegression("forward", "bic", max_features=4).fit(form(X), y)
    entered = [step["entered"][0] for step in model.history_[1:]]
    path = forward_selection(X, y, 4)
    assert entered == path.columns
    assert_allclose([step["rss"] for step in model.history_[1:]], path.squares, rtol=1e-9)
    assert model.verify(form(X), y)
