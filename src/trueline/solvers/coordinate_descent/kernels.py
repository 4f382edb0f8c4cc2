r"""Coordinate steps on a quadratic function whose matrix is at hand.

    minimise over w in [lower, upper]   1/2 w^T G w - c^T w + sum_j (l_j abs(w_j) + a_j/2 w_j^2)

The state is w and q = c - G w. One coordinate step is exact:

    w_j <- clip(soft(q_j + G_jj w_j, l_j) / (G_jj + a_j), lower_j, upper_j)

(J. Friedman, T. Hastie, R. Tibshirani, "Regularization paths for generalized linear models via
coordinate descent", J. Stat. Softw. 33 (2010) 1, section 2.2: covariance updates). Coordinates
0..active-1 are free to move; the others stay at zero or at a bound. Keeping the free ones first
makes a sweep read one compact corner of G.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from trueline.numerics.jit import kernel

Array = NDArray[np.float64]


@kernel
def soft_threshold_step(
    correlation: float, linear: float, curvature: float, lower: float, upper: float, at: float
) -> float:
    """argmin over [lower, upper] of curvature/2 w^2 - correlation w + linear abs(w).

    The soft-threshold step of coordinate descent, within bounds.

    A flat coordinate (no curvature, and the correlation is the penalty's) stays where it is.
    """
    if curvature > 0.0:
        if correlation > linear:
            best = (correlation - linear) / curvature
        elif correlation < -linear:
            best = (correlation + linear) / curvature
        else:
            best = 0.0
    elif correlation > linear:
        best = upper
    elif correlation < -linear:
        best = lower
    elif abs(correlation) < linear:
        best = 0.0
    else:
        best = at
    return min(max(best, lower), upper)


@kernel
def exchange(G: Array, state: Array, order: NDArray[np.intp], size: int, i: int, j: int) -> None:
    """Let coordinates i and j change places in G, in the columns of ``state`` and in ``order``."""
    if i == j:
        return
    for k in range(size):
        G[i, k], G[j, k] = G[j, k], G[i, k]
    for k in range(size):
        G[k, i], G[k, j] = G[k, j], G[k, i]
    for k in range(state.shape[0]):
        state[k, i], state[k, j] = state[k, j], state[k, i]
    order[i], order[j] = order[j], order[i]


@kernel(reassociate=True)
def descend(
    G: Array, state: Array, active: int, max_sweeps: int, tolerance: float
) -> tuple[int, float]:
    """Sweep over the free coordinates; q of the others is left behind.

    The rows of ``state`` are w, q, linear, curvature, lower, upper, c. Sweeps end when one lowers
    the objective by no more than ``tolerance`` (each step by half of curvature times change
    squared). Returns the number of sweeps and the last decrease.
    """
    w, q, linear, curvature = state[0], state[1], state[2], state[3]
    lower, upper = state[4], state[5]
    decrease = 0.0
    for sweep in range(max_sweeps):
        decrease = 0.0
        for j in range(active):
            diagonal = G[j, j]
            before = w[j]
            after = soft_threshold_step(
                q[j] + diagonal * before,
                linear[j],
                diagonal + curvature[j],
                lower[j],
                upper[j],
                before,
            )
            change = after - before
            if change != 0.0:
                w[j] = after
                row = G[j]
                for k in range(active):
                    q[k] -= change * row[k]
                decrease += 0.5 * (diagonal + curvature[j]) * change * change
        if decrease <= tolerance:
            return sweep + 1, decrease
    return max_sweeps, decrease


@kernel
def force(w: float, q: float, linear: float, curvature: float, lower: float, upper: float) -> float:
    """The descent of a coordinate that is at zero or at a bound; zero if it is optimal there.

    It is the derivative of the descent, taken in the direction in which the coordinate may move.
    """
    up = q - curvature * w - (linear if w >= 0.0 else -linear)
    down = q - curvature * w - (linear if w > 0.0 else -linear)
    if up > 0.0 and w < upper:
        return up
    if down < 0.0 and w > lower:
        return down
    return 0.0


@kernel
def activate(
    G: Array,
    state: Array,
    order: NDArray[np.intp],
    size: int,
    active: int,
    slack: float,
    floor: float,
) -> int:
    """Free the fixed coordinates whose force is larger than ``slack l_j + floor``.

    Returns how many are free.
    """
    for j in range(active, size):
        w, q, linear, curvature, lower, upper = state[:6, j]
        if abs(force(w, q, linear, curvature, lower, upper)) > slack * linear + floor:
            exchange(G, state, order, size, active, j)
            active += 1
    return active


@kernel
def deactivate(G: Array, state: Array, order: NDArray[np.intp], size: int, active: int) -> int:
    """Fix free coordinates that are at zero or at a bound; returns how many are free."""
    j = 0
    while j < active:
        w = state[0, j]
        if w == 0.0 or w == state[4, j] or w == state[5, j]:
            active -= 1
            exchange(G, state, order, size, active, j)
        else:
            j += 1
    return active


@kernel
def partition(G: Array, state: Array, order: NDArray[np.intp], size: int) -> int:
    """Bring the coordinates that stand between zero and their bounds to the front."""
    active = 0
    for j in range(size):
        w = state[0, j]
        if w != 0.0 and state[4, j] < w < state[5, j]:
            exchange(G, state, order, size, active, j)
            active += 1
    return active


@kernel
def conjugate(v: float, linear: float, curvature: float, lower: float, upper: float) -> float:
    """max over [lower, upper] of v w - linear abs(w) - curvature/2 w^2, which may be infinite."""
    excess = abs(v) - linear
    edge = upper if v > 0.0 else -lower
    if excess <= 0.0 or edge <= 0.0:
        # Downhill from zero on both sides: the best point is the one nearest to zero.
        if lower <= 0.0 <= upper:
            return 0.0
        w = lower if lower > 0.0 else upper
        return v * w - linear * abs(w) - 0.5 * curvature * w * w
    if curvature > 0.0:
        edge = min(edge, excess / curvature)
        if lower > 0.0 or upper < 0.0:
            edge = max(edge, lower if v > 0.0 else -upper)
    elif edge == np.inf:
        return np.inf
    return excess * edge - 0.5 * curvature * edge * edge


@kernel
def dual_scale(q: Array, linear: Array, curvature: Array, lower: Array, upper: Array) -> float:
    """The largest t <= 1 for which t q is in the domain of the penalty's conjugate.

    Coordinates without any penalty or bound are left out: there q is rounding at a solution.
    """
    t = 1.0
    for j in range(len(q)):
        end = upper[j] if q[j] > 0.0 else -lower[j]
        if curvature[j] == 0.0 and abs(q[j]) * t > linear[j] > 0.0 and end == np.inf:
            t = linear[j] / abs(q[j])
    return t


@kernel
def find_missed(
    q: Array,
    outside: NDArray[np.bool_],
    linear: Array,
    lower: Array,
    upper: Array,
    slack: float,
    missed: NDArray[np.intp],
) -> int:
    """Write down the columns outside the working set that violate optimality; how many."""
    count = 0
    for j in range(len(q)):
        end = upper[j] if q[j] > 0.0 else -lower[j]
        if outside[j] and abs(q[j]) > (1.0 + slack) * linear[j] and end > 0.0:
            missed[count] = j
            count += 1
    return count


@kernel
def largest(q: Array) -> float:
    """max_j abs(q_j)."""
    most = 0.0
    for j in range(len(q)):
        if abs(q[j]) > most:
            most = abs(q[j])
    return most


@kernel
def find_near(
    q: Array,
    before: Array,
    extrapolation: float,
    threshold: float,
    entry: NDArray[np.intp],
    found: NDArray[np.intp],
) -> int:
    """Write down the columns outside that will reach a threshold; how many.

    Their correlations are extrapolated by ``extrapolation`` times their change from ``before`` to
    q; zero means that a correlation was small and is not known.
    """
    count = 0
    for j in range(len(q)):
        if q[j] == 0.0:
            continue
        ahead = (q[j] - before[j]) * extrapolation if before[j] != 0.0 else 0.0
        if abs(q[j] + ahead) >= threshold and entry[j] < 0:
            found[count] = j
            count += 1
    return count


@kernel
def fenchel_gap(
    t: float, q: Array, w: Array, linear: Array, curvature: Array, lower: Array, upper: Array
) -> float:
    """sum_j p_j(w_j) + p_j*(t q_j) - t q_j w_j, each term at least zero."""
    total = 0.0
    for j in range(len(q)):
        v = t * q[j]
        if w[j] == 0.0 and abs(v) <= linear[j] and lower[j] <= 0.0 <= upper[j]:
            continue
        dual = conjugate(v, linear[j], curvature[j], lower[j], upper[j])
        if dual == np.inf:  # no penalty: as far as the coefficient reaches
            dual = abs(v * w[j])
        value = linear[j] * abs(w[j]) + 0.5 * curvature[j] * w[j] * w[j]
        total += max(value + dual - v * w[j], 0.0)
    return total
