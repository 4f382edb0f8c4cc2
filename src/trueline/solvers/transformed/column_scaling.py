r"""Columns of very different size: the same problem with columns alike.

With the means m_j of the columns and their sizes t_j about them,

    v_j = t_j w_j,      x_ij w_j + ... + b = (x_ij - m_j)/t_j v_j + ... + (b + m.w),

and a penalty a_j |w_j| + c_j/2 w_j^2 is (a_j/t_j) |v_j| + (c_j/t_j^2)/2 v_j^2. Objectives and gaps
are the same; what differs is how many digits steps and stopping rules see. Sparse columns are not
centred, which would cost them their zeros.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from trueline.certificates.choose import certify
from trueline.design import DenseDesign, Design, SparseDesign
from trueline.penalties import L1, L2, ElasticNet, NoPenalty, Penalty
from trueline.problem import Problem
from trueline.solution import Solution
from trueline.solvers.base import Options, Solver
from trueline.solvers.loop import Monitor, seen_through

__all__ = ["is_unbalanced", "solve_balanced"]

Array = NDArray[np.float64]

# Sizes within this factor of each other, and means within so many sizes of zero, do no harm.
_ALIKE, _FAR = 100.0, 30.0
# Larger matrices are not copied for this.
_MOST_ENTRIES = 5e7


def _sizes(problem: Problem) -> tuple[Array, Array]:
    """Means, zero where they stay, and sizes about them, one for columns without any."""
    design, weights = problem.design, problem.weights
    mean = np.zeros(problem.n_features)
    if problem.fit_intercept and not design.is_sparse:
        mean = design.column_means(weights)
    total = float(problem.n_samples if weights is None else weights.sum())
    size = np.sqrt(design.column_squares(weights, mean if mean.any() else None) / total)
    is_flat = size <= 1e-12 * np.abs(mean)
    return mean, np.where((size > 0) & np.isfinite(size) & ~is_flat, size, 1.0)


def is_unbalanced(problem: Problem) -> bool:
    """Whether columns differ so much that steps would lose digits."""
    if problem.design.is_sparse and not isinstance(problem.design, SparseDesign):
        return False
    if problem.design.nonzeros > _MOST_ENTRIES or "elastic" not in problem.penalty.capabilities:
        return False
    mean, size = _sizes(problem)
    if not size.size:
        return False
    return bool(size.max() > _ALIKE * size.min() or (np.abs(mean) > _FAR * size).any())


def solve_balanced(
    solver: Solver, problem: Problem, options: Options, monitor: Monitor
) -> Solution:
    """Let a solver find v, and prove w."""
    mean, size = _sizes(problem)

    def back(v: Array, level: Array) -> tuple[Array, Array]:
        W = v / size[:, None]
        return W, level - mean @ W if problem.fit_intercept else level

    start, level = options.start, options.start_intercept
    if start is not None:
        level = None if level is None else level + mean @ start
        options = replace(options, start=size[:, None] * start, start_intercept=level)
    inner = replace(
        problem,
        design=_balanced(problem.design, mean, size),
        penalty=_scaled(problem, size),
    )
    found = solver.solve(inner, options, seen_through(monitor, back))
    W, b = back(found.coef, found.intercept)
    note = "columns of very different size: solved with all columns scaled alike"
    proof = certify(problem, W, b)
    return replace(found, coef=W, intercept=b, proof=proof, notes=[*found.notes, note])


def _balanced(design: Design, mean: Array, size: Array) -> Design:
    if isinstance(design, SparseDesign):
        return SparseDesign(design.X @ sparse.diags_array(1 / size))
    return DenseDesign((np.asarray(design.toarray(), dtype=np.float64) - mean) / size)


def _scaled(problem: Problem, size: Array) -> Penalty:
    """The penalty of v."""
    shape = problem.n_features, problem.n_targets
    linear = np.broadcast_to(problem.penalty.linear, shape) / size[:, None]
    curvature = np.broadcast_to(problem.penalty.curvature, shape) / size[:, None] ** 2
    if not linear.any():
        return L2(curvature) if curvature.any() else NoPenalty()
    return (
        L1(linear)
        if not curvature.any()
        else ElasticNet(linear + curvature, linear / (linear + curvature))
    )
