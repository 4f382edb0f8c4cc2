r"""Proof of Huber regression with its scale: a dual point, the natural one or one that is given.

With r_i = x_i.w + b - y_i and H as in :class:`~trueline.problem.ConcomitantProblem`,

    sigma H(r / sigma) = max over |u| <= 2 epsilon of  u r - sigma u^2 / 4.

Exchanging minimum and maximum, sigma >= 0 asks for sum_i s_i u_i^2 / 4 <= sum_i s_i, the intercept
for sum_i s_i u_i = 0, and what is left is minimised by w = -X^T (s u) / (2 alpha):

    D(u) = - sum_i s_i u_i y_i - ||X^T (s u)||^2 / (4 alpha).

At the minimum u_i = clip(2 r_i / sigma, -2 epsilon, 2 epsilon). Rounding is paid for as
:mod:`trueline.certificates.concomitant_check` says.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from trueline.certificates.base import Certificate
from trueline.problem import ConcomitantProblem, Problem

__all__ = ["certify_concomitant"]

Array = NDArray[np.float64]

_EPS = float(np.finfo(np.float64).eps)
_FEW_ROWS, _BLOCK_ROWS = 32, 1024
# Coefficients and levels so many times larger than those of the data are still covered.
_RADIUS = 10.0
_UNDERFLOW = 1e-290
# Columns whose means are this many spreads from zero are centred.
_FAR = 10.0


def certify_concomitant(
    problem: ConcomitantProblem,
    w: Array,
    b: float,
    scale: float,
    u: Array | None,
    mean: Array,
    spread: Array,
    magnitude: Array,
) -> Certificate:
    """The certificate of a point.

    Parameters
    ----------
    problem : ConcomitantProblem
    w, b, scale : array of shape (d,), float, float
    u : array of shape (n,), optional
        The dual point; by default the natural one.
    mean : array of shape (d,)
        Means of the columns; zero without an intercept.
    spread, magnitude : arrays of shape (d,)
        At least sqrt(sum_i s_i (x_ij - mean_j)^2), and sqrt(sum_i s_i x_ij^2).
    """
    parts, epsilon = problem.parts, problem.epsilon
    y, n = parts.target[:, 0], parts.n_samples
    s = np.ones(n) if parts.weights is None else parts.weights
    total = float(s.sum())
    units = (np.log2(n + 2) + 40) * _EPS
    residual = parts.design.matvec(w) + b - y
    values = s * problem.row_values(residual, scale)
    penalty, own = problem.alpha * float(w @ w), total * scale
    objective = own + float(values.sum()) + penalty
    y_size = np.sqrt(float((s * y) @ y)) * (1 + 1e-6)
    size = float(magnitude @ np.abs(w)) + np.sqrt(total) * abs(b) + y_size
    rounding = 2 * epsilon * np.sqrt(total) * (len(w) + 4) * _EPS * size
    rounding += (units + 20 * _EPS) * (own + float(values.sum())) + (len(w) + 8) * _EPS * penalty
    if u is None:
        u = 2 * np.clip(residual / scale, -epsilon, epsilon) if scale > 0 else None
    if u is None:
        raise ValueError("a scale of zero has no natural dual point: give one.")
    u = np.clip(u, -2 * epsilon, 2 * epsilon)
    if parts.fit_intercept:
        u = _balanced(u, s, 2 * epsilon)
    square = float((s * u) @ u) / 4
    if square > total * (1 - 4 * units):
        u = u * np.sqrt(total * (1 - 6 * units) / square)
    far = parts.fit_intercept and bool((np.abs(mean) * np.sqrt(total) > _FAR * spread).any())
    centre = mean if far else np.zeros_like(mean)
    wide = spread if far else magnitude
    weighted = s * u
    V = _correlations(parts, centre, weighted)
    terms = min(n, _FEW_ROWS) + np.log2(n / _FEW_ROWS + 2) + 16
    # Once for these sums, twice for those of whoever checks them.
    u_size = np.sqrt(float(weighted @ u)) * (1 + 1e-6)
    error = 3 * terms * _EPS * wide * u_size
    most = np.abs(V) + error
    level = float((s * y).sum() / total) if parts.fit_intercept else 0.0
    beside = np.abs(y - level)
    radius = _RADIUS * (
        abs(b + float(centre @ w) - level) + float(beside.max()) + abs(level) * _EPS
    )
    target_size = np.sqrt(float((s * beside) @ beside))
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        alone = np.where(spread > 0, target_size / spread, 0.0)
        reach = _RADIUS * (np.abs(w) + alone)
        beyond = np.where(most > 0, most * (most / (4 * problem.alpha)), 0.0)
    within = most * reach
    free = within < beyond
    outside = float(np.where(free, within, beyond).sum()) * (1 + (len(w) + 16) * _EPS)
    products = weighted * (y - level)
    lower = -float(products.sum()) - outside - units * float(np.abs(products).sum())
    if parts.fit_intercept:
        off = 0.0 if parts.weights is None else 2 * _EPS * float(np.abs(weighted).sum())
        lower -= (abs(math.fsum(weighted.tolist())) * (1 + 8 * _EPS) + off) * radius
    lower -= 8 * _EPS * (abs(lower) + outside)
    gap = objective + 2 * rounding - lower + units * float(np.abs(products).sum())
    return Certificate(
        kind="concomitant",
        objective=objective,
        objective_rounding=2 * rounding,
        gap=float(max(gap, 0.0)) + _UNDERFLOW,
        loss=parts.loss,
        penalty=parts.penalty,
        fit_intercept=parts.fit_intercept,
        coef=w[:, None],
        intercept=np.array([b]),
        witness={
            "scale": np.array([scale]),
            "dual": u[:, None],
            "level": np.array([level]),
            "radius": np.array([radius]),
            "centre": centre,
            "coefficient_radius": np.where(free, reach, np.inf)[:, None],
        },
    )


def _balanced(u: Array, s: Array, bound: float) -> Array:
    """u with sum_i s_i u_i = 0, as far as rounding lets it, and still within the bound.

    What is missing is shared by the rows inside the bound, whose u is free to move.
    """
    inside = np.abs(u) < bound * (1 - 1e-9)
    room = float(s @ inside)
    if room == 0.0:
        return u
    u = u - inside * (float((s * u).sum()) / room)
    u = u - inside * (math.fsum((s * u).tolist()) / room)
    return np.clip(u, -bound, bound)


def _correlations(parts: Problem, centre: Array, weighted: Array) -> Array:
    """sum_i (x_i - centre) weighted_i: sums of few rows, then pairwise sums of these."""
    sums = []
    is_centred = bool(centre.any())
    for where, block in parts.design.blocks(_BLOCK_ROWS):
        block = block - centre if is_centred else block
        own = weighted[where]
        full = len(block) // _FEW_ROWS * _FEW_ROWS
        if full:
            few = block[:full].reshape(-1, _FEW_ROWS, block.shape[1])
            sums.append(np.matmul(own[:full].reshape(-1, 1, _FEW_ROWS), few)[:, 0])
        if full < len(block):
            sums.append((own[full:] @ block[full:])[None])
    return np.ascontiguousarray(np.concatenate(sums).T).sum(axis=1)
