"""The direct multiclass rule: one weight vector for each class, learned together."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from trueline.online.kernels.direct import direct_pass
from trueline.online.passes import Task

__all__ = ["DirectTask"]


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
