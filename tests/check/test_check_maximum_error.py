"""The largest error, against linear programming and rational arithmetic."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp
from malformed import assert_refused
from scipy.optimize import linprog

import trueline.certificates.special.maximum as prover
from trueline import ChebyshevRegressor
from trueline.check import Verdict


def least_largest_error(X, y, fit_intercept=True):
    n, d = X.shape
    A = np.column_stack([X, np.full(n, float(fit_intercept))])
    A = np.block([[A, -np.ones((n, 1))], [-A, -np.ones((n, 1))]])
    cost = np.append(np.zeros(d + 1), 1.0)
    found = linprog(cost, A, np.append(y, -y), bounds=[(None, None)] * (d + 1) + [(0, None)])
    assert found.status == 0
    return found.fun


def table(seed, n=40, d=3, scale=1.0, offset=0.0):
    rng = np.random.default_rng(seed)
    X = (rng.normal(size=(n, d)) + offset) * scale
    return X, rng.normal(size=n) + (X @ rng.normal(size=d)) / scale


@pytest.mark.parametrize("scale", [1e-8, 1.0, 1e8])
@pytest.mark.parametrize("offset", [0.0, 1e3, 1e6])
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
def test_honest_fits_are_proven_for_all_coefficients(scale, offset, fit_intercept, form):
    X, y = table(0, scale=scale, offset=offset)
    model = ChebyshevRegressor(fit_intercept=fit_intercept).fit(form(X), y)
    found = model.verify(form(X), y)
    assert found.verdict is Verdict.PROVEN
    assert model.certificate_.relative_gap < 1e-9


@pytest.mark.parametrize("d", [70, 120])
def test_many_columns_are_repaired_by_an_approximate_inverse(d):
    X, y = table(1, n=3 * d, d=d, offset=2.0)
    model = ChebyshevRegressor().fit(X, y)
    assert model.verify(X, y)
    assert model.certificate_.relative_gap < 1e-8


@pytest.mark.parametrize("seed", range(40))
def test_a_false_bound_never_verifies(seed):
    """Multipliers and coefficients of any kind: what verifies is true."""
    rng = np.random.default_rng(seed)
    X, y = table(seed, n=12, d=2)
    certificate = ChebyshevRegressor().fit(X, y).certificate_
    truth = least_largest_error(X, y)
    for _ in range(10):
        coef = certificate.coef + rng.normal(size=(2, 1)) * 10.0 ** rng.uniform(-6, 1)
        error = float(np.abs(y - X @ coef[:, 0] - certificate.intercept[0]).max())
        count = int(rng.integers(1, 6))
        witness = {
            "rows": rng.choice(12, count, replace=False).astype(float),
            "dual": rng.uniform(-1, 1, (count, 1))
            if rng.random() < 0.5
            else certificate.witness["dual"],
        }
        if len(witness["dual"]) != count:
            witness["rows"] = certificate.witness["rows"]
        gap = (error - truth) * rng.uniform(0.0, 0.999)
        claim = replace(
            certificate,
            coef=coef,
            objective=error,
            objective_rounding=1e-10,
            gap=gap,
            witness=witness,
        )
        assert claim.verify(X, y).verdict is Verdict.NOT_PROVEN


def test_malformed_certificates_are_refused():
    X, y = table(3)
    certificate = ChebyshevRegressor().fit(X, y).certificate_
    assert_refused(certificate, X, y, ("gap: infinite",))


def test_radii_and_powers_of_two_change_no_claim():
    X, y = table(4)
    certificate = ChebyshevRegressor().fit(X, y).certificate_
    for extra in (
        {"radius": np.zeros(1)},
        {"coefficient_radius": np.zeros((3, 1))},
        {"target_exponent": np.array([-5000])},
        {"target_exponent": np.array([[-1]])},
        {"column_exponent": np.full((3, 1), -1)},
    ):
        worse = replace(certificate, gap=0.0, witness={**certificate.witness, **extra})
        assert not worse.verify(X, y)
        assert not replace(certificate, witness={**certificate.witness, **extra}).verify(X, y)


def test_extreme_units_are_part_of_the_statement():
    X, y = table(5)
    X, y = X * 1e200, y * 1e200
    model = ChebyshevRegressor().fit(X, y)
    found = model.verify(X, y)
    assert found
    assert "powers of two" in found.statement


def test_the_bound_is_that_of_rational_arithmetic():
    X, y = np.array([[0.0], [1.0], [2.0], [3.0]]), np.array([0.0, 1.0, 0.0, 1.0])
    certificate = ChebyshevRegressor().fit(X, y).certificate_
    assert certificate.verify(X, y)
    truth = Fraction(1, 2)  # equal errors at the three first rows, or the three last
    assert abs(Fraction(certificate.objective) - truth) <= Fraction(1, 10**14)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_faults_of_the_prover_are_seen(monkeypatch):
    X, y = table(6)
    original = prover._lower_bound
    with monkeypatch.context() as patch:  # stops early, and claims that nothing is missing
        patch.setattr(prover, "_lower_bound", lambda *a: original(*a) * 1.01)
        assert not ChebyshevRegressor(solver="smoothed", max_iter=5).fit(X, y).verify(X, y)
    original_doubled = prover._doubled

    def other_sign(*arguments):
        high, low = original_doubled(*arguments)
        return np.roll(high, 1), np.roll(low, 1)

    X, y = table(6, d=60, n=300)
    monkeypatch.setattr(prover, "_doubled", other_sign)
    monkeypatch.setattr(prover, "_is_solved", lambda *a: True)
    monkeypatch.setattr(prover, "_lower_bound", lambda X, y, w, b, *a: np.abs(y - X @ w - b).min())
    wrong = ChebyshevRegressor().fit(X, y)
    # The rows alone determine the multipliers where they are few; here they do not.
    monkeypatch.setattr("trueline.check.theorems.maximum_error._FEW", 0.0)
    assert not wrong.verify(X, y)
