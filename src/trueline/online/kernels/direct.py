"""One pass with one weight vector for each class: add to the right one, subtract from a wrong one.

K. Crammer and Y. Singer, "Ultraconservative online algorithms for multiclass problems", JMLR 3,
2003. Weights are kept as an array of shape (d, k): the classes of a column lie side by side.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from trueline.numerics.jit import kernel
from trueline.online.kernels.rows import column_of, span_of, value_of
from trueline.online.kernels.steps import AVERAGE_FROM, INTERCEPT_STEP, RATE, THRESHOLD

__all__ = ["direct_pass"]


@kernel
def direct_pass(
    data: Any,
    indices: Any,
    indptr: Any,
    labels: Any,
    order: Any,
    setting: Any,
    W: Any,
    b: Any,
    later: Any,
    tally: Any,
    counts: Any,
    log: Any,
) -> int:
    """Visit rows in the given order and learn from each; -1, or a row whose scores are no numbers.

    With z the score of the right class less the highest other one, a row changes the weights by the
    perceptron's rule of :mod:`trueline.online.kernels.steps`.

    Parameters
    ----------
    labels : tuple
        Classes of rows, weights of classes, and weights of rows.
    W, b : arrays of shape (d, k) and (k,)
    later : array of shape (d + 1, k) or (0, k)
    counts : array of int, of shape (n, k) or (0, k)
        Updates by each row against each class.
    log : array of shape (m, 4) or (0, 4)
        Row, step, visit and the class that was subtracted from.

    The other parameters are those of :func:`trueline.online.kernels.passes.online_pass`.
    """
    codes, class_weights, weights = labels
    classes = W.shape[1]
    scores = np.zeros(classes)
    updates = 0
    for t in range(order.shape[0]):
        i = order[t]
        gold = codes[i]
        for r in range(classes):
            scores[r] = b[r]
        start, stop = span_of(data, indptr, i)
        for k in range(start, stop):
            j, x = column_of(data, indices, k), value_of(data, i, k)
            for r in range(classes):
                scores[r] += x * W[j, r]
        rival, highest, finite = _highest_other(scores, gold)
        if not finite:
            return i
        tally[0] += 1.0
        z = scores[gold] - highest
        if z <= 0.0:
            tally[3] += 1.0
        if z > setting[THRESHOLD]:
            continue
        tally[1] += setting[THRESHOLD] - z
        step = setting[RATE] * class_weights[gold] * weights[i if weights.shape[0] > 1 else 0]
        if step == 0.0:
            continue
        _move_apart(data, indices, indptr, i, step, gold, rival, W)
        b[gold] += step * setting[INTERCEPT_STEP]
        b[rival] -= step * setting[INTERCEPT_STEP]
        if later.shape[0] > 0:
            time = step * max(tally[0], setting[AVERAGE_FROM])
            _move_apart(data, indices, indptr, i, time, gold, rival, later)
            later[-1, gold] += time * setting[INTERCEPT_STEP]
            later[-1, rival] -= time * setting[INTERCEPT_STEP]
        if counts.shape[0] > 0:
            counts[i, rival] += 1
        if log.shape[0] > 0:
            log[updates, 0], log[updates, 1], log[updates, 2] = i, step, tally[0]
            log[updates, 3] = rival
        updates += 1
        tally[2] += 1.0
    return -1


@kernel
def _highest_other(scores: Any, gold: int) -> Any:
    """The class of the highest score besides the right one, that score, and if all are finite."""
    rival, highest, total = -1, -math.inf, 0.0
    for r in range(scores.shape[0]):
        total += 0.0 * scores[r]
        if r != gold and scores[r] > highest:
            rival, highest = r, scores[r]
    return rival, highest, total == 0.0


@kernel
def _move_apart(
    data: Any, indices: Any, indptr: Any, i: int, c: float, gold: int, rival: int, W: Any
) -> None:
    """Add c x_i to the weights of one class and subtract it from those of another."""
    start, stop = span_of(data, indptr, i)
    for k in range(start, stop):
        j, x = column_of(data, indices, k), value_of(data, i, k)
        W[j, gold] += x * c
        W[j, rival] -= x * c
