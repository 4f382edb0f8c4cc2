"""Generalised linear models: what Poisson, gamma and Tweedie regression share."""

from __future__ import annotations

import time
from abc import abstractmethod
from dataclasses import replace
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.utils import assert_all_finite

from trueline.certificates.base import Certificate
from trueline.certificates.local import certify_local
from trueline.check import Check, Verification
from trueline.estimators.regression.exposure import as_offset, expose
from trueline.estimators.regression.rank import ColumnRank
from trueline.estimators.regression.standard_errors import FisherInference
from trueline.estimators.shared.base import build_problem
from trueline.estimators.shared.callbacks import fit_with_callbacks
from trueline.estimators.shared.parameters import KW_ONLY, given, one_of, parameters
from trueline.estimators.shared.regressor import SingleTargetRegressor
from trueline.estimators.shared.report import Explanation
from trueline.estimators.shared.validation import checked_rows, numeric_target
from trueline.losses import Loss
from trueline.moments import Moments
from trueline.numerics.threads import single_threaded_blas
from trueline.penalties import L2, NoPenalty
from trueline.plan import Plan
from trueline.problem import Problem
from trueline.solution import PendingCertificate, Solution
from trueline.solvers.base import Facts, Options
from trueline.solvers.loop import Monitor
from trueline.solvers.newton.non_convex import solve_locally
from trueline.solvers.newton.solver import Newton

__all__ = ["GeneralizedLinearRegressor"]

Array = NDArray[np.float64]

#: scikit-learn's names of solvers, and ours: they all minimise the same function.
SOLVER_NAMES = {
    "auto": "auto",
    "lbfgs": "auto",
    "newton-cholesky": "auto",
    "newton": "newton",
    "newton_cg": "newton_cg",
}
# A gap is quadratic in the gradient that scikit-learn's tolerances are about.
_FINEST = 1e-13


@parameters()
class GeneralizedLinearRegressor(FisherInference, ColumnRank, SingleTargetRegressor):
    """A deviance of a distribution with variance ~ mean^power, and a link.

    Minimises over w and b, with the unit deviance d and S = sum_i s_i::

        1/(2 S) sum_i s_i d(y_i, m_i) + alpha/2 ||w||^2,    link(m_i) = x_i.w + b + offset_i

    (as solved: S times that).
    """

    _strength_in_sum = "n alpha"
    _: KW_ONLY
    alpha: float = given(1.0, "[0, inf)")
    fit_intercept: bool = True
    solver: str = given("auto", one_of(*SOLVER_NAMES))
    max_iter: int = given(100, "int [1, inf)")
    tol: float = given(1e-4, "(0, inf)")
    warm_start: bool = False
    verbose: int = given(0, "verbose")
    trace: bool = False

    # --- the model ------------------------------------------------------------------------------

    @property
    @abstractmethod
    def _power(self) -> float:
        """The exponent of the variance."""

    @property
    def _is_log(self) -> bool:
        """Whether the link is the logarithm, else the identity."""
        return True

    @abstractmethod
    def _loss(self) -> Loss:
        """Half the unit deviance as a function of the score."""

    def _mean(self, scores: NDArray[Any]) -> NDArray[Any]:
        """The inverse of the link."""
        return np.exp(scores) if self._is_log else scores

    def _solver_name(self) -> str:
        return SOLVER_NAMES[self.solver] if self._loss().name != "squared" else "auto"

    def _options(self) -> Options:
        start: dict[str, Any] = {}
        if self.warm_start and hasattr(self, "coef_"):
            W, b = self._coefficients()
            start = {"start": np.ascontiguousarray(W), "start_intercept": np.array(b)}
        return Options(tol=max(self.tol**2, _FINEST), max_iter=self.max_iter, **start)

    # --- fitting --------------------------------------------------------------------------------

    def _problem(self, X: Any, Y: Array, weights: Array | None) -> Problem:
        return self._stated(X, Y[:, 0], weights, None)

    def _stated(self, X: Any, y: Array, weights: Array | None, offset: Array | None) -> Problem:
        """S times the objective, for rows that all count."""
        loss, is_log = self._loss(), self._is_log
        loss.check_target(y)
        if self._power >= 1 and self.fit_intercept and not y.any():
            raise ValueError(
                "y is zero everywhere: the best intercept of these data is minus infinity. There "
                "is nothing to fit."
            )
        total = float(len(y)) if weights is None else float(weights.sum())
        target, weights = expose(y, weights, offset, self._power, is_log)
        penalty = L2(float(self.alpha) * total) if self.alpha > 0 else NoPenalty()
        target = target.reshape(-1, 1)
        return build_problem(X, target, weights, loss, penalty, self.fit_intercept)

    def _validated_problem(
        self,
        X: Any,
        y: Any,
        sample_weight: Any,
        reset: bool,
        offset: Any = None,
        exposure: Any = None,
    ) -> tuple[Problem, Any, NDArray[Any]]:
        arguments: dict[str, Any] = {
            "accept_sparse": ["csr", "csc"],
            "dtype": [np.float64, np.float32],
            "y_numeric": True,
            "ensure_all_finite": False,
        }
        with numeric_target(self, y):
            X, y = checked_rows(self, X, y, reset, **arguments)
            own = y.astype(np.float64)
        weights = self._weights(sample_weight, X)
        shift = as_offset(offset, exposure, len(y), self._is_log)
        if weights is None or weights.all():
            return self._stated(X, own, weights, shift), X, y
        present = np.flatnonzero(weights)
        part = (X.tocsr() if sp.issparse(X) else X)[present]
        shift = None if shift is None else shift[present]
        return self._stated(part, own[present], weights[present], shift), X, y

    @fit_with_callbacks
    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        offset: Any = None,
        exposure: Any = None,
    ) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)
            Rows to learn from.
        y : array-like of shape (n,)
            The target.
        sample_weight : float or array-like of shape (n,), optional
            Weight 2 counts a row twice, weight 0 leaves it out.
        offset : float or array-like of shape (n,), optional
            What is added to the score of each row, with coefficient one.
        exposure : float or array-like of shape (n,), optional
            With the logarithm as link: what the mean of each row is multiplied by, for example
            time or number of people at risk; the same as ``offset=np.log(exposure)``.

        Returns
        -------
        self : object
        """
        self._check_parameters()
        problem, X, y = self._validated_problem(X, y, sample_weight, True, offset, exposure)
        self._solve_and_store(problem, X, y, sample_weight)
        return self

    def _plan_for(self, problem: Problem) -> Plan:
        if "nonconvex" not in problem.loss.capabilities:
            return super()._plan_for(problem)
        solver, facts = Newton(), Facts.of(problem)
        title = "Newton's method, or Fisher's scoring where it is not convex"
        return Plan.only(solver.name, title, solver.cost(facts), problem.formula, facts)

    def _solve(
        self, problem: Problem, X: Any, monitor: Monitor, moments: Moments | None = None
    ) -> tuple[Plan, Solution]:
        if "nonconvex" not in problem.loss.capabilities:
            return super()._solve(problem, X, monitor, moments)
        assert_all_finite(X, input_name="X", estimator_name=type(self).__name__)
        begin = time.perf_counter()
        with np.errstate(all="ignore"), single_threaded_blas():
            solution = solve_locally(problem, self._options(), monitor)
        solution.seconds = time.perf_counter() - begin
        if not solution.status.is_final:
            self._warn(solution)
        return self._plan_for(problem), solution

    def _certify_rounded(
        self, problem: Any, solution: Solution, W: NDArray[Any], b: NDArray[Any]
    ) -> Certificate | PendingCertificate:
        before = solution.certificate
        if before is None or before.kind != "local" or np.isinf(before.gap):
            return super()._certify_rounded(problem, solution, W, b)
        witness = before.witness
        W, b = W.astype(np.float64), b.astype(np.float64)
        return certify_local(problem, W, b, witness["about"], witness["diagonal"][:, 0])

    # --- what is known afterwards ---------------------------------------------------------------

    def _verified_data(
        self, X: Any, y: Any, sample_weight: Any, offset: Any = None, exposure: Any = None
    ) -> tuple[Any, Any, Any]:
        y = np.asarray(y, dtype=np.float64).ravel()
        weights = None
        if sample_weight is not None:
            weights = np.broadcast_to(np.asarray(sample_weight, dtype=np.float64), y.shape)
        shift = as_offset(offset, exposure, len(y), self._is_log)
        target, weights = expose(y, weights, shift, self._power, self._is_log)
        return X, target, weights

    def verify(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        offset: Any = None,
        exposure: Any = None,
    ) -> Verification:
        """Check the certificate against the data that were fitted.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)
        y : array-like of shape (n,)
        sample_weight, offset, exposure : as in ``fit``

        Returns
        -------
        verification : Verification
            True in a boolean context if every claim holds.
        """
        certificate = replace(self.certificate_, reading=None)
        try:
            data = self._verified_data(X, y, sample_weight, offset, exposure)
        except ValueError as error:
            return Verification((Check("data fit the model", "yes", str(error), False),))
        return self._tied(certificate.verify(*data))

    def explain(
        self,
        X: Any = None,
        y: Any = None,
        sample_weight: Any = None,
        *,
        offset: Any = None,
        exposure: Any = None,
        all: bool = False,
    ) -> Explanation:
        """Say what will be done with (X, y), or what was done in the last fit.

        Parameters
        ----------
        X : array-like or sparse matrix, optional
            With ``y``: plan a fit on these data without running it.
        y : array-like, optional
        sample_weight, offset, exposure : as in ``fit``
        all : bool, default=False
            List every solver with its reason, those for other losses and penalties too.

        Returns
        -------
        explanation : Explanation
            Prints as text; ``table()`` gives rows.
        """
        if X is None or y is None:
            return super().explain(X, y, sample_weight, all=all)
        self._check_parameters()
        problem = self._validated_problem(X, y, sample_weight, False, offset, exposure)[0]
        return replace(self._planned_explanation(problem, self._plan_for(problem)), all=all)

    # --- prediction -----------------------------------------------------------------------------

    def _shifted_scores(self, X: Any, offset: Any, exposure: Any) -> NDArray[Any]:
        scores = self._scores(X)
        shift = as_offset(offset, exposure, len(scores), self._is_log)
        return scores if shift is None else scores + shift.astype(scores.dtype)

    def predict(self, X: Any, *, offset: Any = None, exposure: Any = None) -> NDArray[Any]:
        """The mean of the target for new rows.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)
        offset, exposure : as in ``fit``
            Without them the mean per unit of exposure.

        Returns
        -------
        y : array of shape (n,)
        """
        return self._mean(self._shifted_scores(X, offset, exposure))

    def score(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        offset: Any = None,
        exposure: Any = None,
    ) -> float:
        """D^2, the share of the deviance that is explained.

        1 is the best; 0 is what the best constant reaches (with an exposure: the best constant per
        unit of it).

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)
        y : array-like of shape (n,)
        sample_weight, offset, exposure : as in ``fit``

        Returns
        -------
        score : float
        """
        scores = np.asarray(self._scores(X), dtype=np.float64)
        _, y, weights = self._verified_data(scores, y, sample_weight, offset, exposure)
        loss = self._loss()
        loss.check_target(y)
        s = np.ones(len(y)) if weights is None else weights
        mean = float(s @ y) / float(s.sum())
        level = np.full(len(y), np.log(mean) if self._is_log else mean)
        residual, null = float(s @ loss.value(y, scores)), float(s @ loss.value(y, level))
        return 1.0 - residual / null if null > 0 else float(residual == 0)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.positive_only = self._power > 0
        return tags
