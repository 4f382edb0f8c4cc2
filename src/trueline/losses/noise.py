r"""The noise whose negative log-likelihood a loss is, with the scale phi.

    log p(y | z) = -l(z) / phi + c(phi) + h(y)

    squared         normal, variance phi        c = -1/2 log(2 pi phi)
    absolute        Laplace, scale phi          c = -log(2 phi)
    quantile q      asymmetric Laplace          c = log(q (1 - q) / phi)
    maximum error   uniform on +- phi           log p = -log(2 phi) where abs(z - y) <= phi
    logistic        Bernoulli                   phi = 1,  c = h = 0        (softmax: categorical)
    Poisson         Poisson, mean exp(z)        phi = 1,  h = y log y - y - log y!
    gamma           shape k = 1/phi             c = k log k - k - log Gamma(k),    h = -log y
    deviance 3      inverse Gaussian            c = -1/2 log(2 pi phi),            h = -3/2 log y

The scale under which given rows are most likely follows from the mean m of their losses: 2 m, m, m
and the largest error in the first four lines, 2 m in the last one; for the gamma distribution
log(k) - digamma(k) = m. Tweedie distributions with a power between 1 and 2 have no such formula;
Huber's, hinge and epsilon-insensitive losses are not read as one here.

P. McCullagh, J. A. Nelder, "Generalized Linear Models", 2nd ed. (1989), table 2.1 and section 8.3.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import gammaln, psi, xlogy

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Noise:
    """The distribution of the targets of which a loss is the negative log-likelihood.

    Attributes
    ----------
    text : str
        Its name, and what phi is.
    level : callable
        c(phi).
    scale : callable, optional
        The most likely phi, from the mean loss; None where phi is one.
    of_target : callable, optional
        h(y); None where it is zero.
    """

    text: str
    level: Callable[[float], float]
    scale: Callable[[float], float] | None = None
    of_target: Callable[[Array], Array] | None = None


def _log(factor: float) -> Callable[[float], float]:
    return lambda phi: float(np.log(factor / phi))


def _same(mean: float) -> float:
    return mean


def _twice(mean: float) -> float:
    return 2.0 * mean


def _zero(phi: float) -> float:
    return 0.0


def _normal(phi: float) -> float:
    return float(-0.5 * np.log(2 * np.pi * phi))


def _of_counts(y: Array) -> Array:
    return xlogy(y, y) - y - gammaln(y + 1)


def _gamma_level(phi: float) -> float:
    k = 1.0 / phi
    return float(k * np.log(k) - k - gammaln(k))


# Shapes beyond these are noise of less than rounding, or of hundreds of orders of magnitude.
_SHAPES = -300.0, 30.0


def _gamma_scale(mean: float) -> float:
    """The solution of log(k) - digamma(k) = mean, 1/(2 k) for large k, 1/k for small ones."""

    def excess(log_k: float) -> float:
        k = np.exp(log_k)
        return float(log_k - psi(k) - mean)

    if not mean > 1e-12:
        return 2.0 * mean
    return float(np.exp(-brentq(excess, *_SHAPES, xtol=1e-14)))


NORMAL = Noise("normal noise of variance phi", _normal, _twice)
LAPLACE = Noise("Laplace noise of scale phi", _log(0.5), _same)
UNIFORM = Noise("uniform noise between -phi and phi", _log(0.5), _same)
BERNOULLI = Noise("Bernoulli, log odds linear", _zero)
CATEGORICAL = Noise("categorical, log odds linear", _zero)
POISSON = Noise("Poisson, variance equal to the mean", _zero, None, _of_counts)
GAMMA = Noise("gamma, variance phi mean^2", _gamma_level, _gamma_scale, lambda y: -np.log(y))
INVERSE_GAUSSIAN = Noise(
    "inverse Gaussian, variance phi mean^3", _normal, _twice, lambda y: -1.5 * np.log(y)
)


def asymmetric_laplace(q: float) -> Noise:
    """The noise whose most likely place is the quantile q."""
    return Noise(f"asymmetric Laplace noise of scale phi, q = {q:g}", _log(q * (1 - q)), _same)
