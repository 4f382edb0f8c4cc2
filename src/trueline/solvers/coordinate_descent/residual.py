r"""The residual of a problem with many columns, while its coefficients move.

Sparse columns are centred implicitly: v_j = sqrt(s) (x_j - m_j), and since v_j.sqrt(s) = 0, all
residuals of a centred target are orthogonal to sqrt(s). With r = p + c sqrt(s),

    v_j.r = sqrt(s) x_j . p + c S m_j,      r - h v_j = p - h sqrt(s) x_j + (c + h m_j) sqrt(s).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from trueline.design.columns import Columns, DenseColumns, SparseColumns
from trueline.design.sparse_columns import Indices, column_dot
from trueline.numerics.jit import kernel
from trueline.solvers.coordinate_descent.kernels import soft_threshold_step

__all__ = ["Image", "Residual", "residual_of"]

Array = NDArray[np.float64]
Integers = NDArray[np.intp]

# Of so many columns one is in use: these alone are read then, not all of them by rows.
_FEW = 8


@kernel
def _sweep_sparse(
    data: Array,
    indices: Indices,
    indptr: Indices,
    chosen: Integers,
    squares: Array,
    mean: Array,
    total: float,
    p: Array,
    shift: float,
    state: Array,
    which: Integers,
) -> float:
    """One coordinate step for each of the columns in ``which``; returns the new shift."""
    for place in which:
        j = chosen[place]
        dot = column_dot(data, indices, indptr[j], indptr[j + 1], p) + shift * total * mean[j]
        before, square = state[0, place], squares[place]
        after = soft_threshold_step(
            dot + square * before,
            state[2, place],
            square + state[3, place],
            state[4, place],
            state[5, place],
            before,
        )
        change = after - before
        state[1, place] = dot - change * square
        if change != 0.0:
            state[0, place] = after
            shift += change * mean[j]
            for e in range(np.uint64(indptr[j]), np.uint64(indptr[j + 1])):
                p[np.uint64(indices[e])] -= change * data[e]
    return shift


@kernel(reassociate=True)
def _sweep_dense(V: Array, squares: Array, p: Array, state: Array, which: Integers) -> None:
    """One coordinate step for each of the columns in ``which``, rows of V."""
    n = V.shape[1]
    for place in which:
        v = V[place]
        dot = 0.0
        for i in range(n):
            dot += v[i] * p[i]
        before, square = state[0, place], squares[place]
        after = soft_threshold_step(
            dot + square * before,
            state[2, place],
            square + state[3, place],
            state[4, place],
            state[5, place],
            before,
        )
        change = after - before
        state[1, place] = dot - change * square
        if change != 0.0:
            state[0, place] = after
            for i in range(n):
                p[i] -= change * v[i]


class Image(NamedTuple):
    """V x, as p - lift sqrt(s)."""

    p: Array
    lift: float


class Residual(ABC):
    """r = y - V w; places are those of the gathered columns, in the order of entry."""

    @abstractmethod
    def reset(self, r: Array) -> None:
        """Begin with a residual that was computed from the data; it is copied."""

    @abstractmethod
    def value(self) -> Array:
        """r itself."""

    @abstractmethod
    def sweep(self, squares: Array, state: Array, which: Integers) -> None:
        """One coordinate step for each place in ``which``.

        The rows of ``state`` are w, q, linear, bend, lower, upper; w is moved, and q is what the
        step left of it.
        """

    @abstractmethod
    def correlate(self) -> Array:
        """v_j.r at all places."""

    @abstractmethod
    def image(self, x: Array) -> Image:
        """V x."""

    @abstractmethod
    def there_and_back(self, x: Array) -> tuple[Image, Array]:
        """V x and V^T V x."""

    @abstractmethod
    def square(self, image: Image) -> float:
        """||V x||^2."""

    @abstractmethod
    def subtract(self, image: Image) -> None:
        """r - V x."""


class _SparseResidual(Residual):
    def __init__(self, columns: SparseColumns) -> None:
        self._columns, self._shift = columns, 0.0
        self._has_mean = bool(columns.mean.any())
        self._means = np.empty(0)  # of the gathered columns

    def reset(self, r: Array) -> None:
        self._p, self._shift = r.copy(), 0.0

    def value(self) -> Array:
        root = self._columns.root
        return self._p + self._shift * (1.0 if root is None else root)

    def sweep(self, squares: Array, state: Array, which: Integers) -> None:
        columns = self._columns
        self._shift = _sweep_sparse(
            *columns.store.entries,
            columns.chosen,
            squares,
            columns.mean,
            columns.total,
            self._p,
            self._shift,
            state,
            which,
        )

    def _centred(self, sums: Array, lift: float) -> Array:
        columns = self._columns
        if self._has_mean:
            sums -= (columns.total * lift) * self._chosen_means()
        return sums

    def _chosen_means(self) -> Array:
        columns = self._columns
        if len(self._means) != columns.gathered:
            self._means = columns.mean[columns.chosen]
        return self._means

    def _lift(self, x: Array) -> float:
        return float(self._chosen_means() @ x) if self._has_mean else 0.0

    def correlate(self) -> Array:
        return self._centred(self._columns.by_rows.sums(self._p), -self._shift)

    def image(self, x: Array) -> Image:
        columns, places = self._columns, np.flatnonzero(x)
        if _FEW * len(places) <= len(x):
            scores = columns.store.combine(columns.chosen[places], x[places])
        else:
            scores = columns.by_rows.scores(x)
        return Image(scores, self._lift(x))

    def there_and_back(self, x: Array) -> tuple[Image, Array]:
        scores, sums = self._columns.by_rows.both(x)
        lift = self._lift(x)
        return Image(scores, lift), self._centred(sums, lift)

    def square(self, image: Image) -> float:
        return float(image.p @ image.p) - self._columns.total * image.lift**2

    def subtract(self, image: Image) -> None:
        self._p -= image.p
        self._shift += image.lift


class _DenseResidual(Residual):
    def __init__(self, columns: DenseColumns) -> None:
        self._columns = columns

    def reset(self, r: Array) -> None:
        self._p = r.copy()

    def value(self) -> Array:
        return self._p

    def sweep(self, squares: Array, state: Array, which: Integers) -> None:
        _sweep_dense(self._columns.rows, squares, self._p, state, which)

    def correlate(self) -> Array:
        return np.asarray(self._columns.rows @ self._p)

    def image(self, x: Array) -> Image:
        return Image(x @ self._columns.rows, 0.0)

    def there_and_back(self, x: Array) -> tuple[Image, Array]:
        image = self.image(x)
        return image, np.asarray(self._columns.rows @ image.p)

    def square(self, image: Image) -> float:
        return float(image.p @ image.p)

    def subtract(self, image: Image) -> None:
        self._p -= image.p


def residual_of(columns: Columns) -> Residual:
    """The residual of gathered columns; :meth:`Residual.reset` says where it begins."""
    if isinstance(columns, SparseColumns):
        return _SparseResidual(columns)
    assert isinstance(columns, DenseColumns)
    return _DenseResidual(columns)
