r"""The proximal method of multipliers, for losses made of straight lines and a squared penalty.

    minimise over v     sum_e c_e max(0, z_e - t_e) + sum_i f_i z_i + sum_j a_j / 2 v_j^2,   z = A v

A row has a line of slope f_i and kinks e, where its slope rises by c_e at t_e. Let gamma > 0 and
r_e in [0, 1]. With every kink rounded to a ramp,

    pi_e = c_e clip(r_e + (z_e - t_e) / gamma, 0, 1)

takes the place of its slope, and Newton's method minimises the function that has these slopes: only
rows on a ramp are in its Hessian, and there are few of them. Then r_e = pi_e / c_e becomes the new
centre, gamma smaller, and so on: the proximal point algorithm for the multipliers pi (R. T.
Rockafellar, "Augmented Lagrangians and applications of the proximal point algorithm in convex
programming", Math. Oper. Res. 1 (1976) 97-116), which ends after finitely many rounds where the
function is made of planes and parabolas. Newton's steps inside, as in X. Li, D. Sun, K.-C. Toh, "A
highly efficient semismooth Newton augmented Lagrangian method for solving Lasso problems", SIAM J.
Optim. 28 (2018) 433-458. Since r moves, gamma never has to be so small that digits are lost, and
kinks that meet in one point need no care.

The multipliers are a dual point whatever they are. With g = A^T (f + sum pi) + a v its gap is

    sum_e [c_e max(0, z_e - t_e) - pi_e (z_e - t_e)] + sum_j g_j^2 / (2 a_j),

sums of terms that are not negative: it is known in every step, and ends the rounds.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from trueline.numerics.jit import kernel
from trueline.solvers.newton.batched.steps import add, factor, form_gram, solve_factored

Array = NDArray[np.float64]

# The first ramps, in mean distances of the kinks; how much shorter they get in a round.
FIRST_RAMP, _SHORTER = 3.0, 0.3
# Newton's steps of a round end where the second sum of the gap is this share of the first.
_ENOUGH = 0.3
# Rounds, steps of each, and rounds that do not halve the gap: rounding.
_MOST_ROUNDS, _MOST_STEPS, _IDLE = 40, 30, 2
# The last rounds, of one step each: how much shorter their ramps are, and how many there are.
_SHORTEST, _LAST_ROUNDS = 0.01, 2
# A step is good that leaves this share of the slope.
_LEFT, _TRIALS = 0.25, 20


class Ramps(NamedTuple):
    """The function, with rounded kinks.

    Attributes
    ----------
    A : array of shape (q, n)
        Rows, column by column.
    first : array of shape (n,)
        The slopes f.
    jumps, places, share : arrays of shape (kinks, n)
        c, t and r; the last changes.
    strengths : array of shape (q,)
        a, all positive.
    scale : array of shape (q,)
        About the inverse sizes of the columns.
    """

    A: Array
    first: Array
    jumps: Array
    places: Array
    share: Array
    strengths: Array
    scale: Array


def _scores_whole(A: Array, v: Array, z: Array) -> None:
    z[:] = v @ A


@kernel(reassociate=True, whole=_scores_whole)
def scores(A: Array, v: Array, z: Array) -> None:
    """z = A v."""
    z[:] = 0.0
    for j in range(len(v)):
        times, column = v[j], A[j]
        for i in range(len(z)):
            z[i] += times * column[i]


def _slopes_whole(ramps: Ramps, z: Array, gamma: float, parts: Array, u: Array, h: Array) -> float:
    offset = z - ramps.places
    np.add(ramps.share, offset / gamma, out=parts)
    inside = np.minimum(np.maximum(parts, 0.0), 1.0)
    pi = ramps.jumps * inside
    u[:] = ramps.first + pi.sum(axis=0)
    h[:] = (ramps.jumps * (inside == parts)).sum(axis=0) / gamma
    return float((ramps.jumps * np.maximum(offset, 0.0) - pi * offset).sum())


@kernel(reassociate=True, whole=_slopes_whole)
def _slopes(ramps: Ramps, z: Array, gamma: float, parts: Array, u: Array, h: Array) -> float:
    """Slopes and curvatures of the rows; the first sum of the gap.

    ``parts`` become r_e + (z_e - t_e) / gamma.
    """
    excess = 0.0
    for i in range(len(z)):
        u[i], h[i] = ramps.first[i], 0.0
    for k in range(len(ramps.jumps)):
        jumps, places, share, part = ramps.jumps[k], ramps.places[k], ramps.share[k], parts[k]
        for i in range(len(z)):
            offset = z[i] - places[i]
            part[i] = share[i] + offset / gamma
            pi = jumps[i] * min(max(part[i], 0.0), 1.0)
            u[i] += pi
            h[i] += jumps[i] / gamma if 0.0 <= part[i] <= 1.0 else 0.0
            excess += jumps[i] * max(offset, 0.0) - pi * offset
    return excess


def _total_whole(ramps: Ramps, u: Array, v: Array, g: Array) -> float:
    g[:] = ramps.A @ u + ramps.strengths * v
    return float(0.5 * (g * (g / ramps.strengths)).sum())


@kernel(reassociate=True, whole=_total_whole)
def _total(ramps: Ramps, u: Array, v: Array, g: Array) -> float:
    """g = A^T u + a v; the second sum of the gap."""
    left = 0.0
    for j in range(len(v)):
        own, column = 0.0, ramps.A[j]
        for i in range(len(u)):
            own += u[i] * column[i]
        g[j] = own + ramps.strengths[j] * v[j]
        left += 0.5 * g[j] * (g[j] / ramps.strengths[j])
    return left


def _along_whole(ramps: Ramps, parts: Array, dz: Array, t: float, gamma: float) -> float:
    inside = np.minimum(np.maximum(parts + (t / gamma) * dz, 0.0), 1.0)
    return float((ramps.first + (ramps.jumps * inside).sum(axis=0)) @ dz)


@kernel(reassociate=True, whole=_along_whole)
def _along(ramps: Ramps, parts: Array, dz: Array, t: float, gamma: float) -> float:
    """The slope of the losses along a step, at a part t of it."""
    total, far = 0.0, t / gamma
    for i in range(len(dz)):
        total += ramps.first[i] * dz[i]
    for k in range(len(ramps.jumps)):
        jumps, part = ramps.jumps[k], parts[k]
        for i in range(len(dz)):
            total += jumps[i] * min(max(part[i] + far * dz[i], 0.0), 1.0) * dz[i]
    return total


def _count_whole(h: Array) -> int:
    return int(np.count_nonzero(h))


@kernel(whole=_count_whole)
def _count(h: Array) -> int:
    """Rows with curvature."""
    found = 0
    for i in range(len(h)):
        found += h[i] > 0.0
    return found


def _gather_whole(ramps: Ramps, h: Array, rows: Array, curvatures: Array) -> None:
    some = np.flatnonzero(h)
    np.multiply(ramps.A[:, some], ramps.scale[:, None], out=rows)
    curvatures[:] = h[some]


@kernel(whole=_gather_whole)
def _gather(ramps: Ramps, h: Array, rows: Array, curvatures: Array) -> None:
    """The rows with curvature, of scaled columns."""
    place = 0
    for i in range(len(h)):
        if h[i] > 0.0:
            curvatures[place] = h[i]
            for j in range(len(ramps.A)):
                rows[j, place] = ramps.scale[j] * ramps.A[j, i]
            place += 1


def _move_centres_whole(ramps: Ramps, parts: Array) -> None:
    np.minimum(np.maximum(parts, 0.0), 1.0, out=ramps.share)


@kernel(whole=_move_centres_whole)
def _move_centres(ramps: Ramps, parts: Array) -> None:
    """r = pi / c."""
    for k in range(len(ramps.share)):
        for i in range(parts.shape[1]):
            ramps.share[k, i] = min(max(parts[k, i], 0.0), 1.0)


def _add_penalty_whole(ramps: Ramps, H: Array) -> None:
    q = len(ramps.scale)
    H.reshape(-1)[:: q + 4] += ramps.strengths * ramps.scale**2


@kernel(whole=_add_penalty_whole)
def _add_penalty(ramps: Ramps, H: Array) -> None:
    for j in range(len(ramps.scale)):
        H[j, j] += ramps.strengths[j] * ramps.scale[j] ** 2


@kernel
def _search(
    ramps: Ramps, parts: Array, dz: Array, gamma: float, before: float, own: float, across: float
) -> float:
    """The length of a step; the penalty's slope along it is own + t across.

    It stays between the ends of a bracket of the slope's root.
    """
    t, low, at_low, high, at_high = 1.0, 0.0, before, np.inf, np.inf
    for _ in range(_TRIALS):
        slope = _along(ramps, parts, dz, t, gamma) + own + t * across
        if abs(slope) <= _LEFT * abs(before):
            break
        if slope < 0.0:
            low, at_low = t, slope
        else:
            high, at_high = t, slope
        if high == np.inf:
            t = min(4.0 * t, t * before / (before - slope)) if slope > before else 4.0 * t
        else:
            share = at_low / (at_low - at_high)
            t = low + (high - low) * min(max(share, 0.1), 0.9)
    return t


def _minimise_whole(*arguments: Any) -> tuple[int, float, float]:
    """The loop as it is: all that goes over rows in it has a form for whole arrays."""
    return minimise.py_func(*arguments)  # type: ignore[attr-defined]


@kernel(whole=_minimise_whole)
def minimise(
    ramps: Ramps, v: Array, z: Array, u: Array, gamma: float, goal: float
) -> tuple[int, float, float]:
    """Rounds from v until the gap is below ``goal``, and exact ones: steps, last gap, gamma.

    In the end v are the coefficients, z the scores and u the slopes of the rows, from multipliers.
    """
    q, n = ramps.A.shape
    H, g, step = np.empty((q, q + 3)), np.empty(q), np.empty(q)
    h, dz, room, curvatures = np.empty(n), np.empty(n), np.empty(q * n), np.empty(n)
    parts = np.empty(ramps.share.shape)
    steps, gap, best, idle, number = 0, np.inf, np.inf, 0, 0
    enough, most, last = _ENOUGH, _MOST_STEPS, -1
    for _ in range(_MOST_ROUNDS):
        scores(ramps.A, v, z)
        for number in range(most + 1):
            excess = _slopes(ramps, z, gamma, parts, u, h)
            left = _total(ramps, u, v, g)
            gap = excess + left
            if left <= enough * excess or number == most:
                break
            m = _count(h)
            some = room[: q * m].reshape((q, m))
            _gather(ramps, h, some, curvatures[:m])
            form_gram(some, curvatures[:m], H)
            _add_penalty(ramps, H)
            if factor(H, q) == 0.0:
                return steps, gap, gamma
            solve_factored(H, ramps.scale, g, step)
            before = float(g @ step)
            if not before < 0.0:
                break
            scores(ramps.A, step, dz)
            own, across = float(ramps.strengths * v @ step), float(ramps.strengths * step @ step)
            t = _search(ramps, parts, dz, gamma, before, own, across)
            add(v, t, step, v)
            add(z, t, dz, z)
            steps += 1
        idle = 0 if gap <= 0.5 * best else idle + 1
        best = min(best, gap)
        # Where steps do not bring the second sum down, rounding has the last word.
        is_stuck = most > 1 and number == most and left > enough * excess
        if last == 0 or idle > _IDLE or is_stuck:
            break
        _move_centres(ramps, parts)
        if gap > goal and last < 0:
            gamma *= _SHORTER
        elif last < 0:  # twice more, with ramps so short that the answer is exact
            gamma, enough, most, last = gamma * _SHORTEST, 0.0, 1, _LAST_ROUNDS
        last -= last > 0
    return steps, gap, gamma
