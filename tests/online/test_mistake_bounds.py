"""The mistake bound holds on every separable run, is certified, and false claims are rejected."""

import warnings
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from trueline import (
    KernelPerceptron,
    OnlineLogisticRegression,
    PassiveAggressiveClassifier,
    Perceptron,
    maximum_margin,
)
from trueline.separation.margin import largest_margin


def separable(n, d, seed, k=2, gap=0.1):
    random = np.random.default_rng(seed)
    X = random.standard_normal((n, d))
    W = random.standard_normal((d, k))
    scores = np.sort(X @ W, axis=1)
    keep = scores[:, -1] - scores[:, -2] > gap
    codes = (X @ W).argmax(axis=1)[keep]
    X = X[keep]
    first = [np.flatnonzero(codes == r)[0] for r in range(k) if (codes == r).any()]
    assert len(first) == k
    return X, codes


RUNS = [
    {"variant": "textbook"},
    {"variant": "cyclic"},
    {"variant": "cyclic", "fit_intercept": False},
    {"variant": "cyclic", "margin": 0.5},
    {"variant": "cyclic", "eta0": 0.1},
    {"variant": "cyclic", "bias": "constant_feature"},
    {"variant": "cyclic", "normalize_rows": True},
    {"variant": "cyclic", "class_weight": {0: 1.0, 1: 2.5}},
    {"variant": "averaged", "tol": None, "max_iter": 400},
    {"variant": "batch"},
    {"variant": "pocket", "max_iter": 400},
    {"tol": None, "max_iter": 200},
]


@pytest.mark.grid(1)
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("kind", ["dense", "sparse", "float32"])
@pytest.mark.parametrize("setting", RUNS, ids=str)
def test_two_classes(seed, kind, setting):
    X, codes = separable(80, 3, seed, gap=0.3)
    X = {"dense": X, "sparse": sp.csr_matrix(X), "float32": X.astype(np.float32)}[kind]
    model = Perceptron(**setting).fit(X, codes)
    certificate = model.certificate_
    assert certificate.kind == "mistake bound"
    if setting.get("variant") != "averaged":  # the mean may be wrong where the last weights are not
        assert certificate.objective == 0
    w = certificate.witness
    assert w["mistakes"][0] == model.records_[0].updates <= w["bound"][0]
    verification = model.verify(X, codes)
    assert verification, str(verification)


@pytest.mark.parametrize("multiclass", ["direct", "ovr"])
@pytest.mark.parametrize("k", [3, 4])
def test_several_classes(multiclass, k):
    X, codes = separable(150, 4, k, k, gap=0.4)
    model = Perceptron(multiclass=multiclass, tol=None, max_iter=500).fit(X, codes)
    certificate = model.certificate_
    verification = model.verify(X, codes)
    assert verification, str(verification)
    if multiclass == "direct":
        assert certificate.kind == "mistake bound"
        assert model.records_[0].updates <= certificate.witness["bound"][0]


def test_sample_weights_are_steps():
    X, codes = separable(60, 3, 5, gap=0.3)
    weights = np.random.default_rng(0).uniform(0.5, 2, len(X))
    weights[:3] = 0
    model = Perceptron(variant="cyclic").fit(X, codes, sample_weight=weights)
    assert model.certificate_.kind == "mistake bound"
    assert model.verify(X, codes, weights)
    assert not model.verify(X, codes)


def claims(certificate):
    """Certificates that claim more than is true, one by one."""
    w = certificate.witness
    yield "objective", replace(certificate, objective=certificate.objective + 1.0)
    yield "gap", replace(certificate, gap=certificate.objective - 1.0)
    yield "coef", replace(certificate, coef=-certificate.coef, intercept=-certificate.intercept)
    false = {
        "gamma": w["gamma"] * 1.001,
        "radius": w["radius"] * 0.999,
        "bound": w["bound"] * 0.999,
        "mistakes": w["mistakes"] - 1,
        "separator": -w["separator"],
        "last": w["last"] + 1e-6,
        "counts": np.roll(w["counts"], 1, axis=0),
        "rate": w["rate"] * 2,
        "precision": np.array(1.0),
        "class_weights": w["class_weights"][:1],
    }
    for name, value in false.items():
        yield name, replace(certificate, witness={**w, name: value})
    for name in w:
        yield (
            f"no {name}",
            replace(certificate, witness={key: value for key, value in w.items() if key != name}),
        )


def test_false_claims_are_rejected():
    X, codes = separable(80, 3, 1, gap=0.3)
    model = Perceptron(variant="cyclic").fit(X, codes)
    assert model.certificate_.verify(X, codes)
    for name, false in claims(model.certificate_):
        assert not false.verify(X, codes), name
    assert not model.certificate_.verify(X[:, :2], codes)
    assert not model.certificate_.verify(X, 1 - codes)
    assert not model.certificate_.verify(X, codes * 2)
    model.coef_ = -model.coef_
    assert not model.verify(X, codes)


@pytest.mark.grid(1)
@pytest.mark.parametrize(
    "model",
    [
        Perceptron(tol=None, max_iter=10),
        Perceptron(variant="pocket", max_iter=20),
        Perceptron(penalty="l2"),
        Perceptron(variant="voted", tol=None, max_iter=3),
        PassiveAggressiveClassifier(random_state=0),
        OnlineLogisticRegression(random_state=0),
        OnlineLogisticRegression(update="plain", random_state=0),
        KernelPerceptron(max_iter=3),
    ],
    ids=str,
)
@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("kind", ["dense", "sparse", "float32"])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_errors_are_counted_where_no_line_separates(model, k, kind):
    random = np.random.default_rng(k)
    X, codes = random.integers(-2, 3, (90, 3)).astype(float), random.integers(0, k, 90)
    X = {"dense": X, "sparse": sp.csr_matrix(X), "float32": X.astype(np.float32)}[kind]
    model = model.fit(X, codes)
    certificate = model.certificate_
    assert certificate.kind == "training errors"
    assert certificate.lower_bound <= 0
    verification = model.verify(X, codes)
    assert verification, str(verification)
    wrong = replace(
        certificate, objective=certificate.objective - 1 - certificate.objective_rounding
    )
    target = codes if certificate.coef.shape[1] > 1 else 2.0 * codes - 1
    if not isinstance(model, KernelPerceptron):
        assert not wrong.verify(X, target)


@given(
    st.lists(st.tuples(*[st.integers(-3, 3)] * 3, st.booleans()), min_size=2, max_size=12),
    st.sampled_from(["textbook", "cyclic", "batch"]),
    st.booleans(),
)
@settings(max_examples=60, deadline=None)
def test_small_problems_end_within_the_bound_or_are_not_separable(rows, variant, intercept):
    X = np.array([row[:3] for row in rows], dtype=float)
    codes = np.array([row[3] for row in rows], dtype=int)
    if len(set(codes)) < 2:
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = Perceptron(variant=variant, fit_intercept=intercept, max_iter=100).fit(X, codes)
    verification = model.verify(X, codes)
    assert verification, str(verification)
    if model.certificate_.kind == "mistake bound":
        w = model.certificate_.witness
        assert w["mistakes"][0] <= w["bound"][0]


def test_rows_that_contradict_each_other_have_no_bound():
    X, y = np.array([[1.0, 2.0], [1.0, 2.0]]), np.array(["a", "b"])
    with pytest.warns(Warning, match="max_iter"):
        model = Perceptron(variant="textbook", max_iter=20).fit(X, y)
    assert model.certificate_.kind == "training errors"
    assert model.certificate_.objective >= 1
    assert model.verify(X, y)


KERNELS = [
    {"kernel": "rbf"},
    {"kernel": "rbf", "fit_intercept": False},
    {"kernel": "poly", "degree": 2, "eta0": 0.25},
    {"kernel": "rbf", "margin": 0.5},
    {"kernel": "rbf", "shuffle": True},
]


@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("setting", KERNELS, ids=str)
def test_the_bound_in_the_space_of_a_kernel(setting, weighted, k):
    X, codes = separable(60, 3, seed=1, k=k, gap=0.3)
    s = np.random.default_rng(0).integers(0, 3, len(X)).astype(float) if weighted else None
    model = KernelPerceptron(**setting, max_iter=5000).fit(X, codes, s)
    certificate = model.certificate_
    assert certificate.kind == "kernel mistake bound"
    assert (certificate.witness["mistakes"] <= certificate.witness["bound"]).all()
    assert "updates <=" in str(model.explain())
    verification = model.verify(X, codes, s)
    assert verification, str(verification)


def test_the_bound_of_the_linear_kernel_is_that_of_the_perceptron():
    X, codes = separable(60, 3, seed=2, gap=0.3)
    models = KernelPerceptron(kernel="linear"), Perceptron(variant="cyclic")
    learned = [model.fit(X, codes).certificate_.witness for model in models]
    widest = [model.bound_mistakes(X, codes).witness for model in models]
    for dual, primal in (learned, widest):
        assert dual["mistakes"] == primal["mistakes"]
        for name in ("gamma", "radius", "bound"):
            np.testing.assert_allclose(dual[name], primal[name], rtol=1e-6)


def text(n, d, k, seed):
    """Counts of words, as a sparse matrix: each class uses words of its own and common ones."""
    random = np.random.default_rng(seed)
    codes = random.integers(0, k, n)
    words = 0.6 * random.dirichlet(np.full(d, 0.02), k) + 0.4 / d
    return sp.csr_matrix([random.multinomial(80, words[c]) for c in codes]), codes


@pytest.mark.grid(1)
@pytest.mark.parametrize("normalize_rows", [False, True])
@pytest.mark.parametrize("dtype", [np.int64, np.float32, np.float64])
@pytest.mark.parametrize("multiclass", ["ovr", "direct"])
def test_text_of_many_classes_is_certified(multiclass, dtype, normalize_rows):
    X, codes = text(500, 5000, 20, seed=0)
    model = Perceptron(multiclass=multiclass, normalize_rows=normalize_rows)
    verification = model.fit(X.astype(dtype), codes).verify(X.astype(dtype), codes)
    assert model.certificate_.kind == "mistake bound"
    assert verification, str(verification)


@pytest.mark.parametrize("model", [Perceptron(), KernelPerceptron(kernel="rbf")], ids=str)
def test_the_largest_margin_is_looked_for_on_request_only(model, monkeypatch):
    """It can take ten thousand times as long as the fit."""
    X, codes = text(60, 200, 4, seed=1)
    asked = []
    margin = "trueline.separation.margin.largest_margin"
    monkeypatch.setattr(margin, lambda *a, f=largest_margin, **k: (asked.append(1), f(*a, **k))[1])
    learned = model.fit(X, codes).certificate_
    assert model.verify(X, codes)
    assert not asked
    widest = model.bound_mistakes(X, codes)
    assert len(asked) == 4
    assert (widest.witness["bound"] < learned.witness["bound"]).all()
    assert (widest.witness["mistakes"] <= widest.witness["bound"]).all()
    assert widest.verify(X, codes)


@pytest.mark.grid(1)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("setting", [*RUNS, {"multiclass": "direct", "tol": None}], ids=str)
def test_the_bound_of_the_largest_margin_is_that_of_the_largest_margin(setting, weighted):
    """Against the exact margin of the rows with their constant column."""
    k = 3 if "multiclass" in setting else 2
    X, codes = separable(60, 3, seed=4, k=k, gap=0.3)
    s = np.random.default_rng(0).integers(1, 3, len(X)).astype(float) if weighted else None
    model = Perceptron(**setting).fit(X, codes, sample_weight=s)
    best = model.bound_mistakes(X, codes, s)
    assert best.verify(X, codes, s)
    rows = X / np.linalg.norm(X, axis=1, keepdims=True) if model.normalize_rows else X
    rows = np.hstack([rows, np.ones((len(X), int(model.fit_intercept)))])
    gamma = maximum_margin(rows, codes, fit_intercept=False).margin
    np.testing.assert_allclose(best.witness["gamma"], gamma, rtol=1e-9)


def test_false_claims_about_a_kernel_are_rejected():
    X, codes = separable(40, 2, seed=3, gap=0.3)
    certificate = KernelPerceptron().fit(X, codes).certificate_
    assert certificate.verify(X, codes)
    w = certificate.witness
    fewer = w["counts"].copy()
    fewer[np.argmax(fewer)] -= 1
    lies = {
        "mistakes": w["mistakes"] - 1,
        "counts": fewer,
        "gamma": w["gamma"] * 1.01,
        "radius": w["radius"] * 0.99,
        "bound": w["bound"] * 0.99,
        "separator": -w["separator"],
        "rate": w["rate"] * 2,
    }
    for name, value in lies.items():
        assert not replace(certificate, witness={**w, name: value}).verify(X, codes), name


def test_contradictory_rows_have_no_bound_in_any_kernel():
    X, codes = np.array([[1.0], [1.0], [2.0]]), np.array([0, 1, 1])
    with pytest.warns(Warning, match="max_iter"):
        model = KernelPerceptron(max_iter=20).fit(X, codes)
    assert model.certificate_.kind == "training errors"
    assert model.verify(X, codes)
