"""Bayesian linear regression in closed form."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from trueline.bayesian.conjugate import NormalInverseGamma
from trueline.design import Design
from trueline.errors import squares_out_of_range
from trueline.estimators.regression.incremental import FittedFromMoments
from trueline.estimators.shared.base import LinearEstimator, build_problem
from trueline.estimators.shared.parameters import KW_ONLY, given, parameters
from trueline.estimators.shared.regressor import LinearRegressorBase
from trueline.estimators.shared.validation import dense_new_rows
from trueline.losses import Squared
from trueline.penalties import L2, NoPenalty, Penalty
from trueline.plan import Plan
from trueline.problem import Array, Problem
from trueline.solution import Solution


@parameters()
class BayesianLinearRegression(FittedFromMoments, LinearRegressorBase, LinearEstimator):
    r"""Linear regression with a conjugate prior: the whole posterior, in closed form.

    The model is::

        y_i = x_i.w + b + noise,       noise ~ Normal(0, sigma^2 / s_i)
        w | sigma^2 ~ Normal(prior_mean, sigma^2 / prior_precision),   b flat
        sigma^2     ~ InverseGamma(noise_shape, noise_rate)

    Coefficients and predictions then have Student distributions with
    ``2 noise_shape + n - 1`` degrees of freedom. ``coef_`` is at once the mean and the mode of the
    posterior, which minimises over w and b::

        1/2 sum_i s_i (y_i - x_i.w - b)^2 + sum_j prior_precision_j / 2 (w_j - prior_mean_j)^2

    With ``prior_mean=0`` that is ridge regression with ``alpha=prior_precision``. With
    ``prior_precision=0``, ``noise_shape=0`` and ``noise_rate=0`` the credible intervals are the
    confidence intervals of least squares.

    Parameters
    ----------
    prior_precision : float or array of shape (d,), default=1.0
        Precision of the coefficients before any data, in units of the noise's precision: 4 means
        that a coefficient is expected within half a sigma of its prior mean. 0 is a flat prior.
    prior_mean : float or array of shape (d,), default=0.0
    noise_shape, noise_rate : float, default=1e-6
        Of the inverse gamma distribution of the noise variance: ``2 noise_shape`` rows seen
        before, with the sum of squared errors ``2 noise_rate``.
    fit_intercept : bool, default=True
        The intercept's prior is flat.

    Attributes
    ----------
    coef_ : array of shape (d,)
        Posterior mean.
    intercept_ : float
    posterior_ : NormalInverseGamma
        The whole posterior. As the prior of what comes next it is used by :meth:`partial_fit`.
    log_evidence_ : float
        Log density of the targets under the model, all unknowns integrated out. Directions with a
        flat prior (the intercept among them) count with density one, so that only models with
        equally many of them compare.
    noise_variance_ : float
        Posterior mean of sigma^2, infinite where the data do not determine it.
    covariance_ : array of shape (d, d)
        Posterior covariance of the coefficients.
    certificate_ : Certificate
        Proof that ``coef_`` and ``intercept_`` are the most probable ones (as a ridge regression of
        ``y - X prior_mean``).
    moments_ : Moments
    n_features_in_ : int
    feature_names_in_ : array of str

    Examples
    --------
    >>> import numpy as np
    >>> from trueline import BayesianLinearRegression
    >>> X, y = np.array([[0.0], [1.0], [2.0], [3.0]]), np.array([0.9, 3.1, 4.9, 7.1])
    >>> model = BayesianLinearRegression(prior_precision=0.01).fit(X, y)
    >>> model.credible_interval(0.9).round(2)
    array([[1.87, 2.2 ]])
    >>> model.predict_interval([[4.0]], 0.9).round(1)
    array([[8.5, 9.7]])

    One batch after the other gives the same posterior:

    >>> again = BayesianLinearRegression(prior_precision=0.01)
    >>> again = again.partial_fit(X[:2], y[:2]).partial_fit(X[2:], y[2:])
    >>> bool(np.isclose(again.log_evidence_, model.log_evidence_))
    True
    """

    _keeps_single_target = False

    _targets = "one"

    prior_precision: Any = given(1.0, "[0, inf)", "array-like")
    _: KW_ONLY
    prior_mean: Any = given(0.0, "(-inf, inf)", "array-like")
    noise_shape: float = given(1e-6, "[0, inf)")
    noise_rate: float = given(1e-6, "[0, inf)")
    fit_intercept: bool = True

    # --- fitting --------------------------------------------------------------------------------

    def _solver_name(self) -> str:
        return "cholesky"  # the posterior is made of the moments that it keeps

    def _per_coefficient(self, name: str, d: int) -> Array:
        value = np.asarray(getattr(self, name), dtype=np.float64)
        if value.ndim > 1 or value.size not in (1, d):
            raise ValueError(
                f"{name} must be a number or an array of one number for each of {d} columns, got "
                f"an array of shape {value.shape}."
            )
        if not np.isfinite(value).all() or (name == "prior_precision" and (value < 0).any()):
            raise ValueError(
                f"{name} must be finite{' and not negative' if 'precision' in name else ''}, got "
                f"{getattr(self, name)!r}."
            )
        return np.broadcast_to(value.ravel() if value.ndim else value, d)

    def _penalty(self, n_targets: int) -> Penalty:
        return self._prior_penalty(self.n_features_in_)

    def _prior_penalty(self, d: int) -> Penalty:
        precision = self._per_coefficient("prior_precision", d)
        if not precision.any():
            return NoPenalty()
        if (precision == precision[0]).all():
            return L2(float(precision[0]))
        return L2(precision[:, None].copy())

    def _shift(self, d: int) -> Array | None:
        """The prior mean, or None where it is zero."""
        mean = self._per_coefficient("prior_mean", d)
        return mean if mean.any() else None

    def _problem(self, X: Any, Y: Array, weights: Array | None) -> Problem:
        penalty = self._prior_penalty(X.shape[1])
        return build_problem(
            X, self._shifted(X, Y), weights, Squared(), penalty, self.fit_intercept
        )

    def _shifted(self, X: Any, Y: Array) -> Array:
        """y - X m0: what is left for coefficients whose prior has mean zero."""
        shift = self._shift(X.shape[1])
        return Y if shift is None else Y - np.asarray(X @ shift, dtype=np.float64)[:, None]

    def _store(
        self, problem: Any, plan: Plan, solution: Solution, dtype: np.dtype, y_ndim: int
    ) -> None:
        super()._store(problem, plan, solution, dtype, 1)
        moments = solution.moments
        if moments is None:  # the squares overflow or vanish: solved in other units
            raise squares_out_of_range()
        d = self.n_features_in_
        shift = self._shift(d)
        prior = NormalInverseGamma.prior(
            np.zeros(d),
            self._per_coefficient("prior_precision", d),
            self.noise_shape,
            self.noise_rate,
            self.fit_intercept,
        )
        squares = solution.residual_square
        square = None if squares is None else float(squares[0])
        posterior = prior.update(moments, solution.coef[:, 0], square)
        self.posterior_ = posterior if shift is None else posterior.moved(shift)
        self.log_evidence_ = posterior.log_evidence
        if shift is not None:
            self.coef_ = (solution.coef[:, 0] + shift).astype(dtype)
            W, b = self._coefficients()
            self._certificate = self._certify_rounded(problem, solution, W, b)
            self._mark_fitted()

    def _coefficients(self) -> tuple[Array, Array]:
        W, b = super()._coefficients()
        shift = self._shift(len(W))
        return (W if shift is None else W - shift[:, None]), b

    def _verified_data(self, X: Any, y: Any, sample_weight: Any) -> tuple[Any, Any, Any]:
        rows = X if hasattr(X, "tocsr") or isinstance(X, Design) else np.asarray(X)
        target = self._shifted(rows, np.asarray(y, dtype=np.float64).reshape(-1, 1))
        return X, target, sample_weight

    # --- the posterior --------------------------------------------------------------------------

    @property
    def noise_variance_(self) -> float:
        """Posterior mean of the noise variance."""
        check_is_fitted(self)
        posterior = self.posterior_
        return posterior.rate / (posterior.shape - 1) if posterior.shape > 1 else float("inf")

    @property
    def covariance_(self) -> Array:
        """Posterior covariance of the coefficients, of shape (d, d)."""
        check_is_fitted(self)
        freedom = self.posterior_.degrees_of_freedom
        if freedom <= 2:
            return np.full((len(self.coef_), len(self.coef_)), np.inf)
        return self.posterior_.scale() * (freedom / (freedom - 2))

    def credible_interval(self, level: float = 0.95) -> Array:
        """Where each coefficient lies with the given probability.

        Parameters
        ----------
        level : float, default=0.95

        Returns
        -------
        interval : array of shape (d, 2)
            The central interval of the marginal Student distribution.
        """
        check_is_fitted(self)
        half = self._quantile(level) * np.sqrt(np.diag(self.posterior_.scale()))
        centre = np.asarray(self.coef_, dtype=np.float64)
        return np.column_stack([centre - half, centre + half])

    def intercept_interval(self, level: float = 0.95) -> Array:
        """Where the intercept lies with the given probability: two numbers."""
        check_is_fitted(self)
        if not self.fit_intercept:
            return np.zeros(2)
        centre, scale = self.posterior_.intercept()
        half = self._quantile(level) * scale
        return np.array([centre - half, centre + half])

    def _quantile(self, level: float) -> float:
        """How many scales a central interval reaches to each side."""
        from scipy.special import stdtrit

        if not 0 < level < 1:
            raise ValueError(f"level must lie between 0 and 1, got {level!r}.")
        return float(stdtrit(self.posterior_.degrees_of_freedom, 0.5 + 0.5 * level))

    def predict(self, X: Any, return_std: bool = False) -> Any:
        """Predict, with the standard deviation of a new target if asked for.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)
        return_std : bool, default=False

        Returns
        -------
        y : array of shape (n,)
        std : array of shape (n,)
            If ``return_std``; infinite with two degrees of freedom or fewer.
        """
        mean = super().predict(X)
        if not return_std:
            return mean
        freedom = self.posterior_.degrees_of_freedom
        factor = np.sqrt(freedom / (freedom - 2)) if freedom > 2 else np.inf
        std = factor * self.posterior_.predictive(dense_new_rows(self, X))[1]
        return mean, std.astype(mean.dtype, copy=False)

    def predictive(self, X: Any) -> Any:
        """The posterior predictive distribution: Student's, one for each row.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)

        Returns
        -------
        distribution : frozen distribution of SciPy
            With ``mean()``, ``interval(0.9)``, ``logpdf(y)``, ``rvs()`` and so on.
        """
        from scipy.stats import t

        check_is_fitted(self)
        centre, scale = self.posterior_.predictive(dense_new_rows(self, X))
        return t(self.posterior_.degrees_of_freedom, loc=centre, scale=scale)

    def predict_interval(self, X: Any, level: float = 0.95) -> Array:
        """Where a new target lies with the given probability, row by row.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)
        level : float, default=0.95

        Returns
        -------
        interval : array of shape (n, 2)
        """
        check_is_fitted(self)
        centre, scale = self.posterior_.predictive(dense_new_rows(self, X))
        half = self._quantile(level) * scale
        return np.column_stack([centre - half, centre + half])

    def sample_posterior(self, n_samples: int = 1, random_state: Any = 0) -> tuple[Array, ...]:
        """Draw from the posterior.

        Parameters
        ----------
        n_samples : int, default=1
        random_state : int, RandomState or None, default=0

        Returns
        -------
        coef : array of shape (n_samples, d)
        intercept : array of shape (n_samples,)
        noise_variance : array of shape (n_samples,)
        """
        check_is_fitted(self)
        return self.posterior_.sample(n_samples, check_random_state(random_state))
