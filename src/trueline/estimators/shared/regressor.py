"""What linear regressors share: real targets, predictions, and what squared loss means.

Squared loss means Gaussian noise: its variance is estimated from the residual square and the
degrees of freedom. These are the divergence of the fitted values, sum_i d(fit of row i)/d(y_i)
(C. Stein, Ann. Statist. 9 (1981) 1135-1151). Coefficients that a penalty holds at zero stay there
when the target moves a little; on the columns A of the others, where the penalty is smooth with the
second derivatives P,

    df = trace( (G + P)^{-1} G ),        G = X_A' S X_A   (centred if there is an intercept).

    lasso              P = 0: the number of columns (their rank)
    elastic net        P = diag(alpha (1 - r))
    norms of blocks    P_g = strength_g / ||w_g|| (I - w_g w_g' / ||w_g||^2) + l2 I

The last one is exact too, and holds for coupled targets, whose blocks reach over all of them
(S. Vaiter, C. Deledalle, J. Fadili, G. Peyre, C. Dossal, "The degrees of freedom of the group
lasso", arXiv:1205.1481 (2012), theorem 2). M. Yuan and Y. Lin, J. R. Statist. Soc. B 68 (2006)
49-67, equation 6.3, propose an approximation that needs the least-squares fit; it is not used here.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve
from sklearn.base import MultiOutputMixin, RegressorMixin
from sklearn.utils import column_or_1d
from sklearn.utils.validation import check_is_fitted

from trueline.cluster import blockwise
from trueline.design.columns import submatrix
from trueline.estimators.shared.base import Attributes, Host, Stated, build_problem
from trueline.estimators.shared.likelihood import log_posterior, rows_likelihood
from trueline.estimators.shared.validation import (
    checked_rows,
    is_plain,
    keep_columns_of,
    numeric_target,
    with_weight,
    without_idle_extremes,
)
from trueline.losses import Squared
from trueline.moments import Moments
from trueline.penalties import Penalty
from trueline.penalties.group import BlockNorms
from trueline.problem import Array, Problem
from trueline.selection import criteria
from trueline.solution import Solution


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

    def _validated_problem(self, X: Any, y: Any, sample_weight: Any, reset: bool) -> Stated:
        return real_problem(self, X, y, sample_weight, reset)

    def _fitted_attributes(self, W: Any, b: Any, y_ndim: int, fit_intercept: bool) -> Attributes:
        """Coefficients and intercepts in scikit-learn's shapes."""
        single = y_ndim == 1 or (not self._keeps_single_target and W.shape[1] == 1)
        coef = W[:, 0].copy() if single else np.ascontiguousarray(W.T)
        intercept: Any = 0.0
        if fit_intercept:
            intercept = b[0] if y_ndim == 1 else b
        return {"coef_": coef, "intercept_": intercept}

    @blockwise
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


def real_problem(model: Any, X: Any, y: Any, sample_weight: Any, reset: bool) -> Stated:
    """Check the data of a model with real targets, and state its problem."""
    ndim = np.ndim(y) if isinstance(y, list | tuple) else getattr(y, "ndim", 1)
    if model._targets == "one" and ndim == 2:
        y = column_or_1d(y, warn=True)
    if not is_plain(X, y):
        with numeric_target(model, y):
            X, y = checked_rows(model, X, y, reset, multi_output=True, y_numeric=True)
            Y = y.astype(np.float64, copy=False)
    else:
        Y = y.astype(np.float64, copy=False)
        if reset:
            keep_columns_of(model, X)
    Y = Y[:, None] if Y.ndim == 1 else Y
    weights = model._weights(sample_weight, X)
    # Rows of weight zero are left out, or only what is so large in them that its square would
    # overflow: zero times infinity is no number.
    rows = X
    if model._leaves_out_idle_rows:
        rows, weights, Y = with_weight(X, weights, Y)
    elif weights is not None and not weights.all():
        rows, Y = without_idle_extremes(X, Y, weights)
    return model._problem(rows, Y, weights), X, y


@dataclass(frozen=True)
class ActiveColumns:
    """The columns with non-zero coefficients, kept until they are asked for.

    Attributes
    ----------
    index : array of int of shape (a,)
    values : array or sparse array of shape (n, a)
    weights : array of shape (n,), optional
    fit_intercept : bool
    """

    index: NDArray[np.intp]
    values: Any
    weights: Array | None
    fit_intercept: bool

    def weighted(self, used: NDArray[np.bool_]) -> Array:
        """sqrt(s_i) (x_ij - mean_j) for some of them, dense."""
        X = self.values[:, used]
        X = X.toarray() if sp.issparse(X) else X
        if self.fit_intercept and X.size:
            X = X - np.average(X, axis=0, weights=self.weights)
        return X if self.weights is None else np.sqrt(self.weights)[:, None] * X

    def gram(self) -> Array:
        """G."""
        B = self.weighted(np.ones(len(self.index), dtype=bool))
        return B.T @ B


def active_columns(problem: Problem, W: Array) -> ActiveColumns:
    """The columns that any target uses."""
    index = np.flatnonzero(W.any(axis=1))
    values = submatrix(problem.design, np.arange(problem.n_samples), index)
    return ActiveColumns(index, values, problem.weights, problem.fit_intercept)


def residual_squares(problem: Problem, W: Array, b: Array) -> Array:
    """sum_i s_i (residual of row i)^2, per target."""
    residual = problem.target - problem.scores(W, b)
    return np.asarray(problem.weigh(residual**2).sum(axis=0))


def elastic_freedom(active: ActiveColumns, W: Array, alpha: Array) -> Array:
    """Of the elastic net, per target; ``alpha`` (like W) holds the second derivatives."""
    return np.array([_elastic(active, w != 0, a) for w, a in zip(W.T, alpha.T)])


def _elastic(active: ActiveColumns, used: NDArray[np.bool_], alpha: Array) -> float:
    used, alpha = used[active.index], alpha[active.index]
    B, alpha = active.weighted(used), alpha[used]
    if not alpha.all():
        return float(_traces(B.T @ B, np.diag(alpha), 1)[0])
    # In units in which the penalty is the identity; of the two Gram matrices, the smaller one.
    B = B / np.sqrt(alpha)
    values = np.linalg.eigvalsh(B.T @ B if B.shape[1] <= B.shape[0] else B @ B.T)
    values = values[values > 0]
    return float(np.sum(values / (values + 1.0)))


def group_freedom(gram: Array, W: Array, index: NDArray[np.intp], penalty: BlockNorms) -> Array:
    """With norms of groups, each target for itself; ``gram`` is that of the columns ``index``."""
    labels = penalty.labels(len(W))
    strengths = penalty.strengths(*W.shape)[labels][index]
    labels, freedom = labels[index], []
    for w, strength in zip(W[index].T, strengths.T):
        norm = np.sqrt(np.bincount(labels, w**2))[labels]
        used = norm > 0
        unit, pull = w[used] / norm[used], strength[used] / norm[used]
        same = labels[used][:, None] == labels[used]
        P = np.diag(pull + penalty.curvature) - same * (pull * unit)[:, None] * unit
        freedom.append(_traces(gram[np.ix_(used, used)], P, 1)[0])
    return np.array(freedom)


def coupled_freedom(gram: Array, W: Array, penalty: BlockNorms) -> Array:
    """With norms of rows of W, of shape (a, k): what belongs to each target; ``gram`` is G.

    The sum is the divergence of all fitted values.
    """
    a, k = W.shape
    norm = np.linalg.norm(W, axis=1)
    unit = W / norm[:, None]
    pull = penalty.strengths(a, k)[penalty.labels(a), 0] / norm
    P = np.zeros((k, a, k, a))
    rows = np.arange(a)
    for s in range(k):
        for t in range(k):
            P[s, rows, t, rows] = pull * ((s == t) - unit[:, s] * unit[:, t])
        P[s, rows, s, rows] += penalty.curvature
    whole = np.asarray(np.kron(np.eye(k), gram), dtype=np.float64)
    return _traces(whole, P.reshape(k * a, k * a), k)


def _traces(G: Array, P: Array, parts: int) -> Array:
    """The diagonal of (G + P)^{-1} G, added up over equal parts."""
    if not len(G):
        return np.zeros(parts)
    try:
        solved = cho_solve(cho_factor(G + P), G)
        # Columns that depend on each other may pass with pivots that are rounding.
        if not np.all(np.abs(solved.diagonal() - 0.5) <= 0.5 + 1e-6):
            raise np.linalg.LinAlgError
    except np.linalg.LinAlgError:
        solved = np.linalg.lstsq(G + P, G, rcond=None)[0]
    return solved.diagonal().reshape(parts, -1).sum(axis=1)


class GaussianLikelihood(Host):
    """Least squares read as maximum likelihood (with a penalty: as the most probable answer)."""

    #: What degrees of freedom are worked out from, and what was, where no moments tell them.
    fit_intercept: bool
    moments_: Moments
    _active: ActiveColumns | None = None
    _freedom: Array | None = None

    @abstractmethod
    def _penalty(self, n_targets: int) -> Penalty:
        """The penalty for so many targets."""

    def _problem(self, X: Any, Y: Array, weights: Array | None) -> Problem:
        penalty = self._penalty(Y.shape[1])
        return build_problem(X, Y, weights, Squared(), penalty, self.fit_intercept)

    def _keep_of(self, problem: Any, solution: Solution) -> None:
        super()._keep_of(problem, solution)
        self._rank = solution.rank
        self._residual_square = solution.residual_square
        self._total_weight = problem.total_weight
        self._minimised = (problem.loss, problem.penalty)

    def _keep_active(self, problem: Any, is_needed: bool) -> None:
        """Without moments: what degrees of freedom and variance will be asked of the rows."""
        self._active, self._freedom = None, None
        if hasattr(self, "moments_"):
            return
        W, b = self._coefficients()
        if is_needed:
            self._active = active_columns(problem, W)
        if W.shape[1] > 1 and self._residual_square is None:
            self._residual_square = residual_squares(problem, W, b)

    def _y_ndim(self) -> int:
        return 1 if np.ndim(self.intercept_) == 0 and self.coef_.ndim == 1 else 2

    @property
    def noise_variance_(self) -> Any:
        """Estimated variance of the noise, residual square over residual degrees of freedom.

        One number per target. Weights count rows (weight 2 = row twice), so the number of rows is
        the sum of the weights; the degrees of freedom of a ridge fit are the trace of its hat
        matrix. The maximum-likelihood estimate divides by the number of rows instead
        (:meth:`noise_variance`).
        """
        return self.noise_variance()

    def noise_variance(self, unbiased: bool = True) -> Any:
        """Estimate the noise variance.

        Parameters
        ----------
        unbiased : bool, default=True
            Divide by the residual degrees of freedom; otherwise by the number of rows, which is
            the maximum-likelihood estimate.

        Returns
        -------
        variance : float or array of shape (k,)
        """
        square = self._squares()
        rows = self._total_weight - (self.degrees_of_freedom_ if unbiased else 0.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            variance = np.where(rows > 0, square / rows, np.nan)
        return float(variance[0]) if self._y_ndim() == 1 else variance

    def _squares(self) -> Any:
        """sum_i s_i (residual of row i)^2, per target."""
        check_is_fitted(self)
        if self._residual_square is not None:
            return self._residual_square
        W, _ = self._coefficients()
        if not hasattr(self, "moments_") and W.shape[1] == 1:
            certificate = self.certificate_
            if "column_exponent" not in certificate.witness:  # else it is in other units
                # Its objective, evaluated on the rows, is half the square and the penalty.
                return np.array([2 * (certificate.objective - self._minimised[1].value(W))])
        return self._about().residual_square(W)[0]

    @property
    def degrees_of_freedom_(self) -> Any:
        """Divergence of the fitted values, one number per target; the intercept included.

        Without a penalty, or with a squared one, the trace of the hat matrix: fitted parameters,
        shrunken ones counted in part. Where a penalty or a bound holds coefficients at zero, these
        count for nothing, and the trace is that of the other columns, with what curvature the
        penalty has there (H. Zou, T. Hastie, R. Tibshirani, Ann. Statist. 35 (2007) 2173-2192; with
        bounds M. Meyer, M. Woodroofe, Ann. Statist. 28 (2000) 1083-1104; with norms of groups
        S. Vaiter and others, arXiv:1205.1481). Where targets are coupled, each has its part of the
        whole, which is their sum. See :mod:`trueline.estimators.shared.regressor`.
        """
        check_is_fitted(self)
        self._settle()
        freedom = self._trace_of_hat() if self._freedom is None else self._freedom
        freedom = freedom + float(self.fit_intercept)
        return float(freedom[0]) if self._y_ndim() == 1 else freedom

    def _settle(self) -> None:
        """Work out what was left for later, from columns that are then let go."""
        if self._freedom is None and hasattr(self, "_minimised"):
            self._freedom, self._active = self._divergence(self._coefficients()[0]), None

    def _divergence(self, W: Array) -> Array | None:
        """Degrees of freedom that are no trace of a hat matrix of all columns; else None."""
        return None

    def _gram_of_active(self, used: Any) -> Array:
        """The Gram matrix of the columns with coefficients."""
        if self._active is not None:
            return self._active.gram()
        return np.asarray(self._about().gram[np.ix_(used, used)])

    def _trace_of_hat(self) -> Array:
        """Of the columns with coefficients, per target; the intercept not included."""
        W, _ = self._coefficients()
        penalty = self._minimised[1]
        holds = not {"smooth", "quadratic"} <= penalty.capabilities
        alpha = np.broadcast_to(penalty.curvature, W.shape)
        if not alpha.any() and not holds and self._rank is not None:
            return np.full(W.shape[1], float(self._rank))
        if holds and not alpha.any() and not hasattr(self, "moments_"):
            return np.count_nonzero(W, axis=0).astype(float)
        gram = self._about().gram
        used = W != 0 if holds else np.ones(W.shape, dtype=bool)
        return np.array([_trace(gram, used[:, t], alpha[:, t]) for t in range(W.shape[1])])

    # --- information criteria -------------------------------------------------------------------

    def log_likelihood(
        self,
        X: Any = None,
        y: Any = None,
        sample_weight: Any = None,
        *,
        dispersion: float | None = None,
    ) -> Any:
        """Gaussian log-likelihood, at the variance that makes the rows of the fit most likely.

        With n the sum of the weights and R the residual square: ``-n/2 (log(2 pi R / n) + 1)`` for
        the rows of the fit, ``-n/2 log(2 pi phi) - R / (2 phi)`` for others.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d), optional
            New rows, with ``y``; without them, the rows of the fit.
        y : array-like of shape (n,), optional
        sample_weight : array-like of shape (n,), optional
        dispersion : float, optional
            The variance phi, where it is known.

        Returns
        -------
        value : float or array of shape (k,)
            One number per target; infinite for a perfect fit.
        """
        if X is not None:
            phi = self._dispersion() if dispersion is None else float(dispersion)
            return rows_likelihood(self, X, y, sample_weight, phi)

        def formula(n: float, square: Any, p: Any) -> Any:
            if dispersion is None:
                return criteria.log_likelihood(n, square)
            return -n / 2 * np.log(2 * np.pi * dispersion) - square / (2 * dispersion)

        return self._criterion(formula, False)

    def _dispersion(self) -> float:
        """The most likely variance, for one target."""
        variance = self.noise_variance(unbiased=False)
        if np.size(variance) > 1:
            raise ValueError("The likelihood of new rows and the posterior are for one target.")
        return float(np.ravel(variance)[0])

    log_posterior = log_posterior

    def aic(
        self,
        X: Any = None,
        y: Any = None,
        sample_weight: Any = None,
        *,
        count_variance: bool = False,
    ) -> Any:
        """Akaike's information criterion, ``-2 log-likelihood + 2 p``; smaller is better.

        Parameters
        ----------
        X, y, sample_weight : optional
            New rows, as in :meth:`log_likelihood`; without them, the rows of the fit.
        count_variance : bool, default=False
            p is ``degrees_of_freedom_``: coefficients and intercept, those of a penalised fit
            counted in part (the trace of the hat matrix). The noise variance is an estimated
            parameter too; True counts it. Differences of AIC and BIC do not depend on it.

        Returns
        -------
        value : float or array of shape (k,)
            One number per target. Weights count rows: weight 2 = row twice.

        Examples
        --------
        >>> from sklearn.datasets import load_diabetes
        >>> from trueline import LinearRegression
        >>> X, y = load_diabetes(return_X_y=True)
        >>> model = LinearRegression().fit(X, y)
        >>> round(model.aic(), 3), round(model.aicc(), 3), round(model.bic(), 3)
        (4793.986, 4794.6, 4838.99)
        """
        if X is not None:
            return self._of_new_rows(X, y, sample_weight, count_variance, 2.0)
        return self._criterion(criteria.aic, count_variance)

    def _of_new_rows(
        self, X: Any, y: Any, sample_weight: Any, count_variance: bool, price: float
    ) -> float:
        p = float(np.ravel(self.degrees_of_freedom_)[0]) + float(count_variance)
        return float(-2.0 * self.log_likelihood(X, y, sample_weight) + price * p)

    def aicc(self, *, count_variance: bool = False) -> Any:
        """Akaike's criterion corrected for few rows, ``-2 log-likelihood + 2 p n / (n - p - 1)``.

        Parameters
        ----------
        count_variance : bool, default=False
            As in :meth:`aic`.

        Returns
        -------
        value : float or array of shape (k,)
            Infinite if n <= p + 1.
        """
        return self._criterion(criteria.aicc, count_variance)

    def bic(
        self,
        X: Any = None,
        y: Any = None,
        sample_weight: Any = None,
        *,
        count_variance: bool = False,
    ) -> Any:
        """Schwarz's Bayesian information criterion, ``-2 log-likelihood + p log n``.

        Parameters
        ----------
        X, y, sample_weight : optional
            As in :meth:`aic`.
        count_variance : bool, default=False
            As in :meth:`aic`.

        Returns
        -------
        value : float or array of shape (k,)
        """
        if X is not None:
            rows = float(np.sum(sample_weight)) if np.ndim(sample_weight) else float(len(y))
            return self._of_new_rows(X, y, sample_weight, count_variance, float(np.log(rows)))
        return self._criterion(criteria.bic, count_variance)

    def _criterion(self, formula: Callable[[float, Any, Any], Any], count_variance: bool) -> Any:
        check_is_fitted(self)
        loss = self._minimised[0]
        if "quadratic" not in loss.capabilities:
            raise AttributeError(
                f"Information criteria here are those of Gaussian noise, that is of squared loss; "
                f"this model was fitted with loss={loss.name!r}."
            )
        p = np.atleast_1d(self.degrees_of_freedom_) + float(count_variance)
        value = formula(self._total_weight, self._squares(), p)
        return float(value[0]) if self._y_ndim() == 1 else value

    def _about(self) -> Moments:
        """The moments about the mean with an intercept, about zero without."""
        if not hasattr(self, "moments_"):
            raise AttributeError(
                f"solver_={self.solver_!r} keeps no moments, from which variance and degrees of "
                "freedom are computed; fit with solver='cholesky'."
            )
        return self.moments_ if self.fit_intercept else self.moments_.about_zero()


def _trace(gram: Any, used: Any, alpha: Any) -> float:
    """Trace of the hat matrix of the used columns, whose penalties have the curvatures alpha."""
    gram, alpha = gram[np.ix_(used, used)], alpha[used]
    if len(alpha) and (alpha != alpha[0]).any():
        return float(np.trace(np.linalg.lstsq(gram + np.diag(alpha), gram, rcond=None)[0]))
    values = np.maximum(np.linalg.eigvalsh(gram), 0.0)
    if not alpha.any():  # the rank: what is left of dependent columns is rounding
        values = values[values > 16 * len(values) * np.finfo(float).eps * values.max(initial=0.0)]
    values = values[values > 0]
    return float(np.sum(values / (values + alpha[0]))) if len(values) else 0.0
