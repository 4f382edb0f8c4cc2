"""Searches agree with looking at every support, and their bounds are true."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from trueline.best_subset import node as node_module
from trueline.best_subset.relaxation import bound_at, climb, sum_of_largest, uniform_diagonal
from trueline.best_subset.search import best_subsets
from trueline.best_subset.statement import state
from trueline.design import as_design
from trueline.losses import Squared
from trueline.penalties import L2, NoPenalty
from trueline.problem import Problem

REAL = {"allow_nan": False, "allow_infinity": False}


def problem_of(X, y, l2=0.0, weights=None, fit_intercept=True):
    penalty = L2(l2) if l2 else NoPenalty()
    return Problem(as_design(X), y.reshape(-1, 1), Squared(), penalty, fit_intercept, weights)


def value_of(X, y, support, l2=0.0, weights=None, fit_intercept=True):
    """The objective of a support, by a least-squares solver on its columns."""
    s = np.ones(len(y)) if weights is None else weights
    X = X[:, list(support)]
    if fit_intercept:
        X, y = X - np.average(X, axis=0, weights=s), y - np.average(y, weights=s)
    root = np.sqrt(s)
    A = np.vstack([root[:, None] * X, math.sqrt(l2) * np.eye(X.shape[1])])
    b = np.append(root * y, np.zeros(X.shape[1]))
    w = np.linalg.lstsq(A, b, rcond=None)[0] if len(support) else np.zeros(0)
    return 0.5 * float(np.sum((b - A @ w) ** 2))


def smallest(X, y, k, alpha=0.0, **options):
    """The least objective of all supports of at most k columns."""
    return min(
        value_of(X, y, support, **options) + alpha * size
        for size in range(k + 1)
        for support in itertools.combinations(range(X.shape[1]), size)
    )


def searched(X, y, sizes, alpha=0.0, delta=0.0, **options):
    statement = state(problem_of(X, y, **options), max(sizes), alpha)
    return best_subsets(statement.task, sizes, statement.columns, delta), statement.task


@st.composite
def data(draw):
    """Rows and columns of all shapes; columns related to each other, copied or constant."""
    n, d = draw(st.integers(2, 14)), draw(st.integers(1, 8))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    common = draw(st.sampled_from([0.0, 0.5, 3.0]))
    X = rng.standard_normal((n, d)) + common * rng.standard_normal((n, 1))
    if draw(st.booleans()):
        X = np.round(X)
    for j in range(1, d):
        kind = draw(st.sampled_from(["own"] * 6 + ["copy", "constant", "scaled"]))
        if kind == "copy":
            X[:, j] = X[:, j - 1]
        elif kind == "constant":
            X[:, j] = 1.5
        elif kind == "scaled":
            X[:, j] *= 1e3
    w = np.where(rng.random(d) < 0.5, rng.standard_normal(d), 0.0)
    y = X @ w + draw(st.sampled_from([0.1, 1.0])) * rng.standard_normal(n)
    weights = rng.integers(0, 3, n) + 0.0 if draw(st.booleans()) else None
    if weights is not None and weights.sum() < 2:
        weights = None
    return X, y, weights


@pytest.mark.parametrize("choices", [node_module._CHOICES, 0], ids=["by looking", "by bounds"])
@given(data(), st.sampled_from([0.0, 0.01, 2.0]), st.booleans())
@settings(max_examples=40, deadline=None)
def test_best_subsets_are_those_of_all_supports(choices, drawn, l2, fit_intercept):
    X, y, weights = drawn
    options = {"l2": l2, "weights": weights, "fit_intercept": fit_intercept}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(node_module, "_CHOICES", choices)
        answers, task = searched(X, y, range(1, X.shape[1] + 1), **options)
    for answer in answers:
        best = smallest(X, y, answer.k, **options)
        slack = 1e-7 * task.constant + 1e-12
        assert answer.found.is_proven
        assert_allclose(answer.found.value, best, rtol=0, atol=slack)
        assert_allclose(value_of(X, y, answer.found.support, **options), best, rtol=0, atol=slack)
        assert answer.found.lower_bound <= best + 1e-12 * task.constant


@given(data(), st.sampled_from([0.0, 0.5]), st.floats(0.0, 3.0, **REAL))
@settings(max_examples=40, deadline=None)
def test_a_price_per_column_is_weighed_against_the_fit(drawn, l2, alpha):
    X, y, weights = drawn
    d = X.shape[1]
    options = {"l2": l2, "weights": weights}
    (answer,), task = searched(X, y, [d], alpha=alpha, **options)
    best = smallest(X, y, d, alpha=alpha, **options)
    assert answer.found.is_proven
    assert_allclose(answer.found.value, best, rtol=0, atol=1e-7 * task.constant + 1e-12)


def test_larger_problems_are_proven_with_few_nodes():
    rng = np.random.default_rng(3)
    X = rng.standard_normal((200, 40)) + 0.5 * rng.standard_normal((200, 1))
    y = X[:, [3, 11, 17, 29]].sum(axis=1) + 3.0 * rng.standard_normal(200)
    (answer,), _ = searched(X, y, [6])
    assert answer.found.is_proven
    assert answer.found.nodes < 200
    # No exchange of one or two columns leads to anything better.
    support = set(answer.found.support.tolist())
    for out in itertools.combinations(support, 1):
        for enter in range(40):
            other = sorted(support - set(out) | {enter})
            assert value_of(X, y, other) >= answer.found.value * (1 - 1e-9)


@given(st.integers(0, 2**32 - 1), st.sampled_from([0.05, 0.2, 0.5]), st.integers(3, 5))
@settings(max_examples=25, deadline=None)
def test_with_a_condition_no_support_that_keeps_it_is_better(seed, delta, k):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((9, 12))
    y = X[:, :3].sum(axis=1) + rng.standard_normal(9)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(node_module, "_CHOICES", 0)
        (answer,), task = searched(X, y, [k], delta=delta)
    kept = [
        support
        for support in itertools.combinations(range(12), k)
        if np.linalg.eigvalsh(np.corrcoef(X[:, support].T))[0] >= delta
    ]
    least = min((value_of(X, y, support) for support in kept), default=np.inf)
    assert answer.delta == delta
    assert answer.found.is_proven
    assert answer.found.lower_bound <= least + 1e-12 * task.constant
    assert answer.found.value <= least + 1e-9 * task.constant


@given(data(), st.integers(1, 4))
@settings(max_examples=25, deadline=None)
def test_a_search_that_was_cut_short_claims_nothing_false(drawn, nodes):
    from trueline.best_subset.exchange import forward
    from trueline.best_subset.search import search

    X, y, weights = drawn
    d = X.shape[1]
    k = (d + 1) // 2
    statement = state(problem_of(X, y, weights=weights), k, 0.0)
    task, columns = statement.task, statement.columns
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(node_module, "_CHOICES", 0)
        start = forward(task.gram, task.cross, k, columns)[0]
        found = search(task, columns, start, floor=0.0, max_nodes=nodes)
    best = smallest(X, y, k, weights=weights)
    assert found.lower_bound <= best + 1e-12 * task.constant
    assert found.value >= best - 1e-7 * task.constant - 1e-12


@given(st.integers(0, 2**32 - 1), st.integers(1, 6), st.floats(0.0, 1.0, **REAL))
@settings(max_examples=50, deadline=None)
def test_the_sum_of_the_largest_is_never_too_small(seed, q, alpha):
    h = np.random.default_rng(seed).exponential(size=8).round(1)
    exact = np.sort(np.maximum(h - alpha, 0.0))[-q:].sum()
    found = sum_of_largest(h, q, alpha)
    assert exact - 1e-14 <= found <= exact * (1 + 1e-12) + 1e-14


@given(st.integers(0, 2**32 - 1), st.integers(1, 5), st.sampled_from([0.0, 0.3]))
@settings(max_examples=30, deadline=None)
def test_every_bound_is_below_every_support(seed, q, alpha):
    """The bound holds at any v, good or bad, and for every diagonal below the Gram matrix."""
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((12, 6))
    P, c, v = A.T @ A, rng.standard_normal(6) * 5, rng.standard_normal(6)
    D = uniform_diagonal(P)
    assert np.linalg.eigvalsh(P - np.diag(D))[0] >= 0
    least = min(
        alpha * size - 0.5 * c[list(s)] @ np.linalg.solve(P[np.ix_(s, s)], c[list(s)])
        for size in range(1, q + 1)
        for s in itertools.combinations(range(6), size)
    )
    least = min(least, 0.0)
    Q = P - np.diag(D)
    assert bound_at(Q, D, c, q, alpha, v, Q @ v, np.empty(6)) <= least + 1e-12
    found = climb(P, D, c, q, alpha, v, 1.0, np.inf, 1e-9, 5, 1e-3)
    assert found.bound <= least + 1e-12
    assert np.linalg.eigvalsh(P - np.diag(found.D))[0] >= 0
