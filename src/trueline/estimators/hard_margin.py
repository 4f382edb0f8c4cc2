"""The hyperplane of largest margin as the answer of a support vector machine."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from trueline.certificates.hard_margin import certify_hard_margin
from trueline.design import SparseDesign
from trueline.estimators.separability import maximum_margin, separability
from trueline.halfspaces.margin import MaximumMargin
from trueline.planner import Candidate, Plan
from trueline.problem import Problem
from trueline.solution import Solution, Status
from trueline.solvers.base import Cost, Facts

__all__ = ["REMEDY", "separated", "solve_hard_margin"]

Array = NDArray[np.float64]

_NAME = "nearest_points"
_TITLE = "Wolfe's method for the nearest points of both hulls, on the rows near the margins"
# The gap, relative to the objective, up to which a margin counts as found.
_CLOSE = 1e-6
#: What to do where there is no hard margin.
REMEDY = "Give a finite C, which lets rows be inside the margin at a price."


def solve_hard_margin(
    problem: Problem, classes: NDArray[Any], n_given: int
) -> tuple[Plan, Solution]:
    """The hard margin of every target, with its proof.

    Parameters
    ----------
    problem : Problem
        Without the rows of weight zero.
    classes : array
        The names of the classes, for the message.
    n_given : int
        How many rows there were with those of weight zero, for the message.

    Raises
    ------
    ValueError
        If a target cannot be separated; the message says which rows exclude it.
    """
    start = time.perf_counter()
    n, k = problem.target.shape
    W, b, shares = np.zeros((problem.n_features, k)), np.zeros(k), np.zeros((n, k))
    design = problem.design
    X = design.X if isinstance(design, SparseDesign) else design.toarray()
    for t in range(k):
        own, rest = (classes[1], classes[0]) if len(classes) == 2 else (classes[t], "the rest")
        try:
            best = separated(X, problem.target[:, t] > 0, (rest, own), problem.fit_intercept)
        except ValueError as error:
            counted = " (Rows of weight zero are not counted.)" if n < n_given else ""
            raise ValueError(f"{error}{counted}") from None
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
    if not np.isfinite(certificate.coef).all():
        raise ValueError(
            "The hard margin is lost in the rounding of scores: beside it the rows are too long. "
            "Centre the columns and bring them to comparable units."
        )
    is_close = certificate.gap <= _CLOSE * certificate.objective
    solution = Solution(
        certificate.coef,
        certificate.intercept,
        Status.SOLVED if is_close else Status.STALLED,
        _NAME,
        n_iter=1,
        proof=certificate,
        tolerance=_CLOSE * certificate.objective,
    )
    solution.seconds = time.perf_counter() - start
    return plan, solution


def separated(
    X: Any,
    is_above: NDArray[np.bool_],
    names: Any,
    fit_intercept: bool,
    numbers: NDArray[np.intp] | None = None,
) -> MaximumMargin:
    """The largest margin of two classes, the second name being that of the rows above.

    Raises
    ------
    ValueError
        If there is none; the message says which rows exclude it, by the ``numbers`` that the caller
        knows them by.
    """
    X = X.astype(np.float64) if sp.issparse(X) else np.asarray(X, dtype=np.float64)
    try:
        return maximum_margin(X, is_above, fit_intercept=fit_intercept)
    except ValueError as error:
        said = str(error)
    named = np.where(is_above, str(names[1]), str(names[0]))
    verdict = separability(X, named, fit_intercept=fit_intercept)
    if verdict.is_separable:
        raise ValueError(f"{said} {REMEDY}")
    if numbers is not None:
        rows, boundary = numbers[verdict.rows], numbers[verdict.boundary]
        verdict = replace(verdict, rows=rows, boundary=boundary)
    raise ValueError(f"There is no hard margin. {verdict} {REMEDY}")
