"""DataFrames with columns that are not numbers, as numbers: one column per level but the first."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trueline.table.columns import MISSING, Column
from trueline.table.encoding import Source

__all__ = ["design_of", "names_of", "places_of", "sources_of"]

Array = NDArray[np.float64]


def sources_of(X: Any) -> list[Source] | None:
    """What the columns of a DataFrame are; None if X is none, or all of them are numbers.

    Categories are columns declared as such, and those that hold text. Their levels are in the
    order that was declared, otherwise in alphabetical order.

    Examples
    --------
    >>> import pandas as pd
    >>> from trueline.estimators.frames import names_of, sources_of
    >>> frame = pd.DataFrame({"size": [1.0, 2.0, 4.0], "city": ["Rome", "Oslo", "Rome"]})
    >>> names_of(sources_of(frame))
    ['size', 'city=Rome']
    """
    if not hasattr(X, "columns") or not hasattr(X, "__getitem__"):
        return None
    names = list(X.columns)
    if not all(isinstance(name, str) for name in names) or len(set(names)) < len(names):
        return None
    sources = [_source(name, X[name]) for name in names]
    return None if all(source.kind == "number" for source in sources) else sources


def _source(name: str, column: Any) -> Source:
    declared = _declared(column)
    values = None if declared is not None else np.asarray(column)
    if values is not None and (values.dtype.kind not in "OUST" or not _is_text(values)):
        return Source(name, "number")
    present = set(_cells(column))
    levels = sorted(present) if not declared else [level for level in declared if level in present]
    return Source(name, "category", tuple(level for level in levels if level))


def _declared(column: Any) -> list[str] | None:
    """The levels of a column that is declared as a category; empty if it does not order them."""
    if not str(getattr(column, "dtype", "")).lower().startswith(("categor", "enum")):
        return None
    levels = getattr(getattr(column, "cat", None), "categories", None)
    return [] if levels is None else [str(level) for level in levels]


def _is_text(values: NDArray[Any]) -> bool:
    """Whether anything in it is text that is not a number."""
    for value in values:
        if isinstance(value, str):
            try:
                float(value)
            except ValueError:
                return True
    return False


def _cells(column: Any) -> list[str]:
    """The values as text, empty where one is missing."""
    values = np.asarray(column, dtype=object)
    cells = ["" if value is None or value != value else str(value).strip() for value in values]
    return ["" if cell in MISSING else cell for cell in cells]


def names_of(sources: Sequence[Source]) -> list[str]:
    """The names of the columns that the sources become."""
    return [name for source in sources for name in source.names]


def places_of(sources: Sequence[Source]) -> list[NDArray[np.intp]]:
    """For each source, the numbers of the columns it becomes."""
    stops = np.cumsum([0, *(len(source.names) for source in sources)])
    return [np.arange(first, last) for first, last in pairwise(stops)]


def design_of(X: Any, sources: Sequence[Source]) -> Array:
    """The columns as numbers; NaN and infinity among numbers are left to be complained about."""
    names = [source.name for source in sources]
    if not hasattr(X, "columns"):
        raise ValueError(
            f"The model was fitted on a DataFrame with categories; give one with the columns "
            f"{', '.join(names)}, not a {type(X).__name__}."
        )
    if list(X.columns) != names:
        missing = [name for name in names if name not in set(X.columns)]
        what = f"it has no column {missing[0]!r}" if missing else "they are others, or in disorder"
        raise ValueError(
            f"The columns of X do not match those the model was fitted on ({', '.join(names)}): "
            f"{what}."
        )
    return np.column_stack([_columns(X[source.name], source) for source in sources])


def _columns(column: Any, source: Source) -> Array:
    if source.kind == "number":
        return np.asarray(column, dtype=np.float64)[:, None]
    cells = _cells(column)
    if "" in cells:
        raise ValueError(
            f"The category {source.name!r} has no value in row {cells.index('') + 1}: leave the "
            "row out, or give missing values a level of their own."
        )
    return source.columns(Column(source.name, cells))
