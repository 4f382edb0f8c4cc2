"""Sweeps over the dual of logistic regressions of sparse rows."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from trueline import LogisticRegression, LogisticRegressionCV
from trueline.design import as_design
from trueline.losses import Hinge, Logistic
from trueline.penalties import L1, L2
from trueline.planner import execute, make_plan
from trueline.problem import Problem
from trueline.solution import Status
from trueline.solvers.base import Monitor, Options
from trueline.solvers.dual_coordinate_descent.logistic import best_logit
from trueline.solvers.dual_coordinate_descent.solver import EntropyDualDescent
from trueline.solvers.newton.cg.solver import NewtonCG


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


def solved(problem, tol, **options):
    return EntropyDualDescent().solve(problem, Options(tol=tol, **options), Monitor())


@pytest.mark.grid(2)
@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("strength", [3.0, 10.0])
@pytest.mark.parametrize("is_sparse", [True, False])
def test_sweeps_end_where_newton_does(fit_intercept, weighted, strength, is_sparse):
    X, y = rows_of_words(n=3000, d=1000) if is_sparse else rows_of_words(n=400, d=100)
    weights = np.random.default_rng(1).integers(0, 4, size=len(y)) / 2.0 if weighted else None
    A = X if is_sparse else X.toarray()
    found = solved(problem_of(A, y, strength, fit_intercept, weights), 1e-6)
    certificate = found.certificate
    assert found.status is Status.CONVERGED
    assert certificate.verify(A, y, weights)
    dense = LogisticRegression(C=1 / strength, fit_intercept=fit_intercept, tol=1e-7)
    dense.fit(X.toarray(), y, weights)
    assert dense.solver_ in ("newton", "newton_cg")
    optimum = dense.certificate_.objective
    assert abs(certificate.objective - optimum) <= certificate.gap + dense.certificate_.gap
    # Strong convexity: strength/2 ||w - w*||^2 is at most the gap.
    distance = np.linalg.norm(found.coef[:, 0] - dense.coef_[0])
    assert distance**2 <= 2 * certificate.gap / strength + 1e-12


@pytest.mark.parametrize("tol", [1e-3, 1e-4, 1e-6])
def test_sparse_fits_agree_with_dense_ones_whichever_way_they_end(tol):
    X, y = rows_of_words(3)
    sparse = LogisticRegression(tol=tol).fit(X, y)
    dense = LogisticRegression(tol=1e-8).fit(X.toarray(), y)
    assert sparse.verify(X, y)
    assert sparse.explain().plan.chosen == "entropy_dual_descent"
    off = sparse.predict_proba(X) - dense.predict_proba(X)
    assert np.abs(off).max() <= 10 * tol


@pytest.mark.parametrize("fit_intercept", [False, True])
def test_a_start_at_the_answer_saves_most_sweeps(fit_intercept):
    X, y = rows_of_words(7)
    problem = problem_of(X, y, 3.0, fit_intercept)
    cold = solved(problem, 1e-7)
    warm = solved(problem, 1e-7, start=cold.coef, start_intercept=cold.intercept)
    assert warm.status is Status.CONVERGED
    assert warm.n_iter <= cold.n_iter / 2
    assert np.abs(warm.coef - cold.coef).max() <= 1e-3


def test_weak_penalties_are_left_to_newton():
    X, y = rows_of_words(4, n=3000)
    model = LogisticRegression(C=1e8).fit(X, y)
    assert model.verify(X, y)
    assert [stage[0] for stage in model._solution_facts["stages"]] == ["newton_cg"]


def test_slow_sweeps_hand_over_to_newton_which_starts_where_they_end(monkeypatch):
    starts, solve = [], NewtonCG.solve

    def watched(self, problem, options, monitor):
        starts.append((options.start, options.start_intercept))
        return solve(self, problem, options, monitor)

    monkeypatch.setattr(NewtonCG, "solve", watched)
    X, y = rows_of_words(5)
    problem = problem_of(10 * X, y, 0.05)
    slow = solved(problem, 1e-9, has_fallback=True)
    assert slow.status is Status.HANDED_OVER
    alone = solved(problem, 1e-9)
    assert alone.n_iter > slow.n_iter
    plan = make_plan(problem)
    assert (plan.chosen, plan.fallbacks[0]) == ("entropy_dual_descent", "newton_cg")
    found = execute(problem, plan, Options(tol=1e-9), Monitor())
    first, second = found.stages
    assert (first.solver, first.status) == ("entropy_dual_descent", Status.HANDED_OVER)
    assert (second.solver, second.status) == ("newton_cg", Status.CONVERGED)
    assert first.n_iter == slow.n_iter
    assert second.gap < first.gap
    assert found.solver == "newton_cg"
    ((start, level),) = starts
    assert np.array_equal(start, slow.coef)
    assert np.array_equal(level, slow.intercept)


def test_folds_hand_over_too():
    """Texts of more words than there are texts, from next to no penalty to a strong one."""
    n, d, words = 200, 50_000, 40
    draw = np.random.default_rng(0)
    share = 1 / (5 + np.arange(d))
    places = draw.choice(d, size=n * words, p=share / share.sum())
    X = sp.csr_array((np.ones(n * words), (np.repeat(np.arange(n), words), places)), shape=(n, d))
    z = X @ draw.standard_normal(d)
    options = {"Cs": [1e-4, 1.0, 1e4], "l1_ratios": (0,), "use_legacy_attributes": False}
    model = LogisticRegressionCV(cv=3, scoring="neg_log_loss", **options).fit(X, z > np.median(z))
    # A warning would be an error: all fits are proven, long before the limit of steps.
    assert model.explain().plan.chosen == "entropy_dual_descent"
    assert model.n_iter_.max() < model.max_iter
    assert model.verify(X, z > np.median(z))


def test_a_solver_asked_for_by_name_hands_over_to_nobody():
    X, y = rows_of_words(5)
    for name in ("entropy_dual_descent", "newton_cg"):
        model = LogisticRegression(C=2.0, solver=name, max_iter=5000).fit(X, y)
        assert [stage[0] for stage in model._solution_facts["stages"]] == [name]
        assert model.verify(X, y)


@pytest.mark.parametrize(
    ("loss", "penalty", "is_sparse", "reason"),
    [
        (Logistic(), L2(1.0), False, "needs sparse rows"),
        (Hinge(), L2(1.0), True, "needs the logistic loss of two classes"),
        (Logistic(), L1(1.0), True, "needs a quadratic penalty or none"),
        (Logistic(), L2(np.linspace(1.0, 2.0, 500)), True, "needs one positive strength"),
    ],
)
def test_only_logistic_losses_of_sparse_rows_with_one_strength_are_swept(
    loss, penalty, is_sparse, reason
):
    X, y = rows_of_words(6)
    problem = Problem(as_design(X if is_sparse else X.toarray()), y[:, None], loss, penalty)
    verdicts = {c.solver: c.verdict for c in make_plan(problem).candidates}
    assert verdicts["entropy_dual_descent"] == reason


@pytest.mark.grid(2)
@pytest.mark.parametrize("margin", [-800.0, -3.0, 0.0, 0.5, 40.0, 800.0])
@pytest.mark.parametrize("curvature", [0.0, 1e-3, 1.0, 1e4])
@pytest.mark.parametrize("q", [1e-12, 0.2, 1 - 1e-12])
def test_the_best_place_of_one_variable(margin, curvature, q):
    t = best_logit(margin, q, curvature, np.log(q / (1 - q)))
    slope = curvature * (1 / (1 + np.exp(-t)) - q) + margin + t
    if abs(t) < 34.0:
        assert abs(slope) <= 1e-4 * (1 + abs(margin))
    else:
        assert slope * t <= 0  # it would go on beyond the wall
