"""What a design matrix is: a handful of products, whatever stores the numbers.

Solvers see only these operations, so that dense, sparse, centred and (later) out-of-core or
distributed data need no solver of their own. All results are float64: single-precision data are
accumulated in double.
"""

from __future__ import annotations

import operator
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

Array = NDArray[np.float64]


class SecondMoments(NamedTuple):
    """Weighted sums of one pass over the rows, about a shift c: with v = x - c,

    ``total`` sum s v, ``gram`` sum s v v^T, ``cross`` sum s v y^T.

    What bounds their rounding: ``size``, one magnitude per column, at least sum s v^2 and larger
    where the shift was subtracted from finished sums; ``terms``, the most terms that were added
    one after the other. Then abs(error of gram_ij) is at most about
    ``terms * eps/2 * sqrt(size_i size_j)``.
    """

    total: Array
    gram: Array
    cross: Array
    size: Array
    terms: int


class Accuracy(NamedTuple):
    """How the products round, in the worst case, with a_ij the numbers that they handle:

    ``abs(error of (X W)_i) <= row_terms eps sum_j a_ij abs(w_j)``,
    ``abs(error of (X^T U)_j) <= column_terms eps sum_i a_ij abs(u_i)``,
    ``magnitude_j >= sqrt(sum_i s_i a_ij^2)``.
    """

    row_terms: float
    column_terms: float
    magnitude: Array


class Design(ABC):
    """A matrix X of shape (n, d) behind a few products."""

    shape: tuple[int, int]
    dtype: np.dtype
    is_sparse: bool
    nonzeros: int
    #: Whether it came dense and is stored as sparse, or the reverse.
    is_converted: bool = False
    #: Whether rows are best read one after the other: to take some costs a pass over all.
    is_sequential: bool = False
    #: Where the rows are and how often they were read, in words, if they are not in memory.
    whereabouts: str = ""

    def mapped(self, make: Callable[[Design], Design], columns: int) -> Design:
        """The rows that a function makes of these, part by part."""
        return make(self)

    def each(self, make: Callable[..., Any], *by_row: Array | None) -> Iterator[Any]:
        """``make(part, *own)`` of parts of the rows in order; most designs are one part.

        ``own`` are the rows of some arrays that belong to the part. Parts may lie on other
        machines: what is made is a function of these alone.
        """
        yield make(self, *by_row)

    def summed(
        self,
        make: Callable[..., Any],
        *by_row: Array | None,
        add: Callable[[Any, Any], Any] = operator.add,
    ) -> Any:
        """The sum of what :meth:`each` gives; ``add`` joins neighbours."""
        return make(self, *by_row)

    @abstractmethod
    def matvec(self, W: Array) -> Array:
        """X W, for W of shape (d,) or (d, k)."""

    @abstractmethod
    def rmatvec(self, U: Array) -> Array:
        """X^T U, for U of shape (n,) or (n, k)."""

    def curved_product(self, H: Array, V: Array, level: Array) -> tuple[Array, Array]:
        """sum_i h_it z_it x_i and sum_i h_it z_it with z_it = x_i.v_t + level_t, for every t.

        The products with the Hessians of several problems. H has shape (n, k), V (d, k), level
        (k,). A design that can do it in one pass over its entries overrides this.
        """
        Z = H * (self.matvec(V) + level)
        return self.rmatvec(Z), Z.sum(axis=0)

    @abstractmethod
    def second_moments(self, Y: Array, weights: Array | None, shift: Array | None) -> SecondMoments:
        """Weighted sums about a shift, in one pass; Y has shape (n, k)."""

    @abstractmethod
    def kernel(self, weights: Array | None, shift: Array | None) -> Array:
        """V V^T of shape (n, n), V = sqrt(weights) (X - shift)."""

    @abstractmethod
    def column_means(self, weights: Array | None) -> Array:
        """Weighted means of the columns."""

    @abstractmethod
    def column_largest(self) -> Array:
        """The largest magnitude in each column."""

    @abstractmethod
    def column_squares(self, weights: Array | None, shift: Array | None) -> Array:
        """sum_i s_i (x_ij - c_j)^2 for each column."""

    @abstractmethod
    def row_squares(self, shift: Array | None) -> Array:
        """sum_j (x_ij - c_j)^2 for each row."""

    def farthest(self, shift: Array | None) -> float:
        """At least the largest of :meth:`row_squares`."""
        return float(self.row_squares(shift).max(initial=0.0))

    @abstractmethod
    def accuracy(self, weights: Array | None, magnitude: Array | None = None) -> Accuracy:
        """Bounds on the rounding of :meth:`matvec` and :meth:`rmatvec`.

        The magnitudes of the columns cost a pass over the data, unless they are known.
        """

    @abstractmethod
    def blocks(self, rows: int) -> Iterator[tuple[slice, Array]]:
        """Consecutive blocks of rows as dense float64 arrays (small copies)."""

    @abstractmethod
    def take(self, rows: NDArray[np.intp] | slice) -> Design:
        """The design of some of the rows; a slice copies nothing."""

    @abstractmethod
    def row(self, i: int) -> Array:
        """One row, dense."""

    def glance(self, count: int) -> Array:
        """So many rows from all over: the first ones of sorted or padded data are unlike others."""
        n = self.shape[0]
        return self.take(np.linspace(0, n - 1, min(count, n)).astype(np.intp)).toarray()

    def sample(self, count: int) -> NDArray[np.intp]:
        """So many rows by chance, ascending; more or fewer where some are at hand."""
        draw = np.random.default_rng(0)
        return np.sort(draw.choice(self.shape[0], count, replace=False, shuffle=False))

    def is_same(self, other: Design) -> bool:
        """Whether this is certain to be the same matrix as another, without a look at it."""
        return self is other

    @property
    def by_columns(self) -> sp.csc_array:
        """Compressed columns, in double precision."""
        return sp.csc_array(self.toarray())

    def toarray(self) -> Array:
        """The whole matrix, dense; for small designs and tests."""
        out = np.empty(self.shape)
        for rows, block in self.blocks(max(1, self.shape[0])):
            out[rows] = block
        return out
