"""Proximal Newton over all columns of small sparse data: its model, and what it ends at."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from trueline import LogisticRegression
from trueline.design.sparse_products import gram_of_rows
from trueline.estimators.labels import encode_labels
from trueline.solvers.columns import small
from trueline.solvers.columns.small_kernels import (
    find_reaches,
    scale_about_means,
    solve_face,
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
    A, parts = X.toarray(), (X.data, X.indices.astype(np.int32), X.indptr)
    h, V, slopes = random.random(60), random.standard_normal(12), 3 * random.standard_normal(12)
    V[::3] = 0.0
    g, linear, quad = 0.7 * has_level, np.full(12, 1.5), np.full(12, 0.1)
    level = (h.sum(), g) if has_level else (0.0, 0.0)
    # The slopes about the means are those of the model whose intercept is at its best.
    G, chosen = slopes.copy(), np.arange(12)
    scaled, bends, means = np.empty(len(X.data)), np.empty(12), np.empty(12)
    scale_about_means(*parts, np.sqrt(h), chosen, level, quad, G, scaled, bends, means)
    D, q, mean = np.zeros(12), np.zeros(60), 0.0
    columns = scaled, *parts[1:]
    rest = q, V, D, G, bends, linear, quad
    for _ in range(40):  # columns that rest are left out: every call looks at all of them again
        _, mean = solve_model(*columns, chosen.copy(), level[0], means, mean, *rest, 400, 1e-14)
    _check_model(A, h, V, D, slopes, g, linear, quad, mean, has_level)

    # Few sweeps and then conjugate gradients on what is not zero end at the same place.
    expected = D.copy()
    q[:], D[:] = 0.0, 0.0
    mean = 0.0
    for _ in range(12):
        _, mean = solve_model(*columns, chosen.copy(), level[0], means, mean, *rest, 1, 0.0)
    face = np.flatnonzero(V + D)
    assert (face == np.flatnonzero(V + expected)).all()
    count, mean = solve_face(*columns, face, level[0], means, mean, *rest, 50, 1e-28)
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


def test_columns_that_never_matter_are_left_out():
    X, y, _ = _rows()
    columns = X.tocsc()
    reach = np.empty(columns.shape[1])
    parts = columns.data, columns.indices.astype(np.int32), columns.indptr
    find_reaches(*parts, np.ones(len(y)), reach)
    np.testing.assert_allclose(reach, np.abs(X).sum(axis=0))
    C = 1 / np.quantile(reach, 0.8)
    model = LogisticRegression(l1_ratio=1.0, C=C).fit(X, y)
    assert (model.coef_[0, reach < 1 / C] == 0).all()
    assert model.verify(X, y)


def test_working_sets_go_on_where_steps_do_not_pay(monkeypatch):
    X, y, _ = _rows()
    expected = LogisticRegression(l1_ratio=1.0).fit(X, y)
    monkeypatch.setattr(small, "_PATIENCE", -1)
    model = LogisticRegression(l1_ratio=1.0, solver="working_set_newton").fit(X, y)
    assert model.verify(X, y)
    np.testing.assert_allclose(model.coef_, expected.coef_, atol=1e-6)


@pytest.mark.parametrize("is_weighted", [True, False])
def test_gram_matrices_row_by_row(is_weighted):
    X, _, weights = _rows(3000, 20)
    s = weights[: X.shape[0]] if is_weighted else None
    A = X.toarray()
    expected = A.T @ (A if s is None else s[:, None] * A)
    found = gram_of_rows(X, s)
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    np.testing.assert_array_equal(found, found.T)


@pytest.mark.parametrize("dtype", [object, "U5"])
def test_words_are_encoded_as_sorting_would(dtype):
    y = np.array(["b", "a", "c", "b", "a", "c", "a"], dtype=dtype)
    classes, codes = encode_labels(y, "model")
    expected, places = np.unique(y, return_inverse=True)
    np.testing.assert_array_equal(classes, expected)
    np.testing.assert_array_equal(codes, places)
    assert classes.dtype == expected.dtype


def test_labels_that_are_no_words_are_still_refused():
    X, y, _ = _rows()
    y[3] = 1.5
    with pytest.raises(TypeError, match="several types"):
        LogisticRegression().fit(X, y)
    y[3] = None
    with pytest.raises((TypeError, ValueError)):
        LogisticRegression().fit(X, y)
