"""Logistic regression along a path of penalties, each fit starting from the one before."""

from __future__ import annotations

import warnings
from copy import copy
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import _check_method_params

from trueline.guard import Verdict, verdict_of
from trueline.solvers.loop import Monitor

__all__ = ["Grid", "ScoredPath", "scored_path"]

Array = NDArray[np.float64]

# The level of a class that is alone in its fold: its probability is one for every purpose.
_CERTAIN = 30.0


class Grid(NamedTuple):
    """The inverse strengths and the mixtures of a search."""

    Cs: Array
    ratios: Array

    @property
    def text(self) -> str:
        """What is searched, in the words of the objective."""
        Cs = f"C the best of {len(self.Cs)} from {self.Cs.min():g} to {self.Cs.max():g}"
        ratios = ", ".join(f"{ratio:g}" for ratio in self.ratios)
        return Cs + (f",  l1_ratio the best of {ratios}" if len(self.ratios) > 1 else "")


class ScoredPath(NamedTuple):
    """For every C: the score on held-out rows, [coefficients, intercept] by class, iterations.

    And what is proven of the fits, but for folds with one class.
    """

    scores: Array
    coefs: Array
    n_iter: NDArray[np.int32]
    verdicts: list[Verdict]


def scored_path(
    model: Any,
    X: Any,
    y: NDArray[Any],
    weights: Array | None,
    fold: tuple[Any, Any],
    grid: Grid,
    ratio: float,
    scorer: Any,
    score_params: dict[str, Any],
) -> ScoredPath:
    """Fit the training rows of a fold for all Cs, and score each fit on the other rows.

    Parameters
    ----------
    model : LogisticRegression
        With the classes of all rows; it is not changed.
    X, y : arrays
        As validated.
    weights : array of shape (n,), optional
    fold : pair of index arrays
        Training rows and rows to score.
    grid : Grid
    ratio : float
        The mixture.
    scorer : callable
    score_params : dict
        For the scorer; arrays are cut to the rows that are scored.
    """
    train, test = fold
    own = copy(model)
    own.l1_ratio, own.warm_start = ratio, False
    part = weights[train] if weights is not None else None
    rows = X[train], y[train]
    held = X[test], _safe_indexing(y, test)
    params = _check_method_params(X, params=score_params, indices=test)
    scores, coefs, counts, verdicts = [], [], [], []
    for C in grid.Cs:
        own.C = float(C)
        verdicts += _fit(own, *rows, part)
        own.warm_start = True
        level = np.atleast_1d(own.intercept_)[:, None]
        coefs.append(np.hstack([own.coef_, level]) if own.fit_intercept else own.coef_.copy())
        counts.append(int(own.n_iter_[0]))
        scores.append(scorer(own, *held, **params))
    n_iter = np.array(counts, dtype=np.int32)
    return ScoredPath(np.array(scores), np.stack(coefs), n_iter, verdicts)


def _fit(model: Any, X: Any, y: NDArray[Any], weights: Array | None) -> list[Verdict]:
    """A fit that keeps the classes of all rows, whatever a fold holds, and what is proven of it."""
    codes = np.searchsorted(model.classes_, y)
    found = np.unique(codes if weights is None else codes[weights > 0])
    if len(found) == 1:
        side = 1.0 if found[0] == 1 else -1.0
        model.coef_ = np.zeros((1, X.shape[1]))
        model.intercept_ = np.array([side * _CERTAIN * model.fit_intercept])
        model.n_iter_ = np.zeros(1, dtype=np.int32)
        return []
    problem, model._present = model._posed(X, model.classes_, codes, weights)
    with warnings.catch_warnings():
        # The search counts the fits that are not proven, and says so once.
        warnings.simplefilter("ignore", ConvergenceWarning)
        plan, solution = model._solve(problem, X, Monitor())
        model._store(problem, plan, solution, X.dtype, 1)
    return [verdict_of(solution)]
