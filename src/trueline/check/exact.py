r"""Doubles as the rational numbers they are: signs, combinations that vanish, and null spaces.

Every double is an integer times a power of two; multiplied by one common power, whole tables are
integers, and Python's integers do not round. Doubles decide where a bound on their error allows:
``block @ W.T`` errs by at most (p + 8) eps |block| |W|^T (Higham, "Accuracy and Stability of
Numerical Algorithms", section 3.1; W itself may be rounded), and a few units of what underflows.

With unknowns g_c of class c, the *inequality* (i, c) of row i against another class c has the value
(g_own - g_c).x_i.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from math import sqrt
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from trueline.check.arithmetic import EPS, ROWS, SMALLEST, Array, residual_doubled, sum_units
from trueline.check.rows import Rows, as_matrix, as_weights
from trueline.check.verdict import Refused

__all__ = ["Classified", "as_integers", "centre", "dense", "eliminated", "exact_dot", "null_space"]
__all__ += ["residuals", "scores"]

Integers = NDArray[np.object_]
Bools = NDArray[np.bool_]


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


def eliminated(table: NDArray[Any], modulo: int = 0) -> tuple[NDArray[Any], list[int], Any]:
    """A table after elimination, the columns of its pivots, and the last pivot.

    Every division is exact: entries are minors of the table (E. H. Bareiss, Mathematics of
    Computation 22 (1968) 565-578). Modulo a prime nothing is divided, and the pivots are at most as
    many as without: a minor that is not zero modulo a prime is not zero.
    """
    pivots: list[int] = []
    table, previous = table.copy(), 1
    for c in range(table.shape[1]):
        rank = len(pivots)
        places = rank + np.flatnonzero(table[rank:, c])
        if len(places) == 0:
            continue
        table[[rank, places[0]]] = table[[places[0], rank]]
        pivot, others = table[rank, c], np.arange(len(table)) != rank
        cleared = pivot * table[others] - table[others, c][:, None] * table[rank]
        table[others] = cleared % modulo if modulo else cleared // previous
        previous = pivot
        pivots.append(c)
    return table, pivots, previous


def null_space(matrix: Integers) -> list[Integers]:
    """Integer vectors that span all v with matrix v = 0."""
    table, pivots, last = eliminated(matrix)
    out = []
    for free in sorted(set(range(matrix.shape[1])) - set(pivots)):
        v = np.zeros(matrix.shape[1], dtype=object)
        v[free], v[pivots] = last, -table[: len(pivots), free]
        out.append(v)
    return out
