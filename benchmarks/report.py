"""Tables as Markdown, and their place in README.md between markers."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

__all__ = ["README", "Table", "machine_text", "number", "place", "seconds_text"]

README = Path(__file__).resolve().parent / "README.md"


@dataclass(frozen=True)
class Table:
    """A title, heads, rows of text, and what a reader should know."""

    title: str
    heads: Sequence[str]
    rows: Sequence[Sequence[str]]
    notes: Sequence[str] = ()

    def __str__(self) -> str:
        lines = [f"#### {self.title}", ""] if self.title else []
        lines += [_row(self.heads), _row(["---"] + ["---:"] * (len(self.heads) - 1))]
        lines += [_row(row) for row in self.rows]
        for note in self.notes:
            lines += ["", note]
        return "\n".join(lines)


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(str(cell).replace("|", "\\|") for cell in cells) + " |"


def number(value: float | None, form: str) -> str:
    """A number in the given form; nothing for None and NaN."""
    return "" if value is None or value != value else format(value, form)


def seconds_text(value: float | None) -> str:
    """Seconds with a unit that suits them, three digits."""
    if value is None or value != value:
        return ""
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if value >= size:
            return f"{value / size:.3g} {unit}"
    return f"{value / 1e-6:.3g} us"


def machine_text(machine: dict[str, str], dates: Sequence[str]) -> str:
    """One paragraph about the machine, the versions and the days of measurement."""
    hardware = ("processor", "cores", "memory", "system")
    first = ", ".join(
        f"{machine[key]} cores" if key == "cores" else machine[key]
        for key in hardware
        if key in machine
    )
    versions = ", ".join(f"{key} {value}" for key, value in machine.items() if key not in hardware)
    days = sorted(set(dates))
    when = days[0] if len(days) == 1 else f"{days[0]} to {days[-1]}" if days else ""
    return f"Measured {when} on {first}. {versions}."


def place(text: str, name: str, content: str) -> str:
    """Replace what stands between the markers of that name.

    Raises
    ------
    ValueError
        If the text has no such markers.
    """
    begin, end = f"<!-- begin {name} -->", f"<!-- end {name} -->"
    pattern = re.compile(re.escape(begin) + ".*?" + re.escape(end), re.DOTALL)
    if not pattern.search(text):
        raise ValueError(f"README.md has no markers {begin} ... {end} to write between.")
    return pattern.sub(lambda _: f"{begin}\n\n{content}\n\n{end}", text)
