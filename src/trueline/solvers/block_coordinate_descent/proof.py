r"""The certificate of a fit with norms of blocks: a dual point, safe from rounding in every entry.

As in :mod:`trueline.certificates.duality`, any u with sum_i s_i u_i = 0 (with an intercept) gives

    P* >= - sum_i s_i l_i*(u_i) - p*(V),     V = -X^T (s u).

V is known up to a rounding of e_j. A norm of a block grows with the magnitude of each of its
entries, so that p* is largest at abs(V) + e, entry by entry. Coefficients without any penalty cost
abs(V_j) R_j for abs(w_j) <= R_j.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from trueline.certificates.base import Certificate, checkable
from trueline.certificates.duality import DualPoint, dual_value, intercept_radius
from trueline.certificates.evaluation import Evaluation, Free, Rounding, evaluate, sum_rows
from trueline.design import as_design
from trueline.design.dense import DenseDesign
from trueline.penalties import NoPenalty
from trueline.penalties.group import BlockNorms
from trueline.problem import Problem

__all__ = ["certify_blocks"]

Array = NDArray[np.float64]

_EPS = float(np.finfo(np.float64).eps)
_UNDERFLOW = 1e-290


def certify_blocks(
    problem: Problem, W: Array, b: Array, rounding: Rounding | None = None
) -> Certificate:
    """The certificate of a point, for squared loss; the data's constants if they are known."""
    penalty = problem.penalty
    assert isinstance(penalty, BlockNorms)
    rounding = (rounding or Rounding.of(problem)).confirmable()
    at = _evaluate(problem, rounding, W, b)
    u = at.u
    if problem.fit_intercept:
        for _ in range(2):  # the second round removes the rounding of the first
            u = u - sum_rows(problem.weigh(u)) / problem.total_weight
    size = np.sqrt(sum_rows(problem.weigh(u**2))) * (1 + 1e-6)
    V = problem.design.rmatvec(problem.weigh(u))
    outer = np.abs(V) + rounding.products(3 * size)
    free = penalty.unpenalised(W.shape)
    t = penalty.dual_scale(np.where(free, 0.0, outer)) * (1 - 8 * _EPS)
    point = DualPoint(u * t, outer * t, outer * t)
    radius = intercept_radius(problem, b)
    lower = dual_value(problem, rounding, point, radius, Free.of(problem, free, W))
    lower = lower - _margin(problem, rounding, point)
    gap = at.objective + at.objective_rounding - lower
    return Certificate(
        kind="duality",
        objective=float(at.objective.sum()),
        objective_rounding=2 * float(at.objective_rounding.sum()),
        gap=checkable(gap.sum(), at.objective.sum()),
        loss=problem.loss,
        penalty=penalty,
        fit_intercept=problem.fit_intercept,
        coef=W,
        intercept=b,
        witness={"dual": point.u},
    )


def _evaluate(problem: Problem, rounding: Rounding, W: Array, b: Array) -> Evaluation:
    """The problem at a point; columns whose coefficients are zero need not be read for it."""
    used = np.flatnonzero(W.any(axis=1))
    design = problem.design
    if not isinstance(design, DenseDesign) or 2 * len(used) > len(W):
        return evaluate(problem, rounding, W, b)
    accuracy = rounding.accuracy._replace(magnitude=rounding.accuracy.magnitude[used])
    part = replace(rounding, accuracy=accuracy, mean=rounding.mean[used])
    smaller = replace(problem, design=as_design(design.X[:, used]), penalty=NoPenalty())
    at = evaluate(smaller, part, W[used], b)
    value = problem.penalty.value_per_target(W)
    return at._replace(
        objective=at.objective + value,
        objective_rounding=at.objective_rounding + (len(W) + 8) * _EPS * np.abs(value),
    )


def _margin(problem: Problem, rounding: Rounding, point: DualPoint) -> Array:
    """What the checker's own rounding may take: it adds up the same terms in another way."""
    terms = np.abs(problem.weigh(problem.loss.conjugate(problem.target, point.u)))
    products = np.abs(problem.weigh(point.u * problem.target))
    return rounding.sums * sum_rows(terms + 2 * products)
