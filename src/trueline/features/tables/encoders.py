"""What a column of a table becomes: the interface, numbers and booleans.

An encoder is what was learned of one column. It names the columns it makes, and turns the column of
another table into blocks in the same way.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trueline.errors import TableError
from trueline.features.tables.assembly import Block, Codes, Values
from trueline.features.tables.columns import TableColumn

__all__ = ["Booleans", "Encoder", "Numbers", "indicator"]


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

    @property
    @abstractmethod
    def names(self) -> list[str]:
        """The names of the columns that come out."""

    @property
    @abstractmethod
    def entries(self) -> float:
        """Entries per row that are not zero, on average over the rows of ``fit``."""

    @abstractmethod
    def blocks(self, column: TableColumn) -> list[Block]:
        """The columns that come out, for the rows of a table."""


def indicator(mask: NDArray[np.bool_]) -> Codes:
    """A column that is one where the mask is."""
    return Codes(np.where(mask, np.int32(0), np.int32(-1)), 1)


@dataclass
class Numbers(Encoder):
    """A number is itself; a missing one is the mean, with a column that says so.

    The column of missing values exists if ``fit`` saw missing values.
    """

    name: str
    fill: float
    shift: float
    scale: float
    missing_share: float
    kind: str = "number"
    notes: list[str] = field(default_factory=list)

    @classmethod
    def learn(cls, column: TableColumn, standardize: bool) -> Numbers:
        """Mean, spread and share of missing values."""
        values = _finite(column)
        missing = column.missing
        share = float(missing.mean())
        present = values[~missing] if share else values
        mean = _in_range(np.mean, present)
        scale = _in_range(np.std, present) if standardize else 1.0
        notes = [f"{share:.1%} missing, filled by the mean {mean:.4g}"] if share else []
        return cls(
            column.name, mean, mean if standardize else 0.0, scale or 1.0, share, notes=notes
        )

    @property
    def names(self) -> list[str]:
        return [self.name] + [f"{self.name} is missing"] * (self.missing_share > 0)

    @property
    def entries(self) -> float:
        return 1.0 + self.missing_share

    def blocks(self, column: TableColumn) -> list[Block]:
        made: list[Block] = [Values(partial(self._values, column))]
        if self.missing_share > 0:
            made.append(indicator(column.missing))
        return made

    def _values(self, column: TableColumn) -> NDArray[np.float64]:
        values = _finite(column)
        if column.missing.any():
            values = np.where(column.missing, self.fill, values)
        if self.shift or self.scale != 1.0:
            with np.errstate(over="ignore"):
                shifted = (values - self.shift) / self.scale
            if np.isfinite(shifted).all():
                values = shifted
            else:  # divided first, differences stay in range
                values = values / self.scale - self.shift / self.scale
        column.release()
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
        missing = float(column.missing.mean())
        notes = [f"{missing:.1%} missing"] if missing else []
        true = float(np.nan_to_num(_truth(column)).mean())
        return cls(column.name, true, missing, notes=notes)

    @property
    def names(self) -> list[str]:
        return [self.name] + [f"{self.name} is missing"] * (self.missing_share > 0)

    @property
    def entries(self) -> float:
        return self.true_share + self.missing_share

    def blocks(self, column: TableColumn) -> list[Block]:
        made: list[Block] = [indicator(_truth(column) == 1.0)]
        if self.missing_share > 0:
            made.append(indicator(column.missing))
        return made


def _truth(column: TableColumn) -> NDArray[Any]:
    values = column.numbers
    present = values[~column.missing]
    if not np.isin(present, (0.0, 1.0)).all():
        raise TableError(f"Column {column.name!r} is not boolean: it holds other values than 0, 1.")
    return values
