r"""Rows sorted by class, and products with them for many problems of two classes at once.

A problem takes some classes as -1, some as +1 and leaves out the others: a row of a code book.
The rows of a class are in the same problems, so that what these need of them is one product of
matrices: each row is read once for all problems that it is in.

What belongs to rows and problems is kept in arrays of shape (slots, n). Of the rows of class c slot
t is about problem ``slots[c][t]``; there are as many slots as problems of the class that is in most
of them: k for one against the rest, k - 1 for one against one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from trueline.solvers.books.kernels import curved_product, scores_of_rows, sums_of_rows
from trueline.threads import run_strands

__all__ = ["BookRows", "SortedRows", "Stretch", "sorted_rows"]

Array = NDArray[np.float64]
Codes = NDArray[np.intp]

# Up to so many multiplications OpenBLAS multiplies matrices as they are, without packing them
# first, which pays for a few vectors; blocks are not much smaller than that.
_UNPACKED, _LEAST_ROWS, _MOST_ROWS = 900_000, 48, 512
# What threads take at a time.
_STRETCH = 3072


class SortedRows(NamedTuple):
    """Rows sorted by class, with the sums over each class.

    Attributes
    ----------
    X : array of shape (n, d)
        Less the middle.
    weights : array of shape (n,)
    order : array of shape (n,)
        Where the sorted rows were.
    bounds : array of shape (classes + 1,)
        Where the rows of each class begin.
    shares : array of shape (classes,)
        Sums of the weights.
    totals, squares : arrays of shape (classes, d)
        sum_i s_i x_i and sum_i s_i x_i^2.
    middle : array of shape (d,)
        The mean of all rows; zero without an intercept.
    farthest : array of shape (classes,)
        The largest distance of a row from there.
    """

    X: Array
    weights: Array
    order: Codes
    bounds: NDArray[np.int64]
    shares: Array
    totals: Array
    squares: Array
    middle: Array
    farthest: Array

    def is_ordinary(self) -> bool:
        """Whether all numbers are finite, and no square left the range of doubles."""
        size = self.squares.sum(axis=0)
        present = size[size != 0]
        fine = np.isfinite(self.squares).all() and np.isfinite(self.farthest).all()
        fine = fine and ((present > 1e-30) & (present < 1e30)).all()
        return bool(fine and not self.X[:, size == 0].any())


def sorted_rows(
    X: Array, codes: Codes, count: int, weights: Array | None, *, fit_intercept: bool
) -> SortedRows:
    """Sort, and sum up.

    Examples
    --------
    >>> import numpy as np
    >>> from trueline.solvers.books.rows import sorted_rows
    >>> X, codes = np.array([[1.0], [2.0], [3.0]]), np.array([1, 0, 1])
    >>> rows = sorted_rows(X, codes, 2, None, fit_intercept=True)
    >>> rows.X.tolist(), rows.totals.tolist(), rows.squares.tolist()
    ([[0.0], [-1.0], [1.0]], [[0.0], [0.0]], [[0.0], [2.0]])
    """
    n, d = X.shape
    order = np.argsort(codes, kind="stable")
    bounds = np.zeros(count + 1, dtype=np.int64)
    np.cumsum(np.bincount(codes, minlength=count), out=bounds[1:])
    middle = X.mean(axis=0) if fit_intercept else np.zeros(d)
    A = np.empty((n, d))
    s = np.ones(n) if weights is None else np.ascontiguousarray(weights[order])
    shares, farthest = np.zeros(count), np.zeros(count)
    totals, squares = np.zeros((count, d)), np.zeros((count, d))

    def work(c: int) -> None:
        for start in range(int(bounds[c]), int(bounds[c + 1]), _STRETCH):
            where = slice(start, min(start + _STRETCH, int(bounds[c + 1])))
            block = A[where]
            np.subtract(X[order[where]], middle, out=block)
            squared = block * block
            shares[c] += s[where].sum()
            totals[c] += s[where] @ block
            squares[c] += s[where] @ squared
            farthest[c] = max(farthest[c], float(np.sqrt(squared.sum(axis=1).max())))

    run_strands(work, range(count))
    return SortedRows(A, s, order, bounds, shares, totals, squares, middle, farthest)


class Stretch(NamedTuple):
    """Some rows of one class, and what the problems that are asked about make of them.

    Attributes
    ----------
    rows : slice
    at, problems : arrays of shape (k,)
        Slots, and the problems that they are about.
    labels, factors : arrays of shape (k, 1)
        -1 or +1, and what the weights are multiplied by.
    """

    rows: slice
    at: Codes
    problems: Codes
    labels: Array
    factors: Array


@dataclass(frozen=True)
class BookRows:
    """Products with rows for the problems of a code book.

    Parameters
    ----------
    X : array of shape (n, d)
        Sorted by class.
    single : array of shape (n, d)
        The same in single precision: steps need few digits, and gradients are exact anyway.
    weights : array of shape (n,)
    bounds : array of shape (classes + 1,)
    book : array of shape (problems, classes)
        -1, 0 or +1.
    sides : array of shape (problems, 2)
        What weights of rows with label -1 and +1 are multiplied by.
    fit_intercept : bool
        Without one the last entry of a gradient is zero.
    """

    X: Array
    single: NDArray[np.float32]
    weights: Array
    bounds: NDArray[np.int64]
    book: Array
    sides: Array
    fit_intercept: bool

    @property
    def slots(self) -> int:
        """Problems of the class that is in most of them."""
        return int(np.count_nonzero(self.book, axis=0).max(initial=0))

    def stretches(self, problems: Codes) -> list[Stretch]:
        """All rows that are in some of these problems, cut by the shape of the data alone."""
        out: list[Stretch] = []
        for c, (first, last) in enumerate(pairwise(self.bounds.tolist())):
            own = np.flatnonzero(self.book[:, c])
            at = np.flatnonzero(np.isin(own, problems))
            if first == last or not len(at):
                continue
            labels = self.book[own[at], c]
            factors = self.sides[own[at], (labels > 0).astype(np.intp)]
            cuts = np.linspace(first, last, -(-(last - first) // _STRETCH) + 1).astype(int)
            what = (at, own[at], labels[:, None], factors[:, None])
            out.extend(Stretch(slice(a, b), *what) for a, b in pairwise(cuts.tolist()))
        return out

    def scores(self, stretches: list[Stretch], V: Array, Z: Array) -> None:
        """v_t.x_i + f_t of the rows of the stretches, into Z; V is of shape (problems, d + 1)."""

        def work(one: Stretch) -> None:
            along, level = np.ascontiguousarray(V[one.problems, :-1]), V[one.problems, -1].copy()
            size = self._block_rows(len(one.at))
            scores_of_rows(self.X, one.at, along, level, Z, one.rows.start, one.rows.stop, size)

        run_strands(work, stretches)

    def totals(self, stretches: list[Stretch], U: Array) -> Array:
        """sum_i u_ti [x_i, 1], of shape (problems, d + 1)."""

        def work(one: Stretch) -> Array:
            size = self._block_rows(len(one.at))
            return sums_of_rows(self.X, one.at, U, one.rows.start, one.rows.stop, size)

        return self._added(stretches, work)

    def bent(self, stretches: list[Stretch], H: NDArray[np.float32], V: Array) -> Array:
        """sum_i h_ti (v_t.x_i + f_t) [x_i, 1], of shape (problems, d + 1), in single precision."""
        rounded = V.astype(np.float32)

        def work(one: Stretch) -> Array:
            along = np.ascontiguousarray(rounded[one.problems, :-1])
            level, size = rounded[one.problems, -1].copy(), self._block_rows(len(one.at))
            ends = one.rows.start, one.rows.stop
            return curved_product(self.single, H, one.at, along, level, *ends, size)

        return self._added(stretches, work)

    def over_rows(self, stretches: list[Stretch], work: Callable[[Stretch], Array]) -> Array:
        """Sums over the rows of what is made of each stretch, of shape (k, m): (problems, m)."""
        parts = run_strands(work, stretches)
        out = np.zeros((len(self.book), parts[0].shape[1]))
        for one, part in zip(stretches, parts, strict=True):
            out[one.problems] += part
        return out

    def _added(self, stretches: list[Stretch], work: Callable[[Stretch], Array]) -> Array:
        out = self.over_rows(stretches, work)
        if not self.fit_intercept:
            out[:, -1] = 0.0
        return out

    def longest_chain(self, count: int) -> float:
        """Most additions one after the other in sums over so many rows."""
        return _MOST_ROWS + count / _LEAST_ROWS + 2 * count / _STRETCH + 2 * len(self.book) + 16

    def _block_rows(self, k: int) -> int:
        rows = _UNPACKED // (self.X.shape[1] * k) // 16 * 16
        return int(min(max(rows, _LEAST_ROWS), _MOST_ROWS))
