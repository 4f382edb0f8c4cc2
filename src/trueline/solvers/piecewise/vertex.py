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

from trueline.solvers.piecewise.exchanges import (
    exchange,
    exchange_row,
    kink_to_leave,
    kinks_met,
)
from trueline.solvers.piecewise.kernels import extend_basis
from trueline.solvers.piecewise.program import Program

__all__ = ["Vertex", "independent_kinks"]

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
        self.rest = program.ell + program.pull(beside)

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
        """Some exchanges; how many, none if the vertex is optimal, -1 if there is no end."""
        program = self.program
        if not program.is_plain:
            return self._exchange_by_rows(rounding)
        return exchange(
            program.A,
            program.lasso,
            program.c,
            self.kinks,
            self.inverse,
            self.rest,
            self.v,
            self.offset,
            self.is_above,
            _SLACK,
            rounding,
            _REFACTOR,
        )

    def _exchange_by_rows(self, rounding: float) -> int:
        """The same, for programs that form their rows when asked."""
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
