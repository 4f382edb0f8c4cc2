"""Verdicts on separability and margins: true ones verify at any scale, false ones never do."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from malformed import assert_refused
from scipy.optimize import linprog

import trueline.separation.margin as margin_prover
import trueline.separation.separate as prover
from trueline import LinearSVC, maximum_margin, separability

VERDICTS = {
    "separable": ([[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1]),
    "quasi-separable": ([[0.0, 0.0], [1.0, 0.0], [2.0, 0.0], [3.0, 0.0], [1, 1]], [0, 1, 0, 1, 1]),
    "not separable": ([[0.0], [1.0], [2.0], [3.0]], [0, 1, 0, 1]),
}


def is_separable(X, y, fit_intercept=True):
    """By linear programming: is there (w, b) with y (x.w + b) >= 1?"""
    signs = np.where(np.asarray(y) == np.unique(y)[1], 1.0, -1.0)
    A = np.column_stack([X, np.full(len(X), float(fit_intercept))]) * signs[:, None]
    found = linprog(np.zeros(A.shape[1]), -A, -np.ones(len(A)), bounds=(None, None))
    return found.status == 0


@pytest.mark.parametrize("seed", range(30))
def test_verdicts_agree_with_linear_programming_and_verify(seed):
    rng = np.random.default_rng(seed)
    X = rng.integers(-3, 4, (rng.integers(4, 12), rng.integers(1, 4))).astype(float)
    y = rng.integers(0, 2, len(X))
    y[:2] = 0, 1
    fit_intercept = bool(seed % 2)
    answer = separability(X, y, fit_intercept=fit_intercept)
    assert answer.is_separable == is_separable(X, y, fit_intercept)
    assert answer.verify(X, y)
    for kind in VERDICTS:  # the same witness, another verdict
        if kind != answer.verdict:
            assert not replace(answer.certificate, kind=kind).verify(X, y)


@pytest.mark.grid(2)
@pytest.mark.parametrize("scale", [1e-300, 1e-8, 1.0, 1e8, 1e300])
@pytest.mark.parametrize("offset", [0.0, 1e3])
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
def test_honest_verdicts_at_every_scale(scale, offset, form):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 3))
    X = (X + offset) * scale if scale < 1e300 else X * scale
    labels = [(X[:, 0] > np.median(X[:, 0])).astype(int), rng.integers(0, 3, 40)]
    for y in labels:
        for fit_intercept in (True, False):
            assert separability(form(X), y, fit_intercept=fit_intercept).verify(form(X), y)


@pytest.mark.parametrize("kind", VERDICTS)
def test_malformed_certificates_are_refused(kind):
    X, y = np.array(VERDICTS[kind][0]), np.array(VERDICTS[kind][1])
    certificate = separability(X, y).certificate
    assert certificate.kind == kind
    nothing = ("boundary_rows: empty", "boundary_against: empty")  # as they are
    assert_refused(certificate, X, y, () if kind == "quasi-separable" else nothing)


def test_weights_do_not_hide_rows():
    X, y = np.array(VERDICTS["separable"][0]), np.array(VERDICTS["separable"][1])
    from trueline.check import verify

    certificate = separability(X, y).certificate
    assert verify(certificate, X, y, np.ones(4))
    assert not verify(certificate, X, y, np.array([1.0, 1.0, 1.0, 0.0]))
    assert not verify(certificate, X, y, np.array([1.0, 1.0, 1.0]))


def test_faults_of_the_prover_are_seen(monkeypatch):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(40, 2))
    y = (X[:, 0] > 0).astype(int)
    with monkeypatch.context() as patch:
        patch.setattr(prover, "_margin", lambda *a: 1.001 * original(*a))
        original = prover_margin
        assert not separability(X, y).verify(X, y)
    mixed = rng.integers(0, 2, 40)
    honest = separability(X, mixed)
    assert honest.verify(X, mixed)

    def wrong(multipliers, codes, k):
        found = prover_combination(multipliers, codes, k)
        return replace(found, multipliers=(found.multipliers[0] + 1, *found.multipliers[1:]))

    monkeypatch.setattr(prover, "_combination", wrong)
    assert not separability(X, mixed).verify(X, mixed)


prover_margin, prover_combination = prover._margin, prover._combination


# --- margins --------------------------------------------------------------------------------------


def apart(n=30, d=3, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, (X[:, 0] + 0.1 * X[:, 1] > 0).astype(int)


@pytest.mark.parametrize("scale", [1e-8, 1.0, 1e8])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_honest_margins(scale, fit_intercept):
    X, y = apart()
    X = X * scale
    best = maximum_margin(X, y, fit_intercept=fit_intercept)
    assert best.certificate.kind == "margin"
    assert best.verify(X, y)
    assert maximum_margin(sp.csr_array(X), y, fit_intercept=fit_intercept).verify(X, y)
    model = LinearSVC(C=np.inf, loss="hinge", fit_intercept=fit_intercept).fit(X, y)
    assert model.certificate_.kind == "hard margin"
    assert model.verify(X, y)
    np.testing.assert_allclose(model.certificate_.objective, 0.5 / best.margin**2, rtol=1e-6)


def test_malformed_margins_are_refused():
    X, y = apart()
    assert_refused(maximum_margin(X, y).certificate, X, y)
    model = LinearSVC(C=np.inf, loss="hinge").fit(X, y)
    certificate = replace(model.certificate_, reading=None)
    assert_refused(certificate, X, np.where(y == 1, 1.0, -1.0), ("gap: infinite",))


def test_false_margins_never_verify():
    X, y = apart()
    best = maximum_margin(X, y).certificate
    rng = np.random.default_rng(0)
    for _ in range(200):
        name = rng.choice(["margin", "upper_bound", "radius", "coef", "intercept", "weights"])
        value = np.asarray(getattr(best, name), dtype=float)
        factor = 1 + 10.0 ** rng.uniform(-9, 0) * rng.choice([-1, 1], size=value.shape)
        claim = replace(best, **{name: value * factor if value.ndim else float(value * factor)})
        if claim.verify(X, y):  # then it is true all the same
            w, b = claim.coef[0], claim.intercept
            margins = np.where(y == 1, 1, -1) * (X @ w + b) / np.linalg.norm(w)
            assert claim.margin <= margins.min() * (1 + 1e-12)
            assert claim.upper_bound >= best.margin * (1 - 1e-12)
            assert claim.radius >= np.linalg.norm(X, axis=1).max() * (1 - 1e-12)


def test_a_hard_margin_with_other_claims_is_refused():
    X, y = apart()
    certificate = replace(LinearSVC(C=np.inf, loss="hinge").fit(X, y).certificate_, reading=None)
    signs, shares = np.where(y == 1, 1.0, -1.0), certificate.witness["shares"]
    assert certificate.verify(X, signs)
    wrong = {
        "gap": replace(certificate, gap=0.0),
        "smaller": replace(certificate, coef=0.99 * certificate.coef),
        "objective": replace(certificate, objective=0.9 * certificate.objective),
        "other rows": replace(certificate, witness={"shares": np.roll(shares, 1)}),
        "negative": replace(certificate, witness={"shares": -shares}),
        "nothing": replace(certificate, witness={"shares": 0 * shares}),
        "one side": replace(certificate, witness={"shares": shares * (signs > 0)[:, None]}),
        "no intercept": replace(certificate, fit_intercept=False),
    }
    for name, claim in wrong.items():
        assert not claim.verify(X, signs), name
    assert not certificate.verify(X, -signs)
    assert not certificate.verify(X, 2 * signs)


def test_a_fault_of_the_margin_prover_is_seen(monkeypatch):
    X, y = apart()
    original = margin_prover._bounded

    def wrong(*arguments):
        found = original(*arguments)
        return replace(found, upper_bound=found.margin + 1e-6 * (found.upper_bound - found.margin))

    monkeypatch.setattr(margin_prover, "_bounded", wrong)
    rng = np.random.default_rng(0)
    X = X * (1 + 1e-9 * rng.normal(size=X.shape))
    best = maximum_margin(X, y)
    if best.upper_bound > best.margin:
        assert not best.verify(X, y)


@pytest.mark.parametrize("size", [1e-200, 1e200])
def test_a_hard_margin_of_extreme_coefficients_is_judged(size):
    """Squares of these leave the range of doubles, in which nothing here is computed."""
    X, y = apart()
    certificate = replace(LinearSVC(C=np.inf, loss="hinge").fit(X, y).certificate_, reading=None)
    found = replace(certificate, coef=size * certificate.coef).verify(X, 2.0 * y - 1)
    assert not found
    assert "not computable" not in str(found)
