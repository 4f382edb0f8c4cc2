"""What the solvers of the lasso read of dense columns beside their correlations."""

import numpy as np
import pytest

from trueline import Lasso
from trueline.design import as_design
from trueline.solvers.coordinate_descent.source import RowsSource


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("is_weighted", [False, True])
@pytest.mark.parametrize("fit_intercept", [False, True])
def test_norms_are_read_with_the_correlations(order, dtype, is_weighted, fit_intercept):
    rng = np.random.default_rng(0)
    X = np.array(rng.normal(size=(40, 90)) + 2.0, dtype=dtype, order=order)
    y, weights = rng.normal(size=40), rng.random(40) if is_weighted else None
    s = np.ones(40) if weights is None else weights
    source = RowsSource(as_design(X), y, weights, fit_intercept)
    wide = X.astype(np.float64)
    np.testing.assert_allclose(source.column_norms(), np.sqrt(s @ wide**2), rtol=1e-12)
    mean = s @ wide / s.sum() if fit_intercept else 0.0
    target = y - (s @ y / s.sum() if fit_intercept else 0.0)
    q = source.at(np.zeros((1, 0))).correlation[0]
    np.testing.assert_allclose(q, (s * target) @ (wide - mean), atol=1e-11)


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("shape", [(4000,), (4000, 2)])
def test_products_with_few_coefficients_are_those_with_all(order, dtype, shape):
    rng = np.random.default_rng(1)
    X = np.array(rng.normal(size=(50, 4000)), dtype=dtype, order=order)
    W = np.zeros(shape)
    W[[3, 700, 3999]] = rng.normal(size=(3, *shape[1:]))
    np.testing.assert_allclose(as_design(X).matvec(W), X.astype(float) @ W, rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize("fit_intercept", [False, True])
def test_the_proof_of_a_wide_fit_is_confirmed(fit_intercept):
    rng = np.random.default_rng(2)
    X = rng.normal(size=(80, 3000))
    y = X[:, :5].sum(axis=1) + rng.normal(size=80)
    model = Lasso(0.2, fit_intercept=fit_intercept, tol=1e-8).fit(X, y)
    assert model.solver_ == "coordinate_descent"
    assert model.verify(X, y)
