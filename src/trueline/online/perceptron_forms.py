"""Forms of the perceptron that are not plain passes: textbook, batch, pocket, voted, dual.

*Textbook*: find the first mistake, learn, start again.

*Pocket with ratchet* (S. I. Gallant, "Perceptron-based learning algorithms", IEEE Transactions on
Neural Networks 1(2), 1990): perceptron updates, and the best weights so far kept aside. Weights
that were right for longer in a row than those in the pocket are tried on all rows, and replace them
only if they make fewer (weighted) errors: the errors in the pocket never grow.

*Dual*: counts of mistakes instead of weights, for kernels.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from trueline.numerics.jit import kernel
from trueline.online.passes import Order, Record, Task, raise_for_row
from trueline.online.rows import add, as_weight, dot
from trueline.online.rules import INTERCEPT_STEP, RATE, THRESHOLD, ZERO


@kernel
def _visit(
    data: Any,
    indices: Any,
    indptr: Any,
    i: int,
    y: float,
    weight: float,
    setting: Any,
    w: Any,
    b: Any,
    tally: Any,
) -> float:
    """Learn from row i; the step that was made, or infinity if the score is no number."""
    p = dot(data, indices, indptr, i, w) + b[0]
    step = 0.0 if math.isfinite(p) else math.inf
    if p == 0.0:
        p = setting[ZERO]
    z = p * y
    if step == 0.0:
        tally[0] += 1.0
        if z <= 0.0:
            tally[1] -= z
            tally[3] += 1.0
        if z <= setting[THRESHOLD] and weight != 0.0:
            step = setting[RATE] * y * weight
            add(data, indices, indptr, i, float(as_weight(w, step)), w)
            b[0] += step * setting[INTERCEPT_STEP]
            tally[2] += 1.0
    return step


@kernel
def first_mistakes(
    data: Any,
    indices: Any,
    indptr: Any,
    y: Any,
    weights: Any,
    setting: Any,
    limit: int,
    w: Any,
    b: Any,
    tally: Any,
    counts: Any,
    log: Any,
) -> int:
    """Correct the first mistake found, until there is none, or ``limit`` rows were visited.

    Parameters
    ----------
    y, weights : arrays of shape (n,)
        Signs, and the weights of rows times those of their classes.
    log : array of shape (m, 3)
        Row, step and visit of each update; when it is full the kernel returns.

    Returns
    -------
    outcome : int
        -1 if a scan found no mistake, -2 at the limit, -3 if the log is full, or the row whose
        score is no number.
    """
    updates, i = 0, 0
    while i < y.shape[0]:
        if tally[0] >= limit:
            return -2
        step = _visit(data, indices, indptr, i, y[i], weights[i], setting, w, b, tally)
        if math.isinf(step):
            return i
        if step == 0.0:
            i += 1
            continue
        counts[i] += 1
        log[updates, 0], log[updates, 1], log[updates, 2] = i, step, tally[0]
        updates += 1
        if updates == log.shape[0]:
            return -3
        i = 0
    return -1


@kernel
def weighted_errors(
    data: Any,
    indices: Any,
    indptr: Any,
    y: Any,
    weights: Any,
    w: Any,
    b: Any,
    zero: float,
    enough: float,
) -> float:
    """Weight of the rows on the wrong side, up to ``enough``; a score of zero is ``zero``."""
    total = 0.0
    for i in range(y.shape[0]):
        p = dot(data, indices, indptr, i, w) + b[0]
        if (p if p != 0.0 else zero) * y[i] <= 0.0:
            total += weights[i]
            if total >= enough:
                return total
    return total


@kernel
def pocket_pass(
    data: Any,
    indices: Any,
    indptr: Any,
    y: Any,
    weights: Any,
    order: Any,
    setting: Any,
    w: Any,
    b: Any,
    tally: Any,
    aside: Any,
    journal: Any,
) -> int:
    """One pass; -1, -2 once the pocket makes no error, or the row whose score is no number.

    Parameters
    ----------
    aside : tuple of two arrays
        The weights in the pocket, the intercept last; and, of shape (4,), errors of those weights,
        their longest run of right rows, the present run, and whether the present weights were
        tried (1) or are those in the pocket (2).
    journal : tuple of two arrays
        Updates by each row; and row, step and visit of each update with the errors in the pocket
        before it, of shape (m, 4) or (0, 4).
    """
    kept, pocket = aside
    counts, log = journal
    updates = 0
    for t in range(order.shape[0]):
        i = order[t]
        step = _visit(data, indices, indptr, i, y[i], weights[i], setting, w, b, tally)
        if math.isinf(step):
            return i
        if step != 0.0:
            counts[i] += 1
            if log.shape[0] > 0:
                log[updates, 0], log[updates, 1], log[updates, 2] = i, step, tally[0]
                log[updates, 3] = pocket[0]
            updates += 1
            pocket[2], pocket[3] = 0.0, 0.0
            continue
        pocket[2] += 1.0
        if pocket[2] > pocket[1] and pocket[3] == 0.0:
            pocket[3] = 1.0
            errors = weighted_errors(
                data, indices, indptr, y, weights, w, b, setting[ZERO], pocket[0]
            )
            if errors < pocket[0]:
                pocket[0], pocket[1], pocket[3] = errors, pocket[2], 2.0
                for j in range(len(w)):
                    kept[j] = w[j]
                kept[-1] = b[0]
                if errors == 0.0:
                    return -2
        elif pocket[3] == 2.0:
            pocket[1] = pocket[2]
    return -1


def _add_row_whole(scores: Any, step: float, row: Any) -> None:
    scores += step * row


@kernel(whole=_add_row_whole)
def _add_row(scores: Any, step: float, row: Any) -> None:
    for j in range(scores.shape[0]):
        scores[j] += step * row[j]


@kernel
def dual_pass(
    K: Any,
    y: Any,
    steps: Any,
    order: Any,
    threshold: float,
    zero: float,
    constant: float,
    alpha: Any,
    scores: Any,
    counts: Any,
    tally: Any,
) -> int:
    """Visit rows in the given order; -1, or the row whose score is no number.

    Parameters
    ----------
    K : array of shape (n, n)
        Products of the rows in the space of the kernel.
    y, steps : arrays of shape (n,)
        Signs, and what a mistake adds.
    zero : float
        What a score of zero is taken for.
    constant : float
        Step of the intercept; 0 for none.
    alpha : array of shape (n + 1,)
        Signed sum of the steps of each row; the intercept last.
    scores : array of shape (n,)
        sum_j alpha_j K_ij, kept up to date.
    """
    n = y.shape[0]
    for t in range(order.shape[0]):
        i = order[t]
        p = scores[i] + alpha[n]
        if not math.isfinite(p):
            return i
        tally[0] += 1.0
        z = (p if p != 0.0 else zero) * y[i]
        if z <= 0.0:
            tally[1] -= z
            tally[3] += 1.0
        if z > threshold or steps[i] == 0.0:
            continue
        step = y[i] * steps[i]
        alpha[i] += step
        alpha[n] += step * constant
        _add_row(scores, step, K[i])
        counts[i] += 1
        tally[2] += 1.0
    return -1


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
            p = rows.X @ task.w + task.b[0]
            z = y * np.where(p == 0.0, task.rule.zero, p)
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
    log = np.empty((rows.n if record_updates else 0, 4))
    signed = (*rows.arrays, *task.signs_and_weights())
    kept = np.append(task.w.astype(np.float64), task.b)

    def errors_below(enough: float) -> float:
        return float(weighted_errors(*signed, task.w, task.b, task.rule.zero, enough))

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
        record.add_pass(before, task.tally, log[:, :3] if record_updates else None)
        record.add_pocket(log[: record.updates_per_pass[-1], 3])
        # The ratchet once more, so that no pass ends with weights that were never tried.
        if outcome == -1 and (errors := errors_below(pocket[0])) < pocket[0]:
            pocket[0], pocket[1], pocket[3] = errors, pocket[2], 2.0
            kept[:-1], kept[-1] = task.w, task.b[0]
            outcome = -2 if errors == 0.0 else -1
        if record.updates_per_pass[-1] == 0 and not order.drawn:
            break
    record.add_pocket(pocket[:1])
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
