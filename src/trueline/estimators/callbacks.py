"""Callbacks and progress: scikit-learn's where it has them, a progress bar everywhere.

scikit-learn 1.9 introduced ``sklearn.callback`` as experimental; the import is guarded.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from trueline.solvers.loop import Event, Monitor
from trueline.trace import Trace

try:
    from sklearn.callback import CallbackSupportMixin as CallbackSupport
    from sklearn.callback import with_callbacks as fit_with_callbacks
except ImportError:  # scikit-learn before 1.9

    class CallbackSupport:  # type: ignore[no-redef]
        """Stands in where scikit-learn has no callbacks."""

    def fit_with_callbacks(method: Callable[..., Any]) -> Callable[..., Any]:
        """Leave the method as it is."""
        return method


__all__ = ["CallbackSupport", "fit_with_callbacks", "watch"]


@contextmanager
def watch(estimator: Any, trace: Trace) -> Iterator[Monitor]:
    """Collect everybody who watches this fit.

    Those are scikit-learn's callbacks (``set_callbacks``), and a progress bar if the estimator
    has ``progress=True``.
    """
    callbacks: list[Callable[[Event], object]] = []
    limit = getattr(estimator, "time_limit", None)
    context = None
    if getattr(estimator, "_skl_callbacks", None):
        context = estimator._init_callback_context(max_subtasks=None)
        context.call_on_fit_task_begin(estimator=estimator)
        callbacks.append(_Bridge(estimator, context))
    bar = _Bar() if getattr(estimator, "progress", False) else None
    if bar is not None:
        callbacks.append(bar)
    try:
        yield Monitor(trace, callbacks, math.inf if limit is None else float(limit))
    finally:
        if bar is not None:
            bar.close()
        if context is not None:
            context.call_on_fit_task_end(estimator=estimator)


class _Bridge:
    """Hands every iteration to scikit-learn's callbacks."""

    def __init__(self, estimator: Any, context: Any) -> None:
        self.estimator, self.context = estimator, context

    def __call__(self, event: Event) -> bool:
        task = self.context.subcontext(task_name="iteration")
        task.call_on_fit_task_begin(estimator=self.estimator)
        return bool(task.call_on_fit_task_end(estimator=self.estimator))


class _Bar:
    """A progress bar in the terminal, with the objective and the proven gap."""

    def __init__(self) -> None:
        from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

        self.progress = Progress(
            TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn(), transient=False
        )
        self.progress.start()
        self.task = self.progress.add_task("fitting", total=None)

    def __call__(self, event: Event) -> bool:
        text = f"iteration {event.iteration}  objective {event.objective:.6g}  gap {event.gap:.2g}"
        self.progress.update(
            self.task, description=text, completed=event.iteration, total=event.max_iter
        )
        return False

    def close(self) -> None:
        """Leave the last state on the screen."""
        self.progress.stop()
