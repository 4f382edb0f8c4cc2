"""The pocket algorithm with ratchet: perceptron updates, and the best weights so far kept aside.

S. I. Gallant, "Perceptron-based learning algorithms", IEEE Transactions on Neural Networks 1(2),
1990. Weights that were right for longer in a row than those in the pocket are tried on all rows,
and replace them only if they make fewer (weighted) errors: the errors in the pocket never grow.
"""

from __future__ import annotations

import math
from typing import Any

from trueline._jit import kernel
from trueline.online.kernels.rows import add_dense, add_sparse, dot_dense, dot_sparse

__all__ = ["pocket_pass", "weighted_errors"]


@kernel
def weighted_errors(
    dense: Any,
    data: Any,
    indices: Any,
    indptr: Any,
    codes: Any,
    positive: int,
    weights: Any,
    setting: Any,
    w: Any,
    b: Any,
    enough: float,
) -> Any:
    """Weight of the rows on the wrong side (a score of zero is on no side), up to ``enough``."""
    sparse = indptr.shape[0] > 0
    stride = 1 if weights.shape[0] > 1 else 0
    total = 0.0
    for i in range(codes.shape[0]):
        if sparse:
            p = dot_sparse(data, indices, indptr[i], indptr[i + 1], w) + b[0]
        else:
            p = dot_dense(dense, i, w) + b[0]
        positive_row = codes[i] == positive
        if (p <= 0.0) if positive_row else (p >= 0.0):
            total += (setting[3] if positive_row else setting[4]) * weights[i * stride]
            if total >= enough:
                return total
    return total


@kernel
def pocket_pass(
    dense: Any,
    data: Any,
    indices: Any,
    indptr: Any,
    codes: Any,
    positive: int,
    weights: Any,
    order: Any,
    setting: Any,
    w: Any,
    b: Any,
    kept: Any,
    pocket: Any,
    counts: Any,
    tally: Any,
    log: Any,
) -> int:
    """One pass; -1, -2 once the pocket makes no error, or the row whose score is no number.

    Parameters
    ----------
    kept : array of shape (d + 1,)
        The weights in the pocket, the intercept last.
    pocket : array of shape (4,)
        Errors of those weights, their longest run of right rows, the present run, and whether the
        present weights were tried (1) or are those in the pocket (2).
    log : array of shape (m, 3) or (0, 3)
    """
    sparse = indptr.shape[0] > 0
    stride = 1 if weights.shape[0] > 1 else 0
    rounded = w[:1].copy()
    updates = 0
    for t in range(order.shape[0]):
        i = order[t]
        if sparse:
            rounded[0] = dot_sparse(data, indices, indptr[i], indptr[i + 1], w)
        else:
            rounded[0] = dot_dense(dense, i, w)
        p = rounded[0] + b[0]
        if not math.isfinite(p):
            return i
        tally[0] += 1.0
        y = 1.0 if codes[i] == positive else -1.0
        z = p * y
        if z <= 0.0:
            tally[1] -= z
            tally[3] += 1.0
        weight = (setting[3] if y > 0.0 else setting[4]) * weights[i * stride]
        if z <= setting[1] and weight != 0.0:
            step = setting[0] * y * weight
            rounded[0] = step
            if sparse:
                add_sparse(data, indices, indptr[i], indptr[i + 1], float(rounded[0]), w)
            else:
                add_dense(dense, i, float(rounded[0]), w)
            b[0] += step * setting[5]
            counts[i] += 1
            if log.shape[0] > 0:
                log[updates, 0] = i
                log[updates, 1] = step
                log[updates, 2] = tally[0]
            updates += 1
            tally[2] += 1.0
            pocket[2], pocket[3] = 0.0, 0.0
            continue
        pocket[2] += 1.0
        if pocket[2] > pocket[1] and pocket[3] == 0.0:
            pocket[3] = 1.0
            errors = weighted_errors(
                dense, data, indices, indptr, codes, positive, weights, setting, w, b, pocket[0]
            )
            if errors < pocket[0]:
                pocket[0], pocket[1], pocket[3] = errors, pocket[2], 2.0
                kept[:-1] = w
                kept[-1] = b[0]
                if errors == 0.0:
                    return -2
        elif pocket[3] == 2.0:
            pocket[1] = pocket[2]
    return -1
