r"""Sparse rows of losses with kinks and a quadratic penalty, by rounding the kinks less and less.

The rows a_i = (x_i1 / scale_1, ..., x_id / scale_d, 1) of a sparse design are not centred, which
would cost them their zeros, and are kept compressed: scores and sums read what is there, and a Gram
matrix costs the square of a row's number of entries, not of all columns.

With kinks rounded over a width gamma (see below) the minimum
v(gamma) moves along a line as long as the same rows are on their ramps:

    H v'(gamma) = sum over the ramps of c_e (a_e.v - t_e) / gamma^2 a_e,      H the Hessian there.

Following it to the next width leaves little to do for Newton's method, and followed to gamma = 0 it
leads to the point where these rows lie exactly on their kinks (K. Madsen and H. B. Nielsen, "A
finite smoothing algorithm for linear l1 estimation", SIAM J. Optim. 3 (1993) 223-235, end with it).
Multipliers of the rounded kinks are a dual point: their gap to that point tells when to stop.

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
from trueline.design.sparse_columns import column_dot
from trueline.numerics.jit import kernel
from trueline.problem import Problem
from trueline.solution import Solution, Status
from trueline.solvers.base import Monitor
from trueline.solvers.iterative import best_constant, target_gap
from trueline.solvers.piecewise_linear.interior_point.interior import factor_lifted, solve_factored
from trueline.solvers.piecewise_linear.interior_point.program import Program, ramped, step_length
from trueline.wording import counted

Array = NDArray[np.float64]
Indices = NDArray[np.int32]
Integers = NDArray[np.int64]


@kernel
def gram_of_rows(
    data: Array, indices: Indices, indptr: Integers, level: float, weights: Array, out: Array
) -> None:
    """Add sum_i weights_i a_i a_i^T, the last of each row being ``level``; below the diagonal.

    The columns of a row ascend.
    """
    last = out.shape[0] - 1
    for i in range(len(weights)):
        if weights[i] == 0.0:
            continue
        start, stop = indptr[i], indptr[i + 1]
        for at in range(start, stop):
            part, row = weights[i] * data[at], np.uint64(indices[at])
            for other in range(start, at + 1):
                out[row, np.uint64(indices[other])] += part * data[other]
            out[last, row] += part * level
        out[last, last] += weights[i] * level * level


@kernel
def scores_of_rows(
    data: Array, indices: Indices, indptr: Integers, level: float, v: Array, out: Array
) -> None:
    """a_i.v of all rows."""
    last = level * v[-1]
    for i in range(len(out)):
        out[i] = column_dot(data, indices, indptr[i], indptr[i + 1], v) + last


@kernel
def sum_of_rows(
    data: Array, indices: Indices, indptr: Integers, level: float, weights: Array, out: Array
) -> None:
    """Add sum_i weights_i a_i."""
    last = out.shape[0] - 1
    for i in range(len(weights)):
        weight = weights[i]
        if weight == 0.0:
            continue
        for at in range(indptr[i], indptr[i + 1]):
            out[np.uint64(indices[at])] += weight * data[at]
        out[last] += weight * level


@dataclass(frozen=True)
class CompressedProgram(Program):
    """A function of compressed rows with a few kinks each, and no kinks of coefficients.

    Attributes
    ----------
    data, indices, indptr : arrays
        The rows; A of the program has no columns.
    level : float
        The last entry of every row: 1, or 0 without an intercept.
    """

    data: Array
    indices: Indices
    indptr: Integers
    level: float
    _last: dict[str, Array] = field(default_factory=dict, init=False)

    @classmethod
    def of(cls, problem: Problem, number: int, scale: Array) -> CompressedProgram:
        """That of one target of a problem, whose columns are divided by a scale."""
        design, loss = problem.design, problem.loss.of_target(number)
        assert isinstance(design, SparseDesign)
        X, y = design.by_rows, np.ascontiguousarray(problem.target[:, number])
        s = np.ones(len(y)) if problem.weights is None else problem.weights
        first, jumps = loss.first_slopes(y), loss.row_jumps(y)
        before = first + np.cumsum(jumps, axis=0) - jumps
        curvatures = np.broadcast_to(problem.penalty.curvature, (len(scale), problem.n_targets))
        # Without an intercept nothing pulls at the last coefficient, and this keeps it at zero.
        quad = np.append(curvatures[:, number] / scale**2, float(not problem.fit_intercept))
        indices = X.indices.astype(np.int32, copy=False)
        indptr, level = X.indptr.astype(np.int64), float(problem.fit_intercept)
        data = X.data / scale[indices]
        ell = np.zeros(len(quad))
        sum_of_rows(data, indices, indptr, level, first * s, ell)
        return cls(
            A=np.empty((len(y), 0)),
            ell=ell,
            quad=quad,
            lasso=np.empty(0, dtype=np.intp),
            t=(y + np.array(loss.kinks)[:, None]).ravel(),
            c=(jumps * s).ravel(),
            share=np.clip(-before / jumps, 0.0, 1.0).ravel(),
            data=data,
            indices=indices,
            indptr=indptr,
            level=level,
        )

    @property
    def _parts(self) -> tuple[Array, Indices, Integers, float]:
        return self.data, self.indices, self.indptr, self.level

    def scores(self, v: Array) -> Array:
        out = np.empty(len(self.A))
        scores_of_rows(*self._parts, v, out)
        return out if len(out) == len(self.t) else np.tile(out, len(self.t) // len(out))

    def rmatvec(self, weights: Array) -> Array:
        out = np.zeros(len(self.quad))
        sum_of_rows(*self._parts, self.by_row(weights), out)
        return out

    def gram(self, weights: Array) -> Array:
        out = np.zeros((len(self.quad),) * 2)
        gram_of_rows(*self._parts, self.by_row(weights), out)
        out += np.tril(out, -1).T
        out.flat[:: len(out) + 1] += self.quad
        return out

    def slopes(self, multipliers: Array, v: Array) -> Array:
        # From one step to the next most multipliers stay as they are.
        known = self._last
        if known:
            known["sum"] = known["sum"] + self.rmatvec(multipliers - known["multipliers"])
        else:
            known["sum"] = self.rmatvec(multipliers)
        known["multipliers"] = multipliers
        return self.ell + self.quad * v + known["sum"]

    def gap(self, multipliers: Array, v: Array, offset: Array) -> float:
        """How far v is from the optimum, about, by multipliers that nearly balance the level."""
        slope = self.slopes(multipliers, v)
        kinks = self.c @ np.maximum(offset, 0.0) - multipliers @ offset
        level = abs(float(slope[-1])) * (1.0 + abs(float(v[-1])))
        return float(kinks + 0.5 * (slope[:-1] ** 2 / self.quad[:-1]).sum()) + level


# Dense rows are faster where more of the matrix than this is filled, or where it is small.
_FILLED, _SMALL = 0.3, 100_000
# The first width, in units of the margin or of the errors of a constant; what is left of it each
# time; how often at most.
_WIDTH, _SHRINK, _LEVELS = 0.3, 1 / 3, 25
# Steps of a level: the first may take many, and they are cheap on sparse rows.
_MOST_OF_LEVEL = 100
# Of the gap asked for, what the proof may take: it allows for rounding, too. Of that, what slopes
# may take that Newton's method leaves.
_SHARE, _OF_SLOPES = 0.9, 1e-4
# Where margins hold nearly everywhere the tolerance is relative to what is left of the function,
# but for functions below this share of a constant model's.
_LEAST_SHARE = 1e-3


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
    """Whether rows are sparse and many, and all coefficients have squares."""
    n, d = problem.design.shape
    return (
        isinstance(problem.design, SparseDesign)
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
    unit = 1.0
    if "margins" not in problem.loss.capabilities:
        unit = target_gap(problem, 1.0) / (problem.total_weight * problem.n_targets)
    for number in range(problem.n_targets):
        program = CompressedProgram.of(problem, number, scale)
        start = np.append(np.zeros(problem.n_features), levels[number])
        enough = _SHARE * target / problem.n_targets
        one = _follow(program, start, enough, _SHARE * tol, _WIDTH * unit)
        if one is None:
            return None
        found.append(one)
    W = np.stack([one.v[:-1] / scale for one in found], axis=1)
    b = np.array([one.v[-1] * problem.fit_intercept for one in found])
    u = np.stack([_derivatives(problem, number, one) for number, one in enumerate(found)], axis=1)
    certificate = certify_duality(problem, W, b, u, target)
    if not certificate.gap <= target:
        return None
    notes = [
        f"{counted(sum(one.steps for one in found), 'step')} of Newton's method, kinks rounded "
        f"over {_WIDTH * unit:.3g} to {min(one.width for one in found):.3g}"
    ]
    extra = {"interpolated": [one.on_kinks for one in found]}
    return monitor.solution(
        certificate,
        Status.CONVERGED,
        name,
        max(one.steps for one in found),
        notes=notes,
        extra=extra,
    )


def _follow(
    program: CompressedProgram, start: Array, enough: float, tol: float, width: float
) -> _Found | None:
    """From one width to the next until the gap is small enough, beside the function too."""
    constant = float((program.share * program.c) @ program.t)
    # Slopes g_j that are left add g_j^2 / (2 quad_j) to the gap.
    most = np.sqrt(_OF_SLOPES * enough / max(float((0.5 / program.quad[:-1]).sum()), 1e-290))
    smoothed = Smoothed(program, start, width, most=float(most))
    for _ in range(_LEVELS):
        if not smoothed.settle(_MOST_OF_LEVEL):
            return None
        pi, rise, _ = smoothed.multipliers()
        gamma, offset = smoothed.gamma, smoothed.offset
        shift = program.rmatvec(rise * offset) / gamma
        along = solve_factored(factor_lifted(program.gram(rise)), shift)
        moved = program.scores(along)
        end = smoothed.v - gamma * along
        gap = program.gap(pi, end, offset - gamma * moved)
        least = tol * (program.value(end) + constant - gap)
        if gap <= min(enough, max(least, _LEAST_SHARE * enough)):
            on_kinks = np.flatnonzero(program.by_row(rise))
            return _Found(program, end, pi, on_kinks, smoothed.steps, gamma)
        change = gamma * (_SHRINK - 1)
        smoothed.v = smoothed.v + change * along
        smoothed.offset = offset + change * moved
        smoothed.gamma = gamma * _SHRINK
    return None


def _derivatives(problem: Problem, number: int, found: _Found) -> Array:
    """u of every row, from the multipliers."""
    loss, y = problem.loss.of_target(number), problem.target[:, number]
    part = (found.multipliers / found.program.c).reshape(-1, len(y))
    return np.asarray(loss.first_slopes(y) + (loss.row_jumps(y) * part).sum(axis=0))


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

    def settle(self, most: int = _MOST_STEPS) -> bool:
        """Newton steps to the minimum for this gamma; False if there were too many."""
        program = self.program
        part = _ENOUGH if program.is_linear else _ENOUGH_FOR_FACES
        steepest = float(program.c.max(initial=0.0))
        enough = min(part * steepest * np.sqrt(len(self.v)), self.most)
        for _ in range(most):
            pi, rise, _ = self.multipliers()
            slope = program.slopes(pi, self.v)
            if float(np.abs(slope).max(initial=0.0)) <= enough:
                return True
            H = program.gram(rise)
            # Without curvature any step would do: the search finds its length.
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
