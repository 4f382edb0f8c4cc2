"""One pass over sparse rows of two classes, without a penalty: the loop behind everything."""

from __future__ import annotations

import math
from typing import Any

from trueline._jit import kernel
from trueline.online.kernels.prefetch import prefetch
from trueline.online.kernels.rows import (
    add_sparse,
    as_weight,
    ask_for_sparse,
    ask_for_weights,
    dot_sparse,
    finite_after_sparse,
    square_sparse,
)
from trueline.online.kernels.steps import LOGISTIC, PERCEPTRON, loss_of, step_of

__all__ = ["sparse_pass", "sparse_row"]

_AHEAD = 16
# Up to so many weights the first cache holds them all.
_FEW_WEIGHTS = 2048


@kernel
def sparse_pass(
    data: Any,
    indices: Any,
    indptr: Any,
    codes: Any,
    positive: int,
    weights: Any,
    order: Any,
    rule: int,
    setting: Any,
    w: Any,
    b: Any,
    later: Any,
    changed: Any,
    tally: Any,
    log: Any,
) -> int:
    """Visit rows in the given order and learn from each; -1, or the row whose score is no number.

    Parameters
    ----------
    data, indices, indptr : arrays
        The rows, as in a CSR matrix.
    codes : array of shape (n,)
        Classes; ``positive`` is +1, all others are -1.
    weights : array of shape (n,) or (1,)
    order : array of int
        Rows to visit.
    setting : array of 8 numbers
        rate, threshold, decay, weight of +1, weight of -1, step of the intercept (0 for none), what
        the intercept adds to squared norms, visit from which on weights are averaged.
    w, b : arrays of shape (d,) and (1,)
        Changed in place.
    later : array of shape (d + 1,) or (0,)
        For averages: gains (time of the update) times (the update).
    changed : array of int, as long as ``order``
        Receives the row of each update.
    tally : array of 4 numbers
        Visits so far; sum of losses, updates and mistakes, which are added to.
    log : array of shape (m, 3) or (0, 3)
        Row, step (with its sign) and visit of each update, from the beginning.
    """
    rate, threshold, decay = setting[0], setting[1], setting[2]
    stride = 1 if weights.shape[0] > 1 else 0
    averaged, logged = later.shape[0] > 0, log.shape[0] > 0
    visits, total, updates, mistakes = tally[0], 0.0, 0, 0
    level, n = b[0], order.shape[0]
    scattered = w.shape[0] > _FEW_WEIGHTS
    for t in range(n):
        if t + _AHEAD < n:
            # Where a row lies is asked for before the row: prefetching waits for it.
            prefetch(indptr, order[min(t + 2 * _AHEAD, n - 1)])
            ahead = order[t + _AHEAD]
            prefetch(codes, ahead)
            ask_for_sparse(data, indices, indptr[ahead], indptr[ahead + 1])
            if scattered:
                # While this row waits for its sum, the next one's weights are on their way.
                following = order[t + 1]
                ask_for_weights(w, indices, indptr[following], indptr[following + 1])
        i = order[t]
        start, stop = indptr[i], indptr[i + 1]
        p = as_weight(w, dot_sparse(data, indices, start, stop, w)) + level
        if not math.isfinite(p):
            return i
        visits += 1.0
        y = 1.0 if codes[i] == positive else -1.0
        z = p * y
        if z > threshold and rule != LOGISTIC:
            continue
        loss = loss_of(rule, z, threshold)
        total += loss
        if z <= 0.0:
            mistakes += 1
        square = 0.0
        if rule != PERCEPTRON and rule != LOGISTIC:
            square = square_sparse(data, start, stop) + setting[6]
            if not math.isfinite(square):
                return i
        if decay != 0.0:
            rate = setting[0] * visits**-decay
        step = step_of(rule, loss, z, square, rate, threshold) * y
        weight = as_weight(w, setting[3] if y > 0.0 else setting[4])
        step *= as_weight(w, weight * weights[i * stride])
        if step == 0.0:
            continue
        add_sparse(data, indices, start, stop, float(as_weight(w, step)), w)
        level += step * setting[5]
        if averaged:
            time = max(visits, setting[7])
            add_sparse(data, indices, start, stop, step * time, later)
            later[-1] += step * setting[5] * time
        changed[updates] = i
        if logged:
            log[updates, 0] = i
            log[updates, 1] = step
            log[updates, 2] = visits
        updates += 1
    b[0] = level
    tally[0] = visits
    tally[1] += total
    tally[2] += updates
    tally[3] += mistakes
    return -1


@kernel
def sparse_row(
    data: Any,
    indices: Any,
    y: float,
    weight: float,
    rule: int,
    setting: Any,
    w: Any,
    b: Any,
    tally: Any,
) -> bool:
    """Learn from one row; False, with nothing changed, if that gives no number.

    The same numbers as by a pass over this row alone.
    """
    stop = data.shape[0]
    p = as_weight(w, dot_sparse(data, indices, 0, stop, w)) + b[0]
    if not math.isfinite(p):
        return False
    z = p * y
    step, loss = 0.0, 0.0
    if z <= setting[1] or rule == LOGISTIC:
        loss = loss_of(rule, z, setting[1])
        square, rate = 0.0, setting[0]
        if rule != PERCEPTRON and rule != LOGISTIC:
            square = square_sparse(data, 0, stop) + setting[6]
            if not math.isfinite(square):
                return False
        if setting[2] != 0.0:
            rate = setting[0] * (tally[0] + 1.0) ** -setting[2]
        step = step_of(rule, loss, z, square, rate, setting[1]) * y
        own = as_weight(w, setting[3] if y > 0.0 else setting[4])
        step *= as_weight(w, own * weight)
    if step != 0.0:
        change = float(as_weight(w, step))
        if not finite_after_sparse(data, indices, 0, stop, change, w):
            return False
        add_sparse(data, indices, 0, stop, change, w)
        b[0] += step * setting[5]
        tally[2] += 1.0
    tally[0] += 1.0
    tally[1] += loss
    if z <= 0.0:
        tally[3] += 1.0
    return True
