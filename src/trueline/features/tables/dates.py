"""Dates and times: a trend, the season, the day of the week, the time of day."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trueline.errors import TableError, require
from trueline.features.tables.assembly import Block, Codes, Values
from trueline.features.tables.columns import TableColumn
from trueline.features.tables.encoders import Encoder, indicator
from trueline.table.dates import DAY, NOTHING, WEEKDAYS, YEAR, day_text, read_moment, wave, weekday

__all__ = ["Dates", "instants"]

# Share of the range beyond its ends about which nothing is said: every fold of a cross-validation
# lacks some of the first and last days.
_MARGIN = 0.1


def instants(column: TableColumn) -> NDArray[np.int64]:
    """Microseconds since 1970 in local time, a very negative number where missing.

    Texts in ISO form count as dates; texts that cannot be read, and days that no calendar has, are
    missing. Microseconds reach 290,000 years in either direction.
    """
    pa, pc = require("pyarrow", "tables"), require("pyarrow.compute", "tables")
    values = column.arrow
    if pa.types.is_timestamp(values.type) or pa.types.is_date(values.type):
        if getattr(values.type, "tz", None):
            values = pc.local_timestamp(values)  # weekdays and hours are those of the clock there
        micro = pc.cast(pc.cast(values, pa.timestamp("us"), safe=False), pa.int64())
        return pc.fill_null(micro, NOTHING).to_numpy(zero_copy_only=False)
    codes, texts = column.coded
    read = np.array([*(read_moment(text) for text in texts), NOTHING], dtype=np.int64)
    return read[codes]


@dataclass
class Dates(Encoder):
    """Years since the first date of ``fit``, waves of the year, weekdays, and waves of the day."""

    name: str
    first: int
    last: int
    outside: str
    mean_years: float
    weekdays: bool
    clock: bool
    missing_share: float
    kind: str = "date"
    notes: list[str] = field(default_factory=list)

    @classmethod
    def learn(cls, column: TableColumn, outside: str) -> Dates:
        """The range, and which parts vary."""
        moments = instants(column)
        present = moments[moments != NOTHING]
        if not len(present):
            raise TableError(
                f"Column {column.name!r} holds no date that can be read. Dates in texts must look "
                "like 2024-05-31 or 2024-05-31 18:30."
            )
        first, last = int(present.min()), int(present.max())
        weekdays = bool(len(np.unique(weekday(present[:10_000]))) > 1)
        share = 1.0 - len(present) / len(moments)
        notes = [f"from {day_text(first)} to {day_text(last)}"]
        notes += [f"{share:.1%} missing"] if share else []
        mean = float((present - first).mean() / YEAR)
        clock = bool((present % DAY).any())
        return cls(column.name, first, last, outside, mean, weekdays, clock, share, notes=notes)

    @property
    def names(self) -> list[str]:
        parts = [f"years since {day_text(self.first)}", "sin(year)", "cos(year)"]
        parts += ["sin(day)", "cos(day)"] * self.clock
        parts += list(WEEKDAYS) * self.weekdays
        return [f"{self.name}: {part}" for part in parts] + [f"{self.name} is missing"] * (
            self.missing_share > 0
        )

    @property
    def entries(self) -> float:
        return 3.0 + 2.0 * self.clock + self.weekdays + self.missing_share

    def blocks(self, column: TableColumn) -> list[Block]:
        moments = instants(column)
        missing = moments == NOTHING
        self._look_outside(moments, missing)
        made: list[Block] = [Values(partial(self._years, moments, missing))]
        waves: list[Any] = [np.sin, np.cos]
        made += [Values(partial(_wave, f, moments, missing, YEAR)) for f in waves]
        if self.clock:
            made += [Values(partial(_wave, f, moments, missing, DAY)) for f in waves]
        if self.weekdays:
            made.append(Codes(np.where(missing, np.int32(-1), weekday(moments)), 7))
        if self.missing_share > 0:
            made.append(indicator(missing))
        return made

    def _look_outside(self, moments: NDArray[np.int64], missing: NDArray[np.bool_]) -> None:
        """Refuse dates outside the range, or warn of those far outside."""
        margin = int(_MARGIN * (self.last - self.first)) if self.outside == "clip" else 0
        beyond = ~missing & ((moments < self.first - margin) | (moments > self.last + margin))
        if self.outside == "extrapolate" or not beyond.any():
            return
        said = (
            f"{int(beyond.sum()):,} dates of column {self.name!r} lie outside the range seen by "
            f"fit, {day_text(self.first)} to {day_text(self.last)}"
        )
        if self.outside == "error":
            raise TableError(f"{said}. dates_outside='clip' moves the trend to the end of it.")
        warnings.warn(f"{said}: their trend is that of its end.", UserWarning, stacklevel=2)

    def _years(self, moments: NDArray[np.int64], missing: NDArray[np.bool_]) -> NDArray[np.float64]:
        if self.outside == "clip":
            moments = np.clip(moments, self.first, self.last)
        years = (moments.astype(np.float64) - self.first) / YEAR
        return np.where(missing, self.mean_years, years)


def _wave(
    f: Any, moments: NDArray[np.int64], missing: NDArray[np.bool_], period: float
) -> NDArray[np.float64]:
    return np.where(missing, 0.0, wave(f, moments, period))
