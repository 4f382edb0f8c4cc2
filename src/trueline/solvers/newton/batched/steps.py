"""Newton's steps for one problem of two classes on few columns: compiled, or on whole arrays.

    minimise over v     sum_i s_i l(y_i, a_i.v) + a/2 sum_{j < d} v_j^2

Rows are stored column by column, ``A[j, i] = a_ij``; a constant column, if there is one, is the
last, and is not penalised. A problem of 1,500 rows and 16 columns takes less time here than calls
of NumPy for its steps would.

Hessians are summed in single precision, of columns scaled to the same size, unless a pivot of the
Cholesky factor says that digits are missing: steps need few of them. Gradients are exact.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack

from trueline.losses.logistic import derivatives, derivatives_of_arrays
from trueline.numerics.jit import kernel

Array = NDArray[np.float64]
Floats = NDArray[np.floating]
# Rows at a time: with their columns they stay in the first caches.
_CHUNK = 256
# Where so large a share of the rows has curvature, all are taken as they are.
_SOME = 0.75
# A step is good that leaves this share of the slope; evaluations are cheap beside Hessians.
_LEFT, _LOOKS = 0.25, 20
# Pivots, relative to the diagonal, below which single precision is not enough; and double.
_SINGLE, _DOUBLE = 1e-4, 1e-13
# Steps in a row that do not halve what is left: rounding.
_IDLE = 6


class Part(NamedTuple):
    """A problem: its rows, its penalty, and what the bound on its gap needs.

    Attributes
    ----------
    loss : int
        Its number in :attr:`trueline.losses.Loss.compiled`.
    A : array of shape (q, n)
    y, s : arrays of shape (n,)
        Labels, and weights, which are positive.
    strength : float
        Of the squared penalty.
    scale : array of shape (q,)
        About the inverse sizes of the columns.
    centre : array of shape (d,)
        Means of the columns.
    wide, farthest, reach : float
        See :func:`_remaining`.
    goal : float
        The gap that is enough.
    """

    loss: int
    A: Array
    y: Array
    s: Array
    strength: float
    scale: Array
    centre: Array
    wide: float
    farthest: float
    reach: float
    goal: float


def _sum_classes_whole(
    A: Array, y: Array, s: Array, shares: Array, totals: Array, squares: Array
) -> float:
    each = np.stack([s * (y < 0), s * (y > 0)])
    square = A * A
    shares[:], totals[:], squares[:] = each.sum(axis=1), each @ A.T, square @ s
    return float(square.sum(axis=0).max())


@kernel(reassociate=True, whole=_sum_classes_whole)
def sum_classes(
    A: Array, y: Array, s: Array, shares: Array, totals: Array, squares: Array
) -> float:
    """sum_i s_i and sum_i s_i a_i of either label, sum_i s_i a_i^2; the largest |a_i|^2."""
    q, n = A.shape
    norms, each, above = np.zeros(n), np.empty(n), 0.0
    for i in range(n):
        each[i] = s[i] * (0.5 + 0.5 * y[i])
        above += each[i]
    shares[0], shares[1] = s.sum() - above, above
    for j in range(q):
        both, above, square, column = 0.0, 0.0, 0.0, A[j]
        for i in range(n):
            own = s[i] * column[i]
            both += own
            above += each[i] * column[i]
            square += own * column[i]
            norms[i] += column[i] * column[i]
        totals[0, j], totals[1, j], squares[j] = both - above, above, square
    return norms.max()


def _evaluate_whole(part: Part, v: Array, z: Array, h: Array, total: Array, facts: Array) -> None:
    z[:] = v @ part.A
    u = np.empty_like(z)
    derivatives_of_arrays(part.loss, part.y, z, part.s, u, h)
    total[:] = part.A @ u
    facts[0], facts[1] = h.sum(), (u * u / part.s).sum()


@kernel(reassociate=True, whole=_evaluate_whole)
def _evaluate(part: Part, v: Array, z: Array, h: Array, total: Array, facts: Array) -> None:
    """Scores and s_i l_i'' of all rows at v, and sums over them.

    ``total`` becomes sum_i s_i u_i a_i, ``facts`` sum_i s_i l_i'' and sum_i s_i u_i^2.
    """
    A = part.A
    q, n = A.shape
    total[:] = 0.0
    u, curvature, squares = np.empty(_CHUNK), 0.0, 0.0
    for start in range(0, n, _CHUNK):
        stop = min(start + _CHUNK, n)
        own, curved, weights = z[start:stop], h[start:stop], part.s[start:stop]
        own[:] = 0.0
        for j in range(q):
            times, column = v[j], A[j, start:stop]
            for i in range(len(own)):
                own[i] += times * column[i]
        derivatives(part.loss, part.y[start:stop], own, weights, u, curved)
        for i in range(len(own)):
            curvature += curved[i]
            squares += u[i] * (u[i] / weights[i])
        for j in range(q):
            sum_j, column = 0.0, A[j, start:stop]
            for i in range(len(own)):
                sum_j += u[i] * column[i]
            total[j] += sum_j
    facts[0], facts[1] = curvature, squares


def _scaled_whole(A: Array, scale: Array, out: Any) -> Any:
    np.multiply(A, scale[:, None], out=out, casting="same_kind")
    return out


@kernel(reassociate=True, whole=_scaled_whole)
def _scaled(A: Array, scale: Array, out: Any) -> Any:
    """The columns at the same size, in the precision of ``out``."""
    for j in range(len(A)):
        for i in range(A.shape[1]):
            out[j, i] = scale[j] * A[j, i]
    return out


def _gram_whole(A: Floats, h: Array, H: Array) -> None:
    H[:, : len(A)] = (A * h.astype(A.dtype)) @ A.T


@kernel(reassociate=True, whole=_gram_whole)
def form_gram(A: Floats, h: Array, H: Array) -> None:
    """The lower triangle of A diag(h) A^T, in the precision of A by chunks of rows.

    ``H`` has three columns more than rows.
    """
    q, n = A.shape
    H[:] = 0.0
    weights, weighted = np.empty(_CHUNK, A.dtype), np.empty(_CHUNK, A.dtype)
    zero = A.dtype.type(0.0)
    for start in range(0, n, _CHUNK):
        stop = min(start + _CHUNK, n)
        m = stop - start
        for i in range(m):
            weights[i] = h[start + i]
        for j in range(q):
            column = A[j, start:stop]
            for i in range(m):
                weighted[i] = weights[i] * column[i]
            for k in range(0, j + 1, 4):
                # Four at a time read the weighted column once; beyond the diagonal one is repeated.
                a, b = A[k, start:stop], A[min(k + 1, j), start:stop]
                c, d = A[min(k + 2, j), start:stop], A[min(k + 3, j), start:stop]
                e0 = e1 = e2 = e3 = zero
                for i in range(m):
                    e0 += weighted[i] * a[i]
                    e1 += weighted[i] * b[i]
                    e2 += weighted[i] * c[i]
                    e3 += weighted[i] * d[i]
                H[j, k] += e0
                H[j, k + 1] += e1
                H[j, k + 2] += e2
                H[j, k + 3] += e3


def _some_rows_whole(A: Floats, h: Array) -> tuple[Floats, Array]:
    some = np.flatnonzero(h)
    return (A, h) if len(some) > _SOME * len(h) else (A[:, some], h[some])


@kernel(whole=_some_rows_whole)
def _some_rows(A: Floats, h: Array) -> tuple[Floats, Array]:
    """The rows with curvature: of losses with kinks those beyond them are soon few."""
    where, m = np.empty(len(h), np.intp), 0
    for i in range(len(h)):
        if h[i] != 0.0:
            where[m] = i
            m += 1
    if m > _SOME * len(h):
        return A, h
    rows, curvatures = np.empty((len(A), m), A.dtype), np.empty(m)
    for i in range(m):
        curvatures[i] = h[where[i]]
    for j in range(len(A)):
        own, column = rows[j], A[j]
        for i in range(m):
            own[i] = column[where[i]]
    return rows, curvatures


@kernel
def _hessian(A: Floats, h: Array, part: Part, H: Array) -> None:
    """The lower triangle of the Hessian of scaled columns."""
    rows, curvatures = _some_rows(A, h)
    form_gram(rows, curvatures, H)
    for j in range(len(part.centre)):
        H[j, j] += part.strength * part.scale[j] ** 2


def _factor_whole(H: Array, q: int) -> float:
    own = H[:, :q]
    before = own.diagonal().copy()
    if not before.all():  # no row has curvature: nothing is divided by zero
        before[before == 0.0] = 1.0
        own[range(q), range(q)] = before
    L, trouble = lapack.dpotrf(own, lower=1, clean=0)
    least = float((L.diagonal() ** 2 / before).min(initial=1.0))
    if trouble or not least > _DOUBLE:
        return 0.0
    own[:] = L
    return least


@kernel(reassociate=True, whole=_factor_whole)
def factor(H: Array, q: int) -> float:
    """Overwrite the lower triangle by its Cholesky factor; the least pivot over its diagonal."""
    least = 1.0
    for k in range(q):
        own, before = H[k], H[k, k]
        if before == 0.0:  # no row has curvature: nothing is divided by zero
            before = 1.0
        pivot = before
        for m in range(k):
            pivot -= own[m] * own[m]
        if not pivot > _DOUBLE * before:
            return 0.0
        own[k], least = math.sqrt(pivot), min(least, pivot / before)
        for j in range(k + 1, q, 4):
            # Four at a time read the row of the pivot once; at the end one is repeated.
            a, b, c, d = H[j], H[min(j + 1, q - 1)], H[min(j + 2, q - 1)], H[min(j + 3, q - 1)]
            e0, e1, e2, e3 = a[k], b[k], c[k], d[k]
            for m in range(k):
                e0 -= a[m] * own[m]
                e1 -= b[m] * own[m]
                e2 -= c[m] * own[m]
                e3 -= d[m] * own[m]
            a[k], b[k], c[k], d[k] = e0 / own[k], e1 / own[k], e2 / own[k], e3 / own[k]
    return least


def _solve_whole(L: Array, scale: Array, g: Array, step: Array) -> None:
    q = len(g)
    step[:] = lapack.dpotrs(L[:, :q], -g * scale, lower=1)[0] * scale


@kernel(reassociate=True, whole=_solve_whole)
def solve_factored(L: Array, scale: Array, g: Array, step: Array) -> None:
    """The step -H^-1 g, from the factor of the scaled H."""
    q = len(g)
    for j in range(q):
        own = -g[j] * scale[j]
        for m in range(j):
            own -= L[j, m] * step[m]
        step[j] = own / L[j, j]
    for j in range(q - 1, -1, -1):
        step[j] /= L[j, j]
        for m in range(j):
            step[m] -= L[j, m] * step[j]
    for j in range(q):
        step[j] *= scale[j]


@kernel
def _remaining(g: Array, part: Part, curvature: float) -> float:
    """About the gap that will be proven, by either bound of :mod:`trueline.certificates.tangent`.

    ``part.reach`` is how far the best intercept may be. ``part.wide`` is D there, infinite if the
    loss is not self-concordant, and ``part.farthest`` the largest distance of a row from the
    centre.
    """
    d = len(part.centre)
    level = g[d] if len(g) > d else 0.0
    own = g[:d] - part.centre * level
    square = own @ own
    first = 0.5 * square / part.strength + part.reach * abs(level)
    if len(g) == d or not (curvature > 0.0 and part.wide < np.inf):
        return first
    length = math.sqrt(square) + math.sqrt(part.wide / curvature) * abs(level)
    second = 0.5 * length * length / part.strength + level * level / curvature
    far = part.farthest + math.sqrt(part.wide / curvature)
    far = far / math.sqrt(part.strength) + math.sqrt(2.0 / curvature)
    # Half of the curvature is left where scores change by less than log 2.
    return min(first, second) if 2.0 * math.sqrt(2.0 * second) * far <= 0.69 else first


@kernel
def _gradient(part: Part, v: Array, z: Array, h: Array, g: Array, facts: Array) -> float:
    """Evaluate at v, g becomes the gradient; about the gap that will be proven."""
    _evaluate(part, v, z, h, g, facts)
    d = len(part.centre)
    for j in range(d):
        g[j] += part.strength * v[j]
    return _remaining(g, part, facts[0])


@kernel
def _search(
    part: Part, before: float, step: Array, v: Array, z: Array, h: Array, g: Array, facts: Array
) -> float:
    """Move v along the step, on which the slope is ``before``; about the gap there.

    The length of the step stays between the ends of a bracket of the slope's root.
    """
    left, trial = np.inf, v.copy()
    t, low, at_low, high, at_high = 1.0, 0.0, before, np.inf, np.inf
    for _ in range(_LOOKS):
        add(v, t, step, trial)
        left = _gradient(part, trial, z, h, g, facts)
        slope = float(g @ step)
        if left <= part.goal or abs(slope) <= _LEFT * abs(before):
            break
        # What is no number is beyond the root.
        if slope < 0.0:
            low, at_low = t, slope
        else:
            high, at_high = t, slope
        if high == np.inf:
            t = min(4.0 * t, t * before / (before - slope)) if slope > before else 4.0 * t
        else:
            share = at_low / (at_low - at_high) if at_high < np.inf else 0.1
            t = low + (high - low) * min(max(share, 0.1), 0.9)
    add(trial, 0.0, v, v)
    return left


def _add_whole(a: Array, t: float, b: Array, out: Array) -> None:
    out[:] = a + t * b if t else a


@kernel(whole=_add_whole)
def add(a: Array, t: float, b: Array, out: Array) -> None:
    """out = a + t b."""
    for i in range(len(a)):
        out[i] = a[i] + t * b[i] if t != 0.0 else a[i]


def _descend_whole(*arguments: Any) -> int:
    """The loop as it is: all that goes over rows in it has a form for whole arrays."""
    return descend.py_func(*arguments)  # type: ignore[attr-defined]


@kernel(whole=_descend_whole)
def descend(part: Part, v: Array, z: Array, g: Array, facts: Array, limit: int) -> int:
    """Newton's steps from v to where they end; how many were made.

    In the end z are the scores, g is the gradient, and ``facts`` are those of :func:`_evaluate`.
    """
    q, n = part.A.shape
    H, step = np.empty((q, q + 3)), np.empty(q)
    h, formed = np.empty(n), np.full(n, -1.0)
    single = _scaled(part.A, part.scale, np.empty((q, n), np.float32))
    double = np.empty((0, 0))
    left = _gradient(part, v, z, h, g, facts)
    pivot, idle, least, count = 1.0, 0, left, 0
    while left > part.goal and count < limit and idle < _IDLE:
        # A step that has passed no kink has left the Hessian as it was.
        if not np.array_equal(h, formed):
            add(h, 0.0, h, formed)
            if pivot >= _SINGLE:
                _hessian(single, h, part, H)
                pivot = factor(H, q)
            if pivot < _SINGLE:
                if len(double) == 0:
                    double = _scaled(part.A, part.scale, np.empty((q, n)))
                _hessian(double, h, part, H)
                pivot = min(factor(H, q), 0.5 * _SINGLE)
        if pivot == 0.0:
            break
        solve_factored(H, part.scale, g, step)
        before = float(g @ step)
        if not before < 0.0:
            break
        count += 1
        left = _search(part, before, step, v, z, h, g, facts)
        idle = 0 if left <= 0.5 * least else idle + 1
        least = min(least, left)
    return count
