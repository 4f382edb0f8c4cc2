"""Coordinate descent on the dual, and conjugate gradients on the face where it settles."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.exceptions import ConvergenceWarning

from trueline import LinearSVC, LinearSVR
from trueline.design import AugmentedDesign, as_design
from trueline.losses import (
    EpsilonInsensitive,
    Hinge,
    Huber,
    SquaredEpsilonInsensitive,
    SquaredHinge,
)
from trueline.penalties import L2
from trueline.problem import Problem
from trueline.solution import Status
from trueline.solvers.base import Monitor, Options
from trueline.solvers.dual_coordinate_descent.box import face_of, minimise_on, status_of
from trueline.solvers.dual_coordinate_descent.kernels import own_gap, visiting_order
from trueline.solvers.dual_coordinate_descent.rows import Rows
from trueline.solvers.dual_coordinate_descent.solver import DualCoordinateDescent
from trueline.trace import Trace


def dual_value(X, constant, terms, beta):
    """The function that the sweeps minimise, written out."""
    w = np.append(X.T @ beta, constant * beta.sum())
    t, e, h = terms[:, :3].T
    return 0.5 * w @ w + np.sum(e * np.abs(beta) + 0.5 * h * beta**2 - t * beta)


def random_terms(draw, X, constant, e, h):
    n = len(X)
    squares = (X**2).sum(axis=1) + constant**2
    columns = [draw.normal(size=n), np.full(n, e), np.full(n, h), np.full(n, -1.0), np.full(n, 2.0)]
    return np.stack([*columns, squares + h], axis=1)


@settings(deadline=None, max_examples=60)
@given(
    seed=st.integers(0, 10_000),
    is_sparse=st.booleans(),
    constant=st.sampled_from([0.0, 1.0, 30.0]),
    e=st.sampled_from([0.0, 0.1]),
    h=st.sampled_from([0.0, 0.5]),
)
def test_a_step_on_the_face_stays_on_it_and_never_rises(seed, is_sparse, constant, e, h):
    draw = np.random.default_rng(seed)
    n, d = draw.integers(2, 30, size=2)
    X = draw.normal(size=(n, d)) * (draw.random((n, d)) < 0.5)
    terms = random_terms(draw, X, constant, e, h)
    beta = np.clip(draw.normal(size=n), -1.0, 2.0) * (draw.random(n) < 0.8)
    design = AugmentedDesign(as_design(sp.csr_array(X) if is_sparse else X), constant)
    rows = Rows(design)
    w = rows.weighted_sum(np.arange(n), beta)
    status = status_of(beta, terms)
    before, old = dual_value(X, constant, terms, beta), beta.copy()
    scores = rows.scores(np.arange(n), w)
    minimise_on(rows, face_of(status, terms), terms, beta, w, scores, 1e-4)
    assert dual_value(X, constant, terms, beta) <= before + 1e-12 * (1 + abs(before))
    assert np.allclose(w, np.append(X.T @ beta, constant * beta.sum()), atol=1e-10)
    assert (beta >= -1.0).all()
    assert (beta <= 2.0).all()
    fixed = np.abs(status) != 1
    assert np.array_equal(beta[fixed], old[fixed])
    if e > 0:  # no variable passes the kink
        assert (beta * old >= 0).all()


@pytest.mark.parametrize(
    "loss", [EpsilonInsensitive(0.1), SquaredEpsilonInsensitive(0.1), Huber(0.5)]
)
@pytest.mark.parametrize(
    ("is_sparse", "is_watched", "most"),
    # Sparse rows that nobody watches are swept without conjugate gradients, which read the rows
    # twenty times as often.
    [(True, True, 60), (False, False, 60), (True, False, 120)],
)
def test_tight_gaps_take_few_sweeps(loss, is_sparse, is_watched, most):
    draw = np.random.default_rng(1)
    X = sp.random_array((300, 400), density=0.05, rng=draw, format="csr")
    y = X @ draw.normal(size=400) + draw.normal(size=300)
    weights = draw.uniform(0.5, 2.0, 300)
    design = AugmentedDesign(as_design(X if is_sparse else X.toarray()), 1.0)
    problem = Problem(design, y[:, None], loss, L2(1.0), False, weights)
    monitor = Monitor(Trace(enabled=is_watched))
    found = DualCoordinateDescent().solve(problem, Options(tol=1e-11), monitor)
    assert found.proof.gap <= 1e-10 * problem.objective(0 * found.coef, np.zeros(1))
    assert found.n_iter < most


@pytest.mark.parametrize("count", [0, 1, 15, 16, 17, 1000])
@pytest.mark.parametrize("constant", [0.0, 1.0])
@pytest.mark.parametrize("entries", [1000, 10_000_000])
def test_every_row_is_visited_once(count, constant, entries):
    state = np.array([7], dtype=np.uint64)
    order = visiting_order(count, entries, constant, state)
    assert np.array_equal(np.sort(order), np.arange(count))
    if count == 1000:
        assert not np.array_equal(order, visiting_order(count, entries, constant, state))


def test_sweeps_in_one_call_find_what_single_sweeps_find():
    draw = np.random.default_rng(5)
    X = sp.random_array((200, 150), density=0.1, rng=draw, format="csr")
    y = np.sign(X @ draw.normal(size=(150, 3)) + 0.1)
    for loss in (Hinge(), SquaredHinge()):
        problem = Problem(AugmentedDesign(as_design(X), 1.0), y, loss, L2(0.5), False)
        found = []
        for monitor in (Monitor(), Monitor(Trace(enabled=True))):
            found.append(DualCoordinateDescent().solve(problem, Options(tol=1e-9), monitor))
            goal = 1e-9 * problem.objective(0 * found[-1].coef, np.zeros(3))
            assert found[-1].status is Status.CONVERGED
            assert found[-1].proof.gap <= goal
        assert np.allclose(found[0].coef, found[1].coef, atol=1e-3)


def test_rows_that_resemble_their_neighbours_take_no_more_sweeps_than_in_any_other_order():
    draw = np.random.default_rng(0)
    kinds = np.repeat(np.arange(40), 25)  # of each kind of row all are neighbours
    centres = draw.random((40, 300)) < 0.05
    X = centres[kinds] * (draw.random((1000, 300)) < 0.8) + (draw.random((1000, 300)) < 0.01)
    X = sp.csr_array(X / np.maximum(1, np.sqrt((X**2).sum(axis=1, keepdims=True))))
    y = np.where(draw.random(1000) < 0.3, -1.0, 1.0) * np.where(kinds % 2, 1.0, -1.0)

    def sweeps(rows):
        design = as_design(X[rows])
        problem = Problem(design, y[rows, None], SquaredHinge(), L2(1.0), False)
        found = DualCoordinateDescent().solve(problem, Options(tol=1e-9), Monitor())
        assert found.proof.gap <= 1e-9 * problem.objective(0 * found.coef, np.zeros(1))
        return found.n_iter

    assert sweeps(np.arange(1000)) <= 1.2 * sweeps(draw.permutation(1000))


@pytest.mark.parametrize(
    "loss",
    [EpsilonInsensitive(0.1), SquaredEpsilonInsensitive(0.1), Huber(0.5), Hinge(), SquaredHinge()],
)
def test_what_rows_add_to_the_gap_is_that_of_loss_and_conjugate(loss):
    draw = np.random.default_rng(3)
    y = np.where(draw.random(50) < 0.5, -1.0, 1.0) if "margins" in loss.capabilities else None
    y = draw.normal(size=50) if y is None else y
    e, h, low, high = loss.dual_boxes(y)
    z, beta = 2 * draw.normal(size=50), np.clip(draw.normal(size=50), -high, -low)
    terms = np.stack([y, e, h, -high, -low, h + 1.0], axis=1)
    own = [own_gap(z[i], beta[i], terms, i) for i in range(50)]
    u = -beta[:, None]
    gaps = loss.value(y[:, None], z[:, None]) + loss.conjugate(y[:, None], u) - u * z[:, None]
    assert np.allclose(own, gaps[:, 0], atol=1e-12)
    assert min(own) >= -1e-12


@pytest.mark.parametrize("loss", [SquaredEpsilonInsensitive(0.1), SquaredHinge()])
def test_a_constant_in_all_rows_does_not_hold_up_the_sweeps(loss):
    draw = np.random.default_rng(4)
    X = sp.random_array((6000, 4000), density=0.01, rng=draw, format="csr")
    X = sp.diags_array(1 / np.sqrt(np.maximum(X.multiply(X).sum(axis=1), 1e-9))) @ X
    y = X @ draw.normal(size=4000) + 0.3 * draw.normal(size=6000)
    y = np.sign(y) if "margins" in loss.capabilities else y
    problem = Problem(AugmentedDesign(as_design(X), 1.0), y[:, None], loss, L2(1.0), False)
    found = DualCoordinateDescent().solve(problem, Options(tol=1e-6), Monitor())
    assert found.proof.gap <= 1e-6 * problem.objective(0 * found.coef, np.zeros(1))
    assert found.n_iter <= 40  # neighbours that always meet in the same order take 80


def test_sparse_and_dense_rows_agree_with_an_exact_solver():
    draw = np.random.default_rng(2)
    X = sp.random_array((120, 30), density=0.3, rng=draw, format="csr")
    y = X @ draw.normal(size=30) + draw.standard_t(2, size=120)
    exact = LinearSVR(epsilon=0.2, solver="interior_point").fit(X, y)
    for given_X in (X, X.toarray()):
        model = LinearSVR(
            epsilon=0.2, tol=1e-9, max_iter=3000, solver="dual_coordinate_descent"
        ).fit(given_X, y)
        assert np.allclose(model.coef_, exact.coef_, atol=1e-5)
        assert model.verify(given_X, y)


def test_rows_of_zeros_do_not_hold_up_the_proof():
    X = sp.csr_array(np.array([[1.0, 0.0], [0.0, 0.0], [0.0, 2.0], [0.0, 0.0]]))
    y = np.array([1.0, 5.0, -1.0, -3.0])
    model = LinearSVR(fit_intercept=False, tol=1e-8, solver="dual_coordinate_descent").fit(X, y)
    assert model.certificate_.gap <= 1e-9
    assert model.verify(X, y)


def test_the_answer_at_the_limit_is_no_passing_point_of_the_sweeps():
    """Of long rows w sways from sweep to sweep; where they end early their mean is the answer."""
    rng = np.random.default_rng(0)
    X = sp.random_array((400, 300), density=0.05, rng=rng, format="csr")
    X.data = np.round(np.exp(rng.normal(2, 1.5, X.nnz))) + 1
    y = X @ rng.standard_normal(300) + 200 * rng.standard_normal(400) > 0
    model = LinearSVC(loss="hinge", max_iter=48, solver="dual_coordinate_descent")
    with pytest.warns(ConvergenceWarning):
        model.fit(X, y)
    assert model.verify(X, y)

    def objective(t):
        slack = np.maximum(0.0, 1 - np.where(y, t, -t) * model.decision_function(X))
        return slack.sum() + 0.5 * t**2 * (np.sum(model.coef_**2) + model.intercept_[0] ** 2)

    assert objective(1.0) <= min(objective(0.9), objective(1.1), objective(0.5))
