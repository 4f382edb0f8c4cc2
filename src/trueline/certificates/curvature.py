r"""Proof by curvature around the answer, for losses that bend and elastic penalties or none.

Scores are written about a centre m of the columns, z_i = a_i.v with a_i = (x_i - m, 1) and v = (w,
b + m.w). With a diagonal matrix M, steps are measured by ||e|| = |M^-1 e|. Suppose that around v

    P(v + e) >= P(v) + g.e + nu/2 ||e||^2      for all ||e|| <= rho,        rho >= 2 |M g| / nu.

Within that distance P can fall by |M g|^2 / (2 nu) at most. On its edge P is no lower than P(v),
and by convexity it is so beyond. Thus

    gap <= |M g|^2 / (2 nu)      for all coefficients whatsoever.

Rows have the least curvature c_i that the loss takes at scores within rho sum_j |a_ij| M_j of z_i,
and nu is a lower bound on the smallest eigenvalue of M (sum_i s_i c_i a_i a_i^T + A) M, A the
penalty's curvature. Of Huber's loss all rows count that are on the parabola and stay there.

Of a penalty by absolute values, a_j |w_j|, g has a_j sign(w_j). Where w_j = 0 every slope up to a_j
is that of a tangent, and g has what is more.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from trueline.certificates.base import Certificate, checkable
from trueline.certificates.evaluation import Evaluation, Rounding, evaluate
from trueline.problem import Problem

__all__ = ["centred_sums", "certify_curvature", "shifted_sums"]

Array = NDArray[np.float64]

_EPS = float(np.finfo(np.float64).eps)
_BLOCK_ROWS = 2048
_UNDERFLOW = 1e-290
# Rows that may leave their piece of the loss within rho: more of them are not looked at singly.
_FEW = 0.02
# The share of their curvature that rows must keep within rho.
_KEPT = 0.9
# Columns whose means are so many spreads away from zero are centred before they are summed.
_FAR = 10.0


def certify_curvature(
    problem: Problem,
    W: Array,
    b: Array,
    centre: Array,
    basis: Array,
    coercivity: Array,
    spread: Array,
    curvatures: Array,
    rounding: Rounding | None = None,
) -> Certificate | None:
    """The certificate of a point; None where the curvature does not suffice.

    Parameters
    ----------
    problem : Problem
        Whose penalty is elastic (quadratic, of absolute values, both), or none.
    W, b : arrays of shape (d, k) and (k,)
    centre : array of shape (d,)
        Zero without an intercept.
    basis : array of shape (p, k)
        The diagonal of M for each target, the intercept's entry last.
    coercivity : array of shape (k,)
        Per target, a lower bound on the smallest eigenvalue of M (sum_i s_i h_i a_i a_i^T + A) M.
    spread : array of shape (d,)
        At least sqrt(sum_i s_i (x_ij - centre_j)^2).
    curvatures : array of shape (n, k)
        The curvatures h that the coercivity is about, those of the rows at this point or close by.
    rounding : Rounding, optional
        The data's constants, if they are already known.
    """
    rounding = (rounding or Rounding.of(problem)).confirmable()
    at = evaluate(problem, rounding, W, b)
    is_far = bool((rounding.accuracy.magnitude > _FAR * spread).any()) and problem.fit_intercept
    about = (
        centred_sums(problem, rounding, at, centre, spread) if is_far else shifted_sums(at, centre)
    )
    steep = _steepness(problem, at, W, about, basis)
    if not ((coercivity > 0) & np.isfinite(coercivity) & np.isfinite(steep)).all():
        return None
    s = np.ones(problem.n_samples) if problem.weights is None else problem.weights
    nu = coercivity.copy()
    reach = np.zeros_like(nu)
    # Error of one score: the sum over its row is at most the norm over all of them.
    heavy = 1.0 / np.sqrt(s.min())
    error = 2 * rounding.scores(W, b) * heavy
    wide = np.append(spread, np.sqrt(rounding.weight)) if problem.fit_intercept else spread
    for t in range(len(nu)):
        # Half of the curvature is left for the rows on the edge and for rounding.
        reach[t] = 2.001 * steep[t] / (0.5 * nu[t])
        # |a_ij| sqrt(s_i) is at most the norm of the whole column.
        row = float(wide @ basis[:, t]) * heavy
        room = reach[t] * row * (1 + 1e-9) + error[t]
        y, z = problem.target[:, t], at.scores[:, t]
        loss = problem.loss.of_target(t)
        # Losses without kinks bend a little less everywhere, others not at all but on their edges.
        keep = 1.0 if loss.kinks else _KEPT
        lost = keep * curvatures[:, t] - loss.least_curvature(y, z, np.full_like(z, room))
        edge = np.flatnonzero(lost > 0)
        if len(edge) > _FEW * len(z) + 1:
            return None
        nu[t] *= keep
        if len(edge):
            rows = problem.design.take(edge).toarray() - centre
            square = ((rows * basis[: rows.shape[1], t]) ** 2).sum(axis=1)
            square += basis[-1, t] ** 2 if problem.fit_intercept else 0.0
            nu[t] -= float((s[edge] * lost[edge]) @ square)
    terms = min(problem.n_samples, _BLOCK_ROWS) + problem.n_samples / _BLOCK_ROWS
    # Of a matrix whose diagonal is one: M is made so.
    unsure = 8 * (terms + 4 * len(basis) + 16) * _EPS * len(basis)
    if (nu - unsure < 0.5 * coercivity).any():
        return None
    nu = 0.5 * coercivity
    gap = float((steep**2 / (2 * nu)).sum()) * (1 + 1e-9) + _UNDERFLOW * problem.n_samples
    # Of fits that are exact nothing is left to compare with but the rounding of scores.
    scores = np.square(1 + np.abs(at.scores)) * (1 + np.abs(problem.target))
    unseen = 1e-6 * at.objective_rounding.sum() + 1e-28 * problem.weigh(scores).sum()
    gap = checkable(gap + float(unseen), at.objective.sum(), 1e-22)
    return Certificate(
        kind="curvature",
        objective=float(at.objective.sum()),
        objective_rounding=float(2 * at.objective_rounding.sum()),
        gap=gap,
        loss=problem.loss,
        penalty=problem.penalty,
        fit_intercept=problem.fit_intercept,
        coef=W,
        intercept=b,
        witness={"about": centre, "diagonal": basis, "coercivity": nu, "reach": reach},
    )


def shifted_sums(at: Evaluation, centre: Array) -> tuple[Array, Array]:
    """X_c^T S u from finished sums, and a bound on its error."""
    m = centre[:, None]
    error = at.correlation_rounding + np.abs(m) * at.slope_rounding
    return at.correlation - m * at.slope, error + 4 * _EPS * (
        np.abs(at.correlation) + np.abs(m * at.slope)
    )


def centred_sums(
    problem: Problem, rounding: Rounding, at: Evaluation, centre: Array, spread: Array
) -> tuple[Array, Array]:
    """The same from centred rows: columns far from zero cost no digits."""
    weighted = problem.weigh(at.u)
    total = np.zeros_like(at.correlation)
    for where, block in problem.design.blocks(_BLOCK_ROWS):
        total += (block - centre).T @ weighted[where]
    each = at.row_error + (rounding.accuracy.column_terms + 8) * _EPS * at.size
    return total, spread[:, None] * each


def _steepness(
    problem: Problem, at: Evaluation, W: Array, about: tuple[Array, Array], basis: Array
) -> Array:
    """|M g| per target, at its worst."""
    curvature, linear = (
        problem.penalty.curvature * W,
        np.broadcast_to(problem.penalty.linear, W.shape),
    )
    # Once for these sums, once for those of whoever checks them, and once for what they differ by.
    size = np.abs(about[0] + curvature + linear * np.sign(W)) + 3 * about[1]
    size = size + 16 * _EPS * (np.abs(curvature) + linear)
    size = np.maximum(size - np.where(W == 0, linear, 0.0), 0.0)
    square = ((basis[: len(W)] * size) ** 2).sum(axis=0)
    if problem.fit_intercept:
        square = square + (basis[-1] * (np.abs(at.slope) + 3 * at.slope_rounding)) ** 2
    return np.asarray(np.sqrt(square) * (1 + 1e-9))
