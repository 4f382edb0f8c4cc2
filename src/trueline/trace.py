"""Trace: what happened on the way to the solution, one record per iteration."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trueline.wording import Readable, counted


@dataclass(repr=False)
class Trace(Readable):
    """Per iteration: its number, the objective, the proven gap, seconds since the start.

    It costs nothing unless it is asked for: solvers record only when ``enabled``.

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

    def record(self, **values: float) -> None:
        """Append one record."""
        if self.enabled:
            self.records.append(values)

    def __str__(self) -> str:
        if not self.records:
            return "Trace: nothing recorded (fit with trace=True)"
        columns = ", ".join(self.columns())
        return f"Trace: {counted(len(self), 'record')} of {columns}; to_frame() has them all"

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
