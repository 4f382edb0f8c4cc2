"""What the iterative solvers share: tolerance, steps, proofs, the finished solution."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigvalsh_tridiagonal

from trueline.certificates.base import Certificate
from trueline.certificates.choose import Prover
from trueline.certificates.evaluation import Evaluation, Rounding
from trueline.design import Design, StandardizedDesign
from trueline.moments import Moments
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
    gram_seconds,
    iteration_seconds,
    normal_factor_seconds,
)
from trueline.solvers.least_squares.normal_equations import (
    MOST_DENSE,
    NormalFactor,
    as_dense,
    curvature_matrix,
    factor_normal_equations,
    factor_spectrum,
)
from trueline.solvers.least_squares.orthogonal import RowFactor, factor_rows

Array = NDArray[np.float64]

_EPS = float(np.finfo(np.float64).eps)
# Up to this many columns a factor of the Hessian, used for nothing but the proof, is cheap.
_FACTOR_COLUMNS = 500
# Multiplications up to which the rows are factored for it where the Gram matrix is not enough.
_FACTOR_WORK = 1e9
# A factor that leaves out more than this of the design proves too little.
_LEFT_OUT = 1e-3
_BISECTIONS = 50
# Lanczos finds the largest eigenvalue of almost any matrix to a percent in ten steps.
_LANCZOS_STEPS = 30
_LANCZOS_CHANGE = 1e-4
# Proofs that were due and brought less than half the gap, before restarting and giving up.
_RESTART_AFTER = 2
_STALL_AFTER = 5


def best_constant(problem: Problem) -> Array:
    """The intercepts of the best model without coefficients; zero if there is no intercept.

    The mean for squared loss, what the loss itself says, or the root of sum_i s_i l'(b), which
    increases with b, by bisection between the extreme targets.
    """
    y = problem.target
    if not problem.fit_intercept:
        return np.zeros(problem.n_targets)
    if "quadratic" in problem.loss.capabilities:
        return problem.weigh(y).sum(axis=0) / problem.total_weight
    weights = np.ones(len(y)) if problem.weights is None else problem.weights
    known = problem.loss.constant(y, weights)
    if known is not None:
        return known
    low, high = y.min(axis=0) - 1.0, y.max(axis=0) + 1.0
    for _ in range(_BISECTIONS):
        middle = 0.5 * (low + high)
        scores = np.broadcast_to(middle, y.shape)
        slope = problem.weigh(problem.loss.gradient(y, scores)).sum(axis=0)
        low, high = np.where(slope < 0, middle, low), np.where(slope < 0, high, middle)
    return 0.5 * (low + high)


def starting_point(problem: Problem, options: Options) -> tuple[Array, Array]:
    """Coefficients and intercepts to start from: those given, or zeros."""
    W, b = np.zeros((problem.n_features, problem.n_targets)), np.zeros(problem.n_targets)
    if options.start is not None:
        W += options.start
    if options.start_intercept is not None and problem.fit_intercept:
        b += options.start_intercept
    return W, b


def target_gap(problem: Problem, tol: float, moments: Moments | None = None) -> float:
    """tol times the objective of the best constant model; for squared loss the moments tell it.

    A constant target would ask for a gap of zero; a few units in its last place are allowed.
    """
    if moments is not None:
        level = moments.weight * float(moments.y_mean @ moments.y_mean)
        square = float(moments.y_square.sum())
        scale = 0.5 * (square if problem.fit_intercept else square + level)
        return tol * scale + (16 * _EPS) ** 2 * (square + level)
    y = problem.target
    scores = np.broadcast_to(best_constant(problem), y.shape)
    scale = float(problem.weigh(problem.loss.value(y, scores)).sum())
    return tol * scale + (16 * _EPS) ** 2 * float(
        problem.weigh(problem.loss.target_size(y) ** 2).sum()
    )


def make_prover(problem: Problem) -> Prover:
    """The prover of a fit.

    Where a quadratic problem has few columns the Hessian is factored so that the gap is nearly
    exact (1/2 g^T H^{-1} g). The factor serves the proof alone. Where
    the rank is deficient the proof is about the row space, in which the solvers stay.
    """
    penalty, d = problem.penalty, problem.n_features
    is_quadratic = "quadratic" in problem.loss.capabilities & penalty.capabilities
    if not is_quadratic or not 0 < d <= _FACTOR_COLUMNS:
        return Prover(problem)
    least = curvature_matrix(problem).min(axis=1)
    rounding = Rounding.of(problem)
    moments = Moments.from_rows(problem.design, problem.target, problem.weights)
    moments = moments if problem.fit_intercept else moments.about_zero()
    if not moments.is_finite():
        return Prover(problem, rounding=rounding)
    normal = factor_normal_equations(moments, least)
    if "nonnegative" in penalty.capabilities:
        normal = factor_spectrum(moments, least) if normal is None else normal
        return Prover(problem, normal.scale, normal.diagonal_coercivity, rounding)
    factor: NormalFactor | RowFactor | None = normal
    if factor is None or factor.coercivity <= 0:
        # Directions that the Gram matrix has lost in its rounding are still there in the rows.
        n = problem.n_samples
        is_affordable = n * d <= MOST_DENSE and n * d * min(n, d) <= _FACTOR_WORK
        mean = rounding.mean if problem.fit_intercept else None
        factor = (
            factor_rows(as_dense(problem), mean, least, use_svd=True)
            if is_affordable
            else factor_spectrum(moments, least)
        )
    if factor.left_out > _LEFT_OUT and least.all():
        return Prover(problem, rounding=rounding)
    return Prover(problem, factor.basis, factor.coercivity, rounding, factor.left_out)


def centred_design(problem: Problem, mean: Array) -> Design:
    """X - 1 m^T, implicitly; X itself without an intercept."""
    if not problem.fit_intercept:
        return problem.design
    return StandardizedDesign(problem.design, mean, np.ones_like(mean))


def largest_eigenvalue(design: Design, weights: Array | None, with_ones: bool = False) -> float:
    """The largest eigenvalue of X^T S X, or of [X 1]^T S [X 1], from below, to about 1e-3.

    Lanczos' tridiagonalisation from a fixed random vector: each step costs two products, and the
    largest Ritz value converges far faster than power iteration (G. H. Golub, C. F. Van Loan,
    "Matrix Computations", 4th ed., section 10.1.5).
    """
    size = design.shape[1] + with_ones
    v = np.random.default_rng(0).standard_normal(size)
    v /= np.linalg.norm(v)
    before = np.zeros(size)
    diagonal: list[float] = []
    beside: list[float] = []
    value, off = 0.0, 0.0
    for _ in range(min(_LANCZOS_STEPS, size)):
        scores = design.matvec(v[: design.shape[1]]) + (v[-1] if with_ones else 0.0)
        scores = scores if weights is None else weights * scores
        image = design.rmatvec(scores)
        if with_ones:
            image = np.append(image, scores.sum())
        diagonal.append(float(v @ image))
        image = image - diagonal[-1] * v - off * before
        last, value = value, float(eigvalsh_tridiagonal(np.array(diagonal), np.array(beside))[-1])
        off = _norm(image)
        if off <= _EPS * value or abs(value - last) <= _LANCZOS_CHANGE * value:
            break
        beside.append(off)
        before, v = v, image / off
    return value


def _norm(v: Array) -> float:
    """The Euclidean norm, also of numbers whose squares overflow."""
    largest = float(np.abs(v).max(initial=0.0))
    return largest * float(np.linalg.norm(v / largest)) if largest > 0 else 0.0


class ProofSchedule:
    """Prove the gap when a method's own measure says that it is time.

    Krylov methods know a norm of the gradient from their recurrences for nothing, while a proof
    costs two products. The last proof and the norm then and now predict the gap; when the
    prediction passes the target, or the norm stands still, or there is a trace, it is proven.

    Attributes
    ----------
    wants_restart : bool
        The recurrences promise what proofs do not confirm: they drifted, start them afresh.
    is_stalled : bool
        Not even that helped.
    is_settled : bool
        The norm fell by the factor asked for, where the proof is bounded and cannot confirm it.
    """

    def __init__(self, prover: Prover, target: float, tol: float, is_watched: bool) -> None:
        self._prover, self._target, self._is_watched = prover, target, is_watched
        # A gap is quadratic in the gradient; a hundredth is left for its condition.
        self._small = 0.01 * math.sqrt(tol)
        self._first_norm = 0.0
        # A bound by the gradient is linear in it, the others are quadratic.
        self._power = 1 if prover.kind == "bounded" else 2
        self._gap, self._norm = math.inf, 1.0
        self._due_gap, self._failures = math.inf, 0
        # In exact arithmetic d steps suffice: a norm that stands still for twice that is rounding.
        self._still_after = min(500, max(20, 2 * prover.problem.n_features))
        self._least_norm, self._still = math.inf, 0
        self.wants_restart = self.is_stalled = self.is_settled = False

    def progress(self, W: Array, b: Array, norm: float, objective: float) -> Progress:
        """Objective and gap at a point; an unknown gap while the target is far."""
        self.wants_restart = False
        self._first_norm = max(norm, self._first_norm)
        is_close = self._power == 1 and norm <= self._small * self._first_norm
        predicted = self._gap
        if math.isfinite(predicted) and self._norm > 0:
            predicted *= min(norm / self._norm, 1e100) ** self._power
        is_due = not math.isfinite(self._gap) or predicted <= self._target or self._is_still(norm)
        is_due = is_due or is_close
        if not (is_due or self._is_watched):
            return Progress(objective, math.inf)
        at = self._prover.evaluate(W, b)
        gap = self._prover.gap(at, W, b)
        self.is_settled = is_close and self._confirms(at)
        if is_due:
            self._judge(gap)
            self._gap, self._norm = gap, norm
        return Progress(float(at.objective.sum()), gap)

    def _confirms(self, at: Evaluation) -> bool:
        """Whether the gradient itself, not only its recurrence, is small against its terms.

        Each column against Cauchy and Schwarz, abs(x_j.u) <= ||x_j|| ||u||; of an exact fit u is
        rounding, to be judged against the target.
        """
        small = 100 * self._small
        target = self._prover.problem.target
        size = at.size + small * np.sqrt(self._prover.problem.weigh(target**2).sum(axis=0))
        norms = self._prover.column_norms[:, None]
        return bool((np.abs(at.correlation) <= small * norms * size).all())

    def _is_still(self, norm: float) -> bool:
        """Whether the norm has not become smaller for long."""
        self._still += 1
        if norm < 0.9 * self._least_norm:
            self._least_norm, self._still = norm, 0
        if self._still < self._still_after:
            return False
        self._still = 0
        return True

    def _judge(self, gap: float) -> None:
        """Count proofs that were due and failed without real progress."""
        if gap <= self._target or gap < 0.5 * self._due_gap:
            self._failures = 0
        else:
            self._failures += 1
            self.wants_restart = self._failures >= _RESTART_AFTER
            self.is_stalled = self._failures >= _STALL_AFTER
        self._due_gap = min(gap, self._due_gap)


def finish(
    problem: Problem,
    prover: Prover,
    iteration: Iteration,
    outcome: tuple[Status, int, Progress],
    monitor: Monitor,
    name: str,
    notes: list[str] | None = None,
) -> Solution:
    """The solution, with the certificate of the point that was reached."""
    status, n_iter, _ = outcome
    W, b = iteration.coef, iteration.intercept
    if status is Status.DIVERGED or not (np.isfinite(W).all() and np.isfinite(b).all()):
        certificate = _nothing_proven(problem, W, b)
    else:
        certificate = prover.certify(W, b)
    return monitor.solution(certificate, status, name, n_iter, notes=notes or [])


def _nothing_proven(problem: Problem, W: Array, b: Array) -> Certificate:
    """Coefficients that are not finite: an infinite gap."""
    return Certificate(
        kind="bounded",
        objective=math.inf,
        objective_rounding=0.0,
        gap=math.inf,
        loss=problem.loss,
        penalty=problem.penalty,
        fit_intercept=problem.fit_intercept,
        coef=W,
        intercept=b,
        witness={},
    )


def krylov_steps(facts: Facts) -> float:
    """Iterations of a Krylov method, not knowing the spectrum.

    A random matrix needs few if it is far from square, and a hundred or more if it is not; real
    data are worse. Without a penalty d steps suffice in exact arithmetic and rounding delays them;
    a dense problem without a solution by factorisation is rare enough to say so, while a large
    sparse one is usually as good as its first hundreds of steps. Where the weight of the rows in
    strengths of the penalty is known, it bounds the condition number: steps grow with its root (as
    measured on texts, half of what the bound says).
    """
    least = float(min(facts.n, facts.d))
    if facts.unpenalised:
        return min(least, 300.0) if facts.is_sparse else min(4.0 * least, 3000.0)
    if has_many_columns(facts):
        least = min(least, _ORTHOGONAL_STEPS)
    if math.isfinite(facts.heaviness):
        return min(least, 10.0 + 0.4 * math.sqrt(facts.heaviness * facts.n))
    squareness = least / max(1.0, facts.n, facts.d)
    return min(least, 50.0 + 250.0 * squareness**2)


def has_many_columns(facts: Facts) -> bool:
    """Whether sparse rows have so many columns, with one strength, that they hardly overlap."""
    return facts.is_sparse and facts.has_one_strength and facts.d >= _COLUMNS_A_ROW * facts.n


def iteration_cost(facts: Facts, iterations: float) -> Cost:
    """Cost of so many iterations of two products each, with norms and proofs around them."""
    elements = 2.0 * facts.nonzeros * facts.k
    # Norms, means and the proofs at both ends are worth about five iterations.
    time = CALL + (iterations + 5.0) * iteration_seconds(facts)
    if facts.d <= _FACTOR_COLUMNS:  # the factor for the proof, as make_prover decides
        time += gram_seconds(facts) + normal_factor_seconds(facts.d, 1)
    memory = 8.0 * 6.0 * (facts.n + facts.d) * facts.k
    return Cost(2.0 * elements * iterations, 2.0 * iterations, memory, time)


# Columns for each row from which on sparse rows are taken for nearly orthogonal, and the steps that
# conjugate gradients then take: 16 to 263 on eight collections of texts.
_COLUMNS_A_ROW, _ORTHOGONAL_STEPS = 6, 60.0

# A step is good when it leaves this share of the slope; Newton's method in one dimension needs few
# looks to get there.
_LEFT_OF_SLOPE = 0.05
# Enough to halve a step down to the rounding of one.
_LOOKS = 80


def minimise_along(
    slope: Callable[[float], tuple[float, float]], first: float, limit: float = np.inf
) -> float:
    """A step t in (0, limit] where the slope has (almost) vanished.

    Parameters
    ----------
    slope : callable
        t to the slope at t, which does not decrease, and the curvature there.
    first : float
        The slope at zero, negative.
    limit : float, optional
        The largest step.

    Examples
    --------
    >>> from trueline.solvers.iterative import minimise_along
    >>> minimise_along(lambda t: (2 * (t - 3.0), 2.0), first=-6.0)
    3.0
    """
    low, high = 0.0, limit
    t = min(1.0, limit)
    for _ in range(_LOOKS):
        at, curvature = slope(t)
        if abs(at) <= _LEFT_OF_SLOPE * abs(first) or (at < 0 and t >= limit):
            return t
        low, high = (t, high) if at < 0 else (low, t)
        ahead = t - at / curvature if curvature > 0 else np.inf
        # Newton's method comes back from the steep side of an exponential at a snail's pace: where
        # the function rises faster than it fell at zero, the step is halved at least.
        is_steep = at > abs(first) and ahead > 0.5 * (low + high)
        if not low < ahead < high or is_steep:
            inside = 0.5 * (low + high) if np.isfinite(high) else 4.0 * t
            ahead = min(inside, limit)
        t = ahead
    # Of the two ends the lower one has a slope that still falls: nothing has risen on the way.
    return low or t
