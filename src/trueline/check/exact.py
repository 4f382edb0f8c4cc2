r"""Doubles as the rational numbers they are: signs, combinations that vanish, and null spaces.

Every double is an integer times a power of two; multiplied by one common power, whole tables are
integers, and Python's integers do not round. Doubles decide where a bound on their error allows:
``block @ W.T`` errs by at most (p + 8) eps |block| |W|^T (Higham, "Accuracy and Stability of
Numerical Algorithms", section 3.1; W itself may be rounded), and a few units of what underflows.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from trueline.check.arithmetic import EPS, ROWS
from trueline.check.rows import as_matrix, as_weights
from trueline.check.verdict import Refused

__all__ = [
    "Classified",
    "as_integers",
    "dense",
    "exact_dot",
    "null_space",
    "scores_with_error",
]

Array = NDArray[np.float64]
Integers = NDArray[np.object_]


class Classified:
    """Rows as exact doubles, with a last column of ones if asked for, and the class of each."""

    def __init__(
        self, X: Any, y: Any, sample_weight: Any, classes: Any, d: int, with_ones: bool
    ) -> None:
        self.X = as_matrix(X)
        try:
            stated = np.asarray(classes)
            labels, codes = np.unique(np.asarray(y), return_inverse=True)
            same = stated.shape == labels.shape and bool((labels == stated).all())
        except (TypeError, ValueError) as error:
            raise Refused(f"labels cannot be compared: {error}") from None
        self.codes, self.k, self.n = codes.ravel(), len(labels), self.X.shape[0]
        if np.ndim(y) != 1 or self.X.shape != (len(self.codes), d) or not same or self.k < 2:
            raise Refused(f"X has the shape {self.X.shape}, y the labels {labels.tolist()[:9]}")
        if sample_weight is not None and not as_weights(sample_weight, self.n).all():
            raise Refused("this claim is about every row; leave out those of weight zero")
        self.d, self.with_ones = d, with_ones
        self.p = d + int(with_ones)

    def __iter__(self) -> Iterator[tuple[slice, Any]]:
        """Consecutive blocks of rows, sparse if they are."""
        for start in range(0, self.n, ROWS):
            where = slice(start, min(start + ROWS, self.n))
            yield where, self.rows(where)

    def rows(self, where: Any) -> Any:
        """Some rows, sparse if they are."""
        part, ones = self.X[where], np.ones((len(self.codes[where]), int(self.with_ones)))
        if sp.issparse(part):
            return sp.csr_array(sp.hstack([part, sp.csr_array(ones)]))
        return np.hstack([part, ones])

    def groups(self, where: slice, chosen: NDArray[np.bool_]) -> Iterator[tuple[Any, int, int]]:
        """Chosen inequalities of a block: their places, and the two classes that they compare."""
        own = self.codes[where]
        for c in range(self.k):
            places = np.flatnonzero(chosen[where][:, c])
            for a in np.unique(own[places]):
                yield places[own[places] == a], int(a), c

    def require(self, rows: NDArray[Any], against: NDArray[Any]) -> None:
        """Refuse rows or classes that are not there, and rows against their own class."""
        if len(rows) and (rows.max() >= self.n or against.max() >= self.k):
            raise Refused("the certificate names rows or classes that are not there")
        if (self.codes[rows] == against).any():
            raise Refused("the certificate holds rows against their own class")


def dense(block: Any) -> Array:
    """A block of rows as an array."""
    return np.asarray(block.toarray() if sp.issparse(block) else block)


def scores_with_error(block: Any, W: Array) -> tuple[Array, Array]:
    """Scores of all classes, and a bound on their error (infinite where something overflows)."""
    scores, size = np.asarray(block @ W.T), np.asarray(abs(block) @ np.abs(W).T)
    tiny = 1e-320 * block.shape[1] + 1e-322 * np.asarray(abs(block).sum(axis=1)).reshape(-1, 1)
    error = (block.shape[1] + 8) * EPS * size + tiny
    error[~np.isfinite(scores) | ~np.isfinite(error)] = np.inf
    return np.where(np.isfinite(scores), scores, 0.0), error


def exact_dot(x: Array, g: Any) -> Fraction:
    """x.g as it is, for doubles x and integers, doubles or fractions g."""
    pairs = zip(x.tolist(), g, strict=True)
    return sum((Fraction(a) * Fraction(b) for a, b in pairs if a and b), Fraction(0))


def as_integers(numbers: Array) -> tuple[Integers, int]:
    """Integers and one power q with ``numbers = integers * 2**q``, exactly; q is the largest."""
    mantissa, exponent = np.frexp(numbers)
    whole = (mantissa * 2.0**53).astype(np.int64)
    zeros = np.frexp((whole & -whole).astype(np.float64))[1] - 1  # at the end of each, in binary
    whole >>= np.maximum(zeros, 0)
    power = np.where(whole != 0, exponent.astype(np.int64) - 53 + zeros, 1100)
    lowest = int(power.min(initial=1100))
    shift = np.where(whole != 0, power - lowest, 0)
    out = np.empty(whole.size, dtype=object)
    out[:] = [v << q for v, q in zip(whole.ravel().tolist(), shift.ravel().tolist(), strict=True)]
    return out.reshape(numbers.shape), lowest


def null_space(matrix: Integers) -> list[Integers]:
    """Integer vectors that span all v with matrix v = 0, by elimination without fractions.

    Every division is exact: entries are minors of the matrix (E. H. Bareiss, Mathematics of
    Computation 22 (1968) 565-578).
    """
    pivots: list[int] = []
    table, previous = matrix.copy(), 1
    for c in range(matrix.shape[1]):
        rank = len(pivots)
        places = rank + np.flatnonzero(table[rank:, c])
        if len(places) == 0:
            continue
        table[[rank, places[0]]] = table[[places[0], rank]]
        pivot, others = table[rank, c], np.arange(len(table)) != rank
        cleared = pivot * table[others] - table[others, c][:, None] * table[rank]
        table[others], previous = cleared // previous, pivot
        pivots.append(c)
    out = []
    for free in sorted(set(range(matrix.shape[1])) - set(pivots)):
        v = np.zeros(matrix.shape[1], dtype=object)
        v[free], v[pivots] = previous, -table[: len(pivots), free]
        out.append(v)
    return out
