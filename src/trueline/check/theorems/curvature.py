r"""Theorem of growth: where a convex function rises all around, nothing beyond is lower.

Scores are written about a centre m of the columns, z_i = a_i.v with a_i = (x_i - m, 1) and v = (w,
b + m.w); e is a step from v, and ||e|| = |M^-1 e| its length for a matrix M.

*Theorem.* Let P(v + e) >= P(v) + g.e + nu/2 ||e||^2 for ||e|| <= rho, where rho >= 2 |M^T g| / nu.
Then P(v) - P(v + e) <= |M^T g|^2 / (2 nu) within that distance, and for convex P everywhere.
*Proof.* g.e >= -|M^T g| ||e||, and the least of -t x + nu/2 x^2 is -t^2 / (2 nu). On the edge of
the ball P is at least P(v), and by convexity it is so beyond. []

- *Smooth losses*: c_i is the least curvature of the loss at scores within rho sum_j |a_ij| M_j of
  z_i, M diagonal, and nu bounds M (sum_i s_i c_i a_i a_i^T + A) M from below.
- Of l_j |w_j| in the penalty, g has l_j sign(w_j); where w_j = 0, what exceeds l_j.
- Losses that are not convex: nothing is said about steps longer than rho.

*Held coefficients.* The dual point u of :mod:`trueline.check.theorems.fenchel_young` may be moved
so that some coefficients have q_j + a_j w_j = A_j h_j (zero where A_j = 0); q = X_c^T S u.

- *Losses with room* (squares, Huber): to u - X_c h, h = (X_c^T S X_c + A)^-1 (q + a w). With
  M^T (X_c^T S X_c + A) M >= nu I it moves by at most r = |M^T (q + a w)| / nu^1/2 in the norm of
  the weights, of which h.A h pays for the penalties. A is that of the penalty, or zero: then
  these coefficients cost the worth a w^2 / 2 of their penalties.
- *Dependent columns* without A: those that depend on the independent ones exactly have q_j = 0 with
  them. Others are followed up to a stated change R only, and add R (|q'| + r |x'|), q' and x' what
  the independent columns leave of them.
- *Smooth losses*: u are the slopes at the least value over these coefficients, which lies within
  rho by the theorem above.

Read from the certificate: objective, objective_rounding, gap, loss, penalty, fit_intercept, coef,
intercept; witness: diagonal (d + 1, k) and reach (k,); powers of two of the units. M and nu of
squared losses are found here: M is the inverse of a factor of the matrix.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from trueline.check.arithmetic import EPS, Array, Bools, Indices, exact_product
from trueline.check.claims import Claim, read_claim
from trueline.check.rows import (
    Table,
    factor,
    independent_columns,
    inverse_basis,
    least_eigenvalue,
)
from trueline.check.schema import Field, get
from trueline.check.verdict import Check, Refused, Verification

_WITNESS = {
    "diagonal": Field(("p", "k"), low=1e-290, high=1e290, optional=True),
    "reach": Field(("k",), low=0.0, optional=True),
    "about": Field(("d",), optional=True),
    "coercivity": Field(("k",), finite=False, optional=True),
}


def check(certificate: Any, X: Any, y: Any, sample_weight: Any, effort: str) -> Verification:
    """Objective and gap of a claim by curvature nearby."""
    claim = read_claim(certificate, _WITNESS, X, y, sample_weight)
    fields, is_local = claim.fields, get(certificate, "kind") == "local"
    if claim.has_intercept and fields.about is not None:
        claim.centre = fields.about
    if not (claim.loss.is_convex or is_local) or claim.penalty.blocks is not None:
        raise Refused("this theorem is about convex losses and penalties of single coefficients")
    for doubled in (False, True):
        claim.evaluate(doubled)
        objective = claim.check_objective()
        if claim.loss.is_convex and not claim.loss.note and claim.ceiling <= fields.gap:
            gap = claim.ceiling  # no objective is negative
        else:
            gap = _gap_by_curvature(claim)
        if objective.holds and gap <= fields.gap:
            break
    checks = objective, Check.at_most("gap", fields.gap, gap)
    reach = np.inf if fields.reach is None else float(fields.reach.max())
    said = f"only coefficients within the distance {reach:.4g} are considered, in the units of "
    said += "the stated diagonal: the loss is not convex"
    return Verification(checks, claim.statement(), (said,) * is_local)


def _gradient(claim: Claim) -> tuple[Array, Array]:
    """Of the losses in w about the centre and in the intercept, and bounds on its error."""
    rows, loss = claim.rows, claim.loss
    s, y, z, off = rows.s[:, None], claim.y, claim.z, claim.off + np.abs(claim.low)
    weighted, rest = exact_product(s, loss.slope(y, z))
    error = s * (loss.most_bend(y, z, off) * off + loss.slope_error(y, z)) + 4 * EPS * np.abs(rest)
    g, g_error, _ = claim.sums(weighted, rest, error, False)
    if not claim.has_intercept:
        return g, g_error
    slope = np.array([math.fsum(both) for both in np.vstack([weighted, rest]).T])
    slope_error = error.sum(axis=0) * (1 + 1e-9) + EPS * np.abs(slope)
    return np.vstack([g, slope]), np.vstack([g_error, slope_error])


def _gap_by_curvature(claim: Claim) -> float:
    """The bound by curvature nearby, infinite where there is too little of it."""
    fields, rows, penalty = claim.fields, claim.rows, claim.penalty
    if np.isinf(fields.gap):
        return fields.gap  # nothing is claimed
    if fields.diagonal is None or fields.reach is None or penalty.is_bounded or penalty.note:
        raise Refused("this proof needs a diagonal and a reach, and an elastic penalty or none")
    p = rows.d + claim.has_intercept
    if fields.diagonal.shape[0] != p:
        raise Refused(f"the diagonal has {fields.diagonal.shape[0]} entries, not {p}")
    if not claim.loss.is_convex and (rows.k > 1 or penalty.linear.any()):
        raise Refused("a local proof is about one target and a quadratic penalty")
    if claim.loss.is_coupled:
        raise Refused("this proof is about losses of single scores")
    nothing = np.zeros((int(claim.has_intercept), rows.k))
    l, a, W = (np.vstack([v, nothing]) for v in (penalty.linear, penalty.curvature, claim.W))
    g, error = _gradient(claim)
    size = np.abs(g + a * W + l * np.sign(W)) + error + 8 * EPS * (np.abs(g) + np.abs(a * W) + l)
    size = np.maximum(size - np.where(W == 0, l, 0.0), 0.0)
    total, table = 0.0, Table(rows, claim.centre, None, claim.has_intercept)
    for t in range(rows.k):
        M, reach = fields.diagonal[:, t], float(fields.reach[t])
        steep = float(np.linalg.norm(M * size[:, t])) * (1 + 1e-9)
        off = claim.off[:, t] + np.abs(claim.low[:, t])
        nu, _ = _nearby(claim, t, table, M, reach, off, a[:, t])
        if not (nu > 0 and reach >= 2 * steep / nu * (1 + 1e-9)):
            return np.inf
        total += steep**2 / (2 * nu) * (1 + 1e-9)
    return total + rows.floor


def _nearby(
    claim: Claim, t: int, table: Table, M: Array, reach: float, off: Array, lift: Array | None
) -> tuple[float, Array]:
    """nu within a reach, for scores known up to off; and how far the scores move within it."""
    far = np.zeros(claim.rows.n)
    for where, block in table:
        far[where] = reach * (np.abs(block) @ M) * (1 + 1e-9)
    bend = claim.loss.of_target(t).least_bend(claim.y[:, t], claim.z[:, t], off + far)
    return least_eigenvalue(table, claim.rows.s * bend * (1 - 4 * EPS), lift, M), far


# --- coefficients that are held by curvature ------------------------------------------------------


class Spent(NamedTuple):
    """Per target: the excess of u, how far u is from z beside the intercept, and the losses."""

    excess: Array
    apart: Array
    losses: Array


class Held(NamedTuple):
    """The excess of the losses, the error of q, and what a change of further columns costs."""

    excess: Array
    off: Array
    cost: float = 0.0
    rest: Indices | None = None  # the columns that are followed up to a stated change only


def hold(
    claim: Claim, free: Bools, lifted: Bools, q: Array, off: Array, squares: Array, at: Spent
) -> Held | None:
    """Hold coefficients of a loss with room, those of lifted targets with the penalty's curvature.

    None where that is not possible.
    """
    rows, loss, a, W = claim.rows, claim.loss, claim.penalty.curvature * lifted, claim.W
    every, rest, exact = np.flatnonzero(free.any(axis=1)), np.zeros(0, dtype=np.intp), True
    kept, constant = every, claim.has_intercept
    if not lifted.all():
        kept, rest, exact = independent_columns(rows, every, claim.means(), constant)
    if not exact and not loss.is_squared:
        return None
    # Only what is free in a target has to vanish there; the rest of its q stays as it is.
    own = np.where(free, q + a * W, 0.0)
    unsure = np.where(free, off + 4 * EPS * np.abs(a * W) + 2 * EPS * np.abs(q) * lifted, 0.0)
    moved, most = np.zeros(rows.k), np.zeros(rows.k)
    alike = bool((a == a[:, :1]).all() and (lifted == lifted[0]).all())
    for t in [slice(None)] if alike else [slice(t, t + 1) for t in range(rows.k)]:
        used, lift = (every, a[every, t][:, 0]) if lifted[t].any() else (kept, None)
        nu, trace, M = inverse_basis(Table(rows, claim.means(), used), constant, lift)
        if nu <= 0:
            return None
        along = np.abs(M.T @ own[used, t]) * (1 + 1e-9)
        along += np.abs(M).T @ (unsure[used, t] + (len(M) + 4) * EPS * np.abs(own[used, t]))
        long = np.sqrt((along**2).sum(axis=0))
        moved[t] = long / np.sqrt(nu) * (1 + 1e-9)
        # |change of u_i| <= ||M x_i|| ||M q|| / nu, and s_i ||M x_i||^2 is at most the trace.
        most[t] = 1.01 * np.sqrt(trace / float(rows.s.min())) * long / nu
    share = most / loss.room * (1 + 1e-9)
    if not (share < 0.5).all():
        return None
    if loss.is_squared:
        excess = at.excess + moved * at.apart + 0.5 * moved**2
    else:
        away = 2 * np.abs(claim.z) + claim.off + np.abs(claim.low) + loss.width
        far = np.sqrt((rows.s[:, None] * away**2).sum(axis=0))
        excess = at.excess + share * at.losses + moved * far + 0.5 * moved**2
    off = off + np.sqrt(squares)[:, None] * 1.01 * moved
    if exact:
        return Held(excess, off)
    cost = _left(claim, kept, rest, own * ~lifted, unsure * ~lifted, moved * ~lifted)
    return Held(excess, off, cost, rest)


def _left(
    claim: Claim, kept: Indices, rest: Indices, q: Array, error: Array, moved: Array
) -> float:
    """What a change of the other columns by one costs, once the independent ones are held."""
    rows, centre = claim.rows, claim.means()
    # What the independent columns leave of the others, for any coefficients C.
    whole = factor(Table(rows, centre, np.concatenate([kept, rest])))
    C = np.linalg.lstsq(whole[:, : len(kept)], whole[:, len(kept) :], rcond=None)[0]
    left = np.abs(q[rest] - C.T @ q[kept]) + error[rest] + np.abs(C).T @ error[kept]
    left += (len(kept) + 4) * EPS * (np.abs(C).T @ np.abs(q[kept]) + np.abs(q[rest]))
    size, units = np.zeros(len(rest)), (len(kept) + 4) * EPS
    for where, block in rows:
        own, others = (block - centre)[:, rest], (block - centre)[:, kept]
        apart = np.abs(own - others @ C) + units * (np.abs(others) @ np.abs(C) + np.abs(own))
        size += rows.s[where] @ apart**2
    return float(left.sum() + np.sqrt(size).sum() * moved.sum()) * (1 + 1e-9)


def hold_smooth(
    claim: Claim, free: Bools, size: Array, squares: Array, way: Array, unsure: Array
) -> Held | None:
    """Hold coefficients of a smooth loss, whose q is at most size; None if it is not possible.

    ``way`` is what scores may be off by, ``unsure`` the error of u.
    """
    loss, rows = claim.loss, claim.rows
    columns, _, exact = independent_columns(
        rows, np.flatnonzero(free.any(axis=1)), claim.means(), claim.has_intercept
    )
    if loss.is_coupled or not exact:
        return None
    part = Table(rows, claim.means(), columns, claim.has_intercept)
    excess, further = np.zeros(rows.k), np.zeros_like(size)
    for t in range(rows.k):
        own, y, z, off = loss.of_target(t), claim.y[:, t], claim.z[:, t], way[:, t]
        curvatures = rows.s * own.least_bend(y, z, off)
        scale = sum((curvatures[w] @ block**2 for w, block in part), np.zeros(part.d))
        M = 1.0 / np.sqrt(np.maximum(scale, 1e-200))
        steep = size[columns, t]
        if claim.has_intercept:
            steep = np.append(steep, float(rows.s @ unsure[:, t]) + 1e-300)
        steep = float(np.linalg.norm(M * steep)) * (1 + 1e-9)
        nu, _ = _nearby(claim, t, part, M, 0.0, off, None)
        r = 2.5 * steep / max(nu, 1e-300)
        nu, far = _nearby(claim, t, part, M, r, off, None)
        if not nu * r >= 2 * steep:
            return None
        curvature = own.most_bend(y, z, off + far)
        excess[t] = float(rows.s @ (0.5 * curvature * (off + far) ** 2)) * (1 + 1e-9)
        further[:, t] = np.sqrt(squares * float(rows.s @ (curvature * far) ** 2)) * 1.01
    return Held(excess, further)
