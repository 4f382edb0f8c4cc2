"""Ridge with more columns than rows, where the kernel of the rows loses digits."""

import mpmath
import numpy as np
import pytest
from numpy.testing import assert_allclose

from trueline import Ridge, RidgeClassifier


def intensities(seed, n=15, d=200):
    """Positive numbers over several powers of ten, as of gene chips: the kernel has the condition
    1e10 and more for a strength of one."""
    rng = np.random.default_rng(seed)
    X = np.exp(rng.normal(9.0, 1.5, d) + 0.4 * rng.standard_normal((n, d)))
    return X, rng.choice([-1.0, 1.0], n)


def dual_form(X, y, alpha, weights=None):
    """w = X_c^T S c, (X_c X_c^T S + alpha) c = y - mean(y), in fifty digits."""
    n = len(y)
    s = np.ones(n) if weights is None else weights
    with mpmath.workdps(50):
        rows, S = mpmath.matrix(X.tolist()), [mpmath.mpf(v) for v in s]
        total = sum(S)
        for j in range(X.shape[1]):
            mean = sum(S[i] * rows[i, j] for i in range(n)) / total
            for i in range(n):
                rows[i, j] -= mean
        level = sum(S[i] * mpmath.mpf(y[i]) for i in range(n)) / total
        kernel = rows * rows.T
        for i in range(n):
            kernel[i, i] += mpmath.mpf(alpha) / S[i]
        c = mpmath.lu_solve(kernel, mpmath.matrix([mpmath.mpf(v) - level for v in y]))
        return np.array([float(v) for v in rows.T * c])


def assert_close(coef, expected):
    """All but the last digits of the largest coefficients."""
    assert_allclose(coef, expected, rtol=1e-11, atol=1e-14 * np.abs(expected).max())


@pytest.mark.parametrize("alpha", [1.0, 1e-3, 1e-6])
@pytest.mark.parametrize("weighted", [False, True])
def test_rows_of_large_numbers_are_not_factored_with_the_penalty(alpha, weighted):
    X, y = intensities(0)
    weights = np.random.default_rng(1).uniform(0.5, 2.0, len(y)) if weighted else None
    model = Ridge(alpha).fit(X, y, weights)
    assert_close(model.coef_, dual_form(X, y, alpha, weights))
    assert model.solver_ == "kernel"
    assert "singular vectors of the rows" in str(model.explain())
    assert model.verify(X, y, weights)


def test_every_target_may_have_a_strength_of_its_own():
    X, y = intensities(2)
    Y = np.column_stack([y, y[::-1], np.arange(len(y), dtype=float)])
    alpha = np.array([1e-3, 1.0, 1e-3])
    model = Ridge(alpha).fit(X, Y)
    for t in range(3):
        assert_close(model.coef_[t], dual_form(X, Y[:, t], alpha[t]))
    assert model.verify(X, Y)


def test_classifiers_of_wide_data_take_the_same_way():
    X, y = intensities(3)
    model = RidgeClassifier().fit(X, y)
    assert_close(model.coef_.ravel(), dual_form(X, y, 1.0))
    assert "singular vectors of the rows" in str(model.explain())
    assert model.verify(X, y)


def test_copies_of_rows_and_columns_that_do_not_vary():
    X, y = intensities(4)
    X, y = np.vstack([X, X[:4]]), np.r_[y, y[:4]]
    X[:, ::7] = 3e5
    model = Ridge(1.0).fit(X, y)
    assert_close(model.coef_, dual_form(X, y, 1.0))
    assert not model.coef_[::7].any()
    assert model.verify(X, y)
