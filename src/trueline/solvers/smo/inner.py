"""Compiled loops: steps with two multipliers, and the update of scores by many rows at once.

The pair of a step: the multiplier i with the largest gain u, and the j of its group that promises
the largest decrease of the objective, (u_i - l_j)^2 / (K_ii + K_jj - 2 K_ij) (Fan, Chen, Lin 2005,
"second order" selection, WSS 2).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from trueline._jit import kernel

__all__ = ["add_rows", "solve_pairs"]

# Curvature of a pair of equal rows, or of a kernel that is not positive semi-definite.
_FLAT = 1e-12


@kernel(reassociate=True)
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

    Returns the number of steps and the violation that is left. Ends early where the step of the
    most violating pair is so short that neither multiplier changes.
    """
    q = len(room)
    up = np.empty(q)
    down = np.empty(q)
    for k in range(q):
        up[k] = np.inf if beta[k] >= high[k] else (-epsilon if beta[k] < 0 else epsilon)
        down[k] = -np.inf if beta[k] <= low[k] else (epsilon if beta[k] > 0 else -epsilon)
    i, j, step = 0, 0, 0.0
    steps = 0
    while True:
        # One pass applies the last step and finds the largest u and the smallest l of each group.
        Qi, Qj = Q[i], Q[j]
        first, begin, end = -1, 0, split
        worst = -np.inf
        best = 0.0
        for part in range(2):
            start = 0 if part == 0 else split
            stop = split if part == 0 else q
            highest, lowest, at = -np.inf, np.inf, -1
            for k in range(start, stop):
                x = room[k] - step * (Qi[k] - Qj[k])
                room[k] = x
                if x - up[k] > highest:
                    highest, at = x - up[k], k
                if x - down[k] < lowest:
                    lowest = x - down[k]
            if at >= 0 and highest - lowest > worst:
                worst, best, first, begin, end = highest - lowest, highest, at, start, stop
        if first < 0 or not worst > tol or steps >= max_iter:
            return steps, worst
        i = first
        Qi = Q[i]
        own = diagonal[i]
        j, gain = -1, -1.0
        for k in range(begin, end):
            excess = best - (room[k] - down[k])
            if excess > 0.0:
                curvature = own + diagonal[k] - 2.0 * Qi[k]
                if curvature < 1e-12:
                    curvature = 1e-12
                promised = excess * excess / curvature
                if promised > gain and k != i:
                    gain, j = promised, k
        if j < 0:
            return steps, worst
        curvature = own + diagonal[j] - 2.0 * Qi[j]
        if curvature < 1e-12:
            curvature = 1e-12
        step = (best - (room[j] - down[j])) / curvature
        # Up to the ends of both boxes, or to zero, where the slope of eps |beta| changes.
        i_end = 0.0 if (beta[i] < 0.0 and epsilon > 0.0) else high[i]
        j_end = 0.0 if (beta[j] > 0.0 and epsilon > 0.0) else low[j]
        i_stops = step >= i_end - beta[i]
        if i_stops:
            step = i_end - beta[i]
        j_stops = step >= beta[j] - j_end
        if j_stops:
            i_stops = i_stops and step == beta[j] - j_end
            step = beta[j] - j_end
        i_next = i_end if i_stops else beta[i] + step
        j_next = j_end if j_stops else beta[j] - step
        if i_next == beta[i] and j_next == beta[j]:
            return steps, worst
        beta[i], beta[j] = i_next, j_next
        for k in (i, j):
            up[k] = np.inf if beta[k] >= high[k] else (-epsilon if beta[k] < 0 else epsilon)
            down[k] = -np.inf if beta[k] <= low[k] else (epsilon if beta[k] > 0 else -epsilon)
        steps += 1


@kernel(reassociate=True)
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
