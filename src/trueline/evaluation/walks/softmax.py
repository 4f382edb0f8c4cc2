"""Softmax regression with squares, absolute values or both, on dense rows of few columns."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from trueline.estimators.logistic import penalty_of
from trueline.evaluation.task import Task
from trueline.evaluation.walks.coupled import solve_coupled, suits_coupled
from trueline.evaluation.walks.joint import JointWalk, SolvedFolds, fold_weights

__all__ = ["CoupledWalk", "suits_walk"]

Array = NDArray[np.float64]

# Of the objective. Scores of test rows are those of fits a thousand times finer, but for a label in
# some ten thousand.
_TOL = 1e-8
# The fit to all rows is left as near as rounding allows: its proof is then one look away.
_FINE = 1e-15
# Beyond, squares are at risk.
_LARGEST = 1e100


def suits_walk(task: Task, l1_ratio: float | None) -> bool:
    """Whether rows are dense, and sharing a Hessian is expected to be faster than other ways."""
    X, k = task.matrix, len(task.labels[0])
    if sp.issparse(X) or k < 3:
        return False
    n, d = X.shape
    is_faster = suits_coupled(n, d, k, has_absolute_values=bool(l1_ratio))
    return is_faster and float(np.abs(X).max(initial=0.0)) < _LARGEST


class CoupledWalk(JointWalk):
    """All folds along decreasing strengths, with a Hessian that they share."""

    route = "all folds at once: Newton steps that share a Hessian, along the strengths"

    def solve(self, task: Task) -> SolvedFolds:
        strengths = self._strengths()
        return SolvedFolds(*self._solve(task, fold_weights(task), strengths, _TOL))

    def start(self, task: Task, number: int) -> tuple[Array, Array]:
        """From the mean of the folds."""
        near = self.solved(task)
        mean = near.W[:, number].mean(axis=1), near.b[number].mean(axis=0)
        s = np.ones(task.n_samples) if task.weights is None else task.weights
        W, b, *_ = self._solve(task, s[:, None], [self._strengths()[number]], _FINE, mean)
        return W[:, 0, 0], b[0, 0]

    def _strengths(self) -> list[tuple[float, float]]:
        penalties = [penalty_of(self.model, float(C)) for C in self.values("C")]
        return [(_number(p.linear), _number(p.curvature)) for p in penalties]

    def _solve(self, task: Task, S: Array, strengths: Any, tol: float, start: Any = None) -> Any:
        classes, codes = task.labels
        intercept = bool(self.model.fit_intercept)
        rows = task.matrix, codes, len(classes)
        return solve_coupled(*rows, S, strengths, intercept, tol, start, task.watch)


def _number(strength: Any) -> float:
    return float(np.max(strength))
