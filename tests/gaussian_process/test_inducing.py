"""Inducing points: bounds hold, gradients are right, and with all rows nothing is lost."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.gaussian_process.kernels import (
    RBF,
    ConstantKernel,
    DotProduct,
    Matern,
    RationalQuadratic,
    WhiteKernel,
)

from trueline import GaussianProcessRegressor, SparseGaussianProcessRegressor, load, save
from trueline.gaussian_process.covariance import recognise
from trueline.gaussian_process.inducing import InducingBound, choose_points
from trueline.gaussian_process.likelihood import Likelihood

KERNELS = [
    1.3 * RBF(0.7) + WhiteKernel(0.1),
    2.0 * Matern([1.0, 2.0], nu=1.5) + WhiteKernel(0.2) + ConstantKernel(0.5),
    1.0 * RationalQuadratic(1.2, 0.7) + WhiteKernel(0.1),
]


def rows(n=300, seed=0):
    generator = np.random.default_rng(seed)
    X = generator.uniform(-2, 2, size=(n, 2))
    y = np.sin(2 * X[:, 0]) + 0.3 * X[:, 1] ** 2 + 0.1 * generator.normal(size=n)
    return X, y


def bound_of(kernel, X, y, points, noise=1e-3):
    structure = recognise(kernel, X)
    chosen = choose_points(structure, kernel.theta, X, points, np.random.default_rng(0))
    return InducingBound(structure, X, y, noise, chosen), Likelihood(
        structure, X, y[:, None], noise
    )


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_the_gradient_of_the_bound_is_right(kernel):
    X, y = rows(120)
    bound, _ = bound_of(kernel, X, y, 20)
    theta = kernel.theta
    gradient = bound.minus(theta)[1]
    step = 1e-6 * np.eye(len(theta))
    numeric = [(bound.minus(theta + e)[0] - bound.minus(theta - e)[0]) / 2e-6 for e in step]
    np.testing.assert_allclose(gradient, numeric, rtol=1e-5, atol=1e-4)


@settings(max_examples=15, deadline=None)
@given(points=st.integers(1, 40), seed=st.integers(0, 1000), which=st.integers(0, 2))
def test_the_likelihood_lies_between_the_bounds(points, seed, which):
    X, y = rows(60, seed)
    kernel = KERNELS[which]
    bound, exact = bound_of(kernel, X, y, points)
    fit = bound.fit(kernel.theta)
    value = exact.value(kernel.theta)
    assert fit.lower <= value + 1e-6
    assert fit.upper >= value - 1e-6
    assert -bound.minus(kernel.theta)[0] == pytest.approx(fit.lower, rel=1e-10)


def test_with_all_rows_the_bounds_meet():
    X, y = rows(50)
    kernel = 1.0 * Matern(1.0, nu=0.5) + WhiteKernel(0.3)
    bound, exact = bound_of(kernel, X, y, 50)
    fit, value = bound.fit(kernel.theta), exact.value(kernel.theta)
    assert fit.lower == pytest.approx(value, abs=1e-4)
    assert fit.upper == pytest.approx(value, abs=1e-4)


def test_predictions_come_close_to_those_of_the_whole_process():
    X, y = rows(500)
    kernel = 1.0 * RBF([1.0, 1.0]) + WhiteKernel(1.0)
    sparse = SparseGaussianProcessRegressor(kernel, n_inducing=60, normalize_y=True).fit(X, y)
    whole = GaussianProcessRegressor(kernel, normalize_y=True).fit(X, y)
    assert sparse.lower_bound_ <= whole.log_marginal_likelihood_value_ + 1e-6
    assert sparse.lower_bound_ == pytest.approx(whole.log_marginal_likelihood_value_, abs=0.1)
    new = rows(30, seed=5)[0]
    for a, b in zip(sparse.predict(new, return_std=True), whole.predict(new, return_std=True)):
        np.testing.assert_allclose(a, b, atol=5e-3)


def test_noise_is_raised_to_what_few_points_leave():
    """With less the bound is so low that its maximum may be looked for where all is noise."""
    X, y = rows(300)
    kernel = 1.0 * RBF(0.3) + WhiteKernel(1e-4)
    bound, _ = bound_of(kernel, X, y, 10, noise=0.0)
    theta = kernel.theta
    raised = bound.with_enough_noise(theta)
    np.testing.assert_array_equal(raised[:2], theta[:2])
    K, cross = kernel.k1(bound.points), kernel.k1(bound.points, X)
    left = np.mean(1.0 - np.einsum("ij,ij->j", cross, np.linalg.solve(K, cross)))
    assert bound.variance(raised) == pytest.approx(left, rel=1e-6)
    assert bound.minus(raised)[0] < bound.minus(theta)[0] - 1000
    plenty, _ = bound_of(1.0 * RBF(3.0) + WhiteKernel(0.1), X, y, 60)
    calm = np.log([1.0, 3.0, 0.1])
    np.testing.assert_array_equal(plenty.with_enough_noise(calm), calm)


def test_certificates_verify_and_tampering_is_found(tmp_path):
    X, y = rows(400)
    model = SparseGaussianProcessRegressor(1.0 * RBF() + WhiteKernel(), n_inducing=30).fit(X, y)
    assert model.verify(X, y)
    again = load(save(model, tmp_path / "sparse.trueline"))
    assert again.verify(X, y)
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    certificate = model.certificate_
    assert not certificate.verify(X, y + 0.1)
    assert not replace(certificate, objective=certificate.objective - 1.0).verify(X, y)
    lower = {**certificate.witness, "upper": model.lower_bound_ - 1.0}
    assert not replace(certificate, witness=lower).verify(X, y)
    assert "losing at most" in model.explain()


def test_what_inducing_points_cannot_do_is_said():
    X, y = rows(50)
    with pytest.raises(ValueError, match="Inducing points need noise"):
        SparseGaussianProcessRegressor(1.0 * RBF()).fit(X, y)
    with pytest.raises(ValueError, match="takes any kernel"):
        SparseGaussianProcessRegressor(DotProduct() + WhiteKernel()).fit(X, y)
