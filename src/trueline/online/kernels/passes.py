"""One pass over rows of two classes, without a penalty: the loop behind everything."""

from __future__ import annotations

import math
from typing import Any

from trueline.numerics.jit import kernel
from trueline.online.kernels.rows import (
    AHEAD,
    add,
    as_weight,
    dot,
    finite_after,
    prefetch,
    prefetch_row,
    squared_norm,
)
from trueline.online.kernels.steps import (
    AVERAGE_FROM,
    DECAY,
    INTERCEPT_STEP,
    LOGISTIC,
    NEGATIVE_WEIGHT,
    PERCEPTRON,
    POSITIVE_WEIGHT,
    RATE,
    THRESHOLD,
    loss_of,
    step_of,
)

__all__ = ["one_row", "online_pass"]


@kernel
def online_pass(
    data: Any,
    indices: Any,
    indptr: Any,
    labels: Any,
    order: Any,
    rule: int,
    setting: Any,
    w: Any,
    b: Any,
    later: Any,
    tally: Any,
    journal: Any,
) -> int:
    """Visit rows in the given order and learn from each; -1, or the row whose score is no number.

    Parameters
    ----------
    data, indices, indptr : arrays
        The rows, see :mod:`trueline.online.kernels.rows`.
    labels : Labels
    order : array of int
        Rows to visit.
    rule, setting : int, array
        The rule and its numbers, see :mod:`trueline.online.kernels.steps`.
    w, b : arrays of shape (d,) and (1,)
        Changed in place.
    later : array of shape (d + 1,) or (0,)
        For averages: gains (time of the update) times (the update).
    tally : array of 4 numbers
        Visits so far; sum of losses, updates and mistakes, which are added to.
    journal : tuple of two arrays
        Receives the row of each update, as integers; and, unless it is empty, row, step (with its
        sign) and visit of each.
    """
    codes, positive, weights = labels
    changed, log = journal
    threshold, stride = setting[THRESHOLD], 1 if weights.shape[0] > 1 else 0
    visits, total, updates, mistakes = tally[0], 0.0, 0, 0
    intercept, n = b[0], order.shape[0]
    for t in range(n):
        if t + AHEAD < n:
            prefetch(codes, order[t + AHEAD])
            prefetch_row(data, indices, indptr, order, t, w)
        i = order[t]
        p = dot(data, indices, indptr, i, w) + intercept
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
        square = _norm_for(rule, data, indptr, i)
        if not math.isfinite(square):
            return i
        step = step_of(rule, loss, z, square, _rate_at(setting, visits), threshold) * y
        own = setting[POSITIVE_WEIGHT] if y > 0.0 else setting[NEGATIVE_WEIGHT]
        step *= as_weight(w, own * weights[i * stride])
        if step == 0.0:
            continue
        add(data, indices, indptr, i, float(as_weight(w, step)), w)
        intercept += step * setting[INTERCEPT_STEP]
        if later.shape[0] > 0:
            time = max(visits, setting[AVERAGE_FROM])
            add(data, indices, indptr, i, step * time, later)
            later[-1] += step * setting[INTERCEPT_STEP] * time
        changed[updates] = i
        if log.shape[0] > 0:
            log[updates, 0], log[updates, 1], log[updates, 2] = i, step, visits
        updates += 1
    b[0] = intercept
    tally[0] = visits
    tally[1] += total
    tally[2] += updates
    tally[3] += mistakes
    return -1


@kernel
def _norm_for(rule: int, data: Any, indptr: Any, i: int) -> float:
    """||x_i||^2 for the rules whose step depends on it, 0 for the others."""
    square = 0.0
    if rule != PERCEPTRON and rule != LOGISTIC:
        square = squared_norm(data, indptr, i)
    return square


@kernel
def _rate_at(setting: Any, visit: float) -> float:
    """The learning rate at this visit, counted from 1."""
    rate = setting[RATE]
    if setting[DECAY] != 0.0:
        rate *= visit ** -setting[DECAY]
    return rate


@kernel
def one_row(
    data: Any,
    indices: Any,
    indptr: Any,
    y: float,
    rule: int,
    setting: Any,
    w: Any,
    b: Any,
    tally: Any,
) -> bool:
    """Learn from one row; False, with nothing changed, if that gives no number.

    The same numbers as by a pass over this row alone.
    """
    z = (dot(data, indices, indptr, 0, w) + b[0]) * y
    if not math.isfinite(z):
        return False
    step, loss = 0.0, 0.0
    if z <= setting[THRESHOLD] or rule == LOGISTIC:
        loss = loss_of(rule, z, setting[THRESHOLD])
        square, rate = _norm_for(rule, data, indptr, 0), _rate_at(setting, tally[0] + 1.0)
        if not math.isfinite(square):
            return False
        step = step_of(rule, loss, z, square, rate, setting[THRESHOLD]) * y
        step *= as_weight(w, setting[POSITIVE_WEIGHT] if y > 0.0 else setting[NEGATIVE_WEIGHT])
    if step != 0.0:
        change = float(as_weight(w, step))
        if not finite_after(data, indices, indptr, 0, change, w):
            return False
        add(data, indices, indptr, 0, change, w)
        b[0] += step * setting[INTERCEPT_STEP]
        tally[2] += 1.0
    tally[0] += 1.0
    tally[1] += loss
    if z <= 0.0:
        tally[3] += 1.0
    return True
