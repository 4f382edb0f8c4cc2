r"""Coordinate descent on the model of a proximal Newton step, column by column.

    minimise over D     G.D + 1/2 D.H D + sum_jt ( l_j abs(V + D)_jt + a_j/2 (V + D)_jt^2 )

with H = X^T S l''(z) X, of which only Q = X D is kept, one row for each row of X. Along one entry,
with g its slope without the absolute value and h its curvature, the best V + D is
soft(h (V + D) - g, l) / h. Columns are compressed.

(G.-X. Yuan, C.-H. Ho, C.-J. Lin, "An improved GLMNET for L1-regularized logistic regression",
J. Mach. Learn. Res. 13 (2012) 1999-2030; for coupled scores the whole curvature of a row,
diag(p) - p p^T, is kept, by M_i = sum_t p_it Q_it beside Q.)
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from trueline._jit import kernel
from trueline.design.sparse_columns import column_dot

__all__ = [
    "conjugate_steps",
    "diagonal",
    "gram_steps",
    "scale_columns",
    "solve_gram",
    "solve_single",
    "support_gram",
    "sweep_coupled",
]

Array = NDArray[np.float64]
Indices = NDArray[np.int32]
Integers = NDArray[np.int64]


@kernel
def _moved(at: float, slope: float, bend: float, linear: float) -> float:
    """The best place of one entry, from its slope at the present one."""
    pull = bend * at - slope
    if pull > linear:
        return (pull - linear) / bend
    if pull < -linear:
        return (pull + linear) / bend
    return 0.0


@kernel
def _violation(at: float, slope: float, linear: float) -> float:
    """The distance of zero from the slopes that are possible at a point."""
    if at > 0.0:
        return abs(slope + linear)
    if at < 0.0:
        return abs(slope - linear)
    return max(abs(slope) - linear, 0.0)


@kernel
def diagonal(data: Array, indices: Indices, indptr: Integers, h: Array, out: Array) -> None:
    """sum_i h_it x_ij^2 for all columns j and targets t."""
    for j in range(len(indptr) - 1):
        for t in range(h.shape[1]):
            out[j, t] = 0.0
        for place in range(indptr[j], indptr[j + 1]):
            i = np.uint64(indices[place])
            square = data[place] * data[place]
            for t in range(h.shape[1]):
                out[j, t] += square * h[i, t]


@kernel
def scale_columns(
    data: Array,
    indices: Indices,
    indptr: Integers,
    root: Array,
    scaled: Array,
    out: Array,
    first: int,
    last: int,
) -> None:
    """root_i x_ij and its sum of squares, for columns first..last-1."""
    for j in range(first, last):
        total = 0.0
        for place in range(np.uint64(indptr[j]), np.uint64(indptr[j + 1])):
            value = data[place] * root[np.uint64(indices[place])]
            scaled[place] = value
            total += value * value
        out[j] = total


@kernel
def _sweep_single(
    data: Array,
    indices: Indices,
    indptr: Integers,
    columns: Integers,
    count: int,
    Q: Array,
    V: Array,
    D: Array,
    G: Array,
    bends: Array,
    linear: Array,
    quad: Array,
) -> tuple[int, float]:
    """One sweep for one target.

    Columns that stay in play are put first; their number is returned, and the sum of violations.
    """
    total, kept = 0.0, 0
    for place in range(count):
        j = columns[place]
        slope = G[j] + quad[j] * D[j] + column_dot(data, indices, indptr[j], indptr[j + 1], Q)
        at = V[j] + D[j]
        total += _violation(at, slope, linear[j])
        best = _moved(at, slope, bends[j], linear[j])
        change = best - at
        if change != 0.0 or best != 0.0:
            columns[kept], columns[place] = j, columns[kept]
            kept += 1
        if change != 0.0:
            D[j] += change
            for k in range(np.uint64(indptr[j]), np.uint64(indptr[j + 1])):
                Q[np.uint64(indices[k])] += change * data[k]
    return kept, total


@kernel
def solve_single(
    data: Array,
    indices: Indices,
    indptr: Integers,
    columns: Integers,
    Q: Array,
    V: Array,
    D: Array,
    G: Array,
    bends: Array,
    linear: Array,
    quad: Array,
    least: int,
    most: int,
    coarse: float,
    fine: float,
) -> int:
    """Sweeps for one target until little of the first violation is left; their number.

    The rows are those of :func:`scale_columns`, by the roots of their curvatures: one vector of
    Q = X D is read then, not two. The share that may be left is ``coarse`` during the first
    ``least`` sweeps, ``fine`` after them.
    """
    count, first = len(columns), 0.0
    for number in range(most):
        count, total = _sweep_single(
            data, indices, indptr, columns, count, Q, V, D, G, bends, linear, quad
        )
        if number == 0:
            first = total
        elif total <= (coarse if number < least else fine) * first:
            return number + 1
    return most


@kernel(reassociate=True)
def _shift(step: float, row: Array, slopes: Array) -> None:
    for j in range(len(row)):
        slopes[j] += step * row[j]


@kernel
def solve_gram(
    H: Array, V: Array, G: Array, linear: Array, most: int, left: float, D: Array
) -> int:
    """Coordinate descent on the model with its Hessian at hand; how many sweeps it took.

    G becomes G + H D. Sweeps end when so much of the first violation is left.
    """
    first = 0.0
    for number in range(most):
        total = 0.0
        for j in range(len(V)):
            at = V[j] + D[j]
            total += _violation(at, G[j], linear[j])
            change = _moved(at, G[j], H[j, j], linear[j]) - at
            if change != 0.0:
                D[j] += change
                _shift(change, H[j], G)
        if number == 0:
            first = total
        elif total <= left * first:
            return number + 1
    return most


@kernel
def support_gram(
    data: Array, indices: Indices, indptr: Integers, columns: Integers, h: Array, H: Array
) -> None:
    """H = sum_i h_i x_i x_i^T of some columns.

    By rows, for which the entries are put in their order first: rows of text hold few of the
    columns that are left, and cost the square of their number.
    """
    m, n = len(columns), len(h)
    start = np.zeros(n + 1, np.int64)
    for k in range(m):
        for place in range(indptr[columns[k]], indptr[columns[k] + 1]):
            start[np.uint64(indices[place]) + np.uint64(1)] += 1
    for i in range(n):
        start[i + 1] += start[i]
    where, what = np.empty(start[n], np.int64), np.empty(start[n])
    for k in range(m):
        for place in range(indptr[columns[k]], indptr[columns[k] + 1]):
            row = np.uint64(indices[place])
            where[start[row]], what[start[row]] = k, data[place]
            start[row] += 1
    first = 0
    for i in range(n):
        for a in range(first, start[i]):
            weighed = h[i] * what[a]
            for b in range(first, a + 1):
                H[where[a], where[b]] += weighed * what[b]
        first = start[i]
    for a in range(m):
        for b in range(a):
            H[b, a] = H[a, b]


@kernel(reassociate=True)
def gram_steps(H: Array, slope: Array, most: int, left: float, D: Array) -> int:
    """As :func:`conjugate_steps`, with H at hand."""
    m = len(slope)
    R, p, image, scale = -slope, np.empty(m), np.empty(m), np.empty(m)
    size = 0.0
    for k in range(m):
        scale[k] = 1.0 / H[k, k]
        p[k] = R[k] * scale[k]
        size += R[k] * p[k]
    first = size
    for number in range(most):
        if size <= left * first or size <= 0.0:
            return number
        bend = 0.0
        for k in range(m):
            total = 0.0
            for j in range(m):
                total += H[k, j] * p[j]
            image[k] = total
            bend += p[k] * total
        if not bend > 0.0:
            return number
        step, before = size / bend, size
        size = 0.0
        for k in range(m):
            D[k] += step * p[k]
            R[k] -= step * image[k]
            size += R[k] * R[k] * scale[k]
        for k in range(m):
            p[k] = R[k] * scale[k] + (size / before) * p[k]
    return most


@kernel
def conjugate_steps(
    data: Array,
    indices: Indices,
    indptr: Integers,
    columns: Integers,
    h: Array,
    quad: Array,
    bends: Array,
    slope: Array,
    most: int,
    left: float,
    D: Array,
    change: Array,
) -> int:
    """Conjugate gradients for H D = -slope on some columns, one target; how many steps.

    ``slope`` and ``D`` are of these columns, ``bends`` the diagonal of H (of all columns, as
    ``quad``), ``change`` becomes X D. They end when the residual, squared and in the norm of the
    diagonal, is ``left`` of what it was.
    """
    m, n = len(columns), len(h)
    R, p, scale = np.empty(m), np.empty(m), np.empty(m)
    image, along = np.empty(m), np.empty(n)
    size = 0.0
    for k in range(m):
        bend = bends[columns[k]]
        scale[k] = 1.0 / bend if bend > 0.0 else 1.0
        R[k] = -slope[k]
        p[k] = R[k] * scale[k]
        size += R[k] * p[k]
    first = size
    for number in range(most):
        if size <= left * first or size <= 0.0:
            return number
        along[:] = 0.0
        for k in range(m):
            j, step = columns[k], p[k]
            for place in range(indptr[j], indptr[j + 1]):
                along[np.uint64(indices[place])] += step * data[place]
        bend = 0.0
        for k in range(m):
            j = columns[k]
            total = 0.0
            for place in range(indptr[j], indptr[j + 1]):
                i = np.uint64(indices[place])
                total += data[place] * (h[i] * along[i])
            image[k] = total + quad[j] * p[k]
            bend += p[k] * image[k]
        if not bend > 0.0:
            return number
        step, before = size / bend, size
        size = 0.0
        for k in range(m):
            D[k] += step * p[k]
            R[k] -= step * image[k]
            size += R[k] * R[k] * scale[k]
        for k in range(m):
            p[k] = R[k] * scale[k] + (size / before) * p[k]
        for row in range(n):
            change[row] += step * along[row]
    return most


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
    V: Array,
    D: Array,
    G: Array,
    bends: Array,
    linear: Array,
    quad: Array,
) -> tuple[int, float]:
    """One sweep for coupled scores with probabilities P."""
    total, kept = 0.0, 0
    for place in range(count):
        j = columns[place]
        stays = False
        for t in range(P.shape[1]):
            slope = G[j, t] + quad[j] * D[j, t]
            for k in range(indptr[j], indptr[j + 1]):
                i = np.uint64(indices[k])
                slope += data[k] * (s[i] * P[i, t] * (Q[i, t] - M[i]))
            at = V[j, t] + D[j, t]
            total += _violation(at, slope, linear[j])
            best = _moved(at, slope, bends[j, t], linear[j])
            change = best - at
            if change != 0.0 or best != 0.0:
                stays = True
            if change != 0.0:
                D[j, t] += change
                for k in range(indptr[j], indptr[j + 1]):
                    i = np.uint64(indices[k])
                    step = change * data[k]
                    Q[i, t] += step
                    M[i] += P[i, t] * step
        if stays:
            columns[kept], columns[place] = j, columns[kept]
            kept += 1
    return kept, total
