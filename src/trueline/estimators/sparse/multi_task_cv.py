"""The multi-task lasso and elastic net with the strength chosen by cross-validation."""

from __future__ import annotations

from typing import Any

from trueline.estimators.shared.parameters import KW_ONLY, given, parameters
from trueline.estimators.sparse.elastic_net import ElasticNet
from trueline.estimators.sparse.elastic_net_cv import WITHOUT as SEARCHED
from trueline.estimators.sparse.elastic_net_cv import ChosenByFolds
from trueline.estimators.sparse.multi_task import WITHOUT as SINGLE
from trueline.estimators.sparse.multi_task import CoupledTargets
from trueline.estimators.sparse.paths import lasso_path

__all__ = ["MultiTaskElasticNetCV", "MultiTaskLassoCV"]

_WITHOUT = [*SEARCHED, *SINGLE, "rule"]


@parameters(without=_WITHOUT)
class MultiTaskElasticNetCV(ChosenByFolds, CoupledTargets, ElasticNet):
    """The multi-task elastic net with strength and mixture chosen by cross-validation.

    For every strength of a grid (and every ``l1_ratio`` given) the objective of
    :class:`MultiTaskElasticNet`::

        1/(2 S) sum_i s_i ||y_i - W^T x_i - b||^2
            + alpha l1_ratio sum_j ||W_j|| + alpha (1 - l1_ratio)/2 ||W||^2

    is minimised on the training rows of each fold and scored by the mean squared error on its test
    rows; the best pair is refitted on all rows, with a certificate.

    A drop-in for ``sklearn.linear_model.MultiTaskElasticNetCV``.

    Parameters
    ----------
    l1_ratio : float or list of float, default=0.5
        Mixtures to try, above 0 if the grid is made here.
    tol : float, default=1e-4
        As in :class:`MultiTaskElasticNet`; the fits of the folds stop at a gap of ``tol`` times it.
    verbose : bool or int, default=0
        Accepted for compatibility.
    n_jobs : int, optional
        Accepted for compatibility: threads are used where they help.

    Attributes
    ----------
    alpha_ : float
        The strength taken, that of the smallest mean error.
    alpha_1se_ : float
        The largest strength whose mean error is within one standard error of the smallest.
    l1_ratio_ : float
    alphas_ : array of shape (m,) or (number of mixtures, m)
    mse_path_ : array of shape (m, folds) or (number of mixtures, m, folds)

    Examples
    --------
    >>> import numpy as np
    >>> from trueline import MultiTaskElasticNetCV
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((60, 5))
    >>> Y = X[:, :2] @ np.array([[1.0, -2.0], [3.0, 0.5]]) + 0.1 * rng.standard_normal((60, 2))
    >>> model = MultiTaskElasticNetCV(l1_ratio=[0.5, 1.0], alphas=20).fit(X, Y)
    >>> float(model.l1_ratio_), model.coef_.shape, bool(model.verify(X, Y))
    (1.0, (2, 5), True)
    """

    _fold_share = 1.0
    rule = "min"

    _: KW_ONLY
    l1_ratio: Any = given(0.5, "[0, 1]", "array-like")


@parameters(without=[*_WITHOUT, "l1_ratio"])
class MultiTaskLassoCV(ChosenByFolds, CoupledTargets, ElasticNet):
    """The multi-task lasso with the strength chosen by cross-validation.

    For every strength of a grid the objective of :class:`MultiTaskLasso`::

        1/(2 S) sum_i s_i ||y_i - W^T x_i - b||^2 + alpha sum_j ||W_j||

    is minimised on the training rows of each fold and scored by the mean squared error on its test
    rows; the best one is refitted on all rows, with a certificate.

    A drop-in for ``sklearn.linear_model.MultiTaskLassoCV``.

    Parameters
    ----------
    tol : float, default=1e-4
        As in :class:`MultiTaskLasso`; the fits of the folds stop at a gap of ``tol`` times it.
    verbose : bool or int, default=False
        Accepted for compatibility.
    n_jobs : int, optional
        Accepted for compatibility: threads are used where they help.

    Attributes
    ----------
    alpha_ : float
        The strength taken, that of the smallest mean error.
    alpha_1se_ : float
        The largest strength whose mean error is within one standard error of the smallest.
    alphas_ : array of shape (m,)
    mse_path_ : array of shape (m, folds)

    Examples
    --------
    >>> import numpy as np
    >>> from trueline import MultiTaskLassoCV
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((60, 5))
    >>> Y = X[:, :2] @ np.array([[1.0, -2.0], [3.0, 0.5]]) + 0.1 * rng.standard_normal((60, 2))
    >>> model = MultiTaskLassoCV(alphas=20).fit(X, Y)
    >>> model.coef_.shape, model.mse_path_.shape, bool(model.verify(X, Y))
    ((2, 5), (20, 5), True)
    """

    _fold_share = 1.0
    rule = "min"

    _: KW_ONLY
    verbose: Any = given(False, "verbose")

    path = staticmethod(lasso_path)
    l1_ratio = 1.0
