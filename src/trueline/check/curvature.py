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
intercept; witness: basis (d,) or (d, d), or diagonal (d + 1, k) and reach (k,); powers of two of
the units. What is claimed of nu is not read: it is found here.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trueline.check.arithmetic import EPS, exact_product
from trueline.check.coercivity import coercivity
from trueline.check.dependence import factor, independent_columns, inverse
from trueline.check.objective import Claim, read_claim, rows_floor
from trueline.check.schema import Field, get, witness_of
from trueline.check.sums import Augmented, least_eigenvalue, sums_of_columns
from trueline.check.verdict import Check, Refused, Verification

__all__ = ["check"]

Array = NDArray[np.float64]

# What is stated of coercivity and of what is left out is of use to the fit alone.
_OF_SQUARES = {
    "coercivity": Field(finite=False, optional=True),
    "left_out": Field(optional=True),
}
_OF_CURVATURE = {
    "diagonal": Field(("p", "k"), low=1e-290, high=1e290, optional=True),
    "reach": Field(("k",), low=0.0, optional=True),
    "about": Field(("d",), optional=True),
    "coercivity": Field(("k",), finite=False, optional=True),
}


def check(
    certificate: Any, X: Any, y: Any, sample_weight: Any = None, effort: str = "normal"
) -> Verification:
    """Objective and gap of a claim by growth."""
    kind = get(certificate, "kind")
    is_quadratic = kind in ("quadratic", "row space")
    basis = witness_of(certificate).get("basis")
    shape = ("d",) if getattr(basis, "ndim", 2) == 1 else ("d", "r")
    witness = _OF_SQUARES if is_quadratic else _OF_CURVATURE
    if is_quadratic:
        witness = {**witness, "basis": Field(shape, optional=True)}
    claim = read_claim(certificate, witness, X, y, sample_weight)
    if not is_quadratic and claim.has_intercept and claim.fields.about is not None:
        claim.centre = claim.fields.about
    fields = claim.fields
    conditions: tuple[str, ...] = ()
    is_local = kind == "local"
    if not (claim.loss.is_convex or is_local) or claim.penalty.blocks is not None:
        raise Refused("this theorem is about convex losses and penalties of single coefficients")
    if is_quadratic and type(claim.loss).__name__ != "_Squared":
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
    checks = [objective, Check("gap", f"<= {fields.gap:.4g}", f"{gap:.4g}", gap <= fields.gap)]
    if is_local:
        reach = np.inf if fields.reach is None else float(fields.reach.max())
        conditions = (f"only coefficients within the distance {reach:.4g} are considered, in the "
                      "units of the stated diagonal: the loss is not convex",)  # fmt: skip
    statement = claim.statement()
    return Verification(tuple(checks), statement, conditions)


def _gradient(claim: Claim, doubled: bool) -> tuple[Array, Array, Array, Array]:
    """Of the losses in w about the centre, and in the intercept; each with a bound on its error."""
    rows, loss = claim.rows, claim.loss
    s, y, z, off = rows.s[:, None], claim.y, claim.z, claim.off
    u = loss.slope(y, z)
    weighted, rest = exact_product(s, u)
    if type(loss).__name__ == "_Squared":
        rest = rest + s * claim.low  # the residual in twice the digits
    else:
        off = off + np.abs(claim.low)
    if loss.is_coupled:
        off = np.sqrt((off**2).sum(axis=1, keepdims=True)) + 0 * off
    error = s * (loss.most_bend(y, z, off) * off + loss.slope_error(y, z)) + 4 * EPS * np.abs(rest)
    g, g_error, _ = sums_of_columns(claim, weighted, rest, error, doubled)
    if not claim.has_intercept:
        return g, g_error, np.zeros(rows.k), np.zeros(rows.k)
    slope = np.array(
        [math.fsum(np.append(weighted[:, t], rest[:, t]).tolist()) for t in range(rows.k)]
    )
    slope_error = error.sum(axis=0) * (1 + 1e-9) + EPS * np.abs(slope)
    return g, g_error, slope, slope_error


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
    g, error, slope, slope_error = _gradient(claim, doubled)
    a = penalty.curvature
    g, error = g + a * W, error + 4 * EPS * np.abs(a * W) + 2 * EPS * np.abs(g)
    steep = np.abs(slope) + slope_error
    level = float((steep**2).sum()) / (2 * rows.weight) * (1 + 1e-9)
    if claim.has_intercept:  # at the best intercept, residuals are smaller by slope / S
        away, size = np.zeros(rows.d), np.zeros(rows.d)
        for where, block in rows:
            away += rows.s[where] @ (block - claim.centre)
            size += rows.s[where] @ np.abs(block - claim.centre)
        away, size = away / rows.weight, size / rows.weight
        unsure = (min(rows.n, 2048) + rows.n / 2048 + 8) * EPS * size
        g = g - away[:, None] * slope
        error = error + np.abs(away)[:, None] * slope_error + unsure[:, None] * steep
        error = error + 4 * EPS * (np.abs(g) + np.abs(away)[:, None] * np.abs(slope))
    least = a.min(axis=1, initial=np.inf)
    floor = rows_floor(rows)
    if (least > 0).all() and not penalty.is_bounded:  # the penalty alone
        gap = float(((np.abs(g) + error) ** 2 / (2 * least[:, None])).sum()) * (1 + 1e-9)
        if gap + level + floor <= claim.fields.gap:
            return gap + level + floor, ()
    basis = claim.fields.basis
    if basis is not None and basis.ndim == 2 and basis.shape[1] != rows.d:
        basis = None
    if penalty.is_bounded:
        basis = basis if basis is not None and basis.ndim == 1 else None
        nu, basis = _coercivity(rows, None, None, least, basis, claim.has_intercept)
        return _nonnegative(g, error, np.abs(basis), nu, W) + level + floor, ()
    nu, M = _coercivity(rows, None, None, least, basis, claim.has_intercept)
    if nu <= 0:
        nu, M = _coercivity(rows, None, None, least, None, claim.has_intercept)
    if nu > 0:
        return _along(g, error, M, nu) + level + floor, ()
    return _dependent(claim, g, error, least, level + floor)


def _coercivity(*arguments: Any) -> tuple[float, Array]:
    """As of :mod:`trueline.check.coercivity`, or zero where numbers leave the range of doubles."""
    try:
        return coercivity(*arguments)
    except Refused:
        return 0.0, np.zeros(0)


def _along(g: Array, error: Array, M: Array, nu: float) -> float:
    """|M^T g|^2 / (2 nu), at the worst g within its error."""
    if M.ndim == 1:
        along = np.abs(M)[:, None] * (np.abs(g) + error)
    else:
        along = np.abs(M.T @ g) + np.abs(M).T @ (error + (len(M) + 4) * EPS * np.abs(g))
    return float((along**2).sum()) / (2 * nu) * (1 + 1e-9)


def _nonnegative(g: Array, error: Array, M: Array, nu: float, W: Array) -> float:
    if nu <= 0:
        return np.inf
    h = (nu / M**2)[:, None]
    up = np.maximum(error - g, 0.0)
    down = np.maximum(error + g, 0.0)
    step = np.minimum(W, down / h)
    gain = np.maximum(0.5 * up * (up / h), step * (down - 0.5 * h * step))
    return float(gain.sum()) * (1 + 1e-9)


def _dependent(
    claim: Claim, g: Array, error: Array, curvature: Array, level: float
) -> tuple[float, tuple[str, ...]]:
    """Columns that depend on others: exactly, or up to a stated size of their coefficients."""
    rows, columns = claim.rows, np.arange(claim.rows.d)
    if (curvature > 0).any():
        return np.inf, ()
    kept, rest, exact = independent_columns(rows, columns, claim.centre, claim.has_intercept)
    if not len(kept):
        return (level, ()) if exact else (np.inf, ())
    basis = inverse(factor(rows, kept, claim.centre))
    if basis is None:
        return np.inf, ()
    nu, M = _coercivity(rows, kept, None, None, basis, claim.has_intercept)
    if nu <= 0:
        return np.inf, ()
    gap = _along(g[kept], error[kept], M, nu) + level
    if exact:
        return gap, ()
    # What the independent columns leave of the others, for any coefficients C.
    whole = factor(rows, np.concatenate([kept, rest]), claim.centre)
    C = np.linalg.lstsq(whole[:, : len(kept)], whole[:, len(kept) :], rcond=None)[0]
    left = np.abs(g[rest] - C.T @ g[kept]) + error[rest] + np.abs(C).T @ error[kept]
    left += (len(kept) + 4) * EPS * (np.abs(C).T @ np.abs(g[kept]) + np.abs(g[rest]))
    size = np.zeros(len(rest))
    for where, block in rows:
        centred = block - claim.centre
        own = centred[:, rest] - centred[:, kept] @ C
        own = np.abs(own) + (len(kept) + 4) * EPS * (
            np.abs(centred[:, kept]) @ np.abs(C) + np.abs(centred[:, rest])
        )
        size += rows.s[where] @ own**2
    if claim.has_intercept and rows.is_sparse:
        size = size + 1e-12 * size
    steep = np.sqrt(2 * _along(g[kept], error[kept], M, nu))
    cost = float(left.sum()) + steep * float(np.sqrt(size).sum()) * rows.k
    radius = (claim.fields.gap - gap) / (cost * (1 + 1e-9)) if cost > 0 else np.inf
    if not radius > 2 * float(np.abs(claim.W[rest]).max(initial=0.0)):
        return np.inf, ()
    return claim.fields.gap, (
        f"no coefficient of the columns {_listed(rest)}, which depend on the others up to "
        f"rounding, is changed by more than {radius:.3g}",
    )


def _listed(numbers: NDArray[np.intp]) -> str:
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
    g, error, slope, slope_error = _gradient(claim, False)
    l, a = claim.penalty.linear, claim.penalty.curvature
    size = np.abs(g + a * W + l * np.sign(W)) + error + 8 * EPS * (np.abs(g) + np.abs(a * W) + l)
    size = np.maximum(size - np.where(W == 0, l, 0.0), 0.0)
    size = np.vstack([size, np.abs(slope) + slope_error]) if claim.has_intercept else size
    total = 0.0
    for t in range(rows.k):
        M, reach = fields.diagonal[:, t], float(fields.reach[t])
        steep = float(np.sqrt(((M * size[:, t]) ** 2).sum())) * (1 + 1e-9)
        far = np.zeros(rows.n)
        augmented = Augmented(rows, claim.centre, claim.has_intercept)
        for where, block in augmented:
            far[where] = np.abs(block) @ M
        far = reach * far * (1 + 1e-9) + claim.off[:, t] + np.abs(claim.low[:, t])
        own = claim.loss.of_target(t)
        bends = rows.s * own.least_bend(claim.y[:, t], claim.z[:, t], far) * (1 - 4 * EPS)
        bend = np.append(a[:, t], np.zeros(int(claim.has_intercept)))
        nu = least_eigenvalue(augmented, bends, bend, M)
        if not (nu > 0 and reach >= 2 * steep / nu * (1 + 1e-9)):
            return np.inf
        total += steep**2 / (2 * nu) * (1 + 1e-9)
    return total + rows_floor(rows)
