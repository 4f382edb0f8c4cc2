"""Coefficients with standard errors, t values, p values and confidence intervals."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtr, stdtrit

from trueline.wording import Readable

__all__ = ["CoefficientTable"]

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
