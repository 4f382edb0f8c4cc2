"""The best of all supports, against brute force over all of them."""

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
import scipy.sparse as sp
from malformed import assert_refused

import trueline.best_subset.statement as prover
from trueline import BestSubset, L0Regression
from trueline.check import Verdict, verify
from trueline.losses import Absolute, Huber
from trueline.penalties import L1, L2


def best(X, y, k, l2=0.0, alpha=0.0, s=None, fit_intercept=True):
    """The least value over all supports of at most k columns, by least squares on each."""
    s = np.ones(len(y)) if s is None else s
    root = np.sqrt(s)
    out = np.inf
    for size in range(k + 1):
        for support in combinations(range(X.shape[1]), size):
            A, b = X[:, support], y
            if fit_intercept:
                A, b = A - s @ A / s.sum(), b - s @ b / s.sum()
            A = np.vstack([A * root[:, None], np.sqrt(l2) * np.eye(size)])
            b = np.append(b * root, np.zeros(size))
            w = np.linalg.lstsq(A, b, rcond=None)[0]
            out = min(out, 0.5 * np.sum((b - A @ w) ** 2) + alpha * size)
    return out


def table(seed=0, n=30, d=6, scale=1.0, offset=0.0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    y = X[:, 0] - X[:, 2] + 0.5 * rng.normal(size=n)
    return (X + offset) * scale * 10.0 ** rng.integers(-2, 3, d), y


@pytest.mark.grid(2)
@pytest.mark.parametrize("scale", [1e-8, 1.0, 1e8])
@pytest.mark.parametrize("offset", [0.0, 1e3])
@pytest.mark.parametrize("model", [BestSubset(k=2), BestSubset(k=2, l2=0.5), L0Regression(1.0)])
def test_honest_fits_verify(scale, offset, model):
    X, y = table(scale=scale, offset=offset)
    s = np.random.default_rng(0).uniform(0.0, 2.0, len(y))
    s[:3] = 0.0
    for rows, weights in ((X, None), (sp.csr_array(X), s)):
        found = model.fit(rows, y, weights).verify(rows, y, weights)
        assert found.verdict is Verdict.PROVEN, str(found)


@pytest.mark.parametrize("seed", range(20))
def test_a_false_gap_never_verifies(seed):
    rng = np.random.default_rng(seed)
    X, y = table(seed)
    l2, alpha, k = float(rng.choice([0.0, 0.5])), float(rng.choice([0.0, 0.7])), 2
    model = L0Regression(alpha, l2=l2) if alpha else BestSubset(k=k, l2=l2)
    certificate = model.fit(X, y).certificate_
    k = int(certificate.witness["k"])
    truth = best(X, y, k, l2, alpha)
    assert certificate.lower_bound <= truth <= certificate.objective * (1 + 1e-9)
    centred, level = X - X.mean(axis=0), y - y.mean()
    for _ in range(10):
        support = rng.choice(6, 2, replace=False)
        A = centred[:, support]
        w = np.linalg.solve(A.T @ A + l2 * np.eye(2), A.T @ level)
        coef = np.zeros((6, 1))
        coef[support, 0] = w
        intercept = np.array([y.mean() - X.mean(axis=0) @ coef[:, 0]])
        value = 0.5 * np.sum((y - X @ coef[:, 0] - intercept) ** 2)
        value += 0.5 * l2 * w @ w + 2 * alpha
        claim = replace(
            certificate,
            coef=coef,
            intercept=intercept,
            objective=value,
            objective_rounding=1e-9 * value,
            gap=(value - truth) * rng.uniform(0.0, 0.999),
        )
        if value > truth * (1 + 1e-6):
            assert claim.verify(X, y).verdict is Verdict.NOT_PROVEN


def test_an_offset_is_no_constant_column():
    """A column far from zero varies little beside its size, and still is the best one."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 3))
    y = X[:, 2] + 0.1 * rng.normal(size=40)
    X[:, 2] += 1e6
    certificate = BestSubset(k=1).fit(X, y).certificate_
    assert np.flatnonzero(certificate.coef) == [2]
    keep = np.array([True, True, False])
    other = BestSubset(k=1).fit(X[:, :2], y).certificate_
    lie = replace(
        other,
        coef=np.append(other.coef, [[0.0]], axis=0),
        witness={**other.witness, "columns": keep},
    )
    found = lie.verify(X, y)
    assert found.verdict is Verdict.NOT_PROVEN
    assert "column 2 is left out" in str(found)


def test_copies_may_be_left_out_if_they_are_copies():
    X, y = table()
    for copied in (np.c_[X, X[:, 0]], np.c_[X, -4.0 * X[:, 2]], np.c_[X, np.full(30, 3.0)]):
        model = BestSubset(k=2).fit(copied, y)
        assert not model.certificate_.witness["columns"].all()
        assert model.verify(copied, y)
        assert BestSubset(k=2, l2=0.5).fit(copied, y).verify(copied, y)


@pytest.mark.parametrize("size", [3e-6, 1e-9, 1e-13])
def test_columns_that_are_nearly_copies_are_fitted_in_rational_numbers(size):
    X, y = table(n=20)
    rng = np.random.default_rng(1)
    near = np.c_[X, X[:, 0] * (1 + size * rng.normal(size=20))]
    y = y + (near[:, 6] - near[:, 0]) / (size * np.abs(X[:, 0]).max())
    model = BestSubset(k=2).fit(near, y)
    assert np.count_nonzero(model.coef_) == 2
    found = model.verify(near, y)
    assert found.verdict is Verdict.PROVEN, str(found)
    # Those who do not see that the pair fits best cannot claim that nothing is better.
    other = BestSubset(k=2).fit(X, y).certificate_
    if other.objective > 1.01 * model.certificate_.objective:
        lie = replace(
            model.certificate_,
            coef=np.append(other.coef, [[0.0]], axis=0),
            intercept=other.intercept,
            objective=other.objective,
            objective_rounding=other.objective_rounding,
        )
        assert not lie.verify(near, y).holds


def test_with_a_squared_penalty_copies_take_part():
    X, y = table()
    copied = np.c_[X, X[:, 0]]
    certificate = BestSubset(k=2, l2=5.0).fit(copied, y).certificate_
    witness = certificate.witness
    keep = np.arange(7) < 6
    shorter = {name: witness[name][keep] for name in ("diagonal", "dual") if len(witness[name])}
    fewer = replace(certificate, witness={**witness, **shorter, "columns": keep})
    assert fewer.verify(copied, y).verdict is Verdict.NOT_PROVEN


def test_another_loss_or_penalty_is_refused():
    X, y = table()
    certificate = BestSubset(k=2).fit(X, y).certificate_
    for change in (
        {"loss": Absolute()},
        {"loss": Huber(1.0)},
        {"loss": {"name": "absolute"}},
        {"penalty": L1(0.1)},
        {"penalty": L2(1.0)},
        {"penalty": {"name": "l2", "alpha": [0.0, 0.0]}},
    ):
        assert not replace(certificate, **change).verify(X, y)


def test_malformed_certificates_are_refused():
    X, y = table()
    certificate = BestSubset(k=2).fit(X, y).certificate_
    # Without a witness of the root, all supports are looked at: that is a proof, too.
    fine = ("gap: infinite", "diagonal: empty", "dual: empty", "theta: infinite")
    assert_refused(certificate, X, y, fine)
    for change in ({"k": 3}, {"k": 1}, {"alpha": 0.1}, {"delta": 0.5}, {"theta": 0.5}):
        claim = replace(certificate, witness={**certificate.witness, **change})
        truth = best(X, y, 3)
        assert not claim.verify(X, y) or (change == {"k": 3} and truth >= claim.lower_bound)


def test_effort_decides_how_much_of_a_search_is_repeated(monkeypatch):
    X, y = table(d=8)
    certificate = BestSubset(k=3).fit(X, y).certificate_
    nothing = {**certificate.witness, "diagonal": np.zeros(0), "dual": np.zeros(0)}
    claim = replace(certificate, witness=nothing)
    monkeypatch.setattr("trueline.check.theorems.best_subset._MOST", 20)
    found = verify(claim, X, y)
    assert found.verdict is Verdict.CONDITIONAL
    assert "the branch and bound search, which was not repeated, is right" in str(found)
    assert verify(claim, X, y, effort="full").verdict is Verdict.PROVEN
    worse = BestSubset(k=2).fit(X, y).certificate_
    invented = replace(claim, coef=worse.coef, intercept=worse.intercept, objective=worse.objective)
    assert not verify(invented, X, y)  # is right if the search is
    assert verify(invented, X, y, effort="full").verdict is Verdict.NOT_PROVEN


def test_faults_of_the_prover_are_seen(monkeypatch):
    X, y = table(n=12, d=6)
    original = prover.certify_search

    def smaller_gap(*arguments):
        found = original(*arguments)
        return replace(found, gap=1e-6 * found.gap)

    def skipped(*arguments):
        found = original(*arguments)
        columns = found.witness["columns"].copy()
        columns[0] = False
        rest = {name: found.witness[name][1:] for name in ("diagonal", "dual")}
        return replace(found, witness={**found.witness, **rest, "columns": columns})

    def wrong_dual(*arguments):
        found = original(*arguments)
        return replace(found, witness={**found.witness, "dual": 2.0 * found.witness["dual"]})

    for fault in (smaller_gap, skipped):
        monkeypatch.setattr(
            "trueline.estimators.column_selection.best_subset.certify_search", fault
        )
        assert not BestSubset(k=2).fit(X, y).verify(X, y), fault.__name__
    # A bad point at the root proves less; the supports that it leaves open are fitted.
    monkeypatch.setattr(
        "trueline.estimators.column_selection.best_subset.certify_search", wrong_dual
    )
    assert BestSubset(k=2).fit(X, y).verify(X, y)
