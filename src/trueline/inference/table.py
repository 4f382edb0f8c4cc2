"""Coefficients with standard errors, t values, p values and confidence intervals.

Covariance of maximum likelihood estimates, by the Fisher information.

With rows a_i = (1, x_i), scores z_i = a_i.v and working weights h_i (the expected curvature of half
the deviance at z_i) the information about v is

    I = sum_i s_i h_i a_i a_i^T / phi,      cov(v) = I^-1

in large samples. The dispersion phi is one for counts and labels; else it is estimated by Pearson's
statistic, phi = sum_i s_i (y_i - m_i)^2 / V(m_i) / (sum_i s_i - p), p the number of coefficients.

P. McCullagh, J. A. Nelder, "Generalized Linear Models", 2nd ed. (1989), sections 2.5 and 4.5.2.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack
from scipy.special import stdtr, stdtrit

from trueline.design import Design
from trueline.moments import Moments
from trueline.wording import Readable

__all__ = ["CoefficientTable", "fisher_covariance"]

Array = NDArray[np.float64]


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
    >>> from trueline.inference.table import fisher_covariance
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
