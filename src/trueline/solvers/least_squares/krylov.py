r"""Krylov methods: conjugate gradients, and those with shifts for many strengths.

Conjugate gradients work on the normal equations, which are never formed.

    minimise  1/2 || S^(1/2) (y_c - X_c w) ||^2 + 1/2 || A^(1/2) w ||^2

With r = y_c - X_c w and g = X_c^T S r - A w (minus the gradient), preconditioned by
D = diag(X_c^T S X_c + A) (Jacobi: columns of equal norm):

    q = X_c p,  step = g.D^{-1}g / (q.S q + p.A p)
    w += step p,  r -= step q,  g = X_c^T S r - A w
    p = D^{-1} g + (g.D^{-1}g / old g.D^{-1}g) p

This is CGLS (M. R. Hestenes, E. Stiefel, "Methods of conjugate gradients for solving linear
systems", J. Res. Nat. Bur. Standards 49 (1952) 409-436, section 10; A. Bjorck, "Numerical Methods
for Least Squares Problems", 1996, algorithm 7.4.1): the residual of the rows is carried along, so
that accuracy does not suffer from the squared condition number of X^T X.

All targets iterate together, each with steps of its own. X_c = X - 1 m^T is applied implicitly.

With shifts, one Krylov space for each target gives ridge regression for all strengths of several
paths,

    (C + a I) w = c,     C = (X - 1 m^T)^T S (X - 1 m^T),     c = (X - 1 m^T)^T S y,

with m the weighted mean. Conjugate gradients for the smallest strength a build residuals that are
parallel to those of all other strengths, so that these cost vector operations only, and end early
(B. Jegerlehner, "Krylov space solvers for shifted linear systems", hep-lat/9612014 (1996), eqs.
2.42-2.44; A. Frommer, Computing 70 (2003) 87-109). A step of several paths (folds, say) reads the
rows once. The gap of an answer with the gradient g is at most |g|^2 / (2 a); the gradient is
computed afresh at the end.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from trueline.certificates.choose import Prover
from trueline.problem import Problem
from trueline.problem_set import ProblemSet
from trueline.solution import Solution, Status
from trueline.solvers.base import (
    CALL,
    Cost,
    Facts,
    Iteration,
    Monitor,
    Options,
    Progress,
    Solver,
    run,
)
from trueline.solvers.iterative import (
    ProofSchedule,
    best_constant,
    centred_design,
    finish,
    has_many_columns,
    iteration_cost,
    krylov_steps,
    make_prover,
    target_gap,
)
from trueline.solvers.least_squares.normal_equations import curvature_matrix
from trueline.solvers.pending import CLAIMED, Answer

Array = NDArray[np.float64]

_EPS = float(np.finfo(np.float64).eps)
# Of many strengths on the same rows each takes this share of the products that one alone takes, and
# so many seconds for each coefficient and step.
_OF_A_PATH, _VECTORS = 0.1, 2e-9
# The spread of the largest entries of columns in similar units, in powers of ten.
_SIMILAR = 0.7


class ConjugateGradient(Solver):
    """Conjugate gradients for least squares and ridge, on dense or sparse data.

    Without a penalty on every coefficient there is no preconditioner: from zero the iterates stay
    in the row space, and the answer is the one of least norm.
    """

    name = "conjugate_gradient"
    title = "conjugate gradients on the rows, Jacobi preconditioner"
    needs_loss = frozenset({"quadratic"})
    needs_penalty = frozenset({"quadratic"})
    is_direct = False
    proof = "quadratic"

    def cost(self, facts: Facts) -> Cost:
        return iteration_cost(facts, krylov_steps(facts))

    def solve(self, problem: Problem, options: Options, monitor: Monitor) -> Solution:
        prover = make_prover(problem)
        target = target_gap(problem, options.tol)
        schedule = ProofSchedule(prover, target, options.tol, monitor.is_watching)
        iteration = _ConjugateSteps(problem, prover, schedule)
        # In exact arithmetic d steps suffice; rounding delays them.
        max_iter = options.max_iter or max(1000, 4 * problem.n_features)
        outcome = run(iteration, monitor, max_iter=max_iter, target_gap=target)
        return finish(problem, prover, iteration, outcome, monitor, self.name)

    def set_cost(self, facts: Facts, count: int) -> Cost:
        if not facts.has_one_strength:
            return super().set_cost(facts, count)
        # The steps of one problem serve all strengths of a path.
        one, steps = self.cost(facts), krylov_steps(facts)
        vectors = _VECTORS * steps * facts.d * facts.k
        seconds = CALL + count * (_OF_A_PATH * one.seconds + vectors)
        return Cost(count * one.flops, count * one.passes, count * one.memory, seconds)

    def solve_set(self, problems: ProblemSet, options: Options) -> list[Solution]:
        if not can_shift(problems):
            return super().solve_set(problems, options)
        return solve_shifted(problems, options.tol, self.name)


class _ConjugateSteps(Iteration):
    """w, r, g, p of the module's text; arrays have one column per target."""

    def __init__(self, problem: Problem, prover: Prover, schedule: ProofSchedule) -> None:
        d, k = problem.n_features, problem.n_targets
        self.problem, self.prover, self.schedule = problem, prover, schedule
        self.design = centred_design(problem, prover.mean)
        self.curvature = curvature_matrix(problem)
        self.centre = best_constant(problem)
        self.inverse = _inverse_diagonal(problem, prover, self.curvature)
        self.coef = np.zeros((d, k))
        self.intercept = self.centre.copy()
        self._start()
        # A gradient this much smaller than the first is zero; its ratios would be noise.
        self.nothing = 1e-100 * self.square

    def _start(self) -> None:
        """r, g and p from the coefficients alone."""
        self.residual = self.problem.target - self.centre - self.design.matvec(self.coef)
        self._correlate()
        self.direction = self.inverse * self.descent

    def _correlate(self) -> None:
        weighted = self.problem.weigh(self.residual)
        self.descent = self.design.rmatvec(weighted) - self.curvature * self.coef
        self.square = np.einsum("dk,dk,dk->k", self.descent, self.inverse, self.descent)

    def step(self) -> None:
        p = self.direction
        q = self.design.matvec(p)
        curvature = np.einsum("nk,nk->k", self.problem.weigh(q), q)
        curvature += np.einsum("dk,dk,dk->k", self.curvature, p, p)
        before = self.square
        # The book writes g.M g for g.p, which it equals in exact arithmetic. With g.p the objective
        # cannot rise, not even when rounding has spoilt the directions.
        along = np.einsum("dk,dk->k", self.descent, p)
        with np.errstate(divide="ignore", invalid="ignore"):
            length = np.where((curvature > 0) & (before > self.nothing), along / curvature, 0.0)
        self.coef = self.coef + length * p
        self.residual -= length * q
        self._correlate()
        with np.errstate(divide="ignore", invalid="ignore"):
            keep = np.where(before > self.nothing, self.square / before, 0.0)
        self.direction *= keep
        self.direction += self.inverse * self.descent

    def progress(self) -> Progress:
        self.intercept = self.centre - self.prover.mean @ self.coef
        squares = self.problem.weigh(self.residual**2).sum()
        objective = 0.5 * float(squares) + self.problem.penalty.value(self.coef)
        norm = float(np.sqrt(self.square.sum()))
        progress = self.schedule.progress(self.coef, self.intercept, norm, objective)
        if self.schedule.wants_restart:
            self._start()
        self.is_stalled = self.schedule.is_stalled
        self.is_settled = self.schedule.is_settled
        return progress


def _inverse_diagonal(problem: Problem, prover: Prover, curvature: Array) -> Array:
    """D^{-1}, or ones where a preconditioner would change which answer has the least norm."""
    if not curvature.all() or _are_rows_of_one_kind(problem):
        return np.ones_like(curvature)
    shift = prover.mean if problem.fit_intercept else None
    squares = problem.design.column_squares(problem.weights, shift)
    # Centred squares of a constant column are rounding noise: its inverse would amplify it.
    noise = problem.n_samples * _EPS * prover.column_norms**2
    diagonal = np.where(squares > noise, squares, 0.0)[:, None] + curvature
    # Nor does a penalty below that noise hold a coefficient.
    diagonal = np.where(diagonal > (64 * _EPS * prover.column_norms[:, None]) ** 2, diagonal, 0.0)
    # Rejected: on texts D^(1/2) took 0.5 to 1.3 times the steps of D, and three to seven times as
    # many on sparse columns of different units; the Hessian of the most frequent words beside D 0.6
    # to 1.4 times.
    with np.errstate(divide="ignore"):
        return np.where(diagonal > 0, 1.0 / diagonal, 0.0)


def _are_rows_of_one_kind(problem: Problem) -> bool:
    """Whether many more sparse columns than rows, all in similar units, have one strength.

    Such rows are nearly orthogonal: X X^T + a I has few eigenvalues apart from the others, and from
    zero the iterates stay in the row space. Texts take as many steps as with D at worst, and a
    fifteenth at best; with less than four columns for each row two to four times as many.
    """
    if not has_many_columns(Facts.of(problem)):
        return False
    largest = problem.design.column_largest()
    present = largest[largest > 0]
    return bool(len(present) and np.log10(present).std() < _SIMILAR)


_LIMIT = 2000
# Of the gap that is asked for, what is left for rounding.
_SHARE = 0.1
_NOTE = "one Krylov space for all strengths of a path"


def can_shift(problems: ProblemSet) -> bool:
    """Whether all members have one positive strength, and their paths the same number of them."""
    return has_strengths(problems) and len({len(path) for path in problems.paths()}) == 1


def has_strengths(problems: ProblemSet) -> bool:
    """Whether all members have one positive strength."""
    strengths = [member.penalty.curvature for member in problems.members]
    return all(np.ndim(strength) == 0 and float(strength) > 0 for strength in strengths)


@dataclass(frozen=True)
class _Lanes:
    """The targets of all paths side by side, L of them; strengths ascend, of shape (m, L)."""

    problems: ProblemSet
    S: Array
    means: Array
    alphas: Array
    goals: Array

    def product(self, P: Array) -> Array:
        """C P, for P of shape (d, L)."""
        level = -np.einsum("dl,dl->l", self.means, P)
        image, total = self.problems.design.curved_product(self.S, P, level)
        return image - total * self.means


def solve_shifted(problems: ProblemSet, tol: float, name: str) -> list[Solution]:
    """Solutions of all members of a set that :func:`can_shift`.

    Parameters
    ----------
    problems : ProblemSet
    tol : float
        The gap asked for, relative to the objective of the best constant.
    name : str
        The solver's, for the solutions.
    """
    design, members = problems.design, problems.members
    ascending = [path[::-1] for path in problems.paths()]
    first = [problems.on_all_rows(path[0]) for path in ascending]
    k, m = first[0].n_targets, len(ascending[0])
    ones = np.ones(design.shape[0])
    weights = [ones if one.weights is None else one.weights for one in first]
    means, levels = np.zeros((design.shape[1], len(first))), np.zeros((len(first), k))
    if problems.fit_intercept:
        means = np.stack([design.column_means(s) for s in weights], axis=1)
        levels = np.stack([s @ one.target / s.sum() for s, one in zip(weights, first)])
    allowed = np.array([target_gap(one, tol) for one in first])
    S, about = np.repeat(np.stack(weights, axis=1), k, axis=1), np.repeat(means, k, axis=1)
    strengths = [[float(members[i].penalty.curvature) for i in path] for path in ascending]
    alphas = np.repeat(np.array(strengths).T, k, axis=1)
    lanes = _Lanes(problems, S, about, alphas, np.repeat(allowed / k, k))
    centred = np.concatenate([one.target - level for one, level in zip(first, levels)], axis=1)
    weighted = S * centred
    right = design.rmatvec(weighted) - about * weighted.sum(axis=0)
    W, steps = _krylov(lanes, right)
    found: list[Solution | None] = [None] * len(problems)
    for i in range(m):
        g = lanes.product(W[i]) + alphas[i] * W[i] - right
        gaps = (g**2).sum(axis=0) / (2 * alphas[i])
        for f, path in enumerate(ascending):
            own = slice(f * k, (f + 1) * k)
            coef = np.ascontiguousarray(W[i][:, own])
            level = levels[f] - means[:, f] @ coef
            bound, asked = float(gaps[own].sum()), float(allowed[f])
            status = Status.CONVERGED if CLAIMED * bound <= asked else Status.STALLED
            answer = Answer(path[i], coef, level, steps, bound, asked, status)
            found[path[i]] = answer.solution(problems, name, _NOTE)
    return [solution for solution in found if solution is not None]


def _krylov(lanes: _Lanes, right: Array) -> tuple[Array, int]:
    """Coefficients of shape (m, d, L), and the steps that they took."""
    alphas, (m, L) = lanes.alphas, lanes.alphas.shape
    W, P = np.zeros((m, *right.shape)), np.repeat(right[None], m, axis=0)
    R, seed = right.copy(), right.copy()
    zeta, zeta_before = np.ones((m, L)), np.ones((m, L))
    size = np.einsum("dl,dl->l", R, R)
    a_before, ratio_before = np.ones(L), np.zeros(L)
    live = m
    for number in range(_LIMIT):
        # Large strengths end early.
        while live and _is_done(lanes, zeta, size, live - 1):
            live -= 1
        if not live:
            return W, number
        image = lanes.product(seed) + alphas[0] * seed
        with np.errstate(divide="ignore", invalid="ignore"):
            a = _safe(size / np.einsum("dl,dl->l", seed, image))
            R -= a * image
            now = np.einsum("dl,dl->l", R, R)
            ratio = _safe(now / size)
            for i in range(live):
                z, before = zeta[i], zeta_before[i]
                shift = 1.0 + (alphas[i] - alphas[0]) * a
                below = a * ratio_before * (before - z) + before * a_before * shift
                new = _safe(z * before * a_before / below)
                share = _safe(new / z)
                W[i] += (a * share) * P[i]
                P[i] *= ratio * share * share
                P[i] += new * R
                zeta_before[i], zeta[i] = z, new
        seed *= ratio
        seed += R
        a_before, ratio_before, size = np.where(a > 0, a, 1.0), ratio, now
    return W, _LIMIT


def _is_done(lanes: _Lanes, zeta: Array, size: Array, i: int) -> bool:
    return bool((zeta[i] ** 2 * size <= 2 * lanes.alphas[i] * _SHARE * lanes.goals).all())


def _safe(values: Array) -> Array:
    return np.where(np.isfinite(values), values, 0.0)
