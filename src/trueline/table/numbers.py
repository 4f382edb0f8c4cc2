"""Numbers as people write them: ``$4,733``, ``12.5 %``, ``1,234,567``, ``(250)``.

A column is read as numbers if every value is one and all have the same unit: dollars and euros, or
percents and plain numbers, are not the same. The number is the one that is written: ``12 %`` is 12.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

__all__ = ["MISSING", "first_other", "read_number", "read_numbers"]

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
    >>> from trueline.table.numbers import read_number
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
    >>> from trueline.table.numbers import read_numbers
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
    >>> from trueline.table.numbers import first_other
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
