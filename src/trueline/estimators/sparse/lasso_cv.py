"""The lasso with the strength chosen by cross-validation."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from trueline.estimators.shared.parameters import KW_ONLY, given, parameters
from trueline.estimators.sparse.elastic_net_cv import ElasticNetCV
from trueline.estimators.sparse.paths import lasso_path

__all__ = ["LassoCV"]

Array = NDArray[np.float64]


@parameters(without=["l1_ratio"])
class LassoCV(ElasticNetCV):
    """The lasso with the strength chosen by cross-validation.

    For every strength of a grid the objective of :class:`Lasso`::

        1/(2 S) sum_i s_i (y_i - x_i.w - b)^2 + alpha ||w||_1

    (S the sum of the weights) is minimised on the training rows of each fold and scored by the mean
    squared error on its test rows; the best one is refitted on all rows, with a certificate.

    A drop-in for ``sklearn.linear_model.LassoCV``.

    Parameters
    ----------
    eps : float, default=1e-3
        Smallest over largest strength of the grid.
    alphas : int or array-like, default=100
        The number of strengths, or the strengths.
    fit_intercept : bool, default=True
    precompute, copy_X, n_jobs, random_state, selection
        Accepted for compatibility: how the solutions are found is planned, threads are used where
        they help, and the order of the coordinates does not change the answer.
    max_iter : int, default=1000
        Limit on the readings of the data in the final fit.
    tol : float, default=1e-4
        As in :class:`Lasso`.
    cv : int, splitter, iterable or None
        None means five folds.
    verbose : bool or int, default=False
    positive : bool, default=False
    feature_weights, bounds
        As in :class:`Lasso`.
    rule : {"min", "1se"}, default="min"
        "1se" takes the largest strength whose mean error is within one standard error of the
        smallest: a sparser model that is as good as one can tell.

    Attributes
    ----------
    alpha_ : float
        The strength taken.
    alpha_min_, alpha_1se_ : float
        The strengths of both rules.
    alphas_ : array of shape (m,)
    mse_path_ : array of shape (m, folds)
    coef_ : array of shape (d,)
    intercept_ : float
    dual_gap_ : float
    certificate_ : Certificate
    n_iter_ : int
    n_features_in_ : int
    feature_names_in_ : array of str

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from trueline import LassoCV
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = LassoCV(cv=5).fit(X, y)
    >>> round(model.alpha_, 5), model.alpha_1se_ > model.alpha_
    (0.00375, True)
    """

    _: KW_ONLY
    verbose: Any = given(False, "verbose")

    path = staticmethod(lasso_path)
    l1_ratio = 1.0

    def _choose(self, errors: Array, grids: list[Array]) -> tuple[int, int]:
        chosen = super()._choose(errors, grids)
        del self.l1_ratio_
        return chosen
