r"""What a path is made of: the data, by rows or by moments, the penalty, and the solutions.

Rows and moments answer the same questions about r = y - X w (weighted and centred): the
correlations X^T r, the squared length of r, and the inner products of chosen columns. From moments
nothing depends on the number of rows. Points are rows, W of shape (points, columns): several points
for one target, or one for each of several targets that are fitted together.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from trueline.design import Design
from trueline.design.columns import Columns, columns_of
from trueline.moments import Moments
from trueline.penalties import Penalty
from trueline.solvers.coordinate_descent.homotopy import propose

Array = NDArray[np.float64]
Integers = NDArray[np.intp]

# Squares beyond this are not trusted: their products may overflow.
_LARGE = 1e200
_SPARSE_GRAM, _DENSE_GRAM = 300, 2500


class At(NamedTuple):
    """What is known about some points w: one row per point."""

    correlation: Array
    residual_square: Array
    residual: Array | None = None


class Source(ABC):
    """The data of a problem, weighted and centred, for one path; it holds the working set.

    Attributes
    ----------
    n_features, n_targets : int
    scale : float
        Half the squared length of the targets.
    takes_all_columns : bool
        Whether all columns may as well enter the working set at once.
    max_gram_columns : int
        Beyond so many columns their Gram matrix costs more than it saves.
    x_mean, y_mean : arrays of shape (d,) and (k,)
        For the intercepts, y_mean - W x_mean.
    """

    n_features: int
    n_targets: int
    scale: float
    takes_all_columns: bool
    max_gram_columns: int
    x_mean: Array
    y_mean: Array

    @abstractmethod
    def gather(self, new: Integers) -> Array:
        """Enter columns; their inner products with the working set, in the order of entry."""

    @abstractmethod
    def at(self, W: Array, threshold: float = 0.0) -> At:
        """Correlations and residuals at points given on the working set, by entry.

        Correlations that are certain to be below the threshold may be given as zero.
        """

    def proposals(self, strengths: Array, curvatures: Array) -> tuple[Array, At]:
        """Coefficients that may be solutions at the first of some strengths, one row each.

        The strengths, of absolute values and squares, are without bounds; the first decrease. With
        the coefficients comes what is known there.
        """
        return np.empty((0, self.n_features)), self.at(np.zeros((0, 0)))


class RowsSource(Source):
    """From the rows: each batch of points costs one reading of the data."""

    takes_all_columns = False

    def __init__(
        self,
        design: Design,
        y: Array,
        weights: Array | None,
        fit_intercept: bool,
        x_mean: Array | None = None,
    ) -> None:
        Y = np.atleast_2d(y)  # one row per target
        (self.n_targets, n), self.n_features = Y.shape, design.shape[1]
        total = n if weights is None else weights.sum()
        if fit_intercept:
            self.x_mean = design.column_means(weights) if x_mean is None else x_mean
            self.y_mean = (Y if weights is None else weights * Y).sum(axis=1) / total
        else:
            self.x_mean, self.y_mean = np.zeros(self.n_features), np.zeros(self.n_targets)
        self._design = design
        self._columns = columns_of(design, weights, self.x_mean)
        self.max_gram_columns = _SPARSE_GRAM if design.is_sparse else _DENSE_GRAM
        centred = Y - self.y_mean[:, None]
        self._Y = centred if weights is None else centred * np.sqrt(weights)
        self.scale = 0.5 * float(np.vdot(self._Y, self._Y))

    def gather(self, new: Integers) -> Array:
        block = self._columns.gather(new)
        squares = block[:, -len(new) :].diagonal()
        if not (np.isfinite(block).all() and (squares < _LARGE).all()):
            raise FloatingPointError("the sums of squares of the data are not finite")
        return block

    def take_in(self, new: Integers) -> Array:
        """Enter columns; only their squares."""
        return self._columns.take_in(new)

    @property
    def gathered(self) -> Columns:
        """The columns of the working set."""
        return self._columns

    def at(self, W: Array, threshold: float = 0.0) -> At:
        if not W.shape[1]:
            return self._at_zero  # needed for the largest strength, and again where a path starts
        R = self._Y - self._columns.combine(W)
        return self._at(R, self._columns.correlations(R, threshold))

    @cached_property
    def _at_zero(self) -> At:
        return self._at(self._Y, self._columns.correlations(self._Y))

    def column_norms(self) -> Array:
        """sqrt(sum_i s_i x_ij^2)."""
        return np.sqrt(self._design.column_squares(self._columns.weights, None))

    def _at(self, R: Array, correlation: Array) -> At:
        if not np.isfinite(correlation.sum()):
            raise FloatingPointError("the products of the data are not finite")
        return At(correlation, np.einsum("ti,ti->t", R, R), R)


class MomentsSource(Source):
    """From centred moments: the rows are not read again."""

    takes_all_columns = True
    max_gram_columns = np.iinfo(np.int64).max

    def __init__(self, moments: Moments, fit_intercept: bool, targets: slice = slice(1)) -> None:
        moments = moments if fit_intercept else moments.about_zero()
        self.x_mean, self.y_mean = moments.x_mean, moments.y_mean[targets]
        self.gram, self.cross = moments.gram, np.ascontiguousarray(moments.cross[:, targets].T)
        self.n_targets, self.n_features = self.cross.shape
        self._squares = moments.y_square[targets]
        self.scale = 0.5 * float(self._squares.sum())
        self._entered = np.empty(0, dtype=np.intp)

    def proposals(self, strengths: Array, curvatures: Array) -> tuple[Array, At]:
        W = propose(self.gram, self.cross[0], strengths, curvatures)
        return W, self._at(W)

    def gather(self, new: Integers) -> Array:
        self._entered = np.append(self._entered, new)
        return self.gram[np.ix_(new, self._entered)]

    def at(self, W: Array, threshold: float = 0.0) -> At:
        if not W.shape[1]:
            return At(self.cross, self._squares)
        full = np.zeros((len(W), self.n_features))
        full[:, self._entered] = W
        return self._at(full)

    def _at(self, W: Array) -> At:
        """For coefficients of all columns."""
        image = W @ self.gram
        # ||y - X w||^2 = y.y - w.(c + q), with q = c - G w
        square = self._squares - np.einsum("tj,tj->t", W, 2 * self.cross - image)
        return At(self.cross - image, np.maximum(square, 0.0))


@dataclass(frozen=True)
class Terms:
    """The penalty sum_j l_j abs(w_j) + a_j/2 w_j^2 and the bounds, one number per column.

    A path has many of them that differ by two factors alone: these are kept apart, and only the
    columns that are asked for are multiplied.

    Attributes
    ----------
    lower, upper : arrays of shape (d,)
    strength : float, optional
        Set if l is the same positive number everywhere, a is the same too, and nothing is bounded:
        then the largest correlation says what the general formulas would have to look for column by
        column.
    """

    _linear: Array
    _curvature: Array
    lower: Array
    upper: Array
    strength: float | None = None
    _factors: tuple[float, float] = (1.0, 1.0)

    @classmethod
    def of(cls, linear: Array, curvature: Array, lower: Array, upper: Array) -> Terms:
        """With the strength found out."""
        same = len(linear) > 0 and linear[0] > 0 and bool((linear == linear[0]).all())
        same = same and bool((curvature == curvature[0]).all())
        is_free = same and bool(np.isneginf(lower).all() and np.isposinf(upper).all())
        return cls(linear, curvature, lower, upper, float(linear[0]) if is_free else None)

    def scaled(self, linear: float, curvature: float) -> Terms:
        """Both parts of the penalty multiplied by a number each."""
        strength = None if self.strength is None else self.strength * linear
        factors = (self._factors[0] * linear, self._factors[1] * curvature)
        return Terms(self._linear, self._curvature, self.lower, self.upper, strength, factors)

    @cached_property
    def linear(self) -> Array:
        """l, for all columns."""
        return self._linear * self._factors[0]

    @cached_property
    def curvature(self) -> Array:
        """a, for all columns."""
        return self._curvature * self._factors[1]

    @property
    def same_curvature(self) -> float:
        """a, where it is the same everywhere because the strength is set."""
        return float(self._curvature[0]) * self._factors[1]

    def at(self, columns: Integers) -> tuple[Array, Array, Array, Array]:
        """l, a and the bounds of some columns."""
        if self.strength is not None:  # the same everywhere
            parts = (self.strength, self.same_curvature, -np.inf, np.inf)
            linear, curvatures, lower, upper = np.repeat(parts, len(columns)).reshape(4, -1)
            return linear, curvatures, lower, upper
        return (
            self._linear[columns] * self._factors[0],
            self._curvature[columns] * self._factors[1],
            self.lower[columns],
            self.upper[columns],
        )


def penalty_terms(penalty: Penalty, n_features: int, n_targets: int, target: int = 0) -> Terms:
    """The penalty on the coefficients of one target, as arrays of shape (d,)."""
    shape = (n_features, n_targets)
    parts = (penalty.linear, penalty.curvature, penalty.lower, penalty.upper)
    if not any(map(np.ndim, parts)):
        linear, _, *bounds = parts
        strength = float(linear) if linear > 0 and bounds == [-math.inf, math.inf] else None
        columns = np.repeat(np.array(parts, dtype=np.float64), n_features)
        l, a, lower, upper = columns.reshape(4, n_features)
        return Terms(l, a, lower, upper, strength)
    return Terms.of(*(np.broadcast_to(part, shape)[:, target].astype(float) for part in parts))


@dataclass(frozen=True)
class PathPoint:
    """One solution: its support with the coefficients there, the gap, and how it was found."""

    columns: Integers
    values: Array
    objective: float
    gap: float
    residual_square: float
    sweeps: int

    def coef(self, n_features: int) -> Array:
        """The coefficients as a dense vector."""
        w = np.zeros(n_features)
        w[self.columns] = self.values
        return w
