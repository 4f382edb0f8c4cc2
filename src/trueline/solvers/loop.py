"""The one loop: it owns iteration, time, stopping, callbacks, trace and status.

An iterative solver supplies an :class:`Iteration`: ``step`` advances it by one iteration,
``progress`` evaluates where it stands. Everything else happens here, once.
"""

from __future__ import annotations

import math
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from trueline.solution import Status
from trueline.trace import Trace

__all__ = ["Callback", "Event", "Iteration", "Monitor", "Progress", "run", "seen_through"]

Array = NDArray[np.float64]


class Progress(NamedTuple):
    """The objective, and a proven bound on its distance to the optimum (inf if unknown)."""

    objective: float
    gap: float


class Event(NamedTuple):
    """What callbacks receive after an iteration."""

    iteration: int
    max_iter: int
    objective: float
    gap: float
    seconds: float
    coef: Array
    intercept: Array


Callback = Callable[[Event], object]


@dataclass
class Monitor:
    """Who watches a fit.

    Parameters
    ----------
    trace : Trace
        Filled when enabled.
    callbacks : sequence of callables
        Each receives an :class:`Event` after every check; returning True stops the fit.
    time_limit : float
        Seconds after which the loop stops.
    """

    trace: Trace = field(default_factory=Trace)
    callbacks: Sequence[Callback] = ()
    time_limit: float = math.inf

    @property
    def is_watching(self) -> bool:
        """Whether somebody wants to see every iteration."""
        return self.trace.enabled or bool(self.callbacks)


def seen_through(monitor: Monitor, back: Callable[[Array, Array], tuple[Array, Array]]) -> Monitor:
    """A monitor whose callbacks see the coefficients that a change of coordinates leads back to."""

    def told(callback: Callback) -> Callback:
        def tell(event: Event) -> object:
            W, b = back(event.coef, event.intercept)
            return callback(event._replace(coef=W, intercept=b))

        return tell

    return replace(monitor, callbacks=[told(callback) for callback in monitor.callbacks])


class Iteration(ABC):
    """The state of an iterative method.

    Attributes
    ----------
    coef, intercept : arrays of shape (d, k) and (k,)
        The current point, valid after :meth:`progress`.
    is_stalled : bool
        Set by a method that knows that rounding keeps it from getting any further.
    is_settled : bool
        Set by a method whose gradient vanished to the tolerance, where no proof can show it.
    hands_over : bool
        Set by a method whose progress has become slow, if another solver is to go on.
    """

    coef: Array
    intercept: Array
    is_stalled: bool = False
    is_settled: bool = False
    hands_over: bool = False

    @abstractmethod
    def step(self) -> None:
        """Advance by one iteration."""

    @abstractmethod
    def progress(self) -> Progress:
        """Evaluate objective and gap at the current point."""


@np.errstate(over="ignore", invalid="ignore")  # what is not finite ends as DIVERGED
def run(
    iteration: Iteration,
    monitor: Monitor,
    *,
    max_iter: int,
    target_gap: float,
    check_every: int = 1,
    patience: int | None = None,
) -> tuple[Status, int, Progress]:
    """Iterate until the gap is proven small enough, or something else ends it.

    Parameters
    ----------
    iteration : Iteration
    monitor : Monitor
    max_iter : int
    target_gap : float
        Stop when the proven gap is at or below this value.
    check_every : int, default=1
        Progress is evaluated every so many iterations (each one when somebody watches).
    patience : int, optional
        Stop as stalled when the gap has not become smaller for that many iterations.

    Returns
    -------
    status : Status
    n_iter : int
    progress : Progress
        At the end.
    """
    every = 1 if monitor.is_watching else max(1, check_every)
    start = time.perf_counter()
    best_gap, best_number = math.inf, 0
    progress = iteration.progress()
    monitor.trace.record(iteration=0, objective=progress.objective, gap=progress.gap, seconds=0.0)
    if progress.gap <= target_gap:
        return Status.CONVERGED, 0, progress
    for number in range(1, max_iter + 1):
        iteration.step()
        seconds = time.perf_counter() - start
        late = seconds > monitor.time_limit
        if number % every and number < max_iter and not late:
            continue
        progress = iteration.progress()
        coef, intercept = iteration.coef, iteration.intercept
        if monitor.callbacks:  # they may keep what they are given
            coef, intercept = coef.copy(), intercept.copy()
        event = Event(number, max_iter, *progress, seconds, coef, intercept)
        monitor.trace.record(
            iteration=number, objective=progress.objective, gap=progress.gap, seconds=seconds
        )
        # Every callback hears of every event, also when an earlier one asked to stop.
        stop = [callback(event) is True for callback in monitor.callbacks]
        if not math.isfinite(progress.objective):
            return Status.DIVERGED, number, progress
        if progress.gap <= target_gap:
            return Status.CONVERGED, number, progress
        if iteration.is_settled:
            return Status.SETTLED, number, progress
        if iteration.hands_over:
            return Status.HANDED_OVER, number, progress
        if any(stop):
            return Status.STOPPED, number, progress
        if late:
            return Status.TIME_LIMIT, number, progress
        if progress.gap < best_gap:
            best_gap, best_number = progress.gap, number
        elif patience is not None and number - best_number >= patience:
            return Status.STALLED, number, progress
        if iteration.is_stalled:
            return Status.STALLED, number, progress
    return Status.MAX_ITER, max_iter, progress
