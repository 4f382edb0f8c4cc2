"""Machine code made ready before the clock of a search starts."""

from __future__ import annotations

from functools import cache

import numpy as np

__all__ = ["make_ready"]


@cache
def make_ready() -> None:
    """Run everything once on a few rows, so that no time limit pays for compilation."""
    from trueline.separation.zero_one.branch_and_bound.search import search
    from trueline.separation.zero_one.enumeration import enumerate_circles
    from trueline.separation.zero_one.local_search import local_search
    from trueline.separation.zero_one.margin import widest
    from trueline.separation.zero_one.problem import state

    X = np.array([[0.0, 0.1], [0.2, 1.0], [1.0, 0.3], [1.1, 1.0], [0.5, 0.6], [0.4, 2.0]])
    task = state(X, np.array([1.0, -1.0, -1.0, 1.0, 1.0, -1.0]), None, True)
    local_search(task.A, task.s)
    widest(task, search(task, np.array([1.0, 0.0, 0.0])).v)
    enumerate_circles(task)
