"""Certificates hold, and false ones do not."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from machines import MACHINES, data_for, labelled, smooth
from numpy.testing import assert_allclose

from trueline import SVC, SVR, load, save


@pytest.mark.grid(2)
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("kernel", ["linear", "rbf", "poly"])
def test_every_fit_is_proven(machine, kernel, sparse):
    make, X, y = machine
    w = np.random.default_rng(2).uniform(0, 2, len(X))
    w[:3] = 0
    given = sp.csr_matrix(X) if sparse else X
    model = make(kernel=kernel, coef0=1.0).fit(given, y, w)
    verification = model.verify(given, y, w)
    assert verification, str(verification)
    certificate = model.certificate_
    assert certificate.kind == "kernel duality"
    assert certificate.gap <= 1e-4 * (1 + abs(certificate.objective))
    assert certificate.lower_bound <= certificate.objective
    assert not model.verify(given, y, np.ones(len(X)))
    assert "support vectors" in model.explain()


def test_tampering_is_noticed(machine):
    make, X, y = machine
    model = make(gamma=0.5).fit(X, y)
    certificate = model.certificate_
    assert certificate.verify(X, y)
    assert not replace(certificate, gap=0.1 * certificate.gap).verify(X, y)
    assert not replace(certificate, objective=certificate.objective - 1.0).verify(X, y)
    assert not replace(certificate, coef=1.01 * certificate.coef).verify(X, y)
    assert not replace(certificate, intercept=certificate.intercept + 0.5).verify(X, y)
    assert not replace(certificate, kind="search").verify(X, y)
    assert not certificate.verify(X[:-1], y[:-1])
    assert not certificate.verify(2 * X, y)
    if y is not None and not isinstance(model, type(MACHINES["OneClassSVM"]())):
        assert not certificate.verify(X, y[::-1].copy())
    model.dual_coef_ = model.dual_coef_ * 0.9
    assert not model.verify(X, y)


def test_a_kernel_that_is_not_semidefinite_cannot_be_proven():
    X, y = labelled()
    certificate = SVC(kernel="sigmoid").fit(X, y).certificate_
    assert not replace(certificate, kind="kernel duality", gap=1.0).verify(X, y)
    assert not replace(certificate, gap=1.0).verify(X, y)
    negative = SVC(kernel="poly", coef0=-1.0).fit(X, y)
    assert negative.certificate_.kind == "kernel stationarity"
    assert negative.verify(X, y)


def test_the_gap_is_that_of_exact_arithmetic():
    """Linear kernel: primal minus dual value in rational numbers, multipliers balanced."""
    g = np.random.default_rng(3)
    X = g.integers(-3, 4, (12, 2)).astype(float)
    y = (X[:, 0] + g.standard_normal(12) > 0).astype(int)
    model = SVC(kernel="linear", C=2.0).fit(X, y)
    rows = [[Fraction(v) for v in row] for row in X]
    signs = [1 if label else -1 for label in y]
    beta = [Fraction(0)] * 12
    for i, b in zip(model.support_, model.dual_coef_[0]):
        beta[i] = Fraction(b)
    w = [sum(b * row[j] for b, row in zip(beta, rows)) for j in range(2)]
    level = Fraction(model.intercept_[0])
    f = [sum(a * b for a, b in zip(w, row)) for row in rows]
    square = sum(v * v for v in w)
    loss = 2 * sum(max(0, 1 - s * (v + level)) for s, v in zip(signs, f))
    primal = square / 2 + loss
    certificate = model.certificate_
    assert abs(Fraction(certificate.objective) - primal) <= Fraction(certificate.objective_rounding)
    free = max(range(12), key=lambda i: min(abs(beta[i]), 2 - abs(beta[i])))
    beta[free] -= sum(beta)
    assert all(0 <= s * b <= 2 for s, b in zip(signs, beta))
    w = [sum(b * row[j] for b, row in zip(beta, rows)) for j in range(2)]
    dual = sum(s * b for s, b in zip(signs, beta)) - sum(v * v for v in w) / 2
    assert primal - dual <= Fraction(certificate.gap)


@settings(max_examples=25, deadline=None)
@given(
    st.integers(0, 10_000),
    st.sampled_from(["linear", "rbf", "poly"]),
    st.floats(-3, 3),
    st.integers(4, 40),
)
def test_no_function_is_better_than_the_bound(seed, kernel, log_C, n):
    """Primal values of random functions stay above the proven lower bound."""
    X, y = labelled(n, 2, 2, seed)
    model = SVC(kernel=kernel, C=10.0**log_C, gamma=0.5, coef0=0.5).fit(X, y)
    assert model.verify(X, y)
    from sklearn.metrics.pairwise import pairwise_kernels

    K = pairwise_kernels(X, metric=kernel, filter_params=True, gamma=0.5, coef0=0.5, degree=3)
    t, g = np.where(y == 1, 1.0, -1.0), np.random.default_rng(seed)
    best = np.zeros(n)
    best[model.support_] = model.dual_coef_[0]
    for scale in (0.0, 0.01, 1.0):
        b = best + scale * g.standard_normal(n)
        level = model.intercept_[0] + scale * g.standard_normal()
        f = K @ b
        primal = 0.5 * b @ f + model.C * np.maximum(1 - t * (f + level), 0).sum()
        slack = 1e-9 * (1 + abs(primal))
        assert primal >= model.certificate_.lower_bound - slack


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 10_000), st.sampled_from(["SVC", "SVR", "OneClassSVM"]))
def test_weight_two_is_the_row_twice(seed, name):
    X, y = data_for(name, n=25, seed=seed)
    w = np.random.default_rng(seed).integers(1, 4, 25)
    weighted = MACHINES[name](gamma=0.5).fit(X, y, w)
    repeated = MACHINES[name](gamma=0.5).fit(np.repeat(X, w, axis=0), np.repeat(y, w))
    assert_allclose(
        weighted.certificate_.objective, repeated.certificate_.objective, rtol=1e-6, atol=1e-9
    )


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 10_000))
def test_order_and_shift_do_not_matter(seed):
    X, y = labelled(30, 2, 2, seed)
    order = np.random.default_rng(seed).permutation(30)
    model = SVC(gamma=0.5).fit(X, y)
    other = SVC(gamma=0.5).fit(X[order] + 1000.0, y[order])
    assert_allclose(other.decision_function(X + 1000.0), model.decision_function(X), atol=1e-6)


def test_the_proof_travels_with_the_model(tmp_path, machine):
    import pickle

    make, X, y = machine
    model = make(gamma=0.5).fit(X, y)
    again = pickle.loads(pickle.dumps(model))
    assert again.certificate_.gap == model.certificate_.gap
    assert again.verify(X, y)
    save(model, tmp_path / "model.trueline")
    loaded = load(tmp_path / "model.trueline")
    assert loaded.verify(X, y)
    assert_allclose(loaded.predict(X), model.predict(X))


def test_the_trace_of_the_textbook_shows_every_step():
    X, y = labelled(40)
    model = SVC(solver="textbook_smo", trace=True, gamma=0.5).fit(X, y)
    trace = model.trace_
    assert len(trace) == model.n_iter_[0]
    assert (np.diff(trace["objective"]) <= 1e-12).all()
    assert trace["kkt_failures"][-1] == 0
    assert trace["violation"][-1] <= model.tol
    b = np.zeros(len(X))
    order = np.argsort(y, kind="stable")
    for first, second, one, two in zip(
        *(trace[c] for c in ("first", "second", "first_multiplier", "second_multiplier"))
    ):
        b[int(first)], b[int(second)] = one, two
        assert abs(b.sum()) < 1e-12
    found = np.zeros(len(X))
    found[model.support_] = -model.dual_coef_[0]
    assert_allclose(b, found[order], atol=1e-12)


def test_regression_with_targets_far_from_zero_is_proven():
    X, y = smooth(50)
    model = SVR(C=10.0).fit(X, y + 1e6)
    assert model.verify(X, y + 1e6)
    assert_allclose(model.predict(X) - 1e6, SVR(C=10.0).fit(X, y).predict(X), atol=1e-4)
