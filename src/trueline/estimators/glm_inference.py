"""Standard errors of generalised linear models, by their Fisher information."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from trueline.inference import CoefficientTable, fisher_covariance

__all__ = ["FisherInference"]

Array = NDArray[np.float64]


class FisherInference:
    """Adds ``standard_errors`` to a generalised linear model."""

    coef_: NDArray[Any]
    intercept_: Any

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
        if self.alpha != 0:  # type: ignore[attr-defined]
            raise ValueError(
                f"Standard errors are for fits without a penalty, and this one has "
                f"alpha={self.alpha!r}: shrunken coefficients are biased by an amount that the "  # type: ignore[attr-defined]
                "data do not tell. Fit with alpha=0."
            )
        problem = self._validated_problem(X, y, sample_weight, False, offset, exposure)[0]  # type: ignore[attr-defined]
        W, b = self._coefficients()  # type: ignore[attr-defined]
        power, fit_intercept = self._power, self.fit_intercept  # type: ignore[attr-defined]
        mean = self._mean(problem.scores(W, b)[:, 0])  # type: ignore[attr-defined]
        s = np.ones(len(mean)) if problem.weights is None else problem.weights
        # (dm/dz)^2 / V(m), dm/dz = m for the logarithm and 1 for the identity.
        is_log = self._is_log  # type: ignore[attr-defined]
        working = s * mean ** ((2.0 if is_log else 0.0) - power)
        covariance = fisher_covariance(problem.design, working, fit_intercept)
        rows = float(_counted(sample_weight, len(y)))
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
        names = getattr(self, "feature_names_in_", [f"x{j}" for j in range(len(W))])
        coefficients = W[:, 0]
        if fit_intercept:
            coefficients, names = np.append(b[0], coefficients), ["intercept", *names]
        return CoefficientTable(
            names=tuple(str(name) for name in names),
            sets=(),
            coefficients=coefficients,
            covariance=factor * covariance,
            degrees_of_freedom=np.inf,
            method=f"Fisher information, {said} {factor:.5g}",
            details={"dispersion": np.array(factor)},
        )


def _counted(sample_weight: Any, n: int) -> float:
    """The sum of the weights."""
    if sample_weight is None:
        return float(n)
    return float(np.broadcast_to(np.asarray(sample_weight, dtype=np.float64), n).sum())
