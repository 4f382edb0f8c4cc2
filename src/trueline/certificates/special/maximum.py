r"""Proof that no largest error is smaller, by multipliers of a few rows.

For any u with sum_i u_i (x_i, 1) = 0 the largest error of any coefficients is at least |sum_i u_i
y_i| / sum_i |u_i|; with the residuals r of the fitted ones, sum_i u_i y_i = sum_i u_i r_i. The
multipliers of an optimal reference are such, and the bound is the largest error itself.

What rounding leaves of the sums is repaired by whoever checks: in integers where rows and columns
are few, so that the bound is that of multipliers in doubled precision
(:mod:`trueline.numerics.precision`); by an approximate inverse elsewhere, which costs eta max_i
|r_i| as it is estimated here. Columns that depend on each other up to rounding allow no repair: the
proof then holds for coefficients within a radius, and what is left of the sums is multiplied by it.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from trueline.certificates.base import Certificate
from trueline.numerics.precision import (
    residual_doubled,
    transposed_product_doubled,
    two_product,
    two_sum,
)
from trueline.problem import Problem

Array = NDArray[np.float64]
Indices = NDArray[np.intp]
Pair = tuple[Array, Array]

_EPS = float(np.finfo(np.float64).eps)
# How many times further away than the data ask for coefficients are covered, where need be.
_RADIUS = 1000.0
# Equations of up to so many products are solved in integers by whoever checks.
_FEW = 3e5
# More numbers than this are not worth twice the digits.
_DOUBLED = 2_000_000
_UNDERFLOW = 1e-290


class _Largest(NamedTuple):
    """The largest error of one target, and how far off that number can be."""

    value: float
    rounding: float


def certify_maximum(
    problem: Problem,
    W: Array,
    b: Array,
    rows: Indices | None = None,
    u: Array | None = None,
    spread: tuple[Array, Array] | None = None,
) -> Certificate:
    """A certificate of the largest error, from multipliers.

    Parameters
    ----------
    problem : Problem
        With the maximum error as its loss, without a penalty.
    W, b : arrays of shape (d, k) and (k,)
    rows : array of int of shape (m,), optional
        Rows with multipliers; none prove no more than that an error is not negative.
    u : array of shape (m, k), optional
        Their multipliers, of any size.
    spread : tuple of two arrays of shape (d,), optional
        Centres of the columns (zero without an intercept) and their standard deviations, if they
        are known.
    """
    k = problem.n_targets
    if rows is None or u is None:
        rows, u = np.empty(0, dtype=np.intp), np.zeros((0, k))
    centre, scale = mean_and_spread(problem) if spread is None else spread
    largest = _column_bounds(problem, centre, scale)
    reached = [_largest_error(problem, W[:, t], float(b[t]), t, largest) for t in range(k)]
    top = sum(one.value + one.rounding for one in reached)
    X = problem.design.take(rows).toarray() if len(rows) else np.zeros((0, len(W)))
    pairs = [_doubled(X, u[:, t], centre, scale, problem.fit_intercept) for t in range(k)]
    proven, size = 0.0, top
    for t, pair in enumerate(pairs):
        y, w = problem.target[rows, t], W[:, t]
        lower = _lower_bound(X, y, w, float(b[t]), pair, problem.fit_intercept)
        proven, size = proven + max(lower, 0.0), size + max(lower, 0.0)
    dual = np.stack([high for high, _ in pairs], axis=1)
    witness = {"rows": _among_counted(problem, rows), "dual": dual}
    gap = max(top - proven, 0.0) + 32 * _EPS * size + _UNDERFLOW
    value, rounding = map(sum, zip(*reached, strict=True))
    return Certificate.about(problem, "maximum error", W, b, value, rounding, gap, witness)


def mean_and_spread(problem: Problem) -> tuple[Array, Array]:
    """Means of the columns (zero without an intercept), and their standard deviations."""
    design, weights = problem.design, problem.weights
    if not problem.fit_intercept:
        centre, shift = np.zeros(problem.n_features), None
    else:
        centre = shift = design.column_means(weights)
    return centre, np.sqrt(design.column_squares(weights, shift) / problem.total_weight)


def _among_counted(problem: Problem, rows: Indices) -> Array:
    """The places of rows among those of positive weight: a checker sees no others."""
    if problem.weights is None:
        return rows.astype(np.float64)
    return (np.cumsum(problem.weights > 0) - 1)[rows].astype(np.float64)


def _column_bounds(problem: Problem, centre: Array, scale: Array) -> Array:
    """Numbers that no magnitude in a column exceeds.

    (x_ij - mean_j)^2 is at most the sum of them all, n scale_j^2: no pass over dense data.
    """
    if problem.design.is_sparse or problem.weights is not None:
        return problem.design.column_largest()
    return (np.abs(centre) + np.sqrt(problem.n_samples) * scale) * (1 + 1e-6)


def _largest_error(problem: Problem, w: Array, b: float, number: int, bounds: Array) -> _Largest:
    """Of all rows that count; those that may be it are evaluated in doubled precision."""
    design, y = problem.design, problem.target[:, number]
    error = np.abs(y - (design.matvec(w) + b))
    if problem.weights is not None:
        error = np.where(problem.weights > 0, error, 0.0)
        y = np.where(problem.weights > 0, y, 0.0)
    largest = float(error.max(initial=0.0))
    level = abs(b) + float(np.abs(y).max(initial=0.0))
    off = (len(w) + 8) * _EPS * (float(bounds @ np.abs(w)) + level)
    near = np.flatnonzero(error >= largest - 2 * off)
    if len(near) * (len(w) + 2) > _DOUBLED:  # perhaps because the bounds are rough: a pass is due
        off = (len(w) + 8) * _EPS * (float(design.column_largest() @ np.abs(w)) + level)
        near = np.flatnonzero(error >= largest - 2 * off)
    if not len(near) or len(near) * (len(w) + 2) > _DOUBLED:
        return _Largest(largest, 4 * off + _UNDERFLOW)
    X = design.take(near).toarray()
    exact = np.abs(residual_doubled(X, w, b, y[near])[0])
    value = float(exact.max())
    # The second term: what doubled precision itself rounds by.
    return _Largest(value, 8 * _EPS * value + (len(w) + 8) ** 2 * _EPS * off + _UNDERFLOW)


def _doubled(X: Array, u: Array, centre: Array, scale: Array, with_ones: bool) -> Pair:
    """Multipliers near u as doubled numbers, with V = e = 0 as far as the rows allow it.

    Their magnitudes sum to one at most, and if u is not zero nearly so.
    """
    m, d = X.shape
    size = float(np.abs(u).sum())
    if size == 0:
        return u, np.zeros(m)
    if m * (d + 2) <= _DOUBLED:
        unit = np.where(scale > 0, scale, 1.0)
        columns = [(X - centre) / unit, np.ones((m, int(with_ones)))]
        inverse = np.linalg.pinv(np.concatenate(columns, axis=1).T)
        high, low = u, np.zeros(m)
        for _ in range(3):
            norm = math.fsum([*(np.sign(high) * high), *(np.sign(high) * low)])
            high, low = high * ((1.0 - 4 * _EPS) / norm), np.zeros(m)
            for _ in range(2):  # the second round removes the rounding of the first
                V, e = _totals(X, (high, low), centre)
                low = low - inverse @ np.append(V / unit, [e] * with_ones)
            high, low = two_sum(high, low)
            if math.fsum([*np.abs(high), *np.abs(low)]) <= 1.0:
                return high, low
    return u * ((1.0 - (m + 4) * _EPS) / size), np.zeros(m)


def _totals(X: Array, pair: Pair, centre: Array) -> tuple[Array, float]:
    """V and e of the module's text, from sums in doubled precision."""
    high, low = transposed_product_doubled(X, *pair)
    e_high, e_low = float(high[-1]), float(low[-1])
    shift, rest = two_product(centre, np.full(len(centre), e_high))
    # The two high parts cancel: they come first.
    return (high[:-1] - shift) + (low[:-1] - rest - centre * e_low), e_high + e_low


def _lower_bound(X: Array, y: Array, w: Array, b: float, pair: Pair, with_ones: bool) -> float:
    """What every largest error is at least, from rows X with multipliers."""
    m, d = X.shape
    u, low = pair
    if not m or not u.any():
        return 0.0
    if m * (d + 2) <= _DOUBLED:
        residuals = np.column_stack(residual_doubled(X, w, b, y))
        value = float(np.sum(transposed_product_doubled(residuals, u, low), axis=0)[:2].sum())
        units = (m + 64) * (np.log2(m + 2) + 4) * _EPS**2
    else:
        residuals = (y - (X @ w + b))[:, None]
        value = float(u @ residuals[:, 0])
        units = (m + d + 16) * _EPS
    beside = np.abs(X) @ np.abs(w) + abs(b) + np.abs(y)
    rounding = (units + (d + 8) ** 2 * _EPS**2) * float(np.abs(u) @ beside)
    size, eta = math.fsum([*np.abs(u), *np.abs(low)]), 0.0
    largest = float(np.abs(residuals[:, 0]).max())
    if (d + with_ones) ** 2 * np.count_nonzero(u) > _FEW:
        eta = 1.5 * _repair(X, u, with_ones)
    elif not _is_solved(X, pair, with_ones):
        eta = np.inf
    if eta < np.inf:
        return (value - 2 * rounding - eta * largest) / (size + eta)
    centred = X - (X.mean(axis=0) if with_ones else 0.0)
    spread = np.abs(centred).max(axis=0)
    radius = _RADIUS * (np.abs(w) + np.divide(largest, spread, out=np.zeros(d), where=spread > 0))
    missed = np.abs(centred.T @ u) + (m + 8) * _EPS * (np.abs(centred).T @ np.abs(u))
    level = abs(math.fsum(u)) * _RADIUS * largest * with_ones
    return (value - 2 * rounding - 1.01 * (float(missed @ radius) + level)) / size


def _is_solved(X: Array, pair: Pair, with_ones: bool) -> bool:
    """Whether doubled multipliers satisfy the equations as far as doubled precision goes."""
    high, low = transposed_product_doubled(X, *pair)
    left = np.abs(high + low)[: None if with_ones else -1]
    size = np.append(np.abs(X).T @ np.abs(pair[0]), 1.0)[: len(left)]
    return bool((left <= 1e-24 * size).all())


def _repair(X: Array, u: Array, with_ones: bool) -> float:
    """How far multipliers in double precision may be from such that satisfy the equations."""
    X, u = X[u != 0], u[u != 0]
    centred = X - (X.mean(axis=0) if with_ones else 0.0)
    centred = centred[:, centred.any(axis=0)]
    largest = np.abs(centred).max(axis=0, initial=0.0)
    M = np.column_stack([centred / largest, np.ones((len(u), int(with_ones)))])
    inverse = np.linalg.pinv(M.T)
    off = (len(u) + 4) * _EPS
    left = np.abs(np.eye(M.shape[1]) - M.T @ inverse) + off * (np.abs(M).T @ np.abs(inverse))
    close = 1.0 - 2 * float(left.sum(axis=1).max(initial=0.0))
    missed = np.abs(M.T @ u) + off * (np.abs(M).T @ np.abs(u))
    return 2 * float(np.abs(inverse).sum() * missed.max()) / close if close > 0 else np.inf
