r"""Proof that a point is a local minimum, for losses that are not convex.

The bound is that of :mod:`trueline.certificates.curvature` within its distance rho; beyond, nothing
is said. With a_i = (x_i - m, 1), M a diagonal and c_i the least curvature of the loss, of either
sign, at scores within rho sum_j |a_ij| M_j of z_i:

    M (sum_i s_i c_i a_i a_i^T + A) M >= nu,     rho >= 2 |M g| / nu,     gap <= |M g|^2 / (2 nu).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from trueline.certificates.base import Certificate, checkable
from trueline.certificates.evaluation import Evaluation, Rounding, evaluate
from trueline.problem import Problem

__all__ = ["certify_local"]

Array = NDArray[np.float64]

_EPS = float(np.finfo(np.float64).eps)
# Of what the curvature is at the point itself, so much is claimed within the distance.
_KEPT = 0.5
_BLOCK_ROWS = 2048


def certify_local(problem: Problem, W: Array, b: Array, centre: Array, basis: Array) -> Certificate:
    """The certificate of a point with one target; its gap is infinite where nothing is proven.

    Parameters
    ----------
    problem : Problem
        Whose penalty is quadratic, or none.
    W, b : arrays of shape (d, 1) and (1,)
    centre : array of shape (d,)
        Zero without an intercept.
    basis : array of shape (p,)
        The diagonal of M, the intercept's entry last.
    """
    rounding = Rounding.of(problem).confirmable()
    at = evaluate(problem, rounding, W, b)
    objective = float(at.objective.sum())
    steep = _steepness(problem, at, W, centre, basis)
    gap, witness = np.inf, {}
    here = _least_eigenvalue(problem, at, centre, basis, 0.0)
    if here > 0 and np.isfinite(steep):
        reach = 2.5 * steep / (_KEPT * here)
        if _least_eigenvalue(problem, at, centre, basis, reach) >= _KEPT * here:
            unseen = 1e-6 * float(at.objective_rounding.sum())
            gap = checkable(steep**2 / (2 * _KEPT * here) + unseen, objective, 1e-22)
            witness = {"about": centre, "diagonal": basis[:, None], "reach": np.array([reach])}
    return Certificate(
        kind="local",
        objective=objective,
        objective_rounding=4 * float(at.objective_rounding.sum()) + 64 * _EPS * abs(objective),
        gap=float(gap),
        loss=problem.loss,
        penalty=problem.penalty,
        fit_intercept=problem.fit_intercept,
        coef=W,
        intercept=b,
        witness=witness,
    )


def _steepness(problem: Problem, at: Evaluation, W: Array, centre: Array, basis: Array) -> float:
    """|M g|, with three times what rounding may add to it."""
    d = len(W)
    g = at.correlation - centre[:, None] * at.slope + problem.penalty.curvature * W
    error = at.correlation_rounding + np.abs(centre)[:, None] * at.slope_rounding
    error = error + 4 * _EPS * (np.abs(at.correlation) + np.abs(centre[:, None] * at.slope))
    square = float(((basis[:d, None] * (np.abs(g) + 3 * error)) ** 2).sum())
    if problem.fit_intercept:
        square += float((basis[d] * (np.abs(at.slope) + 3 * at.slope_rounding)).sum()) ** 2
    return float(np.sqrt(square)) * (1 + 1e-6)


def _least_eigenvalue(
    problem: Problem, at: Evaluation, centre: Array, basis: Array, reach: float
) -> float:
    """Of M (sum_i s_i c_i a_i a_i^T + A) M, on the safe side; minus infinity if it is not known."""
    d, level = problem.n_features, int(problem.fit_intercept)
    gram, size = np.zeros((d + level, d + level)), 0.0
    for rows, block in problem.design.blocks(_BLOCK_ROWS):
        y, z = problem.target[rows], at.scores[rows]
        scaled = np.hstack([block - centre, np.ones((len(block), level))]) * basis
        far = reach * np.abs(scaled).sum(axis=1, keepdims=True) * (1 + 1e-6)
        far = far + 1e-11 * (np.abs(z) + 1)  # more than the scores round by
        c = problem.weigh(problem.loss.least_curvature(y, z, far), rows)
        gram += (c * scaled).T @ scaled
        size += float((np.abs(c) * scaled**2).sum())
    lift = np.broadcast_to(problem.penalty.curvature, (d, 1))[:, 0] * basis[:d] ** 2
    gram[np.arange(d), np.arange(d)] += lift
    if not np.isfinite(gram).all():
        return -np.inf
    n = problem.n_samples
    units = 4 * (min(n, _BLOCK_ROWS) + n / _BLOCK_ROWS + 16 * len(gram) + 64) * _EPS
    return float(np.linalg.eigvalsh(gram)[0]) - units * (size + float(lift.sum()))
