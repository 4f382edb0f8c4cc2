"""Tableaux of folds: trained on some rows, judged on the others, from moments alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from trueline.moments import Moments, SharedMoments
from trueline.problem import Problem
from trueline.selection.folds import fold_weights
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
    splits = list(splits)
    rows = fold_weights(problem.n_samples, (train for train, _ in splits), problem.weights)
    shared = SharedMoments(problem.design, problem.target, problem.weights, rows)
    tableaux, helds = [], []
    for weights, (_, test) in zip(rows, splits):
        train, held = shared.kept(weights), shared.left_out(weights, test)
        if held is None:
            s = None if problem.weights is None else problem.weights[test]
            held = Moments.from_rows(problem.design.take(test), problem.target[test], s)
        tableaux.append(
            Tableau(
                about(train, problem.fit_intercept), about(held, problem.fit_intercept), strength
            )
        )
        helds.append(held)
    return tableaux, helds, shared.total
