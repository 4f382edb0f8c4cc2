"""The lasso and the elastic net with targets that choose their columns together."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from trueline.estimators.shared.base import LinearEstimator
from trueline.estimators.shared.parameters import KW_ONLY, given, parameters
from trueline.estimators.shared.regressor import coupled_freedom
from trueline.estimators.sparse.elastic_net import ElasticNet
from trueline.estimators.sparse.elastic_net_cv import CHOSEN, ChosenByFolds
from trueline.estimators.sparse.paths import lasso_path
from trueline.penalties import MultiTask, Penalty
from trueline.problem import Problem

__all__ = [
    "CoupledTargets",
    "MultiTaskElasticNet",
    "MultiTaskElasticNetCV",
    "MultiTaskLasso",
    "MultiTaskLassoCV",
]

Array = NDArray[np.float64]

if TYPE_CHECKING:
    _Host = ElasticNet
else:
    _Host = object


#: Parameters of the elastic net that the multi-task estimators do not have.
_SINGLE = ["precompute", "positive", "feature_weights", "bounds"]


class CoupledTargets(_Host):
    """What the multi-task estimators have in common: two-dimensional targets, one gap.

    Parameters
    ----------
    fit_intercept : bool, default=True
    copy_X : bool, default=True
        Accepted for compatibility: X is never modified.
    random_state : int, RandomState or None
    selection : {"cyclic", "random"}, default="cyclic"
        Both accepted for compatibility: the order of the coordinates does not change the answer.

    Attributes
    ----------
    coef_ : array of shape (k, d)
    intercept_ : array of shape (k,)
    dual_gap_ : float
        The proven gap, in units of the objective above.
    certificate_ : Certificate
    n_iter_ : int
        Readings of the data.
    n_features_in_ : int
    feature_names_in_ : array of str
    """

    _keeps_single_target = True
    _targets = "several"
    _is_its_problem = False
    positive = False
    precompute = False
    feature_weights = bounds = None

    fit = LinearEstimator.fit  # no word about alpha=0

    def _penalty_of(self, strength: float, l1_ratio: float, n_features: int) -> Penalty:
        return MultiTask(strength, l1_ratio)

    def _validated_problem(
        self, X: Any, y: Any, sample_weight: Any, reset: bool
    ) -> tuple[Problem, Any, NDArray[Any]]:
        """As for other estimators; a single target given as a vector is refused."""
        problem, X, y = super()._validated_problem(X, y, sample_weight, reset)
        if y.ndim == 1:
            single = type(self).__name__.removeprefix("MultiTask")
            raise ValueError(f"For mono-task outputs, use {single}")
        return problem, X, y

    def _divergence(self, W: Array) -> Array:
        used = W.any(axis=1)
        return coupled_freedom(self._gram_of_active(used), W[used], self._minimised[1])


@parameters(without=_SINGLE)
class MultiTaskElasticNet(CoupledTargets, ElasticNet):
    """The elastic net for several targets that share their columns, proven.

    Minimises over W (one row of coefficients W_j per column of X) and b, with S the sum of the
    weights::

        1/(2 S) sum_i s_i ||y_i - W^T x_i - b||^2
            + alpha l1_ratio sum_j ||W_j|| + alpha (1 - l1_ratio)/2 ||W||^2

    and certifies S times this objective. A column is used for all targets or for none. The
    intercepts are not penalised.

    A drop-in for ``sklearn.linear_model.MultiTaskElasticNet``.

    Parameters
    ----------
    l1_ratio : float, default=0.5
        Share of the norms, between 0 (ridge) and 1 (:class:`MultiTaskLasso`).
    tol : float, default=1e-4
        The gap to prove is at most ``tol / 100`` times half the squared norm of the (centred)
        targets. It is usually far smaller: the last steps are Newton's.

    Attributes
    ----------
    sparse_coef_ : sparse array of shape (k, d)

    Examples
    --------
    >>> import numpy as np
    >>> from trueline import MultiTaskElasticNet
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((40, 5))
    >>> Y = X[:, [0, 3]] @ np.array([[2.0, 1.0], [-1.0, 3.0]])
    >>> model = MultiTaskElasticNet(alpha=0.5, l1_ratio=0.8).fit(X, Y)
    >>> model.coef_.any(axis=0)
    array([ True, False, False,  True, False])
    >>> bool(model.verify(X, Y))
    True
    """


@parameters(without=[*_SINGLE, "l1_ratio"])
class MultiTaskLasso(CoupledTargets, ElasticNet):
    """The lasso for several targets that share their columns, proven.

    Minimises over W (one row of coefficients W_j per column of X) and b, with S the sum of the
    weights::

        1/(2 S) sum_i s_i ||y_i - W^T x_i - b||^2 + alpha sum_j ||W_j||

    and certifies S times this objective. A column is used for all targets or for none. The
    intercepts are not penalised.

    A drop-in for ``sklearn.linear_model.MultiTaskLasso``.

    Parameters
    ----------
    tol : float, default=1e-4
        The gap to prove is at most ``tol / 100`` times half the squared norm of the (centred)
        targets. It is usually far smaller: the last steps are Newton's.

    Attributes
    ----------
    sparse_coef_ : sparse array of shape (k, d)

    Examples
    --------
    >>> import numpy as np
    >>> from trueline import MultiTaskLasso
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((50, 6))
    >>> Y = X[:, [1, 4]] @ np.array([[1.0, -2.0], [3.0, 0.5]]) + 0.1 * rng.standard_normal((50, 2))
    >>> model = MultiTaskLasso(alpha=0.3).fit(X, Y)
    >>> model.coef_.any(axis=0).nonzero()[0]
    array([1, 4])
    >>> bool(model.verify(X, Y))
    True
    """

    l1_ratio = 1.0


_WITHOUT = [*CHOSEN, *_SINGLE, "rule"]


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
