"""Poisson, gamma and Tweedie regression."""

from __future__ import annotations

from trueline.estimators.regression.glm import GeneralizedLinearRegressor
from trueline.estimators.shared.parameters import KW_ONLY, given, one_of, parameters
from trueline.losses import Gamma, LocalDeviance, Loss, Poisson, Squared, Tweedie

__all__ = ["GammaRegressor", "PoissonRegressor", "TweedieRegressor"]


@parameters()
class PoissonRegressor(GeneralizedLinearRegressor):
    """Poisson regression: counts whose logarithm of the mean is linear, proven optimal.

    Minimises over w and b, with m_i = exp(x_i.w + b + offset_i) and S = sum_i s_i::

        1/S sum_i s_i (m_i - y_i + y_i log(y_i / m_i)) + alpha/2 ||w||^2

    which is half the mean deviance (as solved: S times that). The intercept is not penalised.

    Parameters
    ----------
    solver : str, default="auto"
        "auto" plans. scikit-learn's "lbfgs" and "newton-cholesky" plan too: the function decides
        the answer. By name: "newton", "newton_cg".

    Attributes
    ----------
    feature_names_in_ : array of str

    Examples
    --------
    >>> import numpy as np
    >>> from trueline import PoissonRegressor
    >>> X = np.array([[0.0], [1.0], [2.0], [3.0]])
    >>> claims, years = np.array([1, 4, 8, 30]), np.array([1.0, 2.0, 2.0, 3.0])
    >>> model = PoissonRegressor(alpha=0).fit(X, claims, exposure=years)
    >>> model.predict(X).round(2)  # a year
    array([0.85, 1.93, 4.36, 9.86])
    >>> bool(model.verify(X, claims, exposure=years))
    True
    """

    @property
    def _power(self) -> float:
        return 1.0

    def _loss(self) -> Loss:
        return Poisson()


@parameters()
class GammaRegressor(GeneralizedLinearRegressor):
    """Gamma regression: positive targets of constant relative spread, proven optimal.

    Minimises over w and b, with m_i = exp(x_i.w + b + offset_i) and S = sum_i s_i::

        1/S sum_i s_i (y_i / m_i - 1 - log(y_i / m_i)) + alpha/2 ||w||^2

    which is half the mean deviance (as solved: S times that). The intercept is not penalised.

    Parameters
    ----------
    solver : str, default="auto"
        "auto" plans. scikit-learn's "lbfgs" and "newton-cholesky" plan too: the function decides
        the answer. By name: "newton", "newton_cg".

    Attributes
    ----------
    feature_names_in_ : array of str

    Examples
    --------
    >>> import numpy as np
    >>> from trueline import GammaRegressor
    >>> X = np.array([[1.0, 2.0], [2.0, 3.0], [3.0, 4.0], [4.0, 3.0]])
    >>> y = np.array([19.0, 26.0, 33.0, 30.0])
    >>> model = GammaRegressor().fit(X, y)
    >>> round(model.score(X, y), 3), bool(model.verify(X, y))
    (0.773, True)
    """

    @property
    def _power(self) -> float:
        return 2.0

    def _loss(self) -> Loss:
        return Gamma()


@parameters()
class TweedieRegressor(GeneralizedLinearRegressor):
    """Regression with variance proportional to a power of the mean.

    Minimises over w and b, with link(m_i) = x_i.w + b + offset_i and S = sum_i s_i::

        1/(2 S) sum_i s_i d(y_i, m_i) + alpha/2 ||w||^2
        d(y, m) = 2 (max(y, 0)^(2-p)/((1-p)(2-p)) - y m^(1-p)/(1-p) + m^(2-p)/(2-p)),   p = power

    with the limits of d for p = 1 and p = 2 (as solved: S times that). The intercept is not
    penalised.

    This is convex, and proven for all coefficients, for power 0 with the identity as link and for
    powers 1 to 2 with the logarithm. Elsewhere several minima may exist: the fit is proven to be a
    minimum within a stated distance (``certificate_.kind == "local"``), and no more.

    Parameters
    ----------
    power : float, default=0.0
        0 is the normal distribution, 1 Poisson, between 1 and 2 compound Poisson-gamma (with exact
        zeros), 2 gamma, 3 inverse Gaussian. Powers between 0 and 1 belong to no distribution.
    link : {"auto", "identity", "log"}, default="auto"
        "auto" is the identity for powers up to 0, the logarithm beyond.
    solver : str, default="auto"
        "auto" plans. scikit-learn's "lbfgs" and "newton-cholesky" plan too: the function decides
        the answer. By name, where the function is convex: "newton", "newton_cg".

    Attributes
    ----------
    feature_names_in_ : array of str

    Examples
    --------
    >>> import numpy as np
    >>> from trueline import TweedieRegressor
    >>> X = np.array([[1.0], [2.0], [3.0], [4.0], [5.0]])
    >>> cost = np.array([0.0, 2.0, 0.0, 4.0, 11.0])
    >>> model = TweedieRegressor(power=1.5, alpha=0.1).fit(X, cost)
    >>> model.predict(X).round(2), model.certificate_.kind
    (array([0.31, 0.73, 1.73, 4.09, 9.68]), 'curvature')
    """

    _: KW_ONLY
    power: float = given(0.0, "(-inf, inf)")
    link: str = given("auto", one_of("auto", "identity", "log"))

    @property
    def _power(self) -> float:
        return float(self.power)

    @property
    def _is_log(self) -> bool:
        return self.power > 0 if self.link == "auto" else self.link == "log"

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if 0 < self.power < 1:
            raise ValueError(
                f"power={self.power:g} belongs to no distribution: give 0 or less, or 1 or more."
            )

    def _loss(self) -> Loss:
        power = self._power
        if not self._is_log:
            return Squared() if power == 0 else LocalDeviance(power, "identity")
        if power in (1.0, 2.0):
            return Poisson() if power == 1 else Gamma()
        return Tweedie(power) if 1 < power < 2 else LocalDeviance(power, "log")
