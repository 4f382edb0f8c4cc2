"""One pass with one weight vector for each class: add to the right one, subtract from a wrong one.

K. Crammer and Y. Singer, "Ultraconservative online algorithms for multiclass problems", JMLR 3,
2003. Weights are kept as an array of shape (d, k): the classes of a column lie side by side.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from trueline._jit import kernel
from trueline.online.kernels.steps import LOGISTIC, PERCEPTRON, loss_of, step_of

__all__ = ["direct_pass"]


@kernel
def direct_pass(
    dense: Any,
    data: Any,
    indices: Any,
    indptr: Any,
    codes: Any,
    class_weights: Any,
    weights: Any,
    order: Any,
    rule: int,
    setting: Any,
    W: Any,
    b: Any,
    later: Any,
    counts: Any,
    tally: Any,
    log: Any,
) -> int:
    """Visit rows in the given order and learn from each; -1, or a row whose scores are no numbers.

    With z the score of the right class less the highest other one, a row changes the weights as in
    :mod:`trueline.online.kernels.steps`, the squared norm being counted twice.

    Parameters
    ----------
    W, b : arrays of shape (d, k) and (k,)
    later : array of shape (d + 1, k) or (0, k)
    counts : array of int, of shape (n, k) or (0, k)
        Updates by each row against each class.
    log : array of shape (m, 4) or (0, 4)
        Row, step, visit and the class that was subtracted from.

    The other parameters are those of :func:`trueline.online.kernels.dense.dense_pass`.
    """
    sparse, classes = indptr.shape[0] > 0, W.shape[1]
    stride = 1 if weights.shape[0] > 1 else 0
    scores = np.zeros(classes)
    start, stop = 0, dense.shape[1]
    updates = 0
    for t in range(order.shape[0]):
        i = order[t]
        if sparse:
            start, stop = indptr[i], indptr[i + 1]
        scores[:] = b
        for k in range(start, stop):
            j = indices[k] if sparse else k
            x = float(data[k] if sparse else dense[i, k])
            for r in range(classes):
                scores[r] += x * W[j, r]
        gold = codes[i]
        rival, highest, total = -1, -math.inf, 0.0
        for r in range(classes):
            total += 0.0 * scores[r]
            if r != gold and scores[r] > highest:
                rival, highest = r, scores[r]
        if total != 0.0:
            return i
        tally[0] += 1.0
        z = scores[gold] - highest
        loss = loss_of(rule, z, setting[1])
        tally[1] += loss
        if z <= 0.0:
            tally[3] += 1.0
        if z > setting[1] and rule != LOGISTIC:
            continue
        square = 0.0
        if rule != PERCEPTRON:
            for k in range(start, stop):
                x = float(data[k] if sparse else dense[i, k])
                square += x * x
            square = 2.0 * (square + setting[6])
            if not math.isfinite(square):
                return i
        step = step_of(rule, loss, z, square, setting[0], setting[1])
        step *= class_weights[gold] * weights[i * stride]
        if step == 0.0:
            continue
        for k in range(start, stop):
            j = indices[k] if sparse else k
            x = float(data[k] if sparse else dense[i, k])
            W[j, gold] += x * step
            W[j, rival] -= x * step
        b[gold] += step * setting[5]
        b[rival] -= step * setting[5]
        if later.shape[0] > 0:
            time = step * max(tally[0], setting[7])
            for k in range(start, stop):
                j = indices[k] if sparse else k
                x = float(data[k] if sparse else dense[i, k])
                later[j, gold] += x * time
                later[j, rival] -= x * time
            later[-1, gold] += time * setting[5]
            later[-1, rival] -= time * setting[5]
        if counts.shape[0] > 0:
            counts[i, rival] += 1
        if log.shape[0] > 0:
            log[updates, 0] = i
            log[updates, 1] = step
            log[updates, 2] = tally[0]
            log[updates, 3] = rival
        updates += 1
        tally[2] += 1.0
    return -1
