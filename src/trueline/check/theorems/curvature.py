r"""Theorem of growth: where a convex function rises all around, nothing beyond is lower.

Scores are written about a centre m of the columns, z_i = a_i.v with a_i = (x_i - m, 1) and v = (w,
b + m.w); e is a step from v, and ||e|| = |M^-1 e| its length for a matrix M.

*Theorem.* Let P(v + e) >= P(v) + g.e + nu/2 ||e||^2 for ||e|| <= rho, where rho >= 2 |M^T g| / nu.
Then P(v) - P(v + e) <= |M^T g|^2 / (2 nu) within that distance, and for convex P everywhere.
*Proof.* g.e >= -|M^T g| ||e||, and the least of -t x + nu/2 x^2 is -t^2 / (2 nu). On the edge of
the ball P is at least P(v), and by convexity it is so beyond. []

- *Squared losses* have nu for all steps: M^T (X_c^T S X_c + A) M >= nu I, where the intercept is
  eliminated (what it is off by costs (sum_i s_i r_i)^2 / (2 S)), and rho is infinite. Coefficients
  that may not be negative: M is diagonal and the bound is a sum over coefficients, of
  max over e_j >= -w_j of -g_j e_j - nu e_j^2 / (2 M_j^2).
- *Dependent columns*: M is made of independent ones. Steps along columns that depend on them
  exactly change nothing that these do not; other ones are followed up to a stated size R only,
  and add R (|g'| + |M^T g_J| |x'| / nu^1/2), g' and x' what the independent columns leave of them.
- *Smooth losses*: c_i is the least curvature of the loss at scores within rho sum_j |a_ij| M_j of
  z_i, M diagonal, and nu bounds M (sum_i s_i c_i a_i a_i^T + A) M from below.
- Of l_j |w_j| in the penalty, g has l_j sign(w_j); where w_j = 0, what exceeds l_j.
- Losses that are not convex: nothing is said about steps longer than rho.

Read from the certificate: objective, objective_rounding, gap, loss, penalty, fit_intercept, coef,
intercept; witness: diagonal (d + 1, k) and reach (k,); powers of two of the units. M and nu of
squared losses are found here: M is the inverse of a factor of the matrix.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from trueline.check.arithmetic import EPS, ROWS, Array, Indices, exact_product, fsum
from trueline.check.claims import Claim, read_claim
from trueline.check.rows import (
    Table,
    coercivity,
    factor,
    independent_columns,
    inverse_basis,
    reached,
)
from trueline.check.schema import Field, get
from trueline.check.verdict import Check, Refused, Verification

# What is stated of the basis, its coercivity and what it leaves out is of use to the fit alone.
_OF_SQUARES = {
    "basis": Field(kind="any", optional=True),
    "coercivity": Field(finite=False, optional=True),
    "left_out": Field(optional=True),
}
_OF_CURVATURE = {
    "diagonal": Field(("p", "k"), low=1e-290, high=1e290, optional=True),
    "reach": Field(("k",), low=0.0, optional=True),
    "about": Field(("d",), optional=True),
    "coercivity": Field(("k",), finite=False, optional=True),
}


def check(certificate: Any, X: Any, y: Any, sample_weight: Any, effort: str) -> Verification:
    """Objective and gap of a claim by growth."""
    kind = get(certificate, "kind")
    is_quadratic = kind in ("quadratic", "row space")
    witness = _OF_SQUARES if is_quadratic else _OF_CURVATURE
    claim = read_claim(certificate, witness, X, y, sample_weight)
    if not is_quadratic and claim.has_intercept and claim.fields.about is not None:
        claim.centre = claim.fields.about
    fields = claim.fields
    conditions: tuple[str, ...] = ()
    is_local = kind == "local"
    if not (claim.loss.is_convex or is_local) or claim.penalty.blocks is not None:
        raise Refused("this theorem is about convex losses and penalties of single coefficients")
    if is_quadratic and not claim.loss.is_squared:
        raise Refused("this proof is about squared losses")
    gap = np.inf
    for doubled in (False, True):
        claim.evaluate(doubled)
        objective = claim.check_objective()
        if claim.loss.is_convex and not claim.loss.note and claim.ceiling <= fields.gap:
            gap = claim.ceiling  # no objective is negative
        elif is_quadratic:
            gap, conditions = _quadratic_gap(claim, doubled)
        else:
            gap = _gap_by_curvature(claim)
        if objective.holds and gap <= fields.gap:
            break
    checks = (objective, Check.at_most("gap", fields.gap, gap))
    if is_local:
        reach = np.inf if fields.reach is None else float(fields.reach.max())
        conditions = (f"only coefficients within the distance {reach:.4g} are considered, in the "
                      "units of the stated diagonal: the loss is not convex",)  # fmt: skip
    return Verification(checks, claim.statement(), conditions)


def _gradient(claim: Claim, doubled: bool) -> tuple[Array, Array, Array, Array, Array]:
    """Of the losses in w about the centre, and in the intercept; each with a bound on its error.

    And sum_i s_i (x_i - centre)^2.
    """
    rows, loss = claim.rows, claim.loss
    s, y, z, off = rows.s[:, None], claim.y, claim.z, claim.off
    u = loss.slope(y, z)
    weighted, rest = exact_product(s, u)
    if loss.is_squared:
        rest = rest + s * claim.low  # the residual in twice the digits
    else:
        off = off + np.abs(claim.low)
    if loss.is_coupled:
        off = np.sqrt((off**2).sum(axis=1, keepdims=True)) + 0 * off
    error = s * (loss.most_curvature(y, z, off) * off + loss.slope_error(y, z)) + 4 * EPS * np.abs(
        rest
    )
    g, g_error, squares = claim.sums(weighted, rest, error, doubled)
    slope = np.array([fsum(both) for both in np.vstack([weighted, rest]).T])
    slope_error = error.sum(axis=0) * (1 + 1e-9) + EPS * np.abs(slope)
    if not claim.has_intercept:
        slope, slope_error = np.zeros(rows.k), np.zeros(rows.k)
    return g, g_error, slope, slope_error, squares


# --- squared losses -------------------------------------------------------------------------------


def _quadratic_gap(claim: Claim, doubled: bool) -> tuple[float, tuple[str, ...]]:
    rows, W, penalty = claim.rows, claim.W, claim.penalty
    if (
        penalty.linear.any()
        or np.isfinite(penalty.high).any()
        or ((penalty.low > -np.inf).any() and (penalty.low != 0).any())
    ):
        raise Refused(
            "this proof is about quadratic penalties, on coefficients of any sign or none"
        )
    g, error, slope, slope_error, squares = _gradient(claim, doubled)
    a = penalty.curvature
    g, error = g + a * W, error + 4 * EPS * np.abs(a * W) + 2 * EPS * np.abs(g)
    steep = np.abs(slope) + slope_error
    level = float((steep**2).sum()) / (2 * rows.weight) * (1 + 1e-9)
    if claim.has_intercept:  # at the best intercept, residuals are smaller by slope / S
        means, terms = claim.means(), min(rows.n, ROWS) + rows.n / ROWS + 8
        away = means - claim.centre
        unsure = terms * EPS * (np.abs(means) + 1.01 * np.sqrt(squares / rows.weight))
        g = g - away[:, None] * slope
        error = error + np.abs(away)[:, None] * slope_error + unsure[:, None] * steep
        error = error + 4 * EPS * (np.abs(g) + np.abs(away)[:, None] * np.abs(slope))
    alike = (a == a[:, :1]).all()  # else each target has a bound of its own
    gap, cost, left = level + rows.floor, 0.0, np.zeros(0, dtype=np.intp)
    for t in [slice(None)] if alike else [slice(t, t + 1) for t in range(rows.k)]:
        enough = (claim.fields.gap - gap) * (1.0 if alike else 0.99 / rows.k)
        if penalty.is_bounded:
            gap += _nonnegative(claim, g[:, t], error[:, t], a[:, t][:, 0], W[:, t], squares)
            continue
        own, own_cost, own_left = _growth(
            claim, g[:, t], error[:, t], a[:, t][:, 0], W[:, t], enough
        )
        gap, cost, left = gap + own, cost + own_cost, np.union1d(left, own_left)
    if cost == 0.0 or not gap < claim.fields.gap:
        return gap, ()
    radius = (claim.fields.gap - gap) / (cost * (1 + 1e-9))
    if not radius > 2 * float(np.abs(claim.W[left]).max(initial=0.0)):
        return np.inf, ()
    return claim.fields.gap, (
        f"no coefficient of the columns {_listed(left)}, which depend on the others up to "
        f"rounding, is changed by more than {radius:.3g}",
    )


def _growth(
    claim: Claim, g: Array, error: Array, a: Array, W: Array, enough: float
) -> tuple[float, float, Indices]:
    """The bound for targets of one curvature a; what a change of further columns costs; these."""
    none, found = np.zeros(0, dtype=np.intp), np.inf
    if (a > 0).all():
        found = float(((np.abs(g) + error) ** 2 / (2 * a[:, None])).sum()) * (1 + 1e-9)
    if not found <= enough:
        nu, _, M = inverse_basis(Table(claim.rows, claim.means()), claim.has_intercept, a)
        found = min(found, _along(g, error, M, nu))
    if found <= enough:
        return found, 0.0, none
    # Without the penalty, which gains what it is worth at the most.
    g, error = g - a[:, None] * W, error + 8 * EPS * np.abs(a[:, None] * W)
    worth = float((0.5 * a[:, None] * W**2).sum()) * (1 + 1e-9)
    gap, cost, left = _dependent(claim, g, error, enough)
    return (gap + worth, cost, left) if gap + worth < found else (found, 0.0, none)


def _along(g: Array, error: Array, M: Array, nu: float) -> float:
    """|M^T g|^2 / (2 nu), at the worst g within its error."""
    along = np.abs(M.T @ g) + np.abs(M).T @ (error + (len(M) + 4) * EPS * np.abs(g))
    return float((along**2).sum()) / (2 * nu) * (1 + 1e-9) if nu > 0 else np.inf


def _nonnegative(claim: Claim, g: Array, error: Array, a: Array, W: Array, squares: Array) -> float:
    """The bound for coefficients that may not be negative, by the penalty or by all curvature."""
    M, found = 1.0 / np.sqrt(np.maximum(squares + a, 1e-200)), np.inf
    nu, _ = coercivity(Table(claim.rows, claim.means()), M, claim.has_intercept, a)
    up, down = np.maximum(error - g, 0.0), np.maximum(error + g, 0.0)
    for h in (a[:, None], (nu / M**2)[:, None]):
        if (h > 0).all():
            step = np.minimum(W, down / h)
            gain = np.maximum(0.5 * up * (up / h), step * (down - 0.5 * h * step))
            found = min(found, float(gain.sum()) * (1 + 1e-9))
    return found


def _dependent(claim: Claim, g: Array, error: Array, enough: float) -> tuple[float, float, Indices]:
    """The bound where columns depend on others; what a change of these costs, if not exactly."""
    rows, none = claim.rows, np.zeros(0, dtype=np.intp)
    centre = claim.means()
    kept = rows.varying_columns(claim.has_intercept)
    nu, _, M = inverse_basis(Table(rows, centre, kept), claim.has_intercept)
    gap = _along(g[kept], error[kept], M, nu)
    if nu > 0 and gap <= enough:  # only columns that do not vary depend on others
        return gap, 0.0, none
    kept, rest, exact = independent_columns(rows, np.arange(rows.d), centre, claim.has_intercept)
    if not len(kept):
        return (0.0 if exact else np.inf), 0.0, none
    nu, _, M = inverse_basis(Table(rows, centre, kept), claim.has_intercept)
    gap = _along(g[kept], error[kept], M, nu)
    if exact or nu <= 0:
        return gap, 0.0, none
    # What the independent columns leave of the others, for any coefficients C.
    whole = factor(Table(rows, centre, np.concatenate([kept, rest])))
    C = np.linalg.lstsq(whole[:, : len(kept)], whole[:, len(kept) :], rcond=None)[0]
    left = np.abs(g[rest] - C.T @ g[kept]) + error[rest] + np.abs(C).T @ error[kept]
    left += (len(kept) + 4) * EPS * (np.abs(C).T @ np.abs(g[kept]) + np.abs(g[rest]))

    def beyond(block: Array, s: Array) -> Array:
        centred = block - centre
        own = centred[:, rest] - centred[:, kept] @ C
        own = np.abs(own) + (len(kept) + 4) * EPS * (
            np.abs(centred[:, kept]) @ np.abs(C) + np.abs(centred[:, rest])
        )
        return np.asarray(s @ own**2)

    size = sum(rows.each(beyond, rows.s), np.zeros(len(rest)))
    steep = np.sqrt(2 * gap)
    return gap, float(left.sum()) + steep * float(np.sqrt(size).sum()) * g.shape[1], rest


def _listed(numbers: Indices) -> str:
    shown = ", ".join(str(int(j)) for j in numbers[:5])
    return shown + (f" and {len(numbers) - 5} more" if len(numbers) > 5 else "")


# --- smooth losses --------------------------------------------------------------------------------


def _gap_by_curvature(claim: Claim) -> float:
    """The bound by curvature nearby, infinite where there is too little of it."""
    fields, rows, W = claim.fields, claim.rows, claim.W
    if np.isinf(fields.gap):
        return fields.gap  # nothing is claimed
    if (
        fields.diagonal is None
        or fields.reach is None
        or claim.penalty.is_bounded
        or claim.penalty.note
    ):
        raise Refused("this proof needs a diagonal and a reach, and an elastic penalty or none")
    p = rows.d + claim.has_intercept
    if fields.diagonal.shape[0] != p:
        raise Refused(f"the diagonal has {fields.diagonal.shape[0]} entries, not {p}")
    if not claim.loss.is_convex and (rows.k > 1 or claim.penalty.linear.any()):
        raise Refused("a local proof is about one target and a quadratic penalty")
    if claim.loss.is_coupled:
        raise Refused("this proof is about losses of single scores")
    g, error, slope, slope_error, _ = _gradient(claim, False)
    l, a = claim.penalty.linear, claim.penalty.curvature
    size = np.abs(g + a * W + l * np.sign(W)) + error + 8 * EPS * (np.abs(g) + np.abs(a * W) + l)
    size = np.maximum(size - np.where(W == 0, l, 0.0), 0.0)
    size = np.vstack([size, np.abs(slope) + slope_error]) if claim.has_intercept else size
    total = 0.0
    for t in range(rows.k):
        M, reach = fields.diagonal[:, t], float(fields.reach[t])
        steep = float(np.sqrt(((M * size[:, t]) ** 2).sum())) * (1 + 1e-9)
        table = Table(rows, claim.centre, None, claim.has_intercept)
        far = np.concatenate(list(table.each(partial(reached, M))))
        far = reach * far * (1 + 1e-9) + claim.off[:, t] + np.abs(claim.low[:, t])
        own = claim.loss.of_target(t)
        curvatures = rows.s * own.least_curvature(claim.y[:, t], claim.z[:, t], far) * (1 - 4 * EPS)
        curvature = np.append(a[:, t], np.zeros(int(claim.has_intercept)))
        nu, _ = coercivity(table, M, lift=curvature, weights=curvatures)
        if not (nu > 0 and reach >= 2 * steep / nu * (1 + 1e-9)):
            return np.inf
        total += steep**2 / (2 * nu) * (1 + 1e-9)
    return total + rows.floor
