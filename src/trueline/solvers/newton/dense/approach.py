"""Several steps at once: until they promise little, and along losses that bend less and less."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from trueline.losses import Loss
from trueline.solvers.newton.dense.rows import StandardRows
from trueline.wording import counted

__all__ = ["Steps", "approach", "continuation_notes", "run_steps"]

Array = NDArray[np.float64]

# Fewer rows that bend than this for each coefficient: the loss is approached by eased ones.
_BENDING_EACH, _MOST_STAGES, _FALL, _STAGE_DECREASE = 2, 60, 0.2, 1e-14
_MOST_STEPS = 30


class Steps(Protocol):
    """A method that goes on step by step, with any loss."""

    rows: StandardRows
    y: Array
    z: Array
    decrease: float

    @property
    def objective(self) -> float:
        """Where it is."""

    def use(self, loss: Loss) -> None:
        """Go on with another loss."""

    def step(self) -> float:
        """Move; the length of the step."""


def approach(descent: Steps, loss: Loss) -> int:
    """Continuation: where few rows have curvature, start with smoothed losses, less and less so.

    This is how Madsen and Nielsen solve for absolute errors: the answers for falling thresholds of
    Huber's loss lie on a path made of straight pieces.

    Returns how many smoothed losses were minimised.
    """
    p = descent.rows.count
    if not loss.kinks:  # such a loss bends everywhere
        return 0
    if np.count_nonzero(loss.curvature(descent.y, descent.z)) > _BENDING_EACH * p:
        return 0
    size = float(np.median(np.abs(descent.z - descent.y)))
    count = 0
    for _ in range(_MOST_STAGES):
        eased = loss.eased(size)
        if eased == loss or size == 0.0:
            break
        descent.use(eased)
        run_steps(descent, _STAGE_DECREASE)
        size *= _FALL
        count += 1
    descent.use(loss)
    return count


def continuation_notes(count: int) -> list[str]:
    """What to say of a continuation along so many smoothed losses."""
    return [f"continuation: {counted(count, 'step')} with a smoothed loss first"] if count else []


def run_steps(descent: Steps, enough: float) -> None:
    """Steps until the next one promises too little."""
    for _ in range(_MOST_STEPS):
        if descent.decrease <= enough * descent.objective or descent.step() == 0.0:
            break
