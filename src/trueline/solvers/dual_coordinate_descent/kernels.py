r"""Sweeps over rows, each of which moves one dual variable to its best place.

    minimise over beta in [low, high]    1/2 || sum_i beta_i x_i ||^2
        + sum_i (e_i abs(beta_i) + h_i/2 beta_i^2 - t_i beta_i)

with w = sum_i beta_i x_i kept beside, and t_i = y_i - centre. Along one beta_i the function is a
parabola with a kink at zero; with g = x_i.w + h_i beta_i - t_i and H = x_i.x_i + h_i its minimum is

    beta_i <- clip(soft(H beta_i - g, e_i) / H, low_i, high_i).

(C.-H. Ho and C.-J. Lin, "Large-scale linear support vector regression", J. Mach. Learn. Res. 13
(2012) 3323-3348, section 3.2; shrinking as in C.-J. Hsieh et al., "A dual coordinate descent method
for large-scale linear SVM", ICML 2008, section 3.2: variables that rest at a kink or bound, and
whose slope would keep them there by more than the largest violation of the sweep before, are left
out.) A last constant entry of every row is passed apart.

Rows are visited in random order, drawn anew for each sweep. Stretches of neighbours, whose order
stays, are read from memory in half the time, but took two to four times the sweeps on texts:
neighbours have much in common, and always meet in the same order (C.-P. Lee and S. J. Wright,
"Random permutations fix a worst case for cyclic coordinate descent", IMA J. Numer. Anal. 39 (2019)
1246-1275). Only of more entries than a cache holds stretches are visited; where rows share a
constant, which ties each of them to the one before, several stretches take turns.

What a sweep sees of the gap, as it stands when a row is visited, is the sum of

    max over b in [low, high] of ((t_i - x_i.w) b - e_i abs(b) - h_i/2 b^2)
        - (t_i - x_i.w) beta_i + e_i abs(beta_i) + h_i/2 beta_i^2.

Sweeps for the multiclass hinge move the dual variables of all classes of a row at once:

    minimise over beta    1/2 sum_k || sum_i beta_ik x_i ||^2 - sum_i beta_i,y_i
    with                  sum_k beta_ik = 0,    beta_ik <= c_i [k = y_i]

with W = sum_i x_i beta_i^T kept beside. For one row, with a = x_i.x_i and B_k the slope without its
own part, the minimum is beta_k = min(c_k, (theta - B_k) / a), where theta makes the sum vanish. As
theta falls from infinity, the classes leave their bounds in the order of t_k = B_k + a c_k; with
the first r of them free, r theta = sum of their t_k - a c_i (K. Crammer and Y. Singer, J. Mach.
Learn. Res. 2 (2001), section 6; S. S. Keerthi et al., "A sequential dual method for large scale
multi-class linear SVMs", KDD 2008).
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from trueline.design.sparse_columns import column_dot
from trueline.numerics.jit import kernel

Array = NDArray[np.float64]
Integers = NDArray[np.int64]
Indices = NDArray[np.int32]
Place = int | np.uint64

# Neighbouring rows in a stretch, and stretches that take turns where rows share a constant; two of
# many, which are not all close at hand, and read the faster the fewer places are read at a time.
_STRETCH, _TURNS, _MANY = 16, 8, 8192
#: So many entries stay close at hand.
CLOSE_AT_HAND = 2_000_000


@kernel
def random_below(state: NDArray[np.uint64], bound: int) -> int:
    """A pseudo-random integer in [0, bound), by xorshift64; a division would take longer."""
    x = state[0]
    x ^= x << np.uint64(13)
    x ^= x >> np.uint64(7)
    x ^= x << np.uint64(17)
    state[0] = x
    return int(((x >> np.uint64(32)) * np.uint64(bound)) >> np.uint64(32))


@kernel
def minimiser(product: float, at: float, terms: Array, i: Place) -> float:
    """The best place of one variable, given x_i.w.

    No branch depends on a sign: that of a free variable is the class of its row, and guessing it
    wrong takes the processor as long as several entries.
    """
    e, low, high, curvature = terms[i, 1], terms[i, 3], terms[i, 4], terms[i, 5]
    correlation = terms[i, 0] - product - terms[i, 2] * at
    if curvature <= 0.0:  # a row of zeros: nothing but a bound or the kink ends it
        return high if correlation > e else (low if correlation < -e else 0.0)
    correlation += curvature * at
    best = math.copysign(max(abs(correlation) - e, 0.0) / curvature, correlation)
    return min(max(best, low), high)


@kernel
def rest(product: float, at: float, terms: Array, i: Place) -> float:
    """By how much the slopes to both sides hold a variable where it is best."""
    slope = product + terms[i, 2] * at - terms[i, 0]
    e, margin = terms[i, 1], np.inf
    if at < terms[i, 4]:
        margin = slope + (e if at >= 0.0 else -e)
    if at > terms[i, 3]:
        margin = min(margin, (e if at <= 0.0 else -e) - slope)
    return margin


@kernel
def draw(order: Integers, k: int, active: int, state: NDArray[np.uint64]) -> int:
    """The row that comes next: one of those after place k, at random, is put there."""
    other = k + random_below(state, active - k)
    order[k], order[other] = order[other], order[k]
    return order[k]


@kernel
def visiting_order(
    count: int, entries: int, constant: float, state: NDArray[np.uint64]
) -> Integers:
    """The places 0..count-1 in random order; of many entries, stretch by stretch."""
    stretch = _STRETCH if entries > CLOSE_AT_HAND else 1
    starts = np.arange(0, count, stretch)
    for k in range(len(starts)):
        draw(starts, k, len(starts), state)
    turns = 1 if constant == 0.0 else (_TURNS if count <= _MANY else 2)
    order, at = np.empty(count, np.int64), 0
    for first in range(0, len(starts), turns):
        for offset in range(stretch):
            for k in range(first, min(first + turns, len(starts))):
                if starts[k] + offset < count:
                    order[at] = starts[k] + offset
                    at += 1
    return order


@kernel
def arrange(
    order: Integers, active: int, entries: int, constant: float, state: NDArray[np.uint64]
) -> None:
    """Bring the active rows, those before place ``active``, into the order of the next sweep."""
    if entries <= CLOSE_AT_HAND:
        for k in range(active):
            draw(order, k, active, state)
        return
    is_active = np.zeros(len(order), np.bool_)
    for k in range(active):
        is_active[order[k]] = True
    ascending = np.flatnonzero(is_active)
    places = visiting_order(active, entries, constant, state)
    for k in range(active):
        order[k] = ascending[places[k]]


@kernel
def leave_out(order: Integers, k: int, active: int) -> int:
    """Let the row at place k change places with the last active one; how many are left."""
    order[k], order[active - 1] = order[active - 1], order[k]
    return active - 1


@kernel
def add_row(data: Array, indices: Indices, start: int, stop: int, change: float, w: Array) -> None:
    """Add a multiple of a compressed row."""
    for place in range(start, stop):
        w[np.uint64(indices[place])] += change * data[place]


@kernel
def own_gap(product: float, at: float, terms: Array, i: Place) -> float:
    """What one row adds to the gap, given x_i.w."""
    correlation, e, h = terms[i, 0] - product, terms[i, 1], terms[i, 2]
    here = correlation * at - e * abs(at) - 0.5 * h * at * at
    beyond = max(abs(correlation) - e, 0.0)
    bound = terms[i, 4] if correlation > 0.0 else -terms[i, 3]
    best = min(bound, beyond / h) if h > 0.0 else bound
    return best * (beyond - 0.5 * h * best) - here


@kernel
def both_values(scores: Array, beta: Array, terms: Array, centre: float) -> tuple[float, float]:
    """The losses of all rows, given x_i.w, and what the dual adds to the square of w."""
    losses = own = 0.0
    for i in range(len(beta)):
        at, e, h = beta[i], terms[i, 1], terms[i, 2]
        correlation, size = terms[i, 0] - (scores[i] + centre), abs(at)
        own += size * (e + 0.5 * h * size) - terms[i, 0] * at
        beyond = abs(correlation) - e
        if beyond > 0.0:
            bound = terms[i, 4] if correlation > 0.0 else -terms[i, 3]
            best = bound if bound * h <= beyond else beyond / h
            losses += best * (beyond - 0.5 * h * best)
    return losses, own


@kernel(reassociate=True)
def sweep_dense(
    X: Array,
    constant: float,
    centre: float,
    terms: Array,
    beta: Array,
    w: Array,
    order: Integers,
    active: int,
    threshold: float,
    state: NDArray[np.uint64],
) -> tuple[int, float, float]:
    """One sweep; how many variables are still active, the longest step, the gap as it was seen.

    ``order`` begins with the active rows; ``terms`` has the columns y, e, h, low, high and
    x_i.x_i + h, and ``centre`` is added to all scores.
    """
    d = X.shape[1]
    worst = seen = 0.0
    arrange(order, active, X.size, constant, state)
    k, last = 0, float(w[d])
    while k < active:
        i = order[k]
        product = constant * last + centre
        for j in range(d):
            product += X[i, j] * w[j]
        at = beta[i]
        seen += own_gap(product, at, terms, i)
        best = minimiser(product, at, terms, i)
        change = best - at
        if change == 0.0 and rest(product, at, terms, i) > threshold:
            active = leave_out(order, k, active)
            continue
        k += 1
        if change != 0.0:
            worst = max(worst, abs(change) * terms[i, 5])
            beta[i] = best
            for j in range(d):
                w[j] += change * X[i, j]
            last += change * constant
    w[d] = last
    return active, worst, seen


@kernel
def sweep_sparse(
    data: Array,
    indices: Indices,
    indptr: Integers,
    constant: float,
    centre: float,
    terms: Array,
    beta: Array,
    w: Array,
    order: Integers,
    active: int,
    threshold: float,
    state: NDArray[np.uint64],
) -> tuple[int, float, float]:
    """The same over compressed rows.

    Both loops over a row stand here: calls of them would take a fifth of the time of short rows, as
    tests of places for negative ones would.
    """
    d = len(w) - 1
    worst = seen = 0.0
    arrange(order, active, len(data), constant, state)
    k, last, one = 0, float(w[d]), np.uint64(1)
    while k < active:
        i = np.uint64(order[k])
        start, stop = np.uint64(indptr[i]), np.uint64(indptr[i + one])
        p = q = r = s = 0.0
        for place in range(start, stop):
            p, q, r, s = q, r, s, p + data[place] * w[np.uint64(indices[place])]
        product = (p + q) + (r + s) + (constant * last + centre)
        at = beta[i]
        seen += own_gap(product, at, terms, i)
        best = minimiser(product, at, terms, i)
        change = best - at
        if change != 0.0:
            worst = max(worst, abs(change) * terms[i, 5])
            beta[i] = best
            for place in range(start, stop):
                w[np.uint64(indices[place])] += change * data[place]
            last += change * constant
        elif rest(product, at, terms, i) > threshold:
            active = leave_out(order, k, active)
            continue
        k += 1
    w[d] = last
    return active, worst, seen


@kernel(reassociate=True)
def score_dense(X: Array, rows: Integers, w: Array, constant: float, out: Array) -> None:
    """x_i.w of some rows."""
    d = X.shape[1]
    for k in range(len(rows)):
        i = rows[k]
        product = float(constant * w[d])
        for j in range(d):
            product += X[i, j] * w[j]
        out[k] = product


@kernel(reassociate=True)
def pull_dense(X: Array, rows: Integers, weights: Array, constant: float, out: Array) -> None:
    """Add sum_k weights_k x_k over some rows."""
    d = X.shape[1]
    for k in range(len(rows)):
        i, weight = rows[k], weights[k]
        for j in range(d):
            out[j] += weight * X[i, j]
        out[d] += weight * constant


@kernel
def score_sparse(
    data: Array,
    indices: Indices,
    indptr: Integers,
    rows: Integers,
    w: Array,
    constant: float,
    out: Array,
) -> None:
    """The same over compressed rows."""
    d = len(w) - 1
    for k in range(len(rows)):
        i = rows[k]
        out[k] = column_dot(data, indices, indptr[i], indptr[i + 1], w) + constant * w[d]


@kernel
def pull_sparse(
    data: Array,
    indices: Indices,
    indptr: Integers,
    rows: Integers,
    weights: Array,
    constant: float,
    out: Array,
) -> None:
    """The same over compressed rows."""
    d = len(out) - 1
    for k in range(len(rows)):
        i, weight = rows[k], weights[k]
        add_row(data, indices, indptr[i], indptr[i + 1], weight, out)
        out[d] += weight * constant


@kernel
def share_out(slopes: Array, at: Array, square: float, own: int, most: float, best: Array) -> float:
    """The best multipliers of one row into ``best``; returns by how much the row was off."""
    k = len(slopes)
    # The largest slope of a class that could give, against the least of one that could take.
    high, low = -np.inf, np.inf
    for m in range(k):
        bound = most if m == own else 0.0
        high = max(high, slopes[m])
        if at[m] < bound:
            low = min(low, slopes[m])
    off = high - low
    if off <= 0.0 or square <= 0.0:
        for m in range(k):
            best[m] = at[m]
        return max(off, 0.0)
    levels = np.empty(k)
    for m in range(k):
        levels[m] = slopes[m] - square * at[m]
    levels[own] += square * most
    order = np.sort(levels)
    total, r = order[k - 1] - square * most, 1
    while r < k and total < r * order[k - 1 - r]:
        total += order[k - 1 - r]
        r += 1
    theta = total / r
    for m in range(k):
        bound = most if m == own else 0.0
        best[m] = min(bound, (theta - (slopes[m] - square * at[m])) / square)
    return off


@kernel
def class_sweep(
    rows: tuple[Array, Indices, Integers],
    constant: float,
    own: Integers,
    bounds: Array,
    squares: Array,
    centre: Array,
    beta: Array,
    W: Array,
    order: Integers,
    active: int,
    threshold: float,
    state: NDArray[np.uint64],
) -> tuple[int, float]:
    """One sweep in random order; how many rows are still active, and the worst violation.

    ``beta`` has shape (n, k), ``W`` shape (d + 1, k) with that of the constant as the last row.
    """
    data, indices, indptr = rows
    d, k = W.shape[0] - 1, W.shape[1]
    slopes, best = np.empty(k), np.empty(k)
    worst, at = 0.0, 0
    while at < active:
        i = draw(order, at, active, state)
        for m in range(k):
            slopes[m] = centre[m] + constant * W[d, m] + (0.0 if m == own[i] else 1.0)
        for place in range(indptr[i], indptr[i + 1]):
            x, j = data[place], np.uint64(indices[place])
            for m in range(k):
                slopes[m] += x * W[j, m]
        off = share_out(slopes, beta[i], squares[i], own[i], bounds[i], best)
        if off == 0.0 and is_at_rest(slopes, beta[i], own[i], threshold):
            active -= 1
            order[at], order[active] = order[active], order[at]
            continue
        at += 1
        worst = max(worst, off)
        moved = False
        for m in range(k):
            slopes[m] = best[m] - beta[i, m]
            moved = moved or slopes[m] != 0.0
        if moved:
            for m in range(k):
                beta[i, m] = best[m]
            for place in range(indptr[i], indptr[i + 1]):
                x, j = data[place], np.uint64(indices[place])
                for m in range(k):
                    W[j, m] += x * slopes[m]
            for m in range(k):
                W[d, m] += constant * slopes[m]
    return active, worst


@kernel
def is_at_rest(slopes: Array, at: Array, own: int, threshold: float) -> bool:
    """Whether all multipliers vanish and the own class leads by more than the threshold."""
    for m in range(len(slopes)):
        if at[m] != 0.0:
            return False
        if m != own and slopes[own] - slopes[m] < threshold:
            return False
    return True
