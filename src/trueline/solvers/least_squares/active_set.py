r"""Nonnegative least squares by active sets, on the triangular factor of the normal equations.

    minimise  1/2 w^T H w - c.w   over w >= 0,      H = G + A = R^T R

is min || R w - R^{-T} c ||, a problem of d rows whatever the number of samples (C. L. Lawson,
R. J. Hanson, "Solving Least Squares Problems", 1974, chapter 23). The coefficients that end up
free are solved for once more, to the accuracy of the normal equations.

Where that answer is not proven, R comes from the rows, which keep what the Gram matrix loses, and
the active set is followed to its end with free coefficients that are refined in doubled precision.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular
from scipy.optimize import nnls

from trueline.certificates.base import Certificate
from trueline.certificates.bounded import certify_bounded
from trueline.certificates.quadratic import certify_quadratic, proven_coercivity
from trueline.design import DenseDesign
from trueline.moments import Moments
from trueline.penalties import L2, NoPenalty
from trueline.problem import MomentsProblem, Problem
from trueline.solution import Solution, Status
from trueline.solvers.base import Cost, Facts, Monitor, Options, Solver
from trueline.solvers.least_squares.cholesky import Cholesky
from trueline.solvers.least_squares.normal_equations import (
    NormalFactor,
    as_dense,
    curvature_matrix,
    evidence_at,
    evidence_from_moments,
    factor_normal_equations,
    noise_of_squares,
    power_of_two_scale,
)
from trueline.solvers.least_squares.orthogonal import centred_squares
from trueline.solvers.least_squares.qr import best_level, solve_by_rows
from trueline.solvers.least_squares.refinement import Refined, can_refine, evaluate_exactly

Array = NDArray[np.float64]

_EPS = float(np.finfo(np.float64).eps)
# Of the squares that a constant leaves: the gap up to which the answer is taken as it is.
_TRUSTED = 1e-13
# Of the objective of a constant: a smaller difference between two starts is none.
_ALIKE = 1e-6
# Of the squares that a constant leaves: what a step must bring.
_BETTER = 1e-15
# Entries up to which the active set is followed on the rows.
_FEW_ENTRIES = 2e6


class ActiveSet(Solver):
    """Nonnegative least squares and ridge from moments."""

    name = "active_set"
    shows_nonfinite = True
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
        solution = solve_nonnegative(problem, centred)
        proof = solution.certificate
        assert proof is not None
        enough = _TRUSTED * problem.weigh((problem.target - best_level(problem)) ** 2).sum()
        dense = as_dense(problem)
        if proof.gap <= enough or not can_refine(dense) or dense.design.nonzeros > _FEW_ENTRIES:
            return solution
        return replace(solution, **_from_rows(dense, solution.coef))


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


def _from_rows(problem: Problem, given: Array) -> dict[str, Any]:
    """Coefficients, intercepts, proof and notes, from the rows of a dense design.

    Where the answer is not unique that of the moments, which rows in another order or counted
    twice do not change, is the better start.
    """
    d, k = problem.n_features, problem.n_targets
    mean = problem.design.column_means(problem.weights) if problem.fit_intercept else None
    curvature = curvature_matrix(problem)
    W, b = np.zeros((d, k)), np.zeros(k)
    for t in range(k):
        one = replace(
            problem,
            target=problem.target[:, [t]],
            penalty=L2(curvature[:, [t]]) if curvature[:, t].any() else NoPenalty(),
        )
        starts = (given[:, t], _start_from_rows(one, mean, curvature[:, t]))
        values = [_value(one, mean, start) for start in starts]
        nothing = _ALIKE * _value(one, mean, np.zeros(d))
        start = starts[0] if values[0] <= values[1] + nothing else starts[1]
        W[:, [t]], b[[t]] = _follow(one, start)
    return {
        "coef": W,
        "intercept": b,
        "proof": _certify_rows(problem, mean, W, b),
        "notes": ["too ill-conditioned for the Gram matrix: rows factored"],
    }


def _value(problem: Problem, mean: Array | None, w: Array) -> float:
    """The objective at the best intercept."""
    level = best_level(problem) - (0.0 if mean is None else mean @ w)
    return problem.objective(w[:, None], np.atleast_1d(level))


def _start_from_rows(problem: Problem, mean: Array | None, curvature: Array) -> Array:
    """The answer of active sets on the triangular factor of the rows, in double precision."""
    weights = np.ones(problem.n_samples) if problem.weights is None else problem.weights
    squares = centred_squares(problem, mean)
    scale = np.where(squares > 0, power_of_two_scale(squares + curvature), 0.0)
    V = problem.design.toarray()
    V = (V if mean is None else V - mean) * scale
    V = np.column_stack([np.ones(len(V)), V, problem.target - best_level(problem)])
    V = np.sqrt(weights)[:, None] * (V if problem.fit_intercept else V[:, 1:])
    first = int(problem.fit_intercept)
    lift = np.zeros((problem.n_features, V.shape[1]))
    lift[:, first:-1] = np.diag(np.sqrt(curvature) * scale)
    R = np.asarray(np.linalg.qr(np.vstack([V, lift]), mode="r"))[first:, first:]
    size = float(np.abs(R[:, -1]).max(initial=0.0)) or 1.0
    try:
        w, _ = nnls(R[:, :-1], R[:, -1] / size, maxiter=max(100, 10 * len(scale)))
    except RuntimeError:  # it went in circles; following the active set starts from nothing
        w = np.zeros(len(scale))
    answer: Array = size * scale * w
    return answer


def _follow(problem: Problem, w: Array) -> tuple[Array, Array]:
    """Lawson and Hanson's steps from feasible coefficients, those that are free solved exactly.

    Each step frees the coefficient with the steepest descent for its column's norm; what becomes
    negative is held again at the first zero on the way.
    """
    d = len(w)
    norms = np.sqrt(problem.design.column_squares(problem.weights, None))
    mean = np.zeros(d)
    if problem.fit_intercept:
        mean = problem.design.column_means(problem.weights)
    curvature = curvature_matrix(problem)
    free = w > 0
    level = best_level(problem)
    enough = _BETTER * float(problem.weigh((problem.target - level) ** 2).sum())
    b = level - mean @ w[:, None]
    best = _exact_value(problem, evaluate_exactly(problem, w[:, None], b, mean, curvature)), w, b
    for _ in range(3 * d + 10):
        target, b = _solve_free(problem, free)
        if (target[free] < 0).any():
            falling = free & (target < w)
            falling &= target < 0
            share = float((w[falling] / (w[falling] - target[falling])).min())
            w = np.where(free, np.maximum(w + share * (target - w), 0.0), 0.0)
            w[falling & (w <= _EPS * np.abs(target))] = 0.0
            held = free & (w <= 0)
            if not held.any():  # rounding: hold the one that falls most
                held = np.zeros(d, dtype=bool)
                held[np.argmin(np.where(falling, target, np.inf))] = True
                w[held] = 0.0
            free &= ~held
            continue
        w = target
        at = evaluate_exactly(problem, w[:, None], b, mean, curvature)
        value = _exact_value(problem, at)
        if value >= best[0] - enough:
            break
        best = value, w, b
        size = np.sqrt(at.residual_square[0]) + np.sqrt(_EPS * 2 * value)
        slope = np.divide(at.gradient[:, 0], norms, out=np.zeros(d), where=norms > 0)
        slope = np.where(free | (np.abs(slope) <= 1e-13 * size), 0.0, slope)
        if not (slope < 0).any():
            break
        free[np.argmin(slope)] = True
    return best[1][:, None], best[2]


def _exact_value(problem: Problem, at: Refined) -> float:
    """The objective where it was evaluated exactly."""
    return 0.5 * float(at.residual_square[0]) + problem.penalty.value(at.coef)


def _solve_free(problem: Problem, free: NDArray[np.bool_]) -> tuple[Array, Array]:
    """Least squares of the free coefficients, the others zero."""
    w = np.zeros(len(free))
    if not free.any():
        return w, best_level(problem)
    penalty = problem.penalty
    if isinstance(penalty, L2):
        penalty = L2(curvature_matrix(problem)[free])
    design = DenseDesign(np.ascontiguousarray(problem.design.toarray()[:, free]))
    found = solve_by_rows(replace(problem, design=design, penalty=penalty), ActiveSet.name)
    w[free] = found.coef[:, 0]
    return w, found.intercept


def _certify_rows(problem: Problem, mean: Array | None, W: Array, b: Array) -> Certificate:
    """The sharper of two proofs: by the curvature of all columns, and by the gradient alone."""
    curvature = curvature_matrix(problem).min(axis=1)
    squares = centred_squares(problem, mean) + curvature
    scale = power_of_two_scale(squares)
    weights = np.ones(problem.n_samples) if problem.weights is None else problem.weights
    blocks = problem.design.blocks(2048)
    proven = 0.9 * proven_coercivity(blocks, weights, np.diag(scale), curvature, mean)
    evidence = evidence_at(problem, W, b, scale, proven)
    curved, plain = certify_quadratic(problem, W, b, evidence), certify_bounded(problem, W, b)
    if proven <= 0:  # then it only says that no objective is below zero
        curved = replace(curved, gap=curved.objective + curved.objective_rounding)
    return min(curved, plain, key=lambda proof: proof.gap)


def _nonnegative(moments: Moments, curvature: Array, cross: Array) -> Array:
    """One target: active sets on the factor, then the free coefficients once more."""
    diagonal = moments.gram.diagonal() + curvature
    # Rounding must not lend weight to columns of zeros, nor a penalty to those that do not vary.
    counted = np.flatnonzero(diagonal > noise_of_squares(moments))
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
