r"""The model of a proximal Newton step on compressed columns, intercept eliminated.

    minimise over D, f    G.D + g f + 1/2 (X D + f)^T S (X D + f)
                          + sum_j ( l_j abs(V + D)_j + a_j/2 (V + D)_j^2 )

with S the curvatures h_i of the losses, G, g the slopes of coefficients and intercept. For given D
the best f is -(g + m.D) with m_j = sum_i h_i x_ij / sum_i h_i, and what is left is the same model
about the means m: slopes G - m g, curvatures x_j.S x_j - m_j^2 sum_i h_i. A sweep then moves the
intercept with every coefficient, at the price of one product, where a column of ones would cost as
much as all rows and hold back everything else.

Columns are scaled by the roots of h: one vector q = S^1/2 X D is read then, not two.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from trueline._jit import kernel
from trueline.design.sparse_columns import column_dot
from trueline.solvers.columns.kernels import _moved, _violation

__all__ = ["find_reaches", "find_slopes", "scale_about_means", "solve_face", "solve_model"]

Array = NDArray[np.float64]
Indices = NDArray[np.int32]
Integers = NDArray[np.int64]


@kernel
def find_reaches(data: Array, indices: Indices, indptr: Indices, s: Array, out: Array) -> None:
    """sum_i s_i abs(x_ij) for all columns j."""
    for j in range(len(out)):
        total = 0.0
        for e in range(np.uint64(indptr[j]), np.uint64(indptr[j + 1])):
            total += abs(data[e]) * s[np.uint64(indices[e])]
        out[j] = total


@kernel
def find_slopes(
    data: Array,
    indices: Indices,
    indptr: Indices,
    candidates: Integers,
    u: Array,
    V: Array,
    linear: Array,
    quad: Array,
    G: Array,
    active: Integers,
) -> tuple[int, float, tuple[float, float, float]]:
    """G = X^T u + a V of the candidates; those in play are listed.

    Their number is returned, the sum of their violations, and what the gap is made of, with
    e_j = max(0, abs(x_j.u) - l_j): sum_j (l_j abs(V_j) + a_j/2 V_j^2 + x_j.u V_j), the largest
    e_j / l_j and sum_j e_j^2 / (2 a_j).
    """
    count, total, own, excess, squares = 0, 0.0, 0.0, 0.0, 0.0
    for j in candidates:
        slope = column_dot(data, indices, indptr[j], indptr[j + 1], u)
        beyond = abs(slope) - linear[j]
        G[j] = slope + quad[j] * V[j]
        if V[j] != 0.0:
            own += linear[j] * abs(V[j]) + (0.5 * quad[j] * V[j] + slope) * V[j]
        if beyond > 0.0:
            excess = max(excess, beyond / linear[j])
            squares += beyond * (0.5 * beyond / quad[j])
        if V[j] != 0.0 or beyond > 0.0:
            active[count] = j
            count += 1
            total += _violation(V[j], G[j], linear[j])
    return count, total, (own, excess, squares)


@kernel
def scale_about_means(
    data: Array,
    indices: Indices,
    indptr: Indices,
    root: Array,
    chosen: Integers,
    level: tuple[float, float],
    quad: Array,
    G: Array,
    scaled: Array,
    bends: Array,
    means: Array,
) -> None:
    """root_i x_ij of the chosen columns, their curvatures and slopes about the means m.

    ``level`` holds sum_i h_i and the slope of the intercept; without one the first is zero.
    """
    total, slope = level
    for j in chosen:
        square = along = 0.0
        for e in range(np.uint64(indptr[j]), np.uint64(indptr[j + 1])):
            r = root[np.uint64(indices[e])]
            value = data[e] * r
            scaled[e] = value
            square += value * value
            along += value * r
        means[j] = along / total if total > 0.0 else 0.0
        G[j] -= means[j] * slope
        # What is left of a constant column is rounding: it is never divided by.
        bends[j] = max(square - means[j] * along, 1e-12 * square) + quad[j]
        if bends[j] <= 0.0:
            bends[j] = 1.0


@kernel
def solve_model(
    scaled: Array,
    indices: Indices,
    indptr: Indices,
    columns: Integers,
    total: float,
    means: Array,
    mean: float,
    q: Array,
    V: Array,
    D: Array,
    G: Array,
    bends: Array,
    linear: Array,
    quad: Array,
    most: int,
    enough: float,
) -> tuple[int, float]:
    """Sweeps until the violations add up to no more than enough: their number, and m.D after them.

    Columns that stay at zero are left out of the sweeps that follow.
    """
    count = len(columns)
    for number in range(most):
        violation, kept = 0.0, 0
        for place in range(count):
            j = columns[place]
            at = V[j] + D[j]
            slope = column_dot(scaled, indices, indptr[j], indptr[j + 1], q)
            slope += G[j] + quad[j] * D[j] - means[j] * total * mean
            violation += _violation(at, slope, linear[j])
            best = _moved(at, slope, bends[j], linear[j])
            change = best - at
            if change != 0.0 or best != 0.0:
                columns[kept], columns[place] = j, columns[kept]
                kept += 1
            if change != 0.0:
                D[j] = best - V[j]
                mean += change * means[j]
                for e in range(np.uint64(indptr[j]), np.uint64(indptr[j + 1])):
                    q[np.uint64(indices[e])] += change * scaled[e]
        count = kept
        if violation <= enough:
            return number + 1, mean
    return most, mean


@kernel
def solve_face(
    scaled: Array,
    indices: Indices,
    indptr: Indices,
    face: Integers,
    total: float,
    means: Array,
    mean: float,
    q: Array,
    V: Array,
    D: Array,
    G: Array,
    bends: Array,
    linear: Array,
    quad: Array,
    most: int,
    left: float,
) -> tuple[int, float]:
    """Conjugate gradients on the model for entries that are not zero: their number, and m.D.

    They end when the residual, squared and in the norm of the curvatures, is ``left`` of what it
    was, or where the first sign would change.
    """
    m, n = len(face), len(q)
    R, p, image, along = np.empty(m), np.empty(m), np.empty(m), np.empty(n)
    size = 0.0
    for k in range(m):
        j = face[k]
        slope = column_dot(scaled, indices, indptr[j], indptr[j + 1], q)
        slope += G[j] + quad[j] * D[j] - means[j] * total * mean
        R[k] = -slope - math.copysign(linear[j], V[j] + D[j])
        p[k] = R[k] / bends[j]
        size += R[k] * p[k]
    first = size
    for number in range(most):
        if size <= left * first or size <= 0.0:
            return number, mean
        along[:] = 0.0
        aside = 0.0
        for k in range(m):
            j, step = face[k], p[k]
            aside += means[j] * step
            for e in range(np.uint64(indptr[j]), np.uint64(indptr[j + 1])):
                along[np.uint64(indices[e])] += step * scaled[e]
        bend, limit = 0.0, np.inf
        for k in range(m):
            j = face[k]
            dot = column_dot(scaled, indices, indptr[j], indptr[j + 1], along)
            image[k] = dot + quad[j] * p[k] - means[j] * total * aside
            bend += p[k] * image[k]
            at = V[j] + D[j]
            if p[k] * at < 0.0:
                limit = min(limit, -at / p[k])
        if not bend > 0.0:
            return number, mean
        step, before, size = min(size / bend, limit), size, 0.0
        mean += step * aside
        for i in range(n):
            q[i] += step * along[i]
        for k in range(m):
            j = face[k]
            is_over = step * p[k] * (V[j] + D[j]) < 0.0 and -(V[j] + D[j]) / p[k] <= step
            D[j] = -V[j] if is_over else D[j] + step * p[k]
            R[k] -= step * image[k]
            size += R[k] * R[k] / bends[j]
        if step == limit:
            return number + 1, mean
        for k in range(m):
            p[k] = R[k] / bends[face[k]] + (size / before) * p[k]
    return most, mean
