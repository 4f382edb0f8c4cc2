r"""Huber's regression with its scale: a dual point that no scale gains from.

Minimised over w, b and sigma >= 0 is, with r_i = x_i.w + b - y_i and S = sum_i s_i,

    F = sum_i s_i (sigma + sigma H(r_i / sigma)) + alpha ||w||^2,
    H(t) = t^2 where |t| <= epsilon, 2 epsilon |t| - epsilon^2 beyond; sigma = 0: 2 epsilon |r|.

Theorem. Let u be a dual point of :mod:`trueline.check.theorems.fenchel_young` for the stated sigma,
and sum_i s_i u_i^2 <= 4 S. F is lower nowhere by more than what u proves of w and b for that sigma,
and sigma (S - sum_i s_i u_i^2 / 4).

Proof. The conjugate of l(r) = sigma H(r / sigma) is sigma u^2 / 4 on |u| <= 2 epsilon. Summed over
the rows, sigma + l(r) >= u r + sigma (1 - u^2 / 4) holds for every sigma; the last terms add up to
no less than 0, which is what they are at sigma = 0.

Here l is c r^2 / 2 up to a kink and linear beyond, with c and the kink rounded such that |u| <= 2
epsilon. As l* is added and taken away again, that costs nothing but the rounding of F itself.

Read: objective, objective_rounding, gap, loss (epsilon), penalty (alpha), fit_intercept, coef,
intercept; of the witness scale (sigma) and dual (u, of the rows with a positive weight).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from trueline.check.arithmetic import EPS, fsum
from trueline.check.claims import UNITS, Claim, below, read_about
from trueline.check.losses import Piece, PiecewiseQuadratic
from trueline.check.schema import Field, read
from trueline.check.theorems.fenchel_young import DUAL, judged_by_dual
from trueline.check.verdict import Refused, Verification

_STRENGTH = {"delta": Field(low=1e-100, high=1e100), "alpha": Field(low=0.0, high=1e100)}


def check(certificate: Any, X: Any, y: Any, sample_weight: Any, effort: str) -> Verification:
    """All checks of a claim about Huber's regression with its scale."""
    own = {"scale": Field((1,), low=0.0, high=1e300), "dual": Field(("n", "k"))}
    fields = read_about("huber", "l2", certificate, {"k": 1}, {**UNITS, **DUAL, **own})
    epsilon, sigma = read(fields.strength, _STRENGTH, {}, {}).delta, float(fields.scale[0])
    if fields.order is not None:
        raise Refused("one target has no order")
    pieces: tuple[Piece, ...] = (0.0, -2 * epsilon, 0.0, 0.0), (np.inf, 2 * epsilon, 0.0, 0.0)
    if sigma > 0:
        kink, c = epsilon * sigma * (1 - 4 * EPS), 2 / sigma
        level = c * kink
        pieces = (-kink, -level, 0.0, 0.0), (kink, 0.0, c, 0.0), (np.inf, level, 0.0, 0.0)
    loss = PiecewiseQuadratic(*pieces)
    fields.dual = np.clip(fields.dual, -loss.room, loss.room)
    claim = Claim(fields, X, y, sample_weight, loss)
    claim.scale, claim.constant = sigma, sigma * fsum(claim.rows.s)
    found = judged_by_dual(claim)
    return replace(
        found, statement=f"no coefficients and no scale have an objective {below(fields)}"
    )
