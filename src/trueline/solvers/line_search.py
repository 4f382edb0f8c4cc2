"""The minimum of a convex function of one number, from its slope and curvature."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

# A step is good when it leaves this share of the slope; Newton's method in one dimension needs few
# looks to get there.
_LEFT = 0.05
# Enough to halve a step down to the rounding of one.
_LOOKS = 80


def minimise_along(
    slope: Callable[[float], tuple[float, float]], first: float, limit: float = np.inf
) -> float:
    """A step t in (0, limit] where the slope has (almost) vanished.

    Parameters
    ----------
    slope : callable
        t to the slope at t, which does not decrease, and the curvature there.
    first : float
        The slope at zero, negative.
    limit : float, optional
        The largest step.

    Examples
    --------
    >>> from trueline.solvers.line_search import minimise_along
    >>> minimise_along(lambda t: (2 * (t - 3.0), 2.0), first=-6.0)
    3.0
    """
    low, high = 0.0, limit
    t = min(1.0, limit)
    for _ in range(_LOOKS):
        at, curvature = slope(t)
        if abs(at) <= _LEFT * abs(first) or (at < 0 and t >= limit):
            return t
        low, high = (t, high) if at < 0 else (low, t)
        ahead = t - at / curvature if curvature > 0 else np.inf
        # Newton's method comes back from the steep side of an exponential at a snail's pace: where
        # the function rises faster than it fell at zero, the step is halved at least.
        is_steep = at > abs(first) and ahead > 0.5 * (low + high)
        if not low < ahead < high or is_steep:
            inside = 0.5 * (low + high) if np.isfinite(high) else 4.0 * t
            ahead = min(inside, limit)
        t = ahead
    # Of the two ends the lower one has a slope that still falls: nothing has risen on the way.
    return low or t
