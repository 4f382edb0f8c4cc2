"""The loosest tolerance that is tight enough, in few calls."""

from __future__ import annotations

from collections.abc import Callable

__all__ = ["loosest"]


def loosest(count: int, start: int, reaches: Callable[[int], bool | None]) -> int | None:
    """The first rung of a ladder that reaches the criterion.

    Rungs 0, ..., count - 1 go from loose to tight, and what a rung reaches all tighter ones are
    taken to reach. From ``start`` the search goes by one rung, then by two (tight rungs are slow:
    not far beyond) until the boundary lies between two rungs, then by halves.

    Parameters
    ----------
    count, start : int
    reaches : function
        Whether a rung reaches the criterion; None stops the search (no time left).

    Returns
    -------
    rung : int or None
        The loosest one known to reach the criterion; None if there is none.
    """
    low, high = -1, count  # fails (or nothing there); reaches (or nothing there)
    rung, step = start, 1
    while high - low > 1:
        answer = reaches(rung)
        if answer is None:
            break
        if answer:
            high = rung
        else:
            low = rung
        if low >= 0 and high < count:
            rung = (low + high) // 2
        elif answer:
            rung, step = max(low + 1, rung - step), 2
        else:
            rung, step = min(high - 1, rung + step), 2
    return high if high < count else None
