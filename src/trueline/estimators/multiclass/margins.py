"""Linear classifiers of two classes that are fitted together, by one compiled run.

One-vs-one on 26 classes is 325 problems of a millisecond each; checking, planning and stepping
through each by itself would take ten. Here X is checked and sorted by class once, and all problems
are solved by :mod:`trueline.solvers.narrow`, on many columns by :mod:`trueline.solvers.books`,
which reads each row once for all problems that it is in. Every part is left as if it had been
fitted by itself, with a certificate of its own; a problem that needs more care is fitted by itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from trueline.design import AugmentedDesign, DenseDesign
from trueline.estimators.linear_classifier import LinearClassifierBase
from trueline.estimators.multiclass.parts import Binary, Coding, fit_parts, is_ours
from trueline.guard import judge
from trueline.planner import Plan
from trueline.problem import Problem
from trueline.solution import Solution
from trueline.solvers.books.rows import SortedRows, sorted_rows
from trueline.solvers.books.solver import MOST_COLUMNS as MOST_WIDE_COLUMNS
from trueline.solvers.books.solver import solve_wide_books
from trueline.solvers.narrow.classes import ClassRows
from trueline.solvers.narrow.solver import KINDS, MOST_COLUMNS, solve_books

__all__ = ["fit_margins"]

Array = NDArray[np.float64]
Codes = NDArray[np.intp]

# Scores of all problems, by which support vectors are found, take rows x problems numbers.
_MOST_SCORES = 20_000_000
# Separate fits take about so long for each problem, and for each product of entries of a row in six
# steps; loading the compiled run costs a process some tenths of a second, so that small work stays
# with them.
_EACH, _PRODUCT = 8e-3, 6 / 2e9
_LEAST_SECONDS = 0.4
# On many columns steps are found from sums over rows, which are many for each column, and the rows
# are copied.
_ROWS_EACH, _MOST_NUMBERS = 2, 400_000_000

# What is said of a part, by the solver that found it.
_REASONS = {
    "newton": "all binary problems by one compiled run, on rows sorted by class",
    "newton_cg": "all binary problems at once, each row read once for all that it is in",
}


def fit_margins(
    estimator: Any, X: Any, coding: Coding, fit_params: Mapping[str, Any]
) -> list[Any] | None:
    """Fit problems on some of the classes, or all; None if that cannot be done here."""
    codes, book, binaries = coding
    if not (_is_suited(estimator, X, fit_params) and _is_worth_it(X, binaries)):
        return None
    estimator = clone(estimator)
    estimator._check_parameters()
    weights = estimator._weights(fit_params.get("sample_weight"), X)
    if weights is not None and not weights.all():
        return None  # rows without weight are left out
    problem = _posed(estimator, X, binaries[0], weights)
    given = X
    if isinstance(problem.design, AugmentedDesign):  # an intercept that is penalised like the rest
        X = AugmentedDesign(DenseDesign(X), problem.design.constant).toarray()
        problem = replace(problem, design=problem.design.materialised())
    if not (_is_narrow(problem) and _is_taken(*X.shape)):
        return None
    plan = estimator._plan_for(problem)
    if not _is_planned(plan, X.shape[1]):
        return None
    sides = np.ones((len(binaries), 2))
    if estimator.class_weight is not None:
        sides = np.array([_sides(estimator, binary, weights) for binary in binaries])
    # What is too large or too small shows in sums that are not finite, or in the proof.
    with np.errstate(over="ignore", under="ignore", invalid="ignore", divide="ignore"):
        intercept, is_wide = problem.fit_intercept, X.shape[1] > MOST_COLUMNS
        sort: Any = sorted_rows if is_wide else ClassRows.of
        rows: ClassRows | SortedRows = sort(X, codes, len(book), weights, fit_intercept=intercept)
        if not rows.is_ordinary() or not (sides > 0).all():
            return None
        terms: Any = (problem.loss, problem.penalty, intercept, estimator._options())
        solve: Any = solve_wide_books if is_wide else solve_books
        found = solve(rows, book.T.astype(np.float64), sides, *terms)
    # What is not proven is fitted by itself.
    found = [one if one and judge(problem, one, 0.0).is_proven else None for one in found]
    places = np.argsort(rows.order)
    alone = [binary for binary, solution in zip(binaries, found) if solution is None]
    others = iter(fit_parts(estimator, given, alone, fit_params, None) if alone else ())
    parts = [
        next(others) if one is None else _part(estimator, problem, plan, one, binary, places)
        for binary, one in zip(binaries, found)
    ]
    for part in parts:
        part.n_features_in_ = given.shape[1]
    return parts


def _is_suited(estimator: Any, X: Any, fit_params: Mapping[str, Any]) -> bool:
    """Whether a fit is what all linear classifiers do, watched by nobody, on a few columns."""
    if not (isinstance(estimator, LinearClassifierBase) and is_ours(estimator)):
        return False
    is_watched = getattr(estimator, "trace", False) or getattr(estimator, "_skl_callbacks", None)
    return bool(
        type(estimator).fit is LinearClassifierBase.fit
        and not is_watched
        and set(fit_params) <= {"sample_weight"}
        and type(X) is np.ndarray
        and X.dtype == np.float64
        and X.ndim == 2
        and _is_taken(*X.shape)
    )


def _is_taken(n: int, d: int) -> bool:
    """Whether one of both solvers is for so many rows and columns."""
    is_wide = MOST_COLUMNS < d <= MOST_WIDE_COLUMNS
    return 1 <= d <= MOST_COLUMNS or (is_wide and n >= _ROWS_EACH * d and n * d <= _MOST_NUMBERS)


def _is_worth_it(X: Array, binaries: Sequence[Binary]) -> bool:
    """Whether separate fits would take longer than loading the compiled run, and scores fit."""
    d, rows = X.shape[1], sum(len(binary.labels) for binary in binaries)
    seconds = _EACH * len(binaries) + _PRODUCT * rows * d * (d + 20)
    return seconds >= _LEAST_SECONDS and len(binaries) * len(X) <= _MOST_SCORES


def _is_narrow(problem: Problem) -> bool:
    """Whether a problem of two classes is one of those that the compiled solver takes."""
    curvature = problem.penalty.curvature
    return (
        isinstance(problem.design, DenseDesign)
        and problem.loss.name in KINDS
        and problem.n_targets == 1
        and "quadratic" in problem.penalty.capabilities
        and np.ndim(curvature) == 0
        and 0 < float(curvature) < np.inf
    )


def _is_planned(plan: Plan, d: int) -> bool:
    """Whether the plan is what these solvers do, unless another was asked for by name."""
    if d <= MOST_COLUMNS:
        return plan.chosen == "newton"
    is_free = plan.reason != "asked for by name"
    return plan.chosen == "newton_cg" or (plan.chosen == "newton" and is_free)


def _classes(binary: Binary) -> tuple[NDArray[Any], Codes]:
    """The labels of a problem, and which of the two each row has."""
    classes = np.array([binary.labels.min(), binary.labels.max()])
    return classes, (binary.labels == classes[1]).astype(np.intp)


def _posed(estimator: Any, X: Array, binary: Binary, weights: Array | None) -> Problem:
    """The problem as the estimator states it."""
    rows = slice(None) if binary.rows is None else binary.rows
    own = None if weights is None else weights[rows]
    problem: Problem = estimator._posed(X[rows], *_classes(binary), own)[0]
    return problem


def _sides(estimator: Any, binary: Binary, weights: Array | None) -> tuple[float, float]:
    """What class weights multiply the weights of either label by."""
    rows = slice(None) if binary.rows is None else binary.rows
    own = np.ones(len(binary.labels)) if weights is None else weights[rows]
    classes, codes = _classes(binary)
    ratio = estimator._with_class_weights(classes, codes, own) / own
    return float(ratio[np.argmin(codes)]), float(ratio[np.argmax(codes)])


def _part(
    estimator: Any, problem: Problem, plan: Plan, found: Solution, binary: Binary, places: Codes
) -> Any:
    """The estimator as it would be after a fit that found this solution."""
    count, d = len(binary.labels), problem.n_features
    part = copy(estimator)  # shallow: it was cloned, and holds parameters alone
    part.classes_, codes = _classes(binary)
    part._present = np.arange(2)
    if "scores" in found.extra:  # of all rows, sorted by class
        rows = slice(None) if binary.rows is None else binary.rows
        found.extra["scores"] = found.extra["scores"][places[rows], None]
        problem = replace(problem, target=np.where(codes > 0, 1.0, -1.0)[:, None])
    facts = replace(plan.facts, n=count, nonzeros=count * d)
    own = replace(
        plan,
        chosen=found.solver,
        reason=_REASONS[found.solver],
        facts=facts,
        # Estimates are those of problems of the same size.
        candidates=plan.candidates if facts == plan.facts else (),
    )
    part._store(problem, own, found, np.dtype(np.float64), 1)
    return part
