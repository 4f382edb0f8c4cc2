"""What all least-squares solvers share: strengths, intercepts, evidence, the finished solution."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from trueline.certificates.quadratic import Evidence
from trueline.design import DenseDesign
from trueline.moments import Moments
from trueline.problem import MomentsProblem, Problem
from trueline.solvers.least_squares.refinement import Refined, can_refine, evaluate_exactly

__all__ = [
    "MOST_DENSE",
    "as_dense",
    "curvature_matrix",
    "evidence_at",
    "evidence_from_moments",
    "evidence_from_rows",
    "evidence_from_refined",
    "same_strength_groups",
]

Array = NDArray[np.float64]
Indices = NDArray[np.intp]

_EPS = float(np.finfo(np.float64).eps)
#: Entries up to which a sparse matrix is factored as a dense one.
MOST_DENSE = 2e7
# Entries (times targets) up to which products in doubled precision take less than a second.
_FEW_ENTRIES = 2e6


def curvature_matrix(problem: Problem | MomentsProblem) -> Array:
    """The penalty's curvature for each coefficient and target, of shape (d, k)."""
    shape = (problem.n_features, problem.n_targets)
    curvature = problem.penalty.curvature
    if isinstance(curvature, float):
        return np.full(shape, curvature)
    return np.broadcast_to(np.asarray(curvature, dtype=np.float64), shape)


def same_strength_groups(curvature: Array) -> Iterator[tuple[Array, Indices]]:
    """Targets that share a curvature, as (curvature of shape (d,), indices of the targets)."""
    if curvature.shape[1] == 1 or (curvature == curvature[:, :1]).all():
        yield curvature[:, 0], np.arange(curvature.shape[1])
        return
    unique, group = np.unique(curvature, axis=1, return_inverse=True)
    group = group.ravel()
    for g in range(unique.shape[1]):
        yield unique[:, g], np.flatnonzero(group == g)


def evidence_from_moments(
    problem: Problem | MomentsProblem,
    moments: Moments,
    W: Array,
    b: Array,
    basis: Array,
    coercivity: float,
) -> Evidence:
    """Gradient, objective and their rounding from the moments, without reading the rows.

    The moments are about the mean with an intercept, about zero without. A nearly perfect fit
    cancels in the moments; then the rows, if there are any, are read once.
    """
    curvature = curvature_matrix(problem)
    gradient, rounding = moments.gradient(W)
    bend = curvature * W
    gradient = gradient + bend
    rounding = rounding + 4 * _EPS * np.abs(bend)
    weight = moments.weight
    slope, slope_rounding = np.zeros_like(b), np.zeros_like(b)
    reach = np.abs(moments.x_mean) @ np.abs(W) + np.abs(moments.y_mean)
    spread = (np.sqrt(moments.x_size) @ np.abs(W) + np.sqrt(moments.y_size)) / np.sqrt(weight)
    if problem.fit_intercept:
        slope = weight * (b + moments.x_mean @ W - moments.y_mean)
        units = (len(W) + 8) * _EPS
        slope_rounding = weight * (units * (reach + np.abs(b)) + moments.unit * spread)
    square, square_rounding = moments.residual_square(W)
    penalty = problem.penalty.value_per_target(W)
    objective = 0.5 * square + penalty
    objective_rounding = 0.5 * square_rounding + (len(W) + 4) * _EPS * penalty
    if problem.fit_intercept:
        objective = objective + 0.5 * slope**2 / weight
        objective_rounding = objective_rounding + (np.abs(slope) + slope_rounding) * (
            slope_rounding / weight
        )
    if isinstance(problem, Problem) and (objective_rounding > 1e-7 * objective).any():
        objective, objective_rounding = objective_from_rows(problem, W, b, spread + reach)
    return Evidence(
        gradient=gradient,
        gradient_rounding=rounding,
        intercept_gradient=slope,
        intercept_rounding=slope_rounding,
        objective=objective,
        objective_rounding=objective_rounding,
        basis=basis,
        coercivity=coercivity,
    )


def objective_from_rows(problem: Problem, W: Array, b: Array, reach: Array) -> tuple[Array, Array]:
    """The objective by reading the rows; reach bounds the root mean square of abs(X) abs(W)."""
    objective = problem.objective_per_target(W, b)
    n, d = problem.design.shape
    # Each residual errs by (d + 4) eps times its reach; sums of squares pass that on.
    off = (d + 4) * _EPS * 2 * (reach + np.abs(b)) * np.sqrt(problem.total_weight)
    rounding = np.sqrt(2 * objective) * off + 0.5 * off**2
    return objective, rounding + (np.log2(n + 2) + 130) * _EPS * objective


def evidence_from_rows(
    problem: Problem, W: Array, b: Array, mean: Array, basis: Array, coercivity: float
) -> Evidence:
    """Gradient, objective and rounding by reading the rows in double precision."""
    curvature = curvature_matrix(problem)
    n, d = problem.design.shape
    scores = problem.scores(W, b)
    residual = scores - problem.target
    weighted = problem.weigh(residual)
    slope = weighted.sum(axis=0) if problem.fit_intercept else np.zeros_like(b)
    gradient = problem.design.rmatvec(weighted) - mean[:, None] * slope + curvature * W
    root = np.sqrt(problem.design.column_squares(problem.weights, None))
    y_root = np.sqrt(problem.weigh(problem.target**2).sum(axis=0))
    reach = root @ np.abs(W) + y_root + np.abs(b) * np.sqrt(problem.total_weight)
    r_root = np.sqrt((weighted * residual).sum(axis=0))
    # A product over n rows in blocks of at most 4096, and residuals that err by (d + 4) eps.
    off = (d + 4) * _EPS * reach + (min(n, 4096) + n / 4096 + 16) * _EPS * r_root
    rounding = root[:, None] * off + 4 * _EPS * np.abs(curvature * W)
    slope_rounding = np.zeros_like(b)
    if problem.fit_intercept:
        slope_rounding = np.sqrt(problem.total_weight) * off
        mean_root = root[:, None] / np.sqrt(problem.total_weight)
        units = (min(n, 4096) + n / 4096 + 16) * _EPS
        rounding = rounding + units * mean_root * (np.abs(slope) + slope_rounding)
        rounding = rounding + np.abs(mean)[:, None] * slope_rounding
    objective = 0.5 * (weighted * residual).sum(axis=0) + problem.penalty.value_per_target(W)
    objective_off = (d + 4) * _EPS * reach
    objective_rounding = np.sqrt(2 * objective) * objective_off + 0.5 * objective_off**2
    return Evidence(
        gradient=gradient,
        gradient_rounding=rounding,
        intercept_gradient=slope,
        intercept_rounding=slope_rounding,
        objective=objective,
        objective_rounding=objective_rounding + (np.log2(n + 2) + 130) * _EPS * objective,
        basis=basis,
        coercivity=coercivity,
    )


def evidence_at(problem: Problem, W: Array, b: Array, basis: Array, coercivity: float) -> Evidence:
    """Evidence about any point, evaluated exactly where that is affordable."""
    problem = as_dense(problem)
    mean = np.zeros(problem.n_features)
    if problem.fit_intercept:
        mean = problem.design.column_means(problem.weights)
    if not can_refine(problem):
        return evidence_from_rows(problem, W, b, mean, basis, coercivity)
    at = evaluate_exactly(problem, W, b, mean, curvature_matrix(problem))
    return evidence_from_refined(problem, at, basis, coercivity, True)


def as_dense(problem: Problem) -> Problem:
    """The problem with dense rows, if they are few enough to be evaluated exactly in no time."""
    n, d = problem.design.shape
    if not problem.design.is_sparse or n * d * problem.n_targets > _FEW_ENTRIES:
        return problem
    return replace(problem, design=DenseDesign(problem.design.toarray()))


def evidence_from_refined(
    problem: Problem,
    refined: Refined,
    basis: Array,
    coercivity: float,
    is_global: bool,
    left_out: float = 0.0,
) -> Evidence:
    """Evidence from exactly evaluated gradients."""
    penalty = problem.penalty.value_per_target(refined.coef)
    objective = 0.5 * refined.residual_square + penalty
    n, d = problem.design.shape
    off = refined.residual_rounding
    rounding = np.sqrt(refined.residual_square) * off + 0.5 * off**2
    return Evidence(
        gradient=refined.gradient,
        gradient_rounding=refined.gradient_rounding,
        intercept_gradient=refined.intercept_gradient,
        intercept_rounding=refined.intercept_rounding,
        objective=objective,
        objective_rounding=rounding + (np.log2(n + 2) + 32 + d) * _EPS * objective,
        basis=basis,
        coercivity=coercivity,
        is_global=is_global,
        left_out=left_out,
    )
