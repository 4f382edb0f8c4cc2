"""Streams of rows, and how predictions fared on them before learning."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp

from trueline.online.hashing import hashed_rows

__all__ = ["Progress", "batches_of"]


@dataclass
class Progress:
    """Progressive validation: every row is predicted before it is learned.

    Attributes
    ----------
    rows : int
        Rows seen.
    mistakes : int
        Rows whose prediction was wrong (a score of zero is).
    blocks : list of (int, int)
        Rows and mistakes at the end of each batch, at most about a thousand of them.

    Examples
    --------
    >>> from trueline.online.stream import Progress
    >>> progress = Progress()
    >>> progress.add(10, 4)
    >>> progress.add(10, 1)
    >>> progress.accuracy, progress.blocks
    (0.75, [(10, 4), (20, 5)])
    """

    rows: int = 0
    mistakes: int = 0
    blocks: list[tuple[int, int]] = field(default_factory=list)
    every: int = 1

    @property
    def accuracy(self) -> float:
        """Share of rows predicted right before they were learned."""
        return 1.0 - self.mistakes / self.rows if self.rows else float("nan")

    def add(self, rows: int, mistakes: int) -> None:
        """Count a batch."""
        self.rows += rows
        self.mistakes += mistakes
        if not self.blocks or self.rows - self.blocks[-1][0] >= self.every:
            self.blocks.append((self.rows, self.mistakes))
            if len(self.blocks) > 1000:
                self.blocks = self.blocks[1::2]
                self.every = max(1, 2 * self.every)


def batches_of(stream: Iterable[Any], width: Callable[[], int]) -> Iterator[tuple[Any, Any, Any]]:
    """Each item of a stream as rows of shape (n, d), labels and weights.

    Parameters
    ----------
    stream : iterable of (x, y) or (x, y, weight)
        x is a row, a mapping, a list of mappings, or a batch.
    width : callable
        Number of columns for hashed rows.
    """
    for item in stream:
        if not isinstance(item, tuple) or len(item) not in (2, 3):
            raise ValueError(
                "A stream is an iterable of (x, y), or of (x, y, weight); it gave an item of type "
                f"{type(item).__name__}."
            )
        x, y, *rest = item
        weight = rest[0] if rest else None
        if isinstance(x, Mapping):
            x, y, weight = hashed_rows([x], width()), [y], _single(weight)
        elif isinstance(x, list) and x and isinstance(x[0], Mapping):
            x = hashed_rows(x, width())
        elif not sp.issparse(x) and not hasattr(x, "columns"):
            x = np.asarray(x)
            if x.ndim == 1:
                x, y, weight = x.reshape(1, -1), [y], _single(weight)
        yield x, np.asarray(y), weight


def _single(weight: Any) -> Any:
    return None if weight is None else np.array([weight], dtype=np.float64)
