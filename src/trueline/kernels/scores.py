"""sum_j c_j k(x_j, z) for many z at once: blocks of the kernel, then one product with c."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.spatial.distance import cdist

from trueline.kernels.features import features_of, is_cancelling, largest_exponent
from trueline.kernels.function import KernelFunction
from trueline.threads import run_strands

__all__ = ["kernel_scores"]

Array = NDArray[np.float64]

# Kernel values at a time (of one strand): a few megabytes.
_BLOCK_VALUES = 250_000
_BLOCK_ROWS = 2048


def kernel_scores(Z: Any, X: Any, coef: Array, kernel: KernelFunction) -> Array:
    """Scores of the rows of Z from coefficients of the rows of X.

    Parameters
    ----------
    Z : array or CSR matrix of shape (m, d)
    X : array or CSR matrix of shape (n, d)
    coef : array of shape (n, k)
    kernel : KernelFunction
        Not a precomputed one.

    Returns
    -------
    scores : array of shape (m, k)

    Examples
    --------
    >>> import numpy as np
    >>> from trueline.kernels import KernelFunction, kernel_scores
    >>> X = np.array([[0.0], [1.0]])
    >>> kernel_scores(X, X, np.array([[1.0], [2.0]]), KernelFunction("linear")).ravel()
    array([0., 2.])
    """
    m, n = Z.shape[0], X.shape[0]
    out = np.zeros((m, coef.shape[1]))
    if m == 0 or n == 0:
        return out
    block = _block_function(Z, X, kernel)
    rows = max(1, min(_BLOCK_ROWS, _BLOCK_VALUES // max(n, 1)))

    def fill(strand: range) -> None:
        for start in strand:
            some = slice(start, min(start + rows, m))
            out[some] = block(some) @ coef

    starts = range(0, m, rows)
    half = (len(starts) + 1) // 2
    run_strands(fill, [part for part in (starts[:half], starts[half:]) if part])
    return out


def _block_function(Z: Any, X: Any, kernel: KernelFunction) -> Any:
    """What gives the kernel values of some rows of Z with all of X."""
    if kernel.name == "linear":
        columns = X.T.tocsr() if sp.issparse(X) else np.asarray(X, dtype=np.float64).T

        def linear(some: slice) -> Array:
            return _dense(Z[some] @ columns)

        return linear
    if sp.issparse(Z) or sp.issparse(X):
        return _sparse_block(sp.csr_array(Z), sp.csr_array(X), kernel)
    Z, X = np.asarray(Z, dtype=np.float64), np.asarray(X, dtype=np.float64)
    if kernel.name == "rbf":
        reach = max(largest_exponent(X, kernel), largest_exponent(Z, kernel))
        between = X.mean(axis=0) - Z.mean(axis=0)
        if is_cancelling(reach + kernel.gamma * float(between @ between)):

            def differences(some: slice) -> Array:
                return np.exp(-kernel.gamma * cdist(Z[some], X, "sqeuclidean"))

            return differences
    centre = X.mean(axis=0)
    right = features_of(X, kernel, centre, np.float64).right.T

    def products(some: slice) -> Array:
        values = features_of(Z[some], kernel, centre, np.float64).left @ right
        kernel.of_products(values)
        return values

    return products


def _sparse_block(Z: Any, X: Any, kernel: KernelFunction) -> Any:
    columns = X.T.tocsr()
    mine = np.asarray(Z.multiply(Z).sum(axis=1)).ravel()
    theirs = np.asarray(X.multiply(X).sum(axis=1)).ravel()

    def block(some: slice) -> Array:
        values = _dense(Z[some] @ columns).astype(np.float64, copy=False)
        if kernel.name == "rbf":
            values *= 2.0
            values -= mine[some, None]
            values -= theirs
            values *= kernel.gamma
        kernel.of_products(values)
        return values

    return block


def _dense(values: Any) -> Array:
    return values.toarray() if sp.issparse(values) else np.asarray(values, dtype=np.float64)
