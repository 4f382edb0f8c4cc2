"""Cross-validation, with exact shortcuts where there are any, and nested.

In nested cross-validation the choice of hyperparameters is part of what is validated.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.base import clone, is_classifier
from sklearn.utils import _safe_indexing

from trueline.evaluation.candidates import candidates_for
from trueline.evaluation.grid_fits import Refits, fit_weights
from trueline.evaluation.grid_search import evaluate_grid, search_grid, standard_error
from trueline.evaluation.leakage import warn_of_leakage
from trueline.evaluation.leave_one_out import leave_one_out_route
from trueline.evaluation.report import setting_text
from trueline.evaluation.task import Array, as_scorers, is_leave_one_out, make_task, scorer_name
from trueline.guard import Verdict, warn_of_gaps
from trueline.wording import Readable

SHORTCUTS = ("auto", "exact", "none")


@dataclass(frozen=True, repr=False)
class CrossValidation(Readable, Mapping[str, Any]):
    """Scores of every fold, with scikit-learn's keys, and how they were found.

    Attributes
    ----------
    results : dict
        ``test_score`` (or ``test_NAME`` for each of several scorers), ``train_score``,
        ``fit_time``, ``score_time``, ``estimator``: arrays with one entry for each fold.
    route : str
        Which way was taken.
    is_exact : bool
        Whether the scores are those of refitting in every fold, up to rounding.
    measured_error : dict
        Where the way is approximate: how far it was off in the folds that were refitted to see.
    leaking : list of str
        Columns that tell the target exactly.
    """

    results: dict[str, Any]
    route: str
    is_exact: bool = True
    measured_error: dict[str, float] = field(default_factory=dict)
    leaking: list[str] = field(default_factory=list)

    def __getitem__(self, key: str) -> Any:
        return self.results[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self.results)

    def __len__(self) -> int:
        return len(self.results)

    @property
    def scorers(self) -> list[str]:
        """The names of the scorers."""
        return [key.removeprefix("test_") for key in self.results if key.startswith("test_")]

    def mean(self, scorer: str | None = None) -> float:
        """The mean over the folds; of the first scorer if none is named."""
        return float(np.mean(self.results[f"test_{scorer or self.scorers[0]}"]))

    def standard_error(self, scorer: str | None = None) -> float:
        """The standard deviation over the folds, divided by the root of their number."""
        return standard_error(self.results[f"test_{scorer or self.scorers[0]}"])

    def __str__(self) -> str:
        folds = len(self.results["fit_time"])
        lines = [
            f"{name}: {self.mean(name):.6g} ± {self.standard_error(name):.2g} ({folds} folds)"
            for name in self.scorers
        ]
        lines.append(f"route: {self.route}")
        if not self.is_exact:
            measured = ", ".join(
                f"{name} {value:.2g}" for name, value in self.measured_error.items()
            )
            lines.append(f"approximate: {measured}")
        if self.leaking:
            lines.append(f"leakage: {', '.join(self.leaking)} tell the target exactly")
        return "\n".join(lines)


def cross_validate(
    model: Any,
    X: Any,
    y: Any,
    *,
    cv: Any = None,
    scoring: Any = None,
    groups: Any = None,
    sample_weight: Any = None,
    return_train_score: bool = False,
    return_estimator: bool = False,
    shortcuts: str = "auto",
) -> CrossValidation:
    """Score a model on held-out rows; the same scores as scikit-learn's ``cross_validate``.

    Where the scores of a fold follow from something cheaper than a fit, they do: least squares,
    ridge regression, lasso and elastic net from the moments of the folds; leave-one-out of ridge
    regression, kernel ridge regression, Gaussian processes and least-squares classifiers in closed
    form. ``route`` says what happened.

    Parameters
    ----------
    model : estimator
        Any estimator of trueline or scikit-learn, pipelines included. It is not changed.
    X : array-like, sparse matrix or DataFrame with n rows
    y : array-like of shape (n,)
    cv : int, splitter or iterable of (train, test), optional
        Any splitter of scikit-learn: k folds, repeated, leave-one-out, grouped, in order of time.
        None means five folds, stratified for classifiers.
    scoring : str, callable, list of str or dict, optional
        Any scorer of scikit-learn; None means the model's own score.
    groups : array-like of shape (n,), optional
        For splitters that keep groups together.
    sample_weight : array-like of shape (n,), optional
        Weights of the rows in the fits. Scores are not weighted, as in scikit-learn.
    return_train_score : bool, default=False
    return_estimator : bool, default=False
        Keep the fitted model of every fold.
    shortcuts : {"auto", "exact", "none"}, default="auto"
        "auto" also takes the approximate leave-one-out of logistic regression (K. Rahnama Rad and
        A. Maleki, J. R. Stat. Soc. B 82 (2020) 965-996), whose error is measured on some folds;
        "exact" does not; "none" refits in every fold.

    Returns
    -------
    result : CrossValidation
        A mapping with scikit-learn's keys that prints as a summary.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from trueline import Ridge, cross_validate
    >>> X, y = load_diabetes(return_X_y=True)
    >>> result = cross_validate(Ridge(alpha=0.1), X, y, cv=5)
    >>> result["test_score"].round(3)
    array([0.411, 0.518, 0.492, 0.44 , 0.537])
    >>> print(result)
    score: 0.479882 ± 0.024 (5 folds)
    route: all folds and settings together, as problems on the same rows, from fold moments
    """
    if shortcuts not in SHORTCUTS:
        raise ValueError(f"shortcuts={shortcuts!r} is not one of {SHORTCUTS}.")
    task = make_task(
        X, y, cv=cv, groups=groups, sample_weight=sample_weight, is_classifier=is_classifier(model)
    )
    scorers = as_scorers(model, scoring)
    leaking = warn_of_leakage(task.X, task.matrix, task.y, task.is_classifier)
    asks_for_fits = return_train_score or return_estimator
    if shortcuts != "none" and not asks_for_fits and is_leave_one_out(task.splits, task.n_samples):
        found = leave_one_out_route(model, task, scorers, shortcuts == "auto")
        if found is not None:
            return CrossValidation(**vars(found), leaking=leaking)
    way = Refits(model, [{}]) if shortcuts == "none" else None
    grid = evaluate_grid(
        model,
        [{}],
        task,
        scorers,
        train=return_train_score,
        keep=return_estimator,
        way=way,
    )
    warn_of_gaps(f"cross_validate of {type(model).__name__}", "folds", grid.verdicts)
    results: dict[str, Any] = {"fit_time": grid.fit_time, "score_time": grid.score_time}
    if return_estimator:
        results["estimator"] = [estimators[0] for estimators in grid.estimators]
    for name, values in grid.test.items():
        results[f"test_{name}"] = values[:, 0]
        if return_train_score:
            results[f"train_{name}"] = grid.train[name][:, 0]
    return CrossValidation(results, grid.route, leaking=leaking)


@dataclass(frozen=True, repr=False)
class NestedCrossValidation(Readable):
    """Scores on rows that neither the fits nor the choice of settings have seen.

    Attributes
    ----------
    scores : array of shape (folds,)
        On the test rows of the outer folds.
    inner_scores : array of shape (folds,)
        The best mean score of the inner folds, by which the setting was chosen.
    settings : list of dict
        The setting chosen in each outer fold.
    scorer : str
    edges : list of str
        For each outer fold what a choice at an end of its grid means; empty if it is inside.
    """

    scores: Array
    inner_scores: Array
    settings: list[dict[str, Any]] = field(default_factory=list)
    scorer: str = "score"
    edges: list[str] = field(default_factory=list)

    @property
    def mean(self) -> float:
        """The score to report."""
        return float(self.scores.mean())

    @property
    def standard_error(self) -> float:
        return standard_error(self.scores)

    @property
    def optimism(self) -> float:
        """By how much the scores of the chosen settings were too good."""
        return float((self.inner_scores - self.scores).mean())

    def __str__(self) -> str:
        chosen = "; ".join(setting_text(setting) or "-" for setting in self.settings)
        said = "".join(f"\nnote: {edge}" for edge in dict.fromkeys(filter(None, self.edges)))
        return (
            f"{self.scorer}: {self.mean:.6g} ± {self.standard_error:.2g} "
            f"({len(self.scores)} outer folds)\n"
            f"optimism of the inner folds: {self.optimism:.2g}\nchosen: {chosen}{said}"
        )


def nested_cross_validate(
    model: Any,
    X: Any,
    y: Any,
    *,
    grid: Any = None,
    cv: Any = None,
    inner_cv: Any = None,
    scoring: Any = None,
    groups: Any = None,
    sample_weight: Any = None,
    rule: str = "min",
) -> NestedCrossValidation:
    """Score a model whose hyperparameters are chosen by cross-validation, honestly.

    In every outer fold the setting is chosen on inner folds of its training rows alone, fitted to
    all of them, and scored on the test rows: what ``cross_validate(GridSearchCV(model, grid))``
    does, with the shortcuts of :func:`~trueline.compare` in the inner folds.

    Parameters
    ----------
    model : estimator or str
        A name that :func:`~trueline.compare` knows brings its own grid.
    X, y : arrays
    grid : dict or list of dict, optional
        As for scikit-learn's ``ParameterGrid``.
    cv, inner_cv : int, splitter or iterable, optional
        Outer and inner folds; None means five. Groups go to both.
    scoring : str or callable, optional
    groups : array-like of shape (n,), optional
    sample_weight : array-like of shape (n,), optional
    rule : {"min", "1se"}, default="min"

    Returns
    -------
    result : NestedCrossValidation

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from trueline import Ridge, nested_cross_validate
    >>> X, y = load_diabetes(return_X_y=True)
    >>> result = nested_cross_validate(Ridge(), X, y, grid={"alpha": [0.01, 0.1, 1.0]})
    >>> round(result.mean, 3)
    0.48
    """
    if isinstance(model, str):
        from trueline.evaluation.comparison import guess_task

        classes = guess_task(y) == "classification"
    else:
        classes = is_classifier(model)
    outer = make_task(
        X, y, cv=cv, groups=groups, sample_weight=sample_weight, is_classifier=classes
    )
    entry = model if grid is None else (model, grid)
    scores, inner_scores, settings, edges = [], [], [], []
    verdicts: list[Verdict] = []
    scorer: Any = None
    for split in outer.splits:
        part = _safe_indexing(outer.X, split.train), outer.y[split.train]
        weights = None if outer.weights is None else outer.weights[split.train]
        inner = make_task(
            *part,
            cv=inner_cv,
            groups=None if groups is None else _safe_indexing(groups, split.train),
            sample_weight=weights,
            is_classifier=classes,
        )
        candidate = candidates_for([entry], inner)[0]
        scorers = as_scorers(candidate.model, scoring)
        scorer = scorers["score"]
        found = search_grid(candidate, inner, scorers, rule)
        verdicts += found.grid.verdicts
        own = clone(candidate.model).set_params(**found.setting)
        own.fit(*part, **fit_weights(own, weights))
        held = _safe_indexing(outer.X, split.test), outer.y[split.test]
        scores.append(float(scorer(own, *held)))
        inner_scores.append(float(found.grid.test["score"][:, found.chosen].mean()))
        settings.append(found.setting)
        edges.append(found.edge)
    warn_of_gaps("nested_cross_validate", "folds and settings", verdicts)
    return NestedCrossValidation(
        np.array(scores), np.array(inner_scores), settings, scorer_name(scorer), edges
    )
