"""Standard errors of quantile regression, for the estimators that fit quantiles."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from trueline.design import as_design
from trueline.estimators.validation import validate_data
from trueline.inference import CoefficientTable, quantile_covariance

__all__ = ["QuantileInference"]

Array = NDArray[np.float64]


class QuantileInference:
    """Adds ``standard_errors`` to an estimator of one or several quantiles."""

    coef_: NDArray[Any]
    intercept_: Any

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
        self._check_unpenalised()
        X, y, weights = self._rows_of_weight(X, y, sample_weight)
        W, b = self._coefficients()  # type: ignore[attr-defined]
        rows = float(len(y)) if weights is None else float(weights.sum())
        count = len(W) + self.fit_intercept  # type: ignore[attr-defined]
        if rows <= count:
            raise ValueError(
                f"Standard errors need more rows than coefficients: there are {rows:g} rows for "
                f"{count} coefficients."
            )
        design = as_design(X)
        residuals = _residuals(design, y, W, b, self.coef_.dtype)
        quantiles = self._quantiles()  # type: ignore[attr-defined]
        found = [
            quantile_covariance(
                design,
                y,
                residuals[:, j],
                q,
                fit_intercept=self.fit_intercept,  # type: ignore[attr-defined]
                weights=weights,
                kind=kind,
                kernel=kernel,
                bandwidth=bandwidth,
            )
            for j, q in enumerate(quantiles)
        ]
        names = getattr(self, "feature_names_in_", [f"x{j}" for j in range(len(W))])
        coefficients = W.T
        if self.fit_intercept:  # type: ignore[attr-defined]
            coefficients = np.column_stack([b, coefficients])
            names = ["intercept", *names]
        several = bool(self._is_several)  # type: ignore[attr-defined]
        pick = slice(None) if several else 0
        return CoefficientTable(
            names=tuple(str(name) for name in names),
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
        weights = self._weights(sample_weight, X)  # type: ignore[attr-defined]
        y = y.astype(np.float64)
        if weights is not None and not weights.all():
            present = np.flatnonzero(weights)
            X = X.tocsr()[present] if hasattr(X, "tocsr") else X[present]
            y, weights = y[present], weights[present]
        return X, y, weights

    def _check_unpenalised(self) -> None:
        if self.alpha != 0:  # type: ignore[attr-defined]
            raise ValueError(
                f"Standard errors are for fits without a penalty, and this one has "
                f"alpha={self.alpha!r}: shrunken coefficients are biased by an amount that the "  # type: ignore[attr-defined]
                "data do not tell. Fit with alpha=0."
            )


def _residuals(design: Any, y: Array, W: Array, b: Array, dtype: Any) -> Array:
    """y - z, with exact zeros where the fit goes through the point."""
    residuals = y[:, None] - (design.matvec(W) + b)
    largest = design.column_largest() @ np.abs(W) + np.abs(b)
    noise = 16 * np.finfo(dtype).eps * (largest + np.abs(y)[:, None])
    return np.where(np.abs(residuals) <= noise, 0.0, residuals)
