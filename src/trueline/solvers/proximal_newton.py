r"""Proximal Newton for losses that bend, with penalties of absolute values, squares and bounds.

The mathematics of a step is in :mod:`trueline.solvers.curved.proximal`.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from trueline.certificates.base import Certificate
from trueline.certificates.choose import certify
from trueline.certificates.duality import certify_dual
from trueline.penalties import NoPenalty
from trueline.problem import Problem
from trueline.solution import Solution, Status
from trueline.solvers.base import Cost, Facts, Options, Solver
from trueline.solvers.coordinate.solver import penalty_terms
from trueline.solvers.coordinate.terms import Terms
from trueline.solvers.costs import CALL, gram_seconds, iteration_seconds
from trueline.solvers.curved.approach import approach
from trueline.solvers.curved.multipliers import settled_multipliers
from trueline.solvers.curved.proof import better_by_curvature
from trueline.solvers.curved.proximal import ProximalDescent, proximal_start, standard_terms
from trueline.solvers.curved.rows import StandardRows
from trueline.solvers.loop import Iteration, Monitor, Progress, run
from trueline.solvers.newton import constant_model, require_ordinary
from trueline.wording import counted

__all__ = ["ProximalNewton"]

Array = NDArray[np.float64]

_EPS = float(np.finfo(np.float64).eps)
_MOST_COLUMNS, _MOST_WIDE_COLUMNS = 2000, 500
_STEPS = 6.0
_FINE = 1e-10
_MAX_ITER = 200
_UNSEEN = 1e-10
# A proof costs as much as a step, and steps are exact at the end.
_NEGLIGIBLE = 1e-4
# Columns whose means are this many spreads from zero cost digits unless they are centred.
_FAR = 10.0
# Gaps that need no second proof, relative to the objective.
_GOOD = 1e-9


class ProximalNewton(Solver):
    """Newton steps whose model is a lasso, solved by coordinate descent on its Gram matrix."""

    name = "proximal_newton"
    title = "proximal Newton, each step a lasso on a weighted Gram matrix"
    needs_loss = frozenset({"smooth", "curvature", "conjugate"})
    needs_penalty = frozenset({"coordinates"})
    accepts_penalty = frozenset({"nonnegative"})
    is_direct = False
    proof = "duality or curvature"

    def refuses(self, facts: Facts) -> str | None:
        if facts.d > _MOST_COLUMNS:
            return f"forms Gram matrices of all columns, too large for {facts.d}"
        if facts.d > max(facts.n, _MOST_WIDE_COLUMNS):
            return "forms Gram matrices of all columns: not for more columns than rows"
        return None

    def cost(self, facts: Facts) -> Cost:
        n, d = facts.n, facts.d
        once = 2.0 * gram_seconds(facts)
        each = 2.0 * iteration_seconds(facts) + 5e-8 * n + 1e-8 * d * d + 1e-3
        seconds = 5 * CALL + once + facts.k * (_STEPS + 2) * each
        flops = 2.0 * n * d * d + facts.k * _STEPS * (4.0 * facts.nonzeros + 10.0 * d * d)
        return Cost(flops, 2 + 2 * _STEPS * facts.k, 8.0 * (4.0 * d * d + 12 * n), seconds)

    def solve(self, problem: Problem, options: Options, monitor: Monitor) -> Solution:
        require_ordinary(problem)
        rows = StandardRows.of(problem.design, problem.weights, problem.fit_intercept)
        constants, unit = constant_model(problem)
        asked = options.tol * unit
        target = min(asked, _FINE * unit) / problem.n_targets
        d, k = problem.n_features, problem.n_targets
        W, b, U = np.zeros((d, k)), np.zeros(k), np.zeros(problem.target.shape)
        worst, iterations, sweeps, formed = Status.CONVERGED, 0, 0, 0
        descents: list[ProximalDescent] = []
        for t in range(k):
            y, loss = np.ascontiguousarray(problem.target[:, t]), problem.loss.of_target(t)
            terms = penalty_terms(problem.penalty, d, k, t)
            standard = standard_terms(rows, terms)
            if options.start is None:
                v = proximal_start(rows, loss, y, standard, float(constants[t]))
            else:
                level = constants if options.start_intercept is None else options.start_intercept
                v = rows.standard(options.start[:, t], float(level[t]))
            descent = ProximalDescent(rows, loss, y, standard, v)
            approach(descent, loss)
            iteration = _Iteration(problem, rows, descent, terms, target, monitor.is_watching)
            limit = options.max_iter or _MAX_ITER
            status, count, _ = run(iteration, monitor, max_iter=limit, target_gap=target)
            worst = worst if status.is_final else status
            iterations = max(iterations, count)
            sweeps, formed = sweeps + descent.sweeps, formed + descent.gram.formed
            W[:, t], b[t], U[:, t] = iteration.coef[:, 0], iteration.intercept[0], descent.u
            descents.append(descent)
        certificate = _certify(problem, rows, W, b, descents)
        # Far from zero, targets leave rounding in the sum of the dual point, at the price of the
        # largest intercept that is covered.
        pull = float(problem.weigh(np.abs(U)).sum()) * float(
            np.abs(problem.target).max(initial=0.0)
        )
        close = asked + 2 * certificate.objective_rounding + _UNSEEN * pull
        if not worst.is_final and certificate.gap <= close:
            worst = Status.CONVERGED
        return Solution(
            W,
            b,
            worst,
            self.name,
            n_iter=iterations,
            proof=certificate,
            trace=monitor.trace,
            notes=[
                f"{counted(sweeps, 'sweep')} of coordinate descent, Gram matrix formed "
                f"{counted(1 + formed, 'time')} from all rows"
            ],
        )


def _certify(
    problem: Problem, rows: StandardRows, W: Array, b: Array, descents: list[ProximalDescent]
) -> Certificate:
    """By the derivatives as dual point; about the columns' means where these are far from zero."""
    found = certify(problem, W, b)
    # Whoever checks adds the losses in another order.
    room = found.objective_rounding
    gap = (found.gap + room) * (1 + 1e-9)
    found = replace(found, objective_rounding=2 * room, gap=gap)
    far = (np.abs(rows.mean[rows.kept]) > _FAR * rows.scale[rows.kept]).any()
    good = not far and found.gap <= _GOOD * abs(found.objective)
    if good or "elastic" not in problem.penalty.capabilities:
        return found
    scale = rows.scale * math.sqrt(rows.total_weight) * (1 + 1e-6)
    U = np.stack([settled_multipliers(descent) for descent in descents], axis=1)
    about = certify_dual(problem, W, b, U, rows.mean, scale)
    # No penalty is negative: a bound without it is one with it. It serves where a penalty is so
    # small that rounding alone would leave the domain of its conjugate.
    bare = certify_dual(replace(problem, penalty=NoPenalty()), W, b, U, rows.mean, scale)
    price = problem.penalty.value(W)
    slack = (len(W) + 16) * _EPS * (price + abs(bare.objective))
    bare = replace(
        bare,
        penalty=problem.penalty,
        objective=bare.objective + price,
        objective_rounding=bare.objective_rounding + slack,
        gap=(bare.gap + price + 2 * slack) * (1 + 1e-12),
    )
    best = min((found, about, bare), key=lambda certificate: certificate.gap)
    return better_by_curvature(problem, best, rows)


class _Iteration(Iteration):
    """One target; a step of the loop is a proximal Newton step."""

    def __init__(
        self,
        problem: Problem,
        rows: StandardRows,
        descent: ProximalDescent,
        terms: Terms,
        target: float,
        is_watched: bool,
    ) -> None:
        self._problem, self._rows, self._descent, self._target = problem, rows, descent, target
        self._terms = terms
        self._proves = problem.n_targets == 1
        self._is_watched = is_watched
        self._least, self._idle, self._proven = math.inf, 0, math.inf
        self._has_moved = False
        self._expose()

    def _expose(self) -> None:
        rows = self._rows
        w, b = rows.coefficients(self._descent.v)
        # Columns without spread rest as close to zero as their bounds allow; and scaling may have
        # left a bound by its last digit.
        within = np.clip(w, self._terms.lower, self._terms.upper)
        if rows.fit_intercept:
            b -= float(rows.mean @ (within - w))
        w = within
        self.coef, self.intercept = w[:, None], np.array([b])

    def step(self) -> None:
        self._has_moved = True
        length = self._descent.step()
        self._expose()
        decrease = self._descent.decrease
        self._idle = self._idle + 1 if decrease >= 0.5 * self._least else 0
        self._least = min(self._least, decrease)
        self.is_stalled = length == 0.0 or (decrease <= self._target and self._idle > 2)

    def progress(self) -> Progress:
        descent = self._descent
        small = descent.decrease <= _NEGLIGIBLE * self._target
        if not self._has_moved:  # a start of our own making is no answer yet
            return Progress(descent.objective, math.inf)
        if not self._proves:
            self.is_stalled = self.is_stalled or small
            return Progress(descent.objective, math.inf)
        if not (self._is_watched or small or self._idle):
            return Progress(descent.objective, math.inf)
        gap = _certify(self._problem, self._rows, self.coef, self.intercept, [descent]).gap
        self.is_stalled = self.is_stalled or (small and gap > 0.5 * self._proven)
        self._proven = min(gap, self._proven)
        # Whoever watches sees more proofs, and the same steps.
        due = small or self._idle
        return Progress(descent.objective, gap if due else max(gap, 1.001 * self._target))
