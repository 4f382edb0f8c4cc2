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

from trueline.separation.zero_one.conflicts import evaluate

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
    return _descend(A, s, v, others, random, choices)


def _coordinates(A: Array) -> tuple[Array, Array]:
    """Sizes of the columns, and directions of v in which the scores of all rows vary equally."""
    scale = np.sqrt(np.mean(A**2, axis=0))
    scale[scale == 0] = 1.0
    U = A / scale
    gram = U.T @ U / len(U)
    values, vectors = np.linalg.eigh(gram)
    values = np.maximum(values, 1e-6 * values[-1])
    return scale, np.ascontiguousarray((vectors / np.sqrt(values)).T / scale)


def _on_circle(A: Array, s: Array, v: Array, u: Array) -> tuple[float, Array]:
    """The least weight of errors on a circle, and the middle of the widest such arc."""
    p, q = A @ v, A @ u
    weights = np.where((p == 0.0) & (q == 0.0), 0.0, s)  # rows of both are errors everywhere
    middle = np.arctan2(q, p)
    first, last = middle - 0.5 * np.pi, middle + 0.5 * np.pi
    # All angles from -pi to pi; a row that is right at -pi comes in again later.
    early, late = first <= -np.pi, last > np.pi
    first[early] += 2 * np.pi
    last[late] -= 2 * np.pi
    angles = np.concatenate([first, last])
    order = np.argsort(angles)
    angles = angles[order]
    errors = np.cumsum(np.concatenate([-weights, weights])[order])
    errors += s.sum() - weights[early | late].sum()
    gaps = np.diff(angles, append=angles[0] + 2 * np.pi)
    errors[gaps <= 1e-12] = np.inf
    least = float(errors.min())
    best = np.flatnonzero(errors <= least + 1e-9)
    place = best[gaps[best].argmax()]
    at = angles[place] + 0.5 * gaps[place]
    return least, v * np.cos(at) + u * np.sin(at)


def _descend(
    A: Array, s: Array, v: Array, others: Array, random: Array, choices: Array
) -> tuple[float, Array]:
    """Move v to better points of circles; the weight of its errors, and v."""
    n, m = A.shape
    z, new_z = np.empty(n), np.empty(n)
    v = v / np.linalg.norm(v)
    value, idle = evaluate(A, v, s, z), 0
    for turn, choice in enumerate(choices):
        u = others[turn] if turn < len(others) else random[turn]
        if turn >= len(others) and turn % 4 == 1:
            u = _towards_error(A, z, choice, u)
        elif turn >= len(others) and turn % 4 >= 2:
            u = _along_edge(A, z, choice, u)
        length = np.linalg.norm(u)
        if not length > 0.0:
            continue
        least, new = _on_circle(A, s, v, u / length)
        idle += 1
        if least <= value:
            new /= np.linalg.norm(new)
            total = evaluate(A, new, s, new_z)
            if total < value:
                idle = 0
            if total <= value:
                value, v, z, new_z = total, new, new_z, z
        if value == 0.0 or idle > _PATIENCE * m:
            break
    return value, v


def _towards_error(A: Array, z: Array, choice: Array, u: Array) -> Array:
    """A random error, or the one that is the least wrong."""
    wrong = np.flatnonzero(z <= 0.0)
    if not len(wrong):
        return u
    place = int(choice[1] * len(wrong)) if choice[2] < 0.5 else z[wrong].argmax()
    row: Array = A[wrong[place]]
    return row


def _along_edge(A: Array, z: Array, choice: Array, u: Array) -> Array:
    """Make u orthogonal to up to m - 2 rows, chosen among those nearest to the boundary."""
    n, m = A.shape
    few = min(n, 3 * m)
    near = np.argpartition(np.abs(z), few - 1)[:few]
    rows = near[(choice[: int(choice[m] * (m - 1))] * few).astype(np.intp)]
    Q = np.linalg.qr(A[np.unique(rows)].T)[0]
    return np.asarray(u - Q @ (Q.T @ u))
