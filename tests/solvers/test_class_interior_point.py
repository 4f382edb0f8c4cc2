"""The interior point of the multiclass hinge: the optimum, proven, on columns of any size."""

import numpy as np
import pytest
import scipy.optimize
import scipy.sparse as sp
from numpy.testing import assert_allclose

from trueline import LinearSVC


def rows(n=60, classes=3, seed=0):
    generator = np.random.default_rng(seed)
    X = generator.normal(size=(n, 3))
    scores = X @ generator.normal(size=(3, classes)) + generator.gumbel(size=(n, classes))
    return X, np.argmax(scores, axis=1)


def least_objective(X, y, C, weights, fit_intercept):
    """The quadratic program of coefficients and losses, by SciPy."""
    (n, d), k = X.shape, int(y.max()) + 1
    size = d * k

    def parts(flat):
        return flat[:size].reshape(d, k), flat[size : size + k], flat[size + k :]

    def value(flat):
        W, _, losses = parts(flat)
        gradient = np.concatenate([W.ravel(), np.zeros(k), C * weights])
        return 0.5 * (W**2).sum() + C * weights @ losses, gradient

    # loss_i - [m is not y_i] - z_im + z_i,y_i >= 0
    A = np.zeros((n, k, size + k + n))
    required = np.ones((n, k))
    required[np.arange(n), y] = 0.0
    for i in range(n):
        for m in range(k):
            for j in range(d):
                A[i, m, j * k + m] -= X[i, j]
                A[i, m, j * k + y[i]] += X[i, j]
            if fit_intercept:
                A[i, m, size + m] -= 1.0
                A[i, m, size + y[i]] += 1.0
            A[i, m, size + k + i] = 1.0
    A = A.reshape(n * k, -1)
    start = np.concatenate([np.zeros(size + k), np.full(n, 2.0)])
    found = scipy.optimize.minimize(
        value,
        start,
        jac=True,
        method="SLSQP",
        constraints={"type": "ineq", "fun": lambda v: A @ v - required.ravel(), "jac": lambda v: A},
        options={"maxiter": 500, "ftol": 1e-13},
    )
    return found.fun


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("is_weighted", [False, True])
def test_the_optimum_of_the_quadratic_program(is_weighted, classes, fit_intercept):
    X, y = rows(25, classes)
    weights = np.random.default_rng(1).uniform(0.1, 3, len(y)) if is_weighted else np.ones(len(y))
    model = LinearSVC(
        multi_class="crammer_singer",
        solver="class_interior_point",
        fit_intercept=fit_intercept,
        intercept_scaling=None,
        tol=1e-9,
        C=0.7,
    ).fit(X, y, weights)
    best = least_objective(X, y, 0.7, weights, fit_intercept)
    # The objective is divided by C.
    assert_allclose(0.7 * model.certificate_.objective, best, rtol=1e-7)
    assert model.certificate_.relative_gap <= 1e-7
    assert model.verify(X, y, weights)


@pytest.mark.parametrize("kind", [sp.csr_array, sp.csc_array, np.float32])
def test_other_forms_of_the_same_rows(kind):
    X, y = rows(200)
    X = np.round(X * 8) / 8  # single precision holds these
    settings = {"multi_class": "crammer_singer", "solver": "class_interior_point", "tol": 1e-8}
    plain = LinearSVC(**settings).fit(X, y)
    data = X.astype(kind) if kind is np.float32 else kind(X)
    other = LinearSVC(**settings).fit(data, y)
    assert_allclose(other.coef_, plain.coef_, atol=1e-5)
    assert other.verify(data, y)


@pytest.mark.parametrize(("size", "mean"), [(10.0, 2e3), (3e4, 5e4), (1e-6, 0.0)])
def test_columns_of_any_size(size, mean):
    X, y = rows(300)
    X[:, 0] = size * X[:, 0] + mean
    model = LinearSVC(multi_class="crammer_singer").fit(X, y)
    assert model.certificate_.relative_gap <= 1e-4
    assert model.verify(X, y)


def test_few_columns_choose_it_and_many_do_not():
    X, y = rows(300)
    few = LinearSVC(multi_class="crammer_singer").fit(X, y)
    assert "class_interior_point: " in str(few.explain())
    wide = np.random.default_rng(0).normal(size=(60, 2000))
    many = LinearSVC(multi_class="crammer_singer").fit(wide, y[:60])
    assert "class_interior_point: " not in str(many.explain())


@pytest.mark.parametrize("C", [1e-6, 1e6])
def test_extreme_strengths(C):
    X, y = rows(100)
    model = LinearSVC(multi_class="crammer_singer", C=C).fit(X, y)
    assert np.isfinite(model.coef_).all()
    assert model.verify(X, y)
