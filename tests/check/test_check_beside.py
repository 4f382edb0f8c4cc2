"""Coefficients rounded to single precision are proven by those that they were rounded from."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

import trueline as tl
from trueline.check import verify
from trueline.penalties import Bounded

MODELS = {
    "logistic": lambda: tl.LogisticRegression(C=300.0, tol=1e-9, max_iter=10_000),
    "logistic l1": lambda: tl.LogisticRegression(C=300.0, l1_ratio=1.0, solver="saga", tol=1e-9),
    "softmax": lambda: tl.LogisticRegression(C=300.0, tol=1e-9, max_iter=10_000),
    "svc": lambda: tl.LinearSVC(C=20.0, tol=1e-9, max_iter=100_000),
    "lasso": lambda: tl.Lasso(alpha=1e-3, tol=1e-10),
    "poisson": lambda: tl.PoissonRegressor(alpha=1e-6, tol=1e-10, max_iter=10_000),
    "multitask": lambda: tl.MultiTaskLasso(alpha=1e-2, tol=1e-10),
}


def _data(name, rng):
    """Columns far from zero, where single precision is felt."""
    X = (rng.normal(size=(30, 4)) + 100.0).astype(np.float32)
    score = (X - 100.0) @ np.array([1.0, -2.0, 0.5, 0.0]) + rng.normal(size=30)
    if name == "poisson":
        return X, rng.poisson(np.exp(0.3 * score)).astype(np.float32)
    if name == "lasso":
        return X, score.astype(np.float32)
    if name == "multitask":
        return X, np.column_stack([score, rng.normal(size=30)]).astype(np.float32)
    if name == "softmax":
        return X, np.digitize(score, [-1.0, 1.0])
    return X, (score > 0).astype(int)


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array], ids=["dense", "csr"])
@pytest.mark.parametrize("name", MODELS)
def test_single_precision_keeps_the_proof(name, form):
    X, y = _data(name, np.random.default_rng(0))
    if name == "multitask" and form is not np.asarray:
        pytest.skip("MultiTaskLasso takes dense rows, as scikit-learn's does")
    model = MODELS[name]().fit(form(X), y)
    certificate = model.certificate_
    assert certificate.gap <= 2e-6 * certificate.objective + 1e-9
    assert model.verify(form(X), y)


def _rounded():
    X, y = _data("logistic", np.random.default_rng(0))
    model = MODELS["logistic"]().fit(X, y)
    assert model.coef_.dtype == np.float32
    certificate = model.certificate_
    plain = {name: getattr(certificate, name) for name in vars(certificate) if name != "reading"}
    return plain, X, np.where(y > 0, 1.0, -1.0)


def test_the_plain_certificate_is_proven():
    certificate, X, y = _rounded()
    assert verify(certificate, X, y)


@pytest.mark.parametrize(
    "forgery",
    [
        {"gap": 0.0},
        {"proven_gap": 0.0},
        {"proven_objective": 1e3},
        {"proven_rounding": 1e3, "proven_objective": 1e3},
        {"proven_coef": 0.0},
        {"proven_intercept": 7.0},
        {"kind": "local"},
        {"kind": "ordered duality"},
        {"kind": "training errors"},
    ],
    ids=str,
)
def test_forgeries_are_refused(forgery):
    certificate, X, y = _rounded()
    witness = dict(certificate["witness"])
    for name, value in forgery.items():
        if name.startswith("proven"):
            witness[name] = value + 0 * np.asarray(witness[name])
        else:
            certificate[name] = value
    assert not verify({**certificate, "witness": witness}, X, y).holds


@pytest.mark.parametrize("name", ["proven_coef", "proven_gap", "proven_objective"])
def test_malformed_fields_are_refused_without_an_exception(name):
    certificate, X, y = _rounded()
    for value in (None, "text", np.nan, np.inf, [], np.zeros((2, 2, 2)), object()):
        witness = {**certificate["witness"], name: value}
        verification = verify({**certificate, "witness": witness}, X, y)
        assert not verification.holds
        assert "not computable" not in str(verification)


def test_rounding_keeps_coefficients_within_their_bounds():
    """-0.4 in single precision is below -0.4."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(20, 2)).astype(np.float32)
    y = (X @ np.array([-3.0, 3.0])).astype(np.float32)
    model = tl.LinearRegressor("squared", Bounded(lower=-0.4, upper=0.7)).fit(X, y)
    assert model.coef_.dtype == np.float32
    assert model.coef_.astype(float).min() >= -0.4
    assert model.coef_.astype(float).max() <= 0.7
    assert model.verify(X, y)
