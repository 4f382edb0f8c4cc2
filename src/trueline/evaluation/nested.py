"""Nested cross-validation: the choice of hyperparameters is part of what is validated."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone, is_classifier
from sklearn.utils import _safe_indexing

from trueline.evaluation.grids.candidates import candidates_for
from trueline.evaluation.grids.fits import fit_weights
from trueline.evaluation.grids.search import search_grid
from trueline.evaluation.report import setting_text
from trueline.evaluation.scoring import as_scorers, scorer_name
from trueline.evaluation.task import make_task
from trueline.guard import Verdict, warn_of_gaps
from trueline.wording import Readable

__all__ = ["NestedCrossValidation", "nested_cross_validate"]

Array = NDArray[np.float64]


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
        if len(self.scores) < 2:
            return float("nan")
        return float(self.scores.std(ddof=1) / np.sqrt(len(self.scores)))

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
