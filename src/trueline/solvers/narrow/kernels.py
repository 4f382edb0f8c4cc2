r"""Newton's method on a few columns, compiled as a whole.

    minimise over v     sum_i s_i l(y_i, a_i.v) + sum_j q_j / 2 v_j^2

of which :mod:`trueline.solvers.curved.descent` is the general form. Here a problem of 1,500 rows
and 16 columns takes less time than the general form needs to call NumPy. Rows are stored as
:mod:`trueline.solvers.narrow.rows` says; a constant column, if there is one, is the last.

The first Hessian needs no pass over the rows: where scores are the same for all rows of a label,
it is a sum of the Gram matrices of the classes, and so is the gradient.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from trueline._jit import kernel
from trueline.solvers.narrow.factor import factor, solve
from trueline.solvers.narrow.rows import (
    CHUNK,
    FACTS,
    LOGISTIC,
    SQUARED_HINGE,
    Part,
    add_losses,
    find_runs,
    form_hessian,
    look,
)

__all__ = ["CHUNK", "FACTS", "LOGISTIC", "SQUARED_HINGE", "solve_parts"]

Array = NDArray[np.float64]
Integers = NDArray[np.int64]

# A step is good that leaves this share of the slope; looks are cheap beside Hessians.
_LEFT, _LOOKS = 0.25, 12
# Steps at the end, for who wants all digits: at most so many, and while so much is left to gain of
# the gap that was enough.
_EXTRA, _NOTHING = 3, 1e-8
# Steps in a row that do not halve what is left: rounding.
_IDLE = 6


class _Aim(NamedTuple):
    """What a problem is solved for: the penalty, and what the proof of its gap needs.

    Attributes
    ----------
    quad : array of shape (p,)
        Strengths of the penalty.
    centre : array of shape (d,)
        The means of the columns.
    wide, reach : float
        The spread of the rows about the centre, and how far they reach; see ``_remaining``.
    goal : float
        The gap that is enough.
    """

    quad: Array
    centre: Array
    wide: float
    reach: float
    goal: float


class _Room(NamedTuple):
    """What a thread uses again for every problem: H or its factor, and vectors of p numbers."""

    H: Array
    root: Array
    g: Array
    step: Array
    trial: Array


@kernel
def _remaining(kind: int, g: Array, aim: _Aim, bend: float) -> float:
    """About the gap that will be proven at a point (:mod:`trueline.certificates.tangent_check`).

    ``aim.reach`` is the largest distance of a row from the centre for the logistic loss, and how
    far the level may be from the best one for the other.
    """
    quad, centre, wide, reach = aim.quad, aim.centre, aim.wide, aim.reach
    d = len(centre)
    square, strength = 0.0, quad[0]
    level = g[d] if len(g) > d else 0.0
    for j in range(d):
        own = g[j] - centre[j] * level
        square += own * own
        strength = min(strength, quad[j])
    if len(g) == d:
        return 0.5 * square / strength
    if kind == 0:
        if not bend > 0.0:
            return np.inf
        length = math.sqrt(square) + math.sqrt(wide / bend) * abs(level)
        gap = 0.5 * length * length / strength + level * level / bend
        far = (reach + math.sqrt(wide / bend)) / math.sqrt(strength) + math.sqrt(2.0 / bend)
        # Curvature nearby proves this where scores change by less than log 2.
        return gap if 2.0 * math.sqrt(2.0 * gap) * far <= 0.69 else np.inf
    return 0.5 * square / strength + reach * abs(level)


@kernel
def _begin(
    kind: int,
    signs: Array,
    sides: Array,
    totals: Array,
    grams: Array,
    level: float,
    g: Array,
    H: Array,
) -> None:
    """Gradient and Hessian where all scores are the same."""
    g[:] = 0.0
    H[:] = 0.0
    small = math.exp(-abs(level))
    for c in range(len(signs)):
        sign = signs[c]
        if sign == 0.0:
            continue
        side = sides[1] if sign > 0 else sides[0]
        if kind == 0:
            other = (small if sign * level >= 0.0 else 1.0) / (1.0 + small)
            slope, bend = -sign * other, small / (1.0 + small) ** 2
        else:
            short = max(0.0, 1.0 - sign * level)
            slope, bend = -2.0 * sign * short, 2.0 if short > 0.0 else 0.0
        for j in range(len(g)):
            g[j] += side * slope * totals[c, j]
            for k in range(j + 1):
                H[j, k] += side * bend * grams[c, j, k]


@kernel
def _gradient(part: Part, aim: _Aim, v: Array, total: Array, facts: Array, g: Array) -> float:
    """Look at v: g becomes the gradient there; about the gap that will be proven."""
    look(part, v, total, facts)
    for j in range(len(g)):
        g[j] = total[j] + aim.quad[j] * v[j]
    return _remaining(part.kind, g, aim, facts[5])


@kernel
def _search(
    part: Part, aim: _Aim, room: _Room, before: float, v: Array, total: Array, facts: Array
) -> float:
    """Move v against the step, on which the slope was ``before``; about the gap there.

    The length of the step stays between the ends of a bracket of the slope's root.
    """
    g, step, trial = room.g, room.step, room.trial
    left = np.inf
    t, low, at_low, high, at_high = 1.0, 0.0, before, np.inf, np.inf
    for _ in range(_LOOKS):
        for j in range(len(v)):
            trial[j] = v[j] - t * step[j]
        left = _gradient(part, aim, trial, total, facts, g)
        slope = 0.0
        for j in range(len(v)):
            slope -= g[j] * step[j]
        if left <= aim.goal or abs(slope) <= _LEFT * abs(before) or math.isnan(slope):
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
    v[:] = trial
    return left


@kernel
def _descend(
    part: Part, aim: _Aim, room: _Room, limit: int, v: Array, total: Array, facts: Array
) -> float:
    """Newton's steps from a point whose gradient and Hessian are known; about the gap at the end.

    ``facts`` tells whether it came to an end, and how many steps were made.
    """
    H, root, g, step = room.H, room.root, room.g, room.step
    idle, least, left, count = 0, np.inf, np.inf, 0
    facts[0] = 0.0
    while count < limit:
        for j in range(len(v)):
            H[j, j] += aim.quad[j]
        if not factor(H, root):
            break
        solve(H, root, g, step)
        count += 1
        slope = 0.0
        for j in range(len(v)):
            slope -= g[j] * step[j]
        if not slope < 0.0:
            break
        left = _search(part, aim, room, slope, v, total, facts)
        idle = idle + 1 if not left <= 0.5 * least else 0
        least = min(least, left)
        if left <= aim.goal or idle >= _IDLE:
            facts[0] = 1.0
            break
        form_hessian(part, H)
    facts[1] = count
    return left


@kernel
def _refine(
    part: Part, aim: _Aim, room: _Room, left: float, v: Array, total: Array, facts: Array
) -> None:
    """More steps by the factor of the last Hessian, which is there: each costs a look."""
    g, step, trial = room.g, room.step, room.trial
    for _ in range(_EXTRA):
        if left <= _NOTHING * aim.goal:
            break
        solve(room.H, room.root, g, step)
        for j in range(len(v)):
            trial[j] = v[j] - step[j]
        after = _gradient(part, aim, trial, total, facts, g)
        if not after <= left:  # rounding alone is left
            look(part, v, total, facts)
            break
        v[:], left = trial, after


@kernel
def solve_parts(
    first: int,
    last: int,
    kind: int,
    columns: Array,
    s: Array,
    bounds: Integers,
    totals: Array,
    grams: Array,
    book: Array,
    sides: Array,
    quad: Array,
    starts: Array,
    centres: Array,
    wides: Array,
    reaches: Array,
    goals: Array,
    limit: int,
    is_fine: bool,
    V: Array,
    sums: Array,
    facts: Array,
    scores: Array,
) -> None:
    """Solve the problems ``first <= k < last``.

    Parameters
    ----------
    kind : int
        The loss.
    columns : array of shape (p, n)
    s : array of shape (n,)
    bounds : array of shape (classes + 1,)
        Where the rows of each class begin.
    totals, grams : arrays of shape (classes, p) and (classes, p, p)
        sum_i s_i a_i and sum_i s_i a_i a_i^T of each class.
    book : array of shape (problems, classes)
        -1, 0 or +1.
    sides : array of shape (problems, 2)
        What weights are multiplied by, of labels -1 and +1.
    quad : array of shape (p,)
        Strengths of the penalty.
    starts : array of shape (problems,)
        The level to begin with.
    centres, wides, reaches, goals : arrays of shape (problems, d) and (problems,)
        Of the proof: m, D, ``reach`` of ``_Aim``, and the gap that is enough.
    limit : int
        Most steps of a problem.
    is_fine : bool
        Whether to go on until nothing but rounding is left.
    V, sums, facts : arrays of shape (problems, p), (problems, p) and (problems, FACTS)
        The answers, sum_i s_i u_i a_i there, and FACTS.
    scores : array of shape (problems, n), or (1, n) where they are not wanted
        Scores of the rows that take part.
    """
    p, n = columns.shape
    runs = np.empty((len(bounds), 3), np.int64)
    scratch, bends, unkept = np.empty((3, CHUNK)), np.empty(n), np.empty(n)
    room = _Room(np.empty((p, p)), np.empty(p), np.empty(p), np.empty(p), np.empty(p))
    for k in range(first, last):
        v, total, fact = V[k], sums[k], facts[k]
        own = runs[: find_runs(book[k], bounds, runs)]
        z = scores[k] if len(scores) > 1 else unkept
        part = Part(kind, columns, s, own, sides[k], z, bends, scratch)
        aim = _Aim(quad, centres[k], wides[k], reaches[k], goals[k])
        v[:] = 0.0
        if p > centres.shape[1]:
            v[p - 1] = starts[k]
        _begin(kind, book[k], sides[k], totals, grams, starts[k], room.g, room.H)
        left = _descend(part, aim, room, limit, v, total, fact)
        if fact[0] > 0.0:
            if is_fine:
                _refine(part, aim, room, left, v, total, fact)
            fact[2] = add_losses(part)
