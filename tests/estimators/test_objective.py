"""``model.objective(X, y)`` is the function that was minimised, with its gradient and its text."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose

import trueline as tl

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 3))
Y = X @ [1.0, -2.0, 0.5] + RNG.normal(size=60)
POSITIVE = np.abs(Y) + 0.1
SIGNS = np.where(Y + RNG.normal(size=60) > 0, "yes", "no")
CLASSES = np.array(["a", "b", "c"])[np.digitize(Y, [-1.0, 1.0])]
WEIGHTS = RNG.uniform(0.5, 2.0, size=60)

REGRESSORS = [
    tl.LinearRegression(),
    tl.Ridge(alpha=2.0),
    tl.RidgeCV(),
    tl.Lasso(0.1),
    tl.ElasticNetCV(),
    tl.AdaptiveLasso(0.1),
    tl.GroupLasso(0.1),
    tl.LinearRegressor("huber", "elastic_net", 0.1),
    tl.HuberRegressor(alpha=0.5),
    tl.LeastAbsoluteDeviations(),
    tl.QuantileRegressor(quantile=0.3, alpha=0.01),
    tl.QuantileRegressor(quantile=[0.3, 0.6], alpha=0.0),
    tl.ChebyshevRegressor(),
    tl.PolynomialRegression(2),
    tl.BayesianLinearRegression(prior_mean=[1.0, 0.0, -1.0]),
    tl.BayesianRidge(),
    tl.BestSubset(2),
    tl.L0Regression(2.0),
    tl.StepwiseRegression(),
    tl.LinearSVR(epsilon=0.1, intercept_scaling=3.0),
]
CLASSIFIERS = [
    tl.LogisticRegression(C=0.5, class_weight="balanced"),
    tl.LogisticRegression(l1_ratio=0.5, solver="saga"),
    tl.LogisticRegressionCV(l1_ratios=(0,), scoring="accuracy", use_legacy_attributes=False),
    tl.LinearSVC(intercept_scaling=2.0),
    tl.LinearSVC(intercept_scaling=None, loss="hinge"),
    tl.LinearSVC(penalty="l1"),
    tl.LinearSVC(multi_class="crammer_singer"),
    tl.RidgeClassifier(),
    tl.LeastSquaresClassifier(),
]
CASES = [
    *((model, X, Y, {"sample_weight": WEIGHTS}) for model in REGRESSORS),
    *((model, X, Y, {}) for model in REGRESSORS),
    *((model, X, SIGNS, {"sample_weight": WEIGHTS}) for model in CLASSIFIERS),
    *((model, X, CLASSES, {}) for model in CLASSIFIERS),
    (tl.PoissonRegressor(), X, POSITIVE, {"exposure": WEIGHTS}),
    (tl.GammaRegressor(), X, POSITIVE, {}),
    (tl.TweedieRegressor(power=1.5), X, POSITIVE, {"offset": WEIGHTS}),
    (tl.TweedieRegressor(power=3), X, POSITIVE, {}),
]


def differences(function, at, step=1e-6):
    """Central differences."""
    return np.array(
        [(function(at + e) - function(at - e)) / (2 * step) for e in step * np.eye(len(at))]
    )


@pytest.mark.parametrize("case", CASES, ids=lambda case: repr(case[0]))
def test_at_the_fit_it_is_the_objective_of_the_certificate_and_has_the_gradient(case):
    model, rows, y, given = case
    model.fit(rows, y, **given)
    objective = model.objective(rows, y, **given)
    assert_allclose(objective(), model.certificate_.objective, rtol=1e-12)
    assert_allclose(objective.loss() + objective.penalty(), objective(), rtol=1e-12)
    # Elsewhere, against differences; not at zeros and ends of lines, where there are kinks.
    coef = model.coef_ + 0.01 * RNG.uniform(1.0, 2.0, size=model.coef_.shape)
    level = model.intercept_ + 0.0137

    def value(v):
        return objective(v[: coef.size], v[coef.size :])

    slope = differences(value, np.concatenate([coef.ravel(), np.ravel(level)]))
    g, g0 = objective.gradient(coef, level)
    assert g.shape == np.shape(model.coef_)
    assert np.shape(g0) == np.shape(model.intercept_)
    size = 1.0 + np.abs(slope).max()
    assert_allclose(np.concatenate([g.ravel(), np.ravel(g0)]) / size, slope / size, atol=1e-8)


def test_the_objective_of_ridge_worked_by_hand():
    rows, y = np.array([[1.0], [2.0]]), np.array([1.0, 3.0])
    objective = tl.Ridge(alpha=4.0).fit(rows, y).objective(rows, y)
    # At w = 1, b = 0: errors 0 and 1, half their squares 1/2; the penalty is 4/2.
    assert objective([1.0], 0.0) == 0.5 + 2.0
    assert objective.loss([1.0], 0.0) == 0.5
    assert objective.penalty([1.0], 0.0) == 2.0
    g, g0 = objective.gradient([1.0], 0.0)
    assert (g.tolist(), g0) == ([-2.0 + 4.0], -1.0)
    assert str(objective) == "sum_i [1/2 (z - y)^2] + alpha/2 ||w||^2,  z_i = x_i.w + b,  alpha = 4"


@pytest.mark.parametrize(
    ("model", "bound"),
    [
        (tl.ChebyshevRegressor(solver="smoothed", smoothing=0.2), 0.2 * np.log(120)),
        (tl.LeastAbsoluteDeviations(solver="smoothed", smoothing=0.2), 0.1 * 60),
    ],
    ids=["maximum", "absolute"],
)
def test_a_smoothed_fit_has_minimised_the_smooth_function(model, bound):
    model.fit(X, Y)
    objective = model.objective(X, Y)
    g, g0 = objective.gradient()
    assert_allclose([*g, g0], 0.0, atol=1e-8)
    # The smooth maximum is above the maximum, the smooth absolute error below.
    assert abs(objective() - model.certificate_.objective) <= bound
    assert "mu = 0.2" in str(objective)
    assert f"{bound:.4g}" in str(model.explain())


def test_rows_may_be_sparse_or_a_table_and_others_than_those_of_the_fit():
    model = tl.Ridge().fit(X, Y)
    given = model.objective(X[:20], Y[:20])(np.ones(3), 1.0)
    assert_allclose(given, 0.5 * ((X[:20].sum(axis=1) + 1 - Y[:20]) ** 2).sum() + 1.5)
    for rows in (sp.csr_array(X[:20]), pd.DataFrame(X[:20])):
        assert_allclose(model.objective(rows, Y[:20])(np.ones(3), 1.0), given)
    fresh = tl.LogisticRegression().fit(X, CLASSES).objective(X[:4], CLASSES[:4])
    assert fresh.loss() > 0


def test_what_cannot_be_told_is_refused():
    model = tl.LogisticRegression(penalty="firth").fit(X, SIGNS)
    with pytest.raises(ValueError, match="Firth"):
        model.objective(X, SIGNS)
    with pytest.raises(ValueError, match=r"coef_ has the shape \(3,\)"):
        tl.Ridge().fit(X, Y).objective(X, Y)([1.0, 2.0])
    huge = tl.Ridge().fit(X * 1e200, Y)
    with pytest.raises(ValueError, match="powers of two"):
        huge.objective(X * 1e200, Y)


def test_the_hard_margin_has_multipliers_and_support_vectors():
    """Worked by hand: the nearest points are (0, 0) and (2, 0); w = (1, 0), a = 1/2 each."""
    rows = np.array([[0.0, 0.0], [-1.0, 5.0], [2.0, 0.0], [3.0, 1.0]])
    model = tl.LinearSVC(C=np.inf).fit(rows, [-1, -1, 1, 1])
    assert_allclose(model.coef_, [[1.0, 0.0]], atol=1e-12)
    assert model.support_.tolist() == [0, 2]
    assert_allclose(model.dual_coef_, [[-0.5, 0.5]])
    assert_allclose(model.support_vectors_, rows[[0, 2]])


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_multipliers_of_hard_margins_satisfy_the_kkt_conditions(fit_intercept):
    side = X @ [1.0, -2.0, 0.5]
    rows, y = X[np.abs(side) > 0.5], np.sign(side[np.abs(side) > 0.5])
    weights = np.where(np.arange(len(y)) % 7 == 0, 0.0, 1.0)
    model = tl.LinearSVC(C=np.inf, fit_intercept=fit_intercept).fit(rows, y, weights)
    assert (weights[model.support_] > 0).all()
    assert_allclose(model.support_vectors_, rows[model.support_])
    assert_allclose(model.dual_coef_ @ model.support_vectors_, model.coef_, atol=1e-9)
    a = model.dual_coef_[0] * y[model.support_]
    assert (a >= 0).all()
    assert_allclose(a.sum(), (model.coef_**2).sum(), rtol=1e-9)
    if fit_intercept:
        assert_allclose(model.dual_coef_.sum(), 0.0, atol=1e-9)
    scores = y[model.support_] * model.decision_function(model.support_vectors_)
    assert_allclose(a * (scores - 1.0), 0.0, atol=1e-9)
    assert not hasattr(model.set_params(C=1.0).fit(rows, y), "dual_coef_")
