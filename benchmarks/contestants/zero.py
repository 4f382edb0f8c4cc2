"""The model that predicts the mean: how far from the optimum nothing is."""

from __future__ import annotations

import numpy as np

from benchmarks.contestants.base import Contestant
from benchmarks.objective import Answer, Data


def nothing(data: Data) -> Answer:
    """Zero coefficients."""
    level = float(data.y.mean()) if data.fit_intercept else 0.0
    return Answer(np.zeros(data.X.shape[1]), level)


CONTESTANTS = (
    Contestant("zero", dict.fromkeys(("least_squares", "ridge_cv", "ridge_folds"), nothing)),
)
