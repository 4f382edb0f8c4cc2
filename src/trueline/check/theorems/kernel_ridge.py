r"""Kernel ridge regression: its equations, and what their residual proves.

With K the kernel matrix of the rows of positive weight, strengths alpha_t >= 0 and f = K c,

    objective    sum_t 1/2 sum_i s_i (y_it - f_it)^2 + alpha_t / 2 c_t.K c_t
    residual     r_it = y_it - f_it - alpha_t c_it / s_i.

**Theorem.** If K is positive semi-definite, no function of the kernel's space has an objective
lower by more than 1/2 sum s_i r_it^2.

*Proof.* For every f and every u, s/2 (y - f)^2 >= u (y - f) - u^2 / (2 s), and alpha/2 |f|^2 >=
sum_i u_i f_i - u.K u / (2 alpha). With u = alpha c their sum is a lower bound that does not depend
on f; it is lower than the objective at f = K c by what the theorem says.

Kernels that are not positive semi-definite by formula (given matrices, functions, sigmoid) are
taken with that on the diagonal which makes them so for certain: the rounding of their eigenvalues,
no more than 1e-9 of their norm, or nothing but the equations is proven.

Read from the certificate: objective, objective_rounding, gap, residual (of the largest target),
kernel (metric, gamma, degree, coef0; a function and its parameters), coef; from the witness: alpha.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from trueline.check.formulas.kernels import Ball, PairwiseKernel, definite_shift
from trueline.check.numbers.arithmetic import EPS
from trueline.check.numbers.rows import as_targets, as_weights, length
from trueline.check.schema import CLAIMS, Field, read
from trueline.check.verdict import Check, Verification

__all__ = ["check"]

_SHARE = 1e-9


def check(certificate: Any, X: Any, y: Any, sample_weight: Any, effort: str) -> Verification:
    """Objective, residual and gap of kernel ridge regression."""
    n = length(X)
    y = as_targets(y, n)
    fields = {**CLAIMS, "residual": Field(low=0.0)}
    fields |= {"kernel": Field(kind="any"), "coef": Field(("n", "k"))}
    sizes = {"n": n, "k": y.shape[1]}
    claim = read(certificate, fields, {"alpha": Field(("k",), low=0.0)}, sizes)
    weights = as_weights(sample_weight, n)
    keep = weights > 0
    kernel, proves = PairwiseKernel(claim.kernel, X), math.isfinite(claim.gap)
    y, s, c, alpha = y[keep], weights[keep, None], claim.coef[keep], claim.alpha
    K = kernel.whole()[keep][:, keep]
    shift = 0.0 if kernel.is_definite or not proves else definite_shift(K)
    f = K.dot(c) + Ball(0.0 * c, shift * np.abs(c))
    miss, root = -f + y, Ball.rounded(np.sqrt(s), 0.0)
    left = abs(miss - Ball.rounded(alpha * c / s, 0.0, 2 * EPS))
    residual = left.high.max() / (np.abs(y).max() or 1.0)
    # Weights are taken into the squares, which then underflow only where the terms do.
    miss, left = miss * root, left * root
    objective = ((miss * miss).sum() + (f * Ball.rounded(alpha * c, 0.0)).sum()) * 0.5
    found = float(objective.mid), float(objective.rad)
    checks = [
        Check.that("rows of weight zero", "not used", not claim.coef[~keep].any()),
        Check.within("objective", claim.objective, claim.objective_rounding, *found),
        Check.at_most("residual of the equations", claim.residual, residual * (1 + 4 * EPS)),
    ]
    what = f"the equations of {kernel.said} are solved up to {claim.residual:.3g}"
    what += " of the largest target"
    if not proves:
        return Verification(tuple(checks), f"{what}; nothing about other functions")
    definite = shift <= _SHARE * float(np.linalg.norm(K.mid))
    checks.append(Check.that("kernel", "positive semi-definite", definite))
    checks.append(Check.at_most("gap", claim.gap, ((left * left).sum() * 0.5).high))
    added = f" (with {shift:.2g} added to the diagonal of its matrix)" if shift else ""
    least = claim.objective - claim.objective_rounding - claim.gap
    what += f", and no function of its space{added} has an objective below {least:.10g}"
    return Verification(tuple(checks), what)
