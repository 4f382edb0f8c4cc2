r"""The logistic loss of two classes, y in {-1, +1}: minus the log-likelihood of the label.

With the margin m = y z and p = 1 / (1 + exp(m)), the probability given to the other class,

    l(z)   = log(1 + exp(-m))
    l'(z)  = -y p
    l''(z) = p (1 - p)
    l*(u)  = p log p + (1 - p) log(1 - p)      for u = -y p,  0 <= p <= 1

Nothing overflows: l(z) = max(-m, 0) + log(1 + exp(-abs(m))). The curvature changes slowly,
abs(l''') <= l'', so that l''(z + e) >= exp(-abs(e)) l''(z) (F. Bach, "Self-concordant analysis for
logistic regression", Electron. J. Statist. 4 (2010) 384-414).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.special import xlog1py, xlogy

from trueline.losses.base import Array, Loss

__all__ = ["Logistic"]


@dataclass(frozen=True)
class Logistic(Loss):
    """The logistic loss: ``log(1 + exp(-y z))`` for labels y in {-1, +1}.

    Examples
    --------
    >>> import numpy as np
    >>> from trueline.losses import Logistic
    >>> Logistic().value(np.array([1.0, 1.0, -1.0]), np.array([0.0, 800.0, 800.0])).round(4)
    array([6.931e-01, 0.000e+00, 8.000e+02])
    """

    name: ClassVar[str] = "logistic"
    formula: ClassVar[str] = "log(1 + exp(-y_i z_i))"
    capabilities: ClassVar[frozenset[str]] = frozenset(
        {"smooth", "curvature", "conjugate", "dual_entropy", "margins", "bend", "self_concordant"}
    )

    @property
    def compiled(self) -> int:
        return 1

    @property
    def curvature_bound(self) -> float:
        return 0.25

    @property
    def slope_bound(self) -> float:
        return 1.0

    def check_target(self, y: Array) -> None:
        """Labels are -1 and +1."""
        if not (np.abs(y) == 1).all():
            raise ValueError(
                "The logistic loss is about labels -1 and +1; "
                f"y holds {np.unique(y[np.abs(y) != 1])[:3].tolist()}."
            )

    def value(self, y: Array, z: Array) -> Array:
        margin = y * z
        return np.maximum(-margin, 0.0) + np.log1p(np.exp(-np.abs(margin)))

    def gradient(self, y: Array, z: Array) -> Array:
        small = np.exp(-np.abs(z))
        # The probability of the other class, each branch without cancellation.
        return -y * np.where(y * z >= 0, small, 1.0) / (1.0 + small)

    def curvature(self, y: Array, z: Array) -> Array:
        small = np.exp(-np.abs(y * z))
        return small / (1.0 + small) ** 2

    def derivatives(self, y: Array, z: Array) -> tuple[Array, Array]:
        small = np.exp(-np.abs(z))
        share = 1.0 / (1.0 + small)
        return -y * (np.where(y * z >= 0, small, 1.0) * share), small * share * share

    def least_curvature(self, y: Array, z: Array, reach: Array) -> Array:
        # The curvature falls with the distance of the score from zero.
        small = np.exp(-(np.abs(y * z) + reach))
        return small / (1.0 + small) ** 2

    def conjugate(self, y: Array, u: Array) -> Array:
        p = -y * u
        inside = (p >= 0) & (p <= 1)
        p = np.where(inside, p, 0.5)
        return np.where(inside, xlogy(p, p) + xlog1py(1 - p, -p), np.inf)

    def project_dual(self, y: Array, u: Array) -> Array:
        return np.where(y > 0, np.clip(u, -1.0, 0.0), np.clip(u, 0.0, 1.0))

    def least_margin(self, level: float) -> float:
        # log(1 + exp(-m)) <= level; expm1 would overflow where the answer is -level.
        return float(-level - np.log(-np.expm1(-level)))

    def constant(self, y: Array, weights: Array) -> Array:
        positive = weights @ (y > 0)
        return np.log(positive) - np.log(weights.sum() - positive)
