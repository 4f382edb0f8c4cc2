"""Regression that removes the columns it does not need, by maximum evidence."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from trueline.bayesian.relevance import determine_relevance
from trueline.design import as_design
from trueline.estimators.bayesian.evidence import EvidenceRegressor, proven
from trueline.estimators.shared.parameters import KW_ONLY, given, parameters
from trueline.moments import Moments
from trueline.problem import Problem
from trueline.solution import Solution

__all__ = ["ARDRegression"]

Array = NDArray[np.float64]


@parameters()
class ARDRegression(EvidenceRegressor):
    r"""Regression with one prior precision per coefficient, all chosen by the evidence.

    The model is::

        y_i = x_i.w + b + noise,   noise ~ Normal(0, 1 / alpha),   w_j ~ Normal(0, 1 / lambda_j)

    with gamma priors for alpha and all lambda_j. Where the data do not need a coefficient its
    precision grows beyond ``threshold_lambda``, and the coefficient is zero. The others are the
    posterior mean, which minimises over w and b::

        1/2 sum_i (y_i - x_i.w - b)^2 + sum_j lambda_j / (2 alpha) w_j^2

    A drop-in for ``sklearn.linear_model.ARDRegression``.

    Parameters
    ----------
    lambda_1, lambda_2 : float, default=1e-6
        Of the coefficients' precisions.
    compute_score : bool, default=False
        Keep the objective of every iteration in ``scores_``.
    threshold_lambda : float, default=1e4
        Coefficients whose precision exceeds it are removed.

    Attributes
    ----------
    lambda_ : array of shape (d,)
        Precisions of the coefficients.
    sigma_ : array of shape (m, m)
        Posterior covariance of the coefficients that remain.
    scores_ : list of float
    certificate_ : Certificate
        Proof that the remaining coefficients are the best ones for these precisions; it is about
        the remaining columns alone.

    Examples
    --------
    >>> import numpy as np
    >>> from trueline import ARDRegression
    >>> X = np.random.default_rng(0).normal(size=(50, 4))
    >>> y = 2 * X[:, 1] + 0.1 * np.random.default_rng(1).normal(size=50)
    >>> ARDRegression().fit(X, y).coef_.round(1) + 0.0
    array([0., 2., 0., 0.])
    """

    _: KW_ONLY
    tol: float = given(1.0e-3, "[0, inf)")
    threshold_lambda: float = given(1.0e4, "[0, inf)")

    def fit(self, X: Any, y: Any) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)
            At least two rows.
        y : array-like of shape (n,)

        Returns
        -------
        self : object
        """
        return super().fit(X, y)

    def _formula(self) -> str:
        kept, d = int(self._kept().sum()), len(self.lambda_)
        return (
            "sum_i [1/2 (z - y)^2] + sum_j lambda_j / (2 alpha_) w_j^2, "
            f"{kept} of {d} columns kept by maximum evidence"
        )

    def _maximise(self, problem: Problem, X: Any) -> Solution:
        n, d = problem.design.shape
        if n < 2:
            raise ValueError(
                f"Found array with {n} sample(s) (shape={X.shape}) while a minimum of 2 is "
                "required by ARDRegression."
            )
        found = determine_relevance(
            problem,
            self._hyperprior(),
            float(self.threshold_lambda),
            self.max_iter,
            float(self.tol),
            self.compute_score,
        )
        if not found.settled:
            self._warn_unsettled(found.n_iter)
        dtype, keep = X.dtype, found.keep
        self.alpha_ = dtype.type(found.alpha)
        self.lambda_ = found.lambda_.astype(dtype)
        # Rounding to single precision must not move a precision across the threshold.
        self._keep = keep
        self.sigma_ = found.covariance.astype(dtype)
        self.scores_ = found.scores
        self.X_scale_ = np.ones(d, dtype=dtype)
        offset = problem.design.column_means(None) if problem.fit_intercept else np.zeros(d)
        self.X_offset_ = offset.astype(dtype)
        part = Problem(
            as_design((X.tocsc() if sp.issparse(X) else X)[:, keep]),
            problem.target,
            problem.loss,
            problem.penalty,
            problem.fit_intercept,
            None,
        )
        moments = None
        if n >= int(keep.sum()) > 0:
            moments = Moments.from_rows(part.design, part.target, None)
        strengths: Any = found.lambda_[keep, None] / found.alpha if keep.any() else 1.0
        solver = "systems of one unknown per column" if n >= d else "systems of one unknown per row"
        notes = [f"{int(keep.sum())} of {d} columns kept"]
        return proven(part, found.coef[keep], strengths, moments, solver, found.n_iter, notes)

    def _kept(self) -> NDArray[np.bool_]:
        return self._keep

    def _fitted_attributes(
        self, W: NDArray[Any], b: NDArray[Any], y_ndim: int, fit_intercept: bool
    ) -> dict[str, Any]:
        coef = np.zeros(len(self.lambda_), dtype=W.dtype)
        coef[self._kept()] = W[:, 0]
        return {"coef_": coef, "intercept_": b[0] if fit_intercept else 0.0}

    def _coefficients(self) -> tuple[Array, Array]:
        W, b = super()._coefficients()
        return W[self._kept()], b

    def _verified_design(self, X: Any) -> Any:
        X = X.tocsc() if hasattr(X, "tocsc") else np.asarray(X)
        return X[:, self._kept()]

    def _spread(self, X: Array) -> Array:
        kept = X[:, self._kept()]
        return np.einsum("ij,ij->i", kept @ np.asarray(self.sigma_, dtype=np.float64), kept)
