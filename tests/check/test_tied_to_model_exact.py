"""Proofs in exact arithmetic are about what the model predicts with, as well."""

from dataclasses import replace

import numpy as np
import pytest

from trueline import (
    BestSubset,
    ChebyshevRegressor,
    HuberRegressor,
    L0Regression,
    LinearSVC,
    LogisticRegression,
    ZeroOneHalfspace,
    load,
    maximum_margin,
    save,
    separability,
)

rng = np.random.default_rng(0)
X = rng.normal(size=(40, 3))
numbers = X @ [1.0, -2.0, 0.5] + rng.normal(size=40)
mixed = np.where(numbers > 0, "yes", "no")
apart = np.where(X[:, 0] > 0, "yes", "no")

MODELS = {
    "BestSubset": (BestSubset(k=2), numbers, {"k": 1, "l2": 0.5, "fit_intercept": False}),
    "L0Regression": (L0Regression(0.3), numbers, {"alpha": 0.2, "l2": 0.5}),
    "ChebyshevRegressor": (ChebyshevRegressor(), numbers, {"fit_intercept": False}),
    "HuberRegressor": (
        HuberRegressor(),
        numbers,
        {"epsilon": 2.0, "alpha": 1.0, "fit_intercept": False},
    ),
    "Firth": (LogisticRegression(penalty="firth"), mixed, {"penalty": None}),
    "ZeroOneHalfspace": (
        ZeroOneHalfspace(),
        mixed,
        {"class_weight": {"no": 3.0, "yes": 1.0}, "fit_intercept": False},
    ),
    "hard margin": (LinearSVC(C=np.inf, loss="hinge"), apart, {"C": 1.0, "loss": "squared_hinge"}),
}
CHANGES = [(name, change) for name, (_, _, changes) in MODELS.items() for change in changes]


def fitted(name):
    model, target, _ = MODELS[name]
    return model.fit(X, target), target


@pytest.mark.parametrize(("name", "parameter"), CHANGES)
def test_a_changed_hyperparameter_is_noticed(name, parameter):
    model, target = fitted(name)
    assert model.verify(X, target).holds
    before = getattr(model, parameter)
    setattr(model, parameter, MODELS[name][2][parameter])
    assert not model.verify(X, target).holds
    setattr(model, parameter, before)
    assert model.verify(X, target).holds


@pytest.mark.grid(2)
@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("attribute", ["coef_", "intercept_"])
@pytest.mark.parametrize("change", [1e-3, 1.0])
def test_changed_coefficients_are_noticed(name, attribute, change):
    model, target = fitted(name)
    value = getattr(model, attribute)
    setattr(model, attribute, value + change)
    assert not model.verify(X, target).holds
    setattr(model, attribute, value * np.nan)
    assert not model.verify(X, target).holds


def test_the_scale_belongs_to_the_model():
    model, target = fitted("HuberRegressor")
    scale = model.scale_
    for changed in (scale * 1.001, 0.0, -scale, np.nan):
        model.scale_ = changed
        assert not model.verify(X, target).holds


@pytest.mark.parametrize("name", MODELS)
def test_other_data_and_saved_models(name, tmp_path):
    model, target = fitted(name)
    assert not model.verify(X, target[::-1]).holds
    assert not model.verify(X[::-1], target).holds
    again = load(save(model, tmp_path / "model.trueline"))
    assert again.verify(X, target).holds
    again.coef_ = again.coef_ + 0.1
    assert not again.verify(X, target).holds


def test_answers_about_separability_are_those_of_their_certificates():
    for target in (apart, mixed):
        answer = separability(X, target)
        assert answer.verify(X, target)
        for change in (
            {"coef": np.ones(3)},
            {"coef": np.zeros(3)},
            {"intercept": 5.0},
            {"margin": answer.margin + 1e-9},
            {"verdict": "quasi-separable"},
            {"fit_intercept": False},
            {"classes": np.array(["a", "b"])},
        ):
            assert not replace(answer, **change).verify(X, target), change
    best = maximum_margin(X, apart)
    assert best.verify(X, apart)
    for change in (
        {"coef": 1.1 * best.coef + 0.1},
        {"intercept": 1.0},
        {"margin": 2 * best.margin},
    ):
        assert not replace(best, **change).verify(X, apart), change
