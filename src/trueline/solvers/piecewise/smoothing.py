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
from trueline.solvers.piecewise.kernels import ramped, step_length
from trueline.solvers.piecewise.program import Program

__all__ = ["Smoothed"]

Array = NDArray[np.float64]

_MOST_STEPS = 40
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
    most : float
        The slope that may be left at most, where more than a level of smoothing is asked for.
    offset : array
        Of the kinks at v.
    """

    program: Program
    v: Array
    gamma: float
    steps: int = 0
    most: float = np.inf
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
        enough = min(part * steepest * np.sqrt(len(self.v)), self.most)
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
            length = step_length(
                self._share,
                self.offset,
                moved,
                program.c,
                self.gamma,
                float((program.ell + program.quad * self.v) @ direction),
                float(program.quad @ direction**2),
                float(slope @ direction),
            )
            if not length > 0:
                return False
            self.v = self.v + length * direction
            self.offset = self.offset + length * moved
            self.steps += 1
        return False
