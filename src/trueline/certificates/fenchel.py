r"""Proofs for squared loss by the residual as the dual point: the duality gap of the lasso.

With a penalty made of coordinates (the lasso and its relatives), the coefficients are the witness.
Let r = y - X w - b be the residual, e = sum_i s_i r_i its imbalance (zero but for rounding), r~ =
r - e / S the balanced one, S the sum of the weights, and q = X^T (s r~). For any t in [0, 1] such
that t q is in the domain of p*, the dual point t r~ proves

    P(w, b) - P*  <=  1/2 (1 - t)^2 ||r~||_s^2  +  e^2 / (2 S)
                      +  sum_j ( p_j(w_j) + p_j*(t q_j) - t q_j w_j ),

in which nothing cancels: every term vanishes at the optimum (the duality gap, with the primal
objective and the dual one subtracted by hand; O. Fercoq, A. Gramfort, J. Salmon, "Mind the duality
gap", ICML 2015, eq. 6). Rounding of q, abs(error) <= d_j, is covered by the worst ends of its
interval.

Without an intercept e is left out. A coefficient without any penalty contributes
abs(t q_j) (R_j + abs(w_j)), and the proof is about abs(w_j) <= R_j.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from trueline.certificates.base import Certificate, checkable
from trueline.certificates.evaluation import Evaluation, Rounding, evaluate, unpenalised
from trueline.penalties import Penalty
from trueline.penalties.group import BlockNorms
from trueline.problem import MomentsProblem, Problem

Array = NDArray[np.float64]

_EPS = float(np.finfo(np.float64).eps)
# Unpenalised coefficients this many times larger than the fitted ones are still covered.
_RADIUS = 1000.0
_CHECKER_ROWS = 2048


def is_fenchel(problem: Problem | MomentsProblem) -> bool:
    """Whether this proof applies: squared loss, coordinates, zero in the domain."""
    penalty, known = problem.penalty, problem.penalty.capabilities
    if "quadratic" not in problem.loss.capabilities or "coordinates" not in known:
        return False
    if "elastic" in known:  # without bounds
        return True
    return bool(np.all(np.asarray(penalty.lower) <= 0) and np.all(np.asarray(penalty.upper) >= 0))


def residual_gap(
    penalty: Penalty,
    W: Array,
    loss: Array,
    q: Array,
    error: Array,
    imbalance: Array,
    reach: Array,
) -> tuple[Array, Array]:
    """The bound of the module's text and its t, per target.

    Parameters
    ----------
    penalty : Penalty
    W : array of shape (d, k)
    loss : array of shape (k,)
        At least 1/2 ||r~||_s^2.
    q, error : arrays of shape (d, k)
    imbalance : array of shape (k,)
        At least e^2 / (2 S).
    reach : array of shape (d, k)
        R_j, infinite where the penalty bounds the coefficient by itself.
    """
    free = np.isfinite(reach)
    ends = [np.where(free, 0.0, end) for end in penalty.worst_ends(q - error, q + error)]
    t = np.min([penalty.dual_scale(end) for end in ends], axis=0) * (1 - 8 * _EPS)
    value = penalty.value_per_target(W)
    conjugate = np.sum([penalty.conjugate_per_target(t * end) for end in ends], axis=0)
    product = np.where(free, 0.0, q * W)
    size = value + conjugate + np.sum(np.abs(product) + error * np.abs(W), axis=0)
    rest = np.where(free, (np.abs(q) + error) * (np.where(free, reach, 0.0) + np.abs(W)), 0.0)
    terms = value + conjugate - t * np.sum(product, axis=0) + t * np.sum(error * np.abs(W), axis=0)
    rounding = (len(W) + 16) * _EPS * size
    # One factor for all targets: the checker knows the sum of their losses.
    gap = np.max((1 - t) ** 2) * loss + imbalance + terms + np.sum(rest, axis=0) + rounding
    return gap, t


def coefficient_reach(problem: Problem | MomentsProblem, W: Array, alone: Array) -> Array:
    """R_j for coefficients without a penalty, infinite for others.

    ``alone`` is how far one column by itself would move to take up the whole target.
    """
    return np.where(unpenalised(problem), _RADIUS * (np.abs(W) + alone), np.inf)


def certify_fenchel(
    problem: Problem,
    W: Array,
    b: Array,
    rounding: Rounding | None = None,
    at: Evaluation | None = None,
    floor: float = 1e-14,
) -> Certificate:
    """The certificate of a point, from the rows; what is known already is not computed again.

    Below ``floor`` times the objective nothing is claimed; loops, which ask for the gap, take 0.
    """
    rounding = (rounding or Rounding.of(problem)).confirmable()
    at = at or evaluate(problem, rounding, W, b)
    g, error, slope, slope_error = at.at_best_intercept(rounding, problem.fit_intercept)
    loss = at.objective - problem.penalty.value_per_target(W) + at.objective_rounding
    with np.errstate(divide="ignore", invalid="ignore"):
        norms = rounding.accuracy.magnitude[:, None]
        alone = np.where(norms > 0, rounding.target_size / norms, 0.0)
    reach = coefficient_reach(problem, W, alone)
    imbalance = (np.abs(slope) + slope_error) ** 2 / (2 * rounding.weight)
    gap, _ = residual_gap(problem.penalty, W, loss, -g, error, imbalance, reach)
    return _certificate(problem, W, b, at.objective, at.objective_rounding, gap, floor)


def certify_from_moments(
    problem: MomentsProblem, W: Array, b: Array, slopes: Array | None = None
) -> Certificate:
    """The certificate of a point, from the moments: the rows are not read.

    The checker will read them. Its own rounding, which follows from the sizes of the columns, is
    part of the claim.

    Parameters
    ----------
    problem : MomentsProblem
    W, b : arrays of shape (d, k) and (k,)
    slopes : array of shape (n, k), optional
        X W + b - y, less its mean if there is an intercept: t times that is the dual point that
        norms of blocks are to be shown. All entries of a block err together.
    """
    centred = problem.moments
    moments = centred if problem.fit_intercept else centred.about_zero()
    gradient, error = moments.gradient(W)
    square, square_error = moments.residual_square(W)
    rows, penalty = moments.count, problem.penalty
    # sqrt(sum s x^2), about zero, and what the checker's sums of products can lose against it.
    size = np.sqrt(moments.x_size + moments.weight * moments.x_mean**2)
    target = np.sqrt(moments.y_size + moments.weight * moments.y_mean**2)
    reach_of_scores = size @ np.abs(W) + np.sqrt(moments.weight) * np.abs(b) + target
    row_error = (moments.n_features + 8) * _EPS * reach_of_scores
    terms = min(rows, _CHECKER_ROWS) + rows / _CHECKER_ROWS + 12
    length = np.sqrt(square + square_error)
    error = error + 2 * size[:, None] * (row_error + terms * _EPS * length)
    sums = (np.log2(rows + 2) + _CHECKER_ROWS + 40) * _EPS
    loss_error = length * row_error + row_error**2 + sums * square + square_error
    offset = imbalance = np.zeros(len(b))
    if problem.fit_intercept:
        # b = y_mean - x_mean.w balances the residual, but for its own rounding and the checker's.
        slope = moments.weight * (moments.y_mean - moments.x_mean @ W - b)
        own = np.sqrt(moments.weight) * (2 * row_error + (terms + 4) * _EPS * length)
        own = own + moments.weight * moments.mean_unit * reach_of_scores / np.sqrt(moments.weight)
        offset = slope**2 / (2 * moments.weight)
        imbalance = (np.abs(slope) + own) ** 2 / (2 * moments.weight)
        error = error + np.abs(moments.x_mean)[:, None] * own
    with np.errstate(divide="ignore", invalid="ignore"):
        alone = np.where(size[:, None] > 0, target / size[:, None], 0.0)
    reach = coefficient_reach(problem, W, alone)
    value = penalty.value_per_target(W)
    loss = 0.5 * square + loss_error
    if isinstance(penalty, BlockNorms):
        error = error + penalty.along(gradient, 3 * error)
    gap, t = residual_gap(penalty, W, loss, -gradient, error, imbalance, reach)
    rounding = loss_error + (imbalance - offset) + (len(W) + 8) * _EPS * value + 1e-290
    found = _certificate(problem, W, b, 0.5 * square + offset + value, rounding, gap, 1e-14)
    if slopes is None:
        return found
    return replace(found, kind="duality", witness={"dual": slopes * t})


def _certificate(
    problem: Problem | MomentsProblem,
    W: Array,
    b: Array,
    objective: Array,
    rounding: Array,
    gap: Array,
    floor: float,
) -> Certificate:
    claimed = checkable(gap.sum(), objective.sum(), floor)
    return Certificate.about(problem, "fenchel", W, b, objective, 2 * rounding, claimed)
