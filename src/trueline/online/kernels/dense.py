"""One pass over dense rows of two classes, without a penalty: the loop behind everything."""

from __future__ import annotations

import math
from typing import Any

from trueline._jit import kernel
from trueline.online.kernels.prefetch import prefetch
from trueline.online.kernels.rows import (
    MANY,
    add_dense,
    as_weight,
    ask_for_dense,
    dot_dense,
    dot_of_few,
    dot_of_many,
    finite_after_dense,
    square_dense,
)
from trueline.online.kernels.steps import LOGISTIC, PERCEPTRON, loss_of, step_of

__all__ = ["dense_pass", "dense_row"]

_AHEAD = 16


@kernel
def dense_pass(
    X: Any,
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
    X : array of shape (n, d)
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
    many = X.shape[1] >= MANY
    averaged, logged = later.shape[0] > 0, log.shape[0] > 0
    visits, total, updates, mistakes = tally[0], 0.0, 0, 0
    level, n = b[0], order.shape[0]
    for t in range(n):
        if t + _AHEAD < n:
            ahead = order[t + _AHEAD]
            prefetch(codes, ahead)
            ask_for_dense(X, ahead)
        i = order[t]
        # Chosen here rather than in a function of its own, which the compiler would call each time.
        product = dot_of_many(X, i, w) if many else dot_of_few(X, i, w)
        p = as_weight(w, product) + level
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
            square = square_dense(X, i) + setting[6]
            if not math.isfinite(square):
                return i
        if decay != 0.0:
            rate = setting[0] * visits**-decay
        step = step_of(rule, loss, z, square, rate, threshold) * y
        weight = as_weight(w, setting[3] if y > 0.0 else setting[4])
        step *= as_weight(w, weight * weights[i * stride])
        if step == 0.0:
            continue
        add_dense(X, i, float(as_weight(w, step)), w)
        level += step * setting[5]
        if averaged:
            time = max(visits, setting[7])
            add_dense(X, i, step * time, later)
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
def dense_row(
    X: Any,
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
    p = as_weight(w, dot_dense(X, 0, w)) + b[0]
    if not math.isfinite(p):
        return False
    z = p * y
    step, loss = 0.0, 0.0
    if z <= setting[1] or rule == LOGISTIC:
        loss = loss_of(rule, z, setting[1])
        square, rate = 0.0, setting[0]
        if rule != PERCEPTRON and rule != LOGISTIC:
            square = square_dense(X, 0) + setting[6]
            if not math.isfinite(square):
                return False
        if setting[2] != 0.0:
            rate = setting[0] * (tally[0] + 1.0) ** -setting[2]
        step = step_of(rule, loss, z, square, rate, setting[1]) * y
        own = as_weight(w, setting[3] if y > 0.0 else setting[4])
        step *= as_weight(w, own * weight)
    if step != 0.0:
        change = float(as_weight(w, step))
        if not finite_after_dense(X, 0, change, w):
            return False
        add_dense(X, 0, change, w)
        b[0] += step * setting[5]
        tally[2] += 1.0
    tally[0] += 1.0
    tally[1] += loss
    if z <= 0.0:
        tally[3] += 1.0
    return True
