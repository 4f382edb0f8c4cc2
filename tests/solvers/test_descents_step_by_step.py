"""Descents as a lecture writes them down: every step, from any start, with any step size."""

import numpy as np
import pytest
from scipy.special import expit

from trueline import LinearRegressor, LogisticRegression

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

RANDOM = np.random.default_rng(0)
X = RANDOM.standard_normal((30, 2))
Y = X @ [1.0, -2.0] + 0.5 + 0.3 * RANDOM.standard_normal(30)
SIGNS = np.where(Y + RANDOM.standard_normal(30) > 0, 1, -1)
START, LEVEL = np.array([3.0, 1.0]), -1.0


def test_gradient_descent_on_three_points_by_hand():
    # 1/2 sum (w x - y)^2 for (1, 1), (2, 2), (3, 3): the slope is 14 (w - 1); with eta = 1/28 the
    # distance to 1 is halved in every step.
    x = np.array([[1.0], [2.0], [3.0]])
    model = LinearRegressor(penalty=None, fit_intercept=False, solver="gradient_descent")
    model.set_params(eta0=1 / 28, max_iter=4, trace=True).fit(x, x[:, 0], coef_init=[5.0])
    np.testing.assert_allclose(model.trace_.coef[:, 0], [5, 3, 2, 1.5, 1.25], rtol=1e-14)
    np.testing.assert_allclose(model.trace_["objective"], 7 * (model.trace_.coef[:, 0] - 1) ** 2)


def test_every_step_of_gradient_descent():
    model = LinearRegressor(penalty=None, solver="gradient_descent", eta0=0.01, max_iter=6)
    model.set_params(trace=True).fit(X, Y, coef_init=START, intercept_init=LEVEL)
    w, b = START, LEVEL
    for point, level in zip(model.trace_.coef, model.trace_.intercept, strict=True):
        np.testing.assert_allclose(point, w, rtol=1e-13)
        np.testing.assert_allclose(level, b, rtol=1e-13)
        r = X @ w + b - Y
        w, b = w - 0.01 * X.T @ r, b - 0.01 * r.sum()
    np.testing.assert_array_equal(model.trace_.coef[-1], model.coef_)


def logistic_gradient(w, b, rows, C):
    """Of sum_i log(1 + exp(-y_i z_i)) + |w|^2 / (2 C), on some rows, per row of the whole."""
    u = -SIGNS[rows] * expit(-SIGNS[rows] * (X[rows] @ w + b))
    return X[rows].T @ u / len(rows) + w / (C * len(X)), u.mean()


def test_every_step_of_logistic_descent_with_its_own_step_size():
    model = LogisticRegression(solver="gradient_descent", eta0=0.02, C=2.0, trace=True)
    model.fit(X, SIGNS, coef_init=[START], intercept_init=[LEVEL])
    w, b = START, LEVEL
    for point, level in list(zip(model.trace_.coef, model.trace_.intercept))[:8]:
        np.testing.assert_allclose(point, w, rtol=1e-12)
        np.testing.assert_allclose(level, b, rtol=1e-12)
        g, h = logistic_gradient(w, b, np.arange(30), 2.0)
        w, b = w - 0.02 * 30 * g, b - 0.02 * 30 * h


@pytest.mark.parametrize(("solver", "size"), [("stochastic_gradient", 1), ("mini_batch", 8)])
@pytest.mark.parametrize("start", [None, START])
def test_every_step_within_the_epochs(solver, size, start):
    model = LinearRegressor("logistic", alpha=0.5, solver=solver, max_iter=3, tol=0.0, trace=True)
    model.set_params(eta0=0.3, schedule="sqrt", batch_size=8, random_state=0)
    model.fit(X, SIGNS, coef_init=start)
    random, w, b, t = np.random.RandomState(0), np.zeros(2) if start is None else start, 0.0, 0
    expected = {0.0: (w, b)}
    per_epoch = -(-30 // size)
    for _ in range(3):
        order = random.permutation(30)
        for rows in (order[s : s + size] for s in range(0, 30, size)):
            g, h = logistic_gradient(w, b, rows, 2.0)
            w, b, t = w - 0.3 / np.sqrt(1 + t) * g, b - 0.3 / np.sqrt(1 + t) * h, t + 1
            expected[round(t / per_epoch, 9)] = (w, b)
    trace = model.trace_
    assert trace.at.round(9).tolist() == list(expected)
    for point, level, (w, b) in zip(trace.coef, trace.intercept, expected.values()):
        np.testing.assert_allclose(point, w, rtol=1e-10, atol=1e-12)
        np.testing.assert_allclose(level, b, rtol=1e-10, atol=1e-12)


def test_logistic_regression_takes_the_parameters_of_its_descents():
    setting = {"solver": "mini_batch", "eta0": 0.3, "schedule": "sqrt", "batch_size": 8}
    setting |= {"random_state": 0, "tol": 0.0}
    ours = LogisticRegression(max_iter=1, C=2.0, **setting).fit(X, SIGNS)  # a hundred epochs
    same = LinearRegressor("logistic", alpha=0.5, max_iter=100, **setting).fit(X, SIGNS)
    np.testing.assert_allclose(ours.coef_[0], same.coef_, rtol=1e-12)


@pytest.mark.parametrize("solver", ["stochastic_gradient", "mini_batch", "gradient_descent"])
def test_who_watches_changes_nothing(solver):
    def fitted(trace):
        model = LinearRegressor(solver=solver, max_iter=4, random_state=0, tol=0.0, trace=trace)
        return model.fit(X, Y).coef_

    # Pieces of an epoch multiply their scale out one by one: the last digit may differ.
    np.testing.assert_allclose(fitted(True), fitted(False), rtol=1e-13)


@pytest.mark.parametrize("solver", ["gradient_descent", "newton", "auto"])
def test_the_minimum_is_the_same_from_everywhere(solver):
    model = LogisticRegression(solver=solver, tol=1e-5)
    from_zero = model.fit(X, SIGNS).coef_.copy()
    model.fit(X, SIGNS, coef_init=[START], intercept_init=LEVEL)
    np.testing.assert_allclose(model.coef_, from_zero, atol=1e-4)
    assert model.verify(X, SIGNS)


def test_a_start_of_the_wrong_shape_is_refused():
    with pytest.raises(ValueError, match=r"shapes \(3,\) and \(1,\), expected \(1, 2\) and \(1,\)"):
        LinearRegressor().fit(X, Y, coef_init=[1.0, 2.0, 3.0])
    with pytest.raises(ValueError, match="finite"):
        LinearRegressor().fit(X, Y, coef_init=[1.0, np.nan])


def test_a_warm_start_goes_on_where_the_last_descent_ended():
    setting = {"solver": "gradient_descent", "warm_start": True, "trace": True}
    model = LogisticRegression(max_iter=1, **setting).fit(X, SIGNS)
    end = model.coef_[0].copy()
    np.testing.assert_array_equal(model.fit(X, SIGNS).trace_.coef[0], end)
