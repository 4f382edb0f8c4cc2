r"""The conjugate family of linear regression with unknown noise: normal-inverse-gamma.

Rows obey y_i = b + x_i.w + noise of variance sigma^2 / s_i. What is believed about the unknowns is

    w | sigma^2                  ~  Normal(m, sigma^2 P^{-1})
    b + c.w | sigma^2            ~  Normal(q, sigma^2 / W)         independent of w; W = 0 is flat
    sigma^2                      ~  InverseGamma(a, r)

and stays of that form after any rows: a belief is what imaginary rows with weight W, means c and q
and centred Gram matrix P would have taught. Rows with the moments (weight V, means x and y, Gram G,
cross products g, square h) update it by

    W' = W + V,   t = W V / W',   e = x - c,   f = y - q,
    P' = P + G + t e e^T,         P' m' = P m + g + t e f,
    r' = r + 1/2 [ |residuals at m'|^2 + (m' - m)^T P (m' - m) + t (f - e.m')^2 ],
    a' = a + (number of rows - number of directions that were flat and are not any more) / 2

(A. Gelman et al., "Bayesian Data Analysis", 3rd ed., chapter 14; the sums about means are those of
:mod:`trueline.moments`). The evidence of the rows is the ratio of the normalising constants

    log p(y) = 1/2 (log |P| W - log |P'| W') + a log r - a' log r' + log Gamma(a') - log Gamma(a)
               - (a' - a) log(2 pi)

where directions with a flat prior are left out of the first determinant.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_solve, lapack, solve_triangular
from scipy.special import gammaln

from trueline.moments import Moments
from trueline.wording import Readable

Array = NDArray[np.float64]


@dataclass(frozen=True, repr=False)
class NormalInverseGamma(Readable):
    """What is believed about coefficients, intercept and noise of a linear regression.

    Attributes
    ----------
    mean : array of shape (d,)
        m: expected coefficients.
    precision : array of shape (d, d)
        P: inverse covariance of the coefficients, in units of the noise's precision. Zero rows and
        columns stand for coefficients about which nothing is believed.
    shape, rate : float
        a and r of the inverse gamma distribution of the noise variance.
    centre : array of shape (d,)
    level : float
    weight : float
        c, q and W: the line goes through level at centre, up to sigma / sqrt(weight).
    log_evidence : float
        Log density of all targets that led here, given the belief at the start (flat directions
        have the density one).
    has_intercept : bool
        Whether there is a b at all.

    Examples
    --------
    >>> import numpy as np
    >>> from trueline.bayesian import NormalInverseGamma
    >>> from trueline.design import as_design
    >>> from trueline.moments import Moments
    >>> prior = NormalInverseGamma.prior(np.zeros(1), np.ones(1), shape=1.0, rate=1.0)
    >>> X, y = np.array([[0.0], [1.0], [2.0]]), np.array([[1.0], [3.0], [5.0]])
    >>> posterior = prior.update(Moments.from_rows(as_design(X), y))
    >>> posterior.mean.round(6), posterior.shape
    (array([1.333333]), 2.0)
    """

    mean: Array
    precision: Array
    shape: float
    rate: float
    centre: Array
    level: float = 0.0
    weight: float = 0.0
    log_evidence: float = 0.0
    has_intercept: bool = True
    _flat: Array = field(default_factory=lambda: np.zeros(0), repr=False)

    @classmethod
    def prior(
        cls,
        mean: Array,
        precision: Array,
        shape: float,
        rate: float,
        has_intercept: bool = True,
    ) -> NormalInverseGamma:
        """A belief before any rows: independent coefficients, a flat intercept.

        Parameters
        ----------
        mean, precision : arrays of shape (d,)
            Zero precision is a flat prior.
        shape, rate : float
        has_intercept : bool, default=True
        """
        return cls(
            mean=np.asarray(mean, dtype=np.float64),
            precision=np.diag(np.asarray(precision, dtype=np.float64)),
            shape=float(shape),
            rate=float(rate),
            centre=np.zeros(len(mean)),
            has_intercept=has_intercept,
            _flat=(np.asarray(precision) == 0).astype(np.float64),
        )

    @property
    def flat(self) -> NDArray[np.bool_]:
        """The coefficients about which nothing is believed yet."""
        if len(self._flat):
            return self._flat.astype(bool)
        return np.zeros(len(self.mean), dtype=bool)

    def update(
        self, moments: Moments, mean: Array | None = None, square: float | None = None
    ) -> NormalInverseGamma:
        """The belief after rows with these moments of one target.

        Parameters
        ----------
        moments : Moments
            Centred, as :meth:`Moments.from_rows` gives them.
        mean : array of shape (d,), optional
        square : float, optional
            The new mean and the sum of squared residuals there, if they are known to more digits
            than the moments give.
        """
        rows = moments if self.has_intercept else moments.about_zero()
        known = self.weight > 0 and self.has_intercept
        weight = self.weight + rows.weight if self.has_intercept else 0.0
        between = self.weight * rows.weight / weight if known else 0.0
        x_gap = rows.x_mean - self.centre
        y_gap = float(rows.y_mean[0]) - self.level
        precision = self.precision + rows.gram + between * np.outer(x_gap, x_gap)
        factor = _cholesky(precision)
        if mean is None:
            right = self.precision @ self.mean + rows.cross[:, 0] + between * y_gap * x_gap
            mean = cho_solve((factor, True), right)
        step = mean - self.mean
        if square is None:
            square = float(rows.residual_square(mean[:, None])[0][0])
        square += float(step @ self.precision @ step)
        square += between * float(y_gap - x_gap @ mean) ** 2
        gone = int(self.flat.sum()) + int(self.has_intercept and not known)
        shape = self.shape + 0.5 * (rows.weight - gone)
        rate = self.rate + 0.5 * square
        if shape <= 0:
            raise ValueError(
                f"{rows.weight:g} rows do not determine {gone} coefficients with flat priors and "
                "the noise: give the coefficients a positive precision, or more rows."
            )
        if not rate > 0:
            raise ValueError(
                "The rows are fitted without any error and the rate of the noise's prior is zero, "
                "so that its posterior is no distribution: give a positive rate."
            )
        share = rows.weight / weight if weight else 0.0
        after = 2 * float(np.log(np.diag(factor)).sum()) + (math.log(weight) if weight else 0.0)
        evidence = 0.5 * (self._log_determinant(known) - after)
        evidence -= (shape - self.shape) * math.log(2 * math.pi)
        evidence += _log_constant(self.shape, self.rate) - _log_constant(shape, rate)
        return NormalInverseGamma(
            mean=mean,
            precision=precision,
            shape=shape,
            rate=rate,
            centre=self.centre + share * x_gap if known else rows.x_mean.copy(),
            level=self.level + share * y_gap if known else float(rows.y_mean[0]),
            weight=weight,
            log_evidence=self.log_evidence + evidence,
            has_intercept=self.has_intercept,
        )

    def moved(self, shift: Array) -> NormalInverseGamma:
        """The belief about w + shift, if this one is about w, for targets y + X shift."""
        return replace(self, mean=self.mean + shift, level=self.level + float(self.centre @ shift))

    def _log_determinant(self, known: bool) -> float:
        """log |P| W over the directions that are not flat."""
        proper = ~self.flat
        part = self.precision[np.ix_(proper, proper)]
        value = 2 * float(np.log(np.diag(_cholesky(part))).sum()) if proper.any() else 0.0
        return value + (math.log(self.weight) if known else 0.0)

    # --- what follows from it -------------------------------------------------------------------

    @property
    def degrees_of_freedom(self) -> float:
        """2 a: of the Student distributions of coefficients and predictions."""
        return 2 * self.shape

    def factor(self) -> Array:
        """The lower Cholesky factor of the precision."""
        return _cholesky(self.precision)

    def scale(self) -> Array:
        """r/a P^{-1}: the scale matrix of the coefficients' Student distribution."""
        inverse = cho_solve((self.factor(), True), np.eye(len(self.mean)))
        return self.rate / self.shape * inverse

    def intercept(self) -> tuple[float, float]:
        """Centre and scale of the Student distribution of b."""
        value, spread = self.line(np.zeros((1, len(self.mean))))
        return float(value[0]), float(spread[0])

    def line(self, X: Array) -> tuple[Array, Array]:
        """Centre and scale of the Student distribution of b + x.w, row by row."""
        centred = X - self.centre
        value = self.level + centred @ self.mean
        half = solve_triangular(self.factor(), centred.T, lower=True)
        square = np.einsum("ij,ij->j", half, half)
        if self.has_intercept:
            square = square + 1.0 / self.weight
        return value, np.sqrt(self.rate / self.shape * square)

    def predictive(self, X: Array) -> tuple[Array, Array]:
        """Centre and scale of the Student distribution of a new target, row by row."""
        value, spread = self.line(X)
        return value, np.sqrt(spread**2 + self.rate / self.shape)

    def sample(self, size: int, generator: Any) -> tuple[Array, Array, Array]:
        """Draw coefficients of shape (size, d), intercepts and noise variances."""
        variance = self.rate / generator.gamma(self.shape, size=size)
        noise = generator.normal(size=(size, len(self.mean)))
        deviation = solve_triangular(self.factor(), noise.T, lower=True, trans="T").T
        coef = self.mean + np.sqrt(variance)[:, None] * deviation
        if not self.has_intercept:
            return coef, np.zeros(size), variance
        at_centre = self.level + np.sqrt(variance / self.weight) * generator.normal(size=size)
        return coef, at_centre - coef @ self.centre, variance


def _cholesky(matrix: Array) -> Array:
    """The lower factor, or an error that says what to do."""
    if not len(matrix):
        return matrix
    factor, failed = lapack.dpotrf(matrix.T, lower=True, clean=True)
    if failed:
        raise ValueError(
            "The posterior is no distribution: columns with a flat prior depend on each other (or "
            "the precision is lost against them). Give the coefficients a larger precision, or "
            "leave a column out."
        )
    return np.asarray(factor)


def _log_constant(shape: float, rate: float) -> float:
    """log of r^-a Gamma(a), whose differences enter the evidence; zero for the flat limit."""
    if shape <= 0 or rate <= 0:
        return 0.0
    return shape * math.log(rate) - float(gammaln(shape))
