"""Where batches come from: Parquet, Arrow and CSV files, queries, arrays, functions.

A source gives the columns that are asked for, in batches that are cut alike in every pass.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from copy import copy
from functools import partial
from glob import glob
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trueline.errors import TableError, require

_FORMATS = {".parquet": "parquet", ".pq": "parquet", ".arrow": "ipc", ".feather": "ipc"}
_FORMATS |= {".ipc": "ipc", ".csv": "csv", ".csv.gz": "csv"}

_ADVICE = (
    "Write the file again, take it away, or leave out what is damaged: "
    "trueline.open(..., damaged='skip')."
)

Columns = list[NDArray[Any]]


class Source(ABC):
    """Batches of columns.

    Attributes
    ----------
    name : str
    columns : tuple of str
    is_sparse, is_repeatable : bool
    """

    name: str
    columns: tuple[str, ...]
    is_sparse = False
    #: Whether every pass is certain to give the same rows in the same order.
    is_repeatable = True
    #: Columns that are known to hold no numbers.
    words: Collection[str] = ()

    @abstractmethod
    def read(self, names: Sequence[str], rows: int) -> Iterator[Columns]:
        """The named columns, in batches of at most so many rows."""

    def read_from(self, start: int, names: Sequence[str], rows: int) -> Iterator[Columns]:
        """The same from a row on where a batch begins."""
        done = 0
        for batch in self.read(names, rows):
            if done >= start:
                yield batch
            done += len(batch[0])

    def has(self, name: str) -> bool:
        """Whether a column can be read."""
        return name in self.columns

    def as_it_is(self) -> Source:
        """The same with words and missing values, in columns of Arrow where it has these."""
        return self

    def is_single(self, names: Sequence[str], rows: int) -> bool:
        """Whether single precision holds all values of some columns."""
        return all(np.can_cast(column.dtype, np.float32) for column in next(self.read(names, rows)))

    def stamp(self) -> Any:
        """What changes when the rows change, as far as that is quick to see."""
        return self.name


def _alike(one: Any, other: Any) -> bool:
    return bool(one == other or (_is_number(one) and _is_number(other)))


def _is_number(kind: Any) -> bool:
    types = require("pyarrow", "tables").types
    return bool(types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind))


def _is_single(kind: Any) -> bool:
    return _is_number(kind) and np.can_cast(kind.to_pandas_dtype(), np.float32)


def _values(column: Any, name: str, where: str) -> NDArray[Any]:
    if column.null_count:
        raise TableError(
            f"Column {name!r} misses {column.null_count} values in {where}: fill them in, or leave "
            "the rows out, before the fit."
        )
    if hasattr(column, "dictionary_decode"):
        column = column.dictionary_decode()
    return np.asarray(column.to_numpy(zero_copy_only=False))


def _without_conversion(source: Any) -> Any:
    own = copy(source)
    own._read_column = _untouched
    return own


def _untouched(column: Any, name: str, where: str) -> Any:
    """A column of Arrow as it is."""
    return column


class Files(Source):
    """Parquet, Arrow IPC or CSV: a file, a folder (with hive partitions), or a pattern."""

    _read_column = staticmethod(_values)

    def __init__(self, path: str | Path) -> None:
        dataset = require("pyarrow.dataset", "tables")
        self.name = str(path)
        paths = _expanded(path)
        ending = _ending(_first_file(paths))
        if ending not in _FORMATS:
            raise TableError(
                f"{path}: files end in {', '.join(_FORMATS)}, and these end in {ending!r}."
            )
        self._is_parquet = _FORMATS[ending] == "parquet"
        try:
            self._data = dataset.dataset(paths, format=_FORMATS[ending], partitioning="hive")
        except (OSError, ValueError) as error:
            raise TableError(f"{path} cannot be read: {error}") from error
        self._schema = self._data.schema
        # Bytes that are fetched before they are asked for help on a network, and cost on a disk.
        is_here = self._data.filesystem.type_name == "local"
        scan = dataset.ParquetFragmentScanOptions(pre_buffer=not is_here)
        self._how = {"fragment_scan_options": scan} if self._is_parquet else {}
        self.columns = tuple(self._schema.names)
        self.words = [one.name for one in self._schema if not _is_number(one.type)]
        #: Files and row groups that are left out, and why.
        self.skipped: dict[str, str] = {}

    def as_it_is(self) -> Files:
        return _without_conversion(self)

    def leave_out_damaged(self, names: Sequence[str], rows: int) -> None:
        """Read everything once, and note what cannot be read."""
        for fragment in self._data.get_fragments():
            try:
                self._check(fragment, names)
                groups = self._split(fragment)
            except TableError as error:
                self.skipped[fragment.path] = str(error)
                continue
            for where, group in groups:
                try:
                    for _ in self._read(group, names, rows, where):
                        pass
                except TableError as error:
                    self.skipped[where] = str(error)

    def is_single(self, names: Sequence[str], rows: int) -> bool:
        return all(_is_single(self._schema.field(name).type) for name in names)

    def _split(self, fragment: Any) -> list[tuple[str, Any]]:
        """The row groups of a file, each with its name; of other formats the file."""
        if not self._is_parquet:
            return [(fragment.path, fragment)]
        groups = fragment.split_by_row_group()
        return [(f"{fragment.path}, row group {k}", group) for k, group in enumerate(groups)]

    def stamp(self) -> Any:
        states = ((path, Path(path).stat()) for path in self._data.files)
        return [(path, state.st_size, state.st_mtime_ns) for path, state in states]

    def read(self, names: Sequence[str], rows: int) -> Iterator[Columns]:
        return self.read_from(0, names, rows)

    def read_from(self, start: int, names: Sequence[str], rows: int) -> Iterator[Columns]:
        done = 0
        for batch in self._groups(start, names, rows):
            if isinstance(batch, int):  # rows that were skipped unread
                done += batch
                continue
            if done >= start:
                yield batch
            done += len(batch[0])

    def _groups(self, start: int, names: Sequence[str], rows: int) -> Iterator[Columns | int]:
        """Batches of one row group after the other; of those before a row only their number."""
        done = 0
        for fragment in self._data.get_fragments():
            if fragment.path in self.skipped:
                continue
            self._check(fragment, names)
            for where, group in self._split(fragment):
                if where in self.skipped:
                    continue
                size = group.row_groups[0].num_rows if self._is_parquet and start else 0
                if done + size <= start and size:
                    done += size
                    yield size
                    continue
                done += size
                yield from self._read(group, names, rows, where)

    def _read(self, group: Any, names: Sequence[str], rows: int, where: str) -> Iterator[Columns]:
        try:
            given = group.to_batches(
                schema=self._schema, columns=list(names), batch_size=rows, **self._how
            )
            for batch in given:
                if batch.num_rows:
                    yield [
                        self._read_column(batch.column(j), n, where) for j, n in enumerate(names)
                    ]
        except (OSError, ValueError) as error:
            if isinstance(error, TableError):
                raise
            raise TableError(f"{where} cannot be read: {error}. {_ADVICE}") from error

    def _check(self, fragment: Any, names: Sequence[str]) -> None:
        """That a file has the columns of the first one, in types of the same kind."""
        try:
            own = fragment.physical_schema
        except (OSError, ValueError) as error:
            raise TableError(f"{fragment.path} cannot be read: {error}. {_ADVICE}") from error
        for name in names:
            if name not in own.names:
                if f"{name}=" in fragment.path:
                    continue  # a hive partition
                raise TableError(
                    f"{fragment.path} has no column {name!r}, which other files have. {_ADVICE}"
                )
            if not _alike(own.field(name).type, self._schema.field(name).type):
                kinds = own.field(name).type, self._schema.field(name).type
                raise TableError(
                    f"Column {name!r} of {fragment.path} holds {kinds[0]}, and of other files "
                    f"{kinds[1]}. {_ADVICE}"
                )


def _ending(path: str) -> str:
    """Of a file's name; of compressed files the last two."""
    endings = Path(path).suffixes
    return "".join(endings[-2:] if endings[-1:] == [".gz"] else endings[-1:]).lower()


def _expanded(path: str | Path) -> Any:
    text = str(path)
    if not any(sign in text for sign in "*?["):
        if not Path(text).exists():
            raise TableError(f"There is no file or folder {text}.")
        return text
    found = sorted(glob(text, recursive=True, include_hidden=True))
    if not found:
        raise TableError(f"No file is called {text}.")
    return found


def _first_file(paths: Any) -> str:
    if isinstance(paths, list):
        return str(paths[0])
    if Path(paths).is_dir():
        files = sorted(p for p in Path(paths).rglob("*") if p.is_file() and p.name[0] not in "._")
        if not files:
            raise TableError(f"The folder {paths} is empty.")
        return str(files[0])
    return str(paths)


class Arrays(Source):
    """Columns of an array, such as one that is mapped from a file, with a target beside it."""

    def __init__(self, X: Any, target: Any, weights: Any, names: Sequence[str]) -> None:
        self.name = "the array"
        self._X, self._more = X, {"target": target, "weight": weights}
        self._places = {name: j for j, name in enumerate(names)}
        self.columns = (*names, *(name for name, v in self._more.items() if v is not None))

    def read(self, names: Sequence[str], rows: int) -> Iterator[Columns]:
        for start in range(0, len(self._X), rows):
            where = slice(start, start + rows)
            block = np.asarray(self._X[where])
            yield [
                np.asarray(self._more[n][where]) if n in self._more else block[:, self._places[n]]
                for n in names
            ]


class Factory(Source):
    """A function without arguments that gives an iterator of batches, a new one each time.

    A batch is a DataFrame, an Arrow table, an array of shape (n, d), or a pair (X, y) or a triple
    (X, y, weight) of arrays, whose columns are x0, x1, ... and ``target`` and ``weight``.
    """

    is_repeatable = False

    def __init__(self, make: Callable[[], Iterable[Any]]) -> None:
        self.name, self._make = "the function", make
        first = next(iter(make()), None)
        self.columns = tuple(_named(first)) if first is not None else ()
        #: The names of target and weights where batches are tuples of arrays.
        self.beside = self.columns[len(first[0].T) :] if isinstance(first, tuple) else ()
        if not self.columns:
            raise TableError(
                "The function must give DataFrames, arrays, or pairs of arrays (X, y), and at "
                f"least one; it gave {type(first).__name__}."
            )

    def read(self, names: Sequence[str], rows: int) -> Iterator[Columns]:
        for batch in self._make():
            given = _named(batch)
            if missing := [name for name in names if name not in given]:
                raise TableError(f"A batch has no column {missing[0]!r}, which the first one had.")
            columns = [given[name]() for name in names]
            for start in range(0, len(columns[0]), rows):
                yield [column[start : start + rows] for column in columns]


class Query(Source):
    """A relation of DuckDB, such as ``duckdb.sql("select ...")``: run anew in every pass."""

    is_repeatable = False
    _read_column = staticmethod(_values)

    def __init__(self, relation: Any) -> None:
        self.name, self._relation = "the query", relation
        self.columns = tuple(relation.columns)

    def as_it_is(self) -> Query:
        return _without_conversion(self)

    def read(self, names: Sequence[str], rows: int) -> Iterator[Columns]:
        quoted = ", ".join('"' + name.replace('"', '""') + '"' for name in names)
        chosen = self._relation.project(quoted)
        # DuckDB 1.4 has renamed it.
        read = getattr(chosen, "to_arrow_reader", None) or chosen.fetch_arrow_reader
        for batch in read(rows):
            for start in range(0, batch.num_rows, rows):
                part = batch.slice(start, rows)
                yield [self._read_column(part.column(j), n, self.name) for j, n in enumerate(names)]


def _named(batch: Any) -> dict[str, Callable[[], NDArray[Any]]]:
    """What makes the columns of a batch, by name; empty for what is none."""
    if hasattr(batch, "column_names"):  # of Arrow
        return {n: partial(_values, batch.column(n), n, "a batch") for n in batch.column_names}
    if hasattr(batch, "columns"):
        return {str(name): partial(_array_of, batch, name) for name in batch.columns}
    X, *more = batch if isinstance(batch, tuple) else (batch,)
    if getattr(X, "ndim", 0) != 2 or len(more) > 2:
        return {}
    found: dict[str, Callable[[], NDArray[Any]]] = {
        f"x{j}": partial(_array_of, X, (slice(None), j)) for j in range(X.shape[1])
    }
    for name, values in zip(("target", "weight"), more):
        found[name] = partial(np.asarray, values)
    return found


def _array_of(batch: Any, place: Any) -> NDArray[Any]:
    return np.asarray(batch[place])
