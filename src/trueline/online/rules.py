"""The rules by which a row changes the weights: loss and length of the step.

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
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trueline.numerics.jit import kernel

PERCEPTRON = 0
PASSIVE_AGGRESSIVE = 1
PASSIVE_AGGRESSIVE_I = 2
PASSIVE_AGGRESSIVE_II = 3
LOGISTIC = 4

# The numbers of a rule are an array, in this order. The rate at visit t is RATE t^-DECAY; rows
# whose signed score is above THRESHOLD cost nothing; rows of each sign have a weight; the intercept
# moves by INTERCEPT_STEP times the step (0 for no intercept); weights are averaged from the visit
# AVERAGE_FROM on; a score of zero is taken for ZERO.
RATE = 0
THRESHOLD = 1
DECAY = 2
POSITIVE_WEIGHT = 3
NEGATIVE_WEIGHT = 4
INTERCEPT_STEP = 5
AVERAGE_FROM = 6
ZERO = 7

# The smallest positive number: on the positive side, and nothing else.
_TINY = 5e-324


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


_FORMS = {
    "PA": PASSIVE_AGGRESSIVE,
    "PA-I": PASSIVE_AGGRESSIVE_I,
    "PA-II": PASSIVE_AGGRESSIVE_II,
}


@dataclass(frozen=True)
class Rule:
    """What a row does to the weights: add ``y step x``, with z = y (x.w + b) its signed score.

    Attributes
    ----------
    name : str
    formula : str
        The step in plain text.
    code : int
        The rule among those of :mod:`trueline.online.rules`.
    rate : float
        Learning rate, or the aggressiveness C.
    threshold : float
        Rows with z above it cost nothing and change nothing (not so for the logistic rule).
    decay : float
        The rate at visit t is ``rate t^-decay``.
    sign_of_zero : {-1, 0, 1}
        Which side a score of zero is on: with 0 on none, so that z = 0 is a mistake.
    """

    name: str
    formula: str
    code: int
    rate: float = 1.0
    threshold: float = 0.0
    decay: float = 0.0
    sign_of_zero: int = 0

    @property
    def zero(self) -> float:
        """What a score of zero is taken for: a number so small that its sign is all it has."""
        return _TINY * self.sign_of_zero

    def setting(
        self,
        positive_weight: float = 1.0,
        negative_weight: float = 1.0,
        intercept_step: float = 1.0,
        average_from: float = 1.0,
    ) -> NDArray[np.float64]:
        """The numbers that the kernels ask for, in their order."""
        own = (self.rate, self.threshold, self.decay)
        return np.array(
            [*own, positive_weight, negative_weight, intercept_step, average_from, self.zero],
            np.float64,
        )


def perceptron(rate: float = 1.0, margin: float = 0.0, sign_of_zero: int = 0) -> Rule:
    """Rosenblatt's rule: add y x if the row is wrong, or right by no more than ``margin``.

    Examples
    --------
    >>> from trueline.online.rules import perceptron
    >>> perceptron().formula
    'rate if z <= threshold'
    """
    name = "perceptron" if margin == 0 else "margin perceptron"
    return Rule(name, "rate if z <= threshold", PERCEPTRON, rate, margin, 0.0, sign_of_zero)


def passive_aggressive(C: float = 1.0, form: str = "PA-I") -> Rule:
    """The shortest step after which the row is right by a margin of 1, softened by C.

    Parameters
    ----------
    C : float
        The longest step of PA-I; the smaller, the shorter the steps of PA-II. PA has none.
    form : {"PA", "PA-I", "PA-II"}

    References
    ----------
    K. Crammer, O. Dekel, J. Keshet, S. Shalev-Shwartz and Y. Singer, "Online passive-aggressive
    algorithms", Journal of Machine Learning Research 7, 2006.
    """
    formula = {
        "PA": "max(0, 1 - z) / ||x||^2",
        "PA-I": "min(C, max(0, 1 - z) / ||x||^2)",
        "PA-II": "max(0, 1 - z) / (||x||^2 + 1 / (2 C))",
    }[form]
    return Rule(form, formula, _FORMS[form], C, 1.0)


def logistic(rate: float = 0.5, decay: float = 0.0) -> Rule:
    """Stochastic gradient descent on log(1 + exp(-z))."""
    return Rule("logistic", "rate t^-decay / (1 + exp(z))", LOGISTIC, rate, 0.0, decay)
