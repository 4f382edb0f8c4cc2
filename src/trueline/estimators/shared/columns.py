"""Parts of linear models about their columns: rank, intercept as a constant column, and starts."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from trueline.design import AugmentedDesign, Design, as_suitable_design
from trueline.estimators.shared.base import Attributes, Host, fit_with_callbacks
from trueline.estimators.shared.validation import takes_batches
from trueline.problem import Array, Problem
from trueline.solution import Solution
from trueline.solvers import orthogonal_complement


class ColumnRank(Host):
    """Adds ``rank_`` and ``null_space_``, where the solver determined them and no penalty chose."""

    n_features_in_: int
    solver_: str
    _row_space: Array | None

    def _keep_of(self, problem: Any, solution: Solution) -> None:
        """Remember the rank of this fit, and nothing of the one before."""
        super()._keep_of(problem, solution)
        for name in ("rank_", "_row_space"):
            self.__dict__.pop(name, None)
        penalty = problem.penalty
        is_free = "none" in penalty.capabilities
        is_free = is_free or not (np.any(penalty.curvature) or np.any(penalty.linear))
        if solution.rank is not None and is_free:
            self.rank_, self._row_space = solution.rank, solution.row_space

    @property
    def null_space_(self) -> Array:
        """An orthonormal basis of the directions that the data do not determine."""
        check_is_fitted(self)
        if not hasattr(self, "rank_"):
            raise AttributeError(
                f"The rank of the columns was not determined: there is a penalty, or "
                f"solver_={self.solver_!r} on so many columns does without it."
            )
        if self._row_space is None:
            return np.zeros((self.n_features_in_, 0))
        return orthogonal_complement(self._row_space)


def with_constant(X: Any, size: float) -> Design:
    """The design of [X, size 1], without a copy of X."""
    return AugmentedDesign(as_suitable_design(X), float(size))


def with_constant_column(X: Any, size: float) -> Any:
    """[X, size 1] as an array or a sparse matrix, for whoever checks a certificate about it."""
    if isinstance(X, Design):
        return with_constant(X, size)
    X = X if sp.issparse(X) else np.asarray(X, dtype=np.float64)
    constant = np.full((X.shape[0], 1), float(size))
    return sp.hstack([X, constant], format="csr") if sp.issparse(X) else np.hstack([X, constant])


def apart(W: NDArray[Any], size: float) -> tuple[NDArray[Any], NDArray[Any]]:
    """Coefficients of shape (d, k) and intercepts of shape (k,), from those with the constant."""
    return W[:-1], (W[-1] * size).astype(W.dtype)


def together(W: Array, b: Array, size: float) -> tuple[Array, Array]:
    """The other way round; no intercept beside them is left."""
    return np.vstack([W, b / size]), np.zeros(W.shape[1])


class ConstantColumn(Host):
    """An intercept that may be such a coefficient, penalised like all others, as in LIBLINEAR."""

    fit_intercept: bool
    intercept_scaling: Any

    @property
    def _penalises_intercept(self) -> bool:
        """Whether it is; else it stands beside the coefficients."""
        return self.fit_intercept

    def _with_constant(self, X: Any) -> Design:
        return with_constant(X, self.intercept_scaling)

    def _fitted_attributes(self, W: Any, b: Any, y_ndim: int, fit_intercept: bool) -> Attributes:
        if self._penalises_intercept:
            W, b = apart(W, self.intercept_scaling)
        return super()._fitted_attributes(W, b, y_ndim, self.fit_intercept)

    def _coefficients(self) -> tuple[Array, Array]:
        W, b = super()._coefficients()
        return together(W, b, self.intercept_scaling) if self._penalises_intercept else (W, b)

    def _gradient_of_given(self, G: Array, g: Array) -> tuple[Array, Array]:
        G, g = (G[:-1], G[-1] / self.intercept_scaling) if self._penalises_intercept else (G, g)
        return super()._gradient_of_given(G, g)

    def _verified_design(self, X: Any) -> Any:
        """With the constant column, where the certificate is about it."""
        return with_constant_column(X, self.intercept_scaling) if self._penalises_intercept else X


_SMALLEST, _LARGEST = 1e-90, 1e90


def require_price(C: float, largest: float) -> None:
    """Raise if C, or C times the largest sample weight, cannot be squared.

    Parameters
    ----------
    C : float
    largest : float
        C times the largest sample weight.
    """
    if not _SMALLEST <= largest <= _LARGEST:
        raise ValueError(
            f"C={C:.3g} times the largest sample weight is {largest:.3g}: its square leaves the "
            "range of double precision. Bring C, or the weights, nearer to one."
        )


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
