"""Scores of all settings of a grid on all folds, and the best of them.

A grid of our own is continued where the best setting is at its end.

It is continued until the best is inside, until the score stops changing, or as often as its axis
allows. A choice at an end is never silent: :attr:`Search.edge` says what it means.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from trueline.evaluation.candidates import Candidate
from trueline.evaluation.grid_fits import Fits, GridFits, Setting, choose_fits
from trueline.evaluation.task import Array, FoldRows, Scorers, Task, takes_weights
from trueline.guard import Verdict
from trueline.selection.cross_validation import fast_metric
from trueline.wording import Readable


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


# Of the standard error of the best score, and of the score itself: after a smaller change from one
# setting to the next the search stops.
_STILL, _ROUNDING = 1e-3, 1e-9
# Where a parameter ends by itself, there is nothing beyond.
_LIMITS = {"l1_ratio": (0.0, 1.0), "alpha": (0.0, np.inf), "C": (0.0, np.inf)}


@dataclass
class Search:
    """All settings that were scored, the simplest first, and the one that was chosen.

    Attributes
    ----------
    grid : GridScores
    chosen : int
    edge : str
        What is to be said if the choice is at an end of the grid; empty if it is inside.
    """

    grid: GridScores
    chosen: int
    edge: str

    @property
    def setting(self) -> Setting:
        return self.grid.settings[self.chosen]


def search_grid(
    candidate: Candidate,
    task: Task,
    scorers: Scorers,
    rule: str,
    *,
    train: bool = False,
    weigh_scores: bool = False,
) -> Search:
    """Score the grid of a candidate on all folds, and choose.

    Parameters
    ----------
    candidate : Candidate
    task : Task
    scorers : dict of scorers
        The one named "score" chooses.
    rule : {"min", "1se"}
    train : bool, default=False
        Whether training rows are scored, too.
    weigh_scores : bool, default=False

    Returns
    -------
    search : Search
    """

    def score(settings: list[Setting]) -> GridScores:
        return evaluate_grid(
            candidate.model, settings, task, scorers, train=train, weigh_scores=weigh_scores
        )

    grid = score(candidate.settings)
    axis = candidate.axis
    for at_simple_end in (True, False) if axis is not None else ():
        assert axis is not None
        for _ in range(axis.extensions):
            if not _is_open(grid, rule, at_simple_end):
                break
            more = axis.beyond(grid.settings, at_simple_end)
            if not more:
                break
            found = score(more)
            grid = _joined(found, grid) if at_simple_end else _joined(grid, found)
    chosen = choose_setting(grid, rule)
    return Search(grid, chosen, _edge(candidate, grid, chosen))


def choose_setting(grid: GridScores, rule: str) -> int:
    """The best mean score (the first of equals), or the first within one standard error of it.

    Settings are in order of complexity, the simplest first.
    """
    scores = grid.test["score"]
    mean = scores.mean(axis=0)
    if not np.isfinite(mean).any():
        return 0
    best = int(np.nanargmax(mean))
    if rule == "min" or len(scores) < 2:
        return best
    limit = mean[best] - standard_error(scores[:, best])
    return int(np.argmax(mean >= limit))


def standard_error(values: Array) -> float:
    """Of the mean over the folds."""
    return float(values.std(ddof=1) / np.sqrt(len(values))) if len(values) > 1 else float("nan")


def _is_open(grid: GridScores, rule: str, at_simple_end: bool) -> bool:
    """Whether the best score or the choice is at this end, and the score still changes there."""
    end = 0 if at_simple_end else len(grid.settings) - 1
    if end not in (choose_setting(grid, rule), choose_setting(grid, "min")):
        return False
    return not _is_still(grid, end)


def _is_still(grid: GridScores, end: int) -> bool:
    """Whether the score no longer changes from setting to setting at an end."""
    scores = grid.test["score"]
    mean = scores.mean(axis=0)
    if len(mean) < 2 or not np.isfinite(mean[end]):
        return True
    neighbour = mean[1] if end == 0 else mean[-2]
    error = standard_error(scores[:, end])
    allowed = _ROUNDING * abs(mean[end]) + (_STILL * error if np.isfinite(error) else 0.0)
    return bool(abs(mean[end] - neighbour) <= allowed)


def _joined(a: GridScores, b: GridScores) -> GridScores:
    """The scores of the settings of a, then those of b, on the same folds."""

    def side_by_side(x: dict[str, Array], y: dict[str, Array]) -> dict[str, Array]:
        return {name: np.hstack([x[name], y[name]]) for name in x}

    return replace(
        a,
        settings=[*a.settings, *b.settings],
        test=side_by_side(a.test, b.test),
        train=side_by_side(a.train, b.train),
        fit_time=a.fit_time + b.fit_time,
        score_time=a.score_time + b.score_time,
        verdicts=[*a.verdicts, *b.verdicts],
    )


def _edge(candidate: Candidate, grid: GridScores, chosen: int) -> str:
    """What is to be said of a choice at an end of its grid."""
    axis = candidate.axis
    if axis is None:
        return "; ".join(_given_edges(grid.settings, chosen))
    if len(grid.settings) < 2 or chosen not in (0, len(grid.settings) - 1):
        return ""
    name, value = axis.name, grid.settings[chosen][axis.name]
    if chosen == 0 and axis.leaves_nothing:
        return f"{_short(name)}={value:.4g} leaves no column: none of them helped"
    which = "largest" if (axis.factor < 1) == (chosen == 0) else "smallest"
    tried = f"{_short(name)}={value:.4g} is the {which} that was tried"
    if _is_still(grid, chosen):
        return f"{tried}; beyond it the score hardly changes"
    return f"{tried}; the score still changes there, values beyond it may do better"


def _given_edges(settings: list[Setting], chosen: int) -> list[str]:
    """The numbers of a choice that are the smallest or largest of a grid that the caller gave."""
    said = []
    for name, value in settings[chosen].items():
        values = [setting[name] for setting in settings if name in setting]
        if not all(_is_number(other) for other in values):
            continue
        low, high = min(values), max(values)
        ends = _LIMITS.get(_short(name), (-np.inf, np.inf))
        if low < high and value in (low, high) and value not in ends:
            which = "smallest" if value == low else "largest"
            said.append(
                f"{_short(name)}={value:.4g} is the {which} of the grid that was given, values "
                "beyond it may do better"
            )
    return said


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | np.number) and not isinstance(value, bool)


def _short(name: str) -> str:
    return name.rpartition("__")[2]
