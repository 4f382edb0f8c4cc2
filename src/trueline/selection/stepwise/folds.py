"""Tableaux of folds: trained on some rows, judged on the others, from moments alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from trueline.moments import Moments
from trueline.problem import Problem
from trueline.selection.folds import Fold, make_folds
from trueline.selection.stepwise.tableau import Tableau

__all__ = ["about", "fold_tableaux"]


def about(moments: Moments, fit_intercept: bool) -> Moments:
    """About the means with an intercept, about zero without."""
    return moments if fit_intercept else moments.about_zero()


def fold_tableaux(
    problem: Problem, splits: Sequence[tuple[Any, Any]], strength: float = 0.0
) -> tuple[list[Tableau], list[Moments], Moments]:
    """A tableau per fold, the moments of its test rows about their means, and those of all rows.

    Any splitter will do: rows may be in neither part of a fold, or in several test parts.
    """
    folds, total = make_folds(problem, splits)
    if total is None:  # wide data, for which the folds keep no moments
        total = _moments(problem, slice(None))
    tableaux, helds = [], []
    for fold in folds:
        train, held = _parts(problem, fold, total)
        tableaux.append(
            Tableau(
                about(train, problem.fit_intercept), about(held, problem.fit_intercept), strength
            )
        )
        helds.append(held)
    return tableaux, helds, total


def _parts(problem: Problem, fold: Fold, total: Moments) -> tuple[Moments, Moments]:
    if fold.held is not None:
        return fold.training_moments(total), fold.held
    return _moments(problem, fold.train), _moments(problem, fold.test)


def _moments(problem: Problem, rows: Any) -> Moments:
    weights = None if problem.weights is None else problem.weights[rows]
    return Moments.from_rows(problem.design.take(rows), problem.target[rows], weights)
