r"""Proof for quantiles that must not cross: a dual point and multipliers of the order.

For targets 1, ..., k in ascending order of their quantiles, u in the domain of the conjugates and
multipliers m_ij >= 0 of z_ij <= z_i,j+1, let p_ij = m_ij - m_i,j-1 (m_i0 = m_ik = 0). Every W, b
whose scores are in order at all rows fulfils sum_ij p_ij z_ij <= 0, so that

    P(W, b) >= P + sum_ij p_ij z_ij >= - sum_ij s_i l_j*(u_ij) - penalty*(-X^T (s u + p))

as long as sum_i (s_i u_ij + p_ij) = 0 for every j (only if there is an intercept; what rounding
leaves is paid for as in :mod:`trueline.certificates.duality`).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from trueline.certificates.base import Certificate, checkable
from trueline.certificates.duality import STRETCH, intercept_radius, pull_rows
from trueline.certificates.evaluation import Rounding, evaluate, sum_rows
from trueline.certificates.unpenalised import Free, is_free
from trueline.problem import Problem

__all__ = ["certify_ordered"]

Array = NDArray[np.float64]

_EPS = float(np.finfo(np.float64).eps)
_BLOCK_ROWS = 2048


def certify_ordered(
    problem: Problem, W: Array, b: Array, u: Array, order: Array, centre: Array | None = None
) -> Certificate:
    """A certificate from a dual point and multipliers of the order.

    Parameters
    ----------
    problem : Problem
        Whose loss is "ordered".
    W, b : arrays of shape (d, k) and (k,)
    u : array of shape (n, k)
    order : array of shape (n, k - 1)
        Multipliers, not negative, of the pairs of neighbours in ascending order of the quantiles.
    centre : array of shape (d,), optional
        By default the means of the columns; zero without an intercept.
    """
    rounding = Rounding.of(problem).confirmable()
    centre = rounding.mean if centre is None else centre
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
