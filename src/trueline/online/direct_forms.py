"""Textbook and pocket perceptron with one weight vector for each class, all learned together.

Both interrupt a pass at each update: the kernel ends when its journal, here of one line, is full.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from trueline.online.passes import DirectTask, Order, Record

Array = NDArray[np.float64]


def direct_margins(scores: Array, codes: NDArray[np.integer]) -> Array:
    """The score of the right class less the highest other one, row by row."""
    at = np.arange(len(codes))
    right, others = scores[at, codes], scores.copy()
    others[at, codes] = -np.inf
    return np.asarray(right - others.max(axis=1))


def run_direct_textbook(
    task: DirectTask, max_iter: int, record_updates: bool
) -> tuple[int, Record, bool]:
    """Correct the first mistake found from row 0 on, again and again.

    Returns
    -------
    n_iter : int
        Visits divided by the number of rows, rounded up.
    record : Record
    finished : bool
        Whether no mistake is left.
    """
    n, record, log = task.rows.n, Record(), np.empty((1, task.log_width))
    order, updates = np.arange(n), []
    left, finished = max_iter * n, False
    while left > 0 and not finished:
        before = task.tally[2]
        task.learn(order[:left], log)
        if task.tally[2] == before:
            finished = left >= n
        elif record_updates:
            updates.append(log[0].copy())
        left = max_iter * n - int(task.tally[0])
    if record_updates:
        record.add_log(np.reshape(updates, (-1, task.log_width)))
    record.visits, record.updates, record.mistakes = (int(task.tally[i]) for i in (0, 2, 3))
    return -int(-task.tally[0] // n), record, finished


def run_direct_pocket(
    task: DirectTask, order: Order, max_iter: int, record_updates: bool
) -> tuple[int, Record, Array, Array]:
    """Passes with the best weights kept in the pocket; they replace those of the task.

    The rule of :func:`trueline.online.perceptron_forms.run_pocket`.

    Returns
    -------
    n_iter : int
    record : Record
    last_w, last_b : arrays
        The weights of the perceptron itself when the passes ended.
    """
    rows, record, log = task.rows, Record(), np.empty((1, task.log_width))
    weights = task.class_weights[rows.codes] * rows.weights

    def errors_of(V: Array, b: Array) -> float:
        wrong = direct_margins(np.asarray(rows.X @ V) + b, rows.codes) <= 0
        return float(weights[wrong].sum())

    kept, longest = (task.w.copy(), task.b.copy()), 0.0
    errors, run, is_tried, is_kept = errors_of(*kept), 0.0, True, True
    passes = 0
    while passes < max_iter and errors > 0:
        passes += 1
        visited, updates, pocket = order.next_pass(), [], []
        before, start = task.tally.copy(), 0
        while start < len(visited) and errors > 0:
            point, tally = (task.w.copy(), task.b.copy()), task.tally.copy()
            task.learn(visited[start:], log)
            seen, is_update = int(task.tally[0] - tally[0]), bool(task.tally[2] > tally[2])
            start, run = start + seen, run + seen - is_update
            if is_kept:
                longest = max(longest, run)
            elif run > longest and not is_tried:
                is_tried, found = True, errors_of(*point)
                if found < errors:
                    kept, errors, longest, is_kept = point, found, run, True
            if is_update:
                updates.append(log[0].copy())
                pocket.append(errors)
                run, is_tried, is_kept = 0.0, False, False
        if not is_kept and (found := errors_of(task.w, task.b)) < errors:
            kept, errors, longest = (task.w.copy(), task.b.copy()), found, run
            is_tried = is_kept = True
        journal = np.reshape(updates, (-1, task.log_width)) if record_updates else None
        record.add_pass(before, task.tally, journal)
        record.add_pocket(pocket)
        if not updates and not order.drawn:
            break
    record.add_pocket([errors])
    last_w, last_b = task.w.copy(), task.b.copy()
    task.w[:], task.b[:] = kept
    return passes, record, last_w, last_b
