r"""Certificates of fits with Firth's correction: their claims, with room for rounding.

With rows a_i = (x_i, 1), the information I(v) = sum_i s_i h_i a_i a_i^T and q_i = s_i h_i a_i^T
I^-1 a_i, claimed are F(v) = sum_i s_i l_i - 1/2 log det I(v), the slope |diag(I)^-1/2 g| with g =
sum_i (s_i l'_i - q_i (1/2 - p_i)) a_i, and that no v has F below -1/2 log det(sum_i s_i a_i a_i^T /
4): losses are not negative, and h <= 1/4. Columns that depend on others are left out of the
determinant; their coefficients are zero.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from trueline.certificates.base import Certificate
from trueline.problem import Problem

__all__ = ["certify_firth"]

Array = NDArray[np.float64]

_EPS = float(np.finfo(np.float64).eps)
_ROWS = 2048


class _Facts(NamedTuple):
    """The objective, the slope, a bound on all objectives, and what rounding may do to them."""

    objective: float
    slope: float
    bound: float
    rounding: float
    slope_rounding: float


def certify_firth(
    problem: Problem, W: Array, b: Array, columns: NDArray[np.integer]
) -> Certificate:
    """What holds at a point, for the information of these columns."""
    found = _facts(problem, W, b, np.sort(columns).astype(np.intp))
    gap = (found.objective - found.bound + 4 * found.rounding) * (1 + 1e-12)
    slope = np.array(1.25 * found.slope + found.slope_rounding)
    witness = {"slope": slope, "columns": np.sort(columns).astype(np.intp)}
    return Certificate.about(
        problem, "stationary", W, b, found.objective, found.rounding, gap, witness
    )


def _facts(problem: Problem, W: Array, b: Array, columns: NDArray[np.intp]) -> _Facts:
    """Everything that is claimed, from one look at the rows (two for the slope)."""
    design, y = problem.design, problem.target[:, 0]
    n, level = problem.n_samples, int(problem.fit_intercept)
    s = np.ones(n) if problem.weights is None else problem.weights
    # About the means, whose choice no determinant feels: columns far from zero keep their digits.
    mean = design.column_means(problem.weights)[columns] * level
    z = design.matvec(W[:, 0]) + b[0]
    reach = np.zeros(n)
    p = len(columns) + level
    small = np.exp(-np.abs(z))
    h, margin = small / (1 + small) ** 2, y * z
    losses = s * (np.maximum(-margin, 0.0) + np.log1p(small))
    squares = np.zeros(p)
    for where, block in design.blocks(_ROWS):
        A = np.hstack([block[:, columns] - mean, np.ones((len(block), level))])
        squares += (s * h)[where] @ A**2
        reach[where] = np.abs(block) @ np.abs(W[:, 0]) + abs(b[0])
    reach *= (design.shape[1] + 8) * _EPS
    inner, outer = (_root(problem, columns, mean, weights) for weights in (s * h, s))
    if inner is None or outer is None:
        return _Facts(np.inf, np.inf, -np.inf, np.inf, np.inf)
    inverse, root = np.linalg.inv(inner), np.sqrt(squares)
    determinant, largest = (2 * float(np.log(np.abs(R.diagonal())).sum()) for R in (inner, outer))
    # One share for all sums over rows; what the factors and their inverses magnify rounding by.
    share = float(reach.max()) + (min(n, _ROWS) + n / _ROWS + 32 + 8 * p) * _EPS
    magnified = sum(
        float(np.linalg.norm(np.abs(np.linalg.inv(R)).T @ np.abs(R).T)) for R in (inner, outer)
    )
    apart = 4 * p * (p * share + (p + 8) * _EPS * magnified * np.sqrt(p))
    total = float(losses.sum())
    size = total + p + abs(determinant) + abs(largest)
    rounding = 2 * float((s * reach).sum()) + 64 * p * _EPS * size + apart
    g, g_error = np.zeros(p), np.zeros(p)
    slope = -y * np.where(margin >= 0, small, 1.0) / (1 + small)
    for where, block in design.blocks(_ROWS):
        A = np.hstack([block[:, columns] - mean, np.ones((len(block), level))])
        leverage = (s * h)[where] * np.square(A @ inverse).sum(axis=1)
        t = s[where] * slope[where] - leverage * 0.5 * np.tanh(-0.5 * z[where])
        g += A.T @ t
        spread = np.linalg.norm(np.abs(A) @ np.abs(inverse), axis=1) * np.sqrt((s * h)[where])
        off = leverage * apart + (p + 8) * _EPS * spread * (
            np.sqrt(leverage) + (p + 8) * _EPS * spread
        )
        off += (s[where] + leverage) * reach[where] + share * (np.abs(t) + leverage)
        g_error += np.abs(A).T @ off
    steep, room = float(np.linalg.norm(g / root)), float(np.linalg.norm(g_error / root))
    bound = -0.5 * (largest - p * np.log(4.0))
    return _Facts(total - 0.5 * determinant, steep, bound, rounding, 4 * room + 1e-15)


def _root(problem: Problem, columns: NDArray[np.intp], mean: Array, weights: Array) -> Array | None:
    """A triangular R with R^T R = sum_i weights_i a_i a_i^T; None if it is singular."""
    level = int(problem.fit_intercept)
    R = np.zeros((0, len(columns) + level))
    for where, block in problem.design.blocks(_ROWS):
        A = np.hstack([block[:, columns] - mean, np.ones((len(block), level))])
        rows = np.vstack([R, np.sqrt(weights[where])[:, None] * A])
        R = np.asarray(np.linalg.qr(rows, mode="r"), dtype=np.float64)
    return R if len(R) == R.shape[1] and R.diagonal().all() and np.isfinite(R).all() else None
