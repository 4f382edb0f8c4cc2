"""Walks that fit all folds at once, and know the labels of all rows at the end."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trueline.evaluation.task import FoldRows, Task
from trueline.evaluation.walks.base import Fits, LinearFits, Setting, Walk
from trueline.guard import Verdict

__all__ = ["JointWalk", "ScoredFits", "SolvedFolds", "fold_weights", "judge_decrease"]

Array = NDArray[np.float64]

_COARSEST, _UNDERFLOW = 1e-5, 1e-280


@dataclass
class SolvedFolds:
    """Coefficients by fold, and the predictions of all rows.

    Attributes
    ----------
    W : array of shape (d, settings, folds, k)
    b : array of shape (settings, folds, k)
    codes : array of shape (n, settings, folds)
    verdicts : list of lists of Verdict
        For each fold.
    """

    W: Array
    b: Array
    codes: NDArray[Any]
    verdicts: list[list[Verdict]]


@dataclass
class ScoredFits(LinearFits):
    """Coefficients whose predictions are known for all rows of the task."""

    codes: NDArray[Any] | None = None

    def predictions(self, fold: FoldRows, part: str) -> NDArray[Any] | None:
        assert self.codes is not None
        return self.codes[getattr(fold.split, part)]


class JointWalk(Walk):
    """Classifiers whose folds are solved together."""

    def __init__(self, model: Any, settings: Sequence[Setting]) -> None:
        super().__init__(model, settings)
        # Kept here and not with the task, where the next walk could be taken for this one.
        self._solved: tuple[Task, SolvedFolds] | None = None

    @abstractmethod
    def solve(self, task: Task) -> SolvedFolds:
        """All settings for all folds."""

    def solved(self, task: Task) -> SolvedFolds:
        """What :meth:`solve` gives, once."""
        if self._solved is None or self._solved[0] is not task:
            self._solved = task, self.solve(task)
        return self._solved[1]

    def fit(self, fold: FoldRows) -> Fits:
        solved, f = self.solved(fold.task), fold.number
        plain = self.as_linear(fold, solved.W[:, :, f], solved.b[:, f])
        codes = solved.codes[:, :, f]
        return ScoredFits(plain.W, plain.b, plain.make, True, solved.verdicts[f], codes)


def judge_decrease(decrease: float, objective: float, unit: float, tol: float) -> Verdict:
    """Whether what a fit is off by, as its model promises, is as small as was asked for.

    Losses are not negative, so that it is never more than the objective. ``unit`` is the objective
    without coefficients; less than a hundred thousandth of it nobody can tell from the scores of
    test rows.
    """
    allowed, gap = max(tol, _COARSEST) * unit + _UNDERFLOW, min(decrease, objective)
    return Verdict(bool(gap <= allowed), float(gap), allowed)


def fold_weights(task: Task) -> Array:
    """The weights of all rows in each fold, of shape (n, folds): none for rows not trained on."""
    n = task.n_samples
    counts = [np.bincount(split.train, minlength=n) for split in task.splits]
    S = np.array(counts, dtype=float).T
    return S if task.weights is None else S * task.weights[:, None]
