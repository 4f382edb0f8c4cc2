"""Exact incremental fitting and merging, for estimators that fit from moments."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import clone
from sklearn.utils import assert_all_finite
from sklearn.utils.validation import _check_feature_names, check_is_fitted

from trueline.errors import squares_out_of_range
from trueline.estimators.shared.precision import exponents_of
from trueline.estimators.shared.regressor import GaussianLikelihood
from trueline.moments import Moments
from trueline.plan import Plan
from trueline.problem import MomentsProblem
from trueline.solvers import solve_from_moments, solve_nonnegative
from trueline.solvers.base import Facts
from trueline.wording import counted


class FittedFromMoments(GaussianLikelihood):
    """Least squares whose sufficient statistics are kept, so that rows can be added later."""

    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Add a batch of rows; the model is then that of all rows so far, to rounding.

        The first call (or a call after ``fit``) starts from what the model has seen. Any split
        into batches gives the same answer: the moments of the batches are merged exactly. Digits
        are those of the Gram matrix: for condition numbers beyond about 1e6 prefer ``fit``, which
        goes back to the rows.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)
        y : array-like of shape (n,) or (n, k)
        sample_weight : float or array-like of shape (n,), optional

        Returns
        -------
        self : object
        """
        self._check_parameters()
        first = not hasattr(self, "moments_")
        if first and hasattr(self, "coef_"):
            raise ValueError(
                f"This {type(self).__name__} was fitted by solver_={self.solver_!r}, which keeps "
                "no moments of its rows, so that none can be added. Fit with solver='cholesky', or "
                "start with partial_fit on a new model."
            )
        if not first:
            _check_feature_names(self, X, reset=False)
        problem, X, y = self._validated_problem(X, y, sample_weight, reset=first)
        if not first:
            self._check_batch(X, problem.n_targets)
        assert_all_finite(X, input_name="X", estimator_name=type(self).__name__)
        batch = Moments.from_rows(problem.design, problem.target, problem.weights)
        if not batch.is_finite() or not (batch.is_ordinary() or exponents_of(problem) is None):
            raise squares_out_of_range(" before partial_fit")
        moments = batch if first else self.moments_ + batch
        dtype = X.dtype if first else self.coef_.dtype
        self._fit_moments(moments, dtype, y.ndim if first else self._y_ndim())
        return self

    def _check_batch(self, X: Any, n_targets: int) -> None:
        if X.shape[1] != self.n_features_in_:
            raise ValueError(
                f"X has {X.shape[1]} features, but {type(self).__name__} is expecting "
                f"{self.n_features_in_} features as input."
            )
        if n_targets != self.moments_.n_targets:
            raise ValueError(
                f"y has {counted(n_targets, 'target')}; the batches before had "
                f"{self.moments_.n_targets}."
            )

    def _fit_moments(self, moments: Moments, dtype: np.dtype, y_ndim: int) -> None:
        """Solve from moments alone and store the result."""
        problem = MomentsProblem(moments, self._penalty(moments.n_targets), self.fit_intercept)
        positive = "nonnegative" in problem.penalty.capabilities
        solution = (solve_nonnegative if positive else solve_from_moments)(problem, moments)
        reason = "from the moments of all batches; the rows are not kept"
        plan = plan_from_moments(problem, solution.solver, reason)
        self._store(problem, plan, solution, dtype, y_ndim)

    def merge(self, other: Self) -> Self:
        """A new model, as if fitted on the rows of both.

        Parameters
        ----------
        other : estimator of the same class and parameters, fitted

        Returns
        -------
        merged : estimator
            ``a + b`` is the same.

        Examples
        --------
        >>> import numpy as np
        >>> from trueline import LinearRegression
        >>> X, y = np.arange(6.0).reshape(-1, 1), np.array([1.0, 3.0, 5.0, 7.0, 9.0, 11.0])
        >>> parts = LinearRegression().fit(X[:3], y[:3]) + LinearRegression().fit(X[3:], y[3:])
        >>> bool(np.allclose(parts.coef_, 2.0))
        True
        """
        for model in (self, other):
            check_is_fitted(model)
        if type(other) is not type(self) or not _same(self.get_params(), other.get_params()):
            raise ValueError(
                "Only models of the same class and parameters can be merged; got "
                f"{self!r} and {other!r}."
            )
        for model in (self, other):
            if not hasattr(model, "moments_"):
                raise ValueError(
                    f"This {type(self).__name__} was fitted by solver_={model.solver_!r}, which "
                    "keeps no moments. Fit it with solver='cholesky' or partial_fit to merge it."
                )
        names: list[Any] = [getattr(model, "feature_names_in_", None) for model in (self, other)]
        if not np.array_equal(names[0], names[1]):
            raise ValueError("The two models were fitted on columns of different names.")
        merged = clone(self)
        merged.n_features_in_ = self.n_features_in_
        if names[0] is not None:
            merged.feature_names_in_ = names[0]
        dtype = np.result_type(self.coef_, other.coef_)
        merged._fit_moments(self.moments_ + other.moments_, dtype, self._y_ndim())
        return merged

    def __add__(self, other: Any) -> Any:
        if not isinstance(other, FittedFromMoments):
            return NotImplemented
        return self.merge(other)


def plan_from_moments(problem: MomentsProblem, solver: str, reason: str) -> Plan:
    """What there was to plan where only the moments were looked at."""
    moments = problem.moments
    n, d, k = moments.count, moments.n_features, moments.n_targets
    facts = Facts(n, d, k, n * d, False, problem.fit_intercept, False, 1, False, 8)
    objective = f"sum_i s_i [{problem.loss.formula}] + {problem.penalty.formula}"
    return Plan(solver, reason, objective, facts, ())


def _same(a: dict[str, Any], b: dict[str, Any]) -> bool:
    """Whether two sets of parameters are equal, arrays included."""
    return a.keys() == b.keys() and all(np.array_equal(a[key], b[key]) for key in a)
