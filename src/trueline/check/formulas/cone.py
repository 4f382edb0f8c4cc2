r"""Losses of residuals, coefficients that may not be negative: how large these can be.

*Theorem.* Let t_i be any numbers with sum_i s_i t_i = 0 if there is an intercept, and let
p_j = sum_i s_i t_i x_ij >= 0 for all columns. Every v >= 0 whose objective is at most P has

    p.v = sum_i s_i t_i (r_i + y_i) <= R(P) + |t| |y|,

r its residuals, norms weighted by s, y about its mean if there is an intercept, and R the bound of
the loss on such a sum: |t| sqrt(2 P) for squares. With the dual point u of
:mod:`trueline.check.theorems.fenchel_young` and q_j = sum_i s_i u_i x_ij this bounds what q.v takes
away, -q.v <= max_j (-q_j / p_j) p.v. *Proof.* Cauchy and Schwarz; v >= 0. []

Columns that are constant beside an intercept, or zero, have q_j = 0 and are left out. Of the penalty no more
is used than that it is not negative. Read from the witness: cone (d,), of which t = X_c cone.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from trueline.check.formulas.claims import Claim
from trueline.check.numbers.arithmetic import EPS

__all__ = ["cone_bound"]

Array = NDArray[np.float64]


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
        balance = abs(math.fsum((rows.s * t[:, 0]).tolist())) / rows.weight
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
