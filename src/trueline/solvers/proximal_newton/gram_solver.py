r"""Proximal Newton for losses that bend, with penalties of absolute values, squares and bounds.

The mathematics of a step is in :mod:`trueline.solvers.proximal_newton.gram`.
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
from trueline.solvers.base import (
    CALL,
    Cost,
    Facts,
    Iteration,
    Monitor,
    Options,
    Progress,
    Solver,
    gram_seconds,
    iteration_seconds,
    run,
)
from trueline.solvers.coordinate_descent.terms import Terms, penalty_terms
from trueline.solvers.newton.dense.descent import approach, better_by_curvature, continuation_notes
from trueline.solvers.newton.dense.rows import StandardRows
from trueline.solvers.newton.solver import constant_model, require_ordinary
from trueline.solvers.proximal_newton.gram import ProximalDescent, proximal_start, standard_terms
from trueline.solvers.proximal_newton.multipliers import settled_multipliers
from trueline.wording import counted

__all__ = ["ProximalNewton"]

Array = NDArray[np.float64]

_EPS = float(np.finfo(np.float64).eps)
_MOST_COLUMNS, _MOST_WIDE_COLUMNS = 2000, 500
_STEPS = 6.0
# So much is asked for in any case, unless somebody says that few digits are enough.
_FINE, _COARSE = 1e-10, 1e-6
_MAX_ITER = 200
_UNSEEN = 1e-10
# A proof costs as much as a step, and steps are exact at the end.
_NEGLIGIBLE = 1e-4
# Shares of a gap that few digits leave to the decrease and to the multipliers; and of a decrease
# at which a proof failed.
_SETTLED, _AGAIN = 0.2, 0.1
# Columns whose means are this many spreads from zero cost digits unless they are centred.
_FAR = 10.0
# Gaps that need no second proof, relative to the objective.
_GOOD = 1e-9


class ProximalNewton(Solver):
    """Newton steps whose model is a lasso, solved by coordinate descent on its Gram matrix."""

    name = "proximal_newton"
    shows_nonfinite = True
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
        d, k = problem.n_features, problem.n_targets
        # Of losses with kinks the last step is exact: nobody gains by leaving it out.
        is_coarse = options.tol >= _COARSE and k == 1 and not problem.loss.kinks
        is_coarse = is_coarse and "elastic" in problem.penalty.capabilities
        fine = min(asked, _FINE * unit) / k
        target = asked if is_coarse else fine
        prover = _Prover(problem, rows, target, is_coarse)
        W, b, U = np.zeros((d, k)), np.zeros(k), np.zeros(problem.target.shape)
        worst, iterations, sweeps, formed, smoothed = Status.CONVERGED, 0, 0, 0, 0
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
            smoothed += approach(descent, loss)
            iteration = _Iteration(prover, descent, terms, fine, monitor.is_watching)
            limit = options.max_iter or _MAX_ITER
            status, count, _ = run(iteration, monitor, max_iter=limit, target_gap=target)
            worst = worst if status.is_final else status
            iterations = max(iterations, count)
            sweeps, formed = sweeps + descent.sweeps, formed + descent.gram.formed
            W[:, t], b[t], U[:, t] = iteration.coef[:, 0], iteration.intercept[0], descent.u
            descents.append(descent)
        certificate = prover.certify(W, b, descents)
        # Far from zero, targets leave rounding in the sum of the dual point, at the price of the
        # largest intercept that is covered.
        reach = float(problem.weigh(np.abs(U)).sum()) * float(
            np.abs(problem.target).max(initial=0.0)
        )
        close = asked + 2 * certificate.objective_rounding + _UNSEEN * reach
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
                f"{counted(1 + formed, 'time')} from all rows",
                *continuation_notes(smoothed),
            ],
        )


class _Prover:
    """Certificates of the points where descents are; the last one is kept.

    Parameters
    ----------
    problem : Problem
    rows : StandardRows
    enough : float
        A gap that needs no better proof.
    is_coarse : bool
        Whether few digits are asked for: multipliers that are settled prove them far from the
        minimum, where the derivatives as they are prove nothing.
    """

    def __init__(
        self, problem: Problem, rows: StandardRows, enough: float, is_coarse: bool
    ) -> None:
        self.problem, self.rows, self.enough, self.is_coarse = problem, rows, enough, is_coarse
        self._scale = rows.scale * math.sqrt(rows.total_weight) * (1 + 1e-6)
        self._points: list[Array] = []
        self._certificate: Certificate

    def certify(self, W: Array, b: Array, descents: list[ProximalDescent]) -> Certificate:
        points = [descent.v for descent in descents]
        if len(points) != len(self._points) or any(
            new is not old for new, old in zip(points, self._points)
        ):
            self._points, self._certificate = points, self._proof(W, b, descents)
        return self._certificate

    def _proof(self, W: Array, b: Array, descents: list[ProximalDescent]) -> Certificate:
        """By the derivatives as dual point; about the columns' means where that is better."""
        problem, rows = self.problem, self.rows
        if self.is_coarse:
            share = _SETTLED * self.enough / max(descents[0].objective, 1e-300)
            U = settled_multipliers(descents[0], share)[:, None]
            found = certify_dual(problem, W, b, U, rows.mean, self._scale)
            if found.gap <= self.enough:
                return found
        found = certify(problem, W, b)
        # Whoever checks adds the losses in another order.
        room = found.objective_rounding
        gap = (found.gap + room) * (1 + 1e-9)
        found = replace(found, objective_rounding=2 * room, gap=gap)
        far = (np.abs(rows.mean[rows.kept]) > _FAR * rows.scale[rows.kept]).any()
        good = not far and found.gap <= _GOOD * abs(found.objective)
        if good or "elastic" not in problem.penalty.capabilities:
            return found
        return self._about_means(W, b, descents, found)

    def _about_means(
        self, W: Array, b: Array, descents: list[ProximalDescent], found: Certificate
    ) -> Certificate:
        """The better one of a certificate and those by multipliers that are settled."""
        problem, mean = self.problem, self.rows.mean
        U = np.stack([settled_multipliers(descent) for descent in descents], axis=1)
        about = certify_dual(problem, W, b, U, mean, self._scale)
        if about.gap <= min(self.enough, found.gap):
            return about
        # No penalty is negative: a bound without it is one with it. It serves where a penalty is
        # so small that rounding alone would leave the domain of its conjugate.
        bare = certify_dual(replace(problem, penalty=NoPenalty()), W, b, U, mean, self._scale)
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
        return best if best.gap <= self.enough else better_by_curvature(problem, best, self.rows)


class _Iteration(Iteration):
    """One target; a step of the loop is a proximal Newton step."""

    def __init__(
        self,
        prover: _Prover,
        descent: ProximalDescent,
        terms: Terms,
        fine: float,
        is_watched: bool,
    ) -> None:
        self._prover, self._rows, self._descent = prover, prover.rows, descent
        self._terms, self._target, self._is_watched = terms, prover.enough, is_watched
        self._proves = prover.problem.n_targets == 1
        # Decreases that are worth a proof, and those at which there is nothing left to do.
        self._negligible = _NEGLIGIBLE * fine
        self._promising = _SETTLED * self._target if prover.is_coarse else self._negligible
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
        small = descent.decrease <= self._negligible
        if not self._has_moved:  # a start of our own making is no answer yet
            return Progress(descent.objective, math.inf)
        if not self._proves:
            self.is_stalled = self.is_stalled or small
            return Progress(descent.objective, math.inf)
        due = small or self._idle or descent.decrease <= self._promising
        if not (self._is_watched or due):
            return Progress(descent.objective, math.inf)
        gap = self._prover.certify(self.coef, self.intercept, [descent]).gap
        self.is_stalled = self.is_stalled or (small and gap > 0.5 * self._proven)
        self._proven = min(gap, self._proven)
        if due:  # a proof that failed is tried again when much less is left
            self._promising = min(self._promising, _AGAIN * descent.decrease)
        # Whoever watches sees more proofs, and the same steps.
        return Progress(descent.objective, gap if due else max(gap, 1.001 * self._target))
