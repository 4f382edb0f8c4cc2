"""Kernel matrices of functions: their values, their sizes in words, and the memory they need."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.metrics.pairwise import pairwise_kernels
from sklearn.utils.validation import _num_samples

from trueline.errors import MemoryNeededError
from trueline.wording import counted, quantity


def recipe_of(model: Any) -> dict[str, Any]:
    """How a model computes its kernel matrix."""
    if callable(model.kernel):
        return {"metric": model.kernel, **(getattr(model, "kernel_params", None) or {})}
    options = {"gamma": model.gamma, "degree": model.degree, "coef0": model.coef0}
    return {"metric": model.kernel, **options}


def kernel_matrix(
    name: str, kernel: str | Callable[..., Any], X: Any, Z: Any = None, **options: Any
) -> NDArray[Any]:
    """Kernel values of all pairs of rows, as :func:`sklearn.metrics.pairwise.pairwise_kernels`.

    Parameters
    ----------
    name : str
        The estimator, for messages.
    kernel : str or callable
        A callable takes two rows and the options, and returns a number.
    X : array or sparse matrix of shape (n, d)
    Z : array or sparse matrix of shape (m, d), optional
        By default the same rows.
    **options
        Of the kernel; those that a named one does not have are left out.

    Examples
    --------
    >>> import numpy as np
    >>> from trueline.estimators.kernel.kernel_function import kernel_matrix
    >>> kernel_matrix("KernelRidge", lambda x, z: x @ z, np.array([[1.0], [2.0]])).tolist()
    [[1.0, 2.0], [2.0, 4.0]]
    """
    if not callable(kernel):
        return np.asarray(pairwise_kernels(X, Z, metric=kernel, filter_params=True, **options))
    other = X if Z is None else Z
    if X.shape[0] and other.shape[0]:
        _check_number(name, kernel(_row(X), _row(other), **options))
    K = np.asarray(pairwise_kernels(X, Z, metric=kernel, **options), dtype=np.float64)
    if not np.isfinite(K).all():
        i, j = (int(place) for place in np.argwhere(~np.isfinite(K))[0])
        raise ValueError(
            f"{name}: the kernel function returned {K[i, j]} for rows {i} and {j}. It must return "
            "a finite number for every two rows."
        )
    return K


def _row(X: Any) -> Any:
    return X[[0], :] if sp.issparse(X) else X[0]


def _check_number(name: str, value: Any) -> None:
    """Raise if a kernel function returned no number for two rows."""
    value = value.toarray() if sp.issparse(value) else value
    array = np.asarray(value)
    if array.size == 1 and array.dtype.kind in "fiub":
        return
    shape = f"an array of shape {array.shape}" if array.ndim else repr(value)
    raise ValueError(
        f"{name}: a kernel function takes two rows and returns one number, but for the first two "
        f"it returned {shape}. If it takes all rows at once, call it yourself and give its result "
        "with kernel='precomputed'."
    )


def data_text(X: Any, y: Any) -> str:
    """The size of the data; rows that are no vectors have no columns.

    Examples
    --------
    >>> import numpy as np
    >>> from trueline.estimators.kernel.kernel_function import data_text
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


def matrix_text(n: int) -> str:
    """A square matrix and what it takes.

    Examples
    --------
    >>> from trueline.estimators.kernel.kernel_function import matrix_text
    >>> matrix_text(1000)
    '1,000 x 1,000, 8 MB'
    """
    return f"{n:,} x {n:,}, {quantity(8.0 * n * n, 'B')}"


def available_bytes() -> int | None:
    """Memory that could be allocated now; None where the system does not say.

    Examples
    --------
    >>> from trueline.estimators.kernel.kernel_function import available_bytes
    >>> found = available_bytes()
    >>> found is None or found > 0
    True
    """
    try:
        with open("/proc/meminfo", encoding="ascii") as lines:
            for line in lines:
                if line.startswith("MemAvailable:"):
                    return int(line.split()[1]) * 1024
    except (OSError, ValueError, IndexError):
        pass
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):
        return None


def check_memory(needed: float, what: str, instead: str) -> None:
    """Raise :class:`~trueline.errors.MemoryNeededError` if so many bytes are not there.

    Parameters
    ----------
    needed : float
        Bytes.
    what : str
        What they are for.
    instead : str
        The way out.
    """
    available = available_bytes()
    if available is not None and needed > available:
        raise MemoryNeededError(
            f"{what} needs {int(needed):,} bytes ({needed / 1e9:.3g} GB), and {available:,} bytes "
            f"({available / 1e9:.3g} GB) are available. {instead}"
        )


# Squares, and sums of many of them, stay far from the ends of the range.
_LARGEST = 1e140


def check_scale(values: Any, name: str) -> None:
    """Refuse values whose squares would overflow.

    Examples
    --------
    >>> import numpy as np
    >>> from trueline.estimators.kernel.kernel_function import check_scale
    >>> check_scale(np.array([1e3]), "X")
    """
    data = values.data if hasattr(values, "tocsr") else np.asarray(values)
    if data.dtype.kind == "f" and data.size and float(np.abs(data).max()) > _LARGEST:
        raise ValueError(
            f"The squares of the values of {name} overflow in double precision (the largest is "
            f"{float(np.abs(data).max()):.3g}): divide them by a power of ten."
        )


def noise_covariance(kernel: Any, rows: Any) -> NDArray[Any]:
    """The noise of a kernel, on the diagonal: between two sets of rows it has none.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.gaussian_process.kernels import RBF, WhiteKernel
    >>> from trueline.estimators.kernel.kernel_function import noise_covariance
    >>> noise_covariance(RBF() + WhiteKernel(0.5), np.zeros((2, 1)))
    array([[0.5, 0. ],
           [0. , 0.5]])
    """
    if kernel is None:  # the default one has none
        return np.zeros((len(rows), len(rows)))
    return np.diag(kernel.diag(rows) - np.diagonal(kernel(rows, rows)))
