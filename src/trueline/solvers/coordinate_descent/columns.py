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
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from trueline.numerics.jit import kernel
from trueline.solvers.coordinate_descent.gradients import Gradients
from trueline.solvers.coordinate_descent.kernels import dual_scale, fenchel_gap, force, room
from trueline.solvers.coordinate_descent.residual import Image, residual_of
from trueline.solvers.coordinate_descent.source import RowsSource
from trueline.solvers.coordinate_descent.terms import Terms

__all__ = ["RestrictedColumns"]

Array = NDArray[np.float64]
Integers = NDArray[np.intp]

_W, _Q, _LINEAR, _BEND, _LOWER, _UPPER = range(6)
_MAX_ROUNDS = 100
# A resting coordinate is visited first when its correlation comes this close to its threshold.
_NEAR = 0.9
# The first rounds of conjugate gradients end at this share of what they began with.
_FIRST = 0.1
# They stop after so many steps; twice as many after a round that gained little.
_CG_STEPS, _CG_MOST = 40, 640
# Visits to coordinates that are still pulled, in each round but the first.
_VISITS = 2
# Rounds without any gain after which rounding is all that is left.
_PATIENCE = 3


@kernel
def _near(state: Array, near: float, out: Integers) -> int:
    """Write down the coordinates that are free, pulled or nearly so; how many."""
    count = 0
    for j in range(state.shape[1]):
        w, q, linear, curvature, lower, upper = state[:, j]
        is_free = w != 0.0 and lower < w < upper
        is_near = w == 0.0 and lower < upper and abs(q) > near * linear
        if is_free or is_near or force(w, q, linear, curvature, lower, upper) != 0.0:
            out[count] = j
            count += 1
    return count


@kernel
def _pulled(state: Array, slack: float, out: Integers) -> int:
    """Write down the coordinates that are pulled by more than a share of l_j; how many."""
    count = 0
    for j in range(state.shape[1]):
        w, q, linear, curvature, lower, upper = state[:, j]
        if abs(force(w, q, linear, curvature, lower, upper)) > slack * linear:
            out[count] = j
            count += 1
    return count


@kernel
def _extrapolate(state: Array, before: Array, way: float, back: Array) -> bool:
    """Go on from the coefficients ``before`` to the present ones, by ``way`` as much again.

    Coefficients that would change sign or pass a bound stop there: ``back`` says how much shorter
    their way is. Returns whether there are such.
    """
    is_shorter = False
    for j in range(state.shape[1]):
        at = state[0, j]
        step = (at - before[j] if j < len(before) else at) * way
        below, above = room(at, state[4, j], state[5, j])
        ahead = 0.0 if at == 0.0 else min(max(at + step, below), above)
        back[j] = ahead - (at + step)
        is_shorter |= back[j] != 0.0
        state[0, j] = ahead
    return is_shorter


@kernel
def _scale_and_gap(state: Array) -> tuple[float, float]:
    """The scale t of the dual point, and the gap but for the part of the residual."""
    w, q, linear, curvature, lower, upper = (
        state[0],
        state[1],
        state[2],
        state[3],
        state[4],
        state[5],
    )
    t = dual_scale(q, linear, curvature, lower, upper)
    return t, fenchel_gap(t, q, w, linear, curvature, lower, upper)


class RestrictedColumns:
    """Columns that were let in, in the order of entry, and the coefficients.

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

    @property
    def correlation(self) -> Array:
        """V^T r, in the order of :attr:`columns`."""
        return self._state[_Q]

    @property
    def residual(self) -> Array:
        """r itself, a copy."""
        return self._residual.value().copy()

    def extend(self, columns: Integers, squares: Array, w: Array, q: Array) -> None:
        """Let further columns in, whose squares are given."""
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

    def extrapolate(self, w: Array, r: Array, way: float) -> None:
        """Go on in the direction in which the solution came from the point (w, r).

        Between changes of the support the path is a straight line. Coefficients that would change
        sign stop at zero.
        """
        self._residual.subtract(Image((r - self._residual.value()) * way, 0.0))
        back = np.empty(self.size)
        if _extrapolate(self._state, w, way, back):
            self._residual.subtract(self._residual.image(back))

    def gap(self) -> float:
        """The duality gap of the restricted problem at the present point."""
        t, gap = _scale_and_gap(self._state)
        if t < 1:
            r = self._residual.value()
            gap += 0.5 * (1 - t) ** 2 * float(r @ r)
        return gap

    def solve(self, target: float, is_last: bool = False) -> None:
        """Minimise over all columns that were let in, to a gap of at most ``target``."""
        best, limit, idle = math.inf, _CG_STEPS, 0
        out = np.empty(self.size, dtype=np.intp)
        for turn in range(_MAX_ROUNDS):
            if turn == 0:
                which = out[: _near(self._state, _NEAR, out)]
            else:
                which = out[: _pulled(self._state, self._slack(target), out)]
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

    def _slack(self, target: float) -> float:
        """A pull of this share of l_j is worth as much as the gap that is asked for."""
        w, _, linear, *_ = self._state
        size = float(linear @ np.abs(w))
        return 0.5 * target / size if size > 0 else 0.0

    def _step(self, target: float, limit: int, share: float) -> None:
        """Conjugate gradients on the free coordinates, stopped where a coefficient would rest."""
        state, residual = self._state, self._residual
        gradients = Gradients(state, self._squares)
        self.active = gradients.free
        if not gradients.run(residual, target, limit, share):
            return
        image, is_whole = gradients.image, True
        first, gain, curve = gradients.go(1.0)
        if first < 1:
            is_whole = False
            image = image.without(residual.image(gradients.left))
            if 0.5 * (residual.square(image) + curve) >= gain:
                gradients.go(first)  # no further than to the first that rests
                image = residual.image(gradients.move)
        state[_W] = gradients.ahead
        residual.subtract(image)
        if is_whole:
            state[_Q] -= gradients.images
        else:
            state[_Q] = residual.correlate()
