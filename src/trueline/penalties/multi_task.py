r"""Norms of the rows of W: a column of the design serves all targets or none.

    p(W)          = alpha (r sum_j ||W_j|| + (1 - r)/2 ||W||^2)     W_j the coefficients of column j
    prox(V, step) = V_j max(0, 1 - step alpha r / ||V_j||) / (1 + step alpha (1 - r))
    p*(V)         = sum_j max(0, ||V_j|| - alpha r)^2 / (2 alpha (1 - r))
                    (alpha (1 - r) = 0: 0 where ||V_j|| <= alpha r, infinite elsewhere)

The targets are coupled: what is given per target adds up to the whole, and means nothing by itself.

G. Obozinski, B. Taskar, M. I. Jordan, "Joint covariate selection and joint subspace selection for
multiple classification problems", Stat. Comput. 20 (2010) 231-252.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from trueline.penalties.base import Array, check_strength
from trueline.penalties.group import BlockNorms, Integers

__all__ = ["MultiTask"]


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
        return np.broadcast_to(np.max(V, axis=1, keepdims=True, initial=0.0), V.shape)

    def _sums(self, V: Array) -> Array:
        return np.broadcast_to(np.sum(V, axis=1, keepdims=True), V.shape)

    def _sizes(self, shape: tuple[int, ...]) -> float:
        return float(shape[1])

    def _over_targets(self, entries: Array) -> Array:
        total = np.sum(entries, axis=0)
        # Outside of its domain the conjugate is infinite, whichever target is to blame.
        return np.full(len(total), np.inf) if np.isinf(total).any() else total

    def _least(self, room: Array) -> Array:
        return np.full(room.shape[1], np.min(room, initial=1.0))
