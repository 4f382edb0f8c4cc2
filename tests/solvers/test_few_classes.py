"""Newton steps for the softmax on small tables, and proofs that wait to be asked for."""

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose

from trueline import LogisticRegression
from trueline.design import as_design
from trueline.losses import Softmax
from trueline.penalties import L1, L2, ElasticNet
from trueline.problem import Problem
from trueline.solution import Status
from trueline.solvers.base import Monitor, Options
from trueline.solvers.pending import PendingTangent
from trueline.solvers.proximal_newton import few_classes
from trueline.solvers.proximal_newton.few_classes import solve_few_classes


def table(kind):
    rng = np.random.default_rng(3)
    X = rng.normal(size=(90, 4))
    y = (X @ rng.normal(size=(4, 3)) + rng.gumbel(size=(90, 3))).argmax(axis=1)
    if kind == "dependent":
        X = np.column_stack([X, X[:, 0] + X[:, 1], X[:, 2], np.ones(90)])
    if kind == "far":
        X = X * [1e-3, 1.0, 1e3, 1.0] + [0.0, 1e2, 0.0, -50.0]
    if kind == "dummies":
        X = np.column_stack([X[:, :2], np.eye(4)[rng.integers(4, size=90)]])
    return X, y


@pytest.mark.parametrize("kind", ["plain", "dependent", "far", "dummies"])
@pytest.mark.parametrize("penalty", [L2(1.0), L1(1.0), ElasticNet(2.0, 0.5), L2(1e-3)])
@pytest.mark.parametrize("has_intercept", [True, False])
def test_the_optimality_conditions_hold(kind, penalty, has_intercept):
    """-X^T S u is a subgradient of the penalty, and the slopes by the intercepts vanish."""
    X, y = table(kind)
    s, Y = np.random.default_rng(1).uniform(0.5, 2.0, 90), np.eye(3)[y]
    problem = Problem(as_design(X), Y, Softmax(), penalty, has_intercept, s)
    found = solve_few_classes(problem, Options(tol=1e-9), Monitor(), "newton_cg")
    if kind == "far" and found is None:  # not proven: other steps take over
        return
    assert found is not None
    assert found.status is Status.CONVERGED
    W, b = found.coef, found.intercept
    u = s[:, None] * Softmax().gradient(Y, X @ W + b)
    g, size = X.T @ u + penalty.curvature * W, np.sqrt(s @ X**2)[:, None] * np.linalg.norm(u)
    at_zero = np.maximum(np.abs(g) - penalty.linear, 0)
    excess = np.where(W == 0, at_zero, g + penalty.linear * np.sign(W))
    assert (np.abs(excess) <= 1e-4 * size).all()
    if has_intercept:
        assert_allclose(u.sum(axis=0), 0.0, atol=1e-6 * np.abs(u).sum())
    # What rounding hides of columns far from zero, the intercepts' reach makes larger.
    hidden = 1e-6 * found.certificate.objective if kind == "far" else 0.0
    assert found.certificate.gap <= 1e-8 * len(X) + hidden


@pytest.mark.parametrize("penalty", [L2(1.0), L1(1.0)])
def test_the_loop_before_it_is_compiled_is_the_same(penalty, monkeypatch):
    X, y = table("plain")
    problem = Problem(as_design(X), np.eye(3)[y], Softmax(), penalty, True)
    found = []
    body = few_classes.minimise.py_func
    kernels = few_classes._derivatives, few_classes._hessian
    for form in few_classes.minimise, body:
        monkeypatch.setattr(few_classes, "minimise", form)
        for kernel in kernels if form is body else ():
            monkeypatch.setattr(few_classes, kernel.__name__, kernel._whole)
        found.append(solve_few_classes(problem, Options(tol=1e-9), Monitor(), "newton_cg"))
    scores = [X @ one.coef + one.intercept for one in found]
    assert_allclose(scores[0], scores[1], atol=1e-5)


@pytest.mark.parametrize(
    "model",
    [
        LogisticRegression(),
        LogisticRegression(C=100.0),
        LogisticRegression(l1_ratio=1.0),
        LogisticRegression(l1_ratio=0.5, C=10.0),
        LogisticRegression(fit_intercept=False),
    ],
)
@pytest.mark.parametrize("kind", ["plain", "dependent", "far", "dummies"])
def test_what_is_said_before_a_proof_is_no_less_than_its_gap(model, kind, monkeypatch):
    X, y = table(kind)
    said = []
    bound = PendingTangent.bound

    def heard(self):
        said.append((bound(self), self.certificate().gap))
        return said[-1][0]

    monkeypatch.setattr(PendingTangent, "bound", heard)
    model.fit(X, y)
    assert said
    assert all(gap <= most for most, gap in said)


def test_a_pending_proof_has_data_of_its_own():
    X, y = table("plain")
    mine = X.copy()
    model = LogisticRegression().fit(mine, y)
    assert isinstance(model._certificate, PendingTangent)
    mine[:] = 0.0
    other = pickle.loads(pickle.dumps(model))
    assert model.verify(X, y)
    assert other.verify(X, y)
