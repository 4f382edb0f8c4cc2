"""Paths of sparse columns: the same answers as by other ways, with honest gaps."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.linear_model import LassoCV as SklearnLassoCV

from trueline import LassoCV
from trueline.design import as_design
from trueline.solvers.coordinate_descent.path import follow_path
from trueline.solvers.coordinate_descent.source import RowsSource, Terms

N, D = 120, 300


def text_like(seed=0):
    rng = np.random.default_rng(seed)
    X = sp.random(N, D, density=0.05, random_state=seed, format="csc")
    X.data = 1.0 + rng.random(X.nnz)
    w = np.zeros(D)
    w[rng.choice(D, 15, replace=False)] = rng.normal(size=15)
    return X, X @ w + 0.1 * rng.normal(size=N) + 3.0


def weights_of(kind):
    rng = np.random.default_rng(1)
    return {"none": None, "some": rng.random(N) + 0.1, "zeros": (np.arange(N) >= 24) * 1.0}[kind]


def unit(curvature):
    infinite = np.full(D, np.inf)
    return Terms.of(np.ones(D), np.full(D, curvature), -infinite, infinite)


def path_of(source, levels, tol, curvature=0.0):
    terms = [unit(curvature).scaled(level, level) for level in levels]
    return list(follow_path(source, terms, list(levels), tol))


def top(source):
    return np.abs(source.at(np.zeros((1, 0))).correlation[0]).max()


def centred(X, y, weights, fit_intercept):
    """The rooted, centred problem, written down."""
    s = np.ones(N) if weights is None else weights
    V, r = X.toarray(), y.copy()
    if fit_intercept:
        V, r = V - s @ V / s.sum(), r - s @ r / s.sum()
    return np.sqrt(s)[:, None] * V, np.sqrt(s) * r


@pytest.mark.grid(2)
@pytest.mark.parametrize("weights", ["none", "some", "zeros"])
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("curvature", [0.0, 0.3])
@pytest.mark.parametrize("tol", [1e-3, 1e-8])
def test_points_have_the_gap_they_say(weights, fit_intercept, curvature, tol):
    X, y = text_like()
    s = weights_of(weights)
    source = RowsSource(as_design(X), y, s, fit_intercept)
    levels = np.geomspace(top(source), 0.1 * top(source), 40)
    V, target = centred(X, y, s, fit_intercept)
    for level, point in zip(levels, path_of(source, levels, tol, curvature), strict=True):
        w = point.coef(D)
        r = target - V @ w
        q, a = V.T @ r, curvature * level
        value = 0.5 * r @ r + level * np.abs(w).sum() + 0.5 * a * w @ w
        t = 1.0 if a else min(1.0, level / np.abs(q).max())
        excess = np.maximum(np.abs(t * q) - level, 0.0)
        conjugate = (excess**2).sum() / (2 * a) if a else 0.0
        gap = value - (t * (target @ r) - 0.5 * t**2 * (r @ r) - conjugate)
        assert gap <= tol * source.scale + 1e-12 * source.scale
        np.testing.assert_allclose(point.gap, gap, atol=1e-9 * source.scale)
        np.testing.assert_allclose(point.objective, value, rtol=1e-12)


@pytest.mark.parametrize("curvature", [0.0, 0.3])
def test_sparse_and_dense_paths_agree(curvature):
    X, y = text_like()
    sources = [RowsSource(as_design(A), y, None, True) for A in (X, X.toarray())]
    levels = np.geomspace(1.0, 0.02, 60) * top(sources[0])
    paths = [path_of(source, levels, 1e-12, curvature) for source in sources]
    for sparse, dense in zip(*paths, strict=True):
        np.testing.assert_allclose(sparse.coef(D), dense.coef(D), atol=1e-6)


def test_where_all_coefficients_rest_nothing_moves():
    X, y = text_like()
    source = RowsSource(as_design(X), y, None, True)
    points = path_of(source, np.array([2.0, 1.0, 0.9]) * top(source), 1e-6)
    assert [len(point.columns) for point in points[:2]] == [0, 0]
    assert len(points[2].columns) > 0


def test_far_steps_reach_the_tolerance():
    X, y = text_like()
    source = RowsSource(as_design(X), y, None, True)
    levels = np.array([1.0, 0.9, 0.1, 0.05]) * top(source)
    points = path_of(source, levels, 1e-8)
    assert len(points) == 4
    assert all(point.gap <= 1e-8 * source.scale for point in points)


@pytest.mark.parametrize("layout", ["csc", "csr"])
def test_errors_of_the_folds_are_those_of_scikit_learn(layout):
    X, y = text_like()
    X = X.asformat(layout)
    ours = LassoCV(alphas=30, eps=1e-2, tol=1e-8, max_iter=100_000).fit(X, y)
    theirs = SklearnLassoCV(alphas=30, eps=1e-2, tol=1e-10, max_iter=100_000).fit(X, y)
    np.testing.assert_allclose(ours.alphas_, theirs.alphas_)
    np.testing.assert_allclose(ours.mse_path_, theirs.mse_path_, rtol=1e-5)
    assert ours.alpha_ == pytest.approx(theirs.alpha_)
    assert ours.verify(X, y)
