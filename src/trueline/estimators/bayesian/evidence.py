"""Regression by maximum evidence: Bayesian ridge, and automatic relevance determination.

The first finds the most probable strength, the second one strength for every column, and removes
the columns that it does not need. Both share the proof of their mean, and their predictions.
"""

from __future__ import annotations

import time
import warnings
from abc import abstractmethod
from contextlib import nullcontext
from dataclasses import replace
from functools import cached_property
from typing import Any, NoReturn, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from trueline.bayesian.evidence import (
    Hyperprior,
    Spectrum,
    log_evidence_gradient,
    maximise_evidence,
)
from trueline.bayesian.relevance import determine_relevance
from trueline.certificates.quadratic import certify_quadratic
from trueline.design import Design, as_design
from trueline.errors import squares_out_of_range
from trueline.estimators.shared.base import (
    Attributes,
    LinearEstimator,
    Seen,
    build_problem,
    fit_with_callbacks,
    watch,
)
from trueline.estimators.shared.likelihood import Likelihood
from trueline.estimators.shared.parameters import KW_ONLY, given, parameters
from trueline.estimators.shared.regressor import LinearRegressorBase, SingleTarget
from trueline.estimators.shared.validation import (
    dense_new_rows,
    refuse_nonfinite,
    takes_batches,
)
from trueline.losses import Squared
from trueline.moments import Moments
from trueline.numerics.blas import single_threaded_blas
from trueline.penalties import L2, NoPenalty
from trueline.plan import Plan
from trueline.problem import Array, Problem
from trueline.solution import PendingCertificate, Solution, Status
from trueline.solvers import (
    PendingProof,
    curvature_matrix,
    evidence_from_rows,
    factor_normal_equations,
)
from trueline.solvers.base import Facts
from trueline.trace import Trace
from trueline.wording import counted

_SMALL = 150


@parameters()
class EvidenceRegressor(Likelihood, SingleTarget, LinearRegressorBase, LinearEstimator):
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
    @takes_batches
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
                refuse_nonfinite(X, self)
                raise
            if not np.isfinite(solution.coef).all():
                self._refuse(X, None)
            solution.seconds = time.perf_counter() - start
            plan = self._plan_of(problem, solution)
            self._store(solution.extra["problem"], plan, solution, X.dtype, 1)
        self._keep_of_rows(X, y, sample_weight)
        return self

    def _dispersion(self) -> float:
        """The variance of the noise that was learned."""
        return 1.0 / float(self.alpha_)

    def _refuse(self, X: Any, cause: Exception | None) -> NoReturn:
        """Say why there is no answer: NaN, infinity, or squares out of range."""
        with np.errstate(invalid="ignore"):
            refuse_nonfinite(X, self)
        raise squares_out_of_range() from cause

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
    stated = replace(problem, penalty=L2(strength))
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
    kept: dict[str, Any] = {"moments": moments, "extra": {"problem": stated}}
    return Solution(W, b, Status.SOLVED, solver, n_iter, proof=proof, notes=notes, **kept)


_EPS = float(np.finfo(np.float64).eps)
# Designs up to this many numbers are rotated by their singular vectors if digits ask for it.
_MOST_NUMBERS = 50_000_000


@parameters()
class BayesianRidge(EvidenceRegressor):
    r"""Ridge regression whose strength maximises the evidence, with a proof.

    The model is::

        y_i = x_i.w + b + noise,   noise ~ Normal(0, 1 / (alpha s_i)),   w_j ~ Normal(0, 1 / lambda)

    with gamma priors for alpha (shape ``alpha_1``, rate ``alpha_2``) and lambda (``lambda_1``,
    ``lambda_2``). The two precisions maximise the probability of the targets; the coefficients are
    the posterior mean, which minimises over w and b::

        1/2 sum_i s_i (y_i - x_i.w - b)^2 + lambda / (2 alpha) ||w||^2

    A drop-in for ``sklearn.linear_model.BayesianRidge``. One decomposition of the Gram matrix (of
    the kernel matrix, where columns are more than rows) serves all iterations.

    Parameters
    ----------
    lambda_1, lambda_2 : float, default=1e-6
        Of the coefficients' precision.
    alpha_init, lambda_init : float, optional
        Where to start; by default ``1 / var(y)`` and 1.
    compute_score : bool, default=False
        Keep the log evidence of every iteration in ``scores_``.

    Attributes
    ----------
    lambda_ : float
        Precision of the coefficients.
    sigma_ : array of shape (d, d)
        Posterior covariance of the coefficients; formed when it is first looked at.
    scores_ : array, one more than ``n_iter_``
        Log evidence, if ``compute_score``.
    evidence_gradient_ : array of shape (2,)
        Derivatives of the log evidence in log(alpha) and log(lambda) at the end: how close to a
        maximum the iteration was stopped.
    certificate_ : Certificate
        Proof that the coefficients are the best ones for the two precisions.

    Examples
    --------
    >>> from trueline import BayesianRidge
    >>> model = BayesianRidge().fit([[0, 0], [1, 1], [2, 2]], [0, 1, 2])
    >>> model.predict([[1, 1]]).round(6)
    array([1.])
    """

    _: KW_ONLY
    tol: float = given(1.0e-3, "(0, inf)")
    alpha_init: float | None = given(None, None, "[0, inf)")
    lambda_init: float | None = given(None, None, "[0, inf)")

    def _formula(self) -> str:
        return (
            "sum_i s_i [1/2 (z - y)^2] + r/2 ||w||^2,  r = lambda_ / alpha_ = "
            f"{float(self.lambda_) / float(self.alpha_):.6g} by maximum evidence"
        )

    def _maximise(self, problem: Problem, X: Any) -> Solution:
        n, d = problem.design.shape
        spectrum = Spectrum.of(problem)
        solver = "eigenvectors of the Gram matrix" if n > d else "eigenvectors of the kernel matrix"
        best = self._precisions(problem, spectrum)
        notes = []
        can_rotate = n * d <= _MOST_NUMBERS and not problem.design.is_sequential
        if best.lambda_ / best.alpha < spectrum.floor and can_rotate:
            # So weak a penalty leaves the smallest eigenvalues to decide: they need all digits.
            moments, spectrum = spectrum.moments, Spectrum.of_rows(problem)
            best = self._precisions(problem, spectrum)
            solver = "singular vectors of the rows"
            notes.append("too ill-conditioned for squares: the rows themselves were decomposed")
            spectrum = replace(spectrum, moments=moments)
        if not best.settled:
            self._warn_unsettled(best.n_iter)
        dtype = X.dtype
        self.alpha_ = dtype.type(best.alpha)
        self.lambda_ = dtype.type(best.lambda_)
        self.scores_: Any = np.array(best.scores) if self.compute_score else []
        offset = np.zeros(d)
        if problem.fit_intercept:
            moments = spectrum.moments
            offset = (
                problem.design.column_means(problem.weights) if moments is None else moments.x_mean
            )
        self.X_offset_, self.X_scale_ = offset.astype(dtype), np.ones(d, dtype=dtype)
        self.evidence_gradient_ = log_evidence_gradient(
            spectrum, problem.total_weight, best.alpha, best.lambda_, self._hyperprior()
        )
        self._directions = spectrum.vectors
        self._variances = 1.0 / (best.alpha * spectrum.values + best.lambda_)
        self.__dict__.pop("sigma_", None)
        strength = best.lambda_ / best.alpha
        return proven(problem, best.coef, strength, spectrum.moments, solver, best.n_iter, notes)

    def _precisions(self, problem: Problem, spectrum: Spectrum) -> Any:
        alpha, lambda_ = self.alpha_init, self.lambda_init
        if alpha is None:
            y, weights = problem.target[:, 0], problem.weights
            level = float(np.average(y, weights=weights))
            alpha = 1.0 / (float(np.average((y - level) ** 2, weights=weights)) + _EPS)
        return maximise_evidence(
            spectrum,
            problem.total_weight,
            float(alpha),
            1.0 if lambda_ is None else float(lambda_),
            self._hyperprior(),
            self.max_iter,
            float(self.tol),
            self.compute_score,
        )

    @cached_property
    def sigma_(self) -> NDArray[Any]:
        """Posterior covariance of the coefficients, of shape (d, d)."""
        if "_directions" not in self.__dict__:
            raise AttributeError("sigma_ exists after fit.")
        R, d = self._directions, len(self._directions)
        if R.shape[1] == d:
            sigma = (R * self._variances) @ R.T
        else:  # directions of which the rows say nothing keep the prior's variance
            prior = 1.0 / float(self.lambda_)
            sigma = (R * (self._variances - prior)) @ R.T
            sigma.flat[:: d + 1] += prior
        return sigma.astype(self.coef_.dtype, copy=False)

    def _spread(self, X: Array) -> Array:
        check_is_fitted(self)
        along = X @ self._directions
        inside = (along**2) @ self._variances
        if self._directions.shape[1] == len(self._directions):
            return inside
        beside = np.maximum(np.einsum("ij,ij->i", X, X) - (along**2).sum(axis=1), 0.0)
        return np.asarray(inside + beside / float(self.lambda_))


@parameters()
class ARDRegression(EvidenceRegressor):
    r"""Regression with one prior precision per coefficient, all chosen by the evidence.

    The model is::

        y_i = x_i.w + b + noise,   noise ~ Normal(0, 1 / alpha),   w_j ~ Normal(0, 1 / lambda_j)

    with gamma priors for alpha and all lambda_j. Where the data do not need a coefficient its
    precision grows beyond ``threshold_lambda``, and the coefficient is zero. The others are the
    posterior mean, which minimises over w and b::

        1/2 sum_i (y_i - x_i.w - b)^2 + sum_j lambda_j / (2 alpha) w_j^2

    A drop-in for ``sklearn.linear_model.ARDRegression``.

    Parameters
    ----------
    lambda_1, lambda_2 : float, default=1e-6
        Of the coefficients' precisions.
    compute_score : bool, default=False
        Keep the objective of every iteration in ``scores_``.
    threshold_lambda : float, default=1e4
        Coefficients whose precision exceeds it are removed.

    Attributes
    ----------
    lambda_ : array of shape (d,)
        Precisions of the coefficients.
    sigma_ : array of shape (m, m)
        Posterior covariance of the coefficients that remain.
    scores_ : list of float
    certificate_ : Certificate
        Proof that the remaining coefficients are the best ones for these precisions; it is about
        the remaining columns alone.

    Examples
    --------
    >>> import numpy as np
    >>> from trueline import ARDRegression
    >>> X = np.random.default_rng(0).normal(size=(50, 4))
    >>> y = 2 * X[:, 1] + 0.1 * np.random.default_rng(1).normal(size=50)
    >>> ARDRegression().fit(X, y).coef_.round(1) + 0.0
    array([0., 2., 0., 0.])
    """

    _: KW_ONLY
    tol: float = given(1.0e-3, "[0, inf)")
    threshold_lambda: float = given(1.0e4, "[0, inf)")

    @takes_batches
    def fit(self, X: Any, y: Any) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)
            At least two rows.
        y : array-like of shape (n,)

        Returns
        -------
        self : object
        """
        return super().fit(X, y)

    def _formula(self) -> str:
        kept, d = int(self._kept().sum()), len(self.lambda_)
        return (
            "sum_i [1/2 (z - y)^2] + sum_j lambda_j / (2 alpha_) w_j^2, "
            f"{kept} of {d} columns kept by maximum evidence"
        )

    def _maximise(self, problem: Problem, X: Any) -> Solution:
        n, d = problem.design.shape
        if n < 2:
            raise ValueError(
                f"Found array with {n} sample(s) (shape={X.shape}) while a minimum of 2 is "
                "required by ARDRegression."
            )
        found = determine_relevance(
            problem,
            self._hyperprior(),
            float(self.threshold_lambda),
            self.max_iter,
            float(self.tol),
            self.compute_score,
        )
        if not found.settled:
            self._warn_unsettled(found.n_iter)
        dtype, keep = X.dtype, found.keep
        self.alpha_ = dtype.type(found.alpha)
        self.lambda_ = found.lambda_.astype(dtype)
        # Rounding to single precision must not move a precision across the threshold.
        self._keep = keep
        self.sigma_ = found.covariance.astype(dtype)
        self.scores_ = found.scores
        self.X_scale_ = np.ones(d, dtype=dtype)
        offset = problem.design.column_means(None) if problem.fit_intercept else np.zeros(d)
        self.X_offset_ = offset.astype(dtype)
        columns = (X.tocsc() if sp.issparse(X) else X)[:, keep]
        part = replace(problem, design=as_design(columns), weights=None)
        moments = None
        if n >= int(keep.sum()) > 0:
            moments = Moments.from_rows(part.design, part.target, None)
        strengths: Any = found.lambda_[keep, None] / found.alpha if keep.any() else 1.0
        solver = "systems of one unknown per column" if n >= d else "systems of one unknown per row"
        notes = [f"{int(keep.sum())} of {d} columns kept"]
        return proven(part, found.coef[keep], strengths, moments, solver, found.n_iter, notes)

    def _kept(self) -> NDArray[np.bool_]:
        return self._keep

    def _fitted_attributes(self, W: Any, b: Any, y_ndim: int, fit_intercept: bool) -> Attributes:
        coef = np.zeros(len(self.lambda_), dtype=W.dtype)
        coef[self._kept()] = W[:, 0]
        return {"coef_": coef, "intercept_": b[0] if fit_intercept else 0.0}

    def _coefficients(self) -> tuple[Array, Array]:
        W, b = super()._coefficients()
        return W[self._kept()], b

    def _verified_design(self, X: Any) -> Any:
        if not isinstance(X, Design):
            X = X.tocsc() if hasattr(X, "tocsc") else np.asarray(X)
        return X[:, self._kept()]

    def _spread(self, X: Array) -> Array:
        kept = X[:, self._kept()]
        return np.einsum("ij,ij->i", kept @ np.asarray(self.sigma_, dtype=np.float64), kept)
