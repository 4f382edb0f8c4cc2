"""Coefficients in single precision, for data in it: when they are, and what is proven of them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trueline.certificates.base import Certificate
from trueline.guard import is_about
from trueline.problem import MomentsProblem, Problem
from trueline.solution import PendingCertificate, Solution
from trueline.solvers.least_squares.cholesky import PendingProof
from trueline.solvers.least_squares.normal_equations import evidence_at, evidence_from_moments

__all__ = ["certify_rounded", "in_single_precision"]

Array = NDArray[np.float64]

# What rounding to single precision may cost: of the squares that a constant leaves, and of another
# loss, which may grow in proportion to the rounding, not to its square.
_FELT, _FELT_ELSEWHERE = 1e-7, 5e-7


def in_single_precision(problem: Any, W: Array, b: Array) -> tuple[NDArray[Any], NDArray[Any]]:
    """Coefficients as float32, unless that would change the fit: then as they are.

    Offsets of the columns multiply the rounding: coefficients of columns around 1e6 with a spread
    of one are needed to more digits than single precision has.
    """
    with np.errstate(over="ignore", under="ignore"):
        single, level = W.astype(np.float32), b.astype(np.float32)
    in_range = np.isfinite(single).all()
    if in_range and not np.isfinite(problem.penalty.value(single.astype(np.float64))):
        # A step of size zero moves what was rounded beyond a bound: those go to the other side.
        inside = problem.penalty.prox(single.astype(np.float64), 0.0)
        inward = np.nextafter(single, np.sign(W - single) * np.float32(np.inf), dtype=np.float32)
        single = np.where(single == inside, single, inward)
        if not np.isfinite(problem.penalty.value(single.astype(np.float64))):
            return W, b
    # Infinity, or fewer digits than single precision has: out of its range.
    lost, lost_level = np.abs(W - single) > 1e-6 * np.abs(W), np.abs(b - level) > 1e-6 * np.abs(b)
    if lost.any() or lost_level.any():
        if isinstance(problem, Problem):
            x_size, y_size = problem.design.column_largest(), np.abs(problem.target).max(axis=0)
        else:
            x_size, y_size = np.sqrt(problem.moments.x_size), np.sqrt(problem.moments.y_size)
        matters = lost & (np.abs(W) * x_size[:, None] > 1e-6 * y_size)
        if matters.any() or (lost_level & (np.abs(b) > 1e-6 * y_size)).any():
            return W, b
    return (W, b) if _is_felt(problem, W, b, single - W, level - b) else (single, level)


def _is_felt(problem: Any, W: Array, b: Array, dW: Array, db: Array) -> bool:
    """Whether changes of the coefficients cost a fit more than a last digit.

    At a minimum of least squares they cost 1/2 sum_i s_i (x_i.dw + db)^2, to be compared with the
    objective of the best constant. Other losses are compared with what is left of them.
    """
    if isinstance(problem, Problem) and "quadratic" in problem.loss.capabilities:
        y = problem.target
        level = problem.weigh(y).sum(axis=0) / problem.total_weight if problem.fit_intercept else 0
        cost = problem.weigh(problem.scores(dW, db) ** 2).sum(axis=0)
        return bool((cost > _FELT * problem.weigh((y - level) ** 2).sum(axis=0)).any())
    if isinstance(problem, MomentsProblem):
        moments = problem.moments
        off = moments.x_mean @ dW + db
        cost = np.einsum("ij,ij->j", dW, moments.gram @ dW) + moments.weight * off**2
        square = moments.y_square
        if not problem.fit_intercept:
            square = square + moments.weight * moments.y_mean**2
        return bool((cost > _FELT * square).any())
    if not isinstance(problem, Problem):
        return False
    before = problem.objective(W, b)
    return bool(problem.objective(W + dW, b + db) - before > _FELT_ELSEWHERE * abs(before))


def certify_rounded(
    problem: Any, solution: Solution, W: Array, b: Array
) -> Certificate | PendingCertificate:
    """The certificate of coefficients rounded to single precision."""
    from trueline.certificates.choose import BESIDE, certify, certify_beside
    from trueline.certificates.quadratic import certify_quadratic

    if isinstance(solution.proof, PendingProof):
        pending = replace(solution.proof, coef=W, intercept=b)
        if not pending.needs_rows():
            return pending.without_rows()
    certificate, moments = solution.certificate, solution.moments
    assert certificate is not None
    witness = certificate.witness
    if "column_exponent" in witness:
        return certificate
    if certificate.kind == "maximum error":
        from trueline.certificates.special.maximum import certify_maximum

        rows, dual = solution.extra["rows"], solution.extra["dual"]
        return certify_maximum(problem, W, b, rows, dual)
    is_proven = is_about(certificate, solution.coef, solution.intercept)
    if certificate.kind in BESIDE and is_proven:
        return certify_beside(problem, certificate, W, b)
    if "basis" not in witness:
        return certify(problem, W, b)
    basis, coercivity = witness["basis"], float(witness["coercivity"])
    if isinstance(problem, Problem):
        evidence = evidence_at(problem, W, b, basis, coercivity)
    else:
        assert moments is not None
        about = moments if problem.fit_intercept else moments.about_zero()
        evidence = evidence_from_moments(problem, about, W, b, basis, coercivity)
    left_out = float(witness.get("left_out", 0.0))
    is_global = certificate.kind == "quadratic"
    evidence = replace(evidence, is_global=is_global, left_out=left_out)
    proof = certify_quadratic(problem, W, b, evidence)
    if is_proven and isinstance(problem, Problem) and proof.gap > _FELT * proof.objective:
        # Its bound is sharp at the optimum, and beside it only where columns differ enough.
        beside = certify_beside(problem, certificate, W, b)
        return min(proof, beside, key=lambda certificate: certificate.gap)
    return proof
