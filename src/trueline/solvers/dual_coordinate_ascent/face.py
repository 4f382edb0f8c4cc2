r"""Conjugate gradients on the face of the box where the dual variables have settled.

Coordinate descent soon tells which variables end at a bound or at the kink, and then improves the
others by a fixed factor each sweep. On their face the function is quadratic,

    f(beta + delta) = f(beta) + g.delta + 1/2 || sum_i delta_i x_i ||^2 + sum_i h_i/2 delta_i^2,

and conjugate gradients (preconditioned by the diagonal) take the root of the sweeps that are left.
Where a step leaves the face it is clipped to it, and what remains is followed to the minimum along
it: the function never rises. (J. J. More and G. Toraldo, "On the solution of large quadratic
programming problems with bound constraints", SIAM J. Optim. 1 (1991) 93-113, alternate between
gradient projection and conjugate gradients in this way; sweeps are our projection.)

What is compiled of faces: kinds of variables; conjugate gradients on few compressed rows.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from trueline.design.sparse_columns import column_dot
from trueline.numerics.jit import kernel
from trueline.solvers.conjugate_gradients import conjugate_gradients
from trueline.solvers.dual_coordinate_ascent.kernels import add_row
from trueline.solvers.dual_coordinate_ascent.rows import Rows

__all__ = ["Face", "conjugate_gradients_sparse", "face_of", "kinds", "kinds_of", "minimise_on"]

Array = NDArray[np.float64]

# Steps of conjugate gradients, at most; more where they cost little beside all else.
_STEPS, _MORE = 6, 12
# Directions that bend less than this, compared with their parts alone, count as straight.
_FLAT = 1e-12


class Face(NamedTuple):
    """The variables that are free to move, and between which walls."""

    free: NDArray[np.int64]
    low: Array
    high: Array


def kinds(beta: Array, terms: Array) -> NDArray[np.int8]:
    """Of each variable: 2 or -2 at a bound, 1 or -1 on a side of the kink, 0 at it."""
    # Without a kink zero is a place like any other.
    return kinds_of(beta, terms, bool(terms[:, 1].any()))


def face_of(kind: NDArray[np.int8], terms: Array) -> Face:
    """The face that variables of these kinds span."""
    free = np.flatnonzero((np.abs(kind) == 1) & (terms[:, 5] > 0))
    low, high = terms[free, 3], terms[free, 4]
    if terms[:, 1].any():
        low = np.where(kind[free] > 0, np.maximum(low, 0.0), low)
        high = np.where(kind[free] < 0, np.minimum(high, 0.0), high)
    return Face(free, low, high)


def minimise_on(
    rows: Rows, face: Face, terms: Array, beta: Array, w: Array, scores: Array, enough: float
) -> bool:
    """Move ``beta`` and ``w`` towards the minimum on a face; whether that made any difference.

    Parameters
    ----------
    rows : Rows
    face : Face
    terms : array of shape (n, 6)
        As the sweeps take them.
    beta, w : arrays of shape (n,) and (d + 1,)
        Changed in place.
    scores : array of shape (n,)
        x_i.w, and what was added to all scores.
    enough : float
        How much of the slope, squared, may remain.
    """
    free = face.free
    t, e, h, curvature = terms[free][:, [0, 1, 2, 5]].T
    at = beta[free]
    side = np.where(face.low >= 0.0, 1.0, -1.0)
    g = scores[free] + h * at - t + e * side
    if rows.is_short(len(free)):
        x = conjugate_gradients_sparse(
            *rows.compressed, rows.constant, rows.size, free, g, h, curvature, enough, _MORE, _FLAT
        )
    else:
        x = _conjugate_gradients(rows, free, g, h, curvature, enough)
    for bounded in (_to_the_face, _to_the_wall):
        step = bounded(x, at, face)
        fall = -float(g @ step)
        if fall > 0:
            moved = rows.weighted_sum(free, step)
            rise = float(moved @ moved + (h * step) @ step)
            length = min(1.0, fall / rise) if rise > 0 else 1.0
            beta[free] = np.clip(at + length * step, face.low, face.high)
            w += length * moved
            return True
    return False


def _conjugate_gradients(
    rows: Rows, free: NDArray[np.int64], g: Array, h: Array, bend: Array, enough: float
) -> Array:
    """About -H^-1 g for the H of the face.

    The constant that ends every row makes one eigenvalue as large as there are rows: the minimum
    along the direction of ones comes first, and all others are conjugate to it.
    """

    def times(v: Array) -> Array:
        return rows.roughly_there_and_back(free, v) + h * v

    ones = np.ones(len(free))
    bent = times(ones) if rows.constant else ones
    total = float(bent.sum())
    # Without variables, or without bend along them, there is no such minimum.
    has_level = bool(rows.constant) and total > 0
    level = -float(g.sum()) / total if has_level else 0.0

    def conditioned(r: Array) -> Array:
        z = r / bend
        return z - float(bent @ z) / total if has_level else z

    x, _ = conjugate_gradients(
        times,
        -g - level * bent,
        conditioned,
        most=_STEPS,
        enough=enough,
        flat=lambda direction: _FLAT * float(direction @ (bend * direction)),
    )
    return level + x


def _to_the_face(x: Array, at: Array, face: Face) -> Array:
    """A step, clipped to the face."""
    return np.clip(at + x, face.low, face.high) - at


def _to_the_wall(x: Array, at: Array, face: Face) -> Array:
    """As much of a step as stays on the face."""
    with np.errstate(divide="ignore", invalid="ignore"):
        room = np.where(x > 0, (face.high - at) / x, np.where(x < 0, (face.low - at) / x, np.inf))
    return min(1.0, float(room.min(initial=1.0))) * x


Indices = NDArray[np.int32]
Integers = NDArray[np.int64]


@kernel
def kinds_of(beta: Array, terms: Array, has_kink: bool) -> NDArray[np.int8]:
    """Of each variable: 2 or -2 at a bound, 1 or -1 on a side of the kink, 0 at it."""
    out = np.empty(len(beta), np.int8)
    for i in range(len(beta)):
        at = beta[i]
        if at >= terms[i, 4]:
            out[i] = 2
        elif at <= terms[i, 3]:
            out[i] = -2
        elif not has_kink or at > 0.0:
            out[i] = 1
        else:
            out[i] = -1 if at < 0.0 else 0
    return out


@kernel
def bent(
    data: Array,
    indices: Indices,
    indptr: Integers,
    constant: float,
    free: Integers,
    h: Array,
    v: Array,
    pulled: Array,
    out: Array,
) -> None:
    """H v of the face: products with the rows there and back, and what the losses bend."""
    pulled[:] = 0.0
    level = 0.0
    for k in range(len(free)):
        i = free[k]
        add_row(data, indices, indptr[i], indptr[i + 1], v[k], pulled)
        level += v[k]
    level *= constant * constant
    for k in range(len(free)):
        i = free[k]
        product = column_dot(data, indices, indptr[i], indptr[i + 1], pulled)
        out[k] = product + level + h[k] * v[k]


@kernel
def conjugate_gradients_sparse(
    data: Array,
    indices: Indices,
    indptr: Integers,
    constant: float,
    size: int,
    free: Integers,
    g: Array,
    h: Array,
    bend: Array,
    enough: float,
    steps: int,
    flat: float,
) -> Array:
    """About -H^-1 g, as the text of this module says it: level first, then steps."""
    count = len(free)
    pulled, level, total = np.empty(size), np.ones(count), 0.0
    ones, product = np.ones(count), np.empty(count)
    if constant != 0.0:
        bent(data, indices, indptr, constant, free, h, ones, pulled, level)
        total = level.sum()
    shift = -g.sum() / total if total > 0.0 else 0.0
    x, r = shift * ones, -g - shift * level
    z = conditioned(r, bend, level, total)
    direction, left = z, (r * z).sum()
    enough *= left
    for _ in range(steps):
        if not left > enough:
            break
        bent(data, indices, indptr, constant, free, h, direction, pulled, product)
        curvature = (direction * product).sum()
        if not curvature > flat * (direction * bend * direction).sum():
            break
        length = left / curvature
        x += length * direction
        r -= length * product
        z = conditioned(r, bend, level, total)
        before, left = left, (r * z).sum()
        direction = z + (left / before) * direction
    return x


@kernel
def conditioned(r: Array, bend: Array, level: Array, total: float) -> Array:
    """Divided by the diagonal, and conjugate to the direction of ones if that bends."""
    z = r / bend
    if total > 0.0:
        z -= (level * z).sum() / total
    return z
