r"""The data as the checker reads them: blocks of rows, targets, weights, classes, exact doubles.

With unknowns g_c of class c, the *inequality* (i, c) of row i against another class c has the value
(g_own - g_c).x_i. Doubles decide its sign where a bound on their error allows: ``block @ W.T`` errs
by at most (p + 8) eps |block| |W|^T (Higham, "Accuracy and Stability of Numerical Algorithms",
section 3.1; W itself may be rounded), and a few units of what underflows.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from math import sqrt
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from trueline.check.numbers.arithmetic import (
    EPS,
    ROWS,
    SMALLEST,
    Array,
    Integers,
    as_integers,
    exact_dot,
    residual_doubled,
    sum_units,
)
from trueline.check.verdict import Refused

__all__ = ["Classified", "Rows", "as_doubles", "as_matrix", "as_targets", "as_weights", "centre"]
__all__ += ["dense", "length", "residuals", "scores"]

Bools = NDArray[np.bool_]


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

    @property
    def floor(self) -> float:
        """What underflow may hide in a sum over the rows."""
        return 1e-305 * self.n

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


class Classified:
    """Rows as exact doubles, with a last column of ones if asked for, and the class of each."""

    def __init__(
        self, X: Any, y: Any, sample_weight: Any, classes: Any, d: int, with_ones: bool
    ) -> None:
        self.X, self.d, self.with_ones, self.p = as_matrix(X), d, with_ones, d + int(with_ones)
        try:
            stated = np.asarray(classes)
            labels, codes = np.unique(np.asarray(y), return_inverse=True)
            same = stated.shape == labels.shape and bool((labels == stated).all())
        except (TypeError, ValueError) as error:
            raise Refused(f"labels cannot be compared: {error}") from None
        self.codes, self.k, self.n = codes.ravel(), len(labels), self.X.shape[0]
        if np.ndim(y) != 1 or self.X.shape != (len(self.codes), d) or not same or self.k < 2:
            raise Refused(f"X has the shape {self.X.shape}, y the labels {labels.tolist()[:9]}")
        if not as_weights(sample_weight, self.n).all():
            raise Refused("this claim is about every row; leave out those of weight zero")

    def __iter__(self) -> Iterator[tuple[slice, Any]]:
        """Consecutive blocks of rows, sparse if they are."""
        for start in range(0, self.n, ROWS):
            yield slice(start, start + ROWS), self.rows(slice(start, start + ROWS))

    def rows(self, where: Any) -> Any:
        """Some rows, sparse if they are."""
        part, ones = self.X[where], np.ones((len(self.codes[where]), int(self.with_ones)))
        if sp.issparse(part):
            return sp.csr_array(sp.hstack([part, sp.csr_array(ones)]))
        return np.hstack([part, ones])

    def contrasts(self, rows: NDArray[Any], against: NDArray[Any]) -> tuple[Integers, int]:
        """Inequalities as integer vectors, a block for each class, and the power of two left out.

        Refused are rows and classes that are not there, and rows against their own class.
        """
        if len(rows) and (rows.max() >= self.n or against.max() >= self.k):
            raise Refused("the certificate names rows or classes that are not there")
        if (self.codes[rows] == against).any():
            raise Refused("the certificate holds rows against their own class")
        X, power = as_integers(dense(self.rows(rows)))
        out, every = np.zeros((len(rows), self.k, self.p), dtype=object), np.arange(len(rows))
        out[every, self.codes[rows]], out[every, against] = X, -X
        return out, power

    def square(self, G: Integers) -> Fraction:
        """||g||^2: without intercepts, about the mean; for two classes, of the difference."""
        G, k = G[:, : self.d], self.k
        parts = G[1] - G[0] if k == 2 else k * G - G.sum(axis=0)
        return Fraction(int((parts**2).sum()), 1 if k == 2 else k * k)

    def too_small(self, G: Integers, goal: Fraction, skip: Bools) -> int:
        """How many inequalities are not positive, or have a square below the goal."""
        top = max(max(abs(v) for v in G.ravel()), 1)
        W, level = (G / top).astype(np.float64), np.inf
        if goal <= 10**300 * top**2:
            level = max(sqrt(float(goal / top**2)), 1e-140 if goal else 0.0) * (1 + 4 * EPS)
        wrong = 0
        for where, block in self:
            found, size = np.asarray(block @ W.T), np.asarray(abs(block) @ np.abs(W).T)
            tiny = 1e-322 * np.asarray(abs(block).sum(axis=1)).reshape(-1, 1) + 1e-320 * self.p
            own, every = self.codes[where], np.arange(len(found))
            gap = found[every, own][:, None] - found
            error = (self.p + 8) * EPS * size + tiny
            doubt = error[every, own][:, None] + error + 4 * EPS * np.abs(gap)
            unsure = ~(gap - 1.01 * doubt > level) & ~skip[where]
            unsure[every, own] = False
            for i, c in zip(*np.nonzero(unsure), strict=True):
                value = exact_dot(dense(block[[i]])[0], G[own[i]] - G[c])
                wrong += value <= 0 or value**2 < goal
        return wrong

    def not_zero(self, G: Integers, chosen: Bools) -> int:
        """How many of the chosen inequalities are not zero."""
        wrong = 0
        for where, block in self:
            i, c = np.nonzero(chosen[where])
            values = as_integers(dense(block[i]))[0] * (G[self.codes[where][i]] - G[c])
            wrong += int((values.sum(axis=1) != 0).sum())
        return wrong


def dense(block: Any) -> Array:
    """A block of rows as an array."""
    return np.asarray(block.toarray() if sp.issparse(block) else block)


def scores(X: Any, W: Array, b: Array) -> tuple[Array, Array]:
    """X W + b, and a bound on the error; sums of m terms err by m + 3 units."""
    out, error = (np.empty((X.shape[0], W.shape[1])) for _ in range(2))
    for start in range(0, len(out), ROWS):
        block = X[start : start + ROWS]
        terms = int(np.diff(block.indptr).max(initial=0)) if sp.issparse(X) else len(W)
        out[start : start + ROWS] = block @ W + b
        size = np.asarray(abs(block) @ np.abs(W)) + np.abs(b)
        error[start : start + ROWS] = (terms + 4) * (EPS * size + SMALLEST * W.any())
    error[~np.isfinite(out)] = np.inf
    return out, error


def residuals(X: Array, y: Array, w: Array, b: float) -> tuple[Array, Array, Array]:
    """y - X w - b in twice the digits, and a bound on the error of their sum."""
    high, low = residual_doubled(X, w, b, y)
    size = np.abs(X) @ np.abs(w) + abs(b) + np.abs(y)
    return -high, -low, sum_units(len(w) + 2) * size * (1 + 1e-9) + (len(w) + 4) * SMALLEST


def centre(rows: Rows, wanted: bool) -> Array:
    """About the weighted means of the columns; zero without an intercept."""
    parts = (rows.s[where] @ block for where, block in rows.blocks() if wanted)
    return np.asarray(sum(parts, np.zeros(rows.d)) / rows.weight)
