"""Reading a CSV file."""

from __future__ import annotations

import csv
import difflib
import gzip
import io
import os
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from trueline.errors import TableError
from trueline.table.columns import Column, Guess, guess_kind

_DELIMITERS = (",", ";", "\t", "|")
_NAMES = {",": "comma", ";": "semicolon", "\t": "tab", "|": "bar"}
_SAMPLE = 64 * 1024
_BLOCK = 500

# First bytes of files that people also keep tables in.
_OTHER_FORMATS = {
    b"PK\x03\x04": "an Excel workbook or a zip archive",
    b"\xd0\xcf\x11\xe0": "an old Excel workbook",
    b"PAR1": "a Parquet file",
    b"ARROW1": "an Arrow file",
    b"\xff\xfe": "text in UTF-16",
    b"\xfe\xff": "text in UTF-16",
}


@dataclass(frozen=True)
class Table:
    """A table of text with named columns.

    Attributes
    ----------
    columns : dict of str to Column
        By name, in the order of the file.
    n_rows : int
    path : str
        Where it was read from, for messages.
    delimiter : str
    """

    columns: dict[str, Column]
    n_rows: int
    path: str = "the table"
    delimiter: str = ","
    guesses: dict[str, Guess] = field(default_factory=dict, repr=False)

    @classmethod
    def from_columns(cls, columns: dict[str, list[str]], path: str = "the table") -> Table:
        """A table from lists of text, all of one length.

        Examples
        --------
        >>> from trueline.table import Table
        >>> Table.from_columns({"a": ["1", "2"]}).n_rows
        2
        """
        made = {name: Column(name, cells) for name, cells in columns.items()}
        return cls(made, len(next(iter(columns.values()), [])), path)

    @property
    def delimiter_name(self) -> str:
        """The delimiter in words."""
        return _NAMES.get(self.delimiter, repr(self.delimiter))

    def column(self, name: str) -> Column:
        """A column by name; the error suggests names that look alike."""
        if name in self.columns:
            return self.columns[name]
        close = difflib.get_close_matches(name, self.columns, n=1, cutoff=0.5)
        same = [known for known in self.columns if known.lower() == name.lower()]
        if same or close:
            hint = f"Did you mean {(same or close)[0]!r}?"
        else:
            hint = f"It has: {', '.join(self.columns)}."
        raise TableError(f"{self.path} has no column {name!r}. {hint}")

    def guess(self, name: str) -> Guess:
        """What a column seems to be."""
        if name not in self.guesses:
            self.guesses[name] = guess_kind(self.column(name))
        return self.guesses[name]


def read_table(path: str | os.PathLike[str]) -> Table:
    r"""Read a CSV file: delimiter, quotes, byte-order mark and gzip are found out.

    Parameters
    ----------
    path : str or path
        The file. Its first line names the columns; the text is UTF-8. Commas, semicolons (then
        with ``1,5`` as a number, too), tabs or bars separate the values.

    Returns
    -------
    table : Table

    Raises
    ------
    TableError
        If it is not such a file; the message names the line.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from trueline.table import read_table
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "towns.csv")
    ...     _ = path.write_text("town;rain\nBergen;2,3\nCairo;0,02\n")
    ...     table = read_table(path)
    >>> table.delimiter_name, table.column("rain").numbers
    ('semicolon', array([2.3 , 0.02]))
    """
    path = Path(path)
    try:
        with _open(path) as text:
            return _read(text, str(path))
    except UnicodeDecodeError as error:
        raise TableError(
            f"{path} is not UTF-8 text (byte {error.start}). Save it as 'CSV UTF-8' and try again."
        ) from error
    except (csv.Error, EOFError, gzip.BadGzipFile) as error:
        raise TableError(f"{path} cannot be read as CSV: {error}.") from error


def _open(path: Path) -> IO[str]:
    """The file as text, unpacked if it is gzip."""
    if not path.exists():
        raise TableError(f"There is no file {path}{_alike(path)}")
    if path.is_dir():
        raise TableError(f"{path} is a folder, not a CSV file.")
    with path.open("rb") as file:
        start = file.read(8)
    for magic, what in _OTHER_FORMATS.items():
        if start.startswith(magic):
            raise TableError(f"{path} is {what}, not CSV text. Export it as 'CSV UTF-8'.")
    if start.startswith(b"\x1f\x8b"):
        return gzip.open(path, "rt", encoding="utf-8-sig", newline="")
    return path.open(encoding="utf-8-sig", newline="")


def _alike(path: Path) -> str:
    folder = path.parent
    names = [item.name for item in folder.iterdir()] if folder.is_dir() else []
    close = difflib.get_close_matches(path.name, names, n=1, cutoff=0.75)
    return f". Did you mean {folder / close[0]}?" if close else "."


def _read(text: IO[str], path: str) -> Table:
    sample = text.read(_SAMPLE)
    if not sample.strip():
        raise TableError(f"{path} is empty.")
    if "\0" in sample:
        raise TableError(f"{path} is not text: it holds zero bytes.")
    delimiter = _find_delimiter(sample)
    reader = csv.reader(
        _lines(sample, text), delimiter=delimiter, skipinitialspace=True, strict=True
    )
    names = _column_names(next(row for row in reader if row), path)
    cells, lines = _cells(reader, len(names), path, _NAMES[delimiter])
    if not lines:
        raise TableError(f"{path} has a header but no rows.")
    columns = {
        name: Column(name, texts, lines, decimal_comma=delimiter == ";")
        for name, texts in zip(names, cells)
    }
    return Table(columns, len(lines), path, delimiter)


def _cells(reader: Any, width: int, path: str, delimiter: str) -> tuple[list[list[str]], list[int]]:
    """What is left in a reader column by column, and the line on which each row ends."""
    columns: list[list[str]] = [[] for _ in range(width)]
    lines: list[int] = []
    block: list[list[str]] = []
    for row in reader:
        if len(row) != width:
            if not row:
                continue  # a blank line
            raise TableError(
                f"{path}, line {reader.line_num}: {len(row)} values, but the header names {width} "
                f"columns. Is a value with a {delimiter} in it missing its quotes?"
            )
        block.append(row)
        lines.append(reader.line_num)
        if len(block) == _BLOCK:
            _add_rows(columns, block)
            block = []
    _add_rows(columns, block)
    return columns, lines


def _add_rows(columns: list[list[str]], rows: list[list[str]]) -> None:
    """Append rows to the columns, few enough at a time to stay in the processor's cache."""
    for column, cells in zip(columns, zip(*rows)):
        column.extend(cells)


def _lines(sample: str, rest: IO[str]) -> Iterator[str]:
    """The lines of a file whose beginning was read already."""
    head, newline, tail = sample.rpartition("\n")
    yield from io.StringIO(head + newline, newline="")
    yield tail + rest.readline()
    yield from rest


def _find_delimiter(sample: str) -> str:
    """The delimiter for which the first lines have equally many values, more than one."""
    complete = sample.rpartition("\n")[0] or sample
    lines = complete.splitlines()[:50]

    def score(delimiter: str) -> tuple[float, int]:
        try:
            widths = [len(row) for row in csv.reader(lines, delimiter=delimiter) if row]
        except csv.Error:
            return (0.0, 0)
        width = widths[0]
        # A file of one column agrees with every delimiter that does not occur in it.
        return (widths.count(width) / len(widths) if width > 1 else 0.0, width)

    return max(_DELIMITERS, key=score)


def _column_names(header: list[str], path: str) -> list[str]:
    names = [name.strip() or f"column {i}" for i, name in enumerate(header, 1)]
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise TableError(
            f"{path} names the column {twice[0]!r} more than once. Rename one of them."
        )
    if all(_looks_like_data(name) for name in names):
        raise TableError(
            f"{path} seems to have no header: its first line is {', '.join(header[:4])}. "
            "Add a first line with the names of the columns."
        )
    return names


def _looks_like_data(name: str) -> bool:
    try:
        float(name)
    except ValueError:
        return False
    return True
