"""Good hyperplanes: the best ones on many great circles.

On the circle v cos t + u sin t each row is right on an open half, so that sorting 2 n angles gives
the fewest errors of all its points. From the best start, circles go through other starts, towards
errors next to the boundary, in random directions, and along edges of the arrangement of the rows
(orthogonal to rows next to the boundary), across any number of adjacent cells at once.

Hyperplanes to start from are that of logistic regression, at which far-away errors pull, and those
that let them go by minimising the concave sum_i s_i log(eps + l_i) of logistic losses l_i, with
weights s_i / (eps + l_i) that are renewed after each Newton step (E. J. Candes, M. B. Wakin and S.
P. Boyd, J. Fourier Anal. Appl. 14 (2008) 877-905).
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from trueline.numerics.jit import kernel
from trueline.separation.zero_one.conflicts import evaluate, normalise, orthogonalise, sort_order

Array = NDArray[np.float64]

_NEWTON_STEPS = 12
_RENEWALS = 15
# What the surrogate is steadied by.
_RIDGE = 1e-3


def starting_points(A: Array, s: Array, is_quick: bool = False) -> Iterator[Array]:
    """Hyperplanes for signed rows in which columns have about unit size."""
    yield A[np.argmax(s)]  # gets at least this one right
    v = np.zeros(A.shape[1])
    for _ in range(_NEWTON_STEPS):
        v = _newton_step(A, s, v)
    yield v
    if is_quick:
        return
    # From the logistic fit, ever less patient with those far away.
    for eps in (1.0, 0.2, 0.04):
        v = np.zeros(A.shape[1])
        for _ in range(_RENEWALS):
            loss = np.logaddexp(0.0, -(A @ v))
            weights = s / (eps + loss)
            for _ in range(2):
                v = _newton_step(A, weights * (s.sum() / weights.sum()), v)
            yield v


def _newton_step(A: Array, s: Array, v: Array) -> Array:
    """One Newton step for the logistic loss, halved until the loss is lower."""
    z = A @ v
    p = expit(-z)
    H = (A * (s * np.maximum(p * (1 - p), 1e-6))[:, None]).T @ A
    ridge = _RIDGE * float(s.sum())
    gradient = A.T @ (s * p) - ridge * v
    step = np.linalg.solve(H + ridge * np.eye(len(v)), gradient)
    before = float(s @ np.logaddexp(0.0, -z)) + 0.5 * ridge * float(v @ v)
    for _ in range(8):
        new = v + step
        after = float(s @ np.logaddexp(0.0, -(A @ new))) + 0.5 * ridge * float(new @ new)
        if after <= before:
            return np.asarray(new)
        step = 0.5 * step
    return v


# Angles that are sorted in one improvement, at most.
_ANGLES = 1_000_000
_PATIENCE = 12


def local_search(A: Array, s: Array, seed: int = 0, is_quick: bool = False) -> tuple[float, Array]:
    """The least weight of errors that was found, and its hyperplane.

    A quick search has fewer starts.
    """
    scale, basis = _coordinates(A)
    z = np.empty(len(A))
    found: list[tuple[float, int, Array]] = []
    for u in starting_points(np.ascontiguousarray(A / scale), s, is_quick):
        v = u / scale
        if np.isfinite(v).all() and v.any():
            found.append((evaluate(A, v, s, z), len(found), v))
    found.sort(key=lambda start: start[:2])
    value, v = found[0][0], found[0][2]
    others = np.array([start[2] for start in found[1:12]]).reshape(-1, A.shape[1])
    return improve(A, s, value, v, basis, others, seed)


def improve(
    A: Array,
    s: Array,
    value: float,
    v: Array,
    basis: Array | None = None,
    others: Array | None = None,
    seed: int = 0,
) -> tuple[float, Array]:
    """Descend from a hyperplane by circles."""
    n, m = A.shape
    if m == 1 or value == 0:
        return value, v
    if basis is None:
        basis = _coordinates(A)[1]
    if others is None:
        others = np.empty((0, m))
    generator = np.random.default_rng(seed)
    circles = int(np.clip(_ANGLES // (2 * n), 50, 3000))
    random = generator.standard_normal((circles, m)) @ basis
    choices = generator.random((circles, m + 2))
    best = v.copy()
    value = _descend(A, s, value, best, others, random, choices)
    return value, best


def _coordinates(A: Array) -> tuple[Array, Array]:
    """Sizes of the columns, and directions of v in which the scores of all rows vary equally."""
    scale = np.sqrt(np.mean(A**2, axis=0))
    scale[scale == 0] = 1.0
    U = A / scale
    gram = U.T @ U / len(U)
    values, vectors = np.linalg.eigh(gram)
    values = np.maximum(values, 1e-6 * values[-1])
    return scale, np.ascontiguousarray((vectors / np.sqrt(values)).T / scale)


@kernel
def _on_circle(A: Array, s: Array, v: Array, u: Array, out: Array) -> float:
    """The least weight of errors on a circle; ``out`` becomes the middle of the widest such arc."""
    n, m = A.shape
    angles, changes = np.empty(2 * n), np.empty(2 * n)
    errors = 0.0
    for i in range(n):
        p, q = 0.0, 0.0
        for c in range(m):
            p += A[i, c] * v[c]
            q += A[i, c] * u[c]
        if p == 0.0 and q == 0.0:
            angles[2 * i], angles[2 * i + 1] = 0.0, 0.0
            changes[2 * i], changes[2 * i + 1] = 0.0, 0.0
            errors += s[i]
            continue
        middle = np.arctan2(q, p)
        first, last = middle - 0.5 * np.pi, middle + 0.5 * np.pi
        # All angles from -pi to pi; a row that is right at -pi comes in again later.
        right = last > np.pi or first <= -np.pi
        if first <= -np.pi:
            first += 2 * np.pi
        if last > np.pi:
            last -= 2 * np.pi
        angles[2 * i], changes[2 * i] = first, -s[i]
        angles[2 * i + 1], changes[2 * i + 1] = last, s[i]
        if not right:
            errors += s[i]
    order, spare = np.empty(2 * n, dtype=np.int64), np.empty(2 * n, dtype=np.int64)
    sort_order(angles, 2 * n, order, spare)
    least, width, at = np.inf, 0.0, 0.0
    for q in range(2 * n):
        errors += changes[order[q]]
        here = angles[order[q]]
        after = angles[order[q + 1]] if q + 1 < 2 * n else angles[order[0]] + 2 * np.pi
        gap = after - here
        if gap > 1e-12 and (errors < least - 1e-9 or (errors <= least + 1e-9 and gap > width)):
            least, width, at = min(errors, least), gap, here + 0.5 * gap
    for c in range(m):
        out[c] = v[c] * np.cos(at) + u[c] * np.sin(at)
    return least


@kernel
def _descend(
    A: Array, s: Array, value: float, v: Array, others: Array, random: Array, choices: Array
) -> float:
    """Move v to better points of circles; returns the weight of its errors."""
    n, m = A.shape
    new, u, z = np.empty(m), np.empty(m), np.empty(n)
    normalise(v)
    value = evaluate(A, v, s, z)
    current, at = value, v.copy()
    idle = 0
    for turn in range(len(random)):
        kind = turn % 4
        for c in range(m):
            u[c] = others[turn, c] if turn < len(others) else random[turn, c]
        if turn < len(others):
            pass
        elif kind == 1:
            _towards_error(A, z, choices, turn, u)
        elif kind >= 2:
            _along_edge(A, z, choices, turn, u)
        if not normalise(u) > 0.0:
            continue
        least = _on_circle(A, s, at, u, new)
        if least <= current:
            normalise(new)
            total = evaluate(A, new, s, z)
            if total < current:
                idle = 0
            if total <= current:
                current = total
                for c in range(m):
                    at[c] = new[c]
            else:
                evaluate(A, at, s, z)
        idle += 1
        if current <= value:
            value = current
            for c in range(m):
                v[c] = at[c]
        if value == 0.0 or idle > _PATIENCE * m:
            break
    return value


@kernel
def _towards_error(A: Array, z: Array, choices: Array, turn: int, u: Array) -> None:
    """The row that is the least wrong of a few random errors."""
    n = len(z)
    nearest, chosen = -np.inf, -1
    step = 1 + int(choices[turn, 0] * n / 8)
    i = int(choices[turn, 1] * n)
    for _ in range(n):
        i = (i + step) % n
        if z[i] <= 0.0 and z[i] > nearest:
            nearest, chosen = z[i], i
            if choices[turn, 2] < 0.5:
                break
    if chosen >= 0:
        for c in range(A.shape[1]):
            u[c] = A[chosen, c]


@kernel
def _along_edge(A: Array, z: Array, choices: Array, turn: int, u: Array) -> None:
    """Make u orthogonal to up to m - 2 rows, chosen among those nearest to the boundary."""
    n, m = A.shape
    near, spare, size = np.empty(n, dtype=np.int64), np.empty(n, dtype=np.int64), np.empty(n)
    for i in range(n):
        size[i] = abs(z[i])
    sort_order(size, n, near, spare)
    few = min(n, 3 * m)
    Q = np.empty((m, m))
    held = 0
    for q in range(int(choices[turn, m] * (m - 1))):
        row = near[int(choices[turn, q] * few)]
        for c in range(m):
            Q[held, c] = A[row, c]
        length = orthogonalise(Q, held, held)
        if length > 1e-6:
            for c in range(m):
                Q[held, c] /= length
            held += 1
    for c in range(m):
        Q[held, c] = u[c]
    orthogonalise(Q, held, held)
    for c in range(m):
        u[c] = Q[held, c]
