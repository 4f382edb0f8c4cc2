"""What happened while learning: mistakes, updates, and where."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

__all__ = ["Record"]

Array = NDArray[np.float64]


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

        def joined(old: NDArray[Any] | None, new: Array, dtype: Any) -> NDArray[Any]:
            new = new.astype(dtype)
            return new if old is None else np.concatenate([old, new])

        self.rows = joined(self.rows, log[:, 0], np.int64)
        self.steps = joined(self.steps, log[:, 1], np.float64)
        self.times = joined(self.times, log[:, 2], np.int64)
        if log.shape[1] > 3:
            self.rivals = joined(self.rivals, log[:, 3], np.int64)

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
