"""What squared loss means: Gaussian noise, and estimates of its variance."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from trueline.estimators.base import LinearRegressorBase
from trueline.moments import Moments
from trueline.penalties import Penalty
from trueline.planner import Plan
from trueline.solution import Solution

__all__ = ["GaussianRegressor"]


class GaussianRegressor(LinearRegressorBase):
    """Least squares read as maximum likelihood (with a penalty: as the most probable answer)."""

    @abstractmethod
    def _penalty(self, n_targets: int) -> Penalty:
        """The penalty for so many targets."""

    def _store(
        self, problem: Any, plan: Plan, solution: Solution, dtype: np.dtype, y_ndim: int
    ) -> None:
        super()._store(problem, plan, solution, dtype, y_ndim)
        self._rank = solution.rank
        self._residual_square = solution.residual_square
        self._total_weight = problem.total_weight

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
        square = self._residual_square
        if square is None:
            W, _ = self._coefficients()
            square = self._about().residual_square(W)[0]
        rows = self._total_weight - (self.degrees_of_freedom_ if unbiased else 0.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            variance = np.where(rows > 0, square / rows, np.nan)
        return float(variance[0]) if self._y_ndim() == 1 else variance

    @property
    def degrees_of_freedom_(self) -> Any:
        """Trace of the hat matrix: fitted parameters, shrunken ones counted in part."""
        check_is_fitted(self)
        k = 1 if self.coef_.ndim == 1 else len(self.coef_)
        alpha = np.broadcast_to(self._penalty(k).curvature, k)
        if not alpha.any() and self._rank is not None:
            freedom = np.full(k, float(self._rank))
        else:
            values = np.maximum(np.linalg.eigvalsh(self._about().gram), 0.0)[:, None]
            with np.errstate(divide="ignore", invalid="ignore"):
                freedom = np.where(values > 0, values / (values + alpha), 0.0).sum(axis=0)
        freedom = freedom + float(self.fit_intercept)
        return float(freedom[0]) if self._y_ndim() == 1 else freedom

    def _about(self) -> Moments:
        """The moments about the mean with an intercept, about zero without."""
        if not hasattr(self, "moments_"):
            raise AttributeError(
                f"solver_={self.solver_!r} keeps no moments, from which variance and degrees of "
                "freedom are computed; fit with solver='cholesky'."
            )
        return self.moments_ if self.fit_intercept else self.moments_.about_zero()
