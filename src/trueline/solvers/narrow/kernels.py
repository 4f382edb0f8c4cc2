r"""Newton's method on a few columns, compiled as a whole.

    minimise over v     sum_i s_i l(y_i, a_i.v) + sum_j q_j / 2 v_j^2

of which :mod:`trueline.solvers.curved.descent` is the general form. Here a problem of 1,500 rows
and 16 columns takes less time than the general form needs to call NumPy. Rows are sorted by class
and stored column by column, ``columns[j, i] = a_ij``: a problem is made of runs of neighbouring
rows with the same label, and sums over rows are sums over neighbours in memory. A constant column,
if there is one, is the last.

The first Hessian needs no pass over the rows: where scores are the same for all rows of a label,
it is a sum of the Gram matrices of the classes, and so is the gradient.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from trueline._jit import kernel

__all__ = ["CHUNK", "FACTS", "LOGISTIC", "SQUARED_HINGE", "solve_parts"]

Array = NDArray[np.float64]
Integers = NDArray[np.int64]

LOGISTIC, SQUARED_HINGE = 0, 1
#: Rows at a time: with their columns they stay in the first caches.
CHUNK = 256
#: Whether a problem came to an end, steps, sum of losses, of s u^2, of s u, of s l''.
FACTS = 6

# A step is good that leaves this share of the slope; looks are cheap beside Hessians.
_LEFT, _LOOKS = 0.25, 12
# The smallest pivot of a Hessian whose diagonal is one.
_LEAST_PIVOT = 1e-13
# Steps at the end, for who wants all digits: at most so many, and while so much is left to gain of
# the gap that was enough.
_EXTRA, _NOTHING = 3, 1e-8
# Steps in a row that do not halve what is left: rounding.
_IDLE = 6


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
def _runs(signs: Array, bounds: Integers, runs: Integers) -> int:
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
def _look(
    kind: int,
    columns: Array,
    s: Array,
    runs: Integers,
    sides: Array,
    v: Array,
    scratch: Array,
    scores: Array,
    bends: Array,
    total: Array,
    facts: Array,
) -> None:
    """Scores and curvatures of all rows at v, sum_i s_i u_i a_i, and what is summed beside it."""
    z, u, t = scratch[0], scratch[1], scratch[2]
    total[:] = 0.0
    facts[3:] = 0.0
    for r in range(len(runs)):
        sign = float(runs[r, 2])
        factor = sides[1] if sign > 0 else sides[0]
        for start in range(runs[r, 0], runs[r, 1], CHUNK):
            stop = min(start + CHUNK, runs[r, 1])
            count = stop - start
            _scores(columns, start, stop, v, z)
            for i in range(count):
                t[i] = factor * s[start + i]
            h = bends[start:stop]
            facts[3] += _derivatives(kind, sign, z, t[:count], u, h)
            _add_products(columns, start, stop, u, total)
            rise, bend = 0.0, 0.0
            for i in range(count):
                rise += u[i]
                bend += h[i]
                scores[start + i] = z[i]
            facts[4] += rise
            facts[5] += bend


@kernel
def _factor(H: Array, root: Array) -> bool:
    """Overwrite the lower triangle of H by its Cholesky factor, the diagonal brought to one."""
    p = len(H)
    for j in range(p):
        if not H[j, j] > 0.0:
            return False
        root[j] = math.sqrt(H[j, j])
    for j in range(p):
        for k in range(j + 1):
            own = H[j, k] / (root[j] * root[k])
            for m in range(k):
                own -= H[j, m] * H[k, m]
            if k < j:
                H[j, k] = own / H[k, k]
            elif own > _LEAST_PIVOT:
                H[j, j] = math.sqrt(own)
            else:
                return False
    return True


@kernel
def _solve(L: Array, root: Array, right: Array, out: Array) -> None:
    """H^-1 right, from the factor."""
    p = len(L)
    for j in range(p):
        own = right[j] / root[j]
        for m in range(j):
            own -= L[j, m] * out[m]
        out[j] = own / L[j, j]
    for j in range(p - 1, -1, -1):
        own = out[j]
        for m in range(j + 1, p):
            own -= L[m, j] * out[m]
        out[j] = own / L[j, j]
    for j in range(p):
        out[j] /= root[j]


@kernel
def _remaining(
    kind: int, g: Array, quad: Array, centre: Array, wide: float, reach: float, bend: float
) -> float:
    """About the gap that will be proven at a point (:mod:`trueline.certificates.tangent_check`).

    ``reach`` is the largest distance of a row from the centre for the logistic loss, and how far
    the level may be from the best one for the other.
    """
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
        factor = sides[1] if sign > 0 else sides[0]
        if kind == 0:
            other = (small if sign * level >= 0.0 else 1.0) / (1.0 + small)
            slope, bend = -sign * other, small / (1.0 + small) ** 2
        else:
            short = max(0.0, 1.0 - sign * level)
            slope, bend = -2.0 * sign * short, 2.0 if short > 0.0 else 0.0
        for j in range(len(g)):
            g[j] += factor * slope * totals[c, j]
            for k in range(j + 1):
                H[j, k] += factor * bend * grams[c, j, k]


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
        Of the proof: m, D, the last but one argument of ``_remaining``, and the gap that is enough.
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
    runs_of = np.empty((len(bounds), 3), np.int64)
    scratch, bends = np.empty((3, CHUNK)), np.empty(n)
    unkept = np.empty(n)
    H, g, root = np.empty((p, p)), np.empty(p), np.empty(p)
    step, trial = np.empty(p), np.empty(p)
    for k in range(first, last):
        runs = runs_of[: _runs(book[k], bounds, runs_of)]
        v, total, fact = V[k], sums[k], facts[k]
        z = scores[k] if len(scores) > 1 else unkept
        v[:] = 0.0
        if p > centres.shape[1]:
            v[p - 1] = starts[k]
        _begin(kind, book[k], sides[k], totals, grams, starts[k], g, H)
        fact[0] = 0.0
        idle, least, left, count = 0, np.inf, np.inf, 0
        while count < limit:
            for j in range(p):
                H[j, j] += quad[j]
            if not _factor(H, root):
                break
            _solve(H, root, g, step)
            count += 1
            before = 0.0
            for j in range(p):
                before -= g[j] * step[j]
            if not before < 0.0:
                break
            # v - t step, with t between the ends of a bracket of the slope's root.
            t, low, at_low, high, at_high = 1.0, 0.0, before, np.inf, np.inf
            for _ in range(_LOOKS):
                for j in range(p):
                    trial[j] = v[j] - t * step[j]
                _look(kind, columns, s, runs, sides[k], trial, scratch, z, bends, total, fact)
                slope = 0.0
                for j in range(p):
                    g[j] = total[j] + quad[j] * trial[j]
                    slope -= g[j] * step[j]
                left = _remaining(kind, g, quad, centres[k], wides[k], reaches[k], fact[5])
                if left <= goals[k] or abs(slope) <= _LEFT * abs(before) or math.isnan(slope):
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
            idle = idle + 1 if not left <= 0.5 * least else 0
            least = min(least, left)
            if left <= goals[k] or idle >= _IDLE:
                fact[0] = 1.0
                break
            H[:] = 0.0
            for r in range(len(runs)):
                for start in range(runs[r, 0], runs[r, 1], CHUNK):
                    stop = min(start + CHUNK, runs[r, 1])
                    _add_hessian(columns, start, stop, bends[start:stop], scratch[2], H)
        for _ in range(_EXTRA if fact[0] > 0.0 and is_fine else 0):
            # The factor of the last Hessian is there: a step by it costs a look.
            if left <= _NOTHING * goals[k]:
                break
            _solve(H, root, g, step)
            for j in range(p):
                trial[j] = v[j] - step[j]
            _look(kind, columns, s, runs, sides[k], trial, scratch, z, bends, total, fact)
            for j in range(p):
                g[j] = total[j] + quad[j] * trial[j]
            after = _remaining(kind, g, quad, centres[k], wides[k], reaches[k], fact[5])
            if not after <= left:  # rounding alone is left
                _look(kind, columns, s, runs, sides[k], v, scratch, z, bends, total, fact)
                break
            v[:], left = trial, after
        fact[1], fact[2] = count, 0.0
        if fact[0] > 0.0:
            for r in range(len(runs)):
                sign = float(runs[r, 2])
                factor = sides[k, 1] if sign > 0 else sides[k, 0]
                for start in range(runs[r, 0], runs[r, 1], CHUNK):
                    stop = min(start + CHUNK, runs[r, 1])
                    own = _losses(kind, sign, z[start:stop], s[start:stop])
                    fact[2] += factor * own
