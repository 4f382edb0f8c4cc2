"""What a column of a table becomes: numbers, booleans, texts, categories, dates.

An encoder is what was learned of one column. It names the columns it makes, and turns the column of
another table into blocks in the same way. Categories get a column per level, as many as pay; dates
and times a trend, the season, the day of the week and the time of day.
"""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import clone

from trueline.errors import TableError, require
from trueline.features.tables.assembly import Levels, marks
from trueline.features.tables.columns import TableColumn, are_codes
from trueline.table.columns import (
    DAY,
    NOTHING,
    WEEKDAYS,
    YEAR,
    day_text,
    read_moment,
    wave,
    weekday,
)


class Encoder(ABC):
    """What was learned of one column.

    Attributes
    ----------
    name : str
        Of the column.
    kind : str
    notes : list of str
        What is worth knowing, for ``explain``.
    """

    name: str
    kind: str
    notes: list[str]
    #: Of the rows of ``fit``: if values were missing, a column says which are.
    missing_share: float

    @property
    @abstractmethod
    def names(self) -> list[str]:
        """The names of the columns that come out."""

    @property
    @abstractmethod
    def entries(self) -> float:
        """Entries per row that are not zero, on average over the rows of ``fit``."""

    @abstractmethod
    def blocks(self, column: TableColumn) -> list[Any]:
        """The columns that come out, for the rows of a table."""

    def _with_mark(self, names: list[str]) -> list[str]:
        return names + [f"{self.name} is missing"] * (self.missing_share > 0)

    def _marked(self, blocks: list[Any], missing: NDArray[np.bool_]) -> list[Any]:
        return [*blocks, marks(missing)] if self.missing_share > 0 else blocks


@dataclass
class Numbers(Encoder):
    """A number is itself; a missing one is the mean, with a column that says so.

    The column of missing values exists if ``fit`` saw missing values. Amounts that are written
    with a unit, ``$4,733``, must have the same one in every table.
    """

    name: str
    fill: float
    shift: float
    scale: float
    missing_share: float
    kind: str = "number"
    notes: list[str] = field(default_factory=list)
    unit: str = ""

    @classmethod
    def learn(cls, column: TableColumn, standardize: bool) -> Numbers:
        """Mean, spread and share of missing values."""
        values = _finite(column)
        missing = np.isnan(values)
        share = float(missing.mean())
        present = values[~missing] if share else values
        mean = _in_range(np.mean, present)
        scale = _in_range(np.std, present) if standardize else 1.0
        unit = column.unit
        notes = [f"read as numbers of {unit}"] if unit else []
        if share:
            notes.append(f"{share:.1%} missing, filled by the mean {mean:.4g}")
        shift = mean if standardize else 0.0
        return cls(column.name, mean, shift, scale or 1.0, share, notes=notes, unit=unit)

    @property
    def names(self) -> list[str]:
        return self._with_mark([self.name])

    @property
    def entries(self) -> float:
        return 1.0 + self.missing_share

    def blocks(self, column: TableColumn) -> list[Any]:
        return self._marked([self._values(column)], np.isnan(column.numbers))

    def _values(self, column: TableColumn) -> NDArray[np.float64]:
        values = _finite(column)
        if column.unit and self.unit and column.unit != self.unit:
            raise TableError(
                f"Column {self.name!r} holds numbers of {column.unit}, and held numbers of "
                f"{self.unit} when the features were learned."
            )
        if (missing := np.isnan(values)).any():
            values = np.where(missing, self.fill, values)
        if self.shift or self.scale != 1.0:
            with np.errstate(over="ignore"):
                shifted = (values - self.shift) / self.scale
            if np.isfinite(shifted).all():
                values = shifted
            else:  # divided first, differences stay in range
                values = values / self.scale - self.shift / self.scale
        return values


def _in_range(
    statistic: Callable[[NDArray[np.float64]], Any], values: NDArray[np.float64]
) -> float:
    """A mean or a spread; where sums overflow, in units of the largest value."""
    with np.errstate(over="ignore", invalid="ignore"):
        plain = float(statistic(values))
    if np.isfinite(plain):
        return plain
    unit = float(np.abs(values).max())
    return float(statistic(values / unit)) * unit


def _finite(column: TableColumn) -> NDArray[np.float64]:
    values = column.numbers
    if np.isinf(values).any():
        row = int(np.argmax(np.isinf(values)))
        raise TableError(
            f"Column {column.name!r} holds an infinite value (row {row}). Replace it by a number, "
            "or by a missing value."
        )
    return values


@dataclass
class Booleans(Encoder):
    """True is one, False is zero; missing values have a column if ``fit`` saw any."""

    name: str
    true_share: float
    missing_share: float
    kind: str = "boolean"
    notes: list[str] = field(default_factory=list)

    @classmethod
    def learn(cls, column: TableColumn) -> Booleans:
        """Shares of true and of missing values."""
        truth = _truth(column)
        missing = float(np.isnan(truth).mean())
        notes = [f"{missing:.1%} missing"] if missing else []
        true = float(np.nan_to_num(truth).mean())
        return cls(column.name, true, missing, notes=notes)

    @property
    def names(self) -> list[str]:
        return self._with_mark([self.name])

    @property
    def entries(self) -> float:
        return self.true_share + self.missing_share

    def blocks(self, column: TableColumn) -> list[Any]:
        truth = _truth(column)
        return self._marked([marks(truth == 1.0)], np.isnan(truth))


def _truth(column: TableColumn) -> NDArray[Any]:
    values = column.numbers
    present = values[~np.isnan(values)]
    if not np.isin(present, (0.0, 1.0)).all():
        raise TableError(f"Column {column.name!r} is not boolean: it holds other values than 0, 1.")
    return values


@dataclass
class Texts(Encoder):
    """What a transformer of texts makes of them; a missing text is empty."""

    name: str
    transformer: Any
    per_row: float
    missing_share: float
    kind: str = "text"
    notes: list[str] = field(default_factory=list)

    @classmethod
    def learn(cls, column: TableColumn, transformer: Any) -> Texts:
        """Fit the transformer of texts."""
        fitted = clone(transformer)
        matrix = fitted.fit_transform(column.texts)
        entries = float(sparse.csr_array(matrix).nnz) / max(1, len(column))
        share = float(column.missing.mean())
        notes = [f"{share:.1%} missing, taken as empty"] if share else []
        return cls(column.name, fitted, entries, share, notes=notes)

    @property
    def names(self) -> list[str]:
        parts = self.transformer.get_feature_names_out()
        return self._with_mark([f"{self.name}: {part}" for part in parts])

    @property
    def entries(self) -> float:
        return self.per_row + self.missing_share

    def blocks(self, column: TableColumn) -> list[Any]:
        matrix = sparse.csr_matrix(self.transformer.transform(column.texts), dtype=np.float64)
        matrix.sort_indices()
        return self._marked([matrix], column.missing)


@dataclass
class Categories(Encoder):
    """One column per level that is frequent enough; the rest shares one column, or hashed ones.

    Attributes
    ----------
    levels : list of str
        Those with a column of their own, in alphabetical order.
    other : int
        Number of columns that the remaining levels share: none, one, or as many as hashes.
    """

    name: str
    levels: list[str]
    other: int
    hashed: bool
    has_missing: bool
    unknown: str
    share: float
    kind: str = "category"
    notes: list[str] = field(default_factory=list)

    @classmethod
    def learn(
        cls,
        column: TableColumn,
        *,
        min_count: int,
        max_levels: int,
        n_hashed: int,
        unknown: str,
        drop_first: bool,
    ) -> Categories:
        """Which levels have a column."""
        codes, texts = column.coded
        counts = np.bincount(codes[codes >= 0], minlength=len(texts))
        # The most frequent ones, of equals the first in the alphabet; stable between runs.
        order = sorted(np.flatnonzero(counts), key=lambda i: (-counts[i], texts[i]))
        kept = [i for i in order if counts[i] >= min_count][:max_levels]
        levels = sorted(texts[i] for i in kept)
        shared, has_missing = len(order) - len(kept), bool((codes < 0).any())
        notes = [] if not shared else [f"{shared:,} rare levels share {n_hashed or 1} columns"]
        if drop_first and len(levels) > 1:
            notes.append(f"compared to {levels.pop(0)!r}")
        other = n_hashed or int(shared > 0)
        if are_codes(texts):
            notes.append(
                f"digits in texts are taken as codes, columns={{{column.name!r}: 'number'}} reads "
                "them as numbers"
            )
        if has_missing:
            notes.append(f"{(codes < 0).mean():.1%} missing")
        covered = float(np.isin(codes, kept).mean()) if drop_first else 1.0
        return cls(
            column.name, levels, other, n_hashed > 0, has_missing, unknown, covered, notes=notes
        )

    @property
    def names(self) -> list[str]:
        names = [f"{self.name}={level}" for level in self.levels]
        if self.hashed:
            names += [f"{self.name}=(other, hash {k})" for k in range(self.other)]
        elif self.other:
            names.append(f"{self.name}=(other)")
        return names + [f"{self.name}=(missing)"] * self.has_missing

    @property
    def entries(self) -> float:
        return self.share

    def blocks(self, column: TableColumn) -> list[Any]:
        codes, texts = column.coded
        place = np.array([*self._places(texts), self._missing_place], dtype=np.int32)
        return [Levels(place[codes], len(self.levels) + self.other + self.has_missing)]

    @property
    def _missing_place(self) -> int:
        return len(self.levels) + self.other if self.has_missing else -1

    def _places(self, texts: list[str]) -> NDArray[np.int32]:
        """The column of each text."""
        known = {level: i for i, level in enumerate(self.levels)}
        places = np.array([known.get(text, -1) for text in texts], dtype=np.int32)
        strange = np.flatnonzero(places < 0)
        if self.unknown == "error" and len(strange) and not self.other:
            raise TableError(
                f"Column {self.name!r} holds {texts[strange[0]]!r}, which fit has not seen. It "
                f"knows {len(self.levels):,} levels: {', '.join(self.levels[:8])}. "
                "unknown='ignore' leaves all of their columns at zero."
            )
        if self.hashed:
            from sklearn.utils import murmurhash3_32  # stable between processes, unlike hash()

            for i in strange:
                bucket = murmurhash3_32(texts[i], positive=True) % self.other
                places[i] = len(self.levels) + bucket
        elif self.other:
            places[strange] = len(self.levels)
        return places


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
        return self._with_mark([f"{self.name}: {part}" for part in parts])

    @property
    def entries(self) -> float:
        return 3.0 + 2.0 * self.clock + self.weekdays + self.missing_share

    def blocks(self, column: TableColumn) -> list[Any]:
        moments = instants(column)
        missing = moments == NOTHING
        self._look_outside(moments, missing)
        made: list[Any] = [self._years(moments, missing)]
        for period in (YEAR, DAY) if self.clock else (YEAR,):
            made += [np.where(missing, 0.0, wave(f, moments, period)) for f in (np.sin, np.cos)]
        if self.weekdays:
            made.append(Levels(np.where(missing, np.int32(-1), weekday(moments)), 7))
        return self._marked(made, missing)

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
