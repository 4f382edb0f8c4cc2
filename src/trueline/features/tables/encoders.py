"""What a column of a table becomes: the interface, numbers and booleans.

An encoder is what was learned of one column. It names the columns it makes, and turns the column of
another table into blocks in the same way.

Free text in a table.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import clone

from trueline.errors import TableError
from trueline.features.tables.assembly import Block, Codes, Entries, Values
from trueline.features.tables.columns import TableColumn

__all__ = ["Booleans", "Encoder", "Numbers", "Texts", "indicator"]


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
        return [self.name] + [f"{self.name} is missing"] * (self.missing_share > 0)

    @property
    def entries(self) -> float:
        return 1.0 + self.missing_share

    def blocks(self, column: TableColumn) -> list[Block]:
        made: list[Block] = [Values(partial(self._values, column))]
        if self.missing_share > 0:
            made.append(indicator(np.isnan(column.numbers)))
        return made

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
        truth = _truth(column)
        missing = float(np.isnan(truth).mean())
        notes = [f"{missing:.1%} missing"] if missing else []
        true = float(np.nan_to_num(truth).mean())
        return cls(column.name, true, missing, notes=notes)

    @property
    def names(self) -> list[str]:
        return [self.name] + [f"{self.name} is missing"] * (self.missing_share > 0)

    @property
    def entries(self) -> float:
        return self.true_share + self.missing_share

    def blocks(self, column: TableColumn) -> list[Block]:
        truth = _truth(column)
        made: list[Block] = [indicator(truth == 1.0)]
        if self.missing_share > 0:
            made.append(indicator(np.isnan(truth)))
        return made


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
        return [f"{self.name}: {part}" for part in parts] + [f"{self.name} is missing"] * (
            self.missing_share > 0
        )

    @property
    def entries(self) -> float:
        return self.per_row + self.missing_share

    def blocks(self, column: TableColumn) -> list[Block]:
        matrix = sparse.csr_matrix(self.transformer.transform(column.texts), dtype=np.float64)
        matrix.sort_indices()
        made: list[Block] = [Entries(matrix)]
        if self.missing_share > 0:
            made.append(indicator(column.missing))
        return made
