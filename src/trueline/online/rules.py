"""The rules by which one row changes the weights, by name."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from trueline.online.kernels import steps

__all__ = ["Rule", "logistic", "passive_aggressive", "perceptron"]

_FORMS = {
    "PA": steps.PASSIVE_AGGRESSIVE,
    "PA-I": steps.PASSIVE_AGGRESSIVE_I,
    "PA-II": steps.PASSIVE_AGGRESSIVE_II,
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
        The rule among those of :mod:`trueline.online.kernels.steps`.
    rate : float
        Learning rate, or the aggressiveness C.
    threshold : float
        Rows with z above it cost nothing and change nothing (not so for the logistic rule).
    decay : float
        The rate at visit t is ``rate t^-decay``.
    """

    name: str
    formula: str
    code: int
    rate: float = 1.0
    threshold: float = 0.0
    decay: float = 0.0

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
            [*own, positive_weight, negative_weight, intercept_step, average_from], np.float64
        )


def perceptron(rate: float = 1.0, margin: float = 0.0) -> Rule:
    """Rosenblatt's rule: add y x if the row is wrong, or right by no more than ``margin``.

    Examples
    --------
    >>> from trueline.online.rules import perceptron
    >>> perceptron().formula
    'rate if z <= threshold'
    """
    name = "perceptron" if margin == 0 else "margin perceptron"
    return Rule(name, "rate if z <= threshold", steps.PERCEPTRON, rate, margin)


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
    return Rule("logistic", "rate t^-decay / (1 + exp(z))", steps.LOGISTIC, rate, 0.0, decay)
