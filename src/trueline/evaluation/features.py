r"""Ridge regression on radial basis functions, for curves against their number.

    f(x) = b + sum_c w_c exp(-||x - m_c||^2 / (2 r^2)),      r the median distance of the centres

with centres m_c spread over the training rows: rows taken farthest first (T. F. Gonzalez, Theoret.
Comput. Sci. 38 (1985) 293-306), so that the centres of fewer functions are among those of more.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.metrics import pairwise_distances
from sklearn.utils.validation import check_is_fitted

from trueline.estimators.regression.ridge import Ridge
from trueline.estimators.shared.validation import validate_data

__all__ = ["RadialRidge"]

Array = NDArray[np.float64]


class RadialRidge(RegressorMixin, BaseEstimator):
    """Radial basis functions, with coefficients by ridge regression.

    Parameters
    ----------
    n_centres : int, default=10
    width : float, optional
        None means the median distance between neighbouring centres, times two.
    alpha : float, default=1e-6
        Strength of the squares.
    """

    def __init__(
        self, n_centres: int = 10, *, width: float | None = None, alpha: float = 1e-6
    ) -> None:
        self.n_centres = n_centres
        self.width = width
        self.alpha = alpha

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Choose the centres, and fit the coefficients."""
        X, y = validate_data(self, X, y, dtype=np.float64, y_numeric=True)
        self.centres_ = _farthest_first(X, min(int(self.n_centres), len(X)))
        self.width_ = self.width or _typical_distance(self.centres_, X)
        self.ridge_ = Ridge(self.alpha).fit(self._features(X), y, sample_weight)
        return self

    def _features(self, X: Array) -> Array:
        distance = pairwise_distances(X, self.centres_, metric="sqeuclidean")
        return np.exp(-distance / (2 * self.width_**2))

    def predict(self, X: Any) -> Array:
        """Predict."""
        check_is_fitted(self)
        X = validate_data(self, X, dtype=np.float64, reset=False)
        return self.ridge_.predict(self._features(X))

    def aic(self) -> float:
        """Akaike's criterion of the ridge regression."""
        return float(self.ridge_.aic())

    def bic(self) -> float:
        """Schwarz's criterion of the ridge regression."""
        return float(self.ridge_.bic())


def _farthest_first(X: Array, count: int) -> Array:
    """Rows spread over the data, beginning with the one nearest to the mean."""
    first = int(((X - X.mean(axis=0)) ** 2).sum(axis=1).argmin())
    chosen, away = [first], ((X - X[first]) ** 2).sum(axis=1)
    for _ in range(count - 1):
        chosen.append(int(away.argmax()))
        away = np.minimum(away, ((X - X[chosen[-1]]) ** 2).sum(axis=1))
    return X[chosen]


def _typical_distance(centres: Array, X: Array) -> float:
    """Twice the median distance to the next centre; of one centre, the spread of the rows."""
    if len(centres) < 2:
        return float(np.sqrt(X.var(axis=0).sum())) or 1.0
    distance = pairwise_distances(centres)
    np.fill_diagonal(distance, np.inf)
    return 2.0 * float(np.median(distance.min(axis=1))) or 1.0
