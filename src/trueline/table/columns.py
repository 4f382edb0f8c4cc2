"""What a column of text is: numbers, dates, yes or no, categories, or nothing a model can use.

Numbers are read as people write them: ``$4,733``, ``12.5 %``, ``1,234,567``, ``(250)``.

A column is read as numbers if every value is one and all have the same unit: dollars and euros, or
percents and plain numbers, are not the same. The number is the one that is written: ``12 %`` is 12.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trueline.wording import counted

#: Cells that say "no value". Case matters where a word could be a category.
MISSING = frozenset({"", "?", "NA", "N/A", "n/a", "#N/A", "NaN", "nan", "NULL", "null", "None"})

# Between groups of three digits: an apostrophe, a space that does not break a line, and the mark
# that is not the decimal one.
_MARKS = "'\u2019\u00a0\u202f"
_GROUPED = {
    mark: re.compile(rf"\d{{1,3}}([{other}{_MARKS}])\d{{3}}(?:\1\d{{3}})*(?:\{mark}\d+)?")
    for mark, other in ((".", ","), (",", "."))
}
_PLAIN = {mark: re.compile(rf"(?:\d+(?:\{mark}\d*)?|\{mark}\d+)") for mark in ".,"}
_PERCENT = "%"


def read_number(text: str, decimal: str = ".") -> tuple[float, str]:
    """One number and its unit, which is empty, ``%`` or the sign of a currency.

    Examples
    --------
    >>> from trueline.table.columns import read_number
    >>> read_number("$4,733"), read_number("-12.5 %"), read_number("(1,250.00)")
    ((4733.0, '$'), (-12.5, '%'), (-1250.0, ''))
    >>> read_number("1.234,5 €", decimal=",")
    (1234.5, '€')
    """
    left, sign = text.strip(), 1.0
    if left.startswith("(") and left.endswith(")"):  # as accountants write what is owed
        left, sign = left[1:-1].strip(), -1.0
    unit, is_signed = "", False
    # The sign and the unit come in either order, the unit also at the end.
    for _ in range(2):
        if left and not is_signed and left[0] in "-+\u2212":
            sign, left = (sign if left[0] == "+" else -sign), left[1:].lstrip()
            is_signed = True
        elif left and not unit and unicodedata.category(left[0]) == "Sc":
            unit, left = left[0], left[1:].lstrip()
    if left and not unit and (left[-1] == _PERCENT or unicodedata.category(left[-1]) == "Sc"):
        unit, left = left[-1], left[:-1].rstrip()
    if found := _GROUPED[decimal].fullmatch(left):
        left = left.replace(found[1], "")
    elif not _PLAIN[decimal].fullmatch(left):
        raise ValueError(f"{text!r} is not a number.")
    return sign * float(left.replace(decimal, ".")), unit


def read_numbers(
    cells: Sequence[str], decimal: str = "."
) -> tuple[NDArray[np.float64], str] | None:
    """The numbers of a column, NaN where a value is missing, and their unit; None if it has others.

    Examples
    --------
    >>> from trueline.table.columns import read_numbers
    >>> read_numbers(["$5", "NA", "$1,000"])
    (array([   5.,   nan, 1000.]), '$')
    >>> read_numbers(["$5", "€5"]) is None
    True
    """
    if "_" in "".join(cells):
        return None  # Python reads 1_000 as a number; in a table it is a name
    for read in (float, _plain_with_comma if decimal == "," else _plain):
        try:
            return np.fromiter(map(read, cells), np.float64, len(cells)), ""
        except ValueError:
            continue
    return _with_units(cells, decimal)


def first_other(cells: Sequence[str], decimal: str = ".") -> int | None:
    """The row of the first value that is not a number; None if only their units differ.

    Examples
    --------
    >>> from trueline.table.columns import first_other
    >>> first_other(["$5", "five"]), first_other(["$5", "€5"])
    (1, None)
    """
    others = (row for row, cell in enumerate(cells) if read_numbers([cell], decimal) is None)
    return next(others, None)


def _plain(cell: str) -> float:
    cell = cell.strip()
    return math.nan if cell in MISSING else float(cell)


def _plain_with_comma(cell: str) -> float:
    return _plain(cell.replace(",", ".", 1))


def _with_units(cells: Sequence[str], decimal: str) -> tuple[NDArray[np.float64], str] | None:
    values, units = [], set()
    for cell in cells:
        if cell.strip() in MISSING:
            values.append(math.nan)
            continue
        try:
            value, unit = read_number(cell, decimal)
        except ValueError:
            return None
        values.append(value)
        units.add(unit)
    money = units - {""}
    # Amounts without the sign of the currency are of the same one; without percents they are not.
    if len(money) > 1 or (_PERCENT in units and len(units) > 1):
        return None
    return np.array(values), next(iter(money), "")


Array = NDArray[np.float64]
Moments = NDArray[np.int64]

DAY = 86_400_000_000  # microseconds
YEAR = 365.2425 * DAY  # of the Gregorian calendar, on average
WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
NOTHING = int(np.iinfo(np.int64).min)  # stands for a missing date

_PARTS = re.compile(r"(\d{1,4})[-/.](\d{1,2})[-/.](\d{1,4})(?:[T ](.+))?")
_CLOCK = re.compile(r"\d{1,2}:\d{2}(:\d{2}(\.\d{1,6})?)?(Z|[+-]\d{2}:?\d{2})?")


def read_moment(text: str, order: str = "ymd") -> int:
    """Microseconds since 1970 by the clock on the wall; :data:`NOTHING` if it is no such date.

    Examples
    --------
    >>> from trueline.table.columns import DAY, read_moment
    >>> read_moment("1970-01-03") == read_moment("3/1/1970", "dmy") == 2 * DAY
    True
    """
    text = text.strip()
    if order != "ymd":
        found = _PARTS.fullmatch(text)
        if found is None:
            return NOTHING
        part = dict(zip(order, found.groups()[:3]))
        text = f"{part['y']:0>4}-{part['m']:0>2}-{part['d']:0>2}"
        if found[4] is not None:
            text += f" {found[4]:0>8}" if found[4].count(":") == 2 else f" {found[4]:0>5}"
    try:
        moment = datetime.fromisoformat(text).replace(tzinfo=UTC)
    except ValueError:
        return NOTHING
    since = moment - datetime(1970, 1, 1, tzinfo=UTC)
    return (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds


def date_order(texts: Sequence[str]) -> str:
    """The order of year, month and day that all these texts have; empty if they are not dates.

    ``"?"`` if day and month cannot be told apart.

    Examples
    --------
    >>> from trueline.table.columns import date_order
    >>> date_order(["2024-05-31"]), date_order(["31/5/2024"]), date_order(["5/31/2024"])
    ('ymd', 'dmy', 'mdy')
    >>> date_order(["5/6/2024"]), date_order(["Monday"])
    ('?', '')
    """
    found = [_PARTS.fullmatch(text.strip()) for text in texts]
    if not found or not all(one and (one[4] is None or _CLOCK.fullmatch(one[4])) for one in found):
        return ""
    triples = [tuple(one.groups()[:3]) for one in found if one is not None]
    if all(len(first) == 4 for first, _, _ in triples):
        orders = ["ymd"]
    else:
        orders = ["dmy", "mdy"] if all(len(last) == 4 for _, _, last in triples) else []
    possible = [
        order for order in orders if all(read_moment(text, order) != NOTHING for text in texts)
    ]
    return "?" if len(possible) > 1 else "".join(possible)


def weekday(moments: Moments) -> NDArray[np.int32]:
    """0 for Monday to 6 for Sunday."""
    return ((moments // DAY + 3) % 7).astype(np.int32)  # the first day of 1970 was a Thursday


def wave(f: Any, moments: Moments, period: float) -> Array:
    """f, a sine or cosine, of the phase in a period."""
    phase = np.remainder(moments.astype(np.float64), period) / period
    return np.asarray(f(2.0 * np.pi * phase), dtype=np.float64)


def day_text(moment: int) -> str:
    """The day, as 2024-05-31."""
    return str(np.datetime64(moment, "us").astype("datetime64[D]"))


@dataclass(frozen=True)
class DateParts:
    """What becomes of a column of dates: a trend, the season, the weekday, the time of day.

    Attributes
    ----------
    order : str
        Of year, month and day.
    first, last : int
        The range of the fit. The trend of dates outside is that of its end.
    weekdays, clock : bool
        Whether the dates differ in their weekdays and have times.
    """

    order: str
    first: int
    last: int
    weekdays: bool
    clock: bool

    @classmethod
    def learn(cls, texts: Sequence[str], order: str) -> DateParts:
        """From the different texts of a column."""
        moments = np.array([read_moment(text, order) for text in texts], dtype=np.int64)
        moments = moments[moments != NOTHING]
        return cls(
            order,
            int(moments.min()),
            int(moments.max()),
            bool(len(np.unique(weekday(moments))) > 1),
            bool((moments % DAY).any()),
        )

    def names(self, column: str) -> list[str]:
        """Monday has no column: it is what the other days are compared to."""
        parts = [f"years since {day_text(self.first)}", "sin(year)", "cos(year)"]
        parts += ["sin(day)", "cos(day)"] * self.clock
        parts += list(WEEKDAYS[1:]) * self.weekdays
        return [f"{column}: {part}" for part in parts]

    def columns(self, texts: Sequence[str]) -> Array:
        """One row for each text, NaN where it is no date."""
        moments = np.array([read_moment(text, self.order) for text in texts], dtype=np.int64)
        lost = moments == NOTHING
        moments = np.where(lost, self.first, moments)
        trend = (np.clip(moments, self.first, self.last) - self.first) / YEAR
        made = [trend, wave(np.sin, moments, YEAR), wave(np.cos, moments, YEAR)]
        if self.clock:
            made += [wave(np.sin, moments, DAY), wave(np.cos, moments, DAY)]
        if self.weekdays:
            days = weekday(moments)
            made += [(days == number).astype(np.float64) for number in range(1, 7)]
        design = np.column_stack(made)
        design[lost] = np.nan
        return design


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
# Classes that are numbers with decimals are few: grades such as 1.5, not amounts.
_MOST_AMOUNTS = 30


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
    numbers = column.numbers
    if numbers is not None and len(column.levels) > _MOST_AMOUNTS:
        known = numbers[np.isfinite(numbers)]
        if (known != np.round(known)).any():
            return f"it has {len(column.levels):,} different values, with decimals"
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
