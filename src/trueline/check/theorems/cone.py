"""Theorem of the cone: non-negative coefficients are held by one direction in which all rise.

Let t be a number for every row, of mean zero if there is an intercept, and p_j = sum_i s_i t_i x_ij
its product with column j.

*Theorem.* If all p_j > 0 and the dual point leaves q_j <= off_j of column j, coefficients w >= 0
whose objective is no higher than that of the claim gain at most max_j (off_j - q_j)_+ / p_j times
sum_j p_j w_j.
*Proof.* sum_j (off_j - q_j)_+ w_j <= max_j ((off_j - q_j)_+ / p_j) sum_j p_j w_j, and sum_j p_j w_j
= sum_i s_i t_i x_i.w is at most |t| times the norms of targets and residuals, of which the latter
is bounded by the objective. []

Read from the certificate: cone, the coefficients of the columns that make t.
"""

from __future__ import annotations

import numpy as np

from trueline.check.arithmetic import EPS, Array, fsum
from trueline.check.claims import Claim


def cone_bound(claim: Claim, cone: Array, q: Array, off: Array, excess: Array) -> float:
    """The bound for a dual point with sums q up to off, and the excess of its losses."""
    rows, penalty = claim.rows, claim.penalty
    is_nonnegative = (penalty.low == 0).all() and np.isinf(penalty.high).all()
    if penalty.note or not is_nonnegative:
        return np.inf
    t, first = np.zeros((rows.n, 1)), None
    constant = np.ones(rows.d, dtype=bool)
    for where, block in rows:
        t[where, 0] = (block - claim.centre) @ cone
        if first is None:
            first = block[0] if claim.has_intercept else np.zeros(rows.d)
        constant &= (block == first).all(axis=0)
    s, balance = rows.s[:, None], 0.0
    if claim.has_intercept:
        t = t - float(rows.s @ t[:, 0]) / rows.weight
        balance = abs(fsum(rows.s * t[:, 0])) / rows.weight
        balance += 2 * EPS * float(np.abs(t).max(initial=0.0))
    nothing = np.zeros_like(t)
    p, error, squares = claim.sums(s * t, nothing, EPS * np.abs(s * t), False)
    p = p[:, 0] - error[:, 0] - balance * np.sqrt(rows.weight * squares) * 1.01
    if not (p[~constant] > 0).all():
        return np.inf
    y = rows.y - (rows.s @ rows.y / rows.weight if claim.has_intercept else 0.0)
    norm = float(np.sqrt((s * t**2).sum())) + balance * np.sqrt(rows.weight)
    largest = float(np.abs(t).max(initial=0.0)) + balance
    far = claim.loss.most_residual(claim.ceiling, rows.weight, norm, largest)
    if not np.isfinite(far):
        return np.inf
    far = far + norm * np.sqrt((s * y**2).sum(axis=0))
    free = ~constant[:, None]
    rise = np.where(free, np.maximum(off - q, 0.0) / np.where(constant, 1.0, p)[:, None], 0.0)
    back = np.where(free, np.maximum(off + q, 0.0) * claim.W, 0.0)
    value, rounding = penalty.value(claim.W)
    total = float((excess + rise.max(axis=0, initial=0.0) * far + back.sum(axis=0)).sum())
    return (total + value + rounding) * (1 + 1e-9) + rows.floor
