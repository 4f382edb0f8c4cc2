"""All suitable linear methods side by side, on the same folds.

A line says what is running, on terminals and in notebooks.
"""

from __future__ import annotations

import shutil
import sys
import time
import warnings
from collections.abc import Sequence
from contextlib import closing
from typing import Any

import numpy as np
from sklearn.base import clone, is_regressor
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.multiclass import type_of_target

from trueline.evaluation.candidates import Candidate, candidates_for
from trueline.evaluation.grid_fits import fit_weights
from trueline.evaluation.grid_search import search_grid, standard_error
from trueline.evaluation.leakage import warn_of_leakage
from trueline.evaluation.methods import method_of
from trueline.evaluation.report import Comparison, Entry, holm, paired_test
from trueline.evaluation.task import (
    Task,
    as_scorers,
    checked_target,
    is_in_order,
    make_task,
    scorer_name,
    test_shares,
)
from trueline.guard import warn_of_gaps
from trueline.table.columns import implausible_classes
from trueline.wording import is_watched

_WIDTH = 16  # characters of the bar
_OFTEN = 0.1  # seconds between two changes of what is shown


class Progress:
    """``compare [####........]  2 of 8  lasso: fold 3 of 5, 1.2 s``, rewritten in place.

    Parameters
    ----------
    title : str
    names : list of str
        What is done, one after the other.
    shown : bool, optional
        None: if standard error is a terminal, or in a notebook.
    """

    def __init__(self, title: str, names: list[str], shown: bool | None = None) -> None:
        self._title, self._names = title, names
        self._stream = sys.stderr
        self.is_shown = is_watched(self._stream) if shown is None else shown
        self._done, self._start, self._last = 0, time.perf_counter(), -1.0
        self._length = 0

    def close(self) -> None:
        """Leave an empty line, on which the result can be printed."""
        if self._length:
            self._put("")

    def begin(self, number: int) -> None:
        """The number of names that are done; the next one is running."""
        self._done, self._last = number, -1.0
        self.say("")

    def say(self, what: str) -> None:
        """What is running now."""
        now = time.perf_counter()
        if not self.is_shown or now - self._last < _OFTEN:
            return
        self._last = now
        total = len(self._names)
        filled = round(_WIDTH * self._done / total)
        bar = "#" * filled + "." * (_WIDTH - filled)
        doing = self._names[self._done] + (f": {what}" if what else "")
        seconds = f"{now - self._start:.0f} s"
        self._put(f"{self._title} [{bar}] {self._done} of {total}  {doing}, {seconds}")

    def _put(self, line: str) -> None:
        line = line[: shutil.get_terminal_size().columns - 1]
        padding = " " * (self._length - len(line))
        # Twice to the beginning: what is printed next starts there.
        self._stream.write(f"\r{line}{padding}" + ("" if line else "\r"))
        self._stream.flush()
        self._length = len(line)


RULES = ("min", "1se")


def compare(
    X: Any,
    y: Any,
    models: Any = None,
    *,
    cv: Any = None,
    scoring: Any = None,
    groups: Any = None,
    sample_weight: Any = None,
    task: str | None = None,
    rule: str = "min",
    scale: bool = False,
    progress: bool | None = None,
) -> Comparison:
    """Compare linear methods on the same folds, with the hyperparameters of each chosen.

    Every model is fitted for all settings of its grid to the training rows of every fold; the
    setting is chosen by the mean score on the test rows, as ``GridSearchCV`` does, and fitted to
    all rows. Work is shared: fold moments, one decomposition for all strengths, paths in which each
    fit starts at the one before.

    The grids of models given by name come from the data, and are continued where the best score is
    at an end. A choice at an end of its grid is marked in the table, with a line that says what it
    means.

    Ctrl-C ends the comparison: the models that are finished are returned, and the table names the
    others. If none is finished, ``KeyboardInterrupt`` is raised as usual.

    The score of a setting that was chosen on the same folds is a little too good. For a number to
    report see :func:`~trueline.nested_cross_validate`.

    Parameters
    ----------
    X : array-like, sparse matrix or DataFrame with n rows
    y : array-like of shape (n,)
    models : list or dict, optional
        Names (``"ridge"``, ``"averaged perceptron"``), estimators, or pairs ``(estimator, grid)``,
        of trueline or of scikit-learn; a dict names them. None: the usual linear methods that suit.
        An unknown name gets an error with all that are known.
    cv : int, splitter or iterable, optional
        None means five folds, stratified for classes.
    scoring : str or callable, optional
        One scorer, larger is better. None means R^2, or accuracy for classes.
    groups : array-like of shape (n,), optional
    sample_weight : array-like of shape (n,), optional
        Weights in the fits and, where the scorer takes them, in the scores, as in ``GridSearchCV``.
    task : {"regression", "classification"}, optional
        None: classes if y holds words, booleans, or whole numbers that are few and two or more of
        each.
    rule : {"min", "1se"}, default="min"
        Settings and models of the best mean score, or the simplest within one standard error of it.
    scale : bool, default=False
        Standardise the columns, by the training rows of each fold, for models given by name.
    progress : bool, optional
        Whether a line on standard error says what is running. None: on a terminal and in a
        notebook.

    Returns
    -------
    comparison : Comparison
        Prints as a table; ``plot()``, ``to_frame()``, ``best``, ``methods()``.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from trueline import compare
    >>> X, y = load_diabetes(return_X_y=True)
    >>> comparison = compare(X, y, models=["mean", "least squares", "ridge", "lasso"])
    >>> [entry.name for entry in comparison.entries][-1]
    'mean'
    >>> comparison.best.name, bool(comparison.best.model.verify(X, y))
    ('lasso', True)
    """
    if rule not in RULES:
        raise ValueError(f"rule={rule!r} is not one of {RULES}.")
    kind = task or guess_task(y)
    if kind not in ("regression", "classification"):
        raise ValueError(f"task={task!r} is neither 'regression' nor 'classification'.")
    data = make_task(
        X,
        y,
        cv=cv,
        groups=groups,
        sample_weight=sample_weight,
        is_classifier=kind == "classification",
    )
    leaking = warn_of_leakage(data.X, data.matrix, data.y, data.is_classifier)
    candidates = candidates_for(models, data, scale)
    if data.is_classifier and scoring is None:
        _refuse_regressors(candidates)
    scoring = scoring or ("accuracy" if data.is_classifier else "r2")
    if not (isinstance(scoring, str) or callable(scoring)):
        raise ValueError("compare takes one scorer: the winner must be the winner of something.")
    entries, unfinished = _entries(candidates, data, scoring, rule, progress)
    verdicts = [verdict for entry in entries for verdict in entry.grid.verdicts]
    warn_of_gaps("compare", "models, folds and settings", verdicts)
    scorer = as_scorers(candidates[0].model, scoring)["score"]
    entries.sort(key=lambda entry: -entry.score if np.isfinite(entry.score) else np.inf)
    _test_against_best(entries, test_shares(data.splits))
    name = scorer_name(scorer)
    in_order = (cv is None or isinstance(cv, int)) and is_in_order(data)
    return Comparison(entries, name, len(data.splits), rule, leaking, unfinished, in_order)


def _refuse_regressors(candidates: list[Candidate]) -> None:
    for candidate in candidates:
        if is_regressor(candidate.model):
            raise ValueError(
                f"{candidate.name!r} predicts numbers, and y looks like classes. Compare "
                "classifiers; if the values of y are amounts, say task='regression'."
            )


def guess_task(y: Any) -> str:
    """Whether y holds classes or amounts.

    Examples
    --------
    >>> from trueline.evaluation.comparison import guess_task
    >>> guess_task(["a", "b", "a"]), guess_task([0.5, 1.5, 2.0]), guess_task([0, 1, 1, 0])
    ('classification', 'regression', 'classification')
    """
    y = checked_target(y)
    if y.dtype.kind in "OUSb":
        if reason := implausible_classes(len(np.unique(y)), len(y)):
            raise ValueError(
                f"y holds texts that do not look like classes: {reason}. Convert amounts such as "
                "'$4,733' to numbers; task='classification' compares the texts as classes."
            )
        return "classification"
    if not type_of_target(y).startswith(("binary", "multiclass")):
        return "regression"
    values, counts = np.unique(y, return_counts=True)
    few = len(values) == 2 or (len(values) <= 30 and counts.min() >= 2)
    return "classification" if few else "regression"


def _entries(
    candidates: list[Candidate], task: Task, scoring: Any, rule: str, progress: bool | None
) -> tuple[list[Entry], list[str]]:
    """All models, and the names of those that an interrupt left out."""
    names = [candidate.name for candidate in candidates]
    entries: list[Entry] = []
    with closing(Progress("compare", names, progress)) as shown:
        task.watch = shown.say
        try:
            for number, candidate in enumerate(candidates):
                shown.begin(number)
                entries.append(_entry(candidate, task, scoring, rule))
        except KeyboardInterrupt:
            if not entries:
                raise
    return entries, names[len(entries) :]


def _entry(candidate: Candidate, task: Task, scoring: Any, rule: str) -> Entry:
    """One model: its scores on the folds, the chosen setting, and the fit to all rows."""
    start = time.perf_counter()
    scorers = as_scorers(candidate.model, scoring)
    weigh = task.weights is not None
    search = search_grid(candidate, task, scorers, rule, train=True, weigh_scores=weigh)
    grid, chosen, setting = search.grid, search.chosen, search.setting
    searched = time.perf_counter() - start
    start = time.perf_counter()
    task.watch("all rows")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ConvergenceWarning)
        model = clone(candidate.model).set_params(**setting)
        model.fit(task.X, task.y, **fit_weights(model, task.weights))
        notes = [str(warning.message) for warning in caught]
    seconds = time.perf_counter() - start
    test, train = grid.test["score"][:, chosen], grid.train["score"][:, chosen]
    used, count = _nonzeros(model)
    return Entry(
        name=candidate.name,
        model=model,
        setting=setting,
        score=float(test.mean()),
        standard_error=standard_error(test),
        train_score=float(train.mean()),
        fold_scores=test,
        fit_seconds=seconds,
        search_seconds=searched,
        nonzeros=used,
        coefficients=count,
        gap=_gap(model),
        route=grid.route,
        grid=grid,
        notes=notes,
        edge=search.edge,
        method=method_of(model),
    )


def _nonzeros(model: Any) -> tuple[int | None, int | None]:
    last = model.steps[-1][1] if hasattr(model, "steps") else model
    coef = getattr(last, "coef_", None)
    if coef is None:
        return None, None
    return int(np.count_nonzero(coef)), int(np.size(coef))


def _gap(model: Any) -> float | None:
    """The proven gap, relative to the objective."""
    last = model.steps[-1][1] if hasattr(model, "steps") else model
    if not type(last).__module__.startswith("trueline"):
        return None
    try:
        return float(last.certificate_.relative_gap)
    except AttributeError:
        return None


def _test_against_best(entries: Sequence[Entry], share: float) -> None:
    """Differences to the best, with the corrected test and Holm's adjustment."""
    tests = [paired_test(entries[0].fold_scores, e.fold_scores, share) for e in entries]
    adjusted = holm([test.p_value for test in tests[1:]])
    for number, (entry, test) in enumerate(zip(entries, tests)):
        if number:
            entry.difference, entry.difference_error = test.difference, test.standard_error
            entry.p_value, entry.p_adjusted = test.p_value, float(adjusted[number - 1])
