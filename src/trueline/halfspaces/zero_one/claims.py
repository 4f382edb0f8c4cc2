"""Conflicts that doubles are not sure of: collected by the search, decided in exact arithmetic."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from trueline.halfspaces.zero_one.exact import is_conflict
from trueline.halfspaces.zero_one.problem import Task, integers_of

__all__ = ["Claims"]

Array = NDArray[np.float64]
Indices = NDArray[np.int64]


class Claims:
    """A table of sets of rows, each with the bound that holds even if it is no conflict."""

    def __init__(self, task: Task) -> None:
        self.task = task
        self.decided = 0
        self.wrong: list[int] = []
        self.counter = np.zeros(2, dtype=np.int64)
        self._allocate(4 * len(task.s) + 1024)

    def _allocate(self, size: int) -> None:
        self.rows = np.full((size, self.task.A.shape[1] + 1), -1, dtype=np.int64)
        # One more, for nodes in which all is decided and nothing is known.
        self.floors = np.full(size + 1, np.inf)
        self.slots = np.full(4 * size, -1, dtype=np.int64)

    def arrays(self) -> tuple[Indices, Array, Indices, Indices]:
        """What the search writes to; there is room for the claims of a few nodes."""
        count = int(self.counter[0])
        if count + 3 * len(self.task.s) > len(self.rows):
            rows, floors, slots = self.rows, self.floors, self.slots
            self._allocate(2 * len(rows))
            self.rows[:count], self.floors[:count] = rows[:count], floors[:count]
            self.floors[-1] = floors[-1]
            # Places depend on the size of the table.
            for number in range(count):
                self._place(number)
            del slots
        return self.rows, self.floors, self.slots, self.counter

    def _place(self, number: int) -> None:
        code = 1469598103
        for row in self.rows[number]:
            if row >= 0:
                code = ((code ^ int(row)) * 1099511) % 2147483647
        place = code % len(self.slots)
        while self.slots[place] >= 0:
            place = (place + 1) % len(self.slots)
        self.slots[place] = number

    def decide(self) -> None:
        """Decide the claims that are new."""
        count = int(self.counter[0])
        for number in range(self.decided, count):
            rows = self.rows[number]
            if not is_conflict(integers_of(self.task, rows[rows >= 0])):
                self.wrong.append(number)
        self.decided = count

    def floor(self) -> float:
        """The bound that holds without the claims that turned out to be wrong."""
        return float(min([self.floors[-1], *self.floors[self.wrong]]))
