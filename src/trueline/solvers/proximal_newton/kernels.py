r"""Coordinate descent on the model of a proximal Newton step, column by column.

    minimise over D, f    G.D + g f + 1/2 (X D + f)^T S (X D + f)
                          + sum_j ( l_j abs(V + D)_j + a_j/2 (V + D)_j^2 )

with S the curvatures h_i of the losses, G and g the slopes of coefficients and intercept. For given
D the best f is -g / sum_i h_i - m.D with m_j = sum_i h_i x_ij / sum_i h_i: after eliminating the
intercept the model is the same with columns centred about m, of slopes G - m g and curvatures
x_j.S x_j - m_j^2 sum_i h_i. So a sweep moves the intercept with every coefficient, at the price of
one product, where a column of ones would cost as much as all rows.

Columns are compressed, and scaled by the roots of h: one vector q = S^1/2 X D is read then, not
two. What belongs to a column is in one array of seven rows, V, D, G, the curvature, l, a and m.

(G.-X. Yuan, C.-H. Ho, C.-J. Lin, "An improved GLMNET for L1-regularized logistic regression",
J. Mach. Learn. Res. 13 (2012) 1999-2030. For coupled scores the whole curvature of a row,
diag(p) - p p^T, is kept, by M_i = sum_t p_it Q_it beside Q = X D.)
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from trueline.design.sparse_columns import column_dot
from trueline.numerics.jit import kernel
from trueline.solvers.coordinate_descent.kernels import soft_threshold_step

__all__ = [
    "coupled_diagonal",
    "scale_about_means",
    "solve_face",
    "solve_model",
    "sweep_coupled",
]

Array = NDArray[np.float64]
Indices = NDArray[np.int32]
Integers = NDArray[np.int64]

_V, _D, _G, _CURVATURE, _LINEAR, _QUAD, _MEAN = range(7)


@kernel
def _violation(at: float, slope: float, linear: float) -> float:
    """The distance of zero from the slopes that are possible at a point."""
    if at > 0.0:
        return abs(slope + linear)
    if at < 0.0:
        return abs(slope - linear)
    return max(abs(slope) - linear, 0.0)


@kernel
def scale_about_means(
    data: Array,
    indices: Indices,
    indptr: Integers,
    root: Array,
    chosen: Integers,
    total: float,
    slope: float,
    state: Array,
    scaled: Array,
) -> None:
    """root_i x_ij of the chosen columns, their curvatures and slopes about the means m.

    ``total`` is sum_i h_i, or zero without an intercept, ``slope`` that of the intercept.
    """
    for j in chosen:
        square = along = 0.0
        for e in range(np.uint64(indptr[j]), np.uint64(indptr[j + 1])):
            r = root[np.uint64(indices[e])]
            value = data[e] * r
            scaled[e] = value
            square += value * value
            along += value * r
        mean = along / total if total > 0.0 else 0.0
        state[_MEAN, j] = mean
        state[_G, j] -= mean * slope
        # What is left of a constant column is rounding: it is never divided by.
        curvature = max(square - mean * along, 1e-12 * square) + state[_QUAD, j]
        state[_CURVATURE, j] = curvature if curvature > 0.0 else 1.0


@kernel
def solve_model(
    scaled: Array,
    indices: Indices,
    indptr: Integers,
    columns: Integers,
    state: Array,
    q: Array,
    total: float,
    mean: float,
    most: int,
    enough: float,
) -> tuple[int, float]:
    """Sweeps until the violations add up to no more than enough: their number, and m.D after them.

    Columns that stay at zero are left out of the sweeps that follow.
    """
    V, D, G, curvature = state[_V], state[_D], state[_G], state[_CURVATURE]
    linear, quad, means = state[_LINEAR], state[_QUAD], state[_MEAN]
    count = len(columns)
    for number in range(most):
        violation, kept = 0.0, 0
        for place in range(count):
            j = columns[place]
            at = V[j] + D[j]
            slope = column_dot(scaled, indices, indptr[j], indptr[j + 1], q)
            slope += G[j] + quad[j] * D[j] - means[j] * total * mean
            violation += _violation(at, slope, linear[j])
            correlation = curvature[j] * at - slope
            best = soft_threshold_step(correlation, linear[j], curvature[j], -np.inf, np.inf, at)
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
    indptr: Integers,
    face: Integers,
    state: Array,
    q: Array,
    total: float,
    mean: float,
    most: int,
    left: float,
) -> tuple[int, float]:
    """Conjugate gradients on the model for entries that are not zero: their number, and m.D.

    They end when the residual, squared and in the norm of the curvatures, is ``left`` of what it
    was, or where the first sign would change.
    """
    V, D, G, curvature = state[_V], state[_D], state[_G], state[_CURVATURE]
    linear, quad, means = state[_LINEAR], state[_QUAD], state[_MEAN]
    m = len(face)
    R, p, image, along = np.empty(m), np.empty(m), np.empty(m), np.empty(len(q))
    size = 0.0
    for k in range(m):
        j = face[k]
        slope = column_dot(scaled, indices, indptr[j], indptr[j + 1], q)
        slope += G[j] + quad[j] * D[j] - means[j] * total * mean
        R[k] = -slope - math.copysign(linear[j], V[j] + D[j])
        p[k] = R[k] / curvature[j]
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
        q += step * along
        for k in range(m):
            j = face[k]
            is_over = step * p[k] * (V[j] + D[j]) < 0.0 and -(V[j] + D[j]) / p[k] <= step
            D[j] = -V[j] if is_over else D[j] + step * p[k]
            R[k] -= step * image[k]
            size += R[k] * R[k] / curvature[j]
        if step == limit:
            return number + 1, mean
        for k in range(m):
            p[k] = R[k] / curvature[face[k]] + (size / before) * p[k]
    return most, mean


@kernel
def coupled_diagonal(
    data: Array,
    indices: Indices,
    indptr: Integers,
    columns: Integers,
    h: Array,
    quad: Array,
    out: Array,
) -> None:
    """sum_i h_it x_ij^2 + a_j for some columns j and all scores t; one where that is zero."""
    for j in columns:
        out[j, :] = quad[j]
        for e in range(np.uint64(indptr[j]), np.uint64(indptr[j + 1])):
            i, square = np.uint64(indices[e]), data[e] * data[e]
            for t in range(h.shape[1]):
                out[j, t] += square * h[i, t]
        for t in range(h.shape[1]):
            if out[j, t] <= 0.0:
                out[j, t] = 1.0


@kernel
def sweep_coupled(
    data: Array,
    indices: Indices,
    indptr: Integers,
    columns: Integers,
    count: int,
    s: Array,
    P: Array,
    Q: Array,
    M: Array,
    state: Array,
    strengths: Array,
) -> tuple[int, float]:
    """One sweep for coupled scores with probabilities P.

    ``state`` holds V, D, G and the curvatures, ``strengths`` l and a. Columns that stay in play are
    put first; their number is returned, and the sum of violations.
    """
    V, D, G, curvature = state[_V], state[_D], state[_G], state[_CURVATURE]
    linear, quad = strengths[0], strengths[1]
    total, kept = 0.0, 0
    for place in range(count):
        j = columns[place]
        stays = False
        for t in range(P.shape[1]):
            slope = G[j, t] + quad[j] * D[j, t]
            for e in range(np.uint64(indptr[j]), np.uint64(indptr[j + 1])):
                i = np.uint64(indices[e])
                slope += data[e] * (s[i] * P[i, t] * (Q[i, t] - M[i]))
            at = V[j, t] + D[j, t]
            total += _violation(at, slope, linear[j])
            correlation = curvature[j, t] * at - slope
            best = soft_threshold_step(correlation, linear[j], curvature[j, t], -np.inf, np.inf, at)
            change = best - at
            if change != 0.0 or best != 0.0:
                stays = True
            if change != 0.0:
                D[j, t] += change
                for e in range(np.uint64(indptr[j]), np.uint64(indptr[j + 1])):
                    i = np.uint64(indices[e])
                    step = change * data[e]
                    Q[i, t] += step
                    M[i] += P[i, t] * step
        if stays:
            columns[kept], columns[place] = j, columns[kept]
            kept += 1
    return kept, total
