"""Answers with a proof that is worked out when it is asked for."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trueline.certificates.base import Certificate
from trueline.certificates.choose import certify
from trueline.certificates.duality import certify_dual, intercept_radius
from trueline.certificates.fenchel import certify_from_moments
from trueline.certificates.tangent import FLOOR_OF_COUPLED, at_most_objective
from trueline.problem import MomentsProblem, Problem
from trueline.problem_set import ProblemSet
from trueline.solution import PathSolution, Solution, Status

Array = NDArray[np.float64]

#: Certificates claim a little more than the bound that they rest on.
CLAIMED = 1.25
#: Of small problems so many numbers are kept until the proof is asked for.
KEPT = 50_000
# Rounding of the correlations, relative to their thresholds, up to which it is bounded by norms;
# and the least share of them that is told apart from none.
_SLIGHT, _LEAST = 1e-3, 1e-14
_EPS = float(np.finfo(np.float64).eps)


@dataclass(frozen=True)
class Answer:
    """What was found for one member.

    Attributes
    ----------
    number : int
        The member.
    coef, intercept : arrays of shape (d, k) and (k,)
    steps : int
    bound : float
        At least the gap, but for rounding.
    allowed : float
        The gap that was asked for.
    status : Status
    certificate : Certificate, optional
        One that was made together with those of the others.
    """

    number: int
    coef: Array
    intercept: Array
    steps: int
    bound: float
    allowed: float
    status: Status
    certificate: Certificate | None = None

    @classmethod
    def of(
        cls, number: int, proof: Certificate, steps: int, allowed: float, limit: int | None
    ) -> Answer:
        """What a certificate is about, which is kept if its gap is as small as was asked for."""
        coef, intercept, bound = proof.coef, proof.intercept, proof.gap / CLAIMED
        if proof.gap <= allowed:
            facts = steps, bound, allowed, Status.CONVERGED
            return cls(number, coef, intercept, *facts, proof)
        # A proof from the rows themselves may say more: the guard asks for it.
        status = Status.MAX_ITER if steps == limit else Status.CONVERGED
        return cls(number, coef, intercept, steps, bound, allowed, status)

    def solution(self, problems: ProblemSet, solver: str, note: str = "") -> Solution:
        """As a solution of the set, found by a solver of this name."""
        return Solution(
            self.coef,
            self.intercept,
            self.status,
            solver,
            n_iter=self.steps,
            proof=PendingMember(problems, self) if self.certificate is None else self.certificate,
            notes=[note] if note else [],
            tolerance=self.allowed,
        )


@dataclass(frozen=True)
class PendingMember:
    """What is known of the gap of an answer, and how the proof is made."""

    problems: ProblemSet
    answer: Answer

    @property
    def coef(self) -> Array:
        return self.answer.coef

    @property
    def intercept(self) -> Array:
        return self.answer.intercept

    def bound(self) -> float:
        return CLAIMED * self.answer.bound

    def certificate(self) -> Certificate:
        answer = self.answer
        problem = self.problems[answer.number]
        return at_most_objective(problem, certify(problem, answer.coef, answer.intercept))


@dataclass(frozen=True)
class PendingFromMoments:
    """A proof for squared loss, which the moments will do for."""

    problem: MomentsProblem
    coef: Array
    intercept: Array
    gap: float  # as the solver saw it at its end, but for rounding
    slopes: Array | None = None  # of blocks of coefficients (certify_from_moments)

    def bound(self) -> float:
        return self._bound

    @cached_property
    def _bound(self) -> float:
        """The gap with what rounding may add to it, by norms in place of entries.

        Where all coefficients have squares, a/2 w^2, an error e of the correlations adds at most
        e abs(w) + e sqrt(2 gap / a) + e^2 / (2 a) to the conjugate. Without any, an error of at
        most delta of their thresholds changes the dual point by that share, and the gap by delta
        times terms which the objective of the best constant bounds. The products with the
        coefficients change by e.abs(w), which is nothing for coefficients that are zero, however
        far the target is from it; the intercept is squared, and all other terms are rounded as
        squares about the means.
        """
        problem, moments, W = self.problem, self.problem.moments, self.coef
        penalty = problem.penalty
        if penalty.capabilities.isdisjoint({"elastic", "nonnegative", "blocks"}):
            return math.inf
        weight, rows = moments.weight, min(moments.count, 2048)
        root = np.sqrt(moments.x_size + weight * moments.x_mean**2)
        target = np.sqrt(moments.y_size + weight * moments.y_mean**2)
        moved = root @ np.abs(W)
        reach = moved + math.sqrt(weight) * np.abs(self.intercept) + target
        units = moments.unit + (len(W) + rows + moments.count / 2048 + 32) * _EPS
        error = 4 * units * reach * root[:, None]
        off = units * reach
        added = 16 * float(off @ moved + off @ off) + 8 * units * float(moments.y_size.sum())
        if np.any(penalty.curvature):
            if not np.all(penalty.curvature):
                return math.inf
            return 1.1 * self.gap + added + 6 * float((error**2 / penalty.curvature).sum())
        room = float(penalty.dual_scale(error / _LEAST).min())
        if room * _SLIGHT <= _LEAST:
            return math.inf
        return 1.1 * self.gap + added + 6 * _LEAST / room * float(moments.y_size.sum())

    def certificate(self) -> Certificate:
        return certify_from_moments(self.problem, self.coef, self.intercept, self.slopes)


@dataclass(frozen=True)
class PendingDual:
    """The rows and a dual point, until the proof is asked for.

    Attributes
    ----------
    problem : Problem
        With data of its own: callers may change theirs.
    coef, intercept, dual : arrays of shape (d, k), (k,) and (n, k)
    centre, scale : arrays of shape (d,)
        As :func:`~trueline.certificates.duality.certify_dual` takes them.
    gap, objective : float
        As the solver saw them, the objective from above: of no more than the dual point is scaled
        to be feasible.
    scores : array of shape (n, k), optional
    """

    problem: Problem
    coef: Array
    intercept: Array
    dual: Array
    centre: Array
    scale: Array
    gap: float
    objective: float
    scores: Array | None = None

    def certificate(self) -> Certificate:
        known = self.dual, self.centre, self.scale, self.scores
        return certify_dual(self.problem, self.coef, self.intercept, *known)

    def bound(self) -> float:
        return self._bound

    @cached_property
    def _bound(self) -> float:
        """The gap with what rounding may add to it, by norms in place of entries.

        With R at least the norm of the dual point, and columns, levels and targets of norms X_j, B
        and Y, all sums are of numbers that add up to no more than R (X.|w| + B + Y) and the
        objective. An error e_j <= X_j R times a few units moves the conjugate of a_j/2 w_j^2 by e_j
        |w_j| + e_j^2 / (2 a_j); for l_j |w_j| the dual point is scaled by 1 - e_j / l_j. What is
        left of sum_i s_i u_i is multiplied by the largest intercept covered.
        """
        problem, W, b = self.problem, self.coef, self.intercept
        (n, d), loss, penalty = problem.design.shape, problem.loss, problem.penalty
        units, root = 2 * (n + 8 * d + 256) * _EPS, math.sqrt(problem.total_weight)
        weighted = problem.weigh(self.dual)
        steepest = loss.slope_bound * root
        if not math.isfinite(steepest):
            steepest = math.sqrt(float((weighted * self.dual).sum()))
        size = self.scale + root * np.abs(self.centre)
        targets = np.sqrt(problem.weigh(loss.target_size(problem.target) ** 2).sum(axis=0))
        reach = steepest * float((size @ np.abs(W) + root * np.abs(b) + targets).sum())
        errors = units * steepest * size[:, None]
        if np.all(penalty.curvature):
            added = float(np.broadcast_to(errors**2 / penalty.curvature, W.shape).sum())
        else:
            share = float((errors / penalty.linear).max(initial=0.0))
            added = 2 * share * self.objective if share <= _SLIGHT else math.inf
        if problem.fit_intercept:
            slope = np.abs(weighted.sum(axis=0)) + units * steepest * root
            added += float(slope @ intercept_radius(problem, b + self.centre @ W))
        return 1.1 * self.gap + added + 2 * units * (reach + self.objective)

    def __reduce__(self) -> Any:
        """Files and other processes are given the proof, not the rows."""
        return _itself, (self.certificate(),)


@dataclass(frozen=True)
class PendingTangent:
    """The rows, until the proof by the tangent of the losses is asked for.

    Attributes
    ----------
    problem : Problem
        With data of its own: callers may change theirs.
    coef, intercept : arrays of shape (d, k) and (k,)
    centre, scale : arrays of shape (d,)
        Means of the columns, and at least their norms about them.
    gap, objective : float
        As the solver saw them, the objective from above.
    reach : float
        How far intercepts may be from each other.
    """

    problem: Problem
    coef: Array
    intercept: Array
    centre: Array
    scale: Array
    gap: float
    objective: float
    reach: float

    def certificate(self) -> Certificate:
        return certify(self.problem, self.coef, self.intercept)

    def bound(self) -> float:
        return self._bound

    @cached_property
    def _bound(self) -> float:
        """The gap with what rounding may add to it, as of :class:`PendingDual`.

        Here derivatives are those at the scores, whose rounding they feel.
        """
        problem, W, b = self.problem, self.coef, self.intercept
        (n, d), loss, penalty = problem.design.shape, problem.loss, problem.penalty
        by_rows, by_sums = 4 * (d + 16) * _EPS, 4 * (n + 256) * _EPS
        root = math.sqrt(problem.total_weight)
        size = self.scale + root * np.abs(self.centre)
        scores = float((size @ np.abs(W) + root * np.abs(b)).sum()) + root
        steepest = loss.slope_bound * root
        slopes = by_sums * steepest + by_rows * loss.curvature_bound * scores
        errors = slopes * size[:, None]
        if np.all(penalty.curvature):
            added = float(np.broadcast_to(errors**2 / penalty.curvature, W.shape).sum())
        else:
            share = float((errors / penalty.linear).max(initial=0.0))
            added = 2 * share * self.objective if share <= _SLIGHT else math.inf
        if problem.fit_intercept:
            added += W.shape[1] * slopes * root * self.reach
        added += by_rows * steepest * scores + (by_sums + FLOOR_OF_COUPLED) * self.objective
        return CLAIMED * (self.gap + added)

    def __reduce__(self) -> Any:
        """Files and other processes are given the proof, not the rows."""
        return _itself, (self.certificate(),)


def _itself(certificate: Certificate) -> Certificate:
    return certificate


def single_solutions(problems: ProblemSet, paths: list[PathSolution]) -> list[Solution]:
    """One solution for each member, whose proofs are worked out when they are asked for."""
    found: dict[int, Solution] = {}
    for path in paths:
        for i, number in enumerate(path.numbers):
            coef, intercept = np.ascontiguousarray(path.coefs[..., i]), path.intercepts[:, i].copy()
            gap, steps = float(path.gaps[i]), int(path.n_iter[i])
            status = Status.CONVERGED if gap <= path.allowed else Status.STALLED
            bound = gap / CLAIMED
            answer = Answer(number, coef, intercept, steps, bound, path.allowed, status)
            found[number] = answer.solution(problems, path.solver)
            found[number].moments = path.moments
    return [found[number] for number in range(len(problems))]
