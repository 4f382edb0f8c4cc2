"""Passes over rows until the rule for stopping says so."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from trueline.online.errors import raise_for_row
from trueline.online.kernels.passes import online_pass
from trueline.online.kernels.penalised import Penalty, Scaled, penalised_pass, unscale
from trueline.online.kernels.rows import Labels, count_rows
from trueline.online.kernels.steps import NEGATIVE_WEIGHT, POSITIVE_WEIGHT
from trueline.online.order import Order
from trueline.online.record import Record
from trueline.online.rows import Rows
from trueline.online.rules import Rule

__all__ = ["Penalty", "Stopping", "Task", "run_passes"]

Array = NDArray[np.float64]
Score = Callable[[NDArray[Any], float], float]

NO_LOG = np.empty((0, 3))
NOTHING = np.empty(0)
NO_COUNTS = np.empty(0, dtype=np.int32)


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
    #: Numbers that the log has of each update.
    log_width: ClassVar[int] = 3

    def __post_init__(self) -> None:
        self.labels = Labels(self.rows.codes, self.positive, self.rows.weights)
        if self.penalty is not None:
            w, dtype = self.w.astype(np.float64), self.w.dtype
            self.state = Scaled(
                scale=np.ones(1, dtype),
                norms=np.array([w @ w, np.abs(w).sum()]).astype(dtype),
                missed=np.zeros(len(w) if self.penalty.l1_ratio > 0 else 0, dtype),
                due=np.zeros(1),
            )

    def learn(self, order: NDArray[Any], log: Array) -> None:
        """One pass; raises if a score is no number."""
        bad = self._pass(order, log)
        if bad < 0 and not np.isfinite(self.w.sum() + self.b.sum()):
            bad = int(order[-1])
        if bad >= 0:
            raise_for_row(self.rows.X, bad, self.name)

    def _pass(self, order: NDArray[Any], log: Array) -> int:
        """One pass; -1, or the row whose score is no number."""
        given = (*self.rows.arrays, self.labels, order, self.rule.code, self.setting)
        if self.penalty is not None:
            return penalised_pass(*given, self.penalty, self.w, self.b, self.tally, self.state)
        if self.changed is None or len(self.changed) < len(order):
            self.changed = np.empty(len(order), dtype=np.int32 if self.rows.n < 2**31 else np.int64)
        before, journal = self.tally[2], (self.changed, log)
        bad = online_pass(*given, self.w, self.b, self.later, self.tally, journal)
        if len(self.counts):
            count_rows(self.changed, int(self.tally[2] - before), self.counts)
        return bad

    def signs_and_weights(self) -> tuple[Array, Array]:
        """+1 or -1 of each row, and its weight times that of its class."""
        y = np.where(self.rows.codes == self.positive, 1.0, -1.0)
        own = np.where(y > 0, self.setting[POSITIVE_WEIGHT], self.setting[NEGATIVE_WEIGHT])
        return y, own * self.rows.weights

    def finish(self) -> None:
        """Leave plain weights."""
        if self.penalty is not None:
            self.state.scale[0] = unscale(self.w, self.state.scale[0])

    def weights(self) -> NDArray[Any]:
        """The weights as they are now."""
        return self.w if self.penalty is None else self.w * self.state.scale[0]


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
    log = np.empty((task.rows.n if record_updates else 0, task.log_width))
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
