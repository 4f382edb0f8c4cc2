r"""Automatic relevance determination: one precision per coefficient.

Coefficient j has the prior Normal(0, 1 / lambda_j), all lambda_j and the noise's precision alpha
have gamma priors, and the log evidence is maximised by the fixed point

    Sigma    = (diag(lambda) + alpha X^T X)^{-1},      w = alpha Sigma X^T y
    lambda_j = (1 - lambda_j Sigma_jj + 2 l1) / (w_j^2 + 2 l2)
    alpha    = (n - sum_j (1 - lambda_j Sigma_jj) + 2 a1) / (|y - X w|^2 + 2 a2)

(D. J. C. MacKay, ASHRAE Trans. 100 (1994) 1053-1062; M. E. Tipping, J. Mach. Learn. Res. 1 (2001)
211-244). Coefficients whose precision exceeds a threshold are zero from then on.

Of many rows only the moments are needed. With fewer rows than remaining columns the system has one
unknown per row (the matrix inversion lemma), and Sigma is formed at the end alone:

    C = I / alpha + X diag(1 / lambda) X^T,     w = diag(1 / lambda) X^T C^{-1} y
    Sigma_jj = 1 / lambda_j - x_j^T C^{-1} x_j / lambda_j^2
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from scipy import linalg
from scipy.linalg import lapack

from trueline.bayesian.evidence import Hyperprior, outside_square
from trueline.moments import Moments
from trueline.problem import Problem

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

_EPS = float(np.finfo(np.float64).eps)


@dataclass(frozen=True)
class Relevance:
    """Where the fixed point came to rest.

    Attributes
    ----------
    coef : array of shape (d,)
    alpha : float
    lambda_ : array of shape (d,)
    covariance : array of shape (m, m)
        Sigma of the coefficients that remain.
    keep : array of bool of shape (d,)
        Which these are.
    n_iter : int
    scores : list of float
    settled : bool
    """

    coef: Array
    alpha: float
    lambda_: Array
    covariance: Array
    keep: Mask
    n_iter: int
    scores: list[float]
    settled: bool


class _Posterior(Protocol):
    """Posterior of the kept coefficients for given precisions."""

    rows: float
    start: float

    def solve(self, alpha: float, lambda_: Array, keep: Mask) -> tuple[Array, Array, float]:
        """w and the diagonal of Sigma on the kept columns, and log |Sigma|."""

    def error(self, w: Array, keep: Mask) -> float:
        """|y - X w|^2."""

    def covariance(self, alpha: float, lambda_: Array, keep: Mask) -> Array:
        """Sigma on the kept columns."""


class _FromMoments:
    """Systems of one unknown per column; the rows are not read again."""

    def __init__(self, problem: Problem) -> None:
        moments = Moments.from_rows(problem.design, problem.target, problem.weights)
        if not moments.is_finite():
            raise FloatingPointError("the sums of squares of the data are not finite")
        self.about = moments if problem.fit_intercept else moments.about_zero()
        self.rows = moments.weight
        self.start = float(moments.y_square[0]) / moments.weight
        values, vectors = linalg.eigh(self.about.gram, check_finite=False)
        known = values > (self.about.unit + len(values) * _EPS) * max(float(values[-1]), 0.0)
        along = vectors[:, known].T @ self.about.cross[:, 0]
        # Residuals split into what no coefficients reach and what these leave of the rest.
        self.best = vectors[:, known] @ (along / values[known])
        self.outside = outside_square(problem, self.about, self.best)

    def solve(self, alpha: float, lambda_: Array, keep: Mask) -> tuple[Array, Array, float]:
        sigma, logdet = _inverse(self._system(alpha, lambda_, keep))
        return alpha * (sigma @ self.about.cross[keep, 0]), np.diag(sigma), -logdet

    def error(self, w: Array, keep: Mask) -> float:
        step = -self.best
        step[keep] += w
        return self.outside + max(float(step @ self.about.gram @ step), 0.0)

    def covariance(self, alpha: float, lambda_: Array, keep: Mask) -> Array:
        return _inverse(self._system(alpha, lambda_, keep))[0]

    def _system(self, alpha: float, lambda_: Array, keep: Mask) -> Array:
        system = alpha * self.about.gram[np.ix_(keep, keep)]
        system.flat[:: len(system) + 1] += lambda_[keep]
        return system


class _FromRows:
    """Systems of one unknown per row, until fewer columns than rows remain."""

    def __init__(self, problem: Problem) -> None:
        X = problem.design.toarray()
        y = problem.target[:, 0]
        level = float(y.mean()) if problem.fit_intercept else 0.0
        mean = X.mean(axis=0) if problem.fit_intercept else np.zeros(X.shape[1])
        self.X, self.y = X - mean, y - level
        self.rows = float(len(y))
        self.start = float(np.var(y))

    def solve(self, alpha: float, lambda_: Array, keep: Mask) -> tuple[Array, Array, float]:
        X, scale = self.X[:, keep], 1.0 / lambda_[keep]
        if X.shape[1] <= X.shape[0]:
            sigma, logdet = _inverse(_direct(X, alpha, lambda_[keep]))
            return alpha * (sigma @ (X.T @ self.y)), np.diag(sigma), -logdet
        factor = self._factor(X, alpha, scale)
        w = scale * (X.T @ linalg.cho_solve((factor, True), self.y, check_finite=False))
        half = linalg.solve_triangular(factor, X, lower=True, check_finite=False)
        diagonal = scale - scale**2 * np.einsum("ij,ij->j", half, half)
        # |Sigma| = |C|^-1 alpha^-n prod 1 / lambda.
        logdet = np.log(scale).sum() - 2 * np.log(np.diag(factor)).sum()
        return w, diagonal, float(logdet) - len(self.y) * math.log(alpha)

    def error(self, w: Array, keep: Mask) -> float:
        residual = self.y - self.X[:, keep] @ w
        return float(residual @ residual)

    def covariance(self, alpha: float, lambda_: Array, keep: Mask) -> Array:
        X, scale = self.X[:, keep], 1.0 / lambda_[keep]
        if X.shape[1] <= X.shape[0]:
            return _inverse(_direct(X, alpha, lambda_[keep]))[0]
        half = linalg.solve_triangular(
            self._factor(X, alpha, scale), X * scale, lower=True, check_finite=False
        )
        sigma = -(half.T @ half)
        sigma.flat[:: len(sigma) + 1] += scale
        return sigma

    def _factor(self, X: Array, alpha: float, scale: Array) -> Array:
        C = (X * scale) @ X.T
        C.flat[:: len(C) + 1] += 1.0 / alpha
        return np.asarray(linalg.cholesky(C, lower=True, overwrite_a=True, check_finite=False))


def _direct(X: Array, alpha: float, lambda_: Array) -> Array:
    system = alpha * (X.T @ X)
    system.flat[:: len(system) + 1] += lambda_
    return system


def _inverse(system: Array) -> tuple[Array, float]:
    """The inverse of a positive definite matrix, and the log of its determinant."""
    factor, failed = lapack.dpotrf(system, lower=1)
    if not failed:
        logdet = 2 * float(np.log(np.diag(factor)).sum())
        inverse, failed = lapack.dpotri(factor, lower=1, overwrite_c=1)
    if failed:  # definite only to rounding: its pseudo-inverse
        values, vectors = linalg.eigh(system)
        good = values > len(values) * _EPS * values[-1]
        scaled = vectors[:, good] / values[good]
        return scaled @ vectors[:, good].T, float(np.log(values[good]).sum())
    lower = np.tril(inverse)
    return lower + np.tril(lower, -1).T, logdet


def determine_relevance(
    problem: Problem,
    prior: Hyperprior,
    threshold: float,
    max_iter: int,
    tol: float,
    with_scores: bool,
) -> Relevance:
    """Iterate until the coefficients move by less than tol, summed up, or all are gone."""
    n, d = problem.design.shape
    posterior: _Posterior = _FromMoments(problem) if n >= d else _FromRows(problem)
    alpha = 1.0 / (posterior.start + _EPS)
    lambda_, coef = np.ones(d), np.zeros(d)
    keep = np.ones(d, dtype=bool)
    before: Array | None = None
    scores: list[float] = []
    settled = False
    n_iter = 0
    while n_iter < max_iter:
        n_iter += 1
        w, diagonal, logdet = posterior.solve(alpha, lambda_, keep)
        error = posterior.error(w, keep)
        coef = np.zeros(d)
        coef[keep] = w
        determined = 1.0 - lambda_[keep] * diagonal
        lambda_[keep] = (determined + 2 * prior.coef_shape) / (w**2 + 2 * prior.coef_rate)
        gamma = float(determined.sum())
        alpha = (posterior.rows - gamma + 2 * prior.noise_shape) / (error + 2 * prior.noise_rate)
        _check(alpha, lambda_)
        keep = lambda_ < threshold
        coef[~keep] = 0.0
        if with_scores:
            scores.append(_score(coef, alpha, lambda_, error, logdet, posterior.rows, prior))
        if before is not None and float(np.abs(before - coef).sum()) < tol:
            settled = True
            break
        before = coef
        if not keep.any():
            settled = True
            break
    covariance = np.empty((0, 0))
    if keep.any():
        coef = np.zeros(d)
        coef[keep] = posterior.solve(alpha, lambda_, keep)[0]
        covariance = posterior.covariance(alpha, lambda_, keep)
    return Relevance(coef, alpha, lambda_, covariance, keep, n_iter, scores, settled)


def _check(alpha: float, lambda_: Array) -> None:
    if 0 < alpha < math.inf and (lambda_ > 0).all() and np.isfinite(lambda_).all():
        return
    raise ValueError(
        "A precision became zero or infinite: the target is fitted without any error, or a "
        "coefficient vanished. Give the gamma priors positive rates (alpha_2, lambda_2) and shapes "
        "(alpha_1, lambda_1)."
    )


def _score(
    coef: Array,
    alpha: float,
    lambda_: Array,
    error: float,
    logdet: float,
    rows: float,
    prior: Hyperprior,
) -> float:
    """The objective after a round: new precisions, and the posterior that led to them."""
    value = float((prior.coef_shape * np.log(lambda_) - prior.coef_rate * lambda_).sum())
    value += prior.noise_shape * math.log(alpha) - prior.noise_rate * alpha
    value += 0.5 * (logdet + rows * math.log(alpha) + float(np.log(lambda_).sum()))
    return value - 0.5 * (alpha * error + float((lambda_ * coef**2).sum()))
