"""Dense or sparse: a matrix is stored as its numbers suggest, whatever it came as.

Dummies of a table are a dense array that is mostly zeros: methods that skip the zeros take down to
a quarter of the time. A sparse matrix that is small, or filled for the most part, costs more for
its indices than for its numbers.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from trueline.design.base import Design
from trueline.design.dense import DenseDesign
from trueline.design.sparse import SparseDesign

# Measured on generated tables and one-hot columns, over all losses: above this share of entries
# that are not zero, or below so many entries in all, sparse products win nothing.
_SPARSE_SHARE, _SMALL = 0.25, 100_000
# Rows that are looked at before all are.
_GLANCE = 64


def is_dask(X: Any) -> bool:
    """Whether X is a Dask collection; Dask is not imported for that."""
    return type(X).__module__.partition(".")[0] in ("dask", "dask_expr") and hasattr(
        X, "__dask_graph__"
    )


def as_design(X: Any) -> Design:
    """Wrap an array or a sparse matrix; a design is returned as it is.

    Examples
    --------
    >>> import numpy as np
    >>> from trueline.design import as_design
    >>> as_design(np.ones((3, 2))).shape
    (3, 2)
    """
    if isinstance(X, Design):
        return X
    if sp.issparse(X):
        return SparseDesign(X)
    X = np.asarray(X)
    if X.dtype not in (np.float32, np.float64):
        X = X.astype(np.float64)
    return DenseDesign(X)


def as_suitable_design(X: Any) -> Design:
    """The same numbers, dense or sparse, whichever is less work.

    Not for least squares, whose answers owe their last digits to exact sums over dense rows.

    Examples
    --------
    >>> import numpy as np, scipy.sparse as sp
    >>> from trueline.design import as_suitable_design
    >>> as_suitable_design(np.tile(np.eye(20), (300, 1))).is_sparse
    True
    >>> as_suitable_design(sp.eye_array(20, format="csr")).is_sparse
    False
    """
    design = as_design(X)
    if design is X:
        return design
    size = design.shape[0] * design.shape[1]
    other: Design | None = None
    if isinstance(design, DenseDesign) and size >= _SMALL:
        rows = _compressed(design.X)
        other = None if rows is None else SparseDesign(rows)
    elif isinstance(design, SparseDesign) and (size < _SMALL or design.nonzeros > size / 2):
        other = DenseDesign(design.X.toarray())
    if other is None:
        return design
    other.is_converted = True
    return other


def _compressed(X: NDArray[Any]) -> sp.csr_array | sp.csc_array | None:
    """The entries that are not zero, along the memory of X; None if they are many."""
    seen = X[:: -(-X.shape[0] // _GLANCE)]
    if np.count_nonzero(seen) > _SPARSE_SHARE * seen.size:
        return None
    is_by_columns = X.flags.f_contiguous
    lines = X.T if is_by_columns else np.ascontiguousarray(X)
    n, d = lines.shape
    filled = lines != 0  # bytes are counted and found in a quarter of the time of numbers
    if np.count_nonzero(filled) > _SPARSE_SHARE * X.size:
        return None
    where = np.flatnonzero(filled)
    starts = np.searchsorted(where, np.arange(n + 1) * d)
    kind = np.int32 if len(where) < np.iinfo(np.int32).max else np.int64
    parts = lines.ravel().take(where), (where % d).astype(kind), starts.astype(kind)
    rows = (sp.csc_array if is_by_columns else sp.csr_array)(parts, shape=X.shape)
    rows.has_canonical_format = True
    return rows
