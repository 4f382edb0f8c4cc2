"""Gaussian process regression."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_solve, lapack, solve_triangular
from sklearn.base import BaseEstimator, MultiOutputMixin, RegressorMixin, clone
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Kernel
from sklearn.utils import check_random_state
from sklearn.utils.validation import _num_samples, check_is_fitted

from trueline.certificates.kernel import KernelCertificate
from trueline.estimators.kernel.kernel_function import (
    check_memory,
    check_scale,
    data_text,
    matrix_text,
    noise_covariance,
)
from trueline.estimators.shared.parameters import (
    KW_ONLY,
    given,
    one_of,
    parameters,
    same_rows,
    settings_of,
)
from trueline.estimators.shared.report import Certified, ExplainMixin, threads_text
from trueline.estimators.shared.validation import Array, numeric_target, validate_data
from trueline.gaussian_process.covariance import covariance, cross_covariance, recognise
from trueline.gaussian_process.likelihood import (
    Likelihood,
    add_evaluation,
    generic_likelihood,
    repeated_rows,
    warn_of_contradictions,
)
from trueline.gaussian_process.proof import certify_process
from trueline.gaussian_process.search import (
    Found,
    better_of,
    climb_function,
    has_learned,
    maximise,
    scales_of,
    warn_unlearned,
    warn_unsettled,
)
from trueline.guard import Verdict, warn_of_gap
from trueline.numerics.blas import Tally
from trueline.trace import Trace
from trueline.wording import counted

# Fewer rows are evaluated by the kernel itself: compiled loops would take longer to load.
_BY_FORMULA = 100
_BLOCK_ROWS = 2000
# The residual of the equations, relative to the targets, up to which they count as solved.
_CLOSE = 1e-6
_INSTEAD = (
    "Fit fewer rows, or take SparseGaussianProcessRegressor, whose inducing points need memory for "
    "a few columns only."
)


@parameters()
class GaussianProcessRegressor(
    MultiOutputMixin, RegressorMixin, Certified, ExplainMixin, BaseEstimator
):
    r"""Gaussian process regression: mean, variance, covariance, samples, and the evidence.

    Targets are values of a Gaussian process with mean zero and covariance ``kernel``, plus
    independent noise of variance ``alpha``. The parameters theta of the kernel (logarithms)
    maximise within their bounds the log marginal likelihood::

        - 1/2 y.K^{-1} y - 1/2 log |K| - n/2 log(2 pi),       K = kernel(X, X) + alpha I

    summed over the targets, if there are several. For these parameters the mean minimises, in the
    space of functions of the kernel (without its noise)::

        1/2 sum_i s_i (y_i - f(x_i))^2 + 1/2 ||f||^2,       1 / s_i the variance of the noise

    A drop-in for ``sklearn.gaussian_process.GaussianProcessRegressor``; it takes scikit-learn's
    kernels. Sums of constants times RBF, Matern, RationalQuadratic, and WhiteKernel are computed
    here by compiled loops that never form derivatives of the matrix, and with many rows most of
    the search is done on few of them (see :meth:`explain`).

    Parameters
    ----------
    kernel : kernel of scikit-learn, optional
        By default ``ConstantKernel(1, "fixed") * RBF(1, "fixed")`` before, and with free
        parameters in a fit.
    alpha : float or array of shape (n,), default=1e-10
        Variance of the noise, for all rows or for each.
    optimizer : {"fmin_l_bfgs_b"}, callable or None, default="fmin_l_bfgs_b"
        None keeps the parameters. A callable is called as ``optimizer(minus, theta, bounds)``,
        where ``minus(theta, eval_gradient=True)`` is minus the likelihood (and its gradient), and
        returns the best theta and its value.
    n_restarts_optimizer : int, default=0
        Further starts, drawn log-uniformly within the bounds.
    normalize_y : bool, default=False
        Centre and scale the targets first.
    copy_X_train : bool, default=True
    n_targets : int, optional
        For predictions before any fit.
    random_state : int, RandomState or None
        For the starts.
    trace : bool, default=False
        Keep every evaluation of the likelihood of all rows in ``trace_``: minus its value as the
        objective, theta (logarithms of the parameters) as the weights.

    Attributes
    ----------
    kernel_ : kernel
        With the parameters found.
    X_train_, y_train_ : arrays
    L_ : array of shape (n, n)
        Lower Cholesky factor of K.
    alpha_ : array of shape (n,) or (n, k)
        Dual coefficients K^{-1} y.
    log_marginal_likelihood_value_ : float
    certificate_ : KernelCertificate
        Residual of the equations and slope of the likelihood, marked as local. Worked out when it
        is first looked at, at the cost of a few evaluations.
    n_iter_ : int
        Evaluations of the likelihood of all rows.
    trace_ : Trace
    n_features_in_ : int
    feature_names_in_ : array of str

    References
    ----------
    C. E. Rasmussen and C. K. I. Williams, "Gaussian Processes for Machine Learning", MIT Press
    2006.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.gaussian_process.kernels import RBF, WhiteKernel
    >>> from trueline import GaussianProcessRegressor
    >>> X = np.linspace(0, 6, 40).reshape(-1, 1)
    >>> y = np.sin(X.ravel()) + 0.1 * np.random.default_rng(0).normal(size=40)
    >>> model = GaussianProcessRegressor(1.0 * RBF() + WhiteKernel(0.1)).fit(X, y)
    >>> mean, std = model.predict([[1.5], [9.0]], return_std=True)
    >>> mean.round(1), bool(std[1] > 3 * std[0])
    (array([0.9, 0.2]), True)
    >>> model.certificate_.kind, bool(model.verify(X, y))
    ('stationary point', True)
    """

    _leave_one_out = "process"
    _doc_link_module = "trueline"

    kernel: Any = given(None, None, Kernel)
    _: KW_ONLY
    alpha: Any = given(1e-10, "[0, inf)", np.ndarray)
    optimizer: str | Callable[..., Any] | None = given(
        "fmin_l_bfgs_b", one_of("fmin_l_bfgs_b"), callable, None
    )
    n_restarts_optimizer: int = given(0, "int [0, inf)")
    normalize_y: bool = False
    copy_X_train: bool = True
    n_targets: int | None = given(None, "int [1, inf)", None)
    random_state: Any = given(None, "random_state")
    trace: bool = False

    # --- fitting --------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any) -> Self:
        """Fit the process.

        Parameters
        ----------
        X : array-like of shape (n, d), or a list of what the kernel compares
        y : array-like of shape (n,) or (n, k)

        Returns
        -------
        self : object
        """
        self._validate_params()
        start = time.perf_counter()
        self.kernel_ = ConstantKernel() * RBF() if self.kernel is None else clone(self.kernel)
        vectors = self.kernel_.requires_vector_input
        with numeric_target(self, y):
            X, y = validate_data(
                self,
                X,
                y,
                multi_output=True,
                y_numeric=True,
                ensure_2d=vectors,
                dtype="numeric" if vectors else None,
            )
            if y.dtype != np.float64:  # single precision, or numbers written as text
                y = y.astype(np.float64)
            if vectors and X.dtype.kind == "f" and X.dtype != np.float64:
                X = X.astype(np.float64)
        seen = y.shape[1] if y.ndim > 1 else 1
        if self.n_targets is not None and seen != self.n_targets:
            raise ValueError(
                "The number of targets seen in `y` is different from the parameter `n_targets`. "
                f"Got {seen} != {self.n_targets}."
            )
        if vectors:
            check_scale(X, "X")
        check_scale(y, "y")
        self._noise = self._checked_noise(len(y))
        y = self._normalised(y)
        self.X_train_ = np.copy(X) if self.copy_X_train else X
        self.y_train_ = np.copy(y) if self.copy_X_train else y
        self._certificate: KernelCertificate | None = None
        self._structure = None
        if vectors and len(y) >= _BY_FORMULA:
            self._structure = recognise(self.kernel_, np.asarray(X, dtype=np.float64))
        self._check_memory(len(y))
        with Tally() as tally:
            found = self._search()
        self.n_iter_ = found.evaluations
        self.log_marginal_likelihood_value_ = found.value
        self._factorise()
        unit = float(np.max(self._y_train_std))
        warn_of_contradictions(self.X_train_, self._targets(), self.kernel_, self._noise, unit)
        self._facts: dict[str, Any] = {
            "seconds": time.perf_counter() - start,
            "evaluations": found.evaluations,
            "stages": list(found.notes),
            "threads": list(tally.facts()),
            "by_formula": self._structure is not None,
            "likelihood": float(found.value),
        }
        self._mark_fitted()
        return self

    def _checked_noise(self, n: int) -> Array:
        noise = np.asarray(self.alpha, dtype=np.float64)
        if noise.ndim and noise.shape[0] not in (1, n):
            raise ValueError(
                "alpha must be a scalar or an array with same number of entries as y. "
                f"({noise.shape[0]} != {n})"
            )
        if noise.ndim > 1 or not np.isfinite(noise).all() or (noise < 0).any():
            raise ValueError(
                "alpha must hold variances: one number for each row, finite and not negative."
            )
        return np.broadcast_to(noise.ravel() if noise.ndim else noise, n).copy()

    def _normalised(self, y: NDArray[Any]) -> NDArray[Any]:
        shape: Any = (y.shape[1],) if y.ndim == 2 else 1
        self._y_train_mean, self._y_train_std = np.zeros(shape), np.ones(shape)
        if not self.normalize_y:
            return y
        self._y_train_mean = np.mean(y, axis=0)
        std = np.std(y, axis=0)
        # A constant target, up to the rounding of its mean, is left as it is.
        tiny = 10 * np.finfo(np.float64).eps * np.maximum(1.0, np.abs(self._y_train_mean))
        self._y_train_std = np.where(std < tiny, 1.0, std)
        return (y - self._y_train_mean) / self._y_train_std

    def _check_memory(self, n: int) -> None:
        matrices = 3 if self.optimizer is None else 4
        if self.optimizer is not None and self._structure is None:
            matrices += 2 * self.kernel_.n_dims  # its own derivatives
        check_memory(
            8.0 * n * n * matrices, f"A Gaussian process of {n:,} rows (n x n matrices)", _INSTEAD
        )

    def _targets(self) -> Array:
        y = np.asarray(self.y_train_, dtype=np.float64)
        return y.reshape(-1, 1) if y.ndim == 1 else y

    def _likelihood(self) -> Likelihood | None:
        if self._structure is None:
            return None
        return Likelihood(self._structure, self.X_train_, self._targets(), self._noise)

    def _search(self) -> Found:
        """The best parameters, set in ``kernel_``."""
        theta, self.trace_ = self.kernel_.theta, Trace(enabled=self.trace)
        if self.optimizer is None or self.kernel_.n_dims == 0:
            value = self.log_marginal_likelihood(theta, clone_kernel=False)
            return Found(theta, float(value), 1, True)
        bounds = self.kernel_.bounds
        best = self._climbed([theta], bounds)
        starts = self._further_starts(bounds)
        # From the start that the kernel has, nothing may be seen of data in other units. That
        # start alone decides, so that one more restart never gives a lower maximum.
        is_blind = not callable(self.optimizer) and not has_learned(best.value, self._targets())
        scales = self._scales(theta, bounds) if is_blind else None
        if scales is not None:
            other = self._climbed([scales], bounds)
            note = "again from the scales of the data, for the kernel's start led nowhere"
            best = better_of(best, replace(other, notes=(*other.notes, note)))
        if starts:
            best = better_of(best, self._climbed(starts, bounds))
        self.kernel_.theta = best.theta
        self.kernel_._check_bounds_params()
        if not has_learned(best.value, self._targets()):
            warn_unlearned(type(self).__name__, best.value)
        elif not best.settled:
            slope = self.log_marginal_likelihood(best.theta, eval_gradient=True)[1]
            warn_unsettled(best, slope)
        return best

    def _climbed(self, starts: list[Array], bounds: Array) -> Found:
        """The best maximum that a search from these starts reaches."""
        likelihood = self._likelihood()
        if likelihood is not None and self.optimizer == "fmin_l_bfgs_b":
            likelihood.trace = self.trace_
            return maximise(likelihood, starts, bounds)
        return self._search_generic(starts, bounds)

    def _scales(self, theta: Array, bounds: Array) -> Array | None:
        """Parameters at the scales of the data, if the kernel is known by formula."""
        if not self.kernel_.requires_vector_input:
            return None
        X = np.asarray(self.X_train_, dtype=np.float64)
        structure = self._structure or recognise(self.kernel_, X)
        return (
            None if structure is None else scales_of(structure, theta, X, self._targets(), bounds)
        )

    def _further_starts(self, bounds: Array) -> list[Array]:
        if self.n_restarts_optimizer == 0:
            return []
        if not np.isfinite(bounds).all():
            raise ValueError(
                "Multiple optimizer restarts (n_restarts_optimizer>0) requires that all bounds are "
                "finite."
            )
        generator = check_random_state(self.random_state)
        return [
            generator.uniform(bounds[:, 0], bounds[:, 1]) for _ in range(self.n_restarts_optimizer)
        ]

    def _search_generic(self, starts: list[Array], bounds: Array) -> Found:
        """Minimise minus the likelihood by L-BFGS-B, or by the optimizer that was given."""
        count = 0

        def minus(theta: Array, eval_gradient: bool = True) -> Any:
            nonlocal count
            count += 1
            found = self.log_marginal_likelihood(
                theta, eval_gradient=eval_gradient, clone_kernel=False
            )
            add_evaluation(self.trace_, theta, found[0] if eval_gradient else found)
            return (-found[0], -found[1]) if eval_gradient else -found

        ends = []
        for start in starts:
            if callable(self.optimizer):
                theta, value = self.optimizer(minus, start, bounds=bounds)
                ends.append(Found(np.asarray(theta), -float(value), count, True))
            else:
                ends.append(climb_function(minus, start, bounds))
        best = max(ends, key=lambda found: found.value)
        return Found(best.theta, best.value, count, best.settled)

    def _factorise(self) -> None:
        """L_ and alpha_ at the parameters found."""
        if self._structure is not None:
            n = len(self.X_train_)
            K = np.empty((n, n))
            X = np.ascontiguousarray(self.X_train_, dtype=np.float64)
            covariance(self._structure, self.kernel_.theta, X, self._noise, K)
        else:
            K = np.array(self.kernel_(self.X_train_), dtype=np.float64, order="C")
            K.flat[:: len(K) + 1] += self._noise
        failed = 1
        if np.isfinite(np.einsum("ii->i", K)).all():
            factor, failed = lapack.dpotrf(K.T, lower=0, clean=1, overwrite_a=1)
        if failed:
            raise np.linalg.LinAlgError(
                f"The kernel, {self.kernel_}, is not returning a positive definite matrix. Try "
                "gradually increasing the 'alpha' parameter of your GaussianProcessRegressor "
                f"estimator.{repeated_rows(self.X_train_)}"
            )
        self.L_ = np.ascontiguousarray(factor.T)
        self.alpha_ = cho_solve((self.L_, True), self.y_train_, check_finite=False)
        # Two products, where the factor took n of them: the solution solves its equations, up to
        # the backward error of the factor.
        left = np.abs(self.L_ @ (self.L_.T @ self.alpha_) - self.y_train_).max(initial=0.0)
        own = float((self.L_**2).sum(axis=1).max(initial=0.0)) * np.finfo(np.float64).eps
        allowed = _CLOSE * float(np.abs(self.y_train_).max(initial=0.0))
        allowed += 16 * own * float(np.abs(self.alpha_).sum())
        verdict = Verdict(bool(left <= allowed), float(left), allowed)
        warn_of_gap(type(self).__name__, "the equations of the coefficients", verdict)

    # --- what is known afterwards ---------------------------------------------------------------

    @property
    def certificate_(self) -> KernelCertificate:
        """What is proven about the fit: locally, at the parameters found."""
        check_is_fitted(self, "L_")
        if self._certificate is None:
            coef = np.asarray(self.alpha_, dtype=np.float64)
            self._certificate = certify_process(
                self.kernel_,
                self.X_train_,
                self._targets(),
                self._noise,
                coef.reshape(len(coef), -1),
                float(self.log_marginal_likelihood_value_),
                self.optimizer is not None and self.kernel_.n_dims > 0,
                np.asarray(self._y_train_mean),
                np.asarray(self._y_train_std),
            )
        return self._certificate

    def _rows_kept(self, X: Any) -> dict[str, bool]:
        return {"X_train_": same_rows(self.X_train_, X)}

    def _predicting(self) -> dict[str, Any]:
        names = ["kernel_", "alpha_", "L_", "y_train_", "_y_train_mean", "_y_train_std", "_noise"]
        names += ["log_marginal_likelihood_value_"]
        return {**{name: getattr(self, name) for name in names}, **settings_of(self)}

    def _lines_planned(self, X: Any, y: Any) -> list[str]:
        kernel = ConstantKernel() * RBF() if self.kernel is None else self.kernel
        restarts = int(self.n_restarts_optimizer)
        how = f"{counted(kernel.n_dims, 'parameter')} by maximum likelihood, "
        how += f"{1 + restarts} searches" if restarts else "one search"
        if self.optimizer is None or kernel.n_dims == 0:
            how = "parameters as they are"
        size = matrix_text(_num_samples(X))
        return [
            f"kernel     {kernel}",
            f"data       {data_text(X, y)}",
            f"solver     {how}; several matrices of {size} each",
        ]

    def _lines_done(self) -> list[str]:
        certificate, facts, n = self.certificate_, self._facts, len(self.X_train_)
        how = "by compiled loops over pairs" if facts["by_formula"] else "by the kernel itself"
        return [
            f"kernel     {self.kernel_}",
            f"matrix     {n:,} x {n:,}, {how}",
            *(f"{'' if i else 'search':<11}{stage}" for i, stage in enumerate(facts["stages"])),
            f"happened   {counted(facts['evaluations'], 'evaluation')} with all rows, "
            f"{facts['seconds']:.3g} s: log marginal likelihood {facts['likelihood']:.10g}",
            f"threads    {threads_text(*facts['threads'], rest='went into LAPACK')}",
            f"proof      {certificate}",
            f"           {certificate.statement}",
        ]

    def log_marginal_likelihood(
        self, theta: Any = None, eval_gradient: bool = False, clone_kernel: bool = True
    ) -> Any:
        """The log marginal likelihood of the training data.

        Parameters
        ----------
        theta : array-like of shape (p,), optional
            Parameters of the kernel, as logarithms; by default those found, whose likelihood is
            known.
        eval_gradient : bool, default=False
        clone_kernel : bool, default=True
            Otherwise the parameters of ``kernel_`` are set to theta.

        Returns
        -------
        value : float
            Minus infinity where the matrix is not positive definite.
        gradient : array of shape (p,)
            If ``eval_gradient``.
        """
        if theta is None:
            if eval_gradient:
                raise ValueError("Gradient can only be evaluated for theta!=None")
            return self.log_marginal_likelihood_value_
        theta = np.asarray(theta, dtype=np.float64)
        if not clone_kernel:
            self.kernel_.theta = theta
        likelihood = self._likelihood()
        if likelihood is not None:
            if eval_gradient:
                value, gradient = likelihood.value_and_gradient(theta)
                return np.float64(value), gradient
            return np.float64(likelihood.value(theta))
        kernel = self.kernel_.clone_with_theta(theta) if clone_kernel else self.kernel_
        value, gradient = generic_likelihood(
            kernel, self.X_train_, self._targets(), self._noise, eval_gradient
        )
        return (np.float64(value), gradient) if eval_gradient else np.float64(value)

    def leave_one_out(self) -> tuple[Array, Array]:
        """Predict every training row from all others, at the parameters found, without refitting.

        Returns
        -------
        mean, std : arrays of shape (n,) or (n, k)
            Of the left-out target, its noise included (equations 5.10 to 5.12 of Rasmussen and
            Williams). With ``normalize_y`` the scaling of all rows is kept.
        """
        check_is_fitted(self, "L_")
        inverse, failed = lapack.dpotri(self.L_.T, lower=0)
        assert failed == 0
        precision = np.einsum("ii->i", inverse)
        if self.y_train_.ndim > 1:
            precision = precision[:, None]
        mean = self.y_train_ - self.alpha_ / precision
        std = np.broadcast_to(np.sqrt(1.0 / precision), np.shape(mean))
        return self._y_train_std * mean + self._y_train_mean, std * self._y_train_std

    # --- prediction -----------------------------------------------------------------------------

    def predict(self, X: Any, return_std: bool = False, return_cov: bool = False) -> Any:
        """Predict, also before any fit (then from the prior).

        Parameters
        ----------
        X : array-like of shape (m, d), or a list of what the kernel compares
        return_std : bool, default=False
        return_cov : bool, default=False

        Returns
        -------
        mean : array of shape (m,) or (m, k)
        std : array of shape (m,) or (m, k)
            If ``return_std``: of the kernel's process at X, with the noise that is in the kernel.
        cov : array of shape (m, m) or (m, m, k)
            If ``return_cov``.
        """
        if return_std and return_cov:
            raise RuntimeError("At most one of return_std or return_cov can be requested.")
        X = self._checked(X)
        if not hasattr(self, "X_train_"):
            return self._predict_prior(X, return_std, return_cov)
        cross = self._cross(X)
        mean = self._y_train_std * (cross @ self.alpha_) + self._y_train_mean
        if mean.ndim > 1 and mean.shape[1] == 1:
            mean = mean[:, 0]
        if not (return_std or return_cov):
            return mean
        if return_cov:
            half = solve_triangular(self.L_, cross.T, lower=True, check_finite=False)
            return mean, self._in_units(self.kernel_(X) - half.T @ half)
        variance = np.array(self.kernel_.diag(X), dtype=np.float64)
        for start in range(0, len(cross), _BLOCK_ROWS):
            part = slice(start, start + _BLOCK_ROWS)
            half = solve_triangular(self.L_, cross[part].T, lower=True, check_finite=False)
            variance[part] -= np.einsum("ij,ij->j", half, half)
        # Below zero by rounding alone, where a row is known as well as the numbers allow.
        return mean, np.sqrt(self._in_units(np.maximum(variance, 0.0)))

    def _checked(self, X: Any) -> Any:
        """Rows that the kernel can compare."""
        vectors = self.kernel is None or self.kernel.requires_vector_input
        kind = "numeric" if vectors else None
        return validate_data(self, X, ensure_2d=vectors, dtype=kind, reset=False)

    def _cross(self, X: Any) -> Array:
        if self._structure is None:
            return np.asarray(self.kernel_(X, self.X_train_))
        rows, known = (np.ascontiguousarray(part, dtype=np.float64) for part in (X, self.X_train_))
        return cross_covariance(self._structure, self.kernel_.theta, rows, known)

    def _in_units(self, values: Array) -> Array:
        """Variances in units of the targets, one per target if there are several."""
        scaled = np.multiply.outer(values, np.atleast_1d(self._y_train_std) ** 2)
        return scaled[..., 0] if scaled.shape[-1] == 1 else scaled

    def _predict_prior(self, X: Any, return_std: bool, return_cov: bool) -> Any:
        kernel = self.kernel
        if kernel is None:
            kernel = ConstantKernel(1.0, "fixed") * RBF(1.0, "fixed")
        targets = 1 if self.n_targets is None else self.n_targets
        size = X.shape[0] if hasattr(X, "shape") else len(X)
        mean = np.zeros((size, targets)).squeeze() if targets > 1 else np.zeros(size)
        if not (return_std or return_cov):
            return mean
        values = kernel(X) if return_cov else np.sqrt(kernel.diag(X))
        if targets > 1:
            values = np.repeat(values[..., None], targets, axis=-1)
        return mean, values

    def sample_y(
        self, X: Any, n_samples: int = 1, random_state: Any = 0, *, noise: bool = True
    ) -> Array:
        """Draw functions from the process, and evaluate them at X.

        Parameters
        ----------
        X : array-like of shape (m, d)
        n_samples : int, default=1
        random_state : int, RandomState or None, default=0
        noise : bool, default=True
            Whether the noise of the kernel (a ``WhiteKernel``) is part of the samples, as in
            scikit-learn; without it they are smooth.

        Returns
        -------
        samples : array of shape (m, n_samples) or (m, k, n_samples)
        """
        generator = check_random_state(random_state)
        mean, cov = self.predict(X, return_cov=True)
        if not noise:
            part = noise_covariance(getattr(self, "kernel_", self.kernel), self._checked(X))
            part = self._in_units(part) if hasattr(self, "X_train_") else part
            cov = cov - (part if part.ndim == cov.ndim else part[..., None])
        if mean.ndim == 1:
            return np.asarray(generator.multivariate_normal(mean, cov, n_samples).T)
        return np.stack(
            [
                generator.multivariate_normal(mean[:, t], cov[..., t], n_samples).T
                for t in range(mean.shape[1])
            ],
            axis=1,
        )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.requires_fit = False
        return tags
