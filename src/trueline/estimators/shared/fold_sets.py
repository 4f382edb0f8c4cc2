"""One model for many settings and folds: a set of problems on the same rows.

The model states its problem for every setting and every fold, all on the same rows: rows that a
fold does not train on have weight zero. The problems are planned and solved together
(:class:`~trueline.problem_set.ProblemSet`), each with a solution and a proof of its own.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from trueline.design import Design, as_design, as_suitable_design
from trueline.estimators.shared.precision import exponents_of
from trueline.guard import Verdict, verdict_of
from trueline.moments import SharedMoments
from trueline.plan import Plan
from trueline.planner import execute_set, make_set_plans
from trueline.problem import Array, Problem
from trueline.problem_set import Member, ProblemSet
from trueline.solution import Solution
from trueline.solvers.base import Monitor, Options

Codes = NDArray[np.intp]


@dataclass
class FoldFit:
    """One setting, fitted to the training rows of one fold.

    Attributes
    ----------
    model : estimator
        With its parameters and classes, and not fitted yet.
    problem : Problem
        On all rows, those that do not count included.
    plan : Plan
    solution : Solution
    """

    model: Any
    problem: Problem
    plan: Plan
    solution: Solution

    def estimator(self) -> Any:
        """The model as it is after a fit, with its certificate."""
        fitted = copy(self.model)
        # The proof of a kept model must not keep the data.
        assert self.solution.certificate is not None
        plan = replace(self.plan, objective=self.problem.formula)
        fitted._store(self.problem, plan, self.solution, np.dtype(np.float64), 1)
        return fitted

    def scored(self) -> Any:
        """The model with its coefficients alone, enough to be scored."""
        own, found = copy(self.model), (self.solution.coef, self.solution.intercept)
        own.__dict__.update(own._fitted_attributes(*found, 1, self.problem.fit_intercept))
        return own

    @property
    def verdict(self) -> Verdict:
        return verdict_of(self.solution)


def predicted(models: Sequence[Any], X: Any) -> NDArray[Any]:
    """What fitted models predict, of shape (n, models): one product.

    Numbers, or the positions of classes.
    """
    coef = np.concatenate([np.atleast_2d(model.coef_) for model in models])
    level = np.concatenate([np.atleast_1d(model.intercept_) for model in models])
    scores = (np.asarray(X @ coef.T) + level).reshape(X.shape[0], len(models), -1)
    if not hasattr(models[0], "classes_"):
        return scores[:, :, 0]
    return (scores[:, :, 0] > 0).astype(np.intp) if scores.shape[2] == 1 else scores.argmax(axis=2)


def solve_folds(
    models: Sequence[Any],
    X: Any,
    y: NDArray[Any],
    weights: Sequence[Array],
    tol: Callable[[Problem, float], float] = lambda problem, tol: tol,
    *,
    classes: NDArray[Any] | None = None,
    shared: SharedMoments | None = None,
) -> list[list[FoldFit]]:
    """Every model fitted to every fold, by fold.

    Parameters
    ----------
    models : sequence of estimators
        Of one class; their parameters may differ.
    X : array or sparse matrix of shape (n, d)
        Finite numbers.
    y : array of shape (n, 1), or of shape (n,)
        The target, or positions of the classes.
    weights : sequence of arrays of shape (n,)
        Those of each fold.
    tol : callable, optional
        From a problem and the tolerance that its model asks for to the one that is asked of the
        solver.
    classes : array of shape (k,), optional
    shared : SharedMoments, optional
        Of these rows.
    """
    if shared is not None:
        design = shared.design
    else:
        design = as_design(X) if classes is None else as_suitable_design(X)
    stated: list[_Stated] = []
    for fold in weights:
        for number, model in enumerate(models):
            same = stated[number] if len(stated) >= len(models) else None
            one = _state(model, design, y, fold, classes, same)
            near = [stated[-1].problem] if stated else []
            targets = [shared.target] if shared is not None else []
            one.problem = replace(
                one.problem,
                target=_known(one.problem.target, *targets, *(other.target for other in near)),
                weights=_known(one.problem.weights, fold, *(other.weights for other in near)),
            )
            if same is None:
                one.options = replace(one.options, tol=tol(one.problem, one.options.tol))
            stated.append(one)
    found: list[FoldFit | None] = [None] * len(stated)
    for group in _grouped(stated):
        for number, fit in zip(group, _solve([stated[number] for number in group], X, shared)):
            found[number] = fit
    fits = [fit for fit in found if fit is not None]
    return [fits[start : start + len(models)] for start in range(0, len(fits), len(models))]


@dataclass
class _Stated:
    """A model, its problem, and what is asked of the solver."""

    model: Any
    problem: Problem
    options: Options
    solver: str


def _state(
    model: Any,
    design: Design,
    y: NDArray[Any],
    weights: Array,
    classes: NDArray[Any] | None,
    same: _Stated | None,
) -> _Stated:
    """What a model states for the rows of a fold; it asks the same of the solver in all folds."""
    own = copy(model)
    own.n_features_in_ = design.shape[1]
    problem = own._posed_on_all_rows(design, y, weights, classes)
    if same is not None:
        return _Stated(own, problem, same.options, same.solver)
    return _Stated(own, problem, own._options(), own._solver_name())


def _known(array: Any, *known: Any) -> Any:
    """The first of the known arrays that is equal, so that equal ones are the same object."""
    return next((one for one in known if one is array or np.array_equal(one, array)), array)


def _grouped(stated: list[_Stated]) -> list[list[int]]:
    """Those that can be in one set: the same design, loss, intercept and options."""
    groups: list[list[int]] = []
    for number, one in enumerate(stated):
        for group in groups:
            other = stated[group[0]]
            if (
                one.problem.design.is_same(other.problem.design)
                and one.problem.loss == other.problem.loss
                and one.problem.fit_intercept == other.problem.fit_intercept
                and one.options == other.options
                and one.solver == other.solver
            ):
                group.append(number)
                break
        else:
            groups.append([number])
    return groups


def _solve(parts: list[_Stated], X: Any, moments: SharedMoments | None) -> list[FoldFit]:
    """The problems as one set."""
    members = tuple(
        Member(one.problem.target, one.problem.penalty, one.problem.weights) for one in parts
    )
    first = parts[0].problem
    problems = ProblemSet(first.design, first.loss, members, first.fit_intercept, moments)
    if exponents_of(replace(first, weights=None)) is not None:
        return [_alone(one, problems[number], X) for number, one in enumerate(parts)]
    plans = make_set_plans(problems, parts[0].solver)
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        found = execute_set(problems, plans, parts[0].options)
    return [
        FoldFit(one.model, one.problem, plan, solution)
        for one, plan, solution in zip(parts, plans, found)
    ]


def _alone(one: _Stated, problem: Problem, X: Any) -> FoldFit:
    """Columns whose squares overflow or vanish are fitted in other units, problem by problem."""
    with warnings.catch_warnings():
        # Whoever asked for all fits counts those that are not proven.
        warnings.simplefilter("ignore", ConvergenceWarning)
        plan, solution = one.model._solve(problem, X, Monitor())
    return FoldFit(one.model, one.problem, plan, solution)
