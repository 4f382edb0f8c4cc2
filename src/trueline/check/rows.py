"""The data as the checker reads them: blocks of rows, targets and weights, as exact doubles."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from trueline.check.arithmetic import ROWS
from trueline.check.verdict import Refused

__all__ = ["Rows", "as_doubles", "as_matrix", "as_targets", "as_weights", "length"]

Array = NDArray[np.float64]


def as_doubles(values: Any, name: str, finite: bool = True) -> Array:
    """An array of finite doubles that are exactly the given numbers.

    ``finite=False`` leaves it to the caller to look for infinity and NaN.

    Raises
    ------
    Refused
        If they are no numbers, not finite, or no doubles are equal to them.
    """
    try:
        array = np.asarray(values)
        if array.dtype.kind == "O":
            array = np.array(values, dtype=np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise Refused(f"{name} holds what is no number: {error}") from None
    if array.dtype.kind not in "fiub":
        raise Refused(f"{name} has the type {array.dtype}")
    doubles = np.asarray(array, dtype=np.float64)
    if finite and not np.isfinite(doubles).all():
        raise Refused(f"{name} is not finite")
    if array.dtype.kind in "iu" and array.size and int(np.abs(array).max()) > 2**53:
        raise Refused(f"{name} holds integers beyond 2^53, which doubles do not all have")
    if array.dtype.itemsize > 8 and (doubles != array).any():
        raise Refused(f"{name} holds numbers that no double is equal to")
    return doubles


def length(X: Any) -> int:
    """The number of rows."""
    try:
        return int(X.shape[0]) if hasattr(X, "shape") and len(X.shape) else len(X)
    except TypeError:
        raise Refused("X has no rows") from None


def as_targets(y: Any, n: int) -> Array:
    """One row of numbers for each of n rows."""
    y = as_doubles(y, "y")
    y = y.reshape(-1, 1) if y.ndim == 1 else y
    if y.ndim != 2 or len(y) != n or n == 0:
        raise Refused(f"X has {n} rows, y the shape {y.shape}")
    return y


def as_matrix(X: Any, finite: bool = True) -> Any:
    """X as an array or CSR matrix of exact, finite doubles."""
    if sp.issparse(X):
        matrix = sp.csr_array(X)
        return sp.csr_array(
            (as_doubles(matrix.data, "X"), matrix.indices, matrix.indptr), shape=matrix.shape
        )
    array = as_doubles(X, "X", finite)
    if array.ndim != 2:
        raise Refused(f"X has {array.ndim} dimensions, not two")
    return array


def as_weights(sample_weight: Any, n: int) -> Array:
    """One weight for each row, not negative, not all zero."""
    if sample_weight is None:
        return np.ones(n)
    s = as_doubles(sample_weight, "sample_weight")
    s = np.full(n, float(s)) if s.ndim == 0 else s
    if s.shape != (n,) or (s < 0).any() or not s.any():
        raise Refused(f"sample_weight has the shape {s.shape}, negative numbers or only zeros")
    return s


class Rows:
    """Rows with a positive weight; those of weight zero are absent, whatever they hold.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n, d)
    y : array-like of shape (n,) or (n, k)
    sample_weight : array-like of shape (n,), optional
    x_power, y_power : arrays of int of shape (d,) and (k,), optional
        Powers of two by which columns and targets are multiplied, which must be exact.
    finite : bool
        Whether X is searched for infinity and NaN here, which costs a pass over the data.

    Attributes
    ----------
    n, d, k, given : int
        Numbers of rows, columns, targets, and of rows including those of weight zero.
    keep : array of bool of shape (given,)
    y, s : arrays of shape (n, k) and (n,)
    row_terms : int
        The largest number of non-zero entries of a row.
    """

    def __init__(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        x_power: Any = None,
        y_power: Any = None,
        finite: bool = True,
    ) -> None:
        # Rows of weight zero may hold NaN: look at the weights first.
        n = length(X)
        s = as_weights(sample_weight, n)
        self.given, self.keep = n, s > 0
        target = np.asarray(y)
        target = target.reshape(-1, 1) if target.ndim == 1 else target
        if target.ndim != 2 or len(target) != n:
            raise Refused(f"X has {n} rows, y the shape {target.shape}")
        if not self.keep.all():
            X = (sp.csr_array(X) if sp.issparse(X) else np.asarray(X))[self.keep]
            target, s = target[self.keep], s[self.keep]
        self.X, self.y, self.s = as_matrix(X, finite), as_doubles(target, "y"), s
        self.n, self.d = self.X.shape
        self.k = self.y.shape[1]
        self.is_sparse = sp.issparse(self.X)
        if x_power is not None:
            self.X = _scaled(self.X, x_power)
        if y_power is not None:
            self.y = _scaled(self.y, y_power)
        if self.is_sparse:
            counts = np.diff(self.X.indptr)
            self.row_terms = int(counts.max(initial=0))
        else:
            self.row_terms = self.d
        self.weight = float(self.s.sum())

    def __iter__(self) -> Iterator[tuple[slice, Array]]:
        """Consecutive blocks of rows, dense."""
        for where, block in self.blocks():
            yield where, block.toarray() if self.is_sparse else block

    def blocks(self) -> Iterator[tuple[slice, Any]]:
        """Consecutive blocks of rows, sparse if they are."""
        for start in range(0, self.n, ROWS):
            where = slice(start, min(start + ROWS, self.n))
            yield where, self.X[where]

    def kept(self, values: Array) -> Array:
        """Values for rows with a positive weight, from values for these or for all given rows."""
        if len(values) not in (self.n, self.given):
            raise Refused(f"a witness has {len(values)} rows, the data {self.n}")
        return values if len(values) == self.n else values[self.keep]


def _scaled(numbers: Any, powers: Any) -> Any:
    """Numbers times powers of two by column; refused unless that is exact."""
    powers = np.asarray(powers, dtype=np.int64)
    if sp.issparse(numbers):
        own = powers[numbers.indices]
        data = np.ldexp(numbers.data, own)
        exact, out = (np.ldexp(data, -own) == numbers.data), numbers.copy()
        out.data = data
    else:
        out = np.ldexp(numbers, powers)
        exact = np.ldexp(out, -powers) == numbers
    if not exact.all():
        raise Refused("the stated powers of two do not multiply the data exactly")
    return out
