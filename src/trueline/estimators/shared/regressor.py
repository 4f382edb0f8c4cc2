"""What linear regressors share: real targets, rows without weight, predictions."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import MultiOutputMixin, RegressorMixin
from sklearn.utils import column_or_1d

from trueline.estimators.shared.base import Host
from trueline.estimators.shared.validation import (
    checked_rows,
    is_plain,
    keep_columns_of,
    numeric_target,
    without_idle_extremes,
)
from trueline.problem import Problem

__all__ = ["LinearRegressorBase", "SingleTarget", "real_problem"]

Array = NDArray[np.float64]


class LinearRegressorBase(MultiOutputMixin, RegressorMixin, Host):
    """Regression: real targets, scores are predictions."""

    #: Whether a target of shape (n, 1) gives ``coef_`` of shape (1, d) (as in least squares) or
    #: (d,) (as in ridge regression): scikit-learn does both.
    _keeps_single_target = True
    #: Whether a model is for "one" target (a column of it is taken as such), for "several"
    #: together, or for "any" number of them.
    _targets = "any"
    #: Whether rows of weight zero must not be in the problem: a dual point has an entry for each.
    _leaves_out_idle_rows = False

    def _posed_on_all_rows(self, X: Any, Y: Array, weights: Array, classes: None = None) -> Problem:
        """The problem of checked data, with rows of weight zero in their place."""
        return self._problem(X, Y, weights)

    def _validated_problem(
        self, X: Any, y: Any, sample_weight: Any, reset: bool
    ) -> tuple[Problem, Any, NDArray[Any]]:
        return real_problem(self, X, y, sample_weight, reset)

    def _fitted_attributes(
        self, W: NDArray[Any], b: NDArray[Any], y_ndim: int, fit_intercept: bool
    ) -> dict[str, Any]:
        """Coefficients and intercepts in scikit-learn's shapes."""
        single = y_ndim == 1 or (not self._keeps_single_target and W.shape[1] == 1)
        coef = W[:, 0].copy() if single else np.ascontiguousarray(W.T)
        intercept: Any = 0.0
        if fit_intercept:
            intercept = b[0] if y_ndim == 1 else b
        return {"coef_": coef, "intercept_": intercept}

    def predict(self, X: Any) -> NDArray[Any]:
        """Predict the target for new rows.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)

        Returns
        -------
        y : array of shape (n,) or (n, k)
        """
        return self._scores(X)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = self._targets != "one"
        tags.target_tags.single_output = self._targets != "several"
        return tags


class SingleTarget:
    """One target, and a dual point with an entry for every row that counts."""

    _keeps_single_target = False
    _targets = "one"
    _leaves_out_idle_rows = True


def real_problem(
    model: Any, X: Any, y: Any, sample_weight: Any, reset: bool
) -> tuple[Problem, Any, NDArray[Any]]:
    """Check the data of a model with real targets, and state its problem."""
    ndim = np.ndim(y) if isinstance(y, list | tuple) else getattr(y, "ndim", 1)
    if model._targets == "one" and ndim == 2:
        y = column_or_1d(y, warn=True)
    if not is_plain(X, y):
        with numeric_target(model, y):
            X, y = checked_rows(model, X, y, reset, multi_output=True, y_numeric=True)
    elif reset:
        keep_columns_of(model, X)
    weights = model._weights(sample_weight, X)
    with numeric_target(model, y):
        Y = (y.reshape(-1, 1) if y.ndim == 1 else y).astype(np.float64, copy=False)
    if weights is None or weights.all():
        return model._problem(X, Y, weights), X, y
    # Rows of weight zero are left out, or only what is so large in them that its square would
    # overflow: zero times infinity is no number.
    if not model._leaves_out_idle_rows:
        return model._problem(*without_idle_extremes(X, Y, weights), weights), X, y
    present = np.flatnonzero(weights)
    rows = (X.tocsr() if sp.issparse(X) else X)[present]
    return model._problem(rows, Y[present], weights[present]), X, y
