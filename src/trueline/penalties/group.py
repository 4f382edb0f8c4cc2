r"""Norms of groups of coefficients, or of the coefficients of a column for all targets.

    p(w)          = alpha sum_g weight_g ||w_g|| + l2/2 ||w||^2
    prox(v, step) = v_g max(0, 1 - step alpha weight_g / ||v_g||) / (1 + step l2)
    p*(v)         = sum_g max(0, ||v_g|| - alpha weight_g)^2 / (2 l2)
                    (l2 = 0: 0 where ||v_g|| <= alpha weight_g, infinite elsewhere)

A group is in the model or out of it as a whole. Each target has groups of its own: targets do not
interact.

M. Yuan, Y. Lin, "Model selection and estimation in regression with grouped variables", J. R.
Statist. Soc. B 68 (2006) 49-67, section 2.3 (weights sqrt(group size) included).

With norms of the rows of W a column of the design serves all targets or none:

    p(W)          = alpha (r sum_j ||W_j|| + (1 - r)/2 ||W||^2)     W_j the coefficients of column j
    prox(V, step) = V_j max(0, 1 - step alpha r / ||V_j||) / (1 + step alpha (1 - r))
    p*(V)         = sum_j max(0, ||V_j|| - alpha r)^2 / (2 alpha (1 - r))
                    (alpha (1 - r) = 0: 0 where ||V_j|| <= alpha r, infinite elsewhere)

The targets are coupled: what is given per target adds up to the whole, and means nothing by itself.

G. Obozinski, B. Taskar, M. I. Jordan, "Joint covariate selection and joint subspace selection for
multiple classification problems", Stat. Comput. 20 (2010) 231-252.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from trueline.penalties.base import Array, Penalty, check_strength

Integers = NDArray[np.intp]

_EPS = float(np.finfo(np.float64).eps)


def unit_and_norm(V: Array, largest: Array, sums: Any) -> tuple[Array, Array]:
    """V divided by its blocks' norms (0 / 0 is 0), and the norms, safe from overflow.

    ``largest`` holds the largest magnitude of each block, spread over its entries; ``sums`` adds
    entries up over the blocks, spread likewise.
    """
    scaled = _scaled(V, largest)
    size = np.sqrt(sums(scaled * scaled))
    unit = np.divide(scaled, size, out=np.zeros(V.shape), where=size > 0)
    with np.errstate(over="ignore"):
        return unit, largest * size


def _scaled(V: Array, largest: Array) -> Array:
    # The largest entries of subnormal blocks have no reciprocal; as divisors they are fine.
    return np.divide(V, largest, out=np.zeros(V.shape), where=largest > 0)


class BlockNorms(Penalty):
    """The formulas above for blocks of any kind, written once.

    Everything here has the shape of W, or is spread to it by NumPy's rules: the norm of a block
    stands at each of its entries.
    """

    def _parameters(self) -> tuple[object, ...]:
        # Not vars(self), where cached properties are kept.
        values = [getattr(self, field.name) for field in fields(self)]  # type: ignore[arg-type]
        return tuple(
            (value.shape, *value.ravel().tolist()) if isinstance(value, np.ndarray) else value
            for value in values
        )

    @property
    @abstractmethod
    def curvature(self) -> float:
        """The weight of 1/2 w^2."""

    @abstractmethod
    def labels(self, n_features: int) -> Integers:
        """To which block each row of W belongs, 0, 1, ..."""

    @abstractmethod
    def strengths(self, n_features: int, n_targets: int) -> Array:
        """The factor of each block's norm, of shape (blocks, n_targets).

        If the targets are coupled, all columns are the same.
        """

    @abstractmethod
    def _largest(self, V: Array) -> Array:
        """The largest magnitude of each block, spread."""

    @abstractmethod
    def _sums(self, V: Array) -> Array:
        """Sums over each block, spread."""

    @abstractmethod
    def _sizes(self, shape: tuple[int, ...]) -> Array | float:
        """How many entries each block has, spread."""

    @abstractmethod
    def _over_targets(self, entries: Array) -> Array:
        """Sums per target of entries that belong to blocks."""

    def _linear(self, shape: tuple[int, ...]) -> Array:
        """The factor of each entry's block."""
        return self.strengths(*shape)[self.labels(shape[0])]

    def _norms(self, V: Array) -> tuple[Array, Array]:
        return unit_and_norm(V, self._largest(np.abs(V)), self._sums)

    def _norm(self, V: Array) -> Array:
        largest = self._largest(np.abs(V))
        scaled = _scaled(V, largest)
        with np.errstate(over="ignore"):
            return largest * np.sqrt(self._sums(scaled * scaled))

    def value(self, W: Array) -> float:
        return float(np.sum(self.value_per_target(W)))

    def value_per_target(self, W: Array) -> Array:
        """Each entry's share w^2 / ||w_g|| of its block's norm, and half its square."""
        W = np.asarray(W, dtype=np.float64)
        unit, _ = self._norms(W)
        with np.errstate(over="ignore"):
            share = self._linear(W.shape) * np.abs(W * unit)
            # Not W**2, whose overflow would turn a strength of zero into NaN.
            return np.sum(share + (0.5 * self.curvature * W) * W, axis=0)

    def gradient(self, W: Array) -> Array:
        W = np.asarray(W, dtype=np.float64)
        return self._linear(W.shape) * self._norms(W)[0] + self.curvature * W

    def prox(self, V: Array, step: float) -> Array:
        V = np.asarray(V, dtype=np.float64)
        norm = self._norm(V)
        threshold = step * self._linear(V.shape)
        kept = np.zeros(V.shape)
        np.divide(threshold, norm, out=kept, where=norm > threshold)
        return np.where(norm > threshold, V * (1.0 - kept), V * (threshold == 0)) / (
            1.0 + step * self.curvature
        )

    def conjugate_per_target(self, V: Array) -> Array:
        V = np.asarray(V, dtype=np.float64)
        unit, norm = self._norms(V)
        linear = self._linear(V.shape)
        beyond = norm > linear
        excess = np.subtract(norm, linear, out=np.zeros(V.shape), where=beyond)
        with np.errstate(divide="ignore", over="ignore"):
            reach = np.divide(excess, self.curvature, out=np.zeros(V.shape), where=beyond)
            terms = excess * (0.5 * reach)
        # A block's term is shared by its entries as their squares are.
        shares = np.multiply(terms, unit * unit, out=np.zeros(V.shape), where=unit != 0)
        return self._over_targets(shares)

    def dual_scale(self, V: Array) -> Array:
        V = np.asarray(V, dtype=np.float64)
        norm, linear = self._norm(V), self._linear(V.shape)
        with np.errstate(over="ignore"):
            # Inside by what the norm may round by, here and again when it is taken of t V.
            norm = norm * (1.0 + 2.0 * (self._sizes(V.shape) + 4.0) * _EPS)
        bounded = (norm > linear) & (self.curvature == 0)
        room = np.divide(linear, norm, out=np.ones(V.shape), where=bounded)
        return self._least(room)

    def _least(self, room: Array) -> Array:
        return np.min(room, axis=0, initial=1.0)

    def along(self, V: Array, E: Array) -> Array:
        """Magnitudes in the direction of each block of V, whose norms are those of the blocks of E.

        With them ||abs(V) + along|| = ||V|| + ||E||.
        """
        return np.abs(self._norms(V)[0]) * self._norm(E)

    def unpenalised(self, shape: tuple[int, ...]) -> NDArray[np.bool_]:
        """Which coefficients of W, of that shape, are free of any penalty."""
        return (self._linear(shape) == 0) & (self.curvature == 0)


@dataclass(frozen=True, eq=False)
class Group(BlockNorms):
    """Norms of groups of coefficients, and half the squared norm of all.

    Parameters
    ----------
    alpha : float or array of shape (k,), default=1.0
        Strength of the norms; an array gives one strength per target.
    groups : array of shape (d,), optional
        The group of each coefficient, as integers 0, 1, ..., none left out. By default every
        coefficient is a group of its own, which is the lasso.
    weights : array of shape (number of groups,), optional
        Factors of the norms, by default the square roots of the groups' sizes; 0 leaves a group
        unpenalised.
    l2 : float, default=0.0
        Strength of the squared norm.

    Examples
    --------
    >>> import numpy as np
    >>> from trueline.penalties import Group
    >>> penalty = Group(alpha=2.0, groups=np.array([0, 0, 1]), weights=np.array([1.0, 3.0]))
    >>> penalty.value(np.array([[3.0], [-4.0], [0.5]]))
    13.0
    """

    alpha: float | Array = 1.0
    groups: NDArray[np.integer] | None = None
    weights: Array | None = None
    l2: float = 0.0
    name: ClassVar[str] = "group"

    def __post_init__(self) -> None:
        check_strength(self.alpha)
        if np.ndim(self.alpha) > 1:
            raise ValueError("alpha must be one number, or one per target.")
        if not (np.isfinite(self.l2) and self.l2 >= 0):
            raise ValueError(f"l2 must be finite and not negative, got {self.l2!r}.")
        if self.groups is None:
            if self.weights is not None:
                raise ValueError("weights of groups need groups.")
            return
        groups = np.asarray(self.groups)
        present = np.unique(groups)
        if (
            groups.ndim != 1
            or groups.dtype.kind not in "iu"
            or not np.array_equal(present, np.arange(len(present)))
        ):
            raise ValueError(
                "groups must hold one integer per coefficient, from 0 up to the number of groups "
                "less one, none left out."
            )
        if self.weights is None:
            return
        weights = np.asarray(self.weights, dtype=np.float64)
        if weights.shape != (len(present),):
            raise ValueError(
                f"weights must have one number per group: {len(present)}, got an array of shape "
                f"{weights.shape}."
            )
        if not (np.isfinite(weights).all() and (weights >= 0).all()):
            raise ValueError("weights must be finite and not negative.")

    @property
    def formula(self) -> str:
        ridge = " + l2/2 ||w||^2" if self.l2 else ""
        return f"alpha sum_g weight_g ||w_g||{ridge}"

    @property
    def capabilities(self) -> frozenset[str]:
        return frozenset({"prox", "conjugate", "blocks"})

    @property
    def curvature(self) -> float:
        return float(self.l2)

    @cached_property
    def _order(self) -> tuple[Integers, Integers, Integers, Array]:
        """Labels, the rows sorted by group, where each group starts, and how large it is."""
        labels = np.asarray(self.groups, dtype=np.intp)
        order = np.argsort(labels, kind="stable")
        sizes = np.bincount(labels)
        return labels, order, np.cumsum(sizes) - sizes, sizes.astype(np.float64)

    def labels(self, n_features: int) -> Integers:
        if self.groups is None:
            return np.arange(n_features)
        labels = self._order[0]
        if len(labels) != n_features:
            raise ValueError(
                f"groups tell the group of {len(labels)} coefficients, but there are {n_features}."
            )
        return labels

    def strengths(self, n_features: int, n_targets: int) -> Array:
        if self.groups is None:
            weights = np.ones(n_features)
        elif self.weights is None:
            weights = np.sqrt(self._order[3])
        else:
            weights = np.asarray(self.weights, dtype=np.float64)
        with np.errstate(over="ignore"):
            return np.multiply.outer(weights, np.broadcast_to(self.alpha, n_targets))

    def _reduce(self, operation: Any, V: Array) -> Array:
        if self.groups is None or not V.size:
            return V
        labels, order, starts, _ = self._order
        return operation.reduceat(V[order], starts, axis=0)[labels]

    def _largest(self, V: Array) -> Array:
        return self._reduce(np.maximum, V)

    def _sums(self, V: Array) -> Array:
        return self._reduce(np.add, V)

    def _sizes(self, shape: tuple[int, ...]) -> Array | float:
        return 1.0 if self.groups is None else self._order[3][self.labels(shape[0])][:, None]

    def _over_targets(self, entries: Array) -> Array:
        return np.sum(entries, axis=0)


@dataclass(frozen=True, eq=False)
class MultiTask(BlockNorms):
    """Norms of the rows of W mixed with half its squared norm.

    Parameters
    ----------
    alpha : float, default=1.0
        Strength, the same for all targets.
    l1_ratio : float, default=1.0
        The share r of the norms, between 0 and 1.

    Examples
    --------
    >>> import numpy as np
    >>> from trueline.penalties import MultiTask
    >>> MultiTask(alpha=2.0).value(np.array([[3.0, -4.0], [0.0, 0.0]]))
    10.0
    """

    alpha: float = 1.0
    l1_ratio: float = 1.0
    name: ClassVar[str] = "multi_task"

    def __post_init__(self) -> None:
        check_strength(self.alpha)
        if np.ndim(self.alpha):
            raise ValueError("alpha must be one number: the targets are penalised together.")
        if not 0.0 <= self.l1_ratio <= 1.0:
            raise ValueError(f"l1_ratio must lie between 0 and 1, got {self.l1_ratio!r}.")

    @property
    def formula(self) -> str:
        return "alpha (l1_ratio sum_j ||W_j|| + (1 - l1_ratio)/2 ||W||^2)"

    @property
    def capabilities(self) -> frozenset[str]:
        return frozenset({"prox", "conjugate", "blocks", "coupled"})

    @property
    def curvature(self) -> float:
        return float(self.alpha * (1.0 - self.l1_ratio))

    def labels(self, n_features: int) -> Integers:
        return np.arange(n_features)

    def strengths(self, n_features: int, n_targets: int) -> Array:
        return np.full((n_features, n_targets), self.alpha * self.l1_ratio)

    def _largest(self, V: Array) -> Array:
        return np.max(V, axis=1, keepdims=True, initial=0.0)

    def _sums(self, V: Array) -> Array:
        return np.sum(V, axis=1, keepdims=True)

    def _sizes(self, shape: tuple[int, ...]) -> float:
        return float(shape[1])

    def _over_targets(self, entries: Array) -> Array:
        total = np.sum(entries, axis=0)
        # Outside of its domain the conjugate is infinite, whichever target is to blame.
        return np.full(len(total), np.inf) if np.isinf(total).any() else total

    def _least(self, room: Array) -> Array:
        return np.full(room.shape[1], np.min(room, initial=1.0))
