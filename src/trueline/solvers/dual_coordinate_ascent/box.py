"""Coordinate descent on the dual of losses whose conjugate is quadratic on an interval.

The formulas are in :mod:`trueline.solvers.dual_coordinate_ascent.solver`, those of a step in
:mod:`trueline.solvers.dual_coordinate_ascent.kernels`.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from trueline.certificates.base import Certificate
from trueline.certificates.duality import certify_duality
from trueline.problem import Problem
from trueline.solvers.base import Options
from trueline.solvers.dual_coordinate_ascent.face import face_of, kinds, minimise_on
from trueline.solvers.dual_coordinate_ascent.iteration import DualIteration, balanced
from trueline.solvers.dual_coordinate_ascent.kernels import both_values
from trueline.solvers.loop import Progress

__all__ = ["SMALL", "BoxIteration"]

Array = NDArray[np.float64]

# The face is clear when so few of the free variables change their kind in a sweep; conjugate
# gradients on few rows are asked for more steps, which pay once hardly anything changes.
_CLEAR, _CLEAR_OF_FEW = 0.2, 0.005
# Where more sweeps than this are left, conjugate gradients are faster.
_SLOW = 20
# In designs of so few entries they are used as soon as they can be, and a few steps more are made.
SMALL, _MORE = 50_000, 20
# All rows are visited in the first sweeps, and in one of so many later on: twice as many each time
# that the rows which are left out hardly changed.
_FIRST, _ROUND, _LONGEST_ROUND, _HARDLY = 3, 4, 16, 0.01
# Rows that rest by more than this share of the worst violation are left out until then.
_REST = 0.1
# The gap is evaluated after so many sweeps at the latest.
_LONGEST = 50
# How much of the slope, squared, conjugate gradients leave.
_LEAST, _MOST = 1e-4, 0.1
# Sweeps after which Newton's method, where it is the next solver of the plan, goes on.
_MOST_SWEEPS = 100


class BoxIteration(DualIteration):
    """beta and w; a step is a sweep over the rows that are still active.

    Once few variables change their kind in a sweep, and sweeps alone would take long, conjugate
    gradients on the face that they span go before each sweep, which then visits all rows. Sweeps
    over all rows see on their way how the gap falls. It is evaluated when it may have fallen far
    enough: that costs as much as half a sweep.
    """

    def __init__(self, problem: Problem, options: Options, is_watched: bool) -> None:
        super().__init__(problem, options, is_watched)
        self.gap, self.aim = np.inf, self.target
        self.full, self.round = 0, _ROUND
        self.seen, self.latest, self.rate = np.inf, np.inf, 1.0
        self.is_brief = False
        self.last = Progress(0.0, np.inf)
        n, y, s = problem.n_samples, problem.target[:, 0], self.weights
        e, h, low, high = problem.loss.dual_boxes(y)
        self.own_constant = 0.0 if problem.fit_intercept else self.rows.constant
        curvature = self.strength * h / s
        self.terms = np.stack(
            [
                y,
                e,
                curvature,
                -s * high / self.strength,
                -s * low / self.strength,
                self.rows.squares + curvature,
            ],
            axis=1,
        )
        self.beta = np.zeros(n)
        self.order, self.active, self.threshold = np.arange(n), n, np.inf
        self.kinds = kinds(self.beta, self.terms)
        self.is_clear = False
        self.is_slow = problem.design.nonzeros <= SMALL
        self.scores: Array | None = np.zeros(n)
        # Newton's method can go on from here where the loss has second derivatives.
        self.is_for_newton = options.has_successor and "bend" in problem.loss.capabilities
        self.expose()

    def step(self) -> None:
        self.sweeps += 1
        self.is_brief = self.rows.is_short(self.active)
        if self.is_clear and self.is_slow:
            self._minimise_on_face()
        before = self.active
        if self.sweeps <= _FIRST or self.sweeps - self.full >= self.round:
            self._look_at_all()
        self.scores = None
        is_full = self.active == len(self.beta)
        self.active, worst, seen = self.rows.sweep(
            self.centre,
            self.terms,
            self.beta,
            self.w,
            self.order,
            self.active,
            self.threshold,
            self.state,
        )
        self.threshold = _REST * worst if worst > 0 else np.inf
        self.latest = self.strength * seen
        if is_full:
            # Rows that had been left out and should not have been: hardly any?
            is_steady = self.sweeps > _FIRST and self.active - before <= _HARDLY * before
            self.round = min(2 * self.round, _LONGEST_ROUND) if is_steady else _ROUND
            self._look_ahead(self.strength * seen)
        if self.is_slow:
            self._compare_kinds()
        self.move_centre()
        self.hands_over = self.is_for_newton and self.sweeps >= _MOST_SWEEPS

    def _minimise_on_face(self) -> None:
        """Conjugate gradients; of few rows as far as they go, and only the active ones follow."""
        face = face_of(self.kinds, self.terms)
        if self.is_brief:
            enough = _LEAST
            if self.scores is None:
                scores = np.zeros(len(self.beta))
                scores[face.free] = self.rows.scores(face.free, self.w, self.own_constant)
            else:
                scores = self.scores
        else:
            # The gap falls with the slope squared if the losses bend, with the slope if not.
            wanted = 0.1 * (self.aim / self.gap) ** (1 if self.terms[:, 2].all() else 2)
            enough, scores = min(max(wanted, _LEAST), _MOST), self._scores()
        if self.problem.fit_intercept:
            scores = scores + (self.rows.constant * float(self.w[-1]) + self.centre)
        minimise_on(self.rows, face, self.terms, self.beta, self.w, scores, enough)
        if not self.is_brief or self.evaluated == self.sweeps - 1:
            self._look_at_all()

    def _compare_kinds(self) -> None:
        """Whether the face has become clear since the sweep before."""
        before, self.kinds = self.kinds, kinds(self.beta, self.terms)
        changed = np.count_nonzero(before != self.kinds)
        share = _CLEAR_OF_FEW if self.is_brief else _CLEAR
        self.is_clear = bool(changed <= share * np.count_nonzero(np.abs(self.kinds) == 1))

    def _look_at_all(self) -> None:
        """No row is left out of the next sweep."""
        self.order, self.active = np.arange(len(self.beta)), len(self.beta)

    def _look_ahead(self, seen: float) -> None:
        """How fast the gap falls from one sweep over all rows to the next."""
        if np.isfinite(self.seen) and self.seen > 0:
            fall = float(min(max(seen / self.seen, 1e-12), 1.0))
            self.rate = fall ** (1 / (self.sweeps - self.full))
            # More than a number of sweeps are left if that many would not do.
            would_do = seen * self.rate**_SLOW <= self.target
            self.is_slow = self.is_slow or (self.sweeps > _FIRST and not would_do)
        self.seen, self.full = seen, self.sweeps

    def _scores(self) -> Array:
        """x_i.w of all rows, without a constant that stands for a level."""
        if self.scores is None:
            everyone = np.arange(len(self.beta))
            self.scores = self.rows.scores(everyone, self.w, self.own_constant)
        return self.scores

    def refine(self) -> None:
        """Go on as long as the gap falls: small problems have more digits at hardly any cost."""
        if self.problem.design.nonzeros > SMALL:
            return
        self.aim = 0.0
        for _ in range(_MORE):
            if self.gap == 0:
                break
            before = self.beta.copy(), self.w.copy(), self.centre, self.gap
            self.step()
            self._evaluate()
            if self.gap >= before[-1]:
                self.beta, self.w, self.centre, self.gap = before
                self.scores = None
                break

    def known_scores(self) -> Array | None:
        """Those of the coefficients as they are, if nothing was shifted and they are known."""
        if self.scores is None or self.mean.any():
            return None
        return (self.scores + self.centre)[:, None]

    def certify(self) -> Certificate:
        self.expose()
        u = (-self.strength * self.beta / self.weights)[:, None]  # the derivatives of the losses
        W, b, scores = self.coef, self.intercept, self.known_scores()
        return certify_duality(self.problem, W, b, u, self.target, scores)

    def progress(self) -> Progress:
        if self.is_watched or self._is_due():
            self.last, self.evaluated = self._evaluate(), self.sweeps
        return self.last

    def _is_due(self) -> bool:
        """Whether the gap may have fallen far enough."""
        late = self.sweeps - self.evaluated
        if self.sweeps == 0 or late >= _LONGEST:
            return True
        if self.is_slow and self.is_clear:
            return not self.is_brief or self.latest <= self.target
        # What it was when it was evaluated, and as a sweep saw it: half of what that saw it fall
        # by is yet to be counted.
        expected = self.seen * self.rate ** (self.sweeps - self.full + 0.5)
        known = self.gap * self.rate**late if self.evaluated else 0.0
        return max(expected, known) <= self.target

    def _evaluate(self) -> Progress:
        self.expose()
        scores, square = self._scores(), self._square(self.w)
        losses, own = both_values(scores, self.beta, self.terms, self.centre)
        objective = self.strength * (losses + 0.5 * square)
        # The dual is a lower bound if sum_i beta_i = 0.
        gap = self.strength * (losses + own + square)
        if self.problem.fit_intercept and gap <= self.target:
            beta = balanced(self.beta)
            square = self._square(self.rows.weighted_sum(np.arange(len(beta)), beta))
            _, own = both_values(scores, beta, self.terms, self.centre)
            gap = objective + self.strength * (own + 0.5 * square)
        self.gap = max(gap, 0.0)
        return Progress(objective, self.gap)

    def _square(self, w: Array) -> float:
        """The square of the coefficients, without that of a constant that stands for a level."""
        return float(w @ w) - (float(w[-1]) ** 2 if self.problem.fit_intercept else 0.0)
