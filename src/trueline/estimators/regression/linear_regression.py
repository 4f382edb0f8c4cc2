"""Ordinary least squares."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from trueline.estimators.regression.incremental import FittedFromMoments
from trueline.estimators.shared.base import LinearEstimator
from trueline.estimators.shared.columns import ColumnRank
from trueline.estimators.shared.parameters import KW_ONLY, given, one_of, parameters
from trueline.estimators.shared.regressor import LinearRegressorBase
from trueline.penalties import NonNegative, NoPenalty, Penalty
from trueline.solution import Solution
from trueline.solvers.base import Options

__all__ = ["LinearRegression"]

Array = NDArray[np.float64]

_SOLVERS = {
    "auto",
    "cholesky",
    "qr",
    "svd",
    "lsmr",
    "conjugate_gradient",
    "gradient_descent",
    "stochastic_gradient",
    "mini_batch",
}


@parameters()
class LinearRegression(ColumnRank, FittedFromMoments, LinearRegressorBase, LinearEstimator):
    """Ordinary least squares, to the last digit and with a proof.

    Minimises over w and b::

        1/2 sum_i s_i (y_i - x_i.w - b)^2

    with sample weights s_i (one by default). If the columns do not determine w, the answer is the
    one of least norm (Moore-Penrose); ``rank_`` and ``null_space_`` tell.

    A drop-in for ``sklearn.linear_model.LinearRegression``. The rank is decided at the level of
    rounding (on columns of equal norm), not at the relative cut ``tol`` of that class, so that
    badly scaled or nearly collinear columns keep their information.

    Parameters
    ----------
    fit_intercept : bool, default=True
        Whether to fit b; it is 0 otherwise.
    copy_X : bool, default=True
        Accepted for compatibility: X is never modified and never copied as a whole.
    tol : float, default=1e-6
        For iterative solvers: the gap to prove is ``tol^2`` relative to the objective of the best
        constant, which bounds the relative error of the fitted values by ``tol``.
    n_jobs : int, optional
        Accepted for compatibility: threads follow the limits of the BLAS library.
    positive : bool, default=False
        Keep all coefficients at or above zero.
    solver : str, default="auto"
        "auto" plans (see :meth:`explain`); by name: "cholesky", "qr", "svd", "lsmr",
        "conjugate_gradient", and the textbook forms "gradient_descent", "stochastic_gradient",
        "mini_batch".

    Attributes
    ----------
    coef_ : array of shape (d,) or (k, d)
    intercept_ : float or array of shape (k,)
    certificate_ : Certificate
        How far from the optimum the coefficients can be at most, with a proof.
    rank_ : int
        Rank of the (centred) design.
    singular_ : array of shape (min(n, d),)
        Its singular values.
    null_space_ : array of shape (d, d - rank)
        Directions of the coefficients that the data do not determine.
    noise_variance_ : float or array of shape (k,)
        Estimated variance of the noise.
    moments_ : Moments
        The sufficient statistics, for ``partial_fit`` and ``merge``.
    solver_ : str
        The solver that ran.
    n_iter_ : int
        Its iterations.
    n_features_in_ : int
    feature_names_in_ : array of str
        If X had column names.

    Examples
    --------
    >>> import numpy as np
    >>> from trueline import LinearRegression
    >>> X = np.array([[1.0, 1.0], [1.0, 2.0], [2.0, 2.0], [2.0, 3.0]])
    >>> y = X @ np.array([1.0, 2.0]) + 3.0
    >>> model = LinearRegression().fit(X, y)
    >>> model.coef_.round(12), round(float(model.intercept_), 12)
    (array([1., 2.]), 3.0)
    >>> bool(model.verify(X, y))
    True
    """

    _: KW_ONLY
    fit_intercept: bool = True
    copy_X: bool = True
    tol: float = given(1e-6, "[0, inf)")
    n_jobs: int | None = given(None, None, "int")
    positive: bool = False
    solver: str = given("auto", one_of(*_SOLVERS))

    _is_its_problem = True

    def _penalty(self, n_targets: int) -> Penalty:
        return NonNegative(NoPenalty()) if self.positive else NoPenalty()

    def _options(self) -> Options:
        return Options(tol=self.tol**2)

    def _keep_of(self, problem: Any, solution: Solution) -> None:
        super()._keep_of(problem, solution)
        self._singular = solution.singular_values

    @property
    def singular_(self) -> Array:
        """Singular values of the centred, weighted design, in descending order."""
        check_is_fitted(self)
        if self._singular is not None:
            return self._singular
        if not hasattr(self, "moments_"):
            raise AttributeError(
                f"solver_={self.solver_!r} does not determine the singular values; use 'svd'."
            )
        moments = self.moments_ if self.fit_intercept else self.moments_.about_zero()
        values = np.linalg.eigvalsh(moments.gram)[::-1][: min(moments.count, len(moments.gram))]
        noise = len(values) * moments.unit * float(moments.x_size.sum())
        if (values < 1e4 * noise).any():
            raise AttributeError(
                "The small singular values of these data are lost in the rounding of their "
                "squares; fit with solver='svd' to have them."
            )
        return np.sqrt(values)
