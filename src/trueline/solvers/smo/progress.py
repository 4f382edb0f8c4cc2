r"""Whether steps with two multipliers still get anywhere, and a long step the way that they went.

With the rooms r = t - K beta before and after steps that have changed beta by delta, the dual
objective has grown by

    1/2 (r + r').delta - eps sum_v (|beta'_v| - |beta_v|),

exactly, for it is quadratic. Scores err by about the machine precision times the largest kernel
value and the sum of |beta|: a gain below that, times the sum of |delta|, may be none at all. Pairs
that violate the tolerance gain more than that as long as the tolerance is above the errors.

Where multipliers have a long way to go (a large C, classes that overlap), pairs go it in many short
steps. The sum of these is a direction, along which the objective is a parabola: one step to its top
or to the end of the first box replaces many (A. Torres-Barran, C. M. Alaiz, J. R. Dorronsoro,
"Faster SVM training via conjugate SMO", Pattern Recognition 111 (2021), use such directions).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["Way", "largest_error", "largest_score"]

Array = NDArray[np.float64]

_EPS = float(np.finfo(np.float64).eps)


def largest_score(diagonal: Array) -> float:
    """The largest kernel value: on the diagonal, if K is positive semi-definite."""
    return float(np.abs(diagonal).max(initial=0.0))


def largest_error(reach: float, beta: Array) -> float:
    """About what scores K beta err by, for kernel values up to ``reach``."""
    return _EPS * reach * float(np.abs(beta).sum())


class Way:
    """From one point to another: what it gained, and how far it is worth going on.

    Parameters
    ----------
    beta, room : arrays of shape (q,)
        Multipliers and t - f before.
    moved, left : arrays of shape (q,)
        The same afterwards.
    epsilon : float
    """

    def __init__(self, beta: Array, room: Array, moved: Array, left: Array, epsilon: float) -> None:
        self.epsilon = epsilon
        self.delta, self.fall = moved - beta, room - left
        self.size = max(float(np.abs(beta).sum()), float(np.abs(moved).sum()))
        self.gain = 0.5 * float((room + left) @ self.delta)
        self.gain -= epsilon * float((np.abs(moved) - np.abs(beta)).sum())

    def noise(self, reach: float) -> float:
        """A gain that may be rounding, for kernel values up to ``reach``."""
        return _EPS * reach * self.size * float(np.abs(self.delta).sum())

    def go_on(self, beta: Array, room: Array, low: Array, high: Array) -> None:
        """One long step the same way, as far as the objective grows; beta and room change."""
        delta, kinked = self.delta, self.epsilon > 0
        ends = np.where(delta > 0, high, low)
        if kinked:  # the slope of eps |beta| changes at zero
            ends = np.where((beta != 0) & (np.sign(beta) != np.sign(delta)), 0.0, ends)
        moves = np.flatnonzero(delta)
        side = np.where(beta[moves] != 0, np.sign(beta[moves]), np.sign(delta[moves]))
        slope = float((room[moves] - self.epsilon * side) @ delta[moves])
        curvature = float(delta @ self.fall)
        if not slope > 0:
            return
        room_left = (ends[moves] - beta[moves]) / delta[moves]
        first = int(np.argmin(room_left))
        step = float(room_left[first])
        is_stopped = not (curvature > 0 and slope / curvature < step)
        if not is_stopped:
            step = slope / curvature
        if not (0 < step < np.inf):
            return
        beta[moves] += step * delta[moves]
        if is_stopped:
            beta[moves[first]] = ends[moves[first]]
        np.clip(beta, low, high, out=beta)
        room -= step * self.fall
