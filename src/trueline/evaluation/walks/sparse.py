"""Logistic regression with absolute values along a path of strengths, each fit from the last.

The strengths decrease, so that few columns are in play at first, and each working set starts with
the columns of the solution before. A fit of a fold is there to be scored: its gap is a millionth of
the objective of the zero model, far below what moves a score of test rows.
"""

from __future__ import annotations

import warnings

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from trueline.evaluation.task import FoldRows
from trueline.evaluation.walks.base import Fits, Walk

__all__ = ["SparseLogisticWalk"]

# Its square is the gap asked for, relative to the objective of the zero model.
_TOL = 1e-3


class SparseLogisticWalk(Walk):
    """Fits for increasing C, each warm-started."""

    route = "along the strengths, each fit starting at the one before"

    def fit(self, fold: FoldRows) -> Fits:
        task = fold.task
        classes, codes = task.labels
        X, weights = fold.matrix("train"), fold.weights("train")
        own = clone(self.model)
        own.classes_, own.n_features_in_ = classes, X.shape[1]
        own.tol, own.warm_start = max(float(own.tol), _TOL), False
        costs = np.array([float(C) for C in self.values("C")])
        k = 1 if len(classes) == 2 else len(classes)
        W, b = np.empty((X.shape[1], len(costs), k)), np.empty((len(costs), k))
        for i in np.argsort(costs, kind="stable"):
            own.C = float(costs[i])
            problem, own._present = own._posed(X, classes, codes[fold.split.train], weights)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)
                own._solve_and_store(problem, X, codes[fold.split.train], None)
            own.warm_start = True
            W[:, i], b[i] = own.coef_.T, own.intercept_
        return self.as_linear(fold, W, b)
