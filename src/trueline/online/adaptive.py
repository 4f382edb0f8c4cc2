"""Adaptive logistic learning as a task that passes are made of."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trueline.online.kernels.adaptive import adaptive_pass
from trueline.online.passes import Task

__all__ = ["AdaptiveTask", "fresh_memory"]

Array = NDArray[np.float64]


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
