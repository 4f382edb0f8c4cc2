r"""A Newton step for the coefficients that are not zero, whose signs are taken as settled.

Coordinate descent finds out which those are and is slow at the rest. The step comes from conjugate
gradients, or from a factor where few columns are left, and ends where the first sign would change,
if it does (R. H. Byrd, G. M. Chin, J. Nocedal, F. Oztoprak, "A family of second-order methods for
convex L1-regularized optimization", Math. Program. 159 (2016) 435-467).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from trueline.design.sparse import LARGE
from trueline.solvers.columns.products import times
from trueline.solvers.curved.descent import Factor
from trueline.solvers.curved.search import minimise_along

if TYPE_CHECKING:
    from trueline.solvers.columns.working_set import WorkingSet

__all__ = ["POLISH_LEFT", "polish"]

Array = NDArray[np.float64]

# Steps of conjugate gradients, the share of the residual (squared) they may leave, longest step.
_POLISH_STEPS, POLISH_LEFT, _FARTHEST = 25, 1e-3, 4.0
# H of m columns is formed if m^2 is at most so many times their entries, and factored up to m.
_GRAM, _EXACT, _LEAST_PIVOT, _TRACE = 10, 250, 1e-13, 1e-12
# Wider ones leave the cache; rows with more entries than this cost more than the steps it saves.
_WIDEST, _FULLEST = 1000, 8
_GRAM_STEPS, _GRAM_LEFT = 100, 1e-4


def polish(part: WorkingSet) -> None:
    """A Newton step for the coefficients that are not zero, whose signs are taken as settled.

    Coordinate descent finds out which those are and is slow at the rest. The step comes from
    conjugate gradients and ends where the first sign would change, if it does (R. H. Byrd,
    G. M. Chin, J. Nocedal, F. Oztoprak, "A family of second-order methods for convex
    L1-regularized optimization", Math. Program. 159 (2016) 435-467).
    """
    whole, loss, y = part.whole, part.whole.loss, part.whole.target
    V = whole.V[part.chosen]
    count, s = part.few.shape[1], whole.s[:, None]
    free = V != 0
    free[count:] = True
    signs = np.where(free, np.sign(V), 0.0) * part.linear[:, None]
    slope = np.where(free, part.gradient() + signs, 0.0)
    quad = np.broadcast_to(part.quad[:, None], V.shape)
    solve = _conjugate if whole.is_coupled else _newton_single
    D, change = solve(part, free, slope)
    start = float((slope * D).sum())
    if not start < 0:
        return
    # As far as the first sign that would change.
    with np.errstate(divide="ignore", invalid="ignore"):
        until = np.where(free & (V * D < 0), -V / D, np.inf)
    until[count:] = np.inf
    limit = float(until.min(initial=np.inf))
    weighted = s * change
    own, across = float((quad * V * D + signs * D).sum()), float((quad * D**2).sum())

    def along_step(t: float) -> tuple[float, float]:
        Z = whole.Z + t * change
        bent = loss.bend(loss.bending(y, Z), change)
        at = float((weighted * loss.gradient(y, Z)).sum()) + own + t * across
        return at, float((weighted * bent).sum()) + across

    t = minimise_along(along_step, start, min(limit, _FARTHEST))
    new, Z = V + t * D, whole.Z + t * change
    new[until <= t] = 0.0
    if limit < 1:
        # Signs are still changing: a whole step that leaves out those that would.
        other = np.where(until < 1, 0.0, V + D)
        ahead = whole.Z + part.products(other - V)
        if part.value(other, ahead) < part.value(new, Z):
            new, Z = other, ahead
    whole.V = whole.V.copy()
    whole.V[part.chosen] = new
    whole.Z = Z


def _newton_single(part: WorkingSet, free: NDArray[np.bool_], slope: Array) -> tuple[Array, Array]:
    """Newton's step for the free entries, and what it does to the scores.

    From a factor of H where few columns are left, by conjugate gradients on H where it is still
    cheaper to have than to do without, else on the columns.
    """
    whole = part.whole
    used = np.flatnonzero(free[:, 0])
    h = whole.s * whole.loss.curvature(whole.target, whole.Z)[:, 0]
    D = np.zeros_like(slope)
    entries = int(np.diff(part.parts[2])[used].sum())
    small = len(used) <= _WIDEST and entries <= _FULLEST * len(h)
    if small and len(used) ** 2 <= _GRAM * entries:
        D[used, 0] = _by_gram(part, used, h, slope[used, 0])
        return D, part.products(D)
    if entries >= LARGE:  # on all threads
        return _conjugate(part, free, slope)
    from trueline.solvers.columns.kernels import conjugate_steps

    few, change = np.zeros(len(used)), np.zeros(len(h))
    rest = part.quad, part.bends[:, 0].copy(), slope[used, 0]
    limits = _POLISH_STEPS, POLISH_LEFT
    conjugate_steps(*part.parts, used, h, *rest, *limits, few, change)
    D[used, 0] = few
    return D, change[:, None]


def _by_gram(part: WorkingSet, used: NDArray[np.intp], h: Array, slope: Array) -> Array:
    """-H^-1 slope of some columns."""
    from trueline.solvers.columns.kernels import gram_steps, support_gram

    m = len(used)
    H = np.zeros((m, m))
    support_gram(*part.parts, used, h, H)
    diagonal = np.maximum(H.diagonal() + part.quad[used], part.bends[used, 0])
    H[np.diag_indices(m)] = diagonal
    if m > _EXACT:
        D = np.zeros(m)
        gram_steps(H, slope, _GRAM_STEPS, _GRAM_LEFT, D)
        return D
    trace = 0.0
    while True:
        factor = Factor(H)
        if factor.least > _LEAST_PIVOT or trace > 1:
            return -factor.solve(slope)
        # Columns that say the same on these rows: a trace more of each tells them apart.
        trace = max(100 * trace, _TRACE)
        H[np.diag_indices(m)] = diagonal * (1 + trace)


def _conjugate(part: WorkingSet, free: NDArray[np.bool_], slope: Array) -> tuple[Array, Array]:
    """The same by conjugate gradients, of any number of scores."""
    whole, loss = part.whole, part.whole.loss
    count, s = part.few.shape[1], whole.s[:, None]
    bending = loss.bending(whole.target, whole.Z)
    scale = np.where(free & (part.bends > 0), part.bends, 1.0)

    def image(p: Array, scores: Array) -> Array:
        T = s * loss.bend(bending, scores)
        out = np.empty_like(p)
        out[:count] = times(part.few, T, is_transposed=True)
        out[count:] = T.sum(axis=0)
        return np.where(free, out + part.quad[:, None] * p, 0.0)

    D, R = np.zeros_like(slope), -slope
    p, change = R / scale, np.zeros_like(whole.Z)
    size = first = float((R * p).sum())
    for _ in range(_POLISH_STEPS):
        if size <= whole.polish_left * first or size <= 0:
            break
        scores = part.products(p)
        along = image(p, scores)
        bend = float((p * along).sum())
        if not bend > 0:
            break
        a = size / bend
        D, R, change = D + a * p, R - a * along, change + a * scores
        Q = R / scale
        before, size = size, float((R * Q).sum())
        p = Q + (size / before) * p
    return D, change
