"""Logistic regression on all folds for a grid of penalties, and its scores."""

from __future__ import annotations

from copy import copy
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import _check_method_params

from trueline.estimators.shared.fold_sets import predicted, solve_folds
from trueline.guard import Verdict
from trueline.selection.folds import fold_weights
from trueline.selection.metrics import fast_metric

__all__ = ["Grid", "ScoredGrid", "scored_grid"]

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


class ScoredGrid(NamedTuple):
    """For every fold, mixture and C: scores, [coefficients, intercept] by class, iterations.

    And what is proven of the fits, but for folds with one class.
    """

    scores: Array
    coefs: Array
    n_iter: NDArray[np.int32]
    verdicts: list[Verdict]


def scored_grid(
    model: Any,
    X: Any,
    y: NDArray[Any],
    weights: Array | None,
    folds: list[tuple[Any, Any]],
    grid: Grid,
    scorer: Any,
    score_params: dict[str, Any],
) -> ScoredGrid:
    """Fit the training rows of all folds for the whole grid, and score each fit on the other rows.

    Parameters
    ----------
    model : LogisticRegression
        With the classes of all rows; it is not changed.
    X, y : arrays
        As validated.
    weights : array of shape (n,), optional
    folds : list of pairs of index arrays
        Training rows and rows to score.
    grid : Grid
    scorer : callable
    score_params : dict
        For the scorer; arrays are cut to the rows that are scored.
    """
    models = [_of(model, C, ratio) for ratio in grid.ratios for C in grid.Cs]
    codes = np.searchsorted(model.classes_, y)
    rows = fold_weights(len(codes), (train for train, _ in folds), weights)
    alone = [len(np.unique(codes[own > 0])) == 1 for own in rows]
    several = [own for own, is_alone in zip(rows, alone) if not is_alone]
    fits = solve_folds(models, X, codes, several, classes=model.classes_) if several else ()
    found = iter(fits)
    scores, coefs, counts, verdicts = [], [], [], list[Verdict]()
    for (_, test), own, is_alone in zip(folds, rows, alone):
        if is_alone:
            fitted = [_certain(one, codes[np.argmax(own > 0)], X.shape[1]) for one in models]
            counts.append([0] * len(models))
        else:
            own_fits = next(found)
            fitted = [fit.scored() for fit in own_fits]
            counts.append([fit.solution.n_iter for fit in own_fits])
            verdicts += [fit.verdict for fit in own_fits]
        params = _check_method_params(X, params=score_params, indices=test)
        scores.append(_scores(fitted, X[test], _safe_indexing(y, test), scorer, params))
        coefs.append([_flat(one) for one in fitted])
    shape = len(folds), len(grid.ratios), len(grid.Cs)
    flat = np.stack([np.stack(own) for own in coefs])
    return ScoredGrid(
        np.reshape(scores, shape),
        flat.reshape(*shape, *flat.shape[2:]),
        np.array(counts, dtype=np.int32).reshape(shape),
        verdicts,
    )


def _of(model: Any, C: float, ratio: float) -> Any:
    own = copy(model)
    own.C, own.l1_ratio = float(C), float(ratio)
    return own


def _certain(model: Any, code: int, d: int) -> Any:
    """The model of a fold that holds one class only."""
    own, level = copy(model), _CERTAIN if code == 1 else -_CERTAIN
    own.coef_, own.intercept_ = np.zeros((1, d)), np.array([level * model.fit_intercept])
    return own


def _scores(fitted: list[Any], X: Any, y: NDArray[Any], scorer: Any, params: Any) -> list[float]:
    """The scores of all models on the same rows, together if the metric allows for it."""
    metric = fast_metric(scorer, is_classifier=True)
    if metric is None or set(params) - {"sample_weight"}:
        return [scorer(one, X, y, **params) for one in fitted]
    codes = np.searchsorted(fitted[0].classes_, y)
    return list(metric(codes, predicted(fitted, X), params.get("sample_weight")))


def _flat(model: Any) -> Array:
    level = np.atleast_1d(model.intercept_)[:, None]
    return np.hstack([model.coef_, level]) if model.fit_intercept else model.coef_
