"""The loop of iterative solvers, by the name that solvers written outside this package import.

It lives in :mod:`trueline.solvers.base`.
"""

from trueline.solvers.base import Event, Iteration, Monitor, Progress, run

__all__ = ["Event", "Iteration", "Monitor", "Progress", "run"]
