r"""Sparse rows with one kink each and a quadratic penalty, by rounding the kinks level by level.

With kinks rounded over a width gamma (see below) the minimum
v(gamma) moves along a line as long as the same rows are on their ramps:

    H v'(gamma) = sum over the ramps of c_e (a_e.v - t_e) / gamma^2 a_e,      H the Hessian there.

Following it to the next width leaves little to do for Newton's method, and followed to gamma = 0 it
leads to the point where these rows lie exactly on their kinks (K. Madsen and H. B. Nielsen, "A
finite smoothing algorithm for linear l1 estimation", SIAM J. Optim. 3 (1993) 223-235, end with it).
Multipliers of the rounded kinks are a dual point: their gap to that point tells when to stop.

From a point near the optimum to the kinks it lies on, by rounding the kinks less and less.

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

from trueline.certificates.duality import certify_duality
from trueline.design import SparseDesign
from trueline.problem import Problem
from trueline.solution import Solution, Status
from trueline.solvers.base import Monitor
from trueline.solvers.iterative import best_constant, target_gap
from trueline.solvers.piecewise_linear.interior_point.compressed import CompressedProgram
from trueline.solvers.piecewise_linear.interior_point.interior import factor_lifted, solve_factored
from trueline.solvers.piecewise_linear.interior_point.kernels import ramped, step_length
from trueline.solvers.piecewise_linear.interior_point.program import Program
from trueline.wording import counted

__all__ = ["Smoothed", "is_for_levels", "solve_by_levels"]

Array = NDArray[np.float64]

# Dense rows are faster where more of the matrix than this is filled, or where it is small.
_FILLED, _SMALL = 0.3, 1_000_000
# The first width, in units of the margin; what is left of it each time; how often at most.
_WIDTH, _SHRINK, _LEVELS = 0.3, 1 / 3, 25
# Of the gap asked for, what the proof may take: it allows for rounding, too. Of that, what slopes
# may take that Newton's method leaves.
_SHARE, _OF_SLOPES = 0.9, 1e-4


@dataclass
class _Found:
    """Of one target: v in terms of scaled columns, multipliers, and the program they are of."""

    program: CompressedProgram
    v: Array
    multipliers: Array
    on_kinks: NDArray[np.intp]
    steps: int
    width: float


def is_for_levels(problem: Problem) -> bool:
    """Whether rows are sparse and many, their losses have one kink, and all coefficients bend."""
    n, d = problem.design.shape
    return (
        isinstance(problem.design, SparseDesign)
        and "margins" in problem.loss.capabilities
        and _SMALL <= n * d
        and problem.design.nonzeros <= _FILLED * n * d
        and n >= d
        and not np.any(problem.penalty.linear)
        and bool(np.all(np.asarray(problem.penalty.curvature) > 0))
    )


def solve_by_levels(problem: Problem, tol: float, monitor: Monitor, name: str) -> Solution | None:
    """The solution, within ``tol`` of the objective of a constant; None if that is not reached."""
    target = target_gap(problem, tol)
    size = np.sqrt(problem.design.column_squares(problem.weights, None) / problem.total_weight)
    scale = np.where(size > 0, size, 1.0)
    levels, found = best_constant(problem), []
    for number in range(problem.n_targets):
        program = CompressedProgram.of(problem, number, scale)
        start = np.append(np.zeros(problem.n_features), levels[number])
        one = _follow(program, start, _SHARE * target / problem.n_targets)
        if one is None:
            return None
        found.append(one)
    W = np.stack([one.v[:-1] / scale for one in found], axis=1)
    b = np.array([one.v[-1] * problem.fit_intercept for one in found])
    u = np.stack([_derivatives(problem, number, one) for number, one in enumerate(found)], axis=1)
    certificate = certify_duality(problem, W, b, u, target)
    if not certificate.gap <= target:
        return None
    return Solution(
        W,
        b,
        Status.CONVERGED,
        name,
        n_iter=max(one.steps for one in found),
        proof=certificate,
        trace=monitor.trace,
        notes=[
            f"{counted(sum(one.steps for one in found), 'step')} of Newton's method, kinks rounded "
            f"over {_WIDTH} to {min(one.width for one in found):.3g}"
        ],
        extra={"interpolated": [one.on_kinks for one in found]},
    )


def _follow(program: CompressedProgram, start: Array, enough: float) -> _Found | None:
    """From one width to the next until the gap is small enough."""
    # Slopes g_j that are left add g_j^2 / (2 quad_j) to the gap.
    most = np.sqrt(_OF_SLOPES * enough / max(float((0.5 / program.quad[:-1]).sum()), 1e-290))
    smoothed = Smoothed(program, start, _WIDTH, most=float(most))
    for _ in range(_LEVELS):
        if not smoothed.settle():
            return None
        pi, rise, _ = smoothed.multipliers()
        gamma, offset = smoothed.gamma, smoothed.offset
        shift = program.rmatvec(rise * offset) / gamma
        along = solve_factored(factor_lifted(program.gram(rise)), shift)
        moved = program.scores(along)
        end = smoothed.v - gamma * along
        if program.gap(pi, end, offset - gamma * moved) <= enough:
            return _Found(program, end, pi, np.flatnonzero(rise), smoothed.steps, gamma)
        change = gamma * (_SHRINK - 1)
        smoothed.v = smoothed.v + change * along
        smoothed.offset = offset + change * moved
        smoothed.gamma = gamma * _SHRINK
    return None


def _derivatives(problem: Problem, number: int, found: _Found) -> Array:
    """u of every row, from the multipliers."""
    loss, y = problem.loss.of_target(number), problem.target[:, number]
    part = found.multipliers / found.program.c
    return np.asarray(loss.first_slopes(y) + loss.row_jumps(y)[0] * part)


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
            curvatures = H.diagonal()
            flat = 1e-6 * max(float(curvatures.max()), steepest / self.gamma)
            if curvatures.min() < flat:
                H.flat[:: len(H) + 1] += np.where(curvatures < flat, flat, 0.0)
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
