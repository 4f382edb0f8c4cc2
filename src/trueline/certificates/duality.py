r"""Proof by a dual point, for every convex loss and penalty with a conjugate.

Any u with sum_i s_i u_i = 0 (only if there is an intercept) gives the lower bound

    D(u) = - sum_i s_i l_i*(u_i) - p*(-X^T (s u)).

The natural dual point is u = l'(z) at the current scores. It is moved into the domain of l*,
balanced so that the intercept's condition holds, and scaled until -X^T (s u) is in the domain of
p*. What imbalance rounding leaves, sum_i s_i u_i = e, would cost e b for an intercept b: the bound
is stated for intercepts up to a radius, abs(b) <= B, at the price of abs(e) B.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from trueline.certificates.base import Certificate
from trueline.certificates.evaluation import Evaluation, Rounding, evaluate, sum_rows
from trueline.problem import Problem

__all__ = ["DualPoint", "certify_duality", "dual_point", "duality_gap", "intercept_radius"]

Array = NDArray[np.float64]

_EPS = float(np.finfo(np.float64).eps)
# Intercepts this many times larger than the fitted one are still covered.
_RADIUS = 1000.0


class DualPoint(NamedTuple):
    """A feasible u, and V = -X^T (s u) moved outwards by the bound on its rounding."""

    u: Array
    V: Array


def intercept_radius(problem: Problem, b: Array) -> Array:
    """Up to which magnitude of the intercept the bound is stated."""
    y, weights = np.abs(problem.target), problem.weights
    if weights is not None:
        y = y[weights > 0]  # what does not count bounds nothing
    return _RADIUS * (np.abs(b) + y.max(axis=0, initial=1.0))


def dual_point(
    problem: Problem, rounding: Rounding, u: Array, correlation: Array | None = None
) -> DualPoint:
    """A feasible dual point near u.

    Parameters
    ----------
    problem : Problem
    rounding : Rounding
    u : array of shape (n, k)
    correlation : array of shape (d, k), optional
        X^T (s u), if it is known: the point then costs no product.
    """
    inside = problem.loss.project_dual(problem.target, u)
    if correlation is None or not np.array_equal(inside, u):
        correlation = problem.design.rmatvec(problem.weigh(inside))
    size = np.sqrt(sum_rows(problem.weigh(inside**2))) * (1 + 1e-6)
    # Once for the product, twice more for the shift and the two scalings of u below.
    error = rounding.products(3 * size)
    if problem.fit_intercept:
        inside, shift, room = _balance(problem, inside)
        moved = rounding.weight * shift
        correlation = (correlation - rounding.mean[:, None] * moved) * room
        error = error + rounding.mean_error[:, None] * np.abs(moved)
    # Outwards: for a penalty that is even, or one that looks at the positive side alone.
    V = -correlation
    V = np.where(V > -error, np.abs(V) + error, V - error)
    scale = problem.penalty.dual_scale(V)
    # The product could round just outside of the domain: step inside by a few units.
    scale = np.where(scale < 1.0, scale * (1.0 - 8 * _EPS), 1.0)
    return DualPoint(inside * scale, V * scale)


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


def dual_value(problem: Problem, rounding: Rounding, point: DualPoint, radius: Array) -> Array:
    """D(u) per target, on the safe side of rounding."""
    u, y = point.u, problem.target
    conjugates = problem.weigh(problem.loss.conjugate(y, u))
    penalty = problem.penalty.conjugate_per_target(point.V)
    # The term u y of a conjugate may cancel against the rest of it.
    size = sum_rows(np.abs(conjugates) + 2 * np.abs(problem.weigh(u * y))) + np.abs(penalty)
    value = -sum_rows(conjugates) - penalty - rounding.sums * size
    if problem.fit_intercept:
        weighted = problem.weigh(u)
        imbalance = np.abs(sum_rows(weighted)) + rounding.sums * sum_rows(np.abs(weighted))
        value = value - imbalance * radius
    return value


def duality_gap(
    problem: Problem, rounding: Rounding, at: Evaluation, b: Array
) -> tuple[Array, DualPoint]:
    """The gap per target with the natural dual point, rounding of both ends included."""
    point = dual_point(problem, rounding, at.u, at.correlation)
    lower = dual_value(problem, rounding, point, intercept_radius(problem, b))
    return at.objective + at.objective_rounding - lower, point


def certify_duality(problem: Problem, W: Array, b: Array, u: Array | None = None) -> Certificate:
    """A certificate from a dual point: the natural one, or a given one where that is better."""
    rounding = Rounding.of(problem).confirmable()
    at = evaluate(problem, rounding, W, b)
    gap, point = duality_gap(problem, rounding, at, b)
    if u is not None:
        given = dual_point(problem, rounding, u)
        lower = dual_value(problem, rounding, given, intercept_radius(problem, b))
        other = at.objective + at.objective_rounding - lower
        better = other < gap
        gap = np.where(better, other, gap)
        point = DualPoint(np.where(better, given.u, point.u), np.where(better, given.V, point.V))
    return Certificate(
        kind="duality",
        objective=float(at.objective.sum()),
        objective_rounding=float(at.objective_rounding.sum()),
        gap=float(gap.sum()),
        loss=problem.loss,
        penalty=problem.penalty,
        fit_intercept=problem.fit_intercept,
        coef=W,
        intercept=b,
        witness={"dual": point.u, "radius": intercept_radius(problem, b)},
    )
