r"""Proof that no largest error is smaller, by multipliers of a few rows.

For any u with sum_i abs(u_i) <= 1 the largest error of any coefficients w', b' is at least
sum_i u_i (y_i - x_i.w' - b'). Written about the fitted w, b with residuals r, and about any centre
c of the columns (t = b + c.w is the level there):

    P(w', b') >= sum_i u_i r_i - V.(w' - w) - e (t' - t),
                 V = sum_i u_i (x_i - c),     e = sum_i u_i

The multipliers of an optimal reference make V and e vanish and sum_i u_i r_i the largest error
itself. What rounding leaves of V and e costs abs(V_j) R_j and abs(e) B for coefficients within R_j
and levels within B of the fitted ones: these radii are stated, a thousand times what the targets
could ask for. Residuals and sums of the few rows that matter are formed in doubled precision
(:mod:`trueline.precision`), so that no digits cancel.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from trueline.certificates.base import Certificate
from trueline.precision import residual_doubled, transposed_product_doubled, two_product
from trueline.problem import Problem

__all__ = ["certify_maximum", "lower_bound", "mean_and_spread"]

Array = NDArray[np.float64]
Indices = NDArray[np.intp]

_EPS = float(np.finfo(np.float64).eps)
# Coefficients this many times further away than the targets could ask for are still covered.
_RADIUS = 1000.0
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
        Their multipliers; those of a target are divided by the sum of their magnitudes if it
        exceeds one.
    spread : tuple of two arrays of shape (d,), optional
        Centres of the columns (zero without an intercept) and their standard deviations, if they
        are known.
    """
    k = problem.n_targets
    rows = np.empty(0, dtype=np.intp) if rows is None else np.asarray(rows, dtype=np.intp)
    u = np.zeros((len(rows), k)) if u is None else _inside(u)
    centre, scale = mean_and_spread(problem) if spread is None else spread
    reached = [_largest_error(problem, W[:, t], float(b[t]), t) for t in range(k)]
    top = sum(one.value + one.rounding for one in reached)
    level = b + centre @ W
    reach, radius = _radii(problem, W, level, centre, scale)
    X = problem.design.take(rows).toarray() if len(rows) else np.zeros((0, len(W)))
    lower = [
        lower_bound(
            X,
            problem.target[rows, t],
            W[:, t],
            float(b[t]),
            u[:, t],
            centre,
            reach[:, t],
            radius[t],
        )
        for t in range(k)
    ]
    proven = sum(max(value, 0.0) for value, _ in lower)
    size = top + sum(magnitude for _, magnitude in lower)
    return Certificate(
        kind="maximum error",
        objective=float(sum(one.value for one in reached)),
        objective_rounding=float(sum(one.rounding for one in reached)),
        gap=float(max(top - proven, 0.0) + 32 * _EPS * size + _UNDERFLOW),
        loss=problem.loss,
        penalty=problem.penalty,
        fit_intercept=problem.fit_intercept,
        coef=W,
        intercept=b,
        witness={
            "rows": _among_counted(problem, rows),
            "dual": u,
            "centre": centre,
            "radius": radius,
            "coefficient_radius": reach,
        },
    )


def mean_and_spread(problem: Problem) -> tuple[Array, Array]:
    """Means of the columns (zero without an intercept), and their standard deviations."""
    design, weights = problem.design, problem.weights
    if not problem.fit_intercept:
        centre, shift = np.zeros(problem.n_features), None
    else:
        centre = shift = design.column_means(weights)
    return centre, np.sqrt(design.column_squares(weights, shift) / problem.total_weight)


def _inside(u: Array) -> Array:
    """Multipliers whose magnitudes sum to one at most, also after rounding."""
    norm = np.abs(u).sum(axis=0)
    room = 1.0 - (len(u) + 4) * _EPS
    return np.where(norm > room, u * (room / np.where(norm > 0, norm, 1.0)), u)


def _among_counted(problem: Problem, rows: Indices) -> Array:
    """The places of rows among those of positive weight: a checker sees no others."""
    if problem.weights is None:
        return rows.astype(np.float64)
    return (np.cumsum(problem.weights > 0) - 1)[rows].astype(np.float64)


def _largest_error(problem: Problem, w: Array, b: float, number: int) -> _Largest:
    """Of all rows that count; those that may be it are evaluated in doubled precision."""
    design, y = problem.design, problem.target[:, number]
    error = np.abs(y - (design.matvec(w) + b))
    if problem.weights is not None:
        error = np.where(problem.weights > 0, error, 0.0)
        y = np.where(problem.weights > 0, y, 0.0)
    largest = float(error.max(initial=0.0))
    magnitude = float(design.column_largest() @ np.abs(w)) + abs(b)
    off = (len(w) + 8) * _EPS * (magnitude + float(np.abs(y).max(initial=0.0)))
    near = np.flatnonzero(error >= largest - 2 * off)
    if not len(near) or len(near) * (len(w) + 2) > _DOUBLED:
        return _Largest(largest, 4 * off + _UNDERFLOW)
    X = design.take(near).toarray()
    exact = np.abs(residual_doubled(X, w, b, y[near])[0])
    value = float(exact.max())
    # The second term: what doubled precision itself rounds by.
    return _Largest(value, 8 * _EPS * value + (len(w) + 8) ** 2 * _EPS * off + _UNDERFLOW)


def _radii(
    problem: Problem, W: Array, level: Array, centre: Array, scale: Array
) -> tuple[Array, Array]:
    """Up to which distance from the fitted ones coefficients and levels are covered."""
    y = problem.target if problem.weights is None else problem.target[problem.weights > 0]
    away = np.abs(y - level).max(axis=0, initial=0.0)
    # A column that does not vary moves as the intercept does.
    size = np.where(scale > 64 * _EPS * np.abs(centre), scale, np.abs(centre))[:, None]
    with np.errstate(divide="ignore", invalid="ignore"):
        alone = np.where(size > 0, away / size, 0.0)
    radius = _RADIUS * away if problem.fit_intercept else np.zeros_like(away)
    return _RADIUS * (np.abs(W) + alone), radius


def lower_bound(
    X: Array,
    y: Array,
    w: Array,
    b: float,
    u: Array,
    centre: Array,
    reach: Array,
    radius: float,
) -> tuple[float, float]:
    """The bound of the module's text for rows X with multipliers u, and the size of its terms."""
    m, d = X.shape
    if not m or not u.any():
        return 0.0, 0.0
    if m * (d + 2) <= _DOUBLED:
        high, low = residual_doubled(X, w, b, y)
        pair = np.column_stack([high, low])
        levelled = np.array(transposed_product_doubled(pair, u, np.zeros(m)))[:, :2].sum()
        total = transposed_product_doubled(X, u, np.zeros(m))
        # The doubled V - c e: its parts cancel, so high parts first.
        e_high, e_low = total[0][-1], total[1][-1]
        shift = two_product(centre, np.full(d, e_high))
        V = (total[0][:-1] - shift[0]) + (total[1][:-1] - shift[1] - centre * e_low)
        e = e_high + e_low
        units = (m + 64) * (np.log2(m + 2) + 4) * _EPS**2
    else:
        centred = X - centre
        levelled = float(u @ (y - (X @ w + b)))
        V, e = centred.T @ u, float(u.sum())
        units = (m + d + 16) * _EPS
    size = np.abs(X - centre).T @ np.abs(u)
    beside = np.abs(X) @ np.abs(w) + abs(b) + np.abs(y)
    V_error = units * (size + np.abs(centre)) + 4 * _EPS * np.abs(V)
    missed = float((np.abs(V) + V_error) @ reach) + (abs(e) + units) * radius
    rounding = (units + (d + 8) ** 2 * _EPS**2) * float(np.abs(u) @ beside) + 4 * _EPS * missed
    return float(levelled - missed - 2 * rounding), abs(float(levelled)) + missed
