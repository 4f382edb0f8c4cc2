"""A proof is about what the model predicts with: whoever changes that has proven nothing."""

import numpy as np
import pytest
from sklearn.datasets import load_diabetes

import trueline

X, y = load_diabetes(return_X_y=True)
X, y = X[:80, :4] * 20, y[:80] / 50
labels = (y > np.median(y)).astype(int)
classes = np.digitize(y, np.quantile(y, [0.3, 0.7]))

REGRESSORS = {
    "LinearRegression": (trueline.LinearRegression(), {"positive": True, "fit_intercept": False}),
    "Ridge": (trueline.Ridge(), {"alpha": 2.0, "fit_intercept": False}),
    "RidgeCV": (trueline.RidgeCV(), {"alpha_": 3.0}),
    "Lasso": (trueline.Lasso(alpha=0.1), {"alpha": 0.2}),
    "LassoCV": (trueline.LassoCV(), {"alpha_": 0.5}),
    "ElasticNet": (trueline.ElasticNet(alpha=0.1), {"alpha": 0.2, "l1_ratio": 0.9}),
    "ElasticNetCV": (trueline.ElasticNetCV(), {"alpha_": 0.5, "l1_ratio_": 0.1}),
    "QuantileRegressor": (trueline.QuantileRegressor(), {"quantile": 0.9, "alpha": 0.0}),
    "HuberRegressor": (trueline.HuberRegressor(), {"epsilon": 2.0, "scale_": 9.0}),
    "LinearSVR": (trueline.LinearSVR(), {"C": 3.0, "epsilon": 0.5}),
    "PoissonRegressor": (trueline.PoissonRegressor(), {"alpha": 0.5}),
    "ChebyshevRegressor": (trueline.ChebyshevRegressor(), {"fit_intercept": False}),
    "BayesianRidge": (trueline.BayesianRidge(), {"alpha_": 9.0, "lambda_": 9.0}),
    "GroupLasso": (trueline.GroupLasso(alpha=0.1, groups=[0, 0, 1, 1]), {"alpha": 0.5}),
}
CLASSIFIERS = {
    "LogisticRegression": (trueline.LogisticRegression(), labels, {"C": 2.0, "l1_ratio": 0.5}),
    "softmax": (trueline.LogisticRegression(), classes, {"C": 2.0}),
    "LogisticRegressionCV": (
        trueline.LogisticRegressionCV(
            Cs=3, cv=3, l1_ratios=(0,), scoring="accuracy", use_legacy_attributes=False
        ),
        labels,
        {"C_": 9.0},
    ),
    "LinearSVC": (trueline.LinearSVC(), labels, {"C": 2.0, "loss": "hinge"}),
    "RidgeClassifier": (trueline.RidgeClassifier(), classes, {"alpha": 2.0}),
}
MODELS = {
    **{name: (model, y, changes) for name, (model, changes) in REGRESSORS.items()},
    **CLASSIFIERS,
}


@pytest.mark.grid(1)
@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("attribute", ["coef_", "intercept_"])
def test_changed_coefficients_are_noticed(name, attribute):
    model, target, _ = MODELS[name]
    model.fit(X, target)
    assert model.verify(X, target).holds
    value = np.asarray(getattr(model, attribute), dtype=float)
    setattr(model, attribute, value + 0.01 * (1 + np.abs(value)))
    assert not model.verify(X, target).holds


@pytest.mark.parametrize("name", MODELS)
def test_changed_hyperparameters_are_noticed(name):
    model, target, changes = MODELS[name]
    for parameter, value in changes.items():
        model.fit(X, target)
        before = getattr(model, parameter)
        setattr(model, parameter, value)
        verification = model.verify(X, target)
        setattr(model, parameter, before)
        assert not verification.holds, parameter
        assert parameter in str(verification) or "model as fitted" not in str(verification)
        assert model.verify(X, target).holds


def test_how_a_fit_was_computed_may_be_changed():
    model = trueline.Ridge().fit(X, y)
    model.set_params(tol=0.1, max_iter=3, solver="svd")
    assert model.verify(X, y)
