"""One pass with a penalty on the weights: shrinking by a common factor, and truncation.

The squared penalty multiplies all weights by (1 - rate alpha) at every row. They are kept as
``scale * w``, so that this costs one multiplication (Shalev-Shwartz et al., "Pegasos", ICML 2007).
The absolute penalty is applied to the weights a row touches, each by what it has missed since it
was last seen (Tsuruoka, Tsujii and Ananiadou, "Stochastic gradient descent training for
L1-regularized log-linear models with cumulative penalty", ACL 2009).
"""

from __future__ import annotations

import math
from typing import Any

from trueline._jit import kernel
from trueline.online.kernels.steps import loss_of, step_of

__all__ = ["penalised_pass", "unscale"]


@kernel
def unscale(w: Any, scale: Any) -> None:
    """Multiply the common factor into the weights."""
    for j in range(w.shape[0]):
        w[j] *= scale[0]
    scale[0] = 1.0


@kernel
def penalised_pass(
    dense: Any,
    data: Any,
    indices: Any,
    indptr: Any,
    codes: Any,
    positive: int,
    weights: Any,
    order: Any,
    rule: int,
    setting: Any,
    alpha: float,
    l1_ratio: float,
    w: Any,
    b: Any,
    scale: Any,
    norms: Any,
    missed: Any,
    due: Any,
    tally: Any,
) -> int:
    """Visit rows in the given order and learn from each; -1, or the row whose score is no number.

    Parameters
    ----------
    dense, data, indices, indptr : arrays
        Rows of an array, or of a CSR matrix; an empty ``indptr`` means the array.
    alpha, l1_ratio : float
        The penalty is alpha (l1_ratio abs(w) + (1 - l1_ratio) / 2 w^2).
    scale : array of shape (1,)
        The weights are ``scale * w``.
    norms : array of shape (2,)
        Squared and absolute norm of the weights after the last update. As in scikit-learn, whose
        stopping rule uses them, an update by a sparse row counts the weights it touched.
    missed, due : arrays of shape (d,) and (1,)
        Truncation applied so far, and the truncation that every weight should have had.

    The other parameters are those of :func:`trueline.online.kernels.dense.dense_pass`; the sum of
    losses includes the penalty.
    """
    rate, threshold = setting[0], setting[1]
    sparse = indptr.shape[0] > 0
    stride = 1 if weights.shape[0] > 1 else 0
    floor = 1e-9 if w.itemsize == 8 else 1e-6
    shrinking, cutting = l1_ratio < 1.0, l1_ratio > 0.0
    rounded = w[:1].copy()
    start, stop = 0, dense.shape[1]
    for t in range(order.shape[0]):
        i = order[t]
        if sparse:
            start, stop = indptr[i], indptr[i + 1]
        total = 0.0
        for k in range(start, stop):
            total += w[indices[k]] * data[k] if sparse else w[k] * dense[i, k]
        rounded[0] = total * scale[0]
        p = rounded[0] + b[0]
        if not math.isfinite(p):
            return i
        tally[0] += 1.0
        y = 1.0 if codes[i] == positive else -1.0
        z = p * y
        loss = loss_of(rule, z, threshold)
        tally[1] += loss + alpha * ((1.0 - l1_ratio) * 0.5 * norms[0] + l1_ratio * norms[1])
        if z <= 0.0:
            tally[3] += 1.0
        step = step_of(rule, loss, z, 0.0, rate, threshold) * y
        rounded[0] = setting[3] if y > 0.0 else setting[4]
        rounded[0] *= weights[i * stride]
        step *= rounded[0]
        if shrinking:
            rounded[0] = max(0.0, 1.0 - (1.0 - l1_ratio) * rate * alpha)
            scale[0] *= rounded[0]
            norms[0] *= rounded[0] * rounded[0]
            norms[1] *= rounded[0]
            if scale[0] < floor:
                unscale(w, scale)
        if step != 0.0:
            rounded[0] = step
            rounded[0] /= scale[0]
            c = float(rounded[0])
            square, size = 0.0, 0.0
            for k in range(start, stop):
                j = indices[k] if sparse else k
                w[j] += float(data[k] if sparse else dense[i, k]) * c
                square += w[j] * w[j]
                size += abs(w[j])
            norms[0] = square * (scale[0] * scale[0])
            norms[1] = size * scale[0]
            b[0] += step * setting[5]
            tally[2] += 1.0
        if cutting:
            due[0] += l1_ratio * rate * alpha
            for k in range(start, stop):
                j = indices[k] if sparse else k
                before = w[j]
                if before > 0.0:
                    w[j] = max(0.0, before - (due[0] + missed[j]) / scale[0])
                elif before < 0.0:
                    w[j] = min(0.0, before + (due[0] - missed[j]) / scale[0])
                missed[j] += scale[0] * (w[j] - before)
    return -1
