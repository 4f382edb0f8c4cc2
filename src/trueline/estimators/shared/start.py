"""A fit that starts from given coefficients."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Self

import numpy as np

from trueline.estimators.shared.base import Host, fit_with_callbacks
from trueline.estimators.shared.validation import takes_batches
from trueline.problem import Problem


class StartsAnywhere(Host):
    """Estimators whose ``fit`` is told where a descent starts."""

    @fit_with_callbacks
    @takes_batches
    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        coef_init: Any = None,
        intercept_init: Any = None,
    ) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)
            Rows to learn from.
        y : array-like of shape (n,) or (n, k)
            One target, or several; or class labels of any type, of shape (n,).
        sample_weight : float or array-like of shape (n,), optional
            Weight 2 counts a row twice, weight 0 leaves it out.
        coef_init : array-like of shape (d,) or (k, d), optional
            Coefficients to start from, for solvers that start somewhere: gradient descent and its
            stochastic forms start at zero without it. The minimum is the same from everywhere.
        intercept_init : float or array-like of shape (k,), optional

        Returns
        -------
        self : object
        """
        self._check_parameters()
        problem, X, y = self._validated_problem(X, y, sample_weight, reset=True)
        options = None
        if coef_init is not None or intercept_init is not None:
            start, level = _start_of(problem, coef_init, intercept_init)
            options = replace(self._options(), start=start, start_intercept=level)
        self._solve_and_store(problem, X, y, sample_weight, options=options)
        return self


def _start_of(problem: Problem, coef: Any, intercept: Any) -> tuple[Any, Any]:
    """Coefficients of shape (d, k) and intercepts (k,), zero where none are given."""
    d, k = problem.n_features, problem.n_targets
    W = np.zeros((k, d)) if coef is None else np.array(coef, dtype=np.float64)
    b = np.zeros(k) if intercept is None else np.array(intercept, dtype=np.float64)
    if W.shape not in ((k, d), (d,) if k == 1 else ()) or b.size != k:
        raise ValueError(
            f"coef_init and intercept_init have the shapes {W.shape} and {b.shape}, expected "
            f"({k}, {d}) and ({k},)."
        )
    if not (np.isfinite(W).all() and np.isfinite(b).all()):
        raise ValueError("coef_init and intercept_init must hold finite numbers.")
    return np.ascontiguousarray(W.reshape(k, d).T), b.ravel()
