"""What squared loss means: Gaussian noise, and estimates of its variance."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from trueline.estimators.shared.base import Host, build_problem
from trueline.estimators.sparse.freedom import ActiveColumns, active_columns, residual_squares
from trueline.losses import Squared
from trueline.moments import Moments
from trueline.penalties import Penalty
from trueline.problem import Problem
from trueline.selection import criteria
from trueline.solution import Solution

__all__ = ["GaussianLikelihood"]

Array = NDArray[np.float64]


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
        whole, which is their sum. See :mod:`trueline.estimators.sparse.freedom`.
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

    def log_likelihood(self) -> Any:
        """Gaussian log-likelihood of the rows, at the variance that makes them most likely.

        With n the sum of the weights and R the residual square: ``-n/2 (log(2 pi R / n) + 1)``.

        Returns
        -------
        value : float or array of shape (k,)
            One number per target; infinite for a perfect fit.
        """
        return self._criterion(lambda n, R, p: criteria.log_likelihood(n, R), False)

    def aic(self, *, count_variance: bool = False) -> Any:
        """Akaike's information criterion, ``-2 log-likelihood + 2 p``; smaller is better.

        Parameters
        ----------
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
        return self._criterion(criteria.aic, count_variance)

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

    def bic(self, *, count_variance: bool = False) -> Any:
        """Schwarz's Bayesian information criterion, ``-2 log-likelihood + p log n``.

        Parameters
        ----------
        count_variance : bool, default=False
            As in :meth:`aic`.

        Returns
        -------
        value : float or array of shape (k,)
        """
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
