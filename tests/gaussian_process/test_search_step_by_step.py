"""The search for a kernel's parameters, evaluation by evaluation."""

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel

from trueline import GaussianProcessRegressor
from trueline.plots import plot_trace

RANDOM = np.random.default_rng(0)
X = np.sort(RANDOM.uniform(0, 6, (25, 1)), axis=0)
Y = np.sin(X[:, 0]) + 0.1 * RANDOM.standard_normal(25)
KERNELS = {
    "by formula": ConstantKernel() * RBF() + WhiteKernel(0.1),
    "its own derivatives": RBF() ** 2 + WhiteKernel(0.1),
}


@pytest.mark.parametrize("name", KERNELS)
def test_every_evaluation_is_traced_with_its_parameters(name):
    model = GaussianProcessRegressor(KERNELS[name], trace=True).fit(X, Y)
    trace = model.trace_
    assert len(trace) >= model.n_iter_ > 3
    np.testing.assert_array_equal(trace.coef[0], KERNELS[name].theta)  # where it starts
    for theta, objective in zip(trace.coef, trace["objective"], strict=True):
        assert objective == pytest.approx(-model.log_marginal_likelihood(theta), rel=1e-9)
    best = int(np.argmin(trace["objective"]))
    np.testing.assert_allclose(trace.coef[best], model.kernel_.theta, atol=1e-6)


def test_the_search_is_drawn():
    model = GaussianProcessRegressor(KERNELS["by formula"], trace=True).fit(X, Y)
    (line,) = plot_trace(model).lines_
    above = model.trace_["objective"] - model.trace_["objective"].min()
    np.testing.assert_array_equal(line.get_ydata(), above[above > 0])


def test_nothing_is_kept_unasked():
    assert len(GaussianProcessRegressor(RBF() + WhiteKernel()).fit(X, Y).trace_) == 0
