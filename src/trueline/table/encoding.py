"""How the columns of a table become the columns of a design.

=========  ============================================================================
kind       design columns
=========  ============================================================================
number     itself
boolean    ``smoker=yes``: 1 for yes, 0 for no
category   ``city=Rome``, ``city=Oslo`` ...: 1 for that level, 0 otherwise. The first level
           (alphabetically) has no column: it is the reference that the others are compared to
date       years since the first date, sine and cosine of the year (and of the day, if there are
           times), one column for each weekday but Monday
=========  ============================================================================

Everything else (constants, identifiers, free text, empty columns) is left out, and said.

A column in which values are missing gets one more column, ``size is missing``, that is 1 in these
rows. Its other columns are then zero for a boolean or a category, and the mean of the known rows
for numbers and dates. So no row is lost, and for least squares the guess costs nothing: the
coefficient of the new column takes up whatever is wrong with it.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trueline.errors import TableError
from trueline.table.columns import (
    Column,
    DateParts,
    boolean_pair,
    date_order,
    first_other,
    guess_task,
)
from trueline.table.reading import Table
from trueline.wording import counted

Array = NDArray[np.float64]

# So many names are listed in a message.
_FEW = 8


@dataclass(frozen=True)
class Source:
    """One column of the table and what became of it.

    Attributes
    ----------
    name : str
    kind : {"number", "boolean", "category", "date"}
    levels : tuple of str
        Of booleans and categories; the first one is the reference.
    dates : DateParts, optional
        Of dates.
    fills : tuple of float
        What stands in the columns where the value is missing; empty if such rows are left out.
    """

    name: str
    kind: str
    levels: tuple[str, ...] = ()
    dates: DateParts | None = None
    fills: tuple[float, ...] = ()

    @property
    def names(self) -> list[str]:
        """The names of the design columns."""
        if self.kind == "number":
            names = [self.name]
        elif self.dates is not None:
            names = self.dates.names(self.name)
        else:
            names = [f"{self.name}={level}" for level in self.levels[1:]]
        return names + [f"{self.name} is missing"] * bool(self.fills)

    def filled(self, column: Column) -> Source:
        """The same, with what is put in place of missing values, if there are any."""
        if not column.missing:
            return self
        if self.kind in ("boolean", "category"):
            return replace(self, fills=(0.0,) * len(self.levels[1:]))
        return replace(self, fills=tuple(np.nanmean(self.columns(column), axis=0).tolist()))

    def columns(self, column: Column) -> Array:
        """The design columns, NaN where the value is missing and nothing is put in its place."""
        design = self._columns(column)
        if not self.fills:
            return design
        missing = np.isnan(design[:, :1])
        return np.hstack([np.where(missing, self.fills, design), missing])

    def _columns(self, column: Column) -> Array:
        if self.kind == "number":
            return _finite_numbers(column)[:, None]
        if self.dates is not None:
            return self._date_columns(column, self.dates)
        position = {level: index for index, level in enumerate(self.levels)}
        spelling = str.lower if self.kind == "boolean" else str
        known = [position.get(spelling(level), -1) for level in column.levels]
        if -1 in known:
            value = column.levels[known.index(-1)]
            row = int(np.argmax(column.codes == known.index(-1)))
            close = difflib.get_close_matches(value, self.levels, n=1)
            listed = ", ".join(self.levels[:_FEW])
            listed += " and others" if len(self.levels) > _FEW else ""
            raise TableError(
                f"Column {self.name!r} holds {value!r} ({column.line(row)}), which the model has "
                f"not seen. It knows {counted(len(self.levels), 'value')}: {listed}. "
                + (f"Did you mean {close[0]!r}? " if close else "")
                + "An empty cell stands for a value that is not known."
            )
        codes = np.array([*known, -1])[column.codes]  # code -1, a missing value, finds the last
        design = (codes[:, None] == np.arange(1, len(self.levels))).astype(np.float64)
        design[codes < 0] = np.nan
        return design

    def _date_columns(self, column: Column, dates: DateParts) -> Array:
        found = dates.columns([*column.levels, ""])  # a missing value, code -1, finds the last
        wrong = np.isnan(found[:-1, 0])
        if wrong.any():
            place = int(np.argmax(wrong))
            row = int(np.argmax(column.codes == place))
            raise TableError(
                f"Column {self.name!r} holds {column.levels[place]!r} ({column.line(row)}), which "
                "is not a date in the form of those that the model was fitted to."
            )
        return found[column.codes]


@dataclass(frozen=True)
class Encoding:
    """How a table was turned into numbers, so that the next table is turned the same way.

    Attributes
    ----------
    target : str
    task : {"regression", "classification"}
    sources : tuple of Source
    centres, spreads : tuple of float
        What is subtracted from the columns of the design, and what they are divided by; empty if
        they stay in the units of the table.

    Examples
    --------
    >>> from trueline.table import Encoding, Table, encode
    >>> table = Table.from_columns(
    ...     {"city": ["Rome", "Oslo", "Rome", "Oslo"], "y": ["1", "2", "3", "5"]}
    ... )
    >>> encoding = encode(table, "y").encoding
    >>> encoding.names
    ['city=Rome']
    >>> Encoding.from_dict(encoding.to_dict()) == encoding
    True
    """

    target: str
    task: str
    sources: tuple[Source, ...]
    centres: tuple[float, ...] = ()
    spreads: tuple[float, ...] = ()

    @property
    def names(self) -> list[str]:
        """The names of the design columns, in order."""
        return [name for source in self.sources for name in source.names]

    def design(self, table: Table) -> tuple[Array, NDArray[np.bool_]]:
        """All rows as numbers, and which rows are complete."""
        X = np.empty((table.n_rows, len(self.names)))
        start = 0
        for source in self.sources:
            stop = start + len(source.names)
            X[:, start:stop] = source.columns(table.column(source.name))
            start = stop
        if self.spreads:
            X = (X - np.array(self.centres)) / np.array(self.spreads)
        return X, np.logical_not(np.isnan(X).any(axis=1))

    def standardised(self, X: Array) -> Encoding:
        """The same with columns of mean zero and standard deviation one, as they are in X."""
        spreads = X.std(axis=0)
        spreads[spreads == 0] = 1.0
        return replace(
            self, centres=tuple(X.mean(axis=0).tolist()), spreads=tuple(spreads.tolist())
        )

    def target_values(self, table: Table) -> tuple[NDArray[Any], NDArray[np.bool_]]:
        """The target of all rows, and which rows have one."""
        column = table.column(self.target)
        if self.task == "classification":
            labels = np.array([*column.levels, ""])
            return labels[column.codes], column.codes >= 0
        if column.numbers is None:
            raise TableError(
                f"The target {self.target!r} is not numeric: {_first_wrong(column)}. "
                "Regression needs numbers; correct the value, or leave the cell empty so that the "
                "row is left out."
            )
        values = _finite_numbers(column)
        return values, ~np.isnan(values)

    def apply(self, table: Table) -> tuple[Array, NDArray[Any], NDArray[np.bool_]]:
        """X and y of the complete rows, and which rows these are."""
        X, complete = self.design(table)
        y, has_target = self.target_values(table)
        kept = complete & has_target
        if kept.all():
            return X, y, kept
        return X[kept], y[kept], kept

    def to_dict(self) -> dict[str, Any]:
        """Plain data, for model files."""
        return asdict(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Encoding:
        """The inverse of :meth:`to_dict`."""
        sources = tuple(
            Source(
                item["name"],
                item["kind"],
                tuple(item["levels"]),
                DateParts(**item["dates"]) if item.get("dates") else None,
                tuple(item.get("fills", ())),
            )
            for item in data["sources"]
        )
        centres, spreads = data.get("centres", ()), data.get("spreads", ())
        return cls(data["target"], data["task"], sources, tuple(centres), tuple(spreads))


@dataclass(frozen=True)
class Encoded:
    """A table as numbers.

    Attributes
    ----------
    X, y : arrays
        The complete rows.
    names : list of str
        The columns of X.
    notes : list of str
        What was left out, and why.
    kept : array of bool
        Which rows of the table these are.
    encoding : Encoding
    """

    X: Array
    y: NDArray[Any]
    names: list[str]
    notes: list[str]
    kept: NDArray[np.bool_]
    encoding: Encoding


def encode(
    table: Table,
    target: str,
    *,
    features: Sequence[str] | None = None,
    drop: Sequence[str] = (),
    categories: Sequence[str] = (),
    task: str | None = None,
    standardize: bool = False,
    missing: str = "fill",
) -> Encoded:
    """Turn a table into a design and a target.

    Parameters
    ----------
    table : Table
    target : str
        The column to predict.
    features : sequence of str, optional
        The columns to predict from; by default all that can be used.
    drop : sequence of str
        Columns to leave out.
    categories : sequence of str
        Columns of numbers that are codes, to be treated as categories.
    task : {"regression", "classification"}, optional
        By default guessed from the target.
    standardize : bool, default=False
        Whether columns are brought to mean zero and standard deviation one.
    missing : {"fill", "drop"}, default="fill"
        Whether missing values are filled in, each marked by a column, or their rows left out. Rows
        without a target are always left out.

    Returns
    -------
    encoded : Encoded

    Examples
    --------
    >>> from trueline.table import Table, encode
    >>> table = Table.from_columns(
    ...     {
    ...         "city": ["Rome", "Oslo", "Rome", "Oslo"],
    ...         "size": ["1", "2", "", "4"],
    ...         "y": ["1", "2", "3", "5"],
    ...     }
    ... )
    >>> encoded = encode(table, "y")
    >>> encoded.names
    ['city=Rome', 'size', 'size is missing']
    >>> encoded.X[2].round(2).tolist(), encoded.notes
    ([1.0, 2.33, 1.0], ['values are missing, filled in and marked by columns: size 1'])
    >>> encode(table, "y", missing="drop").notes
    ['1 of 4 rows left out: values are missing (size 1)']
    """
    table.column(target)
    for name in (*(features or ()), *drop, *categories):
        table.column(name)
    if target in (features or ()):
        raise TableError(f"The target {target!r} cannot be a feature as well.")
    sources, notes = _choose(table, target, features, drop, categories)
    if missing == "fill":
        sources = [source.filled(table.column(source.name)) for source in sources]
        if gaps := _missing(table, [source.name for source in sources if source.fills]):
            notes.append(f"values are missing, filled in and marked by columns: {gaps}")
    encoding = Encoding(target, task or guess_task(table.column(target)).kind, tuple(sources))
    X, y, kept = encoding.apply(table)
    if not kept.all():
        unfilled = [source.name for source in encoding.sources if not source.fills]
        notes.append(
            f"{int((~kept).sum())} of {table.n_rows} rows left out: values are missing "
            f"({_missing(table, [*unfilled, target])})"
        )
    if not len(y):
        raise TableError(f"No row of {table.path} is complete: {notes[-1]}. Drop those columns.")
    if standardize:
        encoding = encoding.standardised(X)
        X, y, kept = encoding.apply(table)
    return Encoded(X, y, encoding.names, notes, kept, encoding)


def _choose(
    table: Table,
    target: str,
    features: Sequence[str] | None,
    drop: Sequence[str],
    categories: Sequence[str],
) -> tuple[list[Source], list[str]]:
    """The columns to use, and notes about those that are not."""
    wanted = list(table.columns) if features is None else list(dict.fromkeys(features))
    sources, notes = [], []
    for name in wanted:
        if name == target or name in drop:
            continue
        guess = table.guess(name)
        if name in categories:
            sources.append(Source(name, "category", table.column(name).levels))
        elif guess.usable:
            sources.append(_source(table.column(name), guess.kind))
        elif features is not None and guess.kind != "constant":
            raise TableError(f"Column {name!r} cannot be a feature: {guess.kind}, {guess.reason}.")
        else:
            notes.append(f"{name} left out: {guess.kind} ({guess.reason})")
    if not sources:
        if table.n_rows == 1:
            raise TableError(f"{table.path} has one row: nothing can be learned from it.")
        left = f" ({'; '.join(notes[:_FEW])}{'; ...' if len(notes) > _FEW else ''})"
        left = left if notes else ""
        texts = any(table.guess(name).kind == "text" for name in wanted if name != target)
        hint = (
            " Free text is read in Python: make_pipeline(TextFeatures(), model)." if texts else ""
        )
        raise TableError(f"{table.path} has no column to predict {target!r} from{left}.{hint}")
    return sources, notes


def _source(column: Column, kind: str) -> Source:
    if kind == "number":
        return Source(column.name, kind)
    if kind == "date":
        dates = DateParts.learn(column.levels, date_order(column.levels))
        return Source(column.name, kind, (), dates)
    pair = boolean_pair(column.levels) if kind == "boolean" else None
    return Source(column.name, kind, pair or column.levels)


def _missing(table: Table, names: Sequence[str]) -> str:
    """Which of the columns the missing values are in, most first."""
    counts = {name: table.column(name).missing for name in names}
    worst = sorted((name for name in counts if counts[name]), key=counts.__getitem__)[::-1]
    return ", ".join(f"{name} {counts[name]}" for name in worst[:3]) + ", ..." * (len(worst) > 3)


def _finite_numbers(column: Column) -> Array:
    """The numbers of a column that has to be numeric."""
    values = column.numbers
    if values is None:
        raise TableError(f"Column {column.name!r} should hold numbers: {_first_wrong(column)}.")
    if (infinite := np.isinf(values)).any():
        row = int(np.argmax(infinite))
        raise TableError(f"Column {column.name!r} is infinite in {column.line(row)}.")
    return values


def _first_wrong(column: Column) -> str:
    """The first value of a column that is not a number, and where it is."""
    row = first_other(column.cells, column.decimal)
    if row is None:
        return "its values have several units"
    return f"{column.cells[row]!r} in {column.line(row)}"
