"""Forms of the perceptron whose passes are not plain ones: textbook and pocket.

*Textbook*: find the first mistake, learn, start again.

*Pocket with ratchet* (S. I. Gallant, "Perceptron-based learning algorithms", IEEE Transactions on
Neural Networks 1(2), 1990): perceptron updates, and the best weights so far kept aside. Weights
that were right for longer in a row than those in the pocket are tried on all rows, and replace them
only if they make fewer (weighted) errors: the errors in the pocket never grow.
"""

from __future__ import annotations

import math
from typing import Any

from trueline.numerics.jit import kernel
from trueline.online.kernels.rows import add, as_weight, dot
from trueline.online.kernels.steps import INTERCEPT_STEP, RATE, THRESHOLD

__all__ = ["first_mistakes", "pocket_pass", "weighted_errors"]


@kernel
def _visit(
    data: Any,
    indices: Any,
    indptr: Any,
    i: int,
    y: float,
    weight: float,
    setting: Any,
    w: Any,
    b: Any,
    tally: Any,
) -> float:
    """Learn from row i; the step that was made, or infinity if the score is no number."""
    p = dot(data, indices, indptr, i, w) + b[0]
    step = 0.0 if math.isfinite(p) else math.inf
    z = p * y
    if step == 0.0:
        tally[0] += 1.0
        if z <= 0.0:
            tally[1] -= z
            tally[3] += 1.0
        if z <= setting[THRESHOLD] and weight != 0.0:
            step = setting[RATE] * y * weight
            add(data, indices, indptr, i, float(as_weight(w, step)), w)
            b[0] += step * setting[INTERCEPT_STEP]
            tally[2] += 1.0
    return step


@kernel
def first_mistakes(
    data: Any,
    indices: Any,
    indptr: Any,
    y: Any,
    weights: Any,
    setting: Any,
    limit: int,
    w: Any,
    b: Any,
    tally: Any,
    counts: Any,
    log: Any,
) -> int:
    """Correct the first mistake found, until there is none, or ``limit`` rows were visited.

    Parameters
    ----------
    y, weights : arrays of shape (n,)
        Signs, and the weights of rows times those of their classes.
    log : array of shape (m, 3)
        Row, step and visit of each update; when it is full the kernel returns.

    Returns
    -------
    outcome : int
        -1 if a scan found no mistake, -2 at the limit, -3 if the log is full, or the row whose
        score is no number.
    """
    updates, i = 0, 0
    while i < y.shape[0]:
        if tally[0] >= limit:
            return -2
        step = _visit(data, indices, indptr, i, y[i], weights[i], setting, w, b, tally)
        if math.isinf(step):
            return i
        if step == 0.0:
            i += 1
            continue
        counts[i] += 1
        log[updates, 0], log[updates, 1], log[updates, 2] = i, step, tally[0]
        updates += 1
        if updates == log.shape[0]:
            return -3
        i = 0
    return -1


@kernel
def weighted_errors(
    data: Any, indices: Any, indptr: Any, y: Any, weights: Any, w: Any, b: Any, enough: float
) -> float:
    """Weight of the rows on the wrong side (a score of zero is on no side), up to ``enough``."""
    total = 0.0
    for i in range(y.shape[0]):
        if (dot(data, indices, indptr, i, w) + b[0]) * y[i] <= 0.0:
            total += weights[i]
            if total >= enough:
                return total
    return total


@kernel
def pocket_pass(
    data: Any,
    indices: Any,
    indptr: Any,
    y: Any,
    weights: Any,
    order: Any,
    setting: Any,
    w: Any,
    b: Any,
    tally: Any,
    aside: Any,
    journal: Any,
) -> int:
    """One pass; -1, -2 once the pocket makes no error, or the row whose score is no number.

    Parameters
    ----------
    aside : tuple of two arrays
        The weights in the pocket, the intercept last; and, of shape (4,), errors of those weights,
        their longest run of right rows, the present run, and whether the present weights were
        tried (1) or are those in the pocket (2).
    journal : tuple of two arrays
        Updates by each row; and row, step and visit of each update, of shape (m, 3) or (0, 3).
    """
    kept, pocket = aside
    counts, log = journal
    updates = 0
    for t in range(order.shape[0]):
        i = order[t]
        step = _visit(data, indices, indptr, i, y[i], weights[i], setting, w, b, tally)
        if math.isinf(step):
            return i
        if step != 0.0:
            counts[i] += 1
            if log.shape[0] > 0:
                log[updates, 0], log[updates, 1], log[updates, 2] = i, step, tally[0]
            updates += 1
            pocket[2], pocket[3] = 0.0, 0.0
            continue
        pocket[2] += 1.0
        if pocket[2] > pocket[1] and pocket[3] == 0.0:
            pocket[3] = 1.0
            errors = weighted_errors(data, indices, indptr, y, weights, w, b, pocket[0])
            if errors < pocket[0]:
                pocket[0], pocket[1], pocket[3] = errors, pocket[2], 2.0
                kept[:-1] = w
                kept[-1] = b[0]
                if errors == 0.0:
                    return -2
        elif pocket[3] == 2.0:
            pocket[1] = pocket[2]
    return -1
