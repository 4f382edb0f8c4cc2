"""Ridge regression whose strength is the most probable one."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from trueline.bayesian.evidence import log_evidence_gradient, maximise_evidence
from trueline.bayesian.spectrum import Spectrum
from trueline.estimators.bayesian.evidence import EvidenceRegressor, proven
from trueline.estimators.shared.parameters import KW_ONLY, given, parameters
from trueline.problem import Problem
from trueline.solution import Solution

__all__ = ["BayesianRidge"]

Array = NDArray[np.float64]

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
        if best.lambda_ / best.alpha < spectrum.floor and n * d <= _MOST_NUMBERS:
            # So weak a penalty leaves the smallest eigenvalues to decide: they need all digits.
            moments, spectrum = spectrum.moments, Spectrum.of_rows(problem)
            best = self._precisions(problem, spectrum)
            solver = "singular vectors of the rows"
            notes.append("too ill-conditioned for squares: the rows themselves were decomposed")
            spectrum = Spectrum(
                spectrum.values, spectrum.along, spectrum.outside, spectrum.vectors, 0.0, moments
            )
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
