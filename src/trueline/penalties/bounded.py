"""A penalty restricted to nonnegative coefficients, or to an interval for each of them.

Nonnegative coefficients:

    q(w)          = p(w) where w >= 0, infinite elsewhere
    prox_q(v)     = prox_p(max(0, v))
    q*(v)         = p*(max(0, v))

The last two hold because every p here is separable, even, and increasing on w >= 0.

An interval for each coefficient:

    q(w)      = p(w) where lower <= w <= upper, infinite elsewhere
    prox_q(v) = the point of [lower, upper] nearest to prox_p(v)
    q*(v)     = v w - p(w) at the point w of [lower, upper] nearest to the maximiser of v w - p(w)

since a convex function of one variable that is best outside of an interval is best at the end that
is nearest. Where v w - p(w) grows without end in the direction of v, that end is a bound; if there
is none, q* is infinite.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from trueline.penalties.base import Array, NoPenalty, Penalty


@dataclass(frozen=True, eq=False)
class NonNegative(Penalty):
    """Another penalty, with the coefficients kept at or above zero.

    Parameters
    ----------
    base : Penalty, default=NoPenalty()
        The penalty that applies on the nonnegative side.

    Examples
    --------
    >>> import numpy as np
    >>> from trueline.penalties import L2, NonNegative
    >>> NonNegative(L2(1.0)).prox(np.array([[2.0], [-2.0]]), step=1.0).ravel()
    array([1., 0.])
    """

    base: Penalty = NoPenalty()
    name: ClassVar[str] = "nonnegative"

    def __post_init__(self) -> None:
        if isinstance(self.base, NonNegative) or self.base.name == "bounded":
            raise ValueError(
                f"The {self.base.name} penalty has bounds of its own: give it lower=0 in place of "
                "positive=True."
            )

    @property
    def prior(self) -> str | None:  # type: ignore[override]
        return self.base.prior and f"{self.base.prior}, given w_j >= 0"

    @property
    def formula(self) -> str:
        return f"{self.base.formula}, w >= 0"

    @property
    def capabilities(self) -> frozenset[str]:
        # With a bound on them, coefficients of equal scores are no longer equally good.
        lost = {"none", "smooth", "elastic", "polyhedral"}
        return (self.base.capabilities - lost) | {"nonnegative"}

    @property
    def curvature(self) -> float | Array:
        return self.base.curvature

    @property
    def linear(self) -> float | Array:
        return self.base.linear

    @property
    def lower(self) -> float:
        return 0.0

    def value(self, W: Array) -> float:
        return float(np.sum(self.value_per_target(W)))

    def value_per_target(self, W: Array) -> Array:
        outside = np.any(W < 0, axis=0)
        return np.where(outside, np.inf, self.base.value_per_target(W))

    def gradient(self, W: Array) -> Array:
        return self.base.gradient(W)

    def prox(self, V: Array, step: float) -> Array:
        return self.base.prox(np.maximum(V, 0.0), step)

    def conjugate_per_target(self, V: Array) -> Array:
        return self.base.conjugate_per_target(np.maximum(V, 0.0))

    def dual_scale(self, V: Array) -> Array:
        return self.base.dual_scale(np.maximum(V, 0.0))


@dataclass(frozen=True, eq=False)
class Bounded(Penalty):
    """Another penalty, with every coefficient kept between two bounds.

    Parameters
    ----------
    base : Penalty, default=NoPenalty()
        A penalty made of coordinates: none, l1, l2 or elastic net.
    lower, upper : float or array, default=-1.0 and 1.0
        Bounds, infinite where there is none; arrays broadcast against the coefficients of shape
        (d, k).

    Examples
    --------
    >>> import numpy as np
    >>> from trueline.penalties import L1, Bounded
    >>> Bounded(L1(1.0), lower=0.0, upper=1.5).prox(np.array([[4.0], [-3.0]]), step=1.0).ravel()
    array([1.5, 0. ])
    """

    base: Penalty = NoPenalty()
    lower: float | Array = -1.0
    upper: float | Array = 1.0
    name: ClassVar[str] = "bounded"

    def __post_init__(self) -> None:
        if not {"coordinates", "quadratic"} & self.base.capabilities or isinstance(
            self.base, Bounded
        ):
            raise ValueError(
                f"bounds go with the penalties none, l1, l2 and elastic_net, not with "
                f"{self.base.name!r}."
            )
        lower, upper = np.asarray(self.lower), np.asarray(self.upper)
        if np.isnan(lower).any() or np.isnan(upper).any():
            raise ValueError("a bound is NaN: use -inf or inf where there is none.")
        if np.any(lower > upper) or np.any(lower == np.inf) or np.any(upper == -np.inf):
            raise ValueError(
                "the bounds leave no room: lower must not exceed upper, and some finite value must "
                "lie between them."
            )

    @property
    def formula(self) -> str:
        return f"{self.base.formula}, lower <= w <= upper"

    @property
    def capabilities(self) -> frozenset[str]:
        return frozenset({"prox", "conjugate", "coordinates"})

    @property
    def linear(self) -> float | Array:
        return self.base.linear

    @property
    def curvature(self) -> float | Array:
        return self.base.curvature

    def value(self, W: Array) -> float:
        return float(np.sum(self.value_per_target(W)))

    def value_per_target(self, W: Array) -> Array:
        outside = np.any((self.lower > W) | (self.upper < W), axis=0)
        return np.where(outside, np.inf, self.base.value_per_target(W))

    def gradient(self, W: Array) -> Array:
        return self.base.gradient(W)

    def prox(self, V: Array, step: float) -> Array:
        return np.clip(self.base.prox(V, step), self.lower, self.upper)

    def _best(self, V: Array) -> Array:
        """Where v w - p(w) is largest on the interval; infinite if it grows without end."""
        linear, curvature = self.linear, self.curvature
        excess = np.sign(V) * np.maximum(np.abs(V) - linear, 0.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            free = np.where(excess == 0, 0.0, excess / curvature)
        return np.clip(free, self.lower, self.upper)

    def conjugate_per_target(self, V: Array) -> Array:
        best = self._best(V)
        endless = np.isinf(best)
        at = np.where(endless, 0.0, best)
        value = at * (V - self.linear * np.sign(at) - 0.5 * self.curvature * at)
        return np.sum(np.where(endless, np.inf, value), axis=0)

    def dual_scale(self, V: Array) -> Array:
        linear, V = np.broadcast_arrays(self.linear, V)
        with np.errstate(divide="ignore", invalid="ignore"):
            room = np.where(np.isinf(self._best(V)), linear / np.abs(V), 1.0)
        return np.min(room, axis=0, initial=1.0)
