"""Trace: what happened on the way to the solution, one record per iteration."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trueline.wording import Readable, counted

Array = NDArray[np.float64]

# Of the points that are kept: the most, the fewest of long vectors, and their numbers in all.
_POINTS, _FEWEST, _NUMBERS = 1000, 32, 4_000_000


@dataclass(repr=False)
class Trace(Readable):
    """Per iteration: its number, the objective, the proven gap, seconds since the start.

    It costs nothing unless it is asked for: solvers record only when ``enabled``. Iterative methods
    keep their weights too: all of them, or where there are many an even selection with the last.

    Attributes
    ----------
    records : list of dict
    points : list of tuple
        Iteration, coefficients of shape (d, k) and intercepts of shape (k,).
    offered, every : int
        How many points came, and that one in so many was kept.

    Examples
    --------
    >>> from trueline.trace import Trace
    >>> trace = Trace(enabled=True)
    >>> trace.record(iteration=1, objective=2.0, gap=0.5, seconds=0.01)
    >>> trace["gap"]
    array([0.5])
    """

    enabled: bool = False
    records: list[dict[str, float]] = field(default_factory=list)
    points: list[Any] = field(default_factory=list)
    offered: int = 0
    every: int = 1

    def record(self, **values: float) -> None:
        """Append one record."""
        if self.enabled:
            self.records.append(values)

    def keep(self, iteration: float, coef: Array, intercept: Array) -> None:
        """Keep the weights of an iteration: coefficients of shape (d, k), intercepts (k,)."""
        if not self.enabled:
            return
        if self.offered and (self.offered - 1) % self.every:
            self.points.pop()  # the last one stands there only until the next comes
        self.points.append((float(iteration), np.array(coef), np.array(intercept)))
        self.offered += 1
        last = self.offered - 1
        most = max(_FEWEST, min(_POINTS, _NUMBERS // max(1, np.size(coef))))
        if len(self.points) > most and last % self.every == 0:
            self.every *= 2
            latest, self.points = self.points[-1], self.points[::2]
            if last % self.every:
                self.points.append(latest)

    @property
    def at(self) -> Array:
        """The iterations whose weights were kept; of stochastic steps fractions of an epoch."""
        return np.array([iteration for iteration, _, _ in self.points], dtype=float)

    @property
    def coef(self) -> Array:
        """The weights that were kept, of shape (points, d), or (points, k, d)."""
        W = np.array([coef.T for _, coef, _ in self.points], dtype=float)
        return W[:, 0] if W.ndim == 3 and W.shape[1] == 1 else W

    @property
    def intercept(self) -> Array:
        """The intercepts beside them, of shape (points,), or (points, k)."""
        b = np.array([intercept for _, _, intercept in self.points], dtype=float)
        return b[:, 0] if b.ndim == 2 and b.shape[1] == 1 else b

    def __str__(self) -> str:
        if not self.records:
            return "Trace: nothing recorded (fit with trace=True)"
        columns = ", ".join(self.columns())
        kept = f"; coef has the weights at {len(self.points)} of them" if self.points else ""
        return f"Trace: {counted(len(self), 'record')} of {columns}; to_frame() has them all{kept}"

    def __len__(self) -> int:
        return len(self.records)

    def __getitem__(self, name: str) -> NDArray[np.float64]:
        """One column as an array; records without it give NaN."""
        if self.records and not any(name in record for record in self.records):
            known = sorted({key for record in self.records for key in record})
            raise KeyError(f"{name!r} was not recorded; the trace holds {known}.")
        return np.array([record.get(name, np.nan) for record in self.records], dtype=float)

    def columns(self) -> dict[str, NDArray[np.float64]]:
        """All columns, by name, in the order in which they first appeared."""
        names = dict.fromkeys(key for record in self.records for key in record)
        return {name: self[name] for name in names}

    def to_frame(self) -> Any:
        """The records as a pandas DataFrame."""
        from trueline.errors import require

        return require("pandas", "tables").DataFrame(self.columns())
