"""What is said where a perceptron ended with rows that are not on the right side."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from trueline.online.direct_forms import direct_margins
from trueline.online.passes import DirectTask, Task
from trueline.online.rules import NEGATIVE_WEIGHT, POSITIVE_WEIGHT, ZERO
from trueline.separation.decide import decide
from trueline.separation.inequalities import ContrastRows, Rows, SignedRows


def wrong_rows(task: Task) -> int:
    """How many rows that count are on the wrong side, or on none."""
    scores = np.asarray(task.rows.X @ task.w) + task.b
    if isinstance(task, DirectTask):
        wrong = direct_margins(scores, task.rows.codes) <= 0
    else:
        zero, positive = task.setting[ZERO], task.rows.codes == task.positive
        above = (scores > 0) | (scores == 0) if zero > 0 else scores > 0
        below = (scores < 0) | (scores == 0) if zero < 0 else scores < 0
        wrong = ~np.where(positive, above, below)
    is_plain = (
        len(task.rows.weights) == 1 and task.setting[[POSITIVE_WEIGHT, NEGATIVE_WEIGHT]].all()
    )
    return int(np.count_nonzero(wrong if is_plain else wrong & _counts(task)))


def _counts(task: Task) -> NDArray[np.bool_]:
    """Rows that have a weight."""
    if isinstance(task, DirectTask):
        return np.asarray(task.class_weights[task.rows.codes] * task.rows.weights > 0)
    return task.signs_and_weights()[1] > 0


def is_separable(task: Task, fit_intercept: bool) -> bool:
    """Whether some weights have all rows strictly on their sides: decided exactly."""
    some = _counts(task)
    X = task.rows.X[some].astype(np.float64)
    rows: Rows
    if isinstance(task, DirectTask):
        codes = task.rows.codes[some].astype(np.intp)
        rows = ContrastRows(X, codes, len(task.b), fit_intercept)
    else:
        rows = SignedRows(X, task.signs_and_weights()[0][some], fit_intercept)
    split = decide(rows)
    return split.direction is not None and not split.boundary.any()


def advice(
    verdicts: Sequence[bool | None], labels: Sequence[Any] | NDArray[Any], further: str
) -> str:
    """What to do, from what is known of the separability of each problem that was left wrong.

    Parameters
    ----------
    verdicts : sequence of bool or None
    labels : sequence
        The classes against the rest that the problems are about; empty for one problem.
    further : str
        What goes on until all rows are right.
    """
    if False in verdicts:
        one = f"y == {np.asarray(labels).tolist()[verdicts.index(False)]!r}" if len(labels) else "y"
        return (
            f"The rows are not linearly separable: proven, separability(X, {one}).certificate is "
            "the proof. No number of passes ends without a mistake. variant='pocket' keeps the "
            "weights with the fewest; more columns, or KernelPerceptron, may separate the rows."
        )
    if all(verdicts):
        return f"The rows are linearly separable (proven): {further} ends without a mistake."
    return (
        "separability(X, y) decides, with a proof, whether any weights leave no row wrong: if so, "
        f"{further} finds some; if not, variant='pocket' keeps the best weights."
    )


def warn_of_rows(
    name: str,
    how: str,
    left: Sequence[Task],
    count: int,
    verdicts: Sequence[bool | None],
    labels: Sequence[Any] | NDArray[Any],
    further: str,
) -> None:
    """Warn the caller of ``fit`` that rows are left: ``count`` of the first problem."""
    wrong = f"{count} of {left[0].rows.n} rows"
    if len(labels):
        wrong = "rows" if len(labels) > 1 else wrong
        against = ", ".join(repr(label) for label in np.asarray(labels).tolist())
        wrong += f" (of the problems of one class against the rest: {against})"
    warnings.warn(
        f"{name} stopped {how} while {wrong} are not on the right side. "
        f"{advice(verdicts, labels, further)}",
        ConvergenceWarning,
        # From the line that called fit: past _tell, _learn (or _learn_together) and fit.
        stacklevel=6 + isinstance(left[0], DirectTask),
    )
