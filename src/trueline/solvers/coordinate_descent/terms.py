"""The penalty of a problem with one target, column by column."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from trueline.penalties import Penalty

__all__ = ["Terms", "penalty_terms"]

Array = NDArray[np.float64]
Integers = NDArray[np.intp]


@dataclass(frozen=True)
class Terms:
    """The penalty sum_j l_j abs(w_j) + a_j/2 w_j^2 and the bounds, one number per column.

    A path has many of them that differ by two factors alone: these are kept apart, and only the
    columns that are asked for are multiplied.

    Attributes
    ----------
    lower, upper : arrays of shape (d,)
    level : float, optional
        Set if l is the same positive number everywhere, a is the same too, and nothing is bounded:
        then the largest correlation says what the general formulas would have to look for column by
        column.
    """

    _linear: Array
    _bend: Array
    lower: Array
    upper: Array
    level: float | None = None
    _factors: tuple[float, float] = (1.0, 1.0)

    @classmethod
    def of(cls, linear: Array, bend: Array, lower: Array, upper: Array) -> Terms:
        """With the level found out."""
        same = len(linear) > 0 and linear[0] > 0 and bool((linear == linear[0]).all())
        same = same and bool((bend == bend[0]).all())
        is_free = same and bool(np.isneginf(lower).all() and np.isposinf(upper).all())
        return cls(linear, bend, lower, upper, float(linear[0]) if is_free else None)

    def scaled(self, linear: float, bend: float) -> Terms:
        """Both parts of the penalty multiplied by a number each."""
        level = None if self.level is None else self.level * linear
        factors = (self._factors[0] * linear, self._factors[1] * bend)
        return Terms(self._linear, self._bend, self.lower, self.upper, level, factors)

    @cached_property
    def linear(self) -> Array:
        """l, for all columns."""
        return self._linear * self._factors[0]

    @cached_property
    def bend(self) -> Array:
        """a, for all columns."""
        return self._bend * self._factors[1]

    @property
    def same_bend(self) -> float:
        """a, where it is the same everywhere because the level is set."""
        return float(self._bend[0]) * self._factors[1]

    @property
    def has_bend(self) -> bool:
        """Whether the penalty is curved somewhere."""
        first = self._bend[:1] if self.level is not None else self._bend
        return self._factors[1] > 0 and bool(first.any())

    def at(self, columns: Integers) -> tuple[Array, Array, Array, Array]:
        """l, a and the bounds of some columns."""
        if self.level is not None:  # the same everywhere
            parts = (self.level, self.same_bend, -np.inf, np.inf)
            linear, curvatures, lower, upper = np.repeat(parts, len(columns)).reshape(4, -1)
            return linear, curvatures, lower, upper
        return (
            self._linear[columns] * self._factors[0],
            self._bend[columns] * self._factors[1],
            self.lower[columns],
            self.upper[columns],
        )


def penalty_terms(penalty: Penalty, n_features: int, n_targets: int, target: int = 0) -> Terms:
    """The penalty on the coefficients of one target, as arrays of shape (d,)."""
    shape = (n_features, n_targets)
    parts = (penalty.linear, penalty.curvature, penalty.lower, penalty.upper)
    columns = (np.broadcast_to(np.asarray(part, float), shape)[:, target] for part in parts)
    return Terms.of(*(np.ascontiguousarray(column) for column in columns))
