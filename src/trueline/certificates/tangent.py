r"""Proof by the tangent of the losses, for losses of margins.

The losses are not negative and p(w) = sum_j (l_j abs(w_j) + a_j/2 w_j^2) with l_j + a_j > 0. Every
v with P(v) <= P = P(w) has p(v) <= P, and with g the gradient of the losses at w, h that in c,

    P(w, c) - P(v, c')  <=  p(w) + g.w - (g.v + p(v)) + h.(c - c')

by convexity. Scores are written (x - m).v + c about any centre m of the columns. What remains is to
bound the right side over all that is left for v and c'. With e_j = max(0, abs(g_j) - l_j),

    -(g.v + p(v))  <=  sum_j e_j^2 / (2 a_j)        and also        <=  P max_j e_j / l_j.

A class of total weight S_k has, by Jensen's inequality, a mean score whose margin is at least
phi^-1(P / S_k), phi the loss as a function of the margin. With m_k the mean of its rows and
M_k = sup { abs(m_k.v) : p(v) <= P }, at most P max_j abs(m_kj) / l_j or sqrt(2 P sum_j m_kj^2/a_j),

    two classes    phi^-1(P / S_+) - M_+  <=  c'  <=  M_- - phi^-1(P / S_-)
    softmax        c'_l - c'_k  <=  M_k - phi^-1(P / S_k)    for all l,     where sum_k h_k = 0,

for the softmax with the sup over abs(m_k.(v_k - v_l)), sqrt(2) times the second bound. Everything
is therefore about all coefficients whatsoever, and the coefficients themselves are the witness.

What an intercept may gain is linear in h, and rounding leaves some h. With a squared penalty alone
and losses that are self-concordant there is a second bound. Let G now be the whole gradient in w,
a the least a_j, B = sum_i s_i l_i'' the curvature in c and b its least eigenvalue (where scores are
coupled, of those that add up to zero), D = L sum_i s_i |x_i - m|^2 >= |H_ww|. For steps e in w and
f in c, and f' = f + B^+ H_cw e, the Hessian H of the losses has

    (e, f).H (e, f) >= b |f'|^2
    |H_wc B^+ h| <= (D / b)^1/2 |h|,      |B^+ H_cw e| <= (D / b)^1/2 |e|

so that as long as half of the curvature is left, N^2 = a |e|^2 + b/2 |f'|^2 and

    T^2 = (|G| + (D / b)^1/2 |h|)^2 / a + 2 |h|^2 / b      give      P - P(step) <= T N - N^2 / 2.

Steps with N <= 2 T change the score of a row by r = 2 T (|x_i - m| / a^1/2 + (2 / b)^1/2 +
(D / (a b))^1/2) at most (the range of coupled scores by sqrt(2) times that). If r <= log 2 for all
rows, half of the curvature is left within, P is no lower than here on the edge and by convexity
beyond, and the gap is at most T^2 / 2.

No objective is negative: P itself bounds the gap, which is all that can be said without a penalty
where the classes are separated and the coefficients on their way to infinity.

*Many problems at once.* What this needs to know of the rows of a problem of two classes are sums of
weights, columns and squares over either class, and sums of the losses and their derivatives at the
point: no further pass over the rows. Penalties are squares of one strength for each problem. All
arrays begin with an axis of problems.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from trueline.certificates.base import Certificate, checkable
from trueline.certificates.curvature import sums_about
from trueline.certificates.evaluation import (
    Evaluation,
    GapProof,
    Rounding,
    confirmable_terms,
    level_hessian,
    through_the_loss,
)
from trueline.design.stacked import StackedDesign
from trueline.losses import Loss
from trueline.penalties import Penalty
from trueline.problem import Problem

Array = NDArray[np.float64]

_EPS = float(np.finfo(np.float64).eps)
#: Squares below this vanish without a trace: claims stay above it.
UNDERFLOW = 1e-290
#: Bounds are multiplied by this, which covers their own rounding.
SAFE = 1 + 1e-9
#: Of coupled scores the checker knows the best intercepts less well than the fit: this share of the
#: objective is claimed in any case.
FLOOR_OF_COUPLED = 1e-10


def is_held(penalty: Penalty, shape: tuple[int, int]) -> bool:
    """Whether the penalty is made of absolute values and squares and leaves no coefficient free."""
    if "elastic" not in penalty.capabilities:
        return False
    return bool((np.broadcast_to(penalty.linear + penalty.curvature, shape) > 0).all())


def class_indicators(loss: Loss, y: Array) -> Array:
    """Which class each row is of, one column per class: minus and plus, or the one-hot target."""
    return y if "coupled" in loss.capabilities else np.hstack([y < 0, y > 0]).astype(np.float64)


def tangent_gap(
    loss: Loss,
    penalty: Penalty,
    W: Array,
    c: Array | None,
    ceiling: float,
    gradient: tuple[Array, Array],
    slope: tuple[Array, Array],
    classes: tuple[Array, Array],
    local: tuple[float, float, float],
) -> float:
    """The bound of the module's text.

    Parameters
    ----------
    loss : Loss
    penalty : Penalty
    W : array of shape (d, k)
    c : array of shape (k,), or None
        The level b + m.w; None without an intercept.
    ceiling : float
        At least P(w).
    gradient, slope : pairs of arrays of shape (d, k) and (k,)
        g and h, each with a bound on its error.
    classes : pair of arrays of shape (classes,) and (classes, d)
        S_k from below, and abs(m_k) from above.
    local : triple of float
        b from below (0 if not known), and from above sum_i s_i |x_i - m|^2 and max_i |x_i - m|.
    """
    linear = np.broadcast_to(penalty.linear, W.shape)
    curvature = np.broadcast_to(penalty.curvature, W.shape)
    ceiling = ceiling * SAFE
    if not is_held(penalty, W.shape):
        return ceiling
    gap = _along(W, linear, curvature, ceiling, *gradient)
    if c is not None:
        steep = np.abs(slope[0]) + slope[1]
        gap += _levels(loss, linear, curvature, c, ceiling, steep, *classes)
        if not linear.any() and local[0] > 0:
            whole = (
                np.abs(gradient[0] + curvature * W) + gradient[1] + 4 * _EPS * np.abs(curvature * W)
            )
            length = float(np.sqrt((whole**2).sum()))
            h = float(np.sqrt((steep**2).sum()))
            gap = min(gap, float(nearby(loss, float(curvature.min()), length, h, *local)))
    return min(gap * SAFE, ceiling)


def _along(
    W: Array, linear: Array, curvature: Array, ceiling: float, g: Array, error: Array
) -> float:
    """What the coefficients may gain: the smaller of both bounds."""
    size = np.abs(W)
    most = np.abs(g) + error
    excess = np.maximum(most - linear * (1 - 4 * _EPS), 0.0)
    by_squares = np.inf
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        if curvature.any():
            # Fenchel and Young for every coefficient: p(w) + g w + p*(-g), at both ends of g.
            both = [_fenchel_young(W, linear, curvature, end) for end in (g - error, g + error)]
            rounding = 16 * _EPS * float((linear * size + most * size).sum())
            by_squares = float(np.maximum(*both).sum()) + rounding
        ratio = float(np.where(excess > 0, excess / linear, 0.0).max(initial=0.0))
    terms = linear * size + (0.5 * curvature * W) * W + g * W
    magnitude = linear * size + (0.5 * curvature * W) * W + most * size
    by_level = float(terms.sum() + (error * size).sum()) + ceiling * ratio
    by_level += (np.log2(W.size + 2) + 24) * _EPS * float(magnitude.sum())
    bounds = [bound for bound in (by_squares, by_level) if np.isfinite(bound)]
    return max(min(bounds, default=np.inf), 0.0)


def _fenchel_young(W: Array, linear: Array, curvature: Array, g: Array) -> Array:
    """l abs(w) + a/2 w^2 + g w + max(0, abs(g) - l)^2 / (2 a), without cancellation."""
    excess = np.abs(g) - linear
    toward = -np.sign(g)
    slack = 4 * _EPS * (np.abs(curvature * W) + np.abs(g) + linear)
    apart = np.abs(curvature * W - toward * np.maximum(excess, 0.0)) + slack
    beyond = apart * (0.5 * (apart / curvature)) + np.maximum(
        linear * (np.abs(W) - toward * W), 0.0
    )
    within = np.maximum(linear * np.abs(W) + g * W, 0.0) + (0.5 * curvature * W) * W
    return np.where(excess > -slack, np.where(curvature > 0, beyond, np.inf), within)


def _levels(
    loss: Loss,
    linear: Array,
    curvature: Array,
    c: Array,
    ceiling: float,
    steep: Array,
    shares: Array,
    means: Array,
) -> float:
    """What the intercepts may gain: abs(h) times how far they may be."""
    far = reach_of_classes(loss, linear, curvature, ceiling, shares, means)
    if "coupled" in loss.capabilities:
        apart = max(float(far.max()), 0.0) + float(np.ptp(c)) * SAFE
        return 0.5 * float(steep.sum()) * apart
    low, high = -far[1], far[0]
    return float(steep[0]) * float(max(abs(c[0] - low), abs(high - c[0])))


def reach_of_classes(
    loss: Loss, linear: Array, curvature: Array, ceiling: float, shares: Array, means: Array
) -> Array:
    """M_k - phi^-1(P / S_k), class by class: how far intercepts may be from each other."""
    is_coupled = "coupled" in loss.capabilities
    least, least_curvature = linear.min(axis=1), curvature.min(axis=1)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        ratio = np.where(means > 0, means / least, 0.0).max(axis=1, initial=0.0)
        square = np.where(means > 0, means * (means / least_curvature), 0.0).sum(axis=1)
        margins = np.array([loss.least_margin(ceiling / share) for share in shares])
    by_squares = np.sqrt(2 * ceiling * square) * (np.sqrt(2.0) if is_coupled else 1.0)
    reach = np.minimum(ceiling * ratio, by_squares) * SAFE
    return np.asarray(reach - margins + 1e-9 * np.abs(margins))


def nearby(
    loss: Loss,
    a: Array | float,
    length: Array | float,
    h: Array | float,
    b: Array | float,
    size: Array | float,
    farthest: Array | float,
) -> Array:
    """The second bound, infinite where steps reach too far for it; h is the length of the slope."""
    D = loss.curvature_bound * size
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        T = np.sqrt((length + np.sqrt(D / b) * h) ** 2 / a + 2 * h**2 / b) * SAFE
        reach = 2 * T * (farthest / np.sqrt(a) + np.sqrt(2 / b) + np.sqrt(D / (a * b))) * SAFE
    reach = reach * (np.sqrt(2.0) if "coupled" in loss.capabilities else 1.0)
    is_near = np.asarray((reach <= np.log(2.0)) & (np.multiply(a, b) > 0))
    return np.where(is_near, 0.5 * T * T, np.inf)


def least_level_curvature(loss: Loss, y: Array, z: Array, s: Array) -> float:
    """b from below: the least eigenvalue of sum_i s_i l_i'', on scores that add up to zero."""
    if "self_concordant" not in loss.capabilities:
        return 0.0
    hessian_terms = loss.hessian_terms(y, z)
    if "coupled" not in loss.capabilities:
        return float(s @ hessian_terms[:, 0]) * (1 - 1e-6)
    k = z.shape[1]
    B = level_hessian(loss, hessian_terms, s)
    # On the space of equal scores, where B vanishes, something that is not the least.
    whole = float(np.trace(B))
    values = np.linalg.eigvalsh(0.5 * (B + B.T) + whole / k * np.ones((k, k)))
    return max(float(values[0]) * (1 - 1e-6) - 1e-10 * whole, 0.0)


def is_tangent(problem: Problem) -> bool:
    """Whether this proof applies: losses of margins, every coefficient penalised."""
    loss = problem.loss.capabilities
    return (
        "margins" in loss
        and (problem.n_targets == 1 or "coupled" in loss)
        and is_held(problem.penalty, (problem.n_features, problem.n_targets))
        and bool((_shares(problem) > 0).all())
    )


def _shares(problem: Problem) -> Array:
    """The total weights of the classes."""
    if "coupled" not in problem.loss.capabilities and problem.weights is None:  # no copies
        below, above = (np.count_nonzero(side) for side in (problem.target < 0, problem.target > 0))
        return np.array([float(below), float(above)])
    members = class_indicators(problem.loss, problem.target)
    return members.sum(axis=0) if problem.weights is None else problem.weights @ members


class Tangent(GapProof):
    """Proves gaps at many points of one problem; what the data alone decide is kept."""

    kind, applies = "tangent", staticmethod(is_tangent)

    def __init__(self, problem: Problem, rounding: Rounding | None = None) -> None:
        super().__init__(problem, rounding)
        # About the means, which costs sparse rows their zeros: those are taken as they are.
        self._is_centred = problem.fit_intercept and not problem.design.is_sparse
        self.centre = self.rounding.mean if self._is_centred else np.zeros(problem.n_features)

    @cached_property
    def spread(self) -> Array:
        """At least sqrt(sum_i s_i (x_ij - centre_j)^2)."""
        if self.rounding.spread is not None and self._is_centred:
            return self.rounding.spread
        shift = self.centre if self.centre.any() else None
        squares = self.problem.design.column_squares(self.problem.weights, shift)
        return np.asarray(np.sqrt(squares) * (1 + 1e-6))

    @cached_property
    def farthest(self) -> float:
        """At least max_i |x_i - centre|."""
        if self.rounding.farthest is not None and self._is_centred:
            return self.rounding.farthest
        shift = self.centre if self.centre.any() else None
        return float(np.sqrt(self.problem.design.farthest(shift))) * (1 + 1e-6)

    @cached_property
    def classes(self) -> tuple[Array, Array]:
        """Weights of the classes from below, and their centred means from above."""
        problem = self.problem
        members = class_indicators(problem.loss, problem.target)
        shares = _shares(problem) * (1 - (problem.n_samples + 4) * _EPS)
        means = np.zeros((len(shares), problem.n_features))
        if problem.fit_intercept:
            sums = self._class_sums(members)
            sums = np.abs(sums - np.outer(shares, self.centre))
            # Bounds on bounds: a thousandth more, and what centring may have lost.
            lost = np.sqrt(shares)[:, None] * self.rounding.products(np.ones(1))[:, 0] * 8
            means = (sums * 1.001 + lost) / shares[:, None]
        return shares, means

    def _class_sums(self, members: Array) -> Array:
        """The sum of the rows of each class, from moments where these are kept."""
        problem, design = self.problem, self.problem.design
        known = None
        if isinstance(design, StackedDesign):
            known = design.known_moments(problem.weights, problem.target)
        is_coupled = "coupled" in problem.loss.capabilities
        if is_coupled and known is None:
            return design.rmatvec(problem.weigh(members)).T
        if known is None:
            total = self.rounding.weight * self.rounding.mean
            cross = design.rmatvec(problem.weigh(problem.target))[:, 0]
        else:
            about = known.about_zero()
            if is_coupled:
                return np.asarray(about.cross.T)
            total, cross = known.weight * (known.x_mean + known.x_mean_low), about.cross[:, 0]
        return np.stack([total - cross, total + cross]) / 2

    def gap(self, at: Evaluation, W: Array, b: Array) -> float:
        """The proven gap at an evaluated point."""
        problem, centre = self.problem, self.centre
        sums = sums_about(problem, self.rounding, at, centre, self.spread)
        level = b + centre @ W if problem.fit_intercept else None
        known = self.classes, self._local(at)
        return _checked_gap(
            problem.loss, problem.penalty, W, level, self.rounding, at, sums, *known
        )

    def _local(self, at: Evaluation) -> tuple[float, float, float]:
        """What the bound by curvature nearby needs to know, each a little on the safe side."""
        problem = self.problem
        if not problem.fit_intercept or np.any(problem.penalty.linear):
            return 0.0, 0.0, 0.0
        s = np.ones(problem.n_samples) if problem.weights is None else problem.weights
        b = least_level_curvature(problem.loss, problem.target, at.scores, s)
        return b * (1 - 1e-6), float((self.spread**2).sum()) * (1 + 1e-6), self.farthest

    def certify(self, W: Array, b: Array, at: Evaluation | None = None) -> Certificate:
        """The certificate of a point."""
        problem = self.problem
        at = at or self.evaluate(W, b)
        floor = max(floor_of(W.size), 0.0 if len(b) == 1 else FLOOR_OF_COUPLED)
        gap = checkable(1.1 * self.gap(at, W, b), at.objective.sum(), floor)
        rounding = 2 * at.objective_rounding
        return Certificate.about(problem, "tangent", W, b, at.objective, rounding, gap)


def _checked_gap(
    loss: Loss,
    penalty: Penalty,
    W: Array,
    level: Array | None,
    rounding: Rounding,
    at: Evaluation,
    sums: tuple[Array, Array],
    classes: tuple[Array, Array],
    local: tuple[float, float, float],
) -> float:
    """The bound at an evaluated point, with room for the sums of whoever checks it.

    Errors count once for these sums, once for those of the check, once for what they differ by; the
    check sums the slope as it sums any column.
    """
    terms = rounding.accuracy.column_terms + 4 * W.shape[1] + 8
    ones = np.sqrt(rounding.weight) * terms * _EPS * at.size
    ceiling = float(at.objective.sum() + 3 * at.objective_rounding.sum())
    slope = at.slope, 3 * at.slope_rounding + ones
    gradient = sums[0], 3 * sums[1]
    gap = tangent_gap(loss, penalty, W, level, ceiling, gradient, slope, classes, local)
    return gap * (1 + 1e-9) + UNDERFLOW * rounding.rows


def at_most_objective(problem: Problem, certificate: Certificate) -> Certificate:
    """The certificate, or that no objective is negative, where that says more."""
    is_single = problem.n_targets == 1 or "coupled" in problem.loss.capabilities
    if certificate.gap <= certificate.objective or not is_single:
        return certificate
    if "margins" not in problem.loss.capabilities or "elastic" not in problem.penalty.capabilities:
        return certificate
    return Tangent(problem).certify(certificate.coef, certificate.intercept)


def floor_of(size: int) -> float:
    """The share of the objective that rounding keeps whoever checks from telling from zero.

    The sum over the coefficients of p(w) + q.w + p*(-q), not negative terms that vanish at the
    optimum, rounds by 16 + sqrt(size) units of the sums of p(w) and abs(q.w), of which each is at
    most twice the objective.
    """
    return max(1e-14, 2.2 * (16 + np.sqrt(size)) * _EPS)


Integers = NDArray[np.intp]
# Bounds on bounds are a little larger than what they rest on.
_MORE = 1 + 1e-6


class PointSums(NamedTuple):
    """What is known of points.

    Attributes
    ----------
    W : array of shape (p, d)
        Coefficients.
    levels : array of shape (p,)
        Scores of the middle of the rows.
    losses, squares, slope, curvature : arrays of shape (p,)
        sum_i s_i l_i, sum_i s_i u_i^2, sum_i s_i u_i and sum_i s_i l_i''.
    correlation : array of shape (p, d)
        sum_i s_i u_i x_i, of rows about the middle.
    chain : float
        Most additions one after the other in sums over rows.
    """

    W: Array
    levels: Array
    losses: Array
    squares: Array
    slope: Array
    curvature: Array
    correlation: Array
    chain: float


@dataclass(frozen=True)
class RowSums:
    """What is known of the rows of each problem, whatever the point; first label -1, then +1.

    Attributes
    ----------
    middle : array of shape (d,)
        What was subtracted from the rows of all problems.
    fit_intercept : bool
    shares, means : arrays of shape (p, 2) and (p, 2, d)
        Weights of the classes, and at least the sizes of their means about the centre.
    centre, size, spread : arrays of shape (p, d)
        Means of the columns (zero without an intercept); at least sqrt(sum_i s_i x_ij^2) about the
        middle, and about the centre.
    farthest : array of shape (p,)
        At least the largest distance of a row from the centre.
    count : array of shape (p,)
        Rows.
    """

    middle: Array
    fit_intercept: bool
    shares: Array
    means: Array
    centre: Array
    size: Array
    spread: Array
    farthest: Array
    count: Integers

    @classmethod
    def of(
        cls,
        middle: Array,
        fit_intercept: bool,
        shares: Array,
        totals: Array,
        squares: Array,
        farthest: Array,
        count: Integers,
    ) -> RowSums:
        """From sum_i s_i, sum_i s_i x_i of both classes, sum_i s_i x_i^2 and the largest |x_i|."""
        weight = shares.sum(axis=1)[:, None]
        centre, means = np.zeros_like(squares), np.zeros_like(totals)
        if fit_intercept:
            centre = totals.sum(axis=1) / weight
            # A thousandth more, and what centring may have lost.
            apart = np.abs(totals - shares[:, :, None] * centre[:, None])
            lost = 8 * (count[:, None] + 16) * _EPS * np.sqrt(squares)
            with np.errstate(divide="ignore", invalid="ignore"):  # classes without weight
                means = apart * 1.001 / shares[:, :, None]
                means = means + lost[:, None] / np.sqrt(shares)[:, :, None]
        about = np.maximum(squares - weight * centre**2, 0.0)
        spread, size = np.sqrt(about + 1e-9 * squares) * _MORE, np.sqrt(squares) * _MORE
        farthest = (farthest + np.sqrt((centre**2).sum(axis=1))) * _MORE
        shares = shares * (1 - (count[:, None] + 4) * _EPS)
        return cls(middle, fit_intercept, shares, means, centre, size, spread, farthest, count)

    def take(self, which: Integers) -> RowSums:
        """Of some of the problems."""
        arrays: Any = (self.shares, self.means, self.centre, self.size, self.spread)
        rest = (array[which] for array in (*arrays, self.farthest, self.count))
        return RowSums(self.middle, self.fit_intercept, *rest)

    def certify(self, at: PointSums, loss: Loss, penalties: Sequence[Penalty]) -> list[Certificate]:
        """The certificates of points, one for each problem."""
        W, b = at.W, at.levels - at.W @ self.middle if self.fit_intercept else 0.0 * at.levels
        a = np.array([float(penalty.curvature) for penalty in penalties])
        objective = at.losses + 0.5 * a * (W**2).sum(axis=1)
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            rounding, gaps = self._gaps(at, b, a, loss, objective)
        return [
            Certificate(
                kind="tangent",
                objective=float(objective[p]),
                objective_rounding=float(2 * rounding[p]),
                gap=checkable(
                    gaps[p] * 1.1 + UNDERFLOW * int(self.count[p]),
                    objective[p],
                    floor_of(W.shape[1]),
                ),
                loss=loss,
                penalty=penalty,
                fit_intercept=self.fit_intercept,
                coef=np.ascontiguousarray(W[p, :, None]),
                intercept=b[p : p + 1].copy(),
                witness={},
            )
            for p, penalty in enumerate(penalties)
        ]

    def _gaps(
        self, at: PointSums, b: Array, a: Array, loss: Loss, objective: Array
    ) -> tuple[Array, Array]:
        """The rounding of the objectives, and the gaps."""
        (W, middle), d = (at.W, self.middle), len(self.middle)
        total = self.shares.sum(axis=1)
        root, size = np.sqrt(total), np.sqrt(at.squares) * _MORE
        # With m the middle, scores are sums of w_j (x_ij - m_j) and a level c, b + m.w but for
        # rounding: errors of d + 4 units of |x_ij| + |m_j| and of |c| <= |b| + |m|.|w|, twice.
        most = self.size + 5 * root[:, None] * np.abs(middle)
        reach = (most * np.abs(W)).sum(axis=1) + root * (np.abs(b) + _MORE)
        score_error = (2 * d + 12) * _EPS * reach
        passed_on, row_error = through_the_loss(
            loss, loss.curvature_bound, total, size, score_error
        )
        own, terms = (at.chain + 40) * _EPS, confirmable_terms(at.chain, self.count)
        rounding = passed_on + own * at.losses + (d + 8) * _EPS * (objective - at.losses)
        rounding = rounding + UNDERFLOW
        each = row_error + (terms + 8) * _EPS * size
        slope_error = root * (row_error + own * size)
        g = at.correlation - self.centre * at.slope[:, None]
        error = self.size * each[:, None] + np.abs(self.centre) * slope_error[:, None]
        error += 4 * _EPS * (np.abs(at.correlation) + np.abs(self.centre * at.slope[:, None]))
        ceiling = (objective + 3 * rounding) * SAFE
        # Once for these sums, once for those of whoever checks them, once for what they differ by.
        curved = a[:, None] * W
        apart = np.abs(curved + g) + 3 * error + 4 * _EPS * (np.abs(curved) + np.abs(g) + 3 * error)
        gaps = (apart * (0.5 * (apart / a[:, None]))).sum(axis=1)
        gaps += 16 * _EPS * ((np.abs(g) + 3 * error) * np.abs(W)).sum(axis=1)
        if self.fit_intercept:
            steep = np.abs(at.slope) + 3 * slope_error + root * (terms + 12) * _EPS * size
            level = b + ((middle + self.centre) * W).sum(axis=1)
            gaps += steep * self._reach(loss, a, ceiling, level)
            if "self_concordant" in loss.capabilities:
                local = at.curvature * (1 - 2e-6), (self.spread**2).sum(axis=1) * _MORE
                lengths = np.sqrt((apart**2).sum(axis=1))
                gaps = np.minimum(gaps, nearby(loss, a, lengths, steep, *local, self.farthest))
        gaps = np.where(np.isfinite(gaps), np.minimum(gaps * SAFE, ceiling), ceiling)
        return rounding, gaps

    def _reach(self, loss: Loss, a: Array, ceiling: Array, level: Array) -> Array:
        """How far the intercepts may be."""
        across = np.sqrt(2 * ceiling[:, None] * (self.means**2).sum(axis=2) / a[:, None]) * SAFE
        each = (ceiling[:, None] / self.shares).tolist()
        margins = np.array([[loss.least_margin(share) for share in pair] for pair in each])
        far = across - margins + 1e-9 * np.abs(margins)
        return np.maximum(np.abs(level + far[:, 1]), np.abs(far[:, 0] - level))
