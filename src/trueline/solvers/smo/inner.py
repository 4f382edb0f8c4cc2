"""Compiled loops: steps with two multipliers, and the update of scores by many rows at once.

The pair of a step: the multiplier i with the largest gain u, and the j of its group that promises
the largest decrease of the objective, (u_i - l_j)^2 / (K_ii + K_jj - 2 K_ij) (Fan, Chen, Lin 2005,
"second order" selection, WSS 2).

Whether steps with two multipliers still get anywhere, and a long step the way that they went.

With the rooms r = t - K beta before and after steps that have changed beta by delta, the dual
objective has grown by

    1/2 (r + r').delta - eps sum_v (|beta'_v| - |beta_v|),

exactly, for it is quadratic. Scores err by about the machine precision times the largest kernel
value and the sum of |beta|: a gain below that, times the sum of |delta|, may be none at all. Pairs
that violate the tolerance gain more than that as long as the tolerance is above the errors.

Where multipliers have a long way to go (a large C, classes that overlap), pairs go it in many short
steps. The sum of these is a direction, along which the objective is a parabola: one step to its top
or to the end of the first box replaces many (A. Torres-Barran, C. M. Alaiz, J. R. Dorronsoro,
"Faster SVM training via conjugate SMO", Pattern Recognition 111 (2021), use such directions).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from trueline.numerics.jit import kernel

# Curvature of a pair of equal rows, or of a kernel that is not positive semi-definite.
_FLAT = 1e-12


@kernel
def _mark_ends(k: int, beta: Any, low: Any, high: Any, epsilon: float, up: Any, down: Any) -> None:
    """The slopes of eps |beta| on either side of a multiplier; infinite at the ends of its box."""
    up[k] = np.inf if beta[k] >= high[k] else (-epsilon if beta[k] < 0 else epsilon)
    down[k] = -np.inf if beta[k] <= low[k] else (epsilon if beta[k] > 0 else -epsilon)


@kernel
def _largest(values: Any) -> int:
    """Where the largest of the values is; -1 if all are minus infinity.

    In four chains: one comparison need not wait for the one before, which takes a third of the
    time.
    """
    a, b, c, d = -1, -1, -1, -1
    x, y, z, w = -np.inf, -np.inf, -np.inf, -np.inf
    many = len(values) - len(values) % 4
    for k in range(0, many, 4):
        if values[k] > x:
            x, a = values[k], k
        if values[k + 1] > y:
            y, b = values[k + 1], k + 1
        if values[k + 2] > z:
            z, c = values[k + 2], k + 2
        if values[k + 3] > w:
            w, d = values[k + 3], k + 3
    for k in range(many, len(values)):
        if values[k] > x:
            x, a = values[k], k
    if y > x:
        x, a = y, b
    if w > z:
        z, c = w, d
    return c if z > x else a


@kernel
def _mark_gains(room: Any, up: Any, down: Any, over: Any, under: Any) -> None:
    """What multipliers gain by going up, u, and by going down, -l."""
    for k in range(len(room)):
        over[k] = room[k] - up[k]
        under[k] = down[k] - room[k]


@kernel
def _promise(Qi: Any, diagonal: Any, size: float, best: float, under: Any, promised: Any) -> None:
    """What steps with the best multiplier promise; nothing positive if they go the wrong way.

    Without branches, so that the compiler takes several multipliers at a time.
    """
    for k in range(len(promised)):
        excess = best + under[k]
        promised[k] = excess * abs(excess) / max(size + diagonal[k] - 2.0 * Qi[k], 1e-12)


@kernel
def _moved(
    beta: Any, low: Any, high: Any, epsilon: float, i: int, j: int, step: float
) -> tuple[float, float, float]:
    """Both multipliers after a step, and its length.

    It goes up to the ends of both boxes, or to zero, where the slope of eps |beta| changes.
    """
    i_end = 0.0 if (beta[i] < 0.0 and epsilon > 0.0) else high[i]
    j_end = 0.0 if (beta[j] > 0.0 and epsilon > 0.0) else low[j]
    i_stops = step >= i_end - beta[i]
    if i_stops:
        step = i_end - beta[i]
    j_stops = step >= beta[j] - j_end
    if j_stops:
        i_stops = i_stops and step == beta[j] - j_end
        step = beta[j] - j_end
    return i_end if i_stops else beta[i] + step, j_end if j_stops else beta[j] - step, step


# Steps of whole arrays, of some 30 microseconds each, after which machine code is worth its price.
_MOST_WHOLE = 20_000


def _solve_pairs_whole(
    Q: Any,
    diagonal: Any,
    room: Any,
    beta: Any,
    low: Any,
    high: Any,
    epsilon: float,
    split: int,
    tol: float,
    max_iter: int,
) -> tuple[int, float]:
    """:func:`solve_pairs` with whole arrays."""
    mark: Any = getattr(_mark_ends, "py_func", _mark_ends)
    moved: Any = getattr(_moved, "py_func", _moved)
    n, q = len(room), len(beta)
    up = np.where(beta >= high, np.inf, np.where(beta < 0, -epsilon, epsilon))
    down = np.where(beta <= low, -np.inf, np.where(beta > 0, epsilon, -epsilon))
    ends = ((0, split), (split, q))
    groups = [(b, e, (0, n) if q > n else (b, e)) for b, e in ends if b < e]
    for steps in range(_MOST_WHOLE):
        worst, best, i, chosen = -np.inf, 0.0, -1, groups[0]
        for group in groups:
            begin, end, (start, stop) = group
            over = room[start:stop] - up[begin:end]
            at = int(over.argmax())
            violation = over[at] - (room[start:stop] - down[begin:end]).min()
            if over[at] > -np.inf and violation > worst:
                worst, best, i, chosen = violation, over[at], begin + at, group
        if i < 0 or not worst > tol or steps >= max_iter:
            return steps, float(worst)
        begin, end, (start, stop) = chosen
        at, some = i - begin + start, slice(start, stop)
        excess = best - (room[some] - down[begin:end])
        curvature = np.maximum(diagonal[at] + diagonal[some] - 2.0 * Q[at, some], _FLAT)
        promised = excess * np.abs(excess) / curvature
        to = int(promised.argmax())
        if not promised[to] > 0.0:
            return steps, float(worst)
        j, step = begin + to, excess[to] / curvature[to]
        i_next, j_next, step = moved(beta, low, high, epsilon, i, j, step)
        if i_next == beta[i] and j_next == beta[j]:
            return steps, float(worst)
        beta[i], beta[j] = i_next, j_next
        for k in (i, j):
            mark(k, beta, low, high, epsilon, up, down)
        room -= step * (Q[at] - Q[start + to])
    raise RuntimeError("so many steps are for machine code")


@kernel(reassociate=True, whole=_solve_pairs_whole)
def solve_pairs(
    Q: Any,
    diagonal: Any,
    room: Any,
    beta: Any,
    low: Any,
    high: Any,
    epsilon: float,
    split: int,
    tol: float,
    max_iter: int,
) -> tuple[int, float]:
    """Take steps until no violation exceeds tol; beta and room = t - f change in place.

    There is a multiplier for each row of Q, or there are two, first those of one group and then
    those of the other. Returns the number of steps and the violation that is left. Ends early where
    the step of the most violating pair is so short that neither multiplier changes.
    """
    n, q = len(room), len(beta)
    up, down, over, under, promised = (
        np.empty(q), np.empty(q), np.empty(q), np.empty(q), np.empty(q),
    )  # fmt: skip
    for k in range(q):
        _mark_ends(k, beta, low, high, epsilon, up, down)
    steps = 0
    while True:
        i, begin, end, back = -1, 0, split, 0
        worst, best = -np.inf, 0.0
        for part in range(2):
            start, stop = (0, split) if part == 0 else (split, q)
            # How far the rows of the second group are before its multipliers.
            off = n if part == 1 and q > n else 0
            some = room[start - off : stop - off]
            _mark_gains(some, up[start:stop], down[start:stop], over[start:stop], under[start:stop])
            top, bottom = _largest(over[start:stop]), _largest(under[start:stop])
            if top >= 0 and bottom >= 0 and over[start + top] + under[start + bottom] > worst:
                i, best = start + top, over[start + top]
                worst = best + under[start + bottom]
                begin, end, back = start, stop, off
        if i < 0 or not worst > tol or steps >= max_iter:
            return steps, worst
        first, last = begin - back, end - back
        Qi, size = Q[i - back], diagonal[i - back]
        part_of = promised[begin:end]
        _promise(Qi[first:last], diagonal[first:last], size, best, under[begin:end], part_of)
        at = _largest(part_of)
        if at < 0 or not part_of[at] > 0.0:
            return steps, worst
        j = begin + at
        step = (best + under[j]) / max(size + diagonal[j - back] - 2.0 * Qi[j - back], 1e-12)
        i_next, j_next, step = _moved(beta, low, high, epsilon, i, j, step)
        if i_next == beta[i] and j_next == beta[j]:
            return steps, worst
        beta[i], beta[j] = i_next, j_next
        for k in (i, j):
            _mark_ends(k, beta, low, high, epsilon, up, down)
        Qj = Q[j - back]
        for k in range(n):
            room[k] -= step * (Qi[k] - Qj[k])
        steps += 1


@kernel
def bounds(
    room: Any, beta: Any, low: Any, high: Any, epsilon: float
) -> tuple[float, float, float, int]:
    """The largest u and the smallest l of a group; the sum of u over the free, and their number."""
    highest, lowest, total, free = -np.inf, np.inf, 0.0, 0
    for k in range(len(beta)):
        rises, falls = beta[k] < high[k], beta[k] > low[k]
        u = room[k] + epsilon if beta[k] < 0.0 else room[k] - epsilon
        l = room[k] - epsilon if beta[k] > 0.0 else room[k] + epsilon
        if rises and not u <= highest:
            highest = u
        if falls and not l >= lowest:
            lowest = l
        if rises and falls and u == l:
            total += u
            free += 1
    return highest, lowest, total, free


def _add_whole(table: Any, slots: Any, change: Any, scores: Any, start: int, stop: int) -> None:
    """:func:`add_rows` with whole arrays."""
    scores[start:stop] += change @ table[slots, start:stop]


@kernel(reassociate=True, whole=_add_whole)
def add_rows(table: Any, slots: Any, change: Any, scores: Any, start: int, stop: int) -> None:
    """scores += change' table[slots] for the columns from start to stop, summed in float64.

    Columns go in strips that stay in the first-level cache, rows four at a time.
    """
    width = 1024
    many = len(slots) - len(slots) % 4
    for first in range(start, stop, width):
        last = min(first + width, stop)
        for a in range(0, many, 4):
            r0, r1 = table[slots[a], first:last], table[slots[a + 1], first:last]
            r2, r3 = table[slots[a + 2], first:last], table[slots[a + 3], first:last]
            c0, c1, c2, c3 = change[a], change[a + 1], change[a + 2], change[a + 3]
            strip = scores[first:last]
            for k in range(last - first):
                strip[k] += (c0 * r0[k] + c1 * r1[k]) + (c2 * r2[k] + c3 * r3[k])
        for a in range(many, len(slots)):
            r0, c0 = table[slots[a], first:last], change[a]
            strip = scores[first:last]
            for k in range(last - first):
                strip[k] += c0 * r0[k]


Array = NDArray[np.float64]

_EPS = float(np.finfo(np.float64).eps)


def largest_score(diagonal: Array) -> float:
    """The largest kernel value: on the diagonal, if K is positive semi-definite."""
    return float(np.abs(diagonal).max(initial=0.0))


def largest_error(reach: float, beta: Array) -> float:
    """About what scores K beta err by, for kernel values up to ``reach``."""
    return _EPS * reach * float(np.abs(beta).sum())


class Way:
    """From one point to another: what it gained, and how far it is worth going on.

    Parameters
    ----------
    beta, room : arrays of shape (q,)
        Multipliers and t - f before.
    moved, left : arrays of shape (q,)
        The same afterwards.
    epsilon : float
    """

    def __init__(self, beta: Array, room: Array, moved: Array, left: Array, epsilon: float) -> None:
        self.epsilon = epsilon
        self.delta, self.fall = moved - beta, room - left
        self.size = max(float(np.abs(beta).sum()), float(np.abs(moved).sum()))
        self.gain = 0.5 * float((room + left) @ self.delta)
        self.gain -= epsilon * float((np.abs(moved) - np.abs(beta)).sum())

    def noise(self, reach: float) -> float:
        """A gain that may be rounding, for kernel values up to ``reach``."""
        return _EPS * reach * self.size * float(np.abs(self.delta).sum())

    def go_on(self, beta: Array, room: Array, low: Array, high: Array) -> None:
        """One long step the same way, as far as the objective grows; beta and room change."""
        delta, kinked = self.delta, self.epsilon > 0
        ends = np.where(delta > 0, high, low)
        if kinked:  # the slope of eps |beta| changes at zero
            ends = np.where((beta != 0) & (np.sign(beta) != np.sign(delta)), 0.0, ends)
        moves = np.flatnonzero(delta)
        side = np.where(beta[moves] != 0, np.sign(beta[moves]), np.sign(delta[moves]))
        slope = float((room[moves] - self.epsilon * side) @ delta[moves])
        curvature = float(delta @ self.fall)
        if not slope > 0:
            return
        room_left = (ends[moves] - beta[moves]) / delta[moves]
        first = int(np.argmin(room_left))
        step = float(room_left[first])
        is_stopped = not (curvature > 0 and slope / curvature < step)
        if not is_stopped:
            step = slope / curvature
        if not (0 < step < np.inf):
            return
        beta[moves] += step * delta[moves]
        if is_stopped:
            beta[moves[first]] = ends[moves[first]]
        np.clip(beta, low, high, out=beta)
        room -= step * self.fall
