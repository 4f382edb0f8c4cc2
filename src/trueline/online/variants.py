"""Forms of the perceptron that are not plain passes: textbook, batch, pocket, voted."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from trueline.online.kernels.perceptron import first_mistakes, pocket_pass, weighted_errors
from trueline.online.kernels.steps import INTERCEPT_STEP
from trueline.online.order import Order
from trueline.online.passes import NO_LOG, Record, Task, raise_for_row

__all__ = ["run_batch", "run_pocket", "run_textbook", "survivors"]

Array = NDArray[np.float64]


def run_textbook(task: Task, max_iter: int, record_updates: bool) -> tuple[int, Record, bool]:
    """Correct the first mistake found from row 0 on, again and again.

    Returns
    -------
    n_iter : int
        Visits divided by the number of rows, rounded up.
    record : Record
    finished : bool
        Whether no mistake is left.
    """
    rows, record = task.rows, Record()
    log = np.empty((4096, 3))
    signed = (*rows.arrays, *task.signs_and_weights())
    outcome = -3
    while outcome == -3:
        start = int(task.tally[2])
        outcome = first_mistakes(
            *(*signed, task.setting, max_iter * rows.n),
            *(task.w, task.b, task.tally, task.counts, log),
        )
        if outcome >= 0:
            raise_for_row(rows.X, outcome, task.name)
        if record_updates:
            record.add_log(log[: int(task.tally[2]) - start])
    record.visits, record.updates, record.mistakes = (int(task.tally[i]) for i in (0, 2, 3))
    return -int(-task.tally[0] // rows.n), record, outcome == -1


def run_batch(task: Task, max_iter: int, record_updates: bool) -> tuple[int, Record, float]:
    """Add the sum of all rows that are wrong, until none is.

    Returns
    -------
    n_iter : int
    record : Record
    largest : float
        The largest sum of the steps of one iteration.
    """
    rows, record, largest = task.rows, Record(), 0.0
    y, weights = task.signs_and_weights()
    steps = weights * task.rule.rate
    passes = 0
    for passes in range(1, max_iter + 1):  # noqa: B007
        with np.errstate(over="ignore", invalid="ignore"):
            z = y * (rows.X @ task.w + task.b[0])
        if not np.isfinite(z).all():
            raise_for_row(rows.X, int(np.flatnonzero(~np.isfinite(z))[0]), task.name)
        wrong = (z <= task.rule.threshold) & (steps > 0)
        before = task.tally.copy()
        task.tally += [len(y), -z[z < 0].sum(), wrong.sum(), (z <= 0).sum()]
        at = np.flatnonzero(wrong)
        log = np.column_stack([at, (y * steps)[at], np.full(len(at), task.tally[0])])
        record.add_pass(before, task.tally, log if record_updates else None)
        if not len(at):
            break
        change = np.where(wrong, y * steps, 0.0)
        task.w += rows.X.T @ change
        task.b += change.sum() * task.setting[INTERCEPT_STEP]
        task.counts[at] += 1
        largest = max(largest, float(steps[at].sum()))
    return passes, record, largest


def run_pocket(
    task: Task, order: Order, max_iter: int, record_updates: bool
) -> tuple[int, Record, float, NDArray[Any], Array]:
    """Perceptron passes with the best weights kept in the pocket; they replace those of the task.

    Returns
    -------
    n_iter : int
    record : Record
    errors : float
        Weight of the rows that the weights in the pocket get wrong.
    last_w, last_b : arrays
        The weights of the perceptron itself when the passes ended.
    """
    rows, record = task.rows, Record()
    log = np.empty((rows.n, 3)) if record_updates else NO_LOG
    signed = (*rows.arrays, *task.signs_and_weights())
    kept = np.append(task.w.astype(np.float64), task.b)

    def errors_below(enough: float) -> float:
        return float(weighted_errors(*signed, task.w, task.b, enough))

    pocket = np.array([errors_below(np.inf), 0.0, 0.0, 2.0])
    passes, outcome = 0, -1
    while passes < max_iter and outcome == -1:
        passes += 1
        task.tally[1] = 0.0
        before = task.tally.copy()
        outcome = pocket_pass(
            *(*signed, order.next_pass(), task.setting, task.w, task.b),
            *(task.tally, (kept, pocket), (task.counts, log)),
        )
        if outcome >= 0:
            raise_for_row(rows.X, outcome, task.name)
        record.add_pass(before, task.tally, log if record_updates else None)
        # The ratchet once more, so that no pass ends with weights that were never tried.
        if outcome == -1 and (errors := errors_below(pocket[0])) < pocket[0]:
            pocket[0], pocket[1], pocket[3] = errors, pocket[2], 2.0
            kept[:-1], kept[-1] = task.w, task.b[0]
            outcome = -2 if errors == 0.0 else -1
        if record.updates_per_pass[-1] == 0 and not order.drawn:
            break
    last_w, last_b = task.w.copy(), task.b.copy()
    task.w[:], task.b[:] = kept[:-1], kept[-1]
    return passes, record, float(pocket[0]), last_w, last_b


def survivors(record: Record, X: Any, intercept_step: float) -> tuple[Array, Array]:
    """All weights that a run from zero went through, and for how many visits each one lived.

    Returns
    -------
    weights : array of shape (updates, d + 1)
        The intercept last.
    votes : array of shape (updates,)
    """
    assert record.rows is not None
    assert record.steps is not None
    assert record.times is not None
    size = len(record.rows) * (X.shape[1] + 1)
    if size > 2e8:
        raise ValueError(
            f"The vote needs all {len(record.rows)} weight vectors of {X.shape[1]} numbers, "
            f"{8 * size / 1e9:.1f} GB. Use variant='averaged', which predicts nearly the same."
        )
    added = X[record.rows]
    added = added.toarray() if sp.issparse(added) else added.astype(np.float64)
    changes = np.hstack([added, np.full((len(added), 1), intercept_step)]) * record.steps[:, None]
    votes = np.diff(np.append(record.times, record.visits + 1)).astype(np.float64)
    return np.cumsum(changes, axis=0), votes
