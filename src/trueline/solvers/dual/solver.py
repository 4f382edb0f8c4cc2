r"""Coordinate descent on the dual: rows are visited one by one, and each costs its non-zeros.

With the penalty a/2 ||w||^2 the optimal coefficients are w = sum_i beta_i x_i with
beta_i = -s_i u_i / a for the derivatives u of the loss, and with l*(u) = u y + e abs(u) + h/2 u^2
on [lo, hi] the dual is

    minimise  1/2 || sum_i beta_i x_i ||^2
              + sum_i (e abs(beta_i) + a h / (2 s_i) beta_i^2 - y_i beta_i)
    over      -s_i hi / a <= beta_i <= -s_i lo / a.

An intercept asks for sum_i beta_i = 0. It is found by the method of multipliers (M. J. D. Powell,
1969; M. R. Hestenes, J. Optim. Theory Appl. 4 (1969) 303-320): a constant column of size k stands
for its distance from a centre, b = centre + k w_last, and the centre follows after each sweep.
Where it rests, w_last = k sum_i beta_i is zero. Dense columns are centred: with an intercept that
changes nothing but the number of sweeps.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from trueline.certificates.duality import certify_duality
from trueline.design import AugmentedDesign, DenseDesign, Design, SparseDesign
from trueline.problem import Problem
from trueline.solution import Solution, Status
from trueline.solvers.base import Cost, Facts, Options, Solver
from trueline.solvers.costs import CALL
from trueline.solvers.dual.face import face_of, kinds, minimise_on
from trueline.solvers.dual.kernels import both_values
from trueline.solvers.dual.occurring import occurring_columns, solve_on_columns
from trueline.solvers.dual.rows import Rows, has_light_rows
from trueline.solvers.iterative import target_gap
from trueline.solvers.loop import Iteration, Monitor, Progress, run
from trueline.solvers.one_by_one import is_separable, solve_one_by_one

__all__ = [
    "BalancedDualDescent",
    "DualCoordinateDescent",
    "balanced",
    "leads_near",
    "random_start",
    "with_constant",
]

Array = NDArray[np.float64]

# The face is clear when so few of the free variables change their kind in a sweep; conjugate
# gradients on few rows are asked for more steps, which pay once hardly anything changes.
_CLEAR, _CLEAR_OF_FEW = 0.2, 0.005
# Where more sweeps than this are left, conjugate gradients are faster.
_SLOW = 20
# In designs of so few entries they are used as soon as they can be, and a few steps more are made.
_SMALL, _MORE = 50_000, 20
# All rows are visited in the first sweeps, and in one of so many later on: twice as many each time
# that the rows which are left out hardly changed.
_FIRST, _ROUND, _LONGEST_ROUND, _HARDLY = 3, 4, 16, 0.01
# Rows that rest by more than this share of the worst violation are left out until then.
_REST = 0.1
# The gap is evaluated after so many sweeps at the latest.
_LONGEST = 50
# How much the constant column bends the dual, relative to what the losses of all rows do at most.
_STIFF = 300.0
# Several targets are taken one after the other where Gram matrices, which keep more digits, would
# be larger than this, and losses have corners, so that Newton's method has no derivatives.
_MANY_COLUMNS = 4000
# How much of the slope, squared, conjugate gradients leave.
_LEAST, _MOST = 1e-4, 0.1


class DualCoordinateDescent(Solver):
    """One dual variable at a time, in random order, with shrinking."""

    name = "dual_coordinate_descent"
    title = "coordinate descent on the dual, row by row"
    needs_loss = frozenset({"dual_box"})
    needs_penalty = frozenset({"quadratic"})
    is_direct = False
    proof = "duality"

    def refuses(self, facts: Facts) -> str | None:
        if facts.fit_intercept:
            return "needs every coefficient penalised, the intercept too"
        return self._refuses_penalty(facts)

    def _refuses_penalty(self, facts: Facts) -> str | None:
        if not facts.has_one_strength:
            return "needs one positive strength"
        if facts.k > 1 and (facts.is_smooth or facts.d <= _MANY_COLUMNS):
            return "needs one target"
        return None

    def cost(self, facts: Facts) -> Cost:
        # With fewer columns than rows the dual is singular, and the last digits come slowly.
        sweeps = (100.0 if facts.is_sparse else 500.0) if facts.d > facts.n else 3000.0
        sweeps *= facts.k
        seconds = CALL + sweeps * (2e-5 + 4e-9 * facts.nonzeros + 2e-8 * facts.n)
        memory = 80.0 * facts.n + (0 if facts.itemsize == 8 else 8.0 * facts.nonzeros)
        return Cost(4 * sweeps * facts.nonzeros, sweeps, memory, seconds)

    def solve(self, problem: Problem, options: Options, monitor: Monitor) -> Solution:
        if is_separable(problem):
            return solve_one_by_one(self, problem, options, monitor)
        occurring = occurring_columns(problem)
        if occurring is not None:
            return solve_on_columns(self._solve_all, problem, occurring, options, monitor)
        return self._solve_all(problem, options, monitor)

    def _solve_all(self, problem: Problem, options: Options, monitor: Monitor) -> Solution:
        """Solve for the coefficients of all columns."""
        iteration = _Iteration(problem, options, monitor.is_watching)
        status, n_iter, _ = run(
            iteration,
            monitor,
            max_iter=options.max_iter or 10_000,
            target_gap=iteration.target,
            patience=1000,
        )
        if status is Status.CONVERGED and problem.design.nonzeros <= _SMALL:
            iteration.refine()
        iteration.expose()
        W, b = iteration.coef, iteration.intercept
        scores = iteration.known_scores()
        certificate = certify_duality(problem, W, b, iteration.dual(), iteration.target, scores)
        if status is not Status.CONVERGED and certificate.gap <= iteration.target:
            status = Status.CONVERGED
        return Solution(
            W,
            b,
            status,
            self.name,
            n_iter=n_iter,
            proof=certificate,
            trace=monitor.trace,
            extra={} if scores is None else {"scores": scores},
        )


class BalancedDualDescent(DualCoordinateDescent):
    """The same with an intercept, for losses of margins: the multipliers of both classes balance.

    With targets of all sizes the multipliers would take their time.
    """

    name = "balanced_dual_descent"
    title = "coordinate descent on the dual, row by row, and multipliers for the intercept"
    needs_loss = frozenset({"dual_box", "margins"})

    def refuses(self, facts: Facts) -> str | None:
        if not facts.fit_intercept:
            return "is for fits with an intercept"
        return self._refuses_penalty(facts)


class _Iteration(Iteration):
    """beta and w; a step is a sweep over the rows that are still active.

    Once few variables change their kind in a sweep, and sweeps alone would take long, conjugate
    gradients on the face that they span go before each sweep, which then visits all rows. Sweeps
    over all rows see on their way how the gap falls. It is evaluated when it may have fallen far
    enough: that costs as much as half a sweep.
    """

    def __init__(self, problem: Problem, options: Options, is_watched: bool) -> None:
        self.problem, self.is_watched = problem, is_watched
        self.target, self.gap = target_gap(problem, options.tol), np.inf
        self.aim = self.target
        self.sweeps, self.evaluated, self.full, self.round = 0, 0, 0, _ROUND
        self.seen, self.latest, self.rate = np.inf, np.inf, 1.0
        self.is_brief = False
        self.last = Progress(0.0, np.inf)
        n, y = problem.n_samples, problem.target[:, 0]
        self.strength = float(np.max(problem.penalty.curvature))
        s = np.ones(n) if problem.weights is None else problem.weights
        e, h, low, high = problem.loss.dual_boxes(y)
        design, self.mean = with_constant(problem)
        self.rows = Rows(design)
        self.own_constant = 0.0 if problem.fit_intercept else self.rows.constant
        bend = self.strength * h / s
        self.terms = np.stack(
            [
                y,
                e,
                bend,
                -s * high / self.strength,
                -s * low / self.strength,
                self.rows.squares + bend,
            ],
            axis=1,
        )
        self.beta, self.w = np.zeros(n), np.zeros(self.rows.size)
        self.order, self.active = np.arange(n), n
        self.state, self.threshold = random_start(options), np.inf
        self.weights = s
        self.kinds = kinds(self.beta, self.terms)
        self.is_clear = False
        self.is_slow = problem.design.nonzeros <= _SMALL
        self.scores: Array | None = np.zeros(n)
        self.centre = 0.0
        self.expose()

    def expose(self) -> None:
        """Coefficients and intercept as of now."""
        has_constant = isinstance(self.problem.design, AugmentedDesign)
        self.coef = (self.w if has_constant else self.w[:-1]).reshape(-1, 1)
        self.intercept = np.zeros(1)
        if self.problem.fit_intercept:
            # Where the sweep left it: the centre has followed, and more would be too far.
            self.intercept = self.centre - self.mean @ self.coef

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
        if self.problem.fit_intercept:
            self.centre += self.rows.constant * float(self.w[-1])

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

    def dual(self) -> Array:
        """The derivatives u of the losses."""
        return (-self.strength * self.beta / self.weights)[:, None]

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
            square = self._square(self.rows.pull(np.arange(len(beta)), beta))
            _, own = both_values(scores, beta, self.terms, self.centre)
            gap = objective + self.strength * (own + 0.5 * square)
        self.gap = max(gap, 0.0)
        return Progress(objective, self.gap)

    def _square(self, w: Array) -> float:
        """The square of the coefficients, without that of a constant that stands for a level."""
        return float(w @ w) - (float(w[-1]) ** 2 if self.problem.fit_intercept else 0.0)


def random_start(options: Options) -> NDArray[np.uint64]:
    """The state of the random numbers that the kernels draw."""
    seed = 0 if options.random_state is None else options.random_state
    first = _draw(seed) if isinstance(seed, np.random.RandomState) else _drawn(seed)
    return np.array([first], dtype=np.uint64)


@lru_cache(maxsize=64)
def _drawn(seed: int) -> int:
    """What a new generator draws first: to make one takes as long as a sweep over short data."""
    return _draw(np.random.RandomState(seed))


def _draw(generator: np.random.RandomState) -> int:
    return int(generator.randint(1, 2**31 - 1))


def with_constant(problem: Problem) -> tuple[Design, Array]:
    """If there is an intercept: with a constant column, and centred.

    The centre comes the faster the longer the column is; but a long one sways with every row that
    moves. It is as long as the rows, or as the curvature along all of them asks for. The means are
    what was taken off the columns. Sparse rows are left as they are.
    """
    design, mean = problem.design, np.zeros(problem.n_features)
    if not problem.fit_intercept:
        return design, mean
    if not design.is_sparse:
        mean = design.column_means(problem.weights)
        design = DenseDesign(design.toarray() - mean)
    size = float(np.sqrt(np.mean(design.row_squares(None))))
    heaviness = problem.total_weight / float(np.max(problem.penalty.curvature))
    size = min(size, np.sqrt(_STIFF / heaviness)) if size > 0 else 1.0
    return AugmentedDesign(design, size), mean


def leads_near(problem: Problem) -> bool:
    """Whether sweeps lead near the minimum soon: light sparse rows, losses that bend."""
    bends = {"bend", "dual_box"} <= problem.loss.capabilities
    return bends and isinstance(problem.design, SparseDesign) and has_light_rows(problem)


def balanced(beta: Array) -> Array:
    """With vanishing sum, the heavier of the two signs made lighter."""
    up, down = float(np.maximum(beta, 0).sum()), float(np.maximum(-beta, 0).sum())
    if up > down:
        return np.where(beta > 0, beta * (down / up), beta)
    return beta if up == down else np.where(beta < 0, beta * (up / down), beta)
