"""The fewest errors, against brute force over all hyperplanes."""

from dataclasses import replace
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from malformed import assert_refused
from scipy.optimize import linprog

import trueline.separation.zero_one.proof as prover
from trueline import ZeroOneHalfspace
from trueline.check import Verdict


def fewest(X, y, s, fit_intercept=True):
    """The least weight of errors: the lightest set of rows without which the rest is separable."""
    A = np.column_stack([X, np.full(len(X), float(fit_intercept))]) * y[:, None]
    best = float(s.sum())
    for size in range(len(X)):
        for left in combinations(range(len(X)), size):
            if s[list(left)].sum() < best:
                rest = np.delete(A, left, axis=0)
                found = linprog(
                    np.zeros(A.shape[1]), -rest, -np.ones(len(rest)), bounds=(None, None)
                )
                if found.status == 0:
                    best = float(s[list(left)].sum())
    return best


def table(seed, n=9, d=2):
    rng = np.random.default_rng(seed)
    X = rng.integers(-3, 4, (n, d)).astype(float) if seed % 2 else rng.normal(size=(n, d))
    return X, np.where(np.arange(n) % 2 == 0, 1.0, -1.0), rng.integers(1, 4, n).astype(float)


@pytest.mark.grid(1)
@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_honest_claims_verify_and_lower_ones_do_not(seed, fit_intercept):
    X, y, s = table(seed)
    model = ZeroOneHalfspace(fit_intercept=fit_intercept).fit(X, y, s)
    truth = fewest(X, y, s, fit_intercept)
    assert model.error_weight_ == truth
    found = model.verify(X, y, s)
    assert found.holds
    assert seed % 2 or found  # rows in general position are decided, whatever the search did
    certificate = replace(model.certificate_, reading=None)
    # Another hyperplane with more errors cannot claim to be as good, nor that fewer are impossible.
    for coef in np.random.default_rng(seed).normal(size=(20, 2, 1)):
        errors = y * (X @ coef[:, 0]) <= 0
        weight = float(s[errors].sum())
        for kind in ("zero-one packing", "zero-one search"):
            claim = replace(
                certificate, kind=kind, coef=coef, intercept=np.zeros(1), objective=weight, gap=0.0
            )
            assert not claim.verify(X, y, s) or weight == truth


def test_a_claim_beyond_the_optimum_fails_even_as_a_search():
    X, y, s = table(0)
    model = ZeroOneHalfspace().fit(X, y, s)
    certificate = replace(model.certificate_, reading=None)
    assert certificate.objective > 0
    charges = certificate.witness["charges"]
    bigger = replace(certificate, witness={**certificate.witness, "charges": 2 * charges})
    # Charges that no weight covers are divided until one does: what is left may still be enough.
    assert bigger.verify(X, y, s).holds
    worse = replace(certificate, coef=-certificate.coef, intercept=-certificate.intercept)
    assert not worse.verify(X, y, s)


def test_a_search_that_nobody_repeats_is_a_condition():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 6))
    y = np.where(X[:, 0] + 0.8 * rng.normal(size=60) > 0, 1.0, -1.0)
    model = ZeroOneHalfspace(time_limit=20.0).fit(X, y)
    found = model.verify(X, y)
    assert model.certificate_.kind == "zero-one search"
    assert found.verdict is Verdict.CONDITIONAL
    assert "the search, which was not repeated, is right" in str(found)
    packing = replace(model.certificate_, kind="zero-one packing")
    assert packing.verify(X, y).verdict is Verdict.NOT_PROVEN


@pytest.mark.parametrize("scale", [1e-300, 1e-8, 1.0, 1e8, 1e300])
def test_honest_claims_at_every_scale(scale):
    X, y, s = table(2, n=14)
    X = X * scale
    assert ZeroOneHalfspace().fit(X, y, s).verify(X, y, s)


def test_weights_that_are_not_whole_and_rows_without_weight():
    X, y, _ = table(4, n=16)
    s = np.random.default_rng(0).uniform(0.1, 1.0, 16)
    s[3] = 0.0
    model = ZeroOneHalfspace().fit(X, y, s)
    assert model.verify(X, y, s)
    assert not model.verify(X, y)
    wrong = [i for i in np.flatnonzero(s) if model.predict(X)[i] != y[i]]
    total = sum((Fraction(s[i]) for i in wrong), Fraction(0))
    assert abs(total - Fraction(model.certificate_.objective)) <= Fraction(1, 10**12)


def test_malformed_certificates_are_refused():
    X, y, _ = table(0)
    certificate = replace(ZeroOneHalfspace().fit(X, y).certificate_, reading=None)
    assert_refused(certificate, X, y)
    assert not replace(certificate, kind="zero-one nonsense").verify(X, y)
    n = len(certificate.witness["members"])
    if n:
        members = certificate.witness["members"].copy()
        members[0] = 99
        assert not replace(certificate, witness={**certificate.witness, "members": members}).verify(
            X, y
        )


def test_faults_of_the_prover_are_seen(monkeypatch):
    X, y, _s = table(1)
    original = prover.Packing.bound.fget
    monkeypatch.setattr(prover.Packing, "bound", property(lambda self: original(self) + 1.0))

    def lower(task, wrong, weights, w, b, bound, packing):
        return replace(
            certify(task, wrong, weights, w, b, bound, packing), kind="zero-one packing", gap=0.0
        )

    certify = prover.certify
    monkeypatch.setattr("trueline.estimators.classification.zero_one.certify", lower)
    X, y = np.random.default_rng(5).normal(size=(40, 2)), np.where(np.arange(40) % 2, 1.0, -1.0)
    model = ZeroOneHalfspace(time_limit=0.0).fit(X, y)
    if model.error_weight_ > fewest_by_vertices(X, y):
        assert not model.verify(X, y)
    assert not replace(model.certificate_, objective=model.error_weight_ - 1).verify(X, y)


def fewest_by_vertices(X, y):
    """By all lines near those through two points."""
    best = len(y)
    for i, j in combinations(range(len(y)), 2):
        direction = X[j] - X[i]
        normal = np.array([-direction[1], direction[0]])
        values = (X - X[i]) @ normal
        values[[i, j]] = 0.0
        for sign in (1, -1):
            wrong = (sign * y * values < 0).sum()
            best = min(best, int(wrong))
    return best


@pytest.mark.parametrize("seed", range(4))
def test_rows_of_zeros_without_an_intercept_are_errors_on_both_sides(seed):
    X, y, s = table(seed, n=8, d=1)
    X[:3] = 0.0  # of both signs
    model = ZeroOneHalfspace(fit_intercept=False).fit(X, y, s)
    assert model.error_weight_ == fewest(X, y, s, fit_intercept=False)
    assert model.verify(X, y, s)
    better = replace(model.certificate_, objective=model.error_weight_ - s[:3].min())
    assert not better.verify(X, y, s)
