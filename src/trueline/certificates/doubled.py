r"""Evaluation in twice the digits, for claims that double precision cannot decide.

Plain NumPy, shared with no solver. With eps the spacing of doubles at 1:

    exact product    a b = p + e                                    without error (Dekker 1971)
    sum of m terms   error <= m (log2 m + 3) / 2 eps^2 sum |terms|  by a tree of exact additions

The second bound: each of the log2 m levels of the tree leaves errors of at most eps/2 times the sum
of the magnitudes, and those, at most m of them, are added up in double precision.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from trueline.certificates.base import Certificate

__all__ = [
    "Doubled",
    "evaluate_doubled",
    "exact_product",
    "mean_doubled",
    "objective_doubled",
    "tree_sum",
]

Array = NDArray[np.float64]
Pair = tuple[Array, Array]

_EPS = float(np.finfo(np.float64).eps)
# A product that underflows errs by a few of the smallest numbers there are.
_SMALLEST = 1e-321
_ELEMENTS = 1 << 18


class Rows(Protocol):
    """Consecutive blocks of dense rows, with targets y, weights s, and sizes n, d."""

    n: int
    d: int
    y: Array
    s: Array

    def __iter__(self) -> Iterator[tuple[slice, Array]]: ...


def two_sum(a: Any, b: Any) -> tuple[Any, Any]:
    """a + b = s + e, exactly (Knuth)."""
    s = a + b
    t = s - a
    return s, (a - (s - t)) + (b - t)


def exact_product(a: Any, b: Any) -> tuple[Any, Any]:
    """a * b = p + e, exactly (Dekker 1971), if nothing overflows or underflows."""
    p = a * b
    t = 134217729.0 * a
    a1 = t - (t - a)
    a2 = a - a1
    t = 134217729.0 * b
    b1 = t - (t - b)
    b2 = b - b1
    return p, ((a1 * b1 - p) + a1 * b2 + a2 * b1) + a2 * b2


def tree_sum(terms: Array) -> Pair:
    """Sum over the first axis, as a sum and the sum of its rounding errors."""
    error = np.zeros(terms.shape[1:])
    if len(terms) == 0:
        return error, error
    while len(terms) > 1:
        half = len(terms) // 2
        sums, errors = two_sum(terms[:half], terms[half : 2 * half])
        error = error + errors.sum(axis=0)
        terms = np.concatenate([sums, terms[2 * half :]]) if len(terms) % 2 else sums
    return two_sum(terms[0], error)


def sum_units(m: int) -> float:
    """The bound on the relative error of :func:`tree_sum`."""
    return m * (math.ceil(math.log2(m + 1)) + 3) / 2 * _EPS**2


def _small_blocks(rows: Rows) -> Iterator[tuple[slice, Array]]:
    """Blocks of so few rows that a dozen copies of them do not matter."""
    few = max(1, _ELEMENTS // (rows.d + 2))
    for where, block in rows:
        for start in range(0, len(block), few):
            part = block[start : start + few]
            yield slice(where.start + start, where.start + start + len(part)), part


def _fold(parts: Iterable[Pair], shape: tuple[int, ...]) -> Pair:
    """The sum of doubled numbers."""
    pairs = list(parts)
    if not pairs:
        return np.zeros(shape), np.zeros(shape)
    high, low = tree_sum(np.array([high for high, _ in pairs]))
    return two_sum(high, low + np.sum([low for _, low in pairs], axis=0))


def weight_doubled(s: Array) -> tuple[float, float]:
    """The total weight, as a doubled number."""
    high = math.fsum(s)
    return high, math.fsum([*s.tolist(), -high])


def mean_doubled(rows: Rows) -> tuple[Array, Array, Array]:
    """Weighted means of the columns as doubled numbers, and a bound on their error."""
    parts, size = [], np.zeros(rows.d)
    largest, blocks = 1, 0
    for where, block in _small_blocks(rows):
        s = rows.s[where, None]
        products, errors = exact_product(block, s)
        high, low = tree_sum(products)
        parts.append((high, low + errors.sum(axis=0)))
        size += (np.abs(block) * s).sum(axis=0)
        largest, blocks = max(largest, len(block)), blocks + 1
    high, low = _fold(parts, (rows.d,))
    weight, rest = weight_doubled(rows.s)
    mean = high / weight
    back, error = exact_product(mean, weight)
    mean_low = (((high - back) - error) + (low - mean * rest)) / weight
    mean, mean_low = two_sum(mean, mean_low)
    units = sum_units(largest) + sum_units(blocks) + (largest + blocks + 16) * _EPS**2
    return mean, mean_low, units * size / weight + rows.n * _SMALLEST


@dataclass(frozen=True)
class Doubled:
    """Objective, gradient at the best intercept and derivative in b, with bounds on their error."""

    objective: float
    objective_rounding: float
    gradient: Array
    gradient_rounding: Array
    slope: Array
    slope_rounding: Array


def evaluate_doubled(certificate: Certificate, rows: Rows, curvature: Array) -> Doubled:
    """Squared loss with a quadratic penalty, evaluated in twice the digits."""
    W, b = certificate.coef, certificate.intercept
    g, g_error = np.zeros_like(W), np.zeros_like(W)
    slope, slope_error = np.zeros_like(b), np.zeros_like(b)
    penalty = certificate.penalty.value(W)
    squares, rounding = [penalty], (len(W) + 16) * _EPS * abs(penalty)
    mean, mean_low, mean_error = np.zeros(rows.d), np.zeros(rows.d), np.zeros(rows.d)
    if certificate.fit_intercept:
        mean, mean_low, mean_error = mean_doubled(rows)
    for t in range(W.shape[1]):
        one = _Target(rows, W[:, t], float(b[t]), t, mean, mean_low)
        squares += one.squares
        rounding += one.square_rounding
        bend, bend_low = exact_product(curvature[:, t], W[:, t])
        high, rest = two_sum(one.g[0], bend)
        g[:, t] = high + (rest + (one.g[1] + bend_low))
        g_error[:, t] = one.g_error + 16 * _EPS**2 * (np.abs(one.g[0]) + np.abs(bend))
        g_error[:, t] += 2 * _EPS * np.abs(g[:, t]) + _SMALLEST
        if certificate.fit_intercept:
            slope[t] = sum(one.h)
            slope_error[t] = one.h_error + _EPS * abs(slope[t])
            g_error[:, t] += mean_error * (abs(slope[t]) + slope_error[t])
    total = math.fsum(squares)
    return Doubled(total, rounding + 2 * _EPS * abs(total), g, g_error, slope, slope_error)


class _Target:
    """Sums over the rows for one target: squares, X_c^T S r and sum s r, with error bounds."""

    def __init__(
        self, rows: Rows, w: Array, b: float, t: int, mean: Array, mean_low: Array
    ) -> None:
        self.squares: list[float] = []
        self.square_rounding = 0.0
        parts, sums = [], []
        size, columns, total = np.zeros(rows.d), np.zeros(rows.d), 0.0
        residual_units = sum_units(rows.d + 2)
        largest, blocks, moved = 1, 0, 0.0
        for where, block in _small_blocks(rows):
            s, y = rows.s[where], rows.y[where, t]
            hi, lo = residual_doubled(block, w, b, y)
            reach = np.abs(block) @ np.abs(w) + abs(b) + np.abs(y)
            off = residual_units * reach + rows.d * _SMALLEST
            value = 0.5 * (s * hi) * hi
            self.squares += value.tolist()
            self.square_rounding += (
                float((s * np.abs(hi) * off + 0.5 * s * off**2 + 8 * _EPS * value).sum())
                + len(value) * _SMALLEST
            )
            weighted, rest = exact_product(hi, s)
            rest = rest + lo * s
            centred, below = two_sum(block, -mean)
            below = below - mean_low
            products, slack = exact_product(centred, weighted[:, None])
            high, low = tree_sum(products)
            parts.append((high, low + slack.sum(axis=0) + rest @ centred + weighted @ below))
            high, low = tree_sum(weighted)
            sums.append((high, low + rest.sum()))
            away = np.abs(centred) + np.abs(below)
            size += (s * reach) @ away
            columns += s @ away
            moved += float(np.abs(weighted).sum())
            total += float((s * reach).sum())
            largest, blocks = max(largest, len(block)), blocks + 1
        self.g, self.h = _fold(parts, (rows.d,)), _fold(sums, ())
        units = residual_units + sum_units(largest) + sum_units(blocks)
        units += (3 * largest + 2 * blocks + 16) * _EPS**2
        self.g_error = units * size + 4 * _EPS**2 * np.abs(mean) * moved
        self.g_error += (rows.d * columns + 4 * rows.n) * _SMALLEST
        self.h_error = units * total + (rows.d * float(rows.s.sum()) + 4 * rows.n) * _SMALLEST


def objective_doubled(certificate: Certificate, rows: Rows) -> tuple[float, float]:
    """The objective for any loss, from scores in twice the digits, and a bound on its error."""
    loss, W, b = certificate.loss, certificate.coef, certificate.intercept
    penalty = certificate.penalty.value(W)
    values, rounding = [penalty], (len(W) + 16) * _EPS * abs(penalty)
    units = sum_units(rows.d + 2)
    is_coupled = "coupled" in loss.capabilities
    for where, block in _small_blocks(rows):
        s, y = rows.s[where], rows.y[where]
        z = np.empty(y.shape)
        for t in range(W.shape[1]):
            z[:, t], _ = residual_doubled(block, W[:, t], float(b[t]), np.zeros(len(y)))
        off = units * (np.abs(block) @ np.abs(W) + np.abs(b)) + _EPS * np.abs(z)
        # Coupled losses are of a whole row, others of one target each.
        parts = [slice(None)] if is_coupled else [slice(t, t + 1) for t in range(W.shape[1])]
        for t, part in enumerate(parts):
            own = loss.of_target(t)
            value = s[:, None] * own.value(y[:, part], z[:, part])
            values += value.ravel().tolist()
            bend = own.most_curvature(y[:, part], z[:, part], off[:, part])
            slope = np.abs(own.gradient(y[:, part], z[:, part])) + bend * off[:, part]
            slope = np.minimum(slope, own.slope_bound)
            passed_on = s[:, None] * slope * off[:, part]
            rounding += float((passed_on + 8 * _EPS * np.abs(value)).sum())
    total = math.fsum(values)
    return total, rounding + 2 * _EPS * abs(total) + rows.n * _SMALLEST


def residual_doubled(block: Array, w: Array, b: float, y: Array) -> Pair:
    """X w + b - y as doubled numbers."""
    terms = np.empty((len(w) + 2, len(block)))
    terms[:-2], errors = exact_product(block.T, w[:, None])
    terms[-2], terms[-1] = b, -y
    high, low = tree_sum(terms)
    return two_sum(high, low + errors.sum(axis=0))
