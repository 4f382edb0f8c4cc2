"""A column of any DataFrame as Arrow, and what it seems to be."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trueline.errors import TableError, require
from trueline.features.tables.batches import BatchedColumn
from trueline.streams import Batches
from trueline.table.columns import MISSING, first_other, read_numbers

KINDS = ("number", "boolean", "category", "date", "text")

_ISO_DATE = re.compile(
    r"\d{4}-\d{2}-\d{2}([T ]\d{2}:\d{2}(:\d{2}(\.\d+)?)?(Z|[+-]\d{2}:?\d{2})?)?$"
)
# Written like this a number may be a code, of a shop or a town; more than digits make an amount.
_CODE = re.compile(r"[+-]?\d+")
# Enough to tell prose from labels; reading a long column of text twice would cost seconds.
_LOOKED_AT = 10_000
# Labels have one to two words and repeat; prose has more and does not.
_WORDS_OF_PROSE = 3.0
_SHARE_DIFFERENT = 0.5


class TableColumn:
    """One column of a table; what is read of it is kept until :meth:`release`.

    Attributes
    ----------
    name : str
    source : object
        A narwhals Series, or values that Arrow can read.
    keeps_codes : bool
        Whether codes of categories are kept in :meth:`release`.
    """

    def __init__(self, name: str, source: Any, keeps_codes: bool = True) -> None:
        self.name = name
        self.source = source
        self.keeps_codes = keeps_codes

    def __len__(self) -> int:
        return len(self.source)

    @cached_property
    def arrow(self) -> Any:
        """The values as one Arrow array; missing values are null."""
        series = hasattr(self.source, "to_arrow")
        return _one_chunk(_series(self.source) if series else _from_values(self.source))

    def release(self) -> None:
        """Forget what takes memory and can be read again; codes of categories may be kept."""
        for part in ("arrow", "numbers", "missing", "texts", "_written"):
            self.__dict__.pop(part, None)
        if not self.keeps_codes:
            self.__dict__.pop("coded", None)

    @cached_property
    def numbers(self) -> NDArray[np.float64]:
        """The values as numbers, NaN where missing; True is 1, a duration is in seconds."""
        pa, pc = _arrow()
        values = self.arrow
        if _is_text(values.type):
            return self._written[0]
        if pa.types.is_duration(values.type):
            values = pc.divide(
                pc.cast(values.cast(pa.duration("us"), safe=False), pa.int64()).cast("double"), 1e6
            )
        if not (pa.types.is_floating(values.type) or pa.types.is_integer(values.type)):
            values = self._as_double(values)
        numbers = values.to_numpy(zero_copy_only=False)
        return numbers.astype(np.float64, copy=False)

    def _as_double(self, values: Any) -> Any:
        pa, pc = _arrow()
        if pa.types.is_boolean(values.type):
            return pc.cast(values, pa.uint8())
        try:
            return pc.cast(values, pa.float64())
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            raise TableError(
                f"Column {self.name!r} cannot be read as numbers: {error}. "
                f"Give it another kind, such as columns={{{self.name!r}: 'category'}}."
            ) from error

    @property
    def unit(self) -> str:
        """The sign of a currency, or ``%``, of numbers that are written as texts with one."""
        return self._written[1] if _is_text(self.arrow.type) else ""

    @cached_property
    def _written(self) -> tuple[NDArray[np.float64], str]:
        """The numbers of a column of texts, and their unit."""
        read = read_numbers(self.texts)
        if read is None:
            row = first_other(self.texts)
            said = (
                "its values have several units"
                if row is None
                else f"row {row} holds {self.texts[row]!r}"
            )
            raise TableError(
                f"Column {self.name!r} cannot be read as numbers: {said}. "
                f"Give it another kind, such as columns={{{self.name!r}: 'category'}}."
            )
        return read

    @cached_property
    def missing(self) -> NDArray[np.bool_]:
        """Whether each value is missing."""
        _, pc = _arrow()
        return pc.is_null(self.arrow, nan_is_null=True).to_numpy(zero_copy_only=False)

    @property
    def all_missing(self) -> bool:
        """Whether there is no value at all."""
        return bool(self.missing.all())

    @cached_property
    def coded(self) -> tuple[NDArray[np.int32], list[str]]:
        """For each row the position of its value in a list of different texts; -1 where missing."""
        pa, pc = _arrow()
        values = self.arrow
        if not pa.types.is_dictionary(values.type):
            values = pc.dictionary_encode(values)
        # Indices may be unsigned, as polars has them.
        indices = values.indices.cast(pa.int32()).fill_null(-1)
        codes = indices.to_numpy(zero_copy_only=False)
        levels = values.dictionary.cast(pa.large_string()).to_pylist()
        # Floats may hide a NaN among their levels, categories of pandas two that print alike.
        first: dict[str, int] = {}
        for level in levels:
            if level is not None and level != "nan":
                first.setdefault(level, len(first))
        if len(first) < len(levels):
            place = np.array([first.get(level, -1) for level in levels] + [-1], dtype=np.int32)
            codes = place[codes]
        return codes, list(first)

    @cached_property
    def texts(self) -> list[str]:
        """The values as texts, empty where missing."""
        pa, pc = _arrow()
        values = self.arrow
        if pa.types.is_dictionary(values.type):
            values = values.dictionary_decode()
        return pc.fill_null(values.cast(pa.large_string()), "").to_pylist()


def _is_text(kind: Any) -> bool:
    """Whether an Arrow type is one of texts, or of categories of texts."""
    pa, _ = _arrow()
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    return pa.types.is_string(kind) or pa.types.is_large_string(kind)


def _arrow() -> tuple[Any, Any]:
    return require("pyarrow", "tables"), require("pyarrow.compute", "tables")


def read_columns(table: Any) -> list[TableColumn]:
    """The columns of a DataFrame (pandas, polars, Arrow, ...), a mapping, an array, or batches."""
    pa, _ = _arrow()
    if isinstance(table, Batches):
        return [TableColumn(name, BatchedColumn(table, name), False) for name in table.columns]
    if isinstance(table, dict):
        columns = [(str(name), values) for name, values in table.items()]
    elif isinstance(table, np.ndarray | list):
        columns = _from_array(np.asarray(table))
    elif isinstance(table, pa.RecordBatch):
        return read_columns(pa.table(table))
    else:
        columns = _from_frame(table)
    if not columns:
        raise TableError("The table has no columns.")
    names = [name for name, _ in columns]
    twice = [name for name in dict.fromkeys(names) if names.count(name) > 1]
    if twice:
        raise TableError(
            f"The table has the column {twice[0]!r} more than once. Rename one of them."
        )
    lengths = {len(values) for _, values in columns}
    if len(lengths) > 1:
        raise TableError(f"Columns must have one length, got {sorted(lengths)}.")
    return [TableColumn(name, values) for name, values in columns]


def _from_frame(table: Any) -> list[tuple[str, Any]]:
    narwhals = require("narwhals", "tables")
    try:
        frame = narwhals.from_native(table)
    except TypeError as error:
        raise TableError(
            f"A table is needed (pandas, polars, Arrow, a mapping of columns, or a 2-D array), "
            f"got {type(table).__name__}."
        ) from error
    except narwhals.exceptions.DuplicateError as error:
        reason = " ".join(str(error).split())
        raise TableError(f"A column of the table has a name twice: {reason}.") from error
    frame = frame.collect() if hasattr(frame, "collect") else frame  # a lazy one
    return [(str(series.name), series) for series in frame.iter_columns()]


def _series(series: Any) -> Any:
    try:
        return series.to_arrow()
    except _refusals():
        return _from_values(series.to_list())


def _from_array(array: NDArray[Any]) -> list[tuple[str, Any]]:
    if array.ndim != 2:
        raise TableError(f"A table has two dimensions, got an array of shape {array.shape}.")
    return [(f"x{j}", array[:, j]) for j in range(array.shape[1])]


def _from_values(values: Any) -> Any:
    pa, _ = _arrow()
    if isinstance(values, np.ndarray) and values.dtype != object:
        return pa.array(np.ascontiguousarray(values), from_pandas=True)
    values = list(values)
    try:
        return pa.array(values, from_pandas=True)
    except OverflowError:  # whole numbers of more than 64 bits
        return pa.array([None if _is_missing(v) else float(v) for v in values])
    except _refusals():
        # Values of several types: their texts are levels of a category. Halves of pairs of
        # surrogates, which UTF-8 cannot hold, become the six characters of their escape.
        texts = (None if _is_missing(v) else str(v) for v in values)
        return pa.array([t and t.encode(errors="backslashreplace").decode() for t in texts])


def _refusals() -> tuple[type[Exception], ...]:
    """What Arrow raises for values that it cannot hold in one column."""
    pa, _ = _arrow()
    arrows = pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError
    return (*arrows, UnicodeEncodeError, OverflowError)


def _is_missing(value: Any) -> bool:
    return value is None or (isinstance(value, float) and np.isnan(value))


def _one_chunk(values: Any) -> Any:
    pa, pc = _arrow()
    if isinstance(values, pa.ChunkedArray):
        if pa.types.is_dictionary(values.type):
            values = values.unify_dictionaries()
        values = values.combine_chunks()
        if isinstance(values, pa.ChunkedArray):  # more than one, or none
            values = values.chunk(0) if values.num_chunks else pa.array([], type=values.type)
    if str(values.type) == "string_view":  # few functions know it yet
        values = pc.cast(values, pa.large_string())
    return values


def find_column(columns: list[TableColumn], name: str, role: str = "column") -> TableColumn:
    """A column by name; the error suggests names that look alike."""
    names = [column.name for column in columns]
    if str(name) in names:  # names of other types are known by their texts
        return columns[names.index(str(name))]
    close = difflib.get_close_matches(str(name), names, n=1, cutoff=0.6)
    hint = f"Did you mean {close[0]!r}?" if close else f"It has: {', '.join(names)}."
    raise TableError(f"The table has no {role} {name!r}. {hint}")


def guess_kind(column: TableColumn) -> str:
    """What a column seems to be: one of KINDS, or why it cannot be used."""
    pa, _ = _arrow()
    kind = column.arrow.type
    if pa.types.is_boolean(kind):
        return "boolean"
    numeric = (pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal, pa.types.is_duration)
    if any(test(kind) for test in numeric):
        return "number"
    if pa.types.is_timestamp(kind) or pa.types.is_date(kind):
        return "date"
    if pa.types.is_dictionary(kind):
        return "category"
    if _is_text(kind):
        return _guess_text(column)
    return f"values of type {kind} are no features"


def _guess_text(column: TableColumn) -> str:
    sample = [text for text in column.arrow[:_LOOKED_AT].to_pylist() if text]
    if not sample:
        return "category"
    if all(_ISO_DATE.match(text) for text in sample[:1000]):
        return "date"
    if _are_amounts(sample[:1000]) and _are_amounts(column.texts):
        return "number"
    words = np.mean([len(text.split()) for text in sample])
    if words >= _WORDS_OF_PROSE and len(set(sample)) > _SHARE_DIFFERENT * len(sample):
        return "text"
    return "category"


def _are_amounts(texts: list[str]) -> bool:
    """Whether all texts are numbers, and not all of them digits alone."""
    return read_numbers(texts) is not None and not are_codes(texts)


def are_codes(texts: Iterable[str]) -> bool:
    """Whether all texts that are there are digits alone."""
    return all(_CODE.fullmatch(text) for text in {text.strip() for text in texts} - MISSING)
