r"""Coupled scores and absolute values, on dense rows of few columns: a Hessian for a whole set.

    P(V) = sum_i s_i l(y_i, [x_i - m, 1].V) + sum_jc ( l |v_jc| + a/2 v_jc^2 )

The Hessian of k coupled scores has (d + 1) k columns: to form it costs as much as ten or twenty
gradients. So it is kept: folds share most of their rows, and their solutions are close. A step goes
to the minimum of

    G.D + 1/2 D.H D + penalty(V + D),

with G of the rows of the problem, always, and H of whichever problem and point it was made at; it
is made again where the steps that are left, at the rate at which they shrink, would cost more than
that (Shamanskii's variant of Newton's method: C. T. Kelley, "Iterative Methods for Linear and
Nonlinear Equations", SIAM 1995, section 5.4). Rows without weight in a problem that are in H change
the way to its answer, not the answer. Each member of a path starts at the solution of the one
before. A problem is done when the gap that the tangent proves
(:mod:`trueline.certificates.tangent`) is small enough.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from trueline.certificates.tangent import class_indicators, tangent_gap
from trueline.penalties import Penalty
from trueline.problem_set import ProblemSet
from trueline.solution import Solution, Status
from trueline.solvers.base import Facts
from trueline.solvers.iterative import best_constant, target_gap
from trueline.solvers.newton.batched.precondition import coupled_hessian
from trueline.solvers.pending import CLAIMED, Answer
from trueline.solvers.proximal_newton.models import least_penalised, solve_gram

Array = NDArray[np.float64]

# Wider Hessians are dear to factor.
_MOST_COLUMNS = 700
# With fewer rows for each coefficient the Hessians of the folds differ too much to be shared, and
# each step would need its own.
_ROWS_PER_COLUMN = 3
_STEPS, _HALVINGS, _SUFFICIENT = 100, 30, 1e-4
# A new Hessian must save so many steps; fewer in the first path, as the others will use it too.
_PATIENCE, _FIRST_PATIENCE = 12, 5
# What a step promises, relative to the objective, from where on the proof is looked at; and where
# nothing is left but rounding.
_NEAR, _NOTHING = 1e-7, 1e-20
# Of the diagonal: shifts of all scores by the same, which no loss feels, stay where they are.
_TRACE = 1e-9
# Of the gap asked for, what is left for rounding.
_SHARE = 0.5
_NOTE = "with a Hessian that all problems on these rows share"


def is_worth_sharing(facts: Facts) -> bool:
    """Whether sharing a Hessian is expected to be faster than to solve one by one.

    Parameters
    ----------
    facts : Facts
        Of a problem with coupled scores.
    """
    w = (facts.d + 1) * facts.k
    return not facts.is_sparse and w <= _MOST_COLUMNS and facts.n >= _ROWS_PER_COLUMN * w


def solve_with_shared_hessian(problems: ProblemSet, tol: float, name: str) -> list[Solution]:
    """Solutions of all members, whose penalties treat all coefficients alike.

    Parameters
    ----------
    problems : ProblemSet
    tol : float
        The gap asked for, relative to the objective of the best constant.
    name : str
        The solver's, for the solutions.
    """
    A, centre = _centred_rows(problems)
    paths, model = problems.paths(), _Model()
    descents = [_Descent(problems, path[0], A, centre, tol) for path in paths]
    found: list[Solution | None] = [None] * len(problems)
    for position in range(max(map(len, paths))):
        for f, (path, descent) in enumerate(zip(paths, descents)):
            if position < len(path):
                number = path[position]
                gap, steps = descent.run(number, model, _PATIENCE if f else _FIRST_PATIENCE)
                W, b = descent.coefficients()
                is_done = CLAIMED * gap <= descent.allowed
                status = Status.CONVERGED if is_done else Status.STALLED
                answer = Answer(number, W, b, steps, gap, descent.allowed, status)
                found[number] = answer.solution(problems, name, _NOTE)
    return [solution for solution in found if solution is not None]


def _centred_rows(problems: ProblemSet) -> tuple[Array, Array]:
    """[x_i - m, 1], and m; without an intercept m and the last column are zero."""
    X = problems.design.toarray()
    centre = X.mean(axis=0) if problems.fit_intercept else np.zeros(X.shape[1])
    last = np.full((len(X), 1), float(problems.fit_intercept))
    return np.hstack([X - centre, last]), centre


@dataclass
class _Point:
    """Coefficients (d + 1, k), the probabilities there, the objective and the losses' gradient."""

    V: Array
    Z: Array
    objective: float
    G: Array


class _Model:
    """The Hessian for a unit of weight, kept for all problems until it is made again."""

    def __init__(self) -> None:
        self.H: Array | None = None

    def renew(self, H: Array, weight: float) -> None:
        diagonal = np.maximum(H.diagonal(), 0.0)
        # Where no row has curvature nothing is divided by zero.
        flat = float(diagonal.max(initial=0.0)) or 1.0
        H[np.diag_indices(len(H))] = np.where(diagonal > 0, diagonal * (1 + _TRACE), flat)
        self.H = H / weight

    def step(self, V: Array, G: Array, linear: Array, quad: Array, weight: float) -> Array:
        """The best step by coordinate descent, G of the losses and the squares."""
        assert self.H is not None
        H = weight * self.H
        H[np.diag_indices(len(H))] += np.repeat(quad, V.shape[1])
        return solve_gram(H, V, G, linear)[0]


class _Descent:
    """The steps of the members of one path."""

    def __init__(
        self, problems: ProblemSet, first: int, A: Array, centre: Array, tol: float
    ) -> None:
        problem = problems.on_all_rows(first)
        self._problems, self._A, self._centre = problems, A, centre
        self._y, self._loss = problem.target, problem.loss
        self._s = np.ones(len(A)) if problem.weights is None else problem.weights
        self._weight = float(self._s.sum())
        self.allowed = target_gap(problem, tol)
        V = np.zeros((A.shape[1], problem.n_targets))
        if problem.fit_intercept:
            V[-1] = best_constant(problem)
        members = class_indicators(problem.loss, problem.target)
        shares = self._s @ members
        means = np.abs((self._s[:, None] * members).T @ A[:, :-1]) / shares[:, None]
        self._classes = shares, means * (1 + 1e-3)
        self._V = V

    def coefficients(self) -> tuple[Array, Array]:
        """Where the descent is, intercepts shifted so that they add up to zero."""
        W = self._V[:-1].copy()
        if not self._problems.fit_intercept:
            return W, np.zeros(W.shape[1])
        b = self._V[-1] - self._centre @ W
        return W, b - b.mean()

    def _evaluate(self, V: Array) -> _Point:
        Z = self._A @ V
        u = self._s[:, None] * self._loss.gradient(self._y, Z)
        losses = float(self._s @ self._loss.value(self._y, Z).sum(axis=1))
        return _Point(V, Z, losses + self._penalty_at(V), self._A.T @ u)

    def _penalty_at(self, V: Array) -> float:
        linear, quad = self._linear[:, None], self._quad[:, None]
        return float((linear * np.abs(V)).sum() + 0.5 * (quad * V * V).sum())

    def _renew(self, model: _Model, at: _Point) -> None:
        Q = self._loss.hessian_terms(self._y, at.Z)
        model.renew(coupled_hessian(self._A, self._s, Q), self._weight)

    def run(self, number: int, model: _Model, patience: float) -> tuple[float, int]:
        """Minimise for one member; the gap that is proven at the end, and the steps.

        A new Hessian must save ``patience`` steps.
        """
        member = self._problems.members[number]
        d = len(self._V) - 1
        self._linear, self._quad = (
            np.append(np.full(d, float(np.max(strength))), 0.0)
            for strength in (member.penalty.linear, member.penalty.curvature)
        )
        if member.start is not None:
            W, b = member.start
            self._V = np.vstack([W, b + self._centre @ W])
        at = self._evaluate(self._V)
        before, is_new, steps = np.inf, False, 0
        for _ in range(_STEPS):
            if model.H is None:
                self._renew(model, at)
                is_new = True
            G = at.G + self._quad[:, None] * at.V
            D = model.step(at.V, G, self._linear, self._quad, self._weight)
            promise = 0.5 * self._promise(at.V, G, D)
            far = promise / (_NEAR * at.objective)
            if far <= 1.0:
                # The gap falls with the gradient, what a step promises with its square.
                far = (self._gap(at, member.penalty) / (_SHARE * self.allowed)) ** 2
                if far <= 1.0 or promise <= _NOTHING * at.objective:
                    break
            if not is_new and self._is_slow(promise, before, far, patience):
                self._renew(model, at)
                is_new = True
                continue
            new = self._move(at, D, promise)
            if new is None:
                if is_new:
                    break
                self._renew(model, at)
                is_new = True
                continue
            at, before, is_new, steps = new, promise, False, steps + 1
        self._V = at.V
        return self._gap(at, member.penalty), steps

    def _gap(self, at: _Point, penalty: Penalty) -> float:
        """What the tangent proves, but for rounding."""
        g, slope = (at.G[:-1], np.zeros_like(at.G[:-1])), (at.G[-1], np.zeros_like(at.G[-1]))
        level = at.V[-1] if self._problems.fit_intercept else None
        rest = self._classes, (0.0, 0.0, 0.0)
        return tangent_gap(self._loss, penalty, at.V[:-1], level, at.objective, g, slope, *rest)

    def _is_slow(self, promise: float, before: float, far: float, patience: float) -> bool:
        """Whether the steps that are left, to make ``far`` one, cost more than a Hessian."""
        return promise >= before or bool(np.log(far) > patience * np.log(before / promise))

    def _promise(self, V: Array, G: Array, D: Array) -> float:
        """By how much the slope says that the step is going to decrease the objective."""
        rise = (self._linear[:, None] * (np.abs(V + D) - np.abs(V))).sum()
        return -float((G * D).sum() + rise)

    def _move(self, at: _Point, D: Array, promise: float) -> _Point | None:
        """Along D as far as it helps; None if nothing does."""
        t = 1.0
        for _ in range(_HALVINGS):
            V = at.V + t * D
            # The same shift of all scores changes no loss: only the penalty decides about it.
            V[:-1] -= least_penalised(V[:-1], self._linear[:-1], self._quad[:-1])
            new = self._evaluate(V)
            if new.objective <= at.objective - _SUFFICIENT * t * promise + 1e-13 * at.objective:
                return new
            t *= 0.5
        return None
