r"""A primal-dual interior-point method for functions made of kinks, and the exact minimum after it.

Each kink's offset is split into what is above and below, a_e.v - t_e = above_e - below_e, both
positive; its multiplier pi_e has room pi_e above 0 and c_e - pi_e below c_e. The optimum has
pi below = 0 and (c - pi) above = 0; on the central path both products equal mu. One Newton step
towards targets m (of pi below) and m' (of (c - pi) above) is

    theta = 1 / (above / (c - pi) + below / pi)
    (A^T theta A + quad) dv = -slope - A^T theta (offset + m / pi - m' / (c - pi))
    dpi    = theta (A dv + offset + m / pi - m' / (c - pi))
    dbelow = m / pi - below - below / pi dpi
    dabove = m' / (c - pi) - above + above / (c - pi) dpi

one weighted Gram matrix for each step. For quantile regression this is the Frisch-Newton algorithm
of S. Portnoy and R. Koenker, "The Gaussian hare and the Laplacian tortoise", Statist. Sci. 12
(1997) 279-300; predictor and corrector as in S. Mehrotra, "On the implementation of a primal-dual
interior point method", SIAM J. Optim. 2 (1992) 575-601.

The last step with a quadratic term: the equations of the face that holds the optimum.

Near the optimum the multipliers tell which kinks the answer lies on (set h) and on which side
it is of all the others. On that face the function is quadratic, and its minimum solves

    quad v + ell + sum_{e beside} pi_e a_e + A_h^T pi_h = 0,      A_h v = t_h.

It is the answer if 0 <= pi_h <= c_h and no kink beside has changed its side.

An interior point tells which kinks the answer lies on; the vertex (or, with a quadratic term, the
face) is then worked out exactly. With many rows only those near their kinks are treated one by
one: see :mod:`trueline.solvers.piecewise_linear.interior_point.targets`.

Losses with one kink per row, at its target: is the best constant the answer?

Let b be the best constant and u_i the slope of the loss of row i there; rows with y_i = b may have
any slope between those on both sides, and take what makes sum_i s_i u_i = 0. Then w = 0 is optimal
if |sum_i s_i u_i x_ij| is at most the strength of the penalty of each absolute value |w_j|: the
slopes are a dual point with the same value. One product with the data tells.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack

from trueline.certificates.duality import certify_dual
from trueline.numerics.jit import kernel
from trueline.problem import Problem
from trueline.solution import Solution, Status
from trueline.solvers.base import Monitor
from trueline.solvers.piecewise_linear.interior_point.program import Program
from trueline.solvers.piecewise_linear.interior_point.vertex import Vertex, independent_kinks

Array = NDArray[np.float64]

# How much of the way to the nearest wall a step goes.
_SHARE = 0.9995
# Distance from the walls at the start, relative to a typical offset.
_MARGIN = 0.1
_LEAST_MARGIN = 1e-3


@dataclass
class Interior:
    """A point inside: coefficients, multipliers, and the two parts of every offset."""

    v: Array
    multipliers: Array
    above: Array
    below: Array
    steps: int = 0


class InteriorPoint:
    """The method, one step at a time.

    Parameters
    ----------
    program : Program
    v : array of shape (p,)
        Where to start.
    """

    def __init__(self, program: Program, v: Array) -> None:
        self.program = program
        self._known: Array | None = None
        offset = program.offsets(v)
        margin = max(_MARGIN * float(np.abs(offset).mean()) if len(offset) else 0.0, 1e-150)
        if not program.is_linear and len(offset):
            # Least squares with more columns than rows fit exactly: as a start, at the very
            # boundary, with a penalty that pulls from there.
            spread = float(np.abs(program.t - program.t.mean()).mean())
            margin = max(margin, _LEAST_MARGIN * spread)
        inside = (0 < program.share) & (program.share < 1)
        self.at = Interior(
            v=v.copy(),
            # Where the lines of the rows are cancelled nothing pulls: the slope vanishes.
            multipliers=np.where(inside, program.share, 0.5) * program.c,
            above=np.maximum(offset, 0.0) + margin,
            below=np.maximum(-offset, 0.0) + margin,
        )

    @property
    def complementarity(self) -> float:
        """sum pi below + (c - pi) above: the gap, once the slope vanishes."""
        at, c = self.at, self.program.c
        return float(at.multipliers @ at.below + (c - at.multipliers) @ at.above)

    def gap(self) -> float:
        """How far the function is from its optimum, up to the slope that is left."""
        at = self.at
        return self.complementarity + float(np.abs(self._slope()) @ np.abs(at.v))

    def _slope(self) -> Array:
        """The slope at the present point, which the gap and the next step ask for."""
        if self._known is None:
            self._known = self.program.slopes(self.at.multipliers, self.at.v)
        return self._known

    @np.errstate(divide="ignore", invalid="ignore", over="ignore")
    def step(self) -> None:
        """One predictor and corrector step."""
        program, at = self.program, self.at
        kinks = at.multipliers, program.c, at.above, at.below
        theta, toward, back, pushed = weigh_kinks(*kinks)
        factor = factor_lifted(program.gram(theta))
        slope = self._slope()

        def toward_optimum() -> Array:
            return -solve_factored(factor, slope + program.rmatvec(theta * pushed))

        changes = theta, toward, back, pushed
        aims = predict(*kinks, *changes, program.scores(toward_optimum()), program.is_linear)
        dv = toward_optimum()
        _, primal, is_finite = correct(
            *kinks, *changes, program.scores(dv), *aims, _SHARE, program.is_linear
        )
        if not (is_finite and np.isfinite(dv).all()):
            raise FloatingPointError("the step is not finite: this is where rounding ends it.")
        at.v = at.v + primal * dv
        at.steps += 1
        self._known = None


@kernel
def weigh_kinks(
    pi: Array, c: Array, above: Array, below: Array
) -> tuple[Array, Array, Array, Array]:
    """theta, below / pi, above / (c - pi), and the offsets, which the predictor pushes back."""
    m = len(pi)
    theta, toward, back, pushed = np.empty(m), np.empty(m), np.empty(m), np.empty(m)
    for e in range(m):
        toward[e], back[e] = below[e] / pi[e], above[e] / (c[e] - pi[e])
        theta[e] = 1.0 / (toward[e] + back[e])
        pushed[e] = above[e] - below[e]
    return theta, toward, back, pushed


@kernel
def predict(
    pi: Array,
    c: Array,
    above: Array,
    below: Array,
    theta: Array,
    toward: Array,
    back: Array,
    pushed: Array,
    scores: Array,
    is_linear: bool,
) -> tuple[Array, Array]:
    """m / pi and m' / (c - pi) of the corrector, which changes what is ``pushed``.

    ``scores`` are A dv of the predictor, for which m = m' = 0.
    """
    m = len(pi)
    low, high = np.empty(m), np.empty(m)
    fall = worst_pi = worst_offset = now = 0.0
    for e in range(m):
        dpi = theta[e] * (scores[e] + pushed[e])
        low[e], high[e] = -below[e] - toward[e] * dpi, -above[e] + back[e] * dpi
        worst_pi = min(worst_pi, min(dpi / pi[e], -dpi / (c[e] - pi[e])))
        worst_offset = min(worst_offset, min(low[e] / below[e], high[e] / above[e]))
        now += pi[e] * below[e] + (c[e] - pi[e]) * above[e]
    dual = min(1.0, -1.0 / worst_pi) if worst_pi < 0.0 else 1.0
    primal = min(1.0, -1.0 / worst_offset) if worst_offset < 0.0 else 1.0
    if not is_linear:
        primal = dual = min(primal, dual)
    for e in range(m):
        dpi = theta[e] * (scores[e] + pushed[e])
        fall += (pi[e] + dual * dpi) * (below[e] + primal * low[e])
        fall += (c[e] - pi[e] - dual * dpi) * (above[e] + primal * high[e])
    mu = now / (2 * m) * (max(fall, 0.0) / now) ** 3 if now > 0.0 else 0.0
    for e in range(m):
        dpi = theta[e] * (scores[e] + pushed[e])
        low[e] = (mu - dpi * low[e]) / pi[e]
        high[e] = (mu + dpi * high[e]) / (c[e] - pi[e])
        pushed[e] += low[e] - high[e]
    return low, high


@kernel
def correct(
    pi: Array,
    c: Array,
    above: Array,
    below: Array,
    theta: Array,
    toward: Array,
    back: Array,
    pushed: Array,
    scores: Array,
    low: Array,
    high: Array,
    share: float,
    is_linear: bool,
) -> tuple[float, float, bool]:
    """Move multipliers and offsets by most of the way to the nearest wall: the two lengths.

    Nothing moves where a step is not finite, as the last value says.
    """
    worst_pi = worst_offset = total = 0.0
    for e in range(len(pi)):
        dpi = theta[e] * (scores[e] + pushed[e])
        low[e] = low[e] - below[e] - toward[e] * dpi
        high[e] = high[e] - above[e] + back[e] * dpi
        worst_pi = min(worst_pi, min(dpi / pi[e], -dpi / (c[e] - pi[e])))
        worst_offset = min(worst_offset, min(low[e] / below[e], high[e] / above[e]))
        total += abs(dpi)
    if not math.isfinite(total):
        return 0.0, 0.0, False
    dual = min(1.0, -share / worst_pi) if worst_pi < 0.0 else 1.0
    primal = min(1.0, -share / worst_offset) if worst_offset < 0.0 else 1.0
    if not is_linear:
        primal = dual = min(primal, dual)
    for e in range(len(pi)):
        pi[e] += dual * (theta[e] * (scores[e] + pushed[e]))
        below[e] += primal * low[e]
        above[e] += primal * high[e]
    return dual, primal, True


def factor_lifted(H: Array) -> Array:
    """The lower Cholesky factor; rounding that makes H indefinite is lifted away."""
    lift = 0.0
    for _ in range(30):
        lifted = H
        if lift:
            lifted = H.copy()
            lifted.flat[:: len(H) + 1] += lift * np.maximum(H.diagonal(), 1e-300)
        factor, trouble = lapack.dpotrf(lifted, lower=1, clean=0)
        if not trouble:
            return factor
        lift = max(1e-15, 10 * lift)
    raise FloatingPointError("the weighted Gram matrix is not finite.")


def solve_factored(factor: Array, right: Array) -> Array:
    """H^-1 right, from the factor of H."""
    return lapack.dpotrs(factor, right, lower=1)[0]


_ROUNDS = 12
_SLACK = 1e-9
# Singular values below this share of the largest are rounding; a matrix whose reciprocal condition
# number is above the other one has none.
_RANK, _REGULAR = 1e-12, 1e-10
# Held kinks beyond the number of coefficients, as repeated rows bring them.
_MOST_REPEATED = 500
# Equations of a better condition than this have one solution.
_INDEPENDENT = 1e-12


def minimum_on_face(program: Program, v: Array, near: Array) -> tuple[Array, Array] | None:
    """Coefficients and multipliers of the exact minimum; None if the face is not yet clear.

    Parameters
    ----------
    program : Program
    v, near : arrays
        Coefficients and multipliers close to it.
    """
    c, p = program.c, len(program.ell)
    share = near / c
    offset = program.offsets(v)
    # On a kink the offset vanishes faster than the room of the multiplier.
    size = max(float(np.abs(offset).mean()), 1e-300)
    on = np.minimum(share, 1 - share) > np.abs(offset) / size
    is_above = offset > 0
    noise = 1e-11 * (size + np.abs(program.t))
    for _ in range(_ROUNDS):
        held = np.flatnonzero(on)
        if len(held) > p + _MOST_REPEATED:
            return None
        pi = np.where(is_above, c, 0.0)
        pi[held] = 0.0
        found = _solve(program, held, pi, near[held])
        if found is None:
            return None
        v, own = found
        offset = program.offsets(v)
        if (np.abs(offset[held]) > noise[held]).any():
            return None  # no point lies on all of them
        slack = _SLACK * c[held]
        below, beyond = own < -slack, own > c[held] + slack
        changed = ~on & (np.where(is_above, -offset, offset) > noise)
        if not (below.any() or beyond.any() or changed.any()):
            pi[held] = np.clip(own, 0.0, c[held])
            v[program.at_zero(held)] = 0.0  # exactly
            return v, pi
        on[held[below | beyond]] = False
        is_above[held[below]], is_above[held[beyond]] = False, True
        on |= changed
    return None


def _solve(
    program: Program, held: NDArray[np.intp], beside: Array, near: Array
) -> tuple[Array, Array] | None:
    """The minimum on the face, and multipliers of its kinks as near as can be to given ones.

    Where more kinks meet than there are coefficients many multipliers will do; those of the
    point nearby are inside of their bounds, and so is what is closest to them.
    """
    p = len(program.ell)
    rows = program.rows(held)
    rest = program.ell + program.rmatvec(beside)
    if len(held) <= p:
        K = np.zeros((p + len(held),) * 2)
        K[:p, :p] = np.diag(program.quad)
        K[:p, p:], K[p:, :p] = rows.T, rows
        right = np.concatenate([-rest, program.t[held]])
        # Solved and refined; singular where kinks repeat each other.
        *_, x, rcond, _, _, trouble = lapack.dgesvx(K, right[:, None])
        if not trouble and rcond > _INDEPENDENT:
            return x[:p, 0], x[p:, 0]
    try:
        # Where the kinks meet, and from there along the directions N that they leave open.
        _, sigma, Vt = np.linalg.svd(rows, full_matrices=len(held) < p)
        N = Vt[np.count_nonzero(sigma > _RANK * sigma.max(initial=0.0)) :].T
        v = _least_squares(rows, program.t[held])
        if N.size:
            slope = N.T @ (rest + program.quad * v)
            v = v - N @ _least_squares(N.T @ (program.quad[:, None] * N), slope)
        negative_gradient = -(rest + program.quad * v)
        return v, near + _least_squares(rows.T, negative_gradient - rows.T @ near)
    except np.linalg.LinAlgError:
        return None


def _least_squares(M: Array, right: Array) -> Array:
    """The shortest solution, refined once; by elimination where the matrix is clearly regular."""
    if M.shape[0] == M.shape[1] > 0:
        lu, swaps, _ = lapack.dgetrf(M)
        if lapack.dgecon(lu, np.linalg.norm(M, 1))[0] > _REGULAR:
            solved: Array = lapack.dgetrs(lu, swaps, right)[0]
            solved += lapack.dgetrs(lu, swaps, right - M @ solved)[0]
            return solved
    U, sigma, Vt = np.linalg.svd(M, full_matrices=False)
    kept = sigma > _RANK * sigma.max(initial=0.0)
    U, V = U[:, kept] / sigma[kept], Vt[kept].T
    solved = V @ (U.T @ right)
    return np.asarray(solved + V @ (U.T @ (right - M @ solved)), dtype=np.float64)


Indices = NDArray[np.intp]

# The gap, relative to the function's size, at which the vertex is looked for; then ever smaller.
_FIRST_TRY, _LAST_TRY = 1e-8, 1e-14
# Steps; and of those that rounding leaves without effect, near the end.
_MOST_STEPS, _IDLE = 100, 3


@dataclass
class Minimum:
    """Coefficients and multipliers, and how they were found.

    Attributes
    ----------
    v : array of shape (p,)
    multipliers : array
        Of the kinks of the program.
    is_exact : bool
        Whether this is a vertex (or the minimum on a face) whose multipliers prove it.
    kinks : array of int, or None
        Those that the answer lies on.
    steps, exchanges : int
    vertex : Vertex, optional
        From which it can be improved when rows join.
    """

    v: Array
    multipliers: Array
    is_exact: bool
    kinks: Indices | None
    steps: int
    exchanges: int = 0
    vertex: Vertex | None = None


def minimise(program: Program, start: Array, size: float) -> Minimum:
    """The minimum of a program, by an interior point and then exactly.

    Parameters
    ----------
    program : Program
    start : array of shape (p,)
    size : float
        What a gap is compared with: the losses of the rows at the start.
    """
    method, goal = InteriorPoint(program, start), _FIRST_TRY
    # A perfect start would ask for a gap of nothing.
    spread = float(program.c @ np.abs(program.t - program.t.mean()))
    size = max(size, 1e-4 * spread, 1e-290)
    patience = _MOST_STEPS
    while approach(method, goal * size, patience):
        found = _exactly(program, method)
        if found is not None:
            return found
        if goal <= _LAST_TRY:
            break
        goal, patience = goal * 1e-3, _IDLE
    at = method.at
    return Minimum(at.v, at.multipliers, False, None, at.steps)


def approach(method: InteriorPoint, gap: float, patience: int = _MOST_STEPS) -> bool:
    """Steps until the gap is so small; False if rounding or too many steps ended it before.

    ``patience`` is how many steps in a row may leave the gap as it is.
    """
    best, idle = np.inf, 0
    while (now := method.gap()) > gap:
        best, idle = (now, 0) if now < 0.9 * best else (best, idle + 1)
        if method.at.steps >= _MOST_STEPS or idle > patience:
            return False
        try:
            method.step()
        except FloatingPointError:
            return False
    return True


def _exactly(program: Program, method: InteriorPoint) -> Minimum | None:
    at = method.at
    room = np.minimum(at.multipliers, program.c - at.multipliers) / program.c
    return exactly(program, at.v, at.multipliers, room / (at.above + at.below), at.steps)


def exactly(
    program: Program, v: Array, multipliers: Array, nearness: Array, steps: int
) -> Minimum | None:
    """The exact minimum near a point.

    Parameters
    ----------
    program : Program
    v, multipliers : arrays
        Where the point is.
    nearness : array
        Large for kinks that the optimum lies on.
    steps : int
        How many it took to get there.
    """
    if program.is_linear:
        kinks = independent_kinks(program, nearness)
        return None if kinks is None else improve(Vertex(program, kinks, v), steps)
    found = minimum_on_face(program, v, multipliers)
    if found is None:
        return None
    v, pi = found
    return Minimum(v, pi, True, np.flatnonzero((pi > 0) & (pi < program.c)), steps)


def improve(vertex: Vertex, steps: int) -> Minimum | None:
    """Exchange kinks until the vertex is optimal; None if it could not be done."""
    program = vertex.program
    try:
        done = vertex.improve(most=20 * len(program.ell) + 50)
    except FloatingPointError:
        return None
    if not done:
        return None
    pi = np.clip(vertex.multipliers(), 0.0, program.c)
    return Minimum(vertex.v, pi, True, vertex.kinks, steps, vertex.exchanges, vertex)


# Of the objective: a gap that is rounding.
_CLOSE = 1e-9


def solve_constant(problem: Problem, monitor: Monitor, name: str) -> Solution | None:
    """The constant, if no column is worth its penalty; None if one may be."""
    d, k = problem.n_features, problem.n_targets
    strength = np.broadcast_to(problem.penalty.linear, (d, k))
    is_free = not problem.fit_intercept or problem.loss.kinks != (0.0,)
    if is_free or d == 0 or not (strength > 0).all():
        return None
    found = [_level(problem, number) for number in range(k)]
    u = np.stack([slopes for _, slopes in found], axis=1)
    if not (np.abs(problem.design.rmatvec(problem.weigh(u))) <= strength).all():
        return None
    W, b = np.zeros((d, k)), np.array([level for level, _ in found])
    proof = certify_dual(problem, W, b, u)
    if not proof.gap <= _CLOSE * abs(proof.objective) + 1.1 * proof.objective_rounding:
        return None
    extra = {"interpolated": [np.flatnonzero(problem.target[:, t] == b[t]) for t in range(k)]}
    notes = ["no column is worth its penalty: the best constant is the answer"]
    return monitor.solution(proof, Status.SOLVED, name, 1, notes=notes, extra=extra)


def _level(problem: Problem, number: int) -> tuple[float, Array]:
    """The best constant, and slopes there that add up to zero."""
    loss, y = problem.loss.of_target(number), problem.target[:, number]
    s = np.ones(len(y)) if problem.weights is None else problem.weights
    below, jumps = loss.first_slopes(y), loss.row_jumps(y)[0]
    order = np.argsort(y, kind="stable")
    steep = float((s * below).sum()) + np.cumsum((s * jumps)[order])
    level = float(y[order[min(int(np.argmax(steep >= 0)), len(y) - 1)]])
    slopes = below + np.where(y < level, jumps, 0.0)
    ties = (y == level) & (s > 0)
    share = -float((s * slopes).sum()) / float((s * jumps)[ties].sum() or 1.0)
    return level, np.where(ties, slopes + np.clip(share, 0.0, 1.0) * jumps, slopes)
