r"""The hinge and its relatives: losses of support vector classification, and the 0-1 loss.

Labels are y in {-1, +1}. With y y = 1 the margin's shortfall is 1 - y z = y (y - z): a hinge is a
quantile loss whose side depends on the label, max(0, y - z) for y = 1 and max(0, z - y) for y = -1.
With a factor c that is ``positive`` for y = 1 and 1 for y = -1,

    hinge            l(z)  = c max(0, 1 - y z)
                     l*(u) = u y                    for -c <= y u <= 0
    squared hinge    l(z)  = c max(0, 1 - y z)^2
                     l*(u) = u y + u^2 / (4 c)      for y u <= 0

C. Cortes and V. Vapnik, "Support-vector networks", Mach. Learn. 20 (1995) 273-297.

The hard margin allows no row inside:

    l(z) = 0 if y z >= 1, infinity otherwise        y in {-1, +1}

What is minimised with it is 1/2 ||w||^2, over the hyperplanes that keep every row on its margin or
beyond: the limit of the hinge for C to infinity.

The hinge of several classes says by how much another class's score comes too near. The target of a
row is one-hot, y_k = 1 for its class; its k scores are coupled:

    l(z)  = max_k (z_k + 1 - y_k) - y.z
    l*(u) = y.u            for u = p - y with p in the simplex

and l(z) = 0 where the own score exceeds all others by at least 1. For two classes it is the hinge
of the difference z_y - z_other.

K. Crammer and Y. Singer, "On the algorithmic implementation of multiclass kernel-based vector
machines", J. Mach. Learn. Res. 2 (2001) 265-292.

The 0-1 loss is the number of mistakes:

    loss     1 if y z <= 0, else 0        y in {-1, +1}
    minimum  0, reached where every row is on its side

It is neither convex nor continuous: no conjugate gives bounds, and what is proven about it is
proven by counting (:mod:`trueline.certificates.special.mistakes`) or by search.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np

from trueline.losses.base import Array, Loss, labels_are_signs, rows_are_one_hot


@dataclass(frozen=True)
class _HingeLike(Loss):
    """What both have in common: labels, where the loss has its kink, and what the classes weigh."""

    positive: float | tuple[float, ...] = 1.0

    check_target = labels_are_signs

    def __post_init__(self) -> None:
        if not (np.isfinite(self.positive).all() and (np.array(self.positive) > 0).all()):
            raise ValueError(f"positive must be positive and finite, got {self.positive!r}.")

    @property
    def kinks(self) -> tuple[float, ...]:
        return (0.0,)

    def of_target(self, number: int) -> Self:
        if not isinstance(self.positive, tuple):
            return self
        return replace(self, positive=self.positive[number])

    @property
    def _most(self) -> float:
        """The larger factor."""
        return max(1.0, float(np.max(self.positive)))

    @property
    def least_at_mistake(self) -> float:
        return min(1.0, float(np.min(self.positive)))  # where the score is zero

    def _factor(self, y: Array) -> Any:
        """c of every row."""
        if self.positive == 1.0:
            return 1.0
        return np.where(y > 0, np.array(self.positive), 1.0)

    def _shortfall(self, y: Array, z: Array) -> Array:
        """By how much the margin y z is short of 1."""
        return np.maximum(0.0, 1.0 - y * z)

    def _shares(self, y: Array, weights: Array) -> tuple[Array, Array]:
        """What the rows with y = -1 and those with y = +1 weigh, per target."""
        above = weights @ (y > 0)
        return weights.sum() - above, above * np.asarray(self.positive)

    def dual_boxes(self, y: Array) -> tuple[Array, Array, Array, Array]:
        e, h, _, most = self.dual_box
        factor = np.broadcast_to(self._factor(y), np.shape(y))
        low, high = np.where(y > 0, -most, 0.0), np.where(y > 0, 0.0, most)
        return np.full(np.shape(y), e), h / factor, low * factor, high * factor

    def project_dual(self, y: Array, u: Array) -> Array:
        most = self.dual_box[3] * self._factor(y)
        return np.where(y > 0, np.clip(u, -most, 0.0), np.clip(u, 0.0, most))


@dataclass(frozen=True)
class Hinge(_HingeLike):
    """The hinge: ``max(0, 1 - y z)`` for labels y in {-1, +1}.

    Parameters
    ----------
    positive : float or tuple of float, default=1.0
        What rows with y = +1 count; those with y = -1 count one. A tuple has one for each target.

    Examples
    --------
    >>> import numpy as np
    >>> from trueline.losses import Hinge
    >>> Hinge().value(np.array([1.0, 1.0, -1.0]), np.array([0.25, 2.0, 2.0]))
    array([0.75, 0.  , 3.  ])
    """

    name: ClassVar[str] = "hinge"
    formula: ClassVar[str] = "max(0, 1 - y_i z_i)"
    capabilities: ClassVar[frozenset[str]] = frozenset(
        {"conjugate", "piecewise_linear", "dual_box", "margins"}
    )

    @property
    def jumps(self) -> tuple[float, ...]:
        return (1.0,)

    def first_slopes(self, y: Array) -> Array:
        return np.where(y > 0, -1.0, 0.0) * self._factor(y)

    def row_jumps(self, y: Array) -> Array:
        return np.broadcast_to(self._factor(y), (1, *np.shape(y)))

    @property
    def dual_box(self) -> tuple[float, float, float, float]:
        return 0.0, 0.0, -1.0, 1.0

    @property
    def slope_bound(self) -> float:
        return self._most

    def value(self, y: Array, z: Array) -> Array:
        return self._factor(y) * self._shortfall(y, z)

    def gradient(self, y: Array, z: Array) -> Array:
        return np.where(y * z < 1.0, -y, 0.0) * self._factor(y)

    def constant(self, y: Array, weights: Array) -> Array:
        below, above = self._shares(y, weights)
        # The heavier class is on its margin; where they weigh the same all in between is as good.
        return np.sign(above - below)

    def conjugate(self, y: Array, u: Array) -> Array:
        along = y * u
        inside = (along <= 0.0) & (along >= -self._factor(y))
        return np.where(inside, along, np.inf)

    def least_margin(self, level: float) -> float:
        return 1.0 - level / min(1.0, float(np.min(self.positive)))


@dataclass(frozen=True)
class SquaredHinge(_HingeLike):
    """The squared hinge: ``max(0, 1 - y z)^2`` for labels y in {-1, +1} (without a factor 1/2).

    Parameters
    ----------
    positive : float or tuple of float, default=1.0
        What rows with y = +1 count; those with y = -1 count one. A tuple has one for each target.

    Examples
    --------
    >>> import numpy as np
    >>> from trueline.losses import SquaredHinge
    >>> SquaredHinge().value(np.array([1.0, 1.0, -1.0]), np.array([0.25, 2.0, 2.0]))
    array([0.5625, 0.    , 9.    ])
    """

    name: ClassVar[str] = "squared_hinge"
    formula: ClassVar[str] = "max(0, 1 - y_i z_i)^2"
    capabilities: ClassVar[frozenset[str]] = frozenset(
        {"smooth", "curvature", "hessian", "conjugate", "dual_box", "margins"}
    )

    @property
    def dual_box(self) -> tuple[float, float, float, float]:
        return 0.0, 0.5, -np.inf, np.inf

    @property
    def compiled(self) -> int:
        return 2 if self.positive == 1.0 else 0

    @property
    def curvature_bound(self) -> float:
        return 2.0 * self._most

    def value(self, y: Array, z: Array) -> Array:
        return self._factor(y) * self._shortfall(y, z) ** 2

    def gradient(self, y: Array, z: Array) -> Array:
        return -2.0 * y * self._factor(y) * self._shortfall(y, z)

    def curvature(self, y: Array, z: Array) -> Array:
        curvature = np.where(y * z < 1.0, 2.0, 0.0) * self._factor(y)
        return curvature.astype(np.result_type(y, z))

    def least_curvature(self, y: Array, z: Array, reach: Array) -> Array:
        return np.where(y * z + reach < 1.0, 2.0, 0.0) * self._factor(y)

    def constant(self, y: Array, weights: Array) -> Array:
        below, above = self._shares(y, weights)
        return (above - below) / (above + below)

    def conjugate(self, y: Array, u: Array) -> Array:
        # One product: two of them could be infinite with opposite signs.
        return np.where(y * u <= 0.0, u * (y + 0.25 * u / self._factor(y)), np.inf)

    def least_margin(self, level: float) -> float:
        return 1.0 - float(np.sqrt(level / min(1.0, float(np.min(self.positive)))))


@dataclass(frozen=True)
class HardMargin(Loss):
    """Infinite for rows with ``y z < 1``, else zero.

    Examples
    --------
    >>> import numpy as np
    >>> from trueline.losses import HardMargin
    >>> HardMargin().value(np.array([1.0, -1.0]), np.array([1.0, -0.5]))
    array([ 0., inf])
    """

    name: ClassVar[str] = "hard_margin"
    formula: ClassVar[str] = "0 if y_i z_i >= 1, else infinity"
    capabilities: ClassVar[frozenset[str]] = frozenset()

    check_target = labels_are_signs

    @property
    def least_at_mistake(self) -> float:
        return np.inf

    def value(self, y: Array, z: Array) -> Array:
        return np.where(y * z >= 1.0, 0.0, np.inf)

    def gradient(self, y: Array, z: Array) -> Array:
        return np.zeros_like(z - y)

    def conjugate(self, y: Array, u: Array) -> Array:
        return np.where(y * u <= 0.0, y * u, np.inf)

    def project_dual(self, y: Array, u: Array) -> Array:
        return np.where(y > 0, np.minimum(u, 0.0), np.maximum(u, 0.0))


# Dual points are rounded to multiples of this: so many of them add up without rounding.
_GRID = 2.0**40


@dataclass(frozen=True)
class CrammerSinger(Loss):
    """The multiclass hinge: ``max_k (z_k + [k is not y]) - z_y`` for the row's class y, one-hot.

    Examples
    --------
    >>> import numpy as np
    >>> from trueline.losses import CrammerSinger
    >>> y = np.array([[1.0, 0.0, 0.0], [1.0, 0.0, 0.0]])
    >>> CrammerSinger().value(y, np.array([[2.0, 0.0, 1.5], [2.0, 0.0, 1.0]])).sum(axis=1)
    array([0.5, 0. ])
    """

    name: ClassVar[str] = "crammer_singer"
    formula: ClassVar[str] = "max_k (z_ik + [k is not y_i]) - z_i,y_i"
    capabilities: ClassVar[frozenset[str]] = frozenset({"conjugate", "coupled", "dual_classes"})

    check_target = rows_are_one_hot

    @property
    def least_at_mistake(self) -> float:
        return 1.0  # where another score is as large as the own

    @property
    def slope_bound(self) -> float:
        return 1.0

    def value(self, y: Array, z: Array) -> Array:
        own = (y * z).sum(axis=1, keepdims=True)
        short = np.where(y != 0, 0.0, z + 1.0 - own).max(axis=1, keepdims=True)
        return np.where(y != 0, short, 0.0)

    def gradient(self, y: Array, z: Array) -> Array:
        own = (y * z).sum(axis=1, keepdims=True)
        short = np.where(y != 0, 0.0, z + 1.0 - own)
        worst = np.eye(z.shape[1])[short.argmax(axis=1)]
        return np.where(short.max(axis=1, keepdims=True) > 0, worst - y, 0.0)

    def conjugate(self, y: Array, u: Array) -> Array:
        inside = (u.sum(axis=1) == 0) & ((u + y) >= 0).all(axis=1) & ((u + y) <= 1).all(axis=1)
        return np.where(inside[:, None], np.where(y != 0, u, 0.0), np.inf)

    def project_dual(self, y: Array, u: Array) -> Array:
        """A point of the domain next to u, whose entries add up to zero without rounding."""
        others = np.floor(np.where(y != 0, 0.0, np.clip(u, 0.0, 1.0)) * _GRID)
        total = others.sum(axis=1, keepdims=True)
        with np.errstate(divide="ignore", invalid="ignore"):
            room = np.where(total > _GRID, _GRID / total, 1.0)
        others = np.floor(others * room) / _GRID
        return np.where(y != 0, -others.sum(axis=1, keepdims=True), others)


@dataclass(frozen=True)
class ZeroOne(Loss):
    """1 for a row on the wrong side or on the boundary, 0 for one on its side.

    Examples
    --------
    >>> import numpy as np
    >>> from trueline.losses import ZeroOne
    >>> ZeroOne().value(np.array([1.0, 1.0, -1.0]), np.array([0.5, 0.0, 2.0])).tolist()
    [0.0, 1.0, 1.0]
    """

    name: ClassVar[str] = "zero_one"
    formula: ClassVar[str] = "1 if y z <= 0"
    capabilities: ClassVar[frozenset[str]] = frozenset({"nonconvex"})

    check_target = labels_are_signs

    @property
    def least_at_mistake(self) -> float:
        return 1.0

    def value(self, y: Array, z: Array) -> Array:
        return np.asarray(y * z <= 0, dtype=np.float64)

    def gradient(self, y: Array, z: Array) -> Array:
        return np.zeros_like(z - y)
