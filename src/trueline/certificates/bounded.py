r"""Proof by the gradient alone, for all coefficients within a stated radius.

Without a penalty (or a conjugate) the dual domain is a single point that rounding misses. Then
convexity and the gradient g bound what any other coefficients w' could gain:

    P(w) - P(w')  <=  sum_j abs(g_j) abs(w_j - w'_j)  <=  sum_j abs(g_j) radius_j

and with nonnegative coefficients, which can go down no further than to zero,

    P(w) - P(w')  <=  sum_j  max(-g_j radius_j, g_j min(w_j, radius_j)).

Squared losses of such coefficients need no radius: :mod:`trueline.certificates.cone` has a bound on
the coefficients themselves.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from trueline.certificates.base import Certificate, checkable
from trueline.certificates.cone import Cone, cone_gap, find_cone, is_cone
from trueline.certificates.duality import intercept_radius
from trueline.certificates.evaluation import Evaluation, Rounding, evaluate
from trueline.certificates.unpenalised import Directions, open_directions
from trueline.problem import Problem

__all__ = ["bounded_gap", "certify_bounded"]

Array = NDArray[np.float64]

_EPS = float(np.finfo(np.float64).eps)
# Coefficients this many times larger than the fitted ones are still covered.
_RADIUS = 10.0


def bounded_gap(
    problem: Problem,
    rounding: Rounding,
    at: Evaluation,
    W: Array,
    b: Array,
    directions: Directions | None = None,
) -> float:
    """The bound of the module's text, for a radius that covers what the data could suggest.

    ``directions`` are those of coefficients without a penalty, whose radius depends on how nearly
    their columns depend on each other.
    """
    slope = problem.penalty.gradient(W)
    gradient = at.correlation + slope
    error = at.correlation_rounding + 4 * _EPS * (np.abs(slope) + np.abs(gradient))
    norms = rounding.accuracy.magnitude[:, None]
    with np.errstate(divide="ignore", invalid="ignore"):
        # How far one column alone would move to take up the whole target.
        alone = np.where(norms > 0, rounding.target_size / norms, 0.0)
    radius = _RADIUS * (np.abs(W) + alone)
    if "nonnegative" in problem.penalty.capabilities:
        upward = np.maximum(error - gradient, 0.0) * radius
        downward = np.maximum(error + gradient, 0.0) * np.minimum(W, radius)
        gap = np.maximum(upward, downward).sum(axis=0)
    elif directions is None:
        gap = ((np.abs(gradient) + error) * radius).sum(axis=0)
    else:
        gap = directions.gain(gradient, error, W)
    if problem.fit_intercept:
        # The checker sums the slope as it sums any column.
        ones = np.sqrt(rounding.weight) * (rounding.accuracy.column_terms + 4) * _EPS * at.size
        steep = np.abs(at.slope) + at.slope_rounding + ones
        gap = gap + steep * intercept_radius(problem, b)
    # No objective is negative.
    most = float(at.objective.sum() + 2 * at.objective_rounding.sum())
    return min(float(gap.sum()) * (1 + 1e-10), most)


def certify_bounded(problem: Problem, W: Array, b: Array, cone: Cone | None = None) -> Certificate:
    """A certificate from the gradient alone; ``cone`` is found if it is of use and not given."""
    rounding = Rounding.of(problem).confirmable()
    at = evaluate(problem, rounding, W, b)
    witness = {}
    if is_cone(problem):
        cone = cone or find_cone(problem)
        witness = {} if cone is None else {"cone": cone.coef}
        gap = cone_gap(problem, rounding, at, W, cone)
    else:
        directions = open_directions(problem)
        gap = bounded_gap(problem, rounding, at, W, b, directions)
    return Certificate(
        kind="bounded",
        objective=float(at.objective.sum()),
        objective_rounding=2 * float(at.objective_rounding.sum()),
        gap=checkable(gap, at.objective.sum()),
        loss=problem.loss,
        penalty=problem.penalty,
        fit_intercept=problem.fit_intercept,
        coef=W,
        intercept=b,
        witness=witness,
    )
