"""Ordinary least squares; and the general linear regressor, any loss with any penalty."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from scipy.linalg.lapack import dpstrf
from sklearn.utils.validation import check_is_fitted

from trueline.estimators.regression.incremental import FittedFromMoments
from trueline.estimators.regression.ridge import DESCENTS
from trueline.estimators.shared.base import LinearEstimator, build_problem
from trueline.estimators.shared.columns import ColumnRank, StartsAnywhere
from trueline.estimators.shared.parameters import KW_ONLY, given, one_of, parameters
from trueline.estimators.shared.precision import exponents_of
from trueline.estimators.shared.regressor import GaussianLikelihood, LinearRegressorBase
from trueline.losses import LOSSES, Loss, as_loss
from trueline.numerics.blas import singular_values
from trueline.penalties import PENALTIES, NonNegative, NoPenalty, Penalty, as_penalty
from trueline.planner import execute, make_plan
from trueline.problem import Array, MomentsProblem, Problem
from trueline.solution import Solution
from trueline.solvers.base import Monitor, Options
from trueline.solvers.registry import SOLVERS

# Products that take some milliseconds: up to so many the rank is worked out after every solver.
_QUICK = 1e7


@parameters()
class LinearRegression(ColumnRank, FittedFromMoments, LinearRegressorBase, LinearEstimator):
    """Ordinary least squares, to the last digit and with a proof.

    Minimises over w and b::

        1/2 sum_i s_i (y_i - x_i.w - b)^2

    with sample weights s_i (one by default). If the columns do not determine w, the answer is the
    one of least norm (Moore-Penrose); ``rank_`` and ``null_space_`` tell.

    A drop-in for ``sklearn.linear_model.LinearRegression``. The rank is decided at the level of
    rounding (on columns of equal norm), not at the relative cut ``tol`` of that class, so that
    badly scaled or nearly collinear columns keep their information.

    Parameters
    ----------
    fit_intercept : bool, default=True
        Whether to fit b; it is 0 otherwise.
    copy_X : bool, default=True
        Accepted for compatibility: X is never modified and never copied as a whole.
    tol : float, default=1e-6
        For iterative solvers: the gap to prove is ``tol^2`` relative to the objective of the best
        constant, which bounds the relative error of the fitted values by ``tol``.
    n_jobs : int, optional
        Accepted for compatibility: threads follow the limits of the BLAS library.
    positive : bool, default=False
        Keep all coefficients at or above zero.
    solver : str, default="auto"
        "auto" plans (see :meth:`explain`); by name: "cholesky", "qr", "svd",
        "conjugate_gradient", and the textbook forms "gradient_descent", "stochastic_gradient",
        "mini_batch".

    Attributes
    ----------
    coef_ : array of shape (d,) or (k, d)
    intercept_ : float or array of shape (k,)
    certificate_ : Certificate
        How far from the optimum the coefficients can be at most, with a proof.
    rank_ : int
        Rank of the (centred) design. An iterative solver does without it: there it is worked out
        for up to 1e7 products n d^2, and not set beyond.
    singular_ : array of shape (min(n, d),)
        Its singular values.
    null_space_ : array of shape (d, d - rank)
        Directions of the coefficients that the data do not determine.
    noise_variance_ : float or array of shape (k,)
        Estimated variance of the noise.
    moments_ : Moments
        The sufficient statistics, for ``partial_fit`` and ``merge``.
    solver_ : str
        The solver that ran.
    n_iter_ : int
        Its iterations.
    n_features_in_ : int
    feature_names_in_ : array of str
        If X had column names.

    Examples
    --------
    >>> import numpy as np
    >>> from trueline import LinearRegression
    >>> X = np.array([[1.0, 1.0], [1.0, 2.0], [2.0, 2.0], [2.0, 3.0]])
    >>> y = X @ np.array([1.0, 2.0]) + 3.0
    >>> model = LinearRegression().fit(X, y)
    >>> model.coef_.round(12), round(float(model.intercept_), 12)
    (array([1., 2.]), 3.0)
    >>> bool(model.verify(X, y))
    True
    """

    _leave_one_out = "least squares"

    _: KW_ONLY
    fit_intercept: bool = True
    copy_X: bool = True
    tol: float = given(1e-6, "[0, inf)")
    n_jobs: int | None = given(None, None, "int")
    positive: bool = False
    solver: str = given("auto", one_of("auto", "cholesky", "qr", "svd", *DESCENTS))

    _is_its_problem = True

    def _penalty(self, n_targets: int) -> Penalty:
        return NonNegative(NoPenalty()) if self.positive else NoPenalty()

    def _options(self) -> Options:
        return Options(tol=self.tol**2)

    def _keep_of(self, problem: Any, solution: Solution) -> None:
        d = problem.n_features
        is_known = solution.rank is not None or isinstance(problem, MomentsProblem)
        if not (is_known or self.positive or np.prod(problem.design.shape) * d > _QUICK):
            # Iterative solvers do without it: the factorisation of the rows tells.
            rows = replace(problem, target=np.zeros((problem.n_samples, 1)))
            if exponents_of(rows) is None:  # else squares would overflow or vanish
                direct = execute(rows, make_plan(rows, "qr"), Options(), Monitor())
                solution.rank, solution.row_space = direct.rank, direct.row_space
        super()._keep_of(problem, solution)
        self._singular = solution.singular_values

    @property
    def singular_(self) -> Array:
        """Singular values of the centred, weighted design, in descending order."""
        check_is_fitted(self)
        if self._singular is not None:
            return self._singular
        if not hasattr(self, "moments_"):
            raise AttributeError(
                f"solver_={self.solver_!r} does not determine the singular values; use 'svd'."
            )
        moments = self.moments_ if self.fit_intercept else self.moments_.about_zero()
        # Of the columns scaled alike; what follows from others is in the rows beyond the rank.
        size = np.sqrt(moments.gram.diagonal())
        size[size == 0] = 1.0
        R, order, _, _ = dpstrf(moments.gram / np.outer(size, size), tol=0.0)
        R = np.triu(R)[: getattr(self, "rank_", len(R))]
        noise = len(R) * moments.unit * float((moments.x_size / size**2).max())
        if (R.diagonal() ** 2 < 1e4 * noise).any():
            raise AttributeError(
                "The small singular values of these data are lost in the rounding of their "
                "squares; fit with solver='svd' to have them."
            )
        values = np.zeros(min(moments.count, len(size)))
        own = singular_values(R * size[order - 1])[: len(values)]
        values[: len(own)] = own
        return values


@parameters()
class LinearRegressor(StartsAnywhere, GaussianLikelihood, LinearRegressorBase, LinearEstimator):
    """A linear model for any registered loss and penalty.

    Minimises over w and b::

        sum_i s_i loss(y_i, x_i.w + b) + alpha * penalty(w)

    with the loss and the penalty as written in :mod:`trueline.losses` and
    :mod:`trueline.penalties` (squared loss is 1/2 (z - y)^2, the l2 penalty 1/2 ||w||^2). Which
    solvers can minimise which pair, and how the answer is proven, is shown by ``explain(X, y)``.

    Parameters
    ----------
    loss : str or Loss, default="squared"
    penalty : str, Penalty or None, default="l2"
        A :class:`~trueline.penalties.Penalty` object brings its own strength; ``alpha`` is then
        not used.
    alpha : float or array, default=1.0
        Strength of a penalty given by name; an array of shape (k,) or (d, 1) gives one per target
        or per coefficient.
    l1_ratio : float, default=0.5
        Mixture of the "elastic_net" penalty.
    fit_intercept : bool, default=True
    positive : bool, default=False
        Keep all coefficients at or above zero.
    solver : str, default="auto"
        "auto" plans; or the name of any solver that fits the pair.
    tol : float, default=1e-6
        For iterative solvers: the gap to prove, relative to the objective of the best constant.
    max_iter : int, optional
        Iteration limit; None leaves it to the solver.
    eta0 : float, optional
        First step of gradient methods; None computes it from the data.
    schedule : {"constant", "inverse", "sqrt"}, default="inverse"
        How the steps of stochastic methods shrink.
    batch_size : int, default=32
        Rows per step of "mini_batch".
    time_limit : float, optional
        Seconds after which an iterative solver stops.
    trace : bool, default=False
        Keep objective, gap and coefficients of every iteration in ``trace_``.
    progress : bool, default=False
        Show a progress bar.
    random_state : int, RandomState or None
        For stochastic solvers.

    Attributes
    ----------
    coef_ : array of shape (d,) or (k, d)
    intercept_ : float or array of shape (k,)
    certificate_ : Certificate
    trace_ : Trace
    solver_ : str
    n_iter_ : int
    n_features_in_ : int
    feature_names_in_ : array of str

    Examples
    --------
    >>> import numpy as np
    >>> from trueline import LinearRegressor
    >>> X = np.arange(10.0).reshape(-1, 1)
    >>> y = 2 * X.ravel()
    >>> y[9] = 100.0  # an outlier
    >>> robust = LinearRegressor(loss="huber", alpha=0.01, tol=1e-9).fit(X, y)
    >>> bool(abs(robust.coef_[0] - 2) < 0.5), bool(robust.verify(X, y))
    (True, True)
    """

    _leaves_out_idle_rows = True

    loss: str | Loss = given("squared", one_of(*LOSSES), Loss)
    penalty: str | Penalty | None = given("l2", one_of(*PENALTIES), Penalty, None)
    alpha: Any = given(1.0, "[0, inf)", "array-like")
    _: KW_ONLY
    l1_ratio: float = given(0.5, "[0, 1]")
    fit_intercept: bool = True
    positive: bool = False
    solver: str = given("auto", one_of("auto", *SOLVERS))
    tol: float = given(1e-6, "[0, inf)")
    max_iter: int | None = given(None, "int [1, inf)", None)
    eta0: float | None = given(None, "(0, inf)", None)
    schedule: str = given("inverse", one_of("constant", "inverse", "sqrt"))
    batch_size: int = given(32, "int [1, inf)")
    time_limit: float | None = given(None, "[0, inf)", None)
    trace: bool = False
    progress: bool = False
    random_state: Any = given(None, "random_state")

    def _problem(self, X: Any, Y: Array, weights: Array | None) -> Problem:
        alpha = np.asarray(self.alpha, dtype=np.float64)
        d, k = X.shape[1], Y.shape[1]
        if alpha.shape not in ((), (1,), (k,), (1, 1), (1, k), (d, 1), (d, k)):
            raise ValueError(
                f"alpha has the shape {alpha.shape}: give one number, one per target (shape "
                f"({k},)), one per coefficient (shape ({d}, 1)) or both (shape ({d}, {k}))."
            )
        strength: Any = float(alpha) if alpha.ndim == 0 else alpha
        penalty = as_penalty(self.penalty, strength, l1_ratio=self.l1_ratio)
        if self.positive and not isinstance(penalty, NonNegative):
            penalty = NonNegative(penalty)
        loss = as_loss(self.loss)
        return build_problem(X, Y, weights, loss, penalty, self.fit_intercept)

    def _options(self) -> Options:
        return Options(
            tol=self.tol,
            max_iter=self.max_iter,
            random_state=self.random_state,
            eta0=self.eta0,
            schedule=self.schedule,
            batch_size=self.batch_size,
        )
