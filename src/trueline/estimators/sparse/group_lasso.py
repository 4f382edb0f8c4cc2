"""Coefficients that are zero together: the group lasso, and several targets that share columns."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral, Number
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from trueline.estimators.shared.base import LinearEstimator, Stated, build_problem
from trueline.estimators.shared.parameters import KW_ONLY, given, parameters
from trueline.estimators.shared.regressor import (
    GaussianLikelihood,
    LinearRegressorBase,
    coupled_freedom,
    group_freedom,
)
from trueline.estimators.sparse.elastic_net import ElasticNet
from trueline.estimators.sparse.elastic_net_cv import CHOSEN, ChosenByFolds
from trueline.estimators.sparse.paths import lasso_path
from trueline.losses import Squared
from trueline.penalties import Group, MultiTask, Penalty
from trueline.problem import Array, Problem
from trueline.solution import Solution
from trueline.solvers.base import Options


def group_labels(groups: Any, n_features: int) -> tuple[NDArray[np.intp], list[Any]]:
    """The group of each column as a number 0, 1, ..., and the groups' names.

    Parameters
    ----------
    groups : None, int, array-like or list of lists
        None: every column is a group of its own. An integer: consecutive groups of that many
        columns. One label per column; or one list of column numbers per group, each column in
        exactly one of them.
    n_features : int

    Examples
    --------
    >>> from trueline.estimators.sparse.group_lasso import group_labels
    >>> group_labels(["a", "b", "a"], 3)
    (array([0, 1, 0]), ['a', 'b'])
    >>> group_labels([[0, 2], [1]], 3)
    (array([0, 1, 0]), [0, 1])
    """
    if groups is None:
        return np.arange(n_features), list(range(n_features))
    if isinstance(groups, Integral):
        if n_features % int(groups):
            raise ValueError(
                f"groups={groups} columns each do not divide the {n_features} columns of X; give "
                "one label per column, or lists of column numbers."
            )
        labels = np.arange(n_features) // int(groups)
        return labels, list(range(n_features // int(groups)))
    if len(groups) and all(
        isinstance(group, Sequence | np.ndarray) and not isinstance(group, str) for group in groups
    ):
        return _labels_from_lists(groups, n_features)
    given = np.asarray(groups)
    if given.shape != (n_features,):
        raise ValueError(
            f"groups must give one label for each of the {n_features} columns of X, or one list of "
            f"column numbers per group; got {given.shape[0] if given.ndim else 0} labels."
        )
    if given.dtype.kind == "f" and not np.isfinite(given).all():
        raise ValueError("groups hold NaN or infinity: every column needs a label.")
    names, labels = np.unique(given, return_inverse=True)
    return labels.astype(np.intp), names.tolist()


def _labels_from_lists(groups: Any, n_features: int) -> tuple[NDArray[np.intp], list[Any]]:
    labels = np.full(n_features, -1, dtype=np.intp)
    for number, group in enumerate(groups):
        columns = np.asarray(group)
        if columns.ndim != 1 or not len(columns) or columns.dtype.kind not in "iu":
            raise ValueError(f"groups[{number}] must be a list of column numbers, got {group!r}.")
        if columns.min() < 0 or columns.max() >= n_features:
            raise ValueError(
                f"groups[{number}] names a column that X does not have: its columns are numbered "
                f"from 0 to {n_features - 1}."
            )
        if len(np.unique(columns)) < len(columns) or (labels[columns] >= 0).any():
            raise ValueError(f"groups[{number}] names a column that is already in a group.")
        labels[columns] = number
    if (labels < 0).any():
        missing = np.flatnonzero(labels < 0)
        raise ValueError(
            f"{len(missing)} columns of X are in no group, the first of them is {missing[0]}: put "
            "each into a group, of its own if need be."
        )
    return labels, list(range(len(groups)))


@parameters()
class GroupLasso(GaussianLikelihood, LinearRegressorBase, LinearEstimator):
    """Least squares with norms of groups of coefficients penalised, proven.

    Minimises over w and b, with S the sum of the weights::

        1/(2 S) sum_i s_i (y_i - x_i.w - b)^2
            + alpha sum_g weight_g ||w_g|| + l2/2 ||w||^2

    and certifies S times this objective. A group of columns is used as a whole or not at all. The
    intercept is not penalised. Several targets are fitted one by one.

    Parameters
    ----------
    alpha : float, default=1.0
        Strength of the norms.
    groups : int, array-like of shape (d,) or list of lists, optional
        One label per column (numbers or strings); or one list of column numbers per group; or the
        size of consecutive groups. By default every column is a group of its own, which is the
        lasso.
    weights : array-like of shape (number of groups,), optional
        Factors of the groups' norms, in the order of ``group_names_``; by default the square roots
        of the groups' sizes. 0 leaves a group unpenalised.
    l2 : float, default=0.0
        Strength of the squared norm.
    fit_intercept : bool, default=True
    tol : float, default=1e-6
        The gap to prove, relative to half the squared norm of the (centred) target. It is usually
        far smaller: the last steps are Newton's. (:class:`Lasso` asks for ``tol / 100``, so that
        the defaults of both mean the same.)
    max_iter : int, default=1000
        Limit on the readings of the data.
    warm_start : bool, default=False
        Start from the coefficients of the last fit.
    time_limit : float, optional
        Seconds after which the fit stops.
    trace : bool, default=False
        Keep objective and gap of every iteration in ``trace_``.
    progress : bool, default=False
        Show a progress bar.

    Attributes
    ----------
    coef_ : array of shape (d,) or (k, d)
    intercept_ : float or array of shape (k,)
    groups_ : array of shape (d,)
        The number of each column's group.
    group_names_ : list
        The labels of the groups, sorted; their numbers if there are no labels.
    active_groups_ : list
        The names of the groups that are used (by any target).
    dual_gap_ : float
        The proven gap, in units of the objective above.
    certificate_ : Certificate
    trace_ : Trace
    n_iter_ : int
        Readings of the data.
    n_features_in_ : int
    feature_names_in_ : array of str

    Examples
    --------
    >>> import numpy as np
    >>> from trueline import GroupLasso
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((80, 6))
    >>> y = X[:, 2] - 2 * X[:, 3] + 0.1 * rng.standard_normal(80)
    >>> model = GroupLasso(alpha=0.2, groups=["a", "a", "b", "b", "c", "c"]).fit(X, y)
    >>> model.active_groups_, bool(model.verify(X, y))
    (['b'], True)
    """

    _strength_in_sum = "n alpha"
    alpha: float = given(1.0, "[0, inf)")
    groups: Any = given(None, "int [1, inf)", "array-like", list, tuple, None)
    _: KW_ONLY
    weights: Any = given(None, "array-like", None)
    l2: float = given(0.0, "[0, inf)")
    fit_intercept: bool = True
    tol: float = given(1e-6, "[0, inf)")
    max_iter: int | None = given(1000, "int [1, inf)", None)
    warm_start: bool = False
    time_limit: float | None = given(None, "[0, inf)", None)
    trace: bool = False
    progress: bool = False

    def _problem(self, X: Any, Y: Array, weights: Array | None) -> Problem:
        total = float(len(Y)) if weights is None else float(weights.sum())
        labels, names = group_labels(self.groups, X.shape[1])
        factors = None if self.weights is None else np.asarray(self.weights, dtype=np.float64)
        if factors is not None and factors.shape != (len(names),):
            raise ValueError(
                f"weights must have one number for each of the {len(names)} groups, got an array "
                f"of shape {factors.shape}."
            )
        penalty = Group(float(self.alpha) * total, labels, factors, float(self.l2) * total)
        return build_problem(X, Y, weights, Squared(), penalty, self.fit_intercept)

    def _options(self) -> Options:
        return Options(tol=self.tol, max_iter=self.max_iter, start=self._warm().get("start"))

    def _weights(self, sample_weight: Any, X: Any) -> Array | None:
        # One number for all rows: the objective divides by the sum of the weights.
        return None if isinstance(sample_weight, Number) else super()._weights(sample_weight, X)

    def _keep_of(self, problem: Any, solution: Solution) -> None:
        super()._keep_of(problem, solution)
        self.groups_, self.group_names_ = group_labels(self.groups, problem.n_features)
        self._keep_active(problem, True)

    def _divergence(self, W: Array) -> Array:
        used = W.any(axis=1)
        gram = self._gram_of_active(used)
        return group_freedom(gram, W, np.flatnonzero(used), self._minimised[1])

    @property
    def active_groups_(self) -> list[Any]:
        """The names of the groups whose coefficients are not all zero."""
        used = np.atleast_2d(self.coef_).any(axis=0)
        return [self.group_names_[number] for number in np.unique(self.groups_[used])]

    @property
    def dual_gap_(self) -> float:
        """The proven gap in units of the objective."""
        return self._resolved_certificate().gap / self._total_weight


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

    def _validated_problem(self, X: Any, y: Any, sample_weight: Any, reset: bool) -> Stated:
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
