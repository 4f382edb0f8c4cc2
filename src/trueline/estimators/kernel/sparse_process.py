"""Gaussian process regression of many rows by inducing points."""

from __future__ import annotations

import math
from typing import Any, Self

import numpy as np
from scipy.linalg import solve_triangular
from sklearn.base import BaseEstimator, RegressorMixin, clone
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Kernel, WhiteKernel
from sklearn.utils import check_random_state
from sklearn.utils.validation import _num_samples, check_is_fitted

from trueline.certificates.kernel import KernelCertificate
from trueline.estimators.kernel.kernel_function import check_memory, check_scale, data_text
from trueline.estimators.shared.parameters import KW_ONLY, given, one_of, parameters, settings_of
from trueline.estimators.shared.report import Certified, ExplainMixin
from trueline.estimators.shared.validation import Array, new_rows, numeric_target, validate_data
from trueline.gaussian_process.covariance import cross_covariance, diagonal, recognise
from trueline.gaussian_process.inducing import InducingBound, choose_points
from trueline.gaussian_process.likelihood import Likelihood
from trueline.gaussian_process.proof import kernel_units
from trueline.gaussian_process.search import climb_function, maximise
from trueline.gaussian_process.structure import Structure

_EPS = float(np.finfo(np.float64).eps)
# Where to start: the parameters that so many rows find exactly.
_START_ROWS = 500
_BLOCK_ROWS = 20_000


@parameters()
class SparseGaussianProcessRegressor(RegressorMixin, Certified, ExplainMixin, BaseEstimator):
    r"""Gaussian process regression with inducing points, and bounds on what they lose.

    The process of :class:`~trueline.GaussianProcessRegressor` is seen through its values at few
    points, so that time grows with the number of rows and memory by a few columns. The parameters
    of the kernel maximise Titsias' lower bound of the log marginal likelihood; beside it stands an
    upper bound, and where the two meet nothing is lost. The mean minimises, over functions f of the
    kernel's space that the points determine::

        1/2 sum_i s_i (y_i - f(x_i))^2 + 1/2 ||f||^2,       1 / s_i the variance of the noise

    Parameters
    ----------
    kernel : kernel of scikit-learn, optional
        A sum of constants times RBF, Matern (nu 1/2, 3/2, 5/2), RationalQuadratic, and
        WhiteKernel; by default ``ConstantKernel() * RBF() + WhiteKernel()``.
    n_inducing : int, default=200
        Points at most; fewer, if these leave no variance.
    alpha : float, default=1e-10
        Variance of the noise, beside that of the kernel.
    optimizer : {"fmin_l_bfgs_b"} or None, default="fmin_l_bfgs_b"
        None keeps the parameters.
    normalize_y : bool, default=False
    random_state : int, RandomState or None, default=0
        For the rows that are looked at first.

    Attributes
    ----------
    kernel_ : kernel
    inducing_points_ : array of shape (m, d)
    lower_bound_, upper_bound_ : float
        Of the log marginal likelihood of all rows at these parameters.
    log_marginal_likelihood_value_ : float
        The lower bound.
    certificate_ : KernelCertificate
        Both bounds; ``verify`` computes them again.
    n_features_in_ : int
    feature_names_in_ : array of str

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.gaussian_process.kernels import RBF, WhiteKernel
    >>> from trueline import SparseGaussianProcessRegressor
    >>> generator = np.random.default_rng(0)
    >>> X = generator.uniform(0, 6, size=(600, 1))
    >>> y = np.sin(X.ravel()) + 0.1 * generator.normal(size=600)
    >>> model = SparseGaussianProcessRegressor(1.0 * RBF() + WhiteKernel(), n_inducing=20)
    >>> model = model.fit(X, y)
    >>> bool(model.upper_bound_ - model.lower_bound_ < 0.1), bool(model.verify(X, y))
    (True, True)
    >>> model.predict([[1.5]]).round(1)
    array([1.])
    """

    _doc_link_module = "trueline"

    kernel: Any = given(None, None, Kernel)
    _: KW_ONLY
    n_inducing: int = given(200, "int [1, inf)")
    alpha: float = given(1e-10, "[0, inf)")
    optimizer: str | None = given("fmin_l_bfgs_b", one_of("fmin_l_bfgs_b"), None)
    normalize_y: bool = False
    random_state: Any = given(0, "random_state")

    def fit(self, X: Any, y: Any) -> Self:
        """Fit the process.

        Parameters
        ----------
        X : array-like of shape (n, d)
        y : array-like of shape (n,)

        Returns
        -------
        self : object
        """
        self._validate_params()
        kernel = ConstantKernel() * RBF() + WhiteKernel() if self.kernel is None else self.kernel
        self.kernel_ = clone(kernel)
        with numeric_target(self, y):
            X, y = validate_data(self, X, y, y_numeric=True, dtype=np.float64)
            y = y.astype(np.float64)
        check_scale(X, "X")
        check_scale(y, "y")
        check_memory(
            8.0 * len(y) * self.n_inducing * 4,
            f"{self.n_inducing:,} inducing points of {len(y):,} rows",
            "Take fewer inducing points.",
        )
        self._level = float(y.mean()) if self.normalize_y else 0.0
        spread = float(y.std()) if self.normalize_y else 1.0
        self._scale = spread if spread > 10 * _EPS * max(1.0, abs(self._level)) else 1.0
        y = (y - self._level) / self._scale
        self._structure = self._known(X)
        generator = np.random.default_rng(
            check_random_state(self.random_state).randint(np.iinfo(np.int32).max)
        )
        theta = self._start(X, y, generator)
        bound = self._bound(X, y, theta, generator)
        if self.optimizer is not None and self.kernel_.n_dims:
            # Points are chosen for the parameters, parameters for the points: twice is enough.
            limits = self.kernel_.bounds
            starts = [theta, np.clip(bound.with_enough_noise(theta), limits[:, 0], limits[:, 1])]
            for _ in range(2):
                ends = [climb_function(bound.minus, start, limits) for start in starts]
                theta = max(ends, key=lambda found: found.value).theta
                bound = self._bound(X, y, theta, generator)
                starts = [theta]
            self.kernel_.theta = theta
            self.kernel_._check_bounds_params()
        self._fit = bound.fit(theta)
        self.inducing_points_ = self._fit.points
        self.lower_bound_, self.upper_bound_ = self._fit.lower, self._fit.upper
        self.log_marginal_likelihood_value_ = self._fit.lower
        self._certificate = self._certified(bound, theta)
        self._mark_fitted()
        return self

    def _predicting(self) -> dict[str, Any]:
        names = ("kernel_", "inducing_points_", "lower_bound_", "upper_bound_", "_level", "_scale")
        own = {name: getattr(self, name) for name in names}
        return {**own, "_fit": vars(self._fit), **settings_of(self)}

    def _known(self, X: Array) -> Structure:
        structure = recognise(self.kernel_, X)
        if structure is None:
            raise ValueError(
                "Inducing points need a kernel that is a sum of constants times RBF, Matern (nu "
                f"1/2, 3/2, 5/2), RationalQuadratic, and WhiteKernel; got {self.kernel_}. "
                "GaussianProcessRegressor takes any kernel."
            )
        theta = self.kernel_.theta
        smooth = diagonal(structure, theta, noise=False)
        if not float(self.alpha) + diagonal(structure, theta) - smooth > 1e-9 * smooth:
            raise ValueError(
                "Inducing points need noise: add a WhiteKernel to the kernel, or give an alpha of "
                f"more than {1e-9 * smooth:.3g}."
            )
        return structure

    def _start(self, X: Array, y: Array, generator: np.random.Generator) -> Array:
        """The parameters that few rows find exactly."""
        theta = self.kernel_.theta
        if self.optimizer is None or not self.kernel_.n_dims:
            return theta
        rows = generator.permutation(len(y))[:_START_ROWS]
        exact = Likelihood(self._structure, X[rows], y[rows, None], float(self.alpha))
        found = maximise(exact, [theta], self.kernel_.bounds)
        return found.theta if math.isfinite(found.value) else theta

    def _bound(
        self, X: Array, y: Array, theta: Array, generator: np.random.Generator
    ) -> InducingBound:
        points = choose_points(self._structure, theta, X, self.n_inducing, generator)
        return InducingBound(self._structure, X, y, float(self.alpha), points)

    def _certified(self, bound: InducingBound, theta: Array) -> KernelCertificate:
        fit = self._fit
        rounding = bound.rounding(theta, fit, kernel_units(self.kernel_, bound.X))
        return KernelCertificate(
            kind="evidence bounds",
            objective=-fit.lower,
            objective_rounding=rounding,
            gap=math.inf,
            residual=0.0,
            slope=math.inf,
            kernel=self.kernel_,
            coef=np.zeros((len(bound.y), 1)),
            witness={
                "points": fit.points,
                "upper": fit.upper + rounding,
                "noise": float(self.alpha),
                "level": np.array([self._level]),
                "scale": np.array([self._scale]),
            },
        )

    @property
    def certificate_(self) -> KernelCertificate:
        """Both bounds on the log marginal likelihood."""
        check_is_fitted(self)
        return self._certificate

    def _lines_planned(self, X: Any, y: Any) -> list[str]:
        most = min(self.n_inducing, _num_samples(X))
        return [
            f"kernel     {'the default' if self.kernel is None else self.kernel}",
            f"data       {data_text(X, y)}",
            f"solver     up to {most:,} inducing points, chosen from the rows",
        ]

    def _lines_done(self) -> list[str]:
        certificate = self.certificate_
        return [
            f"kernel     {self.kernel_}",
            f"points     {len(self.inducing_points_):,}, losing at most "
            f"{self.upper_bound_ - self.lower_bound_:.4g} of the log marginal likelihood",
            f"proof      {certificate}",
            f"           {certificate.statement}",
        ]

    def predict(self, X: Any, return_std: bool = False) -> Any:
        """Predict.

        Parameters
        ----------
        X : array-like of shape (m, d)
        return_std : bool, default=False

        Returns
        -------
        mean : array of shape (m,)
        std : array of shape (m,)
            If ``return_std``: with the noise that is in the kernel, as in
            :class:`~trueline.GaussianProcessRegressor`.
        """
        X = new_rows(self, X, accept_sparse=False, dtype=np.float64)
        fit, theta = self._fit, self.kernel_.theta
        mean, std = np.empty(len(X)), np.empty(len(X))
        prior = diagonal(self._structure, theta)
        for start in range(0, len(X), _BLOCK_ROWS):
            part = slice(start, start + _BLOCK_ROWS)
            rows = np.ascontiguousarray(X[part])
            cross = cross_covariance(self._structure, theta, fit.points, rows)
            half = solve_triangular(fit.factor, cross, lower=True, check_finite=False)
            inner = solve_triangular(fit.inner, half, lower=True, check_finite=False)
            mean[part] = fit.along @ inner
            left = prior - np.einsum("ij,ij->j", half, half)
            std[part] = np.sqrt(np.maximum(left + np.einsum("ij,ij->j", inner, inner), 0.0))
        mean = self._scale * mean + self._level
        return (mean, self._scale * std) if return_std else mean
