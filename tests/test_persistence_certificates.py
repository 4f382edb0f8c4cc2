"""Proofs in model files: every number of a certificate comes back as it was, bit for bit."""

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from enum import Enum

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone, is_classifier

import trueline as tl
from trueline.persistence import read
from trueline.persistence.registry import is_estimator

RNG = np.random.default_rng(0)
X = RNG.normal(size=(36, 3)) * [1.0, 5.0, 0.2] + [0.0, 2.0, 1.0]
Y = X @ [1.0, -0.2, 3.0] + 0.3 * RNG.normal(size=36)
PAIR = np.column_stack([Y, X[:, 0] - Y])
TWO = np.where(np.median(Y) < Y, "high", "low")
THREE = np.array(["a", "b", "c"])[np.digitize(Y, np.quantile(Y, [0.3, 0.7]))]
COUNTS = RNG.poisson(np.exp(Y / 4)).astype(float)
POSITIVE = np.exp(Y / 4)
WEIGHTS = RNG.integers(0, 3, size=36).astype(float)
WIDE = RNG.normal(size=(12, 30))
TARGETS = {
    "MultiTaskElasticNet": PAIR,
    "MultiTaskElasticNetCV": PAIR,
    "MultiTaskLasso": PAIR,
    "MultiTaskLassoCV": PAIR,
    "PoissonRegressor": COUNTS,
    "GammaRegressor": POSITIVE,
    "TweedieRegressor": POSITIVE,
    "LeastSquaresClassifier": TWO,
}
SAID = {  # where scikit-learn wants to be told
    "LogisticRegressionCV": {
        "l1_ratios": (0.0,),
        "scoring": "neg_log_loss",
        "use_legacy_attributes": False,
    },
    "OneVsRestClassifier": {"estimator": tl.LogisticRegression()},
    "OneVsOneClassifier": {"estimator": tl.LinearSVC()},
    "OutputCodeClassifier": {"estimator": tl.RidgeClassifier(), "random_state": 0},
    "CalibratedClassifier": {"estimator": tl.LogisticRegression()},
    "ChainedClassifiers": {
        "classifiers": [("first", tl.RidgeClassifier()), ("second", tl.LogisticRegression())],
        "cv": 2,
    },
}
PROVERS = [
    cls
    for cls in (getattr(tl, name) for name in tl.__all__)
    if isinstance(cls, type) and is_estimator(cls) and hasattr(cls, "certificate_")
]


def defaults():
    for cls in PROVERS:
        model = cls(**SAID.get(cls.__name__, {}))
        target = TWO if is_classifier(model) else TARGETS.get(cls.__name__, Y)
        yield pytest.param(model, X, target, None, id=cls.__name__)


CASES = [
    ("least squares of several targets", tl.LinearRegression(), X, PAIR, None),
    ("least squares, wide", tl.LinearRegression(), WIDE, Y[:12], None),
    ("ridge, float32", tl.Ridge(), X.astype(np.float32), Y.astype(np.float32), None),
    ("ridge, strength per target", tl.Ridge(alpha=[0.1, 9.0]), X, PAIR, None),
    ("ridge, weights", tl.Ridge(), X, Y, WEIGHTS),
    ("ridge, sparse", tl.Ridge(), sp.csr_array(X), Y, None),
    ("lasso, wide", tl.Lasso(alpha=0.1), WIDE, Y[:12], None),
    ("lasso, sparse", tl.Lasso(alpha=0.1), sp.csc_array(X), Y, None),
    ("lasso, not negative", tl.Lasso(alpha=0.1, positive=True), X, Y, None),
    ("lasso, scales", tl.Lasso(alpha=0.1), X * [1e8, 1e-8, 1.0], Y, None),
    ("best subset of each size", tl.BestSubset(), X, Y, None),
    ("best subset of two", tl.BestSubset(k=2), X, Y, None),
    ("one quantile", tl.QuantileRegressor(quantile=0.3, alpha=0.0), X, Y, None),
    ("quantiles", tl.QuantileRegressor(quantile=[0.1, 0.5, 0.9], alpha=0.0), X, Y, None),
    ("quantiles, weights", tl.QuantileRegressor(quantile=[0.2, 0.8], alpha=0.1), X, Y, WEIGHTS),
    (
        "quantiles in order",
        tl.QuantileRegressor(quantile=[0.4, 0.5, 0.6], alpha=0.0, non_crossing=True),
        X,
        Y,
        None,
    ),
    ("firth", tl.LogisticRegression(penalty="firth"), X, TWO, None),
    ("logistic, no penalty", tl.LogisticRegression(C=np.inf), X[:, :1], TWO, None),
    ("logistic, l1", tl.LogisticRegression(l1_ratio=1.0), X, TWO, None),
    ("logistic, three classes", tl.LogisticRegression(), X, THREE, None),
    ("logistic, three classes, sparse", tl.LogisticRegression(), sp.csr_array(X), THREE, None),
    ("ridge classifier, three classes", tl.RidgeClassifier(), X, THREE, None),
    ("linear svc, three classes", tl.LinearSVC(), X, THREE, None),
    ("linear svc, together", tl.LinearSVC(multi_class="crammer_singer"), X, THREE, None),
    ("svc, three classes", tl.SVC(), X, THREE, None),
    ("svc, polynomial", tl.SVC(kernel="poly", degree=2, coef0=1.0), X, TWO, None),
    ("svc, weights", tl.SVC(), X, TWO, WEIGHTS),
    ("svr, linear", tl.SVR(kernel="linear"), X, Y, None),
    ("perceptron, three classes", tl.Perceptron(random_state=0), X, THREE, None),
    ("kernel perceptron", tl.KernelPerceptron(kernel="rbf", gamma=1.0), X, TWO, None),
    ("kernel ridge of several targets", tl.KernelRidge(kernel="rbf"), X, PAIR, None),
    ("process of several targets", tl.GaussianProcessRegressor(alpha=0.1), X, PAIR, None),
    ("process, as given", tl.GaussianProcessRegressor(optimizer=None, alpha=0.1), X, Y, None),
    ("poisson, weights", tl.PoissonRegressor(), X, COUNTS, WEIGHTS),
    ("tweedie", tl.TweedieRegressor(power=1.5, alpha=0.1), X, POSITIVE, None),
    ("one against the rest", tl.OneVsRestClassifier(tl.LogisticRegression()), X, THREE, None),
    ("one against one", tl.OneVsOneClassifier(tl.RidgeClassifier()), X, THREE, None),
    ("groups", tl.GroupLasso(groups=[0, 0, 1], alpha=0.1), X, Y, None),
]
VARIANTS = [pytest.param(*case, id=name) for name, *case in CASES]


def bits(value):
    """A value as plain Python in which two numbers are equal only if their bits are."""
    if isinstance(value, np.ndarray) and value.dtype != object:
        return ("array", value.dtype.str, value.shape, value.tobytes())
    if isinstance(value, np.generic):
        return ("scalar", value.dtype.str, value.tobytes())
    if isinstance(value, float):
        return ("float", value.hex())
    if isinstance(value, Mapping):
        return ("mapping", [(bits(key), bits(item)) for key, item in value.items()])
    if isinstance(value, list | tuple | np.ndarray):
        return (type(value).__name__, [bits(item) for item in value])
    if is_dataclass(value) and not isinstance(value, type):
        names = [field.name for field in fields(value) if field.compare]
        return (type(value), [(name, bits(getattr(value, name))) for name in names])
    if is_estimator(type(value)):
        return (type(value), bits(vars(value)))
    assert value is None or isinstance(value, str | bool | int | type | Enum), type(value)
    return (type(value), value)


def verified(model, X, y, weights):
    return model.verify(X, y) if weights is None else model.verify(X, y, weights)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")  # of the likelihood
@pytest.mark.parametrize(("model", "X", "y", "weights"), [*defaults(), *VARIANTS])
def test_a_certificate_comes_back_bit_for_bit_and_holds(tmp_path, model, X, y, weights):
    model = clone(model)
    model = model.fit(X, y) if weights is None else model.fit(X, y, sample_weight=weights)
    certificate = model.certificate_
    file = tmp_path / "m.trueline"
    again = tl.load(tl.save(model, file))
    assert bits(again.certificate_) == bits(certificate)
    assert str(again.certificate_) == str(certificate)
    outcome = verified(again, X, y, weights)
    assert outcome, outcome
    assert outcome.checks == verified(model, X, y, weights).checks
    # Nor does it change when it is saved once more.
    before = file.read_bytes()
    assert tl.save(again, file).read_bytes() == before


@pytest.mark.parametrize(
    ("X", "y", "verdict"),
    [
        (X, TWO, "not separable"),
        (X, THREE, "quasi-separable"),
        (np.array([[0.0, 1.0], [1.0, 0.0], [2.0, 5.0]]), ["a", "b", "a"], "separable"),
        (np.array([[0.0, 0.1], [1.0, 0.2], [0.5, 2.0]]), [1, 2, 3], "separable"),
        (np.array([[0.0], [1.0], [1.0], [2.0]]), ["a", "a", "b", "b"], "quasi-separable"),
    ],
)
def test_answers_about_separability_come_back_beside_a_model(tmp_path, X, y, verdict):
    answer = tl.separability(X, y)
    assert answer.verdict == verdict
    path = tl.save(tl.Ridge(), tmp_path / "m.trueline", extra={"answer": answer})
    again = read(path).extra["answer"]
    assert bits(again) == bits(answer)
    assert again.verify(X, y)
    assert str(again) == str(answer)


def test_maximum_margins_come_back_beside_a_model(tmp_path):
    X, y = np.array([[0.0, 1.0], [1.0, 0.1], [2.0, 5.0]]), ["a", "b", "a"]
    answer = tl.maximum_margin(X, y)
    path = tl.save(tl.Ridge(), tmp_path / "m.trueline", extra={"answer": answer})
    again = read(path).extra["answer"]
    assert bits(again) == bits(answer)
    assert again.verify(X, y)


@pytest.mark.parametrize("value", [-0.0, 5e-324, np.nextafter(1.0, 2.0), -1.7e308, 1e22, 0.1])
def test_numbers_come_back_bit_for_bit(tmp_path, value):
    payload = np.array([0x7FF8_0000_0000_0123, 0xFFF0_0000_0000_0001], dtype=np.uint64)
    model = tl.Ridge()
    model.numbers_ = [value, np.float64(value), payload.view(np.float64)]
    again = tl.load(tl.save(model, tmp_path / "m.trueline"))
    assert bits(again.numbers_) == bits(model.numbers_)
