"""Huber regression with its scale estimated along."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trueline.certificates.base import Certificate
from trueline.certificates.special.concomitant import certify_concomitant
from trueline.design import as_design
from trueline.estimators.shared.base import LinearEstimator, Task, build_problem
from trueline.estimators.shared.columns import ColumnRank
from trueline.estimators.shared.objective import Objective
from trueline.estimators.shared.parameters import KW_ONLY, given, parameters
from trueline.estimators.shared.regressor import LinearRegressorBase, SingleTarget
from trueline.estimators.shared.validation import refuse_nonfinite
from trueline.losses import Huber
from trueline.numerics.blas import single_threaded_blas
from trueline.penalties import L2
from trueline.plan import Plan
from trueline.problem import Array, ConcomitantProblem, Problem
from trueline.solution import Proof, Solution
from trueline.solvers import concomitant_cost, solve_concomitant
from trueline.solvers.base import Facts

_EPS = float(np.finfo(np.float64).eps)
# A gap is quadratic in the gradient; and no less than this is asked for.
_COARSEST = 1e-10


@parameters()
class HuberRegressor(ColumnRank, SingleTarget, LinearRegressorBase, LinearEstimator):
    r"""Linear regression that outliers do not disturb, with the scale of the noise estimated along.

    Minimises over w, b and sigma >= 0, with s the sample weights and r_i = x_i.w + b - y_i::

        sum_i s_i (sigma + sigma H(r_i / sigma)) + alpha ||w||^2

        H(t) = t^2                          where |t| <= epsilon
             = 2 epsilon |t| - epsilon^2    beyond

    which is convex in all of them together. Multiplying the target by a number multiplies
    coefficients and scale by it (up to the penalty): ``epsilon`` needs no tuning to the units.

    Parameters
    ----------
    epsilon : float, default=1.35
        Residuals beyond ``epsilon`` times the scale count linearly; at least 1. With 1.35 the
        estimate is 95 percent as efficient as least squares on Gaussian noise.
    max_iter : int, default=100
        Limit on the steps of Newton's method; it usually needs fewer than ten.
    alpha : float, default=0.0001
        Strength of the penalty.
    warm_start : bool, default=False
        Start from the coefficients of the last fit.
    fit_intercept : bool, default=True
    tol : float, default=1e-5
        Stop when the gap is proven to be below ``tol**2`` (at most 1e-10) times the objective.

    Attributes
    ----------
    coef_ : array of shape (d,)
    intercept_ : float
    scale_ : float
        sigma; zero if more than a share 1 / epsilon^2 of the rows is fitted exactly.
    outliers_ : array of bool, shape (n,)
        Rows whose residual is beyond ``epsilon * scale_``.
    certificate_ : Certificate
    solver_ : str
    n_iter_ : int
    n_features_in_ : int
    feature_names_in_ : array of str

    Examples
    --------
    >>> import numpy as np
    >>> from trueline import HuberRegressor
    >>> X = np.arange(20.0).reshape(-1, 1)
    >>> y = 2 * X.ravel() + np.tile([-0.1, 0.1], 10)
    >>> y[3] = 500.0  # an outlier
    >>> model = HuberRegressor().fit(X, y)
    >>> model.coef_.round(2), np.flatnonzero(model.outliers_)
    (array([2.]), array([3]))
    >>> bool(model.verify(X, y)), bool(model.certificate_.relative_gap < 1e-9)
    (True, True)
    """

    _: KW_ONLY
    epsilon: float = given(1.35, "[1, inf)")
    max_iter: int = given(100, "int [0, inf)")
    alpha: float = given(0.0001, "[0, inf)")
    warm_start: bool = False
    fit_intercept: bool = True
    tol: float = given(1e-05, "[0, inf)")

    def _problem(self, X: Any, Y: Array, weights: Array | None) -> Problem:
        loss, penalty = Huber(float(self.epsilon)), L2(2.0 * float(self.alpha))
        return build_problem(X, Y, weights, loss, penalty, self.fit_intercept)

    def _plan_for(self, problem: Problem) -> Plan:
        name, facts = "newton", Facts.of(problem)
        title = "Newton's method on the profile over the scale"
        cost = concomitant_cost(facts)
        formula = ConcomitantProblem(problem).formula
        why = "the only solver for a scale estimated along"
        return Plan.only(name, title, cost, formula, facts, why)

    def _run(self, task: Task) -> Solution:
        problem, start = task.problem, None
        if self.warm_start and hasattr(self, "coef_") and len(self.coef_) == problem.n_features:
            start = np.asarray(self.coef_, dtype=np.float64), float(self.intercept_)
        tol = min(float(self.tol) ** 2, _COARSEST)
        begin = time.perf_counter()
        try:
            with np.errstate(over="ignore", invalid="ignore"), single_threaded_blas():
                solution = solve_concomitant(
                    ConcomitantProblem(problem), tol, self.max_iter, task.monitor, start
                )
        except FloatingPointError:
            refuse_nonfinite(task.X, self)
            raise ValueError(
                "Squares of X or y leave the range of double precision. Divide the columns or the "
                "target by a power of ten first."
            ) from None
        solution.seconds = time.perf_counter() - begin
        return solution

    def _keep_of_rows(self, X: Any, y: NDArray[Any], sample_weight: Any) -> None:
        predicted = as_design(X).matvec(np.asarray(self.coef_, dtype=np.float64))
        residual = np.abs(y - predicted - self.intercept_)
        # Of an exact fit, rounding is all that residuals are made of.
        unseen = 0.0 if self.scale_ > 0 else 1e-10 * float(np.abs(y).max(initial=0.0))
        self.outliers_ = residual > self.scale_ * self.epsilon + unseen

    def _store(
        self, problem: Any, plan: Plan, solution: Solution, dtype: np.dtype, y_ndim: int
    ) -> None:
        self.scale_ = float(solution.extra["scale"])
        super()._store(problem, plan, solution, dtype, y_ndim)

    def _certify_rounded(self, problem: Any, solution: Solution, W: Any, b: Any) -> Proof:
        certificate = solution.certificate
        assert certificate is not None
        return certify_concomitant(
            ConcomitantProblem(problem),
            W[:, 0].astype(np.float64),
            float(b[0]),
            self.scale_,
            certificate.witness["dual"][:, 0],
        )

    def objective(self, X: Any, y: Any = None, sample_weight: Any = None, **data: Any) -> Objective:
        """The function that the fit has minimised, at the scale that was found.

        sigma H(r / sigma) is Huber's loss of r with threshold epsilon sigma, times 2 / sigma.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)
        y : array-like of shape (n,)
        sample_weight : array-like of shape (n,), optional

        Returns
        -------
        objective : Objective
        """
        found = super().objective(X, y, sample_weight, **data)
        if not self.scale_ > 0:
            raise ValueError("The scale is zero: there, 2 epsilon |r| takes the place of the loss.")
        parts, scale = found.problem, self.scale_
        weights = np.ones(parts.n_samples) if parts.weights is None else parts.weights
        loss = Huber(float(self.epsilon) * scale)
        problem = replace(parts, loss=loss, weights=2.0 / scale * weights)
        return replace(found, problem=problem, constant=scale * parts.total_weight)

    @property
    def certificate_(self) -> Certificate:
        """What is proven about coefficients, intercept and scale as they are now."""
        certificate = super().certificate_
        witness = {**certificate.witness, "scale": np.array([float(self.scale_)])}
        return replace(certificate, witness=witness)
