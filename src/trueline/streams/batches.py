"""Batches of rows as a design, with their target and weights in memory."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from copy import copy
from hashlib import blake2b
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from trueline.design.base import Array, Design
from trueline.design.dense import DenseDesign
from trueline.design.sparse import SparseDesign
from trueline.design.stacked import StackedDesign
from trueline.errors import TableError
from trueline.streams.journal import Journal
from trueline.streams.sources import Arrays, Columns, Factory, Files, Query, Source
from trueline.streams.svmlight import ENDINGS, Svmlight
from trueline.wording import Readable, counted

_UNITS = {"KB": 1e3, "MB": 1e6, "GB": 1e9}
# A batch as it is read, the next one, the block in double precision that is worked on, and what
# the reader holds of its own.
_COPIES = 8
_FEWEST_ROWS = 256


class _First(NamedTuple):
    """What the first pass has seen: rows by chance, and the least and the largest of each column.

    As many rows as a batch has: methods that go on from the answer on these save some passes.
    """

    rows: NDArray[np.intp]
    X: NDArray[np.floating]
    low: Array
    high: Array


class Batches(StackedDesign, Readable):
    """Rows that are read batch by batch, anew in every pass; ``fit`` takes it in place of X and y.

    Only the columns that are used are read; the next batch is read while one is worked on. The
    target and the weights are read once, and kept.

    Attributes
    ----------
    shape : tuple of int
    columns : list of str
        Of the features.
    target : array of shape (n,), or None
    weights : array of shape (n,), or None

    Examples
    --------
    >>> import numpy as np
    >>> import trueline
    >>> X = np.random.default_rng(0).standard_normal((1000, 3))
    >>> rows = trueline.open(X, target=X @ [1.0, 2.0, 3.0], memory="64KB")
    >>> model = trueline.LinearRegression().fit(rows)
    >>> model.coef_.round(6).tolist(), bool(model.verify(X, rows.target))
    ([1.0, 2.0, 3.0], True)
    """

    columns: list[str]

    def __init__(
        self, source: Source, columns: list[str], target: str | None, weight: str | None, rows: int
    ) -> None:
        self._source, self._rows, self.columns = source, rows, columns
        self._done = [0]  # passes, shared with views of some columns
        #: Called with the number of the pass and of its rows that were read, if it is set.
        self.on_batch: Callable[[int, int], object] | None = None
        more = [name for name in (target, weight) if name is not None]
        self._target_name = None if source.is_repeatable else target
        self.target, self.weights, sizes = self._first_pass(more or columns[:1], target, weight)
        self.starts: list[int] = [0, *np.cumsum(sizes).tolist()]
        is_single = not source.is_sparse and source.is_single(columns, rows)
        kind = np.dtype(np.float32 if is_single else np.float64)
        super().__init__((self.starts[-1], len(columns)), kind)
        self.n_parts, self._is_checked = len(sizes), False
        self._first: _First | None = None
        self.journal: Journal | None = None

    @property
    def skipped(self) -> dict[str, str]:
        """Files and row groups that are left out, and why."""
        return dict(getattr(self._source, "skipped", {}))

    def fingerprint(self) -> bytes:
        """What tells these rows from others: files and their times, batches, target, weights."""
        hashed = blake2b(repr((self.columns, self.starts, self._source.stamp())).encode())
        for given in (self.target, self.weights):
            if given is not None:
                plain = given.astype(str) if given.dtype.kind == "O" else given
                hashed.update(np.ascontiguousarray(plain).data)
            hashed.update(b"-")
        return hashed.digest()

    def forget_passes(self) -> None:
        """After a fit: the checkpoint is not needed any more."""
        if self.journal is not None:
            self.journal.close()
            self.journal = None

    @property
    def numbers(self) -> list[str]:
        """Those of the columns that hold numbers, as far as the source tells."""
        words = self._source.words
        return [name for name in self.columns if name not in words]

    @property
    def passes(self) -> int:
        """How often features were read to the end."""
        return self._done[0]

    def _first_pass(
        self, names: list[str], target: str | None, weight: str | None
    ) -> tuple[NDArray[Any] | None, NDArray[Any] | None, list[int]]:
        """The target, the weights, and the size of every batch."""
        kept: list[Columns] = []
        sizes = []
        # Where rows are only counted, their values are not looked at.
        source = self._source if target or weight else self._source.as_it_is()
        for batch in source.read(names, self._rows):
            sizes.append(len(batch[0]))
            kept.append(batch if target or weight else [])
        if not sizes:
            raise TableError(f"{self._source.name} has no rows.")
        whole = {
            name: np.concatenate([part[j] for part in kept])
            for j, name in enumerate(names)
            if target or weight
        }
        return (
            None if target is None else whole[target],
            None if weight is None else whole[weight],
            sizes,
        )

    def of_columns(self, columns: NDArray[np.intp]) -> Batches:
        """Only these columns are read."""
        own = copy(self)
        own.columns = [self.columns[j] for j in columns]
        StackedDesign.__init__(own, (self.shape[0], len(columns)), self.dtype)
        own.journal = None
        if self._first is not None:
            rows, X, low, high = self._first
            own._first = _First(rows, X[:, columns], low[columns], high[columns])
        return own

    def _seen_first(self) -> _First | None:
        """What the first pass has seen; it is made where a checkpoint has spared it."""
        if self._first is None and not self._source.is_sparse:
            for _ in self.parts():
                pass
        return self._first

    def sample(self, count: int) -> NDArray[np.intp]:
        first = self._seen_first()
        return super().sample(count) if first is None else first.rows

    def take(self, rows: NDArray[np.intp] | slice) -> Design:
        if self._first is not None and rows is self._first.rows:
            return DenseDesign(self._first.X)
        return super().take(rows)

    def column_largest(self) -> Array:
        first = self._seen_first()
        if first is None:
            return super().column_largest()
        return np.maximum(np.abs(first.low), np.abs(first.high))

    def farthest(self, shift: Array | None) -> float:
        first = self._seen_first()
        if first is None:
            return super().farthest(shift)
        c = 0.0 if shift is None else shift
        ends = np.maximum(np.abs(first.low - c), np.abs(first.high - c))
        return float(ends @ ends)

    def parts(self) -> Iterator[tuple[slice, Design]]:
        return self.parts_from(0)

    def each(self, make: Callable[..., Any], *by_row: Any) -> Iterator[Any]:
        key = None if self.journal is None else self.journal.key(make, *by_row)
        if self.journal is None or key is None:
            yield from super().each(make, *by_row)
            return
        done = 0
        for value in self.journal.all(key):
            done += 1
            yield value
        for where, part in self.parts_from(done) if done < self.n_parts else ():
            value = make(part, *(None if rows is None else rows[where] for rows in by_row))
            self.journal.note(key, value)
            yield value

    def parts_from(self, first: int) -> Iterator[tuple[slice, Design]]:
        for where, batch in self._as_counted(self._blocks(first), first):
            if self.on_batch is not None:
                self.on_batch(self.passes + 1, where.stop)
            yield where, SparseDesign(batch) if sp.issparse(batch) else DenseDesign(batch)
        self._is_checked |= first == 0

    def tables(self) -> Iterator[tuple[slice, dict[str, Any]]]:
        """Where each batch is, and its columns by name, with words and missing values."""
        names = [*self.columns, *([self._target_name] if self._target_name else [])]
        for where, batch in self._as_counted(self._as_they_are(names), 0):
            if self._target_name and not self._is_target(np.asarray(batch.pop()), where.start):
                raise TableError(self._reordered)
            yield where, dict(zip(self.columns, batch))

    def _as_counted(self, batches: Iterator[Any], first: int) -> Iterator[tuple[slice, Any]]:
        """Batches from one on with their places, read ahead; an error if these have changed."""
        count = first
        for count, batch in enumerate(_read_ahead(batches), first + 1):
            size = batch.shape[0] if hasattr(batch, "shape") else len(batch[0])
            if count >= len(self.starts) or size != np.diff(self.starts[count - 1 : count + 1]):
                raise TableError(self._changed)
            yield slice(*self.starts[count - 1 : count + 1]), batch
        if count != len(self.starts) - 1:
            raise TableError(self._changed)
        self._done[0] += 1

    def _as_they_are(self, names: list[str]) -> Iterator[Columns]:
        """Columns batch by batch, with words and missing values."""
        if self._source.is_sparse:
            raise TableError(f"{self._source.name} holds numbers alone, which need no encoding.")
        return self._source.as_it_is().read(names, self._rows)

    def column(self, name: str) -> list[Any]:
        """All values of one column, batch by batch, with words and missing values."""
        parts = [batch[0] for batch in self._as_they_are([name])]
        if sum(map(len, parts)) != self.shape[0]:
            raise TableError(self._changed)
        return parts

    @property
    def _changed(self) -> str:
        return f"{self._source.name} has other rows than when it was opened: open it again."

    @property
    def _reordered(self) -> str:
        return (
            f"{self._source.name} gives its rows in another order than when it was opened: let it "
            "sort them (in a query: ORDER BY)."
        )

    def _blocks(self, first: int) -> Iterator[Any]:
        """The batches without so many at the start."""
        if isinstance(self._source, Svmlight):
            for rows in self._source.blocks(self.columns, first):
                if not (self._is_checked or np.isfinite(rows.data).all()):
                    self._require_finite(np.isfinite(rows.toarray()).all(axis=0))
                yield rows
            return
        names = [*self.columns, *([self._target_name] if self._target_name else [])]
        start, looks = self.starts[first], []
        for batch in self._source.read_from(start, names, self._rows):
            count = len(batch[0])
            if self._target_name and not self._is_target(batch.pop(), start):
                raise TableError(self._reordered)
            look = None if self._is_checked else self._look_at(start, count)
            yield self._block_of(batch, count, look)
            if look is not None:
                looks.append(look._replace(rows=start + look.rows))
            start += count
        if looks and first == 0:
            places, X, low, high = zip(*looks)
            self._first = _First(
                np.concatenate(places), np.concatenate(X), np.min(low, axis=0), np.max(high, axis=0)
            )

    def _look_at(self, start: int, count: int) -> _First:
        """Which rows of a batch are taken along, and room for what is seen of it."""
        kept = min(count, -(-count * self._rows // self.shape[0]))
        draw = np.random.default_rng(start)
        some = np.sort(draw.choice(count, kept, replace=False, shuffle=False))
        d = len(self.columns)
        return _First(some, np.empty((kept, d), self.dtype, order="F"), np.empty(d), np.empty(d))

    def _block_of(self, batch: Columns, count: int, look: _First | None) -> NDArray[np.floating]:
        """The columns of a batch in one array, looked at one by one while the cache holds them."""
        block = np.empty((count, len(batch)), self.dtype, order="F")
        for j, column in enumerate(batch):
            own = block[:, j]
            try:
                own[:] = column
            except ValueError:
                raise TableError(_not_numbers(self.columns[j], column)) from None
            if look is not None:
                look.low[j], look.high[j] = own.min(), own.max()
                look.X[:, j] = own[look.rows]
        if look is not None:
            self._require_finite(np.isfinite(look.low) & np.isfinite(look.high))
        return block

    def _is_target(self, values: NDArray[Any], start: int) -> bool:
        """Whether these are the targets from a row on; other sizes are noticed elsewhere."""
        assert self.target is not None
        known = self.target[start : start + len(values)]
        return len(known) < len(values) or bool((known == values).all())

    def _require_finite(self, is_finite: NDArray[np.bool_]) -> None:
        if not is_finite.all():
            name = self.columns[int(np.argmin(is_finite))]
            raise TableError(f"Column {name!r} contains NaN or infinity.")

    def __str__(self) -> str:
        n, d = self.shape
        return (
            f"{counted(n, 'row')} x {counted(d, 'column')} of {self._source.name}, "
            f"{counted(len(self.starts) - 1, 'batch', 'batches')} of up to "
            f"{max(np.diff(self.starts)):,} rows"
        )


def _not_numbers(name: str, column: NDArray[Any]) -> str:
    return (
        f"Column {name!r} holds {column.flat[0]!r}, which is no number: leave it out by columns=, "
        "or encode it before."
    )


def _read_ahead(batches: Iterator[Any]) -> Iterator[Any]:
    """What an iterator gives, one ahead, read by a thread of its own."""
    end = object()
    with ThreadPoolExecutor(1) as reader:
        ahead = reader.submit(next, batches, end)
        while (batch := ahead.result()) is not end:
            ahead = reader.submit(next, batches, end)
            yield batch


def open_rows(
    source: Any,
    *,
    target: str | ArrayLike | None = None,
    columns: Sequence[str] | None = None,
    weight: str | ArrayLike | None = None,
    memory: str | float = "1GB",
    checkpoint: str | Path | None = None,
    damaged: str = "raise",
) -> Batches:
    """Open rows that may be larger than memory.

    Parameters
    ----------
    source : str or path, array, query, or callable
        A Parquet, Arrow IPC or CSV file (``.csv.gz`` too), a folder of such files (with hive
        partitions), or a pattern such as ``"folder/*.parquet"``; an SVMlight file (``.svm``,
        ``.svmlight``, ``.libsvm``), whose batches are sparse; a query of DuckDB
        (``duckdb.sql("select ... order by ...")``); an array of shape (n, d), such as one mapped
        from a file; or a function without arguments that gives an iterator of batches, a new one
        whenever it is called: DataFrames, Arrow tables, arrays X, or tuples (X, y) or
        (X, y, weight) of arrays.
    target : str, or array-like of shape (n,), optional
        The column to predict; for arrays, its values.
    columns : sequence of str, optional
        The features; by default all other columns.
    weight : str, or array-like of shape (n,), optional
        The column of sample weights; for arrays, their values.
    memory : str or float, default="1GB"
        Bytes that batches may take: ``"500MB"``, ``"2GB"``. Target and weights come on top, 8 bytes
        a row each.
    checkpoint : str or path, optional
        A file in which passes are noted, 8 bytes a row for each pass at most: if the process is
        ended, the same lines run again go on from there, and give the same answer to the last bit.
        It is deleted at the end of a fit.
    damaged : {"raise", "skip"}, default="raise"
        What to do with files and row groups that cannot be read, or lack a column: an error that
        names them; or one pass more that finds them, a warning, and ``rows.skipped``.

    Returns
    -------
    rows : Batches
        For ``fit``, in place of X and y.

    Examples
    --------
    >>> import numpy as np, trueline
    >>> trueline.open(np.ones((1000, 4)), target=np.arange(1000.0), memory="64KB")
    1,000 rows x 4 columns of the array, 4 batches of up to 256 rows
    """
    found, its_target, its_weight = _source_of(source, target, weight, _bytes(memory) / _COPIES)
    for name in (*(columns or ()), its_target, its_weight):
        if name is not None and not found.has(name):
            raise TableError(
                f"{found.name} has no column {name!r}. It has: {', '.join(found.columns[:20])}."
            )
    if columns is None:
        columns = [name for name in found.columns if name not in (its_target, its_weight)]
    if not columns:
        raise TableError(f"{found.name} has no column to predict from.")
    rows = int(min(max(_bytes(memory) / (_COPIES * 8 * len(columns)), _FEWEST_ROWS), 1e7))
    if damaged not in ("raise", "skip"):
        raise ValueError(f"damaged must be 'raise' or 'skip', got {damaged!r}.")
    if damaged == "skip" and isinstance(found, Files):
        beside = [name for name in (its_target, its_weight) if name is not None]
        found.leave_out_damaged([*columns, *beside], rows)
        if found.skipped:
            warnings.warn(
                f"{counted(len(found.skipped), 'file or row group', 'files or row groups')} of "
                f"{found.name} cannot be read and will be left out: rows.skipped says which.",
                UserWarning,
                stacklevel=2,
            )
    opened = Batches(found, list(columns), its_target, its_weight, rows)
    if checkpoint is not None:
        opened.journal = Journal(checkpoint, opened.fingerprint())
    return opened


def _source_of(
    source: Any, target: Any, weight: Any, memory: float
) -> tuple[Source, str | None, str | None]:
    """Whatever was given as a source, and the names of target and weights in it."""
    if isinstance(source, str | Path):
        if Path(source).suffix.lower() in ENDINGS and Path(source).is_file():
            return Svmlight(source, memory, kept=memory * _COPIES / 2), "target", weight
        return Files(source), target, weight
    if hasattr(source, "fetch_arrow_reader"):
        return Query(source), target, weight
    if callable(source):
        made = Factory(source)
        target = made.beside[0] if target is None and made.beside else target
        weight = made.beside[1] if weight is None and len(made.beside) > 1 else weight
        return made, target, weight
    if sp.issparse(source):
        raise TableError("A sparse matrix is in memory already: give it to fit as it is, with y.")
    X = source if hasattr(source, "shape") else np.asarray(source)
    if len(X.shape) != 2:
        raise TableError(f"An array of shape (n, d) is needed, got {X.shape}.")
    values = [None if v is None else np.asarray(v) for v in (target, weight)]
    for value in values:
        if value is not None and value.shape != (X.shape[0],):
            raise TableError(f"X has {X.shape[0]} rows, and the shape {value.shape} is not (n,).")
    names = [f"x{j}" for j in range(X.shape[1])]
    own = [name if v is not None else None for name, v in zip(("target", "weight"), values)]
    return Arrays(X, values[0], values[1], names), own[0], own[1]


def _bytes(memory: str | float) -> float:
    if not isinstance(memory, str):
        return float(memory)
    text = memory.strip().upper()
    number, unit = text[:-2], text[-2:]
    try:
        return float(number) * _UNITS[unit]
    except (KeyError, ValueError) as error:
        raise ValueError(f"memory must be like '500MB' or '2GB', got {memory!r}.") from error
