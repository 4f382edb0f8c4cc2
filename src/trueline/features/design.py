"""DesignMatrix: what a table or a formula becomes."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trueline.wording import Readable, counted

__all__ = ["DesignMatrix", "grouped_by_source"]

_SHOWN = 12  # lines about columns that a design prints


@dataclass(frozen=True, repr=False)
class DesignMatrix(Readable):
    """A design, its target, and where every column comes from.

    Made by :func:`~trueline.design_matrix` and :func:`~trueline.formula`. It unpacks into
    ``X, y, names``.

    Attributes
    ----------
    X : array or sparse matrix of shape (n, m)
    y : array of shape (n,) or None
    names : array of str
        Of the columns of X.
    sources : array of str
        The columns of the table, or the terms of the formula, that they come from.
    features : TableFeatures or FormulaFeatures
        Makes the design of another table in the same way.
    """

    X: Any
    y: NDArray[Any] | None
    names: NDArray[np.object_]
    sources: NDArray[np.object_]
    features: Any

    def __iter__(self) -> Iterator[Any]:
        return iter((self.X, self.y, self.names))

    def __str__(self) -> str:
        kind = "sparse" if hasattr(self.X, "tocsr") else "dense"
        rows, columns = self.X.shape
        target = "no target" if self.y is None else f"target of shape {self.y.shape}"
        head = f"DesignMatrix: {counted(rows, 'row')} x {counted(columns, 'column')}, {kind}; "
        lines = self.features.explain().splitlines()
        if len(lines) > _SHOWN + 1:
            more = f"and {len(lines) - _SHOWN} more lines: features.explain() has them all"
            lines = [*lines[:_SHOWN], more]
        return "\n".join([head + target, *lines])

    @property
    def design(self) -> Any:
        """X, by its earlier name."""
        return self._earlier("design", "X")

    @property
    def target(self) -> Any:
        """y, by its earlier name."""
        return self._earlier("target", "y")

    def _earlier(self, old: str, new: str) -> Any:
        message = f"{old} of a DesignMatrix is deprecated: it is {new} now."
        warnings.warn(message, FutureWarning, stacklevel=3)
        return getattr(self, new)


def grouped_by_source(
    names: NDArray[np.object_], sources: NDArray[np.object_], coefficients: Any
) -> dict[str, dict[str, float]]:
    """Coefficients by the column of the table (or the term) that they belong to, then by name."""
    values = np.asarray(coefficients, dtype=np.float64).ravel()
    if len(values) != len(names):
        raise ValueError(f"The design has {len(names)} columns, got {len(values)} coefficients.")
    groups: dict[str, dict[str, float]] = {}
    for source, name, value in zip(sources, names, values):
        groups.setdefault(source, {})[name] = float(value)
    return groups
