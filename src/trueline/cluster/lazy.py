"""Predictions for Dask collections: computed block by block, when they are asked for."""

from __future__ import annotations

import functools
from copy import copy
from typing import Any

import numpy as np

from trueline.design.storage import is_dask
from trueline.errors import require
from trueline.numerics.blas import one_strand

# Of the fit, and as long as the rows were: predictions do without.
_NOT_NEEDED = ("_certificate", "_plan", "_solution_facts", "trace_", "moments_")


def blockwise(method: Any) -> Any:
    """Let a method of new rows give a lazy Dask collection where it is given one."""

    @functools.wraps(method)
    def by_blocks(self: Any, X: Any, *given: Any, **named: Any) -> Any:
        if not is_dask(X):
            return method(self, X, *given, **named)
        named = {name: value for name, value in named.items() if value is not None}
        if given or named:
            raise TypeError(
                f"{method.__name__} of a Dask collection takes the rows alone: give X.compute() "
                f"together with {', '.join(named) or 'what else it takes'}."
            )
        return _lazily(self, method, X)

    return by_blocks


def _lazily(model: Any, method: Any, X: Any) -> Any:
    light = copy(model)
    for name in _NOT_NEEDED:
        light.__dict__.pop(name, None)
    run = functools.partial(_predicted, method.__name__, light)
    if hasattr(X, "columns"):
        return X.map_partitions(run, meta=run(X._meta_nonempty).iloc[:0])
    require("dask", "dask")
    few = run(np.zeros((1, X.shape[1]), X.dtype))
    X = X.rechunk({1: -1}) if X.numblocks[1] > 1 else X
    if few.ndim == 1:
        return X.map_blocks(run, dtype=few.dtype, drop_axis=1, meta=few[:0])
    chunks = (X.chunks[0], (few.shape[1],))
    return X.map_blocks(run, dtype=few.dtype, chunks=chunks, meta=few[:0])


def _predicted(name: str, model: Any, rows: Any) -> Any:
    """Predictions for a block, in its own form: with the index of a table."""
    with one_strand():
        if not rows.shape[0]:  # scikit-learn takes no empty tables
            sample = getattr(model, name)(np.zeros((1, rows.shape[1])))
            found = sample[:0]
        else:
            found = getattr(model, name)(rows)
    if not hasattr(rows, "columns"):
        return found
    import pandas as pd

    if found.ndim == 1:
        return pd.Series(found, index=rows.index)
    classes = getattr(model, "classes_", range(found.shape[1]))
    names = classes if len(classes) == found.shape[1] else range(found.shape[1])
    return pd.DataFrame(found, index=rows.index, columns=list(names))
