r"""The elastic net, and its two ends: the squared penalty and the lasso.

    p(w)          = alpha (r abs(w) + (1 - r)/2 w^2)          0 <= r <= 1
    prox(v, step) = soft(v, step alpha r) / (1 + step alpha (1 - r))
    p*(v)         = max(0, abs(v) - alpha r)^2 / (2 alpha (1 - r))
                    (alpha (1 - r) = 0: 0 where abs(v) <= alpha r, infinite elsewhere)

where soft(v, t) = sign(v) max(0, abs(v) - t).

H. Zou and T. Hastie, "Regularization and variable selection via the elastic net",
J. R. Statist. Soc. B 67 (2005) 301-320.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from trueline.penalties.base import Array, Penalty, check_strength


def soft_threshold(V: Array, threshold: float | Array) -> Array:
    """sign(v) max(0, abs(v) - threshold), elementwise."""
    return np.sign(V) * np.maximum(np.abs(V) - threshold, 0.0)


class _ElasticNetFormulas(Penalty):
    """The formulas above, written once in terms of the two strengths."""

    @property
    @abstractmethod
    def linear(self) -> float | Array:
        """alpha r, the weight of abs(w)."""

    @property
    @abstractmethod
    def curvature(self) -> float | Array:
        """alpha (1 - r), the weight of 1/2 w^2."""

    def value(self, W: Array) -> float:
        return float(np.sum(self.value_per_target(W)))

    def value_per_target(self, W: Array) -> Array:
        # Not W**2, whose overflow would turn a strength of zero into NaN.
        curved = (0.5 * self.curvature * W) * W
        if np.ndim(self.linear) == 0 and self.linear == 0:
            return np.sum(curved, axis=0)
        return np.sum(self.linear * np.abs(W) + curved, axis=0)

    def gradient(self, W: Array) -> Array:
        return self.linear * np.sign(W) + self.curvature * W

    def prox(self, V: Array, step: float) -> Array:
        return soft_threshold(V, step * self.linear) / (1.0 + step * self.curvature)

    def conjugate_per_target(self, V: Array) -> Array:
        excess = np.maximum(np.abs(V) - self.linear, 0.0)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            terms = np.where(excess > 0, excess * (0.5 * (excess / self.curvature)), 0.0)
        return np.sum(terms, axis=0)

    def dual_scale(self, V: Array) -> Array:
        linear, curvature = np.broadcast_arrays(self.linear, self.curvature, V)[:2]
        bounded = (curvature == 0) & (np.abs(V) > linear)
        with np.errstate(divide="ignore", invalid="ignore"):
            room = np.where(bounded, linear / np.abs(V), 1.0)
        return np.min(room, axis=0, initial=1.0)


@dataclass(frozen=True, eq=False)
class L2(_ElasticNetFormulas):
    """Half the squared norm, ``alpha/2 ||w||^2``: the penalty of ridge regression.

    Parameters
    ----------
    alpha : float or array, default=1.0
        Strength; an array of shape (k,) gives one strength per target.

    Examples
    --------
    >>> import numpy as np
    >>> from trueline.penalties import L2
    >>> L2(alpha=2.0).value(np.array([[1.0], [3.0]]))
    10.0
    """

    alpha: float | Array = 1.0
    name: ClassVar[str] = "l2"
    prior: ClassVar[str | None] = "normal, mean 0, variance phi / alpha"

    def __post_init__(self) -> None:
        check_strength(self.alpha)

    def worst_ends(self, low: Array, high: Array) -> tuple[Array, Array]:
        # p* is even, and grows away from zero.
        return np.maximum(-low, high), np.zeros(np.shape(low))

    def conjugate_per_target(self, V: Array) -> Array:
        if np.ndim(self.alpha) or not self.alpha > 0:
            return super().conjugate_per_target(V)
        with np.errstate(over="ignore"):
            return np.sum(V * (0.5 * (V / self.alpha)), axis=0)

    def dual_scale(self, V: Array) -> Array:
        if np.ndim(self.alpha) or not self.alpha > 0:
            return super().dual_scale(V)
        return np.ones(V.shape[1])

    @property
    def formula(self) -> str:
        return "alpha/2 ||w||^2"

    @property
    def capabilities(self) -> frozenset[str]:
        return frozenset({"smooth", "prox", "conjugate", "quadratic", "elastic"})

    @property
    def linear(self) -> float:
        return 0.0

    @property
    def curvature(self) -> float | Array:
        return self.alpha


@dataclass(frozen=True, eq=False)
class L1(_ElasticNetFormulas):
    """The sum of absolute values, ``alpha ||w||_1``: the penalty of the lasso.

    Parameters
    ----------
    alpha : float or array, default=1.0
        Strength.

    Examples
    --------
    >>> import numpy as np
    >>> from trueline.penalties import L1
    >>> L1(alpha=2.0).prox(np.array([[3.0], [-1.0]]), step=1.0).ravel()
    array([ 1., -0.])
    """

    alpha: float | Array = 1.0
    name: ClassVar[str] = "l1"
    prior: ClassVar[str | None] = "Laplace, mean 0, scale phi / alpha"

    def __post_init__(self) -> None:
        check_strength(self.alpha)

    @property
    def formula(self) -> str:
        return "alpha ||w||_1"

    @property
    def capabilities(self) -> frozenset[str]:
        return frozenset({"prox", "conjugate", "coordinates", "elastic", "polyhedral"})

    @property
    def linear(self) -> float | Array:
        return self.alpha

    @property
    def curvature(self) -> float:
        return 0.0


@dataclass(frozen=True, eq=False)
class ElasticNet(_ElasticNetFormulas):
    """A mixture of both, ``alpha (r ||w||_1 + (1 - r)/2 ||w||^2)``.

    Parameters
    ----------
    alpha : float or array, default=1.0
        Strength.
    l1_ratio : float or array, default=0.5
        The share r of the absolute values, between 0 and 1.

    Examples
    --------
    >>> import numpy as np
    >>> from trueline.penalties import ElasticNet
    >>> ElasticNet(alpha=2.0, l1_ratio=0.5).value(np.array([[1.0], [-1.0]]))
    3.0
    """

    alpha: float | Array = 1.0
    l1_ratio: float | Array = 0.5
    name: ClassVar[str] = "elastic_net"
    prior: ClassVar[str | None] = (
        "density proportional to exp(-alpha (r |w_j| + (1 - r)/2 w_j^2) / phi)"
    )

    def __post_init__(self) -> None:
        check_strength(self.alpha)
        if not np.all((0.0 <= np.asarray(self.l1_ratio)) & (np.asarray(self.l1_ratio) <= 1.0)):
            raise ValueError(f"l1_ratio must lie between 0 and 1, got {self.l1_ratio!r}.")

    @property
    def formula(self) -> str:
        return "alpha (l1_ratio ||w||_1 + (1 - l1_ratio)/2 ||w||^2)"

    @property
    def capabilities(self) -> frozenset[str]:
        return frozenset({"prox", "conjugate", "coordinates", "elastic"})

    @property
    def linear(self) -> float | Array:
        return np.multiply(self.alpha, self.l1_ratio)

    @property
    def curvature(self) -> float | Array:
        return np.multiply(self.alpha, 1.0 - self.l1_ratio)
