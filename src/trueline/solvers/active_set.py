r"""Nonnegative least squares by active sets, on the triangular factor of the normal equations.

    minimise  1/2 w^T H w - c.w   over w >= 0,      H = G + A = R^T R

is min || R w - R^{-T} c ||, a problem of d rows whatever the number of samples (C. L. Lawson,
R. J. Hanson, "Solving Least Squares Problems", 1974, chapter 23). The coefficients that end up
free are solved for once more, to the accuracy of the normal equations.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular
from scipy.optimize import nnls

from trueline.certificates.base import Certificate
from trueline.certificates.bounded import certify_bounded
from trueline.certificates.quadratic import certify_quadratic
from trueline.moments import Moments
from trueline.problem import MomentsProblem, Problem
from trueline.solution import Solution, Status
from trueline.solvers.base import Cost, Facts, Options, Solver
from trueline.solvers.cholesky import Cholesky
from trueline.solvers.loop import Monitor
from trueline.solvers.normal import NormalFactor, factor_normal_equations, power_of_two_scale
from trueline.solvers.quadratic import curvature_matrix, evidence_from_moments

__all__ = ["ActiveSet", "solve_nonnegative"]

Array = NDArray[np.float64]


class ActiveSet(Solver):
    """Nonnegative least squares and ridge from moments."""

    name = "active_set"
    title = "active sets on the normal equations (w >= 0)"
    needs_loss = frozenset({"quadratic"})
    needs_penalty = frozenset({"quadratic", "nonnegative"})
    accepts_penalty = frozenset({"nonnegative"})
    proof = "quadratic"

    def refuses(self, facts: Facts) -> str | None:
        if facts.d > 5000:
            return "active sets over more than 5000 columns"
        return None

    def cost(self, facts: Facts) -> Cost:
        base = Cholesky().cost(facts)
        work = 3.0 * facts.d**3 * facts.k
        # Its triangular solves work on vectors, far from the rate of a factorisation.
        return Cost(base.flops + work, base.passes, base.memory, base.seconds + work / 5e9)

    def solve(self, problem: Problem, options: Options, monitor: Monitor) -> Solution:
        centred = Moments.from_rows(problem.design, problem.target, problem.weights)
        if not centred.is_finite():
            raise FloatingPointError("the sums of squares of the data are not finite")
        return solve_nonnegative(problem, centred)


def solve_nonnegative(problem: Problem | MomentsProblem, centred: Moments) -> Solution:
    """Solve from centred moments, one target after the other."""
    moments = centred if problem.fit_intercept else centred.about_zero()
    curvature = curvature_matrix(problem)
    W = np.empty((problem.n_features, problem.n_targets))
    for t in range(problem.n_targets):
        W[:, t] = _nonnegative(moments, curvature[:, t], moments.cross[:, t])
    b = moments.y_mean - moments.x_mean @ W
    return Solution(
        W,
        b,
        Status.SOLVED,
        ActiveSet.name,
        moments=centred,
        proof=_certify(problem, moments, W, b, curvature.min(axis=1)),
    )


def _nonnegative(moments: Moments, curvature: Array, cross: Array) -> Array:
    """One target: active sets on the factor, then the free coefficients once more."""
    diagonal = moments.gram.diagonal() + curvature
    counted = np.flatnonzero(diagonal > 0)  # rounding must not lend weight to columns of zeros
    answer, d = np.zeros(len(cross)), len(counted)
    if d == 0:
        return answer
    diagonal = diagonal[counted]
    scale = power_of_two_scale(diagonal)
    H = (moments.gram[np.ix_(counted, counted)] * scale) * scale[:, None]
    H.flat[:: d + 1] = diagonal * scale**2
    right = scale * cross[counted]
    # Some releases of SciPy stop at a tolerance that does not scale with the target: bring it to
    # about one.
    unit = int(np.frexp(np.abs(right).max())[1])
    right = np.ldexp(right, -unit)
    try:
        R = np.linalg.cholesky(H).T
        w, _ = nnls(R, solve_triangular(R, right, trans=1), maxiter=max(100, 10 * d))
    except np.linalg.LinAlgError:
        # Singular: the symmetric root of the part that the data determine.
        values, vectors = np.linalg.eigh(H)
        keep = values > d * np.finfo(float).eps * max(values.max(initial=0.0), 1e-300)
        root = np.sqrt(values[keep])
        A = root[:, None] * vectors[:, keep].T
        w, _ = nnls(A, (vectors[:, keep].T @ right) / root, maxiter=max(100, 10 * d))
    free = w > 0
    if free.any():
        try:
            again = np.linalg.solve(H[np.ix_(free, free)], right[free])
        except np.linalg.LinAlgError:
            again = w[free]
        if (again >= 0).all():
            w[free] = again
    answer[counted] = np.ldexp(scale * w, unit)
    return answer


def _certify(
    problem: Problem | MomentsProblem, moments: Moments, W: Array, b: Array, curvature: Array
) -> Certificate:
    factor: NormalFactor | None = factor_normal_equations(moments, curvature)
    proven = factor is not None and factor.diagonal_coercivity > 0
    if not proven and isinstance(problem, Problem):
        return certify_bounded(problem, W, b)
    # Without rows and without curvature only the objective itself bounds the gap.
    scale = factor.scale if factor is not None else np.ones(len(W))
    coercivity = factor.diagonal_coercivity if factor is not None and proven else 0.0
    evidence = evidence_from_moments(problem, moments, W, b, scale, coercivity)
    return certify_quadratic(problem, W, b, evidence)
