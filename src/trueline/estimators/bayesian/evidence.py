"""What regressors by maximum evidence share: the proof of their mean, and their predictions."""

from __future__ import annotations

import time
import warnings
from abc import abstractmethod
from contextlib import nullcontext
from typing import Any, NoReturn, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import assert_all_finite

from trueline.bayesian.evidence import Hyperprior
from trueline.certificates.quadratic import certify_quadratic
from trueline.estimators.shared.base import LinearEstimator, build_problem
from trueline.estimators.shared.callbacks import Seen, fit_with_callbacks, watch
from trueline.estimators.shared.parameters import KW_ONLY, given, parameters
from trueline.estimators.shared.regressor import LinearRegressorBase, SingleTarget
from trueline.estimators.shared.validation import dense_new_rows
from trueline.losses import Squared
from trueline.moments import Moments
from trueline.numerics.blas import single_threaded_blas
from trueline.penalties import L2, NoPenalty, Penalty
from trueline.plan import Plan
from trueline.problem import Problem
from trueline.solution import PendingCertificate, Solution, Status
from trueline.solvers.base import Facts
from trueline.solvers.least_squares.cholesky import PendingProof
from trueline.solvers.least_squares.normal_equations import factor_normal_equations
from trueline.solvers.least_squares.quadratic import curvature_matrix, evidence_from_rows
from trueline.trace import Trace
from trueline.wording import counted

__all__ = ["EvidenceRegressor", "proven"]

Array = NDArray[np.float64]

_SMALL = 150


@parameters()
class EvidenceRegressor(SingleTarget, LinearRegressorBase, LinearEstimator):
    """Gaussian coefficients and noise whose precisions are those that make the targets probable.

    Parameters
    ----------
    max_iter : int, default=300
    tol : float, default=1e-3
        Stop when the sum of changes of the coefficients falls below it.
    alpha_1, alpha_2 : float, default=1e-6
        Shape and rate of the gamma prior of the noise's precision.
    fit_intercept : bool, default=True
        The intercept has a flat prior; ``sigma_`` does not contain it.
    copy_X : bool, default=True
        Accepted for compatibility: X is never modified.
    verbose : bool, default=False
        Accepted for compatibility: see :meth:`explain`.

    Attributes
    ----------
    coef_ : array of shape (d,)
    intercept_ : float
    alpha_ : float
        Precision of the noise.
    n_iter_ : int
    X_offset_, X_scale_ : arrays of shape (d,)
        Means of the columns, and ones.
    solver_ : str
    n_features_in_ : int
    feature_names_in_ : array of str
    """

    _: KW_ONLY
    max_iter: int = given(300, "int [1, inf)")
    alpha_1: float = given(1.0e-6, "[0, inf)")
    alpha_2: float = given(1.0e-6, "[0, inf)")
    lambda_1: float = given(1.0e-6, "[0, inf)")
    lambda_2: float = given(1.0e-6, "[0, inf)")
    compute_score: bool = False
    fit_intercept: bool = True
    copy_X: bool = True
    verbose: bool = given(False, "verbose")

    def _problem(self, X: Any, Y: Array, weights: Array | None) -> Problem:
        return build_problem(X, Y, weights, Squared(), NoPenalty(), self.fit_intercept)

    def _hyperprior(self) -> Hyperprior:
        return Hyperprior(
            float(self.alpha_1), float(self.alpha_2), float(self.lambda_1), float(self.lambda_2)
        )

    @abstractmethod
    def _maximise(self, problem: Problem, X: Any) -> Solution:
        """Find the precisions, store them, and solve for the coefficients with a proof."""

    @abstractmethod
    def _spread(self, X: Array) -> Array:
        """x^T Sigma x for centred rows."""

    @fit_with_callbacks
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)
        y : array-like of shape (n,)
        sample_weight : float or array-like of shape (n,), optional
            Weight 2 counts a row twice, weight 0 leaves it out.

        Returns
        -------
        self : object
        """
        self._check_parameters()
        problem, X, y = self._validated_problem(X, y, sample_weight, reset=True)
        if X.shape[0] < 1:
            raise ValueError("No row is left to fit.")
        with watch(self, Trace(), Seen(X, y, sample_weight)):
            start = time.perf_counter()
            try:
                # Many small products: threads would spend their time waiting for each other.
                alone = single_threaded_blas() if min(X.shape) <= _SMALL else nullcontext()
                with alone, np.errstate(over="ignore", invalid="ignore", divide="ignore"):
                    solution = self._maximise(problem, X)
            except (FloatingPointError, np.linalg.LinAlgError) as error:
                self._refuse(X, error)
            except ValueError:
                assert_all_finite(X, input_name="X", estimator_name=type(self).__name__)
                raise
            if not np.isfinite(solution.coef).all():
                self._refuse(X, None)
            solution.seconds = time.perf_counter() - start
            plan = self._plan_of(problem, solution)
            self._store(solution.extra["problem"], plan, solution, X.dtype, 1)
        return self

    def _refuse(self, X: Any, cause: Exception | None) -> NoReturn:
        """Say why there is no answer: NaN, infinity, or squares out of range."""
        with np.errstate(invalid="ignore"):
            assert_all_finite(X, input_name="X", estimator_name=type(self).__name__)
        raise ValueError(
            "The squares of these values overflow or vanish in double precision: multiply the "
            "columns or the target by a power of ten."
        ) from cause

    def _plan_of(self, problem: Problem, solution: Solution) -> Plan:
        reason = "the evidence is maximised by a fixed point of the two kinds of precision"
        return Plan(solution.solver, reason, self._formula(), Facts.of(problem), ())

    @abstractmethod
    def _formula(self) -> str:
        """What the coefficients minimise, in plain text."""

    def _warn_unsettled(self, n_iter: int) -> None:
        warnings.warn(
            f"{type(self).__name__} stopped after {counted(n_iter, 'iteration')} while the "
            "coefficients still moved by more than tol; they are proven to be those of the "
            "precisions reached. Raise max_iter, or tol.",
            ConvergenceWarning,
            stacklevel=6,
        )

    def predict(self, X: Any, return_std: bool = False) -> Any:
        """Predict, with the standard deviation of a new target if asked for.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)
        return_std : bool, default=False

        Returns
        -------
        y : array of shape (n,)
        std : array of shape (n,)
            If ``return_std``.
        """
        mean = super().predict(X)
        if not return_std:
            return mean
        variance = self._spread(dense_new_rows(self, X) - self.X_offset_) + 1.0 / float(self.alpha_)
        return mean, np.sqrt(variance).astype(self.coef_.dtype)


def proven(
    problem: Problem,
    coef: Array,
    strength: float | Array,
    moments: Moments | None,
    solver: str,
    n_iter: int,
    notes: list[str],
) -> Solution:
    """The solution of ridge regression with the strengths found, and its proof.

    From moments the coefficients are corrected by one Newton step, so that no digits depend on how
    they were found, and the proof is left for later.
    """
    penalty: Penalty = L2(strength)
    stated = Problem(
        problem.design,
        problem.target,
        problem.loss,
        penalty,
        problem.fit_intercept,
        problem.weights,
    )
    W = coef[:, None].copy()
    proof: PendingCertificate | Any = None
    if moments is not None:
        about = moments if problem.fit_intercept else moments.about_zero()
        factor = factor_normal_equations(about, curvature_matrix(stated)[:, 0])
        if factor is not None and factor.coercivity >= 0.5:
            gradient = about.gradient(W)[0] + curvature_matrix(stated) * W
            W = W - factor.solve(gradient)
            b = about.y_mean - about.x_mean @ W
            pending = PendingProof(stated, about, W, b, factor)
            proof = pending if pending.needs_rows() else pending.without_rows()
            if proof is pending:
                proof = pending.certificate()
    if proof is None:
        mean = np.zeros(len(coef))
        b = np.zeros(1)
        if problem.fit_intercept:
            mean = problem.design.column_means(problem.weights)
            b = problem.weigh(problem.target).sum(axis=0) / problem.total_weight - mean @ W
        strengths = curvature_matrix(stated)[:, 0]
        basis = np.ones(len(coef)) if np.ndim(strength) == 0 else 1.0 / np.sqrt(strengths)
        floor = float((strengths * basis**2).min(initial=np.inf)) * (1 - 1e-12)
        evidence = evidence_from_rows(stated, W, b, mean, basis, floor)
        proof = certify_quadratic(stated, W, b, evidence)
    return Solution(
        W,
        b,
        Status.SOLVED,
        solver,
        n_iter=n_iter,
        proof=proof,
        notes=notes,
        moments=moments,
        extra={"problem": stated},
    )
