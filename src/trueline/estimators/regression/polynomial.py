"""Polynomial regression that keeps its digits."""

from __future__ import annotations

import time
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import assert_all_finite

from trueline.estimators.shared.base import (
    LinearEstimator,
    Seen,
    build_problem,
    fit_with_callbacks,
    watch,
)
from trueline.estimators.shared.parameters import KW_ONLY, given, parameters
from trueline.estimators.shared.regressor import GaussianLikelihood, LinearRegressorBase
from trueline.estimators.shared.validation import new_rows, numeric_target, validate_data
from trueline.losses import Squared
from trueline.numerics.precision import residual_doubled, two_product, two_sum
from trueline.penalties import NoPenalty
from trueline.planner import make_plan
from trueline.problem import Array, Problem
from trueline.solvers import solve_by_rows
from trueline.trace import Trace


def powers_doubled(X: Array, degree: int) -> tuple[Array, Array]:
    """Powers 1..degree of each column as doubled numbers, of shape (n, columns * degree).

    The order is x1, x1^2, ..., x2, x2^2, ...
    """
    n, p = X.shape
    hi, lo = np.empty((n, p * degree)), np.zeros((n, p * degree))
    for j in range(p):
        base, low = X[:, j], np.zeros(n)
        power = base
        for m in range(degree):
            column = j * degree + m
            if m:
                power, error = two_product(hi[:, column - 1], base)
                power, low = two_sum(power, error + lo[:, column - 1] * base)
            hi[:, column], lo[:, column] = power, low
    return hi, lo


@parameters()
class PolynomialRegression(GaussianLikelihood, LinearRegressorBase, LinearEstimator):
    """Least squares on powers of the features, formed in doubled precision.

    Minimises over the coefficients::

        1/2 sum_i s_i (y_i - b - sum_j sum_m w_jm x_ij^m)^2,      m = 1..degree

    Powers of the same column are nearly collinear, and rounding the powers themselves to double
    precision changes the answer in the eighth digit for a polynomial of degree 10. Here the powers
    carry about 32 digits, and so do the residuals from which the coefficients are refined.

    Parameters
    ----------
    degree : int, default=2
        Highest power of each column; products of different columns are not included.
    fit_intercept : bool, default=True

    Attributes
    ----------
    coef_ : array of shape (d * degree,) or (k, d * degree)
        Ordered x1, x1^2, ..., x2, x2^2, ...
    intercept_ : float or array of shape (k,)
    certificate_ : Certificate
        About the powers rounded to double precision.
    rank_ : int
    n_features_in_ : int
    feature_names_in_ : array of str

    Examples
    --------
    >>> import numpy as np
    >>> from trueline import PolynomialRegression
    >>> x = np.arange(21.0).reshape(-1, 1)
    >>> y = (1 + x + x**2 + x**3 + x**4 + x**5).ravel()
    >>> PolynomialRegression(degree=5).fit(x, y).coef_
    array([1., 1., 1., 1., 1.])
    """

    degree: int = given(2, "int [1, inf)")
    _: KW_ONLY
    fit_intercept: bool = True

    def _problem(self, X: Any, Y: Array, weights: Array | None) -> Problem:
        powers = self._powers(X)[0]
        return build_problem(powers, Y, weights, Squared(), NoPenalty(), self.fit_intercept)

    def _solver_name(self) -> str:
        return "qr"  # only the rows themselves have the digits of the powers

    def _powers(self, X: Any) -> tuple[Array, Array]:
        with np.errstate(over="ignore", invalid="ignore"):
            hi, lo = powers_doubled(np.asarray(X, dtype=np.float64), self.degree)
        largest = float(np.abs(hi).max(initial=0.0))
        if not largest < 1e150:
            raise ValueError(
                f"Powers up to degree {self.degree} of these values exceed what can be squared in "
                "double precision: divide x by a power of ten, or shift it towards zero."
            )
        return hi, lo

    def _check_range(self, powers: Array, Y: Array) -> None:
        """Refuse data whose squares vanish or overflow."""
        largest = np.abs(powers).max(axis=0).reshape(-1, self.degree)
        if ((largest[:, :1] > 0) & (largest < 1e-150)).any():
            raise ValueError(
                f"Powers up to degree {self.degree} of these values vanish when squared in double "
                "precision: multiply x by a power of ten."
            )
        targets = np.abs(Y).max(axis=0)
        if ((targets > 1e150) | ((targets > 0) & (targets < 1e-150))).any():
            raise ValueError(
                "The squares of the target overflow or vanish in double precision: multiply it by "
                "a power of ten."
            )

    @fit_with_callbacks
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the polynomial.

        Parameters
        ----------
        X : array-like of shape (n, d)
        y : array-like of shape (n,) or (n, k)
        sample_weight : float or array-like of shape (n,), optional

        Returns
        -------
        self : object
        """
        self._check_parameters()
        with numeric_target(self, y):
            X, y = validate_data(
                self, X, y, dtype=[np.float64, np.float32], multi_output=True, y_numeric=True
            )
            Y = (y.reshape(-1, 1) if y.ndim == 1 else y).astype(np.float64, copy=False)
        assert_all_finite(X, input_name="X", estimator_name=type(self).__name__)
        weights = self._weights(sample_weight, X)
        hi, lo = self._powers(X)
        self._check_range(hi, Y)
        problem = build_problem(hi, Y, weights, Squared(), NoPenalty(), self.fit_intercept)
        plan = make_plan(problem, self._solver_name())
        with watch(self, Trace(), Seen(X, y, sample_weight)):
            start = time.perf_counter()
            solution = solve_by_rows(problem, "qr", X_low=lo)
            solution.seconds = time.perf_counter() - start
            self._store(problem, plan, solution, X.dtype, y.ndim)
            self.rank_ = solution.rank
        return self

    def _verified_design(self, X: Any) -> Array:
        return self._powers(np.asarray(X, dtype=np.float64))[0]

    def predict(self, X: Any) -> NDArray[Any]:
        """Evaluate the polynomial, in doubled precision.

        Parameters
        ----------
        X : array-like of shape (n, d)

        Returns
        -------
        y : array of shape (n,) or (n, k)
        """
        hi, lo = self._powers(new_rows(self, X, accept_sparse=False))
        W, b = self._coefficients()
        zero = np.zeros(len(hi))
        columns = []
        for t in range(W.shape[1]):
            high, low = residual_doubled(hi, W[:, t], float(b[t]), zero, lo)
            columns.append(-(high + low))
        values = np.column_stack(columns).astype(self.coef_.dtype, copy=False)
        return values[:, 0] if self.coef_.ndim == 1 else values

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = False
        return tags
