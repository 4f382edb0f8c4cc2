"""The laws of solvers: what they claim to solve, they solve, and what they prove is true.

The certificate comes first: a slow or imprecise answer with a true certificate is honest, a good
answer with a false one is not. Agreement with the known answer follows from a small gap.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from trueline.checks.book import EPS, LawBook, assert_at_most, assert_close
from trueline.checks.planted import KnownProblem
from trueline.checks.problems import known_problems
from trueline.solution import Solution, Status
from trueline.solvers.base import Event, Facts, Monitor, Options, Solver
from trueline.trace import Trace

SOLVER_LAWS = LawBook("solver")


def claims(solver: Solver, known: KnownProblem) -> bool:
    """Whether the solver says that it can solve the problem."""
    from trueline.solvers.registry import missing

    problem = known.problem
    pairs = missing(solver, problem.loss, problem.penalty) is None
    return pairs and solver.refuses(Facts.of(problem)) is None


@dataclass
class SolverPoints:
    """The problems, and the solver's solutions, each computed once.

    Attributes
    ----------
    problems : list of KnownProblem
    options : Options
    solutions : dict
        By the problem's name.
    modified : list of str
        What was found changed in the data after a solve.
    """

    problems: list[KnownProblem]
    options: Options
    solutions: dict[str, Solution] = field(default_factory=dict)
    modified: list[str] = field(default_factory=list)

    @classmethod
    def of(
        cls,
        solver: Solver,
        problems: Iterable[KnownProblem] | None = None,
        options: Options | None = None,
    ) -> SolverPoints:
        """The table of known problems; a textbook method need not finish, only be honest."""
        limit = 30 if solver.is_textbook else None
        options = options or Options(tol=1e-8, random_state=0, max_iter=limit)
        return cls(list(known_problems() if problems is None else problems), options)

    def claimed(self, solver: Solver) -> list[KnownProblem]:
        """The problems that the solver claims."""
        return [known for known in self.problems if claims(solver, known)]

    def solve(self, solver: Solver, known: KnownProblem) -> Solution:
        """Solve one problem afresh, and see whether the data are as they were."""
        problem = known.problem
        parts: dict[str, Any] = {
            "X": problem.design.toarray(),
            "y": problem.target,
            "weights": problem.weights,
        }
        before = {name: copy.copy(part) for name, part in parts.items()}
        solution = solver.solve(problem, self.options, Monitor())
        parts["X"] = problem.design.toarray()
        for name, part in parts.items():
            if part is not None and not np.array_equal(part, before[name]):
                self.modified.append(f"{name} of {known}")
        return solution

    def solved(self, solver: Solver) -> Iterator[tuple[KnownProblem, Solution]]:
        """Every claimed problem with its solution."""
        for known in self.claimed(solver):
            if known.name not in self.solutions:
                self.solutions[known.name] = self.solve(solver, known)
            yield known, self.solutions[known.name]


def _rounding(known: KnownProblem) -> float:
    """What plain evaluation of the optimum rounds by."""
    return 64 * EPS * (abs(known.optimum) + known.scale)


def _evaluation_rounding(known: KnownProblem, solution: Solution, reached: float) -> float:
    """What plain evaluation of the objective at a solution rounds by.

    With scores that are off by rho in norm, L/2 ||r||^2 is off by L (||r|| rho + rho^2 / 2), and a
    loss of slopes up to K by sqrt(S) K rho.
    """
    problem = known.problem
    largest = np.abs(problem.design.toarray()) @ np.abs(solution.coef)
    sizes = largest + np.abs(solution.intercept) + np.abs(problem.target)
    rho = 2 * (problem.n_features + 4) * EPS * np.sqrt(problem.weigh(sizes**2).sum())
    bound = problem.loss.curvature_bound
    if not np.isfinite(bound):
        steepest = problem.loss.slope_bound * np.sqrt(problem.total_weight)
        return float(steepest * rho + 64 * EPS * abs(reached))
    return float(
        bound * (np.sqrt(2 * abs(reached) / bound) * rho + rho**2) + 64 * EPS * abs(reached)
    )


@SOLVER_LAWS.law()
def something_is_claimed(solver: Solver, points: SolverPoints) -> None:
    """The table holds at least one problem that the solver claims."""
    assert points.claimed(solver), "no problem of the table; give problems=... of its own"


@SOLVER_LAWS.law()
def solution_is_complete(solver: Solver, points: SolverPoints) -> None:
    """Every solution has finite coefficients of the right shapes, a status and a certificate."""
    for known, solution in points.solved(solver):
        where = f"{known}: "
        assert solution.coef.shape == known.coef.shape, where + f"coef {solution.coef.shape}"
        assert solution.intercept.shape == known.intercept.shape, where + "shape of the intercept"
        assert solution.coef.dtype == np.float64, where + f"dtype {solution.coef.dtype}"
        assert np.isfinite(solution.coef).all(), where + f"coef {solution.coef!r}"
        assert np.isfinite(solution.intercept).all(), where + f"intercept {solution.intercept!r}"
        assert isinstance(solution.status, Status), where + f"status {solution.status!r}"
        # Handing the problem over to another solver is allowed, not saying so is not.
        names_itself = solution.solver == solver.name or solution.notes
        assert names_itself, where + f"it names the solver {solution.solver!r} without a note"
        assert solution.certificate is not None, where + "no certificate"


@SOLVER_LAWS.law()
def certified_objective_is_the_objective(solver: Solver, points: SolverPoints) -> None:
    """certificate.objective = Problem.objective(coef, intercept), to the stated rounding."""
    for known, solution in points.solved(solver):
        certificate = solution.certificate
        assert certificate is not None
        assert np.array_equal(certificate.coef, solution.coef), f"{known}: other coefficients"
        actual = known.problem.objective(solution.coef, solution.intercept)
        slack = certificate.objective_rounding + _evaluation_rounding(known, solution, actual)
        assert_close(certificate.objective, actual, slack, problem=known.name)


@SOLVER_LAWS.law()
def certificate_is_true(solver: Solver, points: SolverPoints) -> None:
    """lower_bound <= optimum, and objective - optimum <= gap: the known answer refutes a lie."""
    for known, solution in points.solved(solver):
        certificate = solution.certificate
        assert certificate is not None
        slack = certificate.objective_rounding + _rounding(known)
        assert_at_most(certificate.lower_bound, known.optimum, _rounding(known), problem=known.name)
        reached = known.problem.objective(solution.coef, solution.intercept)
        assert_at_most(reached - known.optimum, certificate.gap, slack, problem=known.name)


@SOLVER_LAWS.law()
def certificate_verifies(solver: Solver, points: SolverPoints) -> None:
    """certificate.verify(X, y, sample_weight) holds: the independent checker agrees."""
    for known, solution in points.solved(solver):
        problem = known.problem
        assert solution.certificate is not None
        verification = solution.certificate.verify(known.X, problem.target, problem.weights)
        assert verification, f"{known}:\n{verification}"


@SOLVER_LAWS.law()
def finished_means_within_the_tolerance(solver: Solver, points: SolverPoints) -> None:
    """If the status is final: gap <= tol times the objective of the best constant model.

    Certificates claim up to a tenth more than solvers stop at: whoever checks rounds differently.
    Of coupled scores they claim nothing below 1e-10 of the objective.
    """
    for known, solution in points.solved(solver):
        if solution.status.is_final:
            assert solution.certificate is not None
            tolerance = 1.15 * points.options.tol * known.scale
            problem = known.problem
            if "coupled" in problem.loss.capabilities:
                tolerance += 1e-10 * solution.certificate.objective
            assert_at_most(
                solution.certificate.gap, tolerance, _rounding(known), problem=known.name
            )


@SOLVER_LAWS.law()
def direct_solvers_finish(solver: Solver, points: SolverPoints) -> None:
    """A direct solver solves what it claims; one that is no textbook method converges."""
    if solver.is_textbook:
        return
    for known, solution in points.solved(solver):
        assert solution.status.is_final, f"{known}: {solution.status}, {solution.certificate}"


@SOLVER_LAWS.law()
def answer_is_better_than_no_model(solver: Solver, points: SolverPoints) -> None:
    """objective <= objective of the best constant model, also when the fit did not finish."""
    for known, solution in points.solved(solver):
        reached = known.problem.objective(solution.coef, solution.intercept)
        assert_at_most(reached, known.scale, _rounding(known), problem=known.name)


@SOLVER_LAWS.law()
def coefficients_agree_with_the_known_answer(solver: Solver, points: SolverPoints) -> None:
    """||w - w*|| <= sqrt(2 gap / mu) where the objective has a curvature of at least mu."""
    for known, solution in points.solved(solver):
        if known.hessian_terms > 0:
            assert solution.certificate is not None
            distance = np.linalg.norm(solution.coef - known.coef)
            reach = np.sqrt(2 * solution.certificate.gap / known.hessian_terms)
            assert_at_most(distance, reach, 1e-12 * np.abs(known.coef).sum(), problem=known.name)


@SOLVER_LAWS.law()
def restrictions_are_honoured(solver: Solver, points: SolverPoints) -> None:
    """W >= 0 exactly if the penalty says so; b = 0 exactly without an intercept."""
    for known, solution in points.solved(solver):
        if "nonnegative" in known.problem.penalty.capabilities:
            assert_at_most(0.0, solution.coef, 0.0, problem=known.name)
        if not known.problem.fit_intercept:
            assert not solution.intercept.any(), f"{known}: intercept {solution.intercept!r}"


@SOLVER_LAWS.law()
def same_problem_gives_the_same_bits(solver: Solver, points: SolverPoints) -> None:
    """Solving again, with the same seed, gives identical coefficients and certificate."""
    repeated = list(points.solved(solver))[:: 8 if solver.is_textbook else 1]
    for known, solution in repeated:
        again = points.solve(solver, known)
        assert np.array_equal(again.coef, solution.coef), f"{known}: coefficients differ"
        assert np.array_equal(again.intercept, solution.intercept), f"{known}: intercepts differ"
        assert again.certificate is not None
        assert solution.certificate is not None
        assert again.certificate.gap == solution.certificate.gap, f"{known}: gaps differ"


@SOLVER_LAWS.law()
def data_are_not_modified(solver: Solver, points: SolverPoints) -> None:
    """X, y and the weights are the same after a fit as before."""
    list(points.solved(solver))
    assert not points.modified, f"changed: {', '.join(points.modified)}"


@SOLVER_LAWS.law()
def watching_changes_nothing(solver: Solver, points: SolverPoints) -> None:
    """With trace and callback the answer still has a true certificate, and events arrive."""
    if solver.is_direct:
        return
    known = points.claimed(solver)[0]
    events: list[Event] = []
    monitor = Monitor(trace=Trace(enabled=True), callbacks=(events.append,))
    solution = solver.solve(known.problem, points.options, monitor)
    assert solution.certificate is not None
    assert_at_most(solution.certificate.lower_bound, known.optimum, _rounding(known))
    assert len(events) > 0, "the callback heard nothing"
    assert len(monitor.trace) >= len(events), "the trace holds fewer records than events"
    assert np.isfinite(monitor.trace["objective"]).all(), "objectives in the trace"


@SOLVER_LAWS.law()
def costs_are_estimates(solver: Solver, points: SolverPoints) -> None:
    """flops, passes, memory and seconds are finite and not negative."""
    for known in points.claimed(solver):
        cost = solver.cost(Facts.of(known.problem))
        for name in ("flops", "passes", "memory", "seconds"):
            estimate = getattr(cost, name)
            assert np.isfinite(estimate), f"{known}: {name} = {estimate!r}"
            assert estimate >= 0, f"{known}: {name} = {estimate!r}"


def check_solver(
    solver: Solver,
    problems: Iterable[KnownProblem] | None = None,
    options: Options | None = None,
) -> list[str]:
    """Check a solver on every problem with a known answer that it claims to solve.

    Parameters
    ----------
    solver : Solver
    problems : iterable of KnownProblem, optional
        By default :func:`~trueline.checks.known_problems`.
    options : Options, optional
        By default a tolerance of 1e-8, the seed 0, and 30 iterations of a textbook method.

    Returns
    -------
    names : list of str
        The laws that were checked.

    Raises
    ------
    AssertionError
        The first law that is broken, with the problem and the numbers.

    Examples
    --------
    >>> from trueline.checks import check_solver
    >>> from trueline.solvers.registry import SOLVERS
    >>> "certificate is true" in check_solver(SOLVERS["cholesky"])
    True
    """
    return SOLVER_LAWS.check(solver, SolverPoints.of(solver, problems, options))
