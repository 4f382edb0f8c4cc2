"""The members of a set, solved along their paths of strengths, all paths at once.

Every path (a fold, say) starts at its strongest penalty, and each of its members at the solution of
the one before. Paths go in step with each other: the first members of all of them are solved
together, then the second ones. What one learns, it learns from the rows that have weight in it.

The proof of an answer is left until it is asked for. The bound by which answers are judged is
that of :mod:`trueline.certificates.tangent`, about the origin: with a the strength of the penalty,
P the objective, h the slope in the intercepts and r the largest norm of a row,

    |G_w|^2 / (2 a) + |h| (sqrt(2) r sqrt(2 P / a) + |least margin of P / S| + |b|).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from trueline.certificates.base import Certificate
from trueline.certificates.tangent import class_indicators
from trueline.design import DenseDesign
from trueline.losses import Loss
from trueline.problem import Problem
from trueline.problem_set import ProblemSet
from trueline.solution import Solution, Status
from trueline.solvers.base import Options
from trueline.solvers.iterative import best_constant, target_gap
from trueline.solvers.newton.batched.descent import Points, balance, minimise
from trueline.solvers.newton.batched.few_columns import has_few_columns, solve_few_columns
from trueline.solvers.newton.batched.precondition import Preconditioner, make_preconditioner
from trueline.solvers.newton.batched.rows import Batch, SharedRows
from trueline.solvers.pending import CLAIMED, Answer
from trueline.wording import counted

Array = NDArray[np.float64]
Paths = list[list[int]]

# Numbers that the scores of problems solved together may take.
_MOST_SCORES = 2**24
_MOST_STEPS = 60
# Of the gap asked for, the part that is not left for what a proof adds.
_SHARE = 0.5
# How often steps go on where that was too little, and the part of the goal that is asked for then.
_ROUNDS, _FURTHER = 3, 1e-2
# A step that passes no kink is exact, but for what conjugate gradients leave: of losses with kinks
# so much less is left, of few columns less again.
_PAST_KINKS, _FEW_COLUMNS = 1e-4, 64


def solve_batch(problems: ProblemSet, options: Options, name: str) -> list[Solution]:
    """Solutions of all members, which have squared penalties of one positive strength each.

    Parameters
    ----------
    problems : ProblemSet
    options : Options
        ``tol``, the gap asked for relative to the objective of the best constant; ``max_iter``.
    name : str
        The solver's, for the solutions.
    """
    others = f"together with {counted(len(problems) - 1, 'other problem')} on the same rows"
    if has_few_columns(problems):
        answers = solve_few_columns(problems, options)
        note = f"exact Newton steps, {others}"
    else:
        answers = _solve_shared(problems.on_common_rows(), options)
        note = f"conjugate gradient steps, {others}"
    answers.sort(key=lambda answer: answer.number)
    return [answer.solution(problems, name, note) for answer in answers]


def _solve_shared(problems: ProblemSet, options: Options) -> list[Answer]:
    """Problems whose products with the rows are one product with a matrix."""
    small, back = _narrowed(problems)
    n, k = problems.design.shape[0], problems.members[0].target.shape[1]
    paths = problems.paths()
    together = max(1, _MOST_SCORES // (n * k))
    rows = SharedRows(small.design, small.fit_intercept)
    answers = [
        answer
        for start in range(0, len(paths), together)
        for answer in _follow(small, paths[start : start + together], rows, options)
    ]
    if back is None:
        return answers
    return [replace(one, coef=back @ one.coef, certificate=None) for one in answers]


def _narrowed(problems: ProblemSet) -> tuple[ProblemSet, Array | None]:
    """Dense rows with more columns than rows, turned into as many columns as there are rows.

    With X^T = Q R the solutions are Q v, where v are those for the rows of R^T, and the norms of
    coefficients and gradients are the same (see :mod:`trueline.solvers.transformed`).
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
    return replace(problems, design=design, members=members, _taken=[]), Q


def _follow(problems: ProblemSet, paths: Paths, rows: SharedRows, options: Options) -> list[Answer]:
    """Answers of all members of these paths, one position of the paths after the other."""
    members = problems.members
    first = [_without_rows(problems, path[0]) for path in paths]
    # What is asked for, and how far intercepts can be, do not depend on the penalty.
    allowed = np.array([target_gap(problem, options.tol) for problem in first])
    shares = [_shares(problem) for problem in first]
    whole = Batch(rows, problems.loss, *_stacked(first), np.ones(len(paths)))
    V = np.zeros((rows.width + 1, len(paths), whole.Y.shape[2]))
    if problems.fit_intercept:
        V[-1] = [best_constant(problem) for problem in first]
    model, sums = make_preconditioner(whole), whole.row_sums()
    out: list[Answer] = []
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
        bounds = _reach_goals(batch, at, allowed[own], [shares[f] for f in own], model, options)
        V[:, own] = at.V
        penalties = [members[number].penalty for number in numbers]
        proofs: list[Certificate] | list[None] = [None] * len(own)
        if sums is not None:
            proofs = sums.take(own).certify(at.sums(batch), problems.loss, penalties)
        for j, (f, number) in enumerate(zip(own, numbers)):
            status = Status.CONVERGED if at.is_done[j] else Status.STALLED
            if not at.is_done[j] and at.steps[j] == options.max_iter:
                status = Status.MAX_ITER
            W, b, proof = at.V[:-1, j].copy(), at.V[-1, j].copy(), proofs[j]
            if batch.is_coupled:
                b -= b.mean()  # the same shift of all scores changes no loss
            facts = int(at.steps[j]), float(bounds[j]), float(allowed[f]), status
            is_proven = proof is not None and proof.gap <= allowed[f]
            out.append(Answer(number, W, b, *facts, proof if is_proven else None))
    return out


def _reach_goals(
    batch: Batch,
    at: Points,
    allowed: Array,
    shares: list[Array | None],
    model: Preconditioner,
    options: Options,
) -> Array:
    """Minimise until the gaps are proven to be small enough, but for rounding; their bounds.

    The slope in an intercept that is nothing beside its curvature may still be much for the proof.
    """
    limit = min(_MOST_STEPS, options.max_iter or _MOST_STEPS)
    goals, enough = _SHARE * allowed, allowed / CLAIMED
    if batch.loss.kinks:
        goals = goals * (_PAST_KINKS if batch.rows.width > _FEW_COLUMNS else _PAST_KINKS**2)
        enough = enough * np.sqrt(_PAST_KINKS)
    for _ in range(_ROUNDS):
        minimise(batch, at, goals, model, limit)
        bounds = _bounds(batch, at, shares)
        if not batch.fit_intercept or (bounds <= enough).all():
            break
        balance(batch, at)
        bounds = _bounds(batch, at, shares)
        open_ones = ~(bounds <= enough) & (at.steps < limit)
        if not open_ones.any():
            break
        goals = np.where(open_ones, _FURTHER * goals, np.inf)
    at.is_done |= CLAIMED * bounds <= allowed
    return bounds


def _without_rows(problems: ProblemSet, number: int) -> Problem:
    """A member to be asked for all but its rows, which are not copied."""
    member = problems.members[number]
    parts = member.target, problems.loss, member.penalty, problems.fit_intercept, member.weights
    return Problem(problems.design, *parts)


def _stacked(problems: list[Problem]) -> tuple[Array, Array]:
    """Targets of shape (n, p, k) and weights (n, p), neighbours in memory along the rows.

    Problems with fewer rows than others end with rows without weight.
    """
    n, k = max(len(problem.target) for problem in problems), problems[0].n_targets
    Y, S = np.ones((len(problems), n, k)), np.zeros((len(problems), n))
    for j, problem in enumerate(problems):
        m = len(problem.target)
        Y[j, :m], Y[j, m:] = problem.target, problem.target[:1]
        S[j, :m] = 1.0 if problem.weights is None else problem.weights
    return Y.transpose(1, 0, 2), S.T


def _bounds(batch: Batch, at: Points, shares: list[Array | None]) -> Array:
    """At least the gaps, but for rounding."""
    bounds = np.asarray((at.G[:-1] ** 2).sum(axis=(0, 2)) / (2 * batch.strength))
    if not batch.fit_intercept:
        return bounds
    slopes, objectives = np.abs(at.G[-1]).sum(axis=1), batch.objective(at.V, at.Z)
    spread = 2 * batch.rows.farthest * np.sqrt(objectives / batch.strength)
    for j in np.flatnonzero(slopes).tolist():
        reach = _reach(batch.loss, float(objectives[j]), shares[j], at.V[-1, j])
        bounds[j] += slopes[j] * (spread[j] + reach)
    return bounds


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
