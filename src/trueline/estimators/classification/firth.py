"""Firth's correction in logistic regression: who may ask for it, and the run."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from sklearn.utils import assert_all_finite

from trueline.numerics.blas import single_threaded_blas
from trueline.plan import Plan
from trueline.problem import Problem
from trueline.solution import Solution
from trueline.solvers.base import Facts, Monitor, Options
from trueline.solvers.newton.firth import solve_firth
from trueline.solvers.newton.solver import Newton

__all__ = ["firth_plan", "require_binary", "run_firth"]


def require_binary(solver: str, n_scores: int) -> None:
    """Raise ``ValueError`` where the correction is not offered."""
    if n_scores > 1:
        raise ValueError(
            f"penalty='firth' is for two classes, but y has {n_scores}. Wrap the model in "
            "OneVsRestClassifier."
        )
    if solver == "liblinear":
        raise ValueError(
            "penalty='firth' has no penalised intercept, which solver='liblinear' stands for. "
            "Leave solver at 'auto'."
        )


def firth_plan(problem: Problem) -> Plan:
    """The plan: there is one method."""
    facts, title = Facts.of(problem), "scoring on the likelihood with Jeffreys' prior"
    formula = problem.formula.replace(
        ",  z_i", " - 1/2 log det(sum_i s_i p_i (1 - p_i) a_i a_i^T),  z_i", 1
    )
    return Plan.only("firth", title, Newton().cost(facts), formula, facts)


def run_firth(problem: Problem, X: Any, options: Options, monitor: Monitor, name: str) -> Solution:
    """Solve and time it."""
    begin = time.perf_counter()
    assert_all_finite(X, input_name="X", estimator_name=name)
    try:
        with np.errstate(over="ignore", invalid="ignore"), single_threaded_blas():
            solution = solve_firth(problem, options, monitor)
    except FloatingPointError:
        raise ValueError(
            "Squares of X leave the range of double precision. Divide the columns by a power of "
            "ten first."
        ) from None
    solution.seconds = time.perf_counter() - begin
    return solution
