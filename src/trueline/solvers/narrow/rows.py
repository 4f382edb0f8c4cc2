r"""Sums over the rows of one problem of two classes on a few columns.

Rows are sorted by class and stored column by column, ``columns[j, i] = a_ij``: a problem is made of
runs of neighbouring rows with the same label, and sums over rows are sums over neighbours in
memory.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from trueline._jit import kernel

__all__ = [
    "CHUNK",
    "FACTS",
    "LOGISTIC",
    "SQUARED_HINGE",
    "Part",
    "add_losses",
    "find_runs",
    "form_hessian",
    "look",
]

Array = NDArray[np.float64]
Integers = NDArray[np.int64]

LOGISTIC, SQUARED_HINGE = 0, 1
#: Rows at a time: with their columns they stay in the first caches.
CHUNK = 256
#: Whether a problem came to an end, steps, sum of losses, of s u^2, of s u, of s l''.
FACTS = 6


class Part(NamedTuple):
    """The rows of a problem, and room for what is known of each.

    Attributes
    ----------
    kind : int
        The loss.
    columns : array of shape (p, n)
    s : array of shape (n,)
        Weights.
    runs : array of shape (runs, 3)
        First row, last row and label of each run of rows.
    sides : array of shape (2,)
        What weights are multiplied by, of labels -1 and +1.
    scores, bends : arrays of shape (n,)
        a_i.v and s_i l'' at the point that was looked at last.
    scratch : array of shape (3, CHUNK)
    """

    kind: int
    columns: Array
    s: Array
    runs: Integers
    sides: Array
    scores: Array
    bends: Array
    scratch: Array


@kernel(reassociate=True)
def _scores(columns: Array, start: int, stop: int, v: Array, z: Array) -> None:
    """a_i.v of some rows."""
    count = stop - start
    for i in range(count):
        z[i] = 0.0
    for j in range(len(v)):
        own, column = v[j], columns[j, start:stop]
        for i in range(count):
            z[i] += own * column[i]


@kernel(reassociate=True)
def _derivatives(kind: int, sign: float, z: Array, s: Array, u: Array, h: Array) -> float:
    """s l' and s l'' of rows with one label; the sum of s l'^2."""
    size = 0.0
    if kind == 0:
        for i in range(len(s)):
            h[i] = math.exp(-abs(z[i]))
        for i in range(len(s)):
            small = h[i]
            share = 1.0 / (1.0 + small)
            other = (small if sign * z[i] >= 0.0 else 1.0) * share
            u[i] = -sign * s[i] * other
            h[i] = s[i] * small * share * share
            size += s[i] * other * other
        return size
    for i in range(len(s)):
        short = max(0.0, 1.0 - sign * z[i])
        u[i] = -2.0 * sign * s[i] * short
        h[i] = 2.0 * s[i] if short > 0.0 else 0.0
        size += 4.0 * s[i] * short * short
    return size


@kernel(reassociate=True)
def _losses(kind: int, sign: float, z: Array, s: Array) -> float:
    """The sum of s l over rows with one label."""
    total = 0.0
    for i in range(len(s)):
        margin = sign * z[i]
        if kind == 0:
            total += s[i] * (max(-margin, 0.0) + math.log1p(math.exp(-abs(margin))))
        else:
            short = max(0.0, 1.0 - margin)
            total += s[i] * short * short
    return total


@kernel(reassociate=True)
def _add_products(columns: Array, start: int, stop: int, t: Array, total: Array) -> None:
    """total_j += sum_i t_i a_ij."""
    for j in range(len(total)):
        column, own = columns[j, start:stop], 0.0
        for i in range(stop - start):
            own += t[i] * column[i]
        total[j] += own


@kernel(reassociate=True)
def _add_hessian(columns: Array, start: int, stop: int, h: Array, t: Array, H: Array) -> None:
    """H_jk += sum_i h_i a_ij a_ik for k <= j, four sums at a time."""
    count = stop - start
    for j in range(len(H)):
        left = columns[j, start:stop]
        for i in range(count):
            t[i] = h[i] * left[i]
        k = 0
        while k + 4 <= j + 1:
            c0, c1 = columns[k, start:stop], columns[k + 1, start:stop]
            c2, c3 = columns[k + 2, start:stop], columns[k + 3, start:stop]
            e0, e1, e2, e3 = 0.0, 0.0, 0.0, 0.0
            for i in range(count):
                e0 += t[i] * c0[i]
                e1 += t[i] * c1[i]
                e2 += t[i] * c2[i]
                e3 += t[i] * c3[i]
            H[j, k] += e0
            H[j, k + 1] += e1
            H[j, k + 2] += e2
            H[j, k + 3] += e3
            k += 4
        while k <= j:
            right, own = columns[k, start:stop], 0.0
            for i in range(count):
                own += t[i] * right[i]
            H[j, k] += own
            k += 1


@kernel
def find_runs(signs: Array, bounds: Integers, runs: Integers) -> int:
    """First row, last row and label of each run of rows with the same label."""
    count = 0
    for c in range(len(signs)):
        if signs[c] == 0.0 or bounds[c] == bounds[c + 1]:
            continue
        label = 1 if signs[c] > 0.0 else -1
        if count and runs[count - 1, 1] == bounds[c] and runs[count - 1, 2] == label:
            runs[count - 1, 1] = bounds[c + 1]
            continue
        runs[count, 0], runs[count, 1], runs[count, 2] = bounds[c], bounds[c + 1], label
        count += 1
    return count


@kernel
def look(part: Part, v: Array, total: Array, facts: Array) -> None:
    """Scores and curvatures of all rows at v, sum_i s_i u_i a_i, and what is summed beside it."""
    z, u, t = part.scratch[0], part.scratch[1], part.scratch[2]
    total[:] = 0.0
    facts[3:] = 0.0
    for r in range(len(part.runs)):
        sign = float(part.runs[r, 2])
        factor = part.sides[1] if sign > 0 else part.sides[0]
        for start in range(part.runs[r, 0], part.runs[r, 1], CHUNK):
            stop = min(start + CHUNK, part.runs[r, 1])
            count = stop - start
            _scores(part.columns, start, stop, v, z)
            for i in range(count):
                t[i] = factor * part.s[start + i]
            h = part.bends[start:stop]
            facts[3] += _derivatives(part.kind, sign, z, t[:count], u, h)
            _add_products(part.columns, start, stop, u, total)
            rise, bend = 0.0, 0.0
            for i in range(count):
                rise += u[i]
                bend += h[i]
                part.scores[start + i] = z[i]
            facts[4] += rise
            facts[5] += bend


@kernel
def form_hessian(part: Part, H: Array) -> None:
    """H = sum_i s_i l'' a_i a_i^T at the point that was looked at last, its lower triangle."""
    H[:] = 0.0
    for r in range(len(part.runs)):
        for start in range(part.runs[r, 0], part.runs[r, 1], CHUNK):
            stop = min(start + CHUNK, part.runs[r, 1])
            _add_hessian(part.columns, start, stop, part.bends[start:stop], part.scratch[2], H)


@kernel
def add_losses(part: Part) -> float:
    """The sum of the losses at the point that was looked at last."""
    total = 0.0
    for r in range(len(part.runs)):
        sign = float(part.runs[r, 2])
        factor = part.sides[1] if sign > 0 else part.sides[0]
        for start in range(part.runs[r, 0], part.runs[r, 1], CHUNK):
            stop = min(start + CHUNK, part.runs[r, 1])
            scores, s = part.scores[start:stop], part.s[start:stop]
            total += factor * _losses(part.kind, sign, scores, s)
    return total
