"""Problems of two classes on few columns, each solved by Newton's steps by itself.

What is known of the classes gives the constant to start from and the bound that ends the steps
(:mod:`trueline.solvers.newton.batched.steps`); proofs are made from sums over the rows, for all
problems at once. The problems are the members of a set, or the targets of one problem.
"""

from __future__ import annotations

import math
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from trueline.certificates.base import Certificate, checkable
from trueline.certificates.tangent import PointSums, RowSums, floor_of
from trueline.numerics.blas import run_strands, single_threaded_blas
from trueline.problem import Problem
from trueline.problem_set import Member, ProblemSet
from trueline.solution import Solution, Status
from trueline.solvers.base import CALL, Facts, Options
from trueline.solvers.newton.batched.steps import Part, descend, sum_classes
from trueline.solvers.pending import Answer

Array = NDArray[np.float64]

# Beyond so many columns Hessians of many rows are worth the tiles of :mod:`trueline.numerics.gram`.
# On 180 x 82 these steps take a third of the time of calls of NumPy, on 5000 x 73 a quarter more.
_COLUMNS, _MOST_COLUMNS = 64, 160
# Multiplications from which on loading compiled code, some tenths of a second, pays; and strands.
_LARGE_WORK, _STRANDS_WORK = 100_000_000, 5_000_000
# Of one problem by itself: where it has more numbers, its Gram matrix and threads are worth more.
_MOST_NUMBERS, _MOST_OF_WIDE_ROWS = 1_000_000, 200_000
_MOST_STEPS = 60
# Of the gap asked for, the part that is not left for what rounding adds to a proof. A step that
# passes no kink is exact: of losses with kinks less is left.
_SHARE, _SHARE_PAST_KINKS = 0.5, 1e-10
# Seconds that a target takes in any case, and for each multiplication of one pass over its rows.
_EACH, _MULTIPLICATION = 1e-4, 7e-10
# The unit of the gap is at most this many times the objective that was found.
_NEAR = 100.0
# Both labels, as a target.
_LABELS = np.array([[-1.0], [1.0]])


def has_few_columns(problems: ProblemSet) -> bool:
    """Whether the compiled steps know the loss, and are worth loading."""
    (n, d), members = problems.design.shape, problems.members
    if not problems.loss.compiled or problems.design.is_sparse or d > _COLUMNS:
        return False
    rows = sum(n if member.rows is None else len(member.rows) for member in members)
    return _work(rows, d) >= _LARGE_WORK


def _work(rows: int, d: int) -> int:
    return rows * (d + 1) * (d + 20)


def solve_few_columns(problems: ProblemSet, options: Options) -> list[Answer]:
    """Answers to all members, along their paths of strengths."""
    solver, paths = _FewColumns(problems, options), problems.paths()
    run_strands(solver.solve, paths)
    return solver.answers()


def suits(problem: Problem) -> bool:
    """Whether a problem by itself is small, and of the kind that these steps are for."""
    n, d = problem.design.shape
    design, strength, y = problem.design, np.asarray(problem.penalty.curvature), problem.target
    return bool(
        problem.loss.compiled
        and not (design.is_sparse or design.is_sequential)
        and _is_small(n, d)
        and (strength.ndim == 0 and strength > 0)
        and (problem.weights is None or problem.weights.all())
        and ((y.min(axis=0) < 0) & (y.max(axis=0) > 0)).all()
    )


def _is_small(n: int, d: int) -> bool:
    most = _MOST_NUMBERS if d <= _COLUMNS else _MOST_OF_WIDE_ROWS
    return d <= min(_MOST_COLUMNS, n) and n * (d + 1) <= most


def seconds_of_targets(facts: Facts) -> float:
    """Expected time for several targets of a problem that suits; infinite where it does not."""
    n, d = facts.n, facts.d
    if not (_is_small(n, d) and facts.is_compiled and facts.has_one_strength and facts.k > 1):
        return math.inf
    if facts.is_sparse or facts.is_read:
        return math.inf
    return 2 * CALL + facts.k * (_EACH + _MULTIPLICATION * _work(n, d))


def solve_targets(problem: Problem, options: Options, tol: float) -> Solution | None:
    """The solution of all targets of a problem that suits; None where that was not proven.

    ``tol`` is the gap to prove of each target, relative to the objective of its best constant, or
    to a hundred times that of the answer where this is less.
    """
    targets = range(problem.n_targets)
    start: list[tuple[Array, Array] | None] = [None for _ in targets]
    if options.start is not None:
        level = options.start_intercept
        level = np.zeros(problem.n_targets) if level is None else level
        start = [(options.start[:, [t]], level[[t]]) for t in targets]
    members = tuple(
        Member(problem.target[:, [t]], problem.penalty, problem.weights, start[t]) for t in targets
    )
    problems = ProblemSet(problem.design, problem.loss, members, problem.fit_intercept)
    own = Options(tol=tol, max_iter=options.max_iter)
    solver, paths = _FewColumns(problems, own, is_near=True), problems.paths()
    if len(paths) * _work(*problem.design.shape) >= _STRANDS_WORK:
        run_strands(solver.solve, paths)
    else:
        with single_threaded_blas():
            for path in paths:
                solver.solve(path)
    certificate = solver.certificate(problem)
    if not certificate.gap <= solver.allowed.sum():
        return None
    return Solution(
        certificate.coef,
        certificate.intercept,
        Status.CONVERGED,
        "newton",
        n_iter=int(solver.steps.max()),
        proof=certificate,
        notes=["whole steps on few columns, a Hessian where the last step has changed it"],
    )


class _FewColumns:
    """The rows, and what is known of each problem; all arrays begin with an axis of problems."""

    def __init__(self, problems: ProblemSet, options: Options, is_near: bool = False) -> None:
        self.problems, self.options, self.is_near = problems, options, is_near
        X, count = problems.design.toarray(), len(problems)
        n, d = X.shape
        # About their means columns are far from being parallel to the intercept's.
        self.middle = X.mean(axis=0) if problems.fit_intercept else np.zeros(d)
        self.rows = np.ones((n, d + problems.fit_intercept))
        np.subtract(X, self.middle, out=self.rows[:, :d])
        # Of RowSums: weights, sums and squares of columns, the largest norm of a row; rows.
        self.shares, self.totals = np.empty((count, 2)), np.empty((count, 2, d))
        self.squares, self.farthest = np.empty((count, d)), np.empty(count)
        self.counts = np.empty(count, dtype=np.intp)
        # Of PointSums: points, gradients, losses, squares of their derivatives, and curvatures.
        q = self.rows.shape[1]
        self.V, self.G = np.zeros((count, q)), np.empty((count, q))
        self.losses, self.facts = np.empty(count), np.empty((count, 2))
        self.strengths = np.array([float(m.penalty.curvature) for m in problems.members])
        self.allowed, self.steps = np.empty(count), np.zeros(count, dtype=np.intp)

    def solve(self, path: list[int]) -> None:
        """Members that differ in the penalty alone, each from the solution of the one before."""
        problems, first = self.problems, path[0]
        y, s, A = self._rows(first)
        d, loss = len(self.middle), problems.loss
        self._sum(first, A[:d], y, s)
        constant = loss.constant(_LABELS, self.shares[first])
        assert constant is not None
        level = float(constant[0]) * problems.fit_intercept
        unit = float(self.shares[first] @ loss.value(_LABELS[:, 0], np.full(2, level)))
        v = np.zeros(len(A))
        v[d:] = level
        for number in path:
            for array in (self.shares, self.totals, self.squares, self.farthest, self.counts):
                array[number] = array[first]
            start = problems.members[number].start
            if start is not None:
                v[:d], v[d:] = start[0][:, 0], start[1] + self.middle @ start[0]
            self.V[number], self.allowed[number] = v, self.options.tol * unit
            v = self._descend(number, unit, A, y, s)

    @cached_property
    def columns(self) -> Array:
        """All rows, column by column."""
        return np.ascontiguousarray(self.rows.T)

    def _rows(self, number: int) -> tuple[Array, Array, Array]:
        """Labels, weights and columns of the rows that a member counts."""
        member = self.problems.members[number]
        y, weights, rows = member.target[:, 0], member.weights, member.rows
        if weights is not None and not weights.all():
            kept = np.flatnonzero(weights)
            y, weights, rows = y[kept], weights[kept], kept if rows is None else rows[kept]
        s = np.ones(len(y)) if weights is None else np.ascontiguousarray(weights)
        if rows is None:
            return np.ascontiguousarray(y), s, self.columns
        return np.ascontiguousarray(y), s, np.ascontiguousarray(self.rows.take(rows, axis=0).T)

    def _sum(self, number: int, X: Array, y: Array, s: Array) -> None:
        sums = self.shares[number], self.totals[number], self.squares[number]
        self.farthest[number] = np.sqrt(sum_classes(X, y, s, *sums))
        self.counts[number] = len(y)

    def _descend(self, number: int, unit: float, A: Array, y: Array, s: Array) -> Array:
        """Steps for one member, from where it is to start; where they have led."""
        loss, strength, d = self.problems.loss, self.strengths[number], len(self.middle)
        shares, squares = self.shares[number], self.squares[number]
        weight = shares.sum()
        sizes = np.append(squares, weight)[: len(A)]
        centre, wide, reach = np.zeros(d), np.inf, 0.0
        if len(A) > d:
            centre = self.totals[number].sum(axis=0) / weight
            means = self.totals[number] / shares[:, None] - centre
            across = np.sqrt(2 * unit / strength * (means**2).sum(axis=1))
            margins = [abs(loss.least_margin(unit / share)) for share in shares.tolist()]
            reach = 2 * float((across + margins).max())
            if "self_concordant" in loss.capabilities:
                wide = loss.curvature_bound * float((squares - weight * centre**2).sum())
        farthest = float(self.farthest[number] + np.sqrt(centre @ centre))
        share = _SHARE_PAST_KINKS if loss.kinks else _SHARE
        scale = np.sqrt(weight / np.where(sizes > 0, sizes, weight))
        facts = strength, scale, centre, wide, farthest, reach, share * self.allowed[number]
        limit = min(_MOST_STEPS, self.options.max_iter or _MOST_STEPS)
        part, v, z = Part(loss.compiled, A, y, s, *facts), self.V[number], np.empty(len(y))
        self.steps[number] = descend(part, v, z, self.G[number], self.facts[number], limit)
        self.losses[number] = s @ loss.value(y, z)
        if self.is_near:
            # For separable classes the objective of a constant may be far above the minimum.
            objective = float(self.losses[number] + 0.5 * strength * (v[:d] @ v[:d]))
            near = min(_NEAR * objective / unit, 1.0)
            self.allowed[number] *= near
            if near < 1.0 and not loss.kinks:
                part = part._replace(goal=near * part.goal)
                more = descend(part, v, z, self.G[number], self.facts[number], limit)
                self.steps[number] += more
                self.losses[number] = s @ loss.value(y, z)
        return v.copy()

    def certificate(self, problem: Problem) -> Certificate:
        """Of the problem whose targets the members are."""
        proofs = self._proofs()
        objective = sum(proof.objective for proof in proofs)
        coef = np.hstack([proof.coef for proof in proofs])
        gap = sum(proof.gap for proof in proofs)
        return Certificate(
            kind="tangent",
            objective=objective,
            objective_rounding=sum(proof.objective_rounding for proof in proofs),
            gap=gap if len(proofs) == 1 else checkable(gap, objective, floor_of(coef.size)),
            loss=problem.loss,
            penalty=problem.penalty,
            fit_intercept=problem.fit_intercept,
            coef=coef,
            intercept=np.concatenate([proof.intercept for proof in proofs]),
            witness={},
        )

    def answers(self) -> list[Answer]:
        """Of all members, with their proofs."""
        facts = zip(self._proofs(), self.steps.tolist(), self.allowed.tolist())
        limit = self.options.max_iter
        return [Answer.of(number, *fact, limit) for number, fact in enumerate(facts)]

    def _proofs(self) -> list[Certificate]:
        problems, d = self.problems, len(self.middle)
        arrays = self.shares, self.totals, self.squares, self.farthest, self.counts
        rows = RowSums.of(self.middle, problems.fit_intercept, *arrays)
        curvature, squares = self.facts.T
        W, slope = self.V[:, :d], self.G[:, d:].sum(axis=1)
        correlation = self.G[:, :d] - self.strengths[:, None] * W
        sums = self.losses, squares, slope, curvature, correlation, float(len(self.rows))
        at = PointSums(W, self.V[:, d:].sum(axis=1), *sums)
        penalties = [member.penalty for member in problems.members]
        return rows.certify(at, problems.loss, penalties)
