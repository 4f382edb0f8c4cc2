"""Callbacks and progress: scikit-learn's where it has them, a progress bar everywhere.

scikit-learn 1.9 introduced ``sklearn.callback`` as experimental; the import is guarded.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from trueline.solvers.base import Event, Monitor
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


__all__ = ["CallbackSupport", "Seen", "fit_with_callbacks", "watch"]


class Seen(NamedTuple):
    """What callbacks are shown of a fit beside its iterations.

    ``X`` and ``y`` are as validated, ``sample_weight`` as given; ``attributes`` makes fitted
    attributes of coefficients of shape (d, k) and intercepts of shape (k,).
    """

    X: Any
    y: Any
    sample_weight: Any
    attributes: Callable[[Any, Any], dict[str, Any]] = lambda W, b: {}

    def arguments(self) -> dict[str, Any]:
        """The data, as scikit-learn's hooks take them."""
        metadata = None
        if self.sample_weight is not None:
            weights = np.broadcast_to(np.asarray(self.sample_weight, float), len(self.y))
            metadata = {"sample_weight": weights}
        return {"X": self.X, "y": self.y, "metadata": metadata}


@contextmanager
def watch(estimator: Any, trace: Trace, seen: Seen | None = None) -> Iterator[Monitor]:
    """Collect everybody who watches this fit.

    Those are scikit-learn's callbacks (``set_callbacks``), and a progress bar if the estimator
    has ``progress=True``. With ``seen`` the callbacks also get the data and, at the end, an
    estimator to evaluate: its fitted attributes must be set before the context is left.
    """
    callbacks: list[Callable[[Event], object]] = []
    limit = getattr(estimator, "time_limit", None)
    context = None
    data: dict[str, Any] = {}
    if getattr(estimator, "_skl_callbacks", None):
        data = {} if seen is None else seen.arguments()
        context = estimator._init_callback_context(max_subtasks=None)
        context.call_on_fit_task_begin(estimator=estimator, **data)
        callbacks.append(_Bridge(estimator, context, seen))
    bar = _Bar() if getattr(estimator, "progress", False) else None
    if bar is not None:
        callbacks.append(bar)
    fitted: dict[str, Any] = {}
    try:
        yield Monitor(trace, callbacks, math.inf if limit is None else float(limit))
        if seen is not None:  # only a fit that came to its end can be evaluated
            fitted = {**data, "reconstruction_attributes": {}}
    finally:
        if bar is not None:
            bar.close()
        if context is not None:
            context.call_on_fit_task_end(estimator=estimator, **fitted)


class _Bridge:
    """Hands every iteration to scikit-learn's callbacks, with the model as it is then."""

    def __init__(self, estimator: Any, context: Any, seen: Seen | None) -> None:
        self.estimator, self.context, self.seen = estimator, context, seen
        self.before: dict[str, Any] = {} if seen is None else seen.arguments()

    def __call__(self, event: Event) -> bool:
        task = self.context.subcontext(task_name="iteration")
        task.call_on_fit_task_begin(estimator=self.estimator, **self.before)
        if self.seen is not None:
            # Worked out only for callbacks that ask for it.
            model = partial(self.seen.attributes, event.coef, event.intercept)
            self.before = {**self.before, "reconstruction_attributes": model}
        return bool(task.call_on_fit_task_end(estimator=self.estimator, **self.before))


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
