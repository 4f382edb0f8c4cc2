"""Classes that a hyperplane separates: without a penalty there is no best fit."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from trueline.problem import Problem
from trueline.separation.result import Separability
from trueline.separation.separate import separate
from trueline.solution import Solution

__all__ = ["warn_if_separated"]

# Probabilities this close to 0 or 1 do not come from data that overlap.
_EXTREME = 25.0
# The verdict on data of more numbers than this is left to whoever asks for it.
_MOST_NUMBERS = 20_000_000
# Names of columns that are listed.
_MOST_NAMES = 8


def warn_if_separated(
    problem: Problem,
    solution: Solution,
    name: str,
    classes: NDArray[Any],
    feature_names: NDArray[Any] | None,
) -> Separability | None:
    """Warn where the coefficients of an unpenalised fit are on their way to infinity, and prove it.

    If the classes can be separated, even if only as far as some rows lie on the boundary, the
    objective falls for ever along some direction and coefficients say where the solver stopped (A.
    Albert, J. A. Anderson, "On the existence of maximum likelihood estimates in logistic regression
    models", Biometrika 71 (1984) 1-10).

    Returns
    -------
    verdict : Separability or None
        None where scores are moderate, or data too large to be looked at unasked.
    """
    if "none" not in problem.penalty.capabilities:
        return None
    scores = problem.scores(solution.coef, solution.intercept)
    spread = np.abs(scores) if scores.shape[1] == 1 else np.ptp(scores, axis=1)
    if spread.max(initial=0.0) <= _EXTREME:
        return None
    n, d = problem.design.shape
    if n * d * (len(classes) - 1) > _MOST_NUMBERS:
        said = (
            f"Scores grew beyond {_EXTREME:g}: the classes may be separated in some direction, "
            "which trueline.separability(X, y) decides"
        )
        _warn(name, said, len(classes))
        return None
    verdict = _verdict(problem, classes, feature_names)
    if verdict.verdict != "not separable":
        moving = verdict.diverging
        listed = ", ".join(moving[:_MOST_NAMES])
        listed += f" and {len(moving) - _MOST_NAMES:,} more" * (len(moving) > _MOST_NAMES)
        but = "" if verdict.is_separable else ", but for rows on it"
        said = f"A hyperplane separates the classes{but}. {verdict} On the move: {listed}"
        _warn(name, said, len(classes))
    return verdict


def _verdict(
    problem: Problem, classes: NDArray[Any], feature_names: NDArray[Any] | None
) -> Separability:
    design, target = problem.design, problem.target
    X: Any = design.by_rows if hasattr(design, "by_rows") else design.toarray()
    codes = (target[:, 0] > 0).astype(np.intp) if target.shape[1] == 1 else target.argmax(axis=1)
    names = [f"x{j}" for j in range(design.shape[1])] if feature_names is None else feature_names
    return separate(X, codes, classes, problem.fit_intercept, tuple(str(name) for name in names))


def _warn(name: str, said: str, n_classes: int) -> None:
    other = ", or take Firth's correction, penalty='firth'" if n_classes == 2 else ""
    warnings.warn(
        f"{name} without a penalty has no finite answer: the likelihood has no maximum, and the "
        f"coefficients only say where the fit stopped. {said}. Give C a finite value{other}.",
        ConvergenceWarning,
        stacklevel=7,
    )
