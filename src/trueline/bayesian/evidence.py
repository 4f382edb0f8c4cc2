r"""The evidence of ridge regression, and the precisions that maximise it.

With noise of precision alpha and coefficients of precision lambda, both with gamma priors (shapes
a1, l1 and rates a2, l2), the log evidence of n rows with the spectrum e is

    l1 log(lambda) - l2 lambda + a1 log(alpha) - a2 alpha
    + 1/2 [ d log(lambda) + n log(alpha) - alpha |y - X w|^2 - lambda |w|^2
            - sum_j log(lambda + alpha e_j) - n log(2 pi) ]

at w = w(lambda / alpha). Setting its derivatives to zero gives the fixed point that is iterated,
with gamma the number of coefficients that the data determine
(D. J. C. MacKay, "Bayesian interpolation", Neural Comput. 4 (1992) 415-447;
M. E. Tipping, J. Mach. Learn. Res. 1 (2001) 211-244):

    gamma  = sum_k alpha e_k / (lambda + alpha e_k)
    lambda = (gamma + 2 l1) / (|w|^2 + 2 l2),      alpha = (n - gamma + 2 a1) / (|y - X w|^2 + 2 a2)

Every round costs the number of columns squared at most; the rows are not read again.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from trueline.bayesian.spectrum import Spectrum

__all__ = ["Hyperprior", "Maximum", "log_evidence", "log_evidence_gradient", "maximise_evidence"]

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Hyperprior:
    """Shapes and rates of the gamma priors of the noise's and the coefficients' precision."""

    noise_shape: float
    noise_rate: float
    coef_shape: float
    coef_rate: float


@dataclass(frozen=True)
class Maximum:
    """Where the fixed point came to rest.

    Attributes
    ----------
    alpha, lambda_ : float
        Precisions of noise and coefficients.
    coef : array of shape (d,)
        The posterior mean for them.
    n_iter : int
    scores : list of float
        The log evidence before every round and at the end, if asked for.
    settled : bool
        Whether the coefficients moved by less than the tolerance in the last round.
    """

    alpha: float
    lambda_: float
    coef: Array
    n_iter: int
    scores: list[float]
    settled: bool


def maximise_evidence(
    spectrum: Spectrum,
    rows: float,
    alpha: float,
    lambda_: float,
    prior: Hyperprior,
    max_iter: int,
    tol: float,
    with_scores: bool,
) -> Maximum:
    """Iterate the fixed point until the coefficients move by less than tol, summed up.

    Parameters
    ----------
    spectrum : Spectrum
    rows : float
        n, the sum of the weights.
    alpha, lambda_ : float
        Where to start.
    prior : Hyperprior
    max_iter : int
    tol : float
    with_scores : bool
    """
    e = spectrum.values
    before = None
    scores: list[float] = []
    settled = False
    n_iter = 0
    while n_iter < max_iter:
        n_iter += 1
        strength = lambda_ / alpha
        coef = spectrum.coefficients(strength)
        norm, error = spectrum.squares(strength)
        if with_scores:
            scores.append(log_evidence(spectrum, rows, alpha, lambda_, prior))
        gamma = float((alpha * e / (lambda_ + alpha * e)).sum())
        lambda_ = (gamma + 2 * prior.coef_shape) / (norm + 2 * prior.coef_rate)
        alpha = (rows - gamma + 2 * prior.noise_shape) / (error + 2 * prior.noise_rate)
        if not (0 < alpha < math.inf and 0 < lambda_ < math.inf):
            raise ValueError(
                f"The precisions of noise and coefficients became {alpha:.3g} and {lambda_:.3g}: "
                "the target is fitted without any error, or is constant. Give the gamma priors "
                "positive rates (alpha_2, lambda_2) and shapes (alpha_1, lambda_1)."
            )
        if before is not None and float(np.abs(before - coef).sum()) < tol:
            settled = True
            break
        before = coef
    if with_scores:
        scores.append(log_evidence(spectrum, rows, alpha, lambda_, prior))
    coef = spectrum.coefficients(lambda_ / alpha)
    return Maximum(alpha, lambda_, coef, n_iter, scores, settled)


def log_evidence(
    spectrum: Spectrum, rows: float, alpha: float, lambda_: float, prior: Hyperprior
) -> float:
    """The log evidence of the module's text."""
    norm, error = spectrum.squares(lambda_ / alpha)
    determined = spectrum.values
    flat = len(spectrum.vectors) - len(determined)  # directions of which the rows say nothing
    determinant = np.log(lambda_ + alpha * determined).sum() + flat * math.log(lambda_)
    value = prior.coef_shape * math.log(lambda_) - prior.coef_rate * lambda_
    value += prior.noise_shape * math.log(alpha) - prior.noise_rate * alpha
    value += 0.5 * (
        len(spectrum.vectors) * math.log(lambda_)
        + rows * math.log(alpha)
        - alpha * error
        - lambda_ * norm
        - float(determinant)
        - rows * math.log(2 * math.pi)
    )
    return value


def log_evidence_gradient(
    spectrum: Spectrum, rows: float, alpha: float, lambda_: float, prior: Hyperprior
) -> Array:
    """Derivatives of the log evidence in log(alpha) and log(lambda)."""
    norm, error = spectrum.squares(lambda_ / alpha)
    e = spectrum.values
    gamma = float((alpha * e / (lambda_ + alpha * e)).sum())
    in_alpha = 0.5 * (rows - gamma - alpha * error) + prior.noise_shape - prior.noise_rate * alpha
    in_lambda = 0.5 * (gamma - lambda_ * norm) + prior.coef_shape - prior.coef_rate * lambda_
    return np.array([in_alpha, in_lambda])
