"""What squared loss means: Gaussian noise, and estimates of its variance."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from trueline.estimators.base import LinearRegressorBase
from trueline.penalties import Penalty

__all__ = ["GaussianRegressor"]


class GaussianRegressor(LinearRegressorBase):
    """Least squares read as maximum likelihood (with a penalty: as the most probable answer)."""

    @abstractmethod
    def _penalty(self, n_targets: int) -> Penalty:
        """The penalty for so many targets."""

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
        check_is_fitted(self)
        if not hasattr(self, "moments_"):
            raise AttributeError(
                f"solver_={self.solver_!r} keeps no moments, from which the noise variance is "
                "computed; fit with solver='cholesky'."
            )
        W, _ = self._coefficients()
        moments = self.moments_ if self.fit_intercept else self.moments_.about_zero()
        square = moments.residual_square(W)[0]
        rows = moments.weight - (self.degrees_of_freedom_ if unbiased else 0.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            variance = np.where(rows > 0, square / rows, np.nan)
        return float(variance[0]) if self._y_ndim() == 1 else variance

    @property
    def degrees_of_freedom_(self) -> Any:
        """Trace of the hat matrix: fitted parameters, shrunken ones counted in part."""
        moments = self.moments_ if self.fit_intercept else self.moments_.about_zero()
        values = np.linalg.eigvalsh(moments.gram)
        floor = len(values) * moments.unit * max(values.max(initial=0.0), 0.0)
        values = np.where(values > floor, values, 0.0)
        alpha = np.broadcast_to(self._penalty(moments.n_targets).curvature, moments.n_targets)
        with np.errstate(divide="ignore", invalid="ignore"):
            shares = np.where(values[:, None] > 0, values[:, None] / (values[:, None] + alpha), 0.0)
        freedom = shares.sum(axis=0) + float(self.fit_intercept)
        return float(freedom[0]) if self._y_ndim() == 1 else freedom
