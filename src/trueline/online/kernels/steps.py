"""The rules by which a row changes the weights, as numbers: loss and length of the step.

With z = y (x.w + b) the signed score of a row, y in {-1, +1}, every rule adds ``y step x`` to w:

==========================  =========================================  ==================
rule                        step                                       loss
==========================  =========================================  ==================
perceptron                  rate if z <= threshold                     max(0, threshold - z)
passive-aggressive          loss / ||x||^2                             max(0, threshold - z)
passive-aggressive I        min(rate, loss / ||x||^2)                  max(0, threshold - z)
passive-aggressive II       loss / (||x||^2 + 1 / (2 rate))            max(0, threshold - z)
logistic                    rate t^-decay / (1 + exp(z))               log(1 + exp(-z))
==========================  =========================================  ==================

(Rosenblatt 1958; Crammer et al., "Online passive-aggressive algorithms", JMLR 7, 2006.)
"""

from __future__ import annotations

import math
from typing import Any

from trueline.numerics.jit import kernel

__all__ = [
    "AVERAGE_FROM",
    "DECAY",
    "INTERCEPT_STEP",
    "LOGISTIC",
    "NEGATIVE_WEIGHT",
    "PASSIVE_AGGRESSIVE",
    "PASSIVE_AGGRESSIVE_I",
    "PASSIVE_AGGRESSIVE_II",
    "PERCEPTRON",
    "POSITIVE_WEIGHT",
    "RATE",
    "THRESHOLD",
    "loss_of",
    "step_of",
]

PERCEPTRON = 0
PASSIVE_AGGRESSIVE = 1
PASSIVE_AGGRESSIVE_I = 2
PASSIVE_AGGRESSIVE_II = 3
LOGISTIC = 4

# The numbers of a rule are an array, in this order. The rate at visit t is RATE t^-DECAY; rows
# whose signed score is above THRESHOLD cost nothing; rows of each sign have a weight; the intercept
# moves by INTERCEPT_STEP times the step (0 for no intercept); weights are averaged from the visit
# AVERAGE_FROM on.
RATE = 0
THRESHOLD = 1
DECAY = 2
POSITIVE_WEIGHT = 3
NEGATIVE_WEIGHT = 4
INTERCEPT_STEP = 5
AVERAGE_FROM = 6


@kernel
def loss_of(rule: int, z: Any, threshold: Any) -> Any:
    """What a row costs at the signed score z."""
    if rule == LOGISTIC:
        return math.log1p(math.exp(-z)) if z > 0 else math.log1p(math.exp(z)) - z
    return threshold - z if z <= threshold else 0.0


@kernel
def step_of(rule: int, loss: Any, z: Any, square: Any, rate: Any, threshold: Any) -> Any:
    """How far a row moves the weights; ``square`` is its squared norm where the rule asks."""
    if rule == PERCEPTRON:
        return rate if z <= threshold else 0.0
    if rule == LOGISTIC:
        return rate / (1.0 + math.exp(z)) if z < 700.0 else 0.0
    if rule == PASSIVE_AGGRESSIVE_II:
        return loss / (square + 0.5 / rate)
    if square == 0.0:
        return 0.0
    if rule == PASSIVE_AGGRESSIVE_I:
        return min(rate, loss / square)
    return loss / square
