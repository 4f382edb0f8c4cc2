"""Rows in the form that the kernels read.

Two labels as 0 and 1, in one look at each.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from trueline.numerics.jit import kernel

__all__ = ["NO_INDICES", "NO_POINTERS", "Rows", "normalised", "split_in_two", "with_constant"]

# What an array has in place of the indices and pointers of a CSR matrix.
NO_INDICES = np.empty(0, dtype=np.uint32)
NO_POINTERS = np.empty(0, dtype=np.int32)


@dataclass(frozen=True)
class Rows:
    """Rows, their classes and their weights.

    Attributes
    ----------
    X : array (C order) or CSR matrix of shape (n, d), float64 or float32
    codes : array of int, of shape (n,)
    weights : array of shape (n,), or of shape (1,) for the same weight everywhere
    """

    X: Any
    codes: NDArray[Any]
    weights: NDArray[Any]

    @property
    def n(self) -> int:
        """Number of rows."""
        return int(self.X.shape[0])

    @property
    def d(self) -> int:
        """Number of columns."""
        return int(self.X.shape[1])

    @property
    def is_sparse(self) -> bool:
        """Whether the rows are those of a CSR matrix."""
        return bool(sp.issparse(self.X))

    @cached_property
    def arrays(self) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
        """Three arrays, see :mod:`trueline.online.kernels.rows`."""
        if not self.is_sparse:
            return self.X, NO_INDICES, NO_POINTERS
        # Unsigned indices need no test for counting from the end.
        unsigned = np.uint32 if self.X.indices.dtype == np.int32 else np.uint64
        return self.X.data, self.X.indices.view(unsigned), self.X.indptr

    def take(self, chosen: Any) -> Rows:
        """Some of the rows."""
        weights = self.weights if len(self.weights) == 1 else self.weights[chosen]
        return Rows(self.X[chosen], self.codes[chosen], weights)

    def with_design(self, X: Any) -> Rows:
        """Other columns, the same classes and weights."""
        return replace(self, X=X)


def normalised(X: Any) -> Any:
    """Rows divided by their Euclidean norms; rows of zeros stay.

    Norms are taken after dividing by the largest number of the row, whose square may overflow.
    """
    if sp.issparse(X):
        X = sp.csr_array(X)
        rows = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))
        peak = np.zeros(X.shape[0])
        np.maximum.at(peak, rows, np.abs(X.data))
        peak[peak == 0] = 1.0
        data = X.data / peak[rows]
        norm = np.sqrt(np.bincount(rows, data * data, minlength=X.shape[0]))
        norm[norm == 0] = 1.0
        data = (data / norm[rows]).astype(X.dtype)
        return sp.csr_array((data, X.indices, X.indptr), shape=X.shape)
    peak = np.abs(X).max(axis=1, keepdims=True)
    scaled = X / np.where(peak == 0, 1, peak)
    norm = np.sqrt(np.einsum("ij,ij->i", scaled, scaled, dtype=np.float64))[:, None]
    return (scaled / np.where(norm == 0, 1, norm)).astype(X.dtype)


def with_constant(X: Any) -> Any:
    """The columns and one of ones, so that the intercept is a weight like the others."""
    ones = np.ones((X.shape[0], 1), dtype=X.dtype)
    return sp.csr_array(sp.hstack([X, ones])) if sp.issparse(X) else np.hstack([X, ones])


@kernel
def split_in_two(y: Any, codes: Any) -> int:
    """Where the second label first occurs; 0 if there is none, -1 if there are more than two.

    Parameters
    ----------
    y : array of numbers, of shape (n,)
    codes : array of int8, of shape (n,)
        Receives 1 where y is not y[0].
    """
    n, first = y.shape[0], y[0]
    found = 0
    while found < n and y[found] == first:
        found += 1
    if found == n:
        codes[:] = 0
        return 0
    other, strange = y[found], np.int8(0)
    # No branches, and from the very first label on: the compiler then takes several at once.
    for i in range(n):
        differs = np.int8(y[i] != first)
        codes[i] = differs
        strange |= differs & np.int8(y[i] != other)
    return -1 if strange else found
