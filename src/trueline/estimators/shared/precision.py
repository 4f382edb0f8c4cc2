"""The range and the digits of floats: fits in other units, coefficients in single precision.

Numbers whose squares overflow or vanish are fitted in units of powers of two. Multiplying by a
power of two is exact, so nothing is lost. With X' = X 2^e (per column) and y' = y 2^f (per target)
the problem keeps its form:

    w' = w 2^(f - e),    b' = b 2^f,    alpha' = alpha 2^(2 e),    objective' = objective 2^(2 f)

The certificate of such a fit is about the scaled problem and carries the exponents as part of its
witness; the checker applies them to the data.

For data in single precision the coefficients are rounded to it, unless that would change the fit,
and what is proven is proven of the rounded ones.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from trueline.certificates.choose import Prover
from trueline.design import AugmentedDesign, Design, SparseDesign, as_design
from trueline.guard import is_about
from trueline.losses import Squared
from trueline.moments import Moments
from trueline.penalties import L2, NonNegative, Penalty
from trueline.problem import Array, MomentsProblem, Problem
from trueline.solution import Proof, Solution
from trueline.solvers import (
    PendingProof,
    evidence_at,
    evidence_from_moments,
    project,
    proof_at,
    rank_tolerance,
    row_space,
)
from trueline.solvers.base import Monitor, seen_through

_LARGE, _SMALL = 1e100, 1e-100
# Squares of coefficients of columns and targets near one that are below what certificates claim.
_NO_EFFECT = 1e-150
# Units further apart than this power of two are the same to a projection: nothing of one is left.
_FARTHEST = 1000


def exponents_of(problem: Problem) -> tuple[Array, Array] | None:
    """Exponents e (columns) and f (targets) if any column or target is extreme; else None."""
    design = problem.design
    if isinstance(design, SparseDesign) or (
        isinstance(design, AugmentedDesign) and isinstance(design.base, SparseDesign)
    ):
        # All entries of ordinary size: so are the largest ones, whichever column they are in.
        ends = np.array(design.extent())
        if not (
            _is_extreme(ends[np.isfinite(ends)]) or _is_extreme(np.abs(problem.target).max(axis=0))
        ):
            return None
    if design.is_sequential and problem.loss == Squared():
        moments = Moments.from_rows(design, problem.target, problem.weights)  # kept for the fit
        if moments.is_ordinary() and moments.is_finite():
            return None
    columns, targets = _largest(problem)
    if not (_is_extreme(columns) or _is_extreme(targets)):
        return None
    e, f = -np.frexp(columns)[1], -np.frexp(targets)[1]
    if any(kink != 0 for kink in problem.loss.kinks):
        # A threshold in the units of the target would have to be scaled along.
        if _is_extreme(targets):
            raise ValueError(
                f"Targets beyond {_LARGE:.0e} or below {_SMALL:.0e} in magnitude cannot be fitted "
                f"with the {problem.loss.name} loss: its threshold is in the units of the target. "
                "Divide the target by a power of ten first."
            )
        f = np.zeros_like(f)
    if "log_link" in problem.loss.capabilities and _is_extreme(targets):
        raise ValueError(
            f"Targets beyond {_LARGE:.0e} or below {_SMALL:.0e} in magnitude cannot be fitted with "
            f"the {problem.loss.name} loss. Divide the target by a power of ten first: with a "
            "logarithm as link that changes the intercept alone."
        )
    if {"margins", "log_link"} & problem.loss.capabilities:  # labels and counts are as they are
        f = np.zeros_like(f)
    strength = np.max(np.asarray(problem.penalty.curvature, dtype=float), initial=0.0)
    if strength > 0:
        # No further than until the scaled strength alpha 2^(2 e) is about one: of a column so small
        # the strength alone decides, and its coefficient would vanish in larger units.
        e = np.minimum(e, max(0, -(int(np.frexp(strength)[1]) // 2)))
    return e.astype(np.int64), f.astype(np.int64)


def _largest(problem: Problem) -> tuple[Array, Array]:
    """Largest magnitudes of the columns and the targets, over the rows that count."""
    weights = problem.weights
    if weights is None or weights.all():
        columns = problem.design.column_largest()
        return columns, np.abs(problem.target).max(axis=0, initial=0.0)

    def largest(part: Design, weights: Array) -> Array:
        found = np.zeros(part.shape[1])
        for rows, block in part.blocks(4096):
            counted = np.abs(block[weights[rows] > 0])
            np.maximum(found, counted.max(axis=0, initial=0.0), out=found)
        return found

    columns = problem.design.summed(largest, weights, add=np.maximum)
    return columns, np.abs(problem.target[weights > 0]).max(axis=0, initial=0.0)


def _is_extreme(largest: Array) -> bool:
    present = largest[largest > 0]
    return bool((present > _LARGE).any() or (present < _SMALL).any())


def rescaled(problem: Problem, e: Array, f: Array) -> Problem:
    """The problem in scaled units; X is copied."""
    design = problem.design
    constant = None
    if isinstance(design, AugmentedDesign):
        constant, design = float(np.ldexp(design.constant, e[-1])), design.base
    X = design.X.astype(np.float64)  # type: ignore[attr-defined]
    # A column that its penalty keeps so small has no effect that double precision could show; its
    # squares, neither zero nor exact, would only disturb. Least squares keeps all but subnormals.
    is_square = "quadratic" in problem.loss.capabilities
    least = float(np.finfo(np.float64).tiny) if is_square else _SMALL
    seen = np.ldexp(_largest(problem)[0], e) >= least
    own, shown = e[: X.shape[1]], seen[: X.shape[1]]
    if sp.issparse(X):
        X = X.tocsr(copy=True)
        X.data = np.ldexp(X.data, own[X.indices]) * shown[X.indices]
    else:
        X = np.ldexp(X, own) * shown
    scaled = as_design(X)
    return replace(
        problem,
        design=scaled if constant is None else AugmentedDesign(scaled, constant),
        target=np.ldexp(problem.target, f),
        penalty=_scaled_penalty(problem.penalty, e),
    )


def _scaled_penalty(penalty: Penalty, e: Array) -> Penalty:
    if isinstance(penalty, NonNegative):
        return NonNegative(_scaled_penalty(penalty.base, e))
    if isinstance(penalty, L2):
        return L2(np.ldexp(np.asarray(penalty.alpha, dtype=float), 2 * e[:, None]))
    if "quadratic" in penalty.capabilities:
        return penalty
    raise ValueError(
        f"Columns or targets beyond {_LARGE:.0e} or below {_SMALL:.0e} in magnitude cannot be "
        f"fitted with the {penalty.name} penalty. Divide them by a power of ten first."
    )


def least_norm(problem: Problem, solution: Solution, e: Array) -> Solution:
    """The answer of least norm in the original units, where columns are dependent.

    The solver took the least norm in the scaled units. With w' = w 2^-e (up to the target's power)
    that of w = 2^e w' is the projection of 2^e w' on the row space 2^-e R.
    """
    R, certificate = solution.row_space, solution.certificate
    if R is None or certificate is None or np.any(problem.penalty.curvature):
        return solution
    shrink = (e - e.max())[:, None]
    space = solution.row_space = _space_in_units(R, e, problem.n_samples)
    W = np.ldexp(project(np.ldexp(solution.coef, shrink), space), -shrink)
    witness = certificate.witness
    if "basis" not in witness:  # of a loss that is not quadratic
        mean = problem.design.column_means(problem.weights) * problem.fit_intercept
        solution.intercept = solution.intercept + mean @ (solution.coef - W)
        solution.coef = W
        solution.certificate = proof_at(problem, W, solution.intercept)
        return solution
    basis, coercivity = witness["basis"], float(witness["coercivity"])
    prover = Prover(problem, basis, coercivity, left_out=float(witness.get("left_out", 0.0)))
    solution.intercept = solution.intercept + prover.mean @ (solution.coef - W)
    solution.coef = W
    solution.certificate = prover.certify(W, solution.intercept)
    return solution


def _space_in_units(R: Array, e: Array, n: int) -> Array:
    """The row space 2^-e R; what rounding left in R does not become a fact by other units."""
    vectors, _ = np.linalg.qr(R)
    far = np.ldexp(1.0, np.minimum(e - e.min(), _FARTHEST))
    return row_space(vectors, np.ones(R.shape[1]), far, rank_tolerance(n, len(R)))


def in_original_units(monitor: Monitor, e: Array, f: Array) -> Monitor:
    """The same watchers, shown the coefficients in the original units."""
    return seen_through(monitor, lambda W, b: (np.ldexp(W, e[:, None] - f), np.ldexp(b, -f)))


def unscaled(solution: Solution, e: Array, f: Array) -> Solution:
    """The solution in the original units; its certificate remembers the exponents."""
    certificate = solution.certificate
    assert certificate is not None
    witness = {
        **certificate.witness,
        "column_exponent": e.astype(np.float64),
        "target_exponent": f.astype(np.float64),
    }
    solution.certificate = replace(certificate, witness=witness)
    with np.errstate(over="ignore", under="ignore"):
        W = np.ldexp(solution.coef, e[:, None] - f)
        b = np.ldexp(solution.intercept, -f)
    tiny = np.finfo(np.float64).tiny
    # What is too small to have an effect in scaled units may be rounded to zero.
    lost = (np.abs(solution.coef) > _NO_EFFECT) & (np.abs(W) < tiny)
    if lost.any() or not (np.isfinite(W).all() and np.isfinite(b).all()):
        raise ValueError(
            "The coefficients of these data are too large or too small for double precision. "
            "Divide the columns or the target by a power of ten and fit again."
        )
    solution.coef, solution.intercept = W, b
    solution.moments = None  # in other units than the data
    solution.singular_values = solution.residual_square = None
    solution.notes.append("columns and targets scaled by powers of two: their squares overflow")
    return solution


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
    if isinstance(problem, Problem) and problem.loss == Squared() and problem.design.is_sequential:
        moments = Moments.from_rows(problem.design, problem.target, problem.weights)
        problem = MomentsProblem(moments, problem.penalty, problem.fit_intercept)
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


def certify_rounded(problem: Any, solution: Solution, W: Array, b: Array) -> Proof:
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
