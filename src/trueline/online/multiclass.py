"""Passes of the direct multiclass rule: one weight vector for each class, learned together."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from trueline.online.errors import raise_for_row
from trueline.online.kernels.direct import direct_pass
from trueline.online.order import Order
from trueline.online.passes import Stopping
from trueline.online.record import Record
from trueline.online.rows import Rows
from trueline.online.rules import Rule

__all__ = ["learn_direct", "run_direct"]

Array = NDArray[np.float64]


def learn_direct(
    rows: Rows,
    class_weights: Array,
    rule: Rule,
    setting: Array,
    order: NDArray[Any],
    W: Array,
    b: Array,
    later: Array,
    counts: NDArray[np.int32],
    tally: Array,
    log: Array,
    name: str,
) -> None:
    """One pass; raises if scores are no numbers."""
    arguments: Any = (
        *rows.both,
        *(rows.codes, class_weights, rows.weights, order, rule.code, setting),
        *(W, b, later, counts, tally, log),
    )
    bad = direct_pass(*arguments)
    if bad < 0 and not np.isfinite(W.sum() + b.sum()):
        bad = int(order[-1])
    if bad >= 0:
        raise_for_row(rows.X, bad, name)


def run_direct(
    rows: Rows,
    class_weights: Array,
    rule: Rule,
    setting: Array,
    W: Array,
    b: Array,
    later: Array,
    counts: NDArray[np.int32],
    order: Order,
    stopping: Stopping,
    name: str,
    record_updates: bool,
) -> tuple[int, Record]:
    """Passes until the rule for stopping says so; ``W`` of shape (d, k) and ``b`` change."""
    record, tally = Record(), np.zeros(4)
    log: Any = np.empty((rows.n if record_updates else 0, 4))
    best, waited, passes = np.inf, 0, 0
    for passes in range(1, stopping.max_iter + 1):  # noqa: B007
        tally[1] = 0.0
        before, visited = tally.copy(), order.next_pass()
        learn_direct(
            *(rows, class_weights, rule, setting, visited, W, b, later, counts, tally, log, name)
        )
        record.add_pass(before, tally, log if record_updates else None)
        if stopping.when_separated and record.updates_per_pass[-1] == 0:
            break
        mean = record.loss_per_pass[-1] / len(visited)
        if stopping.tol is not None and mean > best - stopping.tol:
            waited += 1
        else:
            waited = 0
        best = min(best, mean)
        if waited >= stopping.patience:
            break
    return passes, record
