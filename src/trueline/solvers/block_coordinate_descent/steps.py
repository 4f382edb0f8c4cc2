r"""Exact block steps and Newton steps on a quadratic function whose matrix is at hand.

    minimise over W   1/2 <W, W G> - <C, W> + sum_b l_b ||W_b|| + a/2 ||W||^2

W has one row per target and one column per coefficient; a block W_b is all rows of the columns
start_b .. start_{b+1} - 1. The state is W and Q = C - W G. The block of G that belongs to W_b is
diagonal, with entries s_j: for one column it is so by itself, for several their eigenvectors made
it so. With V_j = Q_j + s_j W_j the step is exact,

    W_j = V_j nu / ((s_j + a) nu + l_b),     nu = ||W_b|| the root of
    sum_j ||V_j||^2 / ((s_j + a) nu + l_b)^2 = 1,

or W_b = 0 where ||V_b|| <= l_b (Z. Qin, K. Scheinberg, D. Goldfarb, "Efficient block-coordinate
descent algorithms for the group lasso", Math. Program. Comput. 5 (2013) 143-169, section 3). For
one column the root is (||V_b|| - l_b) / (s + a).

On blocks that are not zero the objective is smooth. With u_b = W_b / ||W_b|| the Hessian of 1/2 <W,
W G> + sum_b l_b ||W_b|| + a/2 ||W||^2 acts as

    H D = D G + a D + (l_b / ||W_b||) (D_b - u_b <u_b, D_b>).

Its systems are solved by conjugate gradients, with the targets' average of H for a preconditioner:
u_b <u_b, .> is replaced by (1/k) sum_t u_bt u_bt^T, the same for all targets. It is H itself if
there is one target.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dpotrf, dpotrs

from trueline.numerics.jit import kernel
from trueline.solvers.conjugate_gradients import conjugate_gradients
from trueline.solvers.iterative import minimise_along

Array = NDArray[np.float64]
Integers = NDArray[np.intp]

_MAX_STEPS = 100
_LAST_DIGITS = 1e-15


def block_norms(V: Array, start: Integers) -> Array:
    """||V_b|| for each block."""
    squares = np.einsum("tj,tj->j", V, V)
    if len(start) <= len(squares):
        squares = np.add.reduceat(squares, start[:-1])
    norms: Array = np.sqrt(squares)
    return norms


@kernel
def block_root(squares: Array, curvature: Array, size: int, linear: float) -> float:
    """nu > 0 with sum_j squares_j / (curvature_j nu + linear)^2 = 1, where there is one.

    Newton's method on 1 / sqrt(sum) = 1, which is concave and increasing in nu (as the secular
    equation of trust regions is; J. J. More, D. C. Sorensen, "Computing a trust region step", SIAM
    J. Sci. Stat. Comput. 4 (1983) 553-572): from the left it climbs to the root and never beyond.
    """
    nu = 0.0
    for _ in range(_MAX_STEPS):
        total = slope = 0.0
        for j in range(size):
            below = curvature[j] * nu + linear
            term = squares[j] / (below * below)
            total += term
            slope += term * curvature[j] / below
        if slope <= 0.0:
            break
        # h = total^(-1/2), h' = total^(-3/2) slope, step = (1 - h) / h'
        step = (np.sqrt(total) - 1.0) * total / slope
        nu += step
        if step <= _LAST_DIGITS * nu:
            break
    return nu


@kernel(reassociate=True)
def descend(
    G: Array, start: Integers, linear: Array, ridge: float, W: Array, Q: Array, sweeps: int
) -> None:
    """Sweep over the blocks, each brought to its minimum in turn."""
    k, m = W.shape
    blocks = len(start) - 1
    widest = 1
    for b in range(blocks):
        widest = max(widest, start[b + 1] - start[b])
    squares, curvature, change = np.empty(widest), np.empty(widest), np.empty(k)
    for _ in range(sweeps):
        for b in range(blocks):
            first, size, threshold = start[b], start[b + 1] - start[b], linear[b]
            total = 0.0
            for i in range(size):
                j = first + i
                square = 0.0
                for t in range(k):
                    v = Q[t, j] + G[j, j] * W[t, j]
                    square += v * v
                squares[i], curvature[i] = square, G[j, j] + ridge
                total += square
            if total <= threshold * threshold:
                nu = 0.0
            elif size == 1:
                nu = (np.sqrt(total) - threshold) / curvature[0] if curvature[0] > 0.0 else 0.0
            elif threshold > 0.0:
                nu = block_root(squares, curvature, size, threshold)
            else:
                nu = 1.0  # any number: without a norm the fraction does not depend on it
            for i in range(size):
                j = first + i
                below = curvature[i] * nu + threshold
                factor = nu / below if curvature[i] > 0.0 and below > 0.0 else 0.0
                moved = False
                for t in range(k):
                    new = (Q[t, j] + G[j, j] * W[t, j]) * factor
                    change[t] = new - W[t, j]
                    moved = moved or change[t] != 0.0
                if not moved:
                    continue
                row = G[j]
                for t in range(k):
                    step, line = change[t], Q[t]
                    W[t, j] += step
                    for c in range(m):
                        line[c] -= step * row[c]


# Sweeps between two looks at the gap, and the most for one penalty, which is also that many
# multiplications: about the time of a Newton step.
_SWEEPS, _MOST_SWEEPS, _MOST_WORK = 8, 1000, 1_000_000


@kernel
def descend_along(
    G: Array,
    C: Array,
    square: float,
    start: Integers,
    linear: Array,
    ridges: Array,
    goal: float,
    target: float,
    Q: Array,
    path: Array,
    gaps: Array,
    sweeps: Integers,
) -> int:
    """Minimise for one penalty after the other by sweeps alone; how many are solved.

    Each block is one column, and has a norm: row i of ``linear`` holds l. W is ``path[i]``, shape
    (k, d), where the first begins; ``square`` is that of the targets. The gap is to reach the goal,
    or the target if rounding keeps it from the goal.
    """
    k, d = Q.shape
    most = min(_MOST_SWEEPS, _MOST_WORK // (k * d * d))
    for i in range(len(ridges)):
        W = path[i]
        if i > 0:
            for s in range(k):
                for j in range(d):
                    W[s, j] = path[i - 1, s, j]
        gap, is_found = np.inf, False
        while True:
            multiply_out(G, C, W, Q)
            before, gap = gap, block_gap(C, W, Q, square, linear[i], ridges[i])
            is_found = gap <= goal or before <= gap <= target  # the latter: rounding
            if is_found or sweeps[i] >= most:
                break
            descend(G, start, linear[i], ridges[i], W, Q, _SWEEPS)
            sweeps[i] += _SWEEPS
        gaps[i] = gap
        if not is_found:
            return i
    return len(ridges)


@kernel
def multiply_out(G: Array, C: Array, W: Array, Q: Array) -> None:
    """Q = C - W G."""
    k, d = Q.shape
    for s in range(k):
        for j in range(d):
            Q[s, j] = C[s, j]
        for i in range(d):
            if W[s, i] != 0.0:
                for j in range(d):
                    Q[s, j] -= W[s, i] * G[i, j]


@kernel
def block_gap(C: Array, W: Array, Q: Array, square: float, linear: Array, ridge: float) -> float:
    """The duality gap at W, with one column a block, each with a norm."""
    k, d = Q.shape
    t, left = 1.0, square
    for j in range(d):
        norm = 0.0
        for s in range(k):
            norm += Q[s, j] * Q[s, j]
            left -= (C[s, j] + Q[s, j]) * W[s, j]
        norm = np.sqrt(norm)
        if ridge == 0.0 and norm > linear[j]:
            t = min(t, linear[j] / norm)
    gap = 0.5 * (1.0 - t) * (1.0 - t) * max(left, 0.0)
    for j in range(d):
        pull = size = along = 0.0
        for s in range(k):
            pull += Q[s, j] * Q[s, j]
            size += W[s, j] * W[s, j]
            along += Q[s, j] * W[s, j]
        size = np.sqrt(size)
        term = (linear[j] + 0.5 * ridge * size) * size - t * along
        if ridge > 0.0:
            excess = max(np.sqrt(pull) - linear[j], 0.0)
            term += 0.5 * excess * excess / ridge
        gap += max(term, 0.0)
    return gap


_EPS = float(np.finfo(np.float64).eps)
_MAX_PRODUCTS = 60
# How far the residual of the system is reduced: the step then wins three digits.
_REDUCTION = 1e-3
_STEPS = (1.0, 0.5, 0.25, 0.125, 0.03125)
# Along the step a block ends at zero that has come so far on its way.
_ALMOST = 0.99
# Just beyond the place where a block passes zero.
_PAST = 1.001
# The objective must fall by this share of what the slope promises.
_SHARE = 1e-3
# Dependent columns without a norm leave the matrix singular; so little does not slow others.
_RIDGE = 1e-12


class _Smooth(NamedTuple):
    """The objective around W: norms and their curvature, spread over the columns."""

    G: Array
    start: Integers
    W: Array
    norm: Array
    stiffness: Array  # l_b / ||W_b||
    ridge: float

    def inner(self, D: Array) -> Array:
        """<u_b, D_b>, spread."""
        sums = np.add.reduceat((self.W * D).sum(axis=0), self.start[:-1])
        return np.repeat(sums, np.diff(self.start)) / self.norm

    def hessian(self, D: Array, image: Array) -> Array:
        """H D, given D G."""
        along = self.W * (self.inner(D) / self.norm)
        return image + self.ridge * D + self.stiffness * (D - along)


def newton_step(G: Array, start: Integers, linear: Array, ridge: float, W: Array, Q: Array) -> bool:
    """Move W and Q by a Newton step, shortened if need be; whether it ended with blocks at zero.

    No block of W is zero before. A block that the step would lead through zero stops there, if it
    has a norm to keep it: with the whole step of the others where the objective falls so, else
    where the objective is least along the step.
    """
    widths = np.diff(start)
    norm = np.repeat(block_norms(W, start), widths)
    stiffness = np.repeat(linear, widths) / norm
    smooth = _Smooth(G, start, W, norm, stiffness, ridge)
    descent = Q - (ridge + stiffness) * W
    system = _iterate(smooth, descent)
    if system is None:
        return False
    D, image = system
    slope = float(np.vdot(descent, D))
    if slope <= 0:
        return False
    inward = smooth.inner(D)
    for length in (*_STEPS, None):
        t = _exact_length(smooth, linear, D, image, slope) if length is None else length
        passes = (t * inward <= -_ALMOST * norm) & (stiffness > 0)
        move = np.where(passes, -W, t * D)
        moved = move @ G if passes.any() else t * image
        change = _change(smooth, linear, descent, move, moved)
        if change < (0.0 if length is None else -_SHARE * t * slope):
            W += move
            W[:, passes] = 0.0
            Q -= moved
            return bool(passes.any())
    # Columns that are nearly the same leave a block that is nearly zero too much to give up.
    W += t * D
    Q -= t * image
    return False


def _exact_length(smooth: _Smooth, linear: Array, D: Array, image: Array, slope: float) -> float:
    """Where the objective is least along W + t D.

    The slope jumps where a block passes zero: first between which of these places it changes its
    sign, or at which of them.
    """
    first = smooth.start[:-1]
    length, inward = block_norms(D, smooth.start) ** 2, smooth.inner(D)[first]
    norm = smooth.norm[first]
    along = inward * norm
    straight = slope + float(linear @ inward)  # that of the squares alone, downwards
    quadratic = float(np.vdot(D, image + smooth.ridge * D))

    def slopes(t: Array) -> tuple[Array, Array]:
        inner = along[:, None] + t * length[:, None]
        # ||W_b + t D_b||, of blocks that pass zero no less than rounding
        square = norm[:, None] ** 2 + t * (along[:, None] + inner)
        new = np.sqrt(np.maximum(square, (_EPS * norm[:, None]) ** 2))
        across = np.maximum(length[:, None] - (inner / new) ** 2, 0.0)
        return t * quadratic - straight + linear @ (inner / new), quadratic + linear @ (
            across / new
        )

    passing = np.sort(-norm[inward < 0] / inward[inward < 0])
    low, high = 0.0, np.inf
    if len(passing):
        beyond = int(np.count_nonzero(slopes(_PAST * passing)[0] < 0))
        low = _PAST * passing[beyond - 1] if beyond else 0.0
        if beyond < len(passing):
            high = passing[beyond] / _PAST
            if high <= low or slopes(np.array([high]))[0][0] < 0:
                return float(passing[beyond])

    def slope_at(t: float) -> tuple[float, float]:
        at, curvature = slopes(np.array([low + t]))
        return float(at[0]), float(curvature[0])

    return float(low + minimise_along(slope_at, slope_at(0.0)[0], high - low))


def _iterate(smooth: _Smooth, descent: Array) -> tuple[Array, Array] | None:
    """D with H D = descent, nearly, and D G, by conjugate gradients."""
    factor = _factor(smooth)
    if factor is None:
        return None
    D, _ = conjugate_gradients(
        lambda D: smooth.hessian(D, D @ smooth.G),
        descent,
        lambda R: dpotrs(factor, R.T, lower=1)[0].T,
        most=_MAX_PRODUCTS,
        enough=_REDUCTION**2,
    )
    return D, D @ smooth.G


def _factor(smooth: _Smooth) -> Array | None:
    """Cholesky factor of the averaged Hessian."""
    k = len(smooth.W)
    M = np.array(smooth.G.T, order="F")  # symmetric: the transpose is contiguous as it is
    unit = smooth.W / smooth.norm
    for first, last in zip(smooth.start[:-1], smooth.start[1:], strict=True):
        if last - first > 1:
            part = unit[:, first:last]
            M[first:last, first:last] -= smooth.stiffness[first] * (part.T @ part) / k
    diagonal = np.einsum("ii->i", M)
    diagonal += smooth.ridge + smooth.stiffness
    single = np.repeat(np.diff(smooth.start) == 1, np.diff(smooth.start))
    diagonal -= np.where(single, smooth.stiffness * (unit * unit).sum(axis=0) / k, 0.0)
    diagonal += _RIDGE * float(diagonal.max(initial=0.0))
    factor, info = dpotrf(M, lower=1, clean=0, overwrite_a=1)
    return None if info else factor


def _change(smooth: _Smooth, linear: Array, descent: Array, D: Array, image: Array) -> float:
    """What the objective changes by from W to W + D, without cancellation.

    ||w + d|| - ||w|| - <u, d> = (||d||^2 - <u, d>^2) / (||w + d|| + ||w|| + <u, d>), except where
    d leads through zero.
    """
    first = smooth.start[:-1]
    along, norm = smooth.inner(D)[first], smooth.norm[first]
    length, new = block_norms(D, smooth.start), block_norms(smooth.W + D, smooth.start)
    across = np.maximum(length**2 - along**2, 0.0)
    below = new + norm + along
    through = below <= 1e-3 * norm
    curved = np.divide(across, below, out=new - norm - along, where=~through)
    quadratic = 0.5 * float(np.vdot(D, image + smooth.ridge * D))
    return quadratic + float(linear @ curved) - float(np.vdot(descent, D))
