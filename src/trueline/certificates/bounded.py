r"""Proof by the gradient alone, for all coefficients within a stated radius.

Without a penalty (or a conjugate) the dual domain is a single point that rounding misses. Then
convexity and the gradient g bound what any other coefficients w' could gain:

    P(w) - P(w')  <=  sum_j abs(g_j) abs(w_j - w'_j)  <=  sum_j abs(g_j) radius_j

and with nonnegative coefficients, which can go down no further than to zero,

    P(w) - P(w')  <=  sum_j  max(-g_j radius_j, g_j min(w_j, radius_j)).

Residuals of such coefficients need no radius, by a bound on the coefficients themselves.

How large coefficients can be that are not negative.

Let A be the weighted columns, about their means if there is an intercept and of length one, and let
c >= 0 minimise |A c|^2 + (1 - sum c)^2. Its conditions say p = A^T A c >= 1 - sum c for every
column. Any v >= 0 with an objective of at most P therefore has

    p.v = (A c).(A v) <= R(P) + |A c| |y|,

R the bound of the loss on (A c).r for its residuals r (|A c| sqrt(2 P) for squares), unless a
mixture of columns vanishes and p with it. By convexity, with g the gradient at w,

    P(w) - P(v) <= g.w - g.v <= g.w + max_j (-g_j / p_j) p.v.

That is linear in what rounding leaves of g. For squares there is a second bound, quadratic in it.
Let F be the columns whose gradient may be negative. With h the least-squares solution of
X_F^T S X_F h = g_F, the residuals less X_F h have no gradient in F, and one of at least
g_j - |x_j| |X_F h| >= 0 elsewhere: by Fenchel and Young they prove

    P(w) - P(v) <= |X_F h|^2 / 2 + sum_j g_j w_j  (j not in F).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import nnls

from trueline.certificates.base import Certificate, checkable
from trueline.certificates.duality import intercept_radius
from trueline.certificates.evaluation import (
    Directions,
    Evaluation,
    Rounding,
    evaluate,
    open_directions,
)
from trueline.certificates.quadratic import proven_coercivity
from trueline.problem import Problem

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
        is_loose = not gap <= _LOOSE * float(at.objective.sum())
        if is_loose and "quadratic" in problem.loss.capabilities:
            sharp = _about_means(problem, rounding.mean, W)
            gap = min(gap, cone_gap(problem, rounding, at, W, cone, sharp[:2]))
            gap = min(gap, _face_gap(problem, rounding, at, W, *sharp))
    else:
        directions = open_directions(problem)
        gap = bounded_gap(problem, rounding, at, W, b, directions)
    gap, rounded = checkable(gap, at.objective.sum()), 2 * at.objective_rounding
    return Certificate.about(problem, "bounded", W, b, at.objective, rounded, gap, witness)


# Of the objective: a gap above this is worth a second look.
_LOOSE = 1e-12
# What is left of a mixture of columns below this is rounding.
_LEAST = 1e-10
# Active sets that take no longer than the fit itself.
_MOST_ROWS, _MOST_COLUMNS = 1000, 20_000


class Cone(NamedTuple):
    """c, p from below, |A c| and its largest entry from above, in units of the data; |A c| |y|."""

    coef: Array
    slopes: Array
    norm: float
    largest: float
    target: Array


def is_cone(problem: Problem) -> bool:
    """Whether the bound is about this problem: residuals, coefficients that are not negative."""
    loss, penalty = problem.loss, problem.penalty
    is_bounded = "smooth" in loss.capabilities and np.isfinite(
        loss.most_residual(1.0, 1.0, 1.0, 1.0)
    )
    return is_bounded and {"quadratic", "nonnegative"} <= penalty.capabilities


def find_cone(problem: Problem) -> Cone | None:
    """The numbers c of the module's text, None if a mixture of columns vanishes."""
    design, weights = problem.design, problem.weights
    n, d = design.shape
    if min(n, d) > _MOST_ROWS or d > _MOST_COLUMNS:
        return None
    mean = design.column_means(weights) if problem.fit_intercept else np.zeros(d)
    s = np.ones(n) if weights is None else weights
    squares, total = design.column_squares(weights, mean), design.column_squares(weights, None)
    varies = squares > (1e2 * n * _EPS) ** 2 * total
    if not (varies | _is_constant(problem)).all():  # rounding hides how a column varies
        return None
    scale = np.where(varies, 1.0 / np.sqrt(np.where(varies, squares, 1.0)), 0.0)
    R: Array = np.zeros((0, d))
    for where, block in design.blocks(2048):
        part = np.sqrt(s[where])[:, None] * ((block - mean) * scale)
        R = np.asarray(np.linalg.qr(np.vstack([R, part]), mode="r"))
    used = np.flatnonzero(varies)
    A = np.vstack([R[:, used], np.ones(len(used))])
    if not len(used):
        return None
    try:
        c, _ = nnls(A, np.append(np.zeros(len(R)), 1.0), maxiter=max(100, 10 * len(used)))
    except RuntimeError:
        return None
    mixture = A[:-1] @ c
    norm = float(np.linalg.norm(mixture)) * (1 + 1e-3)
    slopes = np.zeros(d)
    slopes[used] = A[:-1].T @ mixture
    if not slopes[used].min() > _LEAST * norm:
        return None
    coef = np.zeros(d)
    coef[used] = scale[used] * c
    level = problem.weigh(problem.target).sum(axis=0) / problem.total_weight
    y = problem.target - (level if problem.fit_intercept else 0.0)
    entries = design.matvec(coef[:, None]) - mean @ coef
    return Cone(
        coef,
        np.divide(slopes, scale, out=np.zeros(d), where=varies) * (1 - 1e-3),
        norm,
        float(np.abs(entries[s > 0]).max(initial=0.0)) * (1 + 1e-3),
        norm * np.sqrt(problem.weigh(y**2).sum(axis=0)) * (1 + 1e-6),
    )


def _is_constant(problem: Problem) -> NDArray[np.bool_]:
    """Columns whose coefficients change nothing: all alike beside an intercept, or zero."""
    out = np.ones(problem.n_features, dtype=bool)
    first = np.zeros(problem.n_features)
    for number, (_, block) in enumerate(problem.design.blocks(2048)):
        first = block[0] if number == 0 and problem.fit_intercept else first
        out &= (block == first).all(axis=0)
    return out


def cone_gap(
    problem: Problem,
    rounding: Rounding,
    at: Evaluation,
    W: Array,
    cone: Cone | None,
    sharp: tuple[Array, Array] | None = None,
) -> float:
    """The bound of the module's text; without a cone no more than that none is below zero.

    ``sharp`` is the gradient at the best intercept and its error, where they are known better than
    from the products at the point: offsets of the columns cost those their digits twice.
    """
    ceiling = float(at.objective.sum() + 2 * at.objective_rounding.sum())
    if cone is None:
        return ceiling
    steep = np.abs(at.slope) + at.slope_rounding if problem.fit_intercept else np.zeros(W.shape[1])
    # At the best intercept, as the dual point of whoever checks.
    g = at.correlation - rounding.mean[:, None] * at.slope * problem.fit_intercept
    error = 2 * at.correlation_rounding + 8 * _EPS * np.abs(g)
    error = error + (rounding.mean_error + 4 * _EPS * np.abs(rounding.mean))[:, None] * steep
    own_curvature = np.full(W.shape[1], rounding.weight)
    if problem.fit_intercept and "quadratic" not in problem.loss.capabilities:
        # Where only some rows have curvature, a change of the intercept moves their slopes alone.
        curvature = problem.loss.curvature(problem.target, at.scores)
        own_curvature = problem.weigh(curvature).sum(axis=0)
        error = error + 2 * problem.design.column_largest()[:, None] * steep
    if sharp is not None:
        g, error = sharp
    held = cone.slopes[:, None] > 0
    rise = np.maximum(error - g, 0.0)
    most = np.divide(rise, cone.slopes[:, None], out=np.zeros_like(g), where=held).max(axis=0)
    size = cone.target + problem.loss.most_residual(
        ceiling, rounding.weight, cone.norm, cone.largest
    )
    back = np.where(held, np.maximum(g + error, 0.0) * W, 0.0).sum(axis=0)
    levels = np.divide(
        2 * steep**2,
        own_curvature,
        out=np.full_like(own_curvature, np.inf),
        where=own_curvature > 0,
    )
    found = float((most * size + back).sum()) + problem.penalty.value(W)
    if problem.fit_intercept:
        found += float(levels.sum())
    return min(found * (1 + 1e-6), ceiling)


def _face_gap(
    problem: Problem,
    rounding: Rounding,
    at: Evaluation,
    W: Array,
    g: Array,
    error: Array,
    norms: Array,
) -> float:
    """The bound that is quadratic in the gradient; infinite where it is none."""
    if np.any(problem.penalty.curvature):
        return np.inf
    changes, levels = ~_is_constant(problem), np.zeros(W.shape[1])
    if problem.fit_intercept:
        levels = (np.abs(at.slope) + at.slope_rounding) ** 2 / (2 * rounding.weight)
    # The intercept and the columns move the residuals at right angles to each other.
    total = float(levels.sum())
    for t in range(W.shape[1]):
        own, off = np.where(changes, g[:, t], 0.0), np.where(changes, error[:, t], 0.0)
        face = own - off < 0
        for _ in range(3):
            moved = _length_on(problem, rounding, face, own, off)
            further = off + changes * norms * moved
            wider = face | (own - further < 0)
            if (wider == face).all() or not np.isfinite(moved):
                break
            face = wider
        else:
            return np.inf
        total += 0.5 * moved**2 + float(((own + further) * W[:, t])[~face].sum())
    return total * 1.25


def _about_means(problem: Problem, mean: Array, W: Array) -> tuple[Array, Array, Array]:
    """The gradient at the best intercept, its error, and the norms of the columns.

    All about the means: offsets of the columns cost no digits.
    """
    s = np.ones(problem.n_samples) if problem.weights is None else problem.weights
    s, total, y = s[:, None], problem.total_weight, problem.target
    y = y - (s * y).sum(axis=0) / total if problem.fit_intercept else y
    r, size = np.empty(y.shape), np.empty(y.shape)
    for where, block in problem.design.blocks(2048):
        centred = block - mean
        r[where] = centred @ W - y[where]
        size[where] = np.abs(centred) @ np.abs(W) + np.abs(y[where])
    if problem.fit_intercept:
        r = r - (s * r).sum(axis=0) / total
    # Of a row, of sums over rows, and what is left of a sum that should vanish.
    terms = min(len(r), 2048) + len(r) / 2048 + 16
    off = (len(W) + 8) * _EPS * size + terms * _EPS * np.abs(r)
    off = off + (s * off).sum(axis=0) / total * problem.fit_intercept
    g, error, squares = np.zeros(W.shape), np.zeros(W.shape), np.zeros(len(W))
    for where, block in problem.design.blocks(2048):
        centred = block - mean
        g += centred.T @ (s[where] * r[where])
        error += np.abs(centred).T @ (s[where] * off[where])
        squares += (s[where, 0] @ centred**2) * 1.01
    return g, 2 * error, np.sqrt(squares)


def _length_on(
    problem: Problem, rounding: Rounding, face: NDArray[np.bool_], g: Array, error: Array
) -> float:
    """|X_F h| of the module's text, from above; infinite if the columns depend on each other."""
    columns, design = np.flatnonzero(face), problem.design
    s = np.ones(design.shape[0]) if problem.weights is None else problem.weights
    mean = rounding.mean[columns]
    R: Array = np.zeros((0, len(columns)))
    for where, block in design.blocks(2048):
        part = np.sqrt(s[where])[:, None] * (block[:, columns] - mean)
        R = np.asarray(np.linalg.qr(np.vstack([R, part]), mode="r"))
    scale = np.abs(R).max(axis=0, initial=0.0)
    if len(R) < len(columns) or not (scale > 0).all():
        return np.inf
    try:
        M = np.linalg.inv(R / scale) / scale[:, None]
    except np.linalg.LinAlgError:
        return np.inf
    blocks = ((where, block[:, columns]) for where, block in design.blocks(2048))
    about = mean if problem.fit_intercept else None
    nu = proven_coercivity(blocks, s, M, np.zeros(len(columns)), about)
    own, unsure = g[columns], error[columns] + len(columns) * _EPS * np.abs(g[columns])
    along = np.abs(M.T @ own) + np.abs(M).T @ unsure
    return float(np.sqrt((along**2).sum() / nu)) if nu > 0 else np.inf
