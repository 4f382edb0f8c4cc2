r"""Where correlations with several targets come from: the rows of the data, or their moments.

Both answer the same questions about R = Y - X W (weighted and centred): the correlations X^T R, the
squared length of R, and the inner products of chosen columns. Targets are rows here, as points are
in :mod:`trueline.design.columns`: W has shape (k, columns).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from trueline.design import Design
from trueline.design.columns import columns_of
from trueline.design.dense import DenseDesign
from trueline.moments import Moments
from trueline.numerics.threads import run_strands
from trueline.problem import Problem

__all__ = ["MomentsTargets", "RowsTargets", "TargetsSource", "correlate"]

Array = NDArray[np.float64]
Integers = NDArray[np.intp]


# Rows per product: bounds on rounding count on sums of no more terms at once.
_ROWS = 2048
_STRANDS = 8
_SMALL_WORK = 2_000_000


def correlate(design: Design, R: Array) -> Array:
    """X^T r for each row r of R, of shape (k, d).

    Several residuals at once are a matrix product, which reads dense columns of either memory order
    at full speed.
    """
    if not isinstance(design, DenseDesign):
        return design.rmatvec(np.ascontiguousarray(R.T)).T
    X, (n, d) = design.X, design.shape
    out = np.zeros((len(R), d))

    def work(columns: slice) -> None:
        for first in range(0, n, _ROWS):
            rows = slice(first, first + _ROWS)
            out[:, columns] += R[:, rows] @ X[rows, columns].astype(np.float64, copy=False)

    # The cuts depend on the sizes alone, so that the answer does not depend on the threads.
    parts = 1 if X.size * len(R) < _SMALL_WORK else _STRANDS
    cuts = np.linspace(0, d, parts + 1).astype(int)
    run_strands(work, [slice(a, b) for a, b in pairwise(cuts) if b > a])
    return out


class TargetsSource(ABC):
    """The data of a problem with targets that are fitted together, weighted and centred.

    Attributes
    ----------
    shape : tuple of int
        Targets and columns.
    square : float
        The squared length of the targets.
    gathers_all : bool
        Whether all columns may as well be let in at once.
    x_mean, y_mean : arrays of shape (d,) and (k,)
        For the intercepts, y_mean - W x_mean.
    """

    shape: tuple[int, int]
    square: float
    gathers_all: bool
    x_mean: Array
    y_mean: Array

    @abstractmethod
    def gather(self, new: Integers) -> Array:
        """Let columns in; their inner products with all that are in, in the order of entry."""

    @abstractmethod
    def at(self, W: Array) -> tuple[Array, float]:
        """Correlations (k, d) and squared residual at W, given on the columns that are in."""


class RowsTargets(TargetsSource):
    """From the rows: each point costs one reading of the data."""

    gathers_all = False

    def __init__(self, problem: Problem, targets: slice, mean: Array | None = None) -> None:
        design, weights = problem.design, problem.weights
        Y = np.ascontiguousarray(problem.target[:, targets].T)
        self.shape = len(Y), design.shape[1]
        if problem.fit_intercept:
            self.x_mean = design.column_means(weights) if mean is None else mean
            self.y_mean = np.average(Y, axis=1, weights=weights)
        else:
            self.x_mean, self.y_mean = np.zeros(design.shape[1]), np.zeros(len(Y))
        self._design, self._columns = design, columns_of(design, weights, self.x_mean)
        centred = Y - self.y_mean[:, None]
        self._Y = centred if weights is None else centred * np.sqrt(weights)
        self.square = float(np.vdot(self._Y, self._Y))

    def gather(self, new: Integers) -> Array:
        return self._columns.gather(new)

    def at(self, W: Array) -> tuple[Array, float]:
        R = self._Y - self._columns.combine(W) if W.shape[1] else self._Y
        if len(R) == 1 or not isinstance(self._design, DenseDesign):
            return self._columns.correlations(R), float(np.vdot(R, R))
        rooted = R if self._columns.root is None else R * self._columns.root
        out = correlate(self._design, rooted)
        out -= np.outer(rooted.sum(axis=1), self.x_mean)
        return out, float(np.vdot(R, R))


class MomentsTargets(TargetsSource):
    """From centred moments: the rows are not read again."""

    gathers_all = True

    def __init__(self, moments: Moments, targets: slice) -> None:
        self._gram, self._cross = moments.gram, np.ascontiguousarray(moments.cross[:, targets].T)
        self.shape = self._cross.shape
        self.x_mean, self.y_mean = moments.x_mean, moments.y_mean[targets]
        self.square = float(moments.y_square[targets].sum())
        self._entered = np.empty(0, dtype=np.intp)

    def gather(self, new: Integers) -> Array:
        self._entered = np.append(self._entered, new)
        return self._gram[np.ix_(new, self._entered)]

    def at(self, W: Array) -> tuple[Array, float]:
        full = np.zeros(self.shape)
        full[:, self._entered] = W
        image = full @ self._gram
        # ||Y - X W||^2 = Y.Y - W.(2 C - G W)
        square = self.square - float(np.vdot(full, 2 * self._cross - image))
        return self._cross - image, max(square, 0.0)
