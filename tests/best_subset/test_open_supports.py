"""Supports that a bound leaves open: all of them, none twice, and fitted as they should be."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from trueline.check.theorems.best_subset import _open_supports, _Sums, _values


@given(st.lists(st.integers(-3, 5), min_size=1, max_size=7), st.integers(-2, 12), st.integers(0, 5))
@settings(max_examples=200, deadline=None)
def test_all_supports_above_the_bar_are_listed_once(gains, need, k):
    gain = np.array(gains, dtype=float)
    found = _open_supports(gain, need + 0.5, k)
    everything = (
        support
        for size in range(k + 1)
        for support in itertools.combinations(range(len(gain)), size)
    )
    expected = [support for support in everything if gain[list(support)].sum() > need + 0.5]
    assert sorted(tuple(sorted(support)) for support in found) == sorted(expected)


def test_without_a_bound_all_supports_are_open():
    found = list(_open_supports(np.full(5, np.inf), -np.inf, 2))
    assert len(found) == len(set(found)) == 1 + 5 + 10


def sums(X, y, l2=0.0):
    G = X.T @ X + l2 * np.eye(X.shape[1])
    scale = np.sqrt(G.diagonal())
    return _Sums(G / np.outer(scale, scale), X.T @ y / scale, 0.5 * y @ y, scale, 1e-14)


@pytest.mark.parametrize("l2", [0.0, 0.7])
def test_values_are_those_of_least_squares(l2):
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((20, 5)), rng.standard_normal(20)
    pairs = list(itertools.combinations(range(5), 2))
    low, high, least = _values(sums(X, y, l2), np.array(pairs))
    for support, below, above in zip(pairs, low, high, strict=True):
        A = X[:, support]
        w = np.linalg.solve(A.T @ A + l2 * np.eye(2), A.T @ y)
        value = 0.5 * np.sum((y - A @ w) ** 2) + 0.5 * l2 * w @ w
        assert below <= value <= above
        assert_allclose([below, above], value, rtol=1e-11)
    assert (least > 0).all()


def test_nothing_is_known_of_columns_that_depend_on_each_other():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((20, 3)), rng.standard_normal(20)
    X[:, 1] = X[:, 0] + 1e-9 * X[:, 1]
    low, _, _ = _values(sums(X, y), np.array([[0, 1], [0, 2]]))
    assert low[0] == -np.inf
    assert low[1] > 0
