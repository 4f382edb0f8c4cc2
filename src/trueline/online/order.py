"""In which order rows are visited."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trueline.online.kernels.shuffle import shuffle

__all__ = ["Order", "seed_of"]


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

    Examples
    --------
    >>> from trueline.online.order import Order
    >>> order = Order(5, seed=3)
    >>> order.next_pass().tolist() == order.next_pass().tolist()
    False
    """

    n: int
    seed: int | None = None
    keep: NDArray[np.bool_] | None = None
    drawn: bool = False

    def __post_init__(self) -> None:
        self._rows = np.arange(self.n, dtype=np.int32 if self.n < 2**31 else np.int64)
        if self.drawn:
            self._random = np.random.default_rng(self.seed)

    def next_pass(self) -> NDArray[Any]:
        """The rows of the next pass, in order."""
        if self.seed is not None and self.drawn:
            self._rows = self._random.integers(0, self.n, self.n, dtype=self._rows.dtype)
        elif self.seed is not None:
            shuffle(self._rows, self.seed)
        return self._rows if self.keep is None else self._rows[self.keep[self._rows]]


def seed_of(random: np.random.RandomState) -> int:
    """The seed of the shuffles that scikit-learn takes from this generator, by its second draw."""
    largest = np.iinfo(np.int32).max
    random.randint(1, largest)
    return int(random.randint(largest))
