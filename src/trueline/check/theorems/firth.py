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

Rounding. Scores err by r_i = (terms + 4) eps (|x_i||w| + |b|); h, log(1 + e) and l' by r_i and 8
eps relatively. With M the inverse of a triangular factor of I, B = A M and K = B^T S H B, log det I
= log det K - 2 sum log |M_jj|, and K is one up to delta in norm: what is computed of K - 1, and its
error. B errs by (p + 6) eps |A||M|, whose Frobenius norm weighted is beta; sums of n rows by theta
= max r_i + (N + 16) eps of trace K (Cauchy-Schwarz). So |log det K| <= -p log(1 - delta), and q_i =
s_i h_i b_i^T K^-1 b_i is s_i h_i |b_i|^2 up to a share of delta / (1 - delta). Weights s_i h_i that
leave the range of doubles count as the number TINY: that adds at most TINY |b_i|^2 to K and to q_i.

Read: objective, objective_rounding, gap, loss, penalty, fit_intercept, coef, intercept; of the
witness slope and columns (those kept).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from trueline.check.arithmetic import EPS, ROWS, Array, Indices
from trueline.check.claims import Claim, below, judged, read_about, require_signs
from trueline.check.rows import Rows, Table, centre, factor, independent_columns, inverse
from trueline.check.schema import Field
from trueline.check.verdict import Check, Refused, Verification

_TINY = 1e-280
_WITNESS = {"slope": Field(low=0.0), "columns": Field(("m",), "integer", low=0)}


def check(certificate: Any, X: Any, y: Any, sample_weight: Any, effort: str) -> Verification:
    """All checks of a fit with Firth's correction."""
    claim = read_about("logistic", "none", certificate, {}, _WITNESS)
    about = Claim(claim, X, y, sample_weight)
    rows = about.rows
    require_signs(rows)
    kept = claim.columns.astype(np.intp)
    if (kept >= rows.d).any() or (np.diff(kept) <= 0).any():
        raise Refused("the columns of the information are not some of those of X, in order")
    left, middle = np.setdiff1d(np.arange(rows.d), kept), centre(rows, claim.fit_intercept)
    if claim.coef[left].any():
        raise Refused("columns left out have coefficients")
    conditions = _left_out(rows, kept, left, middle, claim.fit_intercept)
    table = Table(rows, middle, kept, claim.fit_intercept)
    objective, rounding, slope, bound = _facts(about, table)
    checks = Check.at_most("slope", claim.slope, slope), *judged(claim, objective, rounding, bound)
    said = "the slope of the penalised likelihood, in units of its curvature, is at most "
    said += f"{claim.slope:.3g}; it is not convex, and all that is known of other coefficients is "
    return Verification(checks, said + f"that none have an objective {below(claim)}", conditions)


def _left_out(
    rows: Rows, kept: Indices, left: Indices, middle: Array, constant: bool
) -> tuple[str, ...]:
    """What is presupposed of the columns left out; those kept turn out to be independent later."""
    if len(left) == 0:
        return ()
    basis, _, exact = independent_columns(rows, np.arange(rows.d), middle, constant)
    if len(basis) > len(kept):
        raise Refused("columns left out of the information do not depend on the others")
    if exact and len(basis) == len(kept):
        return ()
    return (f"columns {left[:9].tolist()} depend on the others",)


def _factor(table: Table, weights: Array, theta: float) -> tuple[float, float, Array, float]:
    """log det of sum_i weights_i a_i a_i^T, its error, M, and delta."""
    p, M = table.d, inverse(factor(table, weights))
    if M is None:
        raise Refused("columns of the information depend on each other")
    M, K, drift, lifted = np.triu(M), -np.eye(p), 0.0, 0.0
    for where, A in table:
        root = np.sqrt(weights[where])[:, None]
        B = root * (A @ M)
        K += B.T @ B
        spread = np.abs(A) @ np.abs(M)
        drift += float(np.square(root * spread).sum())
        lifted += _TINY * float(np.square(spread).sum())
    trace, beta = float(np.trace(K)) + p, (p + 6) * EPS * np.sqrt(drift)
    delta = 1.01 * (theta * trace + 2 * beta * np.sqrt(trace) + beta**2) + np.linalg.norm(K)
    delta += 1.01 * lifted
    if not delta < 0.5:
        raise Refused("columns of the information depend on each other, as far as one can tell")
    logs = np.log(np.abs(M.diagonal()))
    error = -p * math.log1p(-delta) + 16 * p * EPS * (1 + float(np.abs(logs).sum()))
    return -2 * float(logs.sum()), error, M, float(delta)


def _facts(about: Claim, table: Table) -> tuple[float, float, float, float]:
    """The objective, its error, the slope from above, and what every objective is above."""
    about.evaluate(False)
    rows, z, reach = about.rows, about.z[:, 0], about.off[:, 0]
    p, s, small = table.d, rows.s, np.exp(-np.abs(z))
    h, slope = small / (1 + small) ** 2, about.loss.slope(about.y, about.z)[:, 0]
    (total, rounding), terms = about.losses(), (min(rows.n, ROWS) + rows.n / ROWS + 16) * EPS
    theta = float(reach.max()) * 1.01 + terms
    if p == 0 or not reach.max() < 0.01:
        raise Refused("scores are too large for their probabilities to be told, or none are left")
    information = np.maximum(s * h, _TINY)
    log_det, det_error, M, delta = _factor(table, information, theta)
    most, most_error, *_ = _factor(table, s, terms)
    rounding += 0.5 * det_error + 4 * EPS * (abs(total) + abs(log_det))
    bound = -0.5 * (most + most_error - p * math.log(4.0)) - 4 * EPS * (abs(most) + p)
    g, g_error, squares = np.zeros(p), np.zeros(p), np.zeros(p)
    for where, A in table:
        B, weight, r = A @ M, information[where], 0.25 * reach[where] + 8 * EPS
        length = np.sqrt(np.square(B).sum(axis=1))
        off = (p + 6) * EPS * np.sqrt(np.square(np.abs(A) @ np.abs(M)).sum(axis=1))
        q, own = weight * length**2, delta / (1 - delta) + theta + (p + 16) * EPS
        q_error = weight * ((length + off) ** 2 * own + (2 * length + off) * off * (1 + own))
        q_error += _TINY * (length + off) ** 2
        t = s[where] * slope[where] - q * 0.5 * np.tanh(-0.5 * z[where])
        t_error = s[where] * r + q_error + np.abs(q) * r + terms * np.abs(t)
        g, g_error = g + A.T @ t, g_error + np.abs(A).T @ t_error
        squares += weight @ A**2
    steep = float(np.linalg.norm((np.abs(g) + g_error) / np.sqrt(squares)))
    return total - 0.5 * log_det, rounding, steep * (1 + theta + delta + (p + 16) * EPS), bound
