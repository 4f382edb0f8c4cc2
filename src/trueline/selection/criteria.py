r"""Criteria that weigh how well a Gaussian model fits against how many parameters it has.

With n rows (the sum of the weights: weight 2 = row twice), residual square R and p parameters,

    log-likelihood   l    = -n/2 (log(2 pi R / n) + 1)               (at the variance R / n)
    AIC                   = -2 l + 2 p                               (Akaike 1974)
    AICc                  = -2 l + 2 p n / (n - p - 1)               (Hurvich and Tsai 1989)
    BIC                   = -2 l + p log n                           (Schwarz 1978)
    adjusted R^2          = 1 - (R / (n - p)) / (T / (n - c))        (Theil 1961)
    Mallows' Cp           = R / s^2 - n + 2 p                        (Mallows 1973)

where T is the residual square of the model without features, c is 1 if there is an intercept and 0
otherwise, and s^2 is the noise variance of the model with all features. p counts coefficients and
the intercept; the variance is not counted unless ``p`` is given with it. A penalised fit has the
trace of its hat matrix in place of p (T. Hastie and R. Tibshirani, "Generalized Additive Models"
(1990), section 3.5).

H. Akaike, IEEE Trans. Autom. Control 19 (1974) 716-723. C. M. Hurvich and C.-L. Tsai, Biometrika 76
(1989) 297-307. G. Schwarz, Ann. Statist. 6 (1978) 461-464. C. L. Mallows, Technometrics 15 (1973)
661-675.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

#: The criteria that need nothing but the fit, by name.
CRITERIA = ("aic", "aicc", "bic", "adjusted_r2", "cp")


def log_likelihood(rows: float, square: Any) -> Any:
    """The Gaussian log-likelihood at its most likely variance; infinite for a perfect fit."""
    with np.errstate(divide="ignore"):
        return -rows / 2 * (np.log(2 * np.pi * np.asarray(square) / rows) + 1)


def aic(rows: float, square: Any, parameters: Any, k: float = 2.0) -> Any:
    """Akaike's criterion, with ``k`` per parameter.

    Examples
    --------
    >>> from trueline.selection.criteria import aic
    >>> round(float(aic(rows=10, square=4.0, parameters=2)), 6)
    23.215863
    """
    return -2 * log_likelihood(rows, square) + k * np.asarray(parameters)


def aicc(rows: float, square: Any, parameters: Any) -> Any:
    """Akaike's criterion corrected for few rows; infinite where n <= p + 1."""
    p = np.asarray(parameters, dtype=float)
    left = rows - p - 1
    with np.errstate(divide="ignore", invalid="ignore"):
        value = aic(rows, square, 2 * p * rows / left, k=1.0)
    return np.where(left > 0, value, np.inf)[()]


def bic(rows: float, square: Any, parameters: Any) -> Any:
    """Schwarz's criterion."""
    return aic(rows, square, parameters, k=float(np.log(rows)))


def adjusted_r2(rows: float, square: Any, parameters: Any, total: float, constant: bool) -> Any:
    """R^2 with both sums divided by their degrees of freedom; larger is better.

    ``total`` is T. Minus infinity where no degree of freedom is left; NaN if T is zero.
    """
    left = rows - np.asarray(parameters, dtype=float)
    with np.errstate(divide="ignore", invalid="ignore"):
        value = 1 - (np.asarray(square) / left) / (np.float64(total) / (rows - float(constant)))
    return np.where(left > 0, value, -np.inf)[()]


def mallows_cp(rows: float, square: Any, parameters: Any, variance: float) -> Any:
    """Mallows' Cp; ``variance`` is that of the model with all features."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(square) / variance - rows + 2 * np.asarray(parameters)


@dataclass(frozen=True)
class Criterion:
    """One of the criteria on one set of data, so that models can be compared by one number.

    Parameters
    ----------
    name : str
        One of :data:`CRITERIA`.
    rows : float
        The sum of the weights.
    total : float
        Residual square of the model without features.
    constant : bool
        Whether there is an intercept.
    variance : float, optional
        Noise variance of the model with all features; NaN if it is not known.
    k : float, default=2.0
        What AIC charges for a parameter.

    Examples
    --------
    >>> from trueline.selection.criteria import Criterion
    >>> criterion = Criterion("adjusted_r2", rows=10, total=9.0, constant=True)
    >>> float(criterion.value(square=4.0, parameters=2))
    0.5
    >>> float(criterion.cost(square=4.0, parameters=2))
    -0.5
    """

    name: str
    rows: float
    total: float
    constant: bool
    variance: float = float("nan")
    k: float = 2.0

    def value(self, square: Any, parameters: Any, name: str | None = None) -> Any:
        """The criterion as it is printed (``name``: another one)."""
        name = name or self.name
        if name == "aic":
            return aic(self.rows, square, parameters, self.k)
        if name == "aicc":
            return aicc(self.rows, square, parameters)
        if name == "bic":
            return bic(self.rows, square, parameters)
        if name == "cp":
            return mallows_cp(self.rows, square, parameters, self.variance)
        return adjusted_r2(self.rows, square, parameters, self.total, self.constant)

    def cost(self, square: Any, parameters: Any) -> Any:
        """The criterion with the sign by which smaller is better."""
        value = self.value(square, parameters)
        return -value if self.name == "adjusted_r2" else value

    def table(self, square: float, parameters: int) -> dict[str, float]:
        """All criteria, by name; without Cp if the noise is not known."""
        names = [name for name in CRITERIA if name != "cp" or not np.isnan(self.variance)]
        return {name: float(self.value(square, parameters, name)) for name in names}
