"""Proposals of the homotopy are solutions of the lasso, and a path does not rest on them."""

from functools import partial

import numpy as np
import pytest
from sklearn.linear_model import lars_path_gram

from trueline import lasso_path
from trueline.solvers.coordinate_descent.homotopy import propose
from trueline.solvers.coordinate_descent.source import MomentsSource


def _data(n=200, d=30, seed=0):
    random = np.random.default_rng(seed)
    X = random.standard_normal((n, d))
    X[:, 1:] += 0.8 * X[:, :-1]
    return X, X[:, ::3] @ random.standard_normal(len(X[0, ::3])) + random.standard_normal(n)


def _violation(G, c, level, w, curvature=0.0):
    """How far the conditions of optimality are from being met, relative to the level."""
    q = c - G @ w - curvature * w
    free = np.abs(q - level * np.sign(w))[w != 0].max(initial=0.0)
    return max(free, (np.abs(q) - level).max()) / level


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("size", [(200, 30), (40, 30)], ids=["tall", "nearly square"])
def test_proposals_meet_the_conditions_of_optimality(size, seed):
    X, y = _data(*size, seed=seed)
    G, c = X.T @ X, X.T @ y
    levels = np.abs(c).max() * np.geomspace(1.0, 1e-4, 40)
    W = propose(G, c, levels, np.zeros(len(levels)))
    assert len(W) == len(levels)
    assert max(_violation(G, c, *pair) for pair in zip(levels, W, strict=True)) < 1e-8


def test_proposals_are_those_of_least_angle_regression():
    X, y = _data()
    alphas, _, coefs = lars_path_gram(X.T @ y, X.T @ X, n_samples=len(y), method="lasso")
    levels = alphas[1:-1] * len(y)
    np.testing.assert_allclose(
        propose(X.T @ X, X.T @ y, levels, 0 * levels), coefs.T[1:-1], atol=1e-9
    )


def test_coefficients_that_leave_and_come_back():
    # Correlated columns and a small level: signs change on the way.
    random = np.random.default_rng(8)
    X = random.standard_normal((60, 25)) + 2 * random.standard_normal((60, 1))
    y = X @ random.standard_normal(25) + random.standard_normal(60)
    G, c = X.T @ X, X.T @ y
    levels = np.abs(c).max() * np.geomspace(1.0, 1e-5, 200)
    W = propose(G, c, levels, np.zeros(len(levels)))
    left = (np.diff((W != 0).astype(int), axis=0) < 0).sum()
    assert left > 0
    assert max(_violation(G, c, *pair) for pair in zip(levels, W, strict=True)) < 1e-7


@pytest.mark.parametrize("ratio", [0.01, 1.0, 30.0])
def test_proposals_for_the_elastic_net_meet_the_conditions_of_optimality(ratio):
    # Coefficients leave and come back; the curvature falls with the level.
    random = np.random.default_rng(8)
    X = random.standard_normal((60, 25)) + 2 * random.standard_normal((60, 1))
    y = X @ random.standard_normal(25) + random.standard_normal(60)
    G, c = X.T @ X, X.T @ y
    levels = np.abs(c).max() * np.geomspace(1.0, 1e-5, 50)
    W = propose(G, c, levels, ratio * levels)
    assert len(W) == len(levels)
    assert max(map(partial(_violation, G, c), levels, W, ratio * levels)) < 1e-7


@pytest.mark.parametrize("seed", range(4))
def test_dependent_columns_stay_out_until_a_free_one_comes_to_rest(seed):
    # Indicators of four categories add up to zero about their means, and some columns are copies.
    random = np.random.default_rng(seed)
    X = random.standard_normal((200, 6))
    groups = [random.integers(0, 4, 200)[:, None] == np.arange(4) for _ in range(4)]
    X = np.hstack([X, *groups, X[:, :3], -X[:, 2:5]])
    X = X - X.mean(axis=0)
    y = X @ random.standard_normal(X.shape[1]) + random.standard_normal(200)
    G, c = X.T @ X, X.T @ y
    levels = np.abs(c).max() * np.geomspace(1.0, 1e-3, 50)
    W = propose(G, c, levels, np.zeros(50))
    assert len(W) == len(levels)
    assert max(map(partial(_violation, G, c), levels, W)) < 1e-8


def test_a_wrong_proposal_is_found_out(monkeypatch):
    X, y = _data()
    alphas, right, _ = lasso_path(X, y, alphas=30, tol=1e-8)

    def wrong(self, levels, curvatures):
        W = propose(self.gram, self.cross[0], levels, curvatures)
        W[12] *= 1.01
        return W, self._at(W)

    monkeypatch.setattr(MomentsSource, "proposals", wrong)
    again = lasso_path(X, y, alphas=alphas, tol=1e-8)[1]
    np.testing.assert_allclose(again, right, atol=1e-7)


def test_where_nothing_correlates_all_coefficients_rest():
    W = propose(np.eye(3), np.zeros(3), np.array([1.0, 0.5]), np.zeros(2))
    np.testing.assert_array_equal(W, np.zeros((2, 3)))
