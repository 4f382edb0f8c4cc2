"""Least squares by the normal equations: one pass over the rows, then Cholesky."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from trueline.certificates.base import Certificate
from trueline.certificates.quadratic import Evidence, certify_quadratic
from trueline.moments import Moments
from trueline.problem import MomentsProblem, Problem
from trueline.problem_set import ProblemSet
from trueline.solution import PathSolution, Solution, Status
from trueline.solvers.base import (
    CALL,
    Cost,
    Facts,
    Monitor,
    Options,
    Solver,
    gram_seconds,
    is_rank_deficient,
    normal_factor_seconds,
    refinement_seconds,
)
from trueline.solvers.least_squares.normal_equations import (
    NormalFactor,
    as_dense,
    curvature_matrix,
    evidence_from_moments,
    evidence_from_refined,
    factor_normal_equations,
    factor_spectrum,
    rank_note,
    same_strength_groups,
)
from trueline.solvers.least_squares.orthogonal import factor_dependent
from trueline.solvers.least_squares.qr import QR, certify_groups, part_of, plain_steps, solve_after
from trueline.solvers.least_squares.refinement import can_refine, refine
from trueline.solvers.least_squares.spectrum import serves_strengths, solve_strengths
from trueline.wording import counted

Array = NDArray[np.float64]
Indices = NDArray[np.intp]

_EPS = float(np.finfo(np.float64).eps)
# Of many strengths on the same rows each takes this share of a decomposition.
_OF_A_PATH = 0.1
# What M^T H M >= nu I must reach for the normal equations to be trusted.
_PROVEN_ENOUGH = 0.5
# Up to this many elements (times targets) a step with residuals from the rows costs next to
# nothing: always do it. Up to fewer, and where digits would be lost, in doubled precision.
_ALWAYS_REFINE, _ALWAYS_EXACT = 20_000, 2_000
# Beyond this condition number the squared error of the Gram matrix becomes visible (1e-10): one
# step with residuals from the rows brings back the accuracy of an orthogonal factorisation.
_REFINE_CONDITION = 1e3
# The same for means that are so many spreads away from zero.
_FAR = 1e3


class Cholesky(Solver):
    """Normal equations from moments, refined where digits would be lost.

    Memory beside the data: a few matrices of d x d, never a second copy of X. When the data are
    too ill-conditioned for the Gram matrix (its proof fails) the rows are factored instead, and
    the solution says so.
    """

    name = "cholesky"
    shows_nonfinite = True
    title = "normal equations from one pass, Cholesky"
    needs_loss = frozenset({"quadratic"})
    needs_penalty = frozenset({"quadratic"})
    proof = "quadratic"

    def refuses(self, facts: Facts) -> str | None:
        if facts.d > 30_000:
            return f"a Gram matrix of {facts.d} x {facts.d} would take {facts.d**2 * 8e-9:.0f} GB"
        return None

    def cost(self, facts: Facts) -> Cost:
        d, k = facts.d, facts.k
        gram = 2.0 * facts.nonzeros * max(1.0, facts.density * d) + 2.0 * facts.nonzeros * k
        factor = float(d) ** 3 * facts.strengths + 2.0 * d * d * k
        time = CALL + gram_seconds(facts) + normal_factor_seconds(d, facts.strengths)
        if not facts.is_sparse and facts.nonzeros * k <= _ALWAYS_EXACT:
            time += 0.25 * refinement_seconds(facts)  # from a good start, one evaluation is enough
        memory = 8.0 * d * d * 6
        if not is_rank_deficient(facts):
            return Cost(gram + factor, 1.0, memory, time)
        # Singular for sure: the rows will have to be factored after all.
        after = QR().cost(facts)
        return Cost(
            gram + factor + after.flops,
            1.0 + after.passes,
            memory + after.memory,
            time + after.seconds,
        )

    def solve(self, problem: Problem, options: Options, monitor: Monitor) -> Solution:
        moments = Moments.from_rows(problem.design, problem.target, problem.weights)
        if not moments.is_finite():
            raise FloatingPointError("the sums of squares of the data are not finite")
        return solve_from_moments(problem, moments, self.name)

    def solve_from_moments(
        self, problem: Problem, moments: Moments, options: Options, monitor: Monitor
    ) -> Solution:
        return solve_from_moments(problem, moments, self.name)

    def reads_once(self, facts: Facts) -> bool:
        return True

    def set_cost(self, facts: Facts, count: int) -> Cost:
        one = self.cost(facts)
        # The rows are read once for all, and decomposed once for the strengths of a path.
        each = one.seconds - gram_seconds(facts) - 0.9 * CALL
        if facts.has_one_strength:
            each = _OF_A_PATH * (each + 5e-10 * float(facts.d) ** 3)
        seconds = CALL + gram_seconds(facts) + count * each
        return Cost(count * one.flops, one.passes, one.memory, seconds)

    def solve_paths(self, problems: ProblemSet, options: Options) -> list[PathSolution] | None:
        if not serves_strengths(problems):
            return None
        return solve_strengths(problems, options.tol, self.name)

    def solve_set(self, problems: ProblemSet, options: Options) -> list[Solution]:
        if serves_strengths(problems):
            return super().solve_set(problems, options)
        return [
            solve_from_moments(problems.on_all_rows(i), problems.moments(i), self.name)
            for i in range(len(problems))
        ]


def solve_from_moments(
    problem: Problem | MomentsProblem, moments: Moments, name: str = "cholesky"
) -> Solution:
    """Solve given the centred moments; factor the rows if these cannot be trusted.

    Without rows (:class:`~trueline.problem.MomentsProblem`) an ill-conditioned Gram matrix is
    solved on the directions that it still determines.
    """
    start = time.perf_counter()
    d, k = problem.n_features, problem.n_targets
    about = moments if problem.fit_intercept else moments.about_zero()
    groups: list[_Group] = []
    notes: list[str] = []
    rank, narrowest, dependent = d, None, None
    curvature = curvature_matrix(problem)
    for strength, targets in same_strength_groups(curvature):
        factor = factor_normal_equations(about, strength)
        is_enough = factor is not None and factor.coercivity >= _PROVEN_ENOUGH
        if not is_enough and isinstance(problem, Problem) and not strength.any():
            factor = factor_dependent(problem, about)
            is_enough = factor is not None and factor.coercivity >= _PROVEN_ENOUGH
        if not is_enough:
            if isinstance(problem, Problem):
                why = "too ill-conditioned for the Gram matrix"
                solution = solve_after(problem, name, start, why)
                solution.moments = moments
                return solution
            factor = factor_spectrum(about, strength)
        assert factor is not None
        if factor.basis.shape[1] < rank:
            rank, narrowest = factor.basis.shape[1], factor.space
            dependent = factor.dependent
        part = problem if len(targets) == k else part_of(problem, targets, strength)
        some = about if len(targets) == k else about.targets(targets)
        own_curvature = curvature if len(targets) == k else curvature[:, targets]
        W, b, evidence, note = _solve_group(part, some, factor, own_curvature)
        square = None
        if isinstance(evidence, Evidence):
            hessian_terms = part.penalty.value_per_target(W)
            square = 2 * np.maximum(evidence.objective - hessian_terms, 0.0)
        groups.append(_Group(targets, W, b, square, evidence))
        notes = notes or note
    if narrowest is not None and isinstance(problem, Problem):
        notes.append(rank_note(narrowest, np.sqrt(about.gram.diagonal()), dependent))
    elif rank < d:
        notes.append(f"rank {rank} of {d} as far as the Gram matrix tells: least norm on the rest")
    W, b, squares = _side_by_side(groups, d, k)
    return Solution(
        W,
        b,
        Status.SOLVED,
        name,
        notes=notes,
        moments=moments,
        rank=rank,
        row_space=narrowest if rank < d else None,
        residual_square=squares,
        proof=_certificate(problem, W, b, [(group.targets, group.evidence) for group in groups]),
    )


class _Group(NamedTuple):
    """The answer for targets of equal strength; ``square`` is their residual square if known."""

    targets: Indices
    coef: Array
    intercept: Array
    square: Array | None
    evidence: Evidence | PendingProof


def _side_by_side(groups: list[_Group], d: int, k: int) -> tuple[Array, Array, Array | None]:
    """Coefficients, intercepts and residual squares of all targets."""
    if len(groups) == 1:
        return groups[0].coef, groups[0].intercept, groups[0].square
    W, b, squares = np.empty((d, k)), np.empty(k), np.empty(k)
    for targets, coef, intercept, square, _ in groups:
        W[:, targets], b[targets] = coef, intercept
        squares[targets] = np.nan if square is None else square
    return W, b, None if np.isnan(squares).any() else squares


def _certificate(
    problem: Problem | MomentsProblem,
    W: Array,
    b: Array,
    parts: list[tuple[Indices, Evidence | PendingProof]],
) -> Certificate | PendingProof:
    """The proof, left pending if it is for all targets at once."""
    if len(parts) == 1 and isinstance(parts[0][1], PendingProof):
        return parts[0][1]
    resolved = [
        (targets, part.resolve() if isinstance(part, PendingProof) else part)
        for targets, part in parts
    ]
    return certify_groups(problem, W, b, resolved)


@dataclass(frozen=True)
class PendingProof:
    """Everything a proof from moments needs; worked out when it is asked for.

    A small fit in a loop should not pay for certificates that are not read. What is kept has a
    size of d x d at most: the rows are let go.
    """

    problem: Problem | MomentsProblem
    moments: Moments
    coef: Array
    intercept: Array
    factor: NormalFactor

    def needs_rows(self, square: Array | None = None) -> bool:
        """Whether the objective cancels in the moments, so that the rows must be read.

        A residual square known from the rows, up to a step that changes digits alone, often decides
        at once: its rounding in the moments is well below what is compared here.
        """
        if not isinstance(self.problem, Problem):
            return False
        moments = self.moments
        if square is not None:
            size = np.sqrt(moments.x_size) @ np.abs(self.coef) + np.sqrt(moments.y_size)
            units = moments.unit + (len(self.coef) + 4) * _EPS
            if (4 * units * size**2 <= 0.5e-7 * square).all():
                return False
        square, rounding = moments.residual_square(self.coef)
        return bool((rounding > 1e-7 * square).any())

    def without_rows(self) -> PendingProof:
        """The same, holding on to the moments alone."""
        problem = self.problem
        if isinstance(problem, MomentsProblem):
            return self
        light = MomentsProblem(self.moments, problem.penalty, problem.fit_intercept)
        return PendingProof(light, self.moments, self.coef, self.intercept, self.factor)

    def resolve(self) -> Evidence:
        """Gradient, objective and their rounding."""
        basis = self.factor.basis
        evidence = evidence_from_moments(
            self.problem, self.moments, self.coef, self.intercept, basis, self.factor.coercivity
        )
        is_global = basis.shape[1] == len(basis)
        return replace(evidence, is_global=is_global, left_out=self.factor.left_out)

    def bound(self) -> float:
        """At least the gap, by norms in place of the entries of the rounding errors.

        As :meth:`resolve`, with || M^T e || <= || T^{-1} M || || T e || for the error e of the
        gradient, and magnitudes about zero, which bound those about the means. A small fit in a
        loop pays for this one: few operations on arrays.
        """
        moments, factor, weight = self.moments, self.factor, self.moments.weight
        if factor.diagonal_coercivity > 0:
            spread = math.sqrt(factor.coercivity / factor.diagonal_coercivity)
        elif (factor.scale > 0).all():  # a basis of some directions: T says nothing of it
            spread = float(np.linalg.norm(factor.basis / factor.scale[:, None]))
        else:
            return math.inf
        W, b, cross, y_mean = self.coef, self.intercept, moments.cross, moments.y_mean
        if len(b) == 1:  # products of vectors take half the time of those of matrices
            W, cross = W[:, 0], cross[:, 0]
        x_mean, x_size = moments.x_mean, moments.x_size
        reach = np.sqrt(x_size + weight * (x_mean * x_mean)).dot(np.abs(W))
        reach = reach + np.sqrt(moments.y_size + weight * (y_mean * y_mean))
        largest = math.sqrt(reach.dot(reach))
        gradient = moments.gram.dot(W)
        gradient -= cross
        units = moments.unit + (len(W) + 8) * _EPS
        square = float(moments.y_square.sum()) + np.vdot(W, gradient) - np.vdot(W, cross)
        error = 2 * units * math.sqrt((factor.scale * factor.scale).dot(x_size)) * largest
        curvature = self.problem.penalty.curvature
        if not isinstance(curvature, float) or curvature:
            curved = (curvature * self.coef).reshape(W.shape)
            gradient += curved
            curved = factor.scale * curved.T
            error += 4 * _EPS * math.sqrt(np.vdot(curved, curved))
        along = gradient.T.dot(factor.basis)
        length = math.sqrt(np.vdot(along, along)) * (1 + (len(W) + 2) * _EPS * factor.condition)
        length += error * spread
        bound = 0.5 * length * length / factor.coercivity
        if self.problem.fit_intercept:
            off = b + x_mean.dot(W) - y_mean
            slope = math.sqrt(weight * off.dot(off)) + 3 * units * largest
            bound += 0.5 * slope * slope
        share = 1e-20  # of more than the objective: certificates claim no less
        if factor.left_out:
            bound += self._left_out(gradient)
            share = 1e-13
        floor = share * float(moments.y_square.sum())
        # The certificate leaves room for the rounding of its checker, and takes the objective
        # itself for the gap where that is no more than ten times as much.
        most = 13 * bound + floor
        is_less = most <= 0.5 * (square - 4 * units * largest * largest)
        return 1.3 * bound + floor if is_less else most

    def _left_out(self, gradient: Array) -> float:
        """At least what certificates allow for columns that depend on others up to rounding."""
        moments, size = self.moments, np.abs(self.coef)
        squares = moments.gram.diagonal() if self.problem.fit_intercept else moments.x_size
        target = math.sqrt(moments.y_square.sum())
        reach = float(np.linalg.norm(np.sqrt(squares) @ size))
        slopes = float((np.abs(gradient).reshape(size.shape) * size).sum())
        return 16 * _EPS * reach * target + 8 * slopes

    def certificate(self) -> Certificate:
        """The certificate of a single group of targets."""
        return certify_quadratic(self.problem, self.coef, self.intercept, self.resolve())


def _is_far(moments: Moments) -> bool:
    """Whether a mean of columns is so far from zero that intercepts lose digits to it."""
    return bool((moments.weight * moments.x_mean**2 > _FAR**2 * moments.x_size).any())


def _solve_group(
    problem: Problem | MomentsProblem, moments: Moments, factor: NormalFactor, curvature: Array
) -> tuple[Array, Array, Evidence | PendingProof, list[str]]:
    """Coefficients, intercepts and evidence for targets of equal strength."""
    if isinstance(problem, Problem) and problem.design.is_sparse:
        n, d = problem.design.shape
        if n * d * problem.n_targets <= _ALWAYS_REFINE:
            problem = as_dense(problem)
    W = factor.solve(moments.cross)
    b = moments.y_mean - moments.x_mean @ W
    notes = [f"condition number at most {factor.condition:.2g} (columns of equal norm)"]
    square = None
    if isinstance(problem, Problem):
        size = problem.design.nonzeros * problem.n_targets
        is_doubtful = factor.condition > _REFINE_CONDITION or _is_far(moments)
        # Coefficients of dependent columns are chosen by their norm, which is rounded as it is.
        few = _ALWAYS_EXACT if factor.space is None else 0
        most = _ALWAYS_REFINE if is_doubtful else few
        is_near = can_refine(problem)  # rows in memory: others are read for what needs it only
        if size <= most and is_near:
            defect = 1.5 * (1.0 - factor.coercivity)
            basis, mean = factor.basis, moments.x_mean
            squares = 1.01 * (moments.x_size + moments.weight * (mean * mean))
            refined = refine(problem, W, b, basis, mean, curvature, defect=defect, squares=squares)
            notes.append(f"refined in doubled precision ({counted(refined.steps, 'step')})")
            W, b, square = refined.coef, refined.intercept, refined.residual_square
            if refined.is_evaluated:
                evidence = evidence_from_refined(
                    problem,
                    refined,
                    basis,
                    factor.coercivity,
                    factor.space is None,
                    factor.left_out,
                )
                return W, b, evidence, notes
        elif is_doubtful or (is_near and size <= _ALWAYS_REFINE):
            W, b = plain_steps(problem, W, b, factor.basis, moments.x_mean, curvature, steps=1)
            notes.append("refined once with residuals from the rows")
    pending = PendingProof(problem, moments, W, b, factor)
    if pending.needs_rows(square):
        return W, b, pending.resolve(), notes
    return W, b, pending.without_rows(), notes
