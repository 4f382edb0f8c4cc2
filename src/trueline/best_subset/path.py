"""What a search over several sizes has found, as arrays: one row per size."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trueline.wording import Readable

__all__ = ["SubsetPath", "carried_down"]

Array = NDArray[np.float64]


def carried_down(k: NDArray[np.int64], delta: Array, bound: Array) -> Array:
    """Bounds of all sizes, each at least that of every larger size.

    Supports of few columns are among those of at most as many as a larger size allows: what bounds
    these bounds them too, if it was not stated for fewer of them (``delta``).
    """
    bound = np.array(bound, dtype=float)
    for i in np.argsort(-np.asarray(k), kind="stable"):
        larger = (k >= k[i]) & (delta <= delta[i])
        bound[i] = bound[larger].max()
    return bound


_SHOWN = 10  # sizes, and columns of a size, that are printed


@dataclass(frozen=True, repr=False)
class SubsetPath(Readable):
    """The best supports of several sizes.

    Attributes
    ----------
    k : array of int of shape (m,)
        The sizes that were asked for.
    supports : list of m arrays of int
        Indices of the columns, in order; fewer than k if more columns add nothing.
    coef : array of shape (m, d)
    intercept : array of shape (m,)
    objective : array of shape (m,)
        What was minimised.
    lower_bound : array of shape (m,)
        No support of so many columns has a smaller objective.
    proven : array of bool of shape (m,)
        Whether the search was finished: no support is better, of those that were compared.
    nodes : array of int of shape (m,)
        Nodes of the branch and bound.
    delta : array of shape (m,)
        Zero where all supports were compared; otherwise those whose correlation matrix has no
        eigenvalue below it.
    residual_square : array of shape (m,)
        sum_i s_i (y_i - x_i.w - b)^2.
    seconds : array of shape (m,)
    criteria : dict of arrays of shape (m,)
        "aic", "aicc", "bic", "adjusted_r2" and "cp".
    """

    k: NDArray[np.int64]
    supports: list[NDArray[np.int64]]
    coef: NDArray[Any]
    intercept: NDArray[Any]
    objective: Array
    lower_bound: Array
    proven: NDArray[np.bool_]
    nodes: NDArray[np.int64]
    delta: Array
    residual_square: Array
    seconds: Array
    criteria: Mapping[str, Array]

    def __len__(self) -> int:
        return len(self.k)

    def __str__(self) -> str:
        sizes = f"{self.k.min()}" if len(self) == 1 else f"{self.k.min()} to {self.k.max()}"
        lines = [
            f"SubsetPath: best subsets of {sizes} of {self.coef.shape[1]} columns, "
            f"{int(self.proven.sum())} of {len(self)} proven to be the best"
        ]
        for i in range(min(len(self), _SHOWN)):
            proof = "proven" if self.proven[i] else f"within {self.relative_gap[i]:.2g}"
            columns = ", ".join(map(str, self.supports[i][:_SHOWN]))
            more = ", ..." if len(self.supports[i]) > _SHOWN else ""
            lines.append(f"{self.k[i]:4d}: columns {columns}{more}; {proof}")
        if len(self) > _SHOWN:
            lines.append(f"      and {len(self) - _SHOWN} more sizes")
        return "\n".join(lines)

    @property
    def relative_gap(self) -> Array:
        """(objective - lower bound) / objective, zero where both vanish."""
        gap = np.maximum(self.objective - self.lower_bound, 0.0)
        return np.divide(gap, self.objective, out=np.zeros_like(gap), where=self.objective > 0)

    def rows(self) -> Iterator[dict[str, Any]]:
        """One dictionary per size, for tables."""
        for i in range(len(self)):
            yield {
                "k": int(self.k[i]),
                "support": self.supports[i].tolist(),
                "objective": float(self.objective[i]),
                "lower_bound": float(self.lower_bound[i]),
                "proven": bool(self.proven[i]),
                "nodes": int(self.nodes[i]),
                **{name: float(values[i]) for name, values in self.criteria.items()},
            }

    def to_frame(self) -> Any:
        """The rows as a pandas DataFrame."""
        from trueline.errors import require

        return require("pandas", "tables").DataFrame(list(self.rows()))
