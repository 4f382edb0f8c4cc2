r"""Huber's regression with its scale: a dual point that is made feasible exactly.

Minimised over w, b and sigma >= 0 is, with r_i = x_i.w + b - y_i and S = sum_i s_i,

    F = sum_i s_i (sigma + sigma H(r_i / sigma)) + alpha ||w||^2,
    H(t) = t^2 where |t| <= epsilon, 2 epsilon |t| - epsilon^2 beyond; sigma = 0: 2 epsilon |r|.

Theorem. Every u with |u_i| <= 2 epsilon, sum_i s_i u_i^2 <= 4 S and, with an intercept,
sum_i s_i u_i = 0 proves F >= -sum_i s_i u_i y_i - ||X^T (s u)||^2 / (4 alpha).

Proof. sigma H(r / sigma) >= u r - sigma u^2 / 4; the least over sigma >= 0, b and w is the bound.

Any stated u is made feasible. (a) With e = sum_i s_i u_i, the u_i of the heavier sign are
multiplied by 1 - eta, eta = |e| / sum of their s_i |u_i|; columns and target may then be counted
from means. (b) V = X_c^T (s u) costs V_j^2 / (4 alpha), or is brought to -2 alpha w, the w stated,
by taking off d = X_c G^-1 Z, Z = V + 2 alpha w, G = X_c^T S X_c: with M^T G M >= nu I, sum_i s_i
d_i^2 <= kappa^2 = |M^T Z|^2 / nu and |d_i| <= kappa |M^T x_i| / sqrt(nu). Without a penalty,
columns that are combinations of others need no Z of their own. (c) All of u is multiplied by a
number up to 1 that brings it within the two bounds. Where none of this is enough, a condition
states how large coefficients may be.

Sums of n numbers err by (log2 n + 32) eps of their magnitudes (pairwise summation), of products of
columns by (64 + log2 n + 12) eps.

Read: objective, objective_rounding, gap, loss (epsilon), penalty (alpha), fit_intercept, coef,
intercept; of the witness scale (sigma) and dual (u, of the rows with a positive weight).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from trueline.check.arithmetic import EPS
from trueline.check.claims import judged, read_about
from trueline.check.coercivity import coercivity
from trueline.check.dependence import factor, independent_columns
from trueline.check.rows import Rows
from trueline.check.schema import Field, read
from trueline.check.verdict import Refused, Verification

__all__ = ["check"]

Array = NDArray[np.float64]

_STRENGTH = {"delta": Field(low=1e-100, high=1e100), "alpha": Field(low=0.0, high=1e100)}


def check(
    certificate: Any, X: Any, y: Any, sample_weight: Any = None, effort: str = "normal"
) -> Verification:
    """All checks of a claim about Huber's regression with its scale."""
    rows = Rows(X, y, sample_weight)
    if rows.k != 1:
        raise Refused("there is one target")
    witness = {"scale": Field((1,), low=0.0), "dual": Field(("n", 1))}
    claim = read_about("huber", "l2", certificate, rows, witness)
    strength = read(claim.strength, _STRENGTH, {}, {})
    epsilon, alpha, sigma = strength.delta, strength.alpha / 2, float(claim.scale[0])
    objective, rounding = _objective(rows, claim.coef, claim.intercept, sigma, epsilon, alpha)
    lower, conditions = _lower_bound(rows, claim.dual[:, 0], claim, epsilon, alpha)
    return Verification(
        judged(claim, objective, rounding, lower),
        f"no coefficients and no scale have an objective below {claim.objective:.10g} by more than "
        f"{claim.gap:.3g}",
        conditions,
    )


def _objective(
    rows: Rows, W: Array, b: Array, sigma: float, epsilon: float, alpha: float
) -> tuple[float, float]:
    """F and a bound on the error of evaluating it."""
    values, errors = np.empty(rows.n), np.empty(rows.n)
    for where, block in rows.blocks():
        r = np.abs(block @ W + b - rows.y[where])[:, 0]
        reach = (abs(block) @ np.abs(W) + np.abs(b) + np.abs(rows.y[where]))[:, 0]
        steep = np.minimum(r, epsilon * sigma) / sigma if sigma > 0 else np.full_like(r, epsilon)
        value = steep * (2 * r - steep * sigma)
        values[where] = rows.s[where] * value
        # sigma H(r / sigma) is steeper nowhere than 2 epsilon.
        reach = (rows.row_terms + 3) * EPS * reach
        errors[where] = rows.s[where] * (2 * epsilon * reach + 8 * EPS * (value + steep * r))
    penalty = alpha * float((W * W).sum())
    total = sigma * rows.weight + float(values.sum()) + penalty
    error = float(errors.sum()) * (1 + 1e-6) + _units(rows) * (total - penalty)
    return total, error + (rows.d + 8) * EPS * penalty + (1e-300 if total else 0.0)


def _units(rows: Rows) -> float:
    return float((np.log2(rows.n + 2) + 32) * EPS)


def _lower_bound(
    rows: Rows, u: Array, claim: Any, epsilon: float, alpha: float
) -> tuple[float, tuple[str, ...]]:
    """The bound of the theorem at the repaired u, and what it presupposes."""
    s, y, units = rows.s, rows.y[:, 0], _units(rows)
    weighted, centre, level, eta = s * u, np.zeros(rows.d), 0.0, 0.0
    if claim.fit_intercept:
        heavy = np.sign(weighted.sum()) * weighted > 0
        side = float(np.abs(weighted[heavy]).sum())
        e = abs(float(weighted.sum())) + units * float(np.abs(weighted).sum())
        eta = e / (side * (1 - units)) if side > 0 else 0.0
        level = float((s * y).sum()) / rows.weight
        centre = sum((s[where] @ block for where, block in rows.blocks()), np.zeros(rows.d))
        centre = centre / rows.weight
    if not 0 <= eta <= 1:
        return 0.0, ()
    parts, magnitude, squares = [], np.zeros(rows.d), np.zeros(rows.d)
    for where, block in rows:
        centred = block - centre
        parts += [
            centred[first : first + 64].T @ weighted[where][first : first + 64]
            for first in range(0, len(block), 64)
        ]
        magnitude += np.abs(centred).T @ np.abs(weighted[where])
        squares += s[where] @ centred**2
    V, w = np.ascontiguousarray(np.stack(parts, axis=1)).sum(axis=1), claim.coef[:, 0]
    error = ((76 + np.log2(rows.n + 2)) * EPS + eta) * magnitude * (1 + 16 * EPS)
    Z = np.abs(V + 2 * alpha * w) + error + 8 * EPS * alpha * np.abs(w)
    V = (np.abs(V) + error) * (1 + 4 * EPS)
    products, beside = weighted * (y - level), np.abs(y - level)
    value = -float(products.sum()) - (units + eta) * float(np.abs(products).sum()) * (1 + units)
    total = float((weighted * u).sum()) * (1 + units)
    y_size = np.sqrt(float((s * beside**2).sum())) * (1 + units)
    length, top = 2 * np.sqrt(rows.weight * (1 - units)), float(np.abs(u).max(initial=0.0))

    def shrunk(value: float, kappa: float, tau: float) -> float:
        within = min(
            1.0, 2 * epsilon / (top + tau + 1e-300), length / (np.sqrt(total) + kappa + 1e-300)
        )
        return value * within * (1 - 8 * EPS) if value > 0 else value

    cost = V * (V / (4 * alpha)) if alpha > 0 else np.where(V > 0, np.inf, 0.0)
    best = max(shrunk(value, 0.0, 0.0) - float(cost.sum()) * (1 + (rows.d + 8) * EPS), 0.0)
    if judged(claim, 0.0, 0.0, best)[1].holds:
        return best, ()
    every = np.arange(rows.d)
    keep, rest, exact = independent_columns(rows, every, centre, claim.fit_intercept)
    if len(rest) == 0 or (alpha == 0 and exact):
        nu, M = _inverse_basis(rows, keep, factor(rows, keep, centre), claim.fit_intercept)
        if nu > 0:
            kappa = float(np.sqrt(((np.abs(M).T @ Z[keep]) ** 2).sum() / nu))
            kappa, longest = kappa * (1 + (2 * rows.d + 8) * EPS), 0.0
            for _, block in rows:
                centred = (block - centre)[:, keep]
                along = np.abs(centred @ M) + (rows.d + 4) * EPS * (np.abs(centred) @ np.abs(M))
                longest = max(longest, float((along**2).sum(axis=1).max()))
            tau = kappa * float(np.sqrt(longest / nu)) * (1 + (rows.d + 8) * EPS)
            paid = alpha * float((w * w).sum()) * (1 + (rows.d + 8) * EPS)
            best = max(best, shrunk(value - kappa * y_size, kappa, tau) - paid)
    norm = np.sqrt(squares)
    radius = 10 * (np.abs(w) + np.divide(y_size, norm, out=0 * norm, where=norm > 0))
    within = float(np.minimum(V * radius, cost).sum()) * (1 + (rows.d + 8) * EPS)
    near, largest = shrunk(value, 0.0, 0.0) - within, radius[V * radius < cost].max(initial=0.0)
    if judged(claim, 0.0, 0.0, best)[1].holds or near <= best:
        return best, ()
    said = (
        f"coefficients are no larger than {largest:.3g}, ten times the stated ones and |y| / |x_j|"
    )
    return near, (said,)


def _inverse_basis(
    rows: Rows, keep: NDArray[np.intp], R: Array, centred: bool
) -> tuple[float, Array]:
    """The inverse of a triangular factor, and how coercive the Gram matrix is in it."""
    try:
        M: Array = np.asarray(np.linalg.inv(R), dtype=np.float64)
        return coercivity(rows, keep, basis=M, centred=centred) if M.size else (1.0, M)
    except (np.linalg.LinAlgError, Refused):
        return 0.0, R
