"""Numbers whose squares overflow or vanish: the fit is carried out in units of powers of two.

Multiplying by a power of two is exact, so nothing is lost. With X' = X 2^e (per column) and
y' = y 2^f (per target) the problem keeps its form:

    w' = w 2^(f - e),    b' = b 2^f,    alpha' = alpha 2^(2 e),    objective' = objective 2^(2 f)

The certificate of such a fit is about the scaled problem and carries the exponents as part of its
witness; the checker applies them to the data.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from trueline.certificates.choose import Prover
from trueline.design import AugmentedDesign, SparseDesign, as_design
from trueline.penalties import L2, NonNegative, Penalty
from trueline.problem import Problem
from trueline.solution import Solution
from trueline.solvers.base import Monitor, seen_through
from trueline.solvers.least_squares.normal_equations import project, row_space
from trueline.solvers.least_squares.orthogonal import rank_tolerance
from trueline.solvers.transformed import proof_at

__all__ = ["exponents_of", "in_original_units", "least_norm", "rescaled", "unscaled"]

Array = NDArray[np.float64]

_LARGE, _SMALL = 1e100, 1e-100
# Squares of coefficients of columns and targets near one that are below what certificates claim.
_NO_EFFECT = 1e-150
# Units further apart than this power of two are the same to a projection: nothing of one is left.
_FARTHEST = 1000


def exponents_of(problem: Problem) -> tuple[Array, Array] | None:
    """Exponents e (columns) and f (targets) if any column or target is extreme; else None."""
    design = problem.design
    if isinstance(design, SparseDesign) and problem.weights is None:
        # All entries of ordinary size: so are the largest ones, whichever column they are in.
        ends = np.array(design.extent())
        if not (
            _is_extreme(ends[np.isfinite(ends)]) or _is_extreme(np.abs(problem.target).max(axis=0))
        ):
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
    columns = np.zeros(problem.n_features)
    for rows, block in problem.design.blocks(4096):
        counted = np.abs(block[weights[rows] > 0])
        np.maximum(columns, counted.max(axis=0, initial=0.0), out=columns)
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
