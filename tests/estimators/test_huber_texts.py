"""Huber's regression on sparse rows with thousands of columns, without a Gram matrix."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from scipy import sparse

from trueline import HuberRegressor
from trueline.solvers.newton import concomitant


def texts(rows: int, words: int, seed: int = 0) -> sparse.csr_array:
    """Rows of a dozen words each, of which few are frequent, brought to length one.

    Every hundredth row is a copy of the one before it.
    """
    rng = np.random.default_rng(seed)
    chances = 1.0 / np.arange(2, words + 2)
    counts = [np.unique(rng.choice(words, 12, p=chances / chances.sum())) for _ in range(rows)]
    for i in range(100, rows, 100):
        counts[i] = counts[i - 1]
    ends = np.cumsum([0, *map(len, counts)])
    data = np.repeat([1 / np.sqrt(len(c)) for c in counts], np.diff(ends))
    return sparse.csr_array((data, np.concatenate(counts), ends), shape=(rows, words))


def both(monkeypatch: pytest.MonkeyPatch, X: sparse.csr_array, y: np.ndarray, **options: object):
    """The fit by products, and the one by matrices."""
    fast = HuberRegressor(**options).fit(X, y)
    assert "products with the rows" in str(fast.explain())
    monkeypatch.setattr(concomitant, "takes_products", lambda facts: False)
    return fast, HuberRegressor(**options).fit(X, y)


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_a_scale_that_is_left(monkeypatch: pytest.MonkeyPatch, fit_intercept: bool) -> None:
    X = texts(3000, 600)
    rng = np.random.default_rng(1)
    y = 5 + X @ rng.standard_normal(600) + 0.3 * rng.standard_t(2, size=3000)
    fast, slow = both(monkeypatch, X, y, fit_intercept=fit_intercept)
    assert fast.verify(X, y)
    assert slow.verify(X, y)
    assert fast.scale_ == pytest.approx(slow.scale_, rel=1e-6)
    np.testing.assert_allclose(fast.predict(X), slow.predict(X), atol=1e-4)


def test_weights_count_as_copies() -> None:
    X = texts(3000, 600)
    rng = np.random.default_rng(1)
    y = X @ rng.standard_normal(600) + 0.3 * rng.standard_t(2, size=3000)
    weights = rng.integers(0, 3, 3000).astype(float)
    index = np.repeat(np.arange(3000), weights.astype(int))
    one = HuberRegressor(tol=1e-7).fit(X, y, sample_weight=weights)
    other = HuberRegressor(tol=1e-7).fit(X[index], y[index])
    assert one.verify(X, y, sample_weight=weights)
    assert one.scale_ == pytest.approx(other.scale_, rel=1e-6)


def test_rows_that_are_fitted_exactly() -> None:
    """Copies with other targets keep all rows from being fitted: multipliers find which are."""
    X = texts(700, 1500)
    y = np.random.default_rng(2).standard_normal(700)
    model = HuberRegressor().fit(X, y)
    assert "products with the rows" in str(model.explain())
    assert model.scale_ == 0.0
    assert model.verify(X, y)
    assert model.certificate_.relative_gap < 1e-7


def test_an_infinite_objective_is_not_proven() -> None:
    lost = SimpleNamespace(gap=np.inf, objective=np.inf, objective_rounding=np.inf)
    assert not concomitant._is_proven(lost)


def test_limit_of_steps_warns() -> None:
    X = texts(3000, 600)
    y = np.random.default_rng(3).standard_normal(3000)
    with pytest.warns(UserWarning, match="max_iter"):
        model = HuberRegressor(max_iter=2).fit(X, y)
    assert model.n_iter_ == 2
    assert model.verify(X, y)


def test_warm_start_has_nothing_left_to_do() -> None:
    X = texts(3000, 600)
    y = np.random.default_rng(3).standard_normal(3000)
    model = HuberRegressor(warm_start=True).fit(X, y)
    before = model.coef_.copy()
    model.fit(X, y)
    np.testing.assert_allclose(model.coef_, before, atol=1e-5)
    assert model.verify(X, y)
