"""Coordinate descent on the dual of losses whose conjugate is quadratic on an interval.

The formulas are in :mod:`trueline.solvers.dual_coordinate_descent.solver`, those of a step in
:mod:`trueline.solvers.dual_coordinate_descent.kernels`.

Once the active set is identified, conjugate gradients go on, on the face of the box that it spans.
Coordinate descent soon finds which variables end at a bound or at the kink, and then improves the
others by a fixed factor each sweep. On their face the function is quadratic,

    f(beta + delta) = f(beta) + g.delta + 1/2 || sum_i delta_i x_i ||^2 + sum_i h_i/2 delta_i^2,

and conjugate gradients (preconditioned by the diagonal) need about the square root of the sweeps
that are left. A step that leaves the face is projected on it, and followed to the minimum along
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
from trueline.solvers.dual_coordinate_descent.descent import LEAST_SHARE, SHRINKING, descend
from trueline.solvers.dual_coordinate_descent.kernels import (
    CLOSE_AT_HAND,
    add_row,
    both_values,
)
from trueline.solvers.dual_coordinate_descent.rows import (
    DualIteration,
    Rows,
    SharedRows,
    balanced,
)

Array = NDArray[np.float64]

# The active set counts as identified when no more than this share of the free variables changes its
# status in a sweep; on few rows, where conjugate gradients make more steps, hardly any may.
_IDENTIFIED, _IDENTIFIED_OF_FEW = 0.2, 0.005
# Where more sweeps than this are left, conjugate gradients are faster.
_SLOW = 20
# In designs with so few entries they are always used, and some steps more are made at the end.
SMALL, _EXTRA_STEPS = 50_000, 20
# The first sweeps visit all rows, later ones only the active rows, with a full sweep every so many
# sweeps. This interval doubles while a full sweep adds no more than this share to the active rows.
_FIRST_SWEEPS, _FULL_EVERY, _MAX_FULL_EVERY, _FEW_RETURN = 3, 4, 16, 0.01
# From so many sweeps on the mean of w is kept: runs that end sooner need none.
_MEAN_FROM = 32
# The gap is evaluated at least every so many sweeps.
_GAP_EVERY = 50
# Conjugate gradients stop at a share of the squared norm of the gradient between these.
_CG_LEAST, _CG_MOST = 1e-4, 0.1
# Sweeps, and steps of conjugate gradients, after which Newton's method, where it is the next solver
# of the plan, goes on; sweeps before the gap is forecast.
_MOST_SWEEPS, _MIN_SWEEPS_FOR_FORECAST = 100, 8
# An interior-point solver takes as long as about four times this many trial sweeps plus d / 4.
_TRIAL = 10.0
# It takes over after this multiple of the trial sweeps, or when these will not reach the target.
_PATIENCE = 3.0
# For rows of a smaller density its Gram matrices are too expensive.
_LEAST_DENSITY = 0.1
# Sweeps in one call, where that many are allowed.
_ALONE = 200


def trial_sweeps(n: int, d: int, nonzeros: int) -> float:
    """Trial sweeps before handing over to the interior-point solver; 0 if that is too expensive."""
    return _TRIAL + d / 4 if d <= n and SMALL < nonzeros >= _LEAST_DENSITY * n * d else 0.0


class BoxIteration(DualIteration):
    """beta and w; a step is a sweep over the rows that are still active.

    Once the active set is identified, and sweeps alone would take long, conjugate gradients on its
    face go before each sweep, which then visits all rows. A full sweep also estimates the gap. The
    gap itself is evaluated when it may have fallen far enough: that costs as much as half a sweep.
    """

    def __init__(
        self, problem: Problem, options: Options, is_watched: bool, shared: SharedRows
    ) -> None:
        super().__init__(problem, options, is_watched, shared)
        # Where nearly all margins hold, the objective is far below that of a constant model: the
        # tolerance is relative to the objective itself.
        self.tol, self.max_target, self.enough = options.tol, self.target, 0.0
        self.gap, self.refine_target = np.inf, np.inf
        self.last_full_sweep, self.full_every = 0, _FULL_EVERY
        self.last_full_gap_estimate, self.current_gap_estimate, self.rate = np.inf, np.inf, 1.0
        self.has_few_active = False
        self.w_sum, self.w_count = np.zeros_like(self.w), 0
        self.last_progress = Progress(0.0, np.inf)
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
        self.row_status = np.zeros(n, np.int8)  # of the last sweep
        self.is_identified = False
        self.is_slow = problem.design.nonzeros <= SMALL
        self.scores: Array | None = np.zeros(n)
        # Newton's method can go on from here where the loss has second derivatives, and interior
        # points where few columns make its steps cheap.
        self.sweeps_left = np.inf
        trial, curvatures = trial_sweeps(*problem.design.shape, problem.design.nonzeros), h.any()
        # Sweeps alone then: conjugate gradients would take longer than the interior-point solver.
        self.is_trial = options.has_fallback and not curvatures and trial > 0
        if self.is_trial:
            self.sweeps_left, self.is_slow = _PATIENCE * trial, False
        elif options.has_fallback and "hessian" in problem.loss.capabilities:
            self.sweeps_left = _MOST_SWEEPS
        self.expose()

    def begin(self, max_iter: int) -> int:
        problem = self.problem
        if problem.fit_intercept or self.is_trial or not problem.design.is_sparse:
            return 0
        if problem.design.nonzeros > CLOSE_AT_HAND:
            return 0  # calls cost nothing beside such sweeps, of which the loop takes fewer
        if max_iter <= _ALONE:
            return 0  # the limit may end the sweeps: their mean is kept for that
        scores = np.empty(problem.n_samples)
        self.sweeps, gap, target = descend(
            self.rows.compressed,
            self.rows.constant,
            self.terms,
            self.beta,
            self.w,
            scores,
            self.state,
            self.tol,
            self.max_target / self.strength,
            _ALONE,
            _ALONE,
        )
        self.gap, self.target = self.strength * gap, self.strength * target
        self.is_settled = bool(gap <= target)
        self.scores = scores if self.is_settled else None
        if not self.is_settled:  # what is left is for conjugate gradients
            self.is_slow, self.row_status = True, status_of(self.beta, self.terms)
            if np.isfinite(self.sweeps_left) and problem.n_features <= problem.n_samples:
                self.sweeps_left = 0.0  # those of Newton's method have fewer unknowns
        self.last_full_sweep = self.evaluated = self.sweeps
        return self.sweeps

    def step(self) -> None:
        self.sweeps += 1
        self.has_few_active = self.rows.is_short(self.active)
        if self.is_identified and self.is_slow:
            self._minimise_on_face()
        before = self.active
        if self.sweeps <= _FIRST_SWEEPS or self.sweeps - self.last_full_sweep >= self.full_every:
            self._activate_all()
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
        self.threshold = SHRINKING * worst if worst > 0 else np.inf
        self.current_gap_estimate = self.strength * seen
        if is_full:
            # Whether hardly any row that was left out has become active.
            is_steady = self.sweeps > _FIRST_SWEEPS and self.active - before <= _FEW_RETURN * before
            self.full_every = (
                min(2 * self.full_every, _MAX_FULL_EVERY) if is_steady else _FULL_EVERY
            )
            self._forecast(self.strength * seen)
        if self.is_slow:
            self._compare_status()
        self.move_centre()
        self._accumulate()
        self.sweeps_left -= 1
        self.hands_over = self.hands_over or self.sweeps_left <= 0

    def _minimise_on_face(self) -> None:
        """Conjugate gradients on the face; on few rows to the end, where few rows are active."""
        face = face_of(self.row_status, self.terms)
        if self.has_few_active:
            enough = _CG_LEAST
            if self.scores is None:
                scores = np.zeros(len(self.beta))
                scores[face.free] = self.rows.scores(face.free, self.w, self.own_constant)
            else:
                scores = self.scores
        else:
            # With smooth losses the gap is proportional to the squared gradient norm, otherwise to
            # the gradient norm.
            power = 1 if self.terms[:, 2].all() else 2
            wanted = 0.1 * (min(self.refine_target, self.target) / self.gap) ** power
            enough, scores = min(max(wanted, _CG_LEAST), _CG_MOST), self._scores()
        if self.problem.fit_intercept:
            scores = scores + (self.rows.constant * float(self.w[-1]) + self.centre)
        minimise_on(self.rows, face, self.terms, self.beta, self.w, scores, enough)
        # A step reads the free rows twice, as a sweep does: who goes on has waited for both.
        steps = _MORE_STEPS if self.has_few_active else _STEPS
        self.sweeps_left -= steps * len(face.free) / len(self.beta)
        if not self.has_few_active or self.evaluated == self.sweeps - 1:
            self._activate_all()

    def _compare_status(self) -> None:
        """Whether the last sweep has left the active set nearly unchanged."""
        before, self.row_status = self.row_status, status_of(self.beta, self.terms)
        changed = np.count_nonzero(before != self.row_status)
        share = _IDENTIFIED_OF_FEW if self.has_few_active else _IDENTIFIED
        self.is_identified = bool(changed <= share * np.count_nonzero(np.abs(self.row_status) == 1))

    def _activate_all(self) -> None:
        """No row is left out of the next sweep."""
        self.active = len(self.beta)

    def _forecast(self, seen: float) -> None:
        """The rate at which the gap falls, from two full sweeps, and what follows from it."""
        if np.isfinite(self.last_full_gap_estimate) and self.last_full_gap_estimate > 0:
            fall = float(min(max(seen / self.last_full_gap_estimate, 1e-12), 1.0))
            self.rate = fall ** (1 / (self.sweeps - self.last_full_sweep))
            # More than _SLOW sweeps are left if that many would not reach the target.
            would_do = seen * self.rate**_SLOW <= self.target
            if not self.is_trial:
                self.is_slow = self.is_slow or (self.sweeps > _FIRST_SWEEPS and not would_do)
            elif self.sweeps > _MIN_SWEEPS_FOR_FORECAST:
                self.hands_over = seen * self.rate**self.sweeps_left > self.target
        self.last_full_gap_estimate, self.last_full_sweep = seen, self.sweeps

    def _accumulate(self) -> None:
        """Add w to its sum over the last sweeps, which are at least half of all."""
        if self.sweeps < _MEAN_FROM or self.problem.fit_intercept:
            return
        if self.sweeps & (self.sweeps - 1) == 0:  # a power of two
            self.w_sum[:], self.w_count = 0.0, 0
        self.w_sum += self.w
        self.w_count += 1

    def choose(self) -> None:
        """The best multiple of w, or of its mean over the last sweeps.

        The dual objective falls monotonically; the primal objective of w oscillates, the more the
        larger the norms of the rows.
        """
        if not self.w_count:
            return
        found = [self._best_multiple(w) for w in (self.w, self.w_sum / self.w_count)]
        self.w, self.scores = min(found, key=lambda pair: pair[0])[1], None

    def _best_multiple(self, w: Array) -> tuple[float, Array]:
        """The lowest objective of the multiples of some coefficients, and that multiple."""
        problem, W = self.problem, w[: len(self.coef), None]
        scores, square = problem.design.matvec(W), problem.penalty.value(W)

        def objective(t: float) -> float:
            losses = problem.loss.value(problem.target, t * scores)
            return float(problem.loss.total(losses, problem.weights)[0] + t * t * square)

        best = 1.0
        for reach in (0.5, 0.125, 0.03):
            best = min(best + reach * np.linspace(-1, 1, 9), key=objective)
        return objective(best), best * w

    def _scores(self) -> Array:
        """x_i.w of all rows, without the constant column of the intercept."""
        if self.scores is None:
            all_rows = np.arange(len(self.beta))
            self.scores = self.rows.scores(all_rows, self.w, self.own_constant)
        return self.scores

    def refine(self) -> None:
        """Go on as long as the gap falls: small problems have more digits at hardly any cost."""
        if self.problem.design.nonzeros > SMALL:
            return
        self.refine_target = 0.0
        for _ in range(_EXTRA_STEPS):
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
            self.last_progress, self.evaluated = self._evaluate(), self.sweeps
            self.is_settled = bool(self.gap <= self.target)
        return self.last_progress

    def _is_due(self) -> bool:
        """Whether the gap may have fallen far enough."""
        late = self.sweeps - self.evaluated
        if self.sweeps == 0 or late >= _GAP_EVERY:
            return True
        if self.is_slow and self.is_identified:
            return not self.has_few_active or self.current_gap_estimate <= self.target
        # Two forecasts of the gap: from the last full sweep, and from its last evaluation. A sweep
        # sees on average half of its own decrease.
        expected = self.last_full_gap_estimate * self.rate ** (
            self.sweeps - self.last_full_sweep + 0.5
        )
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
        # A lower bound on the minimum.
        least = max(objective - self.gap, 0.0)
        self.target = min(self.max_target, max(self.tol * least, LEAST_SHARE * self.max_target))
        return Progress(objective, self.gap)

    def _square(self, w: Array) -> float:
        """The squared norm of the coefficients, without that of the constant column."""
        return float(w @ w) - (float(w[-1]) ** 2 if self.problem.fit_intercept else 0.0)


# Steps of conjugate gradients, at most; more where they cost little beside all else.
_STEPS, _MORE_STEPS = 6, 12
# Directions of less curvature than this, relative to that of their coordinates, count as linear.
_FLAT = 1e-12


class Face(NamedTuple):
    """The variables that are free to move, and their bounds."""

    free: NDArray[np.int64]
    low: Array
    high: Array


def status_of(beta: Array, terms: Array) -> NDArray[np.int8]:
    """Of each variable: 2 or -2 at a bound, 1 or -1 on a side of the kink, 0 at it."""
    # Without a kink, zero is a point like any other.
    return status_kernel(beta, terms, bool(terms[:, 1].any()))


def face_of(status: NDArray[np.int8], terms: Array) -> Face:
    """The face that variables of this status span."""
    free = np.flatnonzero((np.abs(status) == 1) & (terms[:, 5] > 0))
    low, high = terms[free, 3], terms[free, 4]
    if terms[:, 1].any():
        low = np.where(status[free] > 0, np.maximum(low, 0.0), low)
        high = np.where(status[free] < 0, np.minimum(high, 0.0), high)
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
        The share of the squared norm of the gradient that may remain.
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
    for bounded in (_projected_step, _truncated_step):
        step = bounded(x, at, face)
        decrease = -float(g @ step)
        if decrease > 0:
            Xt_step = rows.weighted_sum(free, step)
            step_curvature = float(Xt_step @ Xt_step + (h * step) @ step)
            length = min(1.0, decrease / step_curvature) if step_curvature > 0 else 1.0
            beta[free] = np.clip(at + length * step, face.low, face.high)
            w += length * Xt_step
            return True
    return False


def _conjugate_gradients(
    rows: Rows, free: NDArray[np.int64], g: Array, h: Array, curvature: Array, enough: float
) -> Array:
    """About -H^-1 g for the H of the face.

    The constant at the end of every row makes one eigenvalue as large as there are rows: the
    minimum along the direction of ones comes first, and all others are conjugate to it.
    """

    def times(v: Array) -> Array:
        return rows.scores(free, rows.weighted_sum(free, v)) + h * v

    ones = np.ones(len(free))
    H_ones = times(ones) if rows.constant else ones
    total = float(H_ones.sum())
    # Without variables, or without curvature along them, there is no such minimum.
    has_constant = bool(rows.constant) and total > 0
    along_ones = -float(g.sum()) / total if has_constant else 0.0

    def conditioned(r: Array) -> Array:
        z = r / curvature
        return z - float(H_ones @ z) / total if has_constant else z

    x, _ = conjugate_gradients(
        times,
        -g - along_ones * H_ones,
        conditioned,
        most=_STEPS,
        enough=enough,
        flat=lambda direction: _FLAT * float(direction @ (curvature * direction)),
    )
    return along_ones + x


def _projected_step(x: Array, at: Array, face: Face) -> Array:
    """A step, projected on the face."""
    return np.clip(at + x, face.low, face.high) - at


def _truncated_step(x: Array, at: Array, face: Face) -> Array:
    """A step, truncated where it leaves the face."""
    with np.errstate(divide="ignore", invalid="ignore"):
        room = np.where(x > 0, (face.high - at) / x, np.where(x < 0, (face.low - at) / x, np.inf))
    return min(1.0, float(room.min(initial=1.0))) * x


Indices = NDArray[np.int32]
Integers = NDArray[np.int64]


@kernel
def status_kernel(beta: Array, terms: Array, has_kink: bool) -> NDArray[np.int8]:
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
def hessian_product(
    data: Array,
    indices: Indices,
    indptr: Integers,
    constant: float,
    free: Integers,
    h: Array,
    v: Array,
    XtV: Array,
    out: Array,
) -> None:
    """H v of the face: products with the rows there and back, and the curvature of the losses."""
    XtV[:] = 0.0
    v_sum = 0.0
    for k in range(len(free)):
        i = free[k]
        add_row(data, indices, indptr[i], indptr[i + 1], v[k], XtV)
        v_sum += v[k]
    constant_part = constant * constant * v_sum
    for k in range(len(free)):
        i = free[k]
        product = column_dot(data, indices, indptr[i], indptr[i + 1], XtV)
        out[k] = product + constant_part + h[k] * v[k]


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
    """About -H^-1 g: the minimum along the direction of ones first, then conjugate gradients."""
    count = len(free)
    XtV, H_ones, total = np.empty(size), np.ones(count), 0.0
    ones, product = np.ones(count), np.empty(count)
    if constant != 0.0:
        hessian_product(data, indices, indptr, constant, free, h, ones, XtV, H_ones)
        total = H_ones.sum()
    shift = -g.sum() / total if total > 0.0 else 0.0
    x, r = shift * ones, -g - shift * H_ones
    z = conditioned(r, own_curvature, H_ones, total)
    direction, left = z, (r * z).sum()
    enough *= left
    for _ in range(steps):
        if not left > enough:
            break
        hessian_product(data, indices, indptr, constant, free, h, direction, XtV, product)
        curvature = (direction * product).sum()
        if not curvature > flat * (direction * own_curvature * direction).sum():
            break
        length = left / curvature
        x += length * direction
        r -= length * product
        z = conditioned(r, own_curvature, H_ones, total)
        before, left = left, (r * z).sum()
        direction = z + (left / before) * direction
    return x


@kernel
def conditioned(r: Array, curvature: Array, H_ones: Array, total: float) -> Array:
    """Divided by the diagonal, and conjugate to the direction of ones if that has curvature."""
    z = r / curvature
    if total > 0.0:
        z -= (H_ones * z).sum() / total
    return z
