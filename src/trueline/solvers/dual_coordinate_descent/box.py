"""Coordinate descent on the dual of losses whose conjugate is quadratic on an interval.

The formulas are in :mod:`trueline.solvers.dual_coordinate_descent.solver`, those of a step in
:mod:`trueline.solvers.dual_coordinate_descent.kernels`.

Where the dual variables have settled, conjugate gradients go on, on their face of the box.
Coordinate descent soon tells which variables end at a bound or at the kink, and then improves the
others by a fixed factor each sweep. On their face the function is quadratic,

    f(beta + delta) = f(beta) + g.delta + 1/2 || sum_i delta_i x_i ||^2 + sum_i h_i/2 delta_i^2,

and conjugate gradients (preconditioned by the diagonal) take the root of the sweeps that are left.
Where a step leaves the face it is clipped to it, and what remains is followed to the minimum along
it: the function never rises. (J. J. More and G. Toraldo, "On the solution of large quadratic
programming problems with bound constraints", SIAM J. Optim. 1 (1991) 93-113, alternate between
gradient projection and conjugate gradients in this way; sweeps are our projection.)
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from trueline.certificates.base import Certificate
from trueline.certificates.duality import certify_duality
from trueline.design.sparse_columns import column_dot
from trueline.numerics.jit import kernel
from trueline.problem import Problem
from trueline.solvers.base import Options, Progress
from trueline.solvers.conjugate_gradients import conjugate_gradients
from trueline.solvers.dual_coordinate_descent.kernels import add_row, both_values
from trueline.solvers.dual_coordinate_descent.rows import DualIteration, Rows, balanced

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
# From so many sweeps on w is summed up: sweeps that end sooner need no mean.
_SUMMED = 32
# The gap is evaluated after so many sweeps at the latest.
_LONGEST = 50
# How much of the slope, squared, conjugate gradients leave.
_LEAST, _MOST = 1e-4, 0.1
# Sweeps after which Newton's method, where it is the next solver of the plan, goes on; sweeps that
# are looked at before anything is said of those to come.
_MOST_SWEEPS, _SEEN = 100, 8
# An interior point takes about four times as long as this many sweeps and a quarter of the columns.
# Of rows with fewer entries than this share the Gram matrices are not worth it.
_TRIAL, _PATIENCE, _FILLED = 10.0, 3.0, 0.1
# The share of a constant model's objective below which tolerances stay relative to that share.
_LEAST_SHARE = 1e-3


def trial_sweeps(n: int, d: int, nonzeros: int) -> float:
    """Sweeps that cost little beside an interior point; none where its Gram matrices cost more."""
    return _TRIAL + d / 4 if d <= n and SMALL < nonzeros >= _FILLED * n * d else 0.0


class BoxIteration(DualIteration):
    """beta and w; a step is a sweep over the rows that are still active.

    Once few variables change their kind in a sweep, and sweeps alone would take long, conjugate
    gradients on the face that they span go before each sweep, which then visits all rows. Sweeps
    over all rows see on their way how the gap falls. It is evaluated when it may have fallen far
    enough: that costs as much as half a sweep.
    """

    def __init__(self, problem: Problem, options: Options, is_watched: bool) -> None:
        super().__init__(problem, options, is_watched)
        # Of margins that hold nearly everywhere the objective is far below that of a constant: the
        # tolerance is relative to its own.
        self.tol, self.most, self.enough = options.tol, self.target, 0.0
        self.gap, self.aim = np.inf, np.inf
        self.full, self.round = 0, _ROUND
        self.seen, self.latest, self.rate = np.inf, np.inf, 1.0
        self.is_brief = False
        self.sum, self.summed = np.zeros_like(self.w), 0
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
        # Newton's method can go on from here where the loss has second derivatives, and interior
        # points where few columns make its steps cheap.
        self.sweeps_left = np.inf
        trial, curvatures = trial_sweeps(*problem.design.shape, problem.design.nonzeros), h.any()
        # Sweeps alone then: conjugate gradients would take longer than who goes on.
        self.is_trial = options.has_fallback and not curvatures and trial > 0
        if self.is_trial:
            self.sweeps_left, self.is_slow = _PATIENCE * trial, False
        elif options.has_fallback and "hessian" in problem.loss.capabilities:
            self.sweeps_left = _MOST_SWEEPS
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
        self._sum_up()
        self.sweeps_left -= 1
        self.hands_over = self.hands_over or self.sweeps_left <= 0

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
            # The gap falls with the slope squared with curved losses, with the slope otherwise.
            power = 1 if self.terms[:, 2].all() else 2
            wanted = 0.1 * (min(self.aim, self.target) / self.gap) ** power
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
            if not self.is_trial:
                self.is_slow = self.is_slow or (self.sweeps > _FIRST and not would_do)
            elif self.sweeps > _SEEN:
                self.hands_over = seen * self.rate**self.sweeps_left > self.target
        self.seen, self.full = seen, self.sweeps

    def _sum_up(self) -> None:
        """The sum of w over the last sweeps, at least half of all."""
        if self.sweeps < _SUMMED or self.problem.fit_intercept:
            return
        if self.sweeps & (self.sweeps - 1) == 0:  # a power of two
            self.sum[:], self.summed = 0.0, 0
        self.sum += self.w
        self.summed += 1

    def choose(self) -> None:
        """The best multiple of the mean of w over the last sweeps, where that is better.

        Sweeps lower the objective of the dual; that of w sways, the more the longer the rows.
        """
        if not self.summed:
            return
        self.expose()
        problem, W = self.problem, (self.sum / self.summed)[: len(self.coef), None]
        scores, square = problem.design.matvec(W), problem.penalty.value(W)

        def objective(t: float) -> float:
            losses = problem.loss.value(problem.target, t * scores)
            return float(problem.loss.total(losses, problem.weights)[0] + t * t * square)

        best = 1.0
        for reach in (0.5, 0.125, 0.03):
            best = min(best + reach * np.linspace(-1, 1, 9), key=objective)
        if objective(best) < problem.objective(self.coef, self.intercept):
            self.w, self.scores = best * self.sum / self.summed, None

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
        W, b, scores = self.coef, self.intercept, self.known_scores()
        return certify_duality(self.problem, W, b, self.dual(), self.target, scores)

    def dual(self) -> Array:
        return (-self.strength * self.beta / self.weights)[:, None]

    def progress(self) -> Progress:
        if self.is_watched or self._is_due():
            self.last, self.evaluated = self._evaluate(), self.sweeps
            self.is_settled = bool(self.gap <= self.target)
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
        # What the answer costs is no less than this.
        least = max(objective - self.gap, 0.0)
        self.target = min(self.most, max(self.tol * least, _LEAST_SHARE * self.most))
        return Progress(objective, self.gap)

    def _square(self, w: Array) -> float:
        """The square of the coefficients, without that of a constant that stands for a level."""
        return float(w @ w) - (float(w[-1]) ** 2 if self.problem.fit_intercept else 0.0)


# Steps of conjugate gradients, at most; more where they cost little beside all else.
_STEPS, _MORE_STEPS = 6, 12
# Directions of less curvature than this, compared with their parts alone, count as straight.
_FLAT = 1e-12


class Face(NamedTuple):
    """The variables that are free to move, and between which walls."""

    free: NDArray[np.int64]
    low: Array
    high: Array


def kinds(beta: Array, terms: Array) -> NDArray[np.int8]:
    """Of each variable: 2 or -2 at a bound, 1 or -1 on a side of the kink, 0 at it."""
    # Without a kink zero is a place like any other.
    return kinds_of(beta, terms, bool(terms[:, 1].any()))


def face_of(kind: NDArray[np.int8], terms: Array) -> Face:
    """The face that variables of these kinds span."""
    free = np.flatnonzero((np.abs(kind) == 1) & (terms[:, 5] > 0))
    low, high = terms[free, 3], terms[free, 4]
    if terms[:, 1].any():
        low = np.where(kind[free] > 0, np.maximum(low, 0.0), low)
        high = np.where(kind[free] < 0, np.minimum(high, 0.0), high)
    return Face(free, low, high)


def minimise_on(
    rows: Rows, face: Face, terms: Array, beta: Array, w: Array, scores: Array, enough: float
) -> bool:
    """Move ``beta`` and ``w`` towards the minimum on a face; whether that made any difference.

    Parameters
    ----------
    rows : Rows
    face : Face
    terms : array of shape (n, 6)
        As the sweeps take them.
    beta, w : arrays of shape (n,) and (d + 1,)
        Changed in place.
    scores : array of shape (n,)
        x_i.w, and what was added to all scores.
    enough : float
        How much of the slope, squared, may remain.
    """
    free = face.free
    t, e, h, curvature = terms[free][:, [0, 1, 2, 5]].T
    at = beta[free]
    side = np.where(face.low >= 0.0, 1.0, -1.0)
    g = scores[free] + h * at - t + e * side
    if rows.is_short(len(free)):
        x = conjugate_gradients_sparse(
            *rows.compressed,
            rows.constant,
            rows.size,
            free,
            g,
            h,
            curvature,
            enough,
            _MORE_STEPS,
            _FLAT,
        )
    else:
        x = _conjugate_gradients(rows, free, g, h, curvature, enough)
    for bounded in (_to_the_face, _to_the_wall):
        step = bounded(x, at, face)
        fall = -float(g @ step)
        if fall > 0:
            moved = rows.weighted_sum(free, step)
            rise = float(moved @ moved + (h * step) @ step)
            length = min(1.0, fall / rise) if rise > 0 else 1.0
            beta[free] = np.clip(at + length * step, face.low, face.high)
            w += length * moved
            return True
    return False


def _conjugate_gradients(
    rows: Rows, free: NDArray[np.int64], g: Array, h: Array, curvature: Array, enough: float
) -> Array:
    """About -H^-1 g for the H of the face.

    The constant that ends every row makes one eigenvalue as large as there are rows: the minimum
    along the direction of ones comes first, and all others are conjugate to it.
    """

    def times(v: Array) -> Array:
        return rows.scores(free, rows.weighted_sum(free, v)) + h * v

    ones = np.ones(len(free))
    curved = times(ones) if rows.constant else ones
    total = float(curved.sum())
    # Without variables, or without curvature along them, there is no such minimum.
    has_level = bool(rows.constant) and total > 0
    level = -float(g.sum()) / total if has_level else 0.0

    def conditioned(r: Array) -> Array:
        z = r / curvature
        return z - float(curved @ z) / total if has_level else z

    x, _ = conjugate_gradients(
        times,
        -g - level * curved,
        conditioned,
        most=_STEPS,
        enough=enough,
        flat=lambda direction: _FLAT * float(direction @ (curvature * direction)),
    )
    return level + x


def _to_the_face(x: Array, at: Array, face: Face) -> Array:
    """A step, clipped to the face."""
    return np.clip(at + x, face.low, face.high) - at


def _to_the_wall(x: Array, at: Array, face: Face) -> Array:
    """As much of a step as stays on the face."""
    with np.errstate(divide="ignore", invalid="ignore"):
        room = np.where(x > 0, (face.high - at) / x, np.where(x < 0, (face.low - at) / x, np.inf))
    return min(1.0, float(room.min(initial=1.0))) * x


Indices = NDArray[np.int32]
Integers = NDArray[np.int64]


@kernel
def kinds_of(beta: Array, terms: Array, has_kink: bool) -> NDArray[np.int8]:
    """Of each variable: 2 or -2 at a bound, 1 or -1 on a side of the kink, 0 at it."""
    out = np.empty(len(beta), np.int8)
    for i in range(len(beta)):
        at = beta[i]
        if at >= terms[i, 4]:
            out[i] = 2
        elif at <= terms[i, 3]:
            out[i] = -2
        elif not has_kink or at > 0.0:
            out[i] = 1
        else:
            out[i] = -1 if at < 0.0 else 0
    return out


@kernel
def curved(
    data: Array,
    indices: Indices,
    indptr: Integers,
    constant: float,
    free: Integers,
    h: Array,
    v: Array,
    pulled: Array,
    out: Array,
) -> None:
    """H v of the face: products with the rows there and back, and the curvature of the losses."""
    pulled[:] = 0.0
    level = 0.0
    for k in range(len(free)):
        i = free[k]
        add_row(data, indices, indptr[i], indptr[i + 1], v[k], pulled)
        level += v[k]
    level *= constant * constant
    for k in range(len(free)):
        i = free[k]
        product = column_dot(data, indices, indptr[i], indptr[i + 1], pulled)
        out[k] = product + level + h[k] * v[k]


@kernel
def conjugate_gradients_sparse(
    data: Array,
    indices: Indices,
    indptr: Integers,
    constant: float,
    size: int,
    free: Integers,
    g: Array,
    h: Array,
    own_curvature: Array,
    enough: float,
    steps: int,
    flat: float,
) -> Array:
    """About -H^-1 g, as the text of this module says it: level first, then steps."""
    count = len(free)
    pulled, level, total = np.empty(size), np.ones(count), 0.0
    ones, product = np.ones(count), np.empty(count)
    if constant != 0.0:
        curved(data, indices, indptr, constant, free, h, ones, pulled, level)
        total = level.sum()
    shift = -g.sum() / total if total > 0.0 else 0.0
    x, r = shift * ones, -g - shift * level
    z = conditioned(r, own_curvature, level, total)
    direction, left = z, (r * z).sum()
    enough *= left
    for _ in range(steps):
        if not left > enough:
            break
        curved(data, indices, indptr, constant, free, h, direction, pulled, product)
        curvature = (direction * product).sum()
        if not curvature > flat * (direction * own_curvature * direction).sum():
            break
        length = left / curvature
        x += length * direction
        r -= length * product
        z = conditioned(r, own_curvature, level, total)
        before, left = left, (r * z).sum()
        direction = z + (left / before) * direction
    return x


@kernel
def conditioned(r: Array, curvature: Array, level: Array, total: float) -> Array:
    """Divided by the diagonal, and conjugate to the direction of ones if that has curvature."""
    z = r / curvature
    if total > 0.0:
        z -= (level * z).sum() / total
    return z
