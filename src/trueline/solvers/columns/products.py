"""Columns as the method reads them: compressed, and what they are multiplied by."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from trueline.design import DenseDesign, Design, SparseDesign
from trueline.design.sparse import LARGE
from trueline.design.sparse_products import threaded_product
from trueline.design.sparse_slices import ColumnsOfRows

__all__ = ["compressed", "some_columns", "times"]

Array = NDArray[np.float64]


def times(X: Any, V: Array, is_transposed: bool = False) -> Array:
    """X V or X^T V; on all threads where one vector meets many entries."""
    X = X.rows if isinstance(X, ColumnsOfRows) else X
    if sp.issparse(X) and V.shape[1] == 1 and X.nnz >= LARGE:
        return threaded_product(X, V[:, 0], is_transposed)[:, None]
    return np.asarray((X.T if is_transposed else X) @ V)


def some_columns(columns: Any, chosen: NDArray[np.intp]) -> Any:
    """Some columns, or all of them."""
    if isinstance(columns, ColumnsOfRows):
        return columns.take(chosen)
    return columns[:, chosen] if len(chosen) < columns.shape[1] else columns


def compressed(design: Design, fit_intercept: bool) -> tuple[Any, Array]:
    """Compressed columns, and what was subtracted from them: the means, of dense ones."""
    centre = np.zeros(design.shape[1])
    if isinstance(design, SparseDesign):
        is_transposed = design.X.format == "csc" or "by_columns" in vars(design)
        if is_transposed or design.nonzeros < LARGE:
            return design.by_columns, centre
        return ColumnsOfRows(design.by_rows), centre
    X = np.asarray(design.X if isinstance(design, DenseDesign) else design.toarray())
    X = X.astype(np.float64, copy=False)
    if fit_intercept:
        centre = X.mean(axis=0)
        X = X - centre
    return sp.csc_array(X), centre
