"""Dates as numbers: the moments that texts stand for, and what a linear model can use of them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "DAY",
    "NOTHING",
    "WEEKDAYS",
    "YEAR",
    "DateParts",
    "date_order",
    "day_text",
    "read_moment",
    "wave",
    "weekday",
]

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
    >>> from trueline.table.dates import DAY, read_moment
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
    >>> from trueline.table.dates import date_order
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
