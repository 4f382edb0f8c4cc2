"""Regressors of one target whose rows of weight zero must be left out altogether."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.utils import column_or_1d

from trueline.estimators.base import LinearRegressorBase
from trueline.problem import Problem

__all__ = ["SingleTargetRegressor"]

Array = NDArray[np.float64]


class SingleTargetRegressor(LinearRegressorBase):
    """One target, and a dual point with an entry for every row that counts."""

    _keeps_single_target = False

    def _validated_problem(
        self, X: Any, y: Any, sample_weight: Any, reset: bool
    ) -> tuple[Problem, Any, NDArray[Any]]:
        if (np.ndim(y) if isinstance(y, list | tuple) else getattr(y, "ndim", 1)) == 2:
            y = column_or_1d(y, warn=True)
        return super()._validated_problem(X, y, sample_weight, reset)

    def _without_idle_rows(self, X: Any, Y: Array, weights: Array) -> tuple[Any, Array, Array]:
        """Only the rows that count: a dual point has an entry for every row."""
        present = np.flatnonzero(weights)
        X = X.tocsr() if sp.issparse(X) else X
        return X[present], Y[present], weights[present]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = False
        return tags
