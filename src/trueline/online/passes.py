"""Passes over rows until the rule for stopping says so."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trueline.online.errors import raise_for_row
from trueline.online.kernels.dense import dense_pass
from trueline.online.kernels.penalised import penalised_pass, unscale
from trueline.online.kernels.rows import count_rows
from trueline.online.kernels.sparse import sparse_pass
from trueline.online.order import Order
from trueline.online.record import Record
from trueline.online.rows import Rows
from trueline.online.rules import Rule

__all__ = ["Penalty", "Stopping", "Task", "run_passes", "setting_of"]

Array = NDArray[np.float64]
Score = Callable[[NDArray[Any], float], float]

NO_LOG = np.empty((0, 3))
NOTHING = np.empty(0)
NO_COUNTS = np.empty(0, dtype=np.int32)


@dataclass(frozen=True)
class Penalty:
    """alpha (l1_ratio abs(w) + (1 - l1_ratio) / 2 w^2), per row."""

    alpha: float
    l1_ratio: float


@dataclass(frozen=True)
class Stopping:
    """When to stop making passes.

    Attributes
    ----------
    max_iter : int
    tol : float, optional
        Passes stop once ``patience`` of them in a row did not improve the mean loss (or the
        validation score) by this; without it, only ``max_iter`` ends them.
    patience : int
    when_separated : bool
        Whether a pass without an update is the last: all further ones would be like it.
    """

    max_iter: int
    tol: float | None = None
    patience: int = 5
    when_separated: bool = False


@dataclass
class Task:
    """One binary problem: rows, what is +1, the rule, and the weights, which change in place."""

    rows: Rows
    positive: int
    rule: Rule
    setting: Array
    w: NDArray[Any]
    b: Array
    name: str
    later: Array = field(default_factory=lambda: NOTHING)
    counts: NDArray[np.int32] = field(default_factory=lambda: NO_COUNTS)
    tally: Array = field(default_factory=lambda: np.zeros(4))
    penalty: Penalty | None = None
    changed: NDArray[Any] | None = None

    def __post_init__(self) -> None:
        if self.penalty is not None:
            w = self.w.astype(np.float64)
            self.norms = np.array([w @ w, np.abs(w).sum()]).astype(self.w.dtype)
            self.scale = np.ones(1, dtype=self.w.dtype)
            cutting = self.penalty.l1_ratio > 0
            self.missed = np.zeros(len(w) if cutting else 0, dtype=self.w.dtype)
            self.due = np.zeros(1)

    def learn(self, order: NDArray[Any], log: Array) -> None:
        """One pass; raises if a score is no number."""
        if self.penalty is not None:
            arguments: Any = (
                *self.rows.both,
                *(self.rows.codes, self.positive, self.rows.weights, order),
                *(self.rule.code, self.setting, self.penalty.alpha, self.penalty.l1_ratio),
                *(self.w, self.b, self.scale, self.norms, self.missed, self.due, self.tally),
            )
            bad = penalised_pass(*arguments)
        else:
            run = sparse_pass if self.rows.is_sparse else dense_pass
            changed, before = self._changed(len(order)), self.tally[2]
            arguments = (
                *self.rows.own,
                *(self.rows.codes, self.positive, self.rows.weights, order),
                *(self.rule.code, self.setting, self.w, self.b),
                *(self.later, changed, self.tally, log),
            )
            bad = run(*arguments)
            if len(self.counts):
                count_rows(changed, int(self.tally[2] - before), self.counts)
        if bad < 0 and not np.isfinite(self.w.sum() + self.b[0]):
            bad = int(order[-1])
        if bad >= 0:
            raise_for_row(self.rows.X, bad, self.name)

    def _changed(self, n: int) -> NDArray[Any]:
        """Room for the rows of the updates of one pass."""
        if self.changed is None or len(self.changed) < n:
            self.changed = np.empty(n, dtype=np.int32 if self.rows.n < 2**31 else np.int64)
        return self.changed

    def finish(self) -> None:
        """Leave plain weights."""
        if self.penalty is not None:
            unscale(self.w, self.scale)

    def weights(self) -> NDArray[Any]:
        """The weights as they are now."""
        return self.w if self.penalty is None else self.w * self.scale[0]


def setting_of(
    rule: Rule,
    positive_weight: float = 1.0,
    negative_weight: float = 1.0,
    intercept_step: float = 1.0,
    norm_of_constant: float = 0.0,
    average_from: float = 1.0,
) -> Array:
    """The numbers that the kernels ask for, in their order."""
    return np.array(
        [
            rule.rate,
            rule.threshold,
            rule.decay,
            positive_weight,
            negative_weight,
            intercept_step,
            norm_of_constant,
            average_from,
        ]
    )


def run_passes(
    task: Task,
    order: Order,
    stopping: Stopping,
    record_updates: bool = False,
    score: Score | None = None,
) -> tuple[int, Record]:
    """Make passes until the rule for stopping says so.

    Parameters
    ----------
    score : callable, optional
        Score of weights and intercept on rows kept apart; it then decides instead of the loss.

    Returns
    -------
    n_iter : int
    record : Record
    """
    record = Record()
    log = np.empty((task.rows.n, 3)) if record_updates else NO_LOG
    best, waited = -np.inf, 0
    passes = 0
    for passes in range(1, stopping.max_iter + 1):  # noqa: B007
        task.tally[1] = 0.0
        before, rows = task.tally.copy(), order.next_pass()
        task.learn(rows, log)
        record.add_pass(before, task.tally, log if record_updates else None)
        if stopping.when_separated and record.updates_per_pass[-1] == 0:
            break
        if score is not None:
            merit = score(task.weights(), float(task.b[0]))
        else:
            merit = -record.loss_per_pass[-1] / len(rows)
        if stopping.tol is not None and merit < best + stopping.tol:
            waited += 1
        else:
            waited = 0
        best = max(best, merit)
        if waited >= stopping.patience:
            break
    task.finish()
    return passes, record
