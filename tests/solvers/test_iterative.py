"""The iterative solvers against closed forms, the textbook's own steps, and their certificates."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal

from trueline.design import DenseDesign, StandardizedDesign, as_design
from trueline.losses import Huber, Squared
from trueline.penalties import L1, L2, ElasticNet, NonNegative, NoPenalty
from trueline.problem import Problem
from trueline.solution import Status
from trueline.solvers.base import Facts, Monitor, Options
from trueline.solvers.first_order.stochastic_gradient import SCHEDULES, step_sizes
from trueline.solvers.iterative import largest_eigenvalue
from trueline.solvers.registry import SOLVERS
from trueline.trace import Trace

STOCHASTIC = ["stochastic_gradient", "mini_batch"]
TEXTBOOK = ["gradient_descent", *STOCHASTIC]
ALL = ["conjugate_gradient", "proximal_gradient", *TEXTBOOK]
N, D = 60, 4


def make_data(k=1, seed=0):
    """Rows with some zeros and an offset, targets with noise, weights with a zero."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(N, D)) * (rng.uniform(size=(N, D)) < 0.7) + [0.5, 0.0, 0.0, -0.5]
    Y = X @ rng.normal(size=(D, k)) + 1.5 + 0.3 * rng.normal(size=(N, k))
    s = rng.uniform(0.5, 2.0, size=N)
    s[3] = 0.0
    return X, Y, s


def make_problem(X, Y, penalty, *, loss=None, intercept=True, weights=None, sparse=False):
    design = as_design(sp.csr_array(X) if sparse else X)
    return Problem(design, Y, loss or Squared(), penalty, intercept, weights)


def closed_form(X, Y, penalty, intercept, weights):
    """Ridge by the normal equations of the design with a column of ones."""
    s = np.ones(len(X)) if weights is None else weights
    A = np.column_stack([X, np.ones(len(X))]) if intercept else X
    W = np.empty((A.shape[1], Y.shape[1]))
    curvature = np.broadcast_to(penalty.curvature, (X.shape[1], Y.shape[1]))
    for t in range(Y.shape[1]):
        H = A.T @ (s[:, None] * A)
        H[: X.shape[1], : X.shape[1]] += np.diag(curvature[:, t])
        W[:, t] = np.linalg.solve(H, A.T @ (s * Y[:, t]))
    return (W[:-1], W[-1]) if intercept else (W, np.zeros(Y.shape[1]))


def solve(name, problem, monitor=None, **options):
    return SOLVERS[name].solve(problem, Options(**options), monitor or Monitor())


# --- the right answer -----------------------------------------------------------------------------


@pytest.mark.grid(2)
@pytest.mark.parametrize("name", ["conjugate_gradient", "proximal_gradient", "gradient_descent"])
@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])
@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
@pytest.mark.parametrize("intercept", [False, True], ids=["origin", "intercept"])
@pytest.mark.parametrize(
    ("k", "penalty"),
    [
        (1, NoPenalty()),
        (1, L2(1e-3)),
        (1, L2(2.0)),
        (3, L2(np.array([0.1, 1.0, 10.0]))),
        (1, L2(np.array([[0.1], [1.0], [2.0], [5.0]]))),
    ],
    ids=["none", "weak", "strong", "per target", "per coefficient"],
)
def test_equals_the_closed_form(name, sparse, weighted, intercept, k, penalty):
    X, Y, s = make_data(k)
    s = s if weighted else None
    problem = make_problem(X, Y, penalty, intercept=intercept, weights=s, sparse=sparse)
    solution = solve(name, problem, tol=1e-13, max_iter=20_000)
    W, b = closed_form(X, Y, penalty, intercept, s)
    assert solution.status is Status.CONVERGED
    assert_allclose(solution.coef, W, atol=2e-6)
    assert_allclose(solution.intercept, b, atol=2e-6)
    certificate = solution.certificate
    assert problem.objective(*_point(solution)) - problem.objective(W, b) <= certificate.gap + 1e-12
    assert certificate.verify(problem.design.X, Y, s), str(certificate.verify(X, Y, s))


def _point(solution):
    return solution.coef, solution.intercept


@pytest.mark.grid(2)
@pytest.mark.parametrize("name", STOCHASTIC)
@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])
@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
def test_stochastic_methods_come_near(name, sparse, weighted):
    X, Y, s = make_data()
    s = s if weighted else None
    problem = make_problem(X, Y, L2(1.0), weights=s, sparse=sparse)
    solution = solve(name, problem, tol=1e-9, max_iter=100, random_state=0, batch_size=5)
    W, b = closed_form(X, Y, L2(1.0), True, s)
    assert solution.status is Status.MAX_ITER
    assert problem.objective(*_point(solution)) < 1.05 * problem.objective(W, b)
    assert solution.certificate.verify(problem.design.X, Y, s)


@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])
def test_wide_data_without_penalty_give_the_answer_of_least_norm(sparse):
    rng = np.random.default_rng(1)
    X, Y = rng.normal(size=(20, 50)) + 1.0, rng.normal(size=(20, 2))
    solution = solve(
        "conjugate_gradient", make_problem(X, Y, NoPenalty(), sparse=sparse), tol=1e-14
    )
    expected = np.linalg.pinv(X - X.mean(axis=0)) @ (Y - Y.mean(axis=0))
    assert_allclose(solution.coef, expected, atol=1e-8)


def test_the_answer_has_least_norm_when_columns_repeat():
    X, Y, _ = make_data()
    X = np.hstack([X, 3.0 * X[:, :2]])
    solution = solve("conjugate_gradient", make_problem(X, Y, NoPenalty()), tol=1e-12)
    expected = np.linalg.pinv(X - X.mean(axis=0)) @ (Y - Y.mean(axis=0))
    assert_allclose(solution.coef, expected, atol=1e-8)
    assert solution.status is Status.CONVERGED
    assert solution.certificate.kind == "row space"
    assert solution.certificate.verify(X, Y).holds


def test_columns_of_very_different_size_converge_in_few_steps():
    X, Y, _ = make_data()
    problem = make_problem(
        X * [1.0, 1e-4, 1e3, 1e6], Y, L2(np.array([[1.0], [1e-8], [1e6], [1e12]]))
    )
    solution = solve("conjugate_gradient", problem, tol=1e-12)
    assert solution.status is Status.CONVERGED
    assert solution.n_iter <= 2 * D


def test_a_constant_column_gets_nothing():
    X, Y, _ = make_data()
    X[:, 1] = 0.1
    solution = solve("conjugate_gradient", make_problem(X, Y, NoPenalty()), tol=1e-10)
    assert_allclose(solution.coef[1], 0.0, atol=1e-8)


@pytest.mark.grid(2)
@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])
@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
@pytest.mark.parametrize("loss", [Squared(), Huber(0.2)], ids=["squared", "huber"])
@pytest.mark.parametrize(
    "penalty",
    [
        L1(3.0),
        ElasticNet(3.0, 0.5),
        L2(1.0),
        NonNegative(L1(1.0)),
        NonNegative(L2(1.0)),
        NonNegative(ElasticNet(2.0, 0.3)),
    ],
    ids=lambda penalty: penalty.formula,
)
def test_proximal_gradient_satisfies_the_optimality_conditions(sparse, weighted, loss, penalty):
    X, Y, s = make_data(2)
    s = s if weighted else None
    problem = make_problem(X, Y, penalty, loss=loss, weights=s, sparse=sparse)
    solution = solve("proximal_gradient", problem, tol=1e-9)
    assert solution.status is Status.CONVERGED
    gradient, slope, _ = problem.loss_gradient(*_point(solution))
    # A minimiser is a fixed point of the proximal step, and its intercept has no slope.
    moved = penalty.prox(solution.coef - 1e-2 * gradient, 1e-2)
    assert_allclose(solution.coef, moved, atol=1e-4)
    assert_allclose(slope, 0.0, atol=1e-3)
    verification = solution.certificate.verify(problem.design.X, Y, s)
    assert verification, str(verification)


def test_proximal_gradient_solves_nonnegative_least_squares():
    from scipy.optimize import nnls

    X, Y, _ = make_data()
    problem = make_problem(X, Y, NonNegative(NoPenalty()), intercept=False)
    solution = solve("proximal_gradient", problem, tol=1e-12)
    assert solution.status is Status.CONVERGED
    assert_allclose(solution.coef[:, 0], nnls(X, Y[:, 0])[0], atol=1e-5)
    assert solution.certificate.verify(X, Y)


def test_zeros_of_the_lasso_are_exact():
    X, Y, _ = make_data()
    largest = np.abs((X - X.mean(axis=0)).T @ (Y - Y.mean(axis=0))).max()
    solution = solve("proximal_gradient", make_problem(X, Y, L1(1.001 * largest)))
    assert_array_equal(solution.coef, 0.0)
    assert solution.n_iter == 0


# --- the steps of the textbook --------------------------------------------------------------------


def iterates(name, problem, steps, **options):
    """Coefficients and intercepts after each iteration, as a callback sees them."""
    seen = []
    monitor = Monitor(callbacks=[lambda event: seen.append((event.coef, event.intercept))])
    solve(name, problem, monitor, max_iter=steps, tol=0.0, **options)
    return seen


@pytest.mark.parametrize("loss", [Squared(), Huber(0.5)], ids=["squared", "huber"])
def test_gradient_descent_takes_the_steps_of_the_textbook(loss):
    X, Y, s = make_data()
    problem = make_problem(X, Y, L2(0.7), loss=loss, weights=s)
    w, b, eta = np.zeros((D, 1)), np.zeros(1), 1e-3
    for coef, intercept in iterates("gradient_descent", problem, 3, eta0=eta):
        u = s[:, None] * loss.gradient(Y, X @ w + b)
        w, b = w - eta * (X.T @ u + 0.7 * w), b - eta * u.sum(axis=0)
        assert_allclose(coef, w, rtol=1e-12)
        assert_allclose(intercept, b, rtol=1e-12)


@pytest.mark.grid(2)
@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])
@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
@pytest.mark.parametrize("average", [False, True], ids=["last", "mean"])
@pytest.mark.parametrize("loss", [Squared(), Huber(0.5)], ids=["squared", "huber"])
def test_stochastic_gradient_takes_the_steps_of_the_textbook(sparse, weighted, average, loss):
    X, Y, s = make_data()
    weights = s if weighted else None
    problem = make_problem(X, Y, L2(0.7), loss=loss, weights=weights, sparse=sparse)
    s = s if weighted else np.ones(N)
    random, t = np.random.RandomState(7), 0
    w, b, w_sum, b_sum = np.zeros(D), 0.0, np.zeros(D), 0.0
    found = iterates(
        "stochastic_gradient", problem, 3, eta0=0.1, decay=0.01, average=average, random_state=7
    )
    for coef, intercept in found:
        for i in random.permutation(N):
            eta = 0.1 / (1 + 0.01 * t)
            u = N / s.sum() * s[i] * loss.gradient(Y[i, 0], X[i] @ w + b)
            w, b = w - eta * (u * X[i] + 0.7 / s.sum() * w), b - eta * u
            w_sum, b_sum, t = w_sum + w, b_sum + b, t + 1
        assert_allclose(coef[:, 0], w_sum / t if average else w, rtol=1e-9)
        assert_allclose(intercept[0], b_sum / t if average else b, rtol=1e-9)


def test_mini_batch_takes_the_steps_of_the_textbook():
    X, Y, s = make_data(2)
    problem = make_problem(X, Y, L2(0.7), weights=s)
    random, t, size = np.random.RandomState(3), 0, 7  # sixty rows: the last batch has four
    w, b = np.zeros((D, 2)), np.zeros(2)
    found = iterates(
        "mini_batch", problem, 2, eta0=0.1, schedule="sqrt", batch_size=size, random_state=3
    )
    for coef, intercept in found:
        order = random.permutation(N)
        for start in range(0, N, size):
            B = order[start : start + size]
            u = N / (s.sum() * len(B)) * s[B, None] * (X[B] @ w + b - Y[B])
            w_new = w - 0.1 / np.sqrt(1 + t) * (X[B].T @ u + 0.7 / s.sum() * w)
            w, b, t = w_new, b - 0.1 / np.sqrt(1 + t) * u.sum(axis=0), t + 1
        assert_allclose(coef, w, rtol=1e-10)
        assert_allclose(intercept, b, rtol=1e-10)


def test_a_penalty_that_wipes_out_the_coefficients_keeps_the_sums():
    # eta alpha / n = 1: the compiled steps keep w as a product whose scale becomes zero.
    X, Y, _ = make_data()
    problem = make_problem(X, Y, L2(600.0), intercept=False)
    w, w_sum, random = np.zeros(D), np.zeros(D), np.random.RandomState(0)
    for i in random.permutation(N):
        w = 0.0 * w - 0.1 * (X[i] @ w - Y[i, 0]) * X[i]
        w_sum = w_sum + w
    options = {"eta0": 0.1, "schedule": "constant", "random_state": 0}
    last = iterates("stochastic_gradient", problem, 1, **options)[0][0]
    mean = iterates("stochastic_gradient", problem, 1, average=True, **options)[0][0]
    assert_allclose(last[:, 0], w, rtol=1e-12)
    assert_allclose(mean[:, 0], w_sum / N, rtol=1e-12)


def test_schedules():
    t = np.arange(5)
    assert_allclose(step_sizes("constant", 2.0, 0.1, 0, 5), np.full(5, 2.0))
    assert_allclose(step_sizes("inverse", 2.0, 0.1, 0, 5), 2.0 / (1 + 0.1 * t))
    assert_allclose(step_sizes("sqrt", 2.0, 0.1, 0, 5), 2.0 / np.sqrt(1 + t))
    assert_allclose(step_sizes("sqrt", 2.0, 0.1, 2, 3), step_sizes("sqrt", 2.0, 0.1, 0, 5)[2:])


@pytest.mark.parametrize("name", STOCHASTIC)
@pytest.mark.parametrize("schedule", SCHEDULES)
def test_same_seed_same_answer(name, schedule):
    X, Y, _ = make_data()
    problem = make_problem(X, Y, L2(1.0))
    options = {"max_iter": 3, "schedule": schedule}
    first = solve(name, problem, random_state=4, **options)
    second = solve(name, problem, random_state=4, **options)
    other = solve(name, problem, random_state=5, **options)
    assert_array_equal(first.coef, second.coef)
    assert (first.coef != other.coef).any()


def test_rows_behind_another_design_take_the_general_path():
    X, Y, _ = make_data()
    offset, scale = X.mean(axis=0), np.full(D, 2.0)
    seen = StandardizedDesign(DenseDesign(X), offset, scale)
    options = {"max_iter": 2, "random_state": 0}
    found = solve("stochastic_gradient", Problem(seen, Y, Squared(), L2(1.0)), **options)
    plain = make_problem((X - offset) * scale, Y, L2(1.0))
    assert_allclose(found.coef, solve("stochastic_gradient", plain, **options).coef, rtol=1e-10)


# --- how it ended ---------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ALL)
def test_the_iteration_limit_is_visible(name):
    X, Y, _ = make_data()
    solution = solve(name, make_problem(X, Y, L2(1e-6)), tol=1e-14, max_iter=1, random_state=0)
    assert solution.status is Status.MAX_ITER
    assert not solution.status.is_final
    assert solution.n_iter == 1
    assert "max_iter" in solution.status.value
    assert solution.certificate.gap > 0
    assert solution.certificate.verify(X, Y)


@pytest.mark.parametrize("name", TEXTBOOK)
def test_too_large_a_step_diverges_and_says_so(name):
    X, Y, _ = make_data()
    problem = make_problem(X, Y, L2(1.0))
    options = {"eta0": 1e3, "schedule": "constant", "random_state": 0}
    solution = solve(name, problem, max_iter=2000, **options)
    assert solution.status is Status.DIVERGED
    assert "eta0" in solution.status.value
    assert solution.certificate.gap == np.inf


@pytest.mark.parametrize("name", ["conjugate_gradient", "proximal_gradient", "gradient_descent"])
def test_a_tolerance_beyond_rounding_stalls(name):
    X, Y, _ = make_data()
    solution = solve(name, make_problem(X, Y, L2(1.0)), tol=1e-40)
    assert solution.status is Status.STALLED
    assert solution.certificate.relative_gap < 1e-15
    assert solution.certificate.verify(X, Y)


@pytest.mark.parametrize("name", ALL)
def test_callbacks_stop_a_fit(name):
    X, Y, _ = make_data()
    monitor = Monitor(callbacks=[lambda event: event.iteration == 2])
    solution = solve(name, make_problem(X, Y, L2(1e-3)), monitor, tol=1e-30, random_state=0)
    assert solution.status is Status.STOPPED
    assert solution.n_iter == 2


@pytest.mark.parametrize("name", ALL)
def test_the_trace_tells_the_truth(name):
    X, Y, _ = make_data()
    problem = make_problem(X, Y, L2(0.5))
    seen = []
    monitor = Monitor(Trace(enabled=True), callbacks=[lambda e: seen.append(e)])
    solution = solve(name, problem, monitor, max_iter=5, tol=1e-30, random_state=0)
    trace = solution.trace
    assert_array_equal(trace["iteration"], np.arange(len(trace)))
    optimum = problem.objective(*closed_form(X, Y, L2(0.5), True, None))
    points = [problem.objective(event.coef, event.intercept) for event in seen]
    assert_allclose(trace["objective"][1:], points, rtol=1e-12)
    assert (trace["objective"] - trace["gap"] <= optimum * (1 + 1e-12)).all()
    assert (np.diff(trace["seconds"]) >= 0).all()


@pytest.mark.parametrize("name", ["gradient_descent", "conjugate_gradient"])
def test_the_objective_falls_with_every_step(name):
    X, Y, _ = make_data()
    monitor = Monitor(Trace(enabled=True))
    trace = solve(name, make_problem(X, Y, L2(0.5)), monitor, max_iter=50).trace
    assert (np.diff(trace["objective"]) <= 1e-12).all()


@pytest.mark.parametrize("name", ["conjugate_gradient", "proximal_gradient"])
def test_watching_changes_nothing(name):
    X, Y, _ = make_data()
    problem = make_problem(X, Y, L2(0.5))
    plain = solve(name, problem, max_iter=3, tol=1e-30)
    watched = solve(name, problem, Monitor(Trace(enabled=True)), max_iter=3, tol=1e-30)
    assert_array_equal(plain.coef, watched.coef)


@pytest.mark.parametrize("name", ALL)
def test_a_constant_target_needs_no_coefficients(name):
    X, _, _ = make_data()
    problem = make_problem(X, np.full((N, 1), 0.1), L2(1.0))
    solution = solve(name, problem, random_state=0, max_iter=20_000 if name[0] == "g" else None)
    assert_allclose(solution.coef, 0.0, atol=1e-2 if name in STOCHASTIC else 1e-8)
    if name not in TEXTBOOK:
        assert solution.n_iter == 0


@pytest.mark.parametrize("options", [{"schedule": "linear"}, {"batch_size": 0}], ids=str)
def test_bad_options_are_named(options):
    X, Y, _ = make_data()
    with pytest.raises(ValueError, match=next(iter(options))):
        solve("mini_batch", make_problem(X, Y, L2(1.0)), **options)


@pytest.mark.parametrize("name", ALL)
def test_costs_grow_with_the_data(name):
    X, Y, _ = make_data()
    small = SOLVERS[name].cost(Facts.of(make_problem(X, Y, L2(1.0))))
    large = SOLVERS[name].cost(
        Facts.of(make_problem(np.tile(X, (50, 10)), np.tile(Y, (50, 1)), L2()))
    )
    assert 0 < small.seconds < large.seconds
    assert small.memory < large.memory


@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
@pytest.mark.parametrize("ones", [False, True], ids=["X", "X and ones"])
def test_the_largest_eigenvalue(weighted, ones):
    X, _, s = make_data()
    s = s if weighted else np.ones(N)
    A = np.column_stack([X, np.ones(N)]) if ones else X
    exact = np.linalg.eigvalsh(A.T @ (s[:, None] * A))[-1]
    assert_allclose(largest_eigenvalue(as_design(X), s, ones), exact, rtol=1e-3)
