r"""From a point near the optimum to the kinks it lies on, by rounding the kinks less and less.

Each kink is replaced by a parabola of width gamma, so that its multiplier is

    pi_e = c_e clip(share_e + (a_e.v - t_e) / gamma, 0, 1)

and rises from 0 to c_e along a ramp instead of jumping. The function is then piecewise quadratic:
Newton's method needs the Gram matrix of the rows on their ramps alone, and ends after finitely many
steps. As gamma shrinks fewer and fewer rows are on their ramps, in the end those of the vertex
(K. Madsen and H. B. Nielsen, "A finite smoothing algorithm for linear l1 estimation", SIAM J.
Optim. 3 (1993) 223-235).
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from trueline.solvers.piecewise.interior import factor_lifted, solve_factored
from trueline.solvers.piecewise.program import Program

__all__ = ["Smoothed"]

Array = NDArray[np.float64]

_MOST_STEPS = 40
_TRIALS = 60
# The slope along a direction counts as zero at this part of where it began.
_FLAT = 0.1
# A level of smoothing is left when the slope has fallen to this part of what one kink can do; a
# face, unlike a vertex, has no exchanges to mend what is left.
_ENOUGH, _ENOUGH_FOR_FACES = 0.5, 1e-3


@dataclass
class Smoothed:
    """A point and how much the kinks are rounded there.

    Attributes
    ----------
    program : Program
    v : array of shape (p,)
    gamma : float
    steps : int
    offset : array
        Of the kinks at v.
    """

    program: Program
    v: Array
    gamma: float
    steps: int = 0
    offset: Array = field(init=False)

    def __post_init__(self) -> None:
        self.offset = self.program.offsets(self.v)

    def shares(self, offset: Array) -> Array:
        """pi / c at some offsets."""
        return np.clip(self.program.share + offset / self.gamma, 0.0, 1.0)

    def ramp(self) -> NDArray[np.intp]:
        """The kinks on their ramps."""
        share = self.shares(self.offset)
        return np.flatnonzero((share > 0) & (share < 1))

    def multipliers(self) -> Array:
        """pi at this point."""
        return self.program.c * self.shares(self.offset)

    def settle(self) -> bool:
        """Newton steps to the minimum for this gamma; False if there were too many."""
        program = self.program
        part = _ENOUGH if program.is_linear else _ENOUGH_FOR_FACES
        enough = part * float(program.c.max(initial=0.0)) * np.sqrt(len(self.v))
        for _ in range(_MOST_STEPS):
            share = self.shares(self.offset)
            slope = program.slopes(program.c * share, self.v)
            if float(np.abs(slope).max(initial=0.0)) <= enough:
                return True
            ramp = (share > 0) & (share < 1)
            H = program.gram(np.where(ramp, program.c / self.gamma, 0.0))
            # Where nothing bends any step would do: the search finds its length.
            flat = 1e-6 * max(float(H.diagonal().max()), float(program.c.max()) / self.gamma)
            H.flat[:: len(H) + 1] += np.where(H.diagonal() < flat, flat, 0.0)
            direction = -solve_factored(factor_lifted(H), slope)
            moved = program.scores(direction)
            length = self._search(direction, moved, float(slope @ direction))
            if not length > 0:
                return False
            self.v = self.v + length * direction
            self.offset = self.offset + length * moved
            self.steps += 1
        return False

    def _search(self, direction: Array, moved: Array, first: float) -> float:
        """Where the function stops falling along a direction, roughly: its slope only rises."""
        program, offset = self.program, self.offset
        line = float(program.ell @ direction + (program.quad * self.v) @ direction)
        bend = float(program.quad @ direction**2)
        weighted = program.c * moved

        def slope(t: float) -> float:
            return line + t * bend + float(weighted @ self.shares(offset + t * moved))

        if not first < 0:
            return 0.0
        low, low_slope, high = 0.0, first, 1.0
        high_slope = slope(high)
        while high_slope < _FLAT * first:
            if high > 1e6:
                return 0.0  # it falls without end
            low, low_slope, high = high, high_slope, 2 * high
            high_slope = slope(high)
        for _ in range(_TRIALS):
            if high_slope <= -_FLAT * first:
                return high
            middle = low + (high - low) * low_slope / (low_slope - high_slope)
            middle = min(max(middle, low + 0.1 * (high - low)), high - 0.1 * (high - low))
            value = slope(middle)
            if abs(value) <= -_FLAT * first:
                return middle
            if value < 0:
                low, low_slope = middle, value
            else:
                high, high_slope = middle, value
        return low or high
