"""Scores of one model for all settings of a grid, on all folds."""

from __future__ import annotations

import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from trueline.evaluation.grids.fits import Fits, GridFits, Setting, choose_fits
from trueline.evaluation.scoring import Scorers, takes_weights
from trueline.evaluation.task import FoldRows, Task
from trueline.guard import Verdict
from trueline.selection.metrics import fast_metric
from trueline.wording import Readable

__all__ = ["GridScores", "evaluate_grid", "score_fits"]

Array = NDArray[np.float64]


@dataclass(repr=False)
class GridScores(Readable):
    """What the folds say about every setting.

    Attributes
    ----------
    settings : list of dict
    test, train : dict of arrays of shape (folds, settings)
        By scorer; ``train`` is empty if it was not asked for.
    fit_time, score_time : arrays of shape (folds,)
        Seconds for all settings.
    route : str
    estimators : list of lists
        For each fold the fitted estimators, if they are kept.
    verdicts : list of Verdict
        Whether the fits got as near to their minima as was asked for, as far as that is known.
    """

    settings: list[Setting]
    test: dict[str, Array]
    train: dict[str, Array]
    fit_time: Array
    score_time: Array
    route: str
    estimators: list[list[Any]]
    verdicts: list[Verdict]


def evaluate_grid(
    model: Any,
    settings: Sequence[Setting],
    task: Task,
    scorers: Scorers,
    *,
    train: bool = False,
    keep: bool = False,
    weigh_scores: bool = False,
    way: GridFits | None = None,
) -> GridScores:
    """Fit all settings to the training rows of every fold, and score them."""
    way = way or choose_fits(model, settings, task)
    fit_time, score_time = [], []
    test_rows: list[dict[str, Array]] = []
    train_rows: list[dict[str, Array]] = []
    kept: list[list[Any]] = []
    verdicts: list[Verdict] = []
    for fold in task.folds:
        start = time.perf_counter()
        task.watch(f"fold {fold.number + 1} of {len(task.folds)}")
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", ConvergenceWarning)
            fits = way.fit(fold)
        verdicts += fits.verdicts
        for one in caught:  # fits that are judged are counted, and said once
            if not (fits.verdicts and issubclass(one.category, ConvergenceWarning)):
                warnings.warn_explicit(one.message, one.category, one.filename, one.lineno)
        middle = time.perf_counter()
        count = len(way.settings)
        test_rows.append(score_fits(fits, count, fold, "test", scorers, weigh_scores))
        if train:
            train_rows.append(score_fits(fits, count, fold, "train", scorers, weigh_scores))
        score_time.append(time.perf_counter() - middle)
        fit_time.append(middle - start)
        if keep:
            kept.append([fits.estimator(i) for i in range(count)])
    return GridScores(
        way.settings,
        _stacked(test_rows),
        _stacked(train_rows),
        np.array(fit_time),
        np.array(score_time),
        way.route,
        kept,
        verdicts,
    )


def _stacked(rows: list[dict[str, Array]]) -> dict[str, Array]:
    return {name: np.array([row[name] for row in rows]) for name in rows[0]} if rows else {}


def score_fits(
    fits: Fits, count: int, fold: FoldRows, part: str, scorers: Scorers, weigh: bool
) -> dict[str, Array]:
    """The scores of all settings on a part of a fold, by scorer."""
    task = fold.task
    weights = fold.weights(part) if weigh else None
    kind = task.is_classifier
    metrics = {name: fast_metric(scorer, kind) for name, scorer in scorers.items()}
    predicted = None
    if any(metric is not None for metric in metrics.values()):
        predicted = fits.predictions(fold, part)
    scores: dict[str, Any] = {}
    rows: tuple[Any, Any] | None = None
    for name, scorer in scorers.items():
        metric = metrics[name]
        if metric is not None and predicted is not None:
            truth = fold.codes(part) if task.is_classifier else task.y[getattr(fold.split, part)]
            scores[name] = metric(truth, predicted, weights)
            continue
        rows = rows or fold.part(part)[:2]
        given = {"sample_weight": weights} if weights is not None and takes_weights(scorer) else {}
        values = [scorer(fits.scored(i), *rows, **given) for i in range(count)]
        if values and isinstance(values[0], dict):
            for key in values[0]:
                scores[key] = np.array([value[key] for value in values], dtype=float)
        else:
            scores[name] = np.array(values, dtype=float)
    return scores
