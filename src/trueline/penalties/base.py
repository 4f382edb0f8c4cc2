"""What a penalty is, and the one that is none.

A penalty is a convex, separable function of the coefficients W (one column per target):

    p(W) = alpha * (formula),     its gradient where it is smooth,
    its proximal step   prox(V, step) = argmin_W  1/2 ||W - V||^2 + step p(W),
    its conjugate       p*(V) = sup_W  <V, W> - p(W).

The strength alpha is part of the penalty. It is a number, or an array that broadcasts against W
(one strength per target or per coefficient; 0 leaves a coefficient unpenalised). The intercept is
never penalised: it is not a coefficient here.

No penalty is p(W) = 0, whose conjugate is 0 at V = 0 and infinite elsewhere.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def check_strength(alpha: float | Array) -> None:
    """Raise ``ValueError`` unless every strength is finite and not negative."""
    if isinstance(alpha, float) and 0.0 <= alpha < np.inf:
        return
    values = np.asarray(alpha, dtype=float)
    if values.size == 0 or not np.all(np.isfinite(values)) or np.any(values < 0):
        raise ValueError(f"alpha must be finite and not negative, got {alpha!r}.")


class Penalty(ABC):
    """A separable convex penalty on the coefficients.

    Attributes
    ----------
    name : str
        The name under which the penalty is registered.
    formula : str
        The penalty in plain text, as printed by ``explain()``.
    capabilities : frozenset of str
        What solvers may rely on:

        - ``"smooth"``: :meth:`gradient` exists everywhere;
        - ``"prox"``: :meth:`prox` is exact;
        - ``"conjugate"``: :meth:`conjugate` gives lower bounds;
        - ``"quadratic"``: exactly ``sum_j curvature_j / 2 w_j^2`` (zero curvature included);
        - ``"nonnegative"``: the domain is W >= 0;
        - ``"coordinates"``: exactly ``sum_j linear_j abs(w_j) + curvature_j / 2 w_j^2`` on
          ``lower <= w <= upper``;
        - ``"elastic"``: exactly ``sum_j linear_j abs(w_j) + curvature_j / 2 w_j^2``, everywhere;
        - ``"polyhedral"``: made of straight lines, so that linear programs can hold it;
        - ``"none"``: zero everywhere.
    """

    name: ClassVar[str]

    def __eq__(self, other: object) -> bool:
        """Whether both are the same penalty with equal parameters, arrays included."""
        if type(other) is not type(self):
            return NotImplemented
        return self._parameters() == other._parameters()

    def __hash__(self) -> int:
        return hash((type(self), *self._parameters()))

    def _parameters(self) -> tuple[object, ...]:
        """The parameters, arrays as nested tuples."""
        return tuple(
            (value.shape, *value.ravel().tolist()) if isinstance(value, np.ndarray) else value
            for value in vars(self).values()
        )

    @property
    @abstractmethod
    def formula(self) -> str:
        """The penalty in plain text."""

    @property
    @abstractmethod
    def capabilities(self) -> frozenset[str]:
        """What solvers may rely on."""

    @property
    @abstractmethod
    def curvature(self) -> float | Array:
        """The largest mu with p(W) - mu/2 W^2 still convex (0 if there is none)."""

    #: The prior of a coefficient of which this is the negative logarithm, in words, with phi the
    #: scale of the noise (:mod:`trueline.losses.noise`); None where no density is known.
    prior: ClassVar[str | None] = None

    @property
    def linear(self) -> float | Array:
        """The weight of abs(w), for penalties made of coordinates."""
        return 0.0

    @property
    def lower(self) -> float | Array:
        """The smallest coefficient in the domain."""
        return -np.inf

    @property
    def upper(self) -> float | Array:
        """The largest coefficient in the domain."""
        return np.inf

    def worst_ends(self, low: Array, high: Array) -> tuple[Array, Array]:
        """Points A and B with p*(V) <= p*(A) + p*(B) for every V between low and high.

        A coefficient that may not be negative makes p* grow with V, one that may not be positive
        lets it fall. Otherwise p* is least at zero and grows away from it: the worst is the end
        farther out, or, if zero lies between the ends and p* is not even, no more than both
        together. Blocks of norms grow with the magnitude of each entry, as even penalties do.
        """
        farther = np.where(np.abs(high) >= np.abs(low), high, low)
        nearer = np.where((low < 0) & (high > 0), low + high - farther, 0.0)
        rises, falls = np.asarray(self.lower) >= 0, np.asarray(self.upper) <= 0
        first = np.where(rises, high, np.where(falls, low, farther))
        return first, np.where(rises | falls, 0.0, nearer)

    @abstractmethod
    def value(self, W: Array) -> float:
        """p(W), one number; ``inf`` outside the domain."""

    @abstractmethod
    def value_per_target(self, W: Array) -> Array:
        """p column by column, for W of shape (d, k)."""

    @abstractmethod
    def gradient(self, W: Array) -> Array:
        """The gradient of p; at a kink, the subgradient of least magnitude."""

    @abstractmethod
    def prox(self, V: Array, step: float) -> Array:
        """argmin_W 1/2 ||W - V||^2 + step p(W), elementwise."""

    @abstractmethod
    def conjugate_per_target(self, V: Array) -> Array:
        """p*(V) column by column; ``inf`` outside its domain."""

    @abstractmethod
    def dual_scale(self, V: Array) -> Array:
        """Per column, the largest t <= 1 such that t V is in the domain of p*."""


@dataclass(frozen=True, eq=False)
class NoPenalty(Penalty):
    """No penalty at all.

    Examples
    --------
    >>> import numpy as np
    >>> from trueline.penalties import NoPenalty
    >>> NoPenalty().value(np.ones((3, 1)))
    0.0
    """

    name: ClassVar[str] = "none"
    prior: ClassVar[str | None] = "flat"

    @property
    def formula(self) -> str:
        return "0"

    @property
    def capabilities(self) -> frozenset[str]:
        return frozenset(
            {"smooth", "prox", "conjugate", "quadratic", "elastic", "polyhedral", "none"}
        )

    @property
    def curvature(self) -> float:
        return 0.0

    def value(self, W: Array) -> float:
        return 0.0

    def value_per_target(self, W: Array) -> Array:
        return np.zeros(W.shape[1])

    def gradient(self, W: Array) -> Array:
        return np.zeros_like(W)

    def prox(self, V: Array, step: float) -> Array:
        return V

    def conjugate_per_target(self, V: Array) -> Array:
        return np.where(np.any(V != 0, axis=0), np.inf, 0.0)

    def dual_scale(self, V: Array) -> Array:
        return np.where(np.any(V != 0, axis=0), 0.0, 1.0)
