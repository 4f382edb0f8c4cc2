"""What a kernel machine would do with data, in words, before it is done."""

from __future__ import annotations

from typing import Any

import scipy.sparse as sp
from sklearn.utils.validation import _num_samples

from trueline.wording import counted

__all__ = ["data_text", "matrix_text"]

_UNITS = ("bytes", "kB", "MB", "GB", "TB")


def data_text(X: Any, y: Any) -> str:
    """The size of the data; rows that are no vectors have no columns.

    Examples
    --------
    >>> import numpy as np
    >>> from trueline.estimators.kernel_plan import data_text
    >>> data_text(np.ones((1000, 1)), np.ones(1000))
    '1,000 rows x 1 column, dense'
    """
    if y is None:
        raise ValueError("explain(X, y) needs the target y beside X.")
    n, shape = _num_samples(X), tuple(getattr(X, "shape", ()))
    if _num_samples(y) != n:
        raise ValueError(f"X has {n} rows, but y has {_num_samples(y)}.")
    columns = f" x {counted(shape[1], 'column')}" if len(shape) == 2 else ""
    return f"{counted(n, 'row')}{columns}, {'sparse' if sp.issparse(X) else 'dense'}"


def matrix_text(n: int, itemsize: int = 8) -> str:
    """A square matrix and what it takes.

    Examples
    --------
    >>> from trueline.estimators.kernel_plan import matrix_text
    >>> matrix_text(1000)
    '1,000 x 1,000, 8 MB'
    """
    size, unit = float(itemsize) * n * n, 0
    while size >= 1000 and unit < len(_UNITS) - 1:
        size, unit = size / 1000, unit + 1
    return f"{n:,} x {n:,}, {size:.3g} {_UNITS[unit]}"
