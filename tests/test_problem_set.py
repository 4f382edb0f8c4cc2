"""Many problems on the same rows: each member's solution is that of the member solved alone."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal

from trueline.design import AugmentedDesign, as_design
from trueline.losses import Logistic, Softmax, Squared, SquaredHinge
from trueline.penalties import L1, L2, ElasticNet, NoPenalty
from trueline.planner import execute, execute_set, make_plan, make_set_plans
from trueline.problem import Problem
from trueline.problem_set import Member, ProblemSet
from trueline.solution import Status
from trueline.solvers.base import Monitor, Options
from trueline.solvers.registry import SOLVERS

STRENGTHS = (0.01, 1.0, 100.0)
LOSSES = {"logistic": Logistic(), "squared hinge": SquaredHinge(), "softmax": Softmax()}
KINDS = {"dense": np.asarray, "sparse": sp.csr_array}


def rows(n=120, d=6, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) * (rng.random((n, d)) < 0.6)
    return X, X @ rng.standard_normal((d, 3)) + rng.standard_normal((n, 3))


def target_of(loss, scores):
    if "coupled" in loss.capabilities:
        return np.eye(3)[scores.argmax(axis=1)]
    if "quadratic" in loss.capabilities:
        return scores[:, :1]
    return np.where(scores[:, :1] > 0, 1.0, -1.0)


def fold_weights(n, folds=3, seed=None):
    """One array for each fold: zero for its held-out rows."""
    weights = [np.where(np.arange(n) % folds == f, 0.0, 1.0) for f in range(folds)]
    if seed is None:
        return weights
    given = np.random.default_rng(seed).integers(0, 3, n).astype(float)
    return [s * given for s in weights]


def make_set(loss, penalties, kind=np.asarray, weights=None, fit_intercept=True, n=120, d=6):
    X, scores = rows(n, d)
    y = target_of(loss, scores)
    weights = fold_weights(n) if weights is None else weights
    members = tuple(Member(y, penalty, s) for s in weights for penalty in penalties)
    return ProblemSet(as_design(kind(X)), loss, members, fit_intercept)


def alone(problem, tol=1e-12):
    return execute(problem, make_plan(problem), Options(tol=tol), Monitor())


def assert_each_as_alone(problems, tol=1e-12, rtol=1e-5, solver="auto"):
    found = execute_set(problems, make_set_plans(problems, solver), Options(tol=tol))
    assert len(found) == len(problems)
    for number, (problem, solution) in enumerate(zip(problems, found)):
        expected = alone(problem, tol)
        size = np.abs(expected.coef).max(initial=1e-3)
        assert_allclose(solution.coef, expected.coef, rtol=rtol, atol=rtol * size)
        assert_allclose(solution.intercept, expected.intercept, rtol=rtol, atol=rtol * size)
        assert solution.status.is_final, (number, solution.status)
        assert solution.stages
        assert_proven(problem, solution)
    return found


def assert_proven(problem, solution):
    """By the checker, which knows nothing of solvers, from the rows that count."""
    X = getattr(problem.design, "X", None)
    X = problem.design.toarray() if X is None else X
    data = X, problem.target, problem.weights
    certificate = solution.certificate
    assert certificate.verify(*data)
    assert certificate.gap <= max(solution.allowed, 1e-9 * certificate.objective)


# --- the set itself ---------------------------------------------------------------------------


def test_a_member_is_the_problem_of_the_rows_that_have_weight():
    problems = make_set(Logistic(), [L2(1.0)])
    X, y = problems.design.toarray(), problems.members[0].target
    for problem, s in zip(problems, fold_weights(len(y))):
        assert_array_equal(problem.design.toarray(), X[s > 0])
        assert_array_equal(problem.target, y[s > 0])
        assert problem.weights is None  # they are all one


def test_weights_that_differ_stay_with_their_rows():
    weights = fold_weights(120, seed=1)
    problems = make_set(Logistic(), [L2(1.0)], weights=weights)
    for problem, s in zip(problems, weights):
        assert_array_equal(problem.weights, s[s > 0])


def test_the_objective_is_that_of_all_rows_with_their_weights():
    problems = make_set(Softmax(), [L2(0.5)], weights=fold_weights(120, seed=1))
    rng = np.random.default_rng(2)
    W, b = rng.standard_normal((6, 3)), rng.standard_normal(3)
    for number, problem in enumerate(problems):
        whole = problems.on_all_rows(number).objective(W, b)
        assert problem.objective(W, b) == pytest.approx(whole, rel=1e-13)


def test_paths_go_from_strong_to_weak_penalties_on_the_same_rows():
    problems = make_set(Logistic(), [L2(a) for a in (1.0, 100.0, 10.0)])
    assert problems.paths() == [[1, 2, 0], [4, 5, 3], [7, 8, 6]]


def test_a_set_without_weights_uses_the_design_itself():
    X, scores = rows()
    y, design = target_of(Logistic(), scores), as_design(X)
    problems = ProblemSet(design, Logistic(), (Member(y, L2(1.0)),))
    assert problems[0].design is design


# --- solutions ------------------------------------------------------------------------------------


@pytest.mark.grid(2)
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("loss", LOSSES)
def test_each_solution_is_that_of_the_member_alone(loss, kind, weighted, fit_intercept):
    weights = fold_weights(120, seed=3 if weighted else None)
    penalties = [L2(a) for a in STRENGTHS]
    assert_each_as_alone(make_set(LOSSES[loss], penalties, KINDS[kind], weights, fit_intercept))


@pytest.mark.parametrize(
    ("loss", "penalty"),
    [
        (Squared(), L2(1.0)),
        (Squared(), L1(2.0)),
        (Squared(), NoPenalty()),
        (Logistic(), ElasticNet(1.0, 0.5)),
        (Logistic(), NoPenalty()),
    ],
)
def test_losses_and_penalties_of_every_kind_can_be_in_a_set(loss, penalty):
    assert_each_as_alone(make_set(loss, [penalty]), tol=1e-10)


@pytest.mark.grid(2)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("ratio", [0.5, 1.0])
def test_several_classes_with_absolute_values_share_a_hessian(ratio, fit_intercept, weighted):
    weights = fold_weights(120, seed=3 if weighted else None)
    penalties = [ElasticNet(a, ratio) if ratio < 1 else L1(a) for a in (0.3, 10.0, 3.0)]
    problems = make_set(Softmax(), penalties, weights=weights, fit_intercept=fit_intercept)
    found = assert_each_as_alone(problems, tol=1e-8, rtol=1e-3)
    assert all("share" in solution.notes[0] for solution in found)


def test_penalties_of_different_kinds_can_be_in_one_set():
    assert_each_as_alone(make_set(Logistic(), [L2(1.0), L1(1.0)]), tol=1e-9, rtol=1e-4)


@pytest.mark.parametrize("kind", KINDS)
def test_more_columns_than_rows(kind):
    problems = make_set(Logistic(), [L2(a) for a in STRENGTHS], KINDS[kind], n=60, d=90)
    assert_each_as_alone(problems)


@pytest.mark.parametrize("name", ["newton", "newton_cg", "gradient_descent"])
def test_a_solver_that_was_named_solves_all_members(name):
    problems = make_set(Logistic(), [L2(10.0), L2(100.0)])
    for plan in make_set_plans(problems, name):
        assert plan.chosen == name
    found = execute_set(problems, make_set_plans(problems, name), Options(tol=1e-8))
    assert {stage.solver for solution in found for stage in solution.stages} == {name}


def test_targets_may_differ_between_members():
    X, scores = rows()
    signs = np.where(scores > 0, 1.0, -1.0)
    members = tuple(Member(signs[:, [t]], L2(a)) for t in range(3) for a in STRENGTHS)
    assert_each_as_alone(ProblemSet(as_design(X), Logistic(), members))


def test_a_start_is_used():
    """From its own solution a member has nothing left to do."""
    problems = make_set(Logistic(), [L2(1.0)])
    first = execute_set(problems, make_set_plans(problems), Options(tol=1e-9))
    again = tuple(
        member._replace(start=(solution.coef, solution.intercept))
        for member, solution in zip(problems.members, first)
    )
    problems = ProblemSet(problems.design, problems.loss, again)
    second = execute_set(problems, make_set_plans(problems), Options(tol=1e-9))
    for before, after in zip(first, second):
        assert after.n_iter < before.n_iter


def test_members_that_end_early_are_not_solved_by_others():
    problems = make_set(Logistic(), [L2(1e-6)])
    plans = make_set_plans(problems, "gradient_descent")
    for solution in execute_set(problems, plans, Options(tol=1e-12, max_iter=2)):
        assert solution.status is Status.MAX_ITER
        assert [stage.solver for stage in solution.stages] == ["gradient_descent"]


def test_an_answer_that_is_not_proven_is_solved_by_itself(monkeypatch):
    """A solver that fails leaves the members to the others, and the stages say so."""
    problems = make_set(Logistic(), [L2(1.0)])
    name = make_set_plans(problems)[0].chosen
    solver = type(SOLVERS[name])
    solve_set = solver.solve_set

    def fail(self, problems, options):
        found = solve_set(self, problems, options)
        for solution in found:
            solution.coef, solution.proof, solution.tolerance = 1.1 * solution.coef, None, None
        return found

    monkeypatch.setattr(solver, "solve_set", fail)
    for solution in assert_each_as_alone(problems):
        assert len(solution.stages) > 1
        assert solution.stages[0].gap > solution.allowed >= solution.stages[-1].gap


def test_the_plan_says_how_many_problems_are_solved_together():
    problems = make_set(Logistic(), [L2(1.0), L2(2.0)])
    assert "6 problems on these rows" in str(make_set_plans(problems)[0])


def test_one_problem_is_planned_as_it_is_alone():
    X, scores = rows()
    y = target_of(Logistic(), scores)
    problem = Problem(as_design(X), y, Logistic(), L2(1.0))
    problems = ProblemSet(problem.design, problem.loss, (Member(y, problem.penalty),))
    assert make_set_plans(problems) == [make_plan(problem)]


@pytest.mark.grid(2)
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_all_strengths_of_ridge_regression_from_one_krylov_space(kind, weighted, fit_intercept):
    weights = fold_weights(120, seed=3 if weighted else None)
    penalties = [L2(a) for a in (0.1, 1e4, 10.0)]
    problems = make_set(Squared(), penalties, KINDS[kind], weights, fit_intercept)
    signs = np.where(rows()[1] > 0, 1.0, -1.0)  # several targets, each with steps of its own
    members = tuple(member._replace(target=signs) for member in problems.members)
    problems = ProblemSet(problems.design, problems.loss, members, fit_intercept)
    found = assert_each_as_alone(problems, tol=1e-10, solver="conjugate_gradient")
    assert {stage.solver for one in found for stage in one.stages} == {"conjugate_gradient"}
    assert len({one.n_iter for one in found}) == 1


@pytest.mark.parametrize("k", [1, 3, 5, 7, 11])
@pytest.mark.parametrize("kind", KINDS)
def test_products_with_the_hessians_of_several_problems(kind, k):
    X, _ = rows()
    rng = np.random.default_rng(k)
    H, V, level = rng.random((120, k)), rng.standard_normal((6, k)), rng.standard_normal(k)
    H[:9] = 0.0
    for design, A in (
        (as_design(KINDS[kind](X)), X),
        (
            AugmentedDesign(as_design(KINDS[kind](X[:, :-1])), 2.0),
            np.c_[X[:, :-1], np.full(120, 2.0)],
        ),
    ):
        Z = H * (A @ V + level)
        image, total = design.curved_product(H, V, level)
        assert_allclose(image, A.T @ Z, rtol=1e-12, atol=1e-12)
        assert_allclose(total, Z.sum(axis=0), rtol=1e-12)


@pytest.mark.grid(2)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("loss", ["logistic", "squared hinge"])
@pytest.mark.parametrize(("kind", "d"), [("dense", 6), ("dense", 140), ("sparse", 6)])
def test_members_may_name_few_of_the_rows(loss, kind, d, fit_intercept, weighted):
    n, loss = 480, LOSSES[loss]
    X, scores = rows(n, d)
    y, draw = target_of(loss, scores), np.random.default_rng(1)
    members = []
    for size in (200, 300, 480):
        chosen = None if size == n else draw.permutation(n)[:size]
        own = y if chosen is None else y[chosen]
        s = draw.uniform(0.5, 2.0, size) if weighted else None
        members += [Member(own, L2(strength), s, rows=chosen) for strength in (0.1, 10.0)]
    problems = ProblemSet(as_design(KINDS[kind](X)), loss, tuple(members), fit_intercept)
    assert problems[0].n_samples == 200
    # The classes are separated by 140 columns: at 1e-12 of the constant's objective is rounding.
    assert_each_as_alone(problems, tol=1e-12 if d < 100 else 1e-10, solver="newton_cg")


def test_common_rows_leave_the_problems_as_they_are():
    X, scores = rows()
    y = target_of(Logistic(), scores)
    chosen = np.array([7, 3, 50, 90, 11])
    given = ProblemSet(
        as_design(X), Logistic(), (Member(y, L2(1.0)), Member(y[chosen], L2(1.0), rows=chosen))
    )
    common = given.on_common_rows()
    W, b = np.linspace(-1, 1, 6)[:, None], np.array([0.3])
    for number in range(2):
        expected = given[number].objective(W, b)
        assert_allclose(common[number].objective(W, b), expected, rtol=1e-14)
        assert common[number].n_samples == given[number].n_samples


def test_solvers_for_whole_sets_take_members_on_few_rows_one_by_one():
    X, scores = rows()
    y, chosen = target_of(Squared(), scores), np.arange(40)
    members = tuple(Member(y[chosen], L2(a), rows=chosen) for a in STRENGTHS)
    problems = ProblemSet(as_design(X), Squared(), members)
    assert_each_as_alone(problems, solver="conjugate_gradient")
