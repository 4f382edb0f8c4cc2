"""What a column of text is: numbers, yes or no, categories, or something a model cannot use."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from trueline.table.dates import date_order
from trueline.table.numbers import MISSING, read_number, read_numbers
from trueline.wording import counted

__all__ = [
    "BOOLEANS",
    "MISSING",
    "Column",
    "Guess",
    "guess_kind",
    "guess_task",
    "implausible",
    "implausible_classes",
]

#: Pairs of words (false first) that make a column boolean, compared in lower case.
BOOLEANS = (("false", "true"), ("no", "yes"), ("f", "t"), ("n", "y"))

_ROW_NUMBER_NAMES = frozenset({"id", "index", "row", "rowid", "row_id", "rownames", "unnamed: 0"})

# A category with more levels than this would need a very long table to be worth its columns.
_FEW_LEVELS = 50
_MANY_LEVELS = 200
_ROWS_PER_LEVEL = 20


@dataclass(frozen=True)
class Column:
    """One column as it stands in the file.

    Attributes
    ----------
    name : str
    cells : sequence of str
        One text per row.
    lines : sequence of int
        The line of the file on which each row ends, for error messages.
    decimal_comma : bool
        Whether ``1,5`` is a number.

    Examples
    --------
    >>> from trueline.table import Column, guess_kind
    >>> column = Column("size", ["1.5", "NA", "2"])
    >>> column.numbers, column.missing
    (array([1.5, nan, 2. ]), 1)
    >>> guess_kind(column).kind
    'number'
    """

    name: str
    cells: Sequence[str]
    lines: Sequence[int] = ()
    decimal_comma: bool = False

    @cached_property
    def numbers(self) -> NDArray[np.float64] | None:
        """The column as numbers, NaN where a value is missing; None if it is not numeric."""
        return self._read[0]

    @property
    def unit(self) -> str:
        """The sign of a currency, or ``%``, if the numbers are written with one."""
        return self._read[1]

    @cached_property
    def _read(self) -> tuple[NDArray[np.float64] | None, str]:
        return read_numbers(self.cells, self.decimal) or (None, "")

    @property
    def decimal(self) -> str:
        """The mark before decimals."""
        return "," if self.decimal_comma else "."

    @cached_property
    def codes(self) -> NDArray[np.intp]:
        """For each row the position of its value in :attr:`levels`; -1 where it is missing."""
        position = {level: index for index, level in enumerate(self.levels)}
        found = {cell: position.get(cell.strip(), -1) for cell in dict.fromkeys(self.cells)}
        return np.fromiter(map(found.__getitem__, self.cells), np.intp, len(self.cells))

    @cached_property
    def levels(self) -> tuple[str, ...]:
        """The different values that are not missing, in alphabetical order."""
        different = {cell.strip() for cell in dict.fromkeys(self.cells)}
        return tuple(sorted(different - MISSING))

    @cached_property
    def missing(self) -> int:
        """How many rows have no value."""
        if self.numbers is not None:
            return int(np.isnan(self.numbers).sum())
        return int((self.codes < 0).sum())

    def line(self, row: int) -> str:
        """Where a row is, for people."""
        return f"line {self.lines[row]}" if len(self.lines) else f"row {row + 1}"


@dataclass(frozen=True)
class Guess:
    """What a column seems to be, and why.

    Attributes
    ----------
    kind : {"number", "boolean", "category", "date", "constant", "identifier", "text", "empty"}
        The first four can be used in a model.
    reason : str
        In words, for tables and notes.
    """

    kind: str
    reason: str

    @property
    def usable(self) -> bool:
        """Whether a model can use it as it is."""
        return self.kind in ("number", "boolean", "category", "date")


def guess_kind(column: Column) -> Guess:
    """What a column seems to be.

    Examples
    --------
    >>> from trueline.table import Column, guess_kind
    >>> guess_kind(Column("city", ["Paris", "Rome", "Paris", "Rome"]))
    Guess(kind='category', reason='2 levels: Paris, Rome')
    >>> guess_kind(Column("code", ["a1", "b7", "c2", "d9"])).kind
    'identifier'
    """
    count = len(column.cells) - column.missing
    if count == 0:
        return Guess("empty", "no values at all")
    if column.numbers is not None:
        return _guess_number(column.name, column.numbers, column.unit)
    levels = column.levels
    if len(levels) == 1:
        return Guess("constant", f"always {levels[0]}")
    if (pair := boolean_pair(levels)) is not None:
        return Guess("boolean", f"{pair[0]} / {pair[1]}")
    order = date_order(levels)
    if order and order != "?":
        first, last = (levels[0], levels[-1]) if order == "ymd" else ("", "")
        return Guess("date", f"{first} to {last}" if first else f"dates as {_ORDERS[order]}")
    if order == "?" and len(levels) > count / 2:
        reason = "dates whose day and month cannot be told apart; write them as 2024-05-31"
        return Guess("text", reason)
    if len(levels) <= min(_FEW_LEVELS, count / 2) or (
        len(levels) <= min(_MANY_LEVELS, count / _ROWS_PER_LEVEL)
    ):
        return Guess("category", f"{len(levels)} levels: {_some(levels)}")
    return _guess_unusable(column, count)


_ORDERS = {"dmy": "day, month, year", "mdy": "month, day, year"}


def _guess_number(name: str, numbers: NDArray[np.float64], unit: str) -> Guess:
    values = numbers[~np.isnan(numbers)]
    low, high = values.min(), values.max()
    if low == high:
        return Guess("constant", f"always {low:g}")
    named = name.lower() in _ROW_NUMBER_NAMES or name.startswith("column ")
    # Row numbers rise one by one; anything else under such a name may be a measurement.
    if named and len(values) > 2 and bool(np.all(np.diff(values) == 1)):
        return Guess("identifier", "row numbers")
    said = f", read as numbers of {unit}" if unit else ""
    return Guess("number", f"{low:.4g} to {high:.4g}{said}")


def _guess_unusable(column: Column, count: int) -> Guess:
    """Why a column of many different texts is not used."""
    levels = column.levels
    some = levels[:: max(1, len(levels) // 1000)]
    if sum(map(_is_number, some)) >= 0.8 * len(some):
        wrong = [level for level in levels if not _is_number(level)]
        row = next(i for i, cell in enumerate(column.cells) if cell.strip() == wrong[0])
        return Guess("text", f"numbers, but for {wrong[0]!r} in {column.line(row)}")
    if len(levels) == count:
        return Guess("identifier", "every value is different")
    return Guess("text", f"{len(levels)} different values in {count} rows")


def _is_number(text: str) -> bool:
    try:
        read_number(text)
    except ValueError:
        return False
    return True


def boolean_pair(levels: Sequence[str]) -> tuple[str, str] | None:
    """The pair of words, false first, that these levels are spellings of; None if they are not."""
    if len(levels) > 4:  # two words, each in lower case and capitalised
        return None
    words = {level.lower() for level in levels}
    return next((pair for pair in BOOLEANS if words == set(pair)), None)


def _some(levels: Sequence[str], most: int = 4) -> str:
    shown = ", ".join(levels[:most])
    return shown if len(levels) <= most else f"{shown}, ..."


def guess_task(column: Column) -> Guess:
    """Whether a target asks for regression or classification, and why.

    Examples
    --------
    >>> from trueline.table import Column, guess_task
    >>> guess_task(Column("price", ["1.5", "2", "7"]))
    Guess(kind='regression', reason='numbers, 1.5 to 7')
    >>> guess_task(Column("ill", ["yes", "no", "no"])).kind
    'classification'
    """
    numbers = column.numbers
    if numbers is None:
        levels = column.levels
        return Guess("classification", f"{len(levels)} classes: {_some(levels)}")
    values = np.unique(numbers[~np.isnan(numbers)])
    if len(values) == 2:
        return Guess("classification", f"two values only, {values[0]:g} and {values[1]:g}")
    span = f", {values[0]:.4g} to {values[-1]:.4g}" if len(values) else ""
    return Guess("regression", f"numbers{span}")


# More classes than this, with fewer rows for each than that, are hardly meant as classes.
_MANY_CLASSES, _ROWS_PER_CLASS = 100, 10
# Fewer classes than this are taken as they are, whatever the number of rows.
_FEW_CLASSES = 10


def implausible(column: Column) -> str:
    """Why a target is not meant as classes, by all appearances; empty if it may be.

    Examples
    --------
    >>> from trueline.table import Column
    >>> from trueline.table.columns import implausible
    >>> implausible(Column("name", [f"Mr. {i}" for i in range(30)]))
    'every one of its 30 rows has a value of its own'
    >>> implausible(Column("ill", ["yes", "no"] * 15))
    ''
    """
    return implausible_classes(len(column.levels), len(column.cells) - column.missing)


def implausible_classes(classes: int, rows: int) -> str:
    """The same for a number of classes in a number of rows."""
    if classes < _FEW_CLASSES:
        return ""
    if classes == rows:
        return f"every one of its {rows:,} rows has a value of its own"
    said = f"it has {classes:,} different values in {counted(rows, 'row')}"
    if 2 * classes > rows:
        return f"{said}, so that most of them occur once"
    if classes > _MANY_CLASSES and rows < _ROWS_PER_CLASS * classes:
        return f"{said}, about {rows / classes:.2g} for each"
    return ""
