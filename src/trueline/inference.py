"""How far estimated coefficients may be from the truth: standard errors, tests, intervals.

In: a fitted model and its rows. Out: covariances of coefficients, tests and intervals.

Covariance of maximum likelihood estimates, by the Fisher information.

With rows a_i = (1, x_i), scores z_i = a_i.v and working weights h_i (the expected curvature of half
the deviance at z_i) the information about v is

    I = sum_i s_i h_i a_i a_i^T / phi,      cov(v) = I^-1

in large samples. The dispersion phi is one for counts and labels; else it is estimated by Pearson's
statistic, phi = sum_i s_i (y_i - m_i)^2 / V(m_i) / (sum_i s_i - p), p the number of coefficients.

P. McCullagh, J. A. Nelder, "Generalized Linear Models", 2nd ed. (1989), sections 2.5 and 4.5.2.

The covariance of the coefficients of quantile regression.

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
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import LinAlgError, cho_solve, cholesky, lapack
from scipy.special import ndtri, stdtr, stdtrit

from trueline.design import Design
from trueline.moments import Array, Moments
from trueline.numerics.gram import weighted_gram
from trueline.wording import Readable


@dataclass(frozen=True, repr=False)
class CoefficientTable(Readable):
    """Estimates of p coefficients and their covariance; prints as a table.

    Arrays have the shape (p,), or (k, p) if there are k sets of coefficients.

    Attributes
    ----------
    names : tuple of str
        Of the coefficients, the intercept first if there is one.
    sets : tuple of str
        What the k sets are; empty for a single one.
    coefficients : array of shape (p,) or (k, p)
    covariance : array of shape (p, p) or (k, p, p)
    degrees_of_freedom : float
        Rows minus coefficients: those of Student's distribution; infinite for the normal one.
    method : str
        How the covariance was estimated, in words.
    details : dict of str to array
        Numbers on the way, such as the bandwidth.

    Examples
    --------
    >>> import numpy as np
    >>> from trueline.inference import CoefficientTable
    >>> table = CoefficientTable(
    ...     ("x",), (), np.array([3.0]), np.array([[4.0]]), 10.0, "by hand", {}
    ... )
    >>> table.standard_errors, table.t_values
    (array([2.]), array([1.5]))
    >>> table.confidence_intervals(0.95).round(2)
    array([[-1.46,  7.46]])
    """

    names: tuple[str, ...]
    sets: tuple[str, ...]
    coefficients: Array
    covariance: Array
    degrees_of_freedom: float
    method: str
    details: dict[str, Array]

    @property
    def standard_errors(self) -> Array:
        """Square roots of the variances."""
        return np.sqrt(np.diagonal(self.covariance, axis1=-2, axis2=-1))

    @property
    def t_values(self) -> Array:
        """Coefficients in units of their standard errors."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return self.coefficients / self.standard_errors

    @property
    def p_values(self) -> Array:
        """Probability of a t value as far from zero, on either side, for a coefficient of zero."""
        return 2.0 * stdtr(self.degrees_of_freedom, -np.abs(self.t_values))

    def confidence_intervals(self, level: float = 0.95) -> Array:
        """Lower and upper ends, along the last axis.

        Parameters
        ----------
        level : float, default=0.95
            How often intervals made this way hold the true coefficient.
        """
        if not 0 < level < 1:
            raise ValueError(f"level must lie strictly between 0 and 1, got {level!r}.")
        reach = stdtrit(self.degrees_of_freedom, 0.5 + 0.5 * level) * self.standard_errors
        return np.stack([self.coefficients - reach, self.coefficients + reach], axis=-1)

    def rows(self, level: float = 0.95) -> list[dict[str, Any]]:
        """One dictionary for each coefficient (of each set), for a data frame."""
        intervals = self.confidence_intervals(level)
        out: list[dict[str, Any]] = []
        for index in np.ndindex(self.coefficients.shape):
            row: dict[str, Any] = {"set": self.sets[index[0]]} if self.sets else {}
            row |= {
                "name": self.names[index[-1]],
                "coefficient": float(self.coefficients[index]),
                "standard_error": float(self.standard_errors[index]),
                "t": float(self.t_values[index]),
                "p": float(self.p_values[index]),
                "lower": float(intervals[index][0]),
                "upper": float(intervals[index][1]),
            }
            out.append(row)
        return out

    def __str__(self) -> str:
        header = ["", "coefficient", "std. error", "t", "p", "95% interval", ""]
        lines: list[list[str]] = []
        for row in self.rows():
            cells = [f"{row[name]:.5g}" for name in ("coefficient", "standard_error")]
            cells += [f"{row['t']:.3f}", f"{row['p']:.3g}"]
            cells += [f"{row['lower']:.5g}", f"{row['upper']:.5g}"]
            lines.append([row["name"], *cells])
        widths = [max(len(line[i]) for line in [header, *lines]) for i in range(len(header))]

        def text(cells: list[str]) -> str:
            first, *rest = (cell.rjust(width) for cell, width in zip(cells, widths, strict=True))
            return "  ".join([first.strip().ljust(widths[0]), *rest]).rstrip()

        out = [text(header)]
        for number, line in enumerate(lines):
            if self.sets and number % len(self.names) == 0:
                out.append(self.sets[number // len(self.names)])
            out.append(text(line))
        is_normal = np.isinf(self.degrees_of_freedom)
        freedom = f"{self.degrees_of_freedom:g} degrees of freedom"
        out.append(f"{self.method}; {'normal distribution' if is_normal else freedom}")
        return "\n".join(out)


_DEPENDENT = 1e-12


def fisher_covariance(design: Design, h: Array, fit_intercept: bool) -> Array:
    """(sum_i h_i a_i a_i^T)^-1, the intercept first if there is one.

    With an intercept the columns are centred about their means m under the weights h: b + m.w is
    then independent of w, and columns far from zero cost no digits.

    Parameters
    ----------
    design : Design
    h : array of shape (n,)
        Working weights times sample weights, not negative.
    fit_intercept : bool

    Raises
    ------
    ValueError
        Where columns depend on each other.

    Examples
    --------
    >>> import numpy as np
    >>> from trueline.design import as_design
    >>> from trueline.inference import fisher_covariance
    >>> X = np.array([[1.0], [3.0], [5.0]])
    >>> A = np.hstack([np.ones((3, 1)), X])
    >>> np.allclose(fisher_covariance(as_design(X), np.ones(3), True), np.linalg.inv(A.T @ A))
    True
    """
    moments = Moments.from_rows(design, np.empty((len(h), 0)), h)
    if not fit_intercept:
        return _inverse(moments.about_zero().gram)
    d, mean = design.shape[1], moments.x_mean
    own = _inverse(moments.gram)
    out = np.empty((d + 1, d + 1))
    out[1:, 1:] = own
    out[0, 1:] = out[1:, 0] = -own @ mean
    out[0, 0] = 1.0 / h.sum() + mean @ own @ mean
    return out


def _inverse(information: Array) -> Array:
    root = np.sqrt(np.where(information.diagonal() > 0, information.diagonal(), 1.0))
    unit = information / np.outer(root, root)
    L, info = lapack.dpotrf(unit, lower=1)
    if info != 0 or (L.diagonal() ** 2).min(initial=1.0) < _DEPENDENT:
        raise ValueError(
            "The Fisher information is singular: columns depend on each other (or on the "
            "intercept), and the data say nothing about some coefficients. Leave out columns."
        )
    if not len(root):
        return information
    lower, _ = lapack.dpotri(L, lower=1)
    full = np.tril(lower) + np.tril(lower, -1).T
    return np.asarray(full / np.outer(root, root))


_BLOCK_ROWS = 16384
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
