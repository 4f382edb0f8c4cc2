"""Proximal Newton on the columns in play: the models of a step, and what it ends at."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import minimize

from trueline import LogisticRegression
from trueline.design import as_design
from trueline.losses import Logistic, Softmax, SquaredHinge
from trueline.penalties import ElasticNet
from trueline.problem import Problem
from trueline.solvers.conjugate_gradients import conjugate_gradients
from trueline.solvers.proximal_newton import models
from trueline.solvers.proximal_newton.columns import ColumnDescent
from trueline.solvers.proximal_newton.models import (
    CoupledHessian,
    least_penalised,
    scale_about_means,
    solve_face,
    solve_gram,
    solve_model,
)


def _rows(n=400, d=60, seed=0):
    random = np.random.default_rng(seed)
    X = sp.random_array((n, d), density=0.15, format="csr", random_state=random)
    w = np.where(np.arange(d) < 8, random.standard_normal(d) * 3, 0.0)
    y = np.where(random.random(n) < 1 / (1 + np.exp(-(X @ w - 0.4))), "spam", "ham")
    return X, y.astype(object), random.random(n) + 0.2


@pytest.mark.parametrize("has_level", [True, False])
def test_the_model_is_minimised_with_its_intercept(has_level):
    random = np.random.default_rng(1)
    X = sp.random_array((60, 12), density=0.3, format="csc", random_state=random)
    A, parts = X.toarray(), (X.data, X.indices.astype(np.int32), X.indptr.astype(np.int64))
    h, V, slopes = random.random(60), random.standard_normal(12), 3 * random.standard_normal(12)
    V[::3] = 0.0
    g, linear, quad = 0.7 * has_level, np.full(12, 1.5), np.full(12, 0.1)
    total = float(h.sum()) if has_level else 0.0
    # The slopes about the means are those of the model whose intercept is at its best.
    state, chosen, scaled = np.zeros((7, 12)), np.arange(12), np.empty(len(X.data))
    state[0], state[2], state[4], state[5] = V, slopes, linear, quad
    scale_about_means(*parts, np.sqrt(h), chosen, total, g, state, scaled)
    D, q, mean, columns = state[1], np.zeros(60), 0.0, (scaled, *parts[1:])
    for _ in range(40):  # columns that rest are left out: every call looks at all of them again
        rest = state, q, total, mean, 400, 1e-14
        _, mean = solve_model(*columns, chosen.copy(), *rest)
    _check_model(A, h, V, D, slopes, g, linear, quad, mean, has_level)

    # Few sweeps and then conjugate gradients on what is not zero end at the same place.
    expected = D.copy()
    q[:], D[:] = 0.0, 0.0
    mean = 0.0
    for _ in range(12):
        _, mean = solve_model(*columns, chosen.copy(), state, q, total, mean, 1, 0.0)
    face = np.flatnonzero(V + D)
    assert (face == np.flatnonzero(V + expected)).all()
    count, mean = solve_face(*columns, face, state, q, total, mean, 50, 1e-28)
    assert 0 < count < 50
    np.testing.assert_allclose(D, expected, atol=1e-10)
    np.testing.assert_allclose(q, np.sqrt(h) * (A @ D), atol=1e-12)
    _check_model(A, h, V, D, slopes, g, linear, quad, mean, has_level)


def _check_model(A, h, V, D, slopes, g, linear, quad, mean, has_level):
    shift = -g / h.sum() - mean if has_level else 0.0
    moved = A @ D + shift
    at, slope = V + D, slopes + A.T @ (h * moved) + quad * D
    if has_level:
        assert abs(g + h @ moved) < 1e-10
    np.testing.assert_allclose((slope + linear * np.sign(at))[at != 0], 0, atol=1e-9)
    assert (np.abs(slope[at == 0]) <= linear[at == 0]).all()
    assert 0 < np.count_nonzero(at == 0) < 12


@pytest.mark.grid(2)
@pytest.mark.parametrize("l1_ratio", [1.0, 0.6])
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("is_weighted", [True, False])
@pytest.mark.parametrize("C", [0.3, 5.0])
def test_answers_are_those_of_the_dense_solver(l1_ratio, fit_intercept, is_weighted, C):
    X, y, weights = _rows()
    s = weights if is_weighted else None
    own = {"l1_ratio": l1_ratio, "fit_intercept": fit_intercept, "C": C, "tol": 1e-5}
    model = LogisticRegression(solver="working_set_newton", **own).fit(X, y, s)
    other = LogisticRegression(solver="proximal_newton", **own).fit(X.toarray(), y, s)
    assert model.verify(X, y, s)
    np.testing.assert_allclose(model.coef_, other.coef_, atol=2e-6)
    np.testing.assert_allclose(model.intercept_, other.intercept_, atol=2e-6)


def test_coordinate_descent_on_a_hessian_ends_where_no_slope_is_left():
    random = np.random.default_rng(2)
    A = random.standard_normal((30, 8))
    H, V, G = A.T @ A, random.standard_normal((4, 2)), 40 * random.standard_normal((4, 2))
    linear = np.array([30.0, 30.0, 30.0, 0.0])
    for _ in range(30):  # each call leaves a share of the decrease of its first sweep
        D, _ = solve_gram(H, V, G, linear)
        V, G = V + D, G + (H @ D.ravel()).reshape(D.shape)
    strength = np.repeat(linear, 2).reshape(4, 2)
    np.testing.assert_allclose((G + strength * np.sign(V))[V != 0], 0, atol=1e-9)
    assert (np.abs(G[V == 0]) <= strength[V == 0]).all()
    assert 0 < np.count_nonzero(V == 0) < 6


def test_the_hessian_of_coupled_scores_is_that_of_the_losses():
    random = np.random.default_rng(3)
    X, s = random.standard_normal((40, 3)), random.random(40)
    scores = random.standard_normal((40, 4))
    P = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    at = SimpleNamespace(design=as_design(X), s=s, fit_intercept=True, V=np.zeros((4, 4)))
    model = CoupledHessian(at)
    model.renew(P)
    A = np.column_stack([X, np.ones(40)])
    expected = sum(
        s[i] * np.kron(np.outer(A[i], A[i]), np.diag(P[i]) - np.outer(P[i], P[i]))
        for i in range(40)
    )
    np.testing.assert_allclose(model.H, expected, atol=1e-12)


def test_on_small_tables_each_step_has_its_own_hessian():
    """With a kept one, or one of some of the rows, there are twice as many."""
    random = np.random.default_rng(4)
    X, scores = random.standard_normal((300, 6)), random.gumbel(size=(300, 3))
    Y = np.eye(3)[(X[:, :3] + scores).argmax(axis=1)]
    problem = Problem(as_design(X), Y, Softmax(), ElasticNet(1.0, 1.0), True)
    descent = ColumnDescent(problem, np.ones(6), np.zeros(6), np.zeros((7, 3)))
    while descent.gap > 1e-10 * descent.objective and descent.steps < 50:
        descent.step()
    assert descent.steps <= 8


def test_the_shift_that_is_penalised_least():
    random = np.random.default_rng(5)
    V = random.standard_normal((6, 5)) * (random.random((6, 5)) < 0.7)
    linear, quad = random.random(6), random.random(6) * np.array([1, 1, 1, 0, 0, 0])
    found = least_penalised(V, linear, quad)[:, 0]

    def cost(t):
        rest = np.abs(V - t[:, None])
        return (linear[:, None] * rest + 0.5 * quad[:, None] * rest**2).sum(axis=1)

    grid = np.linspace(-4, 4, 4001)
    best = np.min([cost(np.full(6, t)) for t in grid], axis=0)
    assert (cost(found) <= best + 1e-12).all()


@pytest.mark.grid(1)
@pytest.mark.parametrize("kind", ["one score", "hinge", "coupled columns", "coupled Hessian"])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_steps_end_where_no_slope_is_left(kind, fit_intercept):
    random = np.random.default_rng(6)
    X = random.standard_normal((80, 9)) * (random.random((80, 9)) < 0.5)
    k = 3 if kind.startswith("coupled") else 1
    labels = (X[:, :k] + random.standard_normal((80, k))).argmax(axis=1)
    y = np.where(X[:, :1] + random.standard_normal((80, 1)) > 0, 1.0, -1.0)
    y = np.eye(3)[labels] if k > 1 else y
    loss = {"one score": Logistic(), "hinge": SquaredHinge()}.get(kind, Softmax())
    data = sp.csr_array(X) if kind == "coupled columns" else X
    penalty = ElasticNet(2.0, 0.8)
    problem = Problem(as_design(data), y, loss, penalty, fit_intercept)
    descent = ColumnDescent(problem, np.full(9, 1.6), np.full(9, 0.4), np.zeros((10, k)))
    for _ in range(200):
        if not descent.step():
            break
    descent.balance()
    W, b = descent.coefficients()
    U = loss.gradient(y, X @ W + b)
    slope = X.T @ U + 0.4 * W
    np.testing.assert_allclose((slope + 1.6 * np.sign(W))[W != 0], 0, atol=1e-7)
    assert (np.abs(slope[W == 0]) <= 1.6 + 1e-7).all()
    assert 0 < np.count_nonzero(W) < W.size
    if fit_intercept:
        np.testing.assert_allclose(U.sum(axis=0), 0, atol=1e-9)
    value = loss.value(y, X @ W + b).sum() + penalty.value(W)
    np.testing.assert_allclose(descent.objective, value, rtol=1e-12)


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


@pytest.mark.parametrize("C", [30.0, 100.0])
def test_words_of_four_languages_with_a_weak_penalty_are_proven(C):
    """Words twice in the design, as counts and as marks: signs go on changing near the optimum."""
    rng = np.random.default_rng(2)
    n, d, classes = 300, 600, 4
    y = rng.integers(0, classes, n)
    common = 1 / np.arange(1, d + 1)
    often = np.where(rng.random((classes, d)) < 0.2, 4 * common, common)
    counts = [rng.multinomial(12, often[c] / often[c].sum()) for c in y]
    X = np.log1p(np.array(counts, dtype=float))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    X = sp.csr_array(np.hstack([X, 0.1 * (X[:, ::3] > 0)]))
    model = LogisticRegression(C=C, l1_ratio=1.0).fit(X, y)
    assert model.certificate_.relative_gap < 1e-6
    assert model.verify(X, y)


def _topics(n, k, words):
    random = np.random.default_rng(0)
    labels = random.choice(k, n, p=random.dirichlet(0.3 * np.ones(k)))
    topics = random.dirichlet(0.05 * np.ones(words), k)
    counts = [random.multinomial(20, 0.5 * topics[topic] + 0.5 / words) for topic in labels]
    X = np.array(counts, dtype=float)
    constant = np.log(n / np.bincount(labels)[labels]).sum()
    return sp.csr_array(X / np.linalg.norm(X, axis=1, keepdims=True)), labels, constant


def test_texts_of_many_classes_that_a_first_step_makes_certain():
    """Forty topics, weak penalties: rows certain of a wrong class have a slope and no curvature."""
    X, labels, constant = _topics(600, 40, 3000)
    model = LogisticRegression(C=30.0, l1_ratio=1.0).fit(X, labels)
    assert model.solver_ == "working_set_newton"
    assert model.certificate_.gap <= 1e-6 * constant
    assert model.verify(X, labels)


def test_a_fit_of_many_classes_ends_when_only_rounding_keeps_its_proof_open(monkeypatch):
    """Below the tolerance steps gain nothing, and go on for long: faces change by rounding."""
    X, labels, constant = _topics(300, 30, 1000)
    gaps, step = [], ColumnDescent.step

    def watched(self):
        has_moved = step(self)
        gaps.append(self.gap)
        return has_moved

    monkeypatch.setattr(ColumnDescent, "step", watched)
    model = LogisticRegression(C=1000.0, l1_ratio=1.0, tol=1e-10).fit(X, labels)
    assert model.certificate_.gap > 1e-9 * constant  # what the solver aims at, and cannot prove
    assert [gap <= 1e-13 * constant for gap in gaps] == [False] * (len(gaps) - 1) + [True]
    assert model.verify(X, labels)


def test_conjugate_gradients_of_many_classes_read_the_columns_in_play_a_limited_number_of_times(
    monkeypatch,
):
    X, labels, constant = _topics(300, 20, 1000)
    sizes, counts, step = [], [], ColumnDescent.step

    def counted(product, right, *rest, **options):
        x, count = conjugate_gradients(product, right, *rest, **options)
        sizes[-1].append(len(right))
        counts[-1] += count
        return x, count

    def watched(self):
        sizes.append([])
        counts.append(0)
        in_play = len(self.chosen)
        has_moved = step(self)
        assert sizes[-1] == [in_play + 1] * len(sizes[-1])  # and the intercepts
        return has_moved

    monkeypatch.setattr(models, "conjugate_gradients", counted)
    monkeypatch.setattr(models, "_COUPLED", 50)
    monkeypatch.setattr(ColumnDescent, "step", watched)
    model = LogisticRegression(C=300.0, l1_ratio=1.0).fit(X, labels)
    assert 0 < max(counts) <= 50
    assert max(map(len, sizes)) > 1  # more than one face in a step
    assert model.certificate_.gap <= 1e-8 * constant
    assert model.verify(X, labels)
