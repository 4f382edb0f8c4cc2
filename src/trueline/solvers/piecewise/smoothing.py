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
from trueline.solvers.piecewise.kernels import ramped, slope_along
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
    _share: Array = field(init=False)

    def __post_init__(self) -> None:
        self.offset = self.program.offsets(self.v)
        self._share = np.ascontiguousarray(np.broadcast_to(self.program.share, self.offset.shape))

    def multipliers(self) -> tuple[Array, Array, int]:
        """pi at this point, how fast it rises there, and how many kinks are on their ramps."""
        return ramped(self._share, self.offset, self.program.c, self.gamma)

    def settle(self) -> bool:
        """Newton steps to the minimum for this gamma; False if there were too many."""
        program = self.program
        part = _ENOUGH if program.is_linear else _ENOUGH_FOR_FACES
        steepest = float(program.c.max(initial=0.0))
        enough = part * steepest * np.sqrt(len(self.v))
        for _ in range(_MOST_STEPS):
            pi, rise, _ = self.multipliers()
            slope = program.slopes(pi, self.v)
            if float(np.abs(slope).max(initial=0.0)) <= enough:
                return True
            H = program.gram(rise)
            # Where nothing bends any step would do: the search finds its length.
            bends = H.diagonal()
            flat = 1e-6 * max(float(bends.max()), steepest / self.gamma)
            if bends.min() < flat:
                H.flat[:: len(H) + 1] += np.where(bends < flat, flat, 0.0)
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

        def slope(t: float) -> float:
            rise = slope_along(self._share, offset, moved, program.c, self.gamma, t)
            return line + t * bend + rise

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
