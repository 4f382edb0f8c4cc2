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

__all__ = ["PipelineWalk", "steps_before"]


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
        key = ("rows", fold.number, "behind", repr(first))

        def make() -> tuple[Any, Task]:
            own = clone(first)
            X, y, weights = fold.part("train")
            train = own.fit_transform(X, y)
            test = own.transform(fold.part("test")[0])
            return own, _one_fold(fold.task, fold, train, test, weights)

        return fold.task.shared(key, make)


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
    inner = Task(matrix, task.y[rows], every, [split], task.is_classifier, numbers)
    if task.is_classifier:  # classes of all rows, also where a fold lacks one
        inner.__dict__["labels"] = task.labels[0], task.labels[1][rows]
    return inner
