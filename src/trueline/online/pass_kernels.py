"""One compiled pass over rows: of two classes, with a penalty, or with weights for each class.

Without a penalty it is the loop behind everything. With one, the weights shrink by a common factor,
or are truncated.

The squared penalty multiplies all weights by (1 - rate alpha) at every row. They are kept as
``scale * w``, so that this costs one multiplication (Shalev-Shwartz et al., "Pegasos", ICML 2007).
The absolute penalty is applied to the weights a row touches, each by what it has missed since it
was last seen (Tsuruoka, Tsujii and Ananiadou, "Stochastic gradient descent training for
L1-regularized log-linear models with cumulative penalty", ACL 2009).

With one weight vector for each class a row is added to the right one and subtracted from a wrong
one: K. Crammer and Y. Singer, "Ultraconservative online algorithms for multiclass problems", JMLR
3, 2003. Weights are kept as an array of shape (d, k): the classes of a column lie side by side.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from trueline.numerics.jit import kernel
from trueline.online.rows import (
    AHEAD,
    add,
    as_weight,
    column_of,
    dot,
    finite_after,
    prefetch,
    prefetch_row,
    span_of,
    squared_norm,
    value_of,
)
from trueline.online.rules import (
    AVERAGE_FROM,
    DECAY,
    INTERCEPT_STEP,
    LOGISTIC,
    NEGATIVE_WEIGHT,
    PERCEPTRON,
    POSITIVE_WEIGHT,
    RATE,
    THRESHOLD,
    ZERO,
    loss_of,
    step_of,
)


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
        The rows, see :mod:`trueline.online.rows`.
    labels : Labels
    order : array of int
        Rows to visit.
    rule, setting : int, array
        The rule and its numbers, see :mod:`trueline.online.rules`.
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
        if data.ndim == 2 and t + AHEAD < n:
            prefetch(codes, order[t + AHEAD])
            prefetch_row(data, order[t + AHEAD])
        i = order[t]
        p = dot(data, indices, indptr, i, w) + intercept
        if not math.isfinite(p):
            return i
        visits += 1.0
        if p == 0.0:
            p = setting[ZERO]
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
    if z == 0.0:
        z = setting[ZERO] * y
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


class Penalty(NamedTuple):
    """alpha (l1_ratio abs(w) + (1 - l1_ratio) / 2 w^2), per row."""

    alpha: float
    l1_ratio: float


class Scaled(NamedTuple):
    """What the penalty has to remember, all arrays.

    The weights are ``scale * w``, ``scale`` of shape (1,). ``norms`` are the squared and the
    absolute norm of the weights after the last update: as in scikit-learn, whose stopping rule uses
    them, an update by a sparse row counts the weights it touched. ``missed`` of shape (d,) is the
    truncation applied so far, and ``due`` of shape (1,) the truncation that every weight should
    have had.
    """

    scale: Any
    norms: Any
    missed: Any
    due: Any


@kernel
def unscale(w: Any, scale: Any) -> float:
    """Multiply the common factor into the weights; the factor that is left is 1."""
    for j in range(w.shape[0]):
        w[j] *= scale
    return 1.0


@kernel
def penalised_pass(
    data: Any,
    indices: Any,
    indptr: Any,
    labels: Any,
    order: Any,
    rule: int,
    setting: Any,
    penalty: Any,
    w: Any,
    b: Any,
    tally: Any,
    state: Any,
) -> int:
    """Visit rows in the given order and learn from each; -1, or the row whose score is no number.

    The parameters are those of :func:`trueline.online.pass_kernels.online_pass`, with a
    ``penalty`` and its :class:`Scaled` state; the sum of losses includes the penalty.
    """
    codes, positive, weights = labels
    scale, norms, missed, due = state
    stride, floor = 1 if weights.shape[0] > 1 else 0, 1e-9 if w.itemsize == 8 else 1e-6
    rate, threshold = setting[RATE], setting[THRESHOLD]
    alpha, ratio = penalty
    factor = as_weight(w, max(0.0, 1.0 - (1.0 - ratio) * rate * alpha))
    for t in range(order.shape[0]):
        i = order[t]
        start, stop = span_of(data, indptr, i)
        total = 0.0
        for k in range(start, stop):
            total += w[column_of(data, indices, k)] * value_of(data, i, k)
        p = as_weight(w, total * scale[0]) + b[0]
        if not math.isfinite(p):
            return i
        tally[0] += 1.0
        if p == 0.0:
            p = setting[ZERO]
        y = 1.0 if codes[i] == positive else -1.0
        z = p * y
        loss = loss_of(rule, z, threshold)
        tally[1] += loss + alpha * ((1.0 - ratio) * 0.5 * norms[0] + ratio * norms[1])
        if z <= 0.0:
            tally[3] += 1.0
        step = step_of(rule, loss, z, 0.0, rate, threshold) * y
        own = setting[POSITIVE_WEIGHT] if y > 0.0 else setting[NEGATIVE_WEIGHT]
        step *= as_weight(w, own * weights[i * stride])
        if ratio < 1.0:
            _shrink(factor, floor, scale, norms, w)
        if step != 0.0:
            c = float(as_weight(w, as_weight(w, step) / scale[0]))
            square, size = 0.0, 0.0
            for k in range(start, stop):
                j = column_of(data, indices, k)
                w[j] += value_of(data, i, k) * c
                square += w[j] * w[j]
                size += abs(w[j])
            norms[0] = square * (scale[0] * scale[0])
            norms[1] = size * scale[0]
            b[0] += step * setting[INTERCEPT_STEP]
            tally[2] += 1.0
        if ratio > 0.0:
            due[0] += ratio * rate * alpha
            _truncate(data, indices, indptr, i, due[0], scale[0], missed, w)
    return -1


@kernel
def _shrink(factor: Any, floor: float, scale: Any, norms: Any, w: Any) -> None:
    """Multiply all weights by a factor; below the floor the scale is multiplied into them."""
    scale[0] *= factor
    norms[0] *= factor * factor
    norms[1] *= factor
    if scale[0] < floor:
        scale[0] = unscale(w, scale[0])


@kernel
def _truncate(
    data: Any, indices: Any, indptr: Any, i: int, due: float, scale: Any, missed: Any, w: Any
) -> None:
    """Truncate the weights that row i touches by what is due and was not yet applied."""
    start, stop = span_of(data, indptr, i)
    for k in range(start, stop):
        j = column_of(data, indices, k)
        before = w[j]
        w[j] = _soft_threshold(before, missed[j], due, scale)
        missed[j] += scale * (w[j] - before)


@kernel
def _soft_threshold(w: Any, missed: Any, due: float, scale: Any) -> Any:
    """A weight truncated by all that it has missed; see :class:`Scaled`."""
    if w > 0.0:
        return max(0.0, w - (due + missed) / scale)
    if w < 0.0:
        return min(0.0, w + (due - missed) / scale)
    return 0.0


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
    perceptron's rule of :mod:`trueline.online.rules`.

    Parameters
    ----------
    labels : tuple
        Classes of rows, weights of classes, and weights of rows.
    W, b : arrays of shape (d, k) and (k,)
    later : array of shape (d + 1, k) or (0, k)
    counts : array of int, of shape (n, k) or (0, k)
        Updates by each row against each class.
    log : array of shape (m, 4) or (0, 4)
        Row, step, visit and the class that was subtracted from. The pass ends when it is full.

    The other parameters are those of :func:`trueline.online.pass_kernels.online_pass`.
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
        if updates == log.shape[0]:
            break
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
