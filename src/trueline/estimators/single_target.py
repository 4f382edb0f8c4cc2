"""Regressors of one target whose rows of weight zero must be left out altogether."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import column_or_1d

from trueline.estimators.base import LinearRegressorBase
from trueline.problem import Problem

__all__ = ["SingleTargetRegressor"]

Array = NDArray[np.float64]


class SingleTargetRegressor(LinearRegressorBase):
    """One target, and a dual point with an entry for every row that counts."""

    _keeps_single_target = False
    _targets = "one"
    _leaves_out_idle_rows = True

    def _validated_problem(
        self, X: Any, y: Any, sample_weight: Any, reset: bool
    ) -> tuple[Problem, Any, NDArray[Any]]:
        if (np.ndim(y) if isinstance(y, list | tuple) else getattr(y, "ndim", 1)) == 2:
            y = column_or_1d(y, warn=True)
        return super()._validated_problem(X, y, sample_weight, reset)
