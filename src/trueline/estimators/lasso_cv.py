"""The lasso with the strength chosen by cross-validation."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from trueline.estimators.elastic_net_cv import ElasticNetCV
from trueline.estimators.paths import lasso_path

__all__ = ["LassoCV"]

Array = NDArray[np.float64]


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

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        name: rule
        for name, rule in ElasticNetCV._parameter_constraints.items()
        if name != "l1_ratio"
    }

    path = staticmethod(lasso_path)
    l1_ratio = 1.0

    def __init__(
        self,
        *,
        eps: float = 1e-3,
        alphas: Any = 100,
        fit_intercept: bool = True,
        precompute: Any = "auto",
        max_iter: int = 1000,
        tol: float = 1e-4,
        copy_X: bool = True,
        cv: Any = None,
        verbose: Any = False,
        n_jobs: int | None = None,
        positive: bool = False,
        random_state: Any = None,
        selection: str = "cyclic",
        feature_weights: Any = None,
        bounds: Any = None,
        rule: str = "min",
    ) -> None:
        self.eps = eps
        self.alphas = alphas
        self.fit_intercept = fit_intercept
        self.precompute = precompute
        self.max_iter = max_iter
        self.tol = tol
        self.copy_X = copy_X
        self.cv = cv
        self.verbose = verbose
        self.n_jobs = n_jobs
        self.positive = positive
        self.random_state = random_state
        self.selection = selection
        self.feature_weights = feature_weights
        self.bounds = bounds
        self.rule = rule

    def _choose(self, errors: Array, grids: list[Array]) -> tuple[int, int]:
        chosen = super()._choose(errors, grids)
        del self.l1_ratio_
        return chosen
