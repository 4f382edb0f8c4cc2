"""The steps of a perceptron as a trace: weights, and rows on the wrong side, after each update.

They are added up again from the record of the updates, which the passes themselves need not know.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from trueline.online.direct_forms import direct_margins
from trueline.online.passes import DirectTask, Record, Task
from trueline.online.rules import INTERCEPT_STEP, ZERO
from trueline.trace import Trace

Array = NDArray[np.float64]

# More points than this are not told apart in a picture.
_POINTS = 500


def trace_of_run(task: Task, record: Record, start: tuple[Array, Array], constant: bool) -> Trace:
    """What a recorded run did, one line for each iteration, thinned where there are many.

    Iteration is the number of updates so far (of sums of updates in the batch form).

    Parameters
    ----------
    task : Task
        With the rows and the step of the intercept.
    record : Record
        With its updates.
    start : tuple of two arrays
        Weights of shape (d,), or (d, k) if all classes learn together, and intercepts.
    constant : bool
        Whether the last column is the constant one.
    """
    assert record.rows is not None
    assert record.steps is not None
    assert record.times is not None
    ends = np.flatnonzero(np.diff(np.append(record.times, -1))) + 1
    shown = np.unique(np.linspace(0, len(ends), min(len(ends) + 1, _POINTS)).astype(np.intp))
    after = np.cumsum(record.updates_per_pass, dtype=np.intp)
    shown = np.union1d(shown, np.searchsorted(ends, after, side="right"))
    V, b = start[0].astype(np.float64), start[1].astype(np.float64)
    V, trace, done = V.reshape(len(V), -1), Trace(enabled=True), 0
    for iteration in shown.tolist():
        until = int(ends[iteration - 1]) if iteration else 0
        _add(task, record, slice(done, until), V, b)
        done = until
        told = {"iteration": float(iteration), "errors": float(_errors(task, V, b))}
        told["visits"] = float(record.times[until - 1]) if until else 0.0
        if len(after):
            told["passes"] = float(np.searchsorted(after, until, side="left") + (until > 0))
        if record.pocket is not None:
            told["pocket"] = float(record.pocket[until])
        trace.record(**told)
        W, level = (V[:-1], V[-1]) if constant else (V, b)
        trace.keep(iteration, W, level)
    return trace


def _add(task: Task, record: Record, part: slice, V: Array, b: Array) -> None:
    """Add some of the updates to weights and intercepts, in place."""
    rows, steps = record.rows[part], record.steps[part]  # type: ignore[index]
    if not len(rows):
        return
    change = np.zeros((len(rows), V.shape[1]))
    at = np.arange(len(rows))
    if record.rivals is None:
        change[:, 0] = steps
    else:
        change[at, task.rows.codes[rows]] = steps
        change[at, record.rivals[part]] -= steps
    V += np.asarray(task.rows.X[rows].T @ change)
    b += change.sum(axis=0) * task.setting[INTERCEPT_STEP]


def _errors(task: Task, V: Array, b: Array) -> int:
    """Rows on the wrong side."""
    scores = np.asarray(task.rows.X @ V) + b
    if isinstance(task, DirectTask):
        return int(np.count_nonzero(direct_margins(scores, task.rows.codes) <= 0))
    p = np.where(scores[:, 0] == 0, task.setting[ZERO], scores[:, 0])
    y, _ = task.signs_and_weights()
    return int(np.count_nonzero(p * y <= 0))


def errors_after_passes(trace: Trace, record: Record) -> NDArray[Any]:
    """Rows on the wrong side after each pass."""
    ends = np.cumsum(record.updates_per_pass)
    return trace["errors"][np.searchsorted(trace["iteration"], ends)]
