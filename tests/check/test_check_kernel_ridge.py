"""The checker of kernel ridge regression: honest fits hold, forged and mutated ones do not."""

import math
from dataclasses import asdict, replace
from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp

import trueline.estimators.kernel.kernel_ridge as estimator
from trueline import KernelRidge
from trueline.check import Verdict, verify

KERNELS = ["linear", "rbf", "poly", "polynomial", "sigmoid", "laplacian", "chi2", "cosine"]

# Columns in units of 1e8 leave gaps that a fit says.
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def rows(n=30, d=3, targets=1, seed=0):
    generator = np.random.default_rng(seed)
    X = generator.normal(size=(n, d))
    Y = np.sin(X @ generator.normal(size=(d, targets))) + 0.1 * generator.normal(size=(n, targets))
    return X, Y[:, 0] if targets == 1 else Y


def similarity(x, z, power=1.0):
    return float(np.exp(-(np.abs(x - z) ** (2 * power)).sum()))


@pytest.mark.grid(2)
@pytest.mark.parametrize("kernel", [*KERNELS, "additive_chi2"])
@pytest.mark.parametrize("scale", [1e-8, 1.0, 1e8])
@pytest.mark.parametrize("targets", [1, 2])
def test_honest_fits_hold(kernel, scale, targets):
    X, Y = rows(targets=targets)
    X = np.abs(X) if "chi2" in kernel else X
    weights = np.random.default_rng(1).uniform(0, 2, len(X))
    weights[:3] = 0
    X = X * scale
    # additive_chi2 has the units of the rows, and the products of kernels their square.
    strength = 0.1 * {"additive_chi2": scale, "linear": scale**2}.get(kernel, 1.0)
    settings = {"kernel": kernel, "gamma": 0.3 / scale if kernel in ("chi2", "laplacian") else 0.3}
    if kernel in ("rbf", "poly", "polynomial", "sigmoid"):
        settings["gamma"] = 0.3 / scale**2
    dense = kernel in ("chi2", "additive_chi2")
    for given in (X,) if dense else (X, sp.csr_array(X)):
        model = KernelRidge(strength, **settings).fit(given, Y * 1e3, weights)
        verification = model.certificate_.verify(given, Y * 1e3, weights)
        assert verification.verdict is Verdict.PROVEN, str(verification)
        known = kernel not in ("sigmoid", "additive_chi2")
        assert math.isfinite(model.certificate_.gap) or not known


def test_given_matrices_and_functions_are_named_in_the_statement():
    X, y = rows()
    K = X @ X.T
    assert "'precomputed'" in KernelRidge(kernel="precomputed").fit(K, y).verify(K, y).statement
    model = KernelRidge(kernel=similarity, kernel_params={"power": 0.5}).fit(X, y)
    verification = model.verify(X, y)
    assert verification
    assert "the function similarity itself computes it" in verification.statement
    assert math.isfinite(model.certificate_.gap)


def test_nothing_is_said_about_other_functions_of_an_indefinite_kernel():
    X, y = rows()
    K = X @ X.T - 5.0 * np.eye(len(X))
    model = KernelRidge(0.3, kernel="precomputed").fit(K, y)
    assert model.certificate_.gap == math.inf
    assert model.verify(K, y)
    assert not replace(model.certificate_, gap=1e6).verify(K, y)


def test_single_precision_solves_the_same_equations():
    X, y = rows()
    X = X.astype(np.float32)
    model = KernelRidge(1e-3, kernel="rbf").fit(X, y.astype(np.float32))
    assert model.verify(X, y.astype(np.float32))
    assert model.certificate_.residual < 1e-8


def test_the_objective_and_the_gap_are_those_of_exact_arithmetic():
    generator = np.random.default_rng(0)
    X = generator.integers(-3, 4, (8, 2)).astype(float)
    y, s = generator.integers(-5, 6, 8).astype(float), generator.integers(1, 4, 8).astype(float)
    certificate = KernelRidge(0.5).fit(X, y, s).certificate_
    assert certificate.verify(X, y, s)
    c = [Fraction(v) for v in certificate.coef[:, 0]]
    K = [[Fraction(float(a @ b)) for b in X] for a in X]
    f = [sum(k * v for k, v in zip(row, c)) for row in K]
    half = Fraction(1, 2)
    objective = half * sum(Fraction(w) * (Fraction(t) - v) ** 2 for w, t, v in zip(s, y, f))
    objective += half * half * sum(v * u for v, u in zip(c, f))
    off = abs(objective - Fraction(certificate.objective))
    assert off <= Fraction(certificate.objective_rounding)
    # The minimum, by the normal equations of the weights of the two columns.
    gram = X.T @ (s[:, None] * X) + 0.5 * np.eye(2)
    w = np.linalg.solve(gram, X.T @ (s * y))
    best = 0.5 * (s * (y - X @ w) ** 2).sum() + 0.25 * w @ w
    assert float(objective) - best <= certificate.gap + 1e-12


def forgeries(c):
    recipe, alpha = dict(c.kernel), c.witness["alpha"]
    yield "alpha < 0", replace(c, witness={"alpha": -alpha})
    for value in (0 * alpha, 2 * alpha, alpha[:0], np.append(alpha, 1.0), math.nan, None, "1"):
        yield f"alpha {value}", replace(c, witness={"alpha": value})
    yield "alpha by row", replace(c, witness={"alpha": np.full(30, 0.1)})
    yield "own Y", replace(c, kernel={**recipe, "Y": np.zeros((30, 3))})
    yield "own X", replace(c, kernel={**recipe, "X": np.zeros((30, 3))})
    yield "filter", replace(c, kernel={**recipe, "filter_params": True})
    for name, value in [
        *[("gamma", -0.3), ("gamma", math.inf), ("gamma", 0.4), ("gamma", "0.3")],
        *[("metric", "linear"), ("metric", "precomputed"), ("metric", "nonsense"), ("metric", 3)],
        *[("metric", lambda x, z: 1 / 0), ("metric", lambda x, z: "much")],
        *[("metric", lambda x, z: math.nan), ("metric", lambda x, z: -float(x @ z))],
    ]:
        yield f"{name} {value}", replace(c, kernel={**recipe, name: value})
    yield "no kernel", replace(c, kernel=None)
    yield "no metric", replace(c, kernel={"gamma": 0.3})
    yield "gap", replace(c, gap=0.0)
    yield "gap < 0", replace(c, gap=-1.0)
    yield "residual", replace(c, residual=0.0)
    yield "rounding", replace(c, objective_rounding=0.0)
    yield "objective", replace(c, objective=c.objective * (1 - 1e-6))
    yield "coef", replace(c, coef=c.coef * (1 + 1e-9))
    yield "swapped", replace(c, coef=c.coef[::-1].copy())
    yield "short", replace(c, coef=c.coef[:-1])
    yield "flat", replace(c, coef=c.coef[:, 0])
    yield "nan", replace(c, coef=np.full_like(c.coef, np.nan))
    yield "radius", replace(c, witness={**c.witness, "radius": 0.0})


def test_forgeries_are_not_proven():
    X, y = rows()
    certificate = KernelRidge(0.1, kernel="rbf", gamma=0.3).fit(X, y).certificate_
    assert verify(asdict(certificate), X, y)
    for name, forged in forgeries(certificate):
        verification = verify(forged, X, y)
        assert not verification, name
        assert "not computable" not in str(verification), name
    for given in ((X[:-1], y[:-1]), (X, y[:-1]), (X * np.nan, y), (X, y, np.zeros(30)), (None, y)):
        verification = verify(certificate, *given)
        assert not verification
        assert "not computable" not in str(verification)


def mutations():
    def gap(certify, *given):
        found = certify(*given)
        return replace(found, gap=1e-6 * found.gap)

    def strength(certify, recipe, X, K, Y, s, alpha, c):
        found = certify(recipe, X, K, Y, s, 1.001 * alpha, c)
        return replace(found, witness={"alpha": np.broadcast_to(alpha, Y.shape[1])})

    def skipped_row(certify, recipe, X, K, Y, s, alpha, c):
        found = certify(recipe, X[1:], K[1:, 1:], Y[1:], s if s is None else s[1:], alpha, c[1:])
        return replace(found, coef=c)

    return [gap, strength, skipped_row]


@pytest.mark.parametrize("mutation", mutations(), ids=lambda f: f.__name__)
@pytest.mark.filterwarnings("ignore:KernelRidge. the dual coefficients are not proven")
def test_faults_of_the_prover_are_noticed(mutation, monkeypatch):
    X, y = rows()
    certify = estimator.certify_equations
    monkeypatch.setattr(estimator, "certify_equations", lambda *given: mutation(certify, *given))
    model = KernelRidge(0.1, kernel="rbf", gamma=0.3).fit(X, y)
    verification = model.certificate_.verify(X, y)
    assert not verification, str(verification)
    assert "not computable" not in str(verification)
