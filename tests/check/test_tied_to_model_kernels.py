"""A kernel model or online learner that was changed after its fit does not verify."""

import copy
import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.gaussian_process.kernels import RBF, WhiteKernel

from trueline import (
    SVC,
    SVR,
    GaussianProcessRegressor,
    KernelPerceptron,
    KernelRidge,
    NuSVC,
    NuSVR,
    OneClassSVM,
    OnlineLogisticRegression,
    PassiveAggressiveClassifier,
    Perceptron,
    SparseGaussianProcessRegressor,
    load,
    save,
)


def labelled(k=2, n=40, seed=0):
    generator = np.random.default_rng(seed)
    y = np.arange(n) % k
    X = generator.normal(size=(n, 3)) + 2.0 * y[:, None] * np.array([1.0, -1.0, 0.5])
    return X, y


def smooth(n=40, seed=0):
    generator = np.random.default_rng(seed)
    X = generator.normal(size=(n, 2))
    return X, np.sin(2 * X[:, 0]) + 0.3 * generator.normal(size=n)


def gram(A, B):
    return A @ B.T


FITS = {
    "SVC": lambda: (SVC(gamma=0.5), *labelled()),
    "SVC, three classes": lambda: (SVC(gamma=0.5), *labelled(3)),
    "SVC, linear": lambda: (SVC(kernel="linear"), *labelled()),
    "SVC, function": lambda: (SVC(kernel=gram), *labelled()),
    "NuSVC": lambda: (NuSVC(nu=0.3, gamma=0.5), *labelled()),
    "SVR": lambda: (SVR(gamma=0.5), *smooth()),
    "NuSVR": lambda: (NuSVR(gamma=0.5), *smooth()),
    "OneClassSVM": lambda: (OneClassSVM(nu=0.3, gamma=0.5), *smooth()),
    "KernelRidge": lambda: (KernelRidge(0.1, kernel="rbf", gamma=0.5), *smooth()),
    "GaussianProcess": lambda: (
        GaussianProcessRegressor(1.0 * RBF() + WhiteKernel(0.1)),
        *smooth(),
    ),
    "SparseGaussianProcess": lambda: (
        SparseGaussianProcessRegressor(1.0 * RBF() + WhiteKernel(0.1), n_inducing=10),
        *smooth(),
    ),
    "Perceptron": lambda: (Perceptron(variant="cyclic"), *labelled()),
    "Perceptron, voted": lambda: (Perceptron(variant="voted", max_iter=20, tol=None), *labelled()),
    "Perceptron, three classes": lambda: (Perceptron(max_iter=20, tol=None), *labelled(3)),
    "PassiveAggressive": lambda: (PassiveAggressiveClassifier(), *labelled()),
    "OnlineLogistic": lambda: (OnlineLogisticRegression(), *labelled()),
    "KernelPerceptron": lambda: (KernelPerceptron(gamma=0.5), *labelled()),
}
MACHINE = ["dual_coef_", "intercept_", "support_vectors_", "support_", "_gamma", "_n_support"]
NUMBERS = {
    "SVC": [*MACHINE, "class_weight_"],
    "SVC, three classes": MACHINE,
    "SVC, linear": MACHINE,
    "SVC, function": ["dual_coef_", "intercept_", "support_", "_X_fit"],
    "NuSVC": MACHINE,
    "SVR": MACHINE,
    "NuSVR": [*MACHINE, "epsilon_"],
    "OneClassSVM": [*MACHINE, "offset_"],
    "KernelRidge": ["dual_coef_", "X_fit_"],
    "GaussianProcess": [
        *("alpha_", "L_", "X_train_", "y_train_", "_y_train_mean", "_y_train_std"),
        *("_noise", "log_marginal_likelihood_value_"),
    ],
    "SparseGaussianProcess": [
        "inducing_points_",
        "lower_bound_",
        "upper_bound_",
        "_level",
        "_scale",
    ],
    "Perceptron": ["coef_", "intercept_"],
    "Perceptron, voted": ["coef_", "intercept_", "survivors_", "votes_"],
    "Perceptron, three classes": ["coef_", "intercept_"],
    "PassiveAggressive": ["coef_", "intercept_"],
    "OnlineLogistic": ["coef_", "intercept_"],
    "KernelPerceptron": ["dual_coef_", "intercept_", "support_vectors_", "support_"],
}
SETTINGS = {
    "SVC": [
        *[("C", 2.0), ("gamma", 0.4), ("kernel", "linear"), ("degree", 2), ("coef0", 1.0)],
        *[("class_weight", "balanced"), ("break_ties", True)],
    ],
    "NuSVC": [("nu", 0.2), ("gamma", 0.4)],
    "SVR": [("C", 2.0), ("epsilon", 0.2), ("gamma", "scale")],
    "NuSVR": [("C", 2.0), ("nu", 0.4)],
    "OneClassSVM": [("nu", 0.2), ("gamma", "auto")],
    "KernelRidge": [
        ("alpha", 0.2),
        ("kernel", "linear"),
        ("gamma", 0.4),
        ("coef0", 2),
        ("degree", 2),
    ],
    "GaussianProcess": [
        ("alpha", 0.1),
        ("normalize_y", True),
        ("kernel", RBF()),
        ("optimizer", None),
    ],
    "SparseGaussianProcess": [("alpha", 0.1), ("normalize_y", True), ("kernel", None)],
    "Perceptron": [
        *[("eta0", 2.0), ("margin", 0.5), ("fit_intercept", False), ("penalty", "l2")],
        *[("class_weight", {0: 2.0}), ("variant", "textbook"), ("normalize_rows", True)],
    ],
    "KernelPerceptron": [
        *[("kernel", "linear"), ("gamma", 0.4), ("eta0", 2.0), ("margin", 1.0)],
        *[("fit_intercept", False)],
    ],
}


@pytest.fixture(scope="module")
def fitted():
    """Each model once, its proof not looked at yet."""
    kept = {}
    for name, make in FITS.items():
        model, X, y = make()
        kept[name] = (model.fit(X, y), X, y)
    return kept


def shaken(value):
    """The same value with one number changed in its last digit."""
    if isinstance(value, list):
        return [shaken(value[0]), *value[1:]]
    if np.ndim(value) == 0:
        return float(np.nextafter(value, np.inf))
    out = np.array(value)
    if out.dtype.kind in "iu":
        return np.roll(out, 1) if len(set(out.ravel().tolist())) > 1 else out + 1
    out.flat[0] = np.nextafter(out.flat[0], np.inf)
    return out


@pytest.mark.grid(2)
@pytest.mark.parametrize("look_first", [True, False], ids=["looked at", "pending"])
@pytest.mark.parametrize(
    ("name", "attribute"), [(name, a) for name, attributes in NUMBERS.items() for a in attributes]
)
def test_a_changed_number_is_noticed(fitted, name, attribute, look_first):
    model, X, y = fitted[name]
    model = copy.deepcopy(model)
    if look_first:
        assert model.verify(X, y)
    setattr(model, attribute, shaken(getattr(model, attribute)))
    assert not model.verify(X, y)


@pytest.mark.parametrize(
    ("name", "setting"),
    [(name, s) for name, settings in SETTINGS.items() for s in settings],
    ids=lambda value: str(value)[:30],
)
def test_a_changed_hyperparameter_is_noticed(fitted, name, setting):
    model, X, y = fitted[name]
    model = copy.deepcopy(model)
    setattr(model, *setting)
    assert not model.verify(X, y)


def test_a_changed_kernel_of_a_process_is_noticed(fitted):
    for name in ("GaussianProcess", "SparseGaussianProcess"):
        model, X, y = fitted[name]
        for change in (1e-9, 0.5):
            other = copy.deepcopy(model)
            other.kernel_.theta = other.kernel_.theta + change
            assert not other.verify(X, y)
        other = copy.deepcopy(model)
        other.kernel_.set_params(k1__k2__length_scale_bounds=(0.1, 0.2))
        assert not other.verify(X, y)
    model, X, y = fitted["SparseGaussianProcess"]
    for part in ("factor", "inner", "along", "points"):
        other = copy.deepcopy(model)
        getattr(other._fit, part).flat[0] += 1e-6
        assert not other.verify(X, y), part


@pytest.mark.parametrize("name", FITS)
def test_an_unchanged_model_verifies_however_it_travels(fitted, name, tmp_path):
    model, X, y = fitted[name]
    model = copy.deepcopy(model)
    model.predict(X)
    assert model.verify(X, y), str(model.verify(X, y))
    assert pickle.loads(pickle.dumps(model)).verify(X, y)
    if not callable(getattr(model, "kernel", None)) or name.endswith("Process"):
        assert load(save(model, tmp_path / "model.trueline")).verify(X, y)
    model.set_params(**{k: v for k, v in {"verbose": 1, "tol": 0.5}.items() if hasattr(model, k)})
    assert model.verify(X, y)


@pytest.mark.filterwarnings("ignore:Perceptron stopped")
def test_sparse_rows_are_compared_as_they_are():
    X, y = labelled()
    rows = sp.csr_matrix(X)
    for model in (SVC(gamma=0.5), KernelRidge(kernel="rbf"), KernelPerceptron(), Perceptron()):
        model.fit(rows, y)
        assert model.verify(rows, y)
        assert model.verify(sp.csc_matrix(rows), y)
    model = SVC(gamma=0.5).fit(rows, y)
    model.support_vectors_.data[0] += 1e-9
    assert not model.verify(rows, y)


def test_learning_on_forgets_the_proof():
    X, y = labelled()
    model = Perceptron().fit(X, y)
    model.partial_fit(X, y)
    with pytest.raises(AttributeError, match="partial_fit"):
        model.verify(X, y)
