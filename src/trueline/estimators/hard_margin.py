"""The hyperplane of largest margin as the answer of a support vector machine."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from trueline.certificates.hard_margin import certify_hard_margin
from trueline.estimators.separability import maximum_margin, separability
from trueline.planner import Candidate, Plan
from trueline.problem import Problem
from trueline.solution import Solution, Status
from trueline.solvers.base import Cost, Facts

__all__ = ["solve_hard_margin"]

Array = NDArray[np.float64]

_NAME = "nearest_points"
# The gap, relative to the objective, up to which the margin counts as found.
_CLOSE = 1e-6
_TITLE = "Wolfe's method for the nearest points of both hulls, on the rows near the margins"


def solve_hard_margin(problem: Problem, X: Any, classes: NDArray[Any]) -> tuple[Plan, Solution]:
    """The hard margin of every target, with its proof.

    Parameters
    ----------
    problem : Problem
    X : array or sparse matrix
        Its rows.
    classes : array
        The names of the classes, for the message.

    Raises
    ------
    ValueError
        If a target cannot be separated; the message says which rows exclude it.
    """
    start = time.perf_counter()
    X = X.astype(np.float64) if sp.issparse(X) else np.asarray(X, dtype=np.float64)
    n, k = problem.target.shape
    W, b, shares = np.zeros((problem.n_features, k)), np.zeros(k), np.zeros((n, k))
    for t in range(k):
        try:
            best = maximum_margin(X, problem.target[:, t], fit_intercept=problem.fit_intercept)
        except ValueError as error:
            raise ValueError(_why_not(problem, X, classes, t, str(error))) from None
        W[:, t], b[t] = best.coef, best.intercept
        shares[best.support, t] = best.weights
    certificate = certify_hard_margin(problem, W, b, shares)
    facts = Facts.of(problem)
    cost = Cost(20.0 * facts.nonzeros, 10.0, 8.0 * n * k, 1e-3 + 2e-8 * facts.nonzeros)
    plan = Plan(
        _NAME,
        f"{_TITLE}; the only solver that fits",
        problem.formula,
        facts,
        (Candidate(_NAME, _TITLE, cost, "chosen"),),
    )
    solution = Solution(
        certificate.coef,
        certificate.intercept,
        Status.SOLVED,
        _NAME,
        n_iter=1,
        proof=certificate,
        tolerance=_CLOSE * certificate.objective,
    )
    solution.seconds = time.perf_counter() - start
    return plan, solution


def _why_not(problem: Problem, X: Any, classes: NDArray[Any], t: int, said: str) -> str:
    """The proof that there is no margin, with the names of the classes."""
    is_above = problem.target[:, t] > 0
    own, rest = (classes[1], classes[0]) if len(classes) == 2 else (classes[t], "the rest")
    named = np.where(is_above, str(own), str(rest))
    verdict = separability(X, named, fit_intercept=problem.fit_intercept)
    return said if verdict.is_separable else f"There is no hard margin. {verdict}"
