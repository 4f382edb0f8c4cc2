"""Those who watch a fit, told of every step of a search."""

from __future__ import annotations

import time
from typing import Any

from trueline.selection.stepwise.forward import PartialCholesky
from trueline.selection.stepwise.search import Search
from trueline.selection.stepwise.tableau import Tableau
from trueline.solvers.loop import Event, Monitor

__all__ = ["Watcher"]


class Watcher:
    """Hands every step to those who watch the fit."""

    def __init__(
        self, tableau: Tableau | PartialCholesky, search: Search, monitor: Monitor
    ) -> None:
        self.tableau, self.monitor = tableau, monitor
        self.most = search.exactly or search.at_most
        self.start = time.perf_counter()

    def __call__(self, step: dict[str, Any]) -> bool:
        if not self.monitor.callbacks:
            return False
        W = self.tableau.coefficients()
        x_mean, y_mean = self.tableau.centre()
        event = Event(
            iteration=step["step"],
            max_iter=max(self.most, step["step"]),
            objective=0.5 * step["rss"],
            gap=float("inf"),
            seconds=time.perf_counter() - self.start,
            coef=W,
            intercept=y_mean - x_mean @ W,
        )
        # Every callback hears of every event, also when an earlier one asked to stop.
        stop = [callback(event) is True for callback in self.monitor.callbacks]
        return any(stop)
