r"""Proofs for squared loss by its curvature.

With a quadratic penalty or none, the objective is a quadratic function. At coefficients w with
gradient g (intercept eliminated) and Hessian H = X_c^T S X_c + A, for every step e

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
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from trueline.certificates.base import Certificate, checkable
from trueline.problem import MomentsProblem, Problem

Array = NDArray[np.float64]

_EPS = float(np.finfo(np.float64).eps)
_BLOCK_ROWS = 2048
_MARGIN = 1.25
# Of the largest part in a dependence: columns with less are not those that follow from the others.
_PART = 1e-2
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
    dependences : array of shape (d, d - r), optional
        If that is known: columns N with X_c N = 0 up to rounding.
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
    dependences: Array | None = None


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
    than those about their means: the gradient contains their rounding.
    """
    if isinstance(problem, MomentsProblem):
        moments = problem.moments
        squares = np.diag(moments.gram) if problem.fit_intercept else moments.x_size
    else:
        design, weights = problem.design, problem.weights
        mean = design.column_means(weights) if problem.fit_intercept else None
        squares = design.column_squares(weights, mean)
    sizes = np.sqrt(squares)
    reach = sizes @ np.abs(coef)
    room = 16 * _EPS * float(reach @ np.sqrt(2 * np.maximum(evidence.objective, 0.0)))
    return room + _gain_of_dependences(coef, evidence, sizes)


def _gain_of_dependences(coef: Array, evidence: Evidence, sizes: Array) -> float:
    """What the gradient promises for steps a few times as long as the coefficients.

    Only steps along the dependences count: the others are in the span of M. Rounded coefficients
    of columns that are nearly dependent leave a large gradient along each of them, and hardly any
    along combinations that vanish.
    """
    gain = float(np.abs(evidence.gradient * coef).sum())
    if evidence.dependences is not None:
        unit = np.where(sizes > 0, sizes, 1.0)[:, None]
        N = np.abs(evidence.dependences) * sizes[:, None]
        largest = N.max(axis=0)
        scale = np.where(largest > 0, largest, 1.0)
        N /= scale
        error = evidence.gradient_rounding + (len(N) + 4) * _EPS * np.abs(evidence.gradient)
        slopes = np.abs(evidence.dependences.T @ evidence.gradient) / scale[:, None]
        slopes += N.T @ (error / unit)
        # Whichever column of a dependence is the one that follows from the others.
        lengths = np.where(N >= _PART, 1.0 / np.maximum(N, _PART), 0.0).T[:, :, None]
        steps = (lengths * (sizes[:, None] * np.abs(coef))).max(axis=1)
        gain = min(gain, float((slopes * steps).sum()))
    return 8 * gain


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
