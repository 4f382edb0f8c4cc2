"""``design_matrix``: one table in, one design out."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from trueline.errors import TableError
from trueline.features.design import DesignMatrix
from trueline.features.tables.columns import TableColumn, find_column, guess_kind, read_columns
from trueline.features.tables.transformer import TableFeatures
from trueline.wording import counted

__all__ = ["DesignMatrix", "design_matrix"]


def design_matrix(table: Any, target: Any = None, **options: Any) -> DesignMatrix:
    """One table in, one design out.

    Parameters
    ----------
    table : DataFrame (pandas, polars, Arrow, ...), dict of columns, or array of shape (n, d)
    target : str or array-like of shape (n,), optional
        What to predict: the name of a column, or its values. Rows without it are refused.
    **options
        Parameters of :class:`TableFeatures`.

    Returns
    -------
    design : DesignMatrix
        ``design.X``, ``design.y`` and ``design.names``; it unpacks into these three.

    Examples
    --------
    >>> from trueline import Ridge, design_matrix
    >>> table = {"size": [50.0, 60.0, 80.0], "city": ["Rome", "Oslo", "Rome"], "price": [5, 9, 8]}
    >>> design = design_matrix(table, target="price")
    >>> list(design.names)
    ['size', 'city=Oslo', 'city=Rome']
    >>> model = Ridge().fit(design.X, design.y)
    >>> sorted(design.features.by_source(model.coef_))
    ['city', 'size']
    """
    columns = read_columns(table)
    y = None
    if np.ndim(target) > 0:
        y = _target(_given(target, len(columns[0])))
    elif target is not None:
        column = find_column(columns, target, role="target")
        y = _target(column)
        columns = [other for other in columns if other is not column]
        if not columns:
            raise TableError(f"The table has no column besides the target {target!r}.")
    features = TableFeatures(**options)
    features._learn(columns, y)
    X = features._design(columns)
    return DesignMatrix(X, y, features.get_feature_names_out(), features.sources_, features)


def _given(target: Any, n: int) -> TableColumn:
    """A target that is no column of the table."""
    if np.ndim(target) > 1 or len(target) != n:
        raise TableError(
            f"The target must be the name of a column, or one value for each of the {n:,} rows; "
            f"got values of shape {np.shape(target)}."
        )
    name = str(getattr(target, "name", None) or "y")
    return read_columns({name: target})[0]


def _target(column: TableColumn) -> NDArray[Any]:
    kind = guess_kind(column)
    missing = np.isnan(column.numbers) if kind == "number" else column.missing
    if missing.any():
        rows = np.flatnonzero(missing)
        raise TableError(
            f"The target {column.name!r} is missing in {counted(len(rows), 'row')} (the first is "
            f"row {rows[0]}). Leave these rows out."
        )
    if kind == "number":
        values = column.arrow.to_numpy(zero_copy_only=False)
        return column.numbers if values.dtype == object else values
    codes, texts = column.coded
    if kind == "boolean":
        return column.numbers.astype(bool)
    return np.array(texts, dtype=object)[codes].astype(str)
