"""Newton's method by conjugate gradients: rows that stand for all, products by blocks, fits."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import minimize
from scipy.special import logsumexp, softmax

from trueline import LogisticRegression
from trueline.design import as_design
from trueline.losses import Logistic, Softmax
from trueline.solvers.newton.cg import rows as rows_module
from trueline.solvers.newton.cg.descent import Preconditioner, Sample, drawn_rows
from trueline.solvers.newton.cg.rows import Rows


@pytest.fixture
def random() -> np.random.Generator:
    return np.random.default_rng(0)


def test_rows_are_drawn_once_and_stand_for_all(random: np.random.Generator) -> None:
    h = random.exponential(size=5000) ** 3
    order = random.permutation(5000)
    rows, weights = drawn_rows(h, 400, order)
    assert abs(len(rows) - 400) <= 2
    assert len(np.unique(rows)) == len(rows)
    # Those that were not certain to be drawn all stand for the same.
    others = weights > h[rows] * (1 + 1e-9)
    assert np.allclose(weights[others], weights[others][0], rtol=1e-9)
    assert weights.sum() == pytest.approx(h.sum(), rel=0.01)


def test_rows_of_no_weight_are_not_drawn() -> None:
    h = np.zeros(100)
    assert len(drawn_rows(h, 10, np.arange(100))[0]) == 0
    h[[3, 50]] = 1.0, 2.0
    rows, weights = drawn_rows(h, 10, np.arange(100))
    assert rows.tolist() == [3, 50]
    assert weights.tolist() == [1.0, 2.0]


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("layout", ["C", "F"])
@pytest.mark.parametrize("is_large", [True, False])
def test_products_are_those_of_the_hessian(
    random: np.random.Generator,
    monkeypatch: pytest.MonkeyPatch,
    fit_intercept: bool,
    layout: Any,
    is_large: bool,
) -> None:
    n, d, k = 3001, 70, 10
    monkeypatch.setattr(rows_module, "_LARGE", 1 if is_large else 10**9)
    X = np.asarray(random.standard_normal((n, d)), order=layout)
    s, P = random.uniform(0.5, 2.0, n), softmax(2 * random.standard_normal((n, k)), axis=1)
    V = random.standard_normal((d + 1, k))
    V[-1] *= fit_intercept
    A = np.hstack([X, np.full((n, 1), float(fit_intercept))])
    curvature = P[:, :, None] * np.eye(k) - P[:, :, None] * P[:, None, :]
    expected = A.T @ (s[:, None] * (curvature @ (A @ V)[:, :, None])[:, :, 0])
    found = Rows(as_design(X), s, fit_intercept).hessian(Softmax(), P)(V)
    assert np.abs(found - expected).max() <= (1e-5 if is_large else 1e-12) * np.abs(expected).max()


def test_products_of_other_losses(
    random: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rows_module, "_LARGE", 1)
    X, h = random.standard_normal((30_000, 80)), random.uniform(size=(30_000, 1))
    V = random.standard_normal((81, 1))
    A = np.hstack([X, np.ones((30_000, 1))])
    found = Rows(as_design(X), np.ones(30_000), True).hessian(Logistic(), h)(V)
    expected = A.T @ (h * (A @ V))
    assert np.abs(found - expected).max() <= 1e-5 * np.abs(expected).max()


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("is_sparse", [False, True])
def test_scores_and_sums(random: np.random.Generator, dtype: Any, is_sparse: bool) -> None:
    X = random.standard_normal((4003, 60)).astype(dtype)
    design = as_design(sp.csr_array(X) if is_sparse else X)
    rows, V = Rows(design, np.ones(4003), True), random.standard_normal((61, 10))
    A = np.hstack([X.astype(np.float64), np.ones((4003, 1))])
    Z = rows.scores(V)
    assert np.allclose(Z, A @ V, rtol=1e-12, atol=1e-12)
    assert np.allclose(rows.total(Z), A.T @ Z, rtol=1e-11, atol=1e-9)


def test_the_sample_is_like_all_rows(random: np.random.Generator) -> None:
    """Few rows bend: drawn by their curvature, few rows tell what all of them do."""
    n, d = 40_000, 30
    X = random.standard_normal((n, d)) @ np.diag(np.geomspace(1.0, 30.0, d))
    h = np.where(random.uniform(size=n) < 0.05, 0.2, 1e-7)[:, None]
    rows, curvatures = Rows(as_design(X), np.ones(n), True), np.full((d + 1, 1), 1.0)
    curvatures[-1] = 0.0
    inverse = Preconditioner(Sample(rows), rows, h, curvatures, is_alike=False)
    A = np.hstack([X, np.ones((n, 1))])
    H = A.T @ (h * A) + np.diag(curvatures[:, 0])
    product = np.column_stack([inverse.apply(column[:, None])[:, 0] for column in H])
    spectrum = np.linalg.eigvals(product).real
    assert spectrum.max() / spectrum.min() < 2.0


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("is_weighted", [True, False])
def test_fits_from_samples_and_single_precision(
    random: np.random.Generator,
    monkeypatch: pytest.MonkeyPatch,
    fit_intercept: bool,
    is_weighted: bool,
) -> None:
    """More rows than a sample has, read in single precision: the answer is exact all the same."""
    monkeypatch.setattr(rows_module, "_LARGE", 1)
    n, d, k = 6000, 20, 4
    X = random.standard_normal((n, d)) + 1.0
    y = (X @ random.standard_normal((d, k)) + random.gumbel(size=(n, k))).argmax(axis=1)
    s = random.uniform(0.2, 3.0, n) if is_weighted else np.ones(n)
    model = LogisticRegression(fit_intercept=fit_intercept, tol=1e-6, solver="newton-cg")
    model.fit(X, y, sample_weight=s if is_weighted else None)
    assert model.certificate_.verify(X, y, sample_weight=s if is_weighted else None)
    one_hot, A = np.eye(k)[y], np.hstack([X, np.full((n, 1), float(fit_intercept))])

    def objective(v: Any) -> Any:
        V = v.reshape(d + 1, k)
        Z = A @ V
        value = s @ (logsumexp(Z, axis=1) - (Z * one_hot).sum(axis=1)) + 0.5 * (V[:-1] ** 2).sum()
        G = A.T @ (s[:, None] * (softmax(Z, axis=1) - one_hot))
        G[:-1] += V[:-1]
        return value, G.ravel()

    V = np.vstack([model.coef_.T, model.intercept_])
    value, gradient = objective(V.ravel())
    best = minimize(objective, V.ravel(), jac=True, method="L-BFGS-B", options={"gtol": 1e-9})
    assert np.abs(gradient).max() <= 1e-3
    assert value - best.fun <= 1e-10 * value
