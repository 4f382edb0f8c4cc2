r"""Proximal Newton on working sets of columns: those with a coefficient, or that ask for one.

    P(V) = sum_i s_i l(y_i, x_i.V + b) + sum_jt ( l_j abs(V_jt) + a_j/2 V_jt^2 )

The slopes of all columns are looked at before every step; most columns are at zero and stay there.
A step goes along the minimum of a quadratic model of the columns in play
(:mod:`trueline.solvers.proximal_newton.models`). Where a whole step promises too much, the losses
along it plus the chord of the penalty are minimised: the penalty is convex, below its chord.

It is for losses of margins with an elastic net: made for many columns, most of which end at zero,
and for the coupled scores of softmax regression.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from trueline.certificates.base import Certificate
from trueline.certificates.choose import Prover
from trueline.design import DenseDesign
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
    iteration_seconds,
    run,
)
from trueline.solvers.iterative import best_constant, minimise_along, target_gap
from trueline.solvers.newton.dense.descent import better_by_curvature, intercept_shifts
from trueline.solvers.newton.shared_hessian import is_worth_sharing, solve_with_shared_hessian
from trueline.solvers.proximal_newton.few_classes import solve_few_classes
from trueline.solvers.proximal_newton.few_columns import solve_few_columns
from trueline.solvers.proximal_newton.models import least_penalised, make_model
from trueline.solvers.transformed import (
    is_separable,
    is_unbalanced,
    solve_balanced,
    solve_one_by_one,
)
from trueline.wording import counted

Array = NDArray[np.float64]

_SUFFICIENT = 0.01


class ColumnDescent:
    """The state of the method.

    Parameters
    ----------
    problem : Problem
        With one score, or coupled ones.
    linear, quad : arrays of shape (d,)
        Strengths of absolute values and of squares.
    V : array of shape (d + 1, k)
        Where to start, intercepts last.

    Attributes
    ----------
    V, Z : arrays of shape (d + 1, k) and (n, k)
        Coefficients with intercepts last, and scores.
    chosen : array of shape (m,)
        The columns in play; ``own`` and ``G`` are their coefficients and the slopes of losses and
        squares, of shape (m, k), and ``slope`` those of the intercepts.
    curvature : array of shape (n, k)
        s_i l'', or the probabilities of coupled scores.
    violation, first : float
        Sum of the distances of zero from the slopes, and the largest there was.
    gap : float
        The gap but for rounding and the intercept.
    """

    def __init__(self, problem: Problem, linear: Array, quad: Array, V: Array) -> None:
        self._problem, self.linear, self.quad = problem, linear, quad
        self.target = problem.target
        self.fit_intercept = problem.fit_intercept
        self.loss = problem.loss
        self.is_coupled = "coupled" in problem.loss.capabilities
        n, d = problem.n_samples, problem.n_features
        self.s = np.ones(n) if problem.weights is None else problem.weights
        self.design, self._centre = problem.design, np.zeros(d)
        if self.design.is_sparse:
            X = self.design.by_columns
            indices, indptr = X.indices.astype(np.int32, copy=False), X.indptr.astype(np.int64)
            self.entries = X.data, indices, indptr
        else:
            A = np.array(self.design.toarray(), dtype=np.float64, order="F")
            if self.fit_intercept:
                self._centre = A.mean(axis=0)
                A -= self._centre
            self.design = DenseDesign(A)
            places = np.tile(np.arange(n, dtype=np.int32), d)
            self.entries = A.ravel(order="K"), places, n * np.arange(d + 1)
        self.V, self.first, self.steps = V.copy(), 0.0, 0
        self.V[-1] += self._centre @ V[:-1]
        self.Z = self._scores()
        self._model = make_model(self)
        self.evaluate()

    @property
    def sweeps(self) -> int:
        """How often coordinate descent went through the columns in play."""
        return self._model.sweeps

    def _scores(self) -> Array:
        return self.design.matvec(self.V[:-1]) + self.V[-1]

    def coefficients(self) -> tuple[Array, Array]:
        """Coefficients, and intercepts of columns that are not centred."""
        W = self.V[:-1].copy()
        b = self.V[-1] - self._centre @ W
        # Coupled scores may all be shifted by the same: intercepts are those that add up to zero.
        return W, b - b.mean() if self.is_coupled else b

    def balance(self) -> None:
        """The best intercepts for these coefficients, and scores afresh."""
        self.Z = self._scores()
        if self.fit_intercept:
            shift = intercept_shifts(self.loss, self._problem.target, self.Z, self.s)
            self.V = self.V.copy()
            self.V[-1] += shift
            self.Z = self.Z + shift
        self.evaluate()

    def evaluate(self) -> None:
        """Slopes and curvatures at the present point, and who is in play."""
        loss, y, s = self.loss, self._problem.target, self.s[:, None]
        if self.is_coupled:
            u, self.curvature = s * loss.gradient(y, self.Z), loss.hessian_terms(y, self.Z)
        else:
            first, second = loss.derivatives(y, self.Z)
            u, self.curvature = s * first, s * second
        G, V = self.design.rmatvec(u), self.V[:-1]
        beyond = np.abs(G) - self.linear[:, None]
        chosen = np.flatnonzero(((V != 0) | (beyond > 0)).any(axis=1))
        self.chosen, self.own, G = chosen, V[chosen], G[chosen]
        linear, quad = self.linear[chosen, None], self.quad[chosen, None]
        excess = np.maximum(beyond[chosen], 0.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = float(np.where(excess > 0, excess / linear, 0.0).max(initial=0.0))
            squares = float(np.where(excess > 0, excess * (0.5 * excess / quad), 0.0).sum())
        penalty = self._penalty(self.own)
        self._losses = loss.value(y, self.Z)
        self.objective = float((s * self._losses).sum()) + penalty
        self.gap = penalty + float((G * self.own).sum()) + min(ratio * self.objective, squares)
        self.G = G + quad * self.own
        self.slope = u.sum(axis=0) if self.fit_intercept else np.zeros(u.shape[1])
        away = np.abs(self.G + linear * np.sign(self.own))
        self.violation = float(np.where(self.own != 0, away, excess).sum())
        self.first = max(self.first, self.violation)

    def _penalty(self, own: Array) -> float:
        """Of the columns in play, whose coefficients these are."""
        linear, quad = self.linear[self.chosen, None], self.quad[self.chosen, None]
        return float((linear * np.abs(own) + 0.5 * quad * own**2).sum())

    def step(self) -> bool:
        """One step; False if rounding leaves none to be made."""
        D, shift, change = self._model.solve(self)
        if change is None:
            whole = np.zeros_like(self.V[:-1])
            whole[self.chosen] = D
            change = self.design.matvec(whole) + shift
        self.steps += 1
        t = self._model.length = self._length(D, shift, change)
        if t == 0.0:
            return False
        self.V, self.Z = self.V.copy(), self.Z + t * change
        self.V[self.chosen] = self.own + D if t == 1.0 else self.own + t * D
        self.V[-1] += t * shift
        if self.is_coupled:
            # The same shift of all scores changes no loss: only the penalty decides about it.
            aside, strengths = np.zeros((len(self.V) - 1, 1)), (self.linear, self.quad)
            own = (strength[self.chosen] for strength in strengths)
            aside[self.chosen] = least_penalised(self.V[self.chosen], *own)
            if aside.any():
                self.V[:-1] -= aside
                self.Z = self.Z - self.design.matvec(aside)
        self.evaluate()
        return True

    def _length(self, D: Array, shift: Array, change: Array) -> float:
        """How far along a step, which is as far as it helps."""
        loss, y, s = self.loss, self._problem.target, self.s[:, None]
        linear, quad = self.linear[self.chosen, None], self.quad[self.chosen, None]
        # Where no sign changes, the difference of absolute values is known without rounding.
        ahead, signs = self.own + D, np.sign(self.own)
        rises = np.where(ahead * signs > 0, signs * D, np.abs(ahead) - np.abs(self.own))
        chord = float((linear * rises).sum())
        promise = float((self.G * D).sum() + self.slope @ shift) + chord
        if not promise < 0:
            return 0.0
        own, across = float((quad * self.own * D).sum()), float((quad * D**2).sum())
        weighted = s * change

        def slope(t: float) -> tuple[float, float]:
            Z = self.Z + t * change
            curved = loss.hessian_product(loss.hessian_terms(y, Z), change)
            at = float((weighted * loss.gradient(y, Z)).sum()) + own + t * across + chord
            return at, float((weighted * curved).sum()) + across

        after = float((s * (loss.value(y, self.Z + change) - self._losses)).sum())
        rise = after + own + 0.5 * across + chord
        is_good = rise <= _SUFFICIENT * promise
        return 1.0 if is_good else minimise_along(slope, promise, 1.0)


# Weights that differ by many powers of ten keep gaps of this share from being proven.
_NOT_PROVABLE = 1e-6
_MAX_ITER = 200
# The gap that is looked for, relative to the target: proofs add a little to it. Where more digits
# are asked for than the estimators' defaults do, one more step costs little.
_ABOUT, _FINE, _ORDINARY, _COUPLED = 0.5, 1e-4, 9e-9, 1e-7
# Violations this much smaller than the first are made of rounding, if they do not fall any more.
_ROUNDING = 1e-9
_STEPS, _LEFT = 8, 0.1
_ROUNDS, _SWEEPS = 8.0, 200.0


class WorkingSetNewton(Solver):
    """Proximal Newton steps by coordinate descent over the columns that matter."""

    name = "working_set_newton"
    title = "proximal Newton on working sets, column by column"
    needs_loss = frozenset({"smooth", "margins"})
    needs_penalty = frozenset({"coordinates", "elastic"})
    is_direct = False
    proof = "tangent or curvature"

    def refuses(self, facts: Facts) -> str | None:
        if facts.k > 1 and facts.strengths > 1:
            return "needs the same penalty for all targets"
        return None

    def cost(self, facts: Facts) -> Cost:
        sweep = 5e-9 * facts.nonzeros * facts.k + 1e-8 * facts.n * facts.k
        seconds = 10 * CALL + _SWEEPS * sweep + 3 * _ROUNDS * iteration_seconds(facts)
        memory = 8.0 * (2.0 * facts.nonzeros + 6.0 * facts.n * facts.k + 6.0 * facts.d * facts.k)
        return Cost(4 * _SWEEPS * facts.nonzeros * facts.k, _SWEEPS, memory, seconds)

    def solve_set(self, problems: ProblemSet, options: Options) -> list[Solution]:
        penalties = [member.penalty for member in problems.members]
        is_alike = all(np.ndim(p.linear) == 0 and np.ndim(p.curvature) == 0 for p in penalties)
        is_coupled = "coupled" in problems.loss.capabilities
        facts = Facts.of(problems.on_all_rows(0))
        if not (is_alike and is_coupled and is_worth_sharing(facts)):
            return super().solve_set(problems, options)
        return solve_with_shared_hessian(problems, options.tol, self.name)

    def solve(self, problem: Problem, options: Options, monitor: Monitor) -> Solution:
        found = solve_few_columns(problem, options, monitor, self.name) or solve_few_classes(
            problem, options, monitor, self.name
        )
        if found is not None:
            return found
        if is_separable(problem):
            return solve_one_by_one(self, problem, options, monitor)
        if problem.n_targets > 1 and is_unbalanced(problem):
            return solve_balanced(self, problem, options, monitor)
        d, k = problem.n_features, problem.n_targets
        V = np.zeros((d + 1, k))
        if problem.fit_intercept:
            V[-1] = best_constant(problem)
        if options.start is not None:
            V[:-1] = options.start
            V[-1] = V[-1] if options.start_intercept is None else options.start_intercept
        target = target_gap(problem, options.tol)
        strengths = (
            _per_column(problem.penalty.linear, d),
            _per_column(problem.penalty.curvature, d),
        )
        descent = ColumnDescent(problem, *strengths, V)
        # The last steps are Newton's: where many digits are asked for, one more costs little.
        ordinary = _COUPLED if descent.is_coupled else _ORDINARY
        share = _ABOUT if options.tol >= ordinary else _FINE
        iteration = _Iteration(problem, descent, target, share, monitor.is_watching)
        limit = options.max_iter or _MAX_ITER
        status, count, _ = run(iteration, monitor, max_iter=limit, target_gap=target)
        certificate = iteration.certify()
        if certificate.gap > target:
            certificate = better_by_curvature(problem, certificate)
            status = Status.CONVERGED if certificate.gap <= target else status
        notes = []
        close = certificate.gap <= target + _NOT_PROVABLE * certificate.objective
        if status is Status.STALLED and descent.gap <= target and close:
            # Nothing is left to do: what is not proven is what rounding keeps from being proven.
            status = Status.CONVERGED
            notes = ["the gradient vanished; the remaining gap is at rounding level"]
        notes = [
            f"{counted(descent.steps, 'proximal Newton step')}, "
            f"{counted(descent.sweeps, 'sweep')} of coordinate descent",
            *notes,
        ]
        return monitor.solution(certificate, status, self.name, count, notes=notes)


def _per_column(strength: float | Array, d: int) -> Array:
    """One strength for each column."""
    values = np.asarray(strength, dtype=np.float64)
    is_own = values.ndim == 2 and values.shape[0] == d
    return values[:, 0].copy() if is_own else np.full(d, values.max())


class _Iteration(Iteration):
    """A step of the loop is a few proximal Newton steps, until little of the violation is left."""

    def __init__(
        self,
        problem: Problem,
        descent: ColumnDescent,
        target: float,
        share: float,
        is_watched: bool,
    ) -> None:
        self._problem, self._descent, self._is_watched = problem, descent, is_watched
        self._enough, self._least = share * target, _FINE * target
        self._prover: Prover | None = None
        self._known: tuple[Array, Certificate] | None = None
        self._best, self._idle = math.inf, 0
        self._proven = math.inf
        self._first, self._lowest = descent.violation, math.inf
        self._expose()

    def _expose(self) -> None:
        self.coef, self.intercept = self._descent.coefficients()

    def step(self) -> None:
        before = self._descent.violation
        for _ in range(_STEPS):
            has_moved = self._descent.step()
            left = self._descent.violation
            if not has_moved or left <= _LEFT * before or self._descent.gap <= self._enough:
                break
        self._expose()
        falls = self._descent.objective < self._lowest * (1 - 1e-5)
        self._idle = 0 if falls or left < 0.5 * self._best else self._idle + 1
        self._best, self._lowest = min(self._best, left), min(self._lowest, self._descent.objective)
        is_rounding = left <= _ROUNDING * self._first
        self.is_stalled = self._idle > (1 if is_rounding or not has_moved else 10)

    @property
    def prover(self) -> Prover:
        """Made when it is first needed: it reads the data twice."""
        if self._prover is None:
            self._prover = Prover(self._problem)
        return self._prover

    def certify(self) -> Certificate:
        """The certificate of the present point."""
        if self._known is None or self._known[0] is not self.coef:
            self._known = self.coef, self.prover.certify(self.coef, self.intercept)
        return self._known[1]

    def progress(self) -> Progress:
        objective = self._descent.objective
        if not (self._is_watched or self.is_stalled or self._descent.gap <= self._enough):
            return Progress(objective, math.inf)
        has_level = self._problem.fit_intercept
        if not self._is_watched and has_level:
            self._descent.balance()
            self._expose()
        gap = self.certify().gap
        if not (self._is_watched or has_level) and gap > self._enough:
            self._descent.balance()  # scores afresh: rounding may be what keeps the gap open
        if self._descent.gap <= self._least:
            # As good as it gets, with scores afresh and the best intercepts: what the proof leaves
            # open is rounding. Who watches sees proofs without those, which may get better.
            is_rounding = not self._is_watched or gap > 0.5 * self._proven
            self.is_stalled = self.is_stalled or is_rounding
            self._proven = min(gap, self._proven)
        if self._descent.gap <= self._enough:
            self._enough = self._least  # where the proof asks for more, this is what it gets
        return Progress(objective, gap)
