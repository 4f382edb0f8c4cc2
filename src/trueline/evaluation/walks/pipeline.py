"""Pipelines: what comes before the last step is fitted once for each fold, not for each setting."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.pipeline import Pipeline

from trueline.evaluation.splits import Split
from trueline.evaluation.task import FoldRows, Task
from trueline.evaluation.walks.base import Fits, Setting, Walk

__all__ = ["PipelineWalk", "same_settings", "steps_before"]


def steps_before(model: Pipeline) -> Any:
    """The pipeline without its last step."""
    return Pipeline(model.steps[:-1])


@dataclass
class PipelineFits(Fits):
    """Fits of the last step, on rows that the first steps have transformed."""

    inner: Fits
    fold: FoldRows
    first: Any
    name: str

    def __post_init__(self) -> None:
        self.verdicts = self.inner.verdicts

    def estimator(self, number: int) -> Any:
        return Pipeline([*self.first.steps, (self.name, self.inner.estimator(number))])

    def predictions(self, fold: FoldRows, part: str) -> NDArray[Any] | None:
        return self.inner.predictions(self.fold, part)


class PipelineWalk(Walk):
    """A walk of the last step behind transformers that are the same for all settings."""

    def __init__(
        self,
        model: Pipeline,
        settings: Sequence[Setting],
        choose: Callable[[Any, Sequence[Setting], Task], Walk],
    ) -> None:
        super().__init__(model, settings)
        self._choose = choose
        self.route = "the steps before the model are fitted once for each fold"

    def fit(self, fold: FoldRows) -> Fits:
        name, last = self.model.steps[-1]
        first, inner = self._transformed(fold)
        cut = len(name) + 2
        settings = [{key[cut:]: value for key, value in s.items()} for s in self.settings]
        walk = self._choose(last, settings, inner)
        self.route = f"{walk.route}; the steps before are fitted once for each fold"
        inner_fold = inner.folds[0]
        return PipelineFits(walk.fit(inner_fold), inner_fold, first, name)

    def _transformed(self, fold: FoldRows) -> tuple[Any, Task]:
        """The fitted transformers, and a task of one fold behind them."""
        first = steps_before(self.model)
        kept: list[tuple[Any, Any, Task]]
        kept = fold.task.shared(("rows", fold.number, "behind"), list)
        for steps, fitted, inner in kept:
            if same_settings(steps, first):
                return fitted, inner

        own = clone(first)
        X, y, weights = fold.part("train")
        train = own.fit_transform(X, y)
        test = own.transform(fold.part("test")[0])
        inner = _one_fold(fold.task, fold, train, test, weights)
        kept.append((clone(first), own, inner))
        return own, inner


def same_settings(a: Any, b: Any) -> bool:
    """Whether two values, estimators among them, are certain to be the same.

    Printed forms would not do: scikit-learn and NumPy leave out the middle of what is long.
    """
    if a is b:
        return True
    if type(a) is not type(b):
        return False
    if hasattr(a, "get_params") and not isinstance(a, type):
        return same_settings(a.get_params(deep=False), b.get_params(deep=False))
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same_settings(a[key], b[key]) for key in a)
    if isinstance(a, list | tuple):
        return len(a) == len(b) and all(map(same_settings, a, b))
    if isinstance(a, np.ndarray):
        return a.dtype == b.dtype and a.dtype.kind != "O" and np.array_equal(a, b)
    if isinstance(a, str | bytes | int | float | np.generic | set | frozenset):
        return bool(a == b)
    return False


def _one_fold(task: Task, fold: FoldRows, train: Any, test: Any, weights: Any) -> Task:
    """A task whose only fold has these rows."""
    if sp.issparse(train):
        matrix: Any = sp.csr_array(sp.vstack([train, test], format="csr"))
    else:
        matrix = np.vstack([np.asarray(train), np.asarray(test)])
    rows = np.concatenate([fold.split.train, fold.split.test])
    first = np.arange(len(fold.split.train))
    split = Split(first, np.arange(len(first), len(rows)))
    every = None if task.weights is None else task.weights[rows]
    numbers = matrix.astype(np.float64, copy=False) if matrix.dtype.kind in "fiub" else None
    inner = Task(matrix, task.y[rows], every, [split], task.is_classifier, numbers, task.watch)
    if task.is_classifier:  # classes of all rows, also where a fold lacks one
        inner.__dict__["labels"] = task.labels[0], task.labels[1][rows]
    return inner
