r"""Proofs for squared loss: by its curvature, and by the residual as the dual point.

*Quadratic*: with a quadratic penalty or none, the objective is a quadratic function. At
coefficients w with gradient g (intercept eliminated) and Hessian H = X_c^T S X_c + A, for every
step e

    P(w + e) = P(w) + g.e + 1/2 e^T H e.

A matrix M of shape (d, r) whose columns span the steps that are considered, with a number nu such
that M^T H M >= nu I, turns this into the bound

    P(w) - min over c of P(w + M c)  <=  || M^T g ||^2 / (2 nu).

With M = R^{-1}, R the triangular factor of H, nu is nearly 1 and the bound nearly exact
(1/2 g^T H^{-1} g). A basis of the row space serves when H is singular, a diagonal M when the
penalty's own curvature suffices. An intercept that is off by the amount t costs W t^2 / 2 more,
W being the total weight.

With nonnegative coefficients M is diagonal, M = diag(t), and the bound separates:

    P(w) - P(w + e) <= sum_j  max over e_j >= -w_j of  - g_j e_j - nu e_j^2 / (2 t_j^2).

*Fenchel*: with a penalty made of coordinates, the coefficients are the witness. Let r = y - X w - b
be the residual, e = sum_i s_i r_i its imbalance (zero but for rounding), r~ = r - e / S the
balanced one, S the sum of the weights, and q = X^T (s r~). For any t in [0, 1] such that t q is in
the domain of p*, the dual point t r~ proves

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

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from trueline.certificates.base import Certificate, checkable
from trueline.certificates.evaluation import Evaluation, Rounding, evaluate, unpenalised
from trueline.moments import Moments
from trueline.penalties import Penalty
from trueline.penalties.group import BlockNorms
from trueline.problem import MomentsProblem, Problem

Array = NDArray[np.float64]

_EPS = float(np.finfo(np.float64).eps)
_BLOCK_ROWS = 2048
_MARGIN = 1.25
# Squares below the range of doubles vanish without a trace: the claim stays above them.
_UNDERFLOW = 1e-290


@dataclass(frozen=True)
class Evidence:
    """What a least-squares solver knows at the end, with bounds on its rounding.

    Attributes
    ----------
    gradient, gradient_rounding : arrays of shape (d, k)
        Gradient in w at the best intercept for w, and a bound on its error.
    intercept_gradient, intercept_rounding : arrays of shape (k,)
        Derivative in b, and a bound on its error.
    objective, objective_rounding : arrays of shape (k,)
    basis : array of shape (d,) or (d, r)
        M of the module's text; one dimension means a diagonal matrix.
    coercivity : float
        nu, proven.
    is_global : bool
        Whether the columns of M span all coefficients.
    left_out : float
        If they do not: how much of the design, its columns scaled to equal norm, lies outside.
    """

    gradient: Array
    gradient_rounding: Array
    intercept_gradient: Array
    intercept_rounding: Array
    objective: Array
    objective_rounding: Array
    basis: Array
    coercivity: float
    is_global: bool = True
    left_out: float = 0.0


@np.errstate(over="ignore", invalid="ignore", divide="ignore")
def _quadratic_gap(evidence: Evidence, total_weight: float, nonnegative: Array | None) -> Array:
    """The bound of the module's text per target, rounding included; infinite if it overflows.

    ``nonnegative`` are coefficients that may not be negative.
    """
    g, error, basis = evidence.gradient, evidence.gradient_rounding, evidence.basis
    off = np.abs(evidence.intercept_gradient) + evidence.intercept_rounding
    if nonnegative is not None:
        bound = _separable_gap(g, error, basis, evidence.coercivity, nonnegative)
    else:
        if basis.ndim == 1:
            along = np.abs(basis[:, None] * g) + np.abs(basis)[:, None] * error
        else:
            # d products and sums: their own rounding is (d + 2) eps relative to the magnitudes.
            own = (len(basis) + 2) * _EPS * np.abs(g)
            along = np.abs(basis.T @ g) + np.abs(basis).T @ (error + own)
        bound = np.sum(along**2, axis=0) / (2.0 * evidence.coercivity) * (1 + 1e-10)
    bound = 0.5 * off**2 / total_weight + bound
    return np.where(np.isnan(bound), np.inf, bound)


def _separable_gap(
    gradient: Array, rounding: Array, scale: Array, coercivity: float, W: Array
) -> Array:
    """The bound for nonnegative coefficients; infinite where the objective has no curvature."""
    curvature = coercivity / scale[:, None] ** 2
    low = gradient - rounding  # the gradient that makes leaving zero most attractive
    high = gradient + rounding
    with np.errstate(divide="ignore", invalid="ignore"):
        upward = np.where(low < 0, 0.5 * low**2 / curvature, 0.0)
        # Downwards the step ends at zero: e >= -w.
        step = np.where(high > 0, np.minimum(W, high / curvature), 0.0)
        step = np.where(np.isfinite(step), step, W)
        downward = high * step - 0.5 * curvature * step**2
    return np.sum(np.maximum(upward, np.where(high > 0, downward, 0.0)), axis=0) * (1 + 1e-10)


def proven_coercivity(
    blocks: Iterable[tuple[slice, Array]],
    weights: Array,
    basis: Array,
    curvature: Array,
    mean: Array | None,
) -> float:
    """A number nu, on the safe side of rounding, with M^T (X_c^T S X_c + A) M >= nu I.

    Parameters
    ----------
    blocks : iterable of (slice, array)
        Consecutive blocks of dense rows, of which at most 2048 are added up at a time.
    weights : array of shape (n,)
    basis : array of shape (d, r)
        M.
    curvature : array of shape (d,)
        The diagonal of A.
    mean : array of shape (d,), optional
        About which X is centred; None if there is no intercept.
    """
    d, r = basis.shape
    n = len(weights)
    if r == 0:
        return 1.0
    gram, total = np.zeros((r, r)), np.zeros(r)
    drift = 0.0  # squared Frobenius norm of the products' rounding errors
    magnitudes = np.abs(basis)
    for where, block in blocks:
        centred = block if mean is None else block - mean
        root = np.sqrt(weights[where])[:, None]
        Z = root * (centred @ basis)
        gram += Z.T @ Z
        total += (root * Z).sum(axis=0)
        drift += float(((root * (np.abs(centred) @ magnitudes)) ** 2).sum())
    lift = np.sqrt(curvature)[:, None] * basis
    gram += lift.T @ lift
    size = float(np.trace(gram))
    # S-weighted sums about any point exceed those about the true mean by what the point misses.
    if mean is not None:
        gram -= np.outer(total, total) / float(weights.sum())
    if not np.isfinite(gram).all():
        return 0.0
    least = float(np.linalg.eigvalsh(gram)[0])
    least -= 2 * (min(n, 2048) + n / 2048 + 4 * r + 16) * _EPS * size
    return max(np.sqrt(max(least, 0.0)) - (d + 4) * _EPS * np.sqrt(drift), 0.0) ** 2


def _room_for_dependent_columns(
    problem: Problem | MomentsProblem, coef: Array, evidence: Evidence
) -> float:
    """What changing the coefficients of dependent columns could gain, as far as rounding hides it.

    Such a column equals a combination of others up to a rest of the size of its rounding. Along
    that rest the objective falls by no more than its length times that of the residuals, for
    coefficients that change by a few times what they are. Numbers far from zero are rounded more
    than those about their means: of them the gradient tells.
    """
    if isinstance(problem, MomentsProblem):
        moments = problem.moments
        squares = np.diag(moments.gram) if problem.fit_intercept else moments.x_size
    else:
        design, weights = problem.design, problem.weights
        mean = design.column_means(weights) if problem.fit_intercept else None
        squares = design.column_squares(weights, mean)
    reach = np.sqrt(squares) @ np.abs(coef)
    room = 16 * _EPS * float(reach @ np.sqrt(2 * np.maximum(evidence.objective, 0.0)))
    return room + 8 * float(np.abs(evidence.gradient * coef).sum())


def certify_quadratic(
    problem: Problem | MomentsProblem,
    coef: Array,
    intercept: Array,
    evidence: Evidence,
    floor: float | None = None,
) -> Certificate:
    """Turn a solver's evidence into a certificate.

    Below ``floor`` times the objective nothing is claimed; loops, which ask for the gap, take 0.
    """
    nonnegative = "nonnegative" in problem.penalty.capabilities
    gap = _quadratic_gap(evidence, problem.total_weight, coef if nonnegative else None)
    # The checker rounds differently: leave it room to confirm the bound and the coercivity.
    gap = gap * _MARGIN
    coercivity = 0.99 * evidence.coercivity
    objective = float(evidence.objective.sum())
    # It adds up the penalty of all coefficients at once.
    units = (coef.size + len(evidence.objective) + 64) * _EPS
    objective_rounding = float(evidence.objective_rounding.sum()) + _UNDERFLOW
    if floor != 0:
        objective_rounding = 2 * objective_rounding + units * objective
    # Least squares cannot go below zero: a nearly perfect fit proves itself.
    trivial = objective + objective_rounding
    witness = {"basis": evidence.basis, "coercivity": np.array(coercivity)}
    if floor is None:
        # Quadratic in rounding, unless bounds or dependent columns make it linear.
        is_sharp = not nonnegative and (evidence.is_global or not evidence.left_out)
        floor = 1e-20 if is_sharp else 1e-13
    if not evidence.is_global:
        witness["left_out"] = np.array(evidence.left_out)
    if evidence.left_out:
        gap = gap + _room_for_dependent_columns(problem, coef, evidence) / len(gap)
    kind = "quadratic" if evidence.is_global else "row space"
    # Where both say about the same, the one that is easier to check.
    proven = trivial if 10 * gap.sum() > trivial else checkable(gap.sum(), objective, floor)
    return Certificate.about(
        problem, kind, coef, intercept, objective, objective_rounding, proven, witness
    )


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

    The checker will read them. Its own rounding, of which the sizes of the columns tell, is part
    of the claim.

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


def moments_problem(problem: Problem, moments: Moments) -> MomentsProblem:
    """The same problem with the rows replaced by their moments."""
    return MomentsProblem(moments, problem.penalty, problem.fit_intercept, problem.loss)
