"""Supports that a bound leaves open: all of them, none twice, and fitted as they should be."""

import itertools
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from trueline.certificates import supports as module
from trueline.certificates.supports import fitted_supports, open_supports


@given(st.lists(st.integers(-3, 5), min_size=1, max_size=7), st.integers(-2, 12), st.integers(0, 5))
@settings(max_examples=200, deadline=None)
def test_all_supports_above_the_bar_are_listed_once(gains, need, k):
    gain = np.array(gains, dtype=float)
    found = open_supports(gain, need + 0.5, k)
    everything = (
        support
        for size in range(k + 1)
        for support in itertools.combinations(range(len(gain)), size)
    )
    expected = [support for support in everything if gain[list(support)].sum() > need + 0.5]
    assert sorted(tuple(sorted(support)) for support in found) == sorted(expected)


def test_too_many_are_not_listed(monkeypatch):
    monkeypatch.setattr(module, "_MOST", 10)
    assert len(open_supports(np.ones(4), 1.5, 2)) == 6
    assert open_supports(np.ones(6), 1.5, 2) is None
    monkeypatch.setattr(module, "_BEGINNINGS", 3)
    assert open_supports(np.ones(4), 1.5, 2) is None


class Rows(SimpleNamespace):
    """Rows in two blocks, as the checker reads them."""

    def __iter__(self):
        for where in (slice(0, 7), slice(7, None)):
            yield where, self.X[where]


@pytest.mark.parametrize("l2", [0.0, 0.7])
@pytest.mark.parametrize("alpha", [0.0, 0.4])
def test_the_lowest_value_is_that_of_least_squares(l2, alpha):
    rng = np.random.default_rng(0)
    X, y, s = rng.standard_normal((20, 5)), rng.standard_normal((20, 1)), rng.uniform(1, 2, 20)
    y[:, 0] += X[:, 3] - X[:, 4]
    columns = np.array([True, False, True, True, True])
    mean, level = s @ X / s.sum(), float(s @ y[:, 0]) / s.sum()
    pairs = list(itertools.combinations(range(4), 2))
    found = fitted_supports(
        Rows(X=X, y=y, s=s), columns, mean, level, l2, alpha, 0.0, [(), (0,), *pairs]
    )
    names = np.flatnonzero(columns)

    def value(support):
        A = X[:, names[list(support)]] - mean[names[list(support)]]
        b, G = y[:, 0] - level, (A.T * s) @ A + l2 * np.eye(len(support))
        w = np.linalg.solve(G, (A.T * s) @ b)
        return 0.5 * s @ (b - A @ w) ** 2 + 0.5 * l2 * w @ w + alpha * len(support)

    best = min(pairs, key=value)
    assert found.support == tuple(names[list(best)])
    assert found.unknown == 0
    assert_allclose(found.lowest, value(best), rtol=1e-11)
    assert found.lowest <= value(best)


def test_supports_beyond_the_condition_are_left_out_and_doubtful_ones_counted():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((20, 3)), rng.standard_normal((20, 1))
    X[:, 1] = X[:, 0] + 1e-9 * X[:, 1]
    rows, everything = Rows(X=X, y=y, s=np.ones(20)), np.ones(3, dtype=bool)
    arguments = (rows, everything, np.zeros(3), 0.0, 0.0, 0.0)
    assert fitted_supports(*arguments, 0.0, [(0, 1)]).unknown == 1
    beyond = fitted_supports(*arguments, 0.01, [(0, 1)])
    assert beyond.unknown == 0
    assert beyond.lowest == np.inf
