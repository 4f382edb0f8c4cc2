"""The squared hinge near the hard margin: separable classes, many columns or a large C.

The reference is the dual, max over alpha >= 0 of sum alpha - |A^T alpha|^2 / 2 - |alpha|^2 / (4 C)
with the rows y_i x_i in A: non-negative least squares, M^T b = 1 for M = [A^T; I / sqrt(2 C)].
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import nnls

from trueline import LinearSVC


def hard_margin_reference(X, y, C):
    """Coefficients and intercept, which is penalised, by an active set method on the dual."""
    A = y[:, None] * np.column_stack([X, np.ones(len(X))])
    side = np.abs(A).max()  # the same problem in other units: C side^2 and w / side
    M = np.vstack([A.T / side, np.eye(len(y)) / np.sqrt(2 * C * side**2)])
    b = np.concatenate([np.zeros(A.shape[1]), np.full(len(y), np.sqrt(2 * C * side**2))])
    alpha, _ = nnls(M, b, maxiter=100 * len(y))
    w = A.T @ alpha / side**2
    return w[:-1], w[-1]


def expression_like(n, d, seed):
    """Few rows of many positive columns, scales over two powers of ten: separable, unscaled."""
    rng = np.random.default_rng(seed)
    levels = np.exp(rng.standard_normal((n, 3)) @ rng.standard_normal((3, d)))
    X = 10 ** rng.uniform(0, 2, d) * levels * np.exp(0.3 * rng.standard_normal((n, d)))
    y = np.where(rng.standard_normal(n) + 0.5 * np.log(levels[:, 0]) > 0, 1.0, -1.0)
    return X, y


def one_hot_like(n, groups, seed):
    """Dummies of categories with a rule that almost separates the classes."""
    rng = np.random.default_rng(seed)
    X = np.hstack([np.eye(4)[rng.integers(0, 4, n)][:, 1:] for _ in range(groups)])
    score = X @ rng.standard_normal(X.shape[1]) + 0.1 * rng.standard_normal(n)
    return X, np.where(score > np.quantile(score, 0.7), 1.0, -1.0)


@pytest.mark.grid(1)
@pytest.mark.parametrize("C", [1.0, 1e2, 1e4])
@pytest.mark.parametrize(
    "data",
    [
        pytest.param(lambda: expression_like(40, 300, 0), id="fewer rows than columns, unscaled"),
        pytest.param(lambda: one_hot_like(300, 20, 1), id="dummies, separable"),
        pytest.param(lambda: one_hot_like(800, 15, 2), id="dummies, almost separable"),
    ],
)
def test_squared_hinge_near_the_hard_margin_is_exact_in_few_steps(data, C):
    X, y = data()
    model = LinearSVC(C=C).fit(X, y)
    w, b = hard_margin_reference(X, y, C)
    assert model.certificate_.relative_gap < 1e-6
    assert model.n_iter_ < 80
    size = np.abs(X @ w + b).max()
    np.testing.assert_allclose(model.decision_function(X), X @ w + b, atol=1e-4 * size)
    assert model.verify(X, y)
