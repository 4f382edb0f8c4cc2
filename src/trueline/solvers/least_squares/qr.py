"""Least squares by orthogonal factorisation of the rows, refined in doubled precision."""

from __future__ import annotations

import math
import time
from dataclasses import replace
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from trueline.certificates.base import Certificate
from trueline.certificates.quadratic import Evidence, certify_quadratic
from trueline.penalties import L2
from trueline.problem import MomentsProblem, Problem
from trueline.solution import Solution, Stage, Status
from trueline.solvers.base import (
    CALL,
    Cost,
    Facts,
    Monitor,
    Options,
    Solver,
    is_rank_deficient,
    orthogonal_seconds,
    refinement_seconds,
)
from trueline.solvers.least_squares.normal_equations import (
    MOST_DENSE,
    as_dense,
    curvature_matrix,
    evidence_from_refined,
    evidence_from_rows,
    orthogonal_complement,
    project,
    rank_note,
    same_strength_groups,
)
from trueline.solvers.least_squares.orthogonal import RowFactor, centred_squares, factor_rows
from trueline.solvers.least_squares.refinement import Refined, can_refine, evaluate_exactly, refine
from trueline.wording import counted

Array = NDArray[np.float64]
Indices = NDArray[np.intp]

# Of the squares that a constant leaves: what the least norm may cost.
_NOT_WORSE = 1e-14


def solve_by_rows(
    problem: Problem,
    solver: str,
    *,
    use_svd: bool = False,
    X_low: Array | None = None,
) -> Solution:
    """Factor the rows, refine, certify; targets with different strengths one group at a time.

    Parameters
    ----------
    problem : Problem
        Squared loss with a quadratic penalty.
    solver : str
        Name to report.
    use_svd : bool, default=False
    X_low : array of shape (n, d), optional
        Low parts of the design, if it is known to more than double precision.
    """
    problem = as_dense(problem)
    d, k = problem.n_features, problem.n_targets
    mean = problem.design.column_means(problem.weights) if problem.fit_intercept else None
    centre = np.zeros(d) if mean is None else mean
    curvature = curvature_matrix(problem)
    W, b = np.zeros((d, k)), np.zeros(k)
    factor: RowFactor | None = None
    parts: list[tuple[Indices, Evidence]] = []
    steps = 0
    squares = np.empty(k)
    for strength, targets in same_strength_groups(curvature):
        part = problem if len(targets) == k else part_of(problem, targets, strength)
        factor = factor_rows(part, mean, strength, use_svd=use_svd)
        W[:, targets], b[targets], evidence, own_steps = _solve_group(
            part, factor, centre, curvature[:, targets], X_low
        )
        steps = max(steps, own_steps)
        parts.append((targets, evidence))
        hessian_terms = part.penalty.value_per_target(W[:, targets])
        squares[targets] = 2 * np.maximum(evidence.objective - hessian_terms, 0.0)
    assert factor is not None
    notes = [f"condition number about {factor.condition:.2g} (columns of equal norm)"]
    if steps:
        notes.append(f"refined in doubled precision ({counted(steps, 'step')})")
    if factor.rank < d and factor.space is not None:
        notes.append(rank_note(factor.space, np.sqrt(centred_squares(problem, mean))))
    solution = Solution(
        W,
        b,
        Status.SOLVED,
        solver,
        notes=notes,
        rank=factor.rank,
        row_space=factor.space,
        singular_values=factor.singular,
        residual_square=squares,
    )
    solution.certificate = certify_groups(problem, W, b, parts)
    return solution


def _solve_group(
    part: Problem, factor: RowFactor, centre: Array, curvature: Array, X_low: Array | None
) -> tuple[Array, Array, Evidence, int]:
    """Targets of one strength: coefficients, intercepts, evidence, steps in doubled precision."""
    d = part.n_features
    start, constant = np.zeros((d, part.n_targets)), best_level(part)
    if not can_refine(part):
        w, b = plain_steps(part, start, constant, factor.steps, centre, curvature, steps=3)
        evidence = evidence_from_rows(part, w, b, centre, factor.basis, factor.coercivity)
        is_global = factor.rank == d
        return w, b, replace(evidence, is_global=is_global, left_out=factor.left_out), 0
    refined = refine(part, start, constant, factor.steps, centre, curvature, X_low)
    if factor.space is not None and not factor.is_least_norm:
        refined = _least_norm(part, refined, factor, factor.space, centre, curvature, X_low)
    w, b, steps = refined.coef, refined.intercept, refined.steps
    if X_low is not None:  # the certificate is about the double-precision design
        refined = evaluate_exactly(part, w, b, centre, curvature)
    evidence = evidence_from_refined(
        part, refined, factor.basis, factor.coercivity, factor.rank == d, factor.left_out
    )
    # Of wide data there are so many dependences that writing them down takes longer than the fit.
    if factor.space is not None and factor.left_out and d <= 2 * factor.rank:
        evidence = replace(evidence, dependences=orthogonal_complement(factor.space))
    return w, b, evidence, steps


def _least_norm(
    problem: Problem,
    found: Refined,
    factor: RowFactor,
    space: Array,
    mean: Array,
    curvature: Array,
    X_low: Array | None,
) -> Refined:
    """Coefficients of least norm from others that fit as well, by projection on the row space.

    Projection costs the fit some digits, which refinement brings back; what that adds beside the
    row space is small, and projected once more costs none.
    """
    points = [found]
    for steps in (factor.steps, None):
        W = project(points[-1].coef, space)
        b = points[-1].intercept + mean @ (points[-1].coef - W)
        points.append(refine(problem, W, b, steps, mean, curvature, X_low))
    values = np.array([_objective(problem, point) for point in points])
    allowed = _NOT_WORSE * problem.weigh((problem.target - best_level(problem)) ** 2).sum(axis=0)
    # The last one that fits as well as any: where digits do not suffice, the fit comes first.
    well = (values <= values.min(axis=0) + allowed).all(axis=1)
    return points[int(np.flatnonzero(well)[-1])] if well.any() else found


def _objective(problem: Problem, at: Refined) -> Array:
    """The objective of each target."""
    return 0.5 * at.residual_square + problem.penalty.value_per_target(at.coef)


@overload
def part_of(problem: Problem, targets: Indices, strength: Array) -> Problem: ...
@overload
def part_of(
    problem: Problem | MomentsProblem, targets: Indices, strength: Array
) -> Problem | MomentsProblem: ...
def part_of(
    problem: Problem | MomentsProblem, targets: Indices, strength: Array
) -> Problem | MomentsProblem:
    """The same problem for some of the targets."""
    penalty = L2(strength[:, None])
    if isinstance(problem, MomentsProblem):
        return replace(problem, moments=problem.moments.targets(targets), penalty=penalty)
    return replace(problem, target=problem.target[:, targets], penalty=penalty)


def best_level(problem: Problem) -> Array:
    """The best constant: weighted means of the targets (zeros without an intercept)."""
    if not problem.fit_intercept:
        return np.zeros(problem.n_targets)
    return problem.weigh(problem.target).sum(axis=0) / problem.total_weight


def plain_steps(
    problem: Problem,
    W: Array,
    b: Array,
    basis: Array,
    mean: Array,
    curvature: Array,
    steps: int,
) -> tuple[Array, Array]:
    """Newton steps with residuals in double precision, where exact products are not available."""
    weight = problem.total_weight
    for _ in range(steps):
        weighted = problem.weigh(problem.scores(W, b) - problem.target)
        slope = weighted.sum(axis=0) if problem.fit_intercept else np.zeros_like(b)
        gradient = problem.design.rmatvec(weighted) - mean[:, None] * slope + curvature * W
        step = basis @ (basis.T @ gradient)
        W = W - step
        b = b - slope / weight + mean @ step
    return W, b


def certify_groups(
    problem: Problem | MomentsProblem, W: Array, b: Array, parts: list[tuple[Indices, Evidence]]
) -> Certificate:
    """One certificate for all targets.

    The groups come in ascending order of strength, and more curvature only helps: the basis and
    the coercivity proven for the first group hold for every other one.
    """
    if len(parts) == 1:
        return certify_quadratic(problem, W, b, parts[0][1])
    first = parts[0][1]
    arrays: dict[str, Any] = {
        name: np.empty(W.shape if getattr(first, name).ndim == 2 else b.shape)
        for name in (
            "gradient",
            "gradient_rounding",
            "intercept_gradient",
            "intercept_rounding",
            "objective",
            "objective_rounding",
        )
    }
    for targets, evidence in parts:
        for name, array in arrays.items():
            array[..., targets] = getattr(evidence, name)
    return certify_quadratic(problem, W, b, replace(first, **arrays))


def solve_after(
    problem: Problem, tried: str, start: float, why: str, *, use_svd: bool = False
) -> Solution:
    """Solve by rows where another solver, begun at a time, gave up: that is a stage of its own."""
    seconds = time.perf_counter() - start
    solution = solve_by_rows(problem, "svd" if use_svd else "qr", use_svd=use_svd)
    solution.stages = [Stage(tried, 1, seconds, math.inf, Status.HANDED_OVER)]
    solution.notes.insert(0, f"{why}: rows factored")
    return solution


def _cost_by_rows(facts: Facts, *, use_svd: bool) -> Cost:
    """Cost of :func:`solve_by_rows`: factor, refine about three times, prove."""
    n, d = facts.n, facts.d
    longer, shorter = (max(n, d), min(n, d)) if is_rank_deficient(facts) else (n + d, d)
    flops = 4.0 * longer * shorter**2 + (20.0 * shorter**3 if use_svd or d > n else 0.0)
    flops = flops * facts.strengths + 180.0 * n * d * facts.k
    memory = 8.0 * (3 * d * shorter + (n * d if d > n else 0))
    time = 2.5 * CALL + orthogonal_seconds(facts, use_svd=use_svd) + refinement_seconds(facts)
    return Cost(flops, 6.0, memory, time)


class QR(Solver):
    """Orthogonal factorisation of row blocks with column pivoting.

    A complete orthogonal decomposition when the rank is deficient. Slower than the normal
    equations, and accurate where they are not.
    """

    name = "qr"
    title = "QR of row blocks with column pivoting, refined"
    needs_loss = frozenset({"quadratic"})
    needs_penalty = frozenset({"quadratic"})
    proof = "quadratic"

    def refuses(self, facts: Facts) -> str | None:
        if facts.is_sparse and facts.n * facts.d > MOST_DENSE:
            return "would factor a large sparse matrix as a dense one"
        if facts.d > 1.5 * facts.n and not facts.unpenalised and facts.d > 5000:
            return "more columns than rows: the kernel form is smaller"
        return None

    def cost(self, facts: Facts) -> Cost:
        return _cost_by_rows(facts, use_svd=False)

    def solve(self, problem: Problem, options: Options, monitor: Monitor) -> Solution:
        return solve_by_rows(problem, self.name)


class SVD(Solver):
    """Singular value decomposition of the triangular factor of the rows."""

    name = "svd"
    title = "singular value decomposition, refined; minimum norm"
    needs_loss = frozenset({"quadratic"})
    needs_penalty = frozenset({"quadratic"})
    proof = "quadratic"

    def refuses(self, facts: Facts) -> str | None:
        return QR().refuses(facts)

    def cost(self, facts: Facts) -> Cost:
        return _cost_by_rows(facts, use_svd=True)

    def solve(self, problem: Problem, options: Options, monitor: Monitor) -> Solution:
        return solve_by_rows(problem, self.name, use_svd=True)
