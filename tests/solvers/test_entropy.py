"""Sweeps over the dual of logistic regressions of sparse rows."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from trueline import LogisticRegression
from trueline.design import as_design
from trueline.losses import Hinge, Logistic
from trueline.penalties import L1, L2
from trueline.problem import Problem
from trueline.solvers.base import Options
from trueline.solvers.dual.entropy import EntropyDescent, best_logit, is_worth_it


def rows_of_words(seed=0, n=300, d=500, each=12):
    draw = np.random.default_rng(seed)
    places = draw.integers(0, d, size=(n, each)) * draw.random((n, each)) ** 2
    X = sp.csr_array(
        (draw.random(n * each), (np.repeat(np.arange(n), each), places.astype(int).ravel())),
        shape=(n, d),
    )
    y = np.where(X @ draw.normal(size=d) + draw.normal(size=n) > 0.3, 1.0, -1.0)
    return X, y


def problem_of(X, y, strength=1.0, fit_intercept=True, weights=None):
    return Problem(
        as_design(X),
        y[:, None],
        Logistic(),
        L2(strength),
        weights=weights,
        fit_intercept=fit_intercept,
    )


@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("strength", [3.0, 10.0])
def test_sweeps_end_where_newton_does(fit_intercept, weighted, strength):
    X, y = rows_of_words(n=3000, d=1000)
    weights = np.random.default_rng(1).integers(0, 4, size=len(y)) / 2.0 if weighted else None
    descent = EntropyDescent(problem_of(X, y, strength, fit_intercept, weights), Options())
    certificate, target = None, 1e-6 * len(y)
    while certificate is None or certificate.gap > target:
        assert descent.approach(target)
        certificate = descent.certify(target)
    assert certificate.verify(X, y, weights)
    dense = LogisticRegression(C=1 / strength, fit_intercept=fit_intercept, tol=1e-7)
    dense.fit(X.toarray(), y, weights)
    assert dense.solver_ != "newton_cg" or "sweep" not in str(dense.explain())
    optimum = dense.certificate_.objective
    assert abs(certificate.objective - optimum) <= certificate.gap + dense.certificate_.gap
    # Strong convexity: strength/2 ||w - w*||^2 is at most the gap.
    distance = np.linalg.norm(descent.coef[:, 0] - dense.coef_[0])
    assert distance**2 <= 2 * certificate.gap / strength + 1e-12


@pytest.mark.parametrize("tol", [1e-3, 1e-4, 1e-6])
def test_sparse_fits_agree_with_dense_ones_whichever_way_they_end(tol):
    X, y = rows_of_words(3)
    sparse = LogisticRegression(tol=tol).fit(X, y)
    dense = LogisticRegression(tol=1e-8).fit(X.toarray(), y)
    assert sparse.verify(X, y)
    assert "over the dual" in str(sparse.explain())
    off = sparse.predict_proba(X) - dense.predict_proba(X)
    assert np.abs(off).max() <= 10 * tol


def test_weak_penalties_are_left_to_newton():
    X, y = rows_of_words(4)
    model = LogisticRegression(C=1e8).fit(X, y)
    assert not is_worth_it(problem_of(X, y, 1e-8))
    assert model.verify(X, y)
    assert "Hessian-vector" in str(model.explain())


def test_slow_sweeps_hand_over():
    X, y = rows_of_words(5)
    descent = EntropyDescent(problem_of(10 * X, y, 0.05), Options())
    assert not descent.approach(1e-9)
    model = LogisticRegression(C=20.0).fit(10 * X, y)
    assert model.verify(10 * X, y)
    assert model.certificate_.relative_gap < 1e-6


def test_only_logistic_losses_with_one_strength_are_swept():
    X, y = rows_of_words(6)
    assert is_worth_it(problem_of(X, y))
    assert not is_worth_it(problem_of(X.toarray(), y))
    for loss, penalty in (
        (Hinge(), L2(1.0)),
        (Logistic(), L1(1.0)),
        (Logistic(), L2(np.linspace(1.0, 2.0, X.shape[1]))),
    ):
        assert not is_worth_it(Problem(as_design(X), y[:, None], loss, penalty))


@pytest.mark.parametrize("margin", [-800.0, -3.0, 0.0, 0.5, 40.0, 800.0])
@pytest.mark.parametrize("bend", [0.0, 1e-3, 1.0, 1e4])
@pytest.mark.parametrize("q", [1e-12, 0.2, 1 - 1e-12])
def test_the_best_place_of_one_variable(margin, bend, q):
    t = best_logit(margin, q, bend, np.log(q / (1 - q)))
    slope = bend * (1 / (1 + np.exp(-t)) - q) + margin + t
    if abs(t) < 34.0:
        assert abs(slope) <= 1e-4 * (1 + abs(margin))
    else:
        assert slope * t <= 0  # it would go on beyond the wall
