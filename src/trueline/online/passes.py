"""Passes over rows, in which order, until the rule for stopping says so.

Shuffled passes take a Fisher-Yates shuffle by a 32-bit xorshift generator (Marsaglia, "Xorshift
RNGs", Journal of Statistical Software 8(14), 2003; shifts 13, 17, 5), begun with the same seed
before every pass and applied to the order of the pass before: the orders that scikit-learn visits
rows in.

The tasks that passes are made of (two classes, the direct multiclass rule, adaptive logistic
learning), what is recorded of them, and what is said when a score is no number.

Averages of the weights over all visits are not added up at every visit: if the update c_k x_k came
at visit t_k, the weights after visit t are the sum of the updates with t_k <= t, and their sum over
the visits 1 to T is ``(T + 1) w - sum_k t_k c_k x_k`` with w the last ones. (Freund and Schapire,
"Large margin classification using the perceptron algorithm", Machine Learning 37, 1999; the
bookkeeping is H. Daume's.)
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.utils import assert_all_finite

from trueline.design import DenseDesign, SparseDesign
from trueline.design.stacked import StackedDesign
from trueline.numerics.jit import kernel
from trueline.online.adaptive import adaptive_pass
from trueline.online.pass_kernels import (
    Penalty,
    Scaled,
    direct_pass,
    online_pass,
    penalised_pass,
    unscale,
)
from trueline.online.rows import Labels, Rows, count_rows, prefetch
from trueline.online.rules import NEGATIVE_WEIGHT, POSITIVE_WEIGHT, Rule


@dataclass
class Order:
    """The rows of each pass: as they come, or shuffled before every pass.

    Parameters
    ----------
    n : int
    seed : int, optional
        Without one, rows come as they are.
    keep : array of bool, of shape (n,), optional
        Rows that are visited at all.
    drawn : bool
        Whether each visit draws any of the rows anew, instead of shuffling them.
    starts : sequence of int, optional
        Where batches begin, and the last one ends: rows are shuffled within their batch.

    Examples
    --------
    >>> from trueline.online.passes import Order
    >>> order = Order(5, seed=3)
    >>> order.next_pass().tolist() == order.next_pass().tolist()
    False
    """

    n: int
    seed: int | None = None
    keep: NDArray[np.bool_] | None = None
    drawn: bool = False
    starts: Sequence[int] = ()

    def __post_init__(self) -> None:
        self._rows = np.arange(self.n, dtype=np.int32 if self.n < 2**31 else np.int64)
        if self.drawn:
            self._random = np.random.default_rng(self.seed)

    def next_pass(self) -> NDArray[Any]:
        """The rows of the next pass, in order."""
        if self.seed is not None and self.drawn:
            self._rows = self._random.integers(0, self.n, self.n, dtype=self._rows.dtype)
        elif self.seed is not None:
            for start, stop in pairwise(self.starts or (0, self.n)):
                shuffle(self._rows[start:stop], self.seed)
        return self._rows if self.keep is None else self._rows[self.keep[self._rows]]


def seed_of(random: np.random.RandomState) -> int:
    """The seed of the shuffles that scikit-learn takes from this generator, by its second draw."""
    largest = np.iinfo(np.int32).max
    random.randint(1, largest)
    return int(random.randint(largest))


_AT_ONCE = 64


@kernel
def shuffle(order: Any, seed: int) -> None:
    """Shuffle in place; ``seed`` in [0, 2^32)."""
    # Unsigned numbers below 2^32: the compiler then divides 32 bits, several times as fast as 64.
    mask, half = np.uint64(0xFFFFFFFF), np.uint64(0x7FFFFFFF)
    one, five, thirteen, seventeen = np.uint64(1), np.uint64(5), np.uint64(13), np.uint64(17)
    state = np.uint64(seed)
    if state == 0:
        state = one
    n, i = np.uint64(order.shape[0]), np.uint64(0)
    places = np.empty(_AT_ONCE, dtype=np.uint64)
    while i + one < n:
        count = min(np.uint64(_AT_ONCE), n - one - i)
        # Where each goes depends on no other: all are asked for before any is needed.
        for q in range(count):
            state ^= (state << thirteen) & mask
            state ^= state >> seventeen
            state ^= (state << five) & mask
            at = i + np.uint64(q)
            place = at + (state & half) % ((n - at) & mask)
            places[q] = place
            prefetch(order, place)
        for q in range(count):
            at, place = i + np.uint64(q), places[q]
            kept = order[at]
            order[at] = order[place]
            order[place] = kept
        i += count


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
    #: Weights and intercept before learning, where they are kept.
    start: tuple[NDArray[Any], Array] | None = None
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
        if isinstance(self.rows.X, StackedDesign):
            return self._learn_in_turn(self.rows.X, order, log)
        bad = self._pass(order, log)
        if bad < 0 and not np.isfinite(self.w.sum() + self.b.sum()):
            bad = int(order[-1])
        if bad >= 0:
            raise_for_row(self.rows.X, bad, self.name)

    def _learn_in_turn(self, design: StackedDesign, order: NDArray[Any], log: Array) -> None:
        """One pass over rows in batches; those of a batch stand together in the order."""
        first = 0
        for where, part in design.parts():
            last = bisect_left(order, True, lo=first, key=lambda row: bool(row >= where.stop))
            if last == first:
                continue
            assert isinstance(part, DenseDesign | SparseDesign)
            X: Any = part.X if isinstance(part, DenseDesign) else part.by_rows
            weights = self.rows.weights if len(self.rows.weights) == 1 else self.rows.weights[where]
            X = X if sp.issparse(X) else np.ascontiguousarray(X)
            own = replace(
                self,
                rows=Rows(X, self.rows.codes[where], weights),
                counts=self.counts[where] if len(self.counts) else self.counts,
            )
            if self.penalty is not None:
                own.state = self.state
            own.learn(order[first:last] - where.start, log)
            first = last

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


@dataclass
class Record:
    """The story of one fit.

    Attributes
    ----------
    visits : int
        Rows that were looked at, over all passes.
    mistakes : int
        Visits at which the row was on the wrong side (or on the boundary).
    updates : int
        Visits at which the weights changed.
    mistakes_per_pass, updates_per_pass : list of int
    loss_per_pass : list of float
        Sum of what the rows cost when they were visited, with the penalty if there is one.
    rows, steps, times, rivals : arrays, or None
        Of each update, if ``record_updates=True``: the row, the signed step by which it was added,
        the visit (from 1), and for direct multiclass learning the class subtracted from.
    pocket : array, or None
        Of the pocket, then too: what the rows weigh that its weights get wrong, before each update
        and at the end.
    """

    visits: int = 0
    mistakes: int = 0
    updates: int = 0
    mistakes_per_pass: list[int] = field(default_factory=list)
    updates_per_pass: list[int] = field(default_factory=list)
    loss_per_pass: list[float] = field(default_factory=list)
    rows: NDArray[np.int64] | None = None
    steps: Array | None = None
    times: NDArray[np.int64] | None = None
    rivals: NDArray[np.int64] | None = None
    pocket: Array | None = None

    def add_pass(self, before: Array, after: Array, log: Array | None = None) -> None:
        """Count one pass from the tallies before and after it."""
        loss, updates, mistakes = (after - before)[1:4]
        self.visits, self.updates, self.mistakes = (int(after[i]) for i in (0, 2, 3))
        self.mistakes_per_pass.append(int(mistakes))
        self.updates_per_pass.append(int(updates))
        self.loss_per_pass.append(float(loss))
        if log is not None:
            self.add_log(log[: int(updates)])

    def add_log(self, log: Array) -> None:
        """Append updates: row, step, visit and, for direct learning, the rival class."""
        self.rows = _joined(self.rows, log[:, 0], np.int64)
        self.steps = _joined(self.steps, log[:, 1], np.float64)
        self.times = _joined(self.times, log[:, 2], np.int64)
        if log.shape[1] > 3:
            self.rivals = _joined(self.rivals, log[:, 3], np.int64)

    def add_pocket(self, errors: Any) -> None:
        """Append errors in the pocket, if updates are recorded."""
        if self.rows is not None:
            self.pocket = _joined(self.pocket, np.asarray(errors), np.float64)

    def weights_after_updates(
        self, X: Any, w: Any = None, intercept: float = 0.0, intercept_step: float = 1.0
    ) -> Iterator[tuple[int, Array, float]]:
        """The row of each update and the weights after it, for binary learning from ``w``.

        The numbers are those of the fit, bit for bit (for float64 rows).

        Parameters
        ----------
        X : array or sparse matrix of shape (n, d)
            The rows that were fitted.
        w : array of shape (d,), optional
            The weights at the start; zeros if not given.
        intercept : float
        intercept_step : float
            0 without an intercept.

        Yields
        ------
        row, weights, intercept
        """
        if self.rows is None or self.steps is None:
            raise ValueError("Updates were not recorded: fit with record_updates=True.")
        X = sp.csr_array(X) if sp.issparse(X) else np.asarray(X)
        w = np.zeros(X.shape[1]) if w is None else np.array(w, dtype=np.float64)
        for row, step in zip(self.rows.tolist(), self.steps.tolist()):
            x = X[[row]].toarray()[0] if sp.issparse(X) else X[row]
            w = w + x * step
            intercept = intercept + step * intercept_step
            yield row, w, intercept


def _joined(old: NDArray[Any] | None, new: NDArray[Any], dtype: Any) -> NDArray[Any]:
    new = new.astype(dtype)
    return new if old is None else np.concatenate([old, new])


def raise_for_row(X: Any, row: int, name: str) -> None:
    """Raise for NaN and infinity in X, or else for the sizes that made products overflow."""
    with np.errstate(invalid="ignore", over="ignore"):
        assert_all_finite(X, input_name="X")
        x = X[[row]].toarray()[0] if sp.issparse(X) else X[row]
        largest = float(np.abs(x.astype(np.float64)).max(initial=0.0))
    raise ValueError(
        f"{name}: products of the weights with row {row} (largest number {largest:.3g}) leave the "
        f"range of {x.dtype}. Normalise the rows (normalize_rows=True, or "
        "sklearn.preprocessing.Normalizer) or scale the columns (StandardScaler)."
    )


def fresh_memory(classes: int, d: int) -> Array:
    """For each problem: sums of squares and sizes of every weight, of the intercept; and N, t."""
    return np.zeros((classes, d + 2, 2))


@dataclass
class AdaptiveTask(Task):
    """One binary problem, with a learning rate of its own for every weight."""

    memory: Array = field(default_factory=lambda: np.zeros((2, 2)))

    def _pass(self, order: NDArray[Any], log: Any) -> int:
        return adaptive_pass(
            *(*self.rows.arrays, *self.labels, order),
            *(self.setting, self.memory, self.w, self.b, self.tally),
        )


@dataclass
class DirectTask(Task):
    """One problem of all classes; ``w`` has shape (d, k), ``b`` (k,), and ``counts`` (n, k)."""

    class_weights: NDArray[np.float64] = field(default_factory=lambda: np.ones(1))
    log_width: ClassVar[int] = 4

    def _pass(self, order: NDArray[Any], log: Any) -> int:
        labels = (self.rows.codes, self.class_weights, self.rows.weights)
        return direct_pass(
            *(*self.rows.arrays, labels, order, self.setting, self.w, self.b),
            *(self.later, self.tally, self.counts, log),
        )


def averaged(last: NDArray[Any], later: NDArray[Any], visits: Any, start: float = 1.0) -> Any:
    """The mean of the weights after the visits ``start`` to ``visits``.

    Parameters
    ----------
    last : array
        The weights (or the intercept) after the last visit.
    later : array
        Sum of max(t_k, start) c_k x_k over the updates.

    Examples
    --------
    Weights 0, 2, 2 after three visits: the update of 2 came at the second.

    >>> import numpy as np
    >>> from trueline.online.passes import averaged
    >>> averaged(np.array([2.0]), np.array([2 * 2.0]), 3).round(4).tolist()
    [1.3333]
    """
    with np.errstate(over="ignore", invalid="ignore"):
        return ((visits + 1.0) * last - later) / (visits - start + 1.0)
