"""Dask arrays and DataFrames, made into blocks of rows that stay with the workers."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils import assert_all_finite

from trueline.cluster.rows import ClusterRows, Facts
from trueline.cluster.running import Running, aligned
from trueline.design import Design, as_design
from trueline.design.storage import is_dask
from trueline.errors import TableError, require


def on_cluster(X: Any, y: Any, sample_weight: Any) -> ClusterRows:
    """Rows whose blocks the workers hold, with target and weights, which are brought here.

    Rows and targets belong together by their place, however either is cut.

    Parameters
    ----------
    X : dask Array of shape (n, d), or dask DataFrame
        Blocks of an array may be dense or SciPy's CSR.
    y, sample_weight : dask collection or array-like of shape (n,), or None
    """
    dask = require("dask", "dask")
    names, blocks = _blocks_of(X)
    held = dask.persist(
        *[dask.delayed(_block, pure=False)(block, names) for block in blocks], optimize_graph=False
    )
    running = Running(list(held))
    facts = [Facts(*found) for found in running.each(_facts, ())]
    return ClusterRows(
        running, facts, names, _brought(running, y), _brought(running, sample_weight)
    )


def _brought(running: Running, values: Any) -> Any:
    """The values of a Dask collection; others as they are."""
    if not is_dask(values):
        return values
    if getattr(values, "ndim", 1) == 2 and hasattr(values, "numblocks"):
        values = values.rechunk({1: -1})
    parts = np.asarray(values.to_delayed()).ravel().tolist()
    return np.concatenate([np.asarray(part) for part in running.brought(parts)])


def _blocks_of(X: Any) -> tuple[list[str] | None, list[Any]]:
    """The names of the columns, if they have some, and the blocks of rows."""
    if hasattr(X, "columns"):
        names = list(X.columns)
        return (names if all(isinstance(n, str) for n in names) else None), X.to_delayed()
    if getattr(X, "ndim", None) != 2:
        shape = getattr(X, "shape", "unknown")
        raise ValueError(
            f"Expected 2D array, got an X of shape {shape}: give a Dask array of shape (n, d), "
            "such as x.reshape(-1, 1), or a Dask DataFrame."
        )
    if X.numblocks[1] > 1:  # a row that is cut is put together first
        X = X.rechunk({1: -1})
    return None, list(X.to_delayed().ravel())


def _block(rows: Any, names: list[str] | None) -> Design:
    """A block of rows as it is kept by a worker."""
    if hasattr(rows, "columns"):
        for name, kind in rows.dtypes.items():
            if not (kind.kind in "fiub" or hasattr(kind, "numpy_dtype")):
                raise TableError(
                    f"Column {name!r} holds {kind}, and linear models take numbers: leave it out, "
                    "or encode it before."
                )
        is_single = all(np.can_cast(getattr(k, "numpy_dtype", k), np.float32) for k in rows.dtypes)
        rows = rows.to_numpy(dtype=np.float32 if is_single else np.float64, na_value=np.nan)
    rows = rows if sp.issparse(rows) else np.asarray(rows)
    assert_all_finite(rows.data if sp.issparse(rows) else rows, input_name="X")
    return aligned(as_design(rows))


def _facts(block: Design) -> tuple[int, int, int, str]:
    return (*block.shape, block.nonzeros, str(block.dtype))
