r"""The problem restricted to some columns, solved from the columns themselves.

When thousands of coefficients are free their Gram matrix costs more than it saves. Here the state
is the residual r = y - V w. A coordinate step reads and writes one column; on the free
coordinates, signs fixed, conjugate gradients take the step

    (V_F^T V_F + diag(a_F)) step = q_F - l_F sign(w_F) - a_F w_F

without forming the matrix. Sparse columns are centred implicitly: v_j = sqrt(s) (x_j - m_j), and
since v_j.sqrt(s) = 0, all residuals of a centred target are orthogonal to sqrt(s). With
r = p + c sqrt(s),

    v_j.r = sqrt(s) x_j . p + c S m_j,      r - h v_j = p - h sqrt(s) x_j + (c + h m_j) sqrt(s).
"""

from __future__ import annotations

import math

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from trueline._jit import kernel
from trueline.solvers.coordinate.gram import Terms
from trueline.solvers.coordinate.kernels import column_minimiser, dual_scale, fenchel_gap, force
from trueline.solvers.coordinate.source import RowsSource

__all__ = ["RestrictedColumns"]

Array = NDArray[np.float64]
Integers = NDArray[np.intp]

_W, _Q, _LINEAR, _BEND, _LOWER, _UPPER = range(6)
_MAX_ROUNDS = 100
_SWEEPS = 3
_SLACK = 1e-9
# Conjugate gradients stop at this share of the pull they started from, or after so many steps;
# twice as many the next time.
_CG_SHARE, _CG_STEPS, _CG_MOST = 1e-4, 40, 640


@kernel
def _sweep(
    data: Array,
    indices: NDArray[np.int32],
    indptr: NDArray[np.int64],
    squares: Array,
    mean: Array,
    total: float,
    p: Array,
    shift: float,
    state: Array,
    which: Integers,
) -> float:
    """One coordinate step for each of the columns in ``which``; returns the new shift."""
    for k in range(len(which)):
        j = which[k]
        begin, end = indptr[j], indptr[j + 1]
        dot = shift * total * mean[j]
        for e in range(begin, end):
            dot += data[e] * p[np.uint64(indices[e])]
        before = state[0, j]
        after = column_minimiser(
            dot + squares[j] * before,
            state[2, j],
            squares[j] + state[3, j],
            state[4, j],
            state[5, j],
            before,
        )
        change = after - before
        if change != 0.0:
            state[0, j] = after
            shift += change * mean[j]
            for e in range(begin, end):
                p[np.uint64(indices[e])] -= change * data[e]
    return shift


@kernel
def _pulled(state: Array, slack: float, out: Integers) -> int:
    """Write down the coordinates that are free or pulled; how many."""
    count = 0
    for j in range(state.shape[1]):
        w, q, linear, bend, lower, upper = state[:, j]
        is_free = w != 0.0 and lower < w < upper
        if is_free or abs(force(w, q, linear, bend, lower, upper)) > slack * linear:
            out[count] = j
            count += 1
    return count


class RestrictedColumns:
    """Columns that were let in, in the order of entry, and the coefficients.

    The interface is that of :class:`~trueline.solvers.coordinate.gram.RestrictedGram`.
    """

    def __init__(self, source: RowsSource, sweeps: int) -> None:
        self.scale, self.sweeps, self.active = source.scale, sweeps, 0
        self._source = source
        self._order = np.empty(0, dtype=np.intp)
        self._state = np.empty((6, 0))
        self._squares = np.empty(0)
        self._V: sp.csc_array | None = None

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
        """Let further columns in, whose squares are given."""
        fresh = np.zeros((6, len(columns)))
        fresh[_W], fresh[_Q] = w, q
        self._state = np.ascontiguousarray(np.hstack([self._state, fresh]))
        self._order = np.append(self._order, columns)
        self._squares = np.append(self._squares, squares)
        self._V = None

    def set_terms(self, terms: Terms) -> None:
        """The penalty and the bounds, one number per column of the design."""
        self._state[_LINEAR : _UPPER + 1] = terms.at(self._order)

    def restore(self, w: Array, q: Array) -> None:
        """Go to a point whose correlations were computed from the data."""
        self._state[_W], self._state[_Q] = w, q
        self._refresh()

    def _refresh(self) -> None:
        """The residual and the correlations from the coefficients."""
        columns = self._source.gathered
        self._V, self._mean = columns.compressed(), columns.gathered_mean
        p, self._shift = self._V @ self._state[_W], float(self._mean @ self._state[_W])
        self._p = self._source.rooted_target - p
        self._correlate()

    def _correlate(self) -> None:
        assert self._V is not None
        q = self._V.T @ self._p
        self._state[_Q] = q + self._shift * self._source.total * self._mean

    def _square(self) -> float:
        """||r||^2."""
        root = self._source.gathered.root
        r = self._p + self._shift * (1.0 if root is None else root)
        return float(r @ r)

    def gap(self) -> float:
        """The duality gap of the restricted problem at the present point."""
        w, q, *terms = self._state
        t = dual_scale(q, *terms)
        return 0.5 * (1 - t) ** 2 * self._square() + fenchel_gap(t, q, w, *terms)

    def solve(self, target: float) -> None:
        """Minimise over all columns that were let in, to a gap of at most ``target``."""
        if self._V is None:
            self._refresh()
        V, before, limit = self._V, math.inf, _CG_STEPS
        assert V is not None
        out = np.empty(self.size, dtype=np.intp)
        indptr = V.indptr.astype(np.int64)
        for _ in range(_MAX_ROUNDS):
            which = out[: _pulled(self._state, _SLACK, out)].copy()
            self.active = len(which)
            for _ in range(_SWEEPS):
                self._shift = _sweep(
                    V.data,
                    V.indices,
                    indptr,
                    self._squares,
                    self._mean,
                    self._source.total,
                    self._p,
                    self._shift,
                    self._state,
                    which,
                )
            self.sweeps += _SWEEPS
            self._correlate()
            gap = self.gap()
            if gap <= target:
                return
            # Sweeps go on while they gain; else a step of conjugate gradients.
            if gap > 0.8 * before:
                self._step(limit)
                gap, limit = self.gap(), min(2 * limit, _CG_MOST)
                if gap <= target:
                    return
            before = gap

    def _step(self, limit: int) -> None:
        """Conjugate gradients on the free coordinates, stopped where a coefficient would rest."""
        w, q, linear, bend, lower, upper = self._state
        free = np.flatnonzero((w != 0) & (w > lower) & (w < upper))
        if not len(free) or self._V is None:
            return
        at, V, mean = w[free], self._V[:, free], self._mean[free]
        pull = q[free] - linear[free] * np.sign(at) - bend[free] * at
        step, image, lift = self._gradients(V, mean, bend[free], pull, self._squares[free], limit)
        below = np.where(at > 0, np.maximum(lower[free], 0), lower[free])
        above = np.where(at < 0, np.minimum(upper[free], 0), upper[free])
        ahead = np.clip(at + step, below, above)
        if (ahead != at + step).any():
            move = ahead - at
            image, lift = V @ move, float(mean @ move)
            curve = float(image @ image) - self._source.total * lift**2
            change = 0.5 * (curve + float(bend[free] @ move**2)) - float(pull @ move)
            if change >= 0:  # no further than to the first that rests
                with np.errstate(divide="ignore", invalid="ignore"):
                    edge = np.where(step > 0, above, below)
                    t = float(np.where(step != 0, (edge - at) / step, np.inf).min())
                ahead = np.clip(at + t * step, below, above)
                move = ahead - at
                image, lift = V @ move, float(mean @ move)
        w[free] = ahead
        self._p -= image
        self._shift += lift
        self._correlate()

    def _gradients(
        self,
        V: sp.csc_array,
        mean: Array,
        bend: Array,
        pull: Array,
        squares: Array,
        limit: int,
    ) -> tuple[Array, Array, float]:
        """Preconditioned conjugate gradients for H x = pull; x, V x and mean.x.

        H = V^T V - S m m^T + diag(bend), preconditioned by its diagonal (G. H. Golub, C. F. Van
        Loan, "Matrix Computations", 4th ed., algorithm 11.5.1).
        """
        total, back = self._source.total, V.T
        diagonal = squares + bend
        x, r = np.zeros_like(pull), pull.copy()
        image = np.zeros(V.shape[0])
        z = r / diagonal
        direction, rz = z.copy(), float(r @ z)
        enough = _CG_SHARE**2 * rz
        for _ in range(limit):
            along, lift = V @ direction, float(mean @ direction)
            product = back @ along - (total * lift) * mean + bend * direction
            curve = float(direction @ product)
            if not curve > 0:
                break
            t = rz / curve
            x += t * direction
            image += t * along
            r -= t * product
            z = r / diagonal
            last, rz = rz, float(r @ z)
            if rz <= enough:
                break
            direction = z + (rz / last) * direction
        return x, image, float(mean @ x)
