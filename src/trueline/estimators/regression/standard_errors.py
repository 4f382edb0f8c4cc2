"""Standard errors: of quantiles by their sparsity, of other models by Fisher information."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from trueline.design import as_design
from trueline.estimators.shared.base import Array, Host
from trueline.estimators.shared.validation import validate_data, weights_of, with_weight
from trueline.inference import CoefficientTable, fisher_covariance, quantile_covariance


class QuantileInference(Host):
    """Adds ``standard_errors`` to an estimator of one or several quantiles."""

    alpha: float
    fit_intercept: bool

    def standard_errors(
        self,
        X: Any,
        y: Any,
        kind: str = "robust",
        kernel: str = "epanechnikov",
        bandwidth: str = "hall_sheather",
        sample_weight: Any = None,
    ) -> CoefficientTable:
        """How far the coefficients may be from the truth, in large samples.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)
            The rows that were fitted.
        y : array-like of shape (n,)
        kind : {"robust", "iid", "kernel"}, default="robust"
            "iid" takes the errors of all rows for equally distributed. "robust" weighs the rows
            above and below the fit apart, with one density for all (statsmodels'
            ``vcov="robust"``). "kernel" lets the density differ from row to row (Powell's
            sandwich): the one to take when the spread of y depends on x.
        kernel : {"epanechnikov", "cosine", "gaussian", "parzen", "biweight"}, \
default="epanechnikov"
            For the density of the errors at zero.
        bandwidth : {"hall_sheather", "bofinger", "chamberlain"}, default="hall_sheather"
        sample_weight : array-like of shape (n,), optional
            As in ``fit``: weight 2 counts a row twice.

        Returns
        -------
        table : CoefficientTable
            With ``standard_errors``, ``t_values``, ``p_values`` and
            ``confidence_intervals(level)``; the intercept comes first. Several quantiles give one
            row each.

        Examples
        --------
        >>> import numpy as np
        >>> from trueline import QuantileRegressor
        >>> rng = np.random.default_rng(0)
        >>> X = rng.uniform(0, 10, size=(500, 1))
        >>> y = 1 + 2 * X[:, 0] + rng.normal(size=500)
        >>> table = QuantileRegressor(quantile=0.5, alpha=0).fit(X, y).standard_errors(X, y)
        >>> lower, upper = table.confidence_intervals(0.99)[1]
        >>> bool(lower < 2 < upper)
        True
        """
        check_is_fitted(self)
        _check_unpenalised(self)
        X, y, weights = self._rows_of_weight(X, y, sample_weight)
        W, b = self._coefficients()
        rows = float(len(y)) if weights is None else float(weights.sum())
        count = len(W) + self.fit_intercept
        if rows <= count:
            raise ValueError(
                f"Standard errors need more rows than coefficients: there are {rows:g} rows for "
                f"{count} coefficients."
            )
        design = as_design(X)
        residuals = _residuals(design, y, W, b, self.coef_.dtype)
        quantiles = self._quantiles()
        found = [
            quantile_covariance(
                design,
                y,
                residuals[:, j],
                q,
                fit_intercept=self.fit_intercept,
                weights=weights,
                kind=kind,
                kernel=kernel,
                bandwidth=bandwidth,
            )
            for j, q in enumerate(quantiles)
        ]
        names, coefficients = _named(self, W, b, self.fit_intercept)
        several = bool(self._is_several)
        pick = slice(None) if several else 0
        return CoefficientTable(
            names=names,
            sets=tuple(f"quantile {q:g}" for q in quantiles) if several else (),
            coefficients=coefficients[pick],
            covariance=np.stack([one.covariance for one in found])[pick],
            degrees_of_freedom=rows - count,
            method=f"{kind} covariance, {kernel} kernel, {bandwidth} bandwidth",
            details={
                "bandwidth": np.array([one.bandwidth for one in found])[pick],
                "sparsity": np.array([one.sparsity for one in found])[pick],
            },
        )

    def _rows_of_weight(self, X: Any, y: Any, sample_weight: Any) -> tuple[Any, Any, Any]:
        """Rows, targets and weights, without rows of weight zero."""
        X, y = validate_data(
            self,
            X,
            y,
            accept_sparse=["csr", "csc", "coo"],
            dtype=np.float64,
            y_numeric=True,
            reset=False,
        )
        weights = self._weights(sample_weight, X)
        X, weights, y = with_weight(X, weights, y.astype(np.float64))
        return X, y, weights


def _residuals(design: Any, y: Array, W: Array, b: Array, dtype: Any) -> Array:
    """y - z, with exact zeros where the fit goes through the point."""
    residuals = y[:, None] - (design.matvec(W) + b)
    largest = design.column_largest() @ np.abs(W) + np.abs(b)
    noise = 16 * np.finfo(dtype).eps * (largest + np.abs(y)[:, None])
    return np.where(np.abs(residuals) <= noise, 0.0, residuals)


class FisherInference(Host):
    """Adds ``standard_errors`` to a generalised linear model."""

    alpha: float
    fit_intercept: bool

    def standard_errors(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        offset: Any = None,
        exposure: Any = None,
        dispersion: float | str | None = None,
    ) -> CoefficientTable:
        """How far the coefficients may be from the truth, in large samples.

        The covariance is the inverse of the expected Fisher information, and intervals are those
        of the normal distribution.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)
            The rows that were fitted.
        y : array-like of shape (n,)
        sample_weight, offset, exposure : as in ``fit``
        dispersion : float or "pearson", optional
            The factor of the variance. By default one for counts (power 1), and Pearson's estimate
            for all other powers; "pearson" for counts gives the errors of a quasi-Poisson model.

        Returns
        -------
        table : CoefficientTable
            With ``standard_errors``, ``t_values``, ``p_values`` and
            ``confidence_intervals(level)``; the intercept comes first.

        Examples
        --------
        >>> import numpy as np
        >>> from trueline import PoissonRegressor
        >>> rng = np.random.default_rng(0)
        >>> X = rng.normal(size=(500, 1))
        >>> y = rng.poisson(np.exp(0.5 + 0.3 * X[:, 0]))
        >>> table = PoissonRegressor(alpha=0).fit(X, y).standard_errors(X, y)
        >>> lower, upper = table.confidence_intervals(0.99)[1]
        >>> bool(lower < 0.3 < upper)
        True
        """
        check_is_fitted(self)
        _check_unpenalised(self)
        model: Any = self
        problem = model._validated_problem(X, y, sample_weight, False, offset, exposure)[0]
        W, b = self._coefficients()
        power, fit_intercept = model._power, self.fit_intercept
        mean = model._mean(problem.scores(W, b)[:, 0])
        s = np.ones(len(mean)) if problem.weights is None else problem.weights
        # (dm/dz)^2 / V(m), dm/dz = m for the logarithm and 1 for the identity.
        working = s * mean ** ((2.0 if model._is_log else 0.0) - power)
        covariance = fisher_covariance(problem.design, working, fit_intercept)
        rows = float(weights_of(sample_weight, len(y)).sum())
        count = problem.n_features + fit_intercept
        if dispersion is None:
            dispersion = 1.0 if power == 1 else "pearson"
        if dispersion == "pearson":
            if rows <= count:
                raise ValueError(
                    f"Pearson's dispersion needs more rows than coefficients: there are {rows:g} "
                    f"rows for {count} coefficients. Give the dispersion as a number."
                )
            square = (problem.target[:, 0] - mean) ** 2 * mean**-power
            factor, said = float(s @ square) / (rows - count), "Pearson's dispersion"
        elif isinstance(dispersion, str) or not dispersion > 0:
            raise ValueError(
                f"dispersion must be a positive number or 'pearson', got {dispersion!r}."
            )
        else:
            factor, said = float(dispersion), "dispersion given"
        names, coefficients = _named(self, W, b, fit_intercept)
        method, details = f", {said} {factor:.5g}", {"dispersion": np.array(factor)}
        return _of_fisher(names, coefficients, factor * covariance, method, details)


class LabelInference(Host):
    """Adds ``standard_errors`` to a logistic regression of two classes."""

    classes_: NDArray[Any]

    def standard_errors(self, X: Any, y: Any, sample_weight: Any = None) -> CoefficientTable:
        """How far the coefficients may be from the truth, in large samples.

        The covariance is the inverse of the Fisher information, and intervals are those of the
        normal distribution. For two classes, without a penalty or with Firth's correction.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)
            The rows that were fitted.
        y : array-like of shape (n,)
        sample_weight : float or array-like of shape (n,), optional
            As in ``fit``: weight 2 counts a row twice.

        Returns
        -------
        table : CoefficientTable
            With ``standard_errors``, ``t_values``, ``p_values`` and
            ``confidence_intervals(level)``; the intercept comes first.

        Examples
        --------
        >>> import numpy as np
        >>> from trueline import LogisticRegression
        >>> X = np.array([[0.0], [1.0], [2.0], [3.0], [4.0], [5.0]])
        >>> y = np.array([0, 0, 1, 0, 1, 1])
        >>> model = LogisticRegression(C=np.inf).fit(X, y)
        >>> model.standard_errors(X, y).standard_errors.round(3)
        array([2.546, 0.913])
        """
        check_is_fitted(self)
        if len(self.classes_) != 2:
            raise ValueError(
                f"Standard errors are for two classes, and there are {len(self.classes_)}. Compare "
                "each with a class of reference."
            )
        problem = self._validated_problem(X, y, sample_weight, reset=False)[0]
        if "none" not in problem.penalty.capabilities:
            raise ValueError(
                f"Standard errors are for fits without a penalty, and this one has "
                f"C={getattr(self, 'C_', getattr(self, 'C', None))!r}: "
                "shrunken coefficients are biased by an amount that the data do not tell. Fit with "
                "C=np.inf, or with penalty='firth'."
            )
        W, b = self._coefficients()
        h = problem.loss.curvature(problem.target, problem.scores(W, b))[:, 0]
        h = h if problem.weights is None else h * problem.weights
        covariance = fisher_covariance(problem.design, h, problem.fit_intercept)
        return _of_fisher(*_named(self, W, b, problem.fit_intercept), covariance)


def _check_unpenalised(model: Any) -> None:
    if model.alpha != 0:
        raise ValueError(
            f"Standard errors are for fits without a penalty, and this one has "
            f"alpha={model.alpha!r}: shrunken coefficients are biased by an amount that the data "
            "do not tell. Fit with alpha=0."
        )


def _named(model: Any, W: Array, b: Array, fit_intercept: bool) -> tuple[tuple[str, ...], Array]:
    """Names and coefficients, of shape (fits, count); the intercept comes first."""
    names = getattr(model, "feature_names_in_", [f"x{j}" for j in range(len(W))])
    coefficients = W.T
    if fit_intercept:
        coefficients, names = np.column_stack([b, coefficients]), ["intercept", *names]
    return tuple(str(name) for name in names), coefficients


def _of_fisher(
    names: tuple[str, ...],
    coefficients: Array,
    covariance: Array,
    method: str = "",
    details: dict[str, Any] | None = None,
) -> CoefficientTable:
    """The table of one fit whose errors are normal."""
    method = f"Fisher information{method}"
    return CoefficientTable(names, (), coefficients[0], covariance, np.inf, method, details or {})
