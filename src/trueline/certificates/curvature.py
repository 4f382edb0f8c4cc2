r"""Proof by curvature around the answer, for losses that bend and quadratic penalties or none.

Scores are written about a centre m of the columns, z_i = a_i.v with a_i = (x_i - m, 1) and v = (w,
b + m.w). With a diagonal matrix M, steps are measured by ||e|| = |M^-1 e|. Suppose that around v

    P(v + e) >= P(v) + g.e + nu/2 ||e||^2      for all ||e|| <= rho,        rho >= 2 |M g| / nu.

Within that distance P can fall by |M g|^2 / (2 nu) at most. On its edge P is no lower than P(v), and
by convexity it is so beyond. Thus

    gap <= |M g|^2 / (2 nu)      for all coefficients whatsoever.

Rows have the least curvature c_i that the loss takes at scores within rho sum_j |a_ij| M_j of z_i,
and nu is a lower bound on the smallest eigenvalue of M (sum_i s_i c_i a_i a_i^T + A) M, A the
penalty's curvature. Of Huber's loss all rows count that are on the parabola and stay there.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from trueline.certificates.base import Certificate
from trueline.certificates.evaluation import Evaluation, Rounding, evaluate
from trueline.problem import Problem

__all__ = ["certify_curvature"]

Array = NDArray[np.float64]

_EPS = float(np.finfo(np.float64).eps)
_BLOCK_ROWS = 2048
_UNDERFLOW = 1e-290
# Rows that may leave their piece of the loss within rho: more of them are not looked at singly.
_FEW = 0.02


def certify_curvature(
    problem: Problem,
    W: Array,
    b: Array,
    centre: Array,
    basis: Array,
    coercivity: Array,
    rounding: Rounding | None = None,
) -> Certificate | None:
    """The certificate of a point; None where the curvature does not suffice.

    Parameters
    ----------
    problem : Problem
        Whose penalty is quadratic, or none.
    W, b : arrays of shape (d, k) and (k,)
    centre : array of shape (d,)
        Zero without an intercept.
    basis : array of shape (p,)
        The diagonal of M, the intercept's entry last; M_j^2 is at most 1 / sum_i s_i a_ij^2.
    coercivity : array of shape (k,)
        Per target, a lower bound on the smallest eigenvalue of M (sum_i s_i l_i'' a_i a_i^T + A) M.
    """
    rounding = (rounding or Rounding.of(problem)).confirmable()
    at = evaluate(problem, rounding, W, b)
    steep = _steepness(problem, at, W, centre, basis)
    if not ((coercivity > 0) & np.isfinite(coercivity)).all():
        return None
    s = np.ones(problem.n_samples) if problem.weights is None else problem.weights
    nu = coercivity.copy()
    reach = np.zeros_like(nu)
    scores = problem.scores(W, b)
    # Error of one score: the sum over its row is at most the norm over all of them.
    spread = 1.0 / np.sqrt(s.min())
    error = 2 * rounding.scores(W, b) * spread
    for t in range(len(nu)):
        # Half of the curvature is left for the rows on the edge and for rounding.
        reach[t] = 2.001 * steep[t] / (0.5 * nu[t])
        room = reach[t] * len(basis) * spread * (1 + 1e-9) + error[t]
        y, z = problem.target[:, t], scores[:, t]
        loss = problem.loss.of_target(t)
        lost = loss.curvature(y, z) - loss.least_curvature(y, z, np.full_like(z, room))
        edge = np.flatnonzero(lost > 0)
        if len(edge) > _FEW * len(z) + 1:
            return None
        if len(edge):
            rows = problem.design.take(edge).toarray() - centre
            square = ((rows * basis[: rows.shape[1]]) ** 2).sum(axis=1)
            square += basis[-1] ** 2 if problem.fit_intercept else 0.0
            nu[t] -= float((s[edge] * lost[edge]) @ square)
    terms = min(problem.n_samples, _BLOCK_ROWS) + problem.n_samples / _BLOCK_ROWS
    unsure = 8 * (terms + 4 * len(basis) + 16) * _EPS * len(basis) * problem.loss.curvature_bound
    if (nu - unsure < 0.5 * coercivity).any():
        return None
    nu = 0.5 * coercivity
    gap = float((steep**2 / (2 * nu)).sum()) * (1 + 1e-9) + _UNDERFLOW * problem.n_samples
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


def _steepness(problem: Problem, at: Evaluation, W: Array, centre: Array, basis: Array) -> Array:
    """|M g| per target, at its worst."""
    m = centre[:, None]
    bend = problem.penalty.curvature * W
    g = at.correlation - m * at.slope + bend
    # Once for these sums, once for those of whoever checks them, and once for what they differ by.
    error = 3 * (at.correlation_rounding + np.abs(m) * at.slope_rounding)
    error = error + 16 * _EPS * (np.abs(at.correlation) + np.abs(m * at.slope) + np.abs(bend))
    square = ((basis[: len(W), None] * (np.abs(g) + error)) ** 2).sum(axis=0)
    if problem.fit_intercept:
        square = square + (basis[-1] * (np.abs(at.slope) + 3 * at.slope_rounding)) ** 2
    return np.asarray(np.sqrt(square) * (1 + 1e-9))
