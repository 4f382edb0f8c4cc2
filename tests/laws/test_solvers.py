"""Every solver solves every problem that it claims; a new solver is tested by being registered."""

import numpy as np
import pytest

from trueline.checks import SOLVER_LAWS, known_problems
from trueline.checks.solvers import SolverPoints, claims
from trueline.solvers.registry import SOLVERS

KNOWN = known_problems()


@pytest.mark.parametrize("name", SOLVERS)
def test_laws(name):
    assert SOLVER_LAWS.check(SOLVERS[name], SolverPoints.of(SOLVERS[name], KNOWN))


@pytest.mark.parametrize("known", KNOWN, ids=str)
def test_planted_answers_are_optimal(known):
    """The planted dual point reaches the planted objective, without any rounding but of logarithms:

    P(w, b) = - sum_i s_i l_i*(u_i) - p*(-X^T (s u)),   sum_i s_i u_i = 0.
    """
    problem, u = known.problem, known.dual
    weighted = problem.weigh(u)
    slack = 1e-13 if "margins" in problem.loss.capabilities else 0.0
    if problem.fit_intercept:
        assert np.abs(weighted.sum(axis=0)).max() <= slack
    conjugates = problem.weigh(problem.loss.conjugate(problem.target, u)).sum()
    V = -(problem.design.toarray().T @ weighted)
    V = V * np.minimum(problem.penalty.dual_scale(V), 1.0)
    lower = -conjugates - problem.penalty.conjugate_per_target(V).sum()
    assert abs(known.optimum - lower) <= slack * abs(lower)


@pytest.mark.parametrize("known", KNOWN, ids=str)
def test_every_known_problem_is_claimed_by_a_solver(known):
    assert any(claims(solver, known) for solver in SOLVERS.values())


def test_names_of_known_problems_are_unique():
    assert len({known.name for known in KNOWN}) == len(KNOWN)
