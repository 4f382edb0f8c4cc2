"""The same answers as scikit-learn: weights, intercepts, passes, for the same random state."""

import copy
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn.linear_model
from sklearn.datasets import make_classification

from trueline import PassiveAggressiveClassifier, Perceptron

pytestmark = [
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),  # scikit-learn's class is to go
]

PERCEPTRONS = [
    {},
    {"random_state": 3},
    {"shuffle": False},
    {"penalty": "l2"},
    {"penalty": "l1", "alpha": 0.01},
    {"penalty": "elasticnet", "alpha": 0.01, "l1_ratio": 0.4},
    {"penalty": "l2", "alpha": 2.0},
    {"early_stopping": True},
    {"early_stopping": True, "random_state": 7, "n_iter_no_change": 2},
    {"class_weight": "balanced"},
    {"class_weight": {0: 0.5, 1: 3.0}},
    {"eta0": 0.25, "fit_intercept": False},
    {"max_iter": 7, "tol": None},
    {"random_state": np.random.RandomState(3), "early_stopping": True},
]

PASSIVE_AGGRESSIVE = [
    {"random_state": 0},
    {"shuffle": False},
    {"loss": "squared_hinge", "random_state": 1},
    {"average": True, "random_state": 1},
    {"average": 300, "random_state": 2, "max_iter": 4, "tol": None},
    {"early_stopping": True, "random_state": 4},
    {"class_weight": "balanced", "random_state": 3, "C": 0.1},
    {"fit_intercept": False, "random_state": 5},
]


def data(kind, k, seed=0):
    X, y = make_classification(
        120, 12, n_informative=8, n_classes=k, random_state=seed, class_sep=0.7
    )
    if kind == "sparse":
        return sp.csr_matrix(X * (np.abs(X) > 0.5)), y
    return (X.astype(np.float32) if kind == "float32" else X), y


def agree(ours, theirs, kind):
    digits = 2e-6 if kind == "float32" else 1e-12
    size = np.abs(theirs.coef_).max()
    assert ours.coef_.dtype == theirs.coef_.dtype
    assert ours.intercept_.dtype == theirs.intercept_.dtype
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=digits * size, rtol=0)
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, atol=digits * size, rtol=0)


def peer(name):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return getattr(sklearn.linear_model, name)


@pytest.mark.grid(1)
@pytest.mark.parametrize("kind", ["dense", "sparse", "float32"])
@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize(
    ("name", "setting"),
    [("Perceptron", s) for s in PERCEPTRONS]
    + [("PassiveAggressiveClassifier", s) for s in PASSIVE_AGGRESSIVE],
)
def test_fit(kind, k, name, setting):
    if isinstance(setting.get("class_weight"), dict) and k > 2:
        setting = {**setting, "class_weight": {0: 0.5, 1: 3.0, 2: 1.0}}
    X, y = data(kind, k)
    own = {"Perceptron": Perceptron, "PassiveAggressiveClassifier": PassiveAggressiveClassifier}
    ours = own[name](**copy.deepcopy(setting)).fit(X, y)
    theirs = peer(name)(**copy.deepcopy(setting)).fit(X, y)
    assert ours.n_iter_ == theirs.n_iter_
    agree(ours, theirs, kind)
    np.testing.assert_array_equal(ours.predict(X), theirs.predict(X))
    assert ours.verify(X, y)


@pytest.mark.parametrize("seed", range(5))
def test_the_same_bits_of_the_plain_perceptron(seed):
    X, y = data("dense", 2, seed)
    ours = Perceptron(random_state=seed).fit(X, y)
    theirs = sklearn.linear_model.Perceptron(random_state=seed).fit(X, y)
    np.testing.assert_array_equal(ours.coef_, theirs.coef_)
    np.testing.assert_array_equal(ours.intercept_, theirs.intercept_)


@pytest.mark.parametrize("kind", ["dense", "sparse", "float32"])
@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("weighted", [False, True])
def test_sample_weights_and_starts(kind, k, weighted):
    X, y = data(kind, k, 1)
    weights = np.random.default_rng(0).random(len(y)) if weighted else None
    start = np.random.default_rng(1).standard_normal((1 if k == 2 else k, 12))
    level = np.arange(1.0 if k == 2 else k)
    models = Perceptron(), sklearn.linear_model.Perceptron()
    ours, theirs = (
        model.fit(X, y, coef_init=start, intercept_init=level, sample_weight=weights)
        for model in models
    )
    agree(ours, theirs, kind)


@pytest.mark.grid(2)
@pytest.mark.parametrize("kind", ["dense", "sparse", "float32"])
@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("setting", [{}, {"penalty": "l2", "shuffle": False}, {"random_state": 4}])
def test_partial_fit(kind, k, setting):
    X, y = data(kind, k, 2)
    ours, theirs = Perceptron(**setting), sklearn.linear_model.Perceptron(**setting)
    for start in range(0, 120, 30):
        batch = slice(start, start + 30)
        for model in (ours, theirs):
            model.partial_fit(X[batch], y[batch], classes=np.arange(k))
    agree(ours, theirs, kind)


def test_warm_start():
    X, y = data("dense", 3, 3)
    models = Perceptron(warm_start=True), sklearn.linear_model.Perceptron(warm_start=True)
    ours, theirs = (model.fit(X, y).fit(X[::-1].copy(), y[::-1].copy()) for model in models)
    agree(ours, theirs, "dense")


def test_the_parameters_are_scikit_learns_with_the_same_defaults():
    for name in ("Perceptron", "PassiveAggressiveClassifier"):
        own = {"Perceptron": Perceptron, "PassiveAggressiveClassifier": PassiveAggressiveClassifier}
        ours = own[name]().get_params()
        assert peer(name)().get_params().items() <= ours.items()
