"""Ridge regression."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from trueline.estimators.regression.incremental import FittedFromMoments
from trueline.estimators.shared.base import LinearEstimator
from trueline.estimators.shared.parameters import KW_ONLY, given, one_of, parameters
from trueline.estimators.shared.regressor import LinearRegressorBase
from trueline.penalties import L2, NonNegative, NoPenalty, Penalty
from trueline.solution import Solution
from trueline.solvers.base import Options

#: The methods of lectures, by their names in the registry.
DESCENTS = ("conjugate_gradient", "gradient_descent", "stochastic_gradient", "mini_batch")
#: scikit-learn's names of solvers, and ours that does the work.
RIDGE_SOLVERS: dict[str, str] = {
    **{name: name for name in ("auto", "svd", "cholesky", "qr", "kernel", *DESCENTS)},
    **dict.fromkeys(("lsqr", "sparse_cg", "sag", "saga"), "conjugate_gradient"),
    "lbfgs": "active_set",
}


def as_given(solver: str, ran: str) -> str:
    """scikit-learn's names for the same algorithms are reported back as they were given."""
    return solver if solver in ("lsqr", "sparse_cg") and ran == RIDGE_SOLVERS[solver] else ran


@parameters()
class Ridge(FittedFromMoments, LinearRegressorBase, LinearEstimator):
    """Least squares with a squared penalty, with a proof.

    Minimises over w and b::

        1/2 sum_i s_i (y_i - x_i.w - b)^2 + alpha/2 ||w||^2

    which has the same minimiser as scikit-learn's ``||y - Xw - b||^2 + alpha ||w||^2``. The
    intercept is not penalised.

    A drop-in for ``sklearn.linear_model.Ridge``.

    Parameters
    ----------
    alpha : float or array of shape (k,), default=1.0
        Strength; an array gives one strength per target. Under Gaussian noise of variance
        sigma^2 and a Gaussian prior of variance tau^2 on each coefficient the ridge answer is the
        most probable one for ``alpha = sigma^2 / tau^2`` (see :meth:`from_prior`).
    fit_intercept : bool, default=True
    copy_X : bool, default=True
        Accepted for compatibility: X is never modified.
    max_iter : int, optional
        Limit for iterative solvers.
    tol : float, default=1e-4
        For iterative solvers: the gap to prove is ``tol^2 / 10`` relative to the objective of the
        best constant, which bounds the relative error of the fitted values by ``tol / 3``.
    solver : str, default="auto"
        "auto" plans (see :meth:`explain`); by name: "cholesky", "qr", "svd", "kernel",
        "conjugate_gradient" (also as "sparse_cg" and "lsqr", and in place of the stochastic
        averages "sag" and "saga", which it outruns), and the textbook forms "gradient_descent",
        "stochastic_gradient", "mini_batch". "lbfgs" stands for active sets and needs
        ``positive=True``.
    positive : bool, default=False
        Keep all coefficients at or above zero.
    random_state : int, RandomState or None
        For stochastic solvers.

    Attributes
    ----------
    coef_ : array of shape (d,) or (k, d)
    intercept_ : float or array of shape (k,)
    certificate_ : Certificate
    noise_variance_ : float or array of shape (k,)
    prior_variance_ : float or array of shape (k,)
        tau^2 = sigma^2 / alpha for the estimated noise variance.
    moments_ : Moments
    solver_ : str
    n_iter_ : int
    n_features_in_ : int
    feature_names_in_ : array of str

    Examples
    --------
    >>> import numpy as np
    >>> from trueline import Ridge
    >>> X, y = np.array([[0.0], [1.0], [2.0]]), np.array([0.0, 1.0, 2.0])
    >>> Ridge(alpha=2.0).fit(X, y).coef_
    array([0.5])
    """

    _leave_one_out = "least squares"
    _keeps_single_target = False
    _is_its_problem = True

    alpha: Any = given(1.0, "[0, inf)", "array-like")
    _: KW_ONLY
    fit_intercept: bool = True
    copy_X: bool = True
    max_iter: int | None = given(None, "int [1, inf)", None)
    tol: float = given(1e-4, "[0, inf)")
    solver: str = given("auto", one_of(*RIDGE_SOLVERS))
    positive: bool = False
    random_state: Any = given(None, "random_state")

    @classmethod
    def from_prior(cls, noise_variance: float, prior_variance: float, **parameters: Any) -> Self:
        """Ridge as the most probable coefficients under a Gaussian prior.

        For y_i = x_i.w + b + noise of variance sigma^2 and w_j ~ N(0, tau^2), the posterior mode
        minimises the ridge objective with ``alpha = sigma^2 / tau^2``.

        Parameters
        ----------
        noise_variance : float
            sigma^2.
        prior_variance : float
            tau^2.
        **parameters
            Other parameters of :class:`Ridge`.

        Examples
        --------
        >>> from trueline import Ridge
        >>> Ridge.from_prior(noise_variance=4.0, prior_variance=2.0).alpha
        2.0
        """
        if not (noise_variance >= 0 and prior_variance > 0):
            raise ValueError(
                "noise_variance must not be negative and prior_variance must be positive, got "
                f"{noise_variance!r} and {prior_variance!r}."
            )
        return cls(alpha=noise_variance / prior_variance, **parameters)

    @property
    def prior_variance_(self) -> Any:
        """tau^2 = sigma^2 / alpha: how widely the prior lets coefficients vary."""
        alpha = np.asarray(self.alpha, dtype=float)
        with np.errstate(divide="ignore", invalid="ignore"):
            variance = np.divide(self.noise_variance(), alpha)
        return float(variance) if variance.ndim == 0 else variance

    def _penalty(self, n_targets: int) -> Penalty:
        alpha = np.asarray(self.alpha, dtype=np.float64)
        if alpha.ndim > 0 and alpha.size not in (1, n_targets):
            raise ValueError(
                "Number of targets and number of penalties do not correspond: "
                f"{alpha.size} != {n_targets}"
            )
        strength = float(alpha.ravel()[0]) if alpha.size == 1 else alpha.ravel()
        base: Penalty = L2(strength) if np.any(alpha) else NoPenalty()
        return NonNegative(base) if self.positive else base

    def _solver_name(self) -> str:
        if self.positive:
            if self.solver not in ("auto", "lbfgs"):
                raise ValueError(
                    f"solver={self.solver!r} does not support positive fitting. Please set the "
                    "solver to 'auto' or 'lbfgs', or set `positive=False`"
                )
            return "auto"
        if self.solver == "lbfgs":
            raise ValueError(
                "'lbfgs' solver can be used only when positive=True. Please use another solver."
            )
        return RIDGE_SOLVERS[self.solver]

    def _keep_of(self, problem: Any, solution: Solution) -> None:
        super()._keep_of(problem, solution)
        self.solver_ = as_given(self.solver, self.solver_)

    def _options(self) -> Options:
        return Options(tol=self.tol**2 / 10, max_iter=self.max_iter, random_state=self.random_state)
