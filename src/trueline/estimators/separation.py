"""Classes that a hyperplane separates: without a penalty there is no best fit."""

from __future__ import annotations

import warnings

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from trueline.problem import Problem
from trueline.solution import Solution

__all__ = ["warn_if_separated"]

# Probabilities this close to 0 or 1 do not come from data that overlap.
_EXTREME = 25.0


def warn_if_separated(problem: Problem, solution: Solution, name: str) -> None:
    """Warn where the coefficients of an unpenalised fit are on their way to infinity.

    If the classes can be separated, even if only as far as some rows lie on the boundary, the
    objective falls for ever along some direction and coefficients say where the solver stopped (A.
    Albert, J. A. Anderson, "On the existence of maximum likelihood estimates in logistic regression
    models", Biometrika 71 (1984) 1-10).
    """
    if "none" not in problem.penalty.capabilities:
        return
    scores = problem.scores(solution.coef, solution.intercept)
    spread = np.abs(scores) if scores.shape[1] == 1 else np.ptp(scores, axis=1, keepdims=True)
    if spread.max(initial=0.0) <= _EXTREME:
        return
    if scores.shape[1] == 1:
        margins = (scores * problem.target)[:, 0]
    else:
        own = np.where(problem.target > 0, scores, -np.inf).max(axis=1)
        margins = own - np.where(problem.target > 0, -np.inf, scores).max(axis=1)
    right = int(np.count_nonzero(margins > 0))
    said = (
        "A hyperplane separates the classes"
        if right == len(margins)
        else f"Scores grew beyond {_EXTREME:g} on {np.count_nonzero(spread > _EXTREME):,} rows: "
        "the classes are (almost) separated in some direction"
    )
    warnings.warn(
        f"{name} without a penalty: {said}, where the likelihood has no maximum. The coefficients "
        "are on their way to infinity and only say where the fit stopped. Give C a finite value.",
        ConvergenceWarning,
        stacklevel=6,
    )
