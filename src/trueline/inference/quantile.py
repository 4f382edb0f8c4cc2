r"""The covariance of the coefficients of quantile regression.

With residuals e_i = y_i - x_i.beta (the constant is one of the columns), q the quantile, f the
density of the errors at zero and S = sum_i s_i the number of rows, in large samples beta is normal
about its true value with covariance

    iid       q (1 - q) / f^2  (X^T X)^-1
    robust    (X^T X)^-1 (X^T D X) (X^T X)^-1,    D_ii = (q / f)^2 if e_i > 0, else ((1 - q) / f)^2
    kernel    q (1 - q) H^-1 (X^T X) H^-1,        H = sum_i K(e_i / h) / h x_i x_i^T

The first two estimate one density for all rows, f = 1/(S h) sum_i K(e_i / h); the third lets it
differ from row to row, as it does where the spread of y depends on x. The bandwidth is

    h = min(sd(y), IQR(e) / 1.34) (z(q + a) - z(q - a)),      z the normal quantile function,

with a by Hall and Sheather, Bofinger, or Chamberlain. A row of weight s counts as s rows.

R. Koenker and G. Bassett, "Regression quantiles", Econometrica 46 (1978) 33-50 (iid);
W. H. Greene, "Econometric Analysis", 6th ed. (2008), section 14.3.2 (robust);
J. L. Powell, "Estimation of monotonic regression models under quantile restrictions" (1991)
(kernel); P. Hall and S. J. Sheather, J. R. Statist. Soc. B 50 (1988) 381-391; E. Bofinger, Austral.
J. Statist. 17 (1975) 1-7; G. Chamberlain, "Quantile regression, censoring, and the structure of
wages" (1994).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cho_solve, cholesky
from scipy.special import ndtri

from trueline.design import Design
from trueline.numerics.gram import weighted_gram

__all__ = ["BANDWIDTHS", "KERNELS", "KINDS", "Estimate", "quantile_covariance"]

Array = NDArray[np.float64]

_BLOCK_ROWS = 16384
# Of columns scaled to equal norm: an eigenvalue this small means that they are dependent.
_DEPENDENT = 1e-12
KINDS = ("robust", "iid", "kernel")


def _parzen(u: Array) -> Array:
    size = np.abs(u)
    inner = 4 / 3 - 8 * size**2 + 8 * size**3
    return np.where(size <= 0.5, inner, 8 / 3 * np.maximum(1 - size, 0.0) ** 3)


#: Kernels: densities that are symmetric about zero.
KERNELS: dict[str, Callable[[Array], Array]] = {
    "epanechnikov": lambda u: 0.75 * np.maximum(1 - u**2, 0.0),
    "cosine": lambda u: np.where(np.abs(u) <= 0.5, 1 + np.cos(2 * np.pi * u), 0.0),
    "gaussian": lambda u: np.exp(-0.5 * u**2) / np.sqrt(2 * np.pi),
    "parzen": _parzen,
    "biweight": lambda u: 15 / 16 * np.maximum(1 - u**2, 0.0) ** 2,
}


def _normal_density(z: float) -> float:
    return float(np.exp(-0.5 * z * z) / np.sqrt(2 * np.pi))


def _hall_sheather(n: float, q: float) -> float:
    z = float(ndtri(q))
    ratio = 1.5 * _normal_density(z) ** 2 / (2 * z**2 + 1)
    return float(n ** (-1 / 3) * ndtri(0.975) ** (2 / 3) * ratio ** (1 / 3))


def _bofinger(n: float, q: float) -> float:
    z = float(ndtri(q))
    return float((4.5 * _normal_density(z) ** 4 / (n * (2 * z**2 + 1) ** 2)) ** 0.2)


def _chamberlain(n: float, q: float) -> float:
    return float(ndtri(0.975) * np.sqrt(q * (1 - q) / n))


#: How much probability around q the density is estimated from, by number of rows.
BANDWIDTHS: dict[str, Callable[[float, float], float]] = {
    "hall_sheather": _hall_sheather,
    "bofinger": _bofinger,
    "chamberlain": _chamberlain,
}


class Estimate(NamedTuple):
    """A covariance (intercept first), the bandwidth h, and 1 / f."""

    covariance: Array
    bandwidth: float
    sparsity: float


def quantile_covariance(
    design: Design,
    target: Array,
    residuals: Array,
    q: float,
    *,
    fit_intercept: bool = True,
    weights: Array | None = None,
    kind: str = "robust",
    kernel: str = "epanechnikov",
    bandwidth: str = "hall_sheather",
) -> Estimate:
    """The covariance of the coefficients of one quantile.

    Parameters
    ----------
    design : Design
    target, residuals : arrays of shape (n,)
    q : float
    fit_intercept : bool, default=True
        Whether a constant is among the coefficients; it then comes first.
    weights : array of shape (n,), optional
        Positive.
    kind : {"robust", "iid", "kernel"}, default="robust"
    kernel : {"epanechnikov", "cosine", "gaussian", "parzen", "biweight"}, default="epanechnikov"
    bandwidth : {"hall_sheather", "bofinger", "chamberlain"}, default="hall_sheather"

    Returns
    -------
    estimate : Estimate
    """
    for name, value, known in (
        ("kind", kind, KINDS),
        ("kernel", kernel, KERNELS),
        ("bandwidth", bandwidth, BANDWIDTHS),
    ):
        if value not in known:
            raise ValueError(f"{name}={value!r} is not one of {', '.join(known)}.")
    s = np.ones(len(target)) if weights is None else weights
    h = _bandwidth(target, residuals, s, q, bandwidth)
    near = KERNELS[kernel](residuals / h) / h
    density = float(s @ near / s.sum())
    if not density > 0:
        raise ValueError(
            f"No residual lies within the bandwidth {h:.3g} of zero, so that the density there "
            "cannot be estimated: take another kernel or bandwidth."
        )
    standard = _Standardised(design, s, fit_intercept)
    gram = standard.gram(s)
    if kind == "iid":
        inside = q * (1 - q) / density**2 * _sandwich(gram, gram)
    elif kind == "robust":
        spread = np.where(residuals > 0, q / density, (1 - q) / density) ** 2
        inside = _sandwich(gram, standard.gram(s * spread))
    else:
        _sandwich(gram, gram)  # tells dependent columns from rows that are too few near zero
        inside = q * (1 - q) * _sandwich(standard.gram(s * near), gram)
    return Estimate(standard.in_original_units(inside), h, 1 / density)


def _bandwidth(target: Array, residuals: Array, s: Array, q: float, rule: str) -> float:
    n = float(s.sum())
    reach = BANDWIDTHS[rule](n, q)
    if not (q - reach > 0 and q + reach < 1):
        raise ValueError(
            f"With {n:g} rows the density at quantile {q:g} would be estimated from the quantiles "
            f"{q - reach:.3g} to {q + reach:.3g}, which are not all between 0 and 1: standard "
            "errors need more rows, a quantile nearer to the middle, or another bandwidth."
        )
    mean = s @ target / n
    deviation = float(np.sqrt(s @ (target - mean) ** 2 / n))
    low, high = _percentiles(residuals, s, np.array([0.25, 0.75]))
    h = min(deviation, (high - low) / 1.34) * float(ndtri(q + reach) - ndtri(q - reach))
    if not h > 0:
        raise ValueError(
            "Half of the residuals are equal (a perfect fit, or a target of few values): there is "
            "no density to estimate standard errors from."
        )
    return h


def _percentiles(values: Array, s: Array, shares: Array) -> Array:
    """Between the order statistics of rows that count s times, by straight lines."""
    order = np.argsort(values, kind="stable")
    until = np.cumsum(s[order])
    place = shares * (until[-1] - 1.0)
    low = np.floor(place)
    found = np.searchsorted(until, np.stack([low, low + 1.0]), side="right")
    below, above = values[order[np.clip(found, 0, len(values) - 1)]]
    return below + (place - low) * (above - below)


class _Standardised:
    """Columns brought to mean zero and equal size, so that units do not matter."""

    def __init__(self, design: Design, s: Array, fit_intercept: bool) -> None:
        self.design, self.fit_intercept = design, fit_intercept
        d = design.shape[1]
        self.mean = design.column_means(s) if fit_intercept else np.zeros(d)
        squares = design.column_squares(s, self.mean if fit_intercept else None)
        self.scale = np.sqrt(squares / s.sum())
        if not (self.scale > 1e-14 * np.abs(self.mean)).all():
            raise _dependent()

    def gram(self, weights: Array) -> Array:
        """sum_i weights_i a_i a_i^T, the constant first."""
        p = len(self.mean) + self.fit_intercept
        out = np.zeros((p, p))
        for rows, block in self.design.blocks(_BLOCK_ROWS):
            A = np.ones((len(block), p))
            A[:, self.fit_intercept :] = (block - self.mean) / self.scale
            out += weighted_gram(A, weights[rows])
        return out

    def in_original_units(self, covariance: Array) -> Array:
        """For coefficients v of the standardised columns: w = v / scale, b = v_0 - mean.w."""
        p = len(covariance)
        back = np.zeros((p, p))
        own = np.arange(p - len(self.scale), p)
        back[own, own] = 1 / self.scale
        if self.fit_intercept:
            back[0, 0] = 1.0
            back[0, 1:] = -self.mean / self.scale
        out = back @ covariance @ back.T
        return 0.5 * (out + out.T)


def _sandwich(bread: Array, filling: Array) -> Array:
    """bread^-1 filling bread^-1."""
    size = np.sqrt(np.maximum(bread.diagonal(), 1e-300))
    scaled = bread / np.outer(size, size)
    try:
        factor = cholesky(scaled, lower=True)
    except LinAlgError as error:
        raise _dependent() from error
    if len(size) and np.linalg.eigvalsh(scaled)[0] < _DEPENDENT:
        raise _dependent()
    half = cho_solve((factor, True), (filling / np.outer(size, size)).T)
    return cho_solve((factor, True), half.T) / np.outer(size, size)


def _dependent() -> Any:
    return ValueError(
        "The columns are linearly dependent (a constant column beside the intercept, a copy, or "
        "fewer rows than columns): single coefficients have no standard errors. Leave some out."
    )
