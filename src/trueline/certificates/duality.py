r"""Proof by a dual point, for every convex loss and penalty with a conjugate.

Any u with sum_i s_i u_i = 0 (only if there is an intercept) gives the lower bound

    D(u) = - sum_i s_i l_i*(u_i) - p*(-X^T (s u)).

The natural dual point is u = l'(z) at the current scores. It is moved into the domain of l*,
balanced so that the intercept's condition holds, and scaled until V = -X^T (s u) is in the domain
of p*: V is known up to its rounding e, and the worst ends of its interval are taken.

What imbalance rounding leaves, sum_i s_i u_i = e, would cost e b for an intercept b: the bound is
stated for intercepts up to a radius, abs(b) <= B, at the price of abs(e) B. For coefficients that
are not penalised at all V_j should vanish; :class:`~trueline.certificates.evaluation.Directions`
says what it may cost that it does not. Scores may be written about any centre m of the columns,
(b + m.w) + (x - m).w: columns far from zero then cost no more than others, and the radius is that
of b + m.w.

*Quantiles that must not cross* have multipliers of their order beside the dual point. For targets
1, ..., k in ascending order of their quantiles, u in the domain of the conjugates and multipliers
m_ij >= 0 of z_ij <= z_i,j+1, let p_ij = m_ij - m_i,j-1 (m_i0 = m_ik = 0). Every W, b whose scores
are in order at all rows fulfils sum_ij p_ij z_ij <= 0, so that

    P(W, b) >= P + sum_ij p_ij z_ij >= - sum_ij s_i l_j*(u_ij) - penalty*(-X^T (s u + p))

as long as sum_i (s_i u_ij + p_ij) = 0 for every j (only if there is an intercept; what rounding
leaves is paid for as above).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from trueline.certificates.base import Certificate, checkable
from trueline.certificates.evaluation import (
    Evaluation,
    Free,
    Rounding,
    evaluate,
    evaluate_objective,
    is_free,
    sum_by_blocks,
    sum_rows,
    unpenalised,
)
from trueline.design import Design
from trueline.numerics.blas import run_strands
from trueline.penalties import Penalty
from trueline.problem import Problem

Array = NDArray[np.float64]

_EPS = float(np.finfo(np.float64).eps)
# Intercepts this many times larger than the fitted one are still covered.
RADIUS = 1000.0
# Squares below the range of doubles vanish without a trace: claims stay above them.
_UNDERFLOW = 1e-290
# Rows that are added one after the other, and that are read at once.
STRETCH, _BLOCK_ROWS = 64, 2048
# Of the sum of magnitudes: what rounding leaves of numbers that add up to zero.
_IMBALANCE = 64 * _EPS
# Numbers that are so few are read at once.
_AT_ONCE = 500_000


class DualPoint(NamedTuple):
    """A feasible u, and the interval in which V = -X^T (s u) lies."""

    u: Array
    low: Array
    high: Array


def intercept_radius(problem: Problem, b: Array) -> Array:
    """Up to which magnitude of the intercept the bound is stated."""
    y, weights = problem.loss.target_size(problem.target), problem.weights
    if weights is not None:
        y = y[weights > 0]  # what does not count bounds nothing
    return RADIUS * (np.abs(b) + y.max(axis=0, initial=1.0))


def size_of_targets(problem: Problem, certificate: Certificate) -> float:
    """A perfect fit leaves nothing to compare a gap with but the targets: sum_t max_i |y_it|."""
    level = certificate.intercept
    centre = certificate.witness.get("centre")
    if centre is not None:
        level = level + centre @ certificate.coef
    return 1e-3 * float(intercept_radius(problem, level).sum())


def dual_point(
    problem: Problem,
    rounding: Rounding,
    u: Array,
    correlation: Array | None = None,
    row_error: Array | float = 0.0,
) -> DualPoint:
    """A feasible dual point near u.

    Parameters
    ----------
    problem : Problem
    rounding : Rounding
    u : array of shape (n, k)
    correlation : array of shape (d, k), optional
        X^T (s u), if it is known: the point then costs no product.
    row_error : array of shape (k,), optional
        By how much u may differ from the numbers of whoever checks, in the norm of the weights.
    """
    inside = problem.loss.project_dual(problem.target, u)
    has_sides = "margins" in problem.loss.capabilities
    if problem.fit_intercept and has_sides:
        inside = _balance_sides(problem, inside)
    if correlation is None or not np.array_equal(inside, u):
        correlation = problem.design.rmatvec(problem.weigh(inside))
    size = np.sqrt(sum_rows(problem.weigh(inside**2))) * (1 + 1e-6)
    # Once for the product, twice more for the shift and the two scalings of u below.
    error = rounding.products(3 * size, row_error)
    if problem.fit_intercept and not has_sides:
        inside, shift, room = _balance(problem, inside)
        moved = rounding.weight * shift
        correlation = (correlation - rounding.mean[:, None] * moved) * room
        error = error + rounding.mean_error[:, None] * np.abs(moved)
    low, high = -correlation - error, -correlation + error
    scale = _least_scale(problem.penalty, low, high, unpenalised(problem))
    # The product could round just outside of the domain: step inside by a few units.
    if (scale >= 1.0).all():
        return DualPoint(inside, low, high)
    scale = np.where(scale < 1.0, scale * (1.0 - 8 * _EPS), 1.0)
    return DualPoint(inside * scale, low * scale, high * scale)


def _least_scale(penalty: Penalty, low: Array, high: Array, free: NDArray[np.bool_]) -> Array:
    """Per target, the largest t <= 1 with t V in the domain of p* wherever V lies."""
    # Squares of all coefficients make p* finite everywhere.
    if free.all() or np.all(np.asarray(penalty.curvature) > 0):
        return np.ones(low.shape[1])
    ends = penalty.worst_ends(low, high)
    held = [np.where(free, 0.0, V) for V in ends] if free.any() else ends
    return np.min([penalty.dual_scale(V) for V in held], axis=0)


def _penalty_conjugate(problem: Problem, point: DualPoint, free: NDArray[np.bool_]) -> Array:
    """p* at the worse end of the interval of V; V of coefficients that are free counts as zero."""
    ends = problem.penalty.worst_ends(point.low, point.high)
    held = [np.where(free, 0.0, V) for V in ends] if free.any() else ends
    return np.sum([problem.penalty.conjugate_per_target(V) for V in held], axis=0)


def _balance_sides(problem: Problem, u: Array) -> Array:
    """sum_i s_i u_i = 0 by making the heavier of the two classes lighter.

    The sign of u is that of a class, and zero is in the domain of l*: so is what is smaller.
    """
    up, down = sum_rows(problem.weigh(np.maximum(u, 0))), sum_rows(problem.weigh(np.maximum(-u, 0)))
    with np.errstate(divide="ignore", invalid="ignore"):
        less_up = np.where(up > down, down / up, 1.0)
        less_down = np.where(down > up, up / down, 1.0)
    return np.where(u > 0, u * less_up, u * less_down)


def _balance(problem: Problem, u: Array) -> tuple[Array, Array, Array]:
    """(u - shift) room with vanishing sum_i s_i u_i, inside the domain of the conjugate.

    Subtracting the weighted mean keeps u in the domain of l* for losses whose domain is the whole
    line. Where it does not, the point is shrunk: the domain is convex and holds zero.
    """
    total = np.zeros(u.shape[1])
    for _ in range(2):  # the second round removes the rounding of the first
        shift = sum_rows(problem.weigh(u)) / problem.total_weight
        u, total = u - shift, total + shift
    inside = problem.loss.project_dual(problem.target, u)
    if np.array_equal(inside, u):
        return u, total, np.ones(u.shape[1])
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(u != inside, inside / u, 1.0).min(axis=0, initial=1.0)
    room = np.where(ratio < 1.0, np.clip(ratio, 0.0, 1.0) * (1.0 - 4 * _EPS), 1.0)
    return u * room, total, room


def dual_value(
    problem: Problem,
    rounding: Rounding,
    point: DualPoint,
    radius: Array,
    free: Free,
) -> Array:
    """D(u) per target, on the safe side of rounding.

    Parameters
    ----------
    problem : Problem
    rounding : Rounding
    point : DualPoint
    radius : array of shape (k,)
        Intercepts of up to this magnitude are covered.
    free : Free
        The coefficients, and which of them no penalty holds.
    """

    def terms(rows: slice) -> list[Array]:
        u, y = point.u[rows], problem.target[rows]
        conjugates = problem.weigh(problem.loss.conjugate(y, u), rows)
        size = problem.weigh(problem.loss.conjugate_magnitude(y, u), rows)
        weighted = problem.weigh(u, rows)
        return [conjugates, size, weighted, np.abs(weighted)]

    conjugate, size, slope, slopes = sum_by_blocks(problem.n_samples, terms)
    penalty = _penalty_conjugate(problem, point, free.mask)
    if free.directions is not None:
        middle, error = 0.5 * (point.low + point.high), 0.5 * (point.high - point.low)
        penalty = penalty + free.gain(middle, error)
    value = -conjugate - penalty
    value = value - rounding.sums * (size + np.abs(penalty) + np.abs(value))
    if problem.fit_intercept:
        value = value - (np.abs(slope) + rounding.sums * slopes) * radius
    return value


def duality_gap(
    problem: Problem,
    rounding: Rounding,
    at: Evaluation,
    b: Array,
    free: Free,
) -> tuple[Array, DualPoint]:
    """The gap per target with the natural dual point, rounding of both ends included."""
    # Slopes of these losses are differences of larger numbers, which round.
    off = at.row_error if "log_link" in problem.loss.capabilities else 0.0
    point = dual_point(problem, rounding, at.u, at.correlation, off)
    lower = dual_value(problem, rounding, point, intercept_radius(problem, b), free)
    return at.objective + at.objective_rounding - lower, point


def certify_duality(
    problem: Problem,
    W: Array,
    b: Array,
    u: Array | None = None,
    enough: float = -np.inf,
    scores: Array | None = None,
) -> Certificate:
    """A certificate from a dual point: the natural one, or a given one where that is better.

    Parameters
    ----------
    problem : Problem
    W, b : arrays of shape (d, k) and (k,)
    u : array of shape (n, k), optional
        The given one.
    enough : float
        If it proves a gap as small as this, no other is looked at.
    scores : array of shape (n, k), optional
        X W + b from products as accurate as the design's own, if they are known.
    """
    # Dual points of margins are balanced class by class, without the means of the columns.
    has_sides = "margins" in problem.loss.capabilities
    mean = np.zeros(problem.n_features) if has_sides else None
    rounding = Rounding.of(problem, mean).confirmable()
    radius, free = intercept_radius(problem, b), Free.of(problem, unpenalised(problem), W)
    found = None
    if u is not None:
        objective, own_rounding = evaluate_objective(problem, rounding, W, b, scores)
        given = dual_point(problem, rounding, u)
        lower = dual_value(problem, rounding, given, radius, free)
        found = objective, own_rounding, objective + own_rounding - lower, given.u
    if found is None or not found[2].sum() <= enough:
        at = evaluate(problem, rounding, W, b)
        gap, natural = duality_gap(problem, rounding, at, b, free)
        # As a whole: penalties may couple the targets.
        if found is None or not found[2].sum() <= gap.sum():
            found = at.objective, at.objective_rounding, gap, natural.u
    objective, own_rounding, gap, dual = found
    # No objective is negative, and none is known better than to its rounding.
    most, least = objective.sum() + 2 * own_rounding.sum(), 2 * own_rounding.sum()
    claimed = checkable(max(min(gap.sum(), most), least), objective.sum())
    return Certificate.about(
        problem, "duality", W, b, objective, 2 * own_rounding, claimed, {"dual": dual}
    )


def certify_dual(
    problem: Problem,
    W: Array,
    b: Array,
    u: Array,
    centre: Array | None = None,
    scale: Array | None = None,
    scores: Array | None = None,
) -> Certificate:
    """A certificate from a dual point that a solver brings, about a centre of the columns.

    Parameters
    ----------
    problem : Problem
        Whose penalty is made of absolute values and squares of single coefficients, or none.
    W, b : arrays of shape (d, k) and (k,)
    u : array of shape (n, k)
        Inside the domain of the loss's conjugate.
    centre : array of shape (d,), optional
        Zero without an intercept; by default the means of the columns.
    scale : array of shape (d,), optional
        At least sqrt(sum_i s_i (x_ij - centre_j)^2), if it is known.
    scores : array of shape (n, k), optional
        X W + b from the design's own products, if they are known.
    """
    rounding = _rounding(problem, centre, scale).confirmable()
    centre = rounding.mean if centre is None else centre
    if scale is None:
        shift = centre if problem.fit_intercept else None
        scale = np.sqrt(problem.design.column_squares(problem.weights, shift)) * (1 + 1e-6)
    objective, own_rounding = evaluate_objective(problem, rounding, W, b, scores)
    inside = np.empty(u.shape)
    weighted = inside if problem.weights is None else np.empty(u.shape)

    def terms_of(rows: slice) -> list[Array]:
        inside[rows] = problem.loss.project_dual(problem.target[rows], u[rows])
        if weighted is not inside:
            weighted[rows] = problem.weigh(inside[rows], rows)
        part = weighted[rows]
        return [part * inside[rows], np.maximum(part, 0.0), np.maximum(-part, 0.0)]

    squares, up, down = sum_by_blocks(len(u), terms_of)
    has_sides = problem.fit_intercept and "piecewise_linear" in problem.loss.capabilities
    if has_sides and (np.abs(up - down) > _IMBALANCE * (up + down)).any():
        # Whoever checks makes the heavier side lighter, and allows for the change of V.
        inside = _balance_sides(problem, inside)
        weighted = problem.weigh(inside)
    V = -pull_rows(problem, centre, weighted)
    size = np.sqrt(squares) * (1 + 1e-6)
    # Once for these sums, once for those of whoever checks them.
    stretch = min(STRETCH, rounding.rows)
    terms = stretch + np.log2(rounding.rows / STRETCH + 2) + 16
    error = 3 * terms * _EPS * scale[:, None] * size
    point = DualPoint(inside, V - error, V + error)
    level = b + centre @ W
    radius = intercept_radius(problem, level)
    free = is_free(problem, error)
    shrink = _least_scale(problem.penalty, point.low, point.high, free)
    if (shrink < 1).any():
        shrink = np.where(shrink < 1, shrink * (1 - 16 * _EPS), 1.0)
        point = DualPoint(inside * shrink, point.low * shrink, point.high * shrink)
    most, least = objective.sum() + 2 * own_rounding.sum(), 2 * own_rounding.sum()
    held = Free.of(problem, free, W, float(most))
    lower = dual_value(problem, rounding, point, radius, held)
    gap = objective + 2 * own_rounding - lower
    # No objective is negative, and none is known better than to its rounding.
    proven = max(min(float(gap.sum()), most), least)
    witness = {"dual": point.u}
    if problem.fit_intercept:
        witness["centre"] = centre
    proven = checkable(proven, objective.sum())
    return Certificate.about(problem, "duality", W, b, objective, 2 * own_rounding, proven, witness)


def _rounding(problem: Problem, centre: Array | None, scale: Array | None) -> Rounding:
    """The constants of the bounds, without a pass if the sizes of the columns are known."""
    if centre is None or scale is None:
        return Rounding.of(problem)
    magnitude = (scale + np.sqrt(problem.total_weight) * np.abs(centre)) * (1 + 1e-8)
    return Rounding.of(problem, centre, magnitude)


def pull_rows(problem: Problem, centre: Array, weighted: Array) -> Array:
    """(X - centre)^T weighted, in short stretches of rows that are then added pairwise.

    A sum over n rows one after the other may lose n units in the last place, this one about as many
    as a stretch has rows.
    """
    return np.asarray(problem.design.summed(lambda part, own: _pulled(part, centre, own), weighted))


def _pulled(design: Design, centre: Array, weighted: Array) -> Array:
    """The same of one part of the rows."""
    n, k = weighted.shape
    sums = np.zeros((-(-n // STRETCH), k, len(centre)))
    size = _BLOCK_ROWS if n * len(centre) > _AT_ONCE else n

    def work(start: int) -> None:
        rows = slice(start, min(start + size, n))
        ((_, block),) = design.take(rows).blocks(size)
        own = sums[start // STRETCH : -(-rows.stop // STRETCH)]
        centred, part = block - centre if centre.any() else block, weighted[rows]
        for number, first in enumerate(range(0, len(block), STRETCH)):
            stretch = slice(first, first + STRETCH)
            own[number] = part[stretch].T @ centred[stretch]

    if size == n:
        work(0)  # threads would cost more
    else:
        run_strands(work, range(0, n, size))
    return np.ascontiguousarray(np.moveaxis(sums, 0, -1)).sum(axis=-1).T


def certify_ordered(problem: Problem, W: Array, b: Array, u: Array, order: Array) -> Certificate:
    """A certificate from a dual point and multipliers of the order.

    Parameters
    ----------
    problem : Problem
        Whose loss is "ordered".
    W, b : arrays of shape (d, k) and (k,)
    u : array of shape (n, k)
    order : array of shape (n, k - 1)
        Multipliers, not negative, of the pairs of neighbours in ascending order of the quantiles.
    """
    rounding = Rounding.of(problem).confirmable()
    centre = rounding.mean
    at = evaluate(problem, rounding, W, b)
    u = problem.loss.project_dual(problem.target, u)
    order = np.maximum(order, 0.0)
    lower_ones, higher_ones = problem.loss.ranks[:-1], problem.loss.ranks[1:]  # type: ignore[attr-defined]
    own = problem.weigh(u)
    weighted, magnitude = own.copy(), np.abs(own)
    weighted[:, lower_ones] += order
    weighted[:, higher_ones] -= order
    magnitude[:, lower_ones] += order
    magnitude[:, higher_ones] += order
    V, size = -pull_rows(problem, centre, weighted), np.zeros_like(W)
    for rows, block in problem.design.blocks(_BLOCK_ROWS):
        size += np.abs(block - centre).T @ magnitude[rows]
    # Once for these sums, once for those of whoever checks them.
    terms = STRETCH + np.log2(problem.n_samples / STRETCH + 2) + 16
    error = 2 * terms * _EPS * size
    imbalance = np.zeros(problem.n_targets)
    if problem.fit_intercept:
        # Whoever checks takes it from the multipliers of one sign, each by its share.
        imbalance = np.abs(sum_rows(weighted)) + 2 * rounding.sums * sum_rows(magnitude)
        sides = np.minimum(sum_rows(np.maximum(own, 0.0)), sum_rows(np.maximum(-own, 0.0)))
        error = (
            error + np.divide(imbalance, sides, out=np.zeros_like(sides), where=sides > 0) * size
        )
    penalty = problem.penalty
    free = is_free(problem, error)
    ends = [np.where(free, 0.0, end) for end in penalty.worst_ends(V - error, V + error)]
    # One factor for all targets: they share the multipliers of the order.
    shrink = float(np.min([penalty.dual_scale(end) for end in ends], initial=1.0))
    shrink = shrink * (1 - 16 * _EPS) if shrink < 1 else 1.0
    beyond = np.sum([penalty.conjugate_per_target(end * shrink) for end in ends], axis=0)
    beyond = beyond + Free.of(problem, free, W).gain(V, error)
    conjugates = problem.weigh(problem.loss.conjugate(problem.target, u * shrink))
    lower = -sum_rows(conjugates) - beyond
    scatter = sum_rows(np.abs(conjugates) + 2 * np.abs(own * problem.target))
    lower = lower - 2 * rounding.sums * (scatter + np.abs(beyond) + np.abs(lower))
    lower = lower - imbalance * intercept_radius(problem, b + centre @ W)
    most = (at.objective + 2 * at.objective_rounding).sum()
    gap = most - max(lower.sum(), 0.0)  # no objective is negative
    witness = {
        "dual": u * shrink,
        "order": order * shrink,
        "slack": np.array(_slack(problem, W, b)),
    }
    if problem.fit_intercept:
        witness["centre"] = centre
    gap, rounded = checkable(gap, at.objective.sum()), 2 * at.objective_rounding
    return Certificate.about(problem, "ordered duality", W, b, at.objective, rounded, gap, witness)


def _slack(problem: Problem, W: Array, b: Array) -> float:
    """By how much neighbours may cross at a row, rounding included."""
    ranks = problem.loss.ranks  # type: ignore[attr-defined]
    z = problem.scores(W, b)[:, ranks]
    crossing = float((z[:, :-1] - z[:, 1:]).max(initial=0.0))
    size = problem.design.column_largest() @ np.abs(W) + np.abs(b)
    largest = float(size.max()) + float(np.abs(problem.target).max(initial=0.0))
    return crossing + 4 * (problem.n_features + 4) * _EPS * largest
