"""The members of a set, solved along their paths of strengths, all paths at once.

Every path (a fold, say) starts at its strongest penalty, and each of its members at the solution of
the one before. Paths go in step with each other: the first members of all of them are solved
together, then the second ones. What one learns, it learns from the rows that have weight in it.

The proof of an answer is left until somebody asks for it. The bound by which answers are judged is
that of :mod:`trueline.certificates.tangent`, about the origin: with a the strength of the penalty,
P the objective, h the slope in the intercepts and r the largest norm of a row,

    |G_w|^2 / (2 a) + |h| (sqrt(2) r sqrt(2 P / a) + |least margin of P / S| + |b|).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from trueline.certificates.tangent import class_indicators
from trueline.design import DenseDesign
from trueline.losses import Loss
from trueline.problem import Problem
from trueline.problem_set import ProblemSet
from trueline.solution import Solution, Status
from trueline.solvers.batched_newton.descent import Points, minimise
from trueline.solvers.batched_newton.precondition import make_preconditioner
from trueline.solvers.batched_newton.rows import Batch
from trueline.solvers.iterative import best_constant, target_gap
from trueline.solvers.pending import PendingMember
from trueline.wording import counted

__all__ = ["solve_batch"]

Array = NDArray[np.float64]

# Numbers that the scores of problems solved together may take.
_MOST_SCORES = 2**24
# Of the gap asked for, the part that is not left for what a proof adds.
_SHARE = 0.5
# Certificates claim a little more than the bound that they rest on.
_CLAIMED = 1.25


def solve_batch(problems: ProblemSet, tol: float, name: str) -> list[Solution]:
    """Solutions of all members, which have squared penalties of one positive strength each.

    Parameters
    ----------
    problems : ProblemSet
    tol : float
        The gap asked for, relative to the objective of the best constant.
    name : str
        The solver's, for the solutions.
    """
    small, back = _narrowed(problems)
    found: list[Solution | None] = [None] * len(problems)
    n, k = problems.design.shape[0], problems.members[0].target.shape[1]
    paths = problems.paths()
    together = max(1, _MOST_SCORES // (n * k))
    for start in range(0, len(paths), together):
        for answer in _follow(small, paths[start : start + together], tol):
            found[answer.number] = _solution(problems, answer, back, name)
    return [solution for solution in found if solution is not None]


def _narrowed(problems: ProblemSet) -> tuple[ProblemSet, Array | None]:
    """Dense rows with more columns than rows, turned into as many columns as there are rows.

    With X^T = Q R the solutions are Q v, where v are those for the rows of R^T, and the norms of
    coefficients and gradients are the same (see :mod:`trueline.solvers.row_space`).
    """
    n, d = problems.design.shape
    if problems.design.is_sparse or d <= n:
        return problems, None
    Q, R = np.linalg.qr(problems.design.toarray().T)
    members = tuple(
        member._replace(start=(Q.T @ member.start[0], member.start[1])) if member.start else member
        for member in problems.members
    )
    design = DenseDesign(np.ascontiguousarray(R.T))
    return replace(problems, design=design, members=members, _kept=[]), Q


@dataclass(frozen=True)
class _Answer:
    """What was found for one member."""

    number: int
    coef: Array
    intercept: Array
    steps: int
    is_done: bool
    bound: float
    allowed: float


def _follow(problems: ProblemSet, paths: list[list[int]], tol: float) -> Iterator[_Answer]:
    """Answers of all members of these paths, one position of the paths after the other."""
    members, design = problems.members, problems.design
    first = [problems.on_all_rows(path[0]) for path in paths]
    # What is asked for, and how far intercepts can be, do not depend on the penalty.
    allowed = np.array([target_gap(problem, tol) for problem in first])
    shares = [_shares(problem) for problem in first]
    Y = np.stack([problem.target for problem in first], axis=1)
    ones = np.ones(len(Y))
    S = np.stack([ones if one.weights is None else one.weights for one in first], axis=1)
    V = np.zeros((design.shape[1] + 1, len(paths), Y.shape[2]))
    if problems.fit_intercept:
        V[-1] = [best_constant(problem) for problem in first]
    whole = Batch(design, problems.fit_intercept, problems.loss, Y, S, np.ones(len(paths)))
    preconditioner = make_preconditioner(whole)
    farthest = float(np.sqrt(design.row_squares(None).max(initial=0.0)))
    for position in range(max(map(len, paths))):
        own = np.flatnonzero([position < len(path) for path in paths])
        numbers = [paths[f][position] for f in own]
        for f, number in zip(own, numbers):
            start = members[number].start
            if start is not None:
                V[:-1, f], V[-1, f] = start
        strength = np.array([float(members[number].penalty.curvature) for number in numbers])
        batch = replace(whole.take(own), strength=strength)
        at = Points.at(batch, V[:, own])
        minimise(batch, at, _SHARE * allowed[own], preconditioner)
        V[:, own] = at.V
        bounds = (at.G[:-1] ** 2).sum(axis=(0, 2)) / (2 * strength)
        for j, (f, number) in enumerate(zip(own, numbers)):
            W, b, bound = at.V[:-1, j].copy(), at.V[-1, j].copy(), bounds[j]
            if batch.is_coupled:
                b -= b.mean()  # the same shift of all scores changes no loss
            if problems.fit_intercept:
                spread = 2 * farthest * float(np.sqrt(at.objective[j] / strength[j]))
                reach = spread + _reach(problems.loss, float(at.objective[j]), shares[f], b)
                bound += float(np.abs(at.G[-1, j]).sum()) * reach
            facts = int(at.steps[j]), bool(at.is_done[j]), _CLAIMED * float(bound)
            yield _Answer(number, W, b, *facts, float(allowed[f]))


def _shares(problem: Problem) -> Array | None:
    """The weights of the classes, of a loss of margins."""
    if "margins" not in problem.loss.capabilities:
        return None
    members = class_indicators(problem.loss, problem.target)
    found = members.sum(axis=0) if problem.weights is None else problem.weights @ members
    return np.asarray(found[found > 0])


def _reach(loss: Loss, P: float, shares: Array | None, b: Array) -> float:
    """How far the best intercepts can be from these beside what the coefficients do, if known."""
    if shares is None:
        return np.inf
    margins = [abs(loss.least_margin(P / share)) for share in shares]
    return float(max(margins) + np.abs(b).max() + np.ptp(b))


def _solution(problems: ProblemSet, answer: _Answer, back: Array | None, name: str) -> Solution:
    W = answer.coef if back is None else back @ answer.coef
    return Solution(
        W,
        answer.intercept,
        Status.CONVERGED if answer.is_done else Status.STALLED,
        name,
        n_iter=answer.steps,
        proof=PendingMember(problems, answer.number, W, answer.intercept, answer.bound),
        notes=[f"together with {counted(len(problems) - 1, 'other problem')} on the same rows"],
        tolerance=answer.allowed,
    )
