"""Whatever a model predicts with is what its proof is about: nothing of it changes unnoticed."""

import numpy as np
import pytest
import scipy.sparse as sp

import trueline

rng = np.random.default_rng(0)
X = rng.normal(size=(30, 3))
score = X @ [1.0, 2.0, -1.0] + 0.5 * rng.normal(size=30)
two, three = (score > 0).astype(int), np.digitize(score, [-1.0, 1.0])
MODELS = {
    "Lasso": (trueline.Lasso(alpha=0.1), score),
    "PoissonRegressor": (trueline.PoissonRegressor(), np.exp(score / 4)),
    "LogisticRegression": (trueline.LogisticRegression(), two),
    "softmax": (trueline.LogisticRegression(), three),
    "LinearSVC": (trueline.LinearSVC(), three),
    "crammer_singer": (trueline.LinearSVC(multi_class="crammer_singer"), three),
    "RidgeClassifier": (trueline.RidgeClassifier(), three),
    "ZeroOneHalfspace": (trueline.ZeroOneHalfspace(), two),
    "Perceptron": (trueline.Perceptron(), three),
    "KernelPerceptron": (trueline.KernelPerceptron(), two),
    "SVC": (trueline.SVC(), three),
    "KernelRidge": (trueline.KernelRidge(kernel="rbf"), score),
    "OneVsRestClassifier": (trueline.OneVsRestClassifier(trueline.LinearSVC()), three),
    "OneVsOneClassifier": (trueline.OneVsOneClassifier(trueline.LinearSVC()), three),
    "CalibratedClassifier": (trueline.CalibratedClassifier(trueline.LinearSVC()), two),
}


def _predictions(model):
    out = []
    for name in ("predict", "decision_function", "predict_proba"):
        try:
            out.append(getattr(model, name)(X))
        except Exception as error:
            out.append(type(error).__name__)
    return out


def _changed(value):
    """Other values."""
    if sp.issparse(value):
        yield 1.5 * value
        return
    if isinstance(value, (list, np.ndarray)) and len(np.atleast_1d(value)) > 1:
        yield value[::-1]
    if (
        isinstance(value, (int, float, np.number, np.ndarray))
        and np.asarray(value).dtype.kind in "iuf"
    ):
        yield value + type(value)(1) if np.isscalar(value) else value + 1
    if isinstance(value, np.ndarray) and value.dtype.kind == "f":
        yield 1.01 * value


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("name", MODELS)
def test_nothing_that_changes_predictions_goes_unnoticed(name):
    model, target = MODELS[name]
    model.fit(X, target)
    assert model.verify(X, target).holds
    before = _predictions(model)
    for attribute, value in list(vars(model).items()):
        for other in _changed(value) if attribute.endswith("_") else ():
            setattr(model, attribute, other)
            moved = any(not np.array_equal(a, b) for a, b in zip(before, _predictions(model)))
            assert not (moved and model.verify(X, target).holds), attribute
            setattr(model, attribute, value)
    assert model.verify(X, target).holds
