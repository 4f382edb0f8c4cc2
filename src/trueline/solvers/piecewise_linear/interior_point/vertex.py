r"""From a point near the optimum to the optimal vertex, by exchanging kinks.

A vertex v lies on p kinks with independent rows B: B v = t_B. Beside them every kink is on one
side, and its multiplier is 0 or c. The multipliers of the vertex's own kinks follow,

    B^T pi_B = -(ell + sum_{e beside} pi_e a_e),

and v is optimal if 0 <= pi_B <= c_B. If one of them is outside, moving away from its kink along
B dv = +-e_i lowers the function at the rate of the violation; the slope rises by c_e abs(a_e.dv)
at each kink that is passed, and the kink where it turns positive takes the place of i. So one
exchange may pass many kinks (I. Barrodale and F. D. K. Roberts, "An improved algorithm for discrete
l1 linear approximation", SIAM J. Numer. Anal. 10 (1973) 839-848).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from trueline.numerics.jit import kernel
from trueline.solvers.piecewise_linear.interior_point.program import Program, extend_basis

Array = NDArray[np.float64]
Indices = NDArray[np.intp]

# A row whose part outside of the span of others is this small depends on them.
_INDEPENDENT = 1e-7
# Multipliers may leave [0, c] by so much of c: rounding.
_SLACK = 1e-10
_REFACTOR = 40
_EPS = float(np.finfo(np.float64).eps)


def independent_kinks(program: Program, weights: Array) -> Indices | None:
    """p kinks with independent rows, those of large weight first; None if there are not so many."""
    p = len(program.ell)
    order = np.argsort(-weights, kind="stable")
    basis, found = np.zeros((p, p)), np.empty(p, dtype=np.intp)
    count, most = 0, 4 * p + 16
    places = np.empty(most, dtype=np.intp)
    for start in range(0, len(order), most):
        kinks = order[start : start + most]
        taken = extend_basis(program.rows(kinks), _INDEPENDENT, basis, count, places)
        found[count : count + taken] = kinks[places[:taken]]
        count += taken
        if count == p:
            break
    return found if count == p else None


class Vertex:
    """A vertex, the side of every kink, and exchanges until it is optimal.

    Parameters
    ----------
    program : Program
        Without quadratic terms.
    kinks : array of int of shape (p,)
        Those that the vertex lies on.
    near : array of shape (p,)
        A point near the vertex: it tells the side of kinks that the vertex touches by chance.
    """

    def __init__(self, program: Program, kinks: Indices, near: Array) -> None:
        self.program, self.kinks = program, kinks.copy()
        self._factor()
        noise = 1e-12 * (1.0 + np.abs(program.t))
        side = np.where(np.abs(self.offset) > noise, self.offset, program.offsets(near))
        self.is_above = side > 0
        self._weigh_sides()
        self.exchanges = 0

    def _factor(self) -> None:
        """Everything from the kinks and sides alone, free of the rounding of exchanges."""
        program = self.program
        rows = program.rows(self.kinks)
        self.inverse = np.ascontiguousarray(np.linalg.inv(rows))
        t = program.t[self.kinks]
        v = self.inverse @ t
        self.v = v + self.inverse @ (t - rows @ v)
        self.v[program.at_zero(self.kinks)] = 0.0  # exactly
        self.offset = program.offsets(self.v)

    def _weigh_sides(self) -> None:
        """The slope of everything but the vertex's own kinks."""
        program = self.program
        beside = np.where(self.is_above, program.c, 0.0)
        beside[self.kinks] = 0.0
        self.rest = program.ell + program.rmatvec(beside)

    def multipliers(self) -> Array:
        """Of all kinks; those of the vertex's own may be outside of [0, c]."""
        program = self.program
        pi = np.where(self.is_above, program.c, 0.0)
        own = self._own_multipliers()
        # One round of refinement: the slope should vanish to the last bits.
        own -= self.inverse.T @ (self.rest + program.rows(self.kinks).T @ own)
        pi[self.kinks] = own
        return pi

    def _own_multipliers(self) -> Array:
        return -(self.inverse.T @ self.rest)

    def improve(self, most: int) -> bool:
        """Exchange until optimal; False if that took more than so many exchanges."""
        program = self.program
        rounding = 64 * _EPS * float(np.abs(program.ell).max(initial=0.0))
        while self.exchanges <= most:
            done = self._exchange(rounding)
            if done < 0:
                raise FloatingPointError("the function falls without end along an edge.")
            if done == 0:
                return True
            self.exchanges += done
            # Decided on what rounding has touched: look again.
            self._factor()
            self._weigh_sides()
        return False

    def _exchange(self, rounding: float) -> int:
        """Some exchanges; how many, none if the vertex is optimal, -1 if there is no end.

        Leave a kink of the vertex, pass as many as pay, stay on the last, until nothing is gained.
        """
        program, c = self.program, self.program.c
        for count in range(_REFACTOR):
            leaving, upward, excess = kink_to_leave(
                self.inverse, self.rest, c[self.kinks], _SLACK, rounding
            )
            if leaving < 0:
                return count
            own = self.kinks[leaving]
            direction = self.inverse[:, leaving].copy() if upward else -self.inverse[:, leaving]
            moved = program.scores(direction)
            moved[self.kinks] = 0.0
            passed, entering, step = kinks_met(self.offset, moved, self.is_above, c, excess)
            if entering < 0:
                return -1
            rise = np.where(self.is_above[passed], -c[passed], c[passed])
            self.rest += rise @ program.rows(passed)
            self.is_above[passed] = ~self.is_above[passed]
            self.is_above[own] = upward
            if upward:
                self.rest += c[own] * program.row(own)
            row = program.row(entering)
            if self.is_above[entering]:
                self.rest -= c[entering] * row
            exchange_row(self.inverse, leaving, row)
            self.kinks[leaving] = entering
            self.v += step * direction
            self.offset += step * moved
            self.offset[own] = step if upward else -step
            self.offset[entering] = 0.0
        return _REFACTOR


Flags = NDArray[np.bool_]

_UNMOVED = 1e-12


@kernel(reassociate=True)
def kink_to_leave(
    inverse: Array, rest: Array, c: Array, slack: float, rounding: float
) -> tuple[int, bool, float]:
    """The own kink of a vertex along whose edge the function falls fastest.

    Its number (-1 if none: the vertex is optimal), whether the way leads upward, and the rate at
    which the function falls for each unit of the kink's offset.

    Parameters
    ----------
    inverse : array of shape (p, p)
        Of the rows of the vertex's own kinks.
    rest : array of shape (p,)
        The slope of everything but these.
    c : array of shape (p,)
        Of these kinks.
    slack, rounding : float
        A multiplier may leave [0, c] by slack times c, and by rounding.
    """
    p = len(rest)
    own, squares = np.zeros(p), np.zeros(p)
    for i in range(p):
        for j in range(p):
            own[j] -= inverse[i, j] * rest[i]
            squares[j] += inverse[i, j] * inverse[i, j]
    best, fastest, upward, found = -1, 0.0, False, 0.0
    for j in range(p):
        beyond = own[j] - c[j]
        excess = max(-own[j], beyond)
        if excess > slack * c[j] + rounding:
            # In units of the edge: how fast the function falls per unit of length.
            rate = excess / np.sqrt(squares[j])
            if best < 0 or rate > fastest:
                best, fastest, upward, found = j, rate, beyond == excess, excess
    return best, upward, found


@kernel
def exchange_row(inverse: Array, leaving: int, row: Array) -> None:
    """The inverse of B after its row number ``leaving`` became another one, in place."""
    p = len(row)
    along = np.zeros(p)
    for i in range(p):
        for j in range(p):
            along[j] += row[i] * inverse[i, j]
    turn = along[leaving]
    along[leaving] -= 1.0
    for i in range(p):
        factor = inverse[i, leaving] / turn
        for j in range(p):
            inverse[i, j] -= factor * along[j]


@kernel
def kinks_met(
    offset: Array, moved: Array, is_above: Flags, c: Array, fall: float
) -> tuple[Indices, int, float]:
    """The kinks passed, the one where the slope turns positive (-1 if none is met), and how far.

    The function falls at the rate ``fall`` at first, and by c_e abs(moved_e) less after each kink:
    a weighted median of the distances, found by splitting those that are left about one of them,
    as quickselect does.
    """
    index = np.empty(len(offset), dtype=np.intp)
    reach = np.empty(len(offset))
    count, largest = 0, 0.0
    for e in range(len(offset)):
        largest = max(largest, abs(moved[e]))
    # Rows like one of the vertex's own move by rounding alone: on both of them there is no vertex.
    least = _UNMOVED * largest
    for e in range(len(offset)):
        if (moved[e] < -least) if is_above[e] else (moved[e] > least):
            index[count] = e
            reach[count] = max(-offset[e] / moved[e], 0.0)
            count += 1
    if count == 0:
        return index[:0], -1, 0.0
    low, high = 0, count
    while True:
        pivot = _middle(reach[low], reach[(low + high) // 2], reach[high - 1])
        less, more, k = low, high, low  # nearer ones are moved before less, farther from more on
        before, there = 0.0, 0.0
        while k < more:
            gain = c[index[k]] * abs(moved[index[k]])
            if reach[k] < pivot:
                before += gain
                _swap(index, reach, less, k)
                less += 1
                k += 1
            elif reach[k] > pivot:
                more -= 1
                _swap(index, reach, more, k)
            else:
                there += gain
                k += 1
        if before >= fall and less > low:
            high = less
        elif before + there >= fall or more == high == count:
            fall -= before
            last = less
            while last < more - 1:
                fall -= c[index[last]] * abs(moved[index[last]])
                if fall <= 0.0:
                    break
                last += 1
            return index[:last], index[last], pivot
        else:
            fall -= before + there
            low = more
        if low == high:  # rounding of the sums: the farthest of those before
            return index[: low - 1], index[low - 1], reach[low - 1]


@kernel
def _middle(a: float, b: float, c: float) -> float:
    return max(min(a, b), min(max(a, b), c))


@kernel
def _swap(index: Indices, reach: Array, i: int, k: int) -> None:
    index[i], index[k] = index[k], index[i]
    reach[i], reach[k] = reach[k], reach[i]
