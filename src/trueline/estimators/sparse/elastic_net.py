"""The elastic net and the lasso; and the adaptive lasso, whose strengths come from a first fit."""

from __future__ import annotations

import warnings
from numbers import Number
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.utils import column_or_1d
from sklearn.utils._param_validation import HasMethods
from sklearn.utils.validation import has_fit_parameter

from trueline import penalties
from trueline.estimators.regression.linear_regression import LinearRegression
from trueline.estimators.regression.ridge_cv import RidgeCV
from trueline.estimators.shared.base import LinearEstimator, build_problem, fit_with_callbacks
from trueline.estimators.shared.parameters import KW_ONLY, given, one_of, parameters
from trueline.estimators.shared.regressor import (
    GaussianLikelihood,
    LinearRegressorBase,
    elastic_freedom,
)
from trueline.estimators.shared.validation import takes_batches, wrappers
from trueline.estimators.sparse.paths import enet_path
from trueline.losses import Squared
from trueline.penalties import Bounded, NonNegative, Penalty
from trueline.problem import Array, Problem
from trueline.solution import Solution
from trueline.solvers.base import Options


def elastic_net_penalty(
    strength: float,
    l1_ratio: float,
    n_features: int,
    *,
    positive: bool = False,
    feature_weights: Any = None,
    bounds: Any = None,
) -> Penalty:
    """The penalty of an elastic net, with weights and bounds per coefficient.

    Parameters
    ----------
    strength : float
        alpha times the number of rows.
    l1_ratio : float
    n_features : int
    positive : bool, default=False
    feature_weights : array-like of shape (d,), optional
    bounds : pair of floats or arrays, optional
    """
    alpha: Any = strength
    if feature_weights is not None:
        weights = np.asarray(feature_weights, dtype=np.float64)
        if weights.shape != (n_features,) or not (np.isfinite(weights) & (weights >= 0)).all():
            got = f"shape {weights.shape}"
            if weights.shape == (n_features,):
                place = int(np.argmin(np.isfinite(weights) & (weights >= 0)))
                got = f"{weights[place]:g} for column {place}"
            raise ValueError(
                f"feature_weights must be {n_features} finite numbers that are not negative, one "
                f"per column of X; got {got}."
            )
        alpha = strength * weights[:, None]
    base: Penalty
    if l1_ratio == 1:
        base = penalties.L1(alpha)
    else:
        base = penalties.ElasticNet(alpha, l1_ratio)
    if bounds is None:
        return NonNegative(base) if positive else base
    lower, upper = (_bound(bound, n_features) for bound in _pair(bounds))
    return Bounded(base, np.maximum(lower, 0.0) if positive else lower, upper)


def _pair(bounds: Any) -> tuple[Any, Any]:
    if not isinstance(bounds, tuple | list) or len(bounds) != 2:
        raise ValueError(
            "bounds must be a pair (lower, upper); each is a number or one number per column, "
            "-inf and inf where there is no bound."
        )
    lower, upper = bounds
    return -np.inf if lower is None else lower, np.inf if upper is None else upper


def _bound(bound: Any, n_features: int) -> Any:
    values = np.asarray(bound, dtype=np.float64)
    if values.ndim == 0:
        return float(values)
    if values.shape != (n_features,):
        raise ValueError(f"a bound has the shape {values.shape}, expected ({n_features},).")
    return values[:, None]


@parameters()
class ElasticNet(GaussianLikelihood, LinearRegressorBase, LinearEstimator):
    """Least squares with absolute values and squares of the coefficients penalised, proven.

    Minimises over w and b, with S the sum of the weights::

        1/(2 S) sum_i s_i (y_i - x_i.w - b)^2
            + alpha l1_ratio ||w||_1 + alpha (1 - l1_ratio)/2 ||w||^2

    and certifies S times this objective. The intercept is not penalised.

    A drop-in for ``sklearn.linear_model.ElasticNet``.

    Parameters
    ----------
    alpha : float, default=1.0
        Strength.
    l1_ratio : float, default=0.5
        Share of the absolute values, between 0 (ridge) and 1 (lasso).
    fit_intercept : bool, default=True
    precompute : bool or array-like of shape (d, d), default=False
        Accepted for compatibility: whether the Gram matrix is used is planned, see
        :meth:`explain`.
    max_iter : int, default=1000
        Limit on the readings of the data.
    copy_X : bool, default=True
        Accepted for compatibility: X is never modified.
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
        The proven gap, in units of the objective above.
    certificate_ : Certificate
    n_iter_ : int or list of int
        Readings of the data.
    n_features_in_ : int
    feature_names_in_ : array of str

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from trueline import ElasticNet
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = ElasticNet(alpha=0.01, l1_ratio=0.9).fit(X, y)
    >>> bool(model.verify(X, y)), model.certificate_.gap < 1e-6 * model.certificate_.objective
    (True, True)
    """

    _keeps_single_target = False
    _is_its_problem = True
    _strength_in_sum = "n alpha"

    alpha: float = given(1.0, "[0, inf)")
    _: KW_ONLY
    l1_ratio: float = given(0.5, "[0, 1]")
    fit_intercept: bool = True
    precompute: Any = given(False, "boolean", "array-like")
    max_iter: int | None = given(1000, "int [1, inf)", None)
    copy_X: bool = True
    tol: float = given(1e-4, "[0, inf)")
    warm_start: bool = False
    positive: bool = False
    random_state: Any = given(None, "random_state")
    selection: str = given("cyclic", one_of("cyclic", "random"))
    feature_weights: Any = given(None, "array-like", None)
    bounds: Any = given(None, tuple, list, None)

    path = staticmethod(enet_path)

    def _strength(self) -> tuple[float, float]:
        """The strength and the mixture of the fit."""
        return float(self.alpha), float(self.l1_ratio)

    def _penalty_of(self, strength: float, l1_ratio: float, n_features: int) -> Penalty:
        """The penalty of one strength, alpha times the number of rows, and one mixture."""
        return elastic_net_penalty(
            strength,
            l1_ratio,
            n_features,
            positive=self.positive,
            feature_weights=self.feature_weights,
            bounds=self.bounds,
        )

    def _problem(self, X: Any, Y: Array, weights: Array | None) -> Problem:
        total = float(len(Y)) if weights is None else float(weights.sum())
        alpha, l1_ratio = self._strength()
        penalty = self._penalty_of(alpha * total, l1_ratio, X.shape[1])
        return build_problem(X, Y, weights, Squared(), penalty, self.fit_intercept)

    def _can_be_in_a_set(self) -> bool:
        return self.alpha != 0 and super()._can_be_in_a_set()  # a fit would warn

    def _options(self) -> Options:
        return Options(tol=self.tol / 100, max_iter=self.max_iter, start=self._warm().get("start"))

    @fit_with_callbacks
    @takes_batches
    def fit(self, X: Any, y: Any, sample_weight: Any = None, check_input: bool = True) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)
            Rows to learn from; sparse data stay sparse.
        y : array-like of shape (n,) or (n, k)
            One target, or several that are fitted one by one.
        sample_weight : float or array-like of shape (n,), optional
            Only their ratios matter: the objective divides by their sum. A single number changes
            nothing.
        check_input : bool, default=True
            Accepted for compatibility.

        Returns
        -------
        self : object
        """
        self._check_parameters()
        if self.alpha == 0:
            warnings.warn(
                "With alpha=0 this is least squares, for which LinearRegression is made.",
                stacklevel=2 + wrappers(type(self).fit),
            )
        problem, X, y = self._validated_problem(X, y, sample_weight, reset=True)
        self._solve_and_store(problem, X, y, sample_weight)
        return self

    def _weights(self, sample_weight: Any, X: Any) -> Array | None:
        # One number for all rows: the objective divides by the sum of the weights.
        return None if isinstance(sample_weight, Number) else super()._weights(sample_weight, X)

    def _keep_of_rows(self, X: Any, y: Any, sample_weight: Any) -> None:
        super()._keep_of_rows(X, y, None if isinstance(sample_weight, Number) else sample_weight)

    def _keep_of(self, problem: Any, solution: Solution) -> None:
        super()._keep_of(problem, solution)
        is_coupled = self._targets == "several"
        is_asked = solution.moments is None  # and the degrees of freedom are no mere count
        self._keep_active(
            problem, is_asked and (is_coupled or bool(np.any(problem.penalty.curvature)))
        )
        if self.coef_.ndim == 2 and not is_coupled:
            self.n_iter_: Any = [self.n_iter_] * len(self.coef_)

    def _divergence(self, W: Array) -> Array | None:
        if self._active is None:
            return None
        return elastic_freedom(
            self._active, W, np.broadcast_to(self._minimised[1].curvature, W.shape)
        )

    @property
    def dual_gap_(self) -> Any:
        """The proven gap in units of the objective, divided among targets fitted one by one."""
        gap = self._resolved_certificate().gap / self._total_weight
        is_one = self.coef_.ndim == 1 or self._targets == "several"
        return gap if is_one else np.full(len(self.coef_), gap / len(self.coef_))

    @property
    def sparse_coef_(self) -> Any:
        """``coef_`` as a sparse array."""
        return sp.csr_array(np.atleast_2d(self.coef_))


@parameters(without=["l1_ratio"])
class Lasso(ElasticNet):
    """Least squares with the absolute values of the coefficients penalised, proven.

    Minimises over w and b, with S the sum of the weights::

        1/(2 S) sum_i s_i (y_i - x_i.w - b)^2 + alpha ||w||_1

    and certifies S times this objective. The intercept is not penalised.

    A drop-in for ``sklearn.linear_model.Lasso``.

    Parameters
    ----------
    bounds : pair of floats or array-likes, optional
        (lower, upper) bounds on the coefficients, one number or one per column; infinite or None
        where there is none.

    Attributes
    ----------
    dual_gap_ : float or array of shape (k,)
    n_iter_ : int or list of int

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

    @classmethod
    def from_prior(
        cls, noise_variance: float, prior_scale: float, n_samples: float, **parameters: Any
    ) -> Self:
        """The lasso as the most probable coefficients under a Laplace prior.

        For y_i = x_i.w + b + normal noise of variance sigma^2, and w_j with the density
        exp(-abs(w_j) / tau) / (2 tau), the posterior mode minimises the lasso's objective with
        ``alpha = sigma^2 / (n tau)``: the strength is that of a mean over n rows.

        Parameters
        ----------
        noise_variance : float
            sigma^2.
        prior_scale : float
            tau, the mean magnitude of a coefficient.
        n_samples : float
            n, the number of rows (the sum of their weights) that will be fitted.
        **parameters
            Other parameters of :class:`Lasso`.

        Examples
        --------
        >>> from trueline import Lasso
        >>> Lasso.from_prior(noise_variance=4.0, prior_scale=0.5, n_samples=100).alpha
        0.08
        """
        if not (noise_variance >= 0 and prior_scale > 0 and n_samples > 0):
            raise ValueError(
                "noise_variance must not be negative, prior_scale and n_samples must be positive, "
                f"got {noise_variance!r}, {prior_scale!r} and {n_samples!r}."
            )
        return cls(alpha=noise_variance / (prior_scale * n_samples), **parameters)


@parameters(
    without={"l1_ratio", "precompute", "copy_X", "warm_start"}
    | {"random_state", "selection", "feature_weights", "bounds"}
)
class AdaptiveLasso(ElasticNet):
    """The lasso with weights from a first fit, which shrinks large coefficients less.

    Minimises over w and b, with S the sum of the weights and v the coefficients of a first fit::

        1/(2 S) sum_i s_i (y_i - x_i.w - b)^2 + alpha sum_j abs(w_j) / abs(v_j)^gamma

    and certifies S times this objective. Columns whose first coefficient is zero stay out. With a
    consistent first fit the right columns are found with probability going to one, and their
    coefficients are estimated as well as if they had been known (H. Zou, "The adaptive lasso and
    its oracle properties", J. Amer. Statist. Assoc. 101 (2006) 1418-1429).

    Parameters
    ----------
    gamma : float, default=1.0
        Power of the first coefficients.
    first : estimator, optional
        Has ``coef_`` after ``fit``. None means least squares where there are more rows than
        columns, and ridge regression with its strength chosen by leave-one-out where there are not.
    tol : float, default=1e-4
        As in :class:`Lasso`.

    Attributes
    ----------
    first_ : estimator
        The first fit.
    feature_weights_ : array of shape (d,)
        1 / abs(v_j)^gamma, infinite for columns that stay out.
    coef_ : array of shape (d,)
    intercept_ : float
    certificate_ : Certificate
        Of the second fit, whose weights are given by the first.
    n_iter_ : int

    Examples
    --------
    >>> import numpy as np
    >>> from trueline import AdaptiveLasso, Lasso
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((200, 10))
    >>> y = 3 * X[:, 0] - 2 * X[:, 1] + rng.standard_normal(200)
    >>> AdaptiveLasso(alpha=0.1).fit(X, y).coef_.nonzero()[0]
    array([0, 1])
    >>> plain, adaptive = Lasso(alpha=0.1).fit(X, y), AdaptiveLasso(alpha=0.1).fit(X, y)
    >>> bool(abs(adaptive.coef_[1]) > abs(plain.coef_[1]))  # less shrinkage
    True
    """

    _is_its_problem = False

    _: KW_ONLY
    gamma: float = given(1.0, "[0, inf)")
    first: Any = given(None, HasMethods(["fit"]), None)

    l1_ratio, warm_start, bounds = 1.0, False, None

    def _penalty_of(self, strength: float, l1_ratio: float, n_features: int) -> Penalty:
        weights = getattr(self, "feature_weights_", np.ones(n_features))
        out = np.isinf(weights)
        bound = np.where(out, 0.0, np.inf)
        return elastic_net_penalty(
            strength,
            l1_ratio,
            n_features,
            positive=self.positive,
            feature_weights=np.where(out, 1.0, weights),
            bounds=(-bound, bound) if out.any() else None,
        )

    @fit_with_callbacks
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit twice.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)
        y : array-like of shape (n,)
        sample_weight : array-like of shape (n,), optional
            Used in both fits, if the first one takes weights.

        Returns
        -------
        self : object
        """
        self._check_parameters()
        self.__dict__.pop("feature_weights_", None)
        problem, valid, target = self._validated_problem(X, y, sample_weight, reset=True)
        if target.ndim > 1 and target.shape[1] > 1:
            raise ValueError("AdaptiveLasso fits one target; y has several.")
        target = column_or_1d(target, warn=True)
        self.first_ = self._first_fit(valid, target, sample_weight)
        coefficients = np.abs(np.ravel(self.first_.coef_)).astype(float)
        with np.errstate(divide="ignore", over="ignore"):
            self.feature_weights_ = coefficients ** -float(self.gamma)
        problem = self._problem(valid, problem.target, problem.weights)
        self._solve_and_store(problem, valid, target, sample_weight)
        return self

    def _first_fit(self, X: Any, y: Any, sample_weight: Any) -> Any:
        n, d = X.shape
        model: Any
        if self.first is not None:
            model = clone(self.first)
        elif n > d + 1:
            model = LinearRegression(fit_intercept=self.fit_intercept)
        else:
            model = RidgeCV(np.geomspace(1e-3, 1e3, 13), fit_intercept=self.fit_intercept)
        if sample_weight is not None and has_fit_parameter(model, "sample_weight"):
            return model.fit(X, y, sample_weight=sample_weight)
        return model.fit(X, y)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = False
        tags.target_tags.single_output = True
        return tags
