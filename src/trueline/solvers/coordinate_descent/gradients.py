r"""Conjugate gradients on the free coefficients, with the columns at hand.

    (V_F^T V_F + diag(a_F)) x_F = pull_F = q_F - l_F sign(w_F) - a_F w_F,

preconditioned by the diagonal (G. H. Golub, C. F. Van Loan, "Matrix Computations", 4th ed.,
algorithm 11.5.1). All vectors have one number per column that is in, zero where it is not free, so
that nothing is gathered and spread again between two products with V; what is done besides these
products takes one reading of the vectors.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from trueline.numerics.jit import kernel
from trueline.solvers.coordinate_descent.kernels import room
from trueline.solvers.coordinate_descent.residual import Image, Residual

__all__ = ["Gradients"]

Array = NDArray[np.float64]

_PULL, _REST, _DIRECTION, _X, _DIAGONAL, _IMAGES, _MOVE, _AHEAD = range(8)
# They end at this share of the gap that is asked for.
_SHARE = 0.5


@kernel
def _begin(state: Array, squares: Array, work: Array) -> tuple[int, float, float, float]:
    """How many coordinates are free, sum l_j abs(w_j) over them, r.z and the gap (see ``_gap``)."""
    count, size, rz, worst, rest = 0, 0.0, 0.0, 0.0, 0.0
    for j in range(state.shape[1]):
        w, q, linear, curvature, lower, upper = state[:, j]
        work[:, j] = 0.0
        work[7, j] = w
        diagonal = squares[j] + curvature
        if w == 0.0 or not lower < w < upper or not diagonal > 0.0:
            continue
        pull = q - curvature * w - (linear if w > 0.0 else -linear)
        count += 1
        size += linear * abs(w)
        work[0, j] = work[1, j] = pull
        work[2, j] = pull / diagonal
        work[4, j] = diagonal
        rz += pull * work[2, j]
        if curvature == 0.0 and linear > 0.0:
            worst = max(worst, abs(pull) / linear)
        rest += abs(pull * w)
    return count, size, rz, worst * size + rest


@kernel
def _move(
    state: Array, work: Array, product: Array, along: Array, p: Array, rz: float, size: float
) -> tuple[float, float, float]:
    """One step in the present direction, whose products are given; then the next direction.

    Returns how far the step went, r.z, and about what the gap would be if all moved by x: with r
    what remains of the pull, max_j abs(r_j) / l_j of sum l_j abs(w_j), and abs(r).abs(w). A step of
    zero means that there is no curvature left.
    """
    m = state.shape[1]
    curve = 0.0
    for j in range(m):
        direction = work[2, j]
        curve += direction * (product[j] + state[3, j] * direction)
    if not curve > 0.0:
        return 0.0, rz, 0.0
    t = rz / curve
    after, worst, rest = 0.0, 0.0, 0.0
    for j in range(m):
        work[5, j] += t * product[j]
        diagonal = work[4, j]
        if diagonal == 0.0:
            continue
        direction, linear, curvature = work[2, j], state[2, j], state[3, j]
        work[3, j] += t * direction
        r = work[1, j] - t * (product[j] + curvature * direction)
        work[1, j] = r
        after += r * r / diagonal
        if curvature == 0.0 and linear > 0.0:
            worst = max(worst, abs(r) / linear)
        rest += abs(r * state[0, j])
    ratio = after / rz
    for j in range(m):
        if work[4, j] != 0.0:
            work[2, j] = work[1, j] / work[4, j] + ratio * work[2, j]
    for i in range(len(p)):
        p[i] += t * along[i]
    return t, after, worst * size + rest


@kernel
def _go(state: Array, work: Array, share: float) -> tuple[float, float, float]:
    """Where a share of x leads, without a change of sign and within the bounds.

    Returns the share of x at which the first coordinate comes to rest (infinite if none does), what
    the move gains to first order, and what the curved penalty takes of it, twice.
    """
    first, gain, curve = np.inf, 0.0, 0.0
    for j in range(state.shape[1]):
        if work[4, j] == 0.0:
            continue
        w, step = state[0, j], work[3, j]
        below, above = room(w, state[4, j], state[5, j])
        if step != 0.0:
            first = min(first, ((above if step > 0.0 else below) - w) / step)
        goal = w + share * step
        ahead = min(max(goal, below), above)
        move = share * step if ahead == goal else ahead - w
        work[6, j], work[7, j] = move, ahead
        gain += work[0, j] * move
        curve += state[3, j] * move * move
    return first, gain, curve


class Gradients:
    """A step for the free coordinates of some columns.

    Parameters
    ----------
    state : array of shape (6, m)
        w, q, linear, bend, lower, upper.
    squares : array of shape (m,)

    Attributes
    ----------
    free : int
        How many coordinates are free.
    image : Image
        V x.
    """

    def __init__(self, state: Array, squares: Array) -> None:
        self._state, self._work = state, np.empty((8, state.shape[1]))
        self.free, self._size, self._rz, self._left = _begin(state, squares, self._work)
        self.image = Image(np.zeros(0), 0.0)

    @property
    def images(self) -> Array:
        """V^T V x."""
        return self._work[_IMAGES]

    @property
    def move(self) -> Array:
        """What the last :meth:`go` has changed."""
        return self._work[_MOVE]

    @property
    def left(self) -> Array:
        """What it has left of x: of a whole step, the little that would change signs."""
        return np.asarray(self._work[_X] - self._work[_MOVE])

    @property
    def ahead(self) -> Array:
        """The coefficients to which the last :meth:`go` has led."""
        return self._work[_AHEAD]

    def run(self, residual: Residual, target: float, limit: int, share: float) -> bool:
        """Look for x; whether there is something to go."""
        work, left, rz, lift = self._work, self._left, self._rz, 0.0
        enough = max(share * left, _SHARE * target)
        p = np.zeros(0)
        for _ in range(limit):
            if left <= enough:
                break
            along, product = residual.there_and_back(work[_DIRECTION])
            p = p if len(p) else np.zeros(len(along.p))
            t, rz, left = _move(self._state, work, product, along.p, p, rz, self._size)
            if t == 0:
                break
            lift += t * along.lift
        self.image = Image(p, lift)
        return bool(work[_X].any())

    def go(self, share: float) -> tuple[float, float, float]:
        """Go a share of x, as far as nothing changes sign or passes a bound.

        Returns the share at which the first coordinate comes to rest, what the move gains to first
        order, and sum a_j move_j^2.
        """
        return _go(self._state, self._work, share)
