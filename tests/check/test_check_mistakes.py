"""The checker of perceptrons: honest runs hold, forged and mutated claims do not."""

import math
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

import trueline.estimators.online.kernel_perceptron as kernel_estimator
import trueline.estimators.online.proof as estimator
from trueline import KernelPerceptron, Perceptron
from trueline.check import Verdict, verify
from trueline.losses import Squared
from trueline.penalties import L2

RUNS = [
    {"variant": "cyclic"},
    {"variant": "batch"},
    {"variant": "cyclic", "eta0": 0.1, "margin": 0.5},
    {"variant": "cyclic", "fit_intercept": False},
    {"variant": "averaged", "tol": None, "max_iter": 200},
    {"variant": "cyclic", "class_weight": {0: 1.0, 1: 2.5}},
]


def separable(k=2, n=60, seed=0):
    generator = np.random.default_rng(seed)
    X, W = generator.normal(size=(n, 3)), generator.normal(size=(3, k))
    scores = np.sort(X @ W, axis=1)
    keep = scores[:, -1] - scores[:, -2] > 0.3
    return X[keep], (X @ W).argmax(axis=1)[keep]


def read(model, X, y, weights=None):
    """Certificate, and the data as it reads them."""
    return model.certificate_, *model.certificate_.read(X, y, weights)


@pytest.mark.parametrize("scale", [1e-8, 1.0, 1e8])
@pytest.mark.parametrize("run", RUNS, ids=str)
def test_honest_runs_hold(run, scale):
    X, y = separable()
    settings = {**run, "margin": run.get("margin", 0.0) * scale**2}
    weights = np.random.default_rng(1).uniform(0.5, 2, len(X))
    weights[:3] = 0
    # Rows, the step of the intercept and the margin in the same units.
    if settings.get("fit_intercept", True):
        settings["intercept_step"] = scale**2
    for rows in (scale * X, sp.csr_array(scale * X)):
        for given in (None, weights):
            model = Perceptron(**settings).fit(rows, y, sample_weight=given)
            verification = model.certificate_.verify(rows, y, given)
            assert verification.verdict is Verdict.PROVEN, str(verification)
            assert model.certificate_.kind == "mistake bound"


@pytest.mark.grid(1)
@pytest.mark.parametrize("kernel", ["linear", "rbf", "poly", "laplacian", "cosine", "sigmoid"])
@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_honest_runs_in_the_space_of_a_kernel_hold(kernel, k):
    X, y = separable(k)
    for scale in (1e-4, 1.0, 1e4):
        gamma = 0.01 / (scale if kernel == "laplacian" else scale**2)
        model = KernelPerceptron(kernel=kernel, gamma=gamma, max_iter=5000).fit(scale * X, y)
        verification = model.certificate_.verify(scale * X, y)
        assert verification.verdict is Verdict.PROVEN, str(verification)


def test_matrices_and_functions_have_a_bound_if_they_are_definite():
    X, y = separable()
    K = np.exp(-0.5 * ((X[:, None] - X[None]) ** 2).sum(axis=2))
    given = KernelPerceptron(kernel="precomputed").fit(K, y)
    assert given.certificate_.kind == "kernel mistake bound"
    assert given.verify(K, y), str(given.verify(K, y))
    called = KernelPerceptron(kernel=lambda x, z: float(np.exp(-0.5 * ((x - z) ** 2).sum())))
    verification = called.fit(X, y).verify(X, y)
    assert verification, str(verification)
    assert "itself computes it" in verification.statement
    np.testing.assert_allclose(
        called.certificate_.witness["bound"], given.certificate_.witness["bound"], rtol=1e-6
    )
    # An indefinite matrix of which a run happens to separate the rows.
    signs = np.where(y == 1, 1.0, -1.0)
    odd = np.outer(signs, signs) - 0.9 * np.eye(len(y))
    model = KernelPerceptron(kernel="precomputed").fit(odd, y)
    assert model.certificate_.kind == "training errors"
    assert model.verify(odd, y)


def test_no_run_makes_more_updates_than_the_bound():
    """In any order of the rows."""
    X, y = separable()
    bound = KernelPerceptron(kernel="rbf").fit(X, y).certificate_.witness["bound"][0]
    for seed in range(20):
        model = KernelPerceptron(kernel="rbf", shuffle=True, random_state=seed).fit(X, y)
        assert model.records_[0].updates <= bound


# --- forgeries ----------------------------------------------------------------------------------


def forgeries(c):
    w = c.witness
    for name in ("gamma", "radius", "bound", "mistakes"):
        sign = -1 if name != "gamma" else 1
        slightly = w[name] * (1 + sign * 1e-3)
        for value in (slightly, np.append(w[name], 1.0), w[name] * math.nan, None):
            yield f"{name} {value}", replace(c, witness={**w, name: value})
    yield "no bound", replace(c, witness={**w, "bound": np.zeros_like(w["bound"])})
    separator = w["separator"]
    turned = 1e-300 * separator[::-1]
    for value in (-separator, 0 * separator, separator[1:], separator + math.inf, turned):
        yield f"separator {value[:2]}", replace(c, witness={**w, "separator": value})
    counts = w["counts"]
    fewer = counts.copy()
    fewer[np.argmax(fewer[:, 0]), 0] -= 1
    for value in (fewer, counts + 0.5, -counts, counts[1:], np.roll(counts, 1, axis=0), 0 * counts):
        if not np.array_equal(value, counts):
            yield "counts", replace(c, witness={**w, "counts": value})
    for name in ("rate", "threshold", "intercept_step", "largest", "direct", "precision", "last"):
        if name in w:
            for value in (-1.0, math.nan, "1", None, np.ones(9), np.asarray(w[name]) + 2.0):
                yield f"{name} {value}", replace(c, witness={**w, name: value})
    yield "radius of another name", replace(c, witness={**w, "R": 0.0})
    yield "class weights", replace(c, witness={**w, "class_weights": np.array([1.0])})
    yield "errors", replace(c, objective=c.objective + 1.0)
    yield "rounding", replace(c, objective_rounding=1.0)  # without a gap that allows for it
    yield "fewest errors", replace(c, objective=c.objective, gap=c.objective - 1.0)
    yield "loss", replace(c, loss=Squared())
    yield "penalty", replace(c, penalty=L2(1.0))
    yield "coef", replace(c, coef=-c.coef, intercept=-c.intercept)
    yield "shape", replace(c, coef=c.coef[:, 0])
    yield "no intercept", replace(c, fit_intercept=False, intercept=c.intercept + 1.0)


@pytest.mark.parametrize("name", ["Perceptron", "batch", "KernelPerceptron"])
def test_forgeries_are_not_proven(name):
    X, y = separable()
    model = {
        "Perceptron": Perceptron(variant="cyclic"),
        "batch": Perceptron(variant="batch"),
        "KernelPerceptron": KernelPerceptron(gamma=0.5),
    }[name].fit(X, y)
    certificate, rows, target, _ = read(model, X, y)
    fields = {field: getattr(certificate, field) for field in certificate.__dataclass_fields__}
    assert verify(fields, rows, target)
    for which, forged in forgeries(certificate):
        verification = verify(forged, rows, target)
        assert "not computable" not in str(verification), which
        if which.startswith("threshold 2") or (name == "batch" and which.startswith("largest")):
            continue  # a weaker theorem, which may still bound the updates
        assert not verification, which
    short = target[:-1]
    for given in ((rows[:-1], short), (rows, 1 + target), (rows, short), (None, target)):
        verification = verify(certificate, *given)
        assert not verification
        assert "not computable" not in str(verification)


def test_a_kernel_that_is_not_the_one_of_the_run_is_noticed():
    X, y = separable()
    certificate, rows, target, _ = read(KernelPerceptron(gamma=0.5).fit(X, y), X, y)
    for recipe in (
        {"metric": "rbf", "gamma": 0.1},
        {"metric": "linear"},
        {"metric": "rbf", "gamma": -0.5},
        {"metric": lambda x, z: 1 / 0},
        {"metric": "rbf", "gamma": 0.5, "Y": X},
        None,
    ):
        witness = {**certificate.witness, "kernel": recipe}
        verification = verify(replace(certificate, witness=witness), rows, target)
        assert not verification, recipe
        assert "not computable" not in str(verification)


def test_squares_that_underflow_prove_nothing():
    X, y = separable()
    model = Perceptron(variant="cyclic", fit_intercept=False).fit(X, y)
    certificate, rows, target, _ = read(model, X, y)
    w = certificate.witness
    tiny = {**w, "separator": 1e-200 * w["separator"]}
    assert verify(replace(certificate, witness=tiny), rows, target)  # the same direction
    narrow = {**tiny, "gamma": 1e3 * w["gamma"], "bound": 1e-6 * w["bound"] + w["mistakes"]}
    assert not verify(replace(certificate, witness=narrow), rows, target)


# --- faults in the prover -----------------------------------------------------------------------


def mutate_bound(certify):
    def certified(*given):
        c = certify(*given)
        return replace(c, witness={**c.witness, "bound": 1e-6 * c.witness["bound"] + 1})

    return certified


def mutate_margin(certify):
    def certified(*given):
        c = certify(*given)
        return replace(c, witness={**c.witness, "gamma": 1.01 * c.witness["gamma"]})

    return certified


def mutate_errors(certify):
    def certified(*given):
        c = certify(*given)
        return replace(c, objective=c.objective + 1.0)

    return certified


def mutate_rows(certify):
    """R is that of all rows but the longest."""

    def certified(*given):
        c = certify(*given)
        return replace(c, witness={**c.witness, "radius": 0.99 * c.witness["radius"]})

    return certified


MUTATIONS = [mutate_bound, mutate_margin, mutate_errors, mutate_rows]


@pytest.mark.parametrize("mutate", MUTATIONS)
def test_faults_of_the_prover_are_noticed(mutate, monkeypatch):
    X, y = separable()
    monkeypatch.setattr(estimator, "certify_mistakes", mutate(estimator.certify_mistakes))
    model = Perceptron(variant="cyclic").fit(X, y)
    verification = model.certificate_.verify(X, y)
    assert not verification, str(verification)
    assert "not computable" not in str(verification)


@pytest.mark.parametrize("mutate", MUTATIONS)
def test_faults_of_the_prover_in_the_space_of_a_kernel_are_noticed(mutate, monkeypatch):
    X, y = separable()
    name = "bound_kernel_mistakes"
    monkeypatch.setattr(kernel_estimator, name, mutate(getattr(kernel_estimator, name)))
    model = KernelPerceptron(gamma=0.5).fit(X, y)
    verification = model.certificate_.verify(X, y)
    assert not verification, str(verification)
    assert "not computable" not in str(verification)


def test_a_rounding_that_hides_errors_is_part_of_the_gap():
    """No error at all, up to a rounding of all of them, is no proof that none are possible."""
    X, y = np.array([[1.0], [2.0], [-1.0], [-2.0]]), np.array([1.0, 1.0, -1.0, -1.0])
    c = replace(Perceptron().fit(X, y).certify(X, y), reading=None)
    wrong = replace(c, coef=-c.coef, intercept=-c.intercept)
    assert c.gap == c.objective == 0
    assert c.verify(X, y)
    hidden = replace(wrong, objective=0.0, objective_rounding=5.0)
    assert not hidden.verify(X, y)
    assert replace(hidden, gap=5.1).verify(X, y)


def test_a_score_that_is_no_number_is_not_taken_for_a_right_one():
    """The kernel value of a large row with itself is infinite, and its score is not a number."""
    X, y = separable()
    certificate, rows, signs, _ = read(KernelPerceptron(kernel="linear").fit(X, y), X, y)
    rows, signs = np.array(rows, dtype=float), signs.ravel()
    rows[0], coef = 1e200, certificate.coef.copy()
    coef[0] = 0.0
    scores = rows @ rows[1:].T @ coef[1:, 0] + certificate.intercept[0]
    others = float((signs * scores <= 0)[1:].sum())
    witness = {name: certificate.witness[name] for name in ("class_weights", "kernel")}
    claim = replace(
        certificate,
        kind="training errors",
        objective=others,
        gap=others,
        coef=coef,
        witness=witness,
    )
    assert not verify(claim, rows, signs).holds
