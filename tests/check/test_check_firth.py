"""Firth's correction, against the same formulas in higher precision."""

from dataclasses import replace

import mpmath
import numpy as np
import pytest
import scipy.sparse as sp
from malformed import assert_refused

import trueline.certificates.curvature as prover
from trueline import LogisticRegression
from trueline.check import Verdict
from trueline.losses import Hinge, Squared
from trueline.penalties import L2


def table(seed=0, n=50, d=3, scale=1.0, offset=0.0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    y = np.where(X[:, 0] + rng.normal(size=n) > 0, 1.0, -1.0)
    return (X + offset) * scale, y


def fitted(X, y, s=None, **parameters):
    return LogisticRegression(penalty="firth", **parameters).fit(X, y, s)


def exact(X, y, W, b):
    """Objective and slope in 60 digits."""
    with mpmath.workdps(60):
        A = mpmath.matrix(np.column_stack([X, np.ones(len(X))]).tolist())
        v = mpmath.matrix([*map(mpmath.mpf, W[:, 0].tolist()), mpmath.mpf(float(b[0]))])
        z = A * v
        p = [1 / (1 + mpmath.exp(-t)) for t in z]
        h = [t * (1 - t) for t in p]
        n, m = A.rows, A.cols
        information = mpmath.matrix(m, m)
        for i in range(n):
            for j in range(m):
                for k in range(m):
                    information[j, k] += h[i] * A[i, j] * A[i, k]
        inverse = information**-1
        loss = mpmath.fsum(mpmath.log(1 + mpmath.exp(-y[i] * z[i])) for i in range(n))
        objective = loss - mpmath.log(mpmath.det(information)) / 2
        g = [mpmath.mpf(0)] * m
        for i in range(n):
            q = h[i] * mpmath.fsum(
                A[i, j] * inverse[j, k] * A[i, k] for j in range(m) for k in range(m)
            )
            slope = p[i] - (1 if y[i] > 0 else 0) - q * (mpmath.mpf(1) / 2 - p[i])
            for j in range(m):
                g[j] += slope * A[i, j]
        steep = mpmath.sqrt(mpmath.fsum(g[j] ** 2 / information[j, j] for j in range(m)))
        return objective, steep


@pytest.mark.grid(2)
@pytest.mark.parametrize("scale", [1e-8, 1.0, 1e8])
@pytest.mark.parametrize("offset", [0.0, 1e3])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_honest_fits_verify(scale, offset, fit_intercept):
    X, y = table(scale=scale, offset=offset)
    s = np.random.default_rng(0).uniform(0.0, 2.0, len(y))
    s[:4] = 0.0
    for rows, weights in ((X, None), (sp.csr_array(X), s)):
        model = fitted(rows, y, weights, fit_intercept=fit_intercept)
        found = model.verify(rows, y, weights)
        assert found.verdict is Verdict.PROVEN, str(found)


@pytest.mark.parametrize("seed", range(4))
def test_what_verifies_is_true(seed):
    X, y = table(seed, n=25, d=2)
    certificate = replace(fitted(X, y).certificate_, reading=None)
    assert certificate.verify(X, y)
    rng = np.random.default_rng(seed)
    for size in (0.0, 1e-9, 1e-6, 1e-3, 1.0):
        coef = certificate.coef + size * rng.normal(size=(2, 1))
        objective, slope = exact(X, y, coef, certificate.intercept)
        for factor in (0.9, 0.999, 1.1):
            claim = replace(
                certificate,
                coef=coef,
                objective=float(objective),
                objective_rounding=1e-9,
                witness={**certificate.witness, "slope": np.array(float(slope) * factor)},
            )
            if claim.verify(X, y):
                assert slope <= claim.witness["slope"]
        off = replace(certificate, coef=coef, objective=float(objective) + 1e-6)
        assert not off.verify(X, y)


def test_columns_left_out_must_depend_on_the_others():
    X, y = table()
    certificate = replace(fitted(X, y).certificate_, reading=None)
    for columns in ([], [0], [0, 1], [0, 1, 1], [2, 1, 0], [0, 1, 3], [-1, 0, 1]):
        claim = replace(
            certificate, witness={**certificate.witness, "columns": np.array(columns, dtype=int)}
        )
        assert claim.verify(X, y).verdict is Verdict.NOT_PROVEN
    exactly = np.c_[X, X[:, 1], np.full(len(y), 3.0)]
    assert fitted(exactly, y).verify(exactly, y)
    nearly = np.c_[X, 0.1 * X[:, 0] + 0.7 * X[:, 1]]
    found = fitted(nearly, y).verify(nearly, y)
    assert found.verdict is Verdict.CONDITIONAL
    assert "depend on the others" in found.conditions[0]


def test_another_loss_or_penalty_is_refused():
    X, y = table()
    certificate = replace(fitted(X, y).certificate_, reading=None)
    for change in (
        {"loss": Squared()},
        {"loss": Hinge()},
        {"penalty": L2(1.0)},
        {"penalty": {"name": "l2", "alpha": 1.0}},
        {"loss": {"name": "poisson"}},
    ):
        assert not replace(certificate, **change).verify(X, y)
    assert not certificate.verify(X, 2 * y)
    assert not certificate.verify(X, -y)


def test_malformed_certificates_are_refused():
    X, y = table()
    certificate = replace(fitted(X, y).certificate_, reading=None)
    assert_refused(certificate, X, y, ("gap: infinite",))


def test_faults_of_the_prover_are_seen(monkeypatch):
    X, y = table()
    original = prover._facts

    def changed(**changes):
        def facts(*arguments):
            found = original(*arguments)
            return found._replace(**{name: change(found) for name, change in changes.items()})

        return facts

    faults = {
        "slope": changed(slope=lambda f: 0.0, slope_rounding=lambda f: 1e-18),
        "objective": changed(objective=lambda f: f.objective - 1e-3),
        "bound": changed(bound=lambda f: f.objective - 1e-6 * (f.objective - f.bound)),
        "rounding": changed(rounding=lambda f: 0.0),
    }
    for name, facts in faults.items():
        with monkeypatch.context() as patch:
            patch.setattr(prover, "_facts", facts)
            assert not fitted(X, y).verify(X, y), name


def test_rows_whose_probabilities_are_below_the_range_of_doubles_count_as_nothing():
    """Their weight in the information is exp(-|z|), here exp(-1000)."""
    X = np.array([[-1.0], [-0.8], [0.3], [0.9], [1.1], [-1e3]])
    y, s = np.array([-1, 1, -1, 1, 1, -1]), np.array([1e5, 1e5, 1e5, 1e5, 1e5, 1.0])
    model = fitted(X, y, s)
    assert np.abs(model.decision_function(X)).max() > 1000
    assert model.verify(X, y, s)
