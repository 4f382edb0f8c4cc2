"""One pass with a penalty on the weights: shrinking by a common factor, and truncation.

The squared penalty multiplies all weights by (1 - rate alpha) at every row. They are kept as
``scale * w``, so that this costs one multiplication (Shalev-Shwartz et al., "Pegasos", ICML 2007).
The absolute penalty is applied to the weights a row touches, each by what it has missed since it
was last seen (Tsuruoka, Tsujii and Ananiadou, "Stochastic gradient descent training for
L1-regularized log-linear models with cumulative penalty", ACL 2009).
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from trueline.numerics.jit import kernel
from trueline.online.kernels.rows import as_weight, column_of, span_of, value_of
from trueline.online.kernels.steps import (
    INTERCEPT_STEP,
    NEGATIVE_WEIGHT,
    POSITIVE_WEIGHT,
    RATE,
    THRESHOLD,
    loss_of,
    step_of,
)

__all__ = ["Penalty", "Scaled", "penalised_pass", "unscale"]


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

    The parameters are those of :func:`trueline.online.kernels.passes.online_pass`, with a
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
