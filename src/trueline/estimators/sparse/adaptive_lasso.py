"""The adaptive lasso: a first fit decides how much each coefficient is penalised in the second."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import clone
from sklearn.utils import column_or_1d
from sklearn.utils._param_validation import HasMethods
from sklearn.utils.validation import has_fit_parameter

from trueline.estimators.regression.linear_regression import LinearRegression
from trueline.estimators.regression.ridge_cv import RidgeCV
from trueline.estimators.shared.base import fit_with_callbacks
from trueline.estimators.shared.parameters import KW_ONLY, given, parameters
from trueline.estimators.sparse.elastic_net import ElasticNet, elastic_net_penalty
from trueline.penalties import Penalty

__all__ = ["AdaptiveLasso"]


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
