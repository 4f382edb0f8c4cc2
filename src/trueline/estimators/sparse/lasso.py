"""The lasso."""

from __future__ import annotations

from trueline.estimators.shared.parameters import parameters
from trueline.estimators.sparse.elastic_net import ElasticNet

__all__ = ["Lasso"]


@parameters(without=["l1_ratio"])
class Lasso(ElasticNet):
    """Least squares with the absolute values of the coefficients penalised, proven.

    Minimises over w and b, with S the sum of the weights::

        1/(2 S) sum_i s_i (y_i - x_i.w - b)^2 + alpha ||w||_1

    and certifies S times this objective. The intercept is not penalised.

    A drop-in for ``sklearn.linear_model.Lasso``.

    Parameters
    ----------
    alpha : float, default=1.0
        Strength.
    fit_intercept : bool, default=True
    precompute : bool or array-like of shape (d, d), default=False
        Accepted for compatibility: whether the Gram matrix is used is planned, see
        :meth:`explain`.
    copy_X : bool, default=True
        Accepted for compatibility: X is never modified.
    max_iter : int, default=1000
        Limit on the readings of the data.
    tol : float, default=1e-4
        The gap to prove is at most ``tol / 100`` times half the squared norm of the (centred)
        target. It is usually far smaller: the last step is exact.
    warm_start : bool, default=False
        Start from the coefficients of the last fit.
    positive : bool, default=False
        Keep all coefficients at or above zero.
    random_state, selection
        Accepted for compatibility: the order of the coordinates does not change the answer.
    feature_weights : array-like of shape (d,), optional
        Multiplies the penalty of each coefficient; 0 leaves it unpenalised.
    bounds : pair of floats or array-likes, optional
        (lower, upper) bounds on the coefficients, one number or one per column; infinite or None
        where there is none.

    Attributes
    ----------
    coef_ : array of shape (d,) or (k, d)
    sparse_coef_ : sparse array of shape (1, d) or (k, d)
    intercept_ : float or array of shape (k,)
    dual_gap_ : float or array of shape (k,)
    certificate_ : Certificate
    n_iter_ : int or list of int
    n_features_in_ : int
    feature_names_in_ : array of str

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from trueline import Lasso
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = Lasso(alpha=1.0).fit(X, y)
    >>> (model.coef_ != 0).nonzero()[0]
    array([2, 3, 8])
    >>> bool(model.verify(X, y))
    True
    """

    l1_ratio = 1.0
