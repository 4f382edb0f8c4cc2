r"""The problem restricted to some columns, solved from their Gram matrix.

Coordinate descent finds out which coefficients are free and what sign they have; the block of the
Gram matrix that belongs to them then leads to the solution itself:

    (G_FF + diag(a_F)) step_F = q_F - l_F sign(w_F) - a_F w_F.

If no sign changes on the way and no bound is passed, the step ends at the exact minimum for this
set of free coordinates, to rounding. Otherwise those that would change sign stop at zero, if this
lowers the objective, and the sweeps go on (an active-set method with projected Newton steps; D. P.
Bertsekas, "Projected Newton methods for optimization problems with simple constraints", SIAM J.
Control Optim. 20 (1982) 221-246).
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.blas import dtrsv
from scipy.linalg.lapack import dpotrf, dpotrs

from trueline.solvers.coordinate_descent.kernels import (
    activate,
    deactivate,
    descend,
    dual_scale,
    fenchel_gap,
    partition,
)
from trueline.solvers.coordinate_descent.source import Terms

Array = NDArray[np.float64]
Integers = NDArray[np.intp]

_EPS = float(np.finfo(np.float64).eps)
_W, _Q, _LINEAR, _CURVATURE, _LOWER, _UPPER, _C = range(7)
# Further steps to the minimum that reduce rounding, and what rounding leaves of a correlation.
_POLISHES = 20
_ROUNDING = 1e-18
_MAX_ROUNDS = 1000
# A coordinate at zero or at a bound is freed when its descent direction exceeds rounding.
_SLACK = 1e-10
_FLOOR = 1e-13
# So few free coordinates are always brought to their exact minimum: it costs next to nothing.
_FEW, _FEW_LAST = 128, 1000
# The steps of a projected Newton search; the objective must fall by this share of the prediction.
_STEPS = (1.0, 0.5, 0.25, 0.125)
_SHARE = 1e-2


# The cost of a solve in sweeps, and how many times faster factorisations are per operation.
_SOLVE, _FASTER = 4.0, 13.0


def sign_bounds(w: Array, lower: Array, upper: Array) -> tuple[Array, Array]:
    """How far coefficients may go until they change sign or pass a bound."""
    below = np.where(w > 0, np.maximum(lower, 0), lower)
    return below, np.where(w < 0, np.minimum(upper, 0), upper)


def forces(
    w: Array, q: Array, linear: Array, curvature: Array, lower: Array, upper: Array
) -> Array:
    """The descent of each coordinate, zero where it is optimal; as in the kernel ``force``."""
    up = q - curvature * w - np.where(w >= 0, linear, -linear)
    down = q - curvature * w - np.where(w > 0, linear, -linear)
    fall = np.where((down < 0) & (w > lower), down, 0.0)
    return np.where((up > 0) & (w < upper), up, fall)


class FreeBlock:
    """The Cholesky factor of the coordinates that were free when it was last needed."""

    def __init__(self) -> None:
        self._free: Integers = np.empty(0, dtype=np.intp)
        self._curvature: Array = np.empty(0)
        self._factor: Array = np.empty((0, 0))
        #: Of a singular block: x with (G_FF + diag(curvature)) x = 0, to rounding.
        self.dependence: Array = np.empty(0)

    def solve(self, G: Array, free: Integers, curvature: Array, right: Array) -> Array | None:
        """x with (G_FF + diag(curvature)) x = right, F the first coordinates; None if singular.

        ``free`` names the coordinate at each of the first places of G.
        """
        if not self._is_known(free, curvature) and not self._refactor(G, free, curvature):
            return None
        x: Array = dpotrs(self._factor, right, lower=1)[0]
        return x

    def cost(self, free: Integers, curvature: Array) -> float:
        """What a solve would cost, in sweeps over the free coordinates.

        Factorisations run some thirteen times faster per operation.
        """
        return _SOLVE + (0 if self._is_known(free, curvature) else len(free) / (3 * _FASTER))

    def _is_known(self, free: Integers, curvature: Array) -> bool:
        is_same = np.array_equal(free, self._free)
        return is_same and np.array_equal(curvature, self._curvature)

    def _refactor(self, G: Array, free: Integers, curvature: Array) -> bool:
        a = len(free)
        self._free = free[:0]
        H = np.array(G[:a, :a].T, order="F")  # symmetric: the transpose is contiguous as it is
        np.einsum("ii->i", H)[:] += curvature
        diagonal = H.diagonal().copy()
        L, info = dpotrf(H, lower=1, clean=0, overwrite_a=1)
        # A pivot that lost nearly all of its column is rounding: the columns are dependent.
        good = info - 1 if info else a
        lost = L.diagonal()[:good] ** 2 <= 8 * a * _EPS * diagonal[:good]
        first = int(np.argmax(lost)) if lost.any() else good
        if first < a:
            self.dependence = np.zeros(a)
            self.dependence[first] = 1.0
            if first:
                half = dtrsv(L[:first, :first], G[:first, first], lower=1)
                self.dependence[:first] = -dtrsv(L[:first, :first], half, lower=1, trans=1)
            return False
        self._factor, self._free, self._curvature = L, free.copy(), curvature.copy()
        return True


class RestrictedGram:
    """The columns of the working set, their Gram matrix and the coefficients.

    Attributes
    ----------
    size, active : int
        How many columns there are; the first ``active`` are free.
    sweeps : int
        How often coordinate descent went through the free coordinates.
    """

    def __init__(self, scale: float) -> None:
        self.scale = scale  # half the squared norm of the target
        self.size = self.active = self.sweeps = 0
        self._order = np.empty(0, dtype=np.intp)
        self._G = np.empty((0, 0))
        self._state = np.empty((7, 0))
        self._block = FreeBlock()

    def _grow(self, size: int) -> None:
        if size <= len(self._G):
            return
        room = max(size, min(2 * len(self._G), len(self._G) + 512), 64)
        G, state = np.empty((room, room)), np.zeros((7, room))
        m = self.size
        G[:m, :m], state[:, :m] = self._G[:m, :m], self._state[:, :m]
        order = np.zeros(room, dtype=np.intp)
        order[:m] = self._order[:m]
        self._G, self._state, self._order = G, state, order

    def extend(self, columns: Integers, block: Array, w: Array, q: Array) -> None:
        """Let columns enter the working set.

        ``block`` has shape (new, size + new): their products with the columns that are
        there, in their order, and among themselves; q are their correlations with the residual.
        """
        m, stop = self.size, self.size + len(columns)
        self._grow(stop)
        self._G[m:stop, :stop] = block
        self._G[:m, m:stop] = block[:, :m].T
        self._state[_W, m:stop], self._state[_Q, m:stop] = w, q
        self._order[m:stop] = columns
        self.size = stop
        self._state[_C, m:stop] = q + block @ self._state[_W, :stop]

    @property
    def columns(self) -> Integers:
        """Which column of the design stands at each place."""
        return self._order[: self.size]

    @property
    def coef(self) -> Array:
        """The coefficients, in the order of :attr:`columns`."""
        return self._state[_W, : self.size]

    @property
    def squares(self) -> Array:
        """The squared lengths of the columns, in the order of :attr:`columns`."""
        return self._G.diagonal()[: self.size]

    def restore(self, w: Array, q: Array) -> None:
        """Go to a point whose correlations were computed from the data."""
        self._state[_W, : self.size], self._state[_Q, : self.size] = w, q
        self.active = partition(self._G, self._state, self._order, self.size)

    def set_terms(self, terms: Terms) -> None:
        """The penalty and the bounds, one number per column of the design."""
        self._state[_LINEAR : _UPPER + 1, : self.size] = terms.at(self.columns)

    def gap(self) -> float:
        """The duality gap of the restricted problem at the current point."""
        w, q, *terms, c = self._state[:, : self.size]
        t = dual_scale(q, *terms)
        square = max(2 * self.scale - float((c + q) @ w), 0.0)
        return 0.5 * (1 - t) ** 2 * square + fenchel_gap(t, q, w, *terms)

    def solve(self, target: float, is_last: bool = False) -> None:
        """Minimise over the working set, to a gap of at most ``target``.

        The last answer, which nothing comes after, is brought to its exact minimum also where that
        costs a little more than the gap asks for: its coefficients have all their digits then.
        """
        few = _FEW_LAST if is_last else _FEW
        G, state, order = self._G, self._state, self._order
        floor = _FLOOR * float(np.abs(state[_C, : self.size]).max(initial=0.0))
        gap, sweeps = math.inf, 1
        for _ in range(_MAX_ROUNDS):
            self.active = activate(G, state, order, self.size, self.active, _SLACK, floor)
            start = state[_W, : self.active].copy()
            descend(G, state, self.active, sweeps, 0.0)
            self.sweeps += sweeps
            self._update_rest(start)
            before, gap = gap, self.gap()
            if self.active > few:
                if gap <= target:
                    return
                more = self._sweeps_left(before, gap, target, sweeps)
                a = self.active
                if more <= self._block.cost(order[:a], state[_CURVATURE, :a]):
                    sweeps = more
                    continue
            self._step_to_minimum()
            if not self._violates(floor):
                return
            sweeps = 1

    def _sweeps_left(self, before: float, gap: float, target: float, sweeps: int) -> int:
        """How many further sweeps would reach the target at the current rate."""
        if not math.isfinite(before):
            return 2
        if gap >= 0.9 * before:
            return 1 << 30
        return math.ceil(math.log(gap / target) / math.log(before / gap) * sweeps)

    def _update_rest(self, start: Array) -> None:
        """After moves of the free coordinates: q of the others, and which are fixed now."""
        a, m, state = self.active, self.size, self._state
        state[_Q, a:m] -= self._G[a:m, :a] @ (state[_W, :a] - start)
        self.active = deactivate(self._G, state, self._order, m, a)

    def _violates(self, floor: float) -> bool:
        """Whether some fixed coordinate violates its optimality condition."""
        w, q, linear, *rest, _ = self._state[:, self.active : self.size]
        return bool((np.abs(forces(w, q, linear, *rest)) > _SLACK * linear + floor).any())

    def _step_to_minimum(self) -> None:
        """Go to the minimum over the free coordinates, of which some may reach zero or a bound.

        Each round but the last leaves fewer of them free.
        """
        last = math.inf
        # Without a penalty the gradient at the minimum is zero, up to rounding of its terms.
        nothing = _ROUNDING * float(np.abs(self._state[_C, : self.active]).max(initial=0.0))
        for _ in range(2 * self.active + _POLISHES):
            a = self.active
            if a == 0:
                return
            w, q, linear, curvature, lower, upper, _ = self._state[:, :a]
            descent = q - linear * np.sign(w) - curvature * w
            step = self._block.solve(self._G, self._order[:a], curvature, descent)
            if step is None:
                self._drop_dependent()
                continue
            below, above = sign_bounds(w, lower, upper)
            start, ahead = w.copy(), w + step
            if ((ahead < below) | (ahead > above)).any():
                self._search(step, descent, below, above)
                self._update_rest(start)
                last = math.inf
                continue
            w[:] = ahead
            q -= self._G[:a, :a] @ step
            self._update_rest(start)
            # What rounding left of the gradient is worth another step as long as that helps.
            left = float(np.abs(q - linear * np.sign(w) - curvature * w).max())
            if left <= max(_SLACK * float(np.abs(linear).min()), nothing):
                return
            if not left <= 0.1 * last:
                return
            last = left

    def _drop_dependent(self) -> None:
        """Of dependent columns one can go: move along the dependence until a coefficient is
        zero or at a bound.

        The fit does not change on the way, and the penalty is linear there. Where it is flat, the
        last column of the design that takes part moves towards zero.
        """
        a = self.active
        w, q, linear = self._state[_W, :a], self._state[_Q, :a], self._state[_LINEAR, :a]
        z = self._block.dependence
        z = np.where(np.abs(z) <= 1e-9 * np.abs(z).max(), 0.0, z)
        start, moving = w.copy(), np.flatnonzero(z)
        slope = float((linear * np.sign(w)) @ z)
        if abs(slope) <= 1e-9 * float(linear @ np.abs(z)):
            last = moving[np.argmax(self._order[moving])]
            slope = w[last] * z[last]
        z = -z if slope > 0 else z
        below, above = sign_bounds(w, *self._state[_LOWER : _UPPER + 1, :a])
        edge = np.where(z > 0, above, below)[moving]
        reach = (edge - w[moving]) / z[moving]
        t = float(reach.min())
        if not np.isfinite(t):  # nothing in the way: the penalty does not see these columns
            t, edge = 0.0, w[moving]
            reach = np.where(np.arange(len(moving)) == len(moving) - 1, 0.0, np.inf)
            edge[-1] = 0.0
        w += t * z
        w[moving[reach <= t]] = edge[reach <= t]
        q -= self._G[:a, :a] @ (w - start)
        self._update_rest(start)

    def _search(self, step: Array, descent: Array, below: Array, above: Array) -> None:
        """Move along the step as far as it lowers the objective; some coefficient is fixed.

        All that would change sign or pass a bound stop there, if that lowers the objective enough;
        else only the first of them does.
        """
        a = self.active
        w, q, curvature = self._state[_W, :a], self._state[_Q, :a], self._state[_CURVATURE, :a]
        slope = float(descent @ step)
        edge = np.where(step > 0, above, below)
        with np.errstate(divide="ignore", invalid="ignore"):
            reach = np.where(step != 0, (edge - w) / step, np.inf)
        first = float(reach.min())
        for t in (t for t in _STEPS if t > first):
            move = np.clip(w + t * step, below, above) - w
            image = self._G[:a, :a] @ move
            # No sign changes, so that the objective is quadratic on the way.
            change = 0.5 * move @ (image + curvature * move) - descent @ move
            if change < -_SHARE * t * slope:
                w += move
                q -= image
                return
        start = w.copy()
        w += first * step
        w[reach <= first] = edge[reach <= first]
        q -= self._G[:a, :a] @ (w - start)
