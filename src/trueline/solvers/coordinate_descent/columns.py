r"""The problem restricted to some columns, solved from the columns themselves.

When many coefficients are free their Gram matrix costs more than it saves. Here the state is the
residual r = y - V w. A sweep of coordinate steps (J. Friedman, T. Hastie, R. Tibshirani,
"Regularization paths for generalized linear models via coordinate descent", J. Stat. Softw. 33
(2010) 1, section 2.2: naive updates) finds out which coefficients are free and what sign they
have; on these, conjugate gradients take the step

    (V_F^T V_F + diag(a_F)) step = q_F - l_F sign(w_F) - a_F w_F

without forming the matrix, as far as the gap that is asked for makes it worth while. Sweeps alone
would take hundreds of rounds to a small gap: it is of first order in the violation of the dual
constraints, while the objective is of second order.

Sparse columns are centred implicitly: v_j = sqrt(s) (x_j - m_j), and since v_j.sqrt(s) = 0, all
residuals of a centred target are orthogonal to sqrt(s). With r = p + c sqrt(s),

    v_j.r = sqrt(s) x_j . p + c S m_j,      r - h v_j = p - h sqrt(s) x_j + (c + h m_j) sqrt(s).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from trueline.design.columns import Columns, DenseColumns, SparseColumns
from trueline.design.sparse_columns import Indices, column_dot
from trueline.numerics.jit import kernel
from trueline.solvers.conjugate_gradients import conjugate_gradients
from trueline.solvers.coordinate_descent.gram import forces, sign_bounds
from trueline.solvers.coordinate_descent.kernels import dual_scale, fenchel_gap, soft_threshold_step
from trueline.solvers.coordinate_descent.source import RowsSource, Terms

Array = NDArray[np.float64]
Integers = NDArray[np.intp]

_W, _Q, _LINEAR, _CURVATURE, _LOWER, _UPPER = range(6)
_MAX_ROUNDS = 100
# A coordinate at zero is visited first when its correlation comes this close to its threshold.
_NEAR = 0.9
# The first rounds of conjugate gradients end at this share of what they began with.
_FIRST = 0.1
# They stop after so many steps; twice as many after a round that gained little.
_CG_STEPS, _CG_MOST = 40, 640
# They end at this share of the gap that is asked for.
_CG_SHARE = 0.5
# Visits to coordinates that are not optimal yet, in each round but the first.
_VISITS = 2
# Rounds without any gain after which rounding is all that is left.
_PATIENCE = 3


class RestrictedColumns:
    """The columns of the working set, in the order of entry, and the coefficients.

    The interface is that of :class:`~trueline.solvers.coordinate_descent.gram.RestrictedGram`, but
    a point comes with its residual.
    """

    def __init__(self, source: RowsSource, sweeps: int) -> None:
        self.scale, self.sweeps, self.active = source.scale, sweeps, 0
        self._residual = residual_of(source.gathered)
        self._order = np.empty(0, dtype=np.intp)
        self._state = np.empty((6, 0))
        self._squares = np.empty(0)

    @property
    def size(self) -> int:
        return len(self._order)

    @property
    def columns(self) -> Integers:
        """Which column of the design stands at each place."""
        return self._order

    @property
    def coef(self) -> Array:
        """The coefficients, in the order of :attr:`columns`."""
        return self._state[_W]

    def extend(self, columns: Integers, squares: Array, w: Array, q: Array) -> None:
        """Let columns enter the working set; their squares are given."""
        fresh = np.zeros((6, len(columns)))
        fresh[_W], fresh[_Q] = w, q
        self._state = np.ascontiguousarray(np.hstack([self._state, fresh]))
        self._order = np.append(self._order, columns)
        self._squares = np.append(self._squares, squares)

    def set_terms(self, terms: Terms) -> None:
        """The penalty and the bounds, one number per column of the design."""
        self._state[_LINEAR : _UPPER + 1] = terms.at(self._order)

    def restore(self, w: Array, q: Array, r: Array) -> None:
        """Go to a point whose correlations and residual were computed from the data."""
        self._state[_W], self._state[_Q] = w, q
        self._residual.reset(r)

    def extrapolate(self, w: Array, r: Array, extrapolation: float) -> None:
        """Go on in the direction in which the solution came from the point (w, r).

        Between changes of the support the path is a straight line. Coefficients that would change
        sign stop at zero.
        """
        self._residual.subtract(Image((r - self._residual.value()) * extrapolation, 0.0))
        at = self._state[_W]
        goal = at + extrapolation * (at - np.pad(w, (0, self.size - len(w))))
        below, above = sign_bounds(at, *self._state[_LOWER:])
        ahead = np.where(at == 0.0, 0.0, np.clip(goal, below, above))
        back = ahead - goal
        if back.any():
            self._residual.subtract(self._residual.image(back))
        self._state[_W] = ahead

    def gap(self) -> float:
        """The duality gap of the restricted problem at the current point."""
        w, q, *terms = self._state
        t = dual_scale(q, *terms)
        gap = fenchel_gap(t, q, w, *terms)
        if t < 1:
            r = self._residual.value()
            gap += 0.5 * (1 - t) ** 2 * float(r @ r)
        return gap

    def solve(self, target: float, is_last: bool = False) -> None:
        """Minimise over the working set, to a gap of at most ``target``."""
        best, limit, idle = math.inf, _CG_STEPS, 0
        for turn in range(_MAX_ROUNDS):
            which = self._violating(target) if turn else self._near()
            for _ in range(_VISITS if turn else 1):
                self._residual.sweep(self._squares, self._state, which)
            self.sweeps += 1
            self._state[_Q] = self._residual.correlate()
            self._step(target, limit, _FIRST if turn == 0 else 0.0)
            gap = self.gap()
            if gap <= target:
                return
            if turn and gap > 0.5 * best:
                limit, idle = min(2 * limit, _CG_MOST), idle + (gap >= best)
                if idle > _PATIENCE:
                    return
            best = min(gap, best)

    def _near(self) -> Integers:
        """The coordinates that are free, not optimal, or near their threshold."""
        w, q, linear, _, lower, upper = self._state
        is_free = (w != 0.0) & (lower < w) & (w < upper)
        is_near = (w == 0.0) & (lower < upper) & (np.abs(q) > _NEAR * linear)
        return np.flatnonzero(is_free | is_near | (forces(*self._state) != 0.0))

    def _violating(self, target: float) -> Integers:
        """The coordinates whose gradient, as a share of l_j, is worth half the gap asked for."""
        w, _, linear, *_ = self._state
        size = float(linear @ np.abs(w))
        slack = 0.5 * target / size if size > 0 else 0.0
        return np.flatnonzero(np.abs(forces(*self._state)) > slack * linear)

    def _step(self, target: float, limit: int, share: float) -> None:
        """Conjugate gradients on the free coordinates, stopped where one reaches zero or a bound.

        They end at about a share of the gap: with r what remains of the gradient, max_j abs(r_j) /
        l_j of sum l_j abs(w_j), and abs(r).abs(w).
        """
        residual, (w, q, linear, curvature, lower, upper) = self._residual, self._state
        diagonal = self._squares + curvature
        free = (w != 0.0) & (lower < w) & (w < upper) & (diagonal > 0.0)
        self.active = int(np.count_nonzero(free))
        inverse, unit = np.zeros(self.size), np.zeros(self.size)
        np.divide(1.0, diagonal, out=inverse, where=free)
        np.divide(1.0, linear, out=unit, where=free & (curvature == 0.0) & (linear > 0.0))
        sizes, descent = np.abs(w), np.where(free, q - curvature * w - linear * np.sign(w), 0.0)
        total = float(linear[free] @ sizes[free])

        def gap(r: Array) -> float:
            r = np.abs(r)
            return float((r * unit).max(initial=0.0)) * total + float(r @ sizes)

        enough = max(share * gap(descent), _CG_SHARE * target)

        def product(p: Array) -> Array:
            out = residual.there_and_back(p)[1]
            out += curvature * p
            out *= free
            return out

        x, _ = conjugate_gradients(
            product,
            descent,
            lambda r: inverse * r,
            most=limit,
            is_enough=lambda r: gap(r) <= enough,
        )
        if not x.any():
            return
        below, above = sign_bounds(w, lower, upper)
        ahead = np.clip(w + x, below, above)
        image = residual.image(ahead - w)
        gain = float(descent @ (ahead - w)) - 0.5 * float(curvature @ (ahead - w) ** 2)
        if (ahead != w + x).any() and 0.5 * residual.square(image) >= gain:
            # No further than to the first that reaches zero or a bound.
            edge = np.where(x > 0, above, below) - w
            first = float(np.divide(edge, x, out=np.full(self.size, np.inf), where=x != 0).min())
            ahead = np.clip(w + first * x, below, above)
            image = residual.image(ahead - w)
        self._state[_W] = ahead
        residual.subtract(image)
        self._state[_Q] = residual.correlate()


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

        The rows of ``state`` are w, q, linear, curvature, lower, upper; w is moved, and q is what
        the step left of it.
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
