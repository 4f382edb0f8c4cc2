"""Cross-validation that takes exact shortcuts where there are any, and says so."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_classifier

from trueline.evaluation.grids.fits import Refits
from trueline.evaluation.grids.grid import evaluate_grid
from trueline.evaluation.leakage import warn_of_leakage
from trueline.evaluation.leave_one_out import leave_one_out_route
from trueline.evaluation.scoring import as_scorers
from trueline.evaluation.splits import is_leave_one_out
from trueline.evaluation.task import make_task
from trueline.guard import warn_of_gaps
from trueline.wording import Readable

__all__ = ["CrossValidation", "cross_validate"]

Array = NDArray[np.float64]
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
        values = self.results[f"test_{scorer or self.scorers[0]}"]
        if len(values) < 2:
            return float("nan")
        return float(np.std(values, ddof=1) / np.sqrt(len(values)))

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
            return CrossValidation(
                found.results, found.route, found.is_exact, found.measured_error, leaking
            )
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
