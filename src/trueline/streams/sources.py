"""Where batches come from: Parquet, Arrow and CSV files, arrays, functions.

A source gives the columns that are asked for, in batches that are cut alike in every pass.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trueline.errors import TableError, require

_FORMATS = {".parquet": "parquet", ".pq": "parquet", ".arrow": "ipc", ".feather": "ipc"}
_FORMATS |= {".ipc": "ipc", ".csv": "csv"}
_LOOK = 1024  # rows of a function's first batch that tell the columns

Columns = list[NDArray[Any]]


class Source(ABC):
    """Batches of columns.

    Attributes
    ----------
    name : str
    columns : tuple of str
    """

    name: str
    columns: tuple[str, ...]

    @abstractmethod
    def read(self, names: Sequence[str], rows: int) -> Iterator[Columns]:
        """The named columns, in batches of at most so many rows."""


class Files(Source):
    """Parquet, Arrow IPC or CSV: a file, a folder (with hive partitions), or a pattern."""

    def __init__(self, path: str | Path) -> None:
        dataset = require("pyarrow.dataset", "tables")
        self.name = str(path)
        paths = _expanded(path)
        ending = Path(_first_file(paths)).suffix.lower()
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
        self.columns = tuple(self._schema.names)

    def read(self, names: Sequence[str], rows: int) -> Iterator[Columns]:
        for fragment in self._data.get_fragments():
            self._check(fragment, names)
            groups = fragment.split_by_row_group() if self._is_parquet else [fragment]
            for number, group in enumerate(groups):
                where = fragment.path + (f", row group {number}" if self._is_parquet else "")
                yield from self._read(group, names, rows, where)

    def _read(self, group: Any, names: Sequence[str], rows: int, where: str) -> Iterator[Columns]:
        try:
            given = group.to_batches(schema=self._schema, columns=list(names), batch_size=rows)
            for batch in given:
                if batch.num_rows:
                    yield [_values(batch.column(j), n, where) for j, n in enumerate(names)]
        except (OSError, ValueError) as error:
            if isinstance(error, TableError):
                raise
            raise TableError(f"{where} cannot be read: {error}") from error

    def _check(self, fragment: Any, names: Sequence[str]) -> None:
        """That a file has the columns of the first one, in types of the same kind."""
        try:
            own = fragment.physical_schema
        except (OSError, ValueError) as error:
            raise TableError(f"{fragment.path} cannot be read: {error}") from error
        for name in names:
            if name not in own.names:
                if f"{name}=" in fragment.path:
                    continue  # a hive partition
                raise TableError(f"{fragment.path} has no column {name!r}, which other files have.")
            if not _alike(own.field(name).type, self._schema.field(name).type):
                kinds = own.field(name).type, self._schema.field(name).type
                raise TableError(
                    f"Column {name!r} of {fragment.path} holds {kinds[0]}, and of other files "
                    f"{kinds[1]}."
                )


def _alike(one: Any, other: Any) -> bool:
    return bool(one == other or (_is_number(one) and _is_number(other)))


def _is_number(kind: Any) -> bool:
    types = require("pyarrow", "tables").types
    return bool(types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind))


def _values(column: Any, name: str, where: str) -> NDArray[Any]:
    if column.null_count:
        raise TableError(
            f"Column {name!r} misses {column.null_count} values in {where}: fill them in, or leave "
            "the rows out, before the fit."
        )
    if hasattr(column, "dictionary_decode"):
        column = column.dictionary_decode()
    return np.asarray(column.to_numpy(zero_copy_only=False))


def _expanded(path: str | Path) -> Any:
    text = str(path)
    if not any(sign in text for sign in "*?["):
        if not Path(text).exists():
            raise TableError(f"There is no file or folder {text}.")
        return text
    found = sorted(str(one) for one in Path().glob(text)) if not Path(text).is_absolute() else []
    if Path(text).is_absolute():
        root = Path(text).anchor
        found = sorted(str(one) for one in Path(root).glob(str(Path(text).relative_to(root))))
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
    """A function without arguments that gives an iterator of DataFrames, a new one each time."""

    def __init__(self, make: Callable[[], Iterable[Any]]) -> None:
        self.name, self._make = "the function", make
        first = next(iter(make()), None)
        if first is None or not hasattr(first, "columns"):
            raise TableError("The function must give DataFrames, and at least one.")
        self.columns = tuple(str(name) for name in first.columns)

    def read(self, names: Sequence[str], rows: int) -> Iterator[Columns]:
        for frame in self._make():
            given = {str(name): name for name in frame.columns}
            if missing := [name for name in names if name not in given]:
                raise TableError(f"A batch has no column {missing[0]!r}, which the first one had.")
            for start in range(0, len(frame), rows):
                stop = start + rows
                yield [np.asarray(frame[given[name]])[start:stop] for name in names]
