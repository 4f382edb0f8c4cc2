"""Softmax regression with squares, absolute values or both, on dense rows of few columns."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from trueline.estimators.logistic import penalty_of
from trueline.evaluation.task import Task
from trueline.evaluation.walks.coupled import solve_coupled, suits_coupled
from trueline.evaluation.walks.joint import JointWalk, SolvedFolds, fold_weights

__all__ = ["CoupledWalk", "suits_walk"]

# Of the objective. Scores of test rows are those of fits a thousand times finer, but for a label in
# some ten thousand.
_TOL = 1e-8
# Beyond, squares are at risk.
_LARGEST = 1e100


def suits_walk(task: Task) -> bool:
    """Whether rows are dense and many, and the classes times the columns are few."""
    X, k = task.matrix, len(task.labels[0])
    if sp.issparse(X) or k < 3:
        return False
    return suits_coupled(*X.shape, k) and float(np.abs(X).max(initial=0.0)) < _LARGEST


class CoupledWalk(JointWalk):
    """All folds along decreasing strengths, with a Hessian that they share."""

    route = "all folds at once: Newton steps that share a Hessian, along the strengths"

    def solve(self, task: Task) -> SolvedFolds:
        penalties = [penalty_of(self.model, float(C)) for C in self.values("C")]
        strengths = [(_number(p.linear), _number(p.curvature)) for p in penalties]
        classes, codes = task.labels
        of_rows = task.matrix, codes, len(classes), fold_weights(task)
        return SolvedFolds(*solve_coupled(*of_rows, strengths, self.model.fit_intercept, _TOL))


def _number(strength: Any) -> float:
    return float(np.max(strength))
