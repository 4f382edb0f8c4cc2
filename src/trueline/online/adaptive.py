"""One pass of logistic regression with a learning rate of its own for every weight.

With g = -y / (1 + exp(z)) the derivative of log(1 + exp(-z)), each weight keeps the largest
magnitude s_j its column has had and the sum G_j of (g x_j)^2, and moves by

    w_j <- w_j - rate sqrt(t / N) g x_j / (s_j sqrt(G_j)),

with t the number of visits and N the sum over them of sum_j (x_j / s_j)^2,

so that neither the units nor the rarity of columns matter (Duchi, Hazan and Singer, "Adaptive
subgradient methods for online learning and stochastic optimization", JMLR 12, 2011; Ross, Mineiro
and Langford, "Normalized online learning", UAI 2013). A step is shortened so that it does not carry
the row's score further than a step along the exact path would (Karampatziakis and Langford, "Online
importance weight aware updates", UAI 2011).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from trueline.numerics.jit import kernel
from trueline.online.rows import (
    AHEAD,
    column_of,
    prefetch_row,
    span_of,
    value_of,
)
from trueline.online.rules import (
    INTERCEPT_STEP,
    LOGISTIC,
    NEGATIVE_WEIGHT,
    POSITIVE_WEIGHT,
    RATE,
    loss_of,
)

# Numbers whose squares can be added up.
_HUGE = 1e150


@kernel
def path_step(z: float, size: float) -> float:
    """How far weights move along the row, per unit of ``size``, on the exact path of the loss.

    The signed score follows dz/dt = size / (1 + exp(z)) for one unit of time, so that
    z + exp(z) grows by ``size``. The result is the growth of z over ``size``; for small steps
    it is 1 / (1 + exp(z)), the step of gradient descent.
    """
    if size < 1e-6 or z > 30.0:
        return 1.0 / (1.0 + math.exp(min(z, 700.0)))
    # Newton's method for v + exp(v) = c, convex and increasing, from a point on the right of it.
    c = z + math.exp(z) + size
    v = min(c, math.log(c) if c > 1.0 else c)
    if v < z:
        v = z
    for _ in range(8):
        e = math.exp(v)
        change = (v + e - c) / (1.0 + e)
        v -= change
        if abs(change) <= 1e-12 * (1.0 + abs(v)):
            break
    return (v - z) / size


@kernel
def adaptive_pass(
    data: Any,
    indices: Any,
    indptr: Any,
    codes: Any,
    positive: int,
    weights: Any,
    order: Any,
    setting: Any,
    memory: Any,
    w: Any,
    b: Any,
    tally: Any,
) -> int:
    """Visit rows in the given order and learn from each; -1, or the row whose score is no number.

    Parameters
    ----------
    data, indices, indptr, codes, positive, weights, order, setting, w, b, tally
        As in :func:`trueline.online.pass_kernels.online_pass`; the intercept is the weight of a
        column of ones unless its step is zero.
    memory : array of shape (d + 2, 2)
        G_j and s_j of each weight; in the last but one row those of the intercept, and in the last
        N and the number of visits.
    """
    d, stride = w.shape[0], 1 if weights.shape[0] > 1 else 0
    constant = setting[INTERCEPT_STEP] != 0.0
    moves = np.empty(256)
    for t in range(order.shape[0]):
        if data.ndim == 2 and t + AHEAD < order.shape[0]:
            prefetch_row(data, order[t + AHEAD])
        i = order[t]
        total, spread = _rescaled_score(data, indices, indptr, i, memory, w)
        p = total + b[0]
        if not math.isfinite(p) or not math.isfinite(spread):
            return i
        tally[0] += 1.0
        y = 1.0 if codes[i] == positive else -1.0
        z = p * y
        tally[1] += loss_of(LOGISTIC, z, 0.0)
        if z <= 0.0:
            tally[3] += 1.0
        own = setting[POSITIVE_WEIGHT] if y > 0.0 else setting[NEGATIVE_WEIGHT]
        weight = own * weights[i * stride]
        if weight == 0.0:
            continue
        memory[d + 1, 0] += spread + (1.0 if constant else 0.0)
        memory[d + 1, 1] += 1.0
        g = weight / (1.0 + math.exp(min(z, 700.0)))
        if memory[d + 1, 0] == 0.0 or g == 0.0:
            continue
        rate = setting[RATE] * math.sqrt(memory[d + 1, 1] / memory[d + 1, 0])
        start, stop = span_of(data, indptr, i)
        if stop - start > moves.shape[0]:
            moves = np.empty(2 * (stop - start))
        reach = _unit_moves(data, indices, indptr, i, g, memory, moves)
        if constant:
            memory[d, 0] += g * g
            memory[d, 1] = 1.0
            reach += 1.0 / math.sqrt(memory[d, 0])
        step = y * rate * weight * path_step(z, rate * weight * reach)
        for k in range(start, stop):
            w[column_of(data, indices, k)] += step * moves[k - start]
        if constant:
            b[0] += step / math.sqrt(memory[d, 0])
        tally[2] += 1.0
    return -1


@kernel
def _rescaled_score(data: Any, indices: Any, indptr: Any, i: int, memory: Any, w: Any) -> Any:
    """x_i . w and sum_j (x_j / s_j)^2 after s_j was raised to abs(x_j); not finite for huge x."""
    total, spread = 0.0, 0.0
    start, stop = span_of(data, indptr, i)
    for k in range(start, stop):
        j, x = column_of(data, indices, k), value_of(data, i, k)
        size = abs(x)
        if not size <= _HUGE:
            total = math.inf
            break
        if size > memory[j, 1]:
            # Weights are for a column whose largest number is s_j: in the new units they are
            # smaller by the same factor.
            w[j] *= memory[j, 1] / size
            memory[j, 1] = size
        total += w[j] * x
        if size > 0.0:
            spread += (x / memory[j, 1]) ** 2
    return total, spread


@kernel
def _unit_moves(
    data: Any, indices: Any, indptr: Any, i: int, g: float, memory: Any, moves: Any
) -> Any:
    """Add to the sums of squares; how far a unit step, written to ``moves``, moves the score."""
    reach = 0.0
    start, stop = span_of(data, indptr, i)
    for k in range(start, stop):
        j, x = column_of(data, indices, k), value_of(data, i, k)
        move = 0.0
        if x != 0.0:
            memory[j, 0] += (g * x) ** 2
            move = x / (memory[j, 1] * math.sqrt(memory[j, 0]))
        moves[k - start] = move
        reach += x * move
    return reach


@kernel
def adaptive_row(
    data: Any,
    indices: Any,
    indptr: Any,
    codes: Any,
    weights: Any,
    order: Any,
    setting: Any,
    memory: Any,
    w: Any,
    b: Any,
    tally: Any,
) -> bool:
    """Learn from one row; False, with nothing changed, if it holds no numbers or huge ones.

    Parameters
    ----------
    codes, weights, order : arrays of one 0 or 1, one 1.0 and one 0
    """
    start, stop = span_of(data, indptr, 0)
    for k in range(start, stop):
        if not abs(value_of(data, 0, k)) <= _HUGE:
            return False
    bad = adaptive_pass(
        data, indices, indptr, codes, 1, weights, order, setting, memory, w, b, tally
    )
    return bad < 0
