"""Proximal Newton on working sets of columns: its linear algebra, and what it ends at."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import minimize

from trueline import LogisticRegression
from trueline.solvers.columns import polish, products
from trueline.solvers.columns.coupled import CoupledModel
from trueline.solvers.columns.kernels import (
    conjugate_steps,
    gram_steps,
    scale_columns,
    solve_gram,
    solve_single,
    support_gram,
)


def _columns(n: int = 60, d: int = 12):
    X = sp.random_array((n, d), density=0.3, format="csc", random_state=np.random.default_rng(0))
    parts = X.data, X.indices.astype(np.int32), X.indptr.astype(np.int64)
    return X.toarray(), parts


def test_newton_steps_of_some_columns_solve_their_equations():
    random = np.random.default_rng(1)
    X, parts = _columns()
    used, h = np.array([0, 3, 4, 9]), random.random(len(X))
    quad, slope = np.full(12, 0.5), random.standard_normal(4)
    gram = X[:, used].T @ (h[:, None] * X[:, used])
    H = np.zeros((4, 4))
    support_gram(*parts, used, h, H)
    np.testing.assert_allclose(H, gram, rtol=1e-13, atol=1e-15)

    H += 0.5 * np.eye(4)
    expected = -np.linalg.solve(H, slope)
    D = np.zeros(4)
    gram_steps(H, slope, 20, 1e-30, D)
    np.testing.assert_allclose(D, expected, rtol=1e-10)

    D, change, bends = np.zeros(4), np.zeros(len(X)), np.ones(12)
    bends[used] = H.diagonal()
    conjugate_steps(*parts, used, h, quad, bends, slope, 20, 1e-30, D, change)
    np.testing.assert_allclose(D, expected, rtol=1e-10)
    np.testing.assert_allclose(change, X[:, used] @ expected, atol=1e-12)


def test_coordinate_descent_ends_where_no_slope_is_left():
    random = np.random.default_rng(2)
    A = random.standard_normal((30, 8))
    H, V, G = A.T @ A, random.standard_normal(8), 40 * random.standard_normal(8)
    linear = np.r_[np.full(7, 15.0), 0.0]
    D, slopes = np.zeros(8), G.copy()
    solve_gram(H, V, slopes, linear, 2000, 1e-14, D)
    at = V + D
    np.testing.assert_allclose(slopes, G + H @ D, atol=1e-10)
    np.testing.assert_allclose((slopes + linear * np.sign(at))[at != 0], 0, atol=1e-9)
    assert (np.abs(slopes[at == 0]) <= linear[at == 0]).all()
    assert 0 < np.count_nonzero(at == 0) < 7


def test_sweeps_over_scaled_columns_end_where_no_slope_is_left():
    random = np.random.default_rng(4)
    X, (data, indices, indptr) = _columns()
    h, V, G = random.random(len(X)), random.standard_normal(12), 3 * random.standard_normal(12)
    linear, quad = np.full(12, 1.5), np.full(12, 0.1)
    scaled, bends = np.empty(len(data)), np.empty(12)
    scale_columns(data, indices, indptr, np.sqrt(h), scaled, bends, 0, 12)
    np.testing.assert_allclose(bends, h @ X**2, rtol=1e-13)
    D, Q, bends = np.zeros(12), np.zeros(len(X)), bends + quad
    # Sweeps leave out columns that rest: the second call looks at all of them again.
    for _ in range(20):
        own = np.arange(12), Q, V, D, G, bends, linear, quad
        solve_single(scaled, indices, indptr, *own, 300, 300, 1e-15, 1e-15)
    at, slopes = V + D, G + X.T @ (h * (X @ D)) + quad * D
    np.testing.assert_allclose(Q, np.sqrt(h) * (X @ D), atol=1e-12)
    np.testing.assert_allclose((slopes + linear * np.sign(at))[at != 0], 0, atol=1e-9)
    assert (np.abs(slopes[at == 0]) <= linear[at == 0] + 1e-9).all()
    assert np.count_nonzero(at == 0)


@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("tol", [1.0, 1e-4])
def test_columns_of_large_matrices_are_taken_from_the_rows(fit_intercept, tol, monkeypatch):
    random = np.random.default_rng(5)
    X = sp.random_array((400, 900), density=0.03, rng=random, format="csr")
    y = X @ random.standard_normal(900) + 0.3 * random.standard_normal(400) > 0
    model = LogisticRegression(l1_ratio=1.0, C=3.0, tol=tol, fit_intercept=fit_intercept)
    expected = model.fit(X, y).coef_.copy()
    monkeypatch.setattr(products, "LARGE", 1)
    monkeypatch.setattr(polish, "LARGE", 1)
    model.fit(X, y)
    assert model.solver_ == "working_set_newton"
    assert model.certificate_.gap <= tol**2 * 400 * np.log(2)
    assert model.verify(X, y)
    if tol < 1:
        np.testing.assert_allclose(model.coef_, expected, atol=1e-6)


def test_the_hessian_of_coupled_scores_is_that_of_the_losses():
    random = np.random.default_rng(3)
    X, s = random.standard_normal((40, 3)), random.random(40)
    scores = random.standard_normal((40, 4))
    P = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    model = CoupledModel(X, s, True, 4)
    model.look(P)
    A = np.column_stack([X, np.ones(40)])
    expected = sum(
        s[i] * np.kron(np.outer(A[i], A[i]), np.diag(P[i]) - np.outer(P[i], P[i]))
        for i in range(40)
    )
    np.testing.assert_allclose(model._H, expected, atol=1e-12)


@pytest.mark.parametrize("l1_ratio", [1.0, 0.5])
@pytest.mark.parametrize("C", [0.05, 5.0])
def test_softmax_on_long_dense_rows_is_minimised(C, l1_ratio):
    random = np.random.default_rng(4)
    y = random.integers(0, 4, 700)
    X = random.standard_normal((4, 5))[y] + 1.5 * random.standard_normal((700, 5)) + 3
    model = LogisticRegression(l1_ratio=l1_ratio, C=C, solver="working_set_newton", tol=1e-5)
    model.fit(X, y)
    assert model.verify(X, y)

    # As a smooth problem with bounds: w = p - q with p, q >= 0.
    Y = np.eye(4)[y]

    def objective(v):
        p, q, b = v[:20].reshape(5, 4), v[20:40].reshape(5, 4), v[40:]
        Z = X @ (p - q) + b
        Z = Z - Z.max(axis=1, keepdims=True)
        total = np.log(np.exp(Z).sum(axis=1))
        U = X.T @ (np.exp(Z - total[:, None]) - Y) + (1 - l1_ratio) / C * (p - q)
        value = (total - (Z * Y).sum(axis=1)).sum() + l1_ratio / C * (p + q).sum()
        value += (1 - l1_ratio) / (2 * C) * ((p - q) ** 2).sum()
        level = (np.exp(Z - total[:, None]) - Y).sum(axis=0)
        lasso = l1_ratio / C
        return value, np.concatenate([(U + lasso).ravel(), (lasso - U).ravel(), level])

    bounds = [(0, None)] * 40 + [(None, None)] * 4
    options = {"maxiter": 20_000, "maxfun": 40_000, "ftol": 1e-15, "gtol": 1e-9}
    other = minimize(objective, np.zeros(44), jac=True, bounds=bounds, options=options)
    ours = model.certificate_.objective
    assert ours <= other.fun * (1 + 1e-9)
    assert ours >= other.fun - model.certificate_.gap - 1e-6 * other.fun
