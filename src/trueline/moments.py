r"""Moments: the sufficient statistics of squared loss.

For rows x_i with targets y_i and weights s_i they are

    weight   W = sum_i s_i
    means    m = sum_i s_i x_i / W,          q = sum_i s_i y_i / W
    gram     G = sum_i s_i (x_i - m)(x_i - m)^T
    cross    c = sum_i s_i (x_i - m)(y_i - q)^T
    y_square h = sum_i s_i (y_i - q)^2       (one number per target)

They add up over disjoint sets of rows and subtract again, so that batches, folds and machines
reduce to a few small matrices (T. F. Chan, G. H. Golub, R. J. LeVeque, "Algorithms for computing
the sample variance", Amer. Statist. 37 (1983) 242-247):

    W = W1 + W2,   e = m2 - m1,   G = G1 + G2 + (W1 W2 / W) e e^T     (c and h alike)

Stability: sums are taken about a shift near the mean whenever means are large against spreads, so
that centring never cancels digits, and means are kept as doubled numbers, so that e does not cancel
either. Every Moments carries bounds on its own rounding:

    abs(error of G_ij) <= unit * sqrt(size_i size_j),      size_i >= G_ii
    abs(error of m_i)  <= mean_unit * sqrt(size_i / W)

A merge adds the sizes and the between-group term a_i^2 = (W1 W2 / W) e_i^2. The means' errors enter
its G through products a_i sqrt(size_j), so that the new bound on G is the norm of the matrix
[[unit, v], [v, 0]] with v = mean_unit sqrt((W1 + W2) / W), where W is smaller than W1 + W2 only in
a subtraction.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from operator import add
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trueline.design import AugmentedDesign, Design
from trueline.design.stacked import StackedDesign
from trueline.numerics.precision import two_sum
from trueline.wording import Readable

Array = NDArray[np.float64]

_EPS = float(np.finfo(np.float64).eps)
# A mean this many spreads away from zero costs (10^1)^2: two digits of sixteen at most.
_HARMLESS_MEAN = 10.0
_LOOK_ROWS, _LOOK_ALL = 512, 50_000
# Up to so many multiplications, squares cost less than a look at the rows beforehand.
_SMALL_WORK = 200_000


@dataclass(frozen=True, repr=False)
class Moments(Readable):
    """Weight, means, centred Gram matrix and cross products of a set of rows.

    Attributes
    ----------
    count : int
        Number of rows with positive weight.
    weight : float
        Sum of the weights.
    x_mean, y_mean : arrays of shape (d,) and (k,)
    gram : array of shape (d, d)
    cross : array of shape (d, k)
    y_square : array of shape (k,)
    unit : float
        Relative rounding of the sums (see the module's text).
    x_size, y_size : arrays of shape (d,) and (k,)
        The magnitudes that ``unit`` is relative to.
    x_mean_low, y_mean_low : arrays or 0.0
        What the means' rounding to double has cut off.
    mean_unit : float
        Relative rounding of the means.

    Examples
    --------
    >>> import numpy as np
    >>> from trueline.design import as_design
    >>> from trueline.moments import Moments
    >>> X, y = np.array([[1.0], [2.0], [4.0]]), np.array([[1.0], [2.0], [6.0]])
    >>> whole = Moments.from_rows(as_design(X), y)
    >>> parts = Moments.from_rows(as_design(X[:1]), y[:1]) + Moments.from_rows(
    ...     as_design(X[1:]), y[1:]
    ... )
    >>> bool(np.allclose(whole.gram, parts.gram))
    True
    """

    count: int
    weight: float
    x_mean: Array
    y_mean: Array
    gram: Array
    cross: Array
    y_square: Array
    unit: float
    x_size: Array
    y_size: Array
    x_mean_low: Array | float = 0.0
    y_mean_low: Array | float = 0.0
    mean_unit: float = 0.0

    @classmethod
    def from_rows(cls, design: Design, Y: Array, weights: Array | None = None) -> Moments:
        """One pass over the rows; Y has shape (n, k).

        Non-finite input gives non-finite moments, which the caller can test cheaply instead of
        reading the data once more. Of a design in parts they are kept, and not read twice.
        """
        if isinstance(design, StackedDesign):
            return _kept_with(design, Y, weights)
        if isinstance(design, AugmentedDesign) and design.is_sequential:
            return cls.from_rows(design.base, Y, weights)._with_constant(design.constant)
        n = design.shape[0]
        total_weight = float(n) if weights is None else float(weights.sum())
        divisor = total_weight or 1.0  # no rows at all: every moment is zero
        count = n if weights is None else int(np.count_nonzero(weights))
        with np.errstate(all="ignore"):
            # Few numbers are looked at once, and once more about a shift if that is needed.
            is_small = design.nonzeros * design.shape[1] <= _SMALL_WORK
            is_shifted = not design.is_sparse and n > 0
            shift = _shift(design) if is_shifted and not is_small else None
            y_shift = _column_sums(Y if weights is None else weights[:, None] * Y) / divisor
            Y = Y - y_shift
            sums = design.second_moments(Y, weights, shift)
            if is_shifted and is_small:
                shift = _far(sums.total / divisor, sums.size / divisor)
                sums = sums if shift is None else design.second_moments(Y, weights, shift)
            total, gram, cross, x_size, terms = sums
            weighted = Y if weights is None else weights[:, None] * Y
            y_total, y_size = _column_sums(weighted), _column_sums(weighted * Y)
            x_mean = total / divisor
            x_mean_low: Array | float = 0.0
            if shift is not None:
                x_mean, x_mean_low = two_sum(x_mean, shift)
            y_mean, y_mean_low = two_sum(y_total / divisor, y_shift)
            unit = _summation_unit(terms)
            # W m m^T as a square: symmetric to the last bit, and no overflow before its time.
            root = np.sqrt(divisor)
            x_part, y_part = total / root, y_total / root
            gram -= x_part[:, None] * x_part
            cross = cross - x_part[:, None] * y_part
            # Rounding of a mean can leave a constant column's spread a hair below zero.
            squares = np.einsum("ii->i", gram)
            np.maximum(squares, 0.0, out=squares)
            y_square = np.maximum(y_size - y_part * y_part, 0.0)
        return cls(
            count=count,
            weight=total_weight,
            x_mean=x_mean,
            y_mean=y_mean,
            gram=gram,
            cross=cross,
            y_square=y_square,
            unit=3 * unit,  # of G itself and of the two totals that centring multiplies
            x_size=x_size,
            y_size=y_size,
            x_mean_low=x_mean_low,
            y_mean_low=y_mean_low,
            mean_unit=unit,
        )

    @property
    def n_features(self) -> int:
        return len(self.x_mean)

    @property
    def n_targets(self) -> int:
        return len(self.y_mean)

    def is_finite(self) -> bool:
        """Whether no sum overflowed and no input was NaN or infinite.

        Infinities and NaN survive in any sum of squares, and squares bound all other products; a
        sum of huge numbers may overflow by itself, which only means that a caller looks closer.
        """
        sizes = float(np.add.reduce(self.x_size)) + float(np.add.reduce(self.y_size))
        return math.isfinite(sizes)

    def is_ordinary(self) -> bool:
        """Whether no sum of squares is so large or small that some square may have been lost."""
        sizes = np.concatenate([self.x_size, self.y_size])
        return bool(sizes.size == 0 or (sizes.min() > 1e-200 and sizes.max() < 1e200))

    def _combine(self, other: Moments, sign: float) -> Moments:
        if self.gram.shape != other.gram.shape or self.cross.shape != other.cross.shape:
            raise ValueError(
                f"Moments of {self.n_features} features and {self.n_targets} targets do not go "
                f"with moments of {other.n_features} features and {other.n_targets} targets."
            )
        weight = self.weight + sign * other.weight
        count = self.count + int(sign) * other.count
        if sign < 0 and (count <= 0 or weight <= 0):
            raise ValueError("Nothing would be left after subtracting these moments.")
        step = sign * other.weight / weight
        x_gap = (other.x_mean - self.x_mean) + (other.x_mean_low - self.x_mean_low)
        y_gap = (other.y_mean - self.y_mean) + (other.y_mean_low - self.y_mean_low)
        # Between-group term: W1 W2 / W for a merge, - W1 W2 / W for a removal.
        between = self.weight * step
        gram = self.gram + sign * other.gram + between * np.outer(x_gap, x_gap)
        cross = self.cross + sign * other.cross + between * np.outer(x_gap, y_gap)
        y_square = self.y_square + sign * other.y_square + between * y_gap**2
        np.fill_diagonal(gram, np.maximum(gram.diagonal(), 0.0))
        jump = abs(between)
        x_mean, x_mean_low = two_sum(self.x_mean, self.x_mean_low + step * x_gap)
        y_mean, y_mean_low = two_sum(self.y_mean, self.y_mean_low + step * y_gap)
        spread = (self.weight + other.weight) / weight
        mean_unit = max(self.mean_unit, other.mean_unit) * math.sqrt(spread)
        return Moments(
            count=count,
            weight=weight,
            x_mean=x_mean,
            y_mean=y_mean,
            gram=gram,
            cross=cross,
            y_square=np.maximum(y_square, 0.0),
            # Weights cancel too: what is left of W1 - W2 carries the rounding of W1 + W2.
            unit=_joint_unit(max(self.unit, other.unit), mean_unit) + 4 * _EPS * spread,
            # What was subtracted leaves its rounding behind: sizes only ever grow.
            x_size=self.x_size + other.x_size + jump * x_gap**2,
            y_size=self.y_size + other.y_size + jump * y_gap**2,
            x_mean_low=x_mean_low,
            y_mean_low=y_mean_low,
            mean_unit=mean_unit + 4 * _EPS * spread,
        )

    def __add__(self, other: Moments) -> Moments:
        """The moments of both sets of rows together."""
        if not isinstance(other, Moments):
            return NotImplemented
        if other.weight == 0:
            return self
        if self.weight == 0:
            return other
        # The lighter set moves the mean of the heavier one: the smaller step rounds less.
        heavy, light = (self, other) if self.weight >= other.weight else (other, self)
        return heavy._combine(light, 1.0)

    def __sub__(self, other: Moments) -> Moments:
        """The moments of the rows of ``self`` that are not in ``other``."""
        if not isinstance(other, Moments):
            return NotImplemented
        if other.weight == 0:
            return self
        return self._combine(other, -1.0)

    def _with_constant(self, c: float) -> Moments:
        """The moments with one more column of a constant."""
        low = self.x_mean_low
        return replace(
            self,
            x_mean=np.append(self.x_mean, c),
            gram=np.pad(self.gram, (0, 1)),
            cross=np.pad(self.cross, ((0, 1), (0, 0))),
            x_size=np.append(self.x_size, self.weight * c * c),
            x_mean_low=np.append(low, 0.0) if isinstance(low, np.ndarray) else low,
        )

    def squares_about(self, shift: Array | None) -> Array:
        """sum_i s_i (x_ij - shift_j)^2 of each column, rounded up; about zero without a shift."""
        gap = self.x_mean if shift is None else (self.x_mean - shift) + self.x_mean_low
        level = self.weight * gap**2
        rounding = (self.unit + 2 * self.mean_unit + 8 * _EPS) * (self.x_size + level)
        return np.asarray(self.gram.diagonal() + level + rounding)

    def about_zero(self) -> Moments:
        """The same statistics about the origin: what a fit without intercept needs."""
        x, y, weight = self.x_mean, self.y_mean, self.weight
        return replace(
            self,
            x_mean=np.zeros_like(x),
            y_mean=np.zeros_like(y),
            gram=self.gram + weight * np.outer(x, x),
            cross=self.cross + weight * np.outer(x, y),
            y_square=self.y_square + weight * y**2,
            unit=_joint_unit(self.unit, self.mean_unit),
            x_size=self.x_size + weight * x**2,
            y_size=self.y_size + weight * y**2,
            x_mean_low=0.0,
            y_mean_low=0.0,
            mean_unit=0.0,
        )

    def targets(self, which: NDArray[np.intp]) -> Moments:
        """The moments of some of the targets."""
        return replace(
            self,
            y_mean=self.y_mean[which],
            cross=self.cross[:, which],
            y_square=self.y_square[which],
            y_size=self.y_size[which],
        )

    def columns(self, which: NDArray[np.intp]) -> Moments:
        """The moments of some of the columns."""
        low = self.x_mean_low
        return replace(
            self,
            x_mean=self.x_mean[which],
            x_mean_low=low[which] if isinstance(low, np.ndarray) else low,
            gram=self.gram[np.ix_(which, which)],
            cross=self.cross[which],
            x_size=self.x_size[which],
        )

    def residual_square(self, W: Array) -> tuple[Array, Array]:
        """sum_i s_i (residual of row i)^2 per target at the best intercept, and its rounding.

        The value cancels when the fit is nearly perfect; the second array bounds its error.
        """
        GW = self.gram @ W
        value = self.y_square - 2 * np.einsum("ij,ij->j", W, self.cross)
        value = value + np.einsum("ij,ij->j", W, GW)
        reach = np.sqrt(self.x_size) @ np.abs(W)
        units = self.unit + (len(W) + 4) * _EPS
        rounding = 2 * units * (np.sqrt(self.y_size) + reach) ** 2
        return np.maximum(value, 0.0), rounding

    def gradient(self, W: Array) -> tuple[Array, Array]:
        """G W - c (the gradient of half the residual square) and a bound on its rounding."""
        value = self.gram @ W - self.cross
        root = np.sqrt(self.x_size)
        reach = np.sqrt(self.y_size) + root @ np.abs(W)
        units = self.unit + (len(W) + 4) * _EPS
        return value, 2 * units * root[:, None] * reach


class SharedMoments:
    """Moments of the same rows under the weights of several folds; the rows are read once.

    The moments of a fold are those of all rows minus those of the rows that it leaves out.

    Parameters
    ----------
    design : Design
    target : array of shape (n, k)
    weights : array of shape (n,), optional
        Of all rows.
    folds : sequence of arrays of shape (n,)
        The weights of each fold: those of all rows, zero where a row is left out. They are known
        again as objects.
    """

    def __init__(
        self, design: Design, target: Array, weights: Array | None, folds: Sequence[Array]
    ) -> None:
        self.design, self.target = design, target
        self._every = np.ones(len(target)) if weights is None else weights
        self._folds = list(folds)
        self._left: dict[int, Moments | None] = {}

    @cached_property
    def total(self) -> Moments:
        """Of all rows, merged from the folds if each row is left out once."""
        left = [np.not_equal(s, self._every) for s in self._folds]
        if self._folds and (np.sum(left, axis=0) == 1)[self._every > 0].all():
            parts = [self.left_out(s) for s in self._folds]
            if None not in parts:
                total = reduce(add, [part for part in parts if part is not None])
                if isinstance(self.design, StackedDesign):
                    self.design.keep_moments(self.target, self._every, total)
                return total
        return self._of(self._every)

    def left_out(self, weights: Array, test: Any = None) -> Moments | None:
        """Of the rows that a fold leaves out; None if these are not all others, or the most.

        With ``test``, if these rows are the ones that are left out.
        """
        if test is not None:
            n = len(self._every)
            times = np.bincount(np.arange(n)[test], minlength=n)
            if (times * self._every + weights != self._every).any():
                return None
        if id(weights) not in self._left:
            is_ours = any(weights is s for s in self._folds)
            rest = self._rest(weights) if is_ours else None
            self._left[id(weights)] = None if rest is None else self._of(rest, left_by=weights)
        return self._left[id(weights)]

    def _rest(self, weights: Array) -> Array | None:
        """The weights of the rows that are left out; None if these are not all others, or most."""
        left = _left_by(weights, self._every)
        is_less = 2 * np.count_nonzero(left) <= len(left) + 1
        return left if is_less and bool((weights + left == self._every).all()) else None

    def of_fold(self, weights: Array | None) -> Moments:
        """Of the training rows of a fold."""
        if weights is None:
            return self.total
        left = self.left_out(weights)
        return self._of(weights) if left is None else self.total - left

    @cached_property
    def _read_at_once(self) -> list[tuple[Array, bool, Moments]]:
        """Of a design in parts, in one pass: moments of the rows of every fold, or of the others.

        An array by row and fold would be as much as the rows of few columns: what a fold leaves out
        is found part by part.
        """
        wanted = [(s, self._rest(s) is not None) for s in self._folds]
        if not all(is_left for _, is_left in wanted) or not wanted:
            wanted.append((self._every, False))
        assert isinstance(self.design, StackedDesign)
        leaving = [is_left for _, is_left in wanted]
        every = [s for s, _ in wanted]
        found = moments_of_parts(self.design, self.target, every, self._every, leaving)
        return [(s, is_left, moments) for (s, is_left), moments in zip(wanted, found)]

    def _of(self, weights: Array, left_by: Array | None = None) -> Moments:
        if isinstance(self.design, StackedDesign):
            asked = weights if left_by is None else left_by
            for known, is_left, found in self._read_at_once:
                if is_left == (left_by is not None) and np.array_equal(known, asked):
                    return found
            return Moments.from_rows(self.design, self.target, weights)
        index = np.flatnonzero(weights)
        return _of_rows(self.design, self.target, weights, index)


def _left_by(weights: Array, every: Array) -> Array:
    """The weights of the rows that have none in a fold."""
    return np.where(weights == 0, every, 0.0)


def _of_rows(design: Design, Y: Array, weights: Array, index: NDArray[np.intp]) -> Moments:
    """Of the rows with an index, and no others."""
    rows: slice | NDArray[np.intp] = index
    if len(index) and index[-1] - index[0] == len(index) - 1:  # no copy
        rows = slice(int(index[0]), int(index[-1]) + 1)
    own = weights[rows]
    given = None if (own == 1).all() else own
    whole = len(index) == design.shape[0]
    return Moments.from_rows(design if whole else design.take(rows), Y[rows], given)


def moments_of_parts(
    design: StackedDesign,
    Y: Array,
    every: Sequence[Array | None],
    whole: Array | None = None,
    leaving: Sequence[bool] = (),
) -> list[Moments]:
    """The moments under several weights, in one pass over a design in parts.

    Where ``leaving`` says so they are those of the rows that these weights leave out, whose weights
    are then those of ``whole``.

    Those of equally many parts are merged, as in pairwise summation: rounding grows with the
    logarithm of their number.
    """

    def of_part(
        part: Design, Y: Array, whole: Array | None, *weights: Array | None
    ) -> list[Moments | None]:
        own = list(weights)
        for number, is_left in enumerate(leaving):
            s = own[number]
            if is_left and s is not None and whole is not None:
                own[number] = _left_by(s, whole)
        return [Moments.from_rows(part, Y) if s is None else _of_some(part, Y, s) for s in own]

    return [
        Moments.from_rows(design.take(np.arange(0)), Y[:0]) if found is None else found
        for found in design.summed(of_part, Y, whole, *every, add=_merged)
    ]


def _merged(one: list[Moments | None], other: list[Moments | None]) -> list[Moments | None]:
    """The moments of two sets of rows, where there are some."""
    return [b if a is None else a if b is None else a + b for a, b in zip(one, other)]


def _kept_with(design: StackedDesign, Y: Array, weights: Array | None) -> Moments:
    """The moments of a design in parts, read unless they were before."""
    found = design.known_moments(weights, Y if Y.shape[1] else None)
    if found is not None and found.n_targets > Y.shape[1]:
        return found.targets(np.arange(0))
    if found is None:
        found = moments_of_parts(design, Y, [weights])[0]
        design.keep_moments(Y, weights, found)
    return found


def _of_some(part: Design, Y: Array, weights: Array) -> Moments | None:
    return _of_rows(part, Y, weights, np.flatnonzero(weights)) if weights.any() else None


def _shift(design: Design) -> Array | None:
    """A point near the column means, where the sums are taken; None where zero is as good."""
    n = design.shape[0]
    if n <= _LOOK_ROWS or design.nonzeros <= _LOOK_ALL:
        look = next(design.blocks(n))[1]
    else:
        look = design.glance(_LOOK_ROWS)
    mean = np.add.reduce(look, axis=0) / len(look)
    return _far(mean, np.einsum("ij,ij->j", look, look) / len(look))


def _far(mean: Array, square: Array) -> Array | None:
    """The means, where they are large against the spreads; None if that is nowhere."""
    # abs(mean) > c spread, as spread^2 = square - mean^2.
    far = (1 + _HARMLESS_MEAN**-2) * mean * mean > square
    return np.where(far, mean, 0.0) if far.any() else None


def _column_sums(values: Array) -> Array:
    """Sums over the rows, in NumPy's pairwise order, which it uses along contiguous memory only."""
    return np.add.reduce(np.ascontiguousarray(values.T), axis=1)


def _summation_unit(terms: int) -> float:
    """Relative rounding of sums of products in which ``terms`` are added one after the other.

    The worst case of a running sum of m terms is m eps/2 (N. J. Higham, "Accuracy and Stability of
    Numerical Algorithms", 2nd ed., eq. 4.4); shifting, weighing and multiplying a term adds a few.
    """
    return (terms / 2 + 16) * _EPS


def _joint_unit(unit: float, mean_unit: float) -> float:
    """The norm of [[unit, mean_unit], [mean_unit, 0]], and the rounding of the update."""
    return 0.5 * (unit + math.hypot(unit, 2 * mean_unit)) + 8 * _EPS
