r"""Logistic regression with Firth's correction: objective, slope, and a bound on all objectives.

With labels y_i = -1 or +1, rows a_i = (x_i, 1), scores z_i = a_i.v, h = 1 / ((1 + e^z)(1 + e^-z)),
the information I(v) = sum_i s_i h_i a_i a_i^T and q_i = s_i h_i a_i^T I^-1 a_i, minimised is

    F(v) = sum_i s_i log(1 + exp(-y_i z_i)) - 1/2 log det I(v)
    g    = sum_i (s_i l'_i - q_i (1/2 - p_i)) a_i,          p_i = 1 / (1 + exp(-z_i)).

Theorem. No v has F(v) < -1/2 log det(sum_i s_i a_i a_i^T / 4), and the slope of F at the stated v,
|diag(I)^-1/2 g|, is at most the stated one. F is not convex: of other v no more is claimed.

Proof. Losses are not negative, h <= 1/4, and the determinant grows with the matrix.

Columns that are exact combinations of the others are left out of the determinant, and their
coefficients are zero: those kept are independent, as many as an independent set of which all others
are exact combinations. Columns left out that depend on others up to rounding only are a condition.

Rounding. Scores err by r_i = (terms + 4) eps (|x_i||w| + |b|); h, log(1 + e) and l' by r_i and 8 eps
relatively. With K = D^-1 I D^-1, D the roots of the computed diagonal, sums of n rows give K up to
entries of theta = max r_i + (N + 16) eps (Cauchy-Schwarz), Cholesky's factor has L L^T = K + E with
||E|| <= delta = p theta + p (p + 2) eps, and so |log det K - 2 sum log L_jj| <= -p log(1 - delta /
lambda), lambda the least eigenvalue of L L^T. The computed inverse R has ||R - K^-1|| <= rho / (lambda
- delta), rho = ||1 - K R||, which bounds the error of q_i, and so that of g.

Read: objective, objective_rounding, gap, loss, penalty, fit_intercept, coef, intercept; of the
witness slope and columns (those kept).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trueline.check.arithmetic import EPS, ROWS
from trueline.check.dependence import independent_columns
from trueline.check.rows import Rows
from trueline.check.schema import CLAIMS, Field, is_builtin, parameters, read
from trueline.check.sums import Augmented
from trueline.check.verdict import Check, Refused, Verification

__all__ = ["check"]

Array = NDArray[np.float64]

_FIELDS = {
    **CLAIMS,
    "loss": Field(kind="any"),
    "penalty": Field(kind="any"),
    "fit_intercept": Field(kind="boolean"),
    "coef": Field(("d", 1)),
    "intercept": Field((1,)),
}
_WITNESS = {"slope": Field(low=0.0), "columns": Field(("m",), "integer", low=0)}


def check(
    certificate: Any, X: Any, y: Any, sample_weight: Any = None, effort: str = "normal"
) -> Verification:
    """All checks of a fit with Firth's correction."""
    rows = Rows(X, y, sample_weight)
    claim = read(certificate, _FIELDS, _WITNESS, {"d": rows.d})
    names = parameters(claim.loss)["name"], parameters(claim.penalty)["name"]
    own = is_builtin(claim.loss, "losses") and is_builtin(claim.penalty, "penalties")
    if not own or names != ("logistic", "none"):
        raise Refused("the claim is about another loss than the logistic one, or has a penalty")
    if rows.k != 1 or not np.isin(rows.y, (-1.0, 1.0)).all():
        raise Refused("the targets are not -1 and +1")
    if not claim.fit_intercept and claim.intercept.any():
        raise Refused("an intercept where there is none")
    kept = claim.columns.astype(np.intp)
    if (kept >= rows.d).any() or (np.diff(kept) <= 0).any():
        raise Refused("the columns of the information are not some of those of X, in order")
    left = np.setdiff1d(np.arange(rows.d), kept)
    if claim.coef[left].any():
        raise Refused("columns left out have coefficients")
    centre = np.zeros(rows.d)
    if claim.fit_intercept:
        parts = (rows.s[where] @ block for where, block in rows.blocks())
        centre = sum(parts, np.zeros(rows.d)) / rows.weight
    conditions = _left_out(rows, kept, left, centre, claim.fit_intercept)
    table = Augmented(rows, centre, claim.fit_intercept, kept)
    objective, rounding, slope, bound = _facts(rows, table, claim.coef, claim.intercept)
    off = abs(objective - claim.objective) * (1 + 2 * EPS) + rounding
    gap = claim.objective + claim.objective_rounding - bound
    gap += 4 * EPS * (abs(claim.objective) + claim.objective_rounding + abs(bound))
    said = f"{claim.objective:.12g} within {claim.objective_rounding:.2g}"
    found = f"{objective:.12g} within {rounding:.2g}"
    checks = (
        Check("objective", said, found, bool(off <= claim.objective_rounding)),
        Check("slope", f"<= {claim.slope:.3g}", f"{slope:.3g}", bool(slope <= claim.slope)),
        Check("gap", f"<= {claim.gap:.4g}", f"{gap:.4g}", bool(gap <= claim.gap)),
    )
    return Verification(
        checks,
        f"the slope of the penalised likelihood, in units of its curvature, is at most "
        f"{claim.slope:.3g}; it is not convex, and all that is known of other coefficients is that "
        f"none have an objective below {claim.objective:.10g} by more than {claim.gap:.3g}",
        conditions,
    )


def _left_out(
    rows: Rows, kept: NDArray[np.intp], left: NDArray[np.intp], centre: Array, constant: bool
) -> tuple[str, ...]:
    """What is presupposed of the columns left out; those kept turn out to be independent later."""
    if len(left) == 0:
        return ()
    basis, _, exact = independent_columns(rows, np.arange(rows.d), centre, constant)
    if len(basis) > len(kept):
        raise Refused("columns left out of the information do not depend on the others")
    if exact and len(basis) == len(kept):
        return ()
    return (f"columns {left[:9].tolist()} depend on the others",)


def _log_determinant(K: Array, theta: float) -> tuple[float, float, float, float]:
    """log det and its error, the least eigenvalue from below, and the error of K in norm."""
    p = len(K)
    delta = (p * theta + p * (p + 2) * EPS) * (1 + 1e-6)
    try:
        L = np.linalg.cholesky(K)
        least = float(np.linalg.eigvalsh(K)[0]) - (p + 8) * p * EPS
        np.linalg.cholesky(K - least * np.eye(p))  # proves it, up to delta
    except np.linalg.LinAlgError:
        raise Refused("columns of the information depend on each other") from None
    least -= 2 * delta
    if not least > delta:
        raise Refused("columns of the information depend on each other, as far as one can tell")
    logs = 2 * np.log(L.diagonal())
    error = -p * math.log1p(-delta / least) + 8 * p * EPS * (1 + float(np.abs(logs).sum()))
    return float(logs.sum()), error, least, delta


def _facts(rows: Rows, table: Augmented, W: Array, b: Array) -> tuple[float, float, float, float]:
    """The objective, its error, the slope from above, and what every objective is above."""
    p, reach, z = table.d, np.zeros(rows.n), np.zeros(rows.n)
    for where, block in rows.blocks():
        z[where] = (np.asarray(block @ W) + b)[:, 0]
        size = (np.asarray(abs(block) @ np.abs(W)) + np.abs(b))[:, 0]
        reach[where] = (rows.row_terms + 4) * EPS * size
    s, y, small = rows.s, rows.y[:, 0], np.exp(-np.abs(z))
    h, margin = small / (1 + small) ** 2, y * z
    losses = s * (np.maximum(-margin, 0.0) + np.log1p(small))
    slope = -y * np.where(margin >= 0, small, 1.0) / (1 + small)
    total = math.fsum(losses.tolist())
    rounding = float((s * reach + 16 * EPS * losses).sum()) * (1 + 1e-9)
    information, whole = np.zeros((p, p)), np.zeros((p, p))
    for where, A in table:
        information += A.T @ ((s * h)[where, None] * A)
        whole += A.T @ (s[where, None] * A)
    terms = (min(rows.n, ROWS) + rows.n / ROWS + 16) * EPS
    theta = float(reach.max()) * 1.01 + terms
    root, wide = np.sqrt(information.diagonal()), np.sqrt(whole.diagonal())
    sound = np.isfinite(whole).all() and (root > 1e-150).all() and (wide < 1e150).all()
    if not (sound and reach.max() < 0.01):
        raise Refused("scores or columns of the information are too large or small for doubles")
    unit = information / np.outer(root, root)
    own, error, least, delta = _log_determinant(unit, theta)
    top, top_error, _, _ = _log_determinant(whole / np.outer(wide, wide), terms)
    logs, wide_logs = 2 * np.log(root), 2 * np.log(wide)
    few = 8 * p * EPS * float(np.abs(logs).sum() + np.abs(wide_logs).sum() + 2 * p)
    objective = total - 0.5 * (own + float(logs.sum()))
    rounding += 0.5 * error + few + 4 * EPS * (abs(total) + abs(objective))
    bound = -0.5 * (top + float(wide_logs.sum()) + top_error - p * math.log(4.0)) - few
    inverse = np.linalg.inv(unit)
    norm = float(np.linalg.norm(inverse))
    rho = float(np.linalg.norm(np.eye(p) - unit @ inverse)) + ((p + 4) * p * EPS + delta) * norm
    off = rho / (least - delta) + 4 * p * EPS * norm  # of the inverse
    g, g_error = np.zeros(p), np.zeros(p)
    for where, A in table:
        scaled, weight = A / root, s[where] * h[where]
        length = np.square(scaled).sum(axis=1) * (1 + (p + 4) * EPS)
        q = weight * ((scaled @ inverse) * scaled).sum(axis=1)
        q_error = weight * length * (off + (theta + (2 * p + 16) * EPS) * norm)
        away = 0.5 * np.tanh(-0.5 * z[where])
        t = s[where] * slope[where] - q * away
        t_error = s[where] * (0.25 * reach[where] + 8 * EPS * np.abs(slope[where]))
        t_error += 0.5 * q_error + np.abs(q) * (0.25 * reach[where] + 8 * EPS)
        g += A.T @ t
        g_error += np.abs(A).T @ (t_error + terms * np.abs(t))
    steep = float(np.linalg.norm((np.abs(g) + g_error) / root)) * (1 + theta + (p + 16) * EPS)
    return objective, rounding, steep, bound
