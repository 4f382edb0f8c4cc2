"""Multi-task lasso and group lasso on columns that are nearly the same, as spectra have them."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from trueline import MultiTaskElasticNet, MultiTaskLasso, MultiTaskLassoCV
from trueline.solvers.block_coordinate_descent.working_set import RestrictedBlocks


def spectra(n=60, d=40, k=3, seed=0):
    """Smooth curves, neighbouring columns correlated by 0.9999 and more; unscaled targets."""
    rng = np.random.default_rng(seed)
    grid = np.linspace(0, 1, d)
    centres, widths = rng.uniform(0, 1, 8), rng.uniform(0.1, 0.4, 8)
    shapes = np.exp(-(((grid[:, None] - centres) / widths) ** 2))
    amounts = rng.gamma(2.0, size=(n, 8))
    X = 2 + amounts @ shapes.T + 1e-4 * rng.standard_normal((n, d))
    Y = 10 * amounts @ rng.standard_normal((8, k)) + rng.standard_normal((n, k))
    return X, Y


def kkt_violation(model, X, Y, alpha, l1_ratio):
    """How far correlations are from alpha r W_j / |W_j| (or its ball) plus alpha (1 - r) W_j."""
    W = model.coef_
    Q = (X - X.mean(axis=0)).T @ (Y - X @ W.T - model.intercept_) / len(X)
    Q = Q - alpha * (1 - l1_ratio) * W.T
    norms = np.linalg.norm(W, axis=0)
    used = norms > 0
    apart = np.linalg.norm(Q[used] - alpha * l1_ratio * (W[:, used] / norms[used]).T, axis=1)
    beyond = np.linalg.norm(Q[~used], axis=1) - alpha * l1_ratio
    return max(apart.max(initial=0.0), beyond.max(initial=0.0)) / (alpha * l1_ratio)


@pytest.mark.grid(1)
@pytest.mark.parametrize("alpha", [1.0, 0.1, 0.02, 0.005])
@pytest.mark.parametrize("l1_ratio", [1.0, 0.5])
def test_columns_that_are_nearly_the_same_are_told_apart(alpha, l1_ratio):
    X, Y = spectra()
    model = MultiTaskElasticNet(alpha=alpha, l1_ratio=l1_ratio).fit(X, Y)
    assert kkt_violation(model, X, Y, alpha, l1_ratio) < 1e-6
    assert model.verify(X, Y)


def test_the_path_over_folds_takes_few_sweeps(monkeypatch):
    """Newton steps bring blocks to zero one after the other; sweeps alone took millions."""
    counted = []
    solve = RestrictedBlocks.solve

    def counting(self, target):
        before = self.sweeps
        solve(self, target)
        counted.append(self.sweeps - before)

    monkeypatch.setattr(RestrictedBlocks, "solve", counting)
    X, Y = spectra()
    model = MultiTaskLassoCV(alphas=20, eps=1e-2, cv=3).fit(X, Y)
    assert np.mean(counted) < 100
    fresh = MultiTaskLasso(alpha=model.alpha_).fit(X, Y)
    assert_allclose(model.predict(X), fresh.predict(X), atol=1e-6 * np.abs(Y).max())
