"""Kernel ridge regression."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, MultiOutputMixin, RegressorMixin
from sklearn.metrics.pairwise import PAIRWISE_KERNEL_FUNCTIONS
from sklearn.utils.validation import _num_samples, check_is_fitted

from trueline.certificates.kernel import KernelCertificate
from trueline.estimators.kernel.kernel_function import (
    check_memory,
    check_scale,
    data_text,
    kernel_matrix,
    matrix_text,
    recipe_of,
)
from trueline.estimators.shared.parameters import (
    KW_ONLY,
    given,
    one_of,
    parameters,
    same_rows,
    settings_of,
)
from trueline.estimators.shared.report import Certified, ExplainMixin
from trueline.estimators.shared.validation import (
    new_rows,
    numeric_target,
    row_weights,
    validate_data,
)
from trueline.gaussian_process.kernel_ridge import (
    KernelRidgePath,
    LinearKernel,
    Rotated,
    Undecided,
    certify_equations,
    solve_equations,
)
from trueline.guard import Array, Verdict, warn_of_gap

# The gap, relative to half the square of the targets, up to which the equations count as solved.
_CLOSE = 1e-6
# The share of it that may be put down to the rounding of the kernel matrix.
_SMALL_PART = 1e-3


@parameters()
class KernelRidge(MultiOutputMixin, RegressorMixin, Certified, ExplainMixin, BaseEstimator):
    r"""Ridge regression in the space of a kernel, with leave-one-out in closed form.

    Minimises over f = sum_j c_j k(x_j, .)::

        1/2 sum_i s_i (y_i - f(x_i))^2 + alpha/2 ||f||^2

    by the dual coefficients c with ``(K + alpha / s) c = y``. There is no intercept.

    A drop-in for ``sklearn.kernel_ridge.KernelRidge``.

    Parameters
    ----------
    alpha : float or array of shape (k,), default=1
        Strength; an array gives one strength per target.
    kernel : str or callable, default="linear"
        One of scikit-learn's pairwise kernels, "precomputed", or a function of two rows.
    gamma : float, optional
    degree : float, default=3
    coef0 : float, default=1
    kernel_params : dict, optional
        For a callable kernel.

    Attributes
    ----------
    dual_coef_ : array of shape (n,) or (n, k)
    X_fit_ : array or sparse matrix of shape (n, d)
        The training rows; the kernel matrix, if it is precomputed.
    certificate_ : KernelCertificate
        Residual of the equations, and a duality gap if the kernel is positive semi-definite.
    solver_ : str
    n_features_in_ : int
    feature_names_in_ : array of str

    Examples
    --------
    >>> import numpy as np
    >>> from trueline import KernelRidge
    >>> X = np.linspace(0, 3, 30).reshape(-1, 1)
    >>> y = np.sin(2 * X.ravel())
    >>> model = KernelRidge(alpha=0.01, kernel="rbf", gamma=1.0).fit(X, y)
    >>> model.predict([[1.0]]).round(2), bool(model.verify(X, y))
    (array([0.91]), True)
    >>> path = model.path(X, y, [1e-4, 1e-2, 1.0])
    >>> path.best_alpha
    0.0001
    """

    _leave_one_out = "kernel"
    _doc_link_module = "trueline"

    alpha: Any = given(1, "[0, inf)", "array-like")
    _: KW_ONLY
    kernel: Any = given("linear", one_of(*PAIRWISE_KERNEL_FUNCTIONS, "precomputed"), callable)
    gamma: float | None = given(None, "[0, inf)", None)
    degree: float = given(3, "[0, inf)")
    coef0: float = given(1, "(-inf, inf)")
    kernel_params: dict[str, Any] | None = given(None, dict, None)

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)
            The kernel matrix of shape (n, n), if it is precomputed.
        y : array-like of shape (n,) or (n, k)
        sample_weight : float or array-like of shape (n,), optional
            Weight 2 counts a row twice, weight 0 leaves it out.

        Returns
        -------
        self : object
        """
        X, y, rows, weights = self._checked(X, y, sample_weight)
        Y = y.reshape(len(y), -1)
        alpha = self._strengths(Y.shape[1])
        c = np.zeros(Y.shape)
        shown, target = (X, Y) if rows.all() else (X[rows], Y[rows])
        unit = 0.5 * float((target**2 * (1.0 if weights is None else weights[:, None])).sum())
        K = self._matrix(X, rows, alpha)
        c[rows], _, self.solver_ = solve_equations(K, target, alpha, weights)
        if not np.isfinite(c).all():
            raise ValueError(
                "The equations of kernel ridge regression have no finite solution: the kernel "
                "matrix holds values that are too large. Scale the rows, or raise alpha."
            )
        certificate = certify_equations(recipe_of(self), shown, K, target, weights, alpha, c[rows])
        stated = certificate.certificate if isinstance(certificate, Undecided) else certificate
        # Rounding that could have made the answer by itself is no excuse: it is to be told.
        allowed = _CLOSE * unit + min(4 * stated.objective_rounding, _SMALL_PART * unit)
        verdict = Verdict(bool(stated.gap <= allowed), stated.gap, allowed)
        self._certificate: KernelCertificate | Undecided = certificate
        advice = "The kernel matrix rounds that much: standardise the columns, or raise alpha."
        warn_of_gap(type(self).__name__, "the dual coefficients", verdict, advice)
        self._fitted_to = y, rows, weights
        self._left_out: Array | None = None
        self.dual_coef_ = c[:, 0].copy() if y.ndim == 1 else c
        self.X_fit_ = X.copy()
        self._mark_fitted()
        return self

    def _matrix(self, X: Any, rows: Any, alpha: Array) -> Array | LinearKernel:
        """The kernel matrix of the rows that count, as its products if these are all it takes."""
        n, d = X.shape
        if self.kernel == "linear" and not sp.issparse(X) and 2 * d <= n and (alpha > 0).all():
            return LinearKernel(X[rows].astype(np.float64, copy=False))
        K = self._whole(X)
        return K if rows.all() else K[np.ix_(rows, rows)]

    def _whole(self, X: Any) -> Array:
        """The kernel matrix of all rows, if there is memory for it."""
        n = X.shape[0]
        check_memory(
            8.0 * n * n * 3,
            f"Kernel ridge regression of {n:,} rows (n x n matrices)",
            "Fit fewer rows, or approximate the kernel by features "
            "(sklearn.kernel_approximation.Nystroem) and take Ridge.",
        )
        return np.asarray(self._kernel(X), dtype=np.float64)

    def _checked(self, X: Any, y: Any, sample_weight: Any) -> Any:
        self._validate_params()
        with numeric_target(self, y):
            X, y = validate_data(
                self,
                X,
                y,
                accept_sparse=("csr", "csc"),
                multi_output=True,
                y_numeric=True,
            )
            y = y if y.dtype.kind in "fiub" else y.astype(np.float64)
        check_scale(X, "X")
        check_scale(y, "y")
        n = X.shape[0]
        if self.kernel == "precomputed" and X.shape[1] != n:
            raise ValueError(
                f"A precomputed kernel matrix of {n} rows must have as many columns, got shape "
                f"{X.shape}."
            )
        weights, rows = None, np.ones(n, dtype=bool)
        if sample_weight is not None:
            weights = row_weights(sample_weight, X)
            rows = weights > 0
            weights = weights[rows]
        return X, y.astype(np.float64, copy=False), rows, weights

    def _kernel(self, X: Any, Z: Any = None) -> Any:
        recipe = recipe_of(self)
        # Single precision would solve the equations of another kernel.
        X, Z = (None if rows is None else rows.astype(np.float64, copy=False) for rows in (X, Z))
        return kernel_matrix(type(self).__name__, recipe.pop("metric"), X, Z, **recipe)

    def _strengths(self, targets: int) -> Array:
        alpha = np.atleast_1d(np.asarray(self.alpha, dtype=np.float64))
        if alpha.shape not in ((1,), (targets,)):
            raise ValueError(
                f"Number of targets and number of penalties do not correspond: {alpha.size} != "
                f"{targets}"
            )
        if (alpha < 0).any() or not np.isfinite(alpha).all():
            raise ValueError(f"alpha must be finite and not negative, got {self.alpha!r}.")
        return alpha

    def predict(self, X: Any) -> Any:
        """Predict.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (m, d)
            Kernels with the training rows, of shape (m, n), if they are precomputed.

        Returns
        -------
        y : array of shape (m,) or (m, k)
        """
        X = new_rows(self, X, accept_sparse=("csr", "csc"), dtype="numeric")
        return np.dot(self._kernel(X, self.X_fit_), self.dual_coef_)

    def leave_one_out(self) -> Array:
        """Predict every training row from all others, without refitting.

        Returns
        -------
        y : array of shape (n,) or (n, k)
        """
        check_is_fitted(self)
        if self._left_out is None:
            y, rows, weights = self._fitted_to
            Y = y.reshape(len(y), -1)
            K, alpha = self._whole(self.X_fit_), self._strengths(Y.shape[1])
            c, g, _ = solve_equations(
                K[np.ix_(rows, rows)], Y[rows], alpha, weights, with_diagonal=True
            )
            assert g is not None
            # Rows of weight zero are predicted by all others anyway.
            left_out = K[:, rows] @ c
            left_out[rows] = Y[rows] - c / g
            self._left_out = left_out.reshape(y.shape)
        return np.asarray(self._left_out)

    def path(self, X: Any, y: Any, alphas: Any, sample_weight: Any = None) -> KernelRidgePath:
        """Fit many strengths from one eigendecomposition, with leave-one-out for each.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)
        y : array-like of shape (n,) or (n, k)
        alphas : array-like of shape (a,)
        sample_weight : float or array-like of shape (n,), optional

        Returns
        -------
        path : KernelRidgePath
        """
        strengths = np.atleast_1d(np.asarray(alphas, dtype=np.float64))
        if strengths.ndim != 1 or not ((strengths >= 0) & np.isfinite(strengths)).all():
            raise ValueError(f"alphas must be finite and not negative, got {alphas!r}.")
        X, y, rows, weights = self._checked(X, y, sample_weight)
        Y, K = y.reshape(len(y), -1), self._whole(X)
        rotated = Rotated.of(K[np.ix_(rows, rows)], Y[rows], weights)
        s = np.ones(int(rows.sum())) if weights is None else weights
        coefs = np.zeros((len(strengths), *Y.shape))
        left_out = np.empty_like(coefs)
        for number, alpha in enumerate(strengths):
            c, diagonal = rotated.solve(np.array([alpha]))
            coefs[number, rows] = c
            left_out[number] = K @ coefs[number]
            left_out[number, rows] = Y[rows] - c / diagonal
        errors = np.average((left_out[:, rows] - Y[rows]) ** 2, axis=1, weights=s)
        if y.ndim == 1:
            coefs, left_out, errors = coefs[..., 0], left_out[..., 0], errors[..., 0]
        return KernelRidgePath(strengths, coefs, left_out, errors)

    @property
    def certificate_(self) -> KernelCertificate:
        """What is proven about the dual coefficients as they are now."""
        check_is_fitted(self)
        if isinstance(self._certificate, Undecided):
            rows = self._fitted_to[1]
            self._certificate = self._certificate.decided(
                self._whole(self.X_fit_)[np.ix_(rows, rows)]
            )
        coef = np.array(self.dual_coef_, dtype=np.float64)
        return replace(self._certificate, coef=coef.reshape(len(coef), -1))

    def _rows_kept(self, X: Any) -> dict[str, bool]:
        return {"X_fit_": same_rows(self.X_fit_, X)}

    def _predicting(self) -> dict[str, Any]:
        return {"dual_coef_": self.dual_coef_, **settings_of(self)}

    def _lines_stated(self) -> list[str]:
        given = "one for each target" if np.ndim(self.alpha) else f"{float(self.alpha):g}"
        objective = "1/2 sum_i s_i (y_i - f(x_i))^2 + alpha/2 ||f||^2"
        return [f"minimise   {objective},  alpha = {given}", f"kernel     {self.kernel!r}"]

    def _lines_planned(self, X: Any, y: Any) -> list[str]:
        minimise, kernel = self._lines_stated()
        size = matrix_text(_num_samples(X))
        solver = f"solver     one equation per row, kernel matrix of {size}"
        return [minimise, f"data       {data_text(X, y)}", kernel, solver]

    def _lines_done(self) -> list[str]:
        certificate = self.certificate_
        return [
            *self._lines_stated(),
            f"happened   {len(self.dual_coef_):,} equations, {self.solver_}",
            f"proof      {certificate}",
            f"           {certificate.statement}",
        ]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.pairwise = self.kernel == "precomputed"
        return tags
