"""Proofs by the curvature around a point, for solvers that have no Hessian of their own at hand."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from trueline.certificates.base import Certificate
from trueline.certificates.curvature import certify_curvature
from trueline.problem import Problem
from trueline.solvers.newton.dense.descent import Factor, curvature_basis
from trueline.solvers.newton.dense.rows import StandardRows

__all__ = ["better_by_curvature"]

Array = NDArray[np.float64]

# Hessians of more columns cost more than their proofs are worth.
_MOST_COLUMNS = 500
# Gaps that need no second proof, relative to the objective.
_GOOD = 1e-9


def better_by_curvature(
    problem: Problem, found: Certificate, rows: StandardRows | None = None
) -> Certificate:
    """A certificate, or that of the same point by curvature, where this says more.

    No scale of the columns can harm it, but it needs the Hessian of all of them.
    """
    loss = problem.loss.capabilities
    is_single = problem.n_targets == 1 or "coupled" not in loss
    if found.gap <= _GOOD * abs(found.objective) or not (is_single and "curvature" in loss):
        return found
    if problem.n_features > _MOST_COLUMNS or "elastic" not in problem.penalty.capabilities:
        return found
    W, b = found.coef, found.intercept
    rows = rows or StandardRows.of(problem.design, problem.weights, problem.fit_intercept)
    curvatures = np.broadcast_to(problem.penalty.curvature, W.shape)
    if not (np.delete(curvatures, rows.kept, axis=0) > 0).all():
        return found
    scores, pairs, curved = problem.scores(W, b), [], []
    held = np.arange(len(rows.kept))
    for t in range(problem.n_targets):
        curved.append(problem.loss.of_target(t).curvature(problem.target[:, t], scores[:, t]))
        H = rows.gram_of(rows.weights * curved[t])
        H[held, held] += curvatures[rows.kept, t] / rows.scale[rows.kept] ** 2
        pairs.append(curvature_basis(rows, Factor(H), curvatures[:, t]))
    nu, basis = np.array([nu for nu, _ in pairs]), np.stack([M for _, M in pairs], axis=1)
    spread = rows.scale * math.sqrt(rows.total_weight) * (1 + 1e-6)
    bent = np.stack(curved, axis=1)
    proof = certify_curvature(problem, W, b, rows.mean, basis, nu, spread, bent)
    return proof if proof is not None and proof.gap < found.gap else found
