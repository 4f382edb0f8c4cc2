r"""Columns that give the target away.

A column that equals the target up to scale and shift, or that has one value for each class, was
most likely made from the target: every score would be a score of that column. For numbers the
correlation with y decides, abs(r) > 1 - 1e-12: a copy rounded to single precision is found, and
measured data do not come so close; for classes the column is constant within each class and differs
between them. Of tables with more than numbers each column is looked at by itself, where it is not
missing: texts that are numbers count as these, and other texts as a value of their own each.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

_EXACT = 1e-12
# Fewer rows are explained by a column of noise with some probability.
_FEWEST = 10
# Rows of a table looked at first: nearly all columns need no look at the rest.
_FIRST = 2_000


class LeakageWarning(UserWarning):
    """A feature tells the target exactly: scores say nothing about new data."""


def leaking_columns(X: Any, y: Any, is_classifier: bool) -> NDArray[np.intp]:
    """The columns of X that tell y exactly, each by itself.

    Examples
    --------
    >>> import numpy as np
    >>> from trueline.evaluation.leakage import leaking_columns
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((20, 3))
    >>> leaking_columns(X, 3 - 2 * X[:, 1], is_classifier=False).tolist()
    [1]
    """
    y = np.asarray(y)
    n = X.shape[0]
    if y.ndim != 1 or n < _FEWEST:
        return np.empty(0, dtype=np.intp)
    if is_classifier:
        classes, codes = np.unique(y, return_inverse=True)
        members = sp.csr_array((np.ones(n), (codes, np.arange(n))), (len(classes), n))
    else:
        # Any function of y would do; for numbers a straight line is what copies look like.
        return _lines(X, y.astype(np.float64))
    return _steps(X, members)


def _lines(X: Any, y: NDArray[np.float64]) -> NDArray[np.intp]:
    """Columns whose correlation with y is one."""
    centred = y - y.mean()
    size = float(np.linalg.norm(centred))
    if not size > 0:
        return np.empty(0, dtype=np.intp)
    cross, square = _sums(X, centred / size)
    with np.errstate(divide="ignore", invalid="ignore"):
        likely = np.flatnonzero(cross**2 > (1 - 1e-6) * square)
    found = []
    for j in likely:  # looked at again, without cancellation
        x = _column(X, int(j))
        x = x - x.mean()
        length = float(np.linalg.norm(x))
        if length > 0:
            left = x / length - np.sign(x @ centred) * centred / size
            found.append(j) if left @ left < 2 * _EXACT else None
    return np.array(found, dtype=np.intp)


def _sums(X: Any, direction: NDArray[np.float64]) -> tuple[Any, Any]:
    """Products of the centred columns with a centred direction, and their sums of squares."""
    n = X.shape[0]
    if sp.issparse(X):
        mean = np.asarray(X.mean(axis=0)).ravel()
        square = np.asarray(X.multiply(X).sum(axis=0)).ravel() - n * mean**2
        return np.asarray(X.T @ direction).ravel(), square
    return direction @ X, n * X.var(axis=0)


def _steps(X: Any, members: sp.csr_array) -> NDArray[np.intp]:
    """Columns that are constant within each class, with a value of its own for each."""
    counts = members.sum(axis=1)
    if (counts < 2).any():
        return np.empty(0, dtype=np.intp)
    means = np.asarray((members @ X).toarray() if sp.issparse(X) else members @ X)
    means /= counts[:, None]
    square = np.asarray(X.multiply(X).sum(axis=0)).ravel() if sp.issparse(X) else (X**2).sum(axis=0)
    within = square - counts @ means**2
    spread = square - counts.sum() * (counts @ means / counts.sum()) ** 2
    likely = np.flatnonzero((within <= 1e-6 * spread) & (spread > 0))
    found = []
    for j in likely:
        x = _column(X, int(j))
        order = np.sort(means[:, j])
        apart = len(order) < 2 or float(np.diff(order).min()) > _EXACT * float(np.ptp(order))
        codes = members.tocsc().indices
        if apart and np.abs(x - means[codes, j]).max() <= _EXACT * np.abs(x).max():
            found.append(j)
    return np.array(found, dtype=np.intp)


def _column(X: Any, j: int) -> NDArray[np.float64]:
    column = X[:, [j]].toarray() if sp.issparse(X) else X[:, j]
    return np.asarray(column, dtype=np.float64).ravel()


def leaking_in_table(X: Any, y: Any, is_classifier: bool) -> list[str]:
    """The names of the columns of a table that tell y exactly, each by itself.

    Examples
    --------
    >>> import pandas as pd
    >>> from trueline.evaluation.leakage import leaking_in_table
    >>> table = pd.DataFrame({"plan": ["paid", "free"] * 10, "age": range(20)})
    >>> leaking_in_table(table, [1, 0] * 10, is_classifier=True)
    ['plan']
    """
    y = np.asarray(y)
    names = column_names(X)
    if names is None or y.ndim != 1 or len(y) < _FEWEST:
        return []
    sample = np.linspace(0, len(y) - 1, min(len(y), _FIRST)).astype(np.intp)
    found = []
    for j, name in enumerate(names):
        values = _column_of(X, j, name)
        if values is not None and all(
            _tells(values[rows], y[rows], is_classifier) for rows in (sample, slice(None))
        ):
            found.append(str(name))
    return found


def column_names(X: Any) -> list[Any] | None:
    """The names of the columns of a table of pandas, polars or Arrow; None of anything else."""
    if hasattr(X, "column_names"):  # Arrow, whose columns are the columns themselves
        return list(X.column_names)
    return list(X.columns) if hasattr(X, "columns") else None


def _column_of(X: Any, j: int, name: Any) -> NDArray[Any] | None:
    column = X.iloc[:, j] if hasattr(X, "iloc") else X[name]
    values = np.asarray(column.to_numpy() if hasattr(column, "to_numpy") else column)
    return values if values.ndim == 1 else None


def _tells(values: NDArray[Any], y: NDArray[Any], is_classifier: bool) -> bool:
    """Whether a column tells the target wherever it is not missing."""
    if values.dtype.kind in "mM":
        return False
    present = ~missing(values)
    if present.sum() < _FEWEST or len(np.unique(y[present])) < 2:
        return False
    values, y = values[present], y[present]
    try:
        x = values.astype(np.float64)
    except (TypeError, ValueError):
        if not is_classifier:
            return False
        levels, codes = np.unique([str(value) for value in values], return_inverse=True)
        if len(levels) != len(np.unique(y)):
            return False
        x = codes.astype(np.float64)
    return bool(np.isfinite(x).all()) and len(leaking_columns(x[:, None], y, is_classifier)) > 0


def missing(values: NDArray[Any]) -> NDArray[np.bool_]:
    """Where values are None, NaN, or pandas' NA and NaT."""
    if values.dtype.kind == "f":
        return np.isnan(values)
    if values.dtype.kind in "mM":
        return np.isnat(values)
    if values.dtype.kind != "O":
        return np.zeros(values.shape, dtype=bool)
    # The comparison of pandas' NA with itself is neither true nor false.
    return np.array([v is None or str(v) == "<NA>" or v != v for v in values.flat])


def warn_of_leakage(X: Any, matrix: Any, y: Any, is_classifier: bool) -> list[str]:
    """Say which columns give the target away; their names.

    ``matrix`` holds X as numbers; None if it is not made of numbers.
    """
    if matrix is None:
        found = leaking_in_table(X, y, is_classifier)
    else:
        names = column_names(X)
        columns = leaking_columns(matrix, y, is_classifier)
        found = [str(names[j]) if names is not None else f"x{j}" for j in columns]
    if not found:
        return []
    listed = ", ".join(found[:5]) + (", ..." if len(found) > 5 else "")
    which = "Column" if len(found) == 1 else "Columns"
    verb = "tells" if len(found) == 1 else "tell"
    warnings.warn(
        f"{which} {listed} {verb} the target exactly: scores will be those of a copy of the "
        "target, not of a model. Leave out what is only known together with the target.",
        LeakageWarning,
        stacklevel=4,
    )
    return found
