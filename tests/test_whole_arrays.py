"""Kernels with a second form, of whole arrays, until they are compiled: both are the same."""

from functools import partial

import numpy as np
import pytest

from trueline.best_subset import exchange
from trueline.design import as_design
from trueline.gaussian_process import covariance
from trueline.losses import Logistic, SquaredHinge
from trueline.numerics.jit import compiler
from trueline.penalties import L2
from trueline.problem import Problem
from trueline.solvers.base import Options
from trueline.solvers.coordinate_descent import homotopy
from trueline.solvers.newton.batched import few_columns, steps
from trueline.solvers.smo import inner


def as_written(kernel):
    return getattr(kernel, "py_func", kernel)


@pytest.mark.parametrize("triangle", [True, False])
@pytest.mark.parametrize("family", range(5))
@pytest.mark.parametrize("rows", [(0, 13), (4, 9)])
def test_covariances_and_their_derivatives(family, triangle, rows):
    rng = np.random.default_rng(family)
    A = rng.standard_normal((13, 3))
    A[3] = A[5]
    B = np.ascontiguousarray(A.T) if triangle else rng.standard_normal((3, 11))
    weight = rng.standard_normal((13, B.shape[1]))
    if triangle:
        weight[np.triu_indices(13, 1)] = np.nan  # not to be read
    vector = rng.standard_normal(13 if triangle else 0)
    terms = A, B, family, 1.3
    for by_column in (True, False):
        k = 5 if by_column else 3
        found = []
        for fill, contract in (
            (covariance.add_covariance, covariance.contract),
            (covariance._add_whole, covariance._contract_whole),
        ):
            out, total = np.ones((13, B.shape[1])), np.zeros(k)
            product = np.zeros((k if triangle else 0, 13))
            as_written(fill)(*terms, 0.7, triangle, *rows, out)
            given = (*terms, by_column, weight, vector, triangle, *rows, total, product)
            as_written(contract)(*given)
            found.append((out, total, product))
        for one, other in zip(*found, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("epsilon", [0.0, 0.1])
@pytest.mark.parametrize("split", [0, 9])
def test_steps_with_two_multipliers(epsilon, split):
    rng = np.random.default_rng(1)
    X = rng.standard_normal((20, 3))
    Q, t = X @ X.T + np.eye(20), rng.standard_normal(20)
    found = []
    for solve in (inner.solve_pairs, inner._solve_pairs_whole):
        room, beta = t.copy(), np.zeros(20)
        low, high = np.full(20, -1.0), np.full(20, 0.5)
        box = low, high, epsilon, split
        steps, worst = as_written(solve)(Q, Q.diagonal(), room, beta, *box, 1e-9, 10_000)
        np.testing.assert_allclose(room, t - Q @ beta, atol=1e-12)
        assert worst <= 1e-9
        assert steps > 0
        found.append(beta)
    np.testing.assert_allclose(*found, atol=1e-8)


@pytest.mark.parametrize("form", ["as written", "whole"])
def test_two_multipliers_of_a_row_need_its_kernel_values_once(form):
    rng = np.random.default_rng(2)
    X, t, n = rng.standard_normal((15, 3)), rng.standard_normal(15), 15
    Q = X @ X.T + np.eye(n)
    solve = as_written(inner.solve_pairs) if form == "as written" else inner._solve_pairs_whole
    low, high = np.repeat([0.0, -1.0], n), np.repeat([1.0, 0.0], n)
    start = np.repeat([0.3, -0.3], n)
    found = []
    for times in (1, 2):
        K, beta = np.tile(Q, (times, times)), start.copy()
        room = np.tile(t - Q @ (start[:n] + start[n:]), times)
        rest = (beta, low, high, 0.0, n, 1e-10, 10_000)
        steps, worst = solve(K, K.diagonal(), room, *rest)
        assert steps > 0
        assert worst <= 1e-10
        np.testing.assert_allclose(room[:n], t - Q @ (beta[:n] + beta[n:]), atol=1e-12)
        found.append(beta)
    np.testing.assert_allclose(*found, atol=1e-8)


@pytest.mark.parametrize("has_intercept", [True, False])
@pytest.mark.parametrize("loss", [Logistic(), SquaredHinge()])
@pytest.mark.parametrize("d", [1, 6])
def test_newton_steps_on_few_columns(loss, d, has_intercept, monkeypatch):
    rng = np.random.default_rng(d)
    X = rng.standard_normal((90, d)) * 3.0 ** np.arange(d)
    y = np.where(X[:, :1] + rng.standard_normal((90, 3)) > [[0.0, 0.7, -1.0]], 1.0, -1.0)
    problem = Problem(as_design(X), y, loss, L2(0.3), has_intercept, rng.uniform(0.2, 2.0, 90))
    found = []
    for form in (steps.descend, steps._descend_whole):
        for name in ("descend", "sum_classes"):
            kernel = getattr(steps, name)
            own = kernel if form is steps.descend else kernel._whole
            monkeypatch.setattr(few_columns, name, own)
        monkeypatch.setattr(compiler, "mode", "always" if form is steps.descend else "never")
        solution = few_columns.solve_targets(problem, Options(), 1e-9)
        certificate = solution.certificate
        assert certificate.gap <= 2e-9 * certificate.objective + 1e-12
        assert certificate.verify(X, y, problem.weights)
        found.append(solution.coef)
    np.testing.assert_allclose(*found, rtol=1e-4, atol=1e-9)


def whole_form(name):
    return getattr(homotopy, f"{name}_whole")


@pytest.mark.parametrize("curvature", [0.0, 0.3])
@pytest.mark.parametrize("seed", range(3))
def test_paths_of_the_lasso(seed, curvature, monkeypatch):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((40, 12)) @ rng.standard_normal((12, 12))
    X[:, 5] = X[:, 4] + X[:, 3]  # the three are never in together
    G, c = X.T @ X, X.T @ rng.standard_normal(40)
    strengths = np.abs(c).max() * np.geomspace(1.0, 1e-3, 30)
    found = []
    monkeypatch.setattr(homotopy, "_follow", as_written(homotopy._follow))
    names = [name[:-6] for name in vars(homotopy) if name.endswith("_whole")]
    monkeypatch.setattr(np, "empty", partial(np.full, fill_value=np.nan))  # is not to be read
    for form in (lambda name: as_written(getattr(homotopy, name)), whole_form):
        for name in names:
            monkeypatch.setattr(homotopy, name, form(name))
        found.append(homotopy.propose(G, c, strengths, curvature * strengths))
    assert len(found[0]) == 30
    np.testing.assert_allclose(*found, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("alpha", [0.0, 0.4])
@pytest.mark.parametrize("seed", range(3))
def test_exchanges_of_columns(alpha, seed):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((60, 12))
    X[:, 7] = X[:, 2]  # dependent columns never go together
    y = X @ rng.standard_normal(12) + rng.standard_normal(60)
    G, c, allowed = X.T @ X / 60, X.T @ y / 60, np.arange(12) != 4
    order = rng.permutation(np.flatnonzero(allowed))
    start = exchange.independent(G, order, 5, 1e-6)
    np.testing.assert_array_equal(as_written(exchange.independent)(G, order, 5, 1e-6), start)
    for support in start, start[:0]:
        ends = [
            form(G, c, support, 5, alpha, allowed, 1e-12)
            for form in (exchange.descend, as_written(exchange.descend))
        ]
        np.testing.assert_array_equal(np.sort(ends[0][0]), np.sort(ends[1][0]))
        assert ends[1][1] == pytest.approx(ends[0][1], rel=1e-12)
        low = np.sort(np.where(ends[0][0] == 7, 2, ends[0][0]))
        high = np.where(low == 2, 7, low)
        for form in exchange.lowest_indices, as_written(exchange.lowest_indices):
            np.testing.assert_array_equal(np.sort(form(G, c, high, allowed, 1e-12)), low)
